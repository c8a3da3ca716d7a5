//! The children of a process, from /proc.

use schedlab_base::Tid;
use std::fs;

/// The children of a process.
pub(crate) fn children(parent: Tid) -> Vec<Tid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<Tid>().ok());
    let mut children: Vec<Tid> = ids
        .filter(|pid| {
            let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
            let stat = String::from_utf8_lossy(&stat);
            let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            rest.split_whitespace().nth(1).and_then(|word| word.parse().ok()) == Some(parent)
        })
        .collect();
    children.sort_unstable();
    children
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_is_found() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(children(std::process::id() as Tid).contains(&(child.id() as Tid)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

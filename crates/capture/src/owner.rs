//! Names of kernel objects (tracefs instances, cgroups) that state the process that made them, so that a later run can
//! remove those of processes that were killed.

use schedlab_base::Tid;
use std::fs;
use std::path::Path;

/// The mark of this process, `PID-START`, where START is its start time in ticks since boot.
#[must_use]
pub fn mark() -> String {
    let pid = std::process::id() as Tid;
    format!("{pid}-{}", start_time(Path::new("/proc"), pid).unwrap_or(0))
}

/// Whether a name that begins with a mark was made by a process that no longer exists.
#[must_use]
pub fn is_gone(name: &str) -> bool {
    owner(name).is_some_and(|(pid, start)| start_time(Path::new("/proc"), pid) != Some(start))
}

/// The process and its start time that a name begins with.
fn owner(name: &str) -> Option<(Tid, u64)> {
    let mut parts = name.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// The start time of a process in ticks since boot: field 22 of its `stat`.
fn start_time(proc: &Path, pid: Tid) -> Option<u64> {
    let stat = fs::read_to_string(proc.join(pid.to_string()).join("stat")).ok()?;
    // The name in parentheses may itself contain spaces and parentheses.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_states_its_owner() {
        assert_eq!(owner("42-1000-0"), Some((42, 1000)));
        assert_eq!(owner("42-1000-a-group"), Some((42, 1000)));
        assert_eq!(owner("x"), None);
        assert!(!is_gone(&mark()) && is_gone("1-1-0"));
    }

    #[test]
    fn a_process_has_a_start_time_whatever_its_name() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("7")).unwrap();
        let fields: Vec<String> = (4..=30).map(|n| n.to_string()).collect();
        fs::write(dir.path().join("7/stat"), format!("7 (a) b) R {}", fields.join(" "))).unwrap();
        assert_eq!(start_time(dir.path(), 7), Some(22));
        assert_eq!(start_time(dir.path(), 8), None);
    }
}

//! Names of kernel objects (tracefs instances, cgroups) that state the process that made them, so that a later run can
//! remove those of processes that were killed.

use crate::procfs::split_stat;
use schedlab_base::Tid;
use std::fs;
use std::path::Path;

/// The mark of this process, `PID-START`, where START is its start time in ticks since boot.
#[must_use]
pub fn mark() -> String {
    let pid = std::process::id() as Tid;
    format!("{pid}-{}", Process::of(pid).map_or(0, |process| process.start))
}

/// Whether a name that begins with a mark was made by a process that no longer exists.
#[must_use]
pub fn is_gone(name: &str) -> bool {
    owner(name).is_some_and(|(pid, start)| Process::of(pid).is_none_or(|process| process.start != start))
}

/// The process and its start time that a name begins with.
fn owner(name: &str) -> Option<(Tid, u64)> {
    let mut parts = name.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// A running process. Its id alone may be another's later; with the start time it is unlike any other of this boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id.
    pub pid: Tid,
    /// Its start time in ticks since boot: field 22 of its `stat`.
    pub start: u64,
    /// The process that started it, or that took its place.
    pub parent: Tid,
    /// Its name.
    pub name: String,
}

impl Process {
    /// The process of this id, if there is one.
    #[must_use]
    pub fn of(pid: Tid) -> Option<Self> {
        Self::below(Path::new("/proc"), pid)
    }

    fn below(proc: &Path, pid: Tid) -> Option<Self> {
        let stat = fs::read_to_string(proc.join(pid.to_string()).join("stat")).ok()?;
        let (name, mut fields) = split_stat(&stat)?;
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let threads: u32 = fields.nth(15)?.parse().ok()?;
        let start = fields.nth(1)?.parse().ok()?;
        // A zombie without other threads has ended: it only waits until its parent has read how.
        if matches!(state, "Z" | "X") && threads <= 1 {
            return None;
        }
        Some(Self { pid, start, parent, name: name.to_owned() })
    }
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
        let write = |state, threads: &str| {
            let fields = fields.join(" ").replace(" 20 ", &format!(" {threads} "));
            fs::write(dir.path().join("7/stat"), format!("7 (a) b) {state} {fields}")).unwrap();
            Process::below(dir.path(), 7)
        };
        let seven = Process { pid: 7, start: 22, parent: 4, name: "a) b".into() };
        assert_eq!(write('R', "1"), Some(seven.clone()));
        assert_eq!(write('Z', "1"), None, "a zombie has ended");
        assert_eq!(write('Z', "2"), Some(seven), "its other threads go on");
        assert_eq!(Process::below(dir.path(), 8), None);
    }
}

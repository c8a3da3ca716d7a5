//! What a job has left in the guest that could disturb the next one.

use super::tunables;
use crate::mailbox::Done;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The folders in which each folder is a thing that somebody made: groups of tasks, instances of the tracer.
const MADE: [(&str, &str); 2] =
    [("sys/fs/cgroup", "a group of tasks"), ("sys/kernel/tracing/instances", "an instance of the tracer")];

/// How often and at what intervals it is looked again.
const TRIES: usize = 50;
const PAUSE: Duration = Duration::from_millis(20);

/// Why the guest should take no other job after this one; `None` if it is as it was.
pub(super) fn left(done: &Done) -> Option<String> {
    if done.status != 0 {
        return Some(format!("the command ended with status {}", done.status));
    }
    bring_back(Path::new("/"));
    in_time(Path::new("/")).or_else(|| {
        let changed = tunables::all(Path::new("/")) != done.seen.tunables;
        changed.then(|| "the command changed a tunable".to_owned())
    })
}

/// Brings CPUs back that the command has taken offline.
fn bring_back(root: &Path) {
    for cpu in fs::read_dir(root.join("sys/devices/system/cpu")).into_iter().flatten().flatten() {
        let online = cpu.path().join("online");
        if fs::read_to_string(&online).is_ok_and(|text| text.trim() == "0") {
            let _ = fs::write(online, "1");
        }
    }
}

/// What is still there after a while: processes take some time to end.
fn in_time(root: &Path) -> Option<String> {
    let mut left = in_root(root);
    for _ in 0..TRIES {
        left.as_ref()?;
        std::thread::sleep(PAUSE);
        left = in_root(root);
    }
    left
}

fn in_root(root: &Path) -> Option<String> {
    for (folder, what) in MADE {
        let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
        if let Some(one) = entries.into_iter().find(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            return Some(format!("{what} is left: {}", one.file_name().to_string_lossy()));
        }
    }
    let processes = fs::read_dir(root.join("proc")).into_iter().flatten().flatten();
    let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    // A thread of the kernel has no program.
    let left = numbers.find(|number| *number != 1 && root.join(format!("proc/{number}/exe")).read_link().is_ok());
    left.map(|number| format!("process {number} is left"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_named() {
        let root = tempfile::tempdir().unwrap();
        let make = |folder: &str| fs::create_dir_all(root.path().join(folder)).unwrap();
        for folder in ["proc/1", "proc/2", "proc/sys", "sys/fs/cgroup", "sys/kernel/tracing/instances"] {
            make(folder);
        }
        let program = |number: u32| {
            std::os::unix::fs::symlink("/bin/schedlab", root.path().join(format!("proc/{number}/exe"))).unwrap();
        };
        program(1);
        fs::write(root.path().join("sys/fs/cgroup/cgroup.procs"), "1").unwrap();
        assert_eq!(in_root(root.path()), None, "the agent and a thread of the kernel");
        program(2);
        assert_eq!(in_root(root.path()).unwrap(), "process 2 is left");
        make("sys/kernel/tracing/instances/schedlab");
        assert_eq!(in_root(root.path()).unwrap(), "an instance of the tracer is left: schedlab");
        make("sys/devices/system/cpu/cpu1");
        let online = root.path().join("sys/devices/system/cpu/cpu1/online");
        fs::write(&online, "0\n").unwrap();
        bring_back(root.path());
        assert_eq!(fs::read_to_string(online).unwrap(), "1");
        make("sys/fs/cgroup/a");
        assert_eq!(in_root(root.path()).unwrap(), "a group of tasks is left: a");
    }
}

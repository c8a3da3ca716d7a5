//! Names of modelled tasks, and what a kernel thread's name says about where it may run.

use schedlab_base::{CpuId, Tid};
use std::collections::HashSet;

/// The longest name that is kept.
const LONGEST: usize = 64;

/// Kernel threads of one CPU: `NAME/CPU` or `NAME/CPU:...`.
const PER_CPU: [&str; 13] = [
    "backlog_napi",
    "cpuhp",
    "idle_inject",
    "irq_work",
    "ksoftirqd",
    "ktimers",
    "kworker",
    "migration",
    "posixcputmr",
    "posix_cpu_timer",
    "rcuc",
    "stopper",
    "watchdog",
];

/// Keys for tasks: the command's name and the thread's id, made unique.
#[derive(Debug, Default)]
pub(super) struct Keys(HashSet<String>);

impl Keys {
    /// A new key. Characters that do not suit a file's name (rt-app names its logs so) become `_`.
    pub(super) fn unique(&mut self, comm: &str, tid: Tid) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || "._:+-".contains(c) { c } else { '_' };
        let name: String = comm.chars().take(LONGEST).map(plain).collect();
        let base = if name.is_empty() { format!("task-{tid}") } else { format!("{name}-{tid}") };
        let mut key = base.clone();
        let mut n = 2;
        while !self.0.insert(key.clone()) {
            key = format!("{base}.{n}");
            n += 1;
        }
        key
    }
}

/// The CPU that a kernel thread is bound to, if its name says so.
pub(super) fn bound_to(comm: &str) -> Option<CpuId> {
    let (name, rest) = comm.split_once('/')?;
    let number = rest.split(':').next()?;
    PER_CPU.contains(&name).then(|| number.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_unique_and_plain() {
        let mut keys = Keys::default();
        assert_eq!(keys.unique("kworker/0:1-events", 7), "kworker_0:1-events-7");
        assert_eq!(keys.unique("a b\"\n", 7), "a_b__-7");
        assert_eq!(keys.unique("", 7), "task-7");
        assert_eq!(keys.unique("task", 7), "task-7.2");
    }

    #[test]
    fn per_cpu_threads_are_bound() {
        assert_eq!(bound_to("ksoftirqd/3"), Some(3));
        assert_eq!(bound_to("kworker/12:1H-kblockd"), Some(12));
        assert_eq!(bound_to("kworker/u8:2"), None);
        assert_eq!(bound_to("scsi_eh/0"), None);
        assert_eq!(bound_to("bash"), None);
    }
}

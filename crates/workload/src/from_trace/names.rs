//! Names of modelled tasks, and what a kernel thread's name says about where it may run.

use crate::{NO_SESSION, TaskDef};
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
    PER_CPU.iter().find_map(|name| comm.strip_prefix(name)?.strip_prefix('/')?.split(':').next()?.parse().ok())
}

/// Whether a modelled task is one of the kernel's own threads: it is in no session or, where the trace has no sessions,
/// is called as a thread of one CPU.
#[must_use]
pub fn is_kernel_thread(task: &TaskDef) -> bool {
    // The slash of a name is no character of a key.
    let is_called = || {
        PER_CPU.iter().any(|name| {
            let rest = task.name.strip_prefix(name).and_then(|rest| rest.strip_prefix('_'));
            rest.is_some_and(|rest| bound_to(&format!("{name}/{}", rest.split('-').next().unwrap_or(rest))).is_some())
        })
    };
    task.session.map_or_else(is_called, |session| session == NO_SESSION)
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

    #[test]
    fn the_kernels_own_threads_are_known() {
        let is = |name: &str, session| is_kernel_thread(&TaskDef { name: name.into(), session, ..TaskDef::default() });
        assert!(is("kswapd0-77", Some(NO_SESSION)) && !is("kswapd0-77", Some(3)) && !is("kswapd0-77", None));
        for name in ["kworker_3:1-events-57", "migration_12-9", "irq_work_3-40.2"] {
            assert!(is(name, None) && !is(name, Some(3)), "{name}");
        }
        assert!(!is("kworker_u8:2-57", None) && !is("kworker-3", None));
    }
}

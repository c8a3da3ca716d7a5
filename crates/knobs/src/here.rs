//! What is known of the machine: its release, why it refuses, and what can stand in for a tunable that it does not let
//! one set.

use crate::root::{Root, is_refusal};
use rustix::process::geteuid;
use schedlab_base::{Release, v};
use schedlab_capture::SchedAttr;
use std::io;

/// What is known of a machine.
#[derive(Clone, Debug)]
pub struct Here {
    /// Its kernel's release; none if it does not say.
    pub release: Option<Release>,
    /// Its name.
    pub host: String,
    /// This boot's id.
    pub boot: String,
    /// Whether the caller is root.
    pub root: bool,
    /// Whether a task can ask for a slice of its own.
    slices: bool,
    /// Where a group's CPU weight is set.
    weights: Option<&'static str>,
    /// Whether sessions can be groups.
    autogroup: bool,
}

impl Here {
    /// Looks at the machine below `root`.
    #[must_use]
    pub fn look(root: &Root) -> Self {
        let text = |path: &str| root.read(path).unwrap_or_default();
        let release: Option<Release> = text("/proc/sys/kernel/osrelease").parse().ok();
        let controllers = text("/sys/fs/cgroup/cgroup.controllers");
        let weights = if controllers.split_whitespace().any(|word| word == "cpu") {
            Some("cpu.weight in /sys/fs/cgroup/GROUP")
        } else if root.has("/sys/fs/cgroup/cpu/cpu.shares") {
            Some("cpu.shares in /sys/fs/cgroup/cpu/GROUP")
        } else {
            None
        };
        Self {
            release,
            host: text("/proc/sys/kernel/hostname"),
            boot: text("/proc/sys/kernel/random/boot_id"),
            root: geteuid().is_root(),
            // Since 6.12 the kernel reports the slice of an ordinary task, which is that which it lets the task ask
            // for.
            slices: release.is_some_and(|release| release >= v(6, 12))
                && (!root.is_real() || SchedAttr::of(0).is_ok_and(|attr| attr.runtime > 0)),
            weights,
            autogroup: root.has("/proc/sys/kernel/sched_autogroup_enabled"),
        }
    }

    /// Its memory in KiB.
    pub(crate) fn memory_kib(&self, root: &Root) -> Option<i128> {
        let text = root.read("/proc/meminfo").ok()?;
        text.split_once("MemTotal:")?.1.split_whitespace().next()?.parse().ok()
    }

    /// Why a file cannot be read or written, and whether that is for lack of rights.
    pub(crate) fn why(&self, path: &str, error: &io::Error) -> (String, bool) {
        let refused = is_refusal(error);
        let why = match error.raw_os_error() {
            Some(libc::EPERM) if self.root && path.starts_with("/sys/kernel/debug") => {
                "EPERM: the kernel is locked down and keeps debugfs closed, even to root"
            }
            Some(libc::EPERM | libc::EACCES) if !self.root => "only root may set it",
            Some(libc::EPERM) => "EPERM: the kernel does not allow it",
            Some(libc::EACCES) => "EACCES: the file cannot be written",
            Some(libc::EROFS) => "EROFS: it is read-only here, as in a container without these rights",
            _ => return (error.to_string(), refused),
        };
        (why.to_owned(), refused)
    }

    /// What stands in for a tunable on this machine, from the words of the catalogue's column `instead`. `None` if
    /// nothing does.
    #[must_use]
    pub fn instead(&self, words: &str) -> Option<String> {
        let each = |word: &str| {
            Some(match word {
                "slice" if self.slices => {
                    "each task's own slice (sched_setattr(2) with sched_runtime, 0.1 to 100 ms)".to_owned()
                }
                "weights" => format!("CPU weights of groups ({})", self.weights?),
                "nice" => "nice levels (nice -n, renice)".to_owned(),
                "batch" => "SCHED_BATCH for tasks that should not preempt (chrt --batch 0)".to_owned(),
                "autogroup" if self.autogroup => {
                    "autogroup (kernel.sched_autogroup_enabled, /proc/PID/autogroup)".to_owned()
                }
                "pin" => "CPU affinity and cpusets (taskset -c)".to_owned(),
                "memory" => "NUMA policies (numactl)".to_owned(),
                "boot" => "the kernel's command line (preempt=)".to_owned(),
                "guest" => "a guest whose kernel has it (schedlab exec --on vm:KERNEL --set)".to_owned(),
                "command" => "the limits and priorities of a command (prlimit, ionice, choom, nice)".to_owned(),
                _ => return None,
            })
        };
        let found: Vec<String> = words.split_whitespace().filter_map(each).collect();
        (!found.is_empty()).then(|| found.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::tree;

    #[test]
    fn only_what_this_kernel_has_stands_in() {
        let at = |release: &str, files: &[(&str, &str)]| {
            let dir = tree(&[&[("proc/sys/kernel/osrelease", release)], files].concat());
            Here::look(&Root::new(dir.path())).instead("slice weights autogroup nice")
        };
        let old = at("5.10.0", &[("sys/fs/cgroup/cpu/cpu.shares", "1024\n")]).unwrap();
        assert!(old.starts_with("CPU weights of groups (cpu.shares in ") && !old.contains("slice"), "{old}");
        let new = at("6.12.4", &[("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n")]).unwrap();
        assert!(new.starts_with("each task's own slice") && new.contains("cpu.weight"), "{new}");
        assert_eq!(at("6.1.0", &[]).as_deref(), Some("nice levels (nice -n, renice)"));
        let dir = tree(&[]);
        assert_eq!(Here::look(&Root::new(dir.path())).instead("slice"), None);
    }
}

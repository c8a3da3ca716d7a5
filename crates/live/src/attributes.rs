//! What a task changes about itself: policy, priority, slice, clamps, CPUs, memory policy, group.

use crate::groups::Groups;
use crate::sys;
use schedlab_base::{CpuList, Error, Nanos, Result};
use schedlab_capture::SchedAttr;
use schedlab_sim::program::{Policy, Setting};
use std::fs;
use std::io;

/// The kernel's number of a policy.
fn number(policy: Policy) -> u32 {
    match policy {
        Policy::Other => libc::SCHED_OTHER as u32,
        Policy::Batch => libc::SCHED_BATCH as u32,
        Policy::Idle => libc::SCHED_IDLE as u32,
        Policy::Fifo => libc::SCHED_FIFO as u32,
        Policy::Rr => libc::SCHED_RR as u32,
        Policy::Deadline => 6,
    }
}

/// The scheduling attributes of a thread, as it last set them.
pub(crate) struct Attributes {
    policy: Policy,
    nice: i8,
    priority: u8,
    dl: (Nanos, Nanos, Nanos),
    reclaim: bool,
    /// What the kernel has.
    set: SchedAttr,
    group: u32,
}

impl Attributes {
    /// Those that this thread was created with, in this group.
    pub(crate) fn inherited(group: u32) -> Self {
        let set = SchedAttr::of(0).unwrap_or_default();
        let set = SchedAttr { size: 0, flags: 0, runtime: 0, deadline: 0, period: 0, util_min: 0, util_max: 0, ..set };
        let policies = [Policy::Other, Policy::Batch, Policy::Idle, Policy::Fifo, Policy::Rr];
        let policy = policies.into_iter().find(|policy| number(*policy) == set.policy).unwrap_or_default();
        let (nice, priority) = (set.nice as i8, set.priority as u8);
        Self { policy, nice, priority, dl: (0, 0, 0), reclaim: false, set, group }
    }

    /// The group that this thread is in.
    pub(crate) fn group(&self) -> u32 {
        self.group
    }

    /// Applies a setting to this thread.
    pub(crate) fn apply(&mut self, setting: &Setting, groups: &Groups) -> Result<()> {
        if let Some(group) = setting.group.filter(|group| *group != self.group) {
            groups.join(group)?;
            self.group = group;
        }
        if let Some(nodes) = &setting.membind {
            sys::bind_memory(nodes).map_err(|e| memory_refused(nodes, &e))?;
        }
        // A deadline task keeps its CPUs until it is something else.
        let leaves = self.policy == Policy::Deadline;
        if leaves {
            self.schedule(setting)?;
        }
        if let Some(cpus) = &setting.cpus {
            bind(cpus)?;
        }
        if leaves { Ok(()) } else { self.schedule(setting) }
    }

    fn schedule(&mut self, setting: &Setting) -> Result<()> {
        self.policy = setting.policy.unwrap_or(self.policy);
        self.nice = setting.nice.unwrap_or(self.nice);
        self.priority = setting.rt_priority.unwrap_or(self.priority);
        self.dl = setting.dl.unwrap_or(self.dl);
        self.reclaim = setting.reclaim.unwrap_or(self.reclaim);
        let mut attr = SchedAttr { policy: number(self.policy), ..SchedAttr::default() };
        match self.policy {
            Policy::Fifo | Policy::Rr => attr.priority = u32::from(self.priority),
            Policy::Deadline => {
                (attr.runtime, attr.deadline, attr.period) = self.dl;
                attr.flags = if self.reclaim { SchedAttr::RECLAIM } else { 0 };
            }
            Policy::Other | Policy::Batch | Policy::Idle => {
                attr.nice = i32::from(self.nice);
                attr.runtime = self.dl.0;
            }
        }
        let clamps = setting.util.0.is_some() || setting.util.1.is_some();
        if attr == self.set && !clamps {
            return Ok(());
        }
        let mut with_clamps = attr;
        if let Some(least) = setting.util.0 {
            with_clamps.flags |= SchedAttr::UTIL_CLAMP_MIN;
            with_clamps.util_min = least.into();
        }
        if let Some(most) = setting.util.1 {
            with_clamps.flags |= SchedAttr::UTIL_CLAMP_MAX;
            with_clamps.util_max = most.into();
        }
        with_clamps.set().map_err(|e| self.refused(&e, clamps))?;
        self.set = attr;
        Ok(())
    }

    /// `SCHED_FIFO with priority 50`.
    fn words(&self) -> String {
        let us = |time: Nanos| time as f64 / 1e3;
        let (runtime, deadline, period) = self.dl;
        match self.policy {
            Policy::Other => format!("SCHED_OTHER with nice {}", self.nice),
            Policy::Batch => format!("SCHED_BATCH with nice {}", self.nice),
            Policy::Idle => "SCHED_IDLE".to_owned(),
            Policy::Fifo => format!("SCHED_FIFO with priority {}", self.priority),
            Policy::Rr => format!("SCHED_RR with priority {}", self.priority),
            Policy::Deadline => format!(
                "SCHED_DEADLINE with runtime {} us, deadline {} us, period {} us",
                us(runtime),
                us(deadline),
                us(period)
            ),
        }
    }

    fn refused(&self, error: &io::Error, clamps: bool) -> Error {
        let what = self.words();
        let denied = |why: &str| Error::not_permitted(format!("the kernel refuses {what}: {why}"));
        match (error.raw_os_error(), self.policy) {
            (Some(libc::EOPNOTSUPP), _) if clamps => {
                Error::not_permitted("this kernel has no utilisation clamps (CONFIG_UCLAMP_TASK)")
                    .mend("leave util_min and util_max out, or run on a kernel that has them")
            }
            (Some(libc::EBUSY), Policy::Deadline) => denied("its CPUs have no such bandwidth left (EBUSY)")
                .mend("let the deadline tasks' runtime / period add up to less: 95% of the CPUs, 90% from 6.12 on"),
            (Some(libc::EPERM | libc::EACCES), policy) if !sys::is_root() => match policy {
                Policy::Fifo | Policy::Rr => denied("it needs root (EPERM)")
                    .mend(format!("run it with sudo, or allow it: ulimit -r {}", self.priority)),
                Policy::Deadline => denied("it needs root (EPERM)").mend("run it with sudo"),
                _ => denied("a lower nice value needs root (EPERM)").mend("run it with sudo, or allow it: ulimit -e"),
            },
            (Some(libc::EPERM), Policy::Fifo | Policy::Rr) => match empty_rt_group() {
                Some(file) => denied(&format!("the cgroup has no real-time budget: {file} is 0 (EPERM)"))
                    .mend(format!("write some us to {file}, or start schedlab from a group that has some")),
                None => denied("a limit of the process or its container forbids it (EPERM)")
                    .mend("give the process CAP_SYS_NICE"),
            },
            (Some(libc::EPERM), Policy::Deadline) => {
                denied("a deadline task must be allowed to use every CPU of its partition (EPERM)")
                    .mend("leave \"cpus\" out, or set kernel.sched_rt_runtime_us to -1, which ends admission")
            }
            (Some(libc::EPERM | libc::EACCES), _) => denied(&error.to_string()).mend("give the process CAP_SYS_NICE"),
            (Some(libc::EINVAL), _) => {
                Error::input(format!("the kernel refuses {what}: {error}")).mend("take values that this kernel knows")
            }
            _ => Error::system(format!("cannot set {what}"), error),
        }
    }
}

/// Binds this thread, and what it creates, to these CPUs.
pub(crate) fn bind(cpus: &[u32]) -> Result<()> {
    sys::set_affinity(cpus).map_err(|e| cpus_refused(cpus, &e))
}

fn cpus_refused(cpus: &[u32], error: &io::Error) -> Error {
    let list: CpuList = cpus.iter().copied().collect();
    let what = format!("the task cannot be bound to CPUs {list}: {error}");
    match error.raw_os_error() {
        Some(libc::EINVAL) => {
            Error::not_permitted(what).mend("name CPUs that are online and that this process's cpuset allows")
        }
        Some(libc::EBUSY) => Error::not_permitted(what).mend("a deadline task must keep every CPU of its partition"),
        _ => Error::not_permitted(what),
    }
}

fn memory_refused(nodes: &[u32], error: &io::Error) -> Error {
    let list: CpuList = nodes.iter().copied().collect();
    Error::not_permitted(format!("memory cannot be bound to nodes {list}: {error}"))
        .mend("name nodes with memory, on a kernel with CONFIG_NUMA")
}

/// The file that says that real-time tasks of this process's cgroup have no time, if it says so (version 1,
/// CONFIG_RT_GROUP_SCHED).
fn empty_rt_group() -> Option<String> {
    let controller = crate::groups::Controller::find().filter(|controller| controller.version == 1)?;
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = text.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        parts.next()?.split(',').any(|name| name == "cpu").then(|| parts.next()).flatten()
    })?;
    let file = controller.root.join(path.trim_start_matches('/')).join("cpu.rt_runtime_us");
    let empty = fs::read_to_string(&file).is_ok_and(|text| text.trim() == "0");
    empty.then(|| file.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_sim::program::ROOT_GROUP;

    fn on_a_thread<T: Send>(run: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(run).join().unwrap())
    }

    #[test]
    fn a_thread_gets_what_it_asks_for() {
        on_a_thread(|| {
            let mut attributes = Attributes::inherited(ROOT_GROUP);
            let setting = Setting { policy: Some(Policy::Batch), nice: Some(7), ..Setting::default() };
            attributes.apply(&setting, &Groups::default()).unwrap();
            let now = SchedAttr::of(0).unwrap();
            assert_eq!((now.policy, now.nice), (3, 7));
            let cpu = sys::current_cpu() as u32;
            attributes.apply(&Setting { cpus: Some(vec![cpu]), ..Setting::default() }, &Groups::default()).unwrap();
            let status = fs::read_to_string("/proc/thread-self/status").unwrap();
            let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
            assert_eq!(allowed.trim(), cpu.to_string());
        });
    }

    #[test]
    fn a_refusal_names_what_was_asked() {
        on_a_thread(|| {
            let mut attributes = Attributes::inherited(ROOT_GROUP);
            let none = Setting { cpus: Some(vec![100_000]), ..Setting::default() };
            let error = attributes.apply(&none, &Groups::default()).unwrap_err();
            assert!(error.to_string().contains("CPUs 100000") && error.exit_status() == 4, "{error}");
            let dl = Some((1_000_000, 2_000_000, 1_500_000));
            let wrong = Setting { policy: Some(Policy::Deadline), dl, ..Setting::default() };
            let error = attributes.apply(&wrong, &Groups::default()).unwrap_err().to_string();
            assert!(error.contains("SCHED_DEADLINE with runtime 1000 us"), "{error}");
        });
    }
}

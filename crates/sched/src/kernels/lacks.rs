//! Features that a kernel lacks, and what happens to a workload that uses them.

use super::Kernel;
use schedlab_base::{Release, v, v2_6};
use schedlab_machine::Machine;
use schedlab_sim::program::{GroupSpec, Load, Op, Setting};

/// A feature that a workload can use and some kernels lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// More than one CPU.
    Smp,
    /// `sched_yield()`.
    Yield,
    /// Restricting a task to a set of CPUs.
    Affinity,
    /// Groups of tasks that share CPU time.
    Groups,
    /// Groups within groups.
    NestedGroups,
    /// Limits on the CPU time of a group.
    Quotas,
    /// `util_min` and `util_max`.
    Clamps,
    /// Saving a part of a group's quota for later.
    Bursts,
    /// Groups that run only when no other group does.
    IdleGroups,
    /// Mutexes that lend their holder the priority of those that wait.
    Inheritance,
}

impl Feature {
    /// Returns the first release with this feature.
    const fn since(self) -> Release {
        match self {
            Self::Smp | Self::Yield => v(2, 0),
            Self::Affinity => v(2, 4),
            Self::Inheritance => v2_6(18),
            Self::Groups => v2_6(24),
            Self::NestedGroups => v2_6(25),
            Self::Quotas => v(3, 2),
            Self::Clamps => v(5, 3),
            Self::Bursts => v(5, 14),
            Self::IdleGroups => v(5, 15),
        }
    }

    /// Returns the feature that this one depends on.
    const fn needs(self) -> Option<Self> {
        match self {
            Self::NestedGroups | Self::Quotas | Self::Bursts | Self::IdleGroups => Some(Self::Groups),
            _ => None,
        }
    }

    /// Returns whether a load uses it.
    fn is_used(self, load: &Load) -> bool {
        let specs = || load.tasks.iter().chain(&load.templates);
        let set = |asks: fn(&Setting) -> bool| specs().map(|spec| &spec.initial).chain(&load.settings).any(asks);
        let group = |asks: fn(&GroupSpec) -> bool| load.groups.iter().any(asks);
        match self {
            Self::Smp => false,
            Self::Yield => specs().any(|spec| spec.program.contains(&Op::Yield)),
            Self::Affinity => set(|s| s.cpus.is_some()),
            Self::Groups => !load.groups.is_empty(),
            Self::NestedGroups => group(|g| g.parent.is_some()),
            Self::Quotas => group(|g| g.bandwidth.is_some()),
            Self::Clamps => set(|s| s.util != (None, None)),
            Self::Bursts => group(|g| g.burst > 0),
            Self::IdleGroups => group(|g| g.idle),
            Self::Inheritance => load.inherits && !load.mutexes.is_empty(),
        }
    }

    /// Says what happens to a load that uses it.
    fn remark(self, kernel: &str) -> String {
        let lack = match self {
            Self::Smp => return format!("{kernel} knows one CPU: every task runs on CPU 0, and the others idle"),
            Self::Clamps => {
                return format!("{kernel} has no util_min and util_max, which came with 5.3: they change nothing");
            }
            Self::Yield => ("sched_yield()", "a task that yields goes on"),
            Self::Affinity => ("affinity", "the affinities that tasks ask for are applied anyway"),
            Self::Groups => ("groups", "every task counts for itself"),
            Self::NestedGroups => ("nested groups", "all stand side by side"),
            Self::Quotas => ("quotas", "groups use what they get"),
            Self::Bursts => ("bursts", "quota that is not used is lost"),
            Self::Inheritance => ("priority inheritance", "who holds a mutex keeps its own priority"),
            Self::IdleGroups => ("idle groups", "they share by their weight"),
        };
        format!("{kernel} has no {} ({} has): {}", lack.0, self.since(), lack.1)
    }
}

impl Kernel {
    /// Returns whether the kernel lacks a feature: because the feature is newer than its release, because the profile
    /// says so, or because a feature that it depends on is missing.
    #[must_use]
    pub fn lacks(&self, feature: Feature) -> bool {
        self.release.is_some_and(|release| release < feature.since())
            || self.lacks.contains(&feature)
            || feature.needs().is_some_and(|needed| self.lacks(needed))
    }
}

/// Returns a remark for each feature that the load uses and this kernel lacks.
pub(super) fn remarks(kernel: &Kernel, machine: &Machine, load: &Load) -> Vec<String> {
    let several = machine.cpus.len() > 1;
    let one_cpu = several && kernel.lacks(Feature::Smp);
    let asked = |feature: &Feature| match feature {
        Feature::Smp => several,
        Feature::Affinity => several && !one_cpu && feature.is_used(load),
        _ => feature.is_used(load),
    };
    let mut features = vec![Feature::Clamps, Feature::Smp, Feature::Affinity, Feature::Yield, Feature::Inheritance];
    if kernel.lacks(Feature::Groups) {
        features.push(Feature::Groups);
    } else {
        features.extend([Feature::Quotas, Feature::Bursts, Feature::IdleGroups, Feature::NestedGroups]);
    }
    let missing = features.into_iter().filter(|feature| kernel.lacks(*feature) && asked(feature));
    let mut remarks: Vec<String> = missing.map(|feature| feature.remark(kernel.name)).collect();
    if machine.is_split() && kernel.release.is_none_or(|release| release < v2_6(0)) {
        let what = "has no isolcpus and no cpuset partitions here: only the affinities of tasks go by them";
        remarks.push(format!("{} {what}", kernel.name));
    }
    if Feature::Clamps.is_used(load) && !kernel.lacks(Feature::Clamps) {
        let only = "util_min and util_max only affect which CPU is big enough and its estimated energy: no \
                    frequencies are simulated";
        remarks.insert(0, only.to_owned());
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::Feature;
    use schedlab_sim::program::{Load, Op, Setting, TaskSpec};

    #[test]
    fn what_a_release_lacks_is_told() {
        let pinned = Setting { cpus: Some(vec![0]), ..Setting::default() };
        let task = TaskSpec { initial: pinned, program: vec![Op::Yield], ..TaskSpec::default() };
        let load = Load { tasks: vec![task], ..Load::default() };
        let told = |kernel: &str, machine: &str| {
            let machine = schedlab_machine::load(machine).unwrap();
            find(kernel).unwrap().unmodelled(&machine, &load).join("; ")
        };
        assert!(told("linux-1.2", "4").contains("knows one CPU"));
        assert!(told("linux-1.2", "up").contains("no sched_yield()") && !told("linux-1.2", "up").contains("CPU 0"));
        assert!(told("linux-2.2", "4").contains("no affinity"));
        assert_eq!(told("linux-2.2", "up") + &told("linux-2.4", "4"), "");
    }

    #[test]
    fn a_release_lacks_what_came_later_and_others_what_they_say() {
        let lacks = |kernel: &str| {
            let all = [Feature::Smp, Feature::Affinity, Feature::Groups, Feature::NestedGroups, Feature::IdleGroups];
            let kernel = find(kernel).unwrap();
            all.map(|feature| kernel.lacks(feature))
        };
        assert_eq!(lacks("linux-1.2"), [true; 5]);
        assert_eq!(lacks("linux-2.6.24"), [false, false, false, true, true]);
        assert_eq!(lacks("linux-6.1"), [false; 5]);
        assert_eq!(lacks("bfs"), [false, false, true, true, true]);
        assert_eq!(lacks("linux-5.10"), [false, false, false, false, true]);
        assert_eq!(lacks("linux-5.15"), [false; 5]);
    }
}

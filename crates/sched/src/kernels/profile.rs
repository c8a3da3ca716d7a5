//! A kernel profile: what a kernel consists of here.

use super::build::{self, Preemption};
use super::run::{How, Run};
use super::{Build, Feature, KERNELS, fair, lacks};
use crate::balance::domains::{Builder, Fixes};
use crate::balance::fair::NR_MIGRATE;
use crate::tunables::{HZ, TICK_NS, TICK_PHASE_US, Tunable, Values, missing};
use schedlab_base::{Error, Release, Result, Sink, v, v2_6};
use schedlab_machine::Machine;
use schedlab_sim::program::{Load, Policy};
use schedlab_sim::{Inheritance, Inspect, Options, Outcome, Stranded};
use std::cell::RefCell;

/// A kernel profile.
#[derive(Debug)]
pub struct Kernel {
    /// The name, such as `linux-2.6.32`.
    pub name: &'static str,
    /// The release that it models; `None` for a scheduler that was never in a release.
    pub release: Option<Release>,
    /// The name of its scheduler, such as `CFS`.
    pub scheduler: &'static str,
    /// A summary in one line.
    pub summary: &'static str,
    /// How the kernel was built.
    pub build: Build,
    /// The features that it lacks, apart from those newer than its release.
    pub(super) lacks: &'static [Feature],
    /// The policies that it models. A task of any other policy is scheduled as `Other`.
    pub policies: &'static [Policy],
    /// The tunables, those of the tick first.
    pub tunables: &'static [Tunable],
    pub(super) simulate: fn(&Run<'_>, &mut dyn Sink) -> Result<Outcome>,
}

/// The first release whose load balancing is described by sched domains.
const FIRST_DOMAINS: Release = v2_6(0);

/// The preemption model, if it is a tunable.
fn preemption(values: &Values) -> Option<i64> {
    values.find(&build::LAZY)
}

/// The shortest tick, that of the greatest `hz`.
const SHORTEST_TICK_NS: u64 = 10_000;

impl Kernel {
    /// Returns a remark for each part of a load that this kernel does not model.
    #[must_use]
    pub fn unmodelled(&self, machine: &Machine, load: &Load) -> Vec<String> {
        let specs = || load.tasks.iter().chain(&load.templates);
        let settings = || specs().map(|spec| &spec.initial).chain(&load.settings);
        let named = [
            (Policy::Batch, "SCHED_BATCH"),
            (Policy::Idle, "SCHED_IDLE"),
            (Policy::Fifo, "SCHED_FIFO"),
            (Policy::Rr, "SCHED_RR"),
            (Policy::Deadline, "SCHED_DEADLINE"),
        ];
        let used = |policy| settings().any(|s| s.policy == Some(policy));
        let mut remarks: Vec<String> = named
            .into_iter()
            .filter(|(policy, _)| !self.policies.contains(policy) && used(*policy))
            .map(|(_, name)| format!("{} has no {name} here: such tasks run as SCHED_OTHER", self.name))
            .collect();
        remarks.extend(lacks::remarks(self, machine, load));
        remarks
    }

    /// Returns the greatest number of CPUs that it uses; `None` means all CPUs of the machine.
    #[must_use]
    pub fn most_cpus(&self) -> Option<u32> {
        self.lacks(Feature::Smp).then_some(1)
    }

    /// Returns the values of its tunables on `machine`, changed by `set`.
    ///
    /// # Errors
    /// If a name is unknown or a value is invalid.
    pub fn values(&self, machine: &Machine, set: &[(String, String)]) -> Result<Values> {
        self.values_or(machine, set, |_| None)
    }

    /// Does the same as [`Self::values`]. For a name that this kernel does not have, `history` says which releases do.
    ///
    /// # Errors
    /// As [`Self::values`].
    pub fn values_or(
        &self,
        machine: &Machine,
        set: &[(String, String)],
        history: impl Fn(&str) -> Option<String>,
    ) -> Result<Values> {
        let values = Values::new(self.tunables, machine, set, |name| history(name).or_else(|| self.where_else(name)))?;
        // SCHED_NR_MIGRATE_BREAK of kernel/sched/sched.h.
        Ok(if preemption(&values) == Some(Preemption::RealTime as i64) {
            values.starting(&NR_MIGRATE[1].tunable, 8, set)
        } else {
            values
        })
    }

    /// Returns whether the tasks of one session form a group by default (`SCHED_AUTOGROUP`), or `None` if the kernel
    /// has no such switch.
    #[must_use]
    pub fn autogroup(&self) -> Option<bool> {
        self.tunable(fair::AUTOGROUP.tunable.name).map(|switch| switch.base != 0)
    }

    /// Returns a builder of the sched domains that this kernel has on a machine.
    ///
    /// # Errors
    /// If it does not model a release that builds sched domains.
    pub fn domains<'m>(&self, machine: &'m Machine, fixes: Fixes) -> Result<Builder<'m>> {
        let of = |kernel: &Self| kernel.release.filter(|release| *release >= FIRST_DOMAINS);
        let release = of(self).ok_or_else(|| {
            let names: Vec<_> =
                KERNELS.iter().filter(|kernel| of(kernel).is_some()).map(|kernel| kernel.name).collect();
            Error::input(format!("there are no scheduling domains of \"{}\"", self.name))
                .mend(format!("there are those of {}", names.join(", ")))
        })?;
        Ok(Builder::new(release, machine, fixes))
    }

    /// Returns the tunable of that name; case does not matter.
    #[must_use]
    pub fn tunable(&self, name: &str) -> Option<&'static Tunable> {
        self.tunables.iter().find(|t| t.name.eq_ignore_ascii_case(name))
    }

    /// Returns the error for a tunable that this kernel does not have; `history` says which releases do.
    #[must_use]
    pub fn missing(&self, name: &str, history: impl Fn(&str) -> Option<String>) -> Error {
        missing(self.tunables, name, |name| history(name).or_else(|| self.where_else(name)))
    }

    /// Says which other kernels have a tunable that this one lacks.
    fn where_else(&self, name: &str) -> Option<String> {
        let has = |k: &&&Kernel| k.tunable(name).is_some();
        let others: Vec<_> = KERNELS.iter().filter(has).map(|k| k.name).collect();
        (!others.is_empty()).then(|| format!("{} does not have it, {} has", self.name, others.join(", ")))
    }

    /// Returns the time of the first tick and the tick period.
    ///
    /// # Errors
    /// If the tick period is set below the shortest that is accepted.
    pub fn tick(&self, values: &Values) -> Result<(schedlab_base::Nanos, schedlab_base::Nanos)> {
        let tick_period = match values.get(&TICK_NS) {
            0 => 1_000_000_000 / values.get(&HZ),
            ns if ns < SHORTEST_TICK_NS => {
                return Err(Error::input(format!("a tick each {ns} ns"))
                    .key("--set tick_ns")
                    .mend(format!("take {SHORTEST_TICK_NS} or more, or 0 for 1 s / hz")));
            }
            ns => ns,
        };
        let tick_first = match values.get(&TICK_PHASE_US) {
            0 => tick_period,
            us => us * 1000,
        };
        Ok((tick_first, tick_period))
    }

    /// What the release does with a task when the last CPU of its affinity goes offline.
    ///
    /// `move_task_off_dead_cpu` gave it every CPU, asleep or not, until "hotplug cpu: migrate a task within its cpuset"
    /// (2.6.24) gave it those of its cpuset that were online: when its CPU returned, it could run anywhere but there.
    /// "cpuset: restore sanity to cpuset_cpus_allowed_fallback()" (5.2) gives it every CPU again. Since "sched:
    /// Simplify cpu-hot-unplug task migration" (2.6.38) a task that sleeps is left alone until it wakes. The oldest
    /// kernels have no hotplug; here they act as the first that do.
    fn stranded(&self) -> Stranded {
        self.release.map_or_else(Stranded::default, |release| Stranded {
            to_online: release >= v2_6(24) && release < v(5, 2),
            asleep: release < v2_6(38),
        })
    }

    /// How mutexes with priority inheritance work, from 2.6.18 on.
    ///
    /// Deadline tasks came with 3.14. "rtmutex: Deboost before waking up the top waiter" is of 4.12, and
    /// "locking/rtmutex: Squash !RT tasks to DEFAULT_PRIO" of 5.15.
    fn inheritance(&self) -> Option<Inheritance> {
        let release = self.release.filter(|_| !self.lacks(Feature::Inheritance))?;
        Some(Inheritance {
            deadline: release >= v(3, 14),
            returns_first: release >= v(4, 12),
            fair_alike: release >= v(5, 15),
        })
    }

    /// Whether a thread for each CPU moves running tasks, as in 2.6.0 and later and in the kernels that RSDL and SD
    /// patch. From "sched: Create special class for stop/migrate work" (2.6.37) on it has a class of its own, above all
    /// others; before, it was a FIFO task of the highest priority.
    fn stopper(&self) -> bool {
        self.release.map_or(matches!(self.name, "rsdl" | "sd"), |release| release >= v2_6(0))
    }

    /// Whether a new task counts as migrated when it is placed elsewhere: until "sched/fair: Fix and optimize the
    /// fork() path" (4.8), which places it with `__set_task_cpu`.
    fn new_migrate(&self) -> bool {
        self.release.is_none_or(|release| release < v(4, 8))
    }

    /// Simulates a load on a machine and sends the events to `sink`.
    ///
    /// # Errors
    /// If the load deadlocks or never lets time pass.
    pub fn simulate(
        &self,
        machine: &Machine,
        load: &Load,
        values: &Values,
        how: &How,
        sink: &mut dyn Sink,
    ) -> Result<Outcome> {
        self.simulate_and_look(machine, load, values, how, sink, None)
    }

    /// Simulates as [`Kernel::simulate`] does, and shows `inspect` what it asks for.
    ///
    /// # Errors
    /// As [`Kernel::simulate`].
    pub fn simulate_and_look<'a>(
        &self,
        machine: &'a Machine,
        load: &'a Load,
        values: &'a Values,
        how: &How,
        sink: &'a mut dyn Sink,
        inspect: Option<Inspect<'a>>,
    ) -> Result<Outcome> {
        let (tick_first, tick_period) = self.tick(values)?;
        let How { duration, seed, skip_ticks } = *how;
        let options = Options {
            duration,
            seed,
            skip_ticks,
            tick_period,
            tick_first,
            stranded: self.stranded(),
            lazy: preemption(values) == Some(Preemption::Lazy as i64),
            inheritance: self.inheritance(),
            stopper: self.stopper(),
            new_migrate: self.new_migrate(),
        };
        (self.simulate)(&Run { kernel: self, machine, load, values, options, inspect: RefCell::new(inspect) }, sink)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_named_after_its_number() {
        for kernel in KERNELS {
            let named = kernel.name.strip_prefix("linux-").map(|number| number.parse::<Release>().unwrap());
            assert_eq!(kernel.release, named, "{}", kernel.name);
        }
    }

    #[test]
    fn releases_stand_in_their_order() {
        assert!(KERNELS.iter().filter_map(|kernel| kernel.release).is_sorted());
    }

    /// Running a kernel asserts that scheduler and build agree; this runs every kernel.
    #[test]
    fn idle_cpus_tick_as_the_kernel_was_built() {
        let how = How { duration: Some(1_000_000), seed: 1, skip_ticks: true };
        let (machine, load) = (schedlab_machine::load("up").unwrap(), Load::default());
        for kernel in KERNELS {
            let values = kernel.values(&machine, &[]).unwrap();
            kernel.simulate(&machine, &load, &values, &how, &mut Nothing).unwrap();
        }
    }

    struct Nothing;

    impl Sink for Nothing {
        fn events(&mut self, _: &[schedlab_base::Event]) {}
        fn name(&mut self, _: &schedlab_base::NameRecord) {}
    }
}

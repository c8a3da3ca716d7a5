//! The registry of kernels: a named profile is a scheduler, its tick, its features and its tunables, with the
//! names, units and defaults of that release. A new kernel is one line in [`KERNELS`].

mod bfs;
mod builds;
mod classes;
mod fair;
mod lacks;
mod linux_1_2;
mod linux_2_0;
mod linux_2_2;
mod linux_2_4;
mod linux_2_6_0;
mod linux_2_6_11;
mod linux_2_6_18;
mod linux_2_6_24;
mod linux_2_6_32;
mod linux_3_10;
mod linux_3_18;
mod linux_4_1;
mod linux_6_1;
mod linux_6_12;
mod linux_6_6;
mod mlfq;
mod numa;
mod o1;
mod rsdl;
mod sd;
mod stride;

pub use builds::Build;

use crate::balance::{domains, fair as balance};
use crate::fair::{Discipline, Fair, Setup, groups};
use crate::tunables::{Follows, Tunable, Values};
use schedlab_base::{Error, Result, Sink, nearest};
use schedlab_machine::Machine;
use schedlab_sim::program::{Load, Policy};
use schedlab_sim::{Inspect, Options, Outcome, Scheduler};
use std::cell::RefCell;

/// A kernel profile.
#[derive(Debug)]
pub struct Kernel {
    /// Its name: `linux-2.6.32`.
    pub name: &'static str,
    /// Its scheduler: `CFS`.
    pub scheduler: &'static str,
    /// What it stands for, in a line.
    pub summary: &'static str,
    /// The policies that it models; a task of another one is scheduled as `Other`.
    pub policies: &'static [Policy],
    /// What can be set, the tick first.
    pub tunables: &'static [Tunable],
    simulate: fn(&Run<'_>, &mut dyn Sink) -> Result<Outcome>,
}

/// One run's input, ready for a scheduler to be made for it.
pub(crate) struct Run<'a> {
    /// The kernel's name.
    pub kernel: &'static str,
    pub machine: &'a Machine,
    pub load: &'a Load,
    pub tunables: &'static [Tunable],
    pub values: &'a Values,
    pub options: Options,
    inspect: RefCell<Option<Inspect<'a>>>,
}

impl Run<'_> {
    /// Runs the load under this scheduler.
    pub fn with(&self, scheduler: impl Scheduler, sink: &mut dyn Sink) -> Result<Outcome> {
        self.with_load(self.load, scheduler, sink)
    }

    /// Runs the load under the classes with this fair scheduler.
    pub fn fair(
        &self,
        above: &classes::Above,
        discipline: impl Discipline,
        groups: groups::Rules,
        sink: &mut dyn Sink,
    ) -> Result<Outcome> {
        let follows = Follows::new(self.tunables, self.values, self.machine.cpus.len() as u32);
        let Options { seed, tick_first, tick_period, .. } = self.options;
        let fixed = |name: &str| self.values.iter().any(|(fix, on)| fix == name && on != 0);
        let setup = Setup {
            machine: self.machine,
            load: self.load,
            seed,
            tick: (tick_first, tick_period),
            balancing: self.balancing()?,
            overload_on_wakeup_fixed: fixed("fix.overload_on_wakeup"),
            follows: follows.as_ref(),
            numa: numa::settings(self),
        };
        self.with(classes::stack(self, above, Fair::new(&setup, discipline, groups)), sink)
    }

    /// How the kernel balances, with what was set.
    fn balancing(&self) -> Result<balance::Rules> {
        let mut rules = balance::Rules::of(domains::find(self.kernel)?);
        let set = |names: &[&str]| names.iter().find_map(|name| self.values.find(name));
        if let Some(cost) = set(&["sched_migration_cost", "sched_migration_cost_ns", "migration_cost_ns"]) {
            rules.migration_cost = cost;
        }
        if let Some(nr) = set(&["sched_nr_migrate", "nr_migrate"]) {
            rules.nr_migrate = nr as u32;
        }
        let on = |name| self.values.find(name) == Some(1);
        rules.energy_aware = on("sched_energy_aware");
        rules.fix_group_imbalance = on("fix.group_imbalance");
        rules.fixes.group_construction = on("fix.group_construction");
        rules.fixes.missing_domains = on("fix.missing_domains");
        Ok(rules)
    }

    /// Runs another load than the one given: what the kernel makes of it.
    pub fn with_load(&self, load: &Load, scheduler: impl Scheduler, sink: &mut dyn Sink) -> Result<Outcome> {
        let inspect = self.inspect.take();
        schedlab_sim::run(scheduler, self.machine, load, &self.options, sink, inspect)
    }
}

/// How to simulate.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// How long; `None`: until every task has ended.
    pub duration: Option<schedlab_base::Nanos>,
    /// For every random draw.
    pub seed: u64,
    /// Skip ticks that can change nothing. The events are the same.
    pub skip_ticks: bool,
}

/// As at the most ticks a second that `hz` takes.
const SHORTEST_TICK_NS: u64 = 10_000;

/// Every kernel: Linux from the oldest to the newest, then those that never were in it.
pub static KERNELS: &[&Kernel] = &[
    &linux_1_2::KERNEL,
    &linux_2_0::KERNEL,
    &linux_2_2::KERNEL,
    &linux_2_4::KERNEL,
    &linux_2_6_0::KERNEL,
    &linux_2_6_11::KERNEL,
    &linux_2_6_18::KERNEL,
    &rsdl::KERNEL,
    &sd::KERNEL,
    &linux_2_6_24::KERNEL,
    &linux_2_6_32::KERNEL,
    &linux_3_10::KERNEL,
    &linux_3_18::KERNEL,
    &linux_4_1::KERNEL,
    &linux_6_1::KERNEL,
    &linux_6_6::KERNEL,
    &linux_6_12::KERNEL,
    &bfs::KERNEL,
    &mlfq::KERNEL,
    &stride::KERNEL,
];

/// The kernel of that name.
///
/// # Errors
/// When there is none: the error names the nearest.
pub fn find(name: &str) -> Result<&'static Kernel> {
    KERNELS.iter().find(|k| k.name == name).copied().ok_or_else(|| {
        let names = KERNELS.iter().map(|k| k.name);
        let mend = nearest(name, names.clone()).map_or_else(
            || format!("there are {}", names.collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean \"{near}\"?"),
        );
        Error::input(format!("there is no kernel \"{name}\"")).mend(mend)
    })
}

impl Kernel {
    /// What of a load this kernel does not model, one remark each.
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
        if settings().any(|s| s.util != (None, None)) {
            let clamps = domains::find(self.name).is_ok_and(|release| release.era >= domains::Era::V6_1);
            remarks.push(if clamps {
                "util_min and util_max tell only which CPU is big enough, and what it is said to cost: no frequencies are simulated".to_owned()
            } else {
                format!("{} has no util_min and util_max, which came with 5.3: they change nothing", self.name)
            });
        }
        remarks.extend(lacks::remarks(self, machine, load));
        remarks
    }

    /// The most CPUs that it uses; `None`: all that there are.
    #[must_use]
    pub fn most_cpus(&self) -> Option<u32> {
        lacks::smp(self).then_some(1)
    }

    /// The tunables' values on `machine`, changed by `set`.
    ///
    /// # Errors
    /// When a name is unknown or a value is none.
    pub fn values(&self, machine: &Machine, set: &[(String, String)]) -> Result<Values> {
        self.values_or(machine, set, |_| None)
    }

    /// The same; `history` says of a name that this kernel does not have which releases do, where that is known.
    ///
    /// # Errors
    /// As [`Self::values`].
    pub fn values_or(
        &self,
        machine: &Machine,
        set: &[(String, String)],
        history: impl Fn(&str) -> Option<String>,
    ) -> Result<Values> {
        Values::new(self.tunables, machine, set, |name| history(name).or_else(|| self.where_else(name)))
    }

    /// How it was built.
    #[must_use]
    pub fn build(&self) -> Build {
        builds::of(self.name)
    }

    /// The release that it stands for (`2.6.32`); none for a scheduler that was in none.
    #[must_use]
    pub fn release(&self) -> Option<&'static str> {
        self.name.strip_prefix("linux-")
    }

    /// The tunable of that name, in any case.
    #[must_use]
    pub fn tunable(&self, name: &str) -> Option<&'static Tunable> {
        self.tunables.iter().find(|t| t.name.eq_ignore_ascii_case(name))
    }

    /// Which other kernels have a tunable that this one lacks.
    fn where_else(&self, name: &str) -> Option<String> {
        let has = |k: &&&Kernel| k.tunable(name).is_some();
        let others: Vec<_> = KERNELS.iter().filter(has).map(|k| k.name).collect();
        (!others.is_empty()).then(|| format!("{} does not have it, {} has", self.name, others.join(", ")))
    }

    /// When the first tick comes, and the time from one to the next.
    ///
    /// # Errors
    /// When ticks are set to come faster than any kernel takes.
    pub fn tick(&self, values: &Values) -> Result<(schedlab_base::Nanos, schedlab_base::Nanos)> {
        let tick_period = match values.ns("tick_ns") {
            0 => 1_000_000_000 / values.ns("hz"),
            ns if ns < SHORTEST_TICK_NS => {
                return Err(Error::input(format!("a tick each {ns} ns"))
                    .key("--set tick_ns")
                    .mend(format!("take {SHORTEST_TICK_NS} or more, or 0 for 1 s / hz")));
            }
            ns => ns,
        };
        let tick_first = match values.ns("tick_phase_us") {
            0 => tick_period,
            us => us * 1000,
        };
        Ok((tick_first, tick_period))
    }

    /// Simulates a load on a machine; its events go to `sink`.
    ///
    /// # Errors
    /// When the load deadlocks or never lets time pass.
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

    /// As [`Kernel::simulate`]; what `inspect` asks for is shown to it on the way.
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
        let options = Options { duration, seed, skip_ticks, tick_period, tick_first };
        (self.simulate)(
            &Run {
                kernel: self.name,
                machine,
                load,
                tunables: self.tunables,
                values,
                options,
                inspect: RefCell::new(inspect),
            },
            sink,
        )
    }
}

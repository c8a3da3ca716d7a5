//! One run of a kernel: its input, and how a scheduler is given it.

use super::{Kernel, classes, numa};
use crate::balance::fair as balance;
use crate::fair::{Discipline, Fair, Setup, groups};
use crate::tunables::{Follows, Values};
use schedlab_base::{Result, Sink};
use schedlab_machine::Machine;
use schedlab_sim::program::Load;
use schedlab_sim::{Inspect, Options, Outcome, Scheduler};
use std::cell::RefCell;

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

/// One run's input, ready for a scheduler to be made for it.
pub(crate) struct Run<'a> {
    pub kernel: &'a Kernel,
    pub machine: &'a Machine,
    pub load: &'a Load,
    pub values: &'a Values,
    pub options: Options,
    pub inspect: RefCell<Option<Inspect<'a>>>,
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
        let follows = Follows::new(self.kernel.tunables, self.values, self.machine.cpus.len() as u32);
        let Options { seed, tick_first, tick_period, .. } = self.options;
        let fixed = |name: &str| self.values.iter().any(|(fix, on)| fix == name && on != 0);
        let setup = Setup {
            machine: self.machine,
            load: self.load,
            seed,
            tick: (tick_first, tick_period),
            balancing: self.balancing(),
            overload_on_wakeup_fixed: fixed("fix.overload_on_wakeup"),
            follows: follows.as_ref(),
            numa: numa::settings(self),
        };
        self.with(classes::stack(self, above, Fair::new(&setup, discipline, groups)), sink)
    }

    /// How the kernel balances, with what was set.
    fn balancing(&self) -> balance::Rules {
        let release = self.kernel.release.expect("a fair class balances as its release did");
        let mut rules = balance::Rules::of(release);
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
        rules
    }

    /// Runs another load than the one given: what the kernel makes of it.
    pub fn with_load(&self, load: &Load, scheduler: impl Scheduler, sink: &mut dyn Sink) -> Result<Outcome> {
        let Kernel { name, build, .. } = self.kernel;
        assert_eq!(scheduler.ticks_when_idle(), !build.no_hz, "{name} was not built as its scheduler ticks");
        let inspect = self.inspect.take();
        schedlab_sim::run(scheduler, self.machine, load, &self.options, sink, inspect)
    }
}

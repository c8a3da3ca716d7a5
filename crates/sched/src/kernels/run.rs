//! One run of a kernel: its input, and how it is passed to a scheduler.

use super::{Kernel, classes, numa};
use crate::balance::domains::Fixes;
use crate::balance::fair as balance;
use crate::classes::hrtick::Hrtick;
use crate::fair::{Discipline, Fair, Setup, groups};
use crate::tunables::{Follows, Values};
use schedlab_base::{Result, Sink};
use schedlab_machine::Machine;
use schedlab_sim::program::Load;
use schedlab_sim::{Inspect, Options, Outcome, Scheduler};
use std::cell::RefCell;

/// The options of a simulation.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// How long to simulate; `None` means until every task has ended.
    pub duration: Option<schedlab_base::Nanos>,
    /// The seed of all random draws.
    pub seed: u64,
    /// Whether to skip ticks that can change nothing. The events are the same either way.
    pub skip_ticks: bool,
}

/// The input of one run, from which a profile creates its scheduler.
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

    /// Runs the load under the stack of classes with this fair class.
    pub fn fair(
        &self,
        above: &classes::Above,
        discipline: impl Discipline,
        groups: groups::Rules,
        sink: &mut dyn Sink,
    ) -> Result<Outcome> {
        groups::check(self.load, &groups, self.machine.cpus.len() as u32)?;
        let follows = Follows::new(self.kernel.tunables, self.values, self.machine.cpus.len() as u32);
        let Options { seed, tick_first, tick_period, .. } = self.options;
        let setup = Setup {
            machine: self.machine,
            load: self.load,
            seed,
            tick: (tick_first, tick_period),
            balancing: self.balancing(),
            overload_on_wakeup_fixed: self.values.find(&balance::OVERLOAD_ON_WAKEUP) == Some(true),
            follows: follows.as_ref(),
            hrtick: self.hrtick(),
            numa: numa::settings(self),
        };
        self.with(classes::stack(self, above, Fair::new(&setup, discipline, groups)), sink)
    }

    /// Returns which classes use the high-resolution tick.
    pub fn hrtick(&self) -> Hrtick {
        self.kernel.release.map_or_else(Hrtick::default, |release| Hrtick::of(release, self.values))
    }

    /// Returns how the kernel balances load, with the tunables that were set.
    fn balancing(&self) -> balance::Rules {
        let release = self.kernel.release.expect("a fair class balances as its release did");
        let mut rules = balance::Rules::of(release);
        let migration_cost = balance::MIGRATION_COST.iter().find_map(|handle| self.values.find(handle));
        rules.migration_cost = migration_cost.unwrap_or(rules.migration_cost);
        let nr_migrate = balance::NR_MIGRATE.iter().find_map(|handle| self.values.find(handle));
        rules.nr_migrate = nr_migrate.unwrap_or(rules.nr_migrate);
        rules.newidle_ratio = self.values.find(&balance::NEWIDLE_RATIO).unwrap_or(rules.newidle_ratio);
        rules.vcpu_pack = self.values.find(&balance::VCPU_PACK).unwrap_or(0);
        let on = |handle| self.values.find(handle) == Some(true);
        rules.features = balance::Features::of(self.values);
        rules.energy_aware = on(&balance::ENERGY_AWARE);
        rules.fix_group_imbalance = on(&balance::GROUP_IMBALANCE);
        rules.fixes = Fixes::of(self.values);
        rules
    }

    /// Runs a load that the kernel has derived from the given one.
    pub fn with_load(&self, load: &Load, scheduler: impl Scheduler, sink: &mut dyn Sink) -> Result<Outcome> {
        let Kernel { name, build, .. } = self.kernel;
        assert_eq!(scheduler.ticks_when_idle(), !build.no_hz, "{name} was not built as its scheduler ticks");
        let inspect = self.inspect.take();
        schedlab_sim::run(scheduler, self.machine, load, &self.options, sink, inspect)
    }
}

//! The balancer's state: for each domain, each group, each CPU, and for the machine.

use super::nohz::NoHz;
use super::rules::Rules;
use crate::balance::domains::{Builder, Domain, Domains, GroupId, SpanId};
use crate::balance::rounds::Round;
use schedlab_base::{CpuId, Nanos, Release, Rng, v, v2_6};
use schedlab_machine::Machine;
use schedlab_sim::{Core, TaskId, TimerId};
use std::rc::Rc;

/// The state of a CPU's domain (`struct sched_domain`).
#[derive(Clone, Copy, Debug)]
pub(super) struct OfDomain {
    pub round: Round,
    /// The balancing interval in ticks, of an idle CPU and of a busy one.
    pub ticks: [u64; 2],
    /// What newly idle balancing of this domain takes, in ns.
    pub newidle_ns: Nanos,
    /// The highest recent cost of newly idle balancing of this domain, in ns.
    pub max_cost: Nanos,
    /// The tick at which `max_cost` last changed.
    pub cost_changed: u64,
    /// How often newly idle balancing of this domain was tried and how often it succeeded, and the resulting rate of
    /// success out of 1024.
    pub tried: u32,
    pub helped: u32,
    pub ratio: u32,
}

impl OfDomain {
    /// Notes the cost of one attempt of newly idle balancing, or without an attempt 0. If it is not the highest so far,
    /// that one decays by about 1% a second (`update_newidle_cost`, from 5.16 on; `rebalance_domains` before). Returns
    /// whether it decayed now.
    pub fn update_cost(&mut self, cost: Nanos, now: u64, hz: u64) -> bool {
        if cost > self.max_cost {
            (self.max_cost, self.cost_changed) = (cost, now);
            return false;
        }
        let due = now > self.cost_changed + hz;
        if due {
            (self.max_cost, self.cost_changed) = (self.max_cost * 253 / 256, now);
        }
        due
    }

    /// Counts one attempt of newly idle balancing (`update_newidle_stats`). `success` is 0 if nothing was pulled.
    pub fn count_newly(&mut self, success: u32) {
        self.tried += 1;
        self.helped += success;
        if self.tried >= 1024 {
            self.ratio = self.helped;
            self.tried /= 2;
            self.helped /= 2;
        }
    }
}

/// What the visits of periodic balancing to a CPU's domains say of the cost of newly idle balancing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Visits {
    /// Whether that of all domains together decays, too (`need_decay`).
    pub decays: bool,
    /// That of the domains visited so far.
    pub cost: Nanos,
}

impl Visits {
    /// Visits one more domain, and lets its own cost decay if that is due (`rebalance_domains`, from 3.13 on).
    pub fn visit(&mut self, sd: &mut OfDomain, now: u64, hz: u64, release: Release) {
        let decayed = sd.update_cost(0, now, hz);
        // e60b56e46b38, "sched/fair: Wait before decaying max_newidle_lb_cost", keeps only what the last domain says.
        self.decays = decayed || release < v(5, 16) && self.decays;
        self.cost += sd.max_cost;
    }
}

/// The state of a group (`struct sched_group_capacity`).
#[derive(Clone, Copy, Debug)]
pub(super) struct OfGroup {
    pub capacity: u64,
    pub min_capacity: u64,
    pub max_capacity: u64,
    /// The tick from which a newly idle CPU updates the capacity again.
    pub next_update: u64,
    /// Affinity kept tasks from being moved in the child domain.
    pub imbalance: bool,
    /// The number of cores that the group has CPUs of.
    pub cores: u32,
}

/// The state of a CPU (`struct rq`).
#[derive(Clone, Copy, Debug)]
pub(super) struct OfCpu {
    /// The tick at which the next domain is due.
    pub next_balance: u64,
    /// The tick before which no domain is due, if the CPU is idle then.
    pub idle_due: u64,
    /// When the CPU became idle; `None` after the next wake-up on it.
    pub idle_since: Option<Nanos>,
    /// How long the CPU is idle on average, in ns.
    pub avg_idle: Nanos,
    /// When it last ceased to be idle.
    pub busy_since: Nanos,
    /// The highest recent cost of a whole newly idle balancing, in ns.
    pub max_idle_cost: Nanos,
    /// The capacity, given that siblings share the core: what the higher classes leave, and the original capacity.
    pub capacity: u64,
    pub capacity_orig: u64,
    /// The CPUs of its core, if it has siblings.
    pub core: Option<SpanId>,
    /// Whether the CPU has no domain.
    pub alone: bool,
    /// The CPU to which its stopper is to push a task (`push_cpu`).
    pub push_to: Option<CpuId>,
    /// The load of its fair task, as of the last pick or tick, if the CPU is too small for it (`misfit_task_load`).
    pub misfit: u64,
}

/// The fair class's load balancer for a machine.
#[derive(Debug)]
pub struct Balancer {
    pub(super) rules: Rules,
    pub(super) builder: Builder<'static>,
    pub(super) domains: Rc<Domains>,
    pub(super) of_domain: Vec<OfDomain>,
    pub(super) of_group: Vec<OfGroup>,
    pub(super) of_cpu: Vec<OfCpu>,
    /// Whether some CPU has more than one runnable task (`rd->overload`).
    pub(super) overload: bool,
    /// Whether the CPUs are in several partitions, each of which has such a flag in the kernel.
    split: bool,
    /// Whether some domain has CPUs of different capacities (`sched_asym_cpucapacity`).
    pub(super) asymmetric: bool,
    /// Whether wake-ups go by energy: the machine has an energy model and its CPUs differ (`sched_energy_enabled`).
    pub(super) energy_aware: bool,
    /// Whether some CPU is utilised above four fifths (`rd->overutilized`).
    pub(super) overused: bool,
    pub(super) nohz: NoHz,
    pub(super) tick_period: Nanos,
    pub(super) tick_first: Nanos,
    pub(super) max_interval: u64,
    /// The lowest capacity that a group of one CPU has had.
    pub(super) least_capacity: u64,
    pub(super) rng: Rng,
    pub(super) scratch: Scratch,
}

/// Buffers that are reused so that balancing does not allocate.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// The CPUs that this balancing pass excludes, and whether there are any.
    pub out: Vec<bool>,
    pub some_out: bool,
    pub list: Vec<TaskId>,
    pub lengths: Vec<u32>,
    pub loads: Vec<u64>,
    pub moving: Vec<TaskId>,
}

impl Balancer {
    /// Creates the balancer of a kernel for a machine. `seed` drives its random choices.
    #[must_use]
    pub fn new(rules: Rules, machine: &Machine, seed: u64) -> Self {
        let builder = Builder::new(rules.release, machine, rules.fixes).into_owned();
        let domains = Rc::new(builder.build());
        let cpus = machine.cpus.len();
        let of_cpu = OfCpu {
            next_balance: 0,
            idle_due: 0,
            idle_since: None,
            avg_idle: 2 * rules.migration_cost.max(0) as Nanos,
            busy_since: 0,
            max_idle_cost: rules.migration_cost.max(0) as Nanos,
            capacity: 1024,
            capacity_orig: 1024,
            core: None,
            alone: true,
            push_to: None,
            misfit: 0,
        };
        let mut me = Self {
            rules,
            builder,
            domains,
            of_domain: Vec::new(),
            of_group: Vec::new(),
            of_cpu: vec![of_cpu; cpus],
            overload: false,
            split: machine.is_split(),
            asymmetric: false,
            energy_aware: false,
            overused: false,
            nohz: NoHz::new(cpus),
            tick_period: 1,
            tick_first: 0,
            max_interval: u64::MAX,
            least_capacity: 0,
            rng: Rng::new(seed ^ 0xba1a_9ce5),
            scratch: Scratch { out: vec![false; cpus], ..Scratch::default() },
        };
        me.start_anew(machine, 0);
        me
    }

    /// Called before the first task starts. Notes the times of the ticks, and marks all CPUs as idle.
    pub fn start(&mut self, cx: &mut Core, timer: TimerId) {
        (self.tick_period, self.tick_first) = (cx.tick_period(), cx.tick_time(1));
        self.nohz.timer = timer;
        self.set_max_interval();
        self.draw_phases();
        (0..cx.nr_cpus()).for_each(|cpu| self.enter_idle(cx, cpu));
    }

    /// Draws at random how long ago each CPU balanced each domain, because the CPUs of a machine that has been up for a
    /// while do not balance in step. This was observed on 6.12. Releases before 5.5, which were not observed, start in
    /// step.
    fn draw_phases(&mut self) {
        if !self.rules.typed() {
            return;
        }
        for cpu in 0..self.domains.cpus() {
            for level in 0..self.domains.of(cpu).len() {
                let interval = self.interval(cpu, level, true);
                let ago = self.rng.below(interval);
                self.sd(cpu, level).round.last = 0u64.wrapping_sub(ago);
            }
        }
    }

    /// Sets the maximum balancing interval from the number of online CPUs, and recomputes all intervals.
    pub(super) fn set_max_interval(&mut self) {
        let online = u64::from(self.domains.online().count());
        // The change came somewhere between 2.6.37 and 2.6.39.
        self.max_interval = if self.rules.release() < v2_6(39) { u64::MAX } else { (self.hz() * online / 10).max(1) };
        let domains = Rc::clone(&self.domains);
        for cpu in 0..domains.cpus() {
            (0..domains.of(cpu).len()).for_each(|level| self.time_domain(cpu, level));
        }
    }

    /// The number of ticks per second (HZ).
    pub(super) fn hz(&self) -> u64 {
        (1_000_000_000 / self.tick_period).max(1)
    }

    /// Whether each tick and pick of a CPU notes if it is too small for its task.
    #[inline]
    #[must_use]
    pub fn notes_misfits(&self) -> bool {
        self.asymmetric
    }

    /// Whether wake-ups currently go by energy.
    #[inline]
    #[must_use]
    pub fn saves_energy(&self) -> bool {
        self.energy_aware && !self.overused
    }

    /// Whether wake-ups would go by energy if no CPU were overutilised.
    #[must_use]
    pub fn is_overused(&self) -> bool {
        self.energy_aware && self.overused
    }

    /// Records that a CPU is utilised above four fifths.
    pub fn note_overused(&mut self) {
        self.overused = true;
    }

    /// Whether affinity kept the tasks of a group from being evened out (`sg_imbalanced`).
    #[must_use]
    pub fn is_imbalanced(&self, group: GroupId) -> bool {
        self.of_group[group.index()].imbalance
    }

    /// How long after running a task counts as cache-hot, in ns; -1 means always.
    #[must_use]
    pub fn migration_cost(&self) -> i64 {
        self.rules.migration_cost
    }

    /// A shared handle to the current domains.
    #[must_use]
    pub fn domains(&self) -> Rc<Domains> {
        Rc::clone(&self.domains)
    }

    /// What was left of the capacity of `cpu` when it was last updated, and its original capacity (`capacity_of`,
    /// `capacity_orig_of`).
    #[inline]
    #[must_use]
    pub fn capacity(&self, cpu: CpuId) -> (u64, u64) {
        let state = &self.of_cpu[cpu as usize];
        (state.capacity, state.capacity_orig)
    }

    /// The sum of the capacities of a group's CPUs when it was last updated (`sgc->capacity`).
    #[must_use]
    pub fn group_capacity(&self, group: GroupId) -> u64 {
        self.of_group[group.index()].capacity
    }

    /// How long `cpu` is idle on average, in ns (`rq->avg_idle`).
    #[must_use]
    pub fn avg_idle(&self, cpu: CpuId) -> Nanos {
        self.of_cpu[cpu as usize].avg_idle
    }

    /// When `cpu` last ceased to be idle.
    #[must_use]
    pub fn busy_since(&self, cpu: CpuId) -> Nanos {
        self.of_cpu[cpu as usize].busy_since
    }

    /// Whether a CPU that could give this one a task may have several. With partitions, of which each sees only its own
    /// CPUs, that is assumed: balancing then finds out.
    pub(super) fn is_overloaded(&self) -> bool {
        self.overload || self.split
    }

    /// Called when the number of runnable tasks of a CPU has changed. Records that it now has several
    /// (`add_nr_running`).
    #[inline]
    pub fn note_runnable(&mut self, before: u32, now: u32) {
        self.overload |= before < 2 && now >= 2;
    }

    /// Called when a task wakes up on `cpu`. Ends its idle period and adds it to the average (`ttwu_do_activate`).
    #[inline]
    pub fn woken(&mut self, cpu: CpuId, now: Nanos) {
        let ancient = self.rules.release() < v(3, 13);
        let cost = self.rules.migration_cost.max(0) as Nanos;
        let state = &mut self.of_cpu[cpu as usize];
        let Some(since) = state.idle_since.take() else { return };
        state.busy_since = now;
        let (passed, most) = (now - since, 2 * if ancient { cost } else { state.max_idle_cost });
        if ancient && passed > most {
            state.avg_idle = most;
        } else {
            state.avg_idle = state.avg_idle.wrapping_add_signed((passed as i64 - state.avg_idle as i64) >> 3).min(most);
        }
    }

    /// The time of tick number `n`, in ns.
    #[inline]
    pub(super) fn tick_time(&self, n: u64) -> Nanos {
        if n == 0 { 0 } else { self.tick_first.saturating_add((n - 1).saturating_mul(self.tick_period)) }
    }

    /// The time of the tick at which `cpu` would next balance if it is busy.
    #[inline]
    #[must_use]
    pub fn next_decision(&self, cpu: CpuId) -> Nanos {
        let state = &self.of_cpu[cpu as usize];
        if state.alone { Nanos::MAX } else { self.tick_time(state.next_balance) }
    }

    /// The next balancing of `cpu` is due now.
    pub fn balance_early(&mut self, cpu: CpuId, jiffies: u64) {
        self.of_cpu[cpu as usize].next_balance = jiffies;
    }

    /// The domain of `cpu` at `level`.
    #[inline]
    pub(super) fn domain(&self, cpu: CpuId, level: usize) -> &Domain {
        &self.domains.of(cpu)[level]
    }

    /// The state of the domain of `cpu` at `level`.
    #[inline]
    pub(super) fn sd(&mut self, cpu: CpuId, level: usize) -> &mut OfDomain {
        &mut self.of_domain[self.domains.index(cpu, level)]
    }

    /// The local group of the parent domain, which contains the domain of `cpu` at `level`.
    pub(super) fn parent_group(&self, cpu: CpuId, level: usize) -> Option<GroupId> {
        self.domains.of(cpu).get(level + 1).map(|parent| self.domains.local(parent))
    }

    /// Converts ms to ticks, rounded up.
    #[inline]
    pub(super) fn ms_to_ticks(&self, ms: u64) -> u64 {
        (ms * 1_000_000).div_ceil(self.tick_period)
    }

    /// The balancing interval in ticks (`get_sd_balance_interval`).
    #[inline]
    pub(super) fn interval(&self, cpu: CpuId, level: usize, busy: bool) -> u64 {
        self.of_domain[self.domains.index(cpu, level)].ticks[usize::from(busy)]
    }

    /// Sets the balancing interval of an idle CPU, in ms.
    pub(super) fn set_interval(&mut self, cpu: CpuId, level: usize, ms: u32) {
        let round = &mut self.sd(cpu, level).round;
        if round.interval_ms != ms {
            round.interval_ms = ms;
            self.time_domain(cpu, level);
        }
    }

    /// Recomputes the intervals in ticks after `interval_ms` or the number of CPUs changed.
    fn time_domain(&mut self, cpu: CpuId, level: usize) {
        self.of_cpu[cpu as usize].idle_due = 0;
        let (tick, most, odd) = (self.tick_period, self.max_interval, self.rules.release() >= v(5, 10));
        let at = self.domains.index(cpu, level);
        let params = self.domains.params(&self.domains.of(cpu)[level]);
        let domain = &mut self.of_domain[at];
        domain.ticks = [false, true].map(|busy| {
            // From 5.10 on the intervals of two levels are not multiples of each other.
            let ticks = domain.round.interval(params, busy, tick) - u64::from(busy && odd);
            ticks.clamp(1, most)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A domain whose cost last changed at a tick.
    fn domain(max_cost: Nanos, cost_changed: u64) -> OfDomain {
        let round = Round { last: 0, interval_ms: 1, failed: 0 };
        let (ticks, newidle_ns) = ([1; 2], 0);
        OfDomain { round, ticks, newidle_ns, max_cost, cost_changed, tried: 512, helped: 256, ratio: 512 }
    }

    /// `rebalance_domains`: `need_decay |=` until 5.15, `need_decay =` from 5.16 on. At tick 251 with HZ=250 a cost of
    /// tick 0 is due to decay, and one of tick 1 is not.
    #[test]
    fn from_5_16_on_the_last_domain_alone_says_whether_the_cost_of_all_decays() {
        let visited = |release, changed: [u64; 2]| {
            let mut visits = Visits::default();
            for cost_changed in changed {
                visits.visit(&mut domain(25_600, cost_changed), 251, 250, release);
            }
            (visits.decays, visits.cost)
        };
        for release in [v(3, 13), v(5, 15)] {
            assert_eq!(visited(release, [0, 1]), (true, 25_300 + 25_600), "{release}");
        }
        for release in [v(5, 16), v(6, 12)] {
            assert_eq!(visited(release, [0, 1]), (false, 25_300 + 25_600), "{release}");
        }
        for release in [v(3, 13), v(6, 12)] {
            assert_eq!(visited(release, [1, 0]), (true, 25_600 + 25_300), "{release}");
            assert_eq!(visited(release, [1, 1]), (false, 2 * 25_600), "{release}");
        }
    }

    /// `update_newidle_cost` with HZ=250: a higher cost counts at once and starts the second anew; the highest decays
    /// at the first call that is more than a second after its last change, whether by an attempt or a periodic visit,
    /// and once only, however late that is.
    #[test]
    fn the_highest_cost_decays_by_a_hundredth_a_second() {
        let mut sd = domain(0, 0);
        let mut calls = |cost, now| (sd.update_cost(cost, now, 250), sd.max_cost);
        assert_eq!(calls(25_600, 10), (false, 25_600));
        assert_eq!(calls(20_000, 260), (false, 25_600), "one second after it");
        assert_eq!(calls(20_000, 261), (true, 25_300));
        assert_eq!(calls(0, 2_000), (true, 25_003), "a periodic visit; seven seconds late");
        assert_eq!(calls(25_003, 2_001), (false, 25_003), "as high is not higher");
        assert_eq!(calls(30_000, 2_100), (false, 30_000));
        assert_eq!(calls(0, 2_350), (false, 30_000));
    }
}

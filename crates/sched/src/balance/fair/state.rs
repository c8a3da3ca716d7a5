//! What the balancer remembers: of each domain, each group, each CPU, and of the machine.

use super::nohz::NoHz;
use super::rules::Rules;
use crate::balance::domains::{Builder, Domain, Domains, GroupId, SpanId};
use crate::balance::rounds::Round;
use schedlab_base::{CpuId, Nanos, Rng, v, v2_6};
use schedlab_machine::Machine;
use schedlab_sim::{Core, TaskId, TimerId};
use std::rc::Rc;

/// Of a CPU's domain (`struct sched_domain`).
#[derive(Clone, Copy, Debug)]
pub(super) struct OfDomain {
    pub round: Round,
    /// The time between two balancings, in ticks: of an idle CPU and of a busy one.
    pub ticks: [u64; 2],
    /// The most that balancing it as the CPU became idle has cost lately, in ns.
    pub max_cost: Nanos,
    /// When that last changed, in ticks.
    pub cost_changed: u64,
    /// How often it was balanced as the CPU became idle, and how often that helped; and the part that it did, of 1024.
    pub tried: u32,
    pub helped: u32,
    pub ratio: u32,
}

impl OfDomain {
    /// It was looked at as the CPU became idle (`update_newidle_stats`).
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

/// Of a group (`struct sched_group_capacity`).
#[derive(Clone, Copy, Debug)]
pub(super) struct OfGroup {
    pub capacity: u64,
    pub min_capacity: u64,
    pub max_capacity: u64,
    /// When its capacity is to be summed up anew, in ticks, by a CPU that becomes idle.
    pub next_update: u64,
    /// Below it, tasks could not be moved for their affinity.
    pub imbalance: bool,
    /// How many cores it has CPUs of.
    pub cores: u32,
}

/// Of a CPU (`struct rq`).
#[derive(Clone, Copy, Debug)]
pub(super) struct OfCpu {
    /// The next balancing, in ticks.
    pub next_balance: u64,
    /// The tick before which none of its domains is due, if it is idle then.
    pub idle_due: u64,
    /// Since when it is idle, if no wake-up has come since.
    pub idle_since: Option<Nanos>,
    /// How long it is idle on average, in ns.
    pub avg_idle: Nanos,
    /// The most that becoming idle has cost in balancing, in ns.
    pub max_idle_cost: Nanos,
    /// Its capacity beside its siblings: what higher classes leave of it, and the whole.
    pub capacity: u64,
    pub capacity_orig: u64,
    /// Its core's CPUs, where it has siblings.
    pub core: Option<SpanId>,
    /// It has no domain.
    pub alone: bool,
    /// Where its stopper is to push what runs (`push_cpu`), and the level of the domain that asked.
    pub push_to: Option<CpuId>,
}

/// The balancer of a machine.
#[derive(Debug)]
pub struct Balancer {
    pub(super) rules: Rules,
    pub(super) builder: Builder<'static>,
    pub(super) domains: Rc<Domains>,
    pub(super) of_domain: Vec<OfDomain>,
    pub(super) of_group: Vec<OfGroup>,
    pub(super) of_cpu: Vec<OfCpu>,
    /// Somewhere more than one task is runnable (`rd->overload`).
    pub(super) overload: bool,
    /// Wake-ups go by energy: the machine has an energy model, and CPUs differ (`sched_energy_enabled`).
    pub(super) energy_aware: bool,
    /// Some CPU is used to more than four fifths (`rd->overutilized`).
    pub(super) overused: bool,
    pub(super) nohz: NoHz,
    pub(super) tick_period: Nanos,
    pub(super) tick_first: Nanos,
    pub(super) max_interval: u64,
    /// No group of one CPU has had less capacity.
    pub(super) least_capacity: u64,
    pub(super) rng: Rng,
    pub(super) scratch: Scratch,
}

/// Buffers, so that balancing allocates nothing.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// CPUs that this balancing leaves out, and whether there are any.
    pub out: Vec<bool>,
    pub some_out: bool,
    pub list: Vec<TaskId>,
    pub lengths: Vec<u32>,
    pub moving: Vec<TaskId>,
}

impl Balancer {
    /// The balancer of a kernel for a machine.
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
            max_idle_cost: rules.migration_cost.max(0) as Nanos,
            capacity: 1024,
            capacity_orig: 1024,
            core: None,
            alone: true,
            push_to: None,
        };
        let mut me = Self {
            rules,
            builder,
            domains,
            of_domain: Vec::new(),
            of_group: Vec::new(),
            of_cpu: vec![of_cpu; cpus],
            overload: false,
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

    /// The first task comes: notes when ticks do, and that all CPUs are idle.
    pub fn start(&mut self, cx: &mut Core, timer: TimerId) {
        (self.tick_period, self.tick_first) = (cx.tick_period(), cx.tick_time(1));
        self.nohz.timer = timer;
        self.set_max_interval();
        self.draw_phases();
        (0..cx.nr_cpus()).for_each(|cpu| self.enter_idle(cx, cpu));
    }

    /// The machine has been up for a while, and its CPUs do not balance in step: how long ago each did is drawn. So it
    /// was seen in 6.12; for the releases before 5.5, where it was not looked at, they begin in step.
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

    pub(super) fn set_max_interval(&mut self) {
        let online = u64::from(self.domains.online().count());
        // Between 2.6.37 and 2.6.39.
        self.max_interval = if self.rules.release() < v2_6(39) { u64::MAX } else { (self.hz() * online / 10).max(1) };
        let domains = Rc::clone(&self.domains);
        for cpu in 0..domains.cpus() {
            (0..domains.of(cpu).len()).for_each(|level| self.time_domain(cpu, level));
        }
    }

    /// Ticks in a second.
    pub(super) fn hz(&self) -> u64 {
        (1_000_000_000 / self.tick_period).max(1)
    }

    /// Wake-ups go by energy now.
    #[inline]
    #[must_use]
    pub fn saves_energy(&self) -> bool {
        self.energy_aware && !self.overused
    }

    /// Wake-ups would go by energy, were no CPU over-utilised.
    #[must_use]
    pub fn is_overused(&self) -> bool {
        self.energy_aware && self.overused
    }

    /// A CPU is used to more than four fifths.
    pub fn note_overused(&mut self) {
        self.overused = true;
    }

    /// The domains as they are.
    #[must_use]
    pub fn domains(&self) -> Rc<Domains> {
        Rc::clone(&self.domains)
    }

    /// What was left of the capacity of `cpu` when it was last balanced, and the whole (`capacity_of`,
    /// `capacity_orig_of`).
    #[inline]
    #[must_use]
    pub fn capacity(&self, cpu: CpuId) -> (u64, u64) {
        let state = &self.of_cpu[cpu as usize];
        (state.capacity, state.capacity_orig)
    }

    /// The same of a group, as a sum (`sgc->capacity`).
    #[must_use]
    pub fn group_capacity(&self, group: GroupId) -> u64 {
        self.of_group[group.index()].capacity
    }

    /// How long `cpu` is idle on average, in ns (`rq->avg_idle`).
    #[must_use]
    pub fn avg_idle(&self, cpu: CpuId) -> Nanos {
        self.of_cpu[cpu as usize].avg_idle
    }

    /// Somewhere there is now more than one task on a CPU.
    #[inline]
    pub fn note_overload(&mut self) {
        self.overload = true;
    }

    /// A sleeper wakes on `cpu`: if it was idle, that was for how long (`ttwu_do_activate`).
    #[inline]
    pub fn woken(&mut self, cpu: CpuId, now: Nanos) {
        let ancient = self.rules.release() < v(3, 13);
        let cost = self.rules.migration_cost.max(0) as Nanos;
        let state = &mut self.of_cpu[cpu as usize];
        let Some(since) = state.idle_since.take() else { return };
        let (passed, most) = (now - since, 2 * if ancient { cost } else { state.max_idle_cost });
        if ancient && passed > most {
            state.avg_idle = most;
        } else {
            state.avg_idle = state.avg_idle.wrapping_add_signed((passed as i64 - state.avg_idle as i64) >> 3).min(most);
        }
    }

    /// The time of a tick.
    #[inline]
    pub(super) fn tick_time(&self, n: u64) -> Nanos {
        if n == 0 { 0 } else { self.tick_first.saturating_add((n - 1).saturating_mul(self.tick_period)) }
    }

    /// When a tick on a busy CPU would balance.
    #[inline]
    #[must_use]
    pub fn next_decision(&self, cpu: CpuId) -> Nanos {
        let state = &self.of_cpu[cpu as usize];
        if state.alone { Nanos::MAX } else { self.tick_time(state.next_balance) }
    }

    #[inline]
    pub(super) fn domain(&self, cpu: CpuId, level: usize) -> &Domain {
        &self.domains.of(cpu)[level]
    }

    #[inline]
    pub(super) fn sd(&mut self, cpu: CpuId, level: usize) -> &mut OfDomain {
        &mut self.of_domain[self.domains.index(cpu, level)]
    }

    /// The group of the domain above in which that of `cpu` at `level` is.
    pub(super) fn parent_group(&self, cpu: CpuId, level: usize) -> Option<GroupId> {
        self.domains.of(cpu).get(level + 1).map(|parent| self.domains.local(parent))
    }

    /// The ticks in a number of ms, rounded up.
    #[inline]
    pub(super) fn ms_to_ticks(&self, ms: u64) -> u64 {
        (ms * 1_000_000).div_ceil(self.tick_period)
    }

    /// The time between two balancings, in ticks (`get_sd_balance_interval`).
    #[inline]
    pub(super) fn interval(&self, cpu: CpuId, level: usize, busy: bool) -> u64 {
        self.of_domain[self.domains.index(cpu, level)].ticks[usize::from(busy)]
    }

    /// Sets the time to the next balancing of an idle CPU, in ms.
    pub(super) fn set_interval(&mut self, cpu: CpuId, level: usize, ms: u32) {
        let round = &mut self.sd(cpu, level).round;
        if round.interval_ms != ms {
            round.interval_ms = ms;
            self.time_domain(cpu, level);
        }
    }

    fn time_domain(&mut self, cpu: CpuId, level: usize) {
        self.of_cpu[cpu as usize].idle_due = 0;
        let (tick, most, odd) = (self.tick_period, self.max_interval, self.rules.release() >= v(5, 10));
        let at = self.domains.index(cpu, level);
        let params = self.domains.params(&self.domains.of(cpu)[level]);
        let domain = &mut self.of_domain[at];
        domain.ticks = [false, true].map(|busy| {
            // From 5.10 on the intervals of two levels are no multiples of each other.
            let ticks = domain.round.interval(params, busy, tick) - u64::from(busy && odd);
            ticks.clamp(1, most)
        });
    }
}

//! The busiest group and CPU by average loads: `find_busiest_group` and `find_busiest_queue` of 2.6.24 to 5.4.
//!
//! A group's load is the sum of its CPUs', divided by their capacity. Load is taken from the group that has most, if
//! that is more than the average and more than the own by the domain's percentage: not so much that either passes the
//! average. Where that is less than one task, [`small`] decides whether one moves all the same.
//!
//! What all releases do is here. What each does its own way is a [`Generation`], one file each.

mod imbalance;
mod small;
mod v2_6_24;
mod v2_6_32;
mod v3_10;
mod v3_18;
mod v4_1;

use super::load_balance::{Env, Work};
use super::queues::Queues;
use super::rules::by_capacity;
use crate::balance::domains::{Flags, GroupId};
use crate::balance::rounds::Idleness;
use schedlab_base::{CpuId, v, v2_6};

/// The capacity of a whole CPU.
const SCALE: u64 = 1024;

/// A group as it was found (`struct sg_lb_stats`).
#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    load: u64,
    avg_load: u64,
    /// The sum of the weights, and their mean a task.
    weighted: u64,
    per_task: u64,
    /// The sum of the utilisation, where it counts.
    usage: u64,
    nr: u32,
    idle_cpus: u32,
    weight: u32,
    capacity: u64,
    /// How many tasks it is good for, where it goes by a number.
    factor: u64,
    has_room: bool,
    overloaded: bool,
    imbalanced: bool,
    /// The least and the most loaded CPU.
    min_load: u64,
    max_load: u64,
    /// The fewest and the most tasks of a CPU, and the sum of the CPUs' mean weights of a task.
    min_nr: u32,
    max_nr: u32,
    per_task_sum: u64,
}

/// `group_type`, the less loaded first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Other,
    Imbalanced,
    Overloaded,
}

impl Stats {
    fn kind(&self) -> Kind {
        match (self.overloaded, self.imbalanced) {
            (true, _) => Kind::Overloaded,
            (_, true) => Kind::Imbalanced,
            _ => Kind::Other,
        }
    }

    /// How much the most loaded CPU has more than the least.
    fn gap(&self) -> u64 {
        self.max_load.saturating_sub(self.min_load)
    }

    /// The capacity in whole CPUs, rounded.
    fn whole_cpus(&self) -> u64 {
        (self.capacity + SCALE / 2) / SCALE
    }
}

/// A domain as it was found (`struct sd_lb_stats`).
#[derive(Default)]
struct Seen {
    busiest: Option<(GroupId, Stats)>,
    local: Stats,
    total_load: u64,
    total_capacity: u64,
    avg_load: u64,
}

/// A CPU of the busiest group.
struct Candidate {
    load: u64,
    capacity: u64,
    capacity_orig: u64,
    /// It has one task only.
    alone: bool,
    imbalance: i64,
    /// `imbalance_pct`.
    pct: u64,
}

impl Candidate {
    /// The load by capacity, in whole numbers.
    fn scaled(&self) -> u64 {
        self.load * SCALE / self.capacity
    }

    /// Its only task is more than the imbalance.
    fn is_too_much(&self, load: u64) -> bool {
        self.alone && load as i64 > self.imbalance
    }
}

/// The way of some releases to find the busiest group.
trait Generation {
    /// A group counts only if it has more tasks than it is good for, or is imbalanced: of groups of one CPU each, which
    /// all have this capacity, only those with several tasks.
    const WAITING_ONLY: Option<u64>;
    /// Whether some CPU of the machine has several tasks is noted (`rd->overload`, 3.17 on).
    const NOTES_OVERLOAD: bool;
    /// A group's tasks are those of the fair class.
    const FAIR_ONLY: bool;
    /// The utilisation counts.
    const BY_USAGE: bool;
    /// The mean weights of the CPUs' tasks count.
    const BY_TASKS: bool;
    /// A domain below can ask for tasks to be spread over its siblings first.
    const PREFERS_SIBLINGS: bool;
    /// The own group is any that has the CPU; else only the domain's first.
    const OWN_BY_CPU: bool;

    /// Whether a group is imbalanced, how many tasks it is good for, whether it has room. `noted`: balancing below it
    /// could not even out for affinity; `own`: it is the own group.
    fn classify<Q: Queues>(work: &Work<'_, Q>, env: &Env, group: GroupId, stats: &mut Stats, own: bool);

    /// The domain below prefers siblings. `room`: the own group, which was seen before, has some; none: it is the own.
    fn spread(stats: &mut Stats, room: Option<bool>);

    /// `update_sd_pick_busiest`.
    fn is_busier(stats: &Stats, than: &Stats) -> bool;

    /// How much to take (`find_busiest_group`, `calculate_imbalance`): `false` where all is well.
    fn imbalance<Q: Queues>(work: &Work<'_, Q>, env: &mut Env, seen: &mut Seen, busiest: &mut Stats) -> bool;

    /// A CPU's load and what it is divided by (`find_busiest_queue`), unless its only task is too much; `small`: it is
    /// a sibling that has less than half a CPU's capacity, and all of it.
    fn rank(of: &Candidate, small: impl FnOnce() -> bool) -> Option<(u64, u64)>;
}

/// The ways of those releases that take what is above the average, 3.10 on.
trait ByAverage: Generation + small::Wanted {
    /// A CPU that becomes idle takes from a group that has no room.
    fn lacks_room(busiest: &Stats) -> bool;

    /// A group has no more than it can run.
    fn has_what_it_can_run(busiest: &Stats) -> bool;

    /// No load is above the average.
    fn is_below_average(seen: &Seen, busiest: &Stats) -> bool;

    /// What the busiest group has more than it is good for.
    fn excess(seen: &Seen, busiest: &Stats) -> u64;
}

impl<Q: Queues> Work<'_, Q> {
    /// The group to take from, and how much load.
    pub fn busiest_by_load(&mut self, env: &mut Env) -> Option<GroupId> {
        match self.b.rules.release() {
            release if release < v2_6(32) => self.find_busiest::<v2_6_24::Rules>(env),
            release if release < v2_6(34) => self.find_busiest::<v2_6_32::Rules>(env),
            release if release < v(3, 18) => self.find_busiest::<v3_10::Rules>(env),
            release if release < v(4, 1) => self.find_busiest::<v3_18::Rules>(env),
            _ => self.find_busiest::<v4_1::Rules>(env),
        }
    }

    /// The CPU of a group to take from (`find_busiest_queue`).
    pub fn queue_by_load(&self, env: &Env, group: GroupId) -> Option<CpuId> {
        match self.b.rules.release() {
            release if release < v2_6(32) => self.find_queue::<v2_6_24::Rules>(env, group),
            release if release < v2_6(34) => self.find_queue::<v2_6_32::Rules>(env, group),
            release if release < v(3, 18) => self.find_queue::<v3_10::Rules>(env, group),
            release if release < v(4, 1) => self.find_queue::<v3_18::Rules>(env, group),
            _ => self.find_queue::<v4_1::Rules>(env, group),
        }
    }

    fn find_busiest<G: Generation>(&mut self, env: &mut Env) -> Option<GroupId> {
        env.imbalance = 0;
        let occupancy = self.q.occupancy();
        let worth = if self.takes_waiting_only::<G>(env) { &occupancy.crowded } else { &occupancy.busy };
        if !self.any_of(env, worth, false) {
            return self.find_nothing::<G>(env);
        }
        let mut seen = self.survey_loads::<G>(env);
        let (group, mut busiest) = seen.busiest.filter(|(_, stats)| stats.nr > 0)?;
        seen.avg_load = SCALE * seen.total_load / seen.total_capacity.max(1);
        G::imbalance(self, env, &mut seen, &mut busiest).then_some(group)
    }

    fn takes_waiting_only<G: Generation>(&self, env: &Env) -> bool {
        let domain = self.b.domain(env.cpu, env.level);
        G::WAITING_ONLY.is_some_and(|enough| self.b.least_capacity >= enough)
            && self.b.domains.group_len(domain) == self.span(domain.span).len()
    }

    /// Beyond the own group nothing is runnable: no group is busiest.
    fn find_nothing<G: Generation>(&mut self, env: &Env) -> Option<GroupId> {
        self.refresh_capacity(env);
        if G::NOTES_OVERLOAD && env.level + 1 == self.b.domains.of(env.cpu).len() {
            self.b.overload = self.any_of(env, &self.q.occupancy().crowded, true);
        }
        None
    }

    /// Sums up the groups (`update_sd_lb_stats`).
    fn survey_loads<G: Generation>(&mut self, env: &Env) -> Seen {
        let domain = *self.b.domain(env.cpu, env.level);
        let params = *self.b.domains.params(&domain);
        let index = match env.idle {
            Idleness::Busy => params.busy_idx,
            Idleness::Newly => params.newidle_idx,
            Idleness::Idle => params.idle_idx,
        };
        let below = env.level.checked_sub(1).map(|level| self.b.domain(env.cpu, level).flags);
        let spreads = G::PREFERS_SIBLINGS && below.is_some_and(|flags| flags.has(Flags::PREFER_SIBLING));
        let local = self.b.domains.local(&domain);
        let (mut seen, mut overload) = (Seen::default(), false);
        let mut local_seen = false;
        for at in 0..self.b.domains.group_len(&domain) {
            let group = self.b.domains.nth_group(&domain, at);
            let own = group == local || G::OWN_BY_CPU && self.b.domains.has(group, env.dst);
            if own {
                self.refresh_capacity(env);
            }
            let mut stats = self.survey_load::<G>(env, group, own, index, &mut overload);
            seen.total_load += stats.load;
            seen.total_capacity += stats.capacity;
            if spreads {
                G::spread(&mut stats, (!own).then_some(local_seen && seen.local.has_room));
            }
            if own {
                seen.local = stats;
                local_seen = true;
            } else if self.is_busier::<G>(&stats, seen.busiest.as_ref().map(|(_, busiest)| busiest)) {
                seen.busiest = Some((group, stats));
            }
        }
        if G::NOTES_OVERLOAD && env.level + 1 == self.b.domains.of(env.cpu).len() {
            self.b.overload = overload;
        }
        seen
    }

    /// Sums up a group (`update_sg_lb_stats`).
    fn survey_load<G: Generation>(
        &mut self,
        env: &Env,
        group: GroupId,
        own: bool,
        index: u8,
        overload: &mut bool,
    ) -> Stats {
        let now = self.cx.now();
        let mut stats = Stats { min_load: u64::MAX, min_nr: u32::MAX, ..Stats::default() };
        let span = self.b.domains.group(group).span;
        for at in 0..self.span(span).len() {
            let cpu = self.span(span)[at];
            if !self.counts(cpu) {
                continue;
            }
            self.q.account_load(self.cx, cpu);
            let weighted = self.q.weighted_load(cpu, now);
            let load = self.biased(cpu, weighted, index, own);
            let nr = self.q.nr_running(cpu);
            stats.load += load;
            stats.weighted += weighted;
            stats.usage += if G::BY_USAGE { self.q.util(cpu, now) } else { 0 };
            stats.nr += if G::FAIR_ONLY { self.q.nr_fair(cpu) } else { nr };
            stats.idle_cpus += u32::from(self.is_idle(cpu));
            *overload |= nr > 1;
            (stats.min_load, stats.max_load) = (stats.min_load.min(load), stats.max_load.max(load));
            (stats.min_nr, stats.max_nr) = (stats.min_nr.min(nr), stats.max_nr.max(nr));
            if G::BY_TASKS {
                stats.per_task_sum += weighted.checked_div(nr.into()).unwrap_or(0);
            }
        }
        stats.min_load = stats.min_load.min(stats.max_load);
        stats.capacity = self.b.of_group[group.index()].capacity;
        stats.avg_load = by_capacity(self.b.rules.release(), stats.load * SCALE, stats.capacity);
        stats.per_task = stats.weighted.checked_div(stats.nr.into()).unwrap_or(0);
        stats.weight = self.span(span).len() as u32;
        G::classify(self, env, group, &mut stats, own);
        stats
    }

    /// A high guess for the own group, a low one for others (`target_load`, `source_load`: LB_BIAS).
    #[inline]
    fn biased(&self, cpu: CpuId, now: u64, index: u8, own: bool) -> u64 {
        if index == 0 {
            return now;
        }
        let lately = self.q.cpu_load(cpu, index - 1);
        if own { now.max(lately) } else { now.min(lately) }
    }

    fn is_busier<G: Generation>(&self, stats: &Stats, busiest: Option<&Stats>) -> bool {
        let none = Stats::default();
        let than = busiest.unwrap_or(&none);
        if self.b.rules.fix_group_imbalance {
            // As the work describes it. Its patch has no kinds, compares the other way round, and then lets any group
            // pass.
            return (stats.kind(), stats.min_load) > (than.kind(), than.min_load);
        }
        G::is_busier(stats, than)
    }

    /// The sum of the whole capacities of a group's CPUs.
    fn capacity_orig(&self, group: GroupId) -> u64 {
        let span = self.b.domains.group(group).span;
        self.span(span).iter().map(|cpu| self.b.of_cpu[*cpu as usize].capacity_orig).sum()
    }

    /// A sibling that has less than half a CPU's capacity is good for a task all the same, if higher classes leave it
    /// to it (`fix_small_capacity`).
    fn small_capacity(&self, env: &Env, group: GroupId) -> bool {
        self.b.domain(env.cpu, env.level).flags.has(Flags::SHARE_CPUCAPACITY)
            && self.b.of_group[group.index()].capacity * 32 > self.capacity_orig(group) * 29
    }

    fn find_queue<G: Generation>(&self, env: &Env, group: GroupId) -> Option<CpuId> {
        let span = self.b.domains.group(group).span;
        let pct = self.pct(env);
        let (mut best, mut most, mut its) = (None, 0, 1);
        for &cpu in self.span(span) {
            let load = self.q.weighted_load(cpu, self.cx.now());
            if !self.counts(cpu) || load == 0 || self.is_placed(env, cpu) {
                continue;
            }
            let state = &self.b.of_cpu[cpu as usize];
            let (capacity, capacity_orig) = (state.capacity, state.capacity_orig);
            let alone = self.q.nr_running(cpu) == 1;
            let of = Candidate { load, capacity, capacity_orig, alone, imbalance: env.imbalance, pct };
            let Some((load, by)) = G::rank(&of, || self.small_capacity(env, group)) else { continue };
            if load * its > most * by {
                (best, most, its) = (Some(cpu), load, by);
            }
        }
        best
    }
}

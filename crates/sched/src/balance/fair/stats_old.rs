//! Who is busiest, by average loads: `find_busiest_group` and `find_busiest_queue` of 2.6.24 to 4.1.
//!
//! A group's load is the sum of its CPUs', by what they are worth. Load is taken from the group that has most, if that
//! is more than the average and more than the own by the domain's percentage; so much that neither passes the average.
//! Where that is less than one task, arithmetic decides whether one moves all the same.

use super::one::{Env, Work};
use super::queues::Queues;
use super::rules::by_capacity;
use crate::balance::domains::{Flags, GroupId};
use crate::balance::rounds::Idleness;
use schedlab_base::{CpuId, Release, v, v2_6};

/// What a CPU is worth.
const SCALE: u64 = 1024;

/// The releases whose rules are here; each stands for those after it until the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Generation {
    /// Until capacities were brought up to date ("sched: Remove reciprocal for cpu_power").
    V2_6_24,
    /// Until 2.6.33; the tasks that a group is too many by limit what is taken from 2.6.34 on ("sched: Fix SCHED_MC
    /// regression caused by change in sched cpu_power").
    V2_6_32,
    /// As 3.10 has it. The releases before 3.9 and from 3.12 on have parts of it only.
    V3_10,
    /// Groups have types of a kind, and higher types come first (`group_type`).
    V3_18,
    /// A group is overloaded by its utilisation, not by a number of tasks that it is good for.
    V4_1,
}

impl Generation {
    fn of(release: Release) -> Self {
        match release {
            release if release < v2_6(32) => Self::V2_6_24,
            release if release < v2_6(34) => Self::V2_6_32,
            release if release < v(3, 18) => Self::V3_10,
            release if release < v(4, 1) => Self::V3_18,
            _ => Self::V4_1,
        }
    }
}

/// A group as it was found (`struct sg_lb_stats`).
#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    load: u64,
    avg_load: u64,
    /// The sum of the weights, and their mean a task.
    weighted: u64,
    per_task: u64,
    usage: u64,
    nr: u32,
    idle_cpus: u32,
    weight: u32,
    capacity: u64,
    /// So many tasks it is good for.
    factor: u64,
    has_room: bool,
    overloaded: bool,
    imbalanced: bool,
    /// The least and the most loaded CPU, for the repair.
    min_load: u64,
    max_load: u64,
}

impl Stats {
    /// `group_type`: overloaded before imbalanced before other.
    fn kind(&self) -> u8 {
        if self.overloaded { 2 } else { u8::from(self.imbalanced) }
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

impl<Q: Queues> Work<'_, Q> {
    /// The group to take from, and how much load.
    pub fn busiest_by_load(&mut self, env: &mut Env) -> Option<GroupId> {
        env.imbalance = 0;
        let occupancy = self.q.occupancy();
        let worth = if self.takes_waiting_only(env) { &occupancy.crowded } else { &occupancy.busy };
        if !self.any_of(env, worth, false) {
            return self.see_nobody(env);
        }
        let mut seen = self.see(env);
        let (group, busiest) = seen.busiest.filter(|(_, stats)| stats.nr > 0)?;
        seen.avg_load = SCALE * seen.total_load / seen.total_capacity.max(1);
        let generation = Generation::of(self.b.rules.release());
        let mut busiest = busiest;
        if generation <= Generation::V2_6_32 {
            return self.ancient_imbalance(env, &mut seen, &mut busiest).then_some(group);
        }
        let forced = busiest.kind() == 1 && generation >= Generation::V3_18
            || generation <= Generation::V3_10 && busiest.imbalanced
            || env.idle == Idleness::Newly && seen.local.has_room && self.lacks_room(&busiest);
        let repaired = self.b.rules.fix_group_imbalance;
        let balanced =
            if repaired { seen.local.min_load >= busiest.min_load } else { self.is_balanced(env, &seen, &busiest) };
        if balanced && !forced {
            return None;
        }
        if repaired {
            env.imbalance = (busiest.max_load.saturating_sub(seen.local.min_load) / 2) as i64;
        } else {
            self.imbalance(env, &mut seen, &mut busiest);
        }
        Some(group)
    }

    /// Until 3.10 a group is busier if it has more tasks than it is good for, or is imbalanced: so of groups of one CPU
    /// each, only those with several tasks are.
    fn takes_waiting_only(&self, env: &Env) -> bool {
        let generation = Generation::of(self.b.rules.release());
        let enough = if generation == Generation::V2_6_24 { SCALE } else { SCALE / 2 };
        let domain = self.b.domain(env.cpu, env.level);
        generation <= Generation::V3_10
            && !self.b.rules.fix_group_imbalance
            && self.b.least_capacity >= enough
            && self.b.domains.group_len(domain) == self.span(domain.span).len()
    }

    /// Beyond the own group nothing is runnable: nobody is busiest.
    fn see_nobody(&mut self, env: &Env) -> Option<GroupId> {
        self.refresh_capacity(env);
        if Generation::of(self.b.rules.release()) >= Generation::V3_18
            && env.level + 1 == self.b.domains.of(env.cpu).len()
        {
            self.b.overload = self.any_of(env, &self.q.occupancy().crowded, true);
        }
        None
    }

    fn lacks_room(&self, busiest: &Stats) -> bool {
        if Generation::of(self.b.rules.release()) >= Generation::V4_1 { busiest.overloaded } else { !busiest.has_room }
    }

    /// Sums up the groups (`update_sd_lb_stats`).
    fn see(&mut self, env: &Env) -> Seen {
        let rules = self.b.rules;
        let generation = Generation::of(rules.release());
        let domain = *self.b.domain(env.cpu, env.level);
        let params = *self.b.domains.params(&domain);
        let index = match env.idle {
            Idleness::Busy => params.busy_idx,
            Idleness::Newly => params.newidle_idx,
            Idleness::Idle => params.idle_idx,
        };
        let below = env.level.checked_sub(1).map(|level| self.b.domain(env.cpu, level).flags);
        let prefer_sibling =
            generation >= Generation::V2_6_32 && below.is_some_and(|flags| flags.has(Flags::PREFER_SIBLING));
        let local = self.b.domains.local(&domain);
        let (mut seen, mut overload) = (Seen::default(), false);
        let mut local_seen = false;
        for at in 0..self.b.domains.group_len(&domain) {
            let group = self.b.domains.nth_group(&domain, at);
            let own = group == local || generation >= Generation::V3_10 && self.b.domains.has(group, env.dst);
            if own {
                self.refresh_capacity(env);
            }
            let mut stats = self.see_group(env, group, own, index, &mut overload);
            seen.total_load += stats.load;
            seen.total_capacity += stats.capacity;
            if own {
                if generation == Generation::V2_6_32 && prefer_sibling {
                    stats.factor = stats.factor.min(1);
                }
                seen.local = stats;
                local_seen = true;
                continue;
            }
            if prefer_sibling {
                self.spread_over_siblings(&mut stats, local_seen && seen.local.has_room);
            }
            if self.is_busier(&stats, seen.busiest.as_ref().map(|(_, busiest)| busiest)) {
                seen.busiest = Some((group, stats));
            }
        }
        if generation >= Generation::V3_18 && env.level + 1 == self.b.domains.of(env.cpu).len() {
            self.b.overload = overload;
        }
        seen
    }

    /// The child domain prefers that tasks go to siblings first: a group is good for one task only, where the own has
    /// room for the others (from 2.6.39 on).
    fn spread_over_siblings(&self, stats: &mut Stats, room: bool) {
        match Generation::of(self.b.rules.release()) {
            Generation::V2_6_32 => stats.factor = stats.factor.min(1),
            Generation::V3_10 if room => stats.factor = stats.factor.min(1),
            // The type stands already; only what may be taken is lowered.
            Generation::V3_18 if room => stats.factor = stats.factor.min(1),
            Generation::V4_1 if room && stats.nr > 1 => stats.overloaded = true,
            _ => {}
        }
    }

    pub(super) fn refresh_capacity(&mut self, env: &Env) {
        let generation = Generation::of(self.b.rules.release());
        let jiffies = self.cx.jiffies();
        let group = self.b.domains.local(self.b.domain(env.cpu, env.level));
        let due = match generation {
            Generation::V2_6_24 => false,
            Generation::V2_6_32 => self.b.domains.span(self.b.domains.group(group).span).cpus.first() == Some(&env.dst),
            _ => env.idle != Idleness::Newly || jiffies >= self.b.of_group[group.index()].next_update,
        };
        if due && env.dst == env.cpu {
            let own = self.q.capacity(self.cx, env.cpu);
            self.b.update_group_capacity(env.cpu, env.level, own, jiffies);
        }
    }

    /// Sums up a group (`update_sg_lb_stats`).
    fn see_group(&mut self, env: &Env, group: GroupId, own: bool, index: u8, overload: &mut bool) -> Stats {
        let generation = Generation::of(self.b.rules.release());
        let mut stats = Stats { min_load: u64::MAX, ..Stats::default() };
        let span = self.b.domains.group(group).span;
        let (mut most_nr, mut least_nr, mut per_task) = (0, u32::MAX, 0);
        for at in 0..self.span(span).len() {
            let cpu = self.span(span)[at];
            if !self.counts(cpu) {
                continue;
            }
            self.q.account_load(self.cx, cpu);
            let weighted = self.q.weighted_load(cpu);
            let load = self.biased(cpu, weighted, index, own);
            let nr = self.q.nr_running(cpu);
            stats.load += load;
            stats.weighted += weighted;
            stats.usage += if generation >= Generation::V4_1 { self.q.util(cpu) } else { 0 };
            stats.nr += if generation >= Generation::V3_18 { self.q.nr_fair(cpu) } else { nr };
            stats.idle_cpus += u32::from(self.is_idle(cpu));
            *overload |= nr > 1;
            (stats.min_load, stats.max_load) = (stats.min_load.min(load), stats.max_load.max(load));
            (most_nr, least_nr) = (most_nr.max(nr), least_nr.min(nr));
            per_task += if generation == Generation::V2_6_32 && nr > 0 { weighted / u64::from(nr) } else { 0 };
        }
        stats.min_load = stats.min_load.min(stats.max_load);
        let state = &self.b.of_group[group.index()];
        stats.capacity = state.capacity;
        stats.avg_load = by_capacity(self.b.rules.release(), stats.load * SCALE, stats.capacity);
        stats.per_task = if stats.nr > 0 { stats.weighted / u64::from(stats.nr) } else { 0 };
        stats.weight = self.span(span).len() as u32;
        let gap = if own { 0 } else { stats.max_load.saturating_sub(stats.min_load) };
        stats.imbalanced = match generation {
            Generation::V2_6_24 => gap > SCALE,
            Generation::V2_6_32 => gap > 2 * (per_task * SCALE / stats.capacity.max(1)),
            Generation::V3_10 => !own && gap >= stats.per_task && most_nr.saturating_sub(least_nr) > 1,
            _ => state.imbalance,
        };
        self.size(env, group, &mut stats);
        stats
    }

    /// For how many tasks a group is good, and whether it has more.
    fn size(&self, env: &Env, group: GroupId, stats: &mut Stats) {
        let rounded = (stats.capacity + SCALE / 2) / SCALE;
        let small = || u64::from(self.small_capacity(env, group));
        let nr = u64::from(stats.nr);
        match Generation::of(self.b.rules.release()) {
            Generation::V2_6_24 => stats.factor = stats.capacity / SCALE,
            Generation::V2_6_32 => stats.factor = rounded,
            Generation::V3_10 => {
                stats.factor = if rounded == 0 { small() } else { rounded };
                stats.has_room = stats.factor > nr;
            }
            Generation::V3_18 => {
                let span = self.b.domains.group(group).span;
                let orig: u64 = self.span(span).iter().map(|cpu| self.b.of_cpu[*cpu as usize].capacity_orig).sum();
                let cpus = u64::from(stats.weight);
                let smt = (SCALE * cpus).div_ceil(orig.max(1));
                let factor = (cpus / smt.max(1)).min(rounded);
                stats.factor = if factor == 0 { small() } else { factor };
                stats.overloaded = nr > stats.factor;
                stats.has_room = stats.factor > nr;
            }
            _ => {
                let pct = u64::from(self.b.domains.params(self.b.domain(env.cpu, env.level)).imbalance_pct);
                let spare = stats.capacity * 100 > stats.usage * pct;
                let lacking = stats.capacity * 100 < stats.usage * pct;
                stats.has_room = stats.nr < stats.weight || spare;
                stats.overloaded = stats.nr > stats.weight && lacking;
            }
        }
    }

    /// A sibling that is worth less than half a CPU is good for a task all the same, if higher classes leave it to it.
    fn small_capacity(&self, env: &Env, group: GroupId) -> bool {
        if !self.b.domain(env.cpu, env.level).flags.has(Flags::SHARE_CPUCAPACITY) {
            return false;
        }
        let span = self.b.domains.group(group).span;
        let orig: u64 = self.span(span).iter().map(|cpu| self.b.of_cpu[*cpu as usize].capacity_orig).sum();
        self.b.of_group[group.index()].capacity * 32 > orig * 29
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

    /// `update_sd_pick_busiest`.
    fn is_busier(&self, stats: &Stats, busiest: Option<&Stats>) -> bool {
        let none = Stats::default();
        let than = busiest.unwrap_or(&none);
        if self.b.rules.fix_group_imbalance {
            // As the work describes it. Its patch has no kinds, compares the other way round, and then lets any group
            // pass.
            return (stats.kind(), stats.min_load) > (than.kind(), than.min_load);
        }
        if Generation::of(self.b.rules.release()) >= Generation::V3_18 {
            return (stats.kind(), stats.avg_load) > (than.kind(), than.avg_load);
        }
        stats.avg_load > than.avg_load && (u64::from(stats.nr) > stats.factor || stats.imbalanced)
    }

    /// 2.6.24 and 2.6.32: whether there is an imbalance, and how much.
    fn ancient_imbalance(&mut self, env: &mut Env, seen: &mut Seen, busiest: &mut Stats) -> bool {
        let pct = u64::from(self.b.domains.params(self.b.domain(env.cpu, env.level)).imbalance_pct);
        let own = seen.local.avg_load;
        if own >= busiest.avg_load || own >= seen.avg_load || 100 * busiest.avg_load <= pct * own {
            return false;
        }
        if busiest.imbalanced {
            busiest.per_task = busiest.per_task.min(seen.avg_load);
        }
        if busiest.avg_load <= busiest.per_task {
            return false;
        }
        if busiest.avg_load < seen.avg_load {
            self.small_imbalance(env, &mut seen.local, busiest);
            return true;
        }
        let pull = (busiest.avg_load - seen.avg_load).min(busiest.avg_load - busiest.per_task);
        env.imbalance = ((pull * busiest.capacity).min((seen.avg_load - own) * seen.local.capacity) / SCALE) as i64;
        if (env.imbalance as u64) < busiest.per_task {
            self.small_imbalance(env, &mut seen.local, busiest);
        }
        true
    }

    /// 3.10 to 4.1: whether all is well.
    fn is_balanced(&self, env: &Env, seen: &Seen, busiest: &Stats) -> bool {
        let local = &seen.local;
        if local.avg_load >= busiest.avg_load || local.avg_load >= seen.avg_load {
            return true;
        }
        if env.idle != Idleness::Idle {
            let pct = u64::from(self.b.domains.params(self.b.domain(env.cpu, env.level)).imbalance_pct);
            return 100 * busiest.avg_load <= pct * local.avg_load;
        }
        let fits = if Generation::of(self.b.rules.release()) <= Generation::V3_10 {
            busiest.nr <= busiest.weight
        } else {
            busiest.kind() != 2
        };
        fits && local.idle_cpus <= busiest.idle_cpus + 1
    }

    /// How much to take (`calculate_imbalance`, 3.10 to 4.1).
    fn imbalance(&mut self, env: &mut Env, seen: &mut Seen, busiest: &mut Stats) {
        let generation = Generation::of(self.b.rules.release());
        let imbalanced = if generation <= Generation::V3_10 { busiest.imbalanced } else { busiest.kind() == 1 };
        if imbalanced {
            busiest.per_task = busiest.per_task.min(seen.avg_load);
        }
        let below = if generation <= Generation::V3_10 {
            busiest.avg_load < seen.avg_load
        } else {
            busiest.avg_load <= seen.avg_load || seen.local.avg_load >= seen.avg_load
        };
        if below {
            return self.small_imbalance(env, &mut seen.local, busiest);
        }
        let (nr, capacity) = (u64::from(busiest.nr), busiest.capacity.max(1));
        let above = |factor: u64| nr.wrapping_sub(factor).wrapping_mul(SCALE * SCALE) / capacity;
        let both = busiest.kind() == 2 && seen.local.kind() == 2;
        let above = match generation {
            Generation::V3_10 if !imbalanced => above(busiest.factor),
            Generation::V3_18 if both => above(busiest.factor),
            Generation::V4_1 if both && nr * SCALE > capacity => nr * SCALE - capacity,
            _ => u64::MAX,
        };
        let pull = (busiest.avg_load - seen.avg_load).min(above);
        let room = seen.avg_load.wrapping_sub(seen.local.avg_load).wrapping_mul(seen.local.capacity);
        env.imbalance = (pull.saturating_mul(busiest.capacity).min(room) / SCALE) as i64;
        if (env.imbalance as u64) < busiest.per_task {
            self.small_imbalance(env, &mut seen.local, busiest);
        }
    }

    /// Less than a task: whether one moves all the same (`fix_small_imbalance`).
    fn small_imbalance(&self, env: &mut Env, local: &mut Stats, busiest: &Stats) {
        let generation = Generation::of(self.b.rules.release());
        let mut tasks = 2;
        if local.nr > 0 {
            tasks = if busiest.per_task > local.per_task { 1 } else { 2 };
        } else {
            let nr = u64::from(self.q.nr_running(env.dst));
            // A CPU without tasks has a whole task's in 2.6.24, and nothing later.
            local.per_task = match generation {
                Generation::V2_6_24 => SCALE,
                _ => self.q.weighted_load(env.dst).checked_div(nr).unwrap_or(0),
            };
        }
        let scaled = by_capacity(self.b.rules.release(), busiest.per_task * SCALE, busiest.capacity);
        let wanted = match generation {
            Generation::V2_6_24 => {
                busiest.avg_load.wrapping_sub(local.avg_load).wrapping_add(SCALE) >= busiest.per_task * tasks
            }
            Generation::V2_6_32 => {
                busiest.avg_load.wrapping_sub(local.avg_load).wrapping_add(busiest.per_task) >= busiest.per_task * tasks
            }
            // Unsigned: a group that is taken from though it has less is no limit, unless by less than a task.
            Generation::V3_10 => busiest.avg_load.wrapping_sub(local.avg_load).wrapping_add(scaled) >= scaled * tasks,
            _ => busiest.avg_load + scaled >= local.avg_load + scaled * tasks,
        };
        if wanted || self.gains(local, busiest, scaled) {
            env.imbalance = busiest.per_task as i64;
        }
    }

    /// Whether more of the CPUs' worth would be used.
    fn gains(&self, local: &Stats, busiest: &Stats, scaled: u64) -> bool {
        let now = busiest.capacity * busiest.per_task.min(busiest.avg_load)
            + local.capacity * local.per_task.min(local.avg_load);
        let left = if busiest.avg_load > scaled {
            busiest.capacity * busiest.per_task.min(busiest.avg_load - scaled)
        } else {
            0
        };
        let most = (busiest.avg_load * busiest.capacity).min(busiest.per_task * SCALE);
        let more = by_capacity(self.b.rules.release(), most, local.capacity);
        let then = left + local.capacity * local.per_task.min(local.avg_load + more);
        then / SCALE > now / SCALE
    }

    /// The CPU of a group to take from (`find_busiest_queue`).
    pub fn queue_by_load(&mut self, env: &Env, group: GroupId) -> Option<CpuId> {
        let generation = Generation::of(self.b.rules.release());
        let span = self.b.domains.group(group).span;
        let pct = u64::from(self.b.domains.params(self.b.domain(env.cpu, env.level)).imbalance_pct);
        let (mut best, mut most, mut its) = (None, 0, 1);
        for &cpu in self.span(span) {
            let load = self.q.weighted_load(cpu);
            if !self.counts(cpu) || load == 0 || self.is_placed(env, cpu) {
                continue;
            }
            let state = &self.b.of_cpu[cpu as usize];
            let capacity = if generation == Generation::V2_6_24 { SCALE } else { state.capacity };
            let alone = self.q.nr_running(cpu) == 1;
            // Until 3.10 loads by capacity are whole numbers; 2.6.32 compares the imbalance with them, too.
            let whole = load * SCALE / capacity;
            let compared = if generation == Generation::V2_6_32 { whole } else { load };
            let (load, by) = if generation <= Generation::V3_10 { (whole, 1) } else { (load, capacity) };
            let reduced = match generation {
                Generation::V2_6_24 => false,
                Generation::V4_1 => capacity * pct < state.capacity_orig * 100,
                Generation::V2_6_32 => capacity < SCALE / 2,
                _ => capacity < SCALE / 2 && !self.small_capacity(env, group),
            };
            if alone && compared as i64 > env.imbalance && !reduced {
                continue;
            }
            if load * its > most * by {
                (best, most, its) = (Some(cpu), load, by);
            }
        }
        best
    }
}

//! The busiest group and CPU by average load: `find_busiest_group` and `find_busiest_queue` from 2.6.24 to 5.4.
//!
//! A group's load is the sum of its CPUs' loads divided by its capacity. Load is pulled from the group with the highest
//! load, if that exceeds both the domain's average and the local group's load by the domain's imbalance percentage. The
//! amount is limited so that neither group crosses the average. If it is less than one task, [`small`] decides whether
//! one task moves anyway.
//!
//!
//! This file has what all releases share. The parts that differ are a [`Generation`], one file each.

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

/// The capacity of one full CPU.
const SCALE: u64 = 1024;

/// The statistics of a group (`struct sg_lb_stats`).
#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    load: u64,
    avg_load: u64,
    /// The sum of the weights of the tasks, and the mean weight per task.
    weighted: u64,
    per_task: u64,
    /// The sum of the CPUs' utilisation, in releases that use it.
    usage: u64,
    nr: u32,
    idle_cpus: u32,
    weight: u32,
    capacity: u64,
    /// How many tasks the group can hold (`group_capacity_factor`), in releases that use a task count.
    factor: u64,
    has_room: bool,
    overloaded: bool,
    imbalanced: bool,
    /// The loads of the least and the most loaded CPU.
    min_load: u64,
    max_load: u64,
    /// The lowest and the highest number of tasks on a CPU, and the sum over the CPUs of the mean task weight.
    min_nr: u32,
    max_nr: u32,
    per_task_sum: u64,
}

/// The kernel's `group_type`, in ascending order of priority as the busiest group.
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

    /// The difference between the most and the least loaded CPU.
    fn gap(&self) -> u64 {
        self.max_load.saturating_sub(self.min_load)
    }

    /// The capacity as a number of full CPUs, rounded to the nearest.
    fn whole_cpus(&self) -> u64 {
        (self.capacity + SCALE / 2) / SCALE
    }
}

/// The statistics of a domain (`struct sd_lb_stats`).
#[derive(Default)]
struct Seen {
    busiest: Option<(GroupId, Stats)>,
    local: Stats,
    total_load: u64,
    total_capacity: u64,
    avg_load: u64,
}

/// A CPU of the busiest group, as a candidate for the busiest CPU.
struct Candidate {
    load: u64,
    capacity: u64,
    capacity_orig: u64,
    /// It has only one task.
    alone: bool,
    imbalance: i64,
    /// The domain's `imbalance_pct`.
    pct: u64,
}

impl Candidate {
    /// The load divided by the capacity, rounded down.
    fn scaled(&self) -> u64 {
        self.load * SCALE / self.capacity
    }

    /// Whether its only task exceeds the imbalance.
    fn is_too_much(&self, load: u64) -> bool {
        self.alone && load as i64 > self.imbalance
    }
}

/// How a range of releases finds the busiest group.
trait Generation {
    /// If set, a group only counts if it has more tasks than it can hold or is imbalanced. In a domain whose groups are
    /// single CPUs, each with at least this capacity, only CPUs with several tasks then need to be considered.
    const WAITING_ONLY: Option<u64>;
    /// Whether the balancer records that some CPU of the machine has several tasks (`rd->overload`, from 3.17 on).
    const NOTES_OVERLOAD: bool;
    /// Whether a group's task count covers only fair tasks.
    const FAIR_ONLY: bool;
    /// Whether utilisation is used.
    const BY_USAGE: bool;
    /// Whether the mean task weight of each CPU is used.
    const BY_TASKS: bool;
    /// Whether the child domain can ask for tasks to be spread over its siblings first (`SD_PREFER_SIBLING`).
    const PREFERS_SIBLINGS: bool;
    /// Whether every group that contains the destination CPU is local. Otherwise only the domain's first group is.
    const OWN_BY_CPU: bool;

    /// Decides whether a group is imbalanced, how many tasks it can hold and whether it has room. `own` is true for the
    /// local group.
    fn classify<Q: Queues>(work: &Work<'_, Q>, env: &Env, group: GroupId, stats: &mut Stats, own: bool);

    /// Called if the child domain prefers siblings. `room` says whether the local group, if it was visited before, has
    /// room; `None` means that `stats` is the local group.
    fn spread(stats: &mut Stats, room: Option<bool>);

    /// Whether `stats` is busier than the busiest group so far (`update_sd_pick_busiest`).
    fn is_busier(stats: &Stats, than: &Stats) -> bool;

    /// Computes how much load to pull (`find_busiest_group`, `calculate_imbalance`). Returns `false` if the domain is
    /// balanced.
    fn imbalance<Q: Queues>(work: &Work<'_, Q>, env: &mut Env, seen: &mut Seen, busiest: &mut Stats) -> bool;

    /// A CPU's load and its divisor, for comparing CPUs (`find_busiest_queue`); `None` if its only task exceeds the
    /// imbalance. `small` checks for an SMT sibling with less than half a CPU's capacity whose capacity is not reduced
    /// by higher classes.
    fn rank(of: &Candidate, small: impl FnOnce() -> bool) -> Option<(u64, u64)>;
}

/// The generations that pull what is above the domain's average, from 3.10 on.
trait ByAverage: Generation + small::Wanted {
    /// Whether a newly idle CPU pulls from this group because the group has no room.
    fn lacks_room(busiest: &Stats) -> bool;

    /// Whether the group has no more tasks than it can run.
    fn has_what_it_can_run(busiest: &Stats) -> bool;

    /// Whether the busiest group has no load above the average.
    fn is_below_average(seen: &Seen, busiest: &Stats) -> bool;

    /// How much load the busiest group has in excess of what it can hold.
    fn excess(seen: &Seen, busiest: &Stats) -> u64;
}

impl<Q: Queues> Work<'_, Q> {
    /// Finds the group to pull from and sets the load to pull in `env.imbalance`.
    pub fn busiest_by_load(&mut self, env: &mut Env) -> Option<GroupId> {
        match self.b.rules.release() {
            release if release < v2_6(32) => self.find_busiest::<v2_6_24::Rules>(env),
            release if release < v2_6(34) => self.find_busiest::<v2_6_32::Rules>(env),
            release if release < v(3, 18) => self.find_busiest::<v3_10::Rules>(env),
            release if release < v(4, 1) => self.find_busiest::<v3_18::Rules>(env),
            _ => self.find_busiest::<v4_1::Rules>(env),
        }
    }

    /// Finds the CPU of a group to pull from (`find_busiest_queue`).
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

    /// Handles the case that nothing outside the local group is runnable, so that there is no busiest group.
    fn find_nothing<G: Generation>(&mut self, env: &Env) -> Option<GroupId> {
        self.refresh_capacity(env);
        if G::NOTES_OVERLOAD && env.level + 1 == self.b.domains.of(env.cpu).len() {
            self.b.overload = self.any_of(env, &self.q.occupancy().crowded, true);
        }
        None
    }

    /// Collects the statistics of all groups of the domain (`update_sd_lb_stats`).
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

    /// Collects the statistics of one group (`update_sg_lb_stats`).
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

    /// A CPU's load, biased high for the local group and low for others (`target_load`, `source_load`: LB_BIAS).
    #[inline]
    fn biased(&self, cpu: CpuId, now: u64, index: u8, own: bool) -> u64 {
        if index == 0 || !self.b.rules.features.lb_bias {
            return now;
        }
        let lately = self.q.cpu_load(cpu, index - 1);
        if own { now.max(lately) } else { now.min(lately) }
    }

    fn is_busier<G: Generation>(&self, stats: &Stats, busiest: Option<&Stats>) -> bool {
        let none = Stats::default();
        let than = busiest.unwrap_or(&none);
        if self.b.rules.fix_group_imbalance {
            // This is the rule that the paper describes. Its patch has no group types, makes the comparison the other
            // way round, and then accepts any group.
            return (stats.kind(), stats.min_load) > (than.kind(), than.min_load);
        }
        G::is_busier(stats, than)
    }

    /// The sum of the original capacities of a group's CPUs.
    fn capacity_orig(&self, group: GroupId) -> u64 {
        let span = self.b.domains.group(group).span;
        self.span(span).iter().map(|cpu| self.b.of_cpu[*cpu as usize].capacity_orig).sum()
    }

    /// Whether an SMT sibling with less than half a CPU's capacity can still hold one task, because the higher classes
    /// leave almost all of it (`fix_small_capacity`).
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

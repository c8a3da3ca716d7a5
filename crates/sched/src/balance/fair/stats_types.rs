//! The busiest group and CPU by the types of groups: `find_busiest_group` and `find_busiest_queue` from 5.5 on.
//!
//! Each group has a type, from "has room for more" to "overloaded", and the worst is the busiest. What is evened out
//! depends on it: idle CPUs or tasks where there is room, utilisation where the other side is overloaded, loads where
//! both are.

use super::backports::{ALLOWED_BY_LOCAL, AVERAGE_IS_ENOUGH, MISFIT_SAVES_ENERGY};
use super::one::{Env, Unit, Work};
use super::queues::Queues;
use crate::balance::domains::{Flags, GroupId};
use crate::balance::rounds::Idleness;
use schedlab_base::{CpuId, Release, v};
use schedlab_sim::TaskId;

/// What a CPU is worth.
const SCALE: u64 = 1024;

/// The type of a group (`enum group_type`), from idle to overloaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// It could run more.
    #[default]
    Spare,
    /// It has what it can run.
    Full,
    /// A task is too big for its CPU.
    Misfit,
    /// Siblings of a core run tasks while a core of the own group is idle (6.6 on).
    Siblings,
    /// Tasks could not be moved below it for their affinity.
    Imbalanced,
    /// It has more than it can run.
    Overloaded,
}

/// A group as it was found (`struct sg_lb_stats`).
#[derive(Clone, Copy, Debug, Default)]
struct Stats {
    kind: Kind,
    load: u64,
    avg_load: u64,
    util: u64,
    runnable: u64,
    nr: u32,
    nr_fair: u32,
    idle_cpus: u32,
    weight: u32,
    capacity: u64,
    misfit: u64,
}

/// A domain as it was found (`struct sd_lb_stats`).
#[derive(Default)]
struct Seen {
    busiest: Option<(GroupId, Stats)>,
    local: Stats,
    own: Option<GroupId>,
    load: u64,
    capacity: u64,
    prefer_sibling: bool,
}

impl Seen {
    fn avg_load(&self) -> u64 {
        self.load * SCALE / self.capacity.max(1)
    }
}

/// Whether one capacity is greater than another, noise apart (`capacity_greater`): 4aed8aa41524, "sched/fair: Introduce a
/// CPU capacity comparison helper".
fn greater(one: u64, other: u64) -> bool {
    one * 1024 > other * 1078
}

/// Whether one capacity is less than four fifths of another (`fits_capacity`).
fn fits_capacity(one: u64, other: u64) -> bool {
    one * 1280 < other * 1024
}

/// How many tasks to move to another node (`adjust_numa_imbalance`), where the groups differ by `even`; `local` is the
/// own group's tasks and CPUs, `allowed` the imbalance that the domain allows from 5.18 on. A small one stays where it
/// is.
///
/// - 5.6 to 5.10: half of `even`, if the busiest group has more than two tasks.
/// - 5.11 to 5.17: the same if it is more than two, or one group has tasks for a quarter of its CPUs: the busiest's
///   (7d2b5dd0bcc4, "sched/numa: Allow a floating imbalance between NUMA nodes"), later the own with one task more.
/// - 5.18 on: by the domain's imbalance (e496132ebedd, "sched/fair: Adjust the allowed NUMA imbalance when SD_NUMA spans
///   multiple LLCs"), and from 6.0 on before it is halved.
fn numa_imbalance(release: Release, even: i64, local: (u32, u32), busiest: &Stats, allowed: u32) -> i64 {
    let half = even / 2;
    let stays = if release >= v(6, 0) {
        local.0 < allowed && even <= 2
    } else if release >= v(5, 18) {
        local.0 + 1 <= allowed && half <= 2
    } else if ALLOWED_BY_LOCAL.is_in(release) {
        local.0 + 1 < local.1 / 4 && half <= 2
    } else if release >= v(5, 11) {
        busiest.nr < busiest.weight / 4 && half <= 2
    } else {
        release >= v(5, 6) && busiest.nr <= 2
    };
    if stays { 0 } else { half }
}

impl<Q: Queues> Work<'_, Q> {
    /// The group to take from, what and how much.
    pub fn busiest_by_type(&mut self, env: &mut Env) -> Option<GroupId> {
        (env.imbalance, env.unit) = (0, Unit::Load);
        if !self.b.energy_aware && !self.any_of(env, &self.q.occupancy().busy, false) {
            return self.survey_nobody(env);
        }
        let mut seen = self.survey(env);
        let (group, busiest) = seen.busiest?;
        // While energy is saved, tasks that are too big are all that is moved; in older releases nothing is.
        let moves_misfit = MISFIT_SAVES_ENERGY.is_in(self.b.rules.release());
        if (busiest.kind != Kind::Misfit || !moves_misfit) && self.b.saves_energy() {
            return None;
        }
        let forced = matches!(busiest.kind, Kind::Misfit | Kind::Imbalanced);
        if !forced && self.all_is_well(env, &seen, &busiest) {
            return None;
        }
        self.how_much(env, &mut seen, &busiest);
        (env.imbalance > 0).then_some(group)
    }

    /// Beyond the own group nothing is runnable: nobody is busiest.
    fn survey_nobody(&mut self, env: &Env) -> Option<GroupId> {
        self.refresh_capacity(env);
        if env.level + 1 == self.b.domains.of(env.cpu).len() {
            self.b.overload = self.any_of(env, &self.q.occupancy().crowded, true);
        }
        self.note_cache(env);
        None
    }

    /// Searches for an idle CPU in a cache are bounded by how much it is used.
    fn note_cache(&mut self, env: &Env) {
        if env.idle != Idleness::Newly && self.b.domains.highest(env.cpu, Flags::SHARE_LLC) == Some(env.level) {
            self.q.cache_balanced(self.cx, env.cpu);
        }
    }

    /// Sums up the groups (`update_sd_lb_stats`).
    fn survey(&mut self, env: &Env) -> Seen {
        let domain = *self.b.domain(env.cpu, env.level);
        let mut seen = Seen::default();
        let (mut overload, mut overused) = (false, false);
        for at in 0..self.b.domains.group_len(&domain) {
            let group = self.b.domains.nth_group(&domain, at);
            let own = self.b.domains.has(group, env.dst);
            if own {
                seen.own = Some(group);
                self.refresh_capacity(env);
            }
            let stats = self.survey_group(env, group, own, &mut overload, &mut overused);
            if own {
                seen.local = stats;
            } else if self.is_worse(env, &seen, group, &stats) {
                seen.busiest = Some((group, stats));
            }
            seen.load += stats.load;
            seen.capacity += stats.capacity;
        }
        seen.prefer_sibling = if self.b.rules.release() >= v(6, 5) {
            // A group's flags are those of the domain that it is made of.
            seen.busiest.is_some_and(|(group, _)| self.b.domains.group(group).flags.has(Flags::PREFER_SIBLING))
        } else {
            env.level > 0 && self.b.domain(env.cpu, env.level - 1).flags.has(Flags::PREFER_SIBLING)
        };
        if env.level + 1 == self.b.domains.of(env.cpu).len() {
            self.b.overload = overload;
            self.note_overused(overused);
        } else if overused {
            self.b.note_overused();
        }
        self.note_cache(env);
        seen
    }

    /// The whole machine was seen: whether a CPU is over-utilised. If none is any more, ticks are to notice the next.
    fn note_overused(&mut self, overused: bool) {
        if std::mem::replace(&mut self.b.overused, overused) && !overused {
            (0..self.b.domains.cpus()).for_each(|cpu| self.cx.touch(cpu));
        }
    }

    /// Sums up a group (`update_sg_lb_stats`).
    fn survey_group(
        &mut self,
        env: &Env,
        group: GroupId,
        own: bool,
        overload: &mut bool,
        overused: &mut bool,
    ) -> Stats {
        let mut stats = Stats::default();
        let span = self.b.domains.group(group).span;
        let asymmetric = self.b.domain(env.cpu, env.level).flags.has(Flags::ASYM_CPUCAPACITY);
        for at in 0..self.span(span).len() {
            let cpu = self.span(span)[at];
            if !self.counts(cpu) {
                continue;
            }
            self.q.account(self.cx, cpu);
            let load = self.q.load_avg(cpu);
            stats.load += load;
            stats.util += self.q.util(cpu);
            stats.runnable += self.q.runnable_avg(cpu);
            stats.nr_fair += self.q.nr_fair(cpu);
            let nr = self.q.nr_running(cpu);
            stats.nr += nr;
            *overload |= nr > 1;
            *overused |= self.b.energy_aware && self.q.overused(self.cx, cpu, self.b.capacity(cpu));
            if nr == 0 && self.is_idle(cpu) {
                stats.idle_cpus += 1;
            } else if own {
            } else if asymmetric {
                let misfit = self.misfit(cpu);
                *overload |= misfit > stats.misfit;
                stats.misfit = stats.misfit.max(misfit);
            } else if self.b.rules.release() >= v(6, 0)
                && env.idle != Idleness::Busy
                && self.q.nr_fair(cpu) == 1
                && self.is_reduced(env, cpu)
            {
                // Before, only asymmetric domains had tasks too big for their CPU.
                stats.misfit = stats.misfit.max(load);
            }
        }
        stats.capacity = self.b.of_group[group.index()].capacity;
        stats.weight = self.span(span).len() as u32;
        stats.kind = self.kind(env, group, own, &stats);
        if stats.kind == Kind::Overloaded {
            stats.avg_load = stats.load * SCALE / stats.capacity.max(1);
        }
        stats
    }

    /// `group_classify`.
    fn kind(&self, env: &Env, group: GroupId, own: bool, stats: &Stats) -> Kind {
        let pct = self.pct(env);
        let busy = stats.capacity * 100 < stats.util * pct;
        // 070f5e860ee2, "sched/fair: Take into account runnable_avg to classify group".
        let crowded = self.b.rules.release() >= v(5, 7) && stats.capacity * pct < stats.runnable * 100;
        let siblings = !own
            && self.b.rules.release() >= v(6, 6)
            && env.idle != Idleness::Busy
            && self.b.domains.group(group).flags.has(Flags::SHARE_CPUCAPACITY)
            && stats.nr_fair > 1;
        if stats.nr > stats.weight && (busy || crowded) {
            Kind::Overloaded
        } else if self.b.of_group[group.index()].imbalance {
            Kind::Imbalanced
        } else if siblings {
            Kind::Siblings
        } else if stats.misfit > 0 {
            Kind::Misfit
        } else if stats.nr < stats.weight || !crowded && stats.capacity * 100 > stats.util * pct {
            Kind::Spare
        } else {
            Kind::Full
        }
    }

    #[inline]
    fn pct(&self, env: &Env) -> u64 {
        u64::from(self.b.domains.params(self.b.domain(env.cpu, env.level)).imbalance_pct)
    }

    /// Whether higher classes leave markedly less of a CPU than it is worth (`check_cpu_capacity`).
    pub fn is_reduced(&self, env: &Env, cpu: CpuId) -> bool {
        let state = &self.b.of_cpu[cpu as usize];
        state.capacity < state.capacity_orig && state.capacity * self.pct(env) < state.capacity_orig * 100
    }

    /// The load of the running task of a CPU that is too small for it; 0: there is none (`misfit_task_load`).
    pub fn misfit(&self, cpu: CpuId) -> u64 {
        let Some(p) = self.q.running(cpu) else { return 0 };
        let allowed = &self.cx.task(p).allowed;
        let pinned = !allowed.is_all() && allowed.count() == 1;
        if pinned || self.is_on_biggest(p, cpu) || self.fits(p, cpu) { 0 } else { self.q.task_load(p).max(1) }
    }

    /// Whether a task may use no bigger CPU (`max_allowed_capacity`, 6.10 on).
    fn is_on_biggest(&self, p: TaskId, cpu: CpuId) -> bool {
        let whole = |cpu: CpuId| self.b.of_cpu[cpu as usize].capacity_orig;
        let allowed = &self.cx.task(p).allowed;
        self.b.rules.release() >= v(6, 10)
            && (0..self.b.domains.cpus()).all(|other| !allowed.contains(other) || whole(other) <= whole(cpu))
    }

    /// Whether a CPU has a fifth more than a task needs (`task_fits_cpu`).
    pub fn fits(&self, p: TaskId, cpu: CpuId) -> bool {
        let (least, most) = self.cx.task(p).clamp;
        let state = &self.b.of_cpu[cpu as usize];
        super::fits(self.q.task_util(p), (least.into(), most.into()), state.capacity, state.capacity_orig) > 0
    }

    /// Whether a task is too big for a CPU, and there is a bigger one or higher classes leave little of this
    /// (`check_misfit_status`).
    pub fn misfit_wants_help(&self, cpu: CpuId, pct: u64) -> bool {
        let state = &self.b.of_cpu[cpu as usize];
        let most = self.b.of_cpu.iter().map(|of| of.capacity_orig).max().unwrap_or(0);
        self.misfit(cpu) > 0 && (state.capacity_orig < most || state.capacity * pct < state.capacity_orig * 100)
    }

    /// `update_sd_pick_busiest`.
    fn is_worse(&self, env: &Env, seen: &Seen, group: GroupId, stats: &Stats) -> bool {
        if stats.nr_fair == 0 {
            return false;
        }
        let release = self.b.rules.release();
        let domain = self.b.domain(env.cpu, env.level);
        if domain.flags.has(Flags::ASYM_CPUCAPACITY) {
            let state = &self.b.of_group[group.index()];
            // (The source of 6.12.107 does not ask for an idle core.)
            let core_idle = release < v(6, 12) || self.is_core_idle(env.dst);
            let (bigger, smaller) = if release >= v(5, 13) {
                let dst = self.b.of_cpu[env.dst as usize].capacity;
                (greater(dst, state.max_capacity), greater(state.min_capacity, dst))
            } else {
                // By the group of the CPU, and by a quarter.
                let own = &self.b.of_group[self.b.domains.local(domain).index()];
                (
                    fits_capacity(state.max_capacity, own.max_capacity),
                    fits_capacity(own.min_capacity, state.min_capacity),
                )
            };
            let helps = core_idle && bigger && seen.local.kind == Kind::Spare;
            if stats.kind == Kind::Misfit && !helps || stats.kind <= Kind::Full && smaller {
                return false;
            }
        }
        let Some((best, than)) = &seen.busiest else { return true };
        if stats.kind != than.kind {
            return stats.kind > than.kind;
        }
        let fewer_idle = (std::cmp::Reverse(stats.idle_cpus), stats.nr) > (std::cmp::Reverse(than.idle_cpus), than.nr);
        let core = |group: GroupId| self.b.domains.group(group).flags.has(Flags::SHARE_CPUCAPACITY);
        match stats.kind {
            Kind::Overloaded => stats.avg_load > than.avg_load,
            Kind::Imbalanced => false,
            // Of equals the last, until 6.8. (6.1 and 6.6 take the first here.)
            Kind::Misfit if release < v(6, 1) => stats.misfit >= than.misfit,
            Kind::Misfit => stats.misfit > than.misfit,
            Kind::Siblings if stats.idle_cpus > 0 || than.idle_cpus > 0 => fewer_idle,
            Kind::Siblings | Kind::Full => release >= v(6, 5) && !core(*best),
            Kind::Spare if release >= v(6, 6) && core(*best) != core(group) => !core(group) || stats.nr_fair > 1,
            Kind::Spare => fewer_idle,
        }
    }

    /// Whether there is nothing to do (`find_busiest_group`).
    fn all_is_well(&self, env: &Env, seen: &Seen, busiest: &Stats) -> bool {
        let local = &seen.local;
        if local.kind > busiest.kind {
            return true;
        }
        if local.kind == Kind::Overloaded {
            let uneven = 100 * busiest.avg_load > self.pct(env) * local.avg_load;
            if local.avg_load >= busiest.avg_load || local.avg_load >= seen.avg_load() || !uneven {
                return true;
            }
        }
        if seen.prefer_sibling && local.kind == Kind::Spare && self.is_wider(env, seen, busiest) {
            return false;
        }
        if busiest.kind == Kind::Overloaded {
            return false;
        }
        if env.idle == Idleness::Busy {
            return true;
        }
        if busiest.kind == Kind::Siblings {
            let core = |group: Option<GroupId>| {
                group.is_some_and(|group| self.b.domains.group(group).flags.has(Flags::SHARE_CPUCAPACITY))
            };
            if core(seen.own) != core(seen.busiest.map(|(group, _)| group)) {
                return false;
            }
        }
        busiest.weight > 1 && local.idle_cpus <= busiest.idle_cpus + 1 || busiest.nr_fair == 1
    }

    fn is_wider(&self, env: &Env, seen: &Seen, busiest: &Stats) -> bool {
        if self.b.rules.release() >= v(6, 6) {
            self.sibling_imbalance(env, seen, busiest) > 1
        } else {
            busiest.nr > seen.local.nr + 1
        }
    }

    /// By how many tasks one group has more than the other, by their cores: 7ff1693236f5, "sched/fair: Implement prefer
    /// sibling imbalance calculation between asymmetric groups".
    fn sibling_imbalance(&self, env: &Env, seen: &Seen, busiest: &Stats) -> i64 {
        let local = &seen.local;
        if env.idle == Idleness::Busy || busiest.nr == 0 {
            return 0;
        }
        let cores = |group: Option<GroupId>| group.map_or(1, |group| i64::from(self.b.of_group[group.index()].cores));
        let (theirs, ours) = (cores(seen.busiest.map(|(group, _)| group)), cores(seen.own));
        if theirs == ours {
            return i64::from(busiest.nr.saturating_sub(local.nr));
        }
        let gap = (ours * i64::from(busiest.nr) - theirs * i64::from(local.nr)).max(0);
        let even = (2 * gap + ours + theirs) / (ours + theirs);
        if even <= 1 && local.nr == 0 && busiest.nr > 1 { 2 } else { even }
    }

    /// `calculate_imbalance`.
    fn how_much(&self, env: &mut Env, seen: &mut Seen, busiest: &Stats) {
        let flags = self.b.domain(env.cpu, env.level).flags;
        let local = seen.local;
        (env.unit, env.imbalance) = match busiest.kind {
            Kind::Misfit if flags.has(Flags::ASYM_CPUCAPACITY) => (Unit::Misfit, 1),
            Kind::Misfit => (Unit::Load, busiest.misfit as i64),
            Kind::Siblings | Kind::Imbalanced => (Unit::Tasks, 1),
            // Within a cache from 5.10 on: 16b0a7a1a0af, "sched/fair: Ensure tasks spreading in LLC during LB".
            _ if local.kind == Kind::Spare
                && busiest.kind > Kind::Full
                && (!flags.has(Flags::SHARE_LLC) || self.b.rules.release() < v(5, 10)) =>
            {
                let room = local.capacity.max(local.util) - local.util;
                if env.idle != Idleness::Busy && room == 0 { (Unit::Tasks, 1) } else { (Unit::Util, room as i64) }
            }
            _ if local.kind == Kind::Spare => {
                let even = if busiest.weight != 1 && !seen.prefer_sibling {
                    (i64::from(local.idle_cpus) - i64::from(busiest.idle_cpus)).max(0)
                } else if self.b.rules.release() >= v(6, 6) {
                    self.sibling_imbalance(env, seen, busiest)
                } else {
                    i64::from(busiest.nr.saturating_sub(local.nr))
                };
                let allowed = self.b.domain(env.cpu, env.level).imb_numa_nr;
                let across = flags.has(Flags::NUMA);
                let rest = numa_imbalance(self.b.rules.release(), even, (local.nr, local.weight), busiest, allowed);
                (Unit::Tasks, if across { rest } else { even / 2 })
            }
            _ => (Unit::Load, self.gap(seen, busiest)),
        };
    }

    /// How much load brings both sides to the average.
    fn gap(&self, seen: &mut Seen, busiest: &Stats) -> i64 {
        let average = seen.avg_load();
        if seen.local.kind < Kind::Overloaded {
            seen.local.avg_load = seen.local.load * SCALE / seen.local.capacity.max(1);
            let above = seen.local.avg_load >= average && AVERAGE_IS_ENOUGH.is_in(self.b.rules.release());
            if seen.local.avg_load >= busiest.avg_load || above {
                return 0;
            }
        }
        // Unsigned as in the kernel: a busiest group below the average (which overlapping groups allow) has no limit.
        let theirs = busiest.avg_load.wrapping_sub(average).wrapping_mul(busiest.capacity);
        let ours = average.wrapping_sub(seen.local.avg_load).wrapping_mul(seen.local.capacity);
        (theirs.min(ours) / SCALE) as i64
    }

    /// The CPU of a group to take from (`find_busiest_queue`).
    pub fn queue_by_unit(&mut self, env: &Env, group: GroupId) -> Option<CpuId> {
        let span = self.b.domains.group(group).span;
        let asymmetric = self.b.domain(env.cpu, env.level).flags.has(Flags::ASYM_CPUCAPACITY);
        let dst = self.b.of_cpu[env.dst as usize].capacity;
        let noisy = self.b.rules.release() < v(5, 13);
        let worth_more = |dst, src| if noisy { dst >= src } else { greater(dst, src) };
        let (mut best, mut most, mut its) = (None, 0, 1);
        for &cpu in self.span(span) {
            let nr = self.q.nr_fair(cpu);
            let capacity = self.b.of_cpu[cpu as usize].capacity;
            if !self.counts(cpu)
                || self.is_placed(env, cpu)
                || nr == 0
                || asymmetric && nr == 1 && !worth_more(dst, capacity)
            {
                continue;
            }
            let (much, by) = match env.unit {
                Unit::Load => {
                    let load = self.q.load_avg(cpu);
                    if nr == 1 && load as i64 > env.imbalance && !self.is_reduced(env, cpu) {
                        continue;
                    }
                    (load, capacity)
                }
                // Until 5.6 the only task of a CPU, too.
                Unit::Util if nr <= 1 && self.b.rules.release() >= v(5, 7) => continue,
                // 7d0583cf9ec7, "sched/fair, cpufreq: Introduce 'runnable boosting'".
                Unit::Util if self.b.rules.release() >= v(6, 5) => {
                    let orig = self.b.of_cpu[cpu as usize].capacity_orig;
                    (self.q.util(cpu).max(self.q.runnable_avg(cpu).min(orig)), 1)
                }
                Unit::Util => (self.q.util(cpu), 1),
                Unit::Tasks => (u64::from(nr), 1),
                Unit::Misfit => (self.misfit(cpu), 1),
            };
            if much * its > most * by {
                (best, most, its) = (Some(cpu), much, by);
            }
        }
        best
    }

    /// Whether the running task must be pushed (`need_active_balance`).
    pub fn needs_push(&self, env: &Env) -> bool {
        let params = self.b.domains.params(self.b.domain(env.cpu, env.level));
        let stubborn = self.failed(env) > params.cache_nice_tries + 2;
        // e9b9734b7465, "sched/fair: Reduce cases for active balance".
        let any_unit = self.b.rules.release() < v(5, 12);
        stubborn && (any_unit || env.unit == Unit::Tasks) || self.pushes_by_capacity(env)
    }

    /// Whether it must be for what the CPUs are worth (`voluntary_active_balance` until 5.11): it is too big, or higher
    /// classes leave little of its CPU.
    pub fn pushes_by_capacity(&self, env: &Env) -> bool {
        if self.b.rules.typed() && env.unit == Unit::Misfit {
            return true;
        }
        let capacity = |cpu: CpuId| self.b.of_cpu[cpu as usize].capacity;
        self.b.rules.release() >= v(4, 1)
            && env.idle != Idleness::Busy
            && self.q.nr_fair(env.src) == 1
            && self.is_reduced(env, env.src)
            && capacity(env.src) * self.pct(env) < capacity(env.dst) * 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_imbalance_between_nodes_stays() {
        let moves = |release, even, local, nr| {
            numa_imbalance(release, even, (local, 16), &Stats { nr, weight: 16, ..Stats::default() }, 4)
        };
        // 5.10.223, adjust_numa_imbalance(): imbalance_min = 2; if (nr_running <= imbalance_min) return 0.
        assert_eq!([(2, 2), (2, 3), (6, 2)].map(|(even, nr)| moves(v(5, 10), even, 0, nr)), [0, 1, 0]);
        // 5.15.100: allow_numa_imbalance(local + 1, 16) is local + 1 < 4; NUMA_IMBALANCE_MIN is 2, after halving.
        assert_eq!([(4, 2), (4, 3), (6, 2)].map(|(even, local)| moves(v(5, 15), even, local, 9)), [0, 2, 3]);
        // 6.1: imb_numa_nr is 4; before halving.
        assert_eq!([(2, 3), (2, 4), (4, 3)].map(|(even, local)| moves(v(6, 1), even, local, 9)), [0, 1, 2]);
    }

    #[test]
    fn capacities_are_compared_with_some_slack() {
        assert_eq!([446, 462, 1024].map(|one| greater(one, 446)), [false, false, true]);
        assert_eq!([446, 512, 1024].map(|other| fits_capacity(446, other)), [false, false, true]);
    }
}

//! The busiest group and CPU by group type: `find_busiest_group` and `find_busiest_queue` from 5.5 on.
//!
//! Each group has a type, from "has spare capacity" to "overloaded", and the worst type is the busiest. The type
//! decides what is evened out: idle CPUs or task counts if there is spare capacity, utilisation if only the remote
//! group is overloaded, load if both are.

mod compare;
mod imbalance;

use super::backports::MISFIT_SAVES_ENERGY;
use super::load_balance::{Env, Unit, Work};
use super::queues::Queues;
use crate::balance::domains::{Flags, GroupId};
use crate::balance::rounds::Idleness;
use schedlab_base::{CpuId, v};

/// The capacity of one full CPU.
const SCALE: u64 = 1024;

/// The type of a group (`enum group_type`), from least to most busy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// It has spare capacity for more tasks.
    #[default]
    Spare,
    /// It is fully busy, but its tasks do not compete for more CPU time.
    Full,
    /// It has a task that is too big for its CPU.
    Misfit,
    /// Its SMT siblings run several tasks while a core of the local group is idle (from 6.6 on).
    Siblings,
    /// Affinity kept tasks from being moved in its child domain.
    Imbalanced,
    /// It has more tasks than it can run.
    Overloaded,
}

/// The statistics of a group (`struct sg_lb_stats`).
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

/// The statistics of a domain (`struct sd_lb_stats`).
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

/// Whether one capacity is greater than another by more than about 5% (`capacity_greater`): 4aed8aa41524, "sched/fair:
/// Introduce a CPU capacity comparison helper".
fn greater(one: u64, other: u64) -> bool {
    one * 1024 > other * 1078
}

/// Whether `one` is less than four fifths of `other` (`fits_capacity`).
fn fits_capacity(one: u64, other: u64) -> bool {
    one * 1280 < other * 1024
}

impl<Q: Queues> Work<'_, Q> {
    /// Finds the group to pull from and sets what to pull and how much in `env`.
    pub fn busiest_by_type(&mut self, env: &mut Env) -> Option<GroupId> {
        (env.imbalance, env.unit) = (0, Unit::Load);
        if !self.b.energy_aware && !self.any_of(env, &self.q.occupancy().busy, false) {
            return self.find_nothing_typed(env);
        }
        let mut seen = self.survey_types(env);
        let (group, busiest) = seen.busiest?;
        // While wake-ups go by energy, only misfit tasks are moved, and in older releases nothing is.
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

    /// Handles the case that nothing outside the local group is runnable, so that there is no busiest group.
    fn find_nothing_typed(&mut self, env: &Env) -> Option<GroupId> {
        self.refresh_capacity(env);
        if env.level + 1 == self.b.domains.of(env.cpu).len() {
            self.b.overload = self.any_of(env, &self.q.occupancy().crowded, true);
        }
        self.note_cache(env);
        None
    }

    /// Updates the bound on the search for an idle CPU from the utilisation of the cache (`update_idle_cpu_scan`).
    fn note_cache(&mut self, env: &Env) {
        if env.idle != Idleness::Newly && self.b.domains.highest(env.cpu, Flags::SHARE_LLC) == Some(env.level) {
            self.q.cache_balanced(self.cx, env.cpu);
        }
    }

    /// Collects the statistics of all groups of the domain (`update_sd_lb_stats`).
    fn survey_types(&mut self, env: &Env) -> Seen {
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
            // A group carries the flags of the child domain that it was built from.
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

    /// Records whether any CPU of the machine is overutilised. If none is any longer, the next ticks are not skipped,
    /// so that they notice the next one.
    fn note_overused(&mut self, overused: bool) {
        if std::mem::replace(&mut self.b.overused, overused) && !overused {
            (0..self.b.domains.cpus()).for_each(|cpu| self.cx.touch(cpu));
        }
    }

    /// Collects the statistics of one group (`update_sg_lb_stats`).
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
            let load = self.q.load_avg(cpu, self.cx.now());
            stats.load += load;
            stats.util += self.q.util(cpu, self.cx.now());
            stats.runnable += self.q.runnable_avg(cpu, self.cx.now());
            stats.nr_fair += self.q.nr_fair(cpu);
            let nr = self.q.nr_running(cpu);
            stats.nr += nr;
            *overload |= nr > 1;
            *overused |= self.b.energy_aware && self.q.overused(self.cx, cpu, self.b.capacity(cpu));
            if nr == 0 && self.is_idle(cpu) {
                stats.idle_cpus += 1;
            } else if own {
            } else if asymmetric {
                let misfit = self.b.of_cpu[cpu as usize].misfit;
                *overload |= misfit > stats.misfit;
                stats.misfit = stats.misfit.max(misfit);
            } else if self.b.rules.release() >= v(6, 0)
                && env.idle != Idleness::Busy
                && self.q.nr_fair(cpu) == 1
                && self.is_reduced(env, cpu)
            {
                // Before 6.0 only domains with asymmetric capacities had misfit tasks.
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

    /// Classifies a group (`group_classify`).
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

    /// The domain's `imbalance_pct`.
    #[inline]
    pub(super) fn pct(&self, env: &Env) -> u64 {
        u64::from(self.b.domains.params(self.b.domain(env.cpu, env.level)).imbalance_pct)
    }

    /// Finds the CPU of a group to pull from (`find_busiest_queue`).
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
                    let load = self.q.load_avg(cpu, self.cx.now());
                    if nr == 1 && load as i64 > env.imbalance && !self.is_reduced(env, cpu) {
                        continue;
                    }
                    (load, capacity)
                }
                // Until 5.6 a CPU's only task counted as well.
                Unit::Util if nr <= 1 && self.b.rules.release() >= v(5, 7) => continue,
                // 7d0583cf9ec7, "sched/fair, cpufreq: Introduce 'runnable boosting'".
                Unit::Util if self.b.rules.release() >= v(6, 5) => {
                    let orig = self.b.of_cpu[cpu as usize].capacity_orig;
                    (self.q.util(cpu, self.cx.now()).max(self.q.runnable_avg(cpu, self.cx.now()).min(orig)), 1)
                }
                Unit::Util => (self.q.util(cpu, self.cx.now()), 1),
                Unit::Tasks => (u64::from(nr), 1),
                Unit::Misfit => (self.b.of_cpu[cpu as usize].misfit, 1),
            };
            if much * its > most * by {
                (best, most, its) = (Some(cpu), much, by);
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_are_compared_with_some_slack() {
        assert_eq!([446, 462, 1024].map(|one| greater(one, 446)), [false, false, true]);
        assert_eq!([446, 512, 1024].map(|other| fits_capacity(446, other)), [false, false, true]);
    }
}

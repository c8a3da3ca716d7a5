//! How much to move, and in which unit (`calculate_imbalance`).

use super::{Kind, SCALE, Seen, Stats};
use crate::balance::domains::{Flags, GroupId};
use crate::balance::fair::backports::{ALLOWED_BY_LOCAL, AVERAGE_IS_ENOUGH};
use crate::balance::fair::load_balance::{Env, Unit, Work};
use crate::balance::fair::queues::Queues;
use crate::balance::rounds::Idleness;
use schedlab_base::{Release, v};

/// The number of tasks to move to another node (`adjust_numa_imbalance`). `even` is the difference between the groups,
/// `local` the local group's tasks and CPUs, and `allowed` the imbalance that the domain allows from 5.18 on. A small
/// imbalance is left alone, and the result is then 0.
///
///
/// - 5.6 to 5.10: half of `even`, if the busiest group has more than two tasks.
/// - 5.11 to 5.17: half of `even`, if that is more than two or a group has tasks for a quarter of its CPUs. The group
///   is the busiest one (7d2b5dd0bcc4, "sched/numa: Allow a floating imbalance between NUMA nodes"), and later the
///   local one with one more task.
/// - From 5.18 on: half of `even`, limited by the domain's allowed imbalance (e496132ebedd, "sched/fair: Adjust the
///   allowed NUMA imbalance when SD_NUMA spans multiple LLCs"). From 6.0 on `even` is compared before it is halved.
fn numa_imbalance(release: Release, even: i64, local: (u32, u32), busiest: &Stats, allowed: u32) -> i64 {
    let half = even / 2;
    let stays = if release >= v(5, 18) {
        local.0 < allowed && if release >= v(6, 0) { even <= 2 } else { half <= 2 }
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
    /// Whether the busiest group exceeds the local one by more than one task.
    pub(super) fn is_wider(&self, env: &Env, seen: &Seen, busiest: &Stats) -> bool {
        if self.b.rules.release() >= v(6, 6) {
            self.sibling_imbalance(env, seen, busiest) > 1
        } else {
            busiest.nr > seen.local.nr + 1
        }
    }

    /// By how many tasks the busiest group exceeds the local one, in proportion to their cores: 7ff1693236f5,
    /// "sched/fair: Implement prefer sibling imbalance calculation between asymmetric groups".
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

    /// Sets the unit and the amount of the imbalance (`calculate_imbalance`).
    pub(super) fn how_much(&self, env: &mut Env, seen: &mut Seen, busiest: &Stats) {
        let flags = self.b.domain(env.cpu, env.level).flags;
        let local = seen.local;
        (env.unit, env.imbalance) = match busiest.kind {
            Kind::Misfit if flags.has(Flags::ASYM_CPUCAPACITY) => (Unit::Misfit, 1),
            Kind::Misfit => (Unit::Load, busiest.misfit as i64),
            Kind::Siblings | Kind::Imbalanced => (Unit::Tasks, 1),
            // Not within a cache from 5.10 on: 16b0a7a1a0af, "sched/fair: Ensure tasks spreading in LLC during LB".
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

    /// The load to move so that neither group crosses the domain's average.
    fn gap(&self, seen: &mut Seen, busiest: &Stats) -> i64 {
        let average = seen.avg_load();
        if seen.local.kind < Kind::Overloaded {
            seen.local.avg_load = seen.local.load * SCALE / seen.local.capacity.max(1);
            let above = seen.local.avg_load >= average && AVERAGE_IS_ENOUGH.is_in(self.b.rules.release());
            if seen.local.avg_load >= busiest.avg_load || above {
                return 0;
            }
        }
        // Unsigned as in the kernel: a busiest group below the average, which overlapping groups allow, sets no limit.
        let theirs = busiest.avg_load.wrapping_sub(average).wrapping_mul(busiest.capacity);
        let ours = average.wrapping_sub(seen.local.avg_load).wrapping_mul(seen.local.capacity);
        (theirs.min(ours) / SCALE) as i64
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
}

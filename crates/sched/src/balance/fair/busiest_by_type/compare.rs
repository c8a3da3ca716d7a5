//! Which of two groups is busier (`update_sd_pick_busiest`), and whether a domain is balanced (`find_busiest_group`).

use super::{Kind, Seen, Stats, fits_capacity, greater};
use crate::balance::domains::{Flags, GroupId};
use crate::balance::fair::backports::MISFIT_TO_IDLE_CORE;
use crate::balance::fair::load_balance::{Env, Work};
use crate::balance::fair::queues::Queues;
use crate::balance::rounds::Idleness;
use schedlab_base::v;

impl<Q: Queues> Work<'_, Q> {
    /// Whether `group` is busier than the busiest group so far (`update_sd_pick_busiest`).
    pub(super) fn is_worse(&self, env: &Env, seen: &Seen, group: GroupId, stats: &Stats) -> bool {
        if stats.nr_fair == 0 {
            return false;
        }
        let release = self.b.rules.release();
        let domain = self.b.domain(env.cpu, env.level);
        if domain.flags.has(Flags::ASYM_CPUCAPACITY) {
            let state = &self.b.of_group[group.index()];
            let core_idle = !MISFIT_TO_IDLE_CORE.is_in(release) || self.is_core_idle(env.dst);
            let (bigger, smaller) = if release >= v(5, 13) {
                let dst = self.b.of_cpu[env.dst as usize].capacity;
                (greater(dst, state.max_capacity), greater(state.min_capacity, dst))
            } else {
                // Until 5.12 the local group's capacities are compared instead of the CPU's, with a margin of a
                // quarter.
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
            // "sched/fair: Simplify the update_sd_pick_busiest() logic" (6.9): until then the last of several wins.
            Kind::Misfit if release < v(6, 9) => stats.misfit >= than.misfit,
            Kind::Misfit => stats.misfit > than.misfit,
            Kind::Siblings if stats.idle_cpus > 0 || than.idle_cpus > 0 => fewer_idle,
            Kind::Siblings | Kind::Full => release >= v(6, 5) && !core(*best),
            Kind::Spare if release >= v(6, 6) && core(*best) != core(group) => !core(group) || stats.nr_fair > 1,
            Kind::Spare => fewer_idle,
        }
    }

    /// Whether the domain is balanced, so that nothing moves (`find_busiest_group`).
    pub(super) fn all_is_well(&self, env: &Env, seen: &Seen, busiest: &Stats) -> bool {
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
}

//! Removal of domains that contribute nothing, before they are attached to a CPU (`cpu_attach_domain`).

use super::flags::Flags;
use super::model::Domain;
use super::pool::Pool;
use schedlab_base::{Release, v, v2_6};

/// The release's rules for which flags keep a domain.
pub(super) struct Rules {
    /// Flags that only keep a domain if it has at least two groups.
    need_groups: Flags,
    /// Flags that keep a domain with a single group too.
    need_none: Flags,
    /// Flags of a parent that are ignored if the parent has a single group.
    idle_in_parent: Flags,
    /// Whether affine wake-ups in a child make the parent's wake-up balancing flag redundant.
    affine_covers: bool,
    /// Whether a removed parent passes its prefer-sibling flag on to the child.
    hand_down: bool,
    /// Whether the loop skips a comparison after a removal, because it goes on from the removed parent.
    skips: bool,
}

const BALANCING: Flags =
    Flags::all(&[Flags::LOAD_BALANCE, Flags::BALANCE_NEWIDLE, Flags::BALANCE_FORK, Flags::BALANCE_EXEC]);
const SHARING: Flags = Flags::all(&[Flags::SHARE_CPUCAPACITY, Flags::SHARE_LLC]);
const AT_WAKEUP: Flags = Flags::all(&[Flags::WAKE_IDLE, Flags::WAKE_AFFINE, Flags::WAKE_BALANCE]);
/// Since 5.10 each flag declares whether it needs several groups. All but the one for affine wake-ups do.
const ALL_BUT_AFFINE: Flags = Flags::all(&[
    BALANCING,
    SHARING,
    Flags::ASYM_CPUCAPACITY,
    Flags::ASYM_CPUCAPACITY_FULL,
    Flags::CLUSTER,
    Flags::SERIALIZE,
    Flags::PREFER_SIBLING,
    Flags::OVERLAP,
    Flags::NUMA,
]);

impl Rules {
    /// The rules of a release. `None` before 2.6.18, where nothing is removed.
    pub fn of(release: Release, nodes: usize) -> Option<Self> {
        let serialize = if nodes == 1 { Flags::SERIALIZE } else { Flags::NONE };
        let both = BALANCING.with(SHARING);
        let old = Self {
            need_groups: both,
            need_none: Flags::WAKE_AFFINE,
            idle_in_parent: both.with(serialize),
            affine_covers: false,
            hand_down: false,
            skips: false,
        };
        match release {
            r if r < v2_6(18) => None,
            // Both sets of flags and the loops of `cpu_attach_domain` changed between 2.6.24 and 2.6.32.
            r if r < v2_6(32) => {
                let needs = if release < v2_6(24) { BALANCING } else { both };
                Some(Self {
                    need_groups: needs,
                    need_none: AT_WAKEUP,
                    idle_in_parent: needs,
                    affine_covers: true,
                    skips: true,
                    ..old
                })
            }
            r if r < v(3, 12) => Some(old),
            // "sched: Fix the sd_parent_degenerate() code" (3.12).
            r if r < v(5, 10) => {
                Some(Self { idle_in_parent: old.idle_in_parent.with(Flags::PREFER_SIBLING), hand_down: true, ..old })
            }
            // "sched/topology: Use prebuilt SD flag degeneration mask" (5.10).
            _ => Some(Self { need_groups: ALL_BUT_AFFINE, idle_in_parent: ALL_BUT_AFFINE, hand_down: true, ..old }),
        }
    }

    fn degenerate(&self, pool: &Pool, domain: &Domain) -> bool {
        if pool.weight(domain.span) == 1 {
            return true;
        }
        let groups = pool.rings[domain.ring as usize].len();
        let useful = domain.flags.has(self.need_none) || groups > 1 && domain.flags.has(self.need_groups);
        !useful
    }

    fn adds_nothing(&self, pool: &Pool, child: &Domain, parent: &Domain) -> bool {
        if self.degenerate(pool, parent) {
            return true;
        }
        if child.span != parent.span {
            return false;
        }
        let mut flags = parent.flags;
        if self.affine_covers && child.flags.has(Flags::WAKE_AFFINE) {
            flags = flags.without(Flags::WAKE_BALANCE);
        }
        if pool.rings[parent.ring as usize].len() == 1 {
            flags = flags.without(self.idle_in_parent);
        }
        flags.without(child.flags) == Flags::NONE
    }

    /// Removes the domains that add nothing from a CPU's list, which is sorted smallest first.
    pub fn prune(&self, pool: &Pool, domains: &mut Vec<Domain>) {
        let mut at = 0;
        while at + 1 < domains.len() {
            if self.adds_nothing(pool, &domains[at], &domains[at + 1]) {
                let parent = domains.remove(at + 1);
                if self.hand_down {
                    domains[at].flags = domains[at].flags.with(parent.flags.and(Flags::PREFER_SIBLING));
                }
                at += usize::from(self.skips);
            } else {
                at += 1;
            }
        }
        if domains.first().is_some_and(|first| self.degenerate(pool, first)) {
            domains.remove(0);
        }
    }
}

//! How each release builds its domains: names, flags and parameters.

use super::flags::{Flags, Words};
use super::model::Params;
use crate::tunables::{Handle, Values};
use schedlab_base::{Release, v};
use schedlab_machine::{Machine, RECLAIM_DISTANCE};

const OLD: Words = Words {
    smt: "SIBLING",
    package: "CPU",
    share_cpucapacity: "SD_SHARE_CPUPOWER",
    share_llc: "SD_SHARE_PKG_RESOURCES",
    hidden: Flags::NONE,
};
const DIE: Words = Words {
    smt: "SMT",
    package: "DIE",
    share_cpucapacity: "SD_SHARE_CPUCAPACITY",
    share_llc: "SD_SHARE_PKG_RESOURCES",
    hidden: Flags::NONE,
};
const PKG: Words = Words { package: "PKG", ..DIE };
const LLC: Words = Words { share_llc: "SD_SHARE_LLC", ..PKG };
/// In 6.18 SD_NUMA alone says that groups can overlap.
const NUMA: Words = Words { hidden: Flags::OVERLAP, ..LLC };

impl Words {
    /// The names that a release uses.
    pub(super) fn of(release: Release) -> &'static Self {
        match release {
            r if r >= v(6, 18) => &NUMA,
            // "sched/topology: Rename SD_SHARE_PKG_RESOURCES to SD_SHARE_LLC" (6.9).
            r if r >= v(6, 9) => &LLC,
            // "sched/topology: Rename 'DIE' domain to 'PKG'" (6.7).
            r if r >= v(6, 7) => &PKG,
            // "sched: Rework sched_domain topology definition", "sched: Rename capacity related flags" (3.16).
            r if r >= v(3, 16) => &DIE,
            _ => &OLD,
        }
    }
}

/// Fixes of bugs in the construction of domains that "A Decade of Wasted Cores" (EuroSys 2016) describes. All are off
/// by default, as in the original kernels, and have no effect in releases without the bugs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixes {
    /// Each CPU builds its overlapping groups from its own point of view, and not from that of the lowest CPU of the
    /// span.
    pub group_construction: bool,
    /// The levels across nodes are kept when a CPU comes back online.
    pub missing_domains: bool,
}

/// The fix of the group construction as a tunable.
pub const GROUP_CONSTRUCTION: Handle<bool> =
    Handle::switch("fix.group_construction", false, "each CPU has the overlapping groups as it sees them itself");

/// The fix of the missing domains as a tunable.
pub const MISSING_DOMAINS: Handle<bool> =
    Handle::switch("fix.missing_domains", false, "levels across nodes outlive that a CPU goes and comes back");

impl Fixes {
    /// The fixes that are switched on in `values`. A tunable that the release does not have counts as off.
    #[must_use]
    pub fn of(values: &Values) -> Self {
        let on = |handle| values.find(handle) == Some(true);
        Self { group_construction: on(&GROUP_CONSTRUCTION), missing_domains: on(&MISSING_DOMAINS) }
    }
}

/// The flag of domains that cover all CPU capacities ("sched/core: Introduce SD_ASYM_CPUCAPACITY_FULL sched_domain
/// flag", 5.14).
pub(super) fn all_capacities(release: Release) -> Flags {
    if release >= v(5, 14) { Flags::ASYM_CPUCAPACITY_FULL } else { Flags::ASYM_CPUCAPACITY }
}

/// Whether the levels across nodes are lost when a CPU comes back online. The paper says since 3.19, but the code is in
/// 3.18 ("sched/x86: Add new topology for multi-NUMA-node CPUs"). "sched/core, x86/topology: Fix NUMA in package
/// topology bug" (4.9) fixes this.
pub(super) fn loses_levels(release: Release) -> bool {
    (v(3, 18)..v(4, 9)).contains(&release)
}

/// Whether a CPU that is going offline still counts when the domains of the other CPUs are built, which only affects
/// their intervals. It does if the rebuild happens while the CPU goes offline. From "sched/cpuset/pm: Fix cpuset vs.
/// suspend-resume bugs" (4.14) until "cgroup/cpuset: Make cpuset hotplug processing synchronous" (6.10) a work item
/// rebuilt them after the CPU was gone.
pub(super) fn counts_the_leaving(release: Release) -> bool {
    !(v(4, 14)..v(6, 10)).contains(&release)
}

/// The flags and the parameters of a topology level (3.10 and later), given what its CPUs share.
pub(super) fn level(release: Release, machine: &Machine, shares: Shares, weight: u32) -> (Flags, Params) {
    // "sched: Rework sched_domain topology definition" (3.16).
    let (flags, params) =
        if release >= v(3, 16) { sd_init(release, shares, weight) } else { level_3_10(shares, weight) };
    // "sched/topology: Improve load balancing on AMD EPYC systems" (5.4) made it a variable, which is 32 there.
    let reclaim = if release >= v(5, 4) { machine.reclaim_distance } else { RECLAIM_DISTANCE };
    match shares {
        Shares::Distance(distance) if distance > reclaim => (flags.without(NEAR), params),
        _ => (flags, params),
    }
}

/// What the CPUs of a level's domain have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shares {
    /// A core.
    Core,
    /// An L2 cache.
    Cluster,
    /// The last-level cache.
    Cache,
    /// A node, or the package, which is one level below the node.
    Node,
    /// Nodes within this distance.
    Distance(u32),
}

const EVERYWHERE: Flags =
    Flags::all(&[Flags::BALANCE_NEWIDLE, Flags::BALANCE_EXEC, Flags::BALANCE_FORK, Flags::WAKE_AFFINE]);
const NEAR: Flags = Flags::all(&[Flags::BALANCE_EXEC, Flags::BALANCE_FORK, Flags::WAKE_AFFINE]);

/// The flags and the parameters of a level since 3.16 (`sd_init`).
fn sd_init(release: Release, shares: Shares, weight: u32) -> (Flags, Params) {
    // "sched/fair: Reduce busy load balance interval", "sched/fair: Reduce minimal imbalance threshold" (5.10).
    let (busy_factor, imbalance_pct) = if release >= v(5, 10) { (16, 117) } else { (32, 125) };
    let params = Params::of_weight(weight, busy_factor, imbalance_pct);
    let params = match shares {
        // "sched/topology: Remove the ::smt_gain field from 'struct sched_domain'" (5.0).
        Shares::Core => Params { imbalance_pct: 110, smt_gain: if release >= v(5, 0) { 0 } else { 1178 }, ..params },
        Shares::Cluster | Shares::Cache => Params { imbalance_pct: 117, cache_nice_tries: 1, busy_idx: 2, ..params },
        Shares::Node => Params { cache_nice_tries: 1, busy_idx: 2, idle_idx: 1, ..params },
        Shares::Distance(_) => Params { cache_nice_tries: 2, busy_idx: 3, idle_idx: 2, ..params },
    };
    // The decayed loads that these indices select were removed in 5.3.
    let params = if release >= v(5, 3) { Params { busy_idx: 0, idle_idx: 0, ..params } } else { params };
    (flags(release, shares), params)
}

fn flags(release: Release, shares: Shares) -> Flags {
    // "sched/topology: Kill SD_LOAD_BALANCE" (5.8).
    let base = if release >= v(5, 8) { EVERYWHERE } else { EVERYWHERE.with(Flags::LOAD_BALANCE) };
    let prefer_sibling = match shares {
        // "sched: Add SD_PREFER_SIBLING for SMT level" (4.1).
        Shares::Core => release >= v(4, 1),
        Shares::Cluster | Shares::Cache => release >= v(4, 15),
        Shares::Node => true,
        Shares::Distance(_) => false,
    };
    let flags = if prefer_sibling { base.with(Flags::PREFER_SIBLING) } else { base };
    match shares {
        Shares::Core => flags.with(Flags::SHARE_CPUCAPACITY).with(Flags::SHARE_LLC),
        // "sched: Add cpus_share_resources API" (6.7).
        Shares::Cluster if release >= v(6, 7) => flags.with(Flags::CLUSTER).with(Flags::SHARE_LLC),
        Shares::Cluster | Shares::Cache => flags.with(Flags::SHARE_LLC),
        Shares::Node => flags,
        Shares::Distance(_) => flags.with(Flags::NUMA).with(Flags::SERIALIZE),
    }
}

/// The flags and the parameters of a level in 3.10 (the `SD_*_INIT` macros and `sd_numa_init`).
fn level_3_10(shares: Shares, weight: u32) -> (Flags, Params) {
    let flags = EVERYWHERE.with(Flags::LOAD_BALANCE);
    let fixed = |max, pct| Params::fixed(1, max, 64, pct);
    match shares {
        Shares::Core => {
            let shared = Flags::SHARE_CPUCAPACITY.with(Flags::SHARE_LLC);
            (flags.with(shared), Params { smt_gain: 1178, ..fixed(2, 110) })
        }
        Shares::Cluster | Shares::Cache => {
            (flags.with(Flags::SHARE_LLC), Params { cache_nice_tries: 1, busy_idx: 2, ..fixed(4, 125) })
        }
        Shares::Node => {
            let params = Params { cache_nice_tries: 1, busy_idx: 2, idle_idx: 1, ..fixed(4, 125) };
            (flags.with(Flags::PREFER_SIBLING), params)
        }
        Shares::Distance(_) => {
            let flags = flags.with(Flags::SERIALIZE);
            let params = Params::of_weight(weight, 32, 125);
            (flags, Params { cache_nice_tries: 2, busy_idx: 3, idle_idx: 2, ..params })
        }
    }
}

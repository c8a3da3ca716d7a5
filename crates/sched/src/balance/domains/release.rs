//! Which release builds its domains how: names, flags and parameters.

use super::flags::{Flags, Words};
use super::model::Params;
use crate::tunables::Tunable;
use schedlab_base::{Error, Release, Result, nearest, v, v2_6};
use std::cmp::PartialOrd;

/// The generations of the code that builds domains, the oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // Each is the release that its name says.
pub enum Era {
    V2_6_0,
    V2_6_11,
    V2_6_18,
    V2_6_24,
    V2_6_32,
    V3_10,
    V3_18,
    V4_1,
    V6_1,
    V6_6,
    V6_12,
}

/// A release as far as its domains go.
#[derive(Debug)]
pub struct Style {
    /// The kernel's name: `linux-6.1`.
    pub name: &'static str,
    /// Which release it is.
    pub release: Release,
    /// Its generation.
    pub era: Era,
    /// How it calls things.
    pub words: &'static Words,
}

const OLD: Words = Words {
    smt: "SIBLING",
    package: "CPU",
    share_cpucapacity: "SD_SHARE_CPUPOWER",
    share_llc: "SD_SHARE_PKG_RESOURCES",
};
const DIE: Words = Words {
    smt: "SMT",
    package: "DIE",
    share_cpucapacity: "SD_SHARE_CPUCAPACITY",
    share_llc: "SD_SHARE_PKG_RESOURCES",
};
const PKG: Words = Words { package: "PKG", ..DIE };
const LLC: Words = Words { share_llc: "SD_SHARE_LLC", ..PKG };

/// The releases whose domains are modelled, the oldest first.
pub static STYLES: &[Style] = &[
    Style { name: "linux-2.6.0", release: v2_6(0), era: Era::V2_6_0, words: &OLD },
    Style { name: "linux-2.6.11", release: v2_6(11), era: Era::V2_6_11, words: &OLD },
    Style { name: "linux-2.6.18", release: v2_6(18), era: Era::V2_6_18, words: &OLD },
    Style { name: "linux-2.6.24", release: v2_6(24), era: Era::V2_6_24, words: &OLD },
    Style { name: "linux-2.6.32", release: v2_6(32), era: Era::V2_6_32, words: &OLD },
    Style { name: "linux-3.10", release: v(3, 10), era: Era::V3_10, words: &OLD },
    Style { name: "linux-3.18", release: v(3, 18), era: Era::V3_18, words: &DIE },
    Style { name: "linux-4.1", release: v(4, 1), era: Era::V4_1, words: &DIE },
    Style { name: "linux-6.1", release: v(6, 1), era: Era::V6_1, words: &DIE },
    Style { name: "linux-6.6", release: v(6, 6), era: Era::V6_6, words: &PKG },
    Style { name: "linux-6.12", release: v(6, 12), era: Era::V6_12, words: &LLC },
];

/// The release of that name.
///
/// # Errors
/// When the domains of no such release are modelled: the error names the nearest.
pub fn find(name: &str) -> Result<&'static Style> {
    STYLES.iter().find(|release| release.name == name).ok_or_else(|| {
        let names = STYLES.iter().map(|release| release.name);
        let mend = nearest(name, names.clone()).map_or_else(
            || format!("there are those of {}", names.collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean \"{near}\"?"),
        );
        Error::input(format!("there are no scheduling domains of \"{name}\"")).mend(mend)
    })
}

/// Repairs of what "A Decade of Wasted Cores" (EuroSys 2016) found wrong in how domains are built. All are off in the
/// kernel as it was, and there is nothing to repair in releases that are older or newer than the bugs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fixes {
    /// A CPU's groups of overlapping levels are built as it sees them, not as the lowest CPU of the span does.
    pub group_construction: bool,
    /// The levels across nodes are kept when a CPU comes back.
    pub missing_domains: bool,
}

/// The repairs of [`Fixes`] as tunables, for the profiles of the releases that have the bugs.
pub const FIXES: [Tunable; 2] = [
    Tunable::switch("fix.group_construction", false, "each CPU has the overlapping groups as it sees them itself"),
    Tunable::switch("fix.missing_domains", false, "levels across nodes outlive that a CPU goes and comes back"),
];

impl Style {
    /// The repairs that can be switched on in it: those of [`FIXES`] that it needs. The groups are wrong since 3.9, the
    /// levels are lost since 3.18 (the paper says 3.19; the code is in 3.18), both until 4.x.
    #[must_use]
    pub fn fixes(&self) -> &'static [Tunable] {
        match self.era {
            Era::V3_10 => &FIXES[..1],
            Era::V3_18 | Era::V4_1 => &FIXES,
            _ => &[],
        }
    }

    /// Whether a CPU that goes offline is still counted when the remaining CPUs' domains are built, which shows in
    /// their intervals and nowhere else. Until 4.10 and again since 6.10 the rebuilding is done while the CPU goes;
    /// between these a work item did it, once the CPU was gone.
    pub(super) fn counts_the_leaving(&self) -> bool {
        self.era <= Era::V4_1 || self.era == Era::V6_12
    }

    /// The parameters and the flags of a topology level (3.10 and later), by what its CPUs share.
    pub(super) fn level(&self, shares: Shares, weight: u32) -> (Flags, Params) {
        match self.era {
            Era::V3_10 => level_3_10(shares, weight),
            Era::V3_18 | Era::V4_1 => level_4_1(shares, weight, self.era),
            _ => level_6(shares, weight, self.era),
        }
    }
}

/// What makes CPUs one level's domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shares {
    /// A core.
    Core,
    /// An L2.
    Cluster,
    /// The last-level cache.
    Cache,
    /// A node (or, one level below it, its package).
    Node,
    /// A distance of at most so much.
    Distance(u32),
}

/// Beyond this distance exec, fork and wake-ups stay away (`RECLAIM_DISTANCE`; 32 on AMD's EPYC since 5.4, of which
/// a machine file says nothing).
const RECLAIM_DISTANCE: u32 = 30;

const EVERYWHERE: Flags =
    Flags::all(&[Flags::BALANCE_NEWIDLE, Flags::BALANCE_EXEC, Flags::BALANCE_FORK, Flags::WAKE_AFFINE]);
const NEAR: Flags = Flags::all(&[Flags::BALANCE_EXEC, Flags::BALANCE_FORK, Flags::WAKE_AFFINE]);

fn described(shares: Shares, era: Era) -> Flags {
    match shares {
        Shares::Core => Flags::SHARE_CPUCAPACITY.with(Flags::SHARE_LLC),
        Shares::Cluster if era >= Era::V6_12 => Flags::CLUSTER.with(Flags::SHARE_LLC),
        Shares::Cluster | Shares::Cache => Flags::SHARE_LLC,
        Shares::Node => Flags::NONE,
        Shares::Distance(_) => Flags::NUMA,
    }
}

/// `sd_init` of 6.1 to 6.12.
fn level_6(shares: Shares, weight: u32, era: Era) -> (Flags, Params) {
    let flags = EVERYWHERE.with(Flags::PREFER_SIBLING).with(described(shares, era));
    let params = Params::of_weight(weight, 16, 117);
    match shares {
        Shares::Core => (flags, Params { imbalance_pct: 110, ..params }),
        Shares::Cluster | Shares::Cache | Shares::Node => (flags, Params { cache_nice_tries: 1, ..params }),
        Shares::Distance(distance) => {
            let flags = flags.without(Flags::PREFER_SIBLING).with(Flags::SERIALIZE).without(too_far(distance));
            (flags, Params { cache_nice_tries: 2, ..params })
        }
    }
}

fn too_far(distance: u32) -> Flags {
    if distance > RECLAIM_DISTANCE { NEAR } else { Flags::NONE }
}

/// `sd_init` of 3.18 and 4.1.
fn level_4_1(shares: Shares, weight: u32, era: Era) -> (Flags, Params) {
    let flags = EVERYWHERE.with(Flags::LOAD_BALANCE).with(described(shares, era));
    let params = Params::of_weight(weight, 32, 125);
    match shares {
        Shares::Core => {
            let spread = if era >= Era::V4_1 { Flags::PREFER_SIBLING } else { Flags::NONE };
            (flags.with(spread), Params { imbalance_pct: 110, smt_gain: 1178, ..params })
        }
        Shares::Cluster | Shares::Cache => {
            (flags, Params { imbalance_pct: 117, cache_nice_tries: 1, busy_idx: 2, ..params })
        }
        Shares::Node => {
            (flags.with(Flags::PREFER_SIBLING), Params { cache_nice_tries: 1, busy_idx: 2, idle_idx: 1, ..params })
        }
        Shares::Distance(distance) => {
            let flags = flags.with(Flags::SERIALIZE).without(too_far(distance));
            (flags, Params { cache_nice_tries: 2, busy_idx: 3, idle_idx: 2, ..params })
        }
    }
}

/// The `SD_*_INIT` and `sd_numa_init` of 3.10.
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
        Shares::Distance(distance) => {
            let flags = flags.with(Flags::SERIALIZE).without(too_far(distance));
            let params = Params::of_weight(weight, 32, 125);
            (flags, Params { cache_nice_tries: 2, busy_idx: 3, idle_idx: 2, ..params })
        }
    }
}

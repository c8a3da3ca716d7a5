//! The flags of a domain, and the names that the releases give them.

/// A set of domain flags. A flag keeps its meaning across releases, while its name may change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flags(u32);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// Periodic balancing happens in this domain. Every domain has it, so the flag was removed in 5.8.
    pub const LOAD_BALANCE: Self = Self(1);
    /// A newly idle CPU pulls tasks within this domain.
    pub const BALANCE_NEWIDLE: Self = Self(1 << 1);
    /// A task that calls exec may be placed on another CPU of this domain.
    pub const BALANCE_EXEC: Self = Self(1 << 2);
    /// A new task may be placed on another CPU of this domain.
    pub const BALANCE_FORK: Self = Self(1 << 3);
    /// A wake-up looks for an idle CPU in this domain (2.6.11 to 2.6.24).
    pub const WAKE_IDLE: Self = Self(1 << 4);
    /// A wake-up may move the task to the waker's CPU.
    pub const WAKE_AFFINE: Self = Self(1 << 5);
    /// A wake-up balances load within this domain (2.6.11 to 2.6.24).
    pub const WAKE_BALANCE: Self = Self(1 << 6);
    /// The CPUs differ in capacity.
    pub const ASYM_CPUCAPACITY: Self = Self(1 << 7);
    /// The CPUs cover every capacity that online CPUs have.
    pub const ASYM_CPUCAPACITY_FULL: Self = Self(1 << 8);
    /// The CPUs are SMT siblings that share a core's execution units.
    pub const SHARE_CPUCAPACITY: Self = Self(1 << 9);
    /// The CPUs share an L2 cache or the tags of the last-level cache.
    pub const CLUSTER: Self = Self(1 << 10);
    /// The CPUs share a cache.
    pub const SHARE_LLC: Self = Self(1 << 11);
    /// Only one CPU of the machine balances at this level at a time.
    pub const SERIALIZE: Self = Self(1 << 12);
    /// Tasks are spread over the domain's sibling domains before they share a group.
    pub const PREFER_SIBLING: Self = Self(1 << 13);
    /// The groups of the domain may overlap.
    pub const OVERLAP: Self = Self(1 << 14);
    /// The domain spans several nodes.
    pub const NUMA: Self = Self(1 << 15);

    /// The union of two sets.
    #[must_use]
    pub const fn with(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    /// The flags of this set that are not in `less`.
    #[must_use]
    pub const fn without(self, less: Self) -> Self {
        Self(self.0 & !less.0)
    }

    /// The intersection of two sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether the set has at least one flag of `any`.
    #[inline]
    #[must_use]
    pub const fn has(self, any: Self) -> bool {
        self.0 & any.0 != 0
    }

    /// The union of several sets.
    #[must_use]
    pub const fn all(flags: &[Self]) -> Self {
        let (mut sum, mut i) = (0, 0);
        while i < flags.len() {
            sum |= flags[i].0;
            i += 1;
        }
        Self(sum)
    }

    /// The names of the flags in a release, in the order in which the flags are defined here.
    pub fn names(self, words: &'static Words) -> impl Iterator<Item = &'static str> {
        let shown = self.without(words.hidden);
        (0..NAMES.len()).filter(move |bit| shown.0 >> bit & 1 == 1).map(move |bit| match Self(1 << bit) {
            Self::SHARE_CPUCAPACITY => words.share_cpucapacity,
            Self::SHARE_LLC => words.share_llc,
            _ => NAMES[bit],
        })
    }
}

/// The names by bit, as in newer releases.
const NAMES: [&str; 16] = [
    "SD_LOAD_BALANCE",
    "SD_BALANCE_NEWIDLE",
    "SD_BALANCE_EXEC",
    "SD_BALANCE_FORK",
    "SD_WAKE_IDLE",
    "SD_WAKE_AFFINE",
    "SD_WAKE_BALANCE",
    "SD_ASYM_CPUCAPACITY",
    "SD_ASYM_CPUCAPACITY_FULL",
    "SD_SHARE_CPUCAPACITY",
    "SD_CLUSTER",
    "SD_SHARE_LLC",
    "SD_SERIALIZE",
    "SD_PREFER_SIBLING",
    "SD_OVERLAP",
    "SD_NUMA",
];

/// The names that a release uses for levels and for flags that were renamed.
#[derive(Debug, PartialEq, Eq)]
pub struct Words {
    /// The level of SMT siblings.
    pub smt: &'static str,
    /// The level of a node's CPUs.
    pub package: &'static str,
    /// The name of [`Flags::SHARE_CPUCAPACITY`].
    pub share_cpucapacity: &'static str,
    /// The name of [`Flags::SHARE_LLC`].
    pub share_llc: &'static str,
    /// The flags that the release does not have and that only mark something here.
    pub hidden: Flags,
}

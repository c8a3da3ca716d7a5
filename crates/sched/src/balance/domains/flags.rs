//! What a domain says of its CPUs and what may be done in it.

/// Flags of a domain, by the meaning that they keep over the releases; their names change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Flags(u32);

impl Flags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// Periodic balancing happens here (every domain, so the flag went in 5.7).
    pub const LOAD_BALANCE: Self = Self(1);
    /// A CPU that becomes idle pulls here.
    pub const BALANCE_NEWIDLE: Self = Self(1 << 1);
    /// A task that calls exec may be put on another CPU of it.
    pub const BALANCE_EXEC: Self = Self(1 << 2);
    /// A new task may be put on another CPU of it.
    pub const BALANCE_FORK: Self = Self(1 << 3);
    /// A wake-up looks for an idle CPU here (2.6.11 to 2.6.24).
    pub const WAKE_IDLE: Self = Self(1 << 4);
    /// A wake-up may bring the task to the waker's CPU.
    pub const WAKE_AFFINE: Self = Self(1 << 5);
    /// A wake-up evens out loads here (2.6.11 to 2.6.24).
    pub const WAKE_BALANCE: Self = Self(1 << 6);
    /// Its CPUs are of different capacity.
    pub const ASYM_CPUCAPACITY: Self = Self(1 << 7);
    /// Its CPUs are of every capacity that the online CPUs have.
    pub const ASYM_CPUCAPACITY_FULL: Self = Self(1 << 8);
    /// Its CPUs share the units of one core.
    pub const SHARE_CPUCAPACITY: Self = Self(1 << 9);
    /// Its CPUs share an L2 or the tags of the last-level cache.
    pub const CLUSTER: Self = Self(1 << 10);
    /// Its CPUs share a cache.
    pub const SHARE_LLC: Self = Self(1 << 11);
    /// Only one CPU of the machine balances at this level at a time.
    pub const SERIALIZE: Self = Self(1 << 12);
    /// Tasks are spread over its groups' siblings before they share a group.
    pub const PREFER_SIBLING: Self = Self(1 << 13);
    /// Its groups may overlap.
    pub const OVERLAP: Self = Self(1 << 14);
    /// It crosses nodes.
    pub const NUMA: Self = Self(1 << 15);

    /// These and those.
    #[must_use]
    pub const fn with(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }

    /// These but for those.
    #[must_use]
    pub const fn without(self, less: Self) -> Self {
        Self(self.0 & !less.0)
    }

    /// Those that are in both.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether one of `any` is among them.
    #[inline]
    #[must_use]
    pub const fn has(self, any: Self) -> bool {
        self.0 & any.0 != 0
    }

    /// All of these.
    #[must_use]
    pub const fn all(flags: &[Self]) -> Self {
        let (mut sum, mut i) = (0, 0);
        while i < flags.len() {
            sum |= flags[i].0;
            i += 1;
        }
        Self(sum)
    }

    /// Their names in a release, in the order of its own flags.
    pub fn names(self, words: &'static Words) -> impl Iterator<Item = &'static str> {
        (0..NAMES.len()).filter(move |bit| self.0 >> bit & 1 == 1).map(move |bit| match Self(1 << bit) {
            Self::SHARE_CPUCAPACITY => words.share_cpucapacity,
            Self::SHARE_LLC => words.share_llc,
            _ => NAMES[bit],
        })
    }
}

/// The names by bit, as newer releases have them.
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

/// The names of a release's levels, and of those flags that were renamed.
#[derive(Debug, PartialEq, Eq)]
pub struct Words {
    /// The level of SMT siblings.
    pub smt: &'static str,
    /// The level of a node's CPUs.
    pub package: &'static str,
    /// [`Flags::SHARE_CPUCAPACITY`].
    pub share_cpucapacity: &'static str,
    /// [`Flags::SHARE_LLC`].
    pub share_llc: &'static str,
}

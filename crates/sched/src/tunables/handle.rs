//! Handles: tunables together with the types of their values.

use super::{Scaling, Tunable, Unit};
use std::marker::PhantomData;

/// The type of a tunable's value.
pub trait Kind: Copy {
    /// The smallest value of this type.
    const LEAST: i64;
    /// The greatest value of this type.
    const MOST: i64;

    /// Converts a value that is within the tunable's range.
    fn of(raw: i64) -> Self;
}

impl Kind for bool {
    const LEAST: i64 = 0;
    const MOST: i64 = 1;

    fn of(raw: i64) -> Self {
        raw != 0
    }
}

macro_rules! numbers {
    ($($number:ident: $most:expr),*) => {$(
        impl Kind for $number {
            const LEAST: i64 = if $number::MIN == 0 { 0 } else { $number::MIN as i64 };
            const MOST: i64 = $most;

            fn of(raw: i64) -> Self {
                Self::try_from(raw).expect("the range of a tunable is within its type")
            }
        }
    )*};
}

numbers!(u8: u8::MAX as i64, u32: u32::MAX as i64, u64: i64::MAX, i32: i32::MAX as i64, i64: i64::MAX);

/// A tunable and the type of its value. A profile lists the [`Handle::tunable`], and [`super::Values::get`] reads the
/// value. So a misspelt name does not compile, and a tunable that is read but not listed fails the profile's first run.
#[derive(Clone, Copy, Debug)]
pub struct Handle<T> {
    /// The tunable that a profile lists.
    pub tunable: Tunable,
    kind: PhantomData<T>,
}

impl<T: Kind> Handle<T> {
    /// Creates the handle of a number with a range.
    #[must_use]
    pub const fn number(name: &'static str, unit: Unit, base: i64, range: (i64, i64), meaning: &'static str) -> Self {
        assert!(range.0 >= T::LEAST && range.1 <= T::MOST, "the type has no room for the range");
        let tunable = Tunable { name, unit, base, scaling: Scaling::None, range, meaning };
        Self { tunable, kind: PhantomData }
    }

    /// Changes how the value follows the number of CPUs.
    #[must_use]
    pub const fn scaled(self, scaling: Scaling) -> Self {
        Self { tunable: Tunable { scaling, ..self.tunable }, kind: PhantomData }
    }

    /// The same with another range.
    #[must_use]
    pub const fn within(self, range: (i64, i64)) -> Self {
        let Tunable { name, unit, base, scaling, meaning, .. } = self.tunable;
        Self::number(name, unit, base, range, meaning).scaled(scaling)
    }

    /// Returns the tunable with another default.
    #[must_use]
    pub const fn starting(&self, base: i64) -> Tunable {
        Tunable { base, ..self.tunable }
    }
}

impl Handle<bool> {
    /// Creates the handle of a switch.
    #[must_use]
    pub const fn switch(name: &'static str, on: bool, meaning: &'static str) -> Self {
        Self::number(name, Unit::Switch, on as i64, (0, 1), meaning)
    }

    /// Returns the tunable with another default.
    #[must_use]
    pub const fn switched(&self, on: bool) -> Tunable {
        self.starting(on as i64)
    }
}

impl Handle<i64> {
    /// Creates the handle of a choice among words; `base` is the position of the default.
    #[must_use]
    pub const fn word(name: &'static str, words: &'static [&'static str], base: i64, meaning: &'static str) -> Self {
        Self::number(name, Unit::Word(words), base, (0, words.len() as i64 - 1), meaning)
    }
}

/// The range of scaled times, in ns.
const LONG: (i64, i64) = (0, 10_000_000_000);

/// The range that the sysctls for the latency and the least slice take, in ns (`min_sched_granularity_ns` and
/// `max_sched_granularity_ns` of kernel/sysctl.c, up to 5.12).
pub const GRANULARITY: (i64, i64) = (100_000, 1_000_000_000);

impl Handle<u64> {
    /// Creates the handle of a time in ns that is scaled once, when the kernel boots, up to `limit` (0: no limit).
    #[must_use]
    pub const fn at_boot_ns(name: &'static str, base: i64, limit: i64, meaning: &'static str) -> Self {
        Self::number(name, Unit::Ns, base, LONG, meaning).scaled(Scaling::AtBoot { limit })
    }

    /// Creates the handle of a time in ns that follows the number of CPUs online.
    #[must_use]
    pub const fn online_ns(name: &'static str, base: i64, meaning: &'static str) -> Self {
        Self::number(name, Unit::Ns, base, LONG, meaning).scaled(Scaling::Online)
    }
}

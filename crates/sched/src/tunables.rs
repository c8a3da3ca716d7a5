//! Tunables: what a kernel profile lets a user set, by the names and units of its release.

use schedlab_base::{Error, Result, nearest};
use schedlab_machine::Machine;
use std::collections::BTreeMap;

/// How a tunable's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// Microseconds.
    Us,
    /// Milliseconds.
    Ms,
    /// Timer ticks.
    Ticks,
    /// A plain number.
    Number,
    /// On or off (also 1, 0, true, false).
    Switch,
}

impl Unit {
    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "us",
            Self::Ms => "ms",
            Self::Ticks => "ticks",
            Self::Number => "",
            Self::Switch => "on/off",
        }
    }
}

/// One tunable of a kernel profile.
#[derive(Clone, Copy, Debug)]
pub struct Tunable {
    /// Its name in that release.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// The value before scaling by the number of CPUs.
    pub base: i64,
    /// Whether the default is `base * (1 + log2(CPUs))`, and from how many CPUs on it grows no more (0: without end).
    pub scaled: Option<u32>,
    /// The least and greatest value that is taken.
    pub range: (i64, i64),
    /// What it does.
    pub meaning: &'static str,
}

impl Tunable {
    /// A time in ns that this release scales by the number of CPUs, up to `cap` CPUs (0: without end).
    #[must_use]
    pub const fn scaled_ns(name: &'static str, base: i64, cap: u32, meaning: &'static str) -> Self {
        Self { name, unit: Unit::Ns, base, scaled: Some(cap), range: (0, 10_000_000_000), meaning }
    }

    /// A switch.
    #[must_use]
    pub const fn switch(name: &'static str, on: bool, meaning: &'static str) -> Self {
        Self { name, unit: Unit::Switch, base: on as i64, scaled: None, range: (0, 1), meaning }
    }

    /// A number with its range.
    #[must_use]
    pub const fn number(name: &'static str, unit: Unit, base: i64, range: (i64, i64), meaning: &'static str) -> Self {
        Self { name, unit, base, scaled: None, range, meaning }
    }

    /// The value that this release would have on a machine of so many CPUs.
    #[must_use]
    pub fn default_for(&self, cpus: u32) -> i64 {
        match self.scaled {
            None => self.base,
            Some(cap) => {
                let counted = if cap == 0 { cpus } else { cpus.min(cap) };
                self.base * (1 + i64::from(counted.max(1).ilog2()))
            }
        }
    }

    fn parse(&self, text: &str) -> Result<i64> {
        let fail = |what: String| Error::input(what).key(format!("--set {}", self.name));
        let (low, high) = self.range;
        let value = match (self.unit, text) {
            (Unit::Switch, "on" | "true" | "1") => 1,
            (Unit::Switch, "off" | "false" | "0") => 0,
            (Unit::Switch, other) => return Err(fail(format!("\"{other}\" is no switch")).mend("write on or off")),
            (Unit::Number, text) => text
                .parse::<i64>()
                .map_err(|_| fail(format!("\"{text}\" is no whole number")).mend("write a whole number"))?,
            (_, text) => text.parse::<i64>().map_err(|_| {
                fail(format!("\"{text}\" is no whole number"))
                    .mend(format!("write it in {}, without a unit", self.unit.name()))
            })?,
        };
        if !(low..=high).contains(&value) {
            return Err(fail(format!("{value} is out of range")).mend(format!("take {low} to {high}")));
        }
        Ok(value)
    }
}

/// The tick, which every profile has.
#[must_use]
pub const fn tick(hz: i64) -> [Tunable; 3] {
    [
        Tunable::number("hz", Unit::Number, hz, (10, 100_000), "timer ticks a second (CONFIG_HZ)"),
        Tunable::number("tick_ns", Unit::Ns, 0, (0, 1_000_000_000), "the time between two ticks, if not 1 s / hz (0)"),
        Tunable::number(
            "tick_phase_us",
            Unit::Us,
            0,
            (0, 1_000_000),
            "the time of the first tick; 0: one tick after the start",
        ),
    ]
}

/// The values in force, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(BTreeMap<&'static str, i64>);

impl Values {
    /// The defaults for this machine, changed by `set` (names and values as the user wrote them). `elsewhere` says
    /// of a name that is not among the tunables who has it.
    ///
    /// # Errors
    /// When a name is not among the tunables, or a value is none or out of range.
    pub fn new(
        tunables: &[Tunable],
        machine: &Machine,
        set: &[(String, String)],
        elsewhere: impl Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let cpus = machine.cpus.len() as u32;
        let mut values: BTreeMap<_, _> = tunables.iter().map(|t| (t.name, t.default_for(cpus))).collect();
        for (name, text) in set {
            let Some(tunable) = tunables.iter().find(|t| t.name.eq_ignore_ascii_case(name)) else {
                let names = || tunables.iter().map(|t| t.name);
                let mend = elsewhere(name)
                    .or_else(|| nearest(name, names()).map(|near| format!("did you mean \"{near}\"?")))
                    .unwrap_or_else(|| format!("it has {}", names().collect::<Vec<_>>().join(", ")));
                return Err(Error::input("no such tunable").key(format!("--set {name}")).mend(mend));
            };
            values.insert(tunable.name, tunable.parse(text)?);
        }
        Ok(Self(values))
    }

    /// A value.
    ///
    /// # Panics
    /// When the profile has no such tunable: a bug in the profile.
    #[must_use]
    pub fn get(&self, name: &str) -> i64 {
        *self.0.get(name).unwrap_or_else(|| panic!("the profile has no tunable {name}"))
    }

    /// A value that is never negative.
    #[must_use]
    pub fn ns(&self, name: &str) -> u64 {
        self.get(name).max(0) as u64
    }

    /// A switch.
    #[must_use]
    pub fn on(&self, name: &str) -> bool {
        self.get(name) != 0
    }

    /// All, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, i64)> + '_ {
        self.0.iter().map(|(name, value)| (*name, *value))
    }
}

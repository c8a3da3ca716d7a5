//! Tunables: what a kernel profile lets a user set, by the names and units of its release.

mod handle;

pub use handle::{GRANULARITY, Handle, Kind};

use schedlab_base::{Error, Result, nearest, parse_duration};
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

    /// Its length, if it is a unit of time.
    fn nanos(self) -> Option<u64> {
        match self {
            Self::Ns => Some(1),
            Self::Us => Some(1_000),
            Self::Ms => Some(1_000_000),
            Self::Ticks | Self::Number | Self::Switch => None,
        }
    }
}

/// How a default follows the number of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// Not at all.
    None,
    /// `base * (1 + log2(CPUs))` as the kernel starts, and never again: 2.6.24 to 2.6.32.
    AtBoot {
        /// The most that it grows to; 0: without end.
        limit: i64,
    },
    /// By [`factor`], and again whenever a CPU comes or goes: 2.6.33 on.
    Online,
}

/// From how many CPUs on the factor grows no more (2.6.33 on).
const MOST_CPUS: u32 = 8;

/// What scaled values are multiplied with on so many CPUs online, by `sched_tunable_scaling`: 0 nothing, 1 by the
/// logarithm of the CPUs, 2 by the CPUs (`get_update_sysctl_factor`).
#[must_use]
pub fn factor(scaling: i64, cpus: u32) -> i64 {
    let counted = cpus.clamp(1, MOST_CPUS);
    match scaling {
        0 => 1,
        2 => i64::from(counted),
        _ => 1 + i64::from(counted.ilog2()),
    }
}

/// `sched_tunable_scaling` as a sysctl, and in debugfs from 5.13 on.
pub const SYSCTL_SCALING: Handle<i64> = scaling("sched_tunable_scaling");
/// See [`SYSCTL_SCALING`].
pub const DEBUGFS_SCALING: Handle<i64> = scaling("tunable_scaling");

const fn scaling(name: &'static str) -> Handle<i64> {
    let meaning = "how the scaled ones follow CPUs that come and go: 0 not, 1 by the logarithm, 2 by their number; \
                   setting it changes none of them before that";
    Handle::number(name, Unit::Number, LOGARITHM, (0, 2), meaning)
}

/// By the logarithm, as every kernel starts.
const LOGARITHM: i64 = 1;

/// One tunable of a kernel profile.
#[derive(Clone, Copy, Debug)]
pub struct Tunable {
    /// Its name in that release.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// The value before scaling by the number of CPUs.
    pub base: i64,
    /// How the default follows the number of CPUs.
    pub scaling: Scaling,
    /// The least and greatest value that is taken.
    pub range: (i64, i64),
    /// What it does.
    pub meaning: &'static str,
}

impl Tunable {
    /// The value that this release would have on a machine of so many CPUs.
    #[must_use]
    pub fn default_for(&self, cpus: u32) -> i64 {
        match self.scaling {
            Scaling::None => self.base,
            Scaling::AtBoot { limit } => {
                let scaled = self.base * (1 + i64::from(cpus.max(1).ilog2()));
                if limit == 0 { scaled } else { scaled.min(limit) }
            }
            Scaling::Online => self.base * factor(LOGARITHM, cpus),
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
                fail(format!("\"{text}\" is no whole number")).mend(match (self.unit.nanos(), parse_duration(text)) {
                    (Some(unit), Ok(time)) if time % unit == 0 => {
                        format!("write {}, which is {text} in {}", time / unit, self.unit.name())
                    }
                    _ => format!("write it in {}, without a unit", self.unit.name()),
                })
            })?,
        };
        if !(low..=high).contains(&value) {
            return Err(fail(format!("{value} is out of range")).mend(format!("take {low} to {high}")));
        }
        Ok(value)
    }
}

/// The tunable that has this name and a unit behind it: `base_slice` is `base_slice_ns`.
fn without_unit(tunables: &[Tunable], name: &str) -> Option<&'static str> {
    let units = ["_ns", "_us", "_ms", "_mb", "_pct"];
    let same = |full: &str, unit: &str| full.strip_suffix(unit).is_some_and(|stem| stem.eq_ignore_ascii_case(name));
    tunables.iter().map(|t| t.name).find(|full| units.iter().any(|unit| same(full, unit)))
}

/// How many tunables are in these lists.
#[must_use]
pub const fn count(lists: &[&[Tunable]]) -> usize {
    let (mut sum, mut list) = (0, 0);
    while list < lists.len() {
        sum += lists[list].len();
        list += 1;
    }
    sum
}

/// These lists as one, in their order; `N` is their [`count`].
#[must_use]
pub const fn joined<const N: usize>(lists: &[&[Tunable]]) -> [Tunable; N] {
    assert!(N == count(lists));
    let mut all = [lists[0][0]; N];
    let (mut at, mut list) = (0, 0);
    while list < lists.len() {
        let mut own = 0;
        while own < lists[list].len() {
            all[at] = lists[list][own];
            at += 1;
            own += 1;
        }
        list += 1;
    }
    all
}

/// Timer ticks a second.
pub const HZ: Handle<u64> = Handle::number("hz", Unit::Number, 250, (10, 100_000), "timer ticks a second (CONFIG_HZ)");
/// The time between two ticks.
pub const TICK_NS: Handle<u64> =
    Handle::number("tick_ns", Unit::Ns, 0, (0, 1_000_000_000), "the time between two ticks, if not 1 s / hz (0)");
/// When the first tick comes.
pub const TICK_PHASE_US: Handle<u64> = Handle::number(
    "tick_phase_us",
    Unit::Us,
    0,
    (0, 1_000_000),
    "the time of the first tick; 0: one tick after the start",
);

/// The tick, which every profile has.
#[must_use]
pub const fn tick(hz: i64) -> [Tunable; 3] {
    [HZ.starting(hz), TICK_NS.tunable, TICK_PHASE_US.tunable]
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
                let mend = without_unit(tunables, name)
                    .map(|named| format!("did you mean \"{named}\"?"))
                    .or_else(|| elsewhere(name))
                    .or_else(|| nearest(name, names()).map(|near| format!("did you mean \"{near}\"?")))
                    .unwrap_or_else(|| format!("it has {}", names().collect::<Vec<_>>().join(", ")));
                return Err(Error::input("no such tunable").key(format!("--set {name}")).mend(mend));
            };
            values.insert(tunable.name, tunable.parse(text)?);
        }
        Ok(Self(values))
    }

    /// The values after CPUs have come or gone: so many were online when they were set, so many are counted now. What
    /// was set by hand is scaled too, as the kernel does. A CPU that goes offline is still counted as its kernel
    /// rescales (`rq_offline_fair` of 2.6.33 on), and not again when it has gone: with n left, n + 1 are counted.
    #[must_use]
    pub fn rescaled(&self, tunables: &[Tunable], from: u32, to: u32) -> Self {
        let mode = self.find(&SYSCTL_SCALING).or_else(|| self.find(&DEBUGFS_SCALING)).unwrap_or(LOGARITHM);
        let online = |name: &str| tunables.iter().any(|t| t.name == name && t.scaling == Scaling::Online);
        let scale = |(name, value): (&'static str, i64)| {
            let scaled = if online(name) { value / factor(mode, from) * factor(mode, to) } else { value };
            (name, scaled)
        };
        Self(self.iter().map(scale).collect())
    }

    /// A value.
    ///
    /// # Panics
    /// When the profile does not list the tunable: a bug in the profile.
    #[must_use]
    pub fn get<T: Kind>(&self, handle: &Handle<T>) -> T {
        self.find(handle).unwrap_or_else(|| panic!("the profile has no tunable {}", handle.tunable.name))
    }

    /// A value, if the profile has the tunable.
    #[must_use]
    pub fn find<T: Kind>(&self, handle: &Handle<T>) -> Option<T> {
        self.0.get(handle.tunable.name).map(|raw| T::of(*raw))
    }

    /// All, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, i64)> + '_ {
        self.0.iter().map(|(name, value)| (*name, *value))
    }
}

/// The values of a running kernel of which some follow the CPUs online.
#[derive(Clone, Debug)]
pub struct Follows {
    tunables: &'static [Tunable],
    boot: Values,
    booted: u32,
    now: Values,
}

impl Follows {
    /// From `boot`, set when so many CPUs were online; none where no tunable follows them.
    #[must_use]
    pub fn new(tunables: &'static [Tunable], boot: &Values, cpus: u32) -> Option<Self> {
        let some = tunables.iter().any(|t| t.scaling == Scaling::Online);
        some.then(|| Self { tunables, boot: boot.clone(), booted: cpus, now: boot.clone() })
    }

    /// So many CPUs are counted from now on.
    pub fn count(&mut self, cpus: u32) -> &Values {
        self.now = self.boot.rescaled(self.tunables, self.booted, cpus);
        &self.now
    }

    /// The values in force.
    #[must_use]
    pub fn now(&self) -> &Values {
        &self.now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    /// The bases of a distribution's kernel: table B of the study of CFS.
    const BASES: [i64; 3] = [5 * MS, MS, MS];
    const NEWER: [i64; 3] = [6 * MS, 750_000, MS];

    const TIMES: [Handle<i64>; 3] =
        [online("sched_latency_ns"), online("sched_min_granularity_ns"), online("sched_wakeup_granularity_ns")];

    const fn online(name: &'static str) -> Handle<i64> {
        Handle::number(name, Unit::Ns, 0, (0, 10_000 * MS), "").scaled(Scaling::Online)
    }

    fn tunables(bases: [i64; 3]) -> [Tunable; 4] {
        [TIMES[0].starting(bases[0]), TIMES[1].starting(bases[1]), TIMES[2].starting(bases[2]), SYSCTL_SCALING.tunable]
    }

    fn values(tunables: &[Tunable], cpus: u32, set: &[(&str, &str)]) -> Values {
        let machine = schedlab_machine::load(&cpus.to_string()).unwrap();
        let set: Vec<_> = set.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Values::new(tunables, &machine, &set, |_| None).unwrap()
    }

    fn three(values: &Values) -> [i64; 3] {
        TIMES.map(|time| values.get(&time))
    }

    /// As the CPUs of a machine go offline one by one, until `left` are: each time one more is counted than is left.
    fn shrunk(bases: [i64; 3], cpus: u32, left: u32) -> [i64; 3] {
        let tunables = tunables(bases);
        let (mut values, mut counted) = (values(&tunables, cpus, &[]), cpus);
        for n in (left..cpus).rev() {
            values = values.rescaled(&tunables, counted, n + 1);
            counted = n + 1;
        }
        three(&values)
    }

    #[test]
    fn a_dual_core_has_the_plain_rule() {
        assert_eq!(three(&values(&tunables(BASES), 1, &[])), [5 * MS, MS, MS]);
        assert_eq!(three(&values(&tunables(BASES), 2, &[])), [10 * MS, 2 * MS, 2 * MS]);
    }

    #[test]
    fn twelve_cores_are_counted_with_the_one_that_goes() {
        for (left, latency) in [(1, 10), (2, 10), (3, 15), (6, 15), (7, 20), (11, 20), (12, 20)] {
            assert_eq!(shrunk(BASES, 12, left), [latency * MS, latency / 5 * MS, latency / 5 * MS], "{left} left");
        }
    }

    #[test]
    fn sixteen_cores_of_a_newer_kernel() {
        // Published for 3 to 5 CPUs; by the rule 6 left count as 7 and have 18 ms too.
        for (left, latency) in [(1, 12), (2, 12), (3, 18), (5, 18), (7, 24), (16, 24)] {
            assert_eq!(shrunk(NEWER, 16, left)[0], latency * MS, "{left} left");
        }
        assert_eq!(shrunk(NEWER, 16, 16), [24 * MS, 3 * MS, 4 * MS]);
    }

    #[test]
    fn what_was_set_is_scaled_from_there() {
        let tunables = tunables(NEWER);
        let set = values(&tunables, 4, &[("sched_latency_ns", "30000000")]);
        assert_eq!(three(&set), [30 * MS, 2_250_000, 3 * MS], "a value is taken as it is");
        assert_eq!(three(&set.rescaled(&tunables, 4, 1)), [10 * MS, 750_000, MS]);
        let none = values(&tunables, 4, &[("sched_tunable_scaling", "0")]);
        assert_eq!(three(&none), [18 * MS, 2_250_000, 3 * MS], "nothing changes before a CPU does");
        assert_eq!(three(&none.rescaled(&tunables, 4, 1)), [18 * MS, 2_250_000, 3 * MS]);
        let linear = values(&tunables, 2, &[("sched_tunable_scaling", "2")]);
        assert_eq!(
            three(&linear.rescaled(&tunables, 2, 16))[0],
            48 * MS,
            "12 ms on 2 CPUs are 6 for each, for 8 at most"
        );
    }

    #[test]
    fn at_boot_there_is_no_cap_but_200_ms() {
        let latency = Handle::at_boot_ns("sched_latency_ns", 20 * MS, 200 * MS, "").tunable;
        let granularity = Handle::at_boot_ns("sched_wakeup_granularity_ns", 10 * MS, 0, "").tunable;
        assert_eq!([1, 2, 16, 512, 1024].map(|n| latency.default_for(n) / MS), [20, 40, 100, 200, 200]);
        assert_eq!([1, 2, 16, 512, 1024].map(|n| granularity.default_for(n) / MS), [10, 20, 50, 100, 110]);
    }
}

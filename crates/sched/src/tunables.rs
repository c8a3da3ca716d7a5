//! Tunables: what a kernel profile lets a user set, with the names and units of its release.

mod handle;

pub use handle::{GRANULARITY, Handle, Kind};

use schedlab_base::{Error, Result, nearest, parse_duration};
use schedlab_machine::Machine;
use std::collections::BTreeMap;

/// The unit and form of a tunable's value.
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
    /// One of these words; the value is its position.
    Word(&'static [&'static str]),
}

impl Unit {
    /// Returns the unit's name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "us",
            Self::Ms => "ms",
            Self::Ticks => "ticks",
            Self::Number => "",
            Self::Switch => "on/off",
            Self::Word(_) => "enum",
        }
    }

    /// Its length, if it is a unit of time.
    fn nanos(self) -> Option<u64> {
        match self {
            Self::Ns => Some(1),
            Self::Us => Some(1_000),
            Self::Ms => Some(1_000_000),
            Self::Ticks | Self::Number | Self::Switch | Self::Word(_) => None,
        }
    }
}

/// How a default follows the number of CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// It does not depend on the number of CPUs.
    None,
    /// `base * (1 + log2(CPUs))`, computed once when the kernel boots: 2.6.24 to 2.6.32.
    AtBoot {
        /// The greatest value it can take; 0 means no limit.
        limit: i64,
    },
    /// Scaled by [`factor`], again whenever a CPU goes offline or comes online: from 2.6.33 on.
    Online,
}

/// The number of CPUs above which the factor grows no further (from 2.6.33 on).
const MOST_CPUS: u32 = 8;

/// Returns the factor by which values are scaled with this many CPUs online (`get_update_sysctl_factor`). `scaling` is
/// `sched_tunable_scaling`: 0 for none, 1 for the logarithm of the CPUs, 2 for their number.
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
    let meaning = "how scaled tunables follow the number of CPUs online: 0 not at all, 1 by its logarithm, 2 by the \
                   number; setting it changes them only at the next change of that number";
    Handle::number(name, Unit::Number, LOGARITHM, (0, 2), meaning)
}

/// Logarithmic scaling, the setting with which every kernel boots.
const LOGARITHM: i64 = 1;

/// One tunable of a kernel profile.
#[derive(Clone, Copy, Debug)]
pub struct Tunable {
    /// The name in that release.
    pub name: &'static str,
    /// The unit of its value.
    pub unit: Unit,
    /// The value before scaling by the number of CPUs.
    pub base: i64,
    /// How the default follows the number of CPUs.
    pub scaling: Scaling,
    /// The smallest and the greatest value that is accepted.
    pub range: (i64, i64),
    /// What it does, in a line.
    pub meaning: &'static str,
}

impl Tunable {
    /// Returns the value that this release would have on a machine with this many CPUs.
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

    /// Returns a value as a user writes it.
    #[must_use]
    pub fn written(&self, value: i64) -> String {
        match self.unit {
            Unit::Word(words) => words.get(value as usize).copied().unwrap_or_default().to_owned(),
            _ => value.to_string(),
        }
    }

    fn parse(&self, text: &str) -> Result<i64> {
        let fail = |what: String| Error::input(what).key(format!("--set {}", self.name));
        let (low, high) = self.range;
        let value = match (self.unit, text) {
            (Unit::Switch, "on" | "true" | "1") => 1,
            (Unit::Switch, "off" | "false" | "0") => 0,
            (Unit::Switch, other) => return Err(fail(format!("\"{other}\" is no switch")).mend("write on or off")),
            (Unit::Word(words), text) => {
                // A trace names the value by its position.
                let at = text.parse().ok().filter(|at| *at < words.len());
                let known = at.or_else(|| words.iter().position(|word| word.eq_ignore_ascii_case(text)));
                return known
                    .map(|at| at as i64)
                    .ok_or_else(|| fail(format!("there is no \"{text}\"")).mend(format!("take {}", words.join(", "))));
            }
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

/// Returns how many tunables are in these lists.
#[must_use]
pub const fn count(lists: &[&[Tunable]]) -> usize {
    let (mut sum, mut list) = (0, 0);
    while list < lists.len() {
        sum += lists[list].len();
        list += 1;
    }
    sum
}

/// Concatenates these lists; `N` must be their [`count`].
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

/// The number of timer ticks in a second.
pub const HZ: Handle<u64> = Handle::number("hz", Unit::Number, 250, (10, 100_000), "timer ticks a second (CONFIG_HZ)");
/// The time between two ticks.
pub const TICK_NS: Handle<u64> =
    Handle::number("tick_ns", Unit::Ns, 0, (0, 1_000_000_000), "the time between two ticks, if not 1 s / hz (0)");
/// The time of the first tick.
pub const TICK_PHASE_US: Handle<u64> = Handle::number(
    "tick_phase_us",
    Unit::Us,
    0,
    (0, 1_000_000),
    "the time of the first tick; 0: one tick after the start",
);

/// The tunables of the tick, which every profile has.
#[must_use]
pub const fn tick(hz: i64) -> [Tunable; 3] {
    [HZ.starting(hz), TICK_NS.tunable, TICK_PHASE_US.tunable]
}

/// The values in force, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Values(BTreeMap<&'static str, i64>);

impl Values {
    /// Takes the defaults for this machine and changes them by `set` (names and values as the user wrote them). For a
    /// name that is not among the tunables, `elsewhere` says which kernels have it.
    ///
    /// # Errors
    /// If a name is not among the tunables, or a value cannot be read or is out of range.
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
                return Err(missing(tunables, name, elsewhere).key(format!("--set {name}")));
            };
            values.insert(tunable.name, tunable.parse(text)?);
        }
        Ok(Self(values))
    }

    /// Gives a tunable another default, unless `set` sets it.
    #[must_use]
    pub(crate) fn starting(mut self, tunable: &Tunable, value: i64, set: &[(String, String)]) -> Self {
        if self.0.contains_key(tunable.name) && set.iter().all(|(name, _)| !name.eq_ignore_ascii_case(tunable.name)) {
            self.0.insert(tunable.name, value);
        }
        self
    }

    /// Returns the values after CPUs went offline or came online: they were set with `from` CPUs online, and `to` are
    /// counted now. Like the kernel, it also scales values that a user has set, as long as they are sysctls. From 5.13
    /// on they are plain variables in debugfs, which the kernel sets to its own bases times the factor: what was set is
    /// lost, unless a write to `tunable_scaling` has made it the base.
    #[must_use]
    pub fn rescaled(&self, tunables: &[Tunable], from: u32, to: u32) -> Self {
        let mode = self.find(&SYSCTL_SCALING).or_else(|| self.find(&DEBUGFS_SCALING)).unwrap_or(LOGARITHM);
        let forgets = self.find(&DEBUGFS_SCALING) == Some(LOGARITHM);
        let online = |name: &str| tunables.iter().find(|t| t.name == name && t.scaling == Scaling::Online);
        let scale = |(name, value): (&'static str, i64)| {
            let scaled = match online(name) {
                Some(tunable) if forgets => tunable.base * factor(mode, to),
                Some(_) => value / factor(mode, from) * factor(mode, to),
                None => value,
            };
            (name, scaled)
        };
        Self(self.iter().map(scale).collect())
    }

    /// Returns the value of a tunable.
    ///
    /// # Panics
    /// If the profile does not list the tunable, which is a bug in the profile.
    #[must_use]
    pub fn get<T: Kind>(&self, handle: &Handle<T>) -> T {
        self.find(handle).unwrap_or_else(|| panic!("the profile has no tunable {}", handle.tunable.name))
    }

    /// Returns the value of a tunable, if the profile has it.
    #[must_use]
    pub fn find<T: Kind>(&self, handle: &Handle<T>) -> Option<T> {
        self.0.get(handle.tunable.name).map(|raw| T::of(*raw))
    }

    /// Iterates over all values, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, i64)> + '_ {
        self.0.iter().map(|(name, value)| (*name, *value))
    }
}

/// The error for a name that is not among the tunables, and that `elsewhere` may say more of.
pub(crate) fn missing(tunables: &[Tunable], name: &str, elsewhere: impl Fn(&str) -> Option<String>) -> Error {
    let names = || tunables.iter().map(|t| t.name);
    let mend = without_unit(tunables, name)
        .map(|named| format!("did you mean \"{named}\"?"))
        .or_else(|| elsewhere(name))
        .or_else(|| nearest(name, names()).map(|near| format!("did you mean \"{near}\"?")))
        .unwrap_or_else(|| format!("it has {}", names().collect::<Vec<_>>().join(", ")));
    Error::input("no such tunable").mend(mend)
}

/// The values of a running kernel, some of which follow the number of CPUs online.
#[derive(Clone, Debug)]
pub struct Follows {
    tunables: &'static [Tunable],
    boot: Values,
    booted: u32,
    now: Values,
}

impl Follows {
    /// Starts from `boot`, set with `cpus` CPUs online. Returns `None` if no tunable follows the number of CPUs.
    #[must_use]
    pub fn new(tunables: &'static [Tunable], boot: &Values, cpus: u32) -> Option<Self> {
        let some = tunables.iter().any(|t| t.scaling == Scaling::Online);
        some.then(|| Self { tunables, boot: boot.clone(), booted: cpus, now: boot.clone() })
    }

    /// How many CPUs the kernel counts at last when one has gone offline and `left` remain. It counts while that CPU is
    /// still online (`rq_offline_fair`, from 2.6.33 on): one more than remain. Guests of 6.1 show that they count again
    /// afterwards, as their domains are rebuilt later, by a worker, which attaches each queue anew (`rq_attach_root`).
    #[must_use]
    pub fn counted(&self, left: u32) -> u32 {
        if self.boot.find(&DEBUGFS_SCALING).is_some() { left } else { left + 1 }
    }

    /// Rescales for this many CPUs, and returns the values now in force.
    pub fn count(&mut self, cpus: u32) -> &Values {
        self.now = self.boot.rescaled(self.tunables, self.booted, cpus);
        &self.now
    }

    /// Returns the values in force.
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

    /// Takes the CPUs of a machine offline one by one until `left` remain. Each step counts one more CPU than remains.
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
        // Published for 3 to 5 CPUs. By the rule 6 CPUs left count as 7, and also have 18 ms.
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
    fn what_was_set_in_debugfs_is_lost_when_a_cpu_goes() {
        // Seen in a guest of 6.1 with 12 CPUs, of which 7 were left: 18, 2.25 and 3 ms, whatever had been set.
        let mut tunables = tunables(NEWER);
        let scaling = tunables.iter_mut().find(|t| t.name == "sched_tunable_scaling").expect("it is one of them");
        *scaling = DEBUGFS_SCALING.tunable;
        let set = values(&tunables, 12, &[("sched_latency_ns", "20000000"), ("sched_min_granularity_ns", "4000000")]);
        assert_eq!(three(&set), [20 * MS, 4 * MS, 4 * MS]);
        assert_eq!(three(&set.rescaled(&tunables, 12, 7)), [18 * MS, 2_250_000, 3 * MS]);
        let kept = values(&tunables, 4, &[("sched_latency_ns", "30000000"), ("tunable_scaling", "2")]);
        assert_eq!(three(&kept.rescaled(&tunables, 4, 1))[0], 30 * MS / 4, "the write made it the base");
    }

    #[test]
    fn a_word_is_one_of_those_that_there_are() {
        let model = Handle::<i64>::word("model", &["none", "full"], 0, "");
        let machine = schedlab_machine::load("up").unwrap();
        let of = |text: &str| Values::new(&[model.tunable], &machine, &[("model".into(), text.into())], |_| None);
        assert_eq!([of("Full"), of("1")].map(|values| values.unwrap().get(&model)), [1, 1]);
        assert_eq!(model.tunable.written(1), "full");
        assert_eq!(of("half").unwrap_err().to_string(), "--set model: there is no \"half\"; take none, full");
    }

    #[test]
    fn at_boot_there_is_no_cap_but_200_ms() {
        let latency = Handle::at_boot_ns("sched_latency_ns", 20 * MS, 200 * MS, "").tunable;
        let granularity = Handle::at_boot_ns("sched_wakeup_granularity_ns", 10 * MS, 0, "").tunable;
        assert_eq!([1, 2, 16, 512, 1024].map(|n| latency.default_for(n) / MS), [20, 40, 100, 200, 200]);
        assert_eq!([1, 2, 16, 512, 1024].map(|n| granularity.default_for(n) / MS), [10, 20, 50, 100, 110]);
    }
}

//! The catalogue of tunables: what each release of the kernel lets one set, from its schedulers to its memory and
//! disks, with where it lives, its default and range, and what it risks. What a kernel profile simulates is in its own
//! list (`schedlab_sched::kernels`); a test holds that all of that is in here.

use schedlab_base::{Error, Release, Result, nearest};
use schedlab_sched::kernels::Kernel;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// One tunable through the releases.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// The part of the kernel: `sched.cfs`, `vm`, ...
    pub subsystem: String,
    /// Which kind of file or call it is set by: `sysctl`, `debugfs`, `sysfs`, `proc`, `mount`, `build`, `source`, ...
    pub location: String,
    /// Where exactly.
    pub path: String,
    /// Its unit; empty for a plain number.
    pub unit: String,
    /// What it does.
    pub meaning: String,
    /// The value that a system starts with, or the rule for it.
    pub default: String,
    /// The values that it takes.
    pub range: String,
    /// The first release that has it; empty: not of any release.
    pub since: String,
    /// The last release that has it; empty: the current ones do.
    pub until: String,
    /// What took its place after `until`.
    pub successor: String,
    /// What setting it may harm.
    pub risk: String,
    /// What else to know.
    pub note: String,
    /// Where all this was read, and what of it was not checked.
    pub source: String,
}

/// All, those of the schedulers first.
pub fn entries() -> &'static [Entry] {
    static ALL: LazyLock<Vec<Entry>> = LazyLock::new(|| {
        let mut reader = csv::Reader::from_reader(include_str!("catalogue/tunables.csv").as_bytes());
        reader.deserialize().map(|row| row.expect("the catalogue is well-formed")).collect()
    });
    &ALL
}

/// The entry of that name, in any case; the last part is enough where it is unlike every whole name: `swappiness`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    let is = |text: &str| text.eq_ignore_ascii_case(name);
    let last = |e: &Entry| e.name.rsplit(['.', '/']).next().is_some_and(is);
    entries().iter().find(|e| is(&e.name)).or_else(|| entries().iter().find(|e| last(e)))
}

/// The entry of that name.
///
/// # Errors
/// When there is none: the error names the nearest.
pub fn get(name: &str) -> Result<&'static Entry> {
    find(name).ok_or_else(|| {
        let mend = nearest(name, entries().iter().map(|e| e.name.as_str()))
            .map_or_else(|| "schedlab tunables lists them".to_owned(), |near| format!("did you mean \"{near}\"?"));
        Error::input(format!("there is no tunable \"{name}\" in the catalogue")).mend(mend)
    })
}

/// The release of a column `since` or `until`; `None` where it is empty.
fn release(column: &str) -> Option<Release> {
    column.parse().ok()
}

impl Entry {
    /// In which releases it exists: `in 2.6.23 to 5.12`, `since 6.6`.
    #[must_use]
    pub fn span(&self) -> String {
        match (self.since.as_str(), self.until.as_str()) {
            ("", "") => "in no release".to_owned(),
            ("", until) => format!("until {until}"),
            (since, "") => format!("since {since}"),
            (since, until) if since == until => format!("in {since} only"),
            (since, until) => format!("in {since} to {until}"),
        }
    }

    /// Whether a release has it.
    #[must_use]
    pub fn is_in(&self, wanted: Release) -> bool {
        release(&self.since).is_some_and(|since| since <= wanted)
            && release(&self.until).is_none_or(|until| wanted <= until)
    }

    /// What took its place, and what took the place of that, ...
    fn successors(&self) -> impl Iterator<Item = &'static Entry> {
        std::iter::successors(find(&self.successor), |e| find(&e.successor))
    }

    /// What it took the place of, the nearest first.
    fn predecessors(&self) -> Vec<&'static Entry> {
        let mut found: Vec<&Entry> = entries().iter().filter(|e| e.successor == self.name).collect();
        let mut next = 0;
        while let Some(later) = found.get(next).copied() {
            found.extend(entries().iter().filter(|e| e.successor == later.name));
            next += 1;
        }
        found
    }
}

/// What to say of a tunable that `kernel` does not let one set: in which releases it exists, and what is in its place
/// there. `None` when the catalogue does not know the name.
#[must_use]
pub fn history(kernel: &Kernel, name: &str) -> Option<String> {
    let entry = find(name)?;
    if kernel.release.is_some_and(|release| entry.is_in(release)) {
        // The note of a scheduler's feature says why it cannot be set.
        return Some(match entry.note.as_str() {
            why if entry.subsystem == "sched.features" && !why.is_empty() => {
                format!("{} has it, but it cannot be set here: {why}", kernel.name)
            }
            _ => format!("{} has it, but nothing that is simulated depends on it", kernel.name),
        });
    }
    let mut text = format!("it exists {}", entry.span());
    let mut later = Vec::new();
    for next in entry.successors() {
        later.push(format!("{} ({}, {})", next.name, next.location, next.span()));
        if kernel.tunable(&next.name).is_some() {
            return Some(format!("{text}; {} took its place", in_turn(&later)));
        }
    }
    let earlier: Vec<_> = entry.predecessors().into_iter().filter(|e| kernel.tunable(&e.name).is_some()).collect();
    if !earlier.is_empty() {
        let names: Vec<_> = earlier.iter().map(|e| e.name.clone()).collect();
        return Some(format!("{text}; {} has {} in its place", kernel.name, names.join(" and ")));
    }
    let over = kernel.release.zip(release(&entry.until)).is_some_and(|(kernel, until)| until < kernel);
    if over {
        text += &match later.is_empty() {
            true => "; nothing took its place".to_owned(),
            false => format!("; {} took its place, which nothing simulated depends on", in_turn(&later)),
        };
    }
    Some(text)
}

fn in_turn(names: &[String]) -> String {
    names.join(", then ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_sched::kernels::{self, KERNELS};

    fn said(kernel: &str, name: &str) -> String {
        let kernel = kernels::find(kernel).unwrap();
        let machine = schedlab_machine::load("up").unwrap();
        let set = [(name.to_owned(), "1".to_owned())];
        kernel.values_or(&machine, &set, |name| history(kernel, name)).unwrap_err().to_string()
    }

    #[test]
    fn every_tunable_of_every_profile_is_in_the_catalogue() {
        for kernel in KERNELS {
            for tunable in kernel.tunables {
                let entry = entries().iter().find(|e| e.name == tunable.name);
                let entry = entry.unwrap_or_else(|| panic!("{} of {} has no entry", tunable.name, kernel.name));
                if let Some(release) = kernel.release
                    && entry.location != "schedlab"
                {
                    assert!(
                        entry.is_in(release),
                        "{} is said to be {}, but {release} has it",
                        entry.name,
                        entry.span()
                    );
                }
                let units = [tunable.unit.name(), "", "bool", "bitmask", "MB", "%", "1/s", "levels", "enum", "tasks"];
                assert!(units.contains(&entry.unit.as_str()), "{}: {} or {}", entry.name, entry.unit, units[0]);
            }
        }
    }

    #[test]
    fn every_entry_says_what_it_is() {
        for (i, e) in entries().iter().enumerate() {
            for (what, text) in [
                ("name", &e.name),
                ("subsystem", &e.subsystem),
                ("location", &e.location),
                ("path", &e.path),
                ("meaning", &e.meaning),
                ("default", &e.default),
                ("risk", &e.risk),
                ("source", &e.source),
            ] {
                assert!(!text.is_empty(), "{} (row {}) has no {what}", e.name, i + 2);
            }
            assert!(entries()[..i].iter().all(|other| other.name != e.name), "{} stands there twice", e.name);
            assert!(
                e.successor.is_empty() || entries().iter().any(|other| other.name == e.successor),
                "{}",
                e.successor
            );
            for column in [&e.since, &e.until] {
                assert_eq!(release(column).is_none(), column.is_empty(), "{}", e.name);
            }
            assert!(e.until.is_empty() || release(&e.since) <= release(&e.until), "{}", e.name);
        }
    }

    #[test]
    fn memory_s_are_there_with_what_they_risk() {
        for (name, default) in [
            ("vm.overcommit_memory", "0"),
            ("swappiness", "60"),
            ("dirty_background_ratio", "10"),
            ("dirty_ratio", "20"),
            ("dirty_writeback_centisecs", "500"),
            ("oom_adj", "0"),
        ] {
            let entry = get(name).unwrap();
            assert!(entry.default.starts_with(default), "{name}: {}", entry.default);
            assert!(!entry.range.is_empty() && entry.risk.len() > 10, "{name}");
        }
    }

    #[test]
    fn a_name_of_another_release_says_when_and_what_took_its_place() {
        assert_eq!(
            said("linux-6.12", "sched_latency_ns"),
            "--set sched_latency_ns: no such tunable; it exists in 2.6.23 to 5.12; latency_ns \
             (debugfs, in 5.13 to 6.5), \
             then base_slice_ns (debugfs, since 6.6) took its place"
        );
        assert_eq!(
            said("linux-6.1", "sched_latency_ns"),
            "--set sched_latency_ns: no such tunable; it exists in 2.6.23 to 5.12; latency_ns \
             (debugfs, in 5.13 to 6.5) \
             took its place"
        );
        assert_eq!(
            said("linux-2.6.32", "base_slice_ns"),
            "--set base_slice_ns: no such tunable; it exists since 6.6; linux-2.6.32 has sched_latency_ns and \
             sched_min_granularity_ns in its place"
        );
        assert_eq!(
            said("linux-6.12", "wakeup_granularity_ns"),
            "--set wakeup_granularity_ns: no such tunable; it exists in 5.13 to 6.5; nothing took its place"
        );
        assert_eq!(
            said("linux-2.6.32", "sched_tunable_scaling"),
            "--set sched_tunable_scaling: no such tunable; it exists in 2.6.33 to 5.12"
        );
        assert_eq!(
            said("linux-6.12", "swappiness"),
            "--set swappiness: no such tunable; linux-6.12 has it, but nothing that is simulated depends on it"
        );
        assert_eq!(
            said("linux-6.12", "HRTICK"),
            "--set HRTICK: no such tunable; linux-6.12 has it, but it cannot be set here: slices end at ticks here, or \
             where the task reads its CPU clock"
        );
        assert_eq!(
            said("linux-6.12", "ASYM_GRAN"),
            "--set ASYM_GRAN: no such tunable; it exists in 2.6.27 to 2.6.34; nothing took its place"
        );
        assert!(said("linux-6.12", "base_slize_ns").ends_with("did you mean \"base_slice_ns\"?"));
    }

    /// The features of 6.12 (kernel/sched/features.h): each can be set, or the catalogue says why not.
    #[test]
    fn every_feature_can_be_set_or_says_why_not() {
        let all = "PLACE_LAG PLACE_DEADLINE_INITIAL PLACE_REL_DEADLINE RUN_TO_PARITY PREEMPT_SHORT NEXT_BUDDY \
                   PICK_BUDDY CACHE_HOT_BUDDY DELAY_DEQUEUE DELAY_ZERO WAKEUP_PREEMPTION HRTICK HRTICK_DL DOUBLE_TICK \
                   NONTASK_CAPACITY TTWU_QUEUE SIS_UTIL WARN_DOUBLE_CLOCK RT_PUSH_IPI RT_RUNTIME_SHARE LB_MIN \
                   ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST LATENCY_WARN NI_RANDOM";
        let kernel = kernels::find("linux-6.12").unwrap();
        for name in all.split_whitespace().filter(|name| kernel.tunable(name).is_none()) {
            assert!(said("linux-6.12", name).contains("linux-6.12 has it, but it cannot be set here: "), "{name}");
        }
    }

    #[test]
    fn releases_are_compared_by_their_numbers() {
        let entry = get("sched_latency_ns").unwrap();
        let has = |release: &str| entry.is_in(release.parse().unwrap());
        assert_eq!(["2.6.9", "2.6.23", "2.6.32", "3.10", "5.12", "5.12.7", "5.13", "6.1"].map(has), {
            [false, true, true, true, true, true, false, false]
        });
    }
}

//! The catalogue of tunables: what each release of the kernel lets one set, from its schedulers to its memory and
//! disks, with where it lives, its default and range, and what it risks. What a kernel profile simulates is in its own
//! list (`schedlab_sched::kernels`); a test holds that all of that is in here.

mod machine;

pub use machine::{absent, specs};

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
    /// The value before, on the system of a publication that set it.
    pub paper_default: String,
    /// The values that the publication set, the best first, separated by `|`.
    pub paper: String,
    /// The publication and its tables.
    pub paper_where: String,
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

    /// The group, the risk (`low`, `medium`, `high`) and the values by which it is set on a running machine; none if it
    /// is not set there.
    #[must_use]
    pub fn on_a_machine(&self) -> Option<(&'static str, &'static str, &'static str)> {
        machine::row(&self.name).map(|row| (row.group.as_str(), row.level.as_str(), row.values.as_str()))
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

    /// Tables 7, 8, 20, 27 to 29 and 35 to 37 of the thesis on tuning Linux for Hadoop.
    #[test]
    fn the_thesis_s_tables_are_in_the_catalogue() {
        let tables = [
            (
                "T27",
                "sched_autogroup_enabled sched_cfs_bandwidth_slice_us sched_child_runs_first sched_latency_ns \
             sched_migration_cost_ns sched_min_granularity_ns sched_nr_migrate sched_rr_timeslice_ms \
             sched_rt_period_us sched_rt_runtime_us sched_schedstats sched_shares_window_ns sched_time_avg_ms \
             sched_tunable_scaling sched_wakeup_granularity_ns file-max",
            ),
            (
                "T28",
                "admin_reserve_kbytes block_dump dirty_background_bytes dirty_background_ratio dirty_bytes \
             dirty_expire_centisecs dirty_ratio dirty_writeback_centisecs dirtytime_expire_seconds drop_caches \
             hugepages_treat_as_movable hugetlb_shm_group max_map_count min_free_kbytes min_slab_ratio \
             min_unmapped_ratio mmap_min_addr nr_hugepages nr_hugepages_mempolicy nr_overcommit_hugepages \
             nr_pdflush_threads numa_zonelist_order oom_dump_tasks overcommit_kbytes overcommit_memory \
             overcommit_ratio page-cluster panic_on_oom stat_interval swappiness user_reserve_kbytes \
             vfs_cache_pressure zone_reclaim_mode",
            ),
            (
                "T20",
                "dirty_background_bytes dirty_background_ratio dirty_bytes dirty_expire_centisecs dirty_ratio \
             dirty_writeback_centisecs drop_caches min_free_kbytes nr_hugepages nr_overcommit_hugepages \
             overcommit_kbytes overcommit_memory overcommit_ratio page-cluster swappiness vfs_cache_pressure",
            ),
            (
                "T29",
                "aio-max-nr aio-nr nr_open nr_requests read_ahead_kb queue.scheduler ext4.noatime/relatime \
             nodiratime barrier",
            ),
            (
                "T35",
                "modules_disabled msgmax msgmnb msgmni ngroups_max numa_balancing numa_balancing_migrate_deferred \
             numa_balancing_scan_delay_ms numa_balancing_scan_period_max_ms numa_balancing_scan_period_min_ms \
             numa_balancing_scan_size_mb numa_balancing_settle_count randomize_va_space sched_shares_window_ns \
             sched_time_avg_ms sched_tunable_scaling shmall shmmax shmmni threads-max",
            ),
            (
                "T36",
                "extfrag_threshold hugepages_treat_as_movable hugetlb_shm_group lowmem_reserve_ratio max_map_count \
             memory_failure_early_kill memory_failure_recovery min_free_kbytes min_slab_ratio nr_hugepages \
             nr_hugepages_mempolicy nr_overcommit_hugepages nr_pdflush_threads page-cluster user_reserve_kbytes",
            ),
            ("T37", "add_random discard_granularity discard_max_bytes discard_zeroes_data write_same_max_bytes"),
            ("T8", "sched_migration_cost_ns sched_nr_migrate sched_wakeup_granularity_ns nofile file-max"),
        ];
        for (table, names) in tables {
            for name in names.split_whitespace() {
                let entry = get(name).unwrap();
                assert!(entry.paper_where.contains(table), "{name} is in {table}: {}", entry.paper_where);
            }
        }
    }

    #[test]
    fn the_thesis_s_values_are_in_the_catalogue() {
        for (name, before, set) in [
            ("sched_latency_ns", "6000000", "100000000"),
            ("sched_migration_cost_ns", "500000", "5000000"),
            ("vm.swappiness", "60", "10"),
            ("vm.dirty_background_ratio", "10", "50"),
            ("vm.dirty_writeback_centisecs", "500", "360000"),
            ("oom_adj", "0", "-17"),
            ("queue.read_ahead_kb", "128", "256"),
        ] {
            let entry = get(name).unwrap();
            assert_eq!((entry.paper_default.as_str(), entry.paper.split('|').next()), (before, Some(set)), "{name}");
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
            said("linux-6.12", "LATENCY_WARN"),
            "--set LATENCY_WARN: no such tunable; linux-6.12 has it, but it cannot be set here: it changes no decision"
        );
        assert_eq!(
            said("linux-6.12", "ASYM_GRAN"),
            "--set ASYM_GRAN: no such tunable; it exists in 2.6.27 to 2.6.34; nothing took its place"
        );
        assert!(said("linux-6.12", "base_slize_ns").ends_with("did you mean \"base_slice_ns\"?"));
    }

    /// The features of each release (kernel/sched_features.h, kernel/sched/features.h).
    const FEATURES: [(&str, &str); 11] = [
        ("linux-2.6.24", "NEW_FAIR_SLEEPERS WAKEUP_PREEMPT START_DEBIT TREE_AVG APPROX_AVG"),
        (
            "linux-2.6.32",
            "FAIR_SLEEPERS GENTLE_FAIR_SLEEPERS NORMALIZED_SLEEPER START_DEBIT WAKEUP_PREEMPT ADAPTIVE_GRAN \
             ASYM_GRAN WAKEUP_SYNC WAKEUP_OVERLAP WAKEUP_RUNNING SYNC_WAKEUPS AFFINE_WAKEUPS SYNC_LESS \
             SYNC_MORE NEXT_BUDDY LAST_BUDDY CACHE_HOT_BUDDY ARCH_POWER HRTICK DOUBLE_TICK LB_BIAS \
             LB_SHARES_UPDATE ASYM_EFF_LOAD OWNER_SPIN",
        ),
        (
            "linux-3.10",
            "GENTLE_FAIR_SLEEPERS START_DEBIT NEXT_BUDDY LAST_BUDDY CACHE_HOT_BUDDY WAKEUP_PREEMPTION \
             ARCH_POWER HRTICK DOUBLE_TICK LB_BIAS NONTASK_POWER TTWU_QUEUE FORCE_SD_OVERLAP RT_RUNTIME_SHARE \
             LB_MIN NUMA NUMA_FORCE",
        ),
        (
            "linux-3.18",
            "GENTLE_FAIR_SLEEPERS START_DEBIT NEXT_BUDDY LAST_BUDDY CACHE_HOT_BUDDY WAKEUP_PREEMPTION \
             ARCH_CAPACITY HRTICK DOUBLE_TICK LB_BIAS NONTASK_CAPACITY TTWU_QUEUE FORCE_SD_OVERLAP \
             RT_RUNTIME_SHARE LB_MIN NUMA NUMA_FAVOUR_HIGHER NUMA_RESIST_LOWER",
        ),
        (
            "linux-4.1",
            "GENTLE_FAIR_SLEEPERS START_DEBIT NEXT_BUDDY LAST_BUDDY CACHE_HOT_BUDDY WAKEUP_PREEMPTION \
             ARCH_CAPACITY HRTICK DOUBLE_TICK LB_BIAS NONTASK_CAPACITY TTWU_QUEUE RT_PUSH_IPI \
             FORCE_SD_OVERLAP RT_RUNTIME_SHARE LB_MIN NUMA NUMA_FAVOUR_HIGHER NUMA_RESIST_LOWER",
        ),
        (
            "linux-5.10",
            "GENTLE_FAIR_SLEEPERS START_DEBIT NEXT_BUDDY LAST_BUDDY CACHE_HOT_BUDDY WAKEUP_PREEMPTION HRTICK \
             DOUBLE_TICK NONTASK_CAPACITY TTWU_QUEUE SIS_AVG_CPU SIS_PROP WARN_DOUBLE_CLOCK RT_PUSH_IPI \
             RT_RUNTIME_SHARE LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST UTIL_EST_FASTUP \
             ALT_PERIOD BASE_SLICE",
        ),
        (
            "linux-5.15",
            "GENTLE_FAIR_SLEEPERS START_DEBIT NEXT_BUDDY LAST_BUDDY CACHE_HOT_BUDDY WAKEUP_PREEMPTION HRTICK \
             HRTICK_DL DOUBLE_TICK NONTASK_CAPACITY TTWU_QUEUE SIS_PROP SIS_UTIL WARN_DOUBLE_CLOCK \
             RT_PUSH_IPI RT_RUNTIME_SHARE LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST \
             UTIL_EST_FASTUP LATENCY_WARN ALT_PERIOD BASE_SLICE",
        ),
        (
            "linux-6.1",
            "GENTLE_FAIR_SLEEPERS START_DEBIT NEXT_BUDDY LAST_BUDDY CACHE_HOT_BUDDY WAKEUP_PREEMPTION HRTICK \
             HRTICK_DL DOUBLE_TICK NONTASK_CAPACITY TTWU_QUEUE SIS_PROP SIS_UTIL WARN_DOUBLE_CLOCK \
             RT_PUSH_IPI RT_RUNTIME_SHARE LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST \
             UTIL_EST_FASTUP LATENCY_WARN NI_RANDOM ALT_PERIOD BASE_SLICE",
        ),
        (
            "linux-6.6",
            "PLACE_LAG PLACE_DEADLINE_INITIAL RUN_TO_PARITY NEXT_BUDDY CACHE_HOT_BUDDY WAKEUP_PREEMPTION \
             HRTICK HRTICK_DL DOUBLE_TICK NONTASK_CAPACITY TTWU_QUEUE SIS_PROP SIS_UTIL WARN_DOUBLE_CLOCK \
             RT_PUSH_IPI RT_RUNTIME_SHARE LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST \
             UTIL_EST_FASTUP LATENCY_WARN HZ_BW",
        ),
        (
            "linux-6.12",
            "PLACE_LAG PLACE_DEADLINE_INITIAL PLACE_REL_DEADLINE RUN_TO_PARITY PREEMPT_SHORT NEXT_BUDDY \
             PICK_BUDDY CACHE_HOT_BUDDY DELAY_DEQUEUE DELAY_ZERO WAKEUP_PREEMPTION HRTICK HRTICK_DL \
             DOUBLE_TICK NONTASK_CAPACITY TTWU_QUEUE SIS_UTIL WARN_DOUBLE_CLOCK RT_PUSH_IPI RT_RUNTIME_SHARE \
             LB_MIN ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST LATENCY_WARN NI_RANDOM",
        ),
        (
            "linux-6.18",
            "PLACE_LAG PLACE_DEADLINE_INITIAL PLACE_REL_DEADLINE RUN_TO_PARITY PREEMPT_SHORT NEXT_BUDDY \
             PICK_BUDDY CACHE_HOT_BUDDY DELAY_DEQUEUE DELAY_ZERO WAKEUP_PREEMPTION HRTICK HRTICK_DL \
             NONTASK_CAPACITY TTWU_QUEUE SIS_UTIL WARN_DOUBLE_CLOCK RT_PUSH_IPI RT_RUNTIME_SHARE LB_MIN \
             ATTACH_AGE_LOAD WA_IDLE WA_WEIGHT WA_BIAS UTIL_EST LATENCY_WARN NI_RANDOM",
        ),
    ];

    /// Each can be set, or the catalogue says why not.
    #[test]
    fn every_feature_can_be_set_or_says_why_not() {
        for (name, features) in FEATURES {
            let kernel = kernels::find(name).unwrap();
            for feature in features.split(' ').filter(|feature| kernel.tunable(feature).is_none()) {
                let why = format!("{name} has it, but it cannot be set here: ");
                assert!(said(name, feature).contains(&why), "{}", said(name, feature));
            }
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

//! The tunables of NUMA balancing, by release.

use super::Run;
use crate::balance::numa::period::Settings;
use crate::tunables::{Handle, Tunable, Unit, Values};

/// The greatest value of an unsigned tunable.
const MOST: i64 = u32::MAX as i64;

const SWITCH: Handle<bool> = Handle::switch(
    "numa_balancing",
    true,
    "on machines with several nodes, move memory to the tasks that use it and tasks to their memory",
);

/// The tunables of a range of releases, apart from the switch.
struct Names {
    delay: Handle<u64>,
    shortest: Handle<u64>,
    longest: Handle<u64>,
    size: Handle<u64>,
}

impl Names {
    const fn new([delay, shortest, longest, size]: [&'static str; 4]) -> Self {
        Self {
            delay: of_ms(delay, 1000, "how long a task runs before its memory is first scanned"),
            shortest: of_ms(shortest, 1000, "the shortest time in which all of a memory is scanned"),
            longest: of_ms(longest, 60_000, "the longest time in which all of a memory is scanned"),
            size: Handle::number(size, Unit::Number, 256, (1, 1 << 20), "how many MiB one scan covers"),
        }
    }

    const fn listed(&self) -> [Tunable; 5] {
        [SWITCH.tunable, self.delay.tunable, self.shortest.tunable, self.longest.tunable, self.size.tunable]
    }

    /// Returns the settings, if the release has tunables of these names.
    fn settings(&self, v: &Values) -> Option<Settings> {
        Some(Settings {
            delay_ms: v.find(&self.delay)?,
            min_ms: v.find(&self.shortest)?,
            max_ms: v.find(&self.longest)?,
            size_mb: v.find(&self.size)?,
        })
    }
}

const fn of_ms(name: &'static str, base: i64, meaning: &'static str) -> Handle<u64> {
    Handle::number(name, Unit::Ms, base, (0, MOST), meaning)
}

const SYSCTL_NAMES: Names = Names::new([
    "numa_balancing_scan_delay_ms",
    "numa_balancing_scan_period_min_ms",
    "numa_balancing_scan_period_max_ms",
    "numa_balancing_scan_size_mb",
]);
const DEBUGFS_NAMES: Names = Names::new([
    "numa_balancing/scan_delay_ms",
    "numa_balancing/scan_period_min_ms",
    "numa_balancing/scan_period_max_ms",
    "numa_balancing/scan_size_mb",
]);

/// The tunables of 3.13 to 5.12, in `/proc/sys/kernel`.
pub(super) const SYSCTL: [Tunable; 5] = SYSCTL_NAMES.listed();

/// The tunables from 5.13 on, in debugfs except for the switch.
pub(super) const DEBUGFS: [Tunable; 5] = DEBUGFS_NAMES.listed();

/// Returns the settings, or `None` if NUMA balancing is off or has nothing to do: on one node, or if no task states its
/// memory.
pub(super) fn settings(run: &Run<'_>) -> Option<Settings> {
    let v = run.values;
    let works = v.find(&SWITCH) == Some(true) && run.machine.nodes() > 1 && !run.load.memories.is_empty();
    works.then(|| SYSCTL_NAMES.settings(v).or_else(|| DEBUGFS_NAMES.settings(v))).flatten()
}

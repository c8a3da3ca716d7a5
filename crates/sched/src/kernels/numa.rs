//! The tunables of NUMA balancing, by release.

use super::Run;
use crate::balance::numa::period::Settings;
use crate::tunables::{Tunable, Unit};

/// The greatest value of an unsigned one.
const MOST: i64 = u32::MAX as i64;

const SWITCH: Tunable =
    Tunable::switch("numa_balancing", true, "memory moves to who uses it, and tasks to their memory, on several nodes");

const fn delay(name: &'static str) -> Tunable {
    Tunable::number(name, Unit::Ms, 1000, (0, MOST), "how long a task runs before its memory is first scanned")
}

const fn shortest(name: &'static str) -> Tunable {
    Tunable::number(name, Unit::Ms, 1000, (0, MOST), "the shortest time in which all of a memory is scanned")
}

const fn longest(name: &'static str) -> Tunable {
    Tunable::number(name, Unit::Ms, 60_000, (0, MOST), "the longest time in which all of a memory is scanned")
}

const fn size(name: &'static str) -> Tunable {
    Tunable::number(name, Unit::Number, 256, (1, 1 << 20), "how many MiB one scan covers")
}

/// Those of 3.13 to 5.12, in `/proc/sys/kernel`.
pub(super) const SYSCTL: [Tunable; 5] = [
    SWITCH,
    delay("numa_balancing_scan_delay_ms"),
    shortest("numa_balancing_scan_period_min_ms"),
    longest("numa_balancing_scan_period_max_ms"),
    size("numa_balancing_scan_size_mb"),
];

/// Those of 5.13 on, in debugfs but for the switch.
pub(super) const DEBUGFS: [Tunable; 5] = [
    SWITCH,
    delay("numa_balancing/scan_delay_ms"),
    shortest("numa_balancing/scan_period_min_ms"),
    longest("numa_balancing/scan_period_max_ms"),
    size("numa_balancing/scan_size_mb"),
];

/// How it was set; `None`: it is off, or has nothing to do: on one node, and where no task tells its memory.
pub(super) fn settings(run: &Run<'_>) -> Option<Settings> {
    let v = run.values;
    let works = v.find("numa_balancing") == Some(1) && run.machine.nodes() > 1 && !run.load.memories.is_empty();
    let get = |n: usize| [SYSCTL[n].name, DEBUGFS[n].name].into_iter().find_map(|name| v.find(name));
    let get = |n: usize| get(n).and_then(|value| u64::try_from(value).ok());
    match (works, get(1), get(2), get(3), get(4)) {
        (true, Some(delay_ms), Some(min_ms), Some(max_ms), Some(size_mb)) => {
            Some(Settings { delay_ms, min_ms, max_ms, size_mb })
        }
        _ => None,
    }
}

//! The scan period: how often a task's memory is scanned.

use crate::balance::fair::backports::LOCALITY_FORGOTTEN;
use schedlab_base::{Release, v};

/// The tunables of the scan period, in the units of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How long a task runs before its memory is first scanned, in ms.
    pub delay_ms: u64,
    /// The shortest time in which a whole memory is scanned, in ms.
    pub min_ms: u64,
    /// The longest time in which a whole memory is scanned, in ms.
    pub max_ms: u64,
    /// How much memory one scan covers, in MiB.
    pub size_mb: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { delay_ms: 1000, min_ms: 1000, max_ms: 60_000, size_mb: 256 }
    }
}

/// The limit on scanning, in MiB per second (`MAX_SCAN_WINDOW`).
const MOST_MB: u64 = 2560;
/// The period changes in steps of a tenth (`NUMA_PERIOD_SLOTS`).
const SLOTS: u64 = 10;
/// From this many tenths of local or private faults on, the period grows (`NUMA_PERIOD_THRESHOLD`).
const THRESHOLD: u64 = 7;

/// The properties of a group that lengthen the first and the longest period (4.14 on).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The number of tasks in the group.
    pub tasks: u64,
    /// The group's shared faults.
    pub shared: u64,
    /// The group's private faults.
    pub private: u64,
}

impl Sharing {
    fn stretch(self, period: u64) -> u64 {
        period * self.tasks * (self.shared + 1) / (self.private + self.shared + 1)
    }
}

impl Settings {
    /// The size of one scan, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size_mb << 20
    }

    fn windows(&self, resident: u64) -> u64 {
        resident.div_ceil(self.size()).max(1)
    }

    /// The shortest period of a task with `resident` bytes of memory, in ms (`task_scan_min`).
    #[must_use]
    pub fn shortest(&self, resident: u64) -> u64 {
        let windows = if self.size_mb < MOST_MB { MOST_MB / self.size_mb } else { 1 };
        (1000 / windows).max(self.min_ms / self.windows(resident))
    }

    /// The period with which scanning starts, in ms (`task_scan_start`). `sharing` applies from 4.14 on.
    #[must_use]
    pub fn first(&self, resident: u64, sharing: Option<Sharing>) -> u64 {
        let shortest = self.shortest(resident);
        sharing.map_or(shortest, |sharing| shortest.max(sharing.stretch(shortest)))
    }

    /// The longest period, in ms (`task_scan_max`).
    #[must_use]
    pub fn longest(&self, resident: u64, sharing: Option<Sharing>) -> u64 {
        let longest = self.max_ms / self.windows(resident);
        let longest = sharing.map_or(longest, |sharing| longest.max(sharing.stretch(longest)));
        self.shortest(resident).max(longest)
    }
}

/// The faults since the period was last adapted, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// On memory of other nodes.
    pub remote: u64,
    /// On memory of the task's own node.
    pub local: u64,
    /// On pages that should have been migrated and were not (used from 4.0 on).
    pub failed: u64,
    /// On pages that other tasks also use.
    pub shared: u64,
    /// On pages that only this task uses.
    pub private: u64,
}

/// The result of adapting the period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adapted {
    /// The new period, in ms.
    pub period_ms: u64,
    /// Whether the memory's next scan is a whole period away, because nothing of interest was seen.
    pub postpone: bool,
    /// Whether the counts of remote and local faults are reset.
    pub forget: bool,
}

/// Adapts the scan period (`update_task_scan_period`). `max_ms` is the longest period as of the last pass, and `range`
/// holds the shortest and the longest period now.
#[must_use]
pub fn adapt(release: Release, period_ms: u64, max_ms: u64, range: (u64, u64), seen: Seen) -> Adapted {
    let Seen { remote, local, failed, shared, private } = seen;
    // "mm: numa: Slow PTE scan rate if migration failures occur" (4.0).
    if local + shared == 0 || (release >= v(4, 0) && failed > 0) {
        return Adapted {
            period_ms: max_ms.min(period_ms << 1),
            postpone: true,
            forget: LOCALITY_FORGOTTEN.is_in(release),
        };
    }
    let slot = period_ms.div_ceil(SLOTS) as i64;
    let part = |a: u64, all: u64| (a * SLOTS).checked_div(all).unwrap_or(0);
    let near = part(local, local + remote);
    let longer = |part: u64| (part - THRESHOLD).max(1) as i64 * slot;
    // "sched/numa: Slow down scan rate if shared faults dominate" (4.14).
    let by = if release >= v(4, 14) {
        let own = part(private, private + shared);
        if own >= THRESHOLD {
            longer(own)
        } else if near >= THRESHOLD {
            longer(near)
        } else {
            -((THRESHOLD - near.max(own)) as i64) * slot
        }
    } else if near >= THRESHOLD {
        longer(near)
    } else {
        let own = (private * SLOTS).div_ceil(private + shared + 1) as i64;
        -((THRESHOLD - near) as i64) * slot * own / SLOTS as i64
    };
    let period_ms = (period_ms as i64 + by).clamp(range.0 as i64, range.1 as i64) as u64;
    Adapted { period_ms, postpone: false, forget: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_big_memory_is_scanned_in_the_time_of_a_small_one() {
        let settings = Settings::default();
        assert_eq!((settings.shortest(0), settings.longest(0, None)), (1000, 60_000));
        assert_eq!((settings.shortest(4 * GIB), settings.longest(4 * GIB, None)), (100, 3750));
        // 1000 / 4, and never more than 2560 MiB per second.
        assert_eq!(settings.shortest(GIB), 250);
        let sharing = Some(Sharing { tasks: 4, shared: 99, private: 0 });
        assert_eq!((settings.first(GIB, sharing), settings.longest(GIB, sharing)), (1000, 60_000));
    }

    #[test]
    fn local_faults_lengthen_the_period_and_remote_ones_shorten_it() {
        let seen = |local, remote, shared, private| Seen { remote, local, failed: 0, shared, private };
        let to = |release, seen| adapt(release, 1000, 5000, (250, 5000), seen);
        let period = |release, seen| to(release, seen).period_ms;
        for release in [v(3, 18), v(4, 1)] {
            assert_eq!(period(release, seen(100, 0, 0, 100)), 1300, "all local: three slots of 100");
            assert_eq!(period(release, seen(75, 25, 0, 100)), 1100, "at the threshold: one slot");
            assert_eq!(period(release, seen(10, 90, 0, 100)), 400, "six slots sooner, times 10 / 10");
            assert_eq!(period(release, seen(10, 90, 100, 0)), 1000, "all shared: as it was");
        }
        assert_eq!(period(v(6, 1), seen(10, 90, 0, 100)), 1300, "all private: slower, wherever it is");
        assert_eq!(period(v(6, 1), seen(10, 90, 60, 40)), 700, "three slots sooner by 4 of 10 private");
        let nothing = to(v(6, 1), seen(0, 50, 0, 50));
        assert_eq!(nothing, Adapted { period_ms: 2000, postpone: true, forget: false });
        assert!(
            to(v(6, 12), seen(0, 50, 0, 50)).forget,
            "6.12.107 returned before it cleared the counts, 6.12.117 not"
        );
        let failed = Seen { failed: 1, ..seen(100, 0, 0, 100) };
        assert_eq!((period(v(3, 18), failed), period(v(4, 1), failed)), (1300, 2000));
    }
}

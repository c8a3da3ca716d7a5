//! Models which tasks' working sets are in which cache.
//!
//! A cache keeps what was used most recently. The model works with whole tasks, not with cache lines: a running task
//! uses its entire working set, so the least recently used working sets are evicted to make room for it.

use crate::task::TaskId;
use schedlab_machine::Machine;

/// The greatest number of working sets that a cache remembers, those of the tasks that ran most recently.
const MOST: usize = 64;

/// One cache.
#[derive(Debug)]
struct Cache {
    size: u64,
    used: u64,
    /// The tasks and how many of their bytes are cached, least recently used first.
    sets: Vec<(TaskId, u64)>,
}

impl Cache {
    fn new(size: u64) -> Self {
        Self { size, used: 0, sets: Vec::with_capacity(MOST) }
    }

    /// Uses `bytes` of the task: loads what is missing and returns how much that was.
    fn touch(&mut self, p: TaskId, bytes: u64) -> u64 {
        let bytes = bytes.min(self.size);
        let had = self.remove(p);
        if bytes > 0 {
            if self.sets.len() == MOST {
                self.used -= self.sets.remove(0).1;
            }
            self.sets.push((p, bytes));
            self.used += bytes;
            while self.used > self.size {
                let over = self.used - self.size;
                let oldest = &mut self.sets[0].1;
                let out = over.min(*oldest);
                *oldest -= out;
                self.used -= out;
                if *oldest == 0 {
                    self.sets.remove(0);
                }
            }
        }
        bytes.saturating_sub(had)
    }

    /// Removes bytes that had not arrived when the task left.
    fn forget(&mut self, p: TaskId, bytes: u64) {
        if let Some(set) = self.sets.iter_mut().rev().find(|set| set.0 == p) {
            let out = bytes.min(set.1);
            set.1 -= out;
            self.used -= out;
        }
    }

    fn remove(&mut self, p: TaskId) -> u64 {
        let Some(at) = self.sets.iter().rposition(|set| set.0 == p) else { return 0 };
        let (_, had) = self.sets.remove(at);
        self.used -= had;
        had
    }
}

/// The caches of a CPU: the index of its cluster and that of its last-level cache.
pub(crate) type Place = (u32, u32);

/// What a task has to load, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Missing {
    /// Loaded from the last-level cache into the core's own cache.
    pub near: u64,
    /// Loaded from memory.
    pub far: u64,
}

/// All caches of a machine.
#[derive(Debug)]
pub(crate) struct Caches {
    /// The core's own caches, by cluster.
    own: Vec<Cache>,
    last: Vec<Cache>,
}

impl Caches {
    pub fn new(machine: &Machine) -> Self {
        let many = |count: Option<u32>, kib: u32| {
            (0..count.map_or(0, |c| c + 1)).map(|_| Cache::new(u64::from(kib) * 1024)).collect()
        };
        Self {
            own: many(machine.cpus.iter().map(|cpu| cpu.cluster).max(), machine.caches.l2_kib),
            last: many(machine.cpus.iter().map(|cpu| cpu.place.llc).max(), machine.caches.llc_kib),
        }
    }

    /// Uses a task's working set on a CPU with these two caches, after the task last ran at `from`. The task also
    /// writes, so what it left in caches of another place becomes useless.
    pub fn touch(&mut self, from: Option<Place>, (cluster, llc): Place, p: TaskId, bytes: u64) -> Missing {
        if let Some(from) = from {
            if from.0 != cluster {
                self.own[from.0 as usize].remove(p);
            }
            if from.1 != llc {
                self.last[from.1 as usize].remove(p);
            }
        }
        let near = self.own[cluster as usize].touch(p, bytes);
        let far = self.last[llc as usize].touch(p, bytes);
        // Data from memory enters both caches at once.
        Missing { near: near.saturating_sub(far), far }
    }

    /// Removes the part of what was missing that had not arrived when the task left.
    pub fn forget(&mut self, (cluster, llc): Place, p: TaskId, missing: Missing) {
        self.own[cluster as usize].forget(p, missing.near + missing.far);
        self.last[llc as usize].forget(p, missing.far);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_and_what_was_used_last_stays_longest() {
        let mut cache = Cache::new(100);
        assert_eq!((cache.touch(1, 40), cache.touch(2, 40)), (40, 40));
        assert_eq!((cache.touch(1, 40), cache.touch(2, 40)), (0, 0), "both fit");
        assert_eq!(cache.touch(3, 50), 50, "30 of task 1's 40 go");
        assert_eq!(cache.touch(2, 40), 0);
        assert_eq!(cache.touch(1, 40), 30, "10 were left; now 30 of task 3's go");
        assert_eq!(cache.touch(3, 50), 30);
        assert_eq!(cache.touch(4, 1000), 100, "more than a cache holds is never all in it");
        assert_eq!(cache.touch(3, 50), 50);
    }

    #[test]
    fn what_had_not_come_in_is_missing_the_next_time() {
        let mut cache = Cache::new(100);
        cache.touch(1, 60);
        cache.forget(1, 25);
        assert_eq!((cache.touch(1, 60), cache.used), (25, 60));
        assert_eq!((cache.touch(1, 20), cache.used), (0, 20), "a smaller working set leaves room");
    }

    #[test]
    fn many_small_sets_are_forgotten_in_their_order() {
        let mut cache = Cache::new(1 << 20);
        for p in 0..=MOST as TaskId {
            assert_eq!(cache.touch(p, 10), 10);
        }
        assert_eq!(cache.touch(1, 10), 0);
        assert_eq!(cache.touch(0, 10), 10, "it was the first of {MOST} and one");
        assert_eq!(cache.used, 10 * MOST as u64);
    }

    #[test]
    fn another_core_has_its_own_cache_and_another_package_all_of_it() {
        let mut machine = schedlab_machine::load("2x2").unwrap();
        machine.caches = schedlab_machine::Caches { l2_kib: 1, llc_kib: 8 };
        let mut caches = Caches::new(&machine);
        let at = |cpu: usize| (machine.cpus[cpu].cluster, machine.cpus[cpu].place.llc);
        let mut touch = |from: Option<usize>, cpu, p| caches.touch(from.map(at), at(cpu), p, 3 * 1024);
        assert_eq!(touch(None, 0, 7), Missing { near: 0, far: 3072 });
        assert_eq!(touch(Some(0), 0, 7), Missing::default());
        assert_eq!(touch(Some(0), 1, 7), Missing { near: 1024, far: 0 }, "the same last-level cache");
        assert_eq!(touch(Some(1), 2, 7), Missing { near: 0, far: 3072 }, "another package");
        assert_eq!(touch(Some(2), 0, 7), Missing { near: 0, far: 3072 }, "what it wrote meanwhile is over there");
        assert_eq!(touch(None, 0, 8), Missing { near: 0, far: 3072 });
        assert_eq!(touch(Some(0), 0, 7), Missing { near: 1024, far: 0 }, "8 KiB hold both, 1 KiB does not");
    }
}

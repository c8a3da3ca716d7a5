//! SD, the Staircase Deadline scheduler 1.00 (Con Kolivas, 2007).
//!
//! # Idea
//! SD succeeds RSDL. In RSDL, nicer tasks begin further down and so always wait for the better ones first. In SD each
//! nice level's slots are spread over the whole staircase, so all levels have about the same latency and differ only in
//! how often they have a slot. No task is pushed down; instead a mark, which only moves down, keeps late arrivals from
//! slots above it.
//!
//! # Rule
//! A rotation has 40 slots. A nice value of n may use 20 - n of them, evenly spread and always including the last: nice
//! -20 all, nice 0 every second, nice 10 every fourth, nice 19 one. A task has one quota at each of its slots. The
//! first task of the first slot that is taken runs; that slot is the mark. A task that has used up its quota, or that
//! wakes in another rotation than the one in which it fell asleep, takes its first slot at or behind the mark; if there
//! is none, it expires, with its first slot of the next rotation. A task that wakes in the same rotation with some of
//! its quota left takes its slot again. When the active array is empty, the arrays are swapped and a new rotation
//! begins.
//!
//! # State
//! For each CPU: two arrays of lists, the number of the rotation, and the mark. For each task: its slot, the rest of
//! its quota, the slots that it has had, and in which rotation. A pick and a new slot each search a bitmap.
//!
//! # Tunables
//! `rr_interval`: the quota at nice 0, 10 ms, plus 10 ms for each doubling of the number of CPUs. `interactive`:
//! whether a task carries the rest of its quota into a later rotation; if off, only what is ahead counts.
//!
//! # Latency
//! Let Q be a task's quota, which it carries over from an earlier rotation at most once and only if `interactive` is
//! on, and T the tick, by which it may overrun its quota (the end of a quota is noticed at a tick). A task p of nice 0
//! that begins to wait is at one of the three slots from the mark on, since it has every second slot. Or it has
//! expired, which happens only after the last slot, when the mark is there too; its slot is then the second of the next
//! rotation, again one of three in a row. Meanwhile another task q runs at the slots that it has among these three, at
//! most k of them, and before that at one earlier slot, if it slept with some of that quota left. So p waits for at
//! most *the sum of (k + 1) * (Q + T) + Q over all other tasks q* (without `interactive`, less the last Q). Any three
//! slots in a row include at most two of nice 0: with all n tasks there and the defaults this is 3 * 11 + 10 = 43 ms
//! for each other task, where RSDL needs 280 ms. `tests/all/golden/staircase.rs` checks this bound with random loads.
//! New tasks add their own part; real-time tasks and changes of nice values are not in the sum.
//!
//! # Differences from the kernel
//! The patch itself was not available, so this follows the text of the announcements. What they leave open is decided
//! as follows:
//!
//! - Slot k of 40 belongs to a nice level if the level's number of slots in the first k + 1, rounded down, is greater
//!   than that in the first k.
//! - Quotas below nice -6 are nice * nice / 40 of the interval, and half an interval above nice 0.
//! - If `interactive` is on, a task that slept into a later rotation brings the rest of its quota with it, at most one
//!   quota.
//! - Everything else is as in [`super::rsdl`]: time in nanoseconds, halving at a fork, yields, nice values, balancing.
//!
//! # Reference
//! The announcements of Staircase Deadline on linux-kernel, March to May 2007, and "sched: document sd cpu scheduler",
//! 27 March 2007.

use super::Design;
use super::rsdl::lengthened;
use super::state::LEVELS;
use schedlab_base::Nanos;

/// The rules of SD.
#[derive(Clone, Copy, Debug)]
pub struct Sd {
    rr_interval: Nanos,
    interactive: bool,
    /// The slots of each nice level, one bit each.
    matrix: [u64; LEVELS as usize],
}

impl Sd {
    /// Creates the rules with this quota at nice 0, in ns.
    #[must_use]
    pub fn new(rr_interval: Nanos, interactive: bool) -> Self {
        let levels = u64::from(LEVELS);
        let matrix = std::array::from_fn(|user| {
            let count = levels - user as u64;
            let begun = |slot: u64| slot * count / levels;
            (0..levels).filter(|slot| begun(slot + 1) > begun(*slot)).fold(0, |bits, slot| bits | 1 << slot)
        });
        Self { rr_interval, interactive, matrix }
    }
}

impl Design for Sd {
    const PUSHES: bool = false;

    fn rr_interval(&self) -> Nanos {
        self.rr_interval
    }

    fn quota(&self, user: u8) -> Nanos {
        if user > 20 { (self.rr_interval / 2).max(1) } else { lengthened(self.rr_interval, user) }
    }

    fn slots(&self, user: u8) -> u64 {
        self.matrix[user as usize]
    }

    fn carries(&self) -> bool {
        self.interactive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_spread_over_the_rotation() {
        let sd = Sd::new(10_000_000, true);
        let drawn = |nice: i8| -> String {
            let slots = sd.slots((nice + 20) as u8);
            (0..40).map(|slot| if slots >> slot & 1 == 1 { '#' } else { '.' }).collect()
        };
        assert_eq!(drawn(-20), "#".repeat(40));
        assert_eq!(drawn(-10), ".###".repeat(10));
        assert_eq!(drawn(0), ".#".repeat(20));
        assert_eq!(drawn(5), "..#..#.#".repeat(5));
        assert_eq!(drawn(10), "...#".repeat(10));
        assert_eq!(drawn(19), format!("{}#", ".".repeat(39)));
        for user in 0..LEVELS {
            assert_eq!((sd.slots(user).count_ones(), sd.slots(user) >> 39), (40 - u32::from(user), 1));
        }
    }

    #[test]
    fn better_levels_have_longer_quotas_and_nicer_ones_half() {
        let sd = Sd::new(10_000_000, true);
        assert_eq!(
            [0, 13, 14, 20, 21, 39].map(|user| sd.quota(user) / 1000),
            [100_000, 12_250, 10_000, 10_000, 5_000, 5_000]
        );
    }
}

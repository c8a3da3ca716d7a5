//! SD, the Staircase Deadline scheduler 1.00 (Con Kolivas, 2007).
//!
//! # Idea
//! RSDL's successor. In RSDL nicer tasks begin lower and so always wait for the better ones first; here every
//! nice level has its slots spread over the whole staircase, so that all have about the same latency and only differ
//! in how often they have a slot. Nothing is pushed down; a mark that only falls keeps late comers from above it.
//!
//! # Rule
//! A rotation has 40 slots. A nice value of n may use 20 - n of them, evenly spread, the last one always:
//! nice -20 all, nice 0 every second, nice 10 every fourth, nice 19 one. At each slot it has one quota. The first task
//! of the first slot that is taken runs; that slot is the mark. A task that used up its quota, and one that wakes in
//! another rotation than it fell asleep in, takes its first slot that is at the mark or behind it; if there is none, it
//! is expired, with its first slot of the next rotation. A task that wakes in the same rotation with some of its quota
//! left takes its slot again. When no task is active, the arrays change places and a new rotation begins.
//!
//! # State
//! For each CPU: two arrays of lists, the number of the rotation, the mark. For each task: its slot, what is left of
//! its quota, the slots that it had, and in which rotation. A pick and a new slot are a look into a bitmap.
//!
//! # Tunables
//! `rr_interval`: the quota at nice 0, 10 ms, and with each doubling of the CPUs 10 ms more. `interactive`: a small
//! memory for each task; off, only what is ahead counts.
//!
//! # Latency
//! Let Q be a task's quota, which it brings over from an earlier rotation at most once when `interactive` is on, and T
//! the tick, by which it may run over its quota (the end of that is noticed at a tick). A task p of nice 0 that begins
//! to wait stands at one of the three slots from the mark on, since it has every second slot; or it is expired, which
//! it is only after the last slot, when the mark is there too, and then its slot is the second of the next rotation,
//! again one of three in a row. Meanwhile another task q runs at the slots that it has among these three, at most k of
//! them, and before that at one earlier slot, if it slept with some of that quota left. So p waits at most *the sum of
//! (k + 1) * (Q + T) + Q over all other tasks q* (without `interactive` less the last Q). Any three slots in a row have
//! at most two of nice 0: with all n tasks there and the defaults that is 3 * 11 + 10 = 43 ms for each other task,
//! where RSDL needs 280. `tests/staircase.rs` holds random loads to it. New tasks add their own part; real-time tasks
//! and new nice values are not in the sum.
//!
//! # Differences from the kernel
//! The patch itself was not to be had: this follows the announcements' words. What they leave open is chosen here:
//! slot k of 40 is a nice level's when its count of slots in the first k + 1 is a whole number more, rounded down, than
//! in the first k; quotas below nice -6 are nice * nice / 40 of the interval, and half an interval above nice 0; with
//! `interactive` on, a task that slept into a later rotation brings along what it had left, at most one quota; for all
//! else see [`super::rsdl`]: time to the nanosecond, halves at a fork, yields, nice values, balancing.
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
    /// Each nice level's slots, a bit each.
    matrix: [u64; LEVELS as usize],
}

impl Sd {
    /// The rules with this quota at nice 0.
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

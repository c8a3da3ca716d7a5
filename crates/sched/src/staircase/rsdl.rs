//! RSDL, the Rotating Staircase Deadline scheduler (Con Kolivas, March 2007).
//!
//! # Idea
//! Fairness by plain accounting: nothing is guessed from how a task sleeps. A task goes down a staircase, from the
//! level of its nice value to the lowest, with the same quota of CPU time on each step; at the bottom it waits until
//! all others are there. Who used little stands high and runs at once; who used all of it waits for a time that
//! can be told beforehand.
//!
//! # Rule
//! There are 40 levels, one for each nice value, and the first task of the best level runs. A task has a quota at its
//! own level and at every one below, once in a rotation; a level's quota is the sum of those of the tasks that were
//! given one there. A task that used up its quota goes down a level, to the end of that list. When a level's quota is
//! used up, all who are still there are put at the end of the next level: a *minor rotation*. A task without
//! quota below goes to the expired array, at its own level with a fresh quota. When no task is active, the arrays
//! change places: a *major rotation*. A task that wakes in the rotation in which it fell asleep goes on with what was
//! left of its quota; in a later one it begins anew at its own level.
//!
//! # State
//! For each CPU: two arrays of lists with a quota for each level, the number of the rotation. For each task: its
//! level, what is left of its quota, the levels at which it was given one, and in which rotation.
//! A pick looks into a bitmap, a minor rotation joins two lists: both cost the same for any number of tasks.
//!
//! # Tunables
//! `rr_interval`, the quota of the nice levels 0 to 19.
//!
//! # Latency
//! Let Q be a task's quota and T the tick, by which it may run over (its end is noticed at a tick). In one
//! rotation task q runs at most E = levels * (Q + T), where a nice value of n has 20 - n levels: at each of its levels
//! it is given a quota once, and none brings one to the next rotation. A waiting task is active, and runs before the
//! rotation ends, or expired, and runs before the next one ends. So with others q it waits at most
//! *the sum of 2 E over all q*. With all n tasks at nice 0 and the defaults that is 2 * 20 * (6 + 1) = 280 ms for each
//! other task. `tests/staircase.rs` holds random loads to it, as it does a schedule that waits 19 * 6 = 114 ms.
//! New tasks add their own E; real-time tasks and new nice values are not in the sum.
//!
//! # Differences from the kernel
//! The patch itself was not to be had: this follows the announcement's words. What they leave open is chosen here:
//! time is charged to the nanosecond and looked at at ticks (by whole ticks alone, who sleeps before each of them
//! would run for nothing); quotas of nice levels below -6 are nice * nice / 40 of the interval (-7: 1.2, -20: 10), and
//! the interval is 6 ms, both as in the author's later kernels; who is pushed down keeps what is left of its quota and
//! has the new level's besides; the lowest level pushes nobody; a new task takes half of what its parent has left,
//! and joins behind it; who yields goes behind its equals; a new nice value keeps what is left, no more than a new
//! quota; who moves to another CPU by balancing keeps its place, else it begins anew there; balancing is the plain one
//! of [`crate::balance`], with weights by levels and quota; round-robin tasks take turns after one interval.
//!
//! # Reference
//! "RSDL completely fair starvation free interactive cpu scheduler" and "sched: document rsdl cpu scheduler",
//! linux-kernel, 4 March 2007.

use super::Design;
use super::state::LEVELS;
use schedlab_base::Nanos;

/// The rules of RSDL.
#[derive(Clone, Copy, Debug)]
pub struct Rsdl {
    /// The quota of nice levels 0 to 19.
    pub rr_interval: Nanos,
}

/// The interval, and from nice -7 on the more the better the level is.
pub(super) fn lengthened(rr_interval: Nanos, user: u8) -> Nanos {
    let nice = i64::from(user) - 20;
    if nice < -6 { rr_interval * (nice * nice) as u64 / 40 } else { rr_interval }
}

impl Design for Rsdl {
    const PUSHES: bool = true;

    fn rr_interval(&self) -> Nanos {
        self.rr_interval
    }

    fn quota(&self, user: u8) -> Nanos {
        lengthened(self.rr_interval, user)
    }

    fn slots(&self, user: u8) -> u64 {
        (1 << LEVELS) - (1 << user)
    }

    fn carries(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stairs_begin_at_the_nice_level() {
        let rsdl = Rsdl { rr_interval: 6_000_000 };
        assert_eq!([0, 20, 39].map(|user| rsdl.slots(user).count_ones()), [40, 20, 1]);
        assert_eq!([0, 20, 39].map(|user| rsdl.slots(user).trailing_zeros()), [0, 20, 39]);
        assert_eq!([0, 13, 14, 20, 39].map(|user| rsdl.quota(user) / 1000), [60_000, 7_350, 6_000, 6_000, 6_000]);
    }
}

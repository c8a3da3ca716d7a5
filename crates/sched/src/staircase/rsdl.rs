//! RSDL, the Rotating Staircase Deadline scheduler (Con Kolivas, March 2007).
//!
//! # Idea
//! Fairness comes from plain accounting; nothing is guessed from how a task sleeps. A task descends a staircase, from
//! the level of its nice value to the lowest, with the same quota of CPU time on each step. At the bottom it waits
//! until all others have arrived. A task that has used little is high up and runs at once; one that has used all of its
//! quotas waits for a bounded time.
//!
//! # Rule
//! There are 40 levels, one for each nice value, and the first task of the best level runs. Once in a rotation, a task
//! has a quota at its own level and at every level below; a level's quota is the sum of the quotas that tasks were
//! given there. A task that has used up its quota moves down a level, to the end of that list. When a level's quota is
//! used up, all tasks still there are moved to the end of the next level: a *minor rotation*. A task without a quota
//! further down goes to the expired array, at its own level and with a fresh quota. When the active array is empty, the
//! arrays are swapped: a *major rotation*. A task that wakes in the rotation in which it fell asleep continues with the
//! rest of its quota; in a later one it starts afresh at its own level.
//!
//! # State
//! For each CPU: two arrays of lists with a quota for each level, and the number of the rotation. For each task: its
//! level, the rest of its quota, the levels at which it was given one, and in which rotation. A pick searches a bitmap,
//! and a minor rotation joins two lists: both take the same time for any number of tasks.
//!
//! # Tunables
//! `rr_interval`, the quota of the nice levels 0 to 19.
//!
//! # Latency
//! Let Q be a task's quota and T the tick, by which it may overrun (the end of a quota is noticed at a tick). In one
//! rotation task q runs for at most E = levels * (Q + T), where a nice value of n has 20 - n levels: it is given a
//! quota once at each of its levels, and carries none into the next rotation. A waiting task is either active, and runs
//! before the rotation ends, or expired, and runs before the next one ends. So beside other tasks q it waits for at
//! most *the sum of 2 E over all q*. With all n tasks at nice 0 and the defaults this is 2 * 20 * (6 + 1) = 280 ms for
//! each other task. `tests/all/golden/staircase.rs` checks this bound with random loads, and a schedule with a wait of
//! 19 * 6 = 114 ms. New tasks add their own E; real-time tasks and changes of nice values are not in the sum.
//!
//! # Differences from the kernel
//! The patch itself was not available, so this follows the text of the announcement. What it leaves open is decided as
//! follows:
//!
//! - Time is charged to the nanosecond and checked at ticks. (If whole ticks were charged, a task that sleeps just
//!   before each tick would run for free.)
//! - Quotas of nice levels below -6 are nice * nice / 40 of the interval (-7: 1.2, -20: 10), and the interval is 6 ms,
//!   both as in the author's later kernels.
//! - A task that is pushed down keeps the rest of its quota and gets the new level's in addition; the lowest level
//!   pushes no task.
//! - A new task takes half of what its parent has left, and joins behind it. A task that yields goes behind its equals.
//! - With a new nice value a task keeps the rest of its quota, up to a new quota.
//! - A task moved by load balancing keeps its place; one that comes to another CPU in any other way starts afresh
//!   there.
//! - Balancing is the plain balancer of [`crate::balance`], with weights that follow from levels and quota.
//! - Round-robin tasks take turns after one interval.
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
    /// The quota of nice levels 0 to 19, in ns.
    pub rr_interval: Nanos,
}

/// Returns the interval, lengthened below nice -6: the better the level, the longer.
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

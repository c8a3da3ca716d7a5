//! What the scheduler knows of a task and of a CPU.

use super::array::{MAX_PRIO, PrioArray};
use super::release::Release;
use super::rules::MAX_RT_PRIO;
use schedlab_base::Nanos;
use schedlab_sim::program::Policy;
use schedlab_sim::{Attributes, TaskId};

/// How a task was woken (`activated`), until it first runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activated {
    /// It has run since.
    #[default]
    No,
    /// From a sleep for a device, or in 2.6.18 from a single long one: its wait is no sleep.
    Uninterruptible,
    /// By a task: a part of its wait counts as sleep.
    ByTask,
    /// By an interrupt: its wait counts as sleep.
    ByInterrupt,
}

/// What is known of a task's sleeping and running.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habit {
    /// How much it slept of late, less what it ran.
    pub sleep_avg: Nanos,
    /// How often it proved interactive, less how often it did not (`interactive_credit` of 2.6.0).
    pub credit: i32,
    /// Its sleep was not for a user's sake: it rises no further than to just interactive by it.
    pub aloof: bool,
}

/// One of a CPU's two arrays.
pub type Side = usize;

/// A task, as its `task_struct` had it.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// The list that it is on or will be put on.
    pub prio: u8,
    /// By its nice level.
    pub static_prio: u8,
    /// OTHER, FIFO or RR, and BATCH where there is one.
    pub policy: Policy,
    /// How it was woken.
    pub activated: Activated,
    /// The array that it is on.
    pub side: Option<Side>,
    /// It sleeps, and waits for a device.
    pub for_device: bool,
    /// What is left of its first slice was its parent's.
    pub first_time_slice: bool,
    /// In ticks.
    pub time_slice: u32,
    /// How much it slept of late, less what it ran.
    pub sleep_avg: Nanos,
    /// `interactive_credit` of 2.6.0.
    pub credit: i32,
    /// Since when it runs, waits or sleeps.
    pub timestamp: Nanos,
    /// When it last was switched from, or chosen again; a child has its parent's (`last_ran`). `None`: long ago.
    pub last_ran: Option<Nanos>,
    /// Who forked it.
    pub parent: Option<TaskId>,
}

impl Task {
    /// A task that has not run, without a slice.
    pub fn new(attributes: &Attributes, release: &Release) -> Self {
        let static_prio = static_prio(attributes);
        Self {
            prio: attributes.real_time_level().unwrap_or(static_prio),
            static_prio,
            policy: policy(attributes, release),
            activated: Activated::No,
            side: None,
            for_device: false,
            first_time_slice: true,
            time_slice: 0,
            sleep_avg: 0,
            credit: 0,
            timestamp: 0,
            last_ran: None,
            parent: None,
        }
    }

    /// Its habit.
    pub fn habit(&self) -> Habit {
        Habit { sleep_avg: self.sleep_avg, credit: self.credit, aloof: self.activated == Activated::Uninterruptible }
    }

    /// Whether its priority is fixed.
    pub fn is_real_time(&self) -> bool {
        self.prio < MAX_RT_PRIO
    }
}

/// The priority of a nice level.
pub fn static_prio(attributes: &Attributes) -> u8 {
    (120 + i16::from(attributes.nice)).clamp(i16::from(MAX_RT_PRIO), i16::from(MAX_PRIO) - 1) as u8
}

/// The policy, of those that there were.
pub fn policy(attributes: &Attributes, release: &Release) -> Policy {
    let known =
        if release.batch { &[Policy::Fifo, Policy::Rr, Policy::Batch][..] } else { &[Policy::Fifo, Policy::Rr] };
    attributes.policy.among(known)
}

/// A CPU's queue.
#[derive(Clone, Debug)]
pub struct Rq {
    /// The active and the expired one, in turns.
    pub arrays: [PrioArray; 2],
    /// Which of them is the active one.
    pub active: Side,
    /// When the first task expired since the arrays changed places, in jiffies; 0: none has.
    pub expired_timestamp: u64,
    /// The best static priority among the expired.
    pub best_expired_prio: u8,
    /// The sum of the weights of the tasks on both arrays (`raw_weighted_load`).
    pub load: u64,
    /// What the load was at the last tick, and its averages over ticks, each of half the past and half the present, and
    /// of three quarters and one. 2.6.11 has the second only.
    pub cpu_load: [u64; 3],
}

impl Default for Rq {
    fn default() -> Self {
        Self {
            arrays: Default::default(),
            active: 0,
            expired_timestamp: 0,
            best_expired_prio: MAX_PRIO,
            load: 0,
            cpu_load: [0; 3],
        }
    }
}

impl Rq {
    /// Which array is the expired one.
    pub fn expired(&self) -> Side {
        1 - self.active
    }

    /// Averages the load at `ticks` ticks in a row, between which it did not change (`rebalance_tick`). A load that
    /// rises is rounded up, so that the averages reach it.
    pub fn average_load(&mut self, ticks: u64) {
        let now = self.load;
        for (i, average) in self.cpu_load.iter_mut().enumerate() {
            let past = (1 << i) - 1;
            for _ in 0..ticks {
                let up = if now > *average { past } else { 0 };
                let next = (*average * past + now + up) / (past + 1);
                if next == *average {
                    break;
                }
                *average = next;
            }
        }
    }

    /// Whether the averages have reached the load: a tick changes nothing about them.
    #[inline]
    pub fn is_steady(&self) -> bool {
        self.cpu_load == [self.load; 3]
    }

    /// How many tasks can run, the running one included.
    pub fn nr_running(&self) -> u32 {
        self.arrays.iter().map(PrioArray::nr_active).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn averages_follow_the_load_and_reach_it() {
        let rq = |load, cpu_load| Rq { load, cpu_load, ..Rq::default() };
        let after = |mut rq: Rq, ticks| {
            rq.average_load(ticks);
            rq.cpu_load
        };
        assert_eq!(after(rq(256, [0; 3]), 1), [256, 128, 64]);
        // (128 + 257) / 2 = 192; (3 * 64 + 259) / 4 = 112.
        assert_eq!(after(rq(256, [256, 128, 64]), 1), [256, 192, 112]);
        assert_eq!(after(rq(256, [0; 3]), 2), [256, 192, 112]);
        assert_eq!(after(rq(0, [256, 192, 112]), 1), [0, 96, 84]);
        assert_eq!(after(rq(10, [0, 9, 9]), 1), [10; 3]);
        assert_eq!(after(rq(10, [256; 3]), u64::MAX), [10; 3]);
    }
}

//! The state of a task and of a CPU.

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
    /// It waited for a device or, in 2.6.18, had a single long sleep: its wait does not count as sleep.
    Uninterruptible,
    /// A task woke it: a part of its wait counts as sleep.
    ByTask,
    /// An interrupt woke it: its wait counts as sleep.
    ByInterrupt,
}

/// How much a task sleeps and runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Habit {
    /// How much it has recently slept, minus what it ran.
    pub sleep_avg: Nanos,
    /// How often it proved interactive, minus how often it did not (`interactive_credit` of 2.6.0).
    pub credit: i32,
    /// Whether its sleep says nothing about interactivity, so that it becomes just interactive at most.
    pub aloof: bool,
}

/// The index of one of a CPU's two arrays.
pub type Side = usize;

/// The state of a task, as in `task_struct`.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// The list that it is on, or will be put on.
    pub prio: u8,
    /// The priority of its nice level.
    pub static_prio: u8,
    /// OTHER, FIFO or RR, and BATCH if the release has it.
    pub policy: Policy,
    /// How it was woken.
    pub activated: Activated,
    /// The array that it is on, if any.
    pub side: Option<Side>,
    /// Whether it sleeps waiting for a device.
    pub for_device: bool,
    /// Whether the rest of its slice comes from its parent.
    pub first_time_slice: bool,
    /// The rest of its slice, in ticks.
    pub time_slice: u32,
    /// How much it has recently slept, minus what it ran.
    pub sleep_avg: Nanos,
    /// `interactive_credit` of 2.6.0.
    pub credit: i32,
    /// Since when it has been running, waiting or sleeping.
    pub timestamp: Nanos,
    /// When it was last switched out, or picked again; a child starts with its parent's value. `None` means long ago.
    pub last_ran: Option<Nanos>,
    /// The task that forked it.
    pub parent: Option<TaskId>,
}

impl Task {
    /// Creates a task that has not run and has no slice.
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

    /// Returns its habit.
    pub fn habit(&self) -> Habit {
        Habit { sleep_avg: self.sleep_avg, credit: self.credit, aloof: self.activated == Activated::Uninterruptible }
    }

    /// Returns whether its priority is fixed.
    pub fn is_real_time(&self) -> bool {
        self.prio < MAX_RT_PRIO
    }
}

/// Returns the priority of a nice level.
pub fn static_prio(attributes: &Attributes) -> u8 {
    (120 + i16::from(attributes.nice)).clamp(i16::from(MAX_RT_PRIO), i16::from(MAX_PRIO) - 1) as u8
}

/// Returns the policy, as one of those that the release has.
pub fn policy(attributes: &Attributes, release: &Release) -> Policy {
    let known =
        if release.batch { &[Policy::Fifo, Policy::Rr, Policy::Batch][..] } else { &[Policy::Fifo, Policy::Rr] };
    attributes.policy.among(known)
}

/// The runqueue of a CPU.
#[derive(Clone, Debug)]
pub struct Rq {
    /// The active and the expired array; they swap roles.
    pub arrays: [PrioArray; 2],
    /// The index of the active array.
    pub active: Side,
    /// When the first task expired since the arrays were swapped, in jiffies; 0 if none has.
    pub expired_timestamp: u64,
    /// The best static priority of an expired task.
    pub best_expired_prio: u8,
    /// The sum of the weights of the tasks on both arrays (`raw_weighted_load`).
    pub load: u64,
    /// The load at the last tick, and two averages over ticks: one gives the past a weight of 1/2, the other 3/4.
    /// 2.6.11 has only the first average.
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
    /// Returns the index of the expired array.
    pub fn expired(&self) -> Side {
        1 - self.active
    }

    /// Updates the averages at `ticks` ticks in a row, during which the load did not change (`rebalance_tick`). A
    /// rising load is rounded up, so that the averages reach it.
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

    /// Returns whether the averages have reached the load, so that a tick does not change them.
    #[inline]
    pub fn is_steady(&self) -> bool {
        self.cpu_load == [self.load; 3]
    }

    /// Returns how many tasks are runnable, including the running one.
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

//! What tasks slept for: how often and how long, by what they waited for, where the trace contains it.

use crate::measure::us;
use schedlab_base::{CpuId, Nanos, Sleep, TaskState};
use schedlab_track::{Observer, Slot, Start, Stop, Wake, row};
use serde::Serialize;

/// The sleeps for one kind of thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SleepStats {
    /// What for: `timer`, `futex`, `pipe`, `socket`, `terminal`, `file`, `poll`, `child`, `signal`, `ipc` or `io`.
    pub why: &'static str,
    /// How many sleeps began.
    pub count: u64,
    /// The time that they took, as far as their ends are in the trace.
    pub slept_us: f64,
    /// The longest.
    pub longest_us: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slept {
    count: u64,
    time: Nanos,
    longest: Nanos,
}

/// The sleep of a task: announced, or under way.
#[derive(Clone, Copy, Debug, Default)]
enum Now {
    #[default]
    Awake,
    Falls(Sleep),
    Sleeps(Sleep, Nanos),
}

/// The observer.
#[derive(Debug, Default)]
pub(crate) struct Sleeps {
    by: [Slept; Sleep::ALL.len()],
    tasks: Vec<Now>,
}

impl Sleeps {
    /// By what for, most time first; nothing where the trace does not say.
    pub(crate) fn stats(&self) -> Vec<SleepStats> {
        let stats = |((_, why), slept): (&(Sleep, &'static str), &Slept)| SleepStats {
            why,
            count: slept.count,
            slept_us: us(slept.time),
            longest_us: us(slept.longest),
        };
        let mut all: Vec<_> = Sleep::ALL.iter().zip(&self.by).filter(|(_, slept)| slept.count > 0).map(stats).collect();
        all.sort_by(|a, b| b.slept_us.total_cmp(&a.slept_us));
        all
    }

    fn awake(&mut self, task: Slot, now: Nanos) {
        // Nothing was announced in most traces.
        let Some(state) = self.tasks.get_mut(task as usize) else { return };
        if let Now::Sleeps(why, since) = std::mem::take(state) {
            let (slept, length) = (&mut self.by[why as usize], now.saturating_sub(since));
            slept.time = slept.time.saturating_add(length);
            slept.longest = slept.longest.max(length);
        }
    }
}

impl Observer for Sleeps {
    fn sleeps(&mut self, task: Slot, why: Sleep) {
        *row(&mut self.tasks, task) = Now::Falls(why);
    }

    fn stopped(&mut self, task: Slot, _: CpuId, stop: Stop) {
        let Some(state) = self.tasks.get_mut(task as usize) else { return };
        if let Now::Falls(why) = std::mem::take(state)
            && matches!(stop.state, TaskState::Sleeping | TaskState::Uninterruptible)
        {
            self.by[why as usize].count += 1;
            *state = Now::Sleeps(why, stop.now);
        }
    }

    fn woken(&mut self, task: Slot, wake: Wake) {
        self.awake(task, wake.now);
    }

    fn started(&mut self, task: Slot, _: CpuId, start: Start) {
        self.awake(task, start.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_lasts_from_the_switch_to_the_wake_up() {
        let mut sleeps = Sleeps::default();
        let stop = |now, state| Stop { now, state, prio: 120, since: None, last: now, late: false };
        let wake = |now| Wake { now, cpu: 0, target: 0, by: None, context: Default::default(), prio: 120, new: false };
        sleeps.sleeps(3, Sleep::Pipe);
        sleeps.stopped(3, 0, stop(1_000, TaskState::Sleeping));
        sleeps.woken(3, wake(5_000));
        sleeps.started(3, 0, Start { now: 9_000, prio: 120, unseen: false });
        sleeps.sleeps(3, Sleep::Timer);
        sleeps.stopped(3, 0, stop(10_000, TaskState::Sleeping));
        sleeps.sleeps(4, Sleep::Pipe);
        sleeps.stopped(4, 0, stop(10_000, TaskState::Runnable));
        sleeps.stopped(5, 0, stop(11_000, TaskState::Sleeping));
        sleeps.woken(5, wake(12_000));
        let found: Vec<_> = sleeps.stats().into_iter().map(|s| (s.why, s.count, s.slept_us, s.longest_us)).collect();
        assert_eq!(found, [("pipe", 1, 4.0, 4.0), ("timer", 1, 0.0, 0.0)]);
    }
}

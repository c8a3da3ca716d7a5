//! What wake-ups cost on the machine, as far as the recording shows it.
//!
//! A task that is woken onto an idle CPU runs as soon as the CPU has left idle. One that preempts a task on another CPU
//! runs as soon as that CPU has got the interrupt. Neither time depends on what the scheduler chooses.

use super::cause::Sample;
use crate::SeenCosts;
use schedlab_base::{CpuId, Nanos, TaskState};
use schedlab_track::{Delay, Observer, Occupant, Slot, Stop, Wake, row};

/// So many wake-ups at least show a cost.
const FEWEST: u64 = 16;

/// A preemption later than this was not the wake-up's: a tick's, or that of the end of a slice.
const PROMPT: Nanos = 100_000;

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// What it runs: `None` while that is not known, `Some(None)` while it is idle.
    runs: Option<Option<Slot>>,
    /// The task that was woken onto it, when, and what it ran then. None once anything else has happened there.
    woken: Option<(Slot, Nanos, Option<Slot>)>,
    /// The task that it has just switched away from while that was runnable.
    preempted: Option<Slot>,
}

/// The observer.
#[derive(Debug, Default)]
pub(super) struct CostsSeen {
    cpus: Vec<Cpu>,
    from_idle: Sample,
    preempting: Sample,
}

impl CostsSeen {
    /// The median costs, of those that enough wake-ups show.
    pub(super) fn seen(&self) -> SeenCosts {
        let median = |sample: &Sample| (sample.seen() >= FEWEST).then(|| sample.percentile(50));
        SeenCosts { idle_exit_ns: median(&self.from_idle), wakeup_to_switch_ns: median(&self.preempting) }
    }
}

impl Observer for CostsSeen {
    fn woken(&mut self, task: Slot, wake: Wake) {
        let cpu = row(&mut self.cpus, wake.target);
        // A task that wakes another on its own CPU is first done with its system call.
        let counts = !wake.new && cpu.woken.is_none() && (wake.cpu != wake.target || cpu.runs == Some(None));
        cpu.woken = cpu.runs.filter(|_| counts).map(|runs| (task, wake.now, runs));
    }

    fn stopped(&mut self, task: Slot, cpu: CpuId, stop: Stop) {
        row(&mut self.cpus, cpu).preempted = (stop.state == TaskState::Runnable && !stop.late).then_some(task);
    }

    fn served(&mut self, task: Slot, cpu: CpuId, delay: Delay) {
        let cpu = row(&mut self.cpus, cpu);
        let Some((woken, at, ran)) = cpu.woken.take().filter(|(woken, ..)| *woken == task) else { return };
        let cost = delay.end.saturating_sub(at);
        match ran {
            None => self.from_idle.add(cost),
            Some(victim) if cpu.preempted == Some(victim) && victim != woken && cost < PROMPT => {
                self.preempting.add(cost)
            }
            Some(_) => {}
        }
    }

    fn occupied(&mut self, cpu: CpuId, who: Occupant, _: Nanos) {
        let cpu = row(&mut self.cpus, cpu);
        cpu.runs = match who {
            Occupant::Unknown => None,
            Occupant::Idle => Some(None),
            Occupant::Task(task) => Some(Some(task)),
        };
        (cpu.woken, cpu.preempted) = (None, None);
    }
}

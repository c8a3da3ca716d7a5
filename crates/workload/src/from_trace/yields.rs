//! Tasks that yield their CPU. A trace shows a task that yields leaving its CPU runnable, as one that is preempted
//! does.
//!
//! A task is preempted when another one joins its queue, or at a tick, when its turn is over. So a task that leaves its
//! CPU runnable though none has joined the queue since it got there, and several times between two ticks, yields. Two
//! things look the same: a task that has used up its group's quota or its own runtime, and one that makes way for a
//! task of a higher class whose throttling is over. They do not count. Where the trace lacks wake-ups nothing shows.
//!
//! A task that yields while it is alone goes on at once, which no trace shows.

use super::groups::Groups;
use super::sequence::{TaskIx, Token};
use super::track::Track;
use schedlab_base::{CpuId, Nanos};
use schedlab_track::{Stop, row};

/// So often at least a task has to have yielded.
const FEWEST: u64 = 16;

/// Less than this is the priority of a real-time or deadline task.
const ORDINARY: i16 = 100;

/// What happened on a CPU.
#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// When a task last joined its queue.
    joined: Option<Nanos>,
    /// The task that may just have yielded it.
    left: Option<TaskIx>,
}

/// What happened on the CPUs.
#[derive(Debug, Default)]
pub(super) struct Yields {
    cpus: Vec<Cpu>,
    /// Whether the trace has wake-ups.
    wakes: bool,
}

impl Yields {
    /// A task joins the queue of a CPU.
    pub(super) fn joins(&mut self, cpu: CpuId, now: Nanos) {
        self.wakes = true;
        row(&mut self.cpus, cpu).joined = Some(now);
    }
}

impl Track {
    /// A task leaves its CPU runnable.
    pub(super) fn gives_up(&mut self, ix: TaskIx, on: CpuId, stop: &Stop) {
        self.is_preempted(ix, stop.now);
        let cpu = row(&mut self.yields.cpus, on);
        let (Some(since), Some(tick)) = (stop.since, self.tick) else { return };
        let undisturbed = cpu.joined.is_none_or(|joined| joined < since);
        cpu.left = Some(ix).filter(|_| undisturbed && stop.now - since < tick / 2 && stop.prio >= 0);
    }

    /// A task with this priority gets the CPU.
    pub(super) fn took_over(&mut self, cpu: CpuId, prio: i16) {
        let Some(ix) = row(&mut self.yields.cpus, cpu).left.take() else { return };
        if prio >= ORDINARY.min(self.tasks[ix as usize].prio) {
            self.push(ix, Token::Yield);
            self.tasks[ix as usize].yields += 1;
        }
    }

    /// Whether what looks as if a task yields is that: there is more of it than ticks could cause, twice a tick, and no
    /// quota that could.
    pub(super) fn yielded(&self, ix: TaskIx, groups: &Groups) -> bool {
        let task = &self.tasks[ix as usize];
        let quota = |path: &str| groups.has_quota(path);
        let limited = task.identities.iter().any(|(identity, _)| identity.cgroup.as_deref().is_some_and(quota));
        let often = |tick: Nanos| task.yields >= FEWEST && task.run / task.yields <= tick / 2;
        self.yields.wakes && !limited && self.tick.is_some_and(often)
    }
}

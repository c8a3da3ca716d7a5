//! Kills tasks that have lived for as long as they may.

use super::Engine;
use crate::process::{Burst, Mark, Wait};
use crate::program::Op;
use crate::scheduler::Scheduler;
use crate::task::{State, TaskId, tid};
use schedlab_base::{CpuId, Nanos, Payload, Result};

/// The signal that ends a task.
const SIGKILL: u16 = 9;

impl<S: Scheduler> Engine<'_, S> {
    /// The task begins: from now on its time runs.
    #[inline]
    pub(super) fn begins(&mut self, p: TaskId) {
        self.sets_out(p);
        if let Some(at) = self.dies_at(p) {
            self.timers.add(at, p);
        }
    }

    /// Notes when the task begins, if something counts from then.
    #[inline]
    pub(super) fn sets_out(&mut self, p: TaskId) {
        if let Some(started) = &mut self.started {
            started.resize(started.len().max(p as usize + 1), 0);
            started[p as usize] = self.cx.now;
        }
    }

    /// When the task began.
    pub(super) fn started(&self, p: TaskId) -> Nanos {
        self.started.as_ref().expect("something counts from then")[p as usize]
    }

    /// When the task is killed.
    fn dies_at(&self, p: TaskId) -> Option<Nanos> {
        let lifetime = self.processes[p as usize].spec.lifetime?;
        Some(self.started(p).saturating_add(lifetime))
    }

    /// Whether the task has lived for as long as it may.
    #[inline]
    pub(super) fn is_of_age(&self, p: TaskId) -> bool {
        let process = &self.processes[p as usize];
        let begun = process.wait != Wait::Nothing || self.cx.task(p).state == State::Runnable;
        begun && self.dies_at(p).is_some_and(|at| at <= self.cx.now)
    }

    /// A signal reaches the task: it wakes up, or does not go on with its burst.
    pub(super) fn kill(&mut self, p: TaskId) {
        let process = &mut self.processes[p as usize];
        process.mark(Mark::Killed, true);
        match self.cx.task(p).state {
            State::Dead => {}
            State::Sleeping { .. } => {
                let wait = process.wait;
                self.resources.forget(wait, p);
                if let (Wait::Mutex(m), Some(how)) = (wait, self.inheritance)
                    && let Some(owner) = self.resources.mutexes[m as usize].owner
                {
                    self.lend_along(how, owner);
                }
                self.wake(p, None);
            }
            State::Runnable => {
                process.begin(Burst::Work, 0);
                let cpu = self.cx.task(p).cpu;
                if self.cx.curr(cpu) == Some(p) {
                    self.cx.cpus[cpu as usize].burst_end = self.cx.now;
                    self.cx.touch(cpu);
                }
            }
        }
    }

    /// Ends a task that was killed, when it has its CPU. It does nothing of what its program still says, but that it
    /// posts semaphores, unlocks what it holds, answers what has been asked, resumes others, and forks children that
    /// are killed as well.
    pub(super) fn wind_up(&mut self, cpu: CpuId, p: TaskId) -> Result<()> {
        self.cx.emit(cpu, Payload::Killed { tid: tid(p), signal: SIGKILL });
        if let Some(Op::Lock(m)) = self.processes[p as usize].fetch_last() {
            self.leaves_it_to_others(p, *m);
        }
        while let Some(op) = self.processes[p as usize].fetch_last() {
            self.processes[p as usize].pc += 1;
            let born = self.cx.nr_tasks();
            match op {
                // What it would have been asked there is answered. A mere post is left to others.
                Op::SemWait(s) if self.has_questions(*s) => _ = self.take_post(p, *s),
                Op::Unlock(m) if self.resources.mutexes[*m as usize].owner != Some(p) => {}
                op if op.serves_others() => _ = self.execute(cpu, p, op)?,
                _ => {}
            }
            (born..self.cx.nr_tasks()).for_each(|child| {
                self.processes[child as usize].mark(Mark::Killed, true);
            });
        }
        self.exit(cpu, p);
        Ok(())
    }

    /// A task that was woken to take a mutex does not take it: the next one may.
    fn leaves_it_to_others(&mut self, p: TaskId, m: u32) {
        let mutex = &mut self.resources.mutexes[m as usize];
        mutex.waiters.retain(|q| *q != p);
        mutex.wanted = true;
        if mutex.owner.is_none() {
            self.wake_waiter(p, m, None);
        }
    }
}

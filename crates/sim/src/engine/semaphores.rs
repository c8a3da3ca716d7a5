//! Semaphores, and the questions that are asked with their posts.

use super::Engine;
use super::exec::Did;
use crate::process::Wait;
use crate::program::Op;
use crate::scheduler::Scheduler;
use crate::task::TaskId;

impl<S: Scheduler> Engine<'_, S> {
    /// Executes an operation on a semaphore.
    #[inline]
    pub(super) fn semaphore(&mut self, p: TaskId, op: &Op) -> Did {
        match *op {
            Op::SemPost(s) => self.post(p, s),
            Op::SemWait(s) => self.wait_sem(p, s),
            Op::Ask(s) => {
                self.resources.sems[s as usize].askers.push_back(p);
                self.post(p, s)
            }
            Op::Answer(s) => self.answer(p, s),
            Op::Await => self.wait_answer(p),
            _ => unreachable!("only operations on semaphores come here"),
        }
    }

    fn post(&mut self, p: TaskId, s: u32) -> Did {
        let sem = &mut self.resources.sems[s as usize];
        sem.count += 1;
        let first = sem.waiters.pop_front();
        self.wake_all(first, p)
    }

    fn wait_sem(&mut self, p: TaskId, s: u32) -> Did {
        if self.take_post(p, s) {
            return Did::Next;
        }
        self.resources.sems[s as usize].waiters.push_back(p);
        self.processes[p as usize].wait = Wait::Sem(s);
        Did::Retry
    }

    /// Whether somebody asked there, and nobody has taken the question.
    pub(super) fn has_questions(&self, s: u32) -> bool {
        !self.resources.sems[s as usize].askers.is_empty()
    }

    /// Takes a post, and the oldest question there; `false` if there is no post.
    pub(super) fn take_post(&mut self, p: TaskId, s: u32) -> bool {
        let sem = &mut self.resources.sems[s as usize];
        if sem.count == 0 {
            return false;
        }
        sem.count -= 1;
        if let Some(asker) = sem.askers.pop_front() {
            self.processes[p as usize].rare_mut().questions.push_back((s, asker));
        }
        true
    }

    fn answer(&mut self, p: TaskId, s: u32) -> Did {
        let taken = &self.processes[p as usize].rare().questions;
        let Some(at) = taken.iter().position(|(sem, _)| *sem == s) else { return Did::Next };
        let (_, asker) = self.processes[p as usize].rare_mut().questions.remove(at).expect("it is there");
        let process = &mut self.processes[asker as usize];
        process.rare_mut().answers += 1;
        let awaited = process.wait == Wait::Answer;
        self.wake_all(awaited.then_some(asker), p)
    }

    /// Who waits for the answer that a task gives next there.
    pub(super) fn answered(&self, p: TaskId, s: u32) -> Option<TaskId> {
        let (_, asker) = *self.processes[p as usize].rare().questions.iter().find(|(sem, _)| *sem == s)?;
        Some(asker).filter(|asker| self.processes[*asker as usize].wait == Wait::Answer)
    }

    fn wait_answer(&mut self, p: TaskId) -> Did {
        let process = &mut self.processes[p as usize];
        if process.rare().answers > 0 {
            process.rare_mut().answers -= 1;
            return Did::Next;
        }
        process.wait = Wait::Answer;
        Did::Retry
    }
}

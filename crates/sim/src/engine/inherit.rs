//! Mutexes with priority inheritance, as PI futexes have them (`rt_mutex`).
//!
//! Tasks wait in the order of their priority. The holder has the best priority of its own and those of the first
//! waiters of all mutexes that it holds, and so along a chain of holders that wait themselves. A mutex that is released
//! stays reserved for its first waiter, which takes it when it runs; until then only a task with a better priority than
//! that waiter's may take it.

use super::Engine;
use super::exec::Did;
use crate::process::{Rank, Wait};
use crate::program::Policy;
use crate::scheduler::Scheduler;
use crate::task::{Attributes, State, TaskId};

/// How a kernel lends priorities to holders of mutexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inheritance {
    /// Whether it has deadline tasks (3.14 on).
    pub deadline: bool,
    /// Whether waiters of the fair classes count alike; otherwise they wait in the order of their nice levels.
    pub fair_alike: bool,
    /// Whether the holder gives back what was lent before the waiter is woken; otherwise after.
    pub returns_first: bool,
}

/// The rank of all fair tasks in kernels that count them alike.
const FAIR: i16 = 120;

/// How many mutexes a chain may have (`max_lock_depth`).
const DEEPEST: u32 = 1024;

impl<S: Scheduler> Engine<'_, S> {
    /// Takes a mutex, or waits for it and lends its holder this task's priority.
    pub(super) fn lock_lending(&mut self, how: Inheritance, p: TaskId, m: u32) -> Did {
        let rank = self.rank(how, p);
        let mutex = &mut self.resources.mutexes[m as usize];
        let waits = mutex.waiters.contains(&p);
        let may_take = match mutex.waiters.front() {
            None => true,
            Some(first) if waits => *first == p,
            Some(first) => rank < self.processes[*first as usize].rare().rank,
        };
        if mutex.owner.is_none() && may_take {
            mutex.waiters.retain(|q| *q != p);
            mutex.owner = Some(p);
            self.processes[p as usize].rare_mut().held.push(m);
            return Did::Next;
        }
        let owner = mutex.owner;
        self.processes[p as usize].wait = Wait::Mutex(m);
        if !waits || rank != self.processes[p as usize].rare().rank {
            self.resources.mutexes[m as usize].waiters.retain(|q| *q != p);
            self.processes[p as usize].rare_mut().rank = rank;
            self.queue_up(p, m);
        }
        if let Some(owner) = owner {
            self.lend_along(how, owner);
        }
        Did::Retry
    }

    /// Handles that `p` has released a mutex that `owner` held: wakes the first waiter and takes back what was lent.
    pub(super) fn unlock_lending(&mut self, how: Inheritance, p: TaskId, m: u32, owner: Option<TaskId>) {
        if let Some(owner) = owner {
            self.processes[owner as usize].rare_mut().held.retain(|held| *held != m);
        }
        let first = self.resources.mutexes[m as usize].waiters.front().copied();
        let first = first.filter(|q| self.processes[*q as usize].wait == Wait::Mutex(m));
        if let Some(owner) = owner.filter(|_| how.returns_first) {
            self.lend_along(how, owner);
        }
        if let Some(q) = first {
            self.wake(q, Some(p));
        }
        if let Some(owner) = owner.filter(|_| !how.returns_first) {
            self.lend_along(how, owner);
        }
    }

    /// Inserts a task among the waiters of a mutex, after those with the same rank.
    fn queue_up(&mut self, p: TaskId, m: u32) {
        let rank = self.processes[p as usize].rare().rank;
        let waiters = &mut self.resources.mutexes[m as usize].waiters;
        let at = waiters.iter().position(|q| rank < self.processes[*q as usize].rare().rank).unwrap_or(waiters.len());
        waiters.insert(at, p);
    }

    /// Adjusts what a holder is lent, and then the holders for which it waits in turn (`rt_mutex_adjust_prio_chain`).
    pub(super) fn lend_along(&mut self, how: Inheritance, holder: TaskId) {
        let mut at = Some(holder);
        for _ in 0..DEEPEST {
            let Some(p) = at else { return };
            self.lend(how, p);
            let Wait::Mutex(m) = self.processes[p as usize].wait else { return };
            let rank = self.rank(how, p);
            if rank == self.processes[p as usize].rare().rank {
                return;
            }
            self.processes[p as usize].rare_mut().rank = rank;
            let first = self.resources.mutexes[m as usize].waiters.front().copied();
            self.resources.mutexes[m as usize].waiters.retain(|q| *q != p);
            self.queue_up(p, m);
            let mutex = &self.resources.mutexes[m as usize];
            at = mutex.owner;
            let now_first = mutex.waiters.front().copied();
            if at.is_none() && first != now_first && now_first == Some(p) {
                // The mutex is free, and reserved for its first waiter: that is another one now.
                let waker = self.cx.curr(self.cx.acting);
                self.wake(p, waker);
            }
        }
    }

    /// Gives a task the best of its own attributes and those of the first waiters of the mutexes that it holds
    /// (`rt_mutex_setprio`).
    pub(super) fn lend(&mut self, how: Inheritance, p: TaskId) {
        if self.cx.task(p).state == State::Dead {
            return;
        }
        let first = |m: &u32| self.resources.mutexes[*m as usize].waiters.front().copied();
        let waiters = self.processes[p as usize].rare().held.iter().filter_map(first);
        let donor = waiters.min_by_key(|q| self.processes[*q as usize].rare().rank);
        let (old, own) = (self.cx.task(p).attributes, *self.cx.own(p));
        let lent = donor.and_then(|q| self.lent(how, p, q));
        if lent.is_none() && !self.cx.is_lent(p) {
            return;
        }
        let new = lent.unwrap_or(own);
        let cpu = self.cx.task(p).cpu;
        self.cx.tasks[p as usize].attributes = new;
        if lent.is_some() {
            self.cx.own.insert(p, own);
        } else {
            self.cx.own.remove(&p);
        }
        // A deadline task gets a new budget though nothing else has changed.
        let alike = (old.policy, old.rt_priority) == (new.policy, new.rt_priority);
        if !alike || new.policy == Policy::Deadline || (lent.is_none() && new != old) {
            self.catch_up(cpu);
            self.sched.attributes_changed(&mut self.cx, p, &old);
            self.cx.touch(cpu);
        }
    }

    /// The attributes that a waiter lends to a holder; `None` if they are no better than its own.
    fn lent(&self, how: Inheritance, holder: TaskId, waiter: TaskId) -> Option<Attributes> {
        let (own, theirs) = (*self.cx.own(holder), self.cx.task(waiter).attributes);
        match theirs.policy {
            Policy::Deadline if how.deadline => {
                let later = self.sched.deadline(waiter) >= self.sched.deadline(holder);
                let Attributes { runtime, deadline, period, .. } = theirs;
                let lent = Attributes { policy: Policy::Deadline, runtime, deadline, period, ..own };
                Some(lent).filter(|_| own.policy != Policy::Deadline || !later)
            }
            // The holder's policy remains, but its priority is real time.
            Policy::Fifo | Policy::Rr => {
                let policy = if own.policy == Policy::Rr { Policy::Rr } else { Policy::Fifo };
                let lent = Attributes { policy, rt_priority: theirs.rt_priority, ..own };
                Some(lent).filter(|_| prio(how, &theirs) < prio(how, &own))
            }
            // The nice level decides a fair task's weight, and it is not lent.
            _ => None,
        }
    }

    fn rank(&self, how: Inheritance, p: TaskId) -> Rank {
        let prio = prio(how, &self.cx.task(p).attributes);
        match prio {
            ..0 => (prio, self.sched.deadline(p)),
            FAIR_FROM.. if how.fair_alike => (FAIR, 0),
            _ => (prio, 0),
        }
    }
}

/// The first priority of fair tasks.
const FAIR_FROM: i16 = 100;

/// A task's priority in a kernel that may have no deadline tasks.
fn prio(how: Inheritance, attributes: &Attributes) -> i16 {
    if attributes.policy == Policy::Deadline && !how.deadline {
        return FAIR + i16::from(attributes.nice);
    }
    attributes.prio()
}

//! Follows every wait from its beginning to its end, and keeps the longest ones.

use super::allowed::{ANYWHERE, Allowed};
use super::chain::{Chain, Preemptions};
use super::found::{Found, Longest};
use super::parts::Ticket;
use super::ran::{Caused, Queues};
use super::sums::{Entry, IDLE, UNKNOWN, Who};
use crate::affinity::bound_by_name;
use schedlab_base::{AffinityRecord, CpuId, NameRecord, Nanos, TaskState};
use schedlab_track::{Chosen, Delay, Move, Observer, Occupant, Slot, Start, Stop, Wake, row};

/// What made a task wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum After {
    /// It was woken.
    #[default]
    Wakeup,
    /// It is new.
    Fork,
    /// It had to leave its CPU, or gave it up, while it was runnable.
    Preemption,
}

/// The queues that a task has left while it waits, with its time on each, and what ran there.
#[derive(Clone, Debug, Default)]
struct Left {
    queues: Vec<(CpuId, Nanos)>,
    ran: Vec<Ticket>,
}

/// A wait under way.
#[derive(Clone, Debug, Default)]
struct Task {
    begin: Nanos,
    after: After,
    /// What the next wait comes after.
    next_after: After,
    /// It began before the window.
    before: bool,
    /// The task ran meanwhile, and nobody saw it.
    doubtful: bool,
    /// It counts from the waking on, which is given up if wakeups are recorded.
    tentative: bool,
    /// It has a CPU; followed as long as no wakeup was recorded.
    running: bool,
    /// The queues that it has left, and what ran there.
    left: Option<Box<Left>>,
    /// Where it may run, and whether that is known.
    set: u32,
    known: bool,
    /// How long a CPU of the set had been idle when the wait began; and with an earlier affinity, in this wait.
    idle_before: Nanos,
    idle: Nanos,
}

/// Waits of a task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Victim {
    pub(super) wait: Nanos,
    pub(super) waits: u64,
    pub(super) longest: Nanos,
}

impl Victim {
    fn add(&mut self, wait: Nanos) {
        self.wait = self.wait.saturating_add(wait);
        self.waits += 1;
        self.longest = self.longest.max(wait);
    }
}

/// The observer.
#[derive(Debug)]
pub(super) struct Watch {
    chosen: Option<Chosen>,
    start: Nanos,
    now: Nanos,
    opened: bool,
    closed: bool,
    /// Wakeups are recorded, so that wakings begin no wait.
    wakeups: bool,
    queues: Queues,
    tasks: Vec<Task>,
    victims: Vec<Victim>,
    allowed: Allowed,
    preemptions: Preemptions,
    /// The task that leaves its queue in this event, and when: it is told next why.
    pending: Option<(Slot, Nanos)>,
    /// The task that is being moved in this event.
    moving: Option<Slot>,
    /// The task that leaves a CPU in this event, still runnable.
    left: Option<(CpuId, Slot)>,
    found: Longest,
}

impl Watch {
    /// Keeps so many of the longest waits; of the chosen tasks, if any were. `opened`: there is no window to wait for.
    pub(super) fn new(worst: usize, chosen: Option<Chosen>, opened: bool) -> Self {
        Self {
            chosen,
            start: 0,
            now: 0,
            opened,
            closed: false,
            wakeups: false,
            queues: Queues::default(),
            tasks: Vec::new(),
            victims: Vec::new(),
            allowed: Allowed::new(),
            preemptions: Preemptions::default(),
            pending: None,
            moving: None,
            left: None,
            found: Longest::new(worst),
        }
    }

    /// The longest waits, the longest first.
    pub(super) fn found(&self) -> Vec<&Found> {
        self.found.sorted()
    }

    /// Who ran during a wait, each once, when the trace has ended.
    pub(super) fn ran(&self, found: &Found) -> Vec<Entry> {
        self.queues.sums(&found.ran)
    }

    pub(super) fn victim(&self, task: Slot) -> Victim {
        self.victims.get(task as usize).copied().unwrap_or_default()
    }

    pub(super) fn caused(&self) -> &Caused {
        &self.queues.caused
    }

    pub(super) fn preemptions(&self) -> &Preemptions {
        &self.preemptions
    }

    fn begin(&mut self, task: Slot, cpu: CpuId, now: Nanos, after: After, tentative: bool) {
        if self.closed || self.chosen.as_ref().is_some_and(|chosen| !chosen.has(task)) {
            return;
        }
        let before = !self.opened;
        let state = row(&mut self.tasks, task);
        (state.begin, state.after, state.before) = (now, after, before);
        (state.doubtful, state.tentative) = (false, tentative);
        if let Some(left) = state.left.take() {
            self.queues.parts.drop_all(&left.ran);
        }
        (state.idle_before, state.idle) = (self.allowed.time(state.set, now), 0);
        self.queues.push(task, cpu, now);
        self.preemptions.waits(task);
    }

    /// The task leaves its queue for another: what ran there so far is kept with it.
    fn leave_queue(&mut self, task: Slot, now: Nanos) {
        let Some((cpu, since)) = self.queues.place(task) else { return };
        self.queues.settle(cpu, now);
        let Left { queues, ran } = &mut **self.tasks[task as usize].left.get_or_insert_default();
        queues.push((cpu, now.saturating_sub(since)));
        ran.push(self.queues.keep(task));
        self.remove(task);
    }

    /// How long a CPU that the task was allowed on has been idle since its wait began.
    fn idle(&self, task: Slot, now: Nanos) -> Nanos {
        let state = &self.tasks[task as usize];
        state.idle + self.allowed.time(state.set, now).saturating_sub(state.idle_before)
    }

    /// The wait ends, or the trace does.
    #[inline]
    fn end(&mut self, task: Slot, now: Nanos, finished: bool) {
        let Some((cpu, since)) = self.queues.place(task) else { return };
        if now < self.queues.until(cpu) {
            self.unsure(task, now.saturating_sub(since));
        }
        self.count(task, (cpu, since), now, finished);
    }

    /// Counts a wait whose last queue is this one, and takes the task off it.
    #[inline]
    fn count(&mut self, task: Slot, (cpu, since): (CpuId, Nanos), to: Nanos, finished: bool) {
        let length = to.saturating_sub(self.tasks[task as usize].begin);
        row(&mut self.victims, task).add(length);
        if self.found.wants(task, to.saturating_sub(length), to) {
            self.keep(task, (cpu, since), to, finished);
        } else if let Some(left) = self.tasks[task as usize].left.take() {
            self.queues.parts.drop_all(&left.ran);
        }
        self.remove(task);
    }

    fn remove(&mut self, task: Slot) {
        self.queues.remove(task);
        self.preemptions.free(task);
    }

    /// What ran while the task waited is a guess: it counts as unknown.
    #[cold]
    fn unsure(&mut self, task: Slot, length: Nanos) {
        self.queues.acquit(task);
        self.queues.caused.add(UNKNOWN, length);
        self.tasks[task as usize].doubtful = true;
    }

    fn keep(&mut self, task: Slot, (cpu, since): (CpuId, Nanos), to: Nanos, finished: bool) {
        // Beside its own CPU: a task that is queued on an idle CPU is about to run there. If the wait ended before that
        // was seen, idle time after its end may be included.
        let idle = self.idle(task, to);
        let state = &mut self.tasks[task as usize];
        let Left { mut queues, mut ran } = state.left.take().map(|left| *left).unwrap_or_default();
        queues.push((cpu, to.saturating_sub(since)));
        ran.push(if to < self.queues.until(cpu) {
            self.queues.parts.keep(vec![(UNKNOWN, to.saturating_sub(since))])
        } else {
            self.queues.keep(task)
        });
        let found = Found {
            task,
            from: state.begin,
            to,
            after: state.after,
            before: state.before,
            finished: finished && !self.closed,
            doubtful: state.doubtful,
            idle: idle.min(to.saturating_sub(state.begin)),
            known: state.known,
            chain: self.preemptions.longest(task),
            queues,
            ran,
        };
        self.take(found);
    }

    fn take(&mut self, found: Found) {
        if let Some(beyond) = self.found.take(found) {
            self.queues.parts.drop_all(&beyond.ran);
        }
    }

    /// A wait from a waking on in a trace that has wakeups otherwise, or for a CPU whose idle task is hidden: who ran
    /// meanwhile was not followed.
    #[cold]
    fn unfollowed(&mut self, task: Slot, cpu: CpuId, Delay { wait, waking, end: to, .. }: Delay) {
        let (whole, wait) = (wait, wait.min(self.now.saturating_sub(self.start)));
        let from = to.saturating_sub(wait);
        row(&mut self.victims, task).add(wait);
        self.queues.caused.add(UNKNOWN, wait);
        if self.found.wants(task, from, to) {
            let (queues, ran) = (vec![(cpu, to - from)], vec![self.queues.parts.keep(vec![(UNKNOWN, to - from)])]);
            let (after, chain, known) = (After::Wakeup, Chain::default(), row(&mut self.tasks, task).known);
            let (before, finished, doubtful) = (wait < whole, true, waking.is_some());
            self.take(Found { task, from, to, after, before, finished, doubtful, idle: 0, known, chain, queues, ran });
        }
    }

    /// Nothing says that the task waited on its present queue until it got a CPU, so that wait never was. If the task
    /// came from other queues, it has waited on those.
    fn drop_wait(&mut self, task: Slot) {
        let Some((cpu, since)) = self.queues.place(task) else { return };
        self.queues.settle(cpu, self.now);
        self.queues.acquit(task);
        let state = &mut self.tasks[task as usize];
        if state.tentative || state.left.is_none() {
            self.remove(task);
        } else {
            state.doubtful = true;
            self.count(task, (cpu, since), since, false);
        }
    }

    #[cold]
    fn drop_pending(&mut self) {
        if let Some((task, _)) = self.pending.take() {
            self.drop_wait(task);
        }
    }

    #[cold]
    fn drop_tentative(&mut self) {
        let slots = self.queues.cpus().flat_map(|cpu| self.queues.waiting(cpu)).collect::<Vec<_>>();
        for task in slots {
            if self.tasks[task as usize].tentative {
                self.drop_wait(task);
            }
        }
    }

    fn allow(&mut self, task: Slot, set: Option<u32>, now: Nanos) {
        if self.queues.place(task).is_some() {
            self.tasks[task as usize].idle = self.idle(task, now);
        }
        let state = row(&mut self.tasks, task);
        (state.set, state.known) = (set.unwrap_or(ANYWHERE), set.is_some());
        state.idle_before = self.allowed.time(state.set, now);
    }
}

fn key(who: Occupant) -> Who {
    match who {
        Occupant::Unknown => UNKNOWN,
        Occupant::Idle => IDLE,
        Occupant::Task(task) => task,
    }
}

impl Observer for Watch {
    fn begins(&mut self, now: Nanos) {
        (self.start, self.now) = (now, now);
    }

    #[inline]
    fn clock(&mut self, now: Nanos) {
        self.now = now;
        if self.pending.is_some() {
            self.drop_pending();
        }
        (self.moving, self.left) = (None, None);
    }

    fn opens(&mut self, _: Nanos) {
        self.opened = true;
        self.found.drain().for_each(|found| self.queues.parts.drop_all(&found.ran));
        self.victims.clear();
    }

    fn closes(&mut self, _: Nanos) {
        self.closed = true;
    }

    fn ends(&mut self, end: Nanos) {
        self.now = end;
        self.drop_pending();
        self.drop_tentative();
        for cpu in self.queues.cpus() {
            self.queues.settle(cpu, end);
            for task in self.queues.waiting(cpu) {
                self.end(task, end, false);
            }
        }
    }

    fn named(&mut self, task: Slot, record: &NameRecord) {
        if !row(&mut self.tasks, task).known
            && let Some(cpu) = bound_by_name(&record.comm)
        {
            let set = self.allowed.set(&[cpu].into_iter().collect(), self.now);
            self.allow(task, set, self.now);
        }
    }

    fn allowed(&mut self, task: Slot, record: &AffinityRecord) {
        let set = self.allowed.set(&record.cpus, self.now);
        self.allow(task, set, self.now);
    }

    fn forked(&mut self, parent: Option<Slot>, child: Slot, _: bool, _: Nanos) {
        let Some(parent) = parent else { return };
        let Task { set, known, .. } = *row(&mut self.tasks, parent);
        if known && !row(&mut self.tasks, child).known {
            self.allow(child, Some(set), self.now);
        }
    }

    #[inline]
    fn waking(&mut self, task: Slot, wake: Wake) {
        if !self.wakeups && self.queues.place(task).is_none() && !row(&mut self.tasks, task).running {
            self.begin(task, wake.target, self.now, After::Wakeup, true);
        }
    }

    #[inline]
    fn woken(&mut self, task: Slot, wake: Wake) {
        if !self.wakeups && !wake.new {
            self.wakeups = true;
            self.drop_tentative();
        }
        row(&mut self.tasks, task).next_after = if wake.new { After::Fork } else { After::Wakeup };
    }

    #[inline]
    fn queued(&mut self, task: Slot, cpu: CpuId, now: Nanos) {
        if self.moving == Some(task) && self.pending.take_if(|(pending, _)| *pending == task).is_some() {
            self.leave_queue(task, now);
            self.queues.push(task, cpu, now);
            return;
        }
        self.pending = self.pending.filter(|(pending, _)| *pending != task);
        self.drop_wait(task);
        let after = std::mem::take(&mut row(&mut self.tasks, task).next_after);
        self.begin(task, cpu, now, after, false);
    }

    #[inline]
    fn unqueued(&mut self, task: Slot, now: Nanos) {
        // Another task that leaves its queue in this event has not been told a reason, and will not be.
        if self.pending.is_some() {
            self.drop_pending();
        }
        if let Some((cpu, _)) = self.queues.place(task) {
            self.queues.settle(cpu, now);
            self.pending = Some((task, now));
        }
    }

    #[inline]
    fn served(&mut self, task: Slot, cpu: CpuId, delay: Delay) {
        let pending = self.pending.take_if(|(pending, _)| *pending == task);
        if let Some((_, now)) = pending {
            self.end(task, now, true);
        } else if let Some((cpu, _)) = self.queues.place(task).filter(|_| self.tasks[task as usize].tentative) {
            self.queues.settle(cpu, self.now);
            self.end(task, self.now, true);
        } else if self.opened && !self.closed && self.chosen.as_ref().is_none_or(|chosen| chosen.has(task)) {
            self.unfollowed(task, cpu, delay);
        }
    }

    #[inline]
    fn started(&mut self, task: Slot, cpu: CpuId, _: Start) {
        if self.queues.place(task).is_some() && self.pending.is_none_or(|(pending, _)| pending != task) {
            self.drop_wait(task);
        }
        if let Some((_, victim)) = self.left.take_if(|(left, _)| *left == cpu)
            && victim != task
        {
            self.preemptions.preempts(task, victim, self.opened && !self.closed);
        }
    }

    #[inline]
    fn stopped(&mut self, task: Slot, cpu: CpuId, stop: Stop) {
        if stop.late {
            return;
        }
        if !self.wakeups {
            row(&mut self.tasks, task).running = false;
            // It had its CPU when it was woken, though nobody had seen it get that.
            if self.tasks[task as usize].tentative {
                self.drop_wait(task);
            }
        }
        if stop.state == TaskState::Runnable {
            row(&mut self.tasks, task).next_after = After::Preemption;
            self.left = Some((cpu, task));
        } else {
            self.preemptions.leaves(task);
        }
    }

    #[inline]
    fn migrated(&mut self, task: Slot, moved: Move) {
        self.moving = Some(task);
        if self.queues.place(task).is_some_and(|(cpu, _)| cpu != moved.to) && self.tasks[task as usize].tentative {
            self.leave_queue(task, self.now);
            self.queues.push(task, moved.to, self.now);
        }
    }

    #[inline]
    fn span(&mut self, cpu: CpuId, who: Occupant, from: Nanos, to: Nanos) {
        self.queues.was(cpu, key(who), from, to);
    }

    #[inline]
    fn occupied(&mut self, cpu: CpuId, who: Occupant, now: Nanos) {
        if let Occupant::Task(task) = who
            && !self.wakeups
        {
            row(&mut self.tasks, task).running = true;
        }
        self.queues.occupy(cpu, key(who), now);
        self.allowed.turn(cpu, who == Occupant::Idle, now);
    }

    #[cold]
    fn forgotten(&mut self, cpu: CpuId, now: Nanos) {
        self.now = now;
        for task in self.queues.waiting(cpu) {
            self.drop_wait(task);
        }
    }

    #[cold]
    fn vanished(&mut self, task: Slot, _: CpuId, _: Nanos) {
        row(&mut self.tasks, task).running = false;
        self.preemptions.leaves(task);
    }

    #[cold]
    fn doubted(&mut self, task: Slot, _: Nanos) {
        if self.queues.place(task).is_some() {
            self.tasks[task as usize].doubtful = true;
        }
    }
}

//! A CPU goes from one task to another.

use super::Tracker;
use crate::tasks::{Leaves, NEVER, Slot, Status, Task};
use crate::{Delay, Observer, Occupant, Start, Stop};
use schedlab_base::{CpuId, Nanos, TaskState, Tid};
use std::ops::Range;

impl Tracker {
    /// Handles a switch of a CPU from `prev`, in this state, to `next`.
    #[inline]
    pub(super) fn switch(
        &mut self,
        number: CpuId,
        (prev, prev_prio, state): (Tid, i16, TaskState),
        (next, next_prio): (Tid, i16),
        observer: &mut impl Observer,
    ) {
        let (Some(left), Some(entered)) = (self.occupant(prev, observer), self.occupant(next, observer)) else {
            self.contradictions += 1;
            return;
        };
        let whole = self.members.all_followed();
        let (left, entered, aside) = if whole { (left, entered, false) } else { self.partly(left, entered) };
        if let Occupant::Task(slot) = left {
            self.tasks[slot].prio = prev_prio;
        }
        if self.exits.hidden {
            self.learn_act(number);
        }
        let since = self.close(number, left, observer);
        if self.exits.hidden && left == Occupant::Idle {
            self.learn_exit(number, since, entered);
        }
        if let Occupant::Task(slot) = left {
            let last = self.cpus[number as usize].last_event;
            let stop = Stop { now: self.now, state, prio: prev_prio, since, last, late: false };
            self.leave(slot, number, stop, observer);
        } else if let Some(since) = since {
            observer.span(number, left, since, self.now);
        }
        let entered = match entered {
            Occupant::Task(slot) => {
                let start = Start { now: self.now, prio: next_prio, unseen: false };
                Occupant::Task(self.enter(slot, number, start, observer))
            }
            other => other,
        };
        let cpu = &mut self.cpus[number as usize];
        (cpu.fresh, cpu.aside) = (false, aside);
        self.occupy(number, entered, observer);
    }

    /// What a partial recording shows of a switch from `left` to `entered`, and whether the CPU is set aside then.
    #[cold]
    fn partly(&mut self, left: Occupant, entered: Occupant) -> (Occupant, Occupant, bool) {
        if let Occupant::Task(slot) = left {
            self.members.leaves(slot);
        }
        (self.followed(left), self.followed(entered), self.sets_aside(entered))
    }

    /// From now on the CPU has this occupant.
    #[inline]
    fn occupy(&mut self, number: CpuId, entered: Occupant, observer: &mut impl Observer) {
        let cpu = &mut self.cpus[number as usize];
        (cpu.occupant, cpu.since) = (entered, self.now);
        observer.occupied(number, entered, self.now);
        self.tell_queue(number, observer);
    }

    /// Tells what was before the span that a switch away from `left` ends. Returns since when `left` had the CPU, if
    /// that is known.
    #[inline]
    fn close(&mut self, number: CpuId, left: Occupant, observer: &mut impl Observer) -> Option<Nanos> {
        let cpu = &self.cpus[number as usize];
        let (since, now) = (cpu.since, self.now);
        match cpu.occupant {
            known if known == left => Some(since),
            Occupant::Unknown if cpu.fresh && self.complete => {
                let at = self.earliest(number, left);
                if at > since {
                    observer.span(number, Occupant::Unknown, since, at);
                }
                Some(at)
            }
            Occupant::Unknown => {
                if cpu.aside {
                    // The switch to it should have been recorded. Nobody can tell when it was.
                    let at = self.earliest(number, left);
                    self.contradictions += 1;
                    self.contradicted = self.contradicted.saturating_add(now - at);
                }
                observer.span(number, Occupant::Unknown, since, now);
                None
            }
            Occupant::Idle if self.came_back(number, left) => {
                self.close_unknown(number, left, observer);
                None
            }
            believed => {
                let at = self.likely(number, left);
                self.close_unseen(number, believed, left, at, observer);
                Some(at)
            }
        }
    }

    /// Returns the earliest instant at which `left` can have got the CPU, which was not seen: not before the last
    /// switch that was seen, nor while the task waited, slept, or ran elsewhere.
    pub(super) fn earliest(&self, number: CpuId, left: Occupant) -> Nanos {
        let since = self.cpus[number as usize].since;
        match left {
            Occupant::Task(slot) => match self.tasks[slot] {
                Task { status: Status::Waiting | Status::Sleeping | Status::Unknown, since: then, .. } => {
                    let then = self.woken_onto(left).map_or(then, |(woken, _)| woken);
                    since.max(then).min(self.now)
                }
                _ => since,
            },
            _ => since,
        }
    }

    /// Ends a span with an unseen switch from `believed` to `left` at `at`: some recorders do not see some tasks.
    #[cold]
    fn close_unseen(
        &mut self,
        number: CpuId,
        believed: Occupant,
        left: Occupant,
        at: Nanos,
        observer: &mut impl Observer,
    ) {
        let (since, now) = (self.cpus[number as usize].since, self.now);
        let (earliest, woken) = (self.earliest(number, left), self.woken_onto(left));
        if let Occupant::Task(slot) = believed {
            let task = &mut self.tasks[slot];
            if task.leaves == Leaves::Unknown && task.is_on(number) {
                task.leaves = Leaves::Unseen;
            }
            self.vanish(slot, number, at, observer);
        }
        let in_time = believed == Occupant::Idle && self.came(number, left);
        if believed == Occupant::Idle && !(in_time && at == now) {
            observer.misjudged(number, in_time.then_some(at), now);
        }
        if let Occupant::Task(slot) = left {
            let task = &mut self.tasks[slot];
            (task.wakeup, task.waking) = (NEVER, NEVER);
            if task.status == Status::Waiting && !in_time {
                observer.doubted(slot, now);
            }
            if let Some((asked, _)) = woken.filter(|_| in_time && task.status != Status::Waiting) {
                // The idle task did the wake-up shortly before.
                let wait = self.exits.woken.0.min(at - asked);
                observer.waited(slot, number, at - wait, at, true);
                observer.served(slot, number, Delay { wait, wakeup: None, waking: None, end: at });
            }
            self.now = at;
            if self.tasks[slot].status != Status::Dead {
                self.enter_unseen(slot, number, Start { now: at, prio: self.tasks[slot].prio, unseen: true }, observer);
            }
            self.now = now;
        }
        if believed == Occupant::Idle {
            self.cpus[number as usize].blind = true;
            self.exits.hidden = true;
            self.drain(number, since..earliest, observer);
        }
        observer.span(number, believed, since, at);
        if !in_time {
            self.contradictions += 1;
            self.contradicted = self.contradicted.saturating_add(now - at);
        }
    }

    /// Whether `left`, which is seen to leave an idle CPU, had left a CPU runnable and was neither woken nor moved to
    /// the idle one since. Its cgroup's quota may have been used up, or its runtime as a deadline task.
    pub(super) fn came_back(&self, number: CpuId, left: Occupant) -> bool {
        let Occupant::Task(slot) = left else { return false };
        let task = &self.tasks[slot];
        let preempted = task.status == Status::Waiting && task.wakeup == NEVER && task.leaves == Leaves::Seen;
        let moved = task.since > task.queued && task.since >= self.cpus[number as usize].since;
        preempted && !moved
    }

    /// Ends a span with an unseen switch from the idle task to a task that may have been kept from running for any time
    /// before: nobody knows when it got the CPU.
    #[cold]
    fn close_unknown(&mut self, number: CpuId, left: Occupant, observer: &mut impl Observer) {
        let (since, now) = (self.cpus[number as usize].since, self.now);
        let at = self.earliest(number, left);
        observer.misjudged(number, None, now);
        if let Occupant::Task(slot) = left {
            self.doubt(slot, observer);
        }
        self.cpus[number as usize].blind = true;
        self.exits.hidden = true;
        self.drain(number, since..at, observer);
        if at > since {
            observer.span(number, Occupant::Idle, since, at);
        }
        observer.span(number, Occupant::Unknown, at, now);
        self.contradictions += 1;
        self.contradicted = self.contradicted.saturating_add(now - at);
    }

    /// Whether an idle CPU whose idle task is hidden got a task that was woken onto it. Then nothing is in doubt but
    /// the instant: the CPU was idle until then, and the task waited. That its wake-up was asked for and is not seen
    /// shows as well that the idle task did it.
    fn came(&self, number: CpuId, left: Occupant) -> bool {
        let (Occupant::Task(slot), cpu) = (left, &self.cpus[number as usize]) else { return false };
        let (Some((woken, _)), task) = (self.woken_onto(left), &self.tasks[slot]) else { return false };
        task.cpu == number && woken >= cpu.since && (task.status == Status::Sleeping || cpu.blind)
    }

    /// The CPU got a task that waited for it at `at`, which was not seen.
    #[cold]
    pub(super) fn start_unseen(&mut self, number: CpuId, slot: Slot, at: Nanos, observer: &mut impl Observer) {
        let (believed, entered) = (self.cpus[number as usize].occupant, Occupant::Task(slot));
        self.close_unseen(number, believed, entered, at, observer);
        observer.span(number, entered, at, self.now);
        self.occupy(number, entered, observer);
    }

    /// The CPU, idle since the start of `idle`, got a task that was there from its end on, and nobody saw that. Those
    /// that came to its queue meanwhile must have had it earlier, and nobody saw that either. Those that were there
    /// before it became idle may not run, as the quota of their cgroup is used up: they wait on.
    fn drain(&mut self, number: CpuId, idle: Range<Nanos>, observer: &mut impl Observer) {
        if self.cpus[number as usize].waiting == 0 {
            return;
        }
        let epoch = self.cpus[number as usize].epoch;
        let waits = |task: &Task| task.status == Status::Waiting && (task.cpu, task.epoch) == (number, epoch);
        let earlier: Vec<Slot> = self
            .tasks
            .iter()
            .filter(|(_, task)| waits(task) && task.since > idle.start && task.since < idle.end)
            .map(|(slot, _)| slot)
            .collect();
        for slot in earlier {
            self.doubt(slot, observer);
        }
    }

    /// The task no longer waits: it has run, nobody saw when, and nobody knows what it does.
    #[cold]
    pub(super) fn doubt(&mut self, slot: Slot, observer: &mut impl Observer) {
        observer.doubted(slot, self.now);
        let told = self.tasks[slot].cpu;
        self.dequeue(slot, told, observer);
        self.tell_queue(told, observer);
        let task = &mut self.tasks[slot];
        (task.status, task.since) = (Status::Unknown, self.now);
        (task.wakeup, task.waking) = (NEVER, NEVER);
    }

    #[inline]
    fn leave(&mut self, slot: Slot, number: CpuId, stop: Stop, observer: &mut impl Observer) {
        let task = &mut self.tasks[slot];
        // The CPUs' clocks differ a little: it may be seen starting there before it is seen leaving here.
        let stop = Stop { late: task.status == Status::Running && task.cpu != number, ..stop };
        match stop.since {
            Some(since) => observer.leaves(slot, number, since, stop),
            None => observer.stopped(slot, number, stop),
        }
        if stop.late {
            return;
        }
        task.leaves = Leaves::Seen;
        if task.status == Status::Waiting {
            self.dequeue(slot, number, observer);
        }
        match stop.state {
            TaskState::Runnable => self.enqueue(slot, number, observer),
            TaskState::Dead | TaskState::Zombie => self.tasks[slot].status = Status::Dead,
            _ => {
                let task = &mut self.tasks[slot];
                (task.status, task.since) = (Status::Sleeping, stop.now);
            }
        }
    }

    #[cold]
    fn enter_unseen(&mut self, slot: Slot, number: CpuId, start: Start, observer: &mut impl Observer) {
        self.enter(slot, number, start, observer);
    }

    #[inline(always)]
    fn enter(&mut self, mut slot: Slot, number: CpuId, start: Start, observer: &mut impl Observer) -> Slot {
        let now = start.now;
        let task = self.tasks[slot];
        let since = |then: Nanos| (then != NEVER).then(|| now.saturating_sub(then));
        let mut told = false;
        match task.status {
            Status::Waiting => {
                let known = self.cpus[task.cpu as usize].epoch == task.epoch;
                self.dequeue(slot, number, observer);
                if known {
                    let wait = now.saturating_sub(task.queued);
                    let delay = Delay { wait, wakeup: since(task.wakeup), waking: since(task.waking), end: now };
                    told = task.cpu == number;
                    if told {
                        observer.takes(slot, number, task.since, delay, start);
                    } else {
                        observer.waited(slot, task.cpu, task.since, now, true);
                        observer.served(slot, number, delay);
                    }
                }
            }
            // The trace has no wakeup events: the wait is counted from the waking.
            Status::Sleeping | Status::Unknown if task.waking != NEVER => {
                observer.waited(slot, number, task.waking, now, true);
                let wait = now.saturating_sub(task.waking);
                observer.served(slot, number, Delay { wait, wakeup: None, waking: Some(wait), end: now });
            }
            Status::Dead => slot = self.reborn(slot, observer),
            _ => {}
        }
        let task = &mut self.tasks[slot];
        (task.status, task.cpu, task.since) = (Status::Running, number, now);
        (task.wakeup, task.waking) = (NEVER, NEVER);
        if !told {
            observer.started(slot, number, start);
        }
        slot
    }

    /// Puts the task on this CPU's queue. The caller reports the queue's length.
    #[inline]
    pub(super) fn enqueue(&mut self, slot: Slot, number: CpuId, observer: &mut impl Observer) {
        let cpu = &mut self.cpus[number as usize];
        cpu.waiting += 1;
        let task = &mut self.tasks[slot];
        (task.status, task.cpu, task.epoch) = (Status::Waiting, number, cpu.epoch);
        (task.since, task.queued) = (self.now, self.now);
        (task.wakeup, task.waking) = (NEVER, NEVER);
        observer.queued(slot, number, self.now);
    }

    /// Takes a waiting task off its queue. The caller reports the length of the queue of CPU `told`.
    #[inline(always)]
    pub(super) fn dequeue(&mut self, slot: Slot, told: CpuId, observer: &mut impl Observer) {
        let Task { cpu: number, epoch, .. } = self.tasks[slot];
        let cpu = &mut self.cpus[number as usize];
        if cpu.epoch == epoch {
            cpu.waiting -= 1;
            observer.unqueued(slot, self.now);
            if number != told {
                self.tell_queue(number, observer);
            }
        }
    }
}

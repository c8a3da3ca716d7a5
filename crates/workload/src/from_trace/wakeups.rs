//! A task is woken: its sleep is over, and whoever woke it has done so in its own sequence.

use super::cause::{NO_WAKER, believed};
use super::costs::FEWEST;
use super::life::Place;
use super::sequence::{NOBODY, TaskIx, Token};
use super::track::Track;
use schedlab_base::{Context, CpuId, Nanos};
use schedlab_track::Wake;

impl Track {
    /// A wake-up is asked for: a blocked task gets ready, another notes who asked.
    pub(super) fn asked(&mut self, ix: TaskIx, wake: Wake) {
        let by = (self.index(wake.by), wake.context);
        let task = &mut self.tasks[ix as usize];
        task.prio = if matches!(task.place, Place::Running { .. }) { task.prio } else { wake.prio };
        match task.place {
            Place::Blocked { .. } => {
                // Until that is done, or it gets a CPU, nobody knows whether it waits for one.
                task.doubted = self.wakeups;
                let on_its_way = self.is_done_elsewhere(ix, wake.cpu);
                self.wake(ix, wake.now, by, on_its_way);
            }
            _ => task.asked = Some(by),
        }
    }

    /// A wake-up is done, of a task that was there before.
    pub(super) fn wakeup(&mut self, ix: TaskIx, wake: Wake) {
        self.wakeups = true;
        self.is_done(ix, wake.target, wake.now);
        self.tasks[ix as usize].doubted = false;
        let asked = self.who_asked(ix);
        let task = &mut self.tasks[ix as usize];
        if let Place::Blocked { .. } = task.place {
            task.prio = wake.prio;
            // Kernels without sched_waking report the wake-up where the waker is.
            let by = match asked {
                Some(by) => by,
                None if self.wakings => NO_WAKER,
                None => (self.index(wake.by), wake.context),
            };
            self.wake(ix, wake.now, by, false);
        }
    }

    /// The task gets a CPU. If its wake-up was not seen, it may have been asked for when the task was about to sleep.
    pub(super) fn is_awake(&mut self, ix: TaskIx, cpu: CpuId, now: Nanos) {
        let by = self.who_asked(ix).unwrap_or(NO_WAKER);
        self.wake(ix, now, by, false);
        self.is_done(ix, cpu, now);
    }

    /// Who asked for a wake-up of the task before it slept, if anybody did, and still runs.
    fn who_asked(&mut self, ix: TaskIx) -> Option<(TaskIx, Context)> {
        let (by, context) = self.tasks[ix as usize].asked.take()?;
        Some((self.still_running(by), context))
    }

    /// Whether the task slept on another CPU than this one, which is idle: then that CPU does the wake-up, some time
    /// later (`ttwu_queue_wakelist`).
    fn is_done_elsewhere(&self, ix: TaskIx, here: CpuId) -> bool {
        let there = self.seats.get(self.tasks[ix as usize].slot as usize).and_then(|seat| seat.cpu);
        there.is_some_and(|cpu| cpu != here && self.on.get(cpu as usize).is_none_or(Option::is_none))
    }

    /// The wake-up of the task is done on this CPU, and whoever asked for it has got so far.
    fn is_done(&mut self, ix: TaskIx, on: CpuId, now: Nanos) {
        let Some(by) = self.tasks[ix as usize].owed_by.take() else { return };
        self.charge_up_to(by, now);
        let waker = &mut self.tasks[by as usize];
        if let Some(at) = waker.owes.iter().position(|owed| *owed == ix) {
            waker.owes.remove(at);
            let elsewhere = !matches!(waker.place, Place::Running { cpu, .. } if cpu == on);
            self.has_sent(by, ix, elsewhere, now);
        }
    }

    /// The task does no more for now. Those whose wake-ups are on their way have not got a CPU yet.
    pub(super) fn is_at_its_end(&mut self, ix: TaskIx, now: Nanos) {
        for owed in std::mem::take(&mut self.tasks[ix as usize].owes) {
            self.has_sent(ix, owed, true, now);
        }
    }

    /// A task has told an idle CPU that it wakes somebody there, `elsewhere`, or it did that itself after all. What it
    /// takes to tell another CPU is a cost of the machine, where enough show it, and no work.
    fn has_sent(&mut self, by: TaskIx, sleeper: TaskIx, elsewhere: bool, now: Nanos) {
        let took = std::mem::take(&mut self.tasks[by as usize].sending);
        if elsewhere {
            self.sent.add(took);
        }
        if took > 0 && !(elsewhere && self.has_costs && self.sent.seen() > FEWEST) {
            self.works(by, (now.saturating_sub(took), now), took);
        }
        self.push(by, Token::Post(sleeper));
    }

    /// A post, or a fork, goes where the task that does it is now: it must still run.
    pub(super) fn still_running(&self, by: TaskIx) -> TaskIx {
        let running = self.tasks.get(by as usize).is_some_and(|task| matches!(task.place, Place::Running { .. }));
        if running { by } else { NOBODY }
    }

    /// A blocked task becomes ready; if `by` is a task, the wake-up stands in its sequence too: where it is now or, if
    /// the wake-up is on its way, where it will be when that is done.
    pub(super) fn wake(&mut self, ix: TaskIx, now: Nanos, (by, context): (TaskIx, Context), on_its_way: bool) {
        let task = &mut self.tasks[ix as usize];
        let Place::Blocked { since, sure } = task.place else { return };
        let (slept_for, cut) = (task.sleeps.take(), task.cut);
        task.phases.add(now, context, self.tick);
        let (by, context) = believed((by, context), slept_for);
        let length = now.saturating_sub(since);
        task.past.wakes(now);
        let waker = match self.tasks.get(by as usize).map(|w| w.place) {
            Some(Place::Running { .. }) if sure && !cut && by != ix && self.pairs.add(by, ix, context) => {
                self.charge_up_to(by, now);
                if on_its_way {
                    self.tasks[by as usize].owes.push(ix);
                    self.tasks[ix as usize].owed_by = Some(by);
                } else {
                    self.push(by, Token::Post(ix));
                }
                let waker = &mut self.tasks[by as usize];
                waker.habit.wakes(ix, waker.work);
                self.hands_over(by, ix, since, now);
                by
            }
            _ => NOBODY,
        };
        let place = self.tasks[ix as usize].sequence.len();
        self.push(ix, Token::Block { length, waker });
        self.awakes(ix, waker);
        if waker == NOBODY {
            let task = &mut self.tasks[ix as usize];
            task.slept(length, now);
            task.receiver.is_alone();
        } else {
            self.is_told(ix, waker);
        }
        let task = &mut self.tasks[ix as usize];
        task.habit.begins(waker);
        task.wakes.add(now, (length, place), waker, slept_for);
        task.place = Place::Ready;
        task.asked = None;
        // Where it was while nobody saw it, it may have been at work.
        if sure {
            (task.burst, task.awake) = (0, Some(now));
        }
    }
}

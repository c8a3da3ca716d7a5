//! CPUs that go offline and come back online.

use super::Engine;
use crate::core::Cause;
use crate::cpuset::CpuSet;
use crate::process::{Process, Wait};
use crate::program::Load;
use crate::queue::{Key, Phase};
use crate::scheduler::{Dequeue, Enqueue, Placement, Scheduler};
use crate::task::{State, TaskId};
use schedlab_base::{CpuId, Nanos};

/// Returns the first instant at which a CPU goes offline or comes online.
pub(super) fn first(load: &Load) -> Key {
    instant(load, 0)
}

fn instant(load: &Load, n: usize) -> Key {
    load.hotplug.get(n).map_or(Key::NEVER, |h| Key::new(h.at, Phase::Timer, u32::MAX))
}

/// The affinities of tasks, and those that hotplug took from them or made the kernel refuse.
#[derive(Debug)]
pub(super) struct Affinities {
    /// The CPUs that the kernel lets each task run on while they are online (`cpus_allowed`). Nothing if no CPU goes
    /// offline or comes online.
    of: Option<Vec<CpuSet>>,
    lost: Counted,
    refused: Counted,
}

/// The first case of a kind, and the number of cases.
#[derive(Debug, Default)]
struct Counted {
    first: Option<(String, Nanos)>,
    count: u64,
}

impl Counted {
    fn add(&mut self, who: &Process<'_>, now: Nanos) {
        self.first.get_or_insert_with(|| (who.name(), now));
        self.count += 1;
    }

    fn text(&self, what: &str) -> Option<String> {
        let (name, at) = self.first.as_ref()?;
        let more = if self.count > 1 { format!(" (and {} more)", self.count - 1) } else { String::new() };
        Some(format!("at {:.6} s {name}{more} {what}", *at as f64 / 1e9))
    }
}

impl Affinities {
    pub fn new(load: &Load) -> Self {
        let of = (!load.hotplug.is_empty()).then(Vec::new);
        Self { of, lost: Counted::default(), refused: Counted::default() }
    }

    /// The task's.
    fn of(&self, p: TaskId) -> &CpuSet {
        &self.of.as_ref().expect("CPUs go offline or come online")[p as usize]
    }

    /// Sets the affinity of a task.
    pub fn set(&mut self, p: TaskId, affinity: CpuSet) {
        if let Some(of) = &mut self.of {
            of.resize(of.len().max(p as usize + 1), CpuSet::ALL);
            of[p as usize] = affinity;
        }
    }

    /// One sentence for each kind.
    pub fn texts(&self) -> Vec<String> {
        let lost = "had no CPU of its affinity online: as Linux does, it was given others for good";
        let refused = "asked for CPUs none of which was online: as Linux does, the request was refused (EINVAL)";
        [self.lost.text(lost), self.refused.text(refused)].into_iter().flatten().collect()
    }
}

impl<S: Scheduler> Engine<'_, S> {
    /// The CPUs that a task may run on while they are online.
    pub(super) fn affinity(&self, p: TaskId) -> CpuSet {
        if self.affinities.of.is_some() { self.affinities.of(p).clone() } else { self.cx.task(p).allowed.clone() }
    }

    /// The online CPUs of an affinity, if there are any.
    pub(super) fn effective(&self, affinity: &CpuSet) -> Option<CpuSet> {
        Some(affinity.and(&self.cx.online)).filter(|cpus| !cpus.is_empty())
    }

    /// A task asked for CPUs none of which is online, and `sched_setaffinity()` refuses that.
    pub(super) fn note_refusal(&mut self, p: TaskId) {
        self.affinities.refused.add(&self.processes[p as usize], self.cx.now);
    }

    /// Gives a task that starts or wakes another affinity if no CPU of its own is online.
    pub(super) fn find_cpus(&mut self, p: TaskId) {
        if self.hotplugged > 0 && self.effective(self.affinities.of(p)).is_none() {
            self.strand(p);
        }
    }

    /// Gives a task another affinity, because no CPU of its own is online (`select_fallback_rq`). A task that has not
    /// started yet asks for its CPUs only now: that is refused, and it keeps the affinity that every task begins with.
    fn strand(&mut self, p: TaskId) {
        let process = &self.processes[p as usize];
        let fresh = !self.cx.task(p).on_rq && process.wait == Wait::Nothing;
        let notes = &mut self.affinities;
        let note = if fresh { &mut notes.refused } else { &mut notes.lost };
        note.add(process, self.cx.now);
        let online = self.cx.online.clone();
        let affinity = if self.options.stranded.to_online && !fresh { online.clone() } else { CpuSet::ALL };
        let pinned = affinity.is_single();
        self.affinities.set(p, affinity);
        let task = &mut self.cx.tasks[p as usize];
        (task.allowed, task.pinned) = (online, pinned);
        self.trace_affinity(p);
    }

    /// Brings a task up to date with the CPUs that are online. `gone`: the CPU that has just gone offline.
    fn follow(&mut self, p: TaskId, gone: Option<CpuId>) {
        let task = self.cx.task(p);
        if let Some(allowed) = self.effective(self.affinities.of(p)) {
            if task.allowed != allowed {
                self.cx.tasks[p as usize].allowed = allowed;
                self.trace_affinity(p);
            }
            return;
        }
        let at_once = match task.state {
            State::Runnable => true,
            State::Sleeping { .. } => {
                let started = self.processes[p as usize].wait != Wait::Nothing;
                self.options.stranded.asleep && started && gone == Some(task.cpu)
            }
            State::Dead => false,
        };
        if at_once {
            self.strand(p);
        }
    }

    /// Takes the next CPU offline, or brings it online.
    pub(super) fn hotplug(&mut self) {
        let change = self.load.hotplug[self.hotplugged];
        self.hotplugged += 1;
        self.next_hotplug = instant(self.load, self.hotplugged);
        self.next_outside = self.next_hotplug.min(self.interrupts.first());
        let cpu = change.cpu;
        if self.cx.online(cpu) == change.online || (!change.online && self.cx.nr_online() == 1) {
            return;
        }
        self.cx.cause = Cause::Wakeup;
        self.catch_up(cpu);
        self.cx.set_online(cpu, change.online);
        for p in 0..self.cx.nr_tasks() {
            self.follow(p, (!change.online).then_some(cpu));
        }
        if change.online {
            self.skip_ticks_that_were_not(cpu);
            self.sched.rq_online(&mut self.cx, cpu);
        } else {
            self.sched.rq_offline(&mut self.cx, cpu);
            self.empty(cpu);
        }
        self.cx.touch(cpu);
    }

    /// Skips the ticks that did not happen while the CPU was offline.
    fn skip_ticks_that_were_not(&mut self, cpu: CpuId) {
        let (now, period) = (self.cx.now, self.cx.tick_period);
        let next = &mut self.cx.cpus[cpu as usize].next_tick;
        if *next <= now {
            *next += ((now - *next) / period + 1) * period;
        }
    }

    /// Moves every task off a CPU: first the waiting tasks, then the running one.
    fn empty(&mut self, cpu: CpuId) {
        let curr = self.cx.curr(cpu);
        for p in 0..self.cx.nr_tasks() {
            let task = self.cx.task(p);
            if task.cpu == cpu && task.state == State::Runnable && curr != Some(p) {
                self.cx.set_on_rq(p, false);
                self.sched.dequeue_task(&mut self.cx, cpu, p, Dequeue::Migrated);
                self.requeue(p, Placement::Wake { from: cpu });
            }
        }
        if let Some(p) = curr {
            self.push_away(p, Placement::Wake { from: cpu });
        }
    }

    /// Queues a runnable task that is on no queue, on a CPU where it may run.
    pub(super) fn requeue(&mut self, p: TaskId, why: Placement) {
        let to = self.place(p, why);
        self.put_on(p, to);
    }

    /// Queues a runnable task on the CPU that it was moved to.
    pub(super) fn put_on(&mut self, p: TaskId, to: CpuId) {
        self.catch_up(to);
        self.cx.cause = Cause::Wakeup;
        self.cx.set_on_rq(p, true);
        self.sched.enqueue_task(&mut self.cx, to, p, Enqueue::Migrated);
        self.sched.wakeup_preempt(&mut self.cx, to, p, Enqueue::Migrated);
        self.cx.touch(to);
    }
}

//! The staircase schedulers of 2007: the parts that [`rsdl`] and [`sd`] share. Each of them documents its own rules.
//!
//! A task is given a quota of CPU time at several levels, one after another, each once in a rotation of its CPU. The
//! design decides at which levels ([`Design::slots`]) and how much. Real-time tasks come before all levels.

mod lists;
mod moves;
pub mod rsdl;
pub mod sd;
mod state;
mod view;

use crate::balance::sync;
use lists::Lists;
use schedlab_base::{CpuId, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::program::{Policy, Start};
use schedlab_sim::{Attributes, Core, Dequeue, Enqueue, QueueList, Scheduler, TaskId, View};
use state::{LEVELS, PRIOS, REAL_TIME, Rq, Side, Task, policy, user};

/// The differences between the staircases. Nice levels are counted from 0, the best, to 39.
pub trait Design {
    /// Whether each level has a quota of its own and, when that is used up, pushes the tasks left there down. Without
    /// pushing, no task is given a level above those that have run in this rotation.
    const PUSHES: bool;

    /// The interval, in ns.
    fn rr_interval(&self) -> Nanos;

    /// The quota of a task with this nice level at each of its levels, in ns.
    fn quota(&self, user: u8) -> Nanos;

    /// The levels at which a task with this nice level has a quota, one bit each. They include the lowest, 39.
    fn slots(&self, user: u8) -> u64;

    /// Whether the rest of a quota is carried over into a later rotation.
    fn carries(&self) -> bool;
}

/// The staircase scheduler, with the rules of one design.
#[derive(Debug)]
pub struct Staircase<D> {
    design: D,
    lists: Lists,
    tasks: Vec<Task>,
    queues: Vec<Rq>,
    /// The load that a task of each nice level adds to its CPU.
    weights: [u64; LEVELS as usize],
}

impl<D: Design> Staircase<D> {
    /// Creates the scheduler for `machine`.
    #[must_use]
    pub fn new(machine: &Machine, design: D) -> Self {
        let cpus = machine.cpus.len();
        Self {
            weights: std::array::from_fn(|user| moves::weight(&design, user as u8)),
            design,
            lists: Lists::new(cpus as u32 * 2 * u32::from(PRIOS)),
            tasks: Vec::new(),
            queues: vec![Rq::default(); cpus],
        }
    }

    fn task(&self, p: TaskId) -> &Task {
        &self.tasks[p as usize]
    }

    fn list(&self, cpu: CpuId, side: Side, prio: u8) -> u32 {
        (cpu * 2 + side as u32) * u32::from(PRIOS) + u32::from(prio)
    }

    /// Adds a task at the end of its list on one of the arrays of `cpu`.
    fn push(&mut self, cpu: CpuId, p: TaskId, side: Side) {
        self.tasks[p as usize].side = Some(side);
        let prio = self.task(p).prio;
        self.lists.push(self.list(cpu, side, prio), p);
        let weight = self.weight(p);
        let rq = &mut self.queues[cpu as usize];
        rq.load += weight;
        rq.arrays[side].nr += 1;
        rq.arrays[side].bitmap[prio as usize / 64] |= 1 << (prio % 64);
    }

    /// Removes a task from its array, and returns which array that was.
    fn take(&mut self, cpu: CpuId, p: TaskId) -> Option<Side> {
        let side = self.tasks[p as usize].side.take()?;
        self.lists.remove(p);
        let weight = self.weight(p);
        let rq = &mut self.queues[cpu as usize];
        rq.load -= weight;
        rq.arrays[side].nr -= 1;
        Some(side)
    }

    /// Returns the best list of the active array that holds a task, and its first task.
    fn best(&mut self, cpu: CpuId) -> Option<(u8, TaskId)> {
        let side = self.queues[cpu as usize].active;
        loop {
            let bitmap = &self.queues[cpu as usize].arrays[side].bitmap;
            let word = bitmap.iter().position(|word| *word != 0)?;
            let bit = bitmap[word].trailing_zeros();
            let prio = word as u8 * 64 + bit as u8;
            match self.lists.first(self.list(cpu, side, prio)) {
                Some(p) => return Some((prio, p)),
                None => self.queues[cpu as usize].arrays[side].bitmap[word] &= !(1 << bit),
            }
        }
    }

    /// Subtracts what the running task has run since its last charge from its own quota and from its level's.
    fn charge(&mut self, cx: &Core, cpu: CpuId) {
        let Some(p) = cx.curr(cpu) else { return };
        let rq = &mut self.queues[cpu as usize];
        let ran = (cx.now() - std::mem::replace(&mut rq.since, cx.now())) as i64;
        let t = &mut self.tasks[p as usize];
        // A task that has expired but has not been switched out has nothing left to lose in this rotation.
        if t.policy != Policy::Fifo && t.side == Some(rq.active) {
            t.left -= ran;
            if !t.is_real_time() {
                rq.arrays[rq.active].quota.0[t.level() as usize] -= ran;
            }
        }
    }

    /// Enqueues a task that became runnable. It continues where it was if it was given a quota in this rotation and
    /// some of it is left.
    fn join(&mut self, cpu: CpuId, p: TaskId) {
        let (rq, t) = (&self.queues[cpu as usize], self.task(p));
        let goes_on = t.cpu == cpu && t.left > 0;
        let level_has = || !D::PUSHES || rq.arrays[rq.active].quota.0[t.level() as usize] > 0;
        let side = if t.is_real_time() || (goes_on && t.rotation == rq.rotation && level_has()) {
            rq.active
        } else if goes_on && t.rotation == rq.rotation + 1 {
            rq.expired()
        } else {
            self.next_slot(cpu, p)
        };
        self.push(cpu, p, side);
    }

    /// Gives a task the quota of its next level, in the next rotation if it has none left in this one. Returns the
    /// array that it belongs on.
    fn next_slot(&mut self, cpu: CpuId, p: TaskId) -> Side {
        let rq = &mut self.queues[cpu as usize];
        let t = &mut self.tasks[p as usize];
        let quota = self.design.quota(t.user) as i64;
        let slots = self.design.slots(t.user);
        let same = t.cpu == cpu && t.rotation == rq.rotation;
        let mut brought = 0;
        if !same {
            brought = if self.design.carries() { t.left.clamp(0, quota) } else { 0 };
            (t.cpu, t.rotation, t.used) = (cpu, rq.rotation, 0);
        }
        let from = match D::PUSHES {
            true if same => t.level(),
            true => 0,
            false => rq.level,
        };
        let open = slots & !t.used & (u64::MAX << from);
        let (side, slot) = if open == 0 {
            (t.rotation, t.used) = (rq.rotation + 1, 0);
            (rq.expired(), slots.trailing_zeros())
        } else {
            (rq.active, open.trailing_zeros())
        };
        t.used |= 1 << slot;
        t.left = quota + brought;
        t.prio = REAL_TIME + slot as u8;
        rq.arrays[side].quota.0[slot as usize] += t.left;
        side
    }

    /// Ends the running task's turn, as its quota is used up: it moves to its next level, or an RR task behind its
    /// equals.
    fn slot_ends(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        let from = self.task(p).level();
        self.take(cpu, p);
        let side = if self.task(p).is_real_time() {
            self.tasks[p as usize].left = self.design.rr_interval() as i64;
            self.queues[cpu as usize].active
        } else {
            self.next_slot(cpu, p)
        };
        self.push(cpu, p, side);
        self.explain_slot(cx, cpu, p, from);
    }

    /// Does a minor rotation: all tasks on the running task's level, including itself, join the next level.
    fn push_down(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        self.explain_push(cx, cpu, p);
        let side = self.queues[cpu as usize].active;
        let prio = self.task(p).prio;
        self.lists.append(self.list(cpu, side, prio), self.list(cpu, side, prio + 1));
        self.tasks[p as usize].prio = prio + 1;
        let bitmap = &mut self.queues[cpu as usize].arrays[side].bitmap;
        bitmap[(prio as usize + 1) / 64] |= 1 << ((prio + 1) % 64);
    }

    /// Returns what is left of the quota of the running task's level, if that level pushes tasks down.
    fn level_left(&self, cpu: CpuId, t: &Task) -> Option<i64> {
        let rq = &self.queues[cpu as usize];
        let pushes = D::PUSHES && !t.is_real_time() && t.level() + 1 < LEVELS;
        pushes.then(|| rq.arrays[rq.active].quota.0[t.level() as usize])
    }

    /// Asks for rescheduling if `p` is better than the running task.
    fn preempt_if_better(&self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        let running = cx.curr(cpu).map_or(PRIOS, |q| self.task(q).prio);
        let better = self.task(p).prio < running;
        if better {
            cx.resched(cpu);
        }
        let rule = match better {
            _ if cx.curr(cpu).is_none() => "the CPU is idle",
            true => "a better level than the running task's preempts it",
            false => "its level is no better than the running task's",
        };
        self.explain_preemption(cx, cpu, p, better, rule);
    }

    /// Handles a tick of the running task.
    fn tick_running(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        self.charge(cx, cpu);
        let t = *self.task(p);
        if t.side != Some(self.queues[cpu as usize].active) {
            // It has expired but has not been switched out yet.
        } else if t.policy != Policy::Fifo && t.left <= 0 {
            self.slot_ends(cx, cpu, p);
        } else if self.level_left(cpu, &t).is_some_and(|left| left <= 0) {
            self.push_down(cx, cpu, p);
        } else {
            return;
        }
        cx.resched(cpu);
    }

    /// Returns the time of the first tick at which the running task's quota, or its level's, is used up.
    fn quota_ends(&self, cx: &Core, cpu: CpuId, p: TaskId) -> Nanos {
        let (rq, t) = (&self.queues[cpu as usize], self.task(p));
        let tick = cx.next_tick(cpu);
        if t.side != Some(rq.active) {
            return tick;
        }
        if t.policy == Policy::Fifo {
            return Nanos::MAX;
        }
        let left = self.level_left(cpu, t).map_or(t.left, |level| level.min(t.left));
        let due = rq.since.saturating_add(left.max(0) as u64);
        let ticks = due.saturating_sub(tick).div_ceil(cx.tick_period());
        tick.saturating_add(ticks.saturating_mul(cx.tick_period()))
    }

    /// Applies a new policy or real-time priority. An ordinary task starts afresh in this rotation.
    fn set_policy(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, new: &Attributes) {
        let on_rq = self.take(cpu, p).is_some();
        let t = &mut self.tasks[p as usize];
        let old_prio = t.prio;
        *t = Task { user: t.user, ..Task::new(new) };
        if t.is_real_time() {
            t.left = self.design.rr_interval() as i64;
        }
        if on_rq {
            self.join(cpu, p);
            self.changed(cx, cpu, p, old_prio);
        }
    }

    /// Applies a new nice level. The task keeps the rest of its quota, up to a new quota; the levels ahead are the new
    /// ones.
    fn set_nice(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, new: &Attributes) {
        let side = self.take(cpu, p);
        let t = &mut self.tasks[p as usize];
        t.user = user(new);
        if t.is_real_time() {
            if let Some(side) = side {
                self.push(cpu, p, side);
            }
            return;
        }
        let old_prio = t.prio;
        t.left = t.left.min(self.design.quota(t.user) as i64);
        let rq = &mut self.queues[cpu as usize];
        let expired = t.cpu == cpu && t.rotation == rq.rotation + 1;
        let active = t.cpu == cpu && t.rotation == rq.rotation;
        let first = REAL_TIME + self.design.slots(t.user).trailing_zeros() as u8;
        if expired || (active && D::PUSHES && t.prio < first) {
            // It is at its first level, which has changed.
            t.prio = first;
            t.used |= 1 << t.level();
            let array = if expired { rq.expired() } else { rq.active };
            rq.arrays[array].quota.0[t.level() as usize] += t.left.max(0);
        }
        if let Some(side) = side {
            self.push(cpu, p, side);
            self.changed(cx, cpu, p, old_prio);
        }
    }

    /// Reschedules if a changed priority of a queued task means that another task should run.
    fn changed(&self, cx: &mut Core, cpu: CpuId, p: TaskId, old_prio: u8) {
        if cx.curr(cpu) != Some(p) {
            self.preempt_if_better(cx, cpu, p);
        } else if self.task(p).prio > old_prio || self.task(p).side != Some(self.queues[cpu as usize].active) {
            cx.resched(cpu);
        }
    }
}

impl<D: Design> Scheduler for Staircase<D> {
    fn task_fork(&mut self, cx: &mut Core, p: TaskId, parent: Option<TaskId>, _how: Start) {
        self.lists.grow(p);
        let mut t = Task::new(&cx.task(p).attributes);
        if let Some(q) = parent {
            let cpu = cx.task(q).cpu;
            sync(self, cx, cpu);
            if cx.curr(cpu) == Some(q) {
                self.charge(cx, cpu);
            }
            let theirs = &mut self.tasks[q as usize];
            if !theirs.is_real_time() && !t.is_real_time() && theirs.user == t.user {
                let half = theirs.left.max(0) / 2;
                theirs.left -= half;
                t = Task { left: half, side: None, ..*theirs };
            }
            cx.touch(cpu);
        }
        if t.is_real_time() {
            t.left = self.design.rr_interval() as i64;
        }
        if self.tasks.len() <= p as usize {
            self.tasks.resize(p as usize + 1, Task::new(&Attributes::default()));
        }
        self.tasks[p as usize] = t;
    }

    fn enqueue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, _how: Enqueue) {
        // The decision depends on what is left of the levels' quotas.
        self.charge(cx, cpu);
        self.join(cpu, p);
    }

    fn dequeue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, _how: Dequeue) {
        if cx.curr(cpu) == Some(p) {
            self.charge(cx, cpu);
        }
        self.take(cpu, p);
    }

    fn yield_task(&mut self, cx: &mut Core, cpu: CpuId) {
        let Some(p) = cx.curr(cpu) else { return };
        self.charge(cx, cpu);
        if let Some(side) = self.take(cpu, p) {
            self.push(cpu, p, side);
        }
    }

    fn wakeup_preempt(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        if how == Enqueue::Wakeup && cx.sync_waker() == Some(cpu) {
            self.explain_preemption(cx, cpu, p, false, "the task that woke it is about to sleep");
        } else if self.task(p).side == Some(self.queues[cpu as usize].active) {
            self.preempt_if_better(cx, cpu, p);
        } else if cx.curr(cpu).is_none() {
            cx.resched(cpu);
            self.explain_preemption(cx, cpu, p, true, "the CPU is idle");
        } else {
            self.explain_preemption(cx, cpu, p, false, "it has expired: it waits for the next rotation");
        }
    }

    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        if let Some(p) = prev.filter(|p| self.task(*p).side == Some(self.queues[cpu as usize].active)) {
            self.charge(cx, cpu);
            let t = self.task(p);
            if t.policy != Policy::Fifo && t.left <= 0 {
                self.slot_ends(cx, cpu, p);
            }
        }
        let rq = &mut self.queues[cpu as usize];
        rq.since = cx.now();
        if rq.nr_running() == 0 {
            self.explain_pick(cx, cpu, None, false);
            return None;
        }
        let rotates = rq.arrays[rq.active].nr == 0;
        if rotates {
            rq.rotate();
        }
        let (prio, next) = self.best(cpu)?;
        self.tasks[next as usize].prio = prio;
        let rq = &mut self.queues[cpu as usize];
        rq.level = rq.level.max(prio.saturating_sub(REAL_TIME));
        self.explain_pick(cx, cpu, Some(next), rotates);
        Some(next)
    }

    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        if let Some(p) = cx.curr(cpu) {
            self.tick_running(cx, cpu, p);
        }
    }

    fn next_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        cx.curr(cpu).map_or(Nanos::MAX, |p| self.quota_ends(cx, cpu, p))
    }

    fn queued(&self, _cx: &Core, cpu: CpuId, list: &mut QueueList) {
        let lists = [0, 1].into_iter().flat_map(|side| self.taken(cpu, side));
        lists.flat_map(|(_, of)| self.lists.iter(of)).for_each(|p| list.ready(p));
    }

    fn ticks_when_idle(&self) -> bool {
        true
    }

    fn attributes_changed(&mut self, cx: &mut Core, p: TaskId, old: &Attributes) {
        let (cpu, new) = (cx.task(p).cpu, cx.task(p).attributes);
        sync(self, cx, cpu);
        if cx.curr(cpu) == Some(p) {
            self.charge(cx, cpu);
        }
        if policy(&new) != policy(old) || new.real_time_level() != old.real_time_level() {
            self.set_policy(cx, cpu, p, &new);
        }
        if new.nice != old.nice {
            self.set_nice(cx, cpu, p, &new);
        }
        cx.touch(cpu);
    }

    fn view(&self, cx: &Core, cpu: CpuId) -> View {
        self.view_queues(cx, cpu)
    }
}

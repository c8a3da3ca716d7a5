//! The O(1) scheduler of Linux 2.6.0, 2.6.11 and 2.6.18.
//!
//! # Idea
//! Each CPU has two arrays of lists, with one list for each priority. Tasks run from the *active* array, best priority
//! first, in turns. A task whose slice is used up moves to the *expired* array; when the active array is empty, the two
//! are swapped. Thanks to a bitmap of the lists, each step takes the same time however many tasks there are. Which
//! tasks are interactive is guessed from how much they sleep: sleep improves a task's priority by up to five levels and
//! keeps it in the active array when its slice is used up.
//!
//! # Rule
//! The first task of the best list of the active array runs. A waking task joins the active array and preempts a
//! running task of a worse priority. A tick counts the slice down. An interactive task goes behind its equals from time
//! to time; at the end of its slice it stays in the active array unless the expired tasks have waited too long. The
//! priority is the nice level minus the bonus. The bonus follows the sleep average, which grows during sleep (faster
//! when it is low) and shrinks while the task runs (more slowly when it is high).
//!
//! The differences between the releases are data, in [`Release`]. In 2.6.0 slices decrease linearly from 200 ms to 10
//! ms, and a task must earn a lasting bonus by an *interactive credit*, which it gains with long sleeps and loses when
//! its sleep average is used up. By 2.6.11 the credit is gone, the slices of negative nice levels are four times as
//! long, and an expired task of a better nice level ends the privilege of interactive tasks. By 2.6.18 sleep counts
//! only for its real length, a single long sleep makes a task just interactive and no more, `SCHED_BATCH` exists, and a
//! task's weight in load balancing follows its nice level (smpnice). Load balancing is in `smp/`.
//!
//! # State
//! For each CPU: the two arrays, when the first task expired, the best nice level that expired, and the sum of weights.
//! For each task: priority, sleep average, interactive credit (2.6.0), the rest of its slice, since when it has been
//! running, waiting or sleeping, and how it was woken.
//!
//! # Tunables
//! The constants at the head of kernel/sched.c, in [`Tunables`]; the kernels' registry has their names and defaults.
//!
//! # Differences from the kernel
//! - The CPUs' domains are attached, and their intervals begin, when the run begins, all at once. The offset of
//!   `CPU_OFFSET` disappears within the first second after boot, and is zero if there may be more CPUs than HZ.
//! - What 2.6.0 and 2.6.18 measure at boot (how long a cache stays warm, what a migration costs) is a tunable.
//! - Power saving (`sched_mc_power_savings`) is off.
//! - The stopper (`migration/N`) takes only a context switch's time, goes before tasks of its own priority, and does
//!   not count as runnable while it waits for its CPU.
//! - Siblings of a core do not wait for each other's priorities (`dependent_sleeper`).
//! - No sleep is marked as non-interactive (2.6.18 does this for a pipe's reader and writer): waiting for other tasks
//!   counts as sleep.
//! - Policies that a release does not have yet (BATCH before 2.6.18, IDLE, DEADLINE) count as OTHER.
//! - A bonus of more than 30 levels does not overflow `TIMESLICE_GRANULARITY`, and a `MAX_SLEEP_AVG` below
//!   `DEF_TIMESLICE` does not become negative: both are clamped.
//!
//! # Reference
//! kernel/sched.c of 2.6.0, 2.6.11 and 2.6.18; kernel/fork.c of 2.6.0.

pub(crate) mod array;
mod change;
mod choose;
mod release;
mod rules;
mod smp;
mod state;
mod tick;
mod view;

use crate::balance::sync;
use array::{Links, MAX_PRIO};
pub use release::{Balancing, Release, Sleep};
use rules::Rules;
pub use rules::Tunables;
use schedlab_base::{CpuId, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::program::{Policy, Start};
use schedlab_sim::{Attributes, Core, Dequeue, Enqueue, Placement, QueueList, Scheduler, State, TaskId, Ticks, View};
use smp::Smp;
use state::{Activated, Rq, Side, Task, policy};

/// The O(1) scheduler, with the rules of one release.
#[derive(Debug)]
pub struct O1<'m> {
    rules: Rules,
    links: Links,
    tasks: Vec<Task>,
    queues: Vec<Rq>,
    /// The rest of the slice of the boot task, which forks the first tasks, in ticks.
    boot_slice: u32,
    /// The state of load balancing; `None` on a machine with one CPU.
    smp: Option<Smp<'m>>,
}

impl<'m> O1<'m> {
    /// Creates a release's scheduler for `machine`, with a tick every `tick` ns.
    #[must_use]
    pub fn new(machine: &'m Machine, release: Release, tunables: Tunables, tick: Nanos) -> Self {
        let cpus = machine.cpus.len();
        let rules = Rules::new(release, tunables, tick, cpus);
        Self {
            boot_slice: rules.timeslice(120),
            rules,
            links: Links::default(),
            tasks: Vec::new(),
            queues: vec![Rq::default(); cpus],
            smp: (cpus > 1).then(|| Smp::new(machine, release.linux, release.balancing, tick)),
        }
    }

    fn task(&self, p: TaskId) -> &Task {
        &self.tasks[p as usize]
    }

    fn task_mut(&mut self, p: TaskId) -> &mut Task {
        &mut self.tasks[p as usize]
    }

    /// Adds a task at the end of its list on one of the arrays of `cpu`.
    fn push(&mut self, cpu: CpuId, p: TaskId, side: Side) {
        let t = &mut self.tasks[p as usize];
        t.side = Some(side);
        let rq = &mut self.queues[cpu as usize];
        rq.arrays[side].push(&mut self.links, p, t.prio);
        rq.load += self.rules.weight(t);
    }

    /// Removes a task from its array, and returns which array that was.
    fn take(&mut self, cpu: CpuId, p: TaskId) -> Option<Side> {
        let t = &mut self.tasks[p as usize];
        let side = t.side.take()?;
        let rq = &mut self.queues[cpu as usize];
        rq.arrays[side].remove(&mut self.links, p, t.prio);
        rq.load -= self.rules.weight(t);
        Some(side)
    }

    fn active(&self, cpu: CpuId) -> Side {
        self.queues[cpu as usize].active
    }

    /// Returns the array that a task joins when it becomes runnable (`__activate_task`).
    fn home(&self, cpu: CpuId, p: TaskId) -> Side {
        let rq = &self.queues[cpu as usize];
        if self.task(p).policy == Policy::Batch { rq.expired() } else { rq.active }
    }

    /// Sets the priority of an ordinary task from its bonus. The task must be on no list.
    fn update_prio(&mut self, p: TaskId) {
        let t = &mut self.tasks[p as usize];
        if !t.is_real_time() {
            t.prio = self.rules.effective_prio(t.static_prio, t.sleep_avg);
        }
    }

    /// Counts `slept` as sleep, and returns the priority that results (`recalc_task_prio`).
    fn credit_sleep(&mut self, p: TaskId, slept: Nanos) -> u8 {
        let t = &mut self.tasks[p as usize];
        let slept = if t.policy == Policy::Batch { 0 } else { slept };
        let habit = self.rules.after_sleep(t.static_prio, t.habit(), slept);
        (t.sleep_avg, t.credit) = (habit.sleep_avg, habit.credit);
        if habit.aloof {
            t.activated = Activated::Uninterruptible;
        }
        if t.is_real_time() { t.prio } else { self.rules.effective_prio(t.static_prio, t.sleep_avg) }
    }

    /// Enqueues a task that wakes or arrives from another CPU (`activate_task`).
    fn activate(&mut self, cx: &Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        let now = cx.now();
        let t = self.task_mut(p);
        let slept = now - t.timestamp;
        if std::mem::take(&mut t.for_device) {
            t.activated = Activated::Uninterruptible;
        }
        // From 2.6.18 on, a real-time task keeps its sleep average.
        if !(self.task(p).is_real_time() && self.rules.release().change_keeps_bonus) {
            self.task_mut(p).prio = self.credit_sleep(p, slept);
        }
        let t = self.task_mut(p);
        if t.activated == Activated::No {
            // A running task is migrated by a kernel thread.
            let by_interrupt = how == Enqueue::Wakeup && cx.in_interrupt();
            t.activated = if by_interrupt { Activated::ByInterrupt } else { Activated::ByTask };
        }
        t.timestamp = now;
        self.push(cpu, p, self.home(cpu, p));
    }

    /// Enqueues a new task for the first time (`wake_up_new_task`).
    fn activate_new(&mut self, cx: &Core, cpu: CpuId, p: TaskId) {
        self.task_mut(p).timestamp = cx.now();
        let parent = self.task(p).parent;
        if let Some(parent) = parent {
            let (ours, theirs) = self.rules.after_fork(self.task(parent).sleep_avg);
            self.task_mut(p).sleep_avg = ours;
            self.task_mut(parent).sleep_avg = theirs;
        }
        self.update_prio(p);
        let ahead_of = parent.filter(|q| self.runs_before_parent(cx, cpu, p, *q));
        match ahead_of.and_then(|q| Some((q, *self.task(q), self.task(q).side?))) {
            Some((q, Task { prio, .. }, side)) => {
                let t = &mut self.tasks[p as usize];
                (t.prio, t.side) = (prio, Some(side));
                let rq = &mut self.queues[cpu as usize];
                rq.arrays[side].insert_before(&mut self.links, p, q, prio);
                rq.load += self.rules.weight(t);
            }
            None => self.push(cpu, p, self.home(cpu, p)),
        }
    }

    /// Returns whether a new task runs before its parent, at the parent's priority: if it is a child process and has no
    /// attributes of its own.
    fn runs_before_parent(&self, cx: &Core, cpu: CpuId, p: TaskId, parent: TaskId) -> bool {
        self.children_run_first(cx)
            && cx.curr(cpu) == Some(parent)
            && cx.task(p).attributes == cx.task(parent).attributes
    }

    fn children_run_first(&self, cx: &Core) -> bool {
        self.rules.release().threads_first || cx.start() != Start::Threads
    }

    /// Asks for rescheduling if `p` is better than the running task (`TASK_PREEMPTS_CURR`).
    fn preempt_if_better(&self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        let running = cx.curr(cpu).map_or(MAX_PRIO, |q| self.task(q).prio);
        let better = self.task(p).prio < running;
        if better {
            cx.resched(cpu);
        }
        let rule = match better {
            _ if cx.curr(cpu).is_none() => "the CPU is idle",
            true => "a better priority than the running task's preempts it",
            false => "its priority is no better than the running task's",
        };
        self.explain_preemption(cx, cpu, p, better, rule);
    }
}

/// Returns the slices of a child and of its parent after a fork (`sched_fork`), in ticks.
fn share_slice(parent: u32) -> (u32, u32) {
    (parent.div_ceil(2), parent / 2)
}

impl Scheduler for O1<'_> {
    fn task_fork(&mut self, cx: &mut Core, p: TaskId, parent: Option<TaskId>, how: Start) {
        self.links.grow(p);
        let mut t = Task::new(&cx.task(p).attributes, self.rules.release());
        t.timestamp = cx.now();
        if let Some(q) = parent {
            let cpu = cx.task(q).cpu;
            sync(self, cx, cpu);
            let theirs = self.task_mut(q);
            t.parent = parent;
            (t.sleep_avg, t.last_ran) = (theirs.sleep_avg, theirs.last_ran);
            (t.time_slice, theirs.time_slice) = share_slice(theirs.time_slice);
            if theirs.time_slice == 0 {
                // The parent has given the last tick of its slice away.
                theirs.time_slice = 1;
                self.task_tick(cx, cpu);
            }
            cx.touch(cpu);
        } else if how == Start::Fork {
            let (ours, theirs) = share_slice(self.boot_slice);
            t.time_slice = ours;
            self.boot_slice = if theirs == 0 { self.rules.timeslice(120) } else { theirs };
        } else {
            t.time_slice = self.rules.timeslice(t.static_prio);
        }
        if self.tasks.len() <= p as usize {
            self.tasks.resize(p as usize + 1, Task::new(&Attributes::default(), self.rules.release()));
        }
        self.tasks[p as usize] = t;
    }

    fn select_task_rq(&mut self, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) -> CpuId {
        self.place(cx, p, prev, why)
    }

    fn enqueue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        match how {
            Enqueue::New => self.activate_new(cx, cpu, p),
            // 2.6.0 gives no credit for the sleep then (`__activate_task`).
            Enqueue::Wakeup
                if cx.sync_waker() == Some(cpu) && self.rules.release().balancing == Balancing::ByLength =>
            {
                self.push(cpu, p, self.queues[cpu as usize].active);
            }
            Enqueue::Wakeup | Enqueue::Migrated => self.activate(cx, cpu, p, how),
        }
    }

    fn dequeue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Dequeue) {
        self.take(cpu, p);
        if how == Dequeue::Sleep {
            self.task_mut(p).for_device = cx.task(p).state == State::Sleeping { uninterruptible: true };
        }
    }

    fn yield_task(&mut self, cx: &mut Core, cpu: CpuId) {
        let Some(p) = cx.curr(cpu) else { return };
        let rq = &self.queues[cpu as usize];
        let side = if self.task(p).is_real_time() { rq.active } else { rq.expired() };
        self.take(cpu, p);
        self.push(cpu, p, side);
        let real_time = self.task(p).is_real_time();
        let rule = if real_time { "it yields: behind its equals" } else { "it yields: into the expired array" };
        self.explain_turn(cx, cpu, p, rule, &[]);
    }

    fn wakeup_preempt(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        let forked_here = how == Enqueue::New && self.task(p).parent.is_some_and(|q| cx.curr(cpu) == Some(q));
        if how == Enqueue::Wakeup && cx.sync_waker() == Some(cpu) {
            self.explain_preemption(cx, cpu, p, false, "the task that woke it is about to sleep");
        } else if !forked_here {
            self.preempt_if_better(cx, cpu, p);
        } else if self.children_run_first(cx) {
            cx.resched(cpu);
            self.explain_preemption(cx, cpu, p, true, "a new task runs before its parent");
        } else {
            self.explain_preemption(cx, cpu, p, false, "a new thread does not preempt its parent");
        }
    }

    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        let charge = self.charge(cx, prev);
        if self.nr_running(cpu) == 0 {
            self.balance_newly_idle(cx, cpu);
        }
        let next = if self.queues[cpu as usize].nr_running() == 0 {
            self.queues[cpu as usize].expired_timestamp = 0;
            self.explain_pick(cx, cpu, None, false, MAX_PRIO);
            None
        } else {
            self.choose(cx, cpu)
        };
        self.leave(cx, prev, charge);
        if let Some(p) = next {
            self.task_mut(p).timestamp = cx.now();
        }
        next
    }

    fn run_stopper(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) {
        let charge = self.charge(cx, prev);
        self.leave(cx, prev, charge);
        self.push_by_stopper(cx, cpu);
    }

    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        if let Some(p) = cx.curr(cpu) {
            self.tick_running(cx, cpu, p);
        }
        self.rebalance_tick(cx, cpu);
    }

    fn catch_up(&mut self, cx: &Core, cpu: CpuId, ticks: Ticks) {
        self.average_load(cpu, ticks.count);
        let Some(p) = cx.curr(cpu) else { return };
        let active = self.active(cpu);
        let t = self.task_mut(p);
        if t.side == Some(active) && t.policy != Policy::Fifo {
            debug_assert!(u64::from(t.time_slice) > ticks.count, "a tick that ends a slice was skipped");
            t.time_slice -= ticks.count as u32;
        }
    }

    fn next_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        let ticks = cx.curr(cpu).and_then(|p| self.ticks_to_decision(cpu, p));
        let own =
            ticks.map_or(Nanos::MAX, |n| cx.next_tick(cpu).saturating_add((n - 1).saturating_mul(cx.tick_period())));
        own.min(self.next_balance(cx, cpu))
    }

    fn queued(&self, _cx: &Core, cpu: CpuId, list: &mut QueueList) {
        [0, 1].into_iter().flat_map(|side| self.on_array(cpu, side)).for_each(|p| list.ready(p));
    }

    fn queue_load(&self, cpu: CpuId) -> Option<(u32, u64)> {
        Some((self.nr_running(cpu), self.queues[cpu as usize].load))
    }

    fn rq_online(&mut self, cx: &mut Core, cpu: CpuId) {
        self.rebuild_domains(cx, |builder| builder.online(cpu));
    }

    fn rq_offline(&mut self, cx: &mut Core, cpu: CpuId) {
        self.rebuild_domains(cx, |builder| builder.offline(cpu));
    }

    fn view(&self, cx: &Core, cpu: CpuId) -> View {
        self.view_arrays(cx, cpu)
    }

    fn ticks_when_idle(&self) -> bool {
        true
    }

    fn update_curr(&mut self, _cx: &mut Core, _cpu: CpuId) {}

    fn attributes_changed(&mut self, cx: &mut Core, p: TaskId, old: &Attributes) {
        let (cpu, new) = (cx.task(p).cpu, cx.task(p).attributes);
        sync(self, cx, cpu);
        let release = self.rules.release();
        if policy(&new, release) != policy(old, release) || new.real_time_level() != old.real_time_level() {
            self.set_policy(cx, cpu, p, &new);
        }
        if new.nice != old.nice {
            self.set_nice(cx, cpu, p, &new);
        }
        cx.touch(cpu);
    }

    /// Returns the unused part of a child's first slice to its parent, and lowers the parent's sleep average towards
    /// the child's (`sched_exit()`).
    fn task_dead(&mut self, cx: &mut Core, p: TaskId) {
        let child = *self.task(p);
        let Some(parent) = child.parent.filter(|q| cx.task(*q).state != State::Dead) else { return };
        let cpu = cx.task(parent).cpu;
        sync(self, cx, cpu);
        let full = self.rules.most_returned(child.static_prio);
        let near = self.rules.release().slice_returns_from_afar || cx.task(p).cpu == cpu;
        let t = &mut self.tasks[parent as usize];
        if child.first_time_slice && near {
            t.time_slice = (t.time_slice + child.time_slice).min(full);
        }
        t.sleep_avg = self.rules.after_exit(t.sleep_avg, child.sleep_avg);
        cx.touch(cpu);
    }
}

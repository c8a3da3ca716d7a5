//! The goodness schedulers: Linux 2.0, 2.2 and 2.4. The last of them is known as the O(n) scheduler.
//!
//! # Idea
//! One queue holds all runnable tasks. To pick a task, a CPU scans the whole queue, computes a number for each task,
//! its *goodness*, and takes the greatest. Goodness is mainly what a task has left of its slice, its *counter*. When
//! new slices are handed out, half of what was left is kept, so a task that sleeps much has a greater counter than one
//! that uses its slices up. Having last run on the same CPU, and sharing the address space, add a little.
//!
//! # Rule
//! A tick subtracts one from the running task's counter; when nothing is left, the CPU picks again. A task without
//! ticks has a goodness of 0. When that is the greatest there is, an *epoch* ends: every task, runnable or asleep, gets
//! `counter / 2 + slice`. Goodness is the counter, plus a bonus for the nice level (from 2.2 on), plus
//! `PROC_CHANGE_PENALTY` on the CPU where the task last ran, plus 1 if it shares the address space of the previous
//! task; a real-time task has 1000 plus its priority. Equal tasks run in queue order: a waking task joins at the tail
//! (2.0, 2.4) or at the head (2.2), and in 2.2 the previous task comes before its equals, even an RR task whose slice
//! has expired. An RR task without ticks gets a new slice and moves to the tail. A child gets half of its parent's
//! counter; in 2.4 the ticks that it leaves unused return to the parent. A waking task preempts a task that has more
//! than 3 ticks less (2.0) or a smaller goodness (2.2, 2.4). With several CPUs it prefers its last CPU if that is idle,
//! then another idle CPU (in 2.4 the one that has been idle longest), then the CPU where its advantage is greatest. 2.2
//! lets it wait if it and its waker appear to be cooperating. A preempted task looks for a CPU in the same way (2.2,
//! 2.4). There is no other balancing.
//!
//! # State
//! The queue. For each task: its counter, its slice, and where it last ran. For each CPU: the running task, the time of
//! the last switch, and whose address space is loaded.
//!
//! # Tunables
//! [`Rules`] holds the constants and behaviours of a release; the kernels' registry names those that can be set.
//!
//! # Differences from the kernel
//! - Every task has its own address space, even a thread, and no kernel thread borrows one.
//! - A child's ticks return to the parent when the child exits, not when the parent waits for it.
//! - Affinity came with 2.4; here 2.0 and 2.2 honour it in the same way.
//! - 2.0: the big kernel lock matters only in which CPU handles a wake-up: interrupts go to CPU 0, and a system call is
//!   handled where it was made. `need_resched` was one flag for all CPUs; here it belongs to the CPU that handles the
//!   wake-up. The number of processes, which idle CPUs check at each tick, is assumed to be right.
//! - 2.2: a waking task and its waker are assumed to be in the kernel (`lock_depth`).
//! - 2.2: a CPU that is preempted by the task it has just put back picks again, without switching away and back.
//! - Events at one instant are handled one after the other: an idle CPU that was already asked at this instant no
//!   longer counts as idle.
//!
//! # Reference
//! kernel/sched.c, fork.c and exit.c of 2.0.40, 2.2.26 and 2.4.22; include/asm-i386/smp.h, arch/i386/kernel/smp.c and
//! process.c (idle loops); kernel/timer.c of 2.4.22.

mod choose;
pub mod rules;
mod task;
mod wake;

use super::counters::Counters;
use crate::balance::sync;
use rules::{End, Rules, Sharing, Waking, Yielding};
use schedlab_base::{CpuId, Looking, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::program::{Policy, Start};
use schedlab_sim::{
    Attributes, Choice, Core, Decision, Dequeue, Enqueue, Placement, QueueList, Scheduler, State, TaskId, Ticks, View,
};
use std::collections::VecDeque;
use task::{Cpu, Task, policy};
pub use wake::MARGIN;

/// The CPU that takes all interrupts in 2.0.
const BOOT_CPU: CpuId = 0;

/// The goodness scheduler, with the rules of one release.
#[derive(Debug)]
pub struct Goodness {
    rules: Rules,
    counters: Counters,
    tasks: Vec<Task>,
    /// All runnable tasks, including the running ones.
    queue: VecDeque<TaskId>,
    cpus: Vec<Cpu>,
    /// What is left of the counter of the boot task, which forks the first tasks.
    boot_counter: i32,
    /// The CPU that handles the current wake-up, and whether a task (not an interrupt) caused it.
    waker: (CpuId, bool),
}

impl Goodness {
    /// Creates the scheduler for `machine`.
    #[must_use]
    pub fn new(machine: &Machine, rules: Rules) -> Self {
        Self {
            boot_counter: rules.boot_counter,
            rules,
            counters: Counters::default(),
            tasks: Vec::new(),
            queue: VecDeque::new(),
            cpus: task::cpus(machine),
            waker: (BOOT_CPU, false),
        }
    }

    /// Returns whether this is the SMP build of the kernel.
    fn smp(&self) -> bool {
        self.cpus.len() > 1
    }

    fn task(&self, p: TaskId) -> &Task {
        &self.tasks[p as usize]
    }

    fn task_mut(&mut self, p: TaskId) -> &mut Task {
        &mut self.tasks[p as usize]
    }

    fn all_cpus(&self) -> std::ops::Range<CpuId> {
        0..self.cpus.len() as CpuId
    }

    /// Brings the counters of all running tasks up to date.
    fn sync_all(&mut self, cx: &mut Core) {
        for cpu in self.all_cpus() {
            sync(self, cx, cpu);
        }
    }

    fn join(&mut self, p: TaskId, end: End) {
        match end {
            End::Head => self.queue.push_front(p),
            End::Tail => self.queue.push_back(p),
        }
        self.task_mut(p).queued = true;
    }

    fn leave(&mut self, p: TaskId) {
        if std::mem::take(&mut self.task_mut(p).queued) {
            let at = self.queue.iter().position(|q| *q == p).expect("a queued task is on the queue");
            self.queue.remove(at);
        }
    }

    fn move_to(&mut self, p: TaskId, end: End) {
        if self.task(p).queued {
            self.leave(p);
            self.join(p, end);
        }
    }

    /// Returns whether a task that may run on `cpu` is waiting.
    fn somebody_waits(&self, cx: &Core, cpu: CpuId) -> bool {
        self.queue.iter().any(|p| self.task(*p).on_cpu.is_none() && cx.task(*p).allowed.contains(cpu))
    }

    /// In 2.0 an idle CPU checks at each tick whether a task waits, so what it will do next may have changed.
    fn touch_idle(&self, cx: &mut Core) {
        if self.looks_when_idle() {
            self.all_cpus().filter(|c| self.cpus[*c as usize].curr.is_none()).for_each(|c| cx.touch(c));
        }
    }

    fn looks_when_idle(&self) -> bool {
        self.smp() && self.rules.waking == rules::Waking::Margin
    }

    /// Returns after how many more ticks the running task's slice ends; `None` if ticks do not end it.
    fn ticks_to_end(&self, p: TaskId) -> Option<u64> {
        let left = i64::from(self.counters.left(p) - self.rules.ends_at);
        (self.task(p).policy != Policy::Fifo || self.rules.fifo_expires).then(|| left.max(1) as u64)
    }

    /// Sets what a new task's nice level and policy mean for it.
    fn adopt(&mut self, cx: &Core, p: TaskId) {
        let a = &cx.task(p).attributes;
        let bonus = self.rules.bonus_of(a.nice);
        let t = self.task_mut(p);
        (t.bonus, t.policy, t.rt_priority) = (bonus, policy(a), i32::from(a.rt_priority));
    }
}

impl Scheduler for Goodness {
    fn task_fork(&mut self, cx: &mut Core, p: TaskId, parent: Option<TaskId>, how: Start) {
        if self.tasks.len() <= p as usize {
            self.tasks.resize(p as usize + 1, Task::default());
        }
        self.tasks[p as usize] = Task { processor: cx.task(p).cpu, parent, ..Task::default() };
        self.adopt(cx, p);
        let slice = self.rules.slices.ticks(cx.task(p).attributes.nice);
        if let Some(q) = parent {
            let cpu = cx.task(q).cpu;
            sync(self, cx, cpu);
            let (ours, theirs) = self.rules.share(self.counters.left(q));
            *self.counters.left_mut(q) = theirs;
            self.counters.insert(p, ours, slice);
            let Task { processor, avg_slice, .. } = *self.task(q);
            let t = self.task_mut(p);
            (t.processor, t.avg_slice) = (processor, avg_slice);
            if theirs == 0 && self.rules.sharing == Sharing::Exact {
                cx.resched(cpu);
            }
            cx.touch(cpu);
        } else if how == Start::Fork {
            let (ours, theirs) = self.rules.share(self.boot_counter);
            self.counters.insert(p, ours, slice);
            self.boot_counter = if theirs == 0 { self.rules.boot_counter } else { theirs };
        } else if how == Start::Wake {
            self.counters.insert(p, slice, slice);
        }
    }

    fn select_task_rq(&mut self, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) -> CpuId {
        self.waker = match why {
            Placement::Exec { .. } => return prev,
            Placement::Wake { .. } if cx.in_interrupt() => (BOOT_CPU, false),
            Placement::Wake { from } | Placement::Affinity { from } => (from, true),
            Placement::Fork { from } => (from, false),
        };
        // The queue is shared by all CPUs: which of them will run the task is not known yet.
        let allowed = &cx.task(p).allowed;
        if allowed.contains(prev) { prev } else { self.all_cpus().find(|c| allowed.contains(*c)).unwrap_or(prev) }
    }

    fn enqueue_task(&mut self, cx: &mut Core, _cpu: CpuId, p: TaskId, how: Enqueue) {
        if how == Enqueue::New && cx.start() == Start::Threads && !self.counters.has(p) {
            // A thread is created only now.
            let slice = self.rules.slices.ticks(cx.task(p).attributes.nice);
            self.counters.insert(p, slice, slice);
        }
        // A task that moves to another CPU keeps its place.
        if !self.task(p).queued {
            self.join(p, self.rules.joins);
        }
        self.touch_idle(cx);
    }

    fn dequeue_task(&mut self, _cx: &mut Core, _cpu: CpuId, p: TaskId, how: Dequeue) {
        if how != Dequeue::Migrated {
            self.leave(p);
        }
    }

    fn yield_task(&mut self, cx: &mut Core, cpu: CpuId) {
        let Some(p) = cx.curr(cpu) else { return };
        if self.rules.yielding == Yielding::StandsBack {
            let running = self.cpus.iter().filter(|c| c.curr.is_some()).count();
            if self.queue.len() == running {
                self.cpus[cpu as usize].goes_on = !cx.need_resched(cpu);
                return;
            }
        }
        if self.rules.yielding == Yielding::Forfeits {
            *self.counters.left_mut(p) = 0;
        } else if self.task(p).policy == Policy::Other {
            self.task_mut(p).yielded = true;
        }
        self.move_to(p, End::Tail);
    }

    fn wakeup_preempt(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        self.waker.1 &= how == Enqueue::Wakeup;
        let waits = |here: CpuId| cx.task(p).allowed.contains(here) && self.rules.waking == Waking::OldestIdle;
        if cx.sync_waker().is_some_and(waits) {
            // 2.4: no CPU is asked if the waker, which is about to sleep, can run it (`try_to_wake_up`).
            return self.explain_wake(cx, cpu, p, None);
        }
        if self.smp() {
            let why = if how == Enqueue::New { Looking::Fork } else { Looking::Wake };
            cx.trace_considered(self.waker.0, why, Some(p), self.all_cpus());
        }
        let asked = self.reschedule_idle(cx, cpu, p);
        self.explain_wake(cx, cpu, p, asked);
    }

    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        if std::mem::take(&mut self.cpus[cpu as usize].goes_on) {
            return prev;
        }
        self.renew_round_robin(prev);
        let mut next = self.choose(cx, cpu, prev);
        while self.switch(cx, cpu, next) {
            next = self.choose(cx, cpu, next);
        }
        self.touch_idle(cx);
        next
    }

    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        let Some(p) = cx.curr(cpu) else {
            if self.looks_when_idle() && self.somebody_waits(cx, cpu) {
                cx.resched(cpu);
            }
            return;
        };
        let ends = self.ticks_to_end(p) == Some(1);
        let left = self.counters.left_mut(p);
        *left = (*left - 1).max(0);
        if ends {
            cx.resched(cpu);
            cx.explain(|_| Decision::new(cpu, Choice::TurnEnds, Some(p), "its counter is used up"));
        }
    }

    fn catch_up(&mut self, cx: &Core, cpu: CpuId, ticks: Ticks) {
        let Some(p) = cx.curr(cpu) else { return };
        debug_assert!(self.ticks_to_end(p).is_none_or(|n| n > ticks.count), "a tick that ends a slice was skipped");
        let left = self.counters.left_mut(p);
        *left = (i64::from(*left) - ticks.count as i64).max(0) as i32;
    }

    fn next_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        let ticks = match cx.curr(cpu) {
            Some(p) => self.ticks_to_end(p),
            None => (self.looks_when_idle() && self.somebody_waits(cx, cpu)).then_some(1),
        };
        ticks.map_or(Nanos::MAX, |n| cx.next_tick(cpu).saturating_add((n - 1).saturating_mul(cx.tick_period())))
    }

    fn ticks_when_idle(&self) -> bool {
        true
    }

    fn update_curr(&mut self, _cx: &mut Core, _cpu: CpuId) {}

    fn attributes_changed(&mut self, cx: &mut Core, p: TaskId, old: &Attributes) {
        let (cpu, new) = (cx.task(p).cpu, cx.task(p).attributes);
        let slice = self.rules.slices.ticks(new.nice);
        self.counters.set_refill(p, slice);
        self.adopt(cx, p);
        if (policy(&new), new.rt_priority) != (policy(old), old.rt_priority) {
            if let Some(end) = self.rules.policy_moves {
                self.move_to(p, end);
            }
            cx.resched(cpu);
        }
        cx.touch(cpu);
    }

    /// A CPU that comes online starts with `schedule()`.
    fn rq_online(&mut self, cx: &mut Core, cpu: CpuId) {
        cx.resched(cpu);
    }

    fn queued(&self, cx: &Core, cpu: CpuId, list: &mut QueueList) {
        self.queue.iter().filter(|p| cx.task(**p).cpu == cpu).for_each(|p| list.shared(*p));
    }

    fn view(&self, _cx: &Core, cpu: CpuId) -> View {
        let me = &self.cpus[cpu as usize];
        let task = |p: &TaskId| {
            View::Map(vec![
                ("task", View::Task(*p)),
                ("counter", i64::from(self.counters.left(*p)).into()),
                ("slice", i64::from(self.counters.refill(*p)).into()),
                ("goodness", i64::from(self.goodness(*p, cpu, me.address_space)).into()),
                ("last_cpu", self.task(*p).processor.into()),
                ("on_cpu", self.task(*p).on_cpu.into()),
            ])
        };
        View::Map(vec![
            ("curr", me.curr.map_or(View::Nothing, View::Task)),
            ("address_space", me.address_space.map_or(View::Nothing, View::Task)),
            ("last_schedule_ns", me.last_schedule.into()),
            ("queue", View::List(self.queue.iter().map(task).collect())),
        ])
    }

    /// In 2.4 the ticks that a child has left return to its parent (`release_task`).
    fn task_dead(&mut self, cx: &mut Core, p: TaskId) {
        let parent = self.task(p).parent.filter(|q| cx.task(*q).state != State::Dead);
        if let (Some(most), Some(q)) = (self.rules.gives_back, parent) {
            let cpu = cx.task(q).cpu;
            sync(self, cx, cpu);
            let gift = self.counters.left(p);
            let left = self.counters.left_mut(q);
            *left = (*left + gift).min(most);
            cx.touch(cpu);
        }
        self.counters.remove(p);
    }
}

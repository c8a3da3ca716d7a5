//! Stride scheduling: exact shares of the CPU, one quantum after another.
//!
//! # Idea
//! Each task holds *tickets* and should get CPU time in proportion to them. Lottery scheduling draws a winning ticket
//! for each quantum, so its shares are right only on average and in the long run. Stride scheduling computes how long a
//! task has to wait from one quantum to the next, and its shares are right to within a quantum at any time.
//!
//! # Rule
//! A task's *stride* is inversely proportional to its tickets. Its *pass* is a virtual time. The task with the least
//! pass runs, and while it runs its pass advances by one stride for each quantum, or by a fraction of a stride for a
//! fraction of a quantum. Among equal passes the older task comes first.
//!
//! The *global pass* advances at the rate of all tickets together: a task that had received exactly its share would be
//! there. When a task sleeps or migrates, its distance from the global pass *remains* with it, and it returns at that
//! distance. So sleeping earns no time, and does not erase time used in advance. A new task begins one stride ahead.
//! When a task's tickets change, the remainder is scaled by the ratio of the old tickets to the new.
//!
//! # State
//! For each CPU: its tasks by pass, including the running one, the sum of their tickets, the global pass, the start of
//! the running task's turn, and the time up to which it has been charged. For each task: tickets, pass, and the
//! remainder while it is on no queue.
//!
//! # Tunables
//! `quantum`, the length of a turn. Tickets follow from the nice level: 20 at nice 0, and one more or less for each
//! level, from 40 at nice -20 to 1 at nice 19.
//!
//! # Differences from the kernel
//! No release has it; the authors' prototypes were changes to the Linux of their day. A quantum ends at the first tick
//! after it is used up, and the excess is charged. A waking task does not preempt. FIFO and RR tasks come before all
//! others, and load is balanced by the plain balancer of [`crate::balance`], by tickets. BATCH, IDLE and DEADLINE count
//! as OTHER. There are no currencies, and tickets cannot be lent.
//!
//! # Reference
//! C. A. Waldspurger, W. E. Weihl, "Stride scheduling: deterministic proportional-share resource management",
//! MIT/LCS/TM-528, June 1995: section 2, the algorithm and how tasks come, go and change their tickets.

use crate::balance::Queues;
use schedlab_base::{CpuId, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::program::Start;
use schedlab_sim::{Attributes, Choice, Core, Decision, Dequeue, Enqueue, QueueList, Scheduler, TaskId, View};
use std::collections::BTreeSet;

/// Virtual time. It does not overflow: a task with one ticket advances by less than 2^40 in a nanosecond.
type Pass = i128;

/// How far a task with one ticket advances in a nanosecond (`stride1`). All numbers of tickets up to 16, and most up to
/// 40, divide it.
const STRIDE1: Pass = 720_720 << 20;

/// The tunables.
#[derive(Clone, Copy, Debug)]
pub struct Tunables {
    /// The length of a turn, in ns.
    pub quantum: Nanos,
}

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    tickets: u64,
    pass: Pass,
    /// Its pass minus the global pass, while it is on no queue.
    remain: Pass,
}

#[derive(Clone, Debug, Default)]
struct Rq {
    by_pass: BTreeSet<(Pass, TaskId)>,
    tickets: u64,
    global_pass: Pass,
    turn_began: Nanos,
    charged_until: Nanos,
}

/// The stride scheduler.
#[derive(Debug)]
pub struct Stride {
    tunables: Tunables,
    tasks: Vec<Task>,
    rqs: Vec<Rq>,
}

/// Returns the tickets of a nice level.
fn tickets(nice: i8) -> u64 {
    20u64.saturating_add_signed(-i64::from(nice)).max(1)
}

/// Returns how far the pass of a task with this many tickets advances in a nanosecond.
fn stride(tickets: u64) -> Pass {
    STRIDE1 / Pass::from(tickets.max(1))
}

impl Stride {
    /// Creates the scheduler for `machine`.
    #[must_use]
    pub fn new(machine: &Machine, tunables: Tunables) -> Self {
        Self { tunables, tasks: Vec::new(), rqs: vec![Rq::default(); machine.cpus.len()] }
    }

    /// Charges the running task for the time since the last call, and advances the global pass.
    fn charge(&mut self, cx: &Core, cpu: CpuId) {
        let rq = &mut self.rqs[cpu as usize];
        let ran = Pass::from(cx.now() - std::mem::replace(&mut rq.charged_until, cx.now()));
        let Some(p) = cx.curr(cpu) else { return };
        let t = &mut self.tasks[p as usize];
        // The running task is on the queue unless it has just left it or is a real-time task.
        if rq.by_pass.remove(&(t.pass, p)) {
            t.pass += ran * stride(t.tickets);
            rq.global_pass += ran * stride(rq.tickets);
            rq.by_pass.insert((t.pass, p));
        }
    }

    /// Adds a task at its remaining distance from the global pass (`client_join`).
    fn join(&mut self, cpu: CpuId, p: TaskId) {
        let (rq, t) = (&mut self.rqs[cpu as usize], &mut self.tasks[p as usize]);
        t.pass = rq.global_pass + t.remain;
        rq.tickets += t.tickets;
        rq.by_pass.insert((t.pass, p));
    }

    /// Removes a task, and keeps its distance from the global pass (`client_leave`).
    fn leave(&mut self, cpu: CpuId, p: TaskId) {
        let (rq, t) = (&mut self.rqs[cpu as usize], &mut self.tasks[p as usize]);
        t.remain = t.pass - rq.global_pass;
        rq.tickets -= t.tickets;
        rq.by_pass.remove(&(t.pass, p));
    }

    /// Converts a pass to the microseconds that a task with one ticket takes to advance by it.
    fn pass_us(pass: Pass) -> i64 {
        (pass / STRIDE1 / 1000) as i64
    }

    fn explain_pick(&self, cx: &mut Core, cpu: CpuId, next: Option<TaskId>) {
        cx.explain(|_| {
            let queue = &self.rqs[cpu as usize].by_pass;
            let rule = if next.is_some() { "the least pass" } else { "no task can run" };
            Decision::new(cpu, Choice::Pick, next, rule)
                .over(queue.iter().map(|(_, p)| *p).filter(|p| Some(*p) != next))
                .numbers(queue.iter().map(|(pass, p)| (Some(*p), "pass_us", Self::pass_us(*pass))))
        });
    }
}

impl Scheduler for Stride {
    fn task_fork(&mut self, cx: &mut Core, p: TaskId, _parent: Option<TaskId>, _how: Start) {
        let tickets = tickets(cx.task(p).attributes.nice);
        self.tasks.resize(self.tasks.len().max(p as usize + 1), Task::default());
        let remain = stride(tickets) * Pass::from(self.tunables.quantum);
        self.tasks[p as usize] = Task { tickets, pass: 0, remain };
    }

    fn enqueue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, _how: Enqueue) {
        self.charge(cx, cpu);
        self.join(cpu, p);
    }

    fn dequeue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, _how: Dequeue) {
        self.charge(cx, cpu);
        self.leave(cpu, p);
    }

    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, _prev: Option<TaskId>) -> Option<TaskId> {
        self.charge(cx, cpu);
        let rq = &mut self.rqs[cpu as usize];
        rq.turn_began = cx.now();
        let next = rq.by_pass.first().map(|(_, p)| *p);
        self.explain_pick(cx, cpu, next);
        next
    }

    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        let rq = &self.rqs[cpu as usize];
        if rq.by_pass.len() > 1 && cx.now() - rq.turn_began >= self.tunables.quantum {
            cx.resched(cpu);
        }
    }

    fn next_decision(&mut self, _cx: &Core, cpu: CpuId) -> Nanos {
        let rq = &self.rqs[cpu as usize];
        if rq.by_pass.len() > 1 { rq.turn_began + self.tunables.quantum } else { Nanos::MAX }
    }

    /// A task of another class is about to take the CPU.
    fn update_curr(&mut self, cx: &mut Core, cpu: CpuId) {
        self.charge(cx, cpu);
    }

    fn attributes_changed(&mut self, cx: &mut Core, p: TaskId, _old: &Attributes) {
        let Task { tickets: old, .. } = self.tasks[p as usize];
        let (cpu, new, queued) = (cx.task(p).cpu, tickets(cx.task(p).attributes.nice), cx.task(p).on_rq);
        if queued {
            self.dequeue_task(cx, cpu, p, Dequeue::Migrated);
        }
        let t = &mut self.tasks[p as usize];
        t.remain = t.remain * Pass::from(old) / Pass::from(new);
        t.tickets = new;
        if queued {
            self.enqueue_task(cx, cpu, p, Enqueue::Migrated);
        }
    }

    fn queued(&self, _cx: &Core, cpu: CpuId, list: &mut QueueList) {
        self.rqs[cpu as usize].by_pass.iter().for_each(|(_, p)| list.ready(*p));
    }

    fn view(&self, _cx: &Core, cpu: CpuId) -> View {
        let rq = &self.rqs[cpu as usize];
        let task = |(pass, p): &(Pass, TaskId)| {
            let tickets = self.tasks[*p as usize].tickets;
            View::Map(vec![
                ("task", View::Task(*p)),
                ("tickets", tickets.into()),
                ("pass_us", Self::pass_us(*pass).into()),
            ])
        };
        View::Map(vec![
            ("tickets", rq.tickets.into()),
            ("global_pass_us", Self::pass_us(rq.global_pass).into()),
            ("queue", View::List(rq.by_pass.iter().map(task).collect())),
        ])
    }
}

impl Queues for Stride {
    fn nr_running(&self, cpu: CpuId) -> u32 {
        self.rqs[cpu as usize].by_pass.len() as u32
    }

    fn load(&self, cpu: CpuId) -> u64 {
        self.rqs[cpu as usize].tickets
    }

    /// Returns the task that would wait longest.
    fn movable(&self, cx: &Core, from: CpuId, to: CpuId, max_load: u64) -> Option<TaskId> {
        let fits = |p: &TaskId| {
            let light = self.tasks[*p as usize].tickets <= max_load;
            light && cx.curr(from) != Some(*p) && cx.task(*p).allowed.contains(to)
        };
        self.rqs[from as usize].by_pass.iter().rev().map(|(_, p)| *p).find(fits)
    }
}

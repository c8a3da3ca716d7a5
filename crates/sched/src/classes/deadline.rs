//! SCHED_DEADLINE: a guaranteed and enforced runtime in each period; and the fair server of 6.12.
//!
//! # Idea
//! A task declares a runtime that it needs in each period and the deadline by which it needs it. Earliest deadline
//! first serves all tasks in time as long as they do not ask for more CPU time than there is, so the kernel rejects a
//! task that would exceed this (*admission*). A *constant-bandwidth server* for each task ensures that a task which
//! runs for longer than declared only delays itself.
//!
//! # Rule
//! The task with the earliest absolute deadline runs. Running uses up its budget. When the tick, or another look at the
//! task, finds the budget used up, the task is throttled until its next period. The timer then adds a runtime to the
//! budget and moves the deadline by a period, so an overrun reduces the next budget. A task that wakes keeps its budget
//! and deadline, unless the deadline has passed or the budget exceeds its share of the time left (`runtime / (deadline
//! - t) > dl_runtime / dl_deadline`), in which case both are renewed. If the deadline is shorter than the period (4.13
//! on), the budget is cut to the share instead, and a task that wakes between its deadline and its next period waits
//! for the period. `sched_yield()` gives up the rest of the budget. A task that leaves the class and returns before its
//! 0-lag time keeps its budget and deadline (4.13 on). *Admission*: in a root domain, the sum of runtime / period is
//! at most `sched_rt_runtime_us / sched_rt_period_us` times the number of online CPUs. In 6.12 the server of each
//! online CPU is part of the sum (`total_bw`, `__dl_overflow`), which leaves 90%. A task whose affinity excludes one
//! of these CPUs is also rejected. *GRUB* (4.13 on): a task with SCHED_FLAG_RECLAIM uses up its budget more slowly the
//! more of the CPU's bandwidth is unreserved or inactive. A task that blocks stays active until its 0-lag time, when
//! its budget would have been used up at its own rate. *Inheritance*: a task that holds a mutex for a deadline task is
//! served with that one's runtime and deadline, and gets a new budget at once instead of being throttled. *The fair
//! server* (6.12): see [`server`].
//!
//! # State
//! For each CPU: the queue sorted by deadline, the bandwidth of its tasks (`this_bw`) and of its active tasks
//! (`running_bw`). For each task: budget, absolute deadline, and whether it is throttled, has yielded or has not
//! reached its 0-lag time.
//!
//! # Tunables
//! `sched_deadline_period_min_us` and `sched_deadline_period_max_us` (5.4 on; admission), `sched_rt_runtime_us` and
//! `sched_rt_period_us` (admission, GRUB), `fair_server_runtime` and `fair_server_period` (6.12). `HRTICK_DL` (5.12 on;
//! before, `HRTICK`): a [timer](super::hrtick) finds the budget used up.
//!
//! # Differences from the kernel
//! There is no separate bandwidth for CPUs of different capacity. Budgets are scaled by the CPU's capacity (4.13 on),
//! never by its frequency. When a server stops, its bandwidth leaves `running_bw` at once and not at its 0-lag time.
//! Servers stand still while there is no task above the fair class, when they could not change anything: a server that
//! fair tasks keep busy always has 950 ms left until zero laxity. Along a chain of mutexes the parameters of the last
//! waiter are lent to all holders; before 5.10 the kernel took those of the next waiter, which may have none. The child
//! of a deadline task is a deadline task as well, whereas the kernel only allows such a fork with
//! SCHED_FLAG_RESET_ON_FORK. The affinity of a deadline task can be narrowed, which the kernel refuses with `EBUSY`.
//!
//! # Reference
//! kernel/sched/deadline.c of 3.18, 4.1, 6.1, 6.6 and 6.12.y (the oracles are of 6.12.117). L. Abeni, G. Buttazzo,
//! Integrating multimedia applications in hard real-time systems, 1998; G. Lipari, S. Baruah, Greedy reclamation of
//! unused bandwidth, 2000.

mod bandwidth;
mod cbs;
mod hrtick;
mod push_pull;
mod queue;
mod rules;
pub mod server;
mod view;

pub use bandwidth::Limits;
use bandwidth::Promise;
pub(super) use queue::Next;
use queue::{Entity, Rq};
pub use rules::{Grub, Rules, Yields};

use super::spread::{Roots, Sizes, Turns};
use super::{Class, ClassId};
use schedlab_base::{CpuId, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::program::{Policy, Start};
use schedlab_sim::{
    Attributes, Choice, Core, Decision, Dequeue, Enqueue, Placement, QueueList, Scheduler, State, TaskId, Ticks,
    TimerId, View,
};

/// The index of a deadline entity: first the server of each CPU, then the tasks.
type EntityId = u32;

/// The deadline class.
#[derive(Debug)]
pub struct Deadline {
    rules: Rules,
    limits: Limits,
    cpus: u32,
    /// As far as there ever was a deadline task; `unused` stands for the others.
    entities: Vec<Entity>,
    unused: Entity,
    queues: Vec<Rq>,
    /// The runtime and period of the fair servers (6.12 on), in ns.
    server: Option<(Nanos, Nanos)>,
    /// What each task was promised; nothing if it is not in this class.
    admitted: Vec<Promise>,
    turns: Turns,
    sizes: Sizes,
    roots: Roots,
    /// Whether a timer ends budgets, and whether it is started anew for a task that is picked again.
    hrtick: (bool, bool),
}

impl Deadline {
    /// Creates the class for `machine`, without fair servers.
    #[must_use]
    pub fn new(machine: &Machine, rules: Rules, limits: Limits) -> Self {
        let cpus = machine.cpus.len();
        Self {
            rules,
            limits,
            cpus: cpus as u32,
            entities: vec![Entity::default(); cpus],
            unused: Entity::default(),
            queues: vec![Rq::default(); cpus],
            server: None,
            admitted: Vec::new(),
            turns: Turns::default(),
            sizes: Sizes::new(machine, rules.by_capacity),
            roots: Roots::new(machine),
            hrtick: (false, false),
        }
    }

    /// The class, choosing between CPUs that are equally good by `turns`.
    #[must_use]
    pub fn taking(mut self, turns: &Turns) -> Self {
        self.turns = turns.clone();
        self
    }

    fn entity(&self, p: TaskId) -> EntityId {
        self.cpus + p
    }

    fn e(&self, id: EntityId) -> &Entity {
        self.entities.get(id as usize).unwrap_or(&self.unused)
    }

    fn e_mut(&mut self, id: EntityId) -> &mut Entity {
        if self.entities.len() <= id as usize {
            self.entities.resize(id as usize + 1, Entity::default());
        }
        &mut self.entities[id as usize]
    }

    fn rq(&self, cpu: CpuId) -> &Rq {
        &self.queues[cpu as usize]
    }

    fn rq_mut(&mut self, cpu: CpuId) -> &mut Rq {
        &mut self.queues[cpu as usize]
    }

    /// The task of an entity; `None` if it is a server.
    fn task_of(&self, id: EntityId) -> Option<TaskId> {
        id.checked_sub(self.cpus)
    }

    /// The CPU on whose queue an entity is, or would be.
    fn cpu_of(&self, cx: &Core, id: EntityId) -> CpuId {
        self.task_of(id).map_or(id, |p| cx.task(p).cpu)
    }

    /// The timer that replenishes an entity's budget.
    fn budget_timer(&self, id: EntityId) -> TimerId {
        ClassId::Deadline.timer(self.task_of(id).map_or(id, |p| 2 * self.cpus + 2 * p))
    }

    /// The timer that expires at a blocked task's 0-lag time.
    fn lag_timer(&self, p: TaskId) -> TimerId {
        ClassId::Deadline.timer(2 * self.cpus + 2 * p + 1)
    }

    /// The timer for pushing tasks away from a CPU. It expires immediately after the CPU has switched.
    fn push_timer(&self, cpu: CpuId) -> TimerId {
        ClassId::Deadline.timer(self.cpus + cpu)
    }

    /// The CPU that timer number `n` of this class concerns: the server's or the pushing CPU, or the CPU of the timer's
    /// task.
    pub(super) fn cpu_of_timer(&self, cx: &Core, n: TimerId) -> CpuId {
        match n.checked_sub(2 * self.cpus) {
            Some(m) => cx.task(m / 2).cpu,
            None => n % self.cpus,
        }
    }

    /// Takes the CPU time of deadline tasks on `cpu` since the last call, in ns.
    pub(super) fn take_spent(&mut self, cpu: CpuId) -> Nanos {
        std::mem::take(&mut self.rq_mut(cpu).spent)
    }

    /// Charges the running task for the time since the last update, and throttles it if needed (`update_curr_dl`).
    fn account(&mut self, cx: &mut Core, cpu: CpuId) {
        let now = cx.now();
        let Some(id) = self.rq(cpu).curr.map(|p| self.entity(p)) else { return };
        let rq = self.rq_mut(cpu);
        let delta = now.saturating_sub(rq.exec_start);
        rq.exec_start += delta;
        if !self.e(id).queued || (delta == 0 && !self.e(id).yielded) {
            return;
        }
        self.rq_mut(cpu).spent += delta;
        let free = self.rules.yields == Yields::AtOnce && self.e(id).yielded;
        let used = if free { 0 } else { self.used(cx, cpu, id, delta) };
        self.charge(cx, cpu, id, used);
    }

    /// Whether entity `id` preempts the running task: that task is of another class, or has a later deadline.
    fn preempts(&self, cpu: CpuId, id: EntityId) -> bool {
        self.rq(cpu).curr.is_none_or(|curr| self.e(id).deadline < self.e(self.entity(curr)).deadline)
    }

    /// The earliest time at which the running task's budget can be used up.
    fn spent_at(&self, cpu: CpuId) -> Nanos {
        let Some(p) = self.rq(cpu).curr else { return Nanos::MAX };
        let e = self.e(self.entity(p));
        match (e.queued, e.yielded) {
            (false, _) => Nanos::MAX,
            (true, true) => 0,
            (true, false) => self.rq(cpu).exec_start.saturating_add(e.runtime.max(0) as Nanos),
        }
    }
}

impl Scheduler for Deadline {
    fn task_fork(&mut self, cx: &mut Core, p: TaskId, _parent: Option<TaskId>, _how: Start) {
        if cx.task(p).attributes.policy == Policy::Deadline {
            *self.e_mut(self.entity(p)) = Entity::default();
            self.set_parameters(cx, p);
        }
    }

    fn select_task_rq(&mut self, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) -> CpuId {
        self.place(cx, p, prev, why)
    }

    fn migrate_task_rq(&mut self, cx: &mut Core, p: TaskId, _from: CpuId, _to: CpuId) {
        self.detach(cx, p);
    }

    fn enqueue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        let id = self.entity(p);
        self.e_mut(id).runnable = true;
        let migrated = how == Enqueue::Migrated;
        self.lift_throttle(cx, id);
        self.check_constrained(cx, id);
        self.contend(cx, cpu, p);
        if self.e(id).throttled {
            return;
        }
        if !migrated {
            self.wake_up(cx, id);
        }
        self.insert(cpu, id);
    }

    fn dequeue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Dequeue) {
        self.account(cx, cpu);
        let id = self.entity(p);
        self.remove(cpu, id);
        self.e_mut(id).runnable = false;
        match how {
            Dequeue::Migrated => self.detach(cx, p),
            Dequeue::Sleep => self.stop_contending(cx, p),
            Dequeue::Dead => {
                cx.cancel_timer(self.budget_timer(id));
                self.stop_contending(cx, p);
            }
        }
    }

    fn yield_task(&mut self, cx: &mut Core, cpu: CpuId) {
        let Some(id) = self.rq(cpu).curr.map(|p| self.entity(p)) else { return };
        let takes = self.rules.yields != Yields::WhenReplenished;
        let e = self.e_mut(id);
        if !takes {
            e.yielded = true;
        } else if e.runtime > 0 {
            (e.yielded, e.runtime) = (true, 0);
        }
        self.account(cx, cpu);
    }

    fn wakeup_preempt(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, _how: Enqueue) {
        let Some(curr) = self.rq(cpu).curr else { return };
        let (ours, theirs) = (self.e(self.entity(p)).deadline, self.e(self.entity(curr)).deadline);
        let preempts = ours < theirs;
        if preempts {
            cx.resched(cpu);
        }
        cx.explain(|_| {
            let choice = if preempts { Choice::Preempt } else { Choice::Wait };
            let who = Some(if preempts { p } else { curr });
            let rule = if preempts { "the woken task's deadline is earlier" } else { "its deadline is not earlier" };
            Decision::new(cpu, choice, who, rule)
                .over([if preempts { curr } else { p }])
                .numbers([(Some(p), "deadline_ns", ours as i64), (Some(curr), "deadline_ns", theirs as i64)])
        });
    }

    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        self.account(cx, cpu);
        let Some(Next::Task(next)) = self.first(cpu) else { return None };
        let now = cx.now();
        let rq = self.rq_mut(cpu);
        rq.curr = Some(next);
        rq.exec_start = now;
        if rq.queue.len() > 1 && self.cpus > 1 {
            cx.start_timer(self.push_timer(cpu), now);
        }
        self.picked_hrtick(cx, cpu, prev, next);
        Some(next)
    }

    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        self.account(cx, cpu);
    }

    fn catch_up(&mut self, cx: &Core, cpu: CpuId, ticks: Ticks) {
        let Some(id) = self.rq(cpu).curr.map(|p| self.entity(p)) else { return };
        let start = self.rq(cpu).exec_start;
        let Some(ticks) = ticks.since(start) else { return };
        let first = ticks.first.saturating_sub(start);
        let rest = ticks.count - 1;
        self.rq_mut(cpu).exec_start = start.max(ticks.first) + rest * ticks.period;
        if self.e(id).queued {
            self.rq_mut(cpu).spent += first + rest * ticks.period;
            let used = self.used(cx, cpu, id, first) + rest * self.used(cx, cpu, id, ticks.period);
            self.e_mut(id).runtime -= used as i64;
        }
    }

    fn next_decision(&mut self, _cx: &Core, cpu: CpuId) -> Nanos {
        self.spent_at(cpu)
    }

    fn update_curr(&mut self, cx: &mut Core, cpu: CpuId) {
        self.account(cx, cpu);
    }

    fn clock_decision(&mut self, _cx: &Core, cpu: CpuId) -> Nanos {
        self.spent_at(cpu)
    }

    fn attributes_changed(&mut self, cx: &mut Core, p: TaskId, _old: &Attributes) {
        let cpu = cx.task(p).cpu;
        let id = self.entity(p);
        self.account(cx, cpu);
        let queued = self.e(id).queued;
        self.remove(cpu, id);
        self.detach(cx, p);
        self.set_parameters(cx, p);
        if self.e(id).runnable {
            self.contend(cx, cpu, p);
            if self.e(id).boosted {
                self.lift_throttle(cx, id);
                self.replenish(cx, id);
                self.insert(cpu, id);
            } else if queued {
                self.restore(cx, id);
                self.insert(cpu, id);
            }
            // prio_changed_dl(): the running task may be preempted by a waiting one after the change.
            if self.rq(cpu).queue.first().is_some_and(|first| self.rq(cpu).curr.map(|c| self.entity(c)) != Some(*first))
            {
                cx.resched(cpu);
            }
        } else {
            self.attach(cpu, p);
        }
    }

    fn deadline(&self, p: TaskId) -> Nanos {
        self.e(self.entity(p)).deadline
    }

    fn timer(&mut self, cx: &mut Core, n: TimerId) {
        match n.checked_sub(2 * self.cpus) {
            Some(m) if m % 2 == 0 => self.replenish_task(cx, m / 2),
            Some(m) => self.zero_lag(cx, m / 2),
            None if n >= self.cpus => while self.push(cx, n - self.cpus) {},
            None => self.server_timer(cx, n),
        }
    }

    fn rq_offline(&mut self, cx: &mut Core, cpu: CpuId) {
        self.stop_server(cx, cpu);
    }

    fn view(&self, cx: &Core, cpu: CpuId) -> View {
        self.view_queue(cx, cpu)
    }

    fn queued(&self, cx: &Core, cpu: CpuId, list: &mut QueueList) {
        self.waiting(cpu).for_each(|p| list.ready(p));
        let held = |p: &TaskId| {
            let e = self.e(self.entity(*p));
            e.runnable && !e.queued && cx.task(*p).cpu == cpu
        };
        (0..self.entities.len() as u32 - self.cpus).filter(held).for_each(|p| list.throttled(p));
    }
}

impl Class for Deadline {
    fn charged_until(&self, cpu: CpuId) -> Nanos {
        self.rq(cpu).exec_start
    }

    fn charge_from(&mut self, cpu: CpuId, at: Nanos) {
        self.rq_mut(cpu).exec_start = at;
    }

    fn hrtick(&mut self, cx: &mut Core, cpu: CpuId) {
        self.hrtick_expired(cx, cpu);
    }

    fn has_runnable(&self, cpu: CpuId) -> bool {
        !self.rq(cpu).queue.is_empty()
    }

    fn is_running(&self, cpu: CpuId) -> bool {
        self.rq(cpu).curr.is_some()
    }

    fn put_prev_task(&mut self, cx: &mut Core, cpu: CpuId, _p: TaskId) {
        self.account(cx, cpu);
        self.rq_mut(cpu).curr = None;
    }

    fn switched_from(&mut self, cx: &mut Core, p: TaskId) {
        let cpu = cx.task(p).cpu;
        let id = self.entity(p);
        self.account(cx, cpu);
        self.remove(cpu, id);
        self.e_mut(id).runnable = false;
        if self.rules.grub.is_none() {
            cx.cancel_timer(self.budget_timer(id));
        }
        self.detach(cx, p);
        if self.e(id).foreign {
            *self.e_mut(id) = Entity::default();
        } else {
            self.stop_contending(cx, p);
        }
        if self.rq(cpu).curr == Some(p) {
            self.rq_mut(cpu).curr = None;
            if self.waiting(cpu).next().is_none() {
                self.pull(cx, cpu);
            }
        }
    }

    fn switched_to(&mut self, cx: &mut Core, p: TaskId, _from: ClassId) {
        let cpu = cx.task(p).cpu;
        let id = self.entity(p);
        // A task that returns before its 0-lag time keeps its budget and deadline. After that they have been cleared
        // (`__dl_clear_params`).
        let kept = if self.e(id).non_contending { *self.e(id) } else { Entity::default() };
        self.detach(cx, p);
        if !kept.throttled {
            cx.cancel_timer(self.budget_timer(id));
        }
        let Entity { runtime, deadline, throttled, yielded, .. } = kept;
        *self.e_mut(id) = Entity { runtime, deadline, throttled, yielded, ..Entity::default() };
        self.set_parameters(cx, p);
        if cx.task(p).state != State::Runnable {
            self.attach(cpu, p);
            return;
        }
        self.e_mut(id).runnable = true;
        self.lift_throttle(cx, id);
        self.check_constrained(cx, id);
        self.contend(cx, cpu, p);
        if self.e(id).throttled {
            cx.resched(cpu);
            return;
        }
        if self.e(id).boosted {
            self.replenish(cx, id);
        } else {
            self.restore(cx, id);
        }
        self.insert(cpu, id);
        if cx.curr(cpu) == Some(p) {
            let now = cx.now();
            let rq = self.rq_mut(cpu);
            rq.curr = Some(p);
            rq.exec_start = now;
        } else {
            if self.preempts(cpu, id) {
                cx.resched(cpu);
            }
            self.woken(cx, cpu, p);
        }
    }
}

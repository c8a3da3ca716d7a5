//! One scheduler that consists of all classes of a kernel.

use super::{Class, ClassId, Deadline, RealTime, Turns, hrtick};
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::program::{InterruptKind, Policy, Start};
use schedlab_sim::{
    Attributes, Choice, Core, Decision, Dequeue, Due, Enqueue, Placement, QueueList, Refusal, Scheduler, State, TaskId,
    Ticks, TimerId, View,
};

/// The classes of a kernel, in order.
#[derive(Debug)]
pub struct Stack<F> {
    fair: F,
    rt: RealTime,
    /// The deadline class, from 3.14 on.
    dl: Option<Deadline>,
    turns: Turns,
    /// The class of each task.
    classes: Vec<ClassId>,
    /// The number of tasks in classes above fair. While it is 0, only the fair class is asked.
    above: u32,
    /// Whether any class uses the high-resolution tick.
    hrtick: bool,
    /// The kinds of interrupts whose time no task is charged for.
    accounts: Vec<InterruptKind>,
    /// For each CPU, the time up to which the fair server has been charged for the fair task or idle time there.
    since: Vec<Nanos>,
    clocks: clock::Clocks,
}

/// Calls a method of the class `$id`.
macro_rules! class {
    ($stack:expr, $id:expr, $method:ident($($arg:expr),*)) => {
        match $id {
            ClassId::Fair => $stack.fair.$method($($arg),*),
            ClassId::RealTime => $stack.rt.$method($($arg),*),
            ClassId::Deadline => {
                $stack.dl.as_mut().expect("a deadline task is of a kernel that has the class").$method($($arg),*)
            }
        }
    };
}

mod clock;
mod pick;
mod preempt;
mod server;

impl<F: Class> Stack<F> {
    /// Creates a stack of these classes.
    #[must_use]
    pub fn new(fair: F, rt: RealTime, dl: Option<Deadline>, turns: Turns) -> Self {
        Self {
            fair,
            rt,
            dl,
            turns,
            classes: Vec::new(),
            above: 0,
            hrtick: false,
            accounts: Vec::new(),
            since: Vec::new(),
            clocks: clock::Clocks::default(),
        }
    }

    /// The same in a kernel whose runqueues' clocks stand while a wake-up preempts, or not.
    #[must_use]
    pub fn with_clocks_that_stand(mut self, stand: bool) -> Self {
        self.clocks.stand = stand;
        self
    }

    /// The same in a kernel in which classes use the high-resolution tick.
    #[must_use]
    pub fn ticking(self, hrtick: bool) -> Self {
        Self { hrtick, ..self }
    }

    /// The same in a kernel that accounts for the time of these kinds of interrupts.
    #[must_use]
    pub fn accounting(self, accounts: Vec<InterruptKind>) -> Self {
        Self { accounts, ..self }
    }

    /// The class for a task's policy. A policy that the kernel does not have counts as SCHED_OTHER.
    fn class_for(&self, a: &Attributes) -> ClassId {
        match a.policy {
            Policy::Deadline if self.dl.is_some() => ClassId::Deadline,
            Policy::Fifo | Policy::Rr => ClassId::RealTime,
            _ => ClassId::Fair,
        }
    }

    #[inline]
    fn class_of(&self, p: TaskId) -> ClassId {
        if self.above == 0 { ClassId::Fair } else { self.classes[p as usize] }
    }

    /// The class of the task that is running on `cpu`; `None` if it is idle.
    #[inline]
    fn running(&self, cx: &Core, cpu: CpuId) -> Option<ClassId> {
        cx.curr(cpu).map(|p| self.class_of(p))
    }

    /// Reports the time of deadline tasks to the real-time class, whose limit counts it as well.
    fn tell_spent(&mut self, cpu: CpuId) {
        if let Some(dl) = &mut self.dl {
            let spent = dl.take_spent(cpu);
            if spent > 0 {
                self.rt.count_deadline(cpu, spent);
            }
        }
    }

    /// Updates the accounting of the task that is running on `cpu`, and of the fair server.
    fn account(&mut self, cx: &mut Core, cpu: CpuId) {
        if let Some(class) = self.running(cx, cpu) {
            class!(self, class, update_curr(cx, cpu));
        }
        self.serve(cx, cpu);
        self.tell_spent(cpu);
    }

    /// As [`Self::account`], and updates the accounting of the task's groups.
    fn charge(&mut self, cx: &mut Core, cpu: CpuId) {
        self.account(cx, cpu);
        if self.running(cx, cpu) == Some(ClassId::Fair) {
            self.fair.charge_groups(cx, cpu);
        }
    }

    /// Updates the fair class's view of the runnable tasks of higher classes on each CPU, before it balances.
    fn tell_others(&mut self, cx: &Core) {
        if self.above > 0 {
            (0..cx.nr_cpus()).for_each(|cpu| self.tell_others_of(cx, cpu));
        }
    }

    fn tell_others_of(&mut self, cx: &Core, cpu: CpuId) {
        if self.above > 0 && cx.nr_cpus() > 1 {
            let (rt, dl) = self.runnable_above(cpu);
            self.fair.others(cx, cpu, rt, dl);
        }
    }

    /// The number of runnable real-time and deadline tasks on a CPU.
    fn runnable_above(&self, cpu: CpuId) -> (u32, u32) {
        (self.rt.nr_running(cpu), self.dl.as_ref().map_or(0, |dl| dl.nr_running(cpu)))
    }

    /// The tick of the class whose task is running.
    #[inline(never)]
    fn tick_by_class(&mut self, cx: &mut Core, cpu: CpuId) {
        let running = self.running(cx, cpu);
        // A simple scheduler balances in its tick.
        self.tell_others(cx);
        class!(self, running.unwrap_or(ClassId::Fair), task_tick(cx, cpu));
        if running.is_some() {
            self.serve(cx, cpu);
            self.tell_spent(cpu);
        }
        self.tell_others(cx);
    }

    /// One more tick, by the high-resolution timer (`hrtick`).
    #[cold]
    fn hrtick(&mut self, cx: &mut Core, cpu: CpuId) {
        self.sync(cx, cpu);
        if let Some(running) = self.running(cx, cpu) {
            class!(self, running, hrtick(cx, cpu));
            self.serve(cx, cpu);
            self.tell_spent(cpu);
            self.tell_others(cx);
        }
        cx.touch(cpu);
    }

    /// The next decision of the class whose task is running, and of the fair server.
    #[inline(never)]
    fn decision_by_class(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        let running = self.running(cx, cpu);
        let at = class!(self, running.unwrap_or(ClassId::Fair), next_decision(cx, cpu));
        if running.is_none() { at } else { at.min(self.server_decision(cpu)) }
    }

    /// Handles the skipped ticks of a CPU that the engine's current call is not about.
    fn sync(&mut self, cx: &mut Core, cpu: CpuId) {
        if let Some(ticks) = cx.take_ticks(cpu) {
            self.catch_up(cx, cpu, ticks);
        }
        self.tell_spent(cpu);
    }
}

impl<F: Class> Scheduler for Stack<F> {
    fn task_fork(&mut self, cx: &mut Core, p: TaskId, parent: Option<TaskId>, how: Start) {
        let class = self.class_for(&cx.task(p).attributes);
        if self.classes.len() <= p as usize {
            self.classes.resize(p as usize + 1, ClassId::Fair);
        }
        self.classes[p as usize] = class;
        self.fair.task_fork(cx, p, parent, how);
        self.rt.task_fork(cx, p, parent, how);
        if let Some(dl) = &mut self.dl {
            dl.task_fork(cx, p, parent, how);
        }
        self.count(cx, class);
    }

    fn select_task_rq(&mut self, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) -> CpuId {
        if let Placement::Affinity { from } = why
            && let Some(cpu) = self.turns.after_affinity(&cx.task(p).allowed, from)
        {
            cx.explain(|_| Decision::new(cpu, Choice::Place, Some(p), "a CPU of its new affinity"));
            return cpu;
        }
        class!(self, self.class_of(p), select_task_rq(cx, p, prev, why))
    }

    fn migrate_task_rq(&mut self, cx: &mut Core, p: TaskId, from: CpuId, to: CpuId) {
        class!(self, self.class_of(p), migrate_task_rq(cx, p, from, to));
    }

    fn enqueue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        let class = self.class_of(p);
        if class == ClassId::RealTime && self.dl.is_some() && self.rt.period_stands() {
            // The time of deadline tasks is counted differently while the period timer runs.
            (0..cx.nr_cpus()).for_each(|cpu| self.sync(cx, cpu));
        }
        // The fair class needs the number of tasks of all classes to decide whether a CPU has too many.
        if class == ClassId::Fair {
            self.tell_others_of(cx, cpu);
        }
        class!(self, class, enqueue_task(cx, cpu, p, how));
        if class != ClassId::Fair {
            self.tell_others_of(cx, cpu);
        }
        self.serve(cx, cpu);
    }

    fn dequeue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Dequeue) {
        self.serve(cx, cpu);
        if cx.curr(cpu) == Some(p) {
            self.clocks.go_on(cpu);
            // `schedule` stops the timer, and then dequeues the task that sleeps, which may start it.
            if self.hrtick && how != Dequeue::Migrated {
                hrtick::stop(cx, cpu);
            }
        }
        class!(self, self.class_of(p), dequeue_task(cx, cpu, p, how));
    }

    fn wake_delayed(&mut self, cx: &mut Core, p: TaskId) -> bool {
        self.class_of(p) == ClassId::Fair && self.fair.wake_delayed(cx, p)
    }

    fn yield_task(&mut self, cx: &mut Core, cpu: CpuId) {
        if let Some(class) = self.running(cx, cpu) {
            class!(self, class, yield_task(cx, cpu));
        }
    }

    fn wakeup_preempt(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        if cx.curr(cpu).is_none() {
            return cx.resched(cpu);
        }
        if self.above == 0 {
            self.fair.wakeup_preempt(cx, cpu, p, how);
        } else {
            self.preempts_by_class(cx, cpu, p, how);
        }
        self.clock_stands(cx, cpu);
    }

    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        if self.hrtick && prev.is_none_or(|p| cx.task(p).state == State::Runnable) {
            hrtick::stop(cx, cpu);
        }
        let stood = if self.clocks.go_on(cpu) { self.charge_no_more(cx, cpu, prev) } else { None };
        let next =
            if self.above == 0 { self.fair.pick_next_task(cx, cpu, prev) } else { self.pick_by_class(cx, cpu, prev) };
        if let Some(stood) = stood {
            self.charge_since(cpu, next, stood);
        }
        next
    }

    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        if self.above == 0 {
            self.fair.task_tick(cx, cpu);
        } else {
            self.tick_by_class(cx, cpu);
        }
        self.fair.balance(cx, cpu);
    }

    #[inline(never)]
    fn run_stopper(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) {
        if let Some(p) = prev {
            self.account(cx, cpu);
            let class = self.class_of(p);
            self.put_back(cx, cpu, p, class);
        }
        self.tell_others(cx);
        self.fair.run_stopper(cx, cpu, None);
    }

    fn catch_up(&mut self, cx: &Core, cpu: CpuId, ticks: Ticks) {
        if self.above == 0 {
            return self.fair.catch_up(cx, cpu, ticks);
        }
        class!(self, self.running(cx, cpu).unwrap_or(ClassId::Fair), catch_up(cx, cpu, ticks));
    }

    fn next_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        let at = if self.above == 0 { self.fair.next_decision(cx, cpu) } else { self.decision_by_class(cx, cpu) };
        at.min(self.fair.next_balance(cpu))
    }

    #[inline]
    fn due(&mut self, cx: &Core, cpu: CpuId) -> Due {
        if self.above > 0 {
            return Due::at(self.next_decision(cx, cpu));
        }
        let (Due { at, turn_ends: (from, until) }, balance) = (self.fair.due(cx, cpu), self.fair.next_balance(cpu));
        Due { at: at.min(balance), turn_ends: (from, until.min(balance)) }
    }

    fn ticks_when_idle(&self) -> bool {
        self.fair.ticks_when_idle()
    }

    fn update_curr(&mut self, cx: &mut Core, cpu: CpuId) {
        self.account(cx, cpu);
    }

    fn clock_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        match self.running(cx, cpu) {
            None => Nanos::MAX,
            Some(class) => {
                let at = class!(self, class, clock_decision(cx, cpu));
                if self.above == 0 { at } else { at.min(self.server_decision(cpu)) }
            }
        }
    }

    /// Stops the clock by which tasks are charged (`rq_clock_task`).
    fn interrupted(&mut self, cx: &mut Core, cpu: CpuId, kind: InterruptKind, taken: (Nanos, Nanos)) {
        if !self.accounts.contains(&kind) {
            return;
        }
        self.charge(cx, cpu);
        if let Some(class) = self.running(cx, cpu) {
            class!(self, class, charge_from(cpu, taken.1));
        }
        self.fair.is_taken(cpu, taken);
    }

    fn attributes_changed(&mut self, cx: &mut Core, p: TaskId, old: &Attributes) {
        let (from, to) = (self.classes[p as usize], self.class_for(&cx.task(p).attributes));
        if from == to {
            class!(self, to, attributes_changed(cx, p, old));
        } else {
            self.class_changed(cx, p, from, to);
        }
    }

    fn affinity_changed(&mut self, cx: &mut Core, p: TaskId) {
        class!(self, self.class_of(p), affinity_changed(cx, p));
    }

    fn admits(&mut self, cx: &Core, p: TaskId, new: &Attributes) -> Result<(), Refusal> {
        self.dl.as_mut().map_or(Ok(()), |dl| dl.admits(cx, p, new))
    }

    fn deadline(&self, p: TaskId) -> Nanos {
        self.dl.as_ref().map_or(0, |dl| dl.deadline(p))
    }

    fn leave_group(&mut self, cx: &mut Core, p: TaskId) {
        class!(self, self.class_of(p), leave_group(cx, p));
    }

    fn join_group(&mut self, cx: &mut Core, p: TaskId) {
        class!(self, self.class_of(p), join_group(cx, p));
    }

    fn timer(&mut self, cx: &mut Core, id: TimerId) {
        let n = id / 4;
        if let Some(cpu) = hrtick::cpu_of(id) {
            self.hrtick(cx, cpu);
        } else if id % 4 == ClassId::Fair as u32 {
            self.tell_others(cx);
            self.fair.timer(cx, n);
        } else if id % 4 == ClassId::RealTime as u32 {
            (0..cx.nr_cpus()).for_each(|cpu| self.sync(cx, cpu));
            self.rt.timer(cx, n);
            self.tell_others(cx);
        } else if let Some(dl) = &mut self.dl {
            let cpu = dl.cpu_of_timer(cx, n);
            self.sync(cx, cpu);
            self.serve(cx, cpu);
            if let Some(dl) = &mut self.dl {
                dl.timer(cx, n);
            }
            self.tell_others(cx);
        }
    }

    fn rq_online(&mut self, cx: &mut Core, cpu: CpuId) {
        self.fair.rq_online(cx, cpu);
    }

    fn rq_offline(&mut self, cx: &mut Core, cpu: CpuId) {
        if self.hrtick {
            hrtick::stop(cx, cpu);
        }
        self.rt.rq_offline(cx, cpu);
        if let Some(dl) = &mut self.dl {
            dl.rq_offline(cx, cpu);
        }
        self.fair.rq_offline(cx, cpu);
    }

    fn queued(&self, cx: &Core, cpu: CpuId, list: &mut QueueList) {
        self.fair.queued(cx, cpu, list);
        if self.above > 0 {
            self.rt.queued(cx, cpu, list);
            if let Some(dl) = &self.dl {
                dl.queued(cx, cpu, list);
            }
        }
    }

    fn queue_load(&self, cpu: CpuId) -> Option<(u32, u64)> {
        let (nr, load) = self.fair.queue_load(cpu)?;
        let (rt, dl) = self.runnable_above(cpu);
        Some((nr + rt + dl, load))
    }

    fn tunables(&self) -> Vec<(&'static str, i64)> {
        self.fair.tunables()
    }

    fn view(&self, cx: &Core, cpu: CpuId) -> View {
        // The view has the same structure whatever is running: that of the fair class, and next to it those of the
        // higher classes if they have tasks.
        let curr = ("curr", cx.curr(cpu).map_or(View::Nothing, View::Task));
        let nr_running = self.queue_load(cpu).map(|(nr_running, _)| nr_running);
        let mut map = vec![curr, ("nr_running", nr_running.into())];
        if let View::Map(fair) = self.fair.view(cx, cpu) {
            map.extend(fair.into_iter().filter(|(name, _)| *name != "curr"));
        }
        if self.above > 0 {
            map.push(("real_time", self.rt.view(cx, cpu)));
            map.push(("deadline", self.dl.as_ref().map_or(View::Nothing, |dl| dl.view(cx, cpu))));
        }
        View::Map(map)
    }

    fn task_dead(&mut self, cx: &mut Core, p: TaskId) {
        let class = self.class_of(p);
        class!(self, class, task_dead(cx, p));
        self.uncount(cx, class);
    }
}

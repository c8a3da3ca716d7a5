//! BFS, the Brain Fuck Scheduler, version 0.440 as patched onto Linux 3.10 and 3.11.
//!
//! # Idea
//! All CPUs share one queue, and the scheduler does not try to guess which tasks are interactive. A task gets a slice
//! and a *virtual deadline*: the time by which it should have received that slice. The nice level sets how far ahead
//! the deadline lies, not how long the slice is. A sleeping task keeps both, so when it wakes its deadline is already
//! near or past; that alone makes it respond quickly.
//!
//! # Rule
//! The waiting task with the earliest deadline runs. Slice and deadline are renewed together, and only when the slice
//! is used up: the task gets `rr_interval` of CPU time, due by `now + rr_interval * 1.1^(nice + 20)`. A waking task
//! takes the best idle CPU; without one, it preempts the running task with the latest deadline of all CPUs if its own
//! deadline is earlier. FIFO and RR tasks, by priority, come before all deadlines; ISO tasks follow while they stay
//! within their quota; IDLEPRIO tasks (`SCHED_IDLE`) come last and preempt no task. A BATCH task's slice and deadline
//! are renewed whenever it leaves a CPU.
//!
//! The task that a CPU last put back on the queue *sticks* to that CPU. Other CPUs shift its deadline left by their
//! distance (1 for threads of one core, 2 within a cache, 3 within a node, 4 beyond). A deadline counts from boot, so
//! the shift makes it minutes later. The task stops being sticky when its CPU puts back another task.
//!
//! If a turn began in the first half of a tick and would end within the second half of the coming tick, it ends at the
//! current tick instead (*dither*): a hog's turn lasts 6 ms, not 6.3 ms.
//!
//! ## The latency bound
//! Let a task of nice level `k` wait from `t` on, with the deadline `d <= t + D(k)`, among ordinary tasks only. On its
//! own CPU only tasks with a deadline before `d` run first (a sticky task's deadline is later only on other CPUs).
//! Deadlines are renewed to at least `now + D(j)`, so after `d - D(least)` no renewed deadline is before `d`, where
//! `D(least)` is the `D` of the lowest nice level present. After that, each of the other `n - 1` tasks can use at most
//! one slice before `d`; children share their parents' slices. So the task waits for at most
//!
//! `D(k) - D(least) + (n - 1) * turn`,
//!
//! where a turn is a slice plus at most two ticks: one because a slice's end is noticed at a tick, and one that
//! rounding in the accounts leaves out. For `n` tasks of one nice level this is `(n - 1)` turns, as in plain round
//! robin. With several CPUs the bound holds from when the task's CPU is busy: two tasks that wake before an idle CPU
//! has responded are both sent there, and the second waits until some CPU next reschedules, which takes at most a turn.
//!
//! # State
//! The queue, the set of idle CPUs, and how much ISO tasks have run. For each CPU: the last task it put back, and
//! whether the current turn began in the first half of a tick. For each task: priority, the rest of its slice,
//! deadline, and whether it sticks.
//!
//! # Tunables
//! The sysctls `rr_interval` and `iso_cpu`; whether FIFO and RR are granted (a task without the privilege becomes ISO);
//! and the machine's uptime at the start, which the deadline shifts depend on. Version 0.440 does not scale
//! `rr_interval` by the number of CPUs, although its comment still says so.
//!
//! # Differences from the kernel
//! - This is the SMP build, even on one CPU; in the uniprocessor build a waking IDLEPRIO task does not end the idle
//!   task's turn.
//! - The distances are those that the code names. On 3.10 a domain's level is a number counted from 0 rather than the
//!   one its name suggests, so each distance comes out one too small: CPUs that share a cache count as threads of a
//!   core.
//! - A fork takes no time here, so a new task skips an idle CPU that has been signalled but has not yet responded.
//! - A task that no task forked starts with a full slice.
//! - Wake-ups are never synchronous, no CPU counts as slowed down by its governor, and `yield_to()` and priority
//!   inheritance are missing.
//! - Deadlines have 64 bits throughout; in the kernel, intervals of more than 51 ms overflow at nice 19.
//! - A task that goes to sleep and leaves its CPU idle marks itself for rescheduling; the second pick that this causes
//!   when it next runs is left out.
//! - The policy DEADLINE counts as OTHER.
//!
//! # Reference
//! kernel/sched/bfs.c of the patch 0.440, C. Kolivas, 2013; its design in Documentation/scheduler/sched-BFS.txt.

mod cpus;
mod preempt;
mod queue;
mod rules;
mod view;

use crate::balance::sync;
use cpus::Cpus;
use queue::Queue;
pub use rules::Tunables;
use rules::{Class, IsoQuota, NORMAL_PRIO, RESCHED_US, Rules};
use schedlab_base::{CpuId, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::program::Start;
use schedlab_sim::{
    Attributes, Choice, Core, Decision, Dequeue, Enqueue, Placement, QueueList, Scheduler, State, TaskId, Ticks, View,
};

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Asleep, or on its way to the queue.
    Off,
    Waiting,
    Running,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    class: Class,
    nice: i8,
    /// The priority list that it is on, or will be put on.
    prio: u8,
    place: Place,
    /// The rest of its slice, in microseconds of 1024 ns; negative if the tick came late.
    time_slice: i64,
    /// As time since boot (niffies).
    deadline: Nanos,
    sticky: bool,
    /// Whether it sleeps waiting for a device.
    for_device: bool,
    parent: Option<TaskId>,
}

/// What each CPU keeps for itself.
#[derive(Clone, Copy, Debug, Default)]
struct Rq {
    /// The last sticky task that this CPU put back on the queue.
    sticky: Option<TaskId>,
    /// Whether the current turn began in the first half of a tick.
    dither: bool,
    last_tick: Nanos,
    /// The time up to which the running task's slice has been charged (`timekeep_clock`).
    charged: Nanos,
}

/// The BFS scheduler.
#[derive(Debug)]
pub struct Bfs {
    rules: Rules,
    queue: Queue,
    cpus: Cpus,
    iso: IsoQuota,
    tasks: Vec<Task>,
    rqs: Vec<Rq>,
}

impl Bfs {
    /// Creates the scheduler for `machine`, with a tick every `tick` ns.
    #[must_use]
    pub fn new(machine: &Machine, tunables: Tunables, tick: Nanos) -> Self {
        Self {
            iso: IsoQuota::new(&tunables, tick, machine.cpus.len() as u32),
            rules: Rules::new(tunables, tick),
            queue: Queue::default(),
            cpus: Cpus::new(machine),
            tasks: Vec::new(),
            rqs: vec![Rq::default(); machine.cpus.len()],
        }
    }

    fn task(&self, p: TaskId) -> &Task {
        &self.tasks[p as usize]
    }

    fn task_mut(&mut self, p: TaskId) -> &mut Task {
        &mut self.tasks[p as usize]
    }

    /// Gives a task a new slice and a new deadline (`time_slice_expired`).
    fn renew(&mut self, p: TaskId, now: Nanos) {
        let slice = self.rules.slice_us();
        let deadline = self.rules.niffies(now) + self.rules.deadline_diff(self.task(p).nice);
        let t = self.task_mut(p);
        (t.time_slice, t.deadline) = (slice, deadline);
    }

    /// Charges the running task of `cpu` up to `now`, in whole microseconds of 1024 ns; the remainder is dropped.
    fn charge(&mut self, cpu: CpuId, p: TaskId, now: Nanos) {
        let rq = &mut self.rqs[cpu as usize];
        let ran = now - std::mem::replace(&mut rq.charged, now);
        let t = &mut self.tasks[p as usize];
        if t.class != Class::Fifo {
            t.time_slice -= (ran >> 10) as i64;
        }
    }

    /// Puts a task on the queue (`enqueue_task`). An ISO task beyond the quota, and an IDLEPRIO task that wakes after
    /// waiting for a device, are queued with normal priority.
    fn put(&mut self, cx: &Core, p: TaskId, from_device: bool) {
        let t = &mut self.tasks[p as usize];
        let suitable = match t.class {
            Class::IdlePrio => !from_device,
            Class::Iso => !self.iso.refractory,
            _ => true,
        };
        t.prio = if suitable { Rules::normal_prio(t.class, &cx.task(p).attributes) } else { NORMAL_PRIO };
        t.place = Place::Waiting;
        self.queue.push(p, t.prio, t.deadline);
    }

    /// Takes the running, still runnable task off `cpu` and puts it back on the queue, renewing its slice if necessary.
    /// Returns `false` if no other task waits: the task then stays on the CPU.
    fn put_back(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) -> bool {
        if !cx.task(p).allowed.contains(cpu) {
            self.call_idle(cx, p, cpu, |_, _| true);
        } else if self.queue.is_empty() {
            return false;
        } else {
            self.stick(cx, cpu, p);
        }
        self.put(cx, p, false);
        true
    }

    /// Takes the next task for `cpu` off the queue (`earliest_deadline_task`).
    fn take_next(&mut self, cx: &mut Core, cpu: CpuId) -> Option<TaskId> {
        let Self { queue, tasks, cpus, .. } = self;
        let allowed = |p| cx.task(p).allowed.contains(cpu);
        let bias = |p: TaskId| if tasks[p as usize].sticky { cpus.distance(cpu, cx.task(p).cpu) } else { 0 };
        let next = queue.take_next(allowed, bias);
        self.explain_pick(cx, cpu, next);
        if let Some(p) = next {
            let t = self.task_mut(p);
            (t.place, t.sticky) = (Place::Running, false);
            cx.set_task_cpu(p, cpu);
        }
        self.cpus.set_idle(cpu, next.is_none());
        next
    }

    /// Returns what the slice will be after the next tick, and the greatest value at which that tick ends the turn.
    fn at_next_tick(&self, cx: &Core, cpu: CpuId, p: TaskId) -> (i64, i64) {
        let rq = &self.rqs[cpu as usize];
        let left = self.task(p).time_slice - (cx.next_tick(cpu).saturating_sub(rq.charged) >> 10) as i64;
        (left, self.turn_ends_at(cpu))
    }

    /// Returns the greatest remaining slice at which a tick ends the turn.
    fn turn_ends_at(&self, cpu: CpuId) -> i64 {
        if self.rqs[cpu as usize].dither { self.rules.half_jiffy_us } else { RESCHED_US - 1 }
    }

    /// Accounts a tick to the ISO quota. An ISO task that still runs at ISO priority beyond the quota must leave its
    /// CPU.
    fn iso_tick(&mut self, p: TaskId) {
        let t = &mut self.tasks[p as usize];
        if self.iso.tick(t.class == Class::Iso) && t.class == Class::Iso && t.prio != NORMAL_PRIO {
            t.time_slice = 0;
        }
    }

    fn set_policy(&mut self, cx: &mut Core, p: TaskId, new: &Attributes, old: &Attributes) {
        let t = &mut self.tasks[p as usize];
        let (place, old_prio) = (t.place, t.prio);
        t.class = self.rules.class(new);
        match place {
            Place::Waiting => {
                self.queue.remove(p, old_prio);
                self.put(cx, p, false);
                self.try_preempt(cx, p);
            }
            Place::Running | Place::Off => {
                t.prio = Rules::normal_prio(t.class, new);
                if place == Place::Running && (t.prio > old_prio || new.rt_priority > old.rt_priority) {
                    cx.resched(cx.task(p).cpu);
                }
            }
        }
    }

    /// Changes the nice level (`set_user_nice()`). The deadline of a waiting or sleeping task moves; a running task's
    /// deadline is held by its CPU and stays until it is renewed.
    fn set_nice(&mut self, cx: &mut Core, p: TaskId, new: &Attributes) {
        let t = *self.task(p);
        self.task_mut(p).nice = new.nice;
        if t.class.is_real_time() {
            return;
        }
        if t.place != Place::Running {
            let later = t.deadline + self.rules.deadline_diff(new.nice);
            // This goes below zero only within a quarter of a second after boot, where the kernel's value wraps round.
            let moved = later.saturating_sub(self.rules.deadline_diff(t.nice));
            self.task_mut(p).deadline = moved;
        }
        match t.place {
            Place::Waiting => {
                self.queue.remove(p, t.prio);
                self.put(cx, p, false);
                if new.nice < t.nice {
                    self.try_preempt(cx, p);
                }
            }
            Place::Running => {
                self.task_mut(p).prio = Rules::normal_prio(t.class, new);
                if new.nice > t.nice {
                    cx.resched(cx.task(p).cpu);
                }
            }
            Place::Off => {}
        }
    }
}

impl Scheduler for Bfs {
    fn task_fork(&mut self, cx: &mut Core, p: TaskId, parent: Option<TaskId>, _how: Start) {
        let attributes = cx.task(p).attributes;
        let class = self.rules.class(&attributes);
        let t = Task {
            class,
            nice: attributes.nice,
            prio: Rules::normal_prio(class, &attributes),
            place: Place::Off,
            time_slice: 0,
            deadline: 0,
            sticky: false,
            for_device: false,
            parent,
        };
        if self.tasks.len() <= p as usize {
            self.tasks.resize(p as usize + 1, t);
        }
        self.tasks[p as usize] = t;
        self.renew(p, cx.now());
    }

    /// A task stays on its previous CPU until a CPU takes it off the queue.
    fn select_task_rq(&mut self, cx: &mut Core, p: TaskId, prev: CpuId, _why: Placement) -> CpuId {
        let allowed = &cx.task(p).allowed;
        if allowed.contains(prev) {
            return prev;
        }
        let others = (0..cx.nr_cpus()).filter(|c| allowed.contains(*c));
        others.min_by_key(|c| self.cpus.distance(prev, *c)).unwrap_or(prev)
    }

    fn enqueue_task(&mut self, cx: &mut Core, _cpu: CpuId, p: TaskId, how: Enqueue) {
        match how {
            Enqueue::New => self.wake_up_new(cx, p),
            Enqueue::Wakeup | Enqueue::Migrated => {
                let from_device = std::mem::take(&mut self.task_mut(p).for_device);
                self.put(cx, p, from_device);
            }
        }
    }

    fn dequeue_task(&mut self, cx: &mut Core, _cpu: CpuId, p: TaskId, how: Dequeue) {
        let t = &mut self.tasks[p as usize];
        if t.place == Place::Waiting {
            self.queue.remove(p, t.prio);
        }
        (t.place, t.sticky) = (Place::Off, false);
        t.for_device = how == Dequeue::Sleep && cx.task(p).state == State::Sleeping { uninterruptible: true };
    }

    /// Does nothing: `schedule()` decides alone, and the caller goes on if its deadline is still the earliest.
    fn yield_task(&mut self, _cx: &mut Core, _cpu: CpuId) {}

    fn wakeup_preempt(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        match how {
            Enqueue::New => {}
            // Only an idle CPU takes the task if the waker is about to sleep (`ttwu_activate`).
            Enqueue::Wakeup if cx.sync_waker().is_some() => {
                self.call_idle(cx, p, cx.task(p).cpu, |_, _| true);
            }
            Enqueue::Wakeup => self.try_preempt(cx, p),
            Enqueue::Migrated => {
                self.call_idle(cx, p, cpu, |_, _| true);
            }
        }
    }

    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        let now = cx.now();
        if let Some(p) = prev {
            self.charge(cpu, p, now);
            if self.task(p).time_slice < RESCHED_US || self.task(p).class == Class::Batch {
                self.renew(p, now);
            }
        }
        let rq = &mut self.rqs[cpu as usize];
        rq.charged = now;
        rq.dither = now - rq.last_tick <= self.rules.half_jiffy;
        if let Some(p) = prev.filter(|p| self.task(*p).place == Place::Running)
            && !self.put_back(cx, cpu, p)
        {
            return prev;
        }
        let next = self.take_next(cx, cpu);
        if next != prev {
            self.left(cx, cpu, prev, next);
        }
        next
    }

    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        let Some(p) = cx.curr(cpu) else { return };
        self.charge(cpu, p, cx.now());
        self.rqs[cpu as usize].last_tick = cx.now();
        if !self.rules.privileged() {
            self.iso_tick(p);
        }
        let ends_at = self.turn_ends_at(cpu);
        let t = self.task_mut(p);
        if t.class != Class::Fifo && t.time_slice <= ends_at {
            // The turn ends even if half a tick of the slice is left.
            let left = t.time_slice;
            t.time_slice = left.min(0);
            cx.resched(cpu);
            cx.explain(|_| {
                Decision::new(cpu, Choice::TurnEnds, Some(p), "its slice is used up, or would be before the next tick")
                    .numbers([(Some(p), "time_slice_us", left)])
            });
        }
    }

    fn catch_up(&mut self, cx: &Core, cpu: CpuId, ticks: Ticks) {
        let Some(p) = cx.curr(cpu) else { return };
        let rq = &mut self.rqs[cpu as usize];
        let first = (ticks.first.saturating_sub(rq.charged) >> 10) as i64;
        let last = ticks.first + (ticks.count - 1) * ticks.period;
        (rq.charged, rq.last_tick) = (last, last);
        let t = &mut self.tasks[p as usize];
        if t.class != Class::Fifo {
            t.time_slice -= first + (ticks.count - 1) as i64 * (ticks.period >> 10) as i64;
        }
    }

    fn next_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        let Some(p) = cx.curr(cpu) else { return Nanos::MAX };
        let next_tick = cx.next_tick(cpu);
        if !self.rules.privileged() {
            // The ISO quota counts every tick of every busy CPU.
            return next_tick;
        }
        if self.task(p).class == Class::Fifo {
            return Nanos::MAX;
        }
        let (left, ends_at) = self.at_next_tick(cx, cpu, p);
        let more = (left - ends_at).max(0) as u64;
        next_tick.saturating_add(more.div_ceil(cx.tick_period() >> 10) * cx.tick_period())
    }

    fn ticks_when_idle(&self) -> bool {
        false
    }

    /// Does nothing: slices are charged only at ticks and switches.
    fn update_curr(&mut self, _cx: &mut Core, _cpu: CpuId) {}

    fn attributes_changed(&mut self, cx: &mut Core, p: TaskId, old: &Attributes) {
        let (cpu, new) = (cx.task(p).cpu, cx.task(p).attributes);
        sync(self, cx, cpu);
        if self.rules.class(&new) != self.rules.class(old) || new.rt_priority != old.rt_priority {
            self.set_policy(cx, p, &new, old);
        }
        if new.nice != old.nice {
            self.set_nice(cx, p, &new);
        }
        cx.touch(cpu);
    }

    fn rq_online(&mut self, cx: &mut Core, cpu: CpuId) {
        self.cpus.set_online(cpu, true);
        self.iso.set_cpus(cx.nr_online(), cx.tick_period());
        cx.resched(cpu);
    }

    fn rq_offline(&mut self, cx: &mut Core, cpu: CpuId) {
        self.cpus.set_online(cpu, false);
        self.iso.set_cpus(cx.nr_online(), cx.tick_period());
    }

    fn queued(&self, cx: &Core, cpu: CpuId, list: &mut QueueList) {
        self.queue.iter().filter(|p| cx.task(*p).cpu == cpu).for_each(|p| list.shared(p));
    }

    fn view(&self, cx: &Core, cpu: CpuId) -> View {
        self.view_queue(cx, cpu)
    }
}

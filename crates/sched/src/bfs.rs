//! BFS, the Brain Fuck Scheduler, as its version 0.440 for Linux 3.10 and 3.11 had it.
//!
//! # Idea
//! One queue for all CPUs, and no guess at all of who is interactive. A task gets a slice and a *virtual deadline*:
//! the time at which it should have had it. Nice levels set how far off the deadline is, not how long the slice is.
//! Who sleeps keeps both, so that it comes back with a deadline that is early by now: that alone makes it prompt.
//!
//! # Rule
//! The waiting task with the earliest deadline runs. Slice and deadline are renewed together, only when the slice is
//! used up: `rr_interval` of CPU time, due by `now + rr_interval * 1.1^(nice + 20)`. A task that wakes takes the best
//! idle CPU, else that CPU of all whose task has the latest deadline, if its own is earlier. Above all deadlines stand
//! FIFO and RR tasks by their priorities, then ISO tasks while they keep to their quota; below all stand IDLEPRIO
//! tasks (`SCHED_IDLE`), which preempt nobody. A BATCH task's slice and deadline are renewed whenever it leaves a CPU.
//!
//! The task that a CPU last put back on the queue *sticks* to it: on other CPUs its deadline counts as shifted left
//! by the distance (1 for threads of its core, 2 within the cache, 3 within the node, 4 beyond), which, a deadline
//! being time since the boot, is minutes later. It is loosened when the CPU has put back another one.
//!
//! A turn that would end within the second half of the tick to come ends at this one, if it began in the first half of
//! a tick (*dither*); turns of hogs are 6 ms, not 6.3.
//!
//! ## The latency bound
//! Let a task of nice level `k` wait from `t` on, with the deadline `d <= t + D(k)`, among ordinary tasks only. At its
//! CPU nobody goes before it but with a deadline before `d` (a stuck task's only counts for more elsewhere). Deadlines
//! are renewed to `now + D(j)` at the least, so after `d - D(least)` no renewed one is before `d`, where `D(least)` is
//! that of the least nice task there is. The other `n - 1` tasks then have at most one slice each to use before `d`,
//! and children share their parents'. So it waits for at most
//!
//! `D(k) - D(least) + (n - 1) * turn`,
//!
//! with a turn of a slice and what the tick finds out late and the rounding of accounts leaves out: a tick each.
//! For `n` tasks of one nice level that is `(n - 1)` turns, as of a plain round robin.
//! With several CPUs it holds from the task's CPU being busy on: two tasks that wake before an idle CPU has come in
//! are both sent there, and the second waits until any CPU next reschedules, which is a turn at most.
//!
//! # State
//! The queue; which CPUs are idle; how much ISO tasks ran. For each CPU: the last task put back, whether its turn began
//! in the first half of a tick. For each task: priority, what is left of its slice, deadline, whether it sticks.
//!
//! # Tunables
//! `rr_interval` and `iso_cpu`, the sysctls; whether FIFO and RR are granted (who has no right to them becomes ISO);
//! how long the machine has been up, for the deadlines' shifts. Version 0.440 does not scale `rr_interval` by the
//! CPUs, though its comment still says so.
//!
//! # Differences from the kernel
//! It is the build with SMP, on one CPU too: without, an IDLEPRIO task that wakes does not end the idle task's turn.
//! The distances are what the code calls them. On 3.10 a domain's level is a number from 0, not that of its name, and
//! each distance comes out one too small: CPUs that share a cache pass for threads of a core.
//! Forks take no time here, so a new task passes over an idle CPU that has been called already and is still to come in.
//! A task that is forked by none starts with a full slice. Wake-ups are never synchronous, no CPU counts as slowed
//! down by its governor, `yield_to()` and priority inheritance are not there.
//! Deadlines have 64 bits throughout: in the kernel, intervals of more than 51 ms overflow at nice 19.
//! A task that goes to sleep and leaves its CPU idle marks itself for rescheduling; the second pick that this
//! causes when it next runs is left out. The policy DEADLINE counts as OTHER.
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
    /// It sleeps, or is on its way.
    Off,
    Waiting,
    Running,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    class: Class,
    nice: i8,
    /// The list that it is or will be on.
    prio: u8,
    place: Place,
    /// What is left, in microseconds of 1024 ns; less than nothing when the tick came late.
    time_slice: i64,
    /// In time since the boot.
    deadline: Nanos,
    sticky: bool,
    /// It sleeps, and waits for a device.
    for_device: bool,
    parent: Option<TaskId>,
}

/// What each CPU keeps for itself.
#[derive(Clone, Copy, Debug, Default)]
struct Rq {
    /// The last task that it put back and that stuck to it.
    sticky: Option<TaskId>,
    /// The turn began in the first half of a tick.
    dither: bool,
    last_tick: Nanos,
    /// Until when the running task's slice is charged (`timekeep_clock`).
    charged: Nanos,
}

/// The scheduler.
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
    /// A scheduler for `machine` whose ticks are `tick` apart.
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

    /// A new slice and the deadline that comes with it (`time_slice_expired`).
    fn renew(&mut self, p: TaskId, now: Nanos) {
        let slice = self.rules.slice_us();
        let deadline = self.rules.niffies(now) + self.rules.deadline_diff(self.task(p).nice);
        let t = self.task_mut(p);
        (t.time_slice, t.deadline) = (slice, deadline);
    }

    /// Charges the running task of `cpu` until `now`, in whole microseconds of 1024 ns: what is over is lost.
    fn charge(&mut self, cpu: CpuId, p: TaskId, now: Nanos) {
        let rq = &mut self.rqs[cpu as usize];
        let ran = now - std::mem::replace(&mut rq.charged, now);
        let t = &mut self.tasks[p as usize];
        if t.class != Class::Fifo {
            t.time_slice -= (ran >> 10) as i64;
        }
    }

    /// Puts a task on the queue (`enqueue_task`): whose rank is not suitable now counts as normal, an IDLEPRIO task
    /// that wakes from a device's sleep as much as an ISO task beyond the quota.
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

    /// A task that runs on `cpu` and may go on leaves it: its slice is renewed if need be, and it goes back on the
    /// queue. `false`: nobody else waits, and it stays where it is.
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

    /// A slice after the next tick, and what the slice must not be more than for that tick to end the turn.
    fn at_next_tick(&self, cx: &Core, cpu: CpuId, p: TaskId) -> (i64, i64) {
        let rq = &self.rqs[cpu as usize];
        let left = self.task(p).time_slice - (cx.next_tick(cpu).saturating_sub(rq.charged) >> 10) as i64;
        (left, self.turn_ends_at(cpu))
    }

    /// A slice of no more than this ends the turn at a tick.
    fn turn_ends_at(&self, cpu: CpuId) -> i64 {
        if self.rqs[cpu as usize].dither { self.rules.half_jiffy_us } else { RESCHED_US - 1 }
    }

    /// The quota of ISO tasks at a tick: an ISO task that runs as such beyond it is to leave its CPU.
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

    /// `set_user_nice()`: the deadline of a waiting or sleeping task moves; that of a running one is its CPU's, and
    /// stays until it is renewed.
    fn set_nice(&mut self, cx: &mut Core, p: TaskId, new: &Attributes) {
        let t = *self.task(p);
        self.task_mut(p).nice = new.nice;
        if t.class.is_real_time() {
            return;
        }
        if t.place != Place::Running {
            let later = t.deadline + self.rules.deadline_diff(new.nice);
            // Before the boot only within a quarter of a second after it; the kernel's wraps round then.
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

    /// A task stays where it was until a CPU takes it off the queue.
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

    /// `schedule()` alone decides: who still has the earliest deadline goes on.
    fn yield_task(&mut self, _cx: &mut Core, _cpu: CpuId) {}

    fn wakeup_preempt(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue) {
        match how {
            Enqueue::New => {}
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
            // Not waited for even where half a tick is left of it.
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
            // The quota goes by every tick of every busy CPU.
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

    /// The slice is charged at ticks and switches only.
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

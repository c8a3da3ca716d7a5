//! The engine's side of the contract: time, CPUs and tasks as a scheduler sees them.

mod memory;
mod speed;

use crate::cpuset::CpuSet;
use crate::effects::Effects;
use crate::inspect::Decision;
use crate::program::Start;
use crate::queue::{OwnTimers, Phase};
use crate::task::{Task, TaskId, tid};
use schedlab_base::{CpuId, Event, Looking, Nanos, Payload};
use schedlab_machine::Machine;

/// The number of one of the scheduler's timers: its own choice, small.
pub type TimerId = u32;

/// Ticks that passed without the scheduler being asked, because it said that they could change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks {
    /// When the first of them was.
    pub first: Nanos,
    /// The time between two.
    pub period: Nanos,
    /// How many.
    pub count: u64,
}

#[derive(Debug)]
pub(crate) struct Cpu {
    pub curr: Option<TaskId>,
    pub online: bool,
    /// When the CPU reschedules because it was asked to; `Nanos::MAX`: it was not.
    pub resched_at: Nanos,
    /// The first tick that was neither taken nor caught up with.
    pub next_tick: Nanos,
    /// The running task's burst: since when it makes progress, how fast, and when it ends.
    pub run_from: Nanos,
    pub speed: u32,
    pub burst_end: Nanos,
    /// Its stopper is to run.
    pub stopper: bool,
    /// Something changed: the next instant must be computed anew.
    pub touched: bool,
}

/// Why rescheduling is asked for; it decides what the way to the switch costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Tick,
    Wakeup,
    /// The running task itself entered the kernel.
    Task,
    /// The running task changed its own attributes.
    Change,
}

/// The engine's state that schedulers may see, and the few things that they may ask of it.
#[derive(Debug)]
pub struct Core {
    pub(crate) now: Nanos,
    pub(crate) machine: Machine,
    pub(crate) tasks: Vec<Task>,
    pub(crate) cpus: Vec<Cpu>,
    /// The CPUs online; all of them as long as none is offline.
    pub(crate) online: CpuSet,
    pub(crate) tick_period: Nanos,
    pub(crate) tick_first: Nanos,
    pub(crate) phase: Phase,
    /// In phase `Tick`: the CPU whose tick is being taken. CPUs below it have taken theirs.
    pub(crate) tick_cpu: CpuId,
    pub(crate) cause: Cause,
    /// With cause `Task`: the CPU whose task acts.
    pub(crate) acting: CpuId,
    pub(crate) start: Start,
    pub(crate) events: Vec<Event>,
    pub(crate) touched: Vec<CpuId>,
    pub(crate) timers: OwnTimers,
    /// Decisions are kept while this holds.
    pub(crate) explaining: bool,
    pub(crate) decisions: Vec<Decision>,
    /// What was last traced of each CPU's queue; `None` when queues are not traced.
    pub(crate) traced_queues: Option<Vec<(u32, u64)>>,
    /// What makes a task faster or slower beside the CPU's capacity, where anything does.
    pub(crate) effects: Option<Box<Effects>>,
    /// How many tasks are `on_rq` on each CPU; counted in debug builds only.
    pub(crate) nr_on_rq: Vec<u32>,
}

impl Core {
    pub(crate) fn new(machine: Machine, tick_period: Nanos, tick_first: Nanos, start: Start) -> Self {
        let cpu = |cpu: &schedlab_machine::Cpu| Cpu {
            curr: None,
            online: true,
            resched_at: Nanos::MAX,
            next_tick: tick_first,
            run_from: 0,
            speed: cpu.place.capacity,
            burst_end: Nanos::MAX,
            stopper: false,
            touched: false,
        };
        Self {
            now: 0,
            cpus: machine.cpus.iter().map(cpu).collect(),
            nr_on_rq: vec![0; machine.cpus.len()],
            online: CpuSet::ALL,
            machine,
            tasks: Vec::new(),
            tick_period,
            tick_first,
            phase: Phase::Wake,
            tick_cpu: 0,
            cause: Cause::Task,
            acting: 0,
            start,
            events: Vec::with_capacity(Self::BATCH + 64),
            touched: Vec::new(),
            timers: OwnTimers::default(),
            explaining: false,
            decisions: Vec::new(),
            traced_queues: None,
            effects: None,
        }
    }

    /// How many events are handed to the sink at once.
    pub(crate) const BATCH: usize = 4096;

    /// The time.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The number of ticks since the start (`jiffies`).
    #[inline]
    #[must_use]
    pub fn jiffies(&self) -> u64 {
        if self.now < self.tick_first { 0 } else { (self.now - self.tick_first) / self.tick_period + 1 }
    }

    /// The time between two ticks.
    #[inline]
    #[must_use]
    pub fn tick_period(&self) -> Nanos {
        self.tick_period
    }

    /// The time of the `n`th tick; no tick is at 0, so the first is `n` = 1.
    #[must_use]
    pub fn tick_time(&self, n: u64) -> Nanos {
        self.tick_first + n.saturating_sub(1).saturating_mul(self.tick_period)
    }

    /// The machine.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// How many CPUs there are.
    #[inline]
    #[must_use]
    pub fn nr_cpus(&self) -> u32 {
        self.cpus.len() as u32
    }

    /// Whether a CPU is online.
    #[inline]
    #[must_use]
    pub fn online(&self, cpu: CpuId) -> bool {
        self.cpus[cpu as usize].online
    }

    /// How many CPUs are online.
    #[must_use]
    pub fn nr_online(&self) -> u32 {
        self.cpus.iter().filter(|cpu| cpu.online).count() as u32
    }

    /// A CPU goes offline or comes back.
    pub(crate) fn set_online(&mut self, cpu: CpuId, online: bool) {
        self.cpus[cpu as usize].online = online;
        let all = self.cpus.iter().all(|cpu| cpu.online);
        self.online =
            if all { CpuSet::ALL } else { CpuSet::ALL.filter(self.nr_cpus(), |cpu| self.cpus[cpu as usize].online) };
    }

    /// How many tasks there have been.
    #[must_use]
    pub fn nr_tasks(&self) -> u32 {
        self.tasks.len() as u32
    }

    /// A task.
    #[inline]
    #[must_use]
    pub fn task(&self, p: TaskId) -> &Task {
        &self.tasks[p as usize]
    }

    /// The task that runs on a CPU; `None` is idle.
    #[inline]
    #[must_use]
    pub fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpus[cpu as usize].curr
    }

    /// Whether rescheduling was asked for and has not happened.
    #[inline]
    #[must_use]
    pub fn need_resched(&self, cpu: CpuId) -> bool {
        self.cpus[cpu as usize].resched_at != Nanos::MAX
    }

    /// Whether what happens now was caused by an interrupt (a timer, the tick) rather than by a running task.
    #[inline]
    #[must_use]
    pub fn in_interrupt(&self) -> bool {
        self.cause != Cause::Task
    }

    /// The first tick on a CPU that was neither taken nor accounted for.
    #[inline]
    #[must_use]
    pub fn next_tick(&self, cpu: CpuId) -> Nanos {
        self.cpus[cpu as usize].next_tick
    }

    /// How the tasks of this load came to be.
    #[must_use]
    pub fn start(&self) -> Start {
        self.start
    }

    /// Asks a CPU to reschedule (`resched_curr`).
    #[inline]
    pub fn resched(&mut self, cpu: CpuId) {
        let costs = &self.machine.costs;
        let delay = match self.cause {
            _ if self.cpus[cpu as usize].curr.is_none() => costs.idle_exit_ns,
            Cause::Tick => costs.tick_to_switch_ns,
            Cause::Task if cpu == self.acting => 0,
            Cause::Change if cpu == self.acting => costs.change_to_switch_ns,
            Cause::Wakeup | Cause::Task | Cause::Change => costs.wakeup_to_switch_ns,
        };
        let at = self.now + delay;
        let slot = &mut self.cpus[cpu as usize].resched_at;
        *slot = at.min(*slot);
        self.touch(cpu);
    }

    /// Wakes the stopper of a CPU, the kernel's thread before which every task gives way (`migration/N`): when the CPU
    /// reschedules, [`Scheduler::run_stopper`](crate::Scheduler::run_stopper) is called first.
    pub fn wake_stopper(&mut self, cpu: CpuId) {
        self.cpus[cpu as usize].stopper = true;
        self.resched(cpu);
    }

    /// Starts one of the scheduler's timers, or moves it: [`Scheduler::timer`](crate::Scheduler::timer) is called at
    /// `at`, which must not have passed.
    pub fn start_timer(&mut self, id: TimerId, at: Nanos) {
        debug_assert!(at >= self.now, "timer {id} is set to the past");
        self.timers.start(id, at);
    }

    /// Stops one of the scheduler's timers, if it runs.
    pub fn cancel_timer(&mut self, id: TimerId) {
        self.timers.cancel(id);
    }

    /// When one of the scheduler's timers expires; `Nanos::MAX`: it does not run.
    #[inline]
    #[must_use]
    pub fn timer_due(&self, id: TimerId) -> Nanos {
        self.timers.due(id)
    }

    /// Notes a decision, if decisions are asked for; `reason` is called only then. Its time is filled in.
    #[inline]
    pub fn explain(&mut self, reason: impl FnOnce(&Self) -> Decision) {
        if self.explaining {
            let decision = Decision { time: self.now, ..reason(self) };
            self.decisions.push(decision);
        }
    }

    /// Whether the reasons of decisions are asked for.
    #[inline]
    #[must_use]
    pub fn explaining(&self) -> bool {
        self.explaining
    }

    /// Says that something changed on a CPU's queue that can change its next decision.
    #[inline]
    pub fn touch(&mut self, cpu: CpuId) {
        let slot = &mut self.cpus[cpu as usize].touched;
        if !*slot {
            *slot = true;
            self.touched.push(cpu);
        }
    }

    /// Moves a task that is not running to another CPU, and traces it. The caller moves it between its queues.
    #[inline]
    pub fn set_task_cpu(&mut self, p: TaskId, to: CpuId) {
        let task = &mut self.tasks[p as usize];
        let from = std::mem::replace(&mut task.cpu, to);
        if from != to {
            if cfg!(debug_assertions) && task.on_rq {
                self.nr_on_rq[from as usize] -= 1;
                self.nr_on_rq[to as usize] += 1;
            }
            let prio = task.attributes.prio();
            self.emit(to, Payload::Migrate { tid: tid(p), prio, from, to });
        }
    }

    /// The engine gives a task to the scheduler, or takes it back.
    #[inline]
    pub(crate) fn set_on_rq(&mut self, p: TaskId, on_rq: bool) {
        let task = &mut self.tasks[p as usize];
        debug_assert_ne!(task.on_rq, on_rq, "task {p} is enqueued or dequeued twice");
        task.on_rq = on_rq;
        if cfg!(debug_assertions) {
            let count = &mut self.nr_on_rq[task.cpu as usize];
            *count = if on_rq { *count + 1 } else { *count - 1 };
        }
    }

    /// The ticks on a CPU that have passed and were not accounted for; the caller accounts for them now.
    #[inline]
    pub fn take_ticks(&mut self, cpu: CpuId) -> Option<Ticks> {
        let next = self.cpus[cpu as usize].next_tick;
        if next > self.now {
            return None;
        }
        let pending = self.phase == Phase::Tick && cpu >= self.tick_cpu;
        let until = if pending { self.now } else { self.now + 1 };
        if next >= until {
            return None;
        }
        let count = (until - 1 - next) / self.tick_period + 1;
        self.cpus[cpu as usize].next_tick = next + count * self.tick_period;
        Some(Ticks { first: next, period: self.tick_period, count })
    }

    /// Whether the trace records queues, loads and the CPUs that are considered.
    #[inline]
    #[must_use]
    pub fn traces_queues(&self) -> bool {
        self.traced_queues.is_some()
    }

    /// Traces the number of runnable tasks on a CPU, the running one included, and their load, where that changed
    /// and is wanted.
    #[inline]
    pub fn trace_load(&mut self, cpu: CpuId, nr_running: u32, load: u64) {
        if let Some(told) = self.traced_queues.as_mut().map(|told| &mut told[cpu as usize])
            && *told != (nr_running, load)
        {
            *told = (nr_running, load);
            self.emit(cpu, Payload::Queue { length: nr_running, load });
        }
    }

    /// Traces that the CPUs `cpus` were looked at: on behalf of `cpu`, or to find a CPU for the task `p`. Costs
    /// nothing where it is not wanted: `cpus` is not gone through.
    #[inline]
    pub fn trace_considered(
        &mut self,
        cpu: CpuId,
        why: Looking,
        p: Option<TaskId>,
        cpus: impl IntoIterator<Item = CpuId>,
    ) {
        if !self.traces_queues() {
            return;
        }
        let mut words = vec![0u64; self.cpus.len().div_ceil(64)];
        for other in cpus {
            words[other as usize / 64] |= 1 << (other % 64);
        }
        for (word, mask) in (0..).zip(words).filter(|(_, mask)| *mask != 0) {
            self.emit(cpu, Payload::Considered { why, tid: p.map_or(0, tid), word, mask });
        }
    }

    #[inline]
    pub(crate) fn emit(&mut self, cpu: CpuId, what: Payload) {
        self.events.push(Event { time: self.now, cpu, what });
    }
}

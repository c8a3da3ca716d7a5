//! The engine's side of the contract: time, CPUs and tasks as a scheduler sees them.

mod before;
mod memory;
mod resched;
mod speed;
mod ticks;

pub use ticks::Ticks;

use crate::cpuset::CpuSet;
use crate::effects::Effects;
use crate::inspect::Decision;
use crate::program::Start;
use crate::queue::{OwnTimers, Phase};
use crate::task::{Attributes, Task, TaskId, tid};
use schedlab_base::{Averages, CpuId, Event, Looking, Nanos, Payload, Rng};
use schedlab_machine::Machine;
use std::collections::BTreeMap;

/// The number of one of the scheduler's timers. The scheduler chooses it; it should be small.
pub type TimerId = u32;

/// Until when a CPU is not its tasks', if that is later than now.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Taken {
    /// Until when an interrupt, softirq or the hypervisor has it.
    pub until: Nanos,
    /// Until when its timers do not expire.
    pub deaf_until: Nanos,
}

#[derive(Debug)]
pub(crate) struct Cpu {
    pub curr: Option<TaskId>,
    pub online: bool,
    /// When the CPU reschedules, if it was asked to; otherwise `Nanos::MAX`.
    pub resched_at: Nanos,
    /// Until when its task is in the kernel, by its system call or an interrupt that asked to reschedule; or earlier.
    pub kernel_until: Nanos,
    /// The first tick that was neither taken nor caught up with.
    pub next_tick: Nanos,
    /// The tick that will do nothing but end the running task's turn, and so is skipped like those before it; otherwise
    /// `Nanos::MAX`.
    pub turn_ends: Nanos,
    /// The running task's burst: since when it makes progress, how fast, and when it ends.
    pub run_from: Nanos,
    pub speed: u32,
    pub burst_end: Nanos,
    /// Whether its stopper is about to run.
    pub stopper: bool,
    /// Whether it reschedules as soon as it has switched.
    pub again: bool,
    /// Whether it reschedules when it next returns to user mode (`TIF_NEED_RESCHED_LAZY`).
    pub lazy: bool,
    /// Whether something changed, so that the next instant must be computed again.
    pub touched: bool,
}

/// Why rescheduling is requested, which decides what the delay until the switch costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Tick,
    Wakeup,
    /// The running task itself entered the kernel.
    Task,
    /// The running task changed its own attributes.
    Change,
}

/// The part of the engine's state that schedulers may see, and the few things that they may ask of the engine.
#[derive(Debug)]
pub struct Core {
    pub(crate) now: Nanos,
    pub(crate) machine: Machine,
    pub(crate) tasks: Vec<Task>,
    /// The own attributes of the tasks that are lent better ones by waiters of mutexes that they hold.
    pub(crate) own: BTreeMap<TaskId, Attributes>,
    pub(crate) cpus: Vec<Cpu>,
    /// The online CPUs; [`CpuSet::ALL`] if none is offline.
    pub(crate) online: CpuSet,
    pub(crate) tick_period: Nanos,
    pub(crate) tick_first: Nanos,
    pub(crate) phase: Phase,
    /// In phase `Tick`: the CPU whose tick is being handled. CPUs below it have had theirs.
    pub(crate) tick_cpu: CpuId,
    pub(crate) cause: Cause,
    /// With cause `Task`: the CPU whose task acts.
    pub(crate) acting: CpuId,
    /// Whether the task that acts wakes others synchronously.
    pub(crate) sync: bool,
    /// For each CPU, until when it is taken; empty if the load has no interrupts.
    pub(crate) taken: Vec<Taken>,
    /// With cause `Wakeup`: the CPU that the interrupt is on; `None` if that is not known.
    pub(crate) interrupted: Option<CpuId>,
    /// Draws how long things take, if that varies.
    pub(crate) jitter: Option<Rng>,
    /// Whether requests of the fair class to reschedule another CPU wait until that returns to user mode.
    pub(crate) lazy: bool,
    pub(crate) start: Start,
    /// What tasks did before the load begins, in the order of the tasks.
    pub(crate) averages: Vec<(TaskId, Averages)>,
    pub(crate) events: Vec<Event>,
    pub(crate) touched: Vec<CpuId>,
    pub(crate) timers: OwnTimers,
    /// Whether decisions are being recorded.
    pub(crate) explaining: bool,
    pub(crate) decisions: Vec<Decision>,
    /// What was last traced of each CPU's queue; `None` if queues are not traced.
    pub(crate) traced_queues: Option<Vec<(u32, u64)>>,
    /// What changes a task's speed, apart from the CPU's capacity; `None` if nothing does.
    pub(crate) effects: Option<Box<Effects>>,
    /// The number of tasks that are `on_rq` on each CPU; counted in debug builds only.
    pub(crate) nr_on_rq: Vec<u32>,
}

impl Core {
    pub(crate) fn new(machine: Machine, tick_period: Nanos, tick_first: Nanos, start: Start) -> Self {
        let cpu = |cpu: &schedlab_machine::Cpu| Cpu {
            curr: None,
            online: true,
            resched_at: Nanos::MAX,
            kernel_until: 0,
            next_tick: tick_first,
            turn_ends: Nanos::MAX,
            run_from: 0,
            speed: cpu.place.capacity,
            burst_end: Nanos::MAX,
            stopper: false,
            again: false,
            lazy: false,
            touched: false,
        };
        Self {
            now: 0,
            cpus: machine.cpus.iter().map(cpu).collect(),
            nr_on_rq: vec![0; machine.cpus.len()],
            online: CpuSet::ALL,
            machine,
            tasks: Vec::new(),
            own: BTreeMap::new(),
            tick_period,
            tick_first,
            phase: Phase::Wake,
            tick_cpu: 0,
            cause: Cause::Task,
            acting: 0,
            sync: false,
            taken: Vec::new(),
            interrupted: None,
            jitter: None,
            lazy: false,
            start,
            averages: Vec::new(),
            events: Vec::with_capacity(Self::BATCH + 64),
            touched: Vec::new(),
            timers: OwnTimers::default(),
            explaining: false,
            decisions: Vec::new(),
            traced_queues: None,
            effects: None,
        }
    }

    /// The number of events that are passed to the sink at once.
    pub(crate) const BATCH: usize = 4096;

    /// Returns the present time.
    #[inline]
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Returns the machine.
    #[must_use]
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Until when a CPU is taken.
    #[inline]
    pub(crate) fn taken(&self, cpu: CpuId) -> Taken {
        if self.taken.is_empty() { Taken::default() } else { self.taken[cpu as usize] }
    }

    /// Returns the number of CPUs.
    #[inline]
    #[must_use]
    pub fn nr_cpus(&self) -> u32 {
        self.cpus.len() as u32
    }

    /// Returns whether a CPU is online.
    #[inline]
    #[must_use]
    pub fn online(&self, cpu: CpuId) -> bool {
        self.cpus[cpu as usize].online
    }

    /// Returns how many CPUs are online.
    #[must_use]
    pub fn nr_online(&self) -> u32 {
        self.cpus.iter().filter(|cpu| cpu.online).count() as u32
    }

    /// Takes a CPU offline, or brings it online.
    pub(crate) fn set_online(&mut self, cpu: CpuId, online: bool) {
        self.cpus[cpu as usize].online = online;
        let all = self.cpus.iter().all(|cpu| cpu.online);
        self.online =
            if all { CpuSet::ALL } else { CpuSet::ALL.filter(self.nr_cpus(), |cpu| self.cpus[cpu as usize].online) };
    }

    /// Returns how many tasks have been created.
    #[must_use]
    pub fn nr_tasks(&self) -> u32 {
        self.tasks.len() as u32
    }

    /// Returns a task.
    #[inline]
    #[must_use]
    pub fn task(&self, p: TaskId) -> &Task {
        &self.tasks[p as usize]
    }

    /// Returns a task's own attributes, whether or not it is lent better ones (`normal_prio`).
    #[must_use]
    pub fn own(&self, p: TaskId) -> &Attributes {
        self.own.get(&p).unwrap_or(&self.task(p).attributes)
    }

    /// Returns whether a waiter of a mutex that the task holds lends it better attributes than its own.
    #[must_use]
    pub fn is_lent(&self, p: TaskId) -> bool {
        self.own.contains_key(&p)
    }

    /// Returns the task that runs on a CPU; `None` is the idle task.
    #[inline]
    #[must_use]
    pub fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.cpus[cpu as usize].curr
    }

    /// Returns whether a CPU was asked to reschedule and has not done so yet.
    #[inline]
    #[must_use]
    pub fn need_resched(&self, cpu: CpuId) -> bool {
        self.cpus[cpu as usize].resched_at != Nanos::MAX
    }

    /// Returns whether a CPU was asked to reschedule, and will do so at a later time.
    #[inline]
    #[must_use]
    pub fn resched_is_due_later(&self, cpu: CpuId) -> bool {
        let at = self.cpus[cpu as usize].resched_at;
        at != Nanos::MAX && at > self.now
    }

    /// Returns whether a CPU was asked to reschedule, at once or when it returns to user mode, and has not done so yet.
    #[inline]
    #[must_use]
    pub fn will_resched(&self, cpu: CpuId) -> bool {
        self.need_resched(cpu) || self.cpus[cpu as usize].lazy
    }

    /// Returns whether the present event was caused by an interrupt (a timer, the tick) rather than by a running task.
    #[inline]
    #[must_use]
    pub fn in_interrupt(&self) -> bool {
        self.cause != Cause::Task
    }

    /// Returns the CPU whose running task is waking others and is about to sleep (`WF_SYNC`); otherwise `None`.
    #[inline]
    #[must_use]
    pub fn sync_waker(&self) -> Option<CpuId> {
        self.sync.then_some(self.acting)
    }

    /// Returns the time of a CPU's first tick that was neither taken nor accounted for.
    #[inline]
    #[must_use]
    pub fn next_tick(&self, cpu: CpuId) -> Nanos {
        self.cpus[cpu as usize].next_tick
    }

    /// Returns how the tasks of this load are started.
    #[must_use]
    pub fn start(&self) -> Start {
        self.start
    }

    /// How long it takes this time to wake a task on an idle CPU.
    pub(crate) fn idle_wakeup(&mut self) -> Nanos {
        let costs = &self.machine.costs;
        resched::drawn(&costs.idle_wakeup_ns, costs.jitter_percent, &mut self.jitter)
    }

    /// Asks a CPU to reschedule (`resched_curr`).
    #[inline]
    pub fn resched(&mut self, cpu: CpuId) {
        let costs = &self.machine.costs;
        let cost = match self.cause {
            _ if self.cpus[cpu as usize].curr.is_none() => match self.cause {
                Cause::Wakeup if self.interrupted.is_none_or(|here| here == cpu) => &costs.idle_exit_ns,
                Cause::Tick if self.tick_cpu == cpu => &costs.idle_exit_ns,
                _ => &costs.remote_idle_exit_ns,
            },
            Cause::Tick => &costs.tick_to_switch_ns,
            Cause::Task if cpu == self.acting => &costs.own_wakeup_to_switch_ns,
            Cause::Change if cpu == self.acting => &costs.change_to_switch_ns,
            Cause::Wakeup if self.interrupted.is_none_or(|here| here == cpu) => &costs.timer_to_switch_ns,
            Cause::Wakeup | Cause::Task | Cause::Change => &costs.wakeup_to_switch_ns,
        };
        let at = self.now + resched::drawn(cost, costs.jitter_percent, &mut self.jitter);
        let here = match self.cause {
            Cause::Task | Cause::Change => self.acting == cpu,
            Cause::Wakeup => self.interrupted.is_none_or(|here| here == cpu),
            Cause::Tick => self.tick_cpu == cpu,
        };
        let slot = &mut self.cpus[cpu as usize];
        let sooner = at < slot.resched_at;
        slot.resched_at = at.min(slot.resched_at);
        // A tick that asks for what was asked before may as well be skipped.
        if here && (sooner || self.cause != Cause::Tick) {
            slot.kernel_until = at;
        }
        self.touch(cpu);
    }

    /// Asks a CPU to reschedule when it next returns to user mode (`resched_curr_lazy`). With lazy preemption, a CPU
    /// that is running a task gets no interrupt for that if another CPU asks: it reschedules at the end of its next
    /// tick, interrupt or system call. The own CPU is in the kernel now, and returns at once. `queued` says that a
    /// wake-up asks: one of a CPU with another last-level cache is done there, in an interrupt (`ttwu_queue_cond`).
    /// Otherwise this is [`Self::resched`].
    #[inline]
    pub fn resched_lazy(&mut self, cpu: CpuId, queued: bool) {
        if self.lazy && self.may_wait(cpu, queued) {
            self.cpus[cpu as usize].lazy = true;
            self.touch(cpu);
        } else {
            self.resched(cpu);
        }
    }

    /// A CPU returns to user mode, and does what was asked of it lazily.
    #[inline]
    pub(crate) fn return_to_user(&mut self, cpu: CpuId) {
        if std::mem::take(&mut self.cpus[cpu as usize].lazy) {
            self.resched(cpu);
        }
    }

    /// Asks a CPU, while it picks, to reschedule again as soon as it has switched to what it picks: the task has
    /// something to do before it returns to user mode (`task_work_add`).
    pub fn resched_after_switch(&mut self, cpu: CpuId) {
        self.cpus[cpu as usize].again = true;
    }

    /// Wakes the stopper of a CPU, the kernel thread that every task makes way for (`migration/N`). When the CPU
    /// reschedules, [`Scheduler::run_stopper`](crate::Scheduler::run_stopper) is called first.
    pub fn wake_stopper(&mut self, cpu: CpuId) {
        self.cpus[cpu as usize].stopper = true;
        self.resched(cpu);
    }

    /// Starts one of the scheduler's timers, or moves its expiry: [`Scheduler::timer`](crate::Scheduler::timer) is
    /// called at `at`, which must not be in the past.
    pub fn start_timer(&mut self, id: TimerId, at: Nanos) {
        debug_assert!(at >= self.now, "timer {id} is set to the past");
        self.timers.start(id, at);
    }

    /// Stops one of the scheduler's timers, if it is running.
    pub fn cancel_timer(&mut self, id: TimerId) {
        self.timers.cancel(id);
    }

    /// Returns the expiry of one of the scheduler's timers; `Nanos::MAX` if it is not running.
    #[inline]
    #[must_use]
    pub fn timer_due(&self, id: TimerId) -> Nanos {
        self.timers.due(id)
    }

    /// Records a decision, if decisions are requested; `reason` is called only then. Its time is filled in.
    #[inline]
    pub fn explain(&mut self, reason: impl FnOnce(&Self) -> Decision) {
        if self.explaining {
            let decision = Decision { time: self.now, ..reason(self) };
            self.decisions.push(decision);
        }
    }

    /// Returns whether the reasons of decisions are requested.
    #[inline]
    #[must_use]
    pub fn explaining(&self) -> bool {
        self.explaining
    }

    /// Marks a CPU whose queue has changed in a way that can change its next decision.
    #[inline]
    pub fn touch(&mut self, cpu: CpuId) {
        let slot = &mut self.cpus[cpu as usize].touched;
        if !*slot {
            *slot = true;
            self.touched.push(cpu);
        }
    }

    /// Moves a task that is not running to another CPU, and traces the migration. The caller moves it between its
    /// queues.
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

    /// Marks a task as passed to the scheduler, or as taken back from it.
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

    /// Returns whether the trace records queues, loads and the CPUs that are considered.
    #[inline]
    #[must_use]
    pub fn traces_queues(&self) -> bool {
        self.traced_queues.is_some()
    }

    /// Traces the number of runnable tasks on a CPU, including the running one, and their load, if that changed and is
    /// recorded.
    #[inline]
    pub fn trace_load(&mut self, cpu: CpuId, nr_running: u32, load: u64) {
        if let Some(told) = self.traced_queues.as_mut().map(|told| &mut told[cpu as usize])
            && *told != (nr_running, load)
        {
            *told = (nr_running, load);
            self.emit(cpu, Payload::Queue { length: nr_running, load });
        }
    }

    /// Traces that the CPUs `cpus` were considered: on behalf of `cpu`, or to find a CPU for the task `p`. If this is
    /// not recorded it costs nothing: `cpus` is not iterated.
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

//! The main loop: advances to the next instant and lets the scheduler decide.

use self::homes::Homes;
use self::hotplug::Affinities;
use self::interrupts::Interrupts;
use crate::core::{Cause, Core, Taken};
use crate::effects::Effects;
use crate::inspect::Inspect;
use crate::invariants::Checks;
use crate::process::{Mark, NO_COPY, Process, Wait};
use crate::program::{Load, Start};
use crate::queue::{CpuQueue, Key, Phase, Timers};
use crate::resources::Resources;
use crate::scheduler::Scheduler;
use crate::stall;
use crate::task::{State, TaskId};
use schedlab_base::{CpuId, Draws, Error, GroupRecord, Nanos, Result, Rng, Sink};
use schedlab_machine::Machine;

mod birth;
mod calls;
mod check;
mod exec;
mod homes;
mod hotplug;
mod inherit;
mod inspecting;
mod instants;
mod interrupts;
mod killing;
mod properties;
mod semaphores;
mod set;
mod speed;
mod switch;
mod wakeup;

pub use inherit::Inheritance;

/// The options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long to simulate; `None` means until every task has ended.
    pub duration: Option<Nanos>,
    /// The seed of all random draws.
    pub seed: u64,
    /// Whether to skip ticks that change nothing according to the scheduler. The events are the same either way.
    pub skip_ticks: bool,
    /// The tick period.
    pub tick_period: Nanos,
    /// The time of the first tick.
    pub tick_first: Nanos,
    /// What becomes of a task when the last CPU of its affinity goes offline.
    pub stranded: Stranded,
    /// Whether the kernel preempts lazily (`PREEMPT_LAZY`, [`Core::resched_lazy`]).
    pub lazy: bool,
    /// How mutexes lend priorities, if the load asks for that ([`Load::inherits`]); `None` if the kernel cannot.
    pub inheritance: Option<Inheritance>,
    /// Whether a kernel thread, the stopper (`migration/N`), moves a running task that changes its CPU by exec or by a
    /// new affinity; otherwise it leaves by itself.
    pub stopper: bool,
    /// Whether a new task that is placed on another CPU than its parent's is traced as a migration.
    pub new_migrate: bool,
}

/// What the kernel does with a task when the last CPU of its affinity goes offline. The task never gets its old
/// affinity back, even when the CPUs return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stranded {
    /// Its new affinity is the CPUs that are online at that moment; otherwise it is every CPU, those offline included.
    pub to_online: bool,
    /// A task that sleeps on the CPU gets its new affinity at once; otherwise when it wakes, if its CPUs are still
    /// offline.
    pub asleep: bool,
}

impl Default for Stranded {
    /// As Linux does it today.
    fn default() -> Self {
        Self { to_online: false, asleep: false }
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The simulated time at the end.
    pub end: Nanos,
    /// The number of tasks that existed.
    pub tasks: u32,
    /// Why nothing more happened before the end, if so: the remaining tasks wait for tasks that have ended.
    pub idle_note: Option<String>,
    /// Tasks that the kernel gave another affinity, or refused one, because their CPUs were offline.
    pub affinity_notes: Vec<String>,
    /// The final values of tunables that the kernel itself changes.
    pub tunables: Vec<(&'static str, i64)>,
}

/// With more tasks than this in one run, the load is assumed to fork without end.
pub(crate) const MOST_TASKS: u32 = 1 << 20;
/// More instants than this at one time, and so many more for each task and each CPU, and the load goes nowhere.
const STUCK: u64 = 250_000;
const STUCK_EACH: u64 = 32;

/// Runs a load on a machine under a scheduler. Events go to `sink`; the requested views and decisions go to `inspect`.
///
/// # Errors
/// If the load deadlocks, never lets time pass, or asks for something that the kernel refuses. The error names the task
/// and the reason.
pub fn run<'a, S: Scheduler>(
    scheduler: S,
    machine: &Machine,
    load: &'a Load,
    options: &Options,
    sink: &'a mut dyn Sink,
    inspect: Option<Inspect<'a>>,
) -> Result<Outcome> {
    Engine::new(scheduler, machine, load, options, sink, inspect).run()
}

pub(crate) struct Engine<'a, S> {
    cx: Core,
    sched: S,
    queue: CpuQueue,
    timers: Timers,
    processes: Vec<Process<'a>>,
    resources: Resources,
    load: &'a Load,
    options: Options,
    draws: Draws,
    sink: &'a mut dyn Sink,
    /// The number of runnable tasks that do not merely spin.
    active: u32,
    /// The number of tasks that have ended.
    ended: u32,
    /// The number of tasks that are awaited ([`crate::program::TaskSpec::awaited`]) and have not ended.
    awaited: u32,
    /// All tasks that were awaited have ended, before the time was over.
    over: bool,
    /// No instant from here on is simulated.
    end: Nanos,
    /// How often each template was forked, for task names.
    forked: Vec<u32>,
    homes: Homes,
    inspect: Option<Inspect<'a>>,
    /// Something must be inspected before the first instant later than this.
    next_inspection: Nanos,
    /// When the next CPU goes offline or comes online; `hotplugged` counts those that have.
    next_hotplug: Key,
    hotplugged: usize,
    interrupts: Interrupts,
    /// The earlier of the next change of a CPU and the next interrupt.
    next_outside: Key,
    affinities: Affinities,
    /// When each task began; nothing if nothing counts from then.
    started: Option<Vec<Nanos>>,
    /// How mutexes lend priorities, if they do.
    inheritance: Option<Inheritance>,
    /// Whether a tick that does nothing but end a turn needs no instant of its own ([`Due`](crate::Due)): nobody asks
    /// what happens at it, and no other tick, interrupt or draw comes before the switch.
    folds: bool,
    /// How many tasks the operation that is executed has woken on behalf of the running task.
    woken: u32,
    /// Whether some operation takes time in the kernel before it has an effect, or an exit.
    pays: bool,
    /// Whether some task reads its CPU clock.
    polls: bool,
    checks: Checks,
}

impl<'a, S: Scheduler> Engine<'a, S> {
    fn new(
        sched: S,
        machine: &Machine,
        load: &'a Load,
        options: &Options,
        sink: &'a mut dyn Sink,
        inspect: Option<Inspect<'a>>,
    ) -> Self {
        let mut cx = Core::new(machine.clone(), options.tick_period, options.tick_first, load.start);
        cx.effects = Effects::of(machine, load);
        cx.lazy = options.lazy;
        cx.jitter = machine.costs.vary().then(|| Rng::new(options.seed ^ 0x0717_7e12));
        cx.taken = if load.interrupts.is_empty() { Vec::new() } else { vec![Taken::default(); machine.cpus.len()] };
        let tick = &machine.costs.tick_to_switch_ns;
        let certain = !tick.varies() && machine.costs.jitter_percent == 0 && tick.median() < options.tick_period;
        let folds = certain && cx.taken.is_empty() && inspect.is_none();
        let (next_hotplug, interrupts) = (hotplug::first(load), Interrupts::new(load, options.seed));
        Self {
            cx,
            sched,
            queue: CpuQueue::new(machine.cpus.len()),
            timers: Timers::default(),
            processes: Vec::with_capacity(load.nr_tasks()),
            resources: Resources::new(load),
            load,
            options: *options,
            draws: Draws::new(options.seed),
            sink,
            active: 0,
            ended: 0,
            awaited: 0,
            over: false,
            end: options.duration.unwrap_or(Nanos::MAX),
            forked: vec![0; load.templates.len()],
            homes: Homes::new(machine),
            next_inspection: Nanos::MAX,
            inspect,
            next_hotplug,
            hotplugged: 0,
            next_outside: next_hotplug.min(interrupts.first()),
            interrupts,
            affinities: Affinities::new(load),
            started: load.counts_from_start().then(Vec::new),
            inheritance: options.inheritance.filter(|_| load.inherits),
            folds,
            woken: 0,
            pays: machine.costs.take_time_first(),
            polls: load.reads_clocks(),
            checks: Checks::default(),
        }
    }

    fn run(mut self) -> Result<Outcome> {
        if self.sink.wants_queues() {
            self.cx.traced_queues = Some(vec![(0, 0); self.cx.cpus.len()]);
        }
        for group in &self.load.groups {
            let properties = properties::of_group(group);
            self.sink.group(&GroupRecord { time: 0, path: group.path.clone(), properties });
        }
        for spec in &self.load.tasks {
            for n in 0..spec.count() {
                let p = self.create(spec, if spec.copies == 0 { NO_COPY } else { n }, None)?;
                let start = spec.start_of(n);
                match self.is_asleep_from_the_start(p, start)? {
                    true => self.begins(p),
                    false => self.timers.start(start, p),
                }
            }
        }
        // Idle CPUs may have ticks that matter.
        (0..self.cx.nr_cpus()).for_each(|cpu| self.cx.touch(cpu));
        self.inspect_until(0);
        let mut idle_note = None;
        let mut stuck = 0_u64;
        loop {
            self.refresh_touched();
            if self.cx.events.len() >= Core::BATCH {
                self.flush();
            }
            if self.cx.decisions.len() >= Core::BATCH {
                self.hand_over_decisions();
            }
            if self.active == 0 && self.timers.first() == Key::NEVER {
                idle_note = self.stalled()?;
                break;
            }
            let key = self.queue.first().min(self.timers.first()).min(self.cx.timers.first()).min(self.next_outside);
            if key.time() >= self.end {
                self.inspect_until(self.end);
                break;
            }
            if key.time() > self.next_inspection {
                self.inspect_until(key.time());
            }
            assert!(key.time() >= self.cx.now, "time goes back from {} to {}", self.cx.now, key.time());
            if key.time() == self.cx.now {
                stuck += 1;
                if stuck > STUCK && stuck > self.most_instants() {
                    return Err(self.livelock());
                }
            } else {
                stuck = 0;
            }
            self.step(key)?;
            if cfg!(debug_assertions) {
                self.check_invariants();
            }
        }
        self.flush();
        self.hand_over_decisions();
        // The last instant of a run that is over sooner is that of the last exit.
        let end = self.options.duration.filter(|_| !self.over).unwrap_or(self.cx.now);
        let affinity_notes = self.affinities.texts();
        Ok(Outcome { end, tasks: self.cx.nr_tasks(), idle_note, affinity_notes, tunables: self.sched.tunables() })
    }

    #[inline]
    fn step(&mut self, key: Key) -> Result<()> {
        let who = key.who();
        self.cx.now = key.time();
        self.cx.phase = key.phase();
        match key.phase() {
            Phase::Tick => self.tick(who),
            Phase::Timer if key == self.next_hotplug => self.hotplug(),
            Phase::Timer if key == self.next_outside => self.interrupt(),
            Phase::Timer => {
                (self.cx.cause, self.cx.interrupted) = (Cause::Wakeup, None);
                self.cx.timers.pop();
                self.sched.timer(&mut self.cx, who);
            }
            Phase::Wake => {
                self.timers.pop();
                self.timer(who);
            }
            Phase::Poll => {
                (self.cx.cause, self.cx.acting) = (Cause::Task, who);
                self.catch_up(who);
                self.sched.update_curr(&mut self.cx, who);
                self.cx.touch(who);
            }
            Phase::Resched => {
                // What was last done elsewhere does not cause what this CPU does to others.
                (self.cx.cause, self.cx.acting) = (Cause::Task, who);
                self.schedule(who);
            }
            Phase::Run => return self.proceed(who),
        }
        Ok(())
    }

    #[inline]
    fn tick(&mut self, cpu: CpuId) {
        self.cx.cause = Cause::Tick;
        self.cx.tick_cpu = cpu;
        self.catch_up(cpu);
        self.cx.cpus[cpu as usize].next_tick += self.cx.tick_period;
        self.sched.task_tick(&mut self.cx, cpu);
        self.cx.return_to_user(cpu);
        self.cx.touch(cpu);
    }

    /// Handles an expired timer: starts a task, wakes a sleeper, or ends a task's life.
    fn timer(&mut self, p: TaskId) {
        if self.processes[p as usize].is(Mark::Killed) || self.cx.task(p).state == State::Dead {
            // It was for what the task waited for before, or for its end.
            return;
        }
        // A task's timer is on the CPU where it went to sleep.
        let cpu = self.cx.task(p).cpu;
        let deaf_until = self.cx.taken(cpu).deaf_until;
        if deaf_until > self.cx.now {
            return self.timers.add(deaf_until, p);
        }
        (self.cx.cause, self.cx.interrupted) = (Cause::Wakeup, Some(cpu));
        let fresh = self.processes[p as usize].wait == Wait::Nothing;
        match self.load.start {
            _ if self.is_of_age(p) => self.kill(p),
            Start::Fork if fresh => self.start_by_fork(p),
            Start::Threads if fresh => self.wake_up_new(p, None),
            _ => self.wake(p, None),
        }
        self.cx.return_to_user(cpu);
    }

    #[inline]
    fn catch_up(&mut self, cpu: CpuId) {
        if let Some(ticks) = self.cx.take_ticks(cpu) {
            self.sched.catch_up(&self.cx, cpu, ticks);
        }
    }

    fn flush(&mut self) {
        if !self.cx.events.is_empty() {
            self.sink.events(&self.cx.events);
            self.cx.events.clear();
        }
    }

    /// Handles that no task is runnable and no timer is set: the load has ended, or it is deadlocked.
    fn stalled(&self) -> Result<Option<String>> {
        let alive = (0..self.cx.nr_tasks()).filter(|p| self.cx.task(*p).state != State::Dead);
        let waiting: Vec<TaskId> = alive.collect();
        if waiting.is_empty() {
            return Ok(None);
        }
        let text = stall::describe(&waiting, &self.processes, &self.resources, self.load);
        let certain = waiting.iter().any(|p| {
            let wait = self.processes[*p as usize].wait;
            wait.spins() || matches!(wait, Wait::Mutex(_) | Wait::Barrier(_))
        });
        // Servers may wait for requests after all their clients have ended. With a duration given, rt-app idles to its
        // end when a wake-up was lost; without one, no task would ever go on.
        if certain || (self.ended == 0 && self.options.duration.is_none()) {
            Err(stall::deadlock(self.cx.now, &text))
        } else if self.ended == 0 {
            Ok(Some(format!(
                "the workload deadlocks {:.6} s in and idles from then on: {text}",
                self.cx.now as f64 / 1e9
            )))
        } else {
            Ok(Some(format!("nothing happens after {:.6} s: {text}", self.cx.now as f64 / 1e9)))
        }
    }

    /// How many instants may be at one time.
    fn most_instants(&self) -> u64 {
        STUCK + STUCK_EACH * (u64::from(self.cx.nr_tasks()) + self.cx.cpus.len() as u64)
    }

    fn livelock(&self) -> Error {
        let who = self.cx.cpus.iter().find_map(|c| c.curr);
        let who = who.map_or("a task".into(), |p| self.processes[p as usize].name());
        Error::input(format!("time stands still at {:.6} s: {who} never uses any time", self.cx.now as f64 / 1e9))
            .mend("let each loop run, sleep or wait for something")
    }
}

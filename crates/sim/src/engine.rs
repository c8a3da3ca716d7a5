//! The main loop: takes the next instant, lets the scheduler decide, moves tasks between CPUs.

use self::homes::Homes;
use crate::core::{Attributes, Cause, Core, State, Task, TaskId, tid};
use crate::cpuset::CpuSet;
use crate::effects::Effects;
use crate::inspect::Inspect;
use crate::process::{Burst, Process, Wait};
use crate::program::{Load, Policy, Setting, Start, TaskSpec};
use crate::queue::{CpuQueue, Key, Phase, Timers};
use crate::resources::Resources;
use crate::scheduler::{Dequeue, Enqueue, Placement, Refusal, Scheduler};
use crate::stall;
use schedlab_base::{AffinityRecord, CpuId, CpuList, Error, NameRecord, Nanos, Payload, Result, Rng, Sink};
use schedlab_machine::Machine;

mod exec;
mod homes;
mod hotplug;
mod looking;
mod speed;

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How long; `None`: until every task has ended.
    pub duration: Option<Nanos>,
    /// For every random draw.
    pub seed: u64,
    /// Skip ticks of which the scheduler says that they change nothing. The events are the same.
    pub skip_ticks: bool,
    /// The time between two ticks.
    pub tick_period: Nanos,
    /// The time of the first tick.
    pub tick_first: Nanos,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The simulated time.
    pub end: Nanos,
    /// Tasks that were there.
    pub tasks: u32,
    /// Why nothing happened any more before the end, if so: tasks that wait for others that have ended.
    pub idle_note: Option<String>,
    /// The tunables at the end, where the kernel itself changes some.
    pub tunables: Vec<(&'static str, i64)>,
}

/// More tasks than this in one run, and the load forks without end.
pub(crate) const MOST_TASKS: u32 = 1 << 20;
/// More instants than this at one time, and the load goes nowhere.
const STUCK: u32 = 20_000_000;

/// Runs a load on a machine under a scheduler; its events go to `sink`, what is to be looked at to `inspect`.
///
/// # Errors
/// When the load deadlocks, never lets time pass or asks for what the kernel refuses: the error says who and what.
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
    rng: Rng,
    sink: &'a mut dyn Sink,
    /// Runnable tasks that do not merely spin.
    active: u32,
    /// Tasks that ended.
    ended: u32,
    /// How often each template was forked, for names.
    forked: Vec<u32>,
    homes: Homes,
    inspect: Option<Inspect<'a>>,
    /// Before the first instant that is later than this, something is to be looked at.
    next_look: Nanos,
    /// When the next CPU goes or comes, and how many have.
    next_hotplug: Key,
    hotplugged: usize,
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
        Self {
            cx,
            sched,
            queue: CpuQueue::new(machine.cpus.len()),
            timers: Timers::default(),
            processes: Vec::with_capacity(load.tasks.len()),
            resources: Resources::new(load),
            load,
            options: *options,
            rng: Rng::new(options.seed),
            sink,
            active: 0,
            ended: 0,
            forked: vec![0; load.templates.len()],
            homes: Homes::new(machine),
            next_look: Nanos::MAX,
            inspect,
            next_hotplug: hotplug::first(load),
            hotplugged: 0,
        }
    }

    fn run(mut self) -> Result<Outcome> {
        if self.sink.wants_queues() {
            self.cx.told_queues = Some(vec![(0, 0); self.cx.cpus.len()]);
        }
        let end = self.options.duration.unwrap_or(Nanos::MAX);
        for spec in &self.load.tasks {
            let p = self.create(spec, spec.name.clone(), None)?;
            self.timers.add(spec.start, p);
        }
        // Idle CPUs may have ticks that matter.
        (0..self.cx.nr_cpus()).for_each(|cpu| self.cx.touch(cpu));
        self.look(0);
        let mut idle_note = None;
        let mut stuck = 0;
        loop {
            self.refresh_touched();
            if self.cx.events.len() >= Core::BATCH {
                self.flush();
            }
            if self.cx.decisions.len() >= Core::BATCH {
                self.tell_decisions();
            }
            if self.active == 0 && self.timers.first() == Key::NEVER {
                idle_note = self.stalled()?;
                break;
            }
            let key = self.queue.first().min(self.timers.first()).min(self.cx.timers.first()).min(self.next_hotplug);
            if key.time() >= end {
                self.look(end);
                break;
            }
            if key.time() > self.next_look {
                self.look(key.time());
            }
            assert!(key.time() >= self.cx.now, "time goes back from {} to {}", self.cx.now, key.time());
            if key.time() == self.cx.now {
                stuck += 1;
                if stuck > STUCK {
                    return Err(self.livelock());
                }
            } else {
                stuck = 0;
            }
            self.step(key)?;
        }
        self.flush();
        self.tell_decisions();
        let end = if self.options.duration.is_some() { end } else { self.cx.now };
        Ok(Outcome { end, tasks: self.cx.nr_tasks(), idle_note, tunables: self.sched.tunables() })
    }

    fn step(&mut self, key: Key) -> Result<()> {
        let who = key.who();
        self.cx.now = key.time();
        self.cx.phase = key.phase();
        match key.phase() {
            Phase::Tick => self.tick(who),
            Phase::Timer if key == self.next_hotplug => self.hotplug(),
            Phase::Timer => {
                self.cx.cause = Cause::Wakeup;
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
                // Whatever was last done elsewhere is no cause of what this CPU does to others.
                (self.cx.cause, self.cx.acting) = (Cause::Task, who);
                self.schedule(who);
            }
            Phase::Run => return self.proceed(who),
        }
        Ok(())
    }

    fn tick(&mut self, cpu: CpuId) {
        self.cx.cause = Cause::Tick;
        self.cx.tick_cpu = cpu;
        self.catch_up(cpu);
        self.cx.cpus[cpu as usize].next_tick += self.cx.tick_period;
        self.sched.task_tick(&mut self.cx, cpu);
        self.cx.touch(cpu);
    }

    /// A timer expired: a task starts, or a sleeper wakes.
    fn timer(&mut self, p: TaskId) {
        self.cx.cause = Cause::Wakeup;
        let fresh = self.processes[p as usize].wait == Wait::Nothing;
        match self.load.start {
            Start::Fork if fresh => self.start_by_fork(p),
            Start::Threads if fresh => self.wake_up_new(p, None),
            _ => self.wake(p, None),
        }
    }

    /// `x-start: fork`: the boot task forks the first task, which runs at once where the CPU is idle; being the
    /// current task, it is the parent of those that start at the same time. Each is born with its parent's
    /// attributes and then set to its own, as a launcher does it.
    fn start_by_fork(&mut self, p: TaskId) {
        let own = self.cx.task(p).attributes;
        let cpu = self.cx.task(p).cpu;
        let parent = self.cx.curr(cpu);
        let born = parent.map_or(Attributes::default(), |q| self.cx.task(q).attributes);
        self.cx.tasks[p as usize].attributes = born;
        self.catch_up(cpu);
        self.sched.task_fork(&mut self.cx, p, parent, Start::Fork);
        self.wake_up_new(p, parent);
        let cpu = self.cx.task(p).cpu;
        if self.cx.need_resched(cpu) {
            self.schedule(cpu);
        }
        self.cx.tasks[p as usize].attributes = own;
        self.sched.attributes_changed(&mut self.cx, p, &born);
        self.cx.touch(cpu);
    }

    /// Creates a task, asleep: on its parent's CPU; where tasks are to wake, on a CPU of its own as long as there is
    /// one; else on the boot CPU. Or on the first that it may use.
    fn create(&mut self, spec: &'a TaskSpec, name: String, parent: Option<TaskId>) -> Result<TaskId> {
        let p = self.cx.nr_tasks();
        let allowed = self.effective(&spec.initial.cpus.as_deref().map_or(CpuSet::ALL, CpuSet::of));
        let home = match parent {
            Some(q) => self.cx.task(q).cpu,
            None if self.load.start == Start::Wake => self.homes.next(&allowed),
            None => 0,
        };
        let cpu = if allowed.contains(home) { home } else { allowed.first().unwrap_or(0) };
        let inherited = parent.map_or(Attributes::default(), |q| self.cx.task(q).attributes);
        self.cx.tasks.push(Task {
            attributes: apply(inherited, &spec.initial),
            cpu,
            state: State::Sleeping { uninterruptible: false },
            allowed,
            group: spec.initial.group,
            user: spec.user,
            session: spec.session,
            clamp: clamp((0, 1024), &spec.initial),
            last_ran: 0,
        });
        if let Some(effects) = self.cx.effects.as_deref_mut() {
            effects.set(&self.cx.machine, self.load, p, &spec.initial);
        }
        let record = NameRecord {
            time: self.cx.now,
            tid: tid(p),
            tgid: Some(self.cx.effects.as_deref().map_or(tid(p), |effects| effects.memories.process(p))),
            comm: name.clone(),
            cgroup: spec.initial.group.map(|g| self.load.groups[g as usize].path.clone()),
        };
        // Names come before the first event that they are needed for.
        self.flush();
        self.sink.name(&record);
        self.tell_affinity(p);
        self.processes.push(Process::new(spec, self.processes.last(), name, self.cx.now));
        if parent.is_some() || self.load.start != Start::Fork {
            self.sched.task_fork(&mut self.cx, p, parent, self.load.start);
        }
        let own = self.cx.task(p).attributes;
        self.admit(p, &own)?;
        Ok(p)
    }

    /// Asks the scheduler whether a task may have these attributes.
    pub(crate) fn admit(&mut self, p: TaskId, new: &Attributes) -> Result<()> {
        if new.policy != Policy::Deadline {
            return Ok(());
        }
        let Err(refusal) = self.sched.admits(&self.cx, p, new) else { return Ok(()) };
        let (errno, mend) = match refusal {
            Refusal::Parameters => {
                ("EINVAL", "let 1.024 us <= runtime <= deadline <= period, and the period be one that the kernel takes")
            }
            Refusal::Affinity => {
                ("EPERM", "let the task run on every CPU, or set sched_rt_runtime_us to -1, which ends admission")
            }
            Refusal::Bandwidth => {
                ("EBUSY", "let the deadline tasks' runtime / period add up to less: 95% of the CPUs, 90% from 6.12 on")
            }
        };
        let Attributes { runtime, deadline, period, .. } = *new;
        let us = |t: Nanos| t as f64 / 1e3;
        Err(Error::input(format!(
            "the kernel refuses task {} SCHED_DEADLINE with runtime {} us, deadline {} us, period {} us ({errno})",
            self.processes[p as usize].name,
            us(runtime),
            us(deadline),
            us(period)
        ))
        .mend(mend))
    }

    /// Tells the sink where a task may run.
    pub(crate) fn tell_affinity(&mut self, p: TaskId) {
        let allowed = &self.cx.task(p).allowed;
        let nr_cpus = self.cx.nr_cpus();
        let cpus = if allowed.is_all() {
            CpuList::first(nr_cpus)
        } else {
            allowed.iter().take_while(|cpu| *cpu < nr_cpus).collect()
        };
        self.flush();
        self.sink.affinity(&AffinityRecord { time: self.cx.now, tid: tid(p), cpus });
    }

    fn wake_up_new(&mut self, p: TaskId, parent: Option<TaskId>) {
        let from = parent.map_or(self.cx.task(p).cpu, |q| self.cx.task(q).cpu);
        self.cx.emit(from, Payload::Fork { parent: parent.map_or(0, tid), child: tid(p) });
        let cpu = self.place(p, Placement::Fork { from });
        self.processes[p as usize].started = self.cx.now;
        self.cx.tasks[p as usize].state = State::Runnable;
        self.active += 1;
        self.catch_up(cpu);
        self.sched.enqueue_task(&mut self.cx, cpu, p, Enqueue::New);
        let prio = self.cx.task(p).attributes.prio();
        self.cx.emit(cpu, Payload::WakeupNew { tid: tid(p), prio, target: cpu });
        self.sched.wakeup_preempt(&mut self.cx, cpu, p, Enqueue::New);
        self.cx.touch(cpu);
    }

    /// Wakes a sleeping task (`try_to_wake_up`), from the CPU of `waker` or by an interrupt where it last ran.
    fn wake(&mut self, p: TaskId, waker: Option<TaskId>) {
        let Task { attributes, cpu: prev, .. } = *self.cx.task(p);
        let prio = attributes.prio();
        let from = waker.map_or(prev, |w| self.cx.task(w).cpu);
        let process = &mut self.processes[p as usize];
        if process.wait == Wait::Nothing {
            process.started = self.cx.now;
        }
        process.wait = Wait::Nothing;
        self.cx.tasks[p as usize].state = State::Runnable;
        self.active += 1;
        self.cx.emit(from, Payload::Waking { tid: tid(p), prio, target: prev, waker: waker.map_or(0, tid) });
        self.catch_up(prev);
        let cpu = if self.sched.wake_delayed(&mut self.cx, p) {
            prev
        } else {
            let cpu = self.place(p, Placement::Wake { from });
            self.catch_up(cpu);
            self.sched.enqueue_task(&mut self.cx, cpu, p, Enqueue::Wakeup);
            cpu
        };
        self.cx.emit(from, Payload::Wakeup { tid: tid(p), prio, target: cpu });
        self.sched.wakeup_preempt(&mut self.cx, cpu, p, Enqueue::Wakeup);
        self.cx.touch(cpu);
    }

    fn place(&mut self, p: TaskId, why: Placement) -> CpuId {
        let prev = self.cx.task(p).cpu;
        let cpu = self.sched.select_task_rq(&mut self.cx, p, prev, why);
        assert!(cpu < self.cx.nr_cpus() && self.cx.task(p).allowed.contains(cpu), "task {p} was put on CPU {cpu}");
        if cpu != prev {
            self.catch_up(prev);
            self.catch_up(cpu);
            self.sched.migrate_task_rq(&mut self.cx, p, prev, cpu);
            self.cx.set_task_cpu(p, cpu);
        }
        cpu
    }

    #[inline]
    fn catch_up(&mut self, cpu: CpuId) {
        if let Some(ticks) = self.cx.take_ticks(cpu) {
            self.sched.catch_up(&self.cx, cpu, ticks);
        }
    }

    /// The CPU's schedule(): takes `prev` off its queue if it sleeps, picks the next task and switches to it.
    pub(crate) fn schedule(&mut self, cpu: CpuId) {
        self.catch_up(cpu);
        let prev = self.cx.curr(cpu);
        let before = self.cx.events.len();
        let stopped = std::mem::take(&mut self.cx.cpus[cpu as usize].stopper);
        if stopped {
            self.sched.run_stopper(&mut self.cx, cpu, prev);
        }
        let by_stopper = self.cx.events.len() - before;
        let next = self.sched.pick_next_task(&mut self.cx, cpu, if stopped { None } else { prev });
        // Asked for before or meanwhile: done either way.
        self.cx.cpus[cpu as usize].resched_at = Nanos::MAX;
        if prev != next {
            self.switch(cpu, prev, next);
            // Whom the stopper moved had left the CPU before.
            if by_stopper > 0 {
                self.cx.events[before..].rotate_left(by_stopper);
            }
        }
        self.cx.touch(cpu);
    }

    fn switch(&mut self, cpu: CpuId, prev: Option<TaskId>, next: Option<TaskId>) {
        let now = self.cx.now;
        let slot = &mut self.cx.cpus[cpu as usize];
        let ran_from = slot.run_from;
        let (mut prev_tid, mut prev_prio, mut prev_state) = (0, 120, State::Runnable);
        if let Some(p) = prev {
            if now > ran_from {
                self.processes[p as usize].progress(now - ran_from, slot.speed);
            }
            let task = &mut self.cx.tasks[p as usize];
            task.last_ran = now;
            (prev_tid, prev_prio, prev_state) = (tid(p), task.attributes.prio(), task.state);
        }
        slot.curr = next;
        let (mut next_tid, mut next_prio) = (0, 120);
        slot.run_from = now + self.cx.machine.costs.context_switch_ns;
        slot.burst_end = Nanos::MAX;
        if self.cx.effects.is_some() {
            self.effects_of_switch(cpu, prev, next, ran_from.saturating_sub(now));
        }
        if let Some(p) = next {
            let task = &self.cx.tasks[p as usize];
            debug_assert!(task.state == State::Runnable && task.cpu == cpu, "task {p} cannot run on CPU {cpu}");
            (next_tid, next_prio) = (tid(p), task.attributes.prio());
            self.start_burst(cpu, p);
        }
        let what =
            Payload::Switch { prev: prev_tid, prev_prio, prev_state: prev_state.traced(), next: next_tid, next_prio };
        self.cx.emit(cpu, what);
    }

    /// Sets when the burst of the task that runs on `cpu` ends.
    pub(crate) fn start_burst(&mut self, cpu: CpuId, p: TaskId) {
        if self.processes[p as usize].burst == Burst::Spin {
            self.look_at_lock(p);
        }
        let process = &self.processes[p as usize];
        let slot = &mut self.cx.cpus[cpu as usize];
        slot.burst_end = slot.run_from.saturating_add(process.time_left(slot.speed));
        self.cx.touch(cpu);
    }

    /// Moves the task that runs on `cpu`, where it no longer may, to a CPU where it may.
    pub(crate) fn push_away(&mut self, cpu: CpuId, p: TaskId) {
        self.catch_up(cpu);
        self.sched.dequeue_task(&mut self.cx, cpu, p, Dequeue::Migrated);
        self.schedule(cpu);
        self.requeue(cpu, p);
    }

    fn refresh_touched(&mut self) {
        if self.cx.effects.as_ref().is_some_and(|effects| effects.stale) {
            self.memory_moved();
        }
        while let Some(cpu) = self.cx.touched.pop() {
            self.cx.cpus[cpu as usize].touched = false;
            // An idle CPU may have passed over ticks since it last had anything to say.
            self.catch_up(cpu);
            if self.cx.traces_queues()
                && let Some((nr_running, load)) = self.sched.queue_load(cpu)
            {
                self.cx.trace_load(cpu, nr_running, load);
            }
            let key = self.next_instant(cpu);
            self.queue.set(cpu as usize, key);
        }
    }

    fn next_instant(&mut self, cpu: CpuId) -> Key {
        let slot = &self.cx.cpus[cpu as usize];
        let (curr, resched_at, next_tick) = (slot.curr, slot.resched_at, slot.next_tick);
        let mut key = Key::NEVER;
        if resched_at != Nanos::MAX {
            key = Key::new(resched_at, Phase::Resched, cpu);
        }
        if curr.is_some() && slot.burst_end != Nanos::MAX {
            key = key.min(Key::new(slot.burst_end, Phase::Run, cpu));
        }
        if key.time() >= next_tick && slot.online && (curr.is_some() || self.sched.ticks_when_idle()) {
            let tick = self.next_tick_to_take(cpu, next_tick);
            key = key.min(Key::new(tick, Phase::Tick, cpu));
        }
        if let Some(p) = curr {
            let every = self.processes[p as usize].clock_poll;
            if every > 0 && key.time() > self.cx.now {
                key = key.min(self.next_poll(cpu, every));
            }
        }
        key
    }

    fn next_tick_to_take(&mut self, cpu: CpuId, next_tick: Nanos) -> Nanos {
        if !self.options.skip_ticks {
            return next_tick;
        }
        let decision = self.sched.next_decision(&self.cx, cpu);
        if decision <= next_tick {
            next_tick
        } else if decision == Nanos::MAX {
            Nanos::MAX
        } else {
            let period = self.cx.tick_period;
            next_tick.saturating_add((decision - next_tick).div_ceil(period).saturating_mul(period))
        }
    }

    /// The first reading of the clock by the task on `cpu` at which the scheduler could act.
    fn next_poll(&mut self, cpu: CpuId, every: Nanos) -> Key {
        let at = self.sched.clock_decision(&self.cx, cpu);
        if at == Nanos::MAX {
            return Key::NEVER;
        }
        let from = self.cx.cpus[cpu as usize].run_from;
        let at = at.max(self.cx.now + 1);
        Key::new(from + at.saturating_sub(from).div_ceil(every).saturating_mul(every), Phase::Poll, cpu)
    }

    fn flush(&mut self) {
        if !self.cx.events.is_empty() {
            self.sink.events(&self.cx.events);
            self.cx.events.clear();
        }
    }

    /// Nothing can run and no timer is set. That is the end of the load, or a deadlock.
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
        // Servers may wait for requests when all their clients have ended, and with a duration given rt-app idles
        // to its end when a wake-up was lost; without one, nobody would ever go on.
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

    fn livelock(&self) -> Error {
        let who = self.cx.cpus.iter().find_map(|c| c.curr).map_or("a task", |p| &self.processes[p as usize].name);
        Error::input(format!(
            "time stands still at {:.6} s: {who} goes on without ever taking time",
            self.cx.now as f64 / 1e9
        ))
        .mend("let each loop run, sleep or wait for something")
    }
}

/// The utilisation clamps after a setting.
pub(crate) fn clamp((least, most): (u32, u32), setting: &Setting) -> (u32, u32) {
    (setting.util.0.unwrap_or(least), setting.util.1.unwrap_or(most))
}

/// The attributes after a setting.
pub(crate) fn apply(mut a: Attributes, setting: &Setting) -> Attributes {
    if let Some(policy) = setting.policy {
        a.policy = policy;
    }
    if let Some(nice) = setting.nice {
        a.nice = nice;
    }
    if let Some(priority) = setting.rt_priority {
        a.rt_priority = priority;
    }
    if let Some((runtime, deadline, period)) = setting.dl {
        (a.runtime, a.deadline, a.period) = (runtime, deadline, period);
    }
    if let Some(reclaim) = setting.reclaim {
        a.reclaim = reclaim;
    }
    a
}

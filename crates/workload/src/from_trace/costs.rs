//! What wake-ups cost on the machine, as far as the recording shows it.
//!
//! A task that is woken onto an idle CPU runs as soon as the CPU has left idle. One that preempts a task on another CPU
//! runs as soon as that CPU has got the interrupt, one that preempts a task that an interrupt has interrupted there as
//! soon as that is over, and one that preempts the task that woke it as soon as that has done the rest of its system
//! call. A tick that ends a slice takes a moment, too, which shows where the trace contains interrupts. None of these
//! times depends on what the scheduler chooses.

use super::cause::Sample;
use crate::SeenCosts;
use schedlab_base::{AffinityRecord, Context, Cost, CpuId, Event, Interrupt, Meta, NameRecord, Nanos, Sink, TaskState};
use schedlab_track::{Delay, Observer, Occupant, Replay, Slot, Stop, Wake, row};
use serde::Serialize;

/// So many wake-ups at least show a cost.
pub(super) const FEWEST: u64 = 16;

/// A preemption later than this was not the wake-up's: a tick's, or that of the end of a slice.
const PROMPT: Nanos = 100_000;

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// What it runs: `None` while that is not known, `Some(None)` while it is idle.
    runs: Option<Option<Slot>>,
    /// The task that was woken onto it. None once anything else has happened there.
    woken: Option<Woken>,
    /// The task that it has just switched away from while that was runnable.
    preempted: Option<Slot>,
    /// When its last tick began, if it runs the same since then.
    tick: Option<Nanos>,
}

/// Where a wake-up comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    OtherCpu,
    Interrupt,
    /// A soft interrupt, which came while the task ran, or which it raised itself by what it sent.
    SoftIrq,
    RunningTask,
}

/// A task that was woken, and what its CPU ran then.
#[derive(Clone, Copy, Debug)]
struct Woken {
    task: Slot,
    at: Nanos,
    ran: Option<Slot>,
    from: Origin,
}

/// How often an operation took how long: enough of them for a 99th percentile.
pub(super) type Times = Sample<2048>;

/// The observer.
#[derive(Debug, Default)]
pub(super) struct CostsSeen {
    cpus: Vec<Cpu>,
    /// The context in which the task's wake-up was requested, of those that are not complete.
    contexts: Vec<Context>,
    from_idle: Times,
    from_idle_elsewhere: Times,
    from_other_cpu: Times,
    from_interrupt: Times,
    from_soft_irq: Times,
    from_running_task: Times,
    from_tick: Times,
}

/// A cost with its scatter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SeenCost {
    /// Its name in a machine's file.
    pub name: &'static str,
    /// How many times show it.
    pub count: u64,
    /// What a tenth of them do not exceed.
    pub p10_ns: Nanos,
    /// What half of them do not exceed.
    pub median_ns: Nanos,
    /// What nine of ten do not exceed.
    pub p90_ns: Nanos,
    /// All of this, as a machine has it.
    pub cost: Cost,
}

/// The costs that a trace shows. Feed it the trace.
pub struct CostsOf(Replay<CostsSeen>);

impl CostsOf {
    /// For a trace with this metadata.
    #[must_use]
    pub fn new(meta: &Meta) -> Self {
        Self(Replay::new(meta, CostsSeen::default()))
    }

    /// The costs that enough events show.
    #[must_use]
    pub fn found(&self) -> Vec<SeenCost> {
        let seen = &self.0.observer;
        let from_interrupt = seen.from_interrupt.with(&seen.from_soft_irq);
        let samples = [
            ("idle_exit_ns", &seen.from_idle),
            ("remote_idle_exit_ns", &seen.from_idle_elsewhere),
            ("wakeup_to_switch_ns", &seen.from_other_cpu),
            ("timer_to_switch_ns", &from_interrupt),
            ("own_wakeup_to_switch_ns", &seen.from_running_task),
            ("tick_to_switch_ns", &seen.from_tick),
        ];
        let enough = samples.into_iter().filter(|(_, sample)| sample.seen() >= FEWEST);
        let cost = |(name, sample): (_, &Times)| {
            let cost = sample.cost()?;
            let [_, p10_ns, _, median_ns, _, p90_ns, ..] = cost.quantiles();
            Some(SeenCost { name, count: sample.seen(), p10_ns, median_ns, p90_ns, cost })
        };
        enough.filter_map(cost).collect()
    }
}

impl Sink for CostsOf {
    fn events(&mut self, batch: &[Event]) {
        self.0.events(batch);
    }

    fn name(&mut self, record: &NameRecord) {
        self.0.name(record);
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.0.affinity(record);
    }
}

impl CostsSeen {
    /// The costs that enough wake-ups show, as they vary. `sent` says that what soft interrupts woke was mostly woken
    /// by what the running task had sent: in the simulation that task wakes it. `idle_wakeups` is how long it took
    /// tasks to wake others on idle CPUs.
    pub(super) fn seen(&self, sent: bool, idle_wakeups: &Times) -> SeenCosts {
        let none = Times::default();
        let (timers, packets) = if sent { (&none, &self.from_soft_irq) } else { (&self.from_soft_irq, &none) };
        let cost = |sample: &Times| sample.cost().filter(|_| sample.seen() >= FEWEST);
        SeenCosts {
            idle_exit_ns: cost(&self.from_idle),
            remote_idle_exit_ns: cost(&self.from_idle_elsewhere),
            // In a simulated trace a wake-up takes no time.
            idle_wakeup_ns: cost(idle_wakeups).filter(|cost| cost.most() > 0),
            wakeup_to_switch_ns: cost(&self.from_other_cpu),
            timer_to_switch_ns: cost(&self.from_interrupt.with(timers)),
            own_wakeup_to_switch_ns: cost(&self.from_running_task.with(packets)),
            tick_to_switch_ns: cost(&self.from_tick),
        }
    }
}

impl Observer for CostsSeen {
    fn waking(&mut self, task: Slot, wake: Wake) {
        *row(&mut self.contexts, task) = wake.context;
    }

    fn woken(&mut self, task: Slot, wake: Wake) {
        let context = std::mem::take(row(&mut self.contexts, task));
        let cpu = row(&mut self.cpus, wake.target);
        let from = match context {
            _ if wake.cpu != wake.target => Some(Origin::OtherCpu),
            Context::Task => Some(Origin::RunningTask),
            Context::SoftIrq if matches!(cpu.runs, Some(Some(_))) => Some(Origin::SoftIrq),
            Context::HardIrq | Context::SoftIrq => Some(Origin::Interrupt),
            Context::Unknown => (cpu.runs == Some(None)).then_some(Origin::Interrupt),
        };
        // Once woken, an idle CPU leaves idle as soon, whoever else is woken onto it meanwhile.
        if cpu.woken.is_some_and(|first| first.ran.is_none()) {
            return;
        }
        let counts = !wake.new && cpu.woken.is_none();
        let (from, ran) = (from.filter(|_| counts), cpu.runs);
        cpu.woken = from.zip(ran).map(|(from, ran)| Woken { task, at: wake.now, ran, from });
    }

    fn stopped(&mut self, task: Slot, cpu: CpuId, stop: Stop) {
        let cpu = row(&mut self.cpus, cpu);
        cpu.preempted = (stop.state == TaskState::Runnable && !stop.late).then_some(task);
        // A task that was woken meanwhile may be what ended the slice.
        let tick = cpu.tick.filter(|_| cpu.preempted.is_some() && cpu.woken.is_none());
        if let Some(cost) = tick.map(|tick| stop.now.saturating_sub(tick)).filter(|cost| *cost < PROMPT) {
            self.from_tick.add(cost);
        }
    }

    fn interrupted(&mut self, cpu: CpuId, (kind, _): (Interrupt, u16), took: Nanos, now: Nanos) {
        if kind == Interrupt::Timer {
            row(&mut self.cpus, cpu).tick = Some(now.saturating_sub(took));
        }
    }

    fn served(&mut self, task: Slot, cpu: CpuId, delay: Delay) {
        let cpu = row(&mut self.cpus, cpu);
        // Without the time since its wake-up, it was not seen when it got the CPU.
        let seen = |woken: &Woken| (woken.task == task || woken.ran.is_none()) && delay.wakeup.is_some();
        let Some(woken) = cpu.woken.take().filter(seen) else { return };
        let cost = delay.end.saturating_sub(woken.at);
        let sample = match (woken.ran, woken.from) {
            (None, Origin::Interrupt | Origin::SoftIrq) => &mut self.from_idle,
            // A task that woke it was on another CPU, even if this one did the rest, in an interrupt.
            (None, Origin::OtherCpu | Origin::RunningTask) => &mut self.from_idle_elsewhere,
            (Some(victim), _) if cpu.preempted != Some(victim) || victim == task || cost >= PROMPT => return,
            (Some(_), Origin::OtherCpu) => &mut self.from_other_cpu,
            (Some(_), Origin::Interrupt) => &mut self.from_interrupt,
            (Some(_), Origin::SoftIrq) => &mut self.from_soft_irq,
            (Some(_), Origin::RunningTask) => &mut self.from_running_task,
        };
        sample.add(cost);
    }

    fn occupied(&mut self, cpu: CpuId, who: Occupant, _: Nanos) {
        let cpu = row(&mut self.cpus, cpu);
        cpu.runs = match who {
            Occupant::Unknown => None,
            Occupant::Idle => Some(None),
            Occupant::Task(task) => Some(Some(task)),
        };
        (cpu.woken, cpu.preempted, cpu.tick) = (None, None, None);
    }
}

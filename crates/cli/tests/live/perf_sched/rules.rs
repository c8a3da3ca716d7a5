//! Two rules for the delay before a run, computed from the events in the simplest way.
//!
//! perf timehist's delay lasts from the first waking or creation since the task left its CPU, and is counted when the
//! run ends. schedlab's lasts from the waking that ended a sleep, and is counted when the run begins. They differ
//! - for a new task, whose first start is not a wake-up;
//! - for a task that is woken on its way to sleep, before it leaves its CPU: perf forgets that waking when the task
//!   leaves;
//! - for a task that was preempted on its way to sleep and is then woken: it was on the queue all the time;
//! - for a task that still runs when the recording ends.

use schedlab_base::{Nanos, Payload, TaskState, Tid};
use schedlab_trace::Trace;
use std::collections::{BTreeMap, HashMap};

/// The number, the sum and the maximum of delays.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delays {
    pub count: u64,
    pub sum_us: f64,
    pub max_us: f64,
}

impl Delays {
    fn add(&mut self, delay: Nanos) {
        let delay = delay as f64 / 1e3;
        self.count += 1;
        self.sum_us += delay;
        self.max_us = self.max_us.max(delay);
    }
}

/// What the events say about a task.
#[derive(Default)]
pub struct Facts {
    /// The time from its last switch in to the end of the trace, if it was still running then.
    pub open_us: f64,
    /// How often it left a CPU.
    pub switched_out: u64,
    /// Whether its first event is that it starts to run.
    pub appears_running: bool,
    /// Whether its id was used twice.
    pub reused: bool,
    /// Its delays by perf's rule.
    pub perf: Delays,
    /// Its delays by schedlab's rule.
    pub ours: Delays,
    state: State,
    created: bool,
    /// The first waking or creation since it left its CPU.
    first_waking: Option<Nanos>,
    /// The waking that ends its sleep.
    waking: Option<Nanos>,
    /// perf's delay before the current run, not yet counted.
    uncounted: Option<Nanos>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unknown,
    Running,
    Waiting,
    Sleeping,
}

impl Facts {
    fn waking(&mut self, now: Nanos) {
        self.first_waking.get_or_insert(now);
        if self.state != State::Waiting {
            self.waking = Some(now);
        }
    }

    fn wakeup(&mut self) {
        match self.state {
            State::Running => self.waking = None, // it was woken before it slept
            State::Waiting => {}
            State::Unknown | State::Sleeping => self.state = State::Waiting,
        }
    }

    fn created(&mut self, now: Nanos) {
        self.reused |= std::mem::replace(&mut self.created, true);
        self.first_waking.get_or_insert(now);
        (self.state, self.waking) = (State::Waiting, None);
    }

    fn leaves(&mut self, state: TaskState) {
        self.switched_out += 1;
        self.first_waking = None;
        if let Some(delay) = self.uncounted.take() {
            self.perf.add(delay);
        }
        if state == TaskState::Runnable {
            (self.state, self.waking) = (State::Waiting, None);
        } else {
            self.state = State::Sleeping;
        }
    }

    fn enters(&mut self, now: Nanos) {
        self.uncounted = self.first_waking.map(|waking| now - waking);
        if let Some(waking) = self.waking.take() {
            self.ours.add(now - waking);
        }
        self.state = State::Running;
    }
}

/// The facts of every task in the trace.
pub fn facts(trace: &Trace) -> HashMap<Tid, Facts> {
    let mut facts: HashMap<Tid, Facts> = HashMap::new();
    let mut on_cpu: BTreeMap<u32, (Tid, Nanos)> = BTreeMap::new();
    for event in &trace.events {
        let now = event.time;
        match event.what {
            Payload::Waking { tid, .. } => facts.entry(tid).or_default().waking(now),
            Payload::Wakeup { tid, .. } => facts.entry(tid).or_default().wakeup(),
            Payload::WakeupNew { tid, .. } => facts.entry(tid).or_default().created(now),
            Payload::Switch { prev, prev_state, next, .. } => {
                facts.entry(prev).or_default().leaves(prev_state);
                let entering = || Facts { appears_running: true, ..Facts::default() };
                facts.entry(next).or_insert_with(entering).enters(now);
                on_cpu.insert(event.cpu, (next, now));
            }
            _ => {}
        }
    }
    let end = trace.events.last().map_or(0, |e| e.time);
    for (tid, since) in on_cpu.into_values() {
        facts.entry(tid).or_default().open_us += (end - since) as f64 / 1e3;
    }
    facts
}

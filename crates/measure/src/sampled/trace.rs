//! The checker that looks now and then, fed by a trace: to compare it with the exact check, and to test it.

use super::machine::{CpuNow, Looked, WaitingNow};
use super::sampler::{Finding, Sampler, Timing, Work};
use crate::affinity::Affinities;
use crate::names::Names;
use schedlab_base::{AffinityRecord, CpuId, Event, Meta, NameRecord, Nanos, Sink, Tid};
use schedlab_track::{Kept, Observer, Occupant, Part, Slot, View, row};
use serde::Serialize;
use std::convert::Infallible;

/// What looking now and then finds in a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampledReport {
    /// The time from one look to the next.
    pub every_us: f64,
    /// How long a state was watched.
    pub watch_us: f64,
    /// What it took.
    #[serde(flatten)]
    pub work: Work,
    /// The violations, by time.
    pub found: Vec<Finding>,
}

/// A sink that looks at the states of a trace now and then.
#[derive(Debug)]
pub struct SampledCheck {
    timing: Timing,
    view: View<Watching>,
}

impl SampledCheck {
    /// A check of a part of a trace with this metadata, or of the whole. Only the waits of the part's tasks count.
    #[must_use]
    pub fn new(meta: &Meta, timing: Timing, part: Option<Part>) -> Self {
        let places = Meta { cpus: meta.cpus.clone(), distances: meta.distances.clone(), ..Meta::default() };
        let watching = Watching {
            sampler: Sampler::new(timing, &places, 0),
            places,
            timing,
            state: State::default(),
            found: Vec::new(),
        };
        Self { timing, view: View::new(meta, part, Kept::Waits, watching) }
    }

    /// Ends the check. A watch that is under way finds nothing.
    #[must_use]
    pub fn finish(self) -> SampledReport {
        let Watching { sampler, found, .. } = self.view.finish(None).observer;
        let us = |ns: Nanos| ns as f64 / 1e3;
        let Timing { every, watch } = self.timing;
        SampledReport { every_us: us(every), watch_us: us(watch), work: sampler.work(), found }
    }
}

impl Sink for SampledCheck {
    fn events(&mut self, batch: &[Event]) {
        self.view.events(batch);
    }

    fn name(&mut self, record: &NameRecord) {
        self.view.name(record);
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.view.affinity(record);
    }

    fn lasts(&mut self, until: Nanos) {
        self.view.lasts(until);
    }
}

/// The observer: keeps the state, and lets the checker look at it.
#[derive(Debug)]
struct Watching {
    places: Meta,
    timing: Timing,
    sampler: Sampler,
    state: State,
    found: Vec<Finding>,
}

impl Watching {
    /// Makes the looks that are due before `now`: what held after the last event held until now.
    fn look_until(&mut self, now: Nanos) {
        while self.sampler.next() < now {
            let due = self.sampler.next();
            let Ok(found) = self.sampler.look(due, &mut self.state.seen());
            self.found.extend(found);
        }
    }
}

/// What every CPU and every task does at the moment.
#[derive(Debug, Default)]
struct State {
    names: Names,
    affinities: Affinities,
    tids: Vec<Tid>,
    cpus: Vec<Option<Occupant>>,
    /// The tasks that wait, each with its CPU.
    waits: Vec<Option<CpuId>>,
}

impl State {
    fn seen(&self) -> Seen<'_> {
        let mut queued: Vec<Option<u32>> = vec![None; self.cpus.len()];
        for (count, occupant) in queued.iter_mut().zip(&self.cpus) {
            *count = match occupant {
                None | Some(Occupant::Unknown) => None,
                Some(Occupant::Idle) => Some(0),
                Some(Occupant::Task(_)) => Some(1),
            };
        }
        for cpu in self.waits.iter().flatten() {
            if let Some(Some(count)) = queued.get_mut(*cpu as usize) {
                *count += 1;
            }
        }
        let now = |(cpu, queued): (CpuId, Option<u32>)| Some(CpuNow { cpu, queued: queued? });
        Seen { cpus: (0..).zip(queued).filter_map(now).collect(), state: self, waiting: Vec::new() }
    }

    fn waiting(&self) -> Vec<WaitingNow> {
        let wait = |(task, cpu): (Slot, &Option<CpuId>)| {
            Some(WaitingNow {
                tid: self.tids.get(task as usize).copied().unwrap_or_default(),
                name: self.names.of(task).comm.to_string(),
                cpu: (*cpu)?,
                allowed: self.affinities.of(task).map(|cpus| (**cpus).clone()),
            })
        };
        (0..).zip(&self.waits).filter_map(wait).collect()
    }
}

/// The state at a look.
struct Seen<'a> {
    cpus: Vec<CpuNow>,
    state: &'a State,
    waiting: Vec<WaitingNow>,
}

impl Looked for Seen<'_> {
    type Error = Infallible;

    fn cpus(&mut self, _: bool) -> Result<&[CpuNow], Infallible> {
        Ok(&self.cpus)
    }

    fn waiting(&mut self) -> Result<&[WaitingNow], Infallible> {
        self.waiting = self.state.waiting();
        Ok(&self.waiting)
    }
}

impl Observer for Watching {
    fn begins(&mut self, now: Nanos) {
        self.sampler = Sampler::new(self.timing, &self.places, now);
    }

    fn clock(&mut self, now: Nanos) {
        self.look_until(now);
    }

    fn ends(&mut self, now: Nanos) {
        self.look_until(now);
    }

    fn appears(&mut self, task: Slot, tid: Tid, _: bool) {
        *row(&mut self.state.tids, task) = tid;
    }

    fn named(&mut self, task: Slot, record: &NameRecord) {
        self.state.names.named(task, record);
        self.state.affinities.named(task, record);
    }

    fn allowed(&mut self, task: Slot, record: &AffinityRecord) {
        self.look_until(record.time);
        self.state.affinities.allowed(task, record);
    }

    fn forked(&mut self, parent: Option<Slot>, child: Slot, sure: bool, now: Nanos) {
        self.state.names.forked(parent, child, sure, now);
        self.state.affinities.forked(parent, child, sure, now);
    }

    fn occupied(&mut self, cpu: CpuId, who: Occupant, _: Nanos) {
        *row(&mut self.state.cpus, cpu) = Some(who);
    }

    fn queued(&mut self, task: Slot, cpu: CpuId, _: Nanos) {
        *row(&mut self.state.waits, task) = Some(cpu);
    }

    fn unqueued(&mut self, task: Slot, _: Nanos) {
        *row(&mut self.state.waits, task) = None;
    }

    fn forgotten(&mut self, cpu: CpuId, now: Nanos) {
        self.state.waits.iter_mut().filter(|at| **at == Some(cpu)).for_each(|at| *at = None);
        self.sampler.give_up(now);
    }

    /// The task ran unseen while it was believed to wait: nobody knows what the watch has seen.
    fn doubted(&mut self, _: Slot, now: Nanos) {
        self.sampler.give_up(now);
    }

    /// The CPU was not idle while it was believed to be.
    fn misjudged(&mut self, cpu: CpuId, _: Option<Nanos>, now: Nanos) {
        if self.sampler.watched().is_some_and(|idle| idle.contains(&cpu)) {
            self.sampler.give_up(now);
        }
    }
}

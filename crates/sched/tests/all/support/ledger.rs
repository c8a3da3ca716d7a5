//! A second account of a run, kept from its events alone, which relies on nothing else.

use schedlab_base::{CpuId, Event, Nanos, Payload, TaskState};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Off,
    Waiting(Nanos),
    Running(CpuId, Nanos),
}

/// The account of a run's events.
#[derive(Debug)]
pub struct Ledger {
    /// Impossible events: a task on two CPUs, on a CPU that it may not use, or switched to while it slept.
    pub faults: Vec<String>,
    /// CPU time of each task.
    pub ran: Vec<Nanos>,
    /// The longest wait of each task, including one still going on at the end.
    pub longest_wait: Vec<Nanos>,
    /// The total time that CPUs were idle.
    pub idle: Nanos,
    /// The time that CPU 0 was idle while a task was waiting.
    pub wasted: Nanos,
    places: Vec<Place>,
    /// The task that runs on each CPU, and since when.
    cpus: Vec<(i32, Nanos)>,
}

impl Ledger {
    /// Processes the events of `tasks` tasks on `cpus` CPUs until `end`; `allowed` says where a task may run.
    pub fn of(events: &[Event], tasks: usize, cpus: usize, end: Nanos, allowed: impl Fn(usize, CpuId) -> bool) -> Self {
        let mut ledger = Self {
            faults: Vec::new(),
            ran: vec![0; tasks],
            longest_wait: vec![0; tasks],
            idle: 0,
            wasted: 0,
            places: vec![Place::Off; tasks],
            cpus: vec![(0, 0); cpus],
        };
        let mut last = 0;
        for e in events {
            ledger.look(last, e.time);
            last = e.time;
            match e.what {
                Payload::Wakeup { tid, .. } | Payload::WakeupNew { tid, .. } => ledger.wake(e.time, tid),
                Payload::Switch { prev, prev_state, next, .. } => {
                    ledger.leave(e, prev, prev_state);
                    ledger.enter(e, next, &allowed);
                }
                _ => {}
            }
        }
        ledger.look(last, end);
        ledger.close(end);
        ledger
    }

    fn fault(&mut self, time: Nanos, what: String) {
        self.faults.push(format!("{time} ns: {what}"));
    }

    fn look(&mut self, from: Nanos, to: Nanos) {
        if self.cpus[0].0 == 0 && self.places.iter().any(|p| matches!(p, Place::Waiting(_))) {
            self.wasted += to - from;
        }
    }

    fn wake(&mut self, time: Nanos, tid: i32) {
        let place = &mut self.places[tid as usize - 1];
        let was = std::mem::replace(place, Place::Waiting(time));
        if was != Place::Off {
            self.fault(time, format!("{tid} is woken: {was:?}"));
        }
    }

    fn leave(&mut self, e: &Event, prev: i32, state: TaskState) {
        let (curr, since) = std::mem::replace(&mut self.cpus[e.cpu as usize], (0, e.time));
        if curr != prev {
            self.fault(e.time, format!("{prev} leaves CPU {}, where {curr} was", e.cpu));
        }
        if prev == 0 {
            self.idle += e.time - since;
            return;
        }
        let p = prev as usize - 1;
        match self.places[p] {
            Place::Running(cpu, since) if cpu == e.cpu => self.ran[p] += e.time - since,
            other => self.fault(e.time, format!("{prev} leaves CPU {}: {other:?}", e.cpu)),
        }
        self.places[p] = if state == TaskState::Runnable { Place::Waiting(e.time) } else { Place::Off };
    }

    fn enter(&mut self, e: &Event, next: i32, allowed: impl Fn(usize, CpuId) -> bool) {
        self.cpus[e.cpu as usize] = (next, e.time);
        if next == 0 {
            return;
        }
        let p = next as usize - 1;
        match self.places[p] {
            Place::Waiting(since) => self.longest_wait[p] = self.longest_wait[p].max(e.time - since),
            other => self.fault(e.time, format!("{next} comes to CPU {}: {other:?}", e.cpu)),
        }
        if !allowed(p, e.cpu) {
            self.fault(e.time, format!("{next} may not run on CPU {}", e.cpu));
        }
        self.places[p] = Place::Running(e.cpu, e.time);
    }

    fn close(&mut self, end: Nanos) {
        for (curr, since) in &self.cpus {
            if *curr == 0 {
                self.idle += end - since;
            }
        }
        for (p, place) in self.places.iter().enumerate() {
            match place {
                Place::Off => {}
                Place::Waiting(since) => self.longest_wait[p] = self.longest_wait[p].max(end - since),
                Place::Running(_, since) => self.ran[p] += end - since,
            }
        }
    }
}

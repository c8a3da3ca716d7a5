//! A backend that also keeps the traces of its runs, and watches which foreign tasks took CPU time meanwhile.

use super::begun::Begun;
use crate::backend::{Backend, Outcome, Request};
use schedlab_base::{CpuId, Error, Event, Meta, NameRecord, Nanos, Payload, Result, Sink, Tid};
use schedlab_capture::busy::largest;
use schedlab_machine::Machine;
use schedlab_trace::Writer;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Mutex;

/// The threads of a run itself are called like this.
const OURS: &str = "schedlab";

/// What foreign tasks took of the CPU time in one run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Noise {
    /// The run's seed.
    pub seed: u64,
    /// All of them, as a part of the CPU time that there was.
    pub share: f64,
    /// Those that took most, with their parts.
    pub tasks: Vec<(String, f64)>,
}

/// A backend that is watched.
pub(super) struct Watched<'a> {
    pub(super) inner: &'a dyn Backend,
    /// The folder for the traces.
    pub(super) traces: Option<PathBuf>,
    /// The CPUs that the tasks may use.
    pub(super) cpus: usize,
    pub(super) seen: Mutex<Seen>,
}

/// What was seen of the runs so far.
#[derive(Default)]
pub(super) struct Seen {
    /// One for each run on a kernel that has foreign tasks.
    pub(super) noise: Vec<Noise>,
    /// The largest part of the time that a host took from a guest's CPUs.
    pub(super) taken: f64,
    /// How many tasks had not begun in the run in which most had not, and how many were to.
    pub(super) missing: (usize, usize),
    runs: BTreeMap<u64, usize>,
}

impl Watched<'_> {
    /// The file for the trace of a run: `seed1.arrows`, or `seed1-2.arrows` for the second run with that seed.
    fn file(&self, seed: u64) -> Option<PathBuf> {
        let mut seen = self.seen.lock().expect("no thread panics while it holds the lock");
        let runs = seen.runs.entry(seed).or_default();
        *runs += 1;
        let name = if *runs == 1 { format!("seed{seed}.arrows") } else { format!("seed{seed}-{runs}.arrows") };
        self.traces.as_ref().map(|folder| folder.join(name))
    }
}

impl Backend for Watched<'_> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn deterministic(&self) -> bool {
        self.inner.deterministic()
    }

    fn real_kernel(&self) -> Option<&str> {
        self.inner.real_kernel()
    }

    fn lacks(&self, machine: &Machine) -> Option<String> {
        self.inner.lacks(machine)
    }

    fn meta(&self, request: &Request) -> Meta {
        self.inner.meta(request)
    }

    fn idle_ticks(&self, request: &Request) -> Result<Option<(Nanos, Nanos)>> {
        self.inner.idle_ticks(request)
    }

    fn run(&self, request: &Request, sink: &mut dyn Sink) -> Result<Outcome> {
        let (mut foreign, mut begun) = (Foreign::new(self.cpus), Begun::default());
        let mut watching = (&mut foreign, &mut begun);
        let mut both = (&mut watching, sink);
        let outcome = match self.file(request.seed) {
            None => self.inner.run(request, &mut both)?,
            Some(path) => {
                let failed = |e: std::io::Error| Error::system("cannot be created", &e).file(&path);
                if let Some(folder) = path.parent() {
                    std::fs::create_dir_all(folder).map_err(failed)?;
                }
                let mut writer = Writer::create(&path, &self.meta(request))?;
                let outcome = self.inner.run(request, &mut (&mut writer, &mut both))?;
                writer.finish()?;
                outcome
            }
        };
        if let Some(own) = &outcome.own {
            let noise = foreign.finish(request.seed, outcome.end, own);
            let mut seen = self.seen.lock().expect("no thread panics while it holds the lock");
            seen.noise.push(noise);
            seen.taken = seen.taken.max(outcome.taken.unwrap_or(0.0));
            seen.missing = seen.missing.max(begun.missing(&request.workload, outcome.end, own));
        }
        Ok(outcome)
    }
}

/// How long each task ran on the CPUs that a test uses.
struct Foreign {
    cpus: usize,
    /// On each CPU: who is running, since when.
    running: HashMap<CpuId, (Tid, Nanos)>,
    ran: HashMap<Tid, Nanos>,
    names: HashMap<Tid, String>,
}

/// This many foreign tasks are named.
const NAMED: usize = 5;

impl Foreign {
    fn new(cpus: usize) -> Self {
        Self { cpus, running: HashMap::new(), ran: HashMap::new(), names: HashMap::new() }
    }

    fn switch(&mut self, cpu: CpuId, now: Nanos, prev: Tid, next: Tid) {
        let (_, since) = self.running.insert(cpu, (next, now)).unwrap_or((prev, 0));
        *self.ran.entry(prev).or_default() += now.saturating_sub(since);
    }

    /// What all tasks but these took.
    fn finish(mut self, seed: u64, end: Nanos, own: &BTreeSet<Tid>) -> Noise {
        for (tid, since) in std::mem::take(&mut self.running).into_values() {
            *self.ran.entry(tid).or_default() += end.saturating_sub(since);
        }
        let whole = (end as f64 * self.cpus as f64).max(1.0);
        let mut by_name: BTreeMap<String, f64> = BTreeMap::new();
        for (tid, ran) in &self.ran {
            let name = self.names.get(tid).cloned().unwrap_or_else(|| format!("tid {tid}"));
            if *tid != 0 && !own.contains(tid) && !name.starts_with(OURS) {
                *by_name.entry(name).or_default() += *ran as f64 / whole;
            }
        }
        let share = by_name.values().sum();
        Noise { seed, share, tasks: largest(by_name, NAMED) }
    }
}

impl Sink for Foreign {
    fn events(&mut self, batch: &[Event]) {
        for event in batch {
            if let Payload::Switch { prev, next, .. } = event.what
                && (event.cpu as usize) < self.cpus
            {
                self.switch(event.cpu, event.time, prev, next);
            }
        }
    }

    fn name(&mut self, record: &NameRecord) {
        if !record.comm.is_empty() {
            self.names.insert(record.tid, record.comm.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::TaskState;
    use schedlab_capture::busy::named;

    fn switch(time: Nanos, cpu: CpuId, prev: Tid, next: Tid) -> Event {
        let what = Payload::Switch { prev, prev_prio: 120, prev_state: TaskState::Runnable, next, next_prio: 120 };
        Event { time, cpu, what }
    }

    #[test]
    fn foreign_time_is_what_others_ran_on_the_cpus_of_the_test() {
        let mut foreign = Foreign::new(2);
        // CPU 0: 7 runs from the start to 10, own task 1 to 40, 7 again to 50, own to 100. CPU 1: 8 from 90 on. CPU 2
        // is not the test's.
        foreign.events(&[
            switch(10, 0, 7, 1),
            switch(40, 0, 1, 7),
            switch(45, 2, 0, 9),
            switch(50, 0, 7, 1),
            switch(90, 1, 0, 8),
        ]);
        foreign.name(&NameRecord { time: 0, tid: 7, tgid: None, comm: "cc1".to_owned(), cgroup: None });
        let noise = foreign.finish(3, 100, &BTreeSet::from([1]));
        assert_eq!(noise.seed, 3);
        assert!((noise.share - 0.15).abs() < 1e-12, "{noise:?}");
        assert_eq!(named(&noise.tasks), "cc1 10.0%, tid 8 5.0%");
    }
}

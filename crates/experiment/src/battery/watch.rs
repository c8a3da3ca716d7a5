//! A backend that also keeps the traces of its runs, and watches which foreign tasks took CPU time meanwhile.

use super::begun::Begun;
use crate::backend::{Backend, Outcome, Request};
use schedlab_base::{Error, Meta, Nanos, Result, Sink, Tid, total};
use schedlab_capture::busy::largest;
use schedlab_machine::Machine;
use schedlab_measure::{Report, Stats};
use schedlab_trace::Writer;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
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
    /// The largest part of the time that a host took from the CPUs of a guest, or of this machine.
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

    /// Runs a request, and keeps its trace if that is wanted.
    fn run_and_keep(&self, request: &Request, sink: &mut dyn Sink) -> Result<Outcome> {
        let Some(path) = self.file(request.seed) else { return self.inner.run(request, sink) };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|e| Error::system("cannot be created", &e).file(&path))?;
        }
        let mut writer = Writer::create(&path, &self.head(request))?;
        let outcome = self.inner.run(request, &mut (&mut writer, sink))?;
        writer.finish()?;
        Ok(outcome)
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

    fn head(&self, request: &Request) -> Meta {
        self.inner.head(request)
    }

    fn idle_ticks(&self, request: &Request) -> Result<Option<(Nanos, Nanos)>> {
        self.inner.idle_ticks(request)
    }

    fn run(&self, request: &Request, sink: &mut dyn Sink) -> Result<Outcome> {
        // A simulation has no foreign tasks, and begins its own when they are due.
        if self.real_kernel().is_none() {
            return self.run_and_keep(request, sink);
        }
        let mut stats = Stats::new(&self.meta(request)).by_task_cpu();
        let mut begun = Begun::default();
        let mut watching = (&mut stats, &mut begun);
        let outcome = self.run_and_keep(request, &mut (&mut watching, sink))?;
        if let Some(own) = &outcome.own {
            let run = (request.seed, outcome.end);
            let noise = foreign(&stats.finish(Some(outcome.end)), run, self.cpus, own);
            let mut seen = self.seen.lock().expect("no thread panics while it holds the lock");
            seen.noise.push(noise);
            seen.taken = seen.taken.max(outcome.taken.unwrap_or(0.0));
            seen.missing = seen.missing.max(begun.missing(&request.workload, outcome.end, own));
        }
        Ok(outcome)
    }
}

/// This many foreign tasks are named.
const NAMED: usize = 5;

/// What all tasks but `own` took of the first CPUs in a run.
fn foreign(report: &Report, (seed, end): (u64, Nanos), cpus: usize, own: &BTreeSet<Tid>) -> Noise {
    let whole = (end as f64 / 1e3 * cpus as f64).max(1.0);
    let mut by_name: BTreeMap<String, f64> = BTreeMap::new();
    for row in report.task_cpus.iter().flatten().filter(|row| (row.cpu as usize) < cpus && !own.contains(&row.tid)) {
        let name = if row.name.is_empty() { format!("tid {}", row.tid) } else { row.name.clone() };
        if !name.starts_with(OURS) {
            *by_name.entry(name).or_default() += row.run_us / whole;
        }
    }
    let share = total(by_name.values().copied());
    Noise { seed, share, tasks: largest(by_name, NAMED) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::{Context, CpuId, Event, NameRecord, Payload, TaskState};
    use schedlab_capture::busy::named;

    fn switch(time: Nanos, cpu: CpuId, prev: Tid, next: Tid) -> Event {
        let prev_state = if prev == 0 { TaskState::Runnable } else { TaskState::Sleeping };
        let what = Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 };
        Event { time, cpu, what }
    }

    fn wakes(time: Nanos, cpu: CpuId, tid: Tid) -> [Event; 2] {
        let waking = Payload::Waking { tid, prio: 120, target: cpu, waker: 0, context: Context::HardIrq };
        [waking, Payload::Wakeup { tid, prio: 120, target: cpu }].map(|what| Event { time, cpu, what })
    }

    fn noise(events: &[Event]) -> Noise {
        let mut stats = Stats::new(&Meta::default()).by_task_cpu();
        stats.name(&NameRecord { time: 0, tid: 7, tgid: None, comm: "cc1".to_owned(), cgroup: None });
        stats.events(events);
        foreign(&stats.finish(Some(100_000)), (3, 100_000), 2, &BTreeSet::from([1]))
    }

    #[test]
    fn foreign_time_is_what_others_ran_on_the_cpus_of_the_test() {
        // CPU 0: idle, then 7 from 2 to 10 us, own task 1 to 40, 7 again to 50, own to 100. CPU 1: 8 from 90 on. CPU 2
        // is not the test's.
        let noise = noise(&[
            switch(0, 1, 1, 0),
            switch(2_000, 0, 0, 7),
            switch(10_000, 0, 7, 1),
            switch(40_000, 0, 1, 7),
            switch(45_000, 2, 0, 9),
            switch(50_000, 0, 7, 1),
            switch(90_000, 1, 0, 8),
        ]);
        assert_eq!(noise.seed, 3);
        assert!((noise.share - 0.14).abs() < 1e-9, "{noise:?}");
        assert_eq!(named(&noise.tasks), "cc1 9.0%, tid 8 5.0%");
    }

    /// Some virtual machines do not record how a CPU leaves idle: the task that leaves it again has not had it since.
    #[test]
    fn an_idle_cpu_is_not_its_next_task_s() {
        let mut events = vec![switch(1_000, 0, 1, 0)];
        for round in 1..9 {
            events.extend(wakes(round * 10_000, 0, 7));
            events.push(switch(round * 10_000 + 100, 0, 7, 0));
        }
        let noise = noise(&events);
        assert!(noise.share < 0.01, "{noise:?}");
    }
}

//! A profile of a violation: for 20 ms, what ran on each CPU and which task was woken where.
//!
//! It is recorded through a tracefs instance of our own, as `schedlab record` does, and needs no eBPF.

use schedlab_base::{CpuId, Event, Meta, NameRecord, Nanos, Payload, Result, Sink, Tid};
use schedlab_capture::{Ending, Options, Output, Recorder};
use schedlab_measure::{CpuStats, Stats, TaskCpuStats};
use serde::Serialize;
use std::collections::BTreeMap;

/// How long a profile takes.
pub const LENGTH: Nanos = 20_000_000;

/// At most so many tasks are listed for each CPU, and so many wake-ups in all.
const MOST: usize = 8;

/// What a task used of a CPU.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ran {
    /// Its thread id.
    pub tid: Tid,
    /// Its name.
    pub name: String,
    /// How long it ran.
    pub run_us: f64,
}

/// What a CPU did.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CpuProfile {
    /// The CPU.
    pub cpu: CpuId,
    /// How long it was idle.
    pub idle_us: f64,
    /// How long it is not known what it did.
    pub unknown_us: f64,
    /// The switches from one task to another, the idle task included.
    pub switches: u64,
    /// The tasks that ran longest; 8 at most.
    pub tasks: Vec<Ran>,
}

/// Wake-ups of a task by another.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Woken {
    /// The task that woke; 0 for an interrupt on an idle CPU.
    pub waker: Tid,
    /// Its name.
    pub waker_name: String,
    /// The task that was woken.
    pub tid: Tid,
    /// Its name.
    pub name: String,
    /// The CPU on which the wake-up was requested.
    pub from_cpu: CpuId,
    /// The CPU on whose queue the task was put.
    pub to_cpu: CpuId,
    /// How often.
    pub times: u64,
}

/// The profile of a violation.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Profile {
    /// How long it took.
    pub span_us: f64,
    /// The CPUs.
    pub cpus: Vec<CpuProfile>,
    /// The most frequent wake-ups; 8 at most.
    pub wakeups: Vec<Woken>,
    /// Tasks that moved from one CPU's queue to another's.
    pub migrations: u64,
    /// Events that the kernel lost.
    pub lost: u64,
}

/// Records a profile. Returns it, and whether a signal ended it early.
///
/// # Errors
/// When this machine does not let us record.
pub fn take() -> Result<(Profile, bool)> {
    let recorder = Recorder::new(Options { duration: Some(LENGTH), at_once: true, ..Options::default() })?;
    let (mut profile, recorded) = recorder.record(|meta| Ok(Profiler::new(meta)), |_| ())?;
    profile.lost = recorded.lost;
    Ok((profile, recorded.ending == Ending::Signal))
}

/// Receives the recording.
struct Profiler {
    start: Nanos,
    end: Nanos,
    stats: Stats,
    switches: BTreeMap<CpuId, u64>,
    woken: BTreeMap<(Tid, Tid, CpuId, CpuId), u64>,
    names: BTreeMap<Tid, String>,
    migrations: u64,
}

impl Profiler {
    fn new(meta: &Meta) -> Self {
        let start = meta.span.map_or(0, |(start, _)| start);
        Self {
            start,
            end: start,
            stats: Stats::new(meta).by_task_cpu(),
            switches: BTreeMap::new(),
            woken: BTreeMap::new(),
            names: BTreeMap::new(),
            migrations: 0,
        }
    }
}

impl Sink for Profiler {
    fn events(&mut self, batch: &[Event]) {
        self.stats.events(batch);
        for event in batch {
            match event.what {
                Payload::Switch { .. } => *self.switches.entry(event.cpu).or_default() += 1,
                Payload::Waking { tid, waker, target, .. } => {
                    *self.woken.entry((waker, tid, event.cpu, target)).or_default() += 1;
                }
                Payload::Migrate { .. } => self.migrations += 1,
                _ => {}
            }
        }
    }

    fn name(&mut self, record: &NameRecord) {
        self.stats.name(record);
        self.names.insert(record.tid, record.comm.clone());
    }

    fn lasts(&mut self, until: Nanos) {
        self.stats.lasts(until);
        self.end = until;
    }
}

impl Output for Profiler {
    type Done = Profile;

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(self) -> Result<Profile> {
        let Self { start, end, stats, switches, woken, names, migrations } = self;
        let name = |tid: Tid| names.get(&tid).cloned().unwrap_or_default();
        let report = stats.finish(Some(end));
        let cpu = |row: &CpuStats| {
            let all = report.task_cpus.iter().flatten();
            let mut ran: Vec<_> = all.filter(|ran| ran.cpu == row.cpu && ran.run_us > 0.0).collect();
            ran.sort_by(|a, b| b.run_us.total_cmp(&a.run_us).then(a.tid.cmp(&b.tid)));
            let task = |ran: &&TaskCpuStats| Ran { tid: ran.tid, name: name(ran.tid), run_us: ran.run_us };
            CpuProfile {
                cpu: row.cpu,
                idle_us: row.idle_us,
                unknown_us: row.unknown_us,
                switches: switches.get(&row.cpu).copied().unwrap_or(0),
                tasks: ran.iter().take(MOST).map(task).collect(),
            }
        };
        let mut woken: Vec<_> = woken.into_iter().collect();
        woken.sort_by_key(|(key, times)| (std::cmp::Reverse(*times), *key));
        let wakeup = |((waker, tid, from_cpu, to_cpu), times): ((Tid, Tid, CpuId, CpuId), u64)| Woken {
            waker,
            waker_name: name(waker),
            tid,
            name: name(tid),
            from_cpu,
            to_cpu,
            times,
        };
        Ok(Profile {
            span_us: end.saturating_sub(start) as f64 / 1e3,
            cpus: report.cpus.iter().map(cpu).collect(),
            wakeups: woken.into_iter().take(MOST).map(wakeup).collect(),
            migrations,
            lost: 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::{Context, CpuPlace, TaskState};

    #[test]
    fn what_ran_and_which_task_was_woken_where() {
        let place = |cpu| CpuPlace { cpu, ..CpuPlace::default() };
        let meta = Meta {
            cpus: (0..3).map(place).collect(),
            span: Some((1_000, 1_000)),
            running: vec![(0, 5)],
            ..Meta::default()
        };
        let mut profiler = Profiler::new(&meta);
        Sink::name(&mut profiler, &NameRecord { time: 0, tid: 5, tgid: Some(5), comm: "hog".into(), cgroup: None });
        let switch = |time, cpu, prev, next| Event {
            time,
            cpu,
            what: Payload::Switch { prev, prev_prio: 120, prev_state: TaskState::Runnable, next, next_prio: 120 },
        };
        let waking = |time| Event {
            time,
            cpu: 1,
            what: Payload::Waking { tid: 6, prio: 120, target: 0, waker: 0, context: Context::HardIrq },
        };
        profiler.events(&[switch(5_000, 0, 5, 6), waking(6_000), waking(7_000), switch(8_000, 1, 0, 9)]);
        profiler.lasts(11_000);
        let profile = profiler.finish().unwrap();
        assert_eq!(profile.span_us, 10.0);
        let ran: Vec<_> = profile.cpus[0].tasks.iter().map(|ran| (ran.tid, ran.name.as_str(), ran.run_us)).collect();
        assert_eq!(ran, [(6, "", 6.0), (5, "hog", 4.0)]);
        // CPU 1 was idle until its first switch, which says so; of CPU 2 nothing is known.
        assert_eq!((profile.cpus[1].idle_us, profile.cpus[1].tasks[0].run_us), (7.0, 3.0));
        assert_eq!((profile.cpus[2].unknown_us, profile.cpus[2].switches), (10.0, 0));
        let woken = &profile.wakeups[0];
        assert_eq!((woken.waker, woken.tid, woken.from_cpu, woken.to_cpu, woken.times), (0, 6, 1, 0, 2));
    }

    /// Some virtual machines do not record how a CPU leaves idle: the task that leaves it again has not had it since.
    #[test]
    fn an_idle_cpu_is_not_its_next_task_s() {
        let place = |cpu| CpuPlace { cpu, ..CpuPlace::default() };
        let meta = Meta { cpus: vec![place(0)], span: Some((0, 0)), running: vec![(0, 5)], ..Meta::default() };
        let mut profiler = Profiler::new(&meta);
        let leaves = |time, prev| {
            let what =
                Payload::Switch { prev, prev_prio: 120, prev_state: TaskState::Sleeping, next: 0, next_prio: 120 };
            Event { time, cpu: 0, what }
        };
        profiler.events(&[leaves(1_000, 5)]);
        for round in 1..9 {
            let waking = Payload::Waking { tid: 6, prio: 120, target: 0, waker: 0, context: Context::HardIrq };
            let wakeup = Payload::Wakeup { tid: 6, prio: 120, target: 0 };
            let woken = [waking, wakeup].map(|what| Event { time: round * 100_000, cpu: 0, what });
            profiler.events(&woken);
            profiler.events(&[leaves(round * 100_000 + 1_000, 6)]);
        }
        profiler.lasts(1_000_000);
        let profile = profiler.finish().unwrap();
        assert!(profile.cpus[0].idle_us > 900.0, "{profile:?}");
    }
}

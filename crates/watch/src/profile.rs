//! A profile of a violation: for 20 ms, what ran on each CPU and which task was woken where.
//!
//! It is recorded through a tracefs instance of our own, as `schedlab record` does, and needs no eBPF.

use schedlab_base::{CpuId, Event, Meta, NameRecord, Nanos, Payload, Result, Sink, Tid};
use schedlab_capture::{Ending, Options, Output, Recorder};
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
    let recorder = Recorder::new(Options { duration: Some(LENGTH), ..Options::default() })?;
    let (mut profile, recorded) = recorder.record(|meta| Ok(Profiler::new(meta)), |_| ())?;
    profile.lost = recorded.lost;
    Ok((profile, recorded.ending == Ending::Signal))
}

/// What runs on a CPU: since when, and what that is if it is known.
#[derive(Clone, Copy, Debug)]
struct Running {
    since: Nanos,
    tid: Option<Tid>,
}

/// Receives the recording.
#[derive(Debug, Default)]
struct Profiler {
    start: Nanos,
    end: Nanos,
    running: BTreeMap<CpuId, Running>,
    ran: BTreeMap<(CpuId, Tid), Nanos>,
    unknown: BTreeMap<CpuId, Nanos>,
    switches: BTreeMap<CpuId, u64>,
    woken: BTreeMap<(Tid, Tid, CpuId, CpuId), u64>,
    names: BTreeMap<Tid, String>,
    migrations: u64,
}

impl Profiler {
    fn new(meta: &Meta) -> Self {
        let start = meta.span.map_or(0, |(start, _)| start);
        let known: BTreeMap<CpuId, Tid> = meta.running.iter().copied().collect();
        let cpus = meta.cpus.iter().map(|place| place.cpu);
        let running = cpus.map(|cpu| (cpu, Running { since: start, tid: known.get(&cpu).copied() })).collect();
        Self { start, end: start, running, ..Self::default() }
    }

    /// Closes the span that ends now on this CPU. What left it has had it, even if that was not known before.
    fn close(&mut self, cpu: CpuId, now: Nanos, left: Option<Tid>) {
        let Some(running) = self.running.get(&cpu).copied() else { return };
        let time = now.saturating_sub(running.since);
        match left.or(running.tid) {
            Some(tid) => *self.ran.entry((cpu, tid)).or_default() += time,
            None => *self.unknown.entry(cpu).or_default() += time,
        }
    }

    fn name(&self, tid: Tid) -> String {
        self.names.get(&tid).cloned().unwrap_or_default()
    }

    fn cpu(&self, cpu: CpuId) -> CpuProfile {
        let us = |ns: Nanos| ns as f64 / 1e3;
        let own = self.ran.range((cpu, Tid::MIN)..=(cpu, Tid::MAX));
        let mut ran: Vec<(Tid, Nanos)> = own.map(|((_, tid), time)| (*tid, *time)).collect();
        let idle = ran.iter().find(|(tid, _)| *tid == 0).map_or(0, |(_, time)| *time);
        ran.retain(|(tid, time)| *tid != 0 && *time > 0);
        ran.sort_by_key(|(tid, time)| (std::cmp::Reverse(*time), *tid));
        let task = |(tid, time): &(Tid, Nanos)| Ran { tid: *tid, name: self.name(*tid), run_us: us(*time) };
        CpuProfile {
            cpu,
            idle_us: us(idle),
            unknown_us: us(self.unknown.get(&cpu).copied().unwrap_or(0)),
            switches: self.switches.get(&cpu).copied().unwrap_or(0),
            tasks: ran.iter().take(MOST).map(task).collect(),
        }
    }
}

impl Sink for Profiler {
    fn events(&mut self, batch: &[Event]) {
        for event in batch {
            match event.what {
                Payload::Switch { prev, next, .. } => {
                    self.close(event.cpu, event.time, Some(prev));
                    self.running.insert(event.cpu, Running { since: event.time, tid: Some(next) });
                    *self.switches.entry(event.cpu).or_default() += 1;
                }
                Payload::Waking { tid, waker, target, .. } => {
                    *self.woken.entry((waker, tid, event.cpu, target)).or_default() += 1;
                }
                Payload::Migrate { .. } => self.migrations += 1,
                Payload::Lost { .. } => {
                    self.close(event.cpu, event.time, None);
                    self.running.insert(event.cpu, Running { since: event.time, tid: None });
                }
                _ => {}
            }
        }
    }

    fn name(&mut self, record: &NameRecord) {
        self.names.insert(record.tid, record.comm.clone());
    }

    fn lasts(&mut self, until: Nanos) {
        self.end = until;
    }
}

impl Output for Profiler {
    type Done = Profile;

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(mut self) -> Result<Profile> {
        let cpus: Vec<CpuId> = self.running.keys().copied().collect();
        cpus.iter().for_each(|cpu| self.close(*cpu, self.end, None));
        let mut woken: Vec<_> = self.woken.iter().map(|(key, times)| (*key, *times)).collect();
        woken.sort_by_key(|(key, times)| (std::cmp::Reverse(*times), *key));
        let wakeup = |((waker, tid, from_cpu, to_cpu), times): ((Tid, Tid, CpuId, CpuId), u64)| Woken {
            waker,
            waker_name: self.name(waker),
            tid,
            name: self.name(tid),
            from_cpu,
            to_cpu,
            times,
        };
        Ok(Profile {
            span_us: self.end.saturating_sub(self.start) as f64 / 1e3,
            cpus: cpus.iter().map(|cpu| self.cpu(*cpu)).collect(),
            wakeups: woken.into_iter().take(MOST).map(wakeup).collect(),
            migrations: self.migrations,
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
}

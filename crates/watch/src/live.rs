//! The checker's loop on a live machine: when to look, what to keep of a violation, and when to end.

use crate::metrics::{Figures, Metrics};
use crate::profile::{self, Profile};
use crate::{Ebpf, Proc, sys};
use schedlab_base::{Error, Meta, Nanos, Result};
use schedlab_capture::{Mask, Signals};
use schedlab_measure::{Finding, Looked, Sampler, Timing, Work};
use serde::Serialize;
use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

/// The checker takes at most this part of one CPU: beyond it, looks are left out.
const MOST_CPU: f64 = 0.01;
/// A profile reads all of /proc, which on a large machine takes long. It is taken only if all profiles so far, and one
/// more like them, take less than this part of a CPU. The first is always taken.
const MOST_CPU_PROFILES: f64 = 0.005;
/// From the start on so much CPU time is granted, so that a short run is not cut down.
const GRANTED: Nanos = 50_000_000;

/// What the run queues are read by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// Our eBPF program.
    Ebpf,
    /// /proc.
    Proc,
}

impl By {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ebpf => "ebpf",
            Self::Proc => "proc",
        }
    }
}

/// What is asked of the checker.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// What to read the run queues by; the best that works if not given.
    pub by: Option<By>,
    /// When to look.
    pub timing: Timing,
    /// End after so many violations.
    pub count: Option<u64>,
    /// End after this time.
    pub duration: Option<Nanos>,
    /// Where to serve the figures.
    pub metrics: Option<SocketAddr>,
}

/// A violation on the live machine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Alarm {
    /// When it was found, in seconds since 1970.
    pub time_s: f64,
    /// What was found.
    #[serde(flatten)]
    pub finding: Finding,
    /// What went on in the 20 ms after that.
    pub profile: Option<Profile>,
    /// Why there is no profile.
    pub no_profile: Option<String>,
}

/// What a run of the checker came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// What the run queues were read by.
    pub by: &'static str,
    /// How long it ran.
    pub span_us: f64,
    /// What it did.
    #[serde(flatten)]
    pub work: Work,
    /// Looks left out because the checker had used its share of a CPU.
    pub looks_left_out: u64,
    /// The CPU time that it used.
    pub cpu_us: f64,
}

/// A source of snapshots.
enum Source {
    Ebpf(Box<Ebpf>),
    Proc(Box<Proc>),
}

/// The checker, ready to begin.
pub struct Live {
    options: Options,
    source: Source,
    /// Why it is not eBPF, if nobody asked for another.
    pub instead: Option<Error>,
    metrics: Option<Metrics>,
    meta: Meta,
    signals: Signals,
}

impl Live {
    /// Gets everything ready: the best source that works, or the one that is asked for.
    ///
    /// # Errors
    /// When the source that is asked for does not work, or the metrics cannot be served.
    pub fn new(options: Options, meta: Meta) -> Result<Self> {
        // First, so that the thread that serves the metrics does not take them.
        let signals = Signals::take().map_err(|e| Error::system("cannot take signals", &e))?;
        let metrics = options.metrics.map(Metrics::serve).transpose()?;
        let proc = || Source::Proc(Box::default());
        let (source, instead) = match options.by {
            Some(By::Proc) => (proc(), None),
            Some(By::Ebpf) => (Source::Ebpf(Box::new(Ebpf::open()?)), None),
            None => match Ebpf::open() {
                Ok(ebpf) => (Source::Ebpf(Box::new(ebpf)), None),
                Err(why) => (proc(), Some(why)),
            },
        };
        Ok(Self { options, source, instead, metrics, meta, signals })
    }

    /// What the run queues are read by.
    #[must_use]
    pub fn by(&self) -> By {
        match self.source {
            Source::Ebpf(_) => By::Ebpf,
            Source::Proc(_) => By::Proc,
        }
    }

    /// Looks, at once and then now and then, until enough was found, the time is over or a signal arrives. Each
    /// violation is passed on when it has lasted for the watch; the answer says whether to go on.
    ///
    /// # Errors
    /// When the kernel refuses a look.
    pub fn run(self, on_alarm: impl FnMut(&Alarm) -> bool) -> Result<Summary> {
        let Self { options, source, metrics, meta, signals, instead: _ } = self;
        let start = sys::monotonic();
        let mut run = Run {
            sampler: Sampler::new(options.timing, &meta, start).at_once(),
            options,
            start,
            cpu_at_start: sys::cpu_time(),
            profiles: Profiles::default(),
            summary: Summary::default(),
            metrics,
            signals,
            last: (0, 0.0),
        };
        match source {
            Source::Ebpf(mut ebpf) => run.until_over(By::Ebpf, &mut *ebpf, on_alarm),
            Source::Proc(mut proc) => run.until_over(By::Proc, &mut *proc, on_alarm),
        }
    }
}

/// How many profiles there were, and what they cost.
#[derive(Debug, Default)]
struct Profiles {
    count: u64,
    cpu: Nanos,
}

struct Run {
    options: Options,
    sampler: Sampler,
    start: Nanos,
    cpu_at_start: Nanos,
    profiles: Profiles,
    summary: Summary,
    metrics: Option<Metrics>,
    signals: Signals,
    /// The idle CPUs and the time of the last violation.
    last: (u64, f64),
}

impl Run {
    fn until_over<M: Looked<Error = Error>>(
        &mut self,
        by: By,
        machine: &mut M,
        mut on_alarm: impl FnMut(&Alarm) -> bool,
    ) -> Result<Summary> {
        self.summary.by = by.name();
        let all_cpus = Mask::present().ok();
        let mut confined = false;
        let end = self.options.duration.map_or(Nanos::MAX, |length| self.start.saturating_add(length));
        self.show();
        while self.wait_until(self.sampler.next().min(end)) && sys::monotonic() < end {
            if self.is_over_budget() && self.sampler.watched().is_none() {
                self.sampler.leave_out(sys::monotonic());
                self.summary.looks_left_out += 1;
                continue;
            }
            let found = self.sampler.look(sys::monotonic(), machine)?;
            // The checker itself must not wake the CPUs whose idleness it watches: going idle again, they would look
            // for work.
            if let Some(all) = &all_cpus
                && confined != self.sampler.watched().is_some()
            {
                confined = !confined;
                let during = self.sampler.watched().and_then(|idle| all.without(&idle));
                during.as_ref().unwrap_or(all).set();
            }
            let Some(finding) = found else {
                self.show();
                continue;
            };
            let (alarm, stopped) = self.alarm(finding);
            self.show();
            let enough = self.options.count.is_some_and(|count| self.sampler.work().violations >= count);
            if !on_alarm(&alarm) || enough || stopped {
                break;
            }
        }
        self.summary.work = self.sampler.work();
        self.summary.span_us = (sys::monotonic() - self.start) as f64 / 1e3;
        self.summary.cpu_us = self.cpu() as f64 / 1e3;
        Ok(self.summary.clone())
    }

    /// The CPU time used so far.
    fn cpu(&self) -> Nanos {
        sys::cpu_time() - self.cpu_at_start
    }

    fn is_over_budget(&self) -> bool {
        let elapsed = sys::monotonic() - self.start;
        let looks = self.cpu().saturating_sub(self.profiles.cpu);
        looks > GRANTED + ((MOST_CPU - MOST_CPU_PROFILES) * elapsed as f64) as Nanos
    }

    /// Waits until then; returns whether nobody has asked for the end.
    fn wait_until(&self, then: Nanos) -> bool {
        loop {
            while let Some(signal) = self.signals.next() {
                if signal.number != libc::SIGCHLD {
                    return false;
                }
            }
            let now = sys::monotonic();
            if now >= then {
                return true;
            }
            sys::wait_readable(self.signals.raw_fd(), then - now);
        }
    }

    /// Adds a profile to what was found, unless that would cost too much. Also returns whether a signal arrived.
    fn alarm(&mut self, finding: Finding) -> (Alarm, bool) {
        let time_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        let idle = finding.idle_cpus.parse::<schedlab_base::CpuList>().unwrap_or_default();
        self.last = (idle.iter().count() as u64, time_s);
        let Profiles { count, cpu } = self.profiles;
        let elapsed = (sys::monotonic() - self.start) as f64;
        let next = cpu.checked_div(count).unwrap_or(0);
        if count > 0 && (cpu + next) as f64 > MOST_CPU_PROFILES * elapsed {
            let why = format!("a profile takes {:.1} ms of CPU, and the last was not long ago", next as f64 / 1e6);
            return (Alarm { time_s, finding, profile: None, no_profile: Some(why) }, false);
        }
        let before = sys::cpu_time();
        let taken = profile::take();
        self.profiles = Profiles { count: count + 1, cpu: cpu + (sys::cpu_time() - before) };
        match taken {
            Ok((profile, stopped)) => (Alarm { time_s, finding, profile: Some(profile), no_profile: None }, stopped),
            Err(e) => (Alarm { time_s, finding, profile: None, no_profile: Some(e.to_string()) }, false),
        }
    }

    fn show(&self) {
        let (last_idle_cpus, last_time_s) = self.last;
        if let Some(metrics) = &self.metrics {
            metrics.show(Figures {
                by: self.summary.by,
                work: self.sampler.work(),
                left_out: self.summary.looks_left_out,
                cpu: self.cpu(),
                last_idle_cpus,
                last_time_s,
            });
        }
    }
}

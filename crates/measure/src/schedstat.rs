//! What `/proc/schedstat` would have said of the time that a trace covers, in the kernel's own format.
//!
//! Told are the lines of the CPUs. Two of their fields leave no events: how often `sched_yield()` was called, which is
//! given as 0, and how often `schedule()` chose the running task again, so that `sched_count` counts the switches. What
//! each attempt at balancing found is not in a trace either: the lines of the domains are left out.
//!
//! Time that is still under way counts in the kernel when it ends, and here too: the CPU time of who runs at the end,
//! and the delay of who waits then, are in no line.

use schedlab_base::{CpuId, Event, Meta, NameRecord, Nanos, Payload, Release, Sink, v, v2_6};
use schedlab_track::{MAX_CPUS, Observer, Occupant, Replay, Slot, Start, Wake, row};
use serde::Serialize;
use std::fmt::Write;

/// Whose CPU a wake-up counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wakeups {
    /// That where the task last was (until 2.6.31).
    Before,
    /// That where it will run (2.6.32 to 2.6.39).
    Target,
    /// The waker's (3.0 on).
    Waker,
}

/// A release's `/proc/schedstat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    version: u32,
    wakeups: Wakeups,
    /// A wait that ends by a move to another CPU counts on the one that was left; else it is forgotten (2.6.26 and
    /// before).
    moves_count: bool,
}

impl Format {
    /// The versions that can be written, newest last.
    pub const VERSIONS: [u32; 4] = [14, 15, 16, 17];

    /// That of a kernel, by its name in a trace (`6.1.0-18-amd64`, `linux-2.6.32`); `None` when it has none of these
    /// versions, or bears no release's number.
    #[must_use]
    pub fn of_kernel(name: &str) -> Option<Self> {
        let release: Release = name.strip_prefix("linux-").unwrap_or(name).parse().ok()?;
        let version = match release {
            _ if release < v2_6(20) => return None,
            _ if release < v2_6(30) => 14,
            _ if release < v(6, 10) => 15,
            _ if release < v(6, 14) => 16,
            _ => 17,
        };
        let wakeups = match release {
            _ if release < v2_6(32) => Wakeups::Before,
            _ if release < v(3, 0) => Wakeups::Target,
            _ => Wakeups::Waker,
        };
        Some(Self { version, wakeups, moves_count: release >= v2_6(27) })
    }

    /// That of a version, as the last release that had it filled it in; `None` for a version that is not known.
    #[must_use]
    pub fn of_version(version: u32) -> Option<Self> {
        let last = version > 14;
        let wakeups = if last { Wakeups::Waker } else { Wakeups::Before };
        Self::VERSIONS.contains(&version).then_some(Self { version, wakeups, moves_count: true })
    }
}

/// The line of a CPU; the names are the kernel's. Times are in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CpuLine {
    /// Which CPU.
    pub cpu: CpuId,
    /// Calls of `sched_yield()`: not in a trace, 0.
    pub yld_count: u64,
    /// Switches; the kernel counts the calls of `schedule()` that led to none, too.
    pub sched_count: u64,
    /// Switches to idle.
    pub sched_goidle: u64,
    /// Wake-ups that count for this CPU.
    pub ttwu_count: u64,
    /// Those of them for which waker and task share the CPU.
    pub ttwu_local: u64,
    /// What tasks ran here.
    pub rq_cpu_time: u64,
    /// What tasks waited on this CPU's queue.
    pub run_delay: u64,
    /// How often a task got the CPU.
    pub pcount: u64,
}

/// The whole file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Schedstat {
    /// The version of the format.
    pub version: u32,
    /// When: ticks since the clock of the trace began (`jiffies`).
    pub timestamp: u64,
    /// A line for each CPU.
    pub cpus: Vec<CpuLine>,
}

impl Schedstat {
    /// The file as the kernel writes it, without the lines of the domains.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = format!("version {}\ntimestamp {}\n", self.version, self.timestamp);
        for c in &self.cpus {
            let yields = match self.version {
                14 => format!("0 0 0 {}", c.yld_count),
                _ => c.yld_count.to_string(),
            };
            // The 0 was for switches, and is not counted any more.
            let _ = writeln!(
                text,
                "cpu{} {yields} 0 {} {} {} {} {} {} {}",
                c.cpu, c.sched_count, c.sched_goidle, c.ttwu_count, c.ttwu_local, c.rq_cpu_time, c.run_delay, c.pcount
            );
        }
        text
    }
}

/// Who was woken and from where, until it is seen where to.
#[derive(Clone, Copy, Debug)]
struct Waking {
    waker: CpuId,
    before: CpuId,
}

/// The counts of all CPUs, as they are told of what happens.
#[derive(Debug)]
struct Counts {
    format: Format,
    lines: Vec<CpuLine>,
    waking: Vec<Option<Waking>>,
    /// The last wait that ended, where only those that ended in running count.
    waited: Option<(Slot, Nanos)>,
}

impl Counts {
    /// A wake-up is over, with the task on `target`; where nobody saw it asked for, by the waker `by`.
    fn arrived(&mut self, task: Slot, by: Option<CpuId>, target: CpuId) {
        let asked = row(&mut self.waking, task).take();
        let Some(waking) = asked.or(by.map(|waker| Waking { waker, before: target })) else { return };
        let (counts, local) = match self.format.wakeups {
            Wakeups::Before => (waking.before, waking.before == waking.waker),
            Wakeups::Target => (target, target == waking.waker),
            Wakeups::Waker => (waking.waker, target == waking.waker),
        };
        if counts < MAX_CPUS {
            let line = row(&mut self.lines, counts);
            line.ttwu_count += 1;
            line.ttwu_local += u64::from(local);
        }
    }
}

impl Observer for Counts {
    fn span(&mut self, cpu: CpuId, who: Occupant, from: Nanos, to: Nanos) {
        if let Occupant::Task(_) = who {
            row(&mut self.lines, cpu).rq_cpu_time += to - from;
        }
    }

    fn started(&mut self, task: Slot, cpu: CpuId, _: Start) {
        let line = row(&mut self.lines, cpu);
        line.pcount += 1;
        if let Some((_, delay)) = self.waited.take().filter(|(slot, _)| *slot == task) {
            line.run_delay += delay;
        }
        // A trace without wake-ups proper: it went where it now runs.
        self.arrived(task, None, cpu);
    }

    fn waited(&mut self, task: Slot, cpu: CpuId, from: Nanos, to: Nanos, _finished: bool) {
        let delay = to.saturating_sub(from);
        if self.format.moves_count {
            row(&mut self.lines, cpu).run_delay += delay;
        } else {
            self.waited = Some((task, delay));
        }
    }

    fn waking(&mut self, task: Slot, wake: Wake) {
        *row(&mut self.waking, task) = Some(Waking { waker: wake.cpu, before: wake.target });
    }

    fn woken(&mut self, task: Slot, wake: Wake) {
        if !wake.new {
            self.arrived(task, Some(wake.cpu), wake.target);
        }
    }
}

/// The statistics in the making: feed it a trace, then [`SchedstatSink::finish`].
#[derive(Debug)]
pub struct SchedstatSink {
    replay: Replay<Counts>,
    end: Nanos,
}

impl SchedstatSink {
    /// For a trace with this metadata, in this format.
    #[must_use]
    pub fn new(meta: &Meta, format: Format) -> Self {
        let counts = Counts { format, lines: Vec::new(), waking: Vec::new(), waited: None };
        Self { replay: Replay::new(meta, counts), end: meta.told().map_or(0, |(_, end)| end) }
    }

    /// How often events were lost: what happened then is not counted.
    #[must_use]
    pub fn losses(&self) -> u64 {
        self.replay.tracker.losses
    }

    /// The file at the end of the trace, on a kernel whose ticks come `hz` times a second.
    #[must_use]
    pub fn finish(self, hz: u64) -> Schedstat {
        let Replay { tracker, observer: mut counts } = self.replay;
        let end = self.end.max(tracker.bounds().1);
        let cpus = tracker.present().map(|cpu| CpuLine { cpu, ..*row(&mut counts.lines, cpu) }).collect();
        let timestamp = u128::from(end) * u128::from(hz) / 1_000_000_000;
        Schedstat { version: counts.format.version, timestamp: timestamp as u64, cpus }
    }
}

impl Sink for SchedstatSink {
    fn events(&mut self, batch: &[Event]) {
        self.replay.events(batch);
        // Switches are counted as they were recorded, whatever became of the tasks.
        for event in batch.iter().filter(|event| event.cpu < MAX_CPUS) {
            if let Payload::Switch { next, .. } = event.what {
                let line = row(&mut self.replay.observer.lines, event.cpu);
                line.sched_count += 1;
                line.sched_goidle += u64::from(next == 0);
            }
        }
    }

    fn name(&mut self, _: &NameRecord) {}

    fn lasts(&mut self, until: Nanos) {
        self.end = self.end.max(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_has_the_version_of_its_release() {
        let version = |name| Format::of_kernel(name).map(|format| format.version);
        assert_eq!(version("linux-2.6.24"), Some(14));
        assert_eq!(version("linux-2.6.32"), Some(15));
        assert_eq!(version("6.1.0-18-amd64"), Some(15));
        assert_eq!(version("linux-6.12"), Some(16));
        assert_eq!(version("6.14-rc3"), Some(17));
        for without in ["linux-2.6.18", "linux-2.4", "bfs", "", "6"] {
            assert_eq!(version(without), None, "{without}");
        }
        assert_eq!(Format::of_version(13), None);
    }
}

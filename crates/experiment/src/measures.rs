//! The measures of one run as lists that metrics' expressions are made of.

mod scope;

pub use scope::RunScope;

use crate::figures::{Run, TaskFigures};
use schedlab_base::Nanos;
use schedlab_measure::series::Track;
use schedlab_measure::{CheckReport, IdlePeriods, MemoryStats};

/// A measure: a list with one number a task or CPU, or one number of the whole run.
pub struct Measure {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    get: Get,
}

enum Get {
    Task(fn(&TaskFigures) -> Result<f64, String>),
    TaskTime(fn(&Track) -> (Nanos, &[Nanos])),
    MemoryOn,
    Heat,
    CpuTime,
    Idle(fn(&IdlePeriods, Nanos) -> f64),
    Tunable,
    Energy,
    Run(fn(&Run) -> f64),
    Waste(fn(&CheckReport) -> f64),
}

const NS: f64 = 1e-9;
const MIB: f64 = 1_048_576.0;

fn memory(task: &TaskFigures) -> Result<&MemoryStats, String> {
    task.memory.as_ref().ok_or_else(|| "has no x-memory, or there is one node alone".to_owned())
}

fn memory_node(task: &TaskFigures) -> Result<f64, String> {
    memory(task)?.node.map(f64::from).ok_or_else(|| "has given its memory back".to_owned())
}

/// A percentile of a task's latency, where it was ever woken and is known to have got its CPU.
fn latency(task: &TaskFigures, which: usize) -> Result<f64, String> {
    let unknown = if task.voluntary <= 1 {
        "was never woken"
    } else {
        "slept, but no wake-up shows when it got a CPU, as on a machine that hides its idle tasks"
    };
    task.latency_us.map(|l| l[which]).ok_or_else(|| unknown.to_owned())
}

fn ended(task: &TaskFigures) -> Result<f64, String> {
    task.end.map(|t| t as f64 * NS).ok_or_else(|| "had not ended".to_owned())
}

fn started(task: &TaskFigures) -> Result<f64, String> {
    task.start.map(|t| t as f64 * NS).ok_or_else(|| "never started".to_owned())
}

macro_rules! measures {
    ($($(#[doc = $about:literal])+ $name:literal $get:expr;)*) => {
        /// All measures.
        pub const MEASURES: &[Measure] = &[$(Measure { name: $name, about: concat!($($about),+), get: $get }),*];
    };
}

measures! {
    /// CPU time of each task; with window=k, of each task that was there during the whole of window k.
    "run_s" Get::TaskTime(|t| (t.run, &t.windows));
    /// The same by the part of each task's memory that was on its CPU's node; also takes window=k.
    "local_s" Get::TaskTime(|t| (t.local, &t.local_windows));
    /// Time that each task was runnable without a CPU.
    "wait_s" Get::Task(|t| Ok(t.wait as f64 * NS));
    /// When each task became runnable first.
    "start_s" Get::Task(started);
    /// When each task ended.
    "finish_s" Get::Task(ended);
    /// From each task's start to its end.
    "turnaround_s" Get::Task(|t| Ok(ended(t)? - started(t)?));
    /// Times that each task got a CPU.
    "slices" Get::Task(|t| Ok(t.slices as f64));
    /// Times that each task gave its CPU up.
    "voluntary" Get::Task(|t| Ok(t.voluntary as f64));
    /// Times that each task's CPU was taken.
    "involuntary" Get::Task(|t| Ok(t.involuntary as f64));
    /// Voluntary and involuntary together.
    "switches" Get::Task(|t| Ok((t.voluntary + t.involuntary) as f64));
    /// Each task's moves between CPUs.
    "migrations" Get::Task(|t| Ok(t.migrations as f64));
    /// Each task's moves between nodes.
    "node_migrations" Get::Task(|t| Ok(t.node_migrations as f64));
    /// When each task was last moved between nodes, or most of its memory was; 0 where neither was.
    "converged_s" Get::Task(|t| Ok(t.settled.unwrap_or(0) as f64 * NS));
    /// The node that has most of each task's memory at the end.
    "memory_node" Get::Task(memory_node);
    /// How much of each task's memory was moved, once for each time.
    "memory_moved_mib" Get::Task(|t| memory(t).map(|m| m.moved_bytes as f64 / MIB));
    /// Each task's memory at the end; takes node=k.
    "memory_mib" Get::MemoryOn;
    /// Wake-up to running, mean of each task.
    "latency_mean_us" Get::Task(|t| latency(t, 0));
    /// The same, median.
    "latency_p50_us" Get::Task(|t| latency(t, 1));
    /// The same, 90th percentile.
    "latency_p90_us" Get::Task(|t| latency(t, 2));
    /// The same, 99th percentile.
    "latency_p99_us" Get::Task(|t| latency(t, 3));
    /// The same, 99.9th percentile.
    "latency_p999_us" Get::Task(|t| latency(t, 4));
    /// The same, greatest.
    "latency_max_us" Get::Task(|t| latency(t, 5));
    /// Time that each CPU ran tasks; takes cpu=k and window=k.
    "busy_s" Get::CpuTime;
    /// Time that CPUs were idle, all together; with from_us=T only in periods of T us and more, which a tick ends too;
    /// takes window=k.
    "idle_s" Get::Idle(|idle, from| idle.at_least(from) as f64 * NS);
    /// How many such periods there were; with window=k, how many ended in window k.
    "idle_periods" Get::Idle(|idle, from| idle.count(from) as f64);
    /// Times that an idle CPU was given a task, all CPUs together.
    "woken_by_task" Get::Run(|r| r.series.idle.by_task as f64);
    /// Times that the tick came to an idle CPU, all CPUs together; 0 with NO_HZ.
    "woken_by_tick" Get::Run(|r| r.series.idle.by_tick as f64);
    /// `tunable['sched_latency_ns']`: its value at the end, in its own unit; kernels from 2.6.33 on scale some by the
    /// CPUs online.
    "tunable" Get::Tunable;
    /// CPU time that was wasted: idle CPUs that could each have had a waiting task of its own, over time.
    "wasted_s" Get::Waste(|check| check.wasted_cpu_us / 1e6);
    /// The longest time that one CPU was idle while there was always a waiting task that could have run there.
    "longest_wasted_s" Get::Waste(|check| check.longest_us / 1e6);
    /// The energy of all CPUs in J, where the machine has an energy model: each domain at the frequency that its
    /// busiest CPU asks for.
    "energy_j" Get::Energy;
    /// What the heat map map=m of those that are drawn of this run, from 0 on, shows of a CPU (of a node, in a map of
    /// memory), cpu=k: the mean over time, or the number of looks; of all CPUs, a list, without cpu.
    "heat" Get::Heat;
    /// The time simulated.
    "duration_s" Get::Run(|r| r.series.end as f64 * NS);
    /// The number of CPUs.
    "cpus" Get::Run(|r| r.series.cpus.len() as f64);
}

/// The measure of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Measure> {
    MEASURES.iter().find(|m| m.name == name)
}

impl Measure {
    /// The selectors that it takes, besides a task's name.
    #[must_use]
    pub fn selectors(&self) -> &'static [&'static str] {
        match self.get {
            Get::TaskTime(_) => &["window"],
            Get::MemoryOn => &["node"],
            Get::Heat => &["map", "cpu"],
            Get::CpuTime => &["cpu", "window"],
            Get::Idle(_) => &["from_us", "window"],
            Get::Task(_) | Get::Tunable | Get::Energy | Get::Run(_) | Get::Waste(_) => &[],
        }
    }

    /// Whether it is about CPU time that was wasted, which is looked for only if that is asked.
    #[must_use]
    pub fn is_of_waste(&self) -> bool {
        matches!(self.get, Get::Waste(_))
    }

    /// Whether it is about what no recording shows: where the memory of tasks is, and ticks on idle CPUs.
    #[must_use]
    pub fn is_of_simulations(&self) -> bool {
        const NAMES: [&str; 6] =
            ["local_s", "converged_s", "memory_node", "memory_moved_mib", "memory_mib", "woken_by_tick"];
        NAMES.contains(&self.name)
    }

    /// Whether it takes a task's name (`run_s['hog-*']`).
    #[must_use]
    pub fn takes_pattern(&self) -> bool {
        matches!(self.get, Get::TaskTime(_) | Get::Task(_) | Get::MemoryOn | Get::Tunable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_recording_shows_is_known_by_its_name() {
        assert_eq!(MEASURES.iter().filter(|measure| measure.is_of_simulations()).count(), 6);
    }

    #[test]
    fn the_manual_names_every_measure() {
        let manual = include_str!("../../../docs/experiments.md");
        let missing: Vec<_> = MEASURES.iter().map(|m| m.name).filter(|n| !manual.contains(&format!("`{n}"))).collect();
        assert!(missing.is_empty(), "docs/experiments.md lacks {missing:?}");
    }
}

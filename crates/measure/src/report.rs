//! The figures that statistics come to. Times are in microseconds, the nanoseconds as decimals.

use crate::names::Comm;
use crate::{Fairness, InterruptStats, MemoryStats, QueueLength, SleepStats, Sums, TaskCpuStats};
use schedlab_base::{CpuId, CpuList, Tid};
use serde::{Serialize, Serializer};
use std::sync::Arc;

/// A task: one life of a thread id.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TaskStats {
    /// Its last name; empty when the trace tells none.
    pub name: Comm,
    /// Its thread id.
    pub tid: Tid,
    /// Its process, where known.
    pub tgid: Option<Tid>,
    /// Its cgroup's path, where known.
    pub group: Option<String>,
    /// The CPUs that it may run on, as the kernel writes them, where known: the last that the trace shows.
    #[serde(serialize_with = "as_text")]
    pub allowed: Option<Arc<CpuList>>,
    /// Whether it belongs to the target of the recording; none if the recording has no target.
    pub target: Option<bool>,
    /// Its part of all CPU time that was run.
    pub share: f64,
    /// Moves from a CPU of one node to one of another.
    pub node_migrations: u64,
    /// When it was last moved between nodes, or most of its memory was, on the trace's clock; none where neither was.
    pub settled_us: Option<f64>,
    /// Its process's memory, where the trace tells of it.
    pub memory: Option<Box<MemoryStats>>,
    /// The figures.
    #[serde(flatten)]
    pub sums: Sums,
}

/// Writes CPUs as the kernel does.
fn as_text<S: Serializer>(cpus: &Option<Arc<CpuList>>, serializer: S) -> Result<S::Ok, S::Error> {
    cpus.as_ref().map(ToString::to_string).serialize(serializer)
}

/// A CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CpuStats {
    /// Its number.
    pub cpu: CpuId,
    /// Its node.
    pub node: u32,
    /// The idle task's time.
    pub idle_us: f64,
    /// Time of which nobody can tell: before the first switch, or around lost events.
    pub unknown_us: f64,
    /// Tasks that were moved away.
    pub migrations_out: u64,
    /// The figures: of waits on its queue, and of tasks that started on it.
    #[serde(flatten)]
    pub sums: Sums,
    /// Its run queue's length.
    pub queue: QueueLength,
}

/// A NUMA node: the sum of its CPUs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NodeStats {
    /// Its number.
    pub node: u32,
    /// Its CPUs.
    pub cpus: Vec<CpuId>,
    /// The idle tasks' time.
    pub idle_us: f64,
    /// Time of which nobody can tell.
    pub unknown_us: f64,
    /// The figures.
    #[serde(flatten)]
    pub sums: Sums,
    /// How evenly its CPUs ran.
    pub fairness: Fairness,
    /// Its CPUs' run queues, summed.
    pub queue: QueueLength,
}

/// A group: the tasks of a cgroup.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GroupStats {
    /// The cgroup's path; none for the tasks of which no cgroup is known.
    pub group: Option<String>,
    /// How many tasks.
    pub tasks: u64,
    /// Its part of all CPU time that was run.
    pub share: f64,
    /// The figures.
    #[serde(flatten)]
    pub sums: Sums,
    /// How evenly its tasks ran.
    pub fairness: Fairness,
    /// The mean number of its tasks that were runnable.
    pub queue_mean: f64,
}

/// What the tasks of a process, or of a name, have in common.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TeamStats {
    /// How many tasks.
    pub tasks: u64,
    /// Their part of all CPU time that was run.
    pub share: f64,
    /// The figures.
    #[serde(flatten)]
    pub sums: Sums,
}

/// A process: the tasks of a thread group.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProcessStats {
    /// Its number; none for a task whose process is not known, which then stands for itself.
    pub tgid: Option<Tid>,
    /// The name of its first thread, or else of the one that ran longest.
    pub name: String,
    /// Its tasks together.
    #[serde(flatten)]
    pub team: TeamStats,
}

/// The tasks of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NameStats {
    /// The name; empty for the tasks of which none is known.
    pub name: String,
    /// Its tasks together.
    #[serde(flatten)]
    pub team: TeamStats,
}

/// The whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TotalStats {
    /// The first instant of the trace, or of the window, on the trace's clock.
    pub start_us: f64,
    /// The first instant of the trace: `--from` and `--to` count from here.
    pub trace_start_us: f64,
    /// The time that the trace spans.
    pub span_us: f64,
    /// How many CPUs.
    pub cpus: u64,
    /// How many tasks.
    pub tasks: u64,
    /// How many events.
    pub events: u64,
    /// Events that the recorder lost, as far as it told their number.
    pub lost_events: u64,
    /// How often it lost some.
    pub losses: u64,
    /// Events that contradict others or name what cannot be.
    pub contradictions: u64,
    /// CPU time that was given to a task by guess because of a contradiction.
    pub contradicted_us: f64,
    /// The idle tasks' time. `run_us`, `idle_us` and `unknown_us` add up to `cpus` times `span_us`.
    pub idle_us: f64,
    /// Time of which nobody can tell.
    pub unknown_us: f64,
    /// The figures.
    #[serde(flatten)]
    pub sums: Sums,
    /// How evenly the tasks ran.
    pub fairness: Fairness,
    /// How evenly the CPUs ran.
    pub fairness_cpus: Fairness,
    /// How evenly the nodes ran.
    pub fairness_nodes: Fairness,
    /// How evenly the groups ran.
    pub fairness_groups: Fairness,
    /// All run queues, summed.
    pub queue: QueueLength,
}

/// The statistics of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The tasks that ran, waited or were moved, by run time, longest first.
    pub tasks: Vec<TaskStats>,
    /// The CPUs, by number.
    pub cpus: Vec<CpuStats>,
    /// The nodes, by number.
    pub nodes: Vec<NodeStats>,
    /// The groups, by run time, longest first.
    pub groups: Vec<GroupStats>,
    /// The tasks that the recording was made for, together; none if it was made for the whole machine.
    pub target: Option<TeamStats>,
    /// The other tasks, together.
    pub others: Option<TeamStats>,
    /// Each task on each CPU, in the order of the tasks, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_cpus: Option<Vec<TaskCpuStats>>,
    /// What took time from CPUs without being a task, by CPU, if the trace contains it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub interrupts: Vec<InterruptStats>,
    /// What tasks slept for, most time first, if the trace contains it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sleeps: Vec<SleepStats>,
    /// The processes, by run time, longest first; only where they are asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessStats>,
    /// The tasks by name, by run time, longest first; only where they are asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<NameStats>,
    /// The whole.
    pub total: TotalStats,
}

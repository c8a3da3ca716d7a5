//! What NUMA balancing sees of the CPUs when it looks for a better one.

use schedlab_base::CpuId;
use schedlab_sim::TaskId;

/// The CPUs as the kernel sees them at one moment.
pub trait Sight {
    /// Who runs on a CPU; `None`: it is idle.
    fn curr(&self, cpu: CpuId) -> Option<TaskId>;
    /// Whether a task may run there.
    fn allowed(&self, p: TaskId, cpu: CpuId) -> bool;
    /// What a task weighs of its CPU's load (`task_h_load`).
    fn task_load(&self, p: TaskId) -> i64;
    /// The load of a CPU.
    fn load(&self, cpu: CpuId) -> i64;
    /// How many fair tasks of a CPU were runnable of late, 1024 each.
    fn runnable(&self, cpu: CpuId) -> i64;
    /// How much of a CPU was used of late.
    fn util(&self, cpu: CpuId) -> i64;
    /// How many tasks are runnable there.
    fn nr_running(&self, cpu: CpuId) -> u32;
    /// What it is worth to fair tasks, 1024 for a whole one.
    fn capacity(&self, cpu: CpuId) -> i64;
    /// Whether it runs nothing and nothing waits there.
    fn is_idle(&self, cpu: CpuId) -> bool;
    /// Whether all CPUs of its core are idle, on a machine with SMT.
    fn core_is_idle(&self, cpu: CpuId) -> bool;
    /// An idle CPU beside this one for a task, or this one (`select_idle_sibling`).
    fn idle_beside(&self, p: TaskId, cpu: CpuId) -> CpuId;
    /// The `imbalance_pct` and `imb_numa_nr` of the lowest domain across nodes of a CPU; `None`: it has none.
    fn across_nodes(&self, cpu: CpuId) -> Option<(i64, u32)>;
}

/// Where a task goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Best {
    /// To which CPU.
    pub cpu: CpuId,
    /// Who comes from there in exchange.
    pub with: Option<TaskId>,
    /// By how much of 1000 the accesses of those who move become more local.
    pub gain: i64,
}

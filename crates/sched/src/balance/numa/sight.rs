//! What NUMA balancing reads about the CPUs when it looks for a better one.

use schedlab_base::CpuId;
use schedlab_sim::TaskId;

/// The state of the CPUs at one moment.
pub trait Sight {
    /// The task that is running on a CPU; `None` if it is idle.
    fn curr(&self, cpu: CpuId) -> Option<TaskId>;
    /// Whether the affinity of a task allows a CPU.
    fn allowed(&self, p: TaskId, cpu: CpuId) -> bool;
    /// The load that a task contributes to its CPU (`task_h_load`).
    fn task_load(&self, p: TaskId) -> i64;
    /// The load of a CPU.
    fn load(&self, cpu: CpuId) -> i64;
    /// The runnable average of a CPU: 1024 for each fair task that was always runnable recently.
    fn runnable(&self, cpu: CpuId) -> i64;
    /// The utilisation of a CPU.
    fn util(&self, cpu: CpuId) -> i64;
    /// The number of runnable tasks on a CPU.
    fn nr_running(&self, cpu: CpuId) -> u32;
    /// The capacity of a CPU for fair tasks; 1024 for a full CPU.
    fn capacity(&self, cpu: CpuId) -> i64;
    /// Whether a CPU runs nothing and has nothing waiting.
    fn is_idle(&self, cpu: CpuId) -> bool;
    /// Whether all CPUs of a core are idle. Only used on machines with SMT.
    fn core_is_idle(&self, cpu: CpuId) -> bool;
    /// An idle CPU near `cpu` for a task, or `cpu` itself if there is none (`select_idle_sibling`).
    fn idle_beside(&self, p: TaskId, cpu: CpuId) -> CpuId;
    /// The `imbalance_pct` and `imb_numa_nr` of the lowest domain of a CPU that spans several nodes; `None` if it has
    /// none.
    fn across_nodes(&self, cpu: CpuId) -> Option<(i64, u32)>;
}

/// The best destination for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Best {
    /// The CPU to migrate to.
    pub cpu: CpuId,
    /// The task that is swapped with it, if any.
    pub with: Option<TaskId>,
    /// By how many in 1000 the accesses of the migrated tasks become more local.
    pub gain: i64,
}

//! What balancing and placement know of each CPU's load, and of each task's.

use schedlab_base::CpuId;
use schedlab_sim::{Core, TaskId};

/// Load averages as the kernel at hand keeps them. Those of a CPU are as of its last account: where another CPU looks at
/// them, [`Averages::account`] comes first.
///
/// What a release does not have it may answer as it likes: nobody asks.
pub trait Averages {
    /// Brings the averages of `cpu` up to now as its own ticks would have: those that were passed over. An idle CPU
    /// without a tick keeps what it had.
    fn account(&mut self, cx: &mut Core, cpu: CpuId);

    /// Lets what sleeps on `cpu` decay up to now (`update_blocked_averages`, PELT). Whether anything is left of it.
    fn decay_blocked(&mut self, cx: &mut Core, cpu: CpuId) -> bool;

    /// An idle CPU whose tick is off is balanced for: its `cpu_load[]` is brought up to now (`update_idle_cpu_load`).
    fn account_idle(&mut self, cx: &mut Core, cpu: CpuId);

    /// The load of `cpu` as balancing takes it (`weighted_cpuload`): the weights of what is queued until 3.10, what is
    /// runnable of them on average after.
    fn weighted_load(&self, cpu: CpuId) -> u64;

    /// The decayed load `rq->cpu_load[index]` (until 5.1).
    fn cpu_load(&self, cpu: CpuId, index: u8) -> u64;

    /// The load average of the root queue, sleepers included (`cpu_load()`, 5.5 on).
    fn load_avg(&self, cpu: CpuId) -> u64;

    /// The runnable average of the root queue (`cpu_runnable()`, 5.7 on).
    fn runnable_avg(&self, cpu: CpuId) -> u64;

    /// The utilisation of `cpu` by fair tasks, of its capacity (`cpu_util_cfs()`; `get_cpu_usage()` in 4.1).
    fn util(&self, cpu: CpuId) -> u64;

    /// What higher classes leave of the capacity of `cpu` (`capacity_of`); 1024 is the biggest CPU's whole.
    fn capacity(&self, cpu: CpuId) -> u64;

    /// The load of a task at its CPU's root (`task_h_load`).
    fn task_load(&self, p: TaskId) -> u64;

    /// The utilisation of a task (`task_util_est`).
    fn task_util(&self, p: TaskId) -> u64;
}

//! What balancing and placement know of each CPU's load, and of each task's.

use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Core, TaskId};

/// Load averages as the release keeps them. Those of a CPU are as of its last account: where another CPU looks
/// at them, [`Averages::account`] comes first.
///
/// What a release does not have is not asked for.
pub trait Averages {
    /// Brings the averages of `cpu` up to now as its own ticks would have: those that were passed over. An idle CPU
    /// without a tick keeps what it had.
    fn account(&mut self, cx: &mut Core, cpu: CpuId);

    /// Lets what sleeps on `cpu` decay up to now (`update_blocked_averages`, PELT). Whether anything is left of it.
    fn decay_blocked(&mut self, cx: &mut Core, cpu: CpuId) -> bool;

    /// An idle CPU whose tick is off is balanced for: its `cpu_load[]` is brought up to now (`update_idle_cpu_load`).
    fn account_idle(&mut self, cx: &mut Core, cpu: CpuId);

    /// Brings the loads of `cpu` alone up to now, as [`Averages::account`] does.
    fn account_load(&mut self, cx: &Core, cpu: CpuId);

    /// The load of `cpu` as balancing takes it (`weighted_cpuload`): the weights of what is queued until 3.10, what is
    /// runnable of them on average after.
    fn weighted_load(&self, cpu: CpuId, now: Nanos) -> u64;

    /// The decayed load `rq->cpu_load[index]` (until 5.1).
    fn cpu_load(&self, cpu: CpuId, index: u8) -> u64;

    /// The load average of the root queue, sleepers included (`cpu_load()`, 5.5 on).
    fn load_avg(&self, cpu: CpuId, now: Nanos) -> u64;

    /// The runnable average of the root queue (`cpu_runnable()`, 5.7 on).
    fn runnable_avg(&self, cpu: CpuId, now: Nanos) -> u64;

    /// The utilisation of `cpu` by fair tasks, of its capacity (`cpu_util_cfs()`; `get_cpu_usage()` in 4.1).
    fn util(&self, cpu: CpuId, now: Nanos) -> u64;

    /// Whether fair tasks use more than four fifths of `cpu`; `capacity` is what is left of it, and the whole
    /// (`cpu_overutilized`).
    fn overused(&self, cx: &Core, cpu: CpuId, capacity: (u64, u64)) -> bool;

    /// What higher classes leave of the capacity of `cpu` now (`scale_rt_capacity`); 1024 is the biggest CPU's whole.
    fn capacity(&mut self, cx: &Core, cpu: CpuId) -> u64;

    /// The load of a task at its CPU's root (`task_h_load`).
    fn task_load(&self, p: TaskId, now: Nanos) -> u64;

    /// The utilisation of a task (`task_util_est`).
    fn task_util(&self, p: TaskId, now: Nanos) -> u64;
}

/// Whether a CPU, of which `capacity` is left of `whole`, can give the utilisation `util` within its clamps, the least
/// and the most that is asked for (`util_fits_cpu`): 1 it can, and a fifth is left; 0 it cannot; -1 it can, but is too
/// small for the least.
#[must_use]
pub fn fits(util: u64, (least, most): (u64, u64), capacity: u64, whole: u64) -> i32 {
    let capped = !(whole == 1024 && most == 1024) && most <= whole;
    let fits = util * 1280 < capacity * 1024 || capped;
    let least = least.min(most);
    if fits && util < least && least > whole { -1 } else { i32::from(fits) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifth_must_be_left_and_clamps_count() {
        let any = (0, 1024);
        assert_eq!(fits(369, any, 462, 462), 1);
        assert_eq!(fits(370, any, 462, 462), 0);
        assert_eq!(fits(300, any, 374, 1024), 0, "higher classes leave too little");
        assert_eq!(fits(900, (0, 400), 462, 462), 1, "capped to what the CPU has");
        assert_eq!(fits(900, (0, 462), 462, 462), 1);
        assert_eq!(fits(900, (0, 463), 462, 462), 0);
        assert_eq!(fits(100, (600, 1024), 462, 462), -1, "it wants a faster CPU");
        assert_eq!(fits(100, (600, 1024), 1024, 1024), 1);
        assert_eq!(fits(100, (600, 400), 462, 462), 1, "the most goes before the least");
    }
}

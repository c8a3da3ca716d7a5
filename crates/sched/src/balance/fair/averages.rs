//! The load averages of CPUs and tasks that balancing and wake-up placement read.

use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Core, TaskId};

/// The load averages that a release keeps. A CPU's averages are as of its last update, so call [`Averages::account`]
/// before reading those of another CPU.
///
///
/// Callers only ask for averages that the release has.
pub trait Averages {
    /// Brings the averages of `cpu` up to now by applying the ticks that were skipped. The averages of an idle CPU
    /// without a tick stay unchanged.
    fn account(&mut self, cx: &mut Core, cpu: CpuId);

    /// Decays the load of blocked tasks on `cpu` up to now (`update_blocked_averages`, PELT). Returns whether any is
    /// left.
    fn decay_blocked(&mut self, cx: &mut Core, cpu: CpuId) -> bool;

    /// Brings `cpu_load[]` of an idle tickless CPU up to now, before another CPU balances for it
    /// (`update_idle_cpu_load`).
    fn account_idle(&mut self, cx: &mut Core, cpu: CpuId);

    /// Like [`Averages::account`], but updates only the loads of `cpu`.
    fn account_load(&mut self, cx: &Core, cpu: CpuId);

    /// The load of `cpu` that balancing uses (`weighted_cpuload`): the weights of the queued tasks until 3.10, their
    /// runnable load average after that.
    fn weighted_load(&self, cpu: CpuId, now: Nanos) -> u64;

    /// The decayed load `rq->cpu_load[index]` (until 5.2).
    fn cpu_load(&self, cpu: CpuId, index: u8) -> u64;

    /// The load average of the root runqueue, including blocked tasks (`cpu_load()`, from 5.5 on).
    fn load_avg(&self, cpu: CpuId, now: Nanos) -> u64;

    /// The runnable average of the root runqueue (`cpu_runnable()`, from 5.7 on).
    fn runnable_avg(&self, cpu: CpuId, now: Nanos) -> u64;

    /// The utilisation of `cpu` by fair tasks, in units of capacity (`cpu_util_cfs()`; `get_cpu_usage()` in 4.1).
    fn util(&self, cpu: CpuId, now: Nanos) -> u64;

    /// Whether fair tasks use more than four fifths of `cpu` (`cpu_overutilized`). `capacity` holds what the higher
    /// classes leave of the CPU's capacity, and its original capacity.
    fn overused(&self, cx: &Core, cpu: CpuId, capacity: (u64, u64)) -> bool;

    /// What the higher classes leave of the capacity of `cpu` (`scale_rt_capacity`), where 1024 is the biggest CPU's
    /// full capacity.
    fn capacity(&mut self, cx: &Core, cpu: CpuId) -> u64;

    /// The load of a task, scaled to its CPU's root runqueue (`task_h_load`).
    fn task_load(&self, p: TaskId, now: Nanos) -> u64;

    /// The estimated utilisation of a task (`task_util_est`).
    fn task_util(&self, p: TaskId, now: Nanos) -> u64;
}

/// Whether a CPU can serve the utilisation `util` within the clamps `(least, most)`, which are uclamp_min and
/// uclamp_max (`util_fits_cpu`). `capacity` is what is left of the CPU and `whole` its original capacity. Returns 1 if
/// the utilisation fits with a fifth to spare, 0 if it does not fit, and -1 if it fits but the CPU is too small for
/// `least`.
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

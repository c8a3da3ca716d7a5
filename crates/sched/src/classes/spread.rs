//! What the real-time and the deadline class share when they look for another CPU.

use schedlab_base::CpuId;
use schedlab_sim::{Core, TaskId};

/// Whether a task may run on no more than one CPU.
pub(super) fn pinned(cx: &Core, p: TaskId) -> bool {
    let allowed = &cx.task(p).allowed;
    (0..cx.nr_cpus()).filter(|cpu| cx.online(*cpu) && allowed.contains(*cpu)).nth(1).is_none()
}

/// One of the CPUs that `fits`: the one where the task is; else, of the smallest span around that CPU in which there is
/// one (cache, package, machine), the CPU that asks, or the first (`find_lowest_rq`, `find_later_rq`).
pub(super) fn nearest(cx: &Core, home: CpuId, asking: CpuId, fits: impl Fn(CpuId) -> bool) -> Option<CpuId> {
    if fits(home) {
        return Some(home);
    }
    let place = |cpu: CpuId| &cx.machine().cpus[cpu as usize].place;
    let spans: [&dyn Fn(CpuId) -> bool; 3] =
        [&|c| place(c).llc == place(home).llc, &|c| place(c).package == place(home).package, &|_| true];
    spans.into_iter().find_map(|within| {
        let fits_here = |cpu: &CpuId| within(*cpu) && fits(*cpu);
        Some(asking).filter(fits_here).or_else(|| (0..cx.nr_cpus()).find(fits_here))
    })
}

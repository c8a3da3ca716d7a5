//! Functions that the real-time and the deadline class share for placing tasks on other CPUs.

use schedlab_base::CpuId;
use schedlab_sim::{Core, TaskId};

/// Whether a task can run on at most one online CPU.
pub(super) fn pinned(cx: &Core, p: TaskId) -> bool {
    let allowed = &cx.task(p).allowed;
    (0..cx.nr_cpus()).filter(|cpu| cx.online(*cpu) && allowed.contains(*cpu)).nth(1).is_none()
}

/// A CPU for which `fits` holds: preferably `home`, the CPU of the task. Otherwise it is taken from the smallest span
/// around `home` that has one (cache, package, machine): the CPU `asking` if it is in that span, or else the first
/// (`find_lowest_rq`, `find_later_rq`).
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

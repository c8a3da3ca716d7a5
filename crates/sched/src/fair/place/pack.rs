//! A vendor's packing (`sched_vcpu_pack`): tasks are put onto CPUs that are busy, so that others stay idle.
//!
//! # Idea
//! A virtual CPU that leaves idle costs an exit to the hypervisor and back. A task that fits beside the only one of a
//! busy CPU is therefore put there.
//!
//! # Rule
//! Before its release's own method, `select_task_rq_fair` looks at these CPUs and takes the first that suits. The bits
//! of the tunable say which it looks at:
//!
//! - 8, for a task that is new or becomes another program: the CPU where that happens, if it has room.
//! - 1, for one that is woken: this CPU, if it is idle and has nothing to run.
//! - 2, if its waker is about to sleep: this CPU, if it has room.
//! - 4: the last CPU, if it is busy and has room; this CPU, if it has room; then any other that is busy and has room,
//!   in the order of their numbers.
//!
//! A CPU has room if no more than one fair task is runnable there, delayed ones apart, and nothing else, and if it and
//! the task use less than 70% of it: of utilisation and its estimate, the larger.
//!
//! # Differences from the kernel
//! A CPU has a wake-up pending (`ttwu_pending`) while it is idle, has something to run, and is another one.
//!
//! # Reference
//! No release has it. It is in the 6.18.44 with which one vendor starts virtual machines, and was read from that kernel
//! as it runs.

use super::{Ask, Select};
use schedlab_base::CpuId;
use schedlab_sim::Core;

/// What the bits of the tunable stand for.
const FROM_IDLE: u32 = 1;
const SYNC: u32 = 2;
const WAKES: u32 = 4;
const FORK_EXEC: u32 = 8;
/// How much of a CPU may be used, in per cent.
const MOST: u64 = 70;

impl Select<'_> {
    /// The CPU where packing puts a task, if there is one.
    pub(super) fn packed(&self, cx: &Core, ask: Ask) -> Option<CpuId> {
        let Ask { p, prev, here, wakes, sync, .. } = ask;
        let has = |bit| self.places.vcpu_pack & bit != 0;
        if self.places.vcpu_pack == 0 || cx.task(p).pinned {
            return None;
        }
        let room = |cpu: CpuId| self.has_room(cx, ask, cpu);
        if !wakes {
            return (has(FORK_EXEC) && room(here)).then_some(here);
        }
        let is_busy = |cpu: CpuId| cx.curr(cpu).is_some() || self.rqs.nr_running(cpu) > 0;
        if has(FROM_IDLE) && !is_busy(here) && cx.task(p).allowed.contains(here) || has(SYNC) && sync && room(here) {
            return Some(here);
        }
        if !has(WAKES) {
            return None;
        }
        if is_busy(prev) && room(prev) {
            return Some(prev);
        }
        if room(here) {
            return Some(here);
        }
        (0..self.rqs.cpus).find(|cpu| is_busy(*cpu) && room(*cpu))
    }

    /// Whether a task fits on a CPU (`vcpu_pack_room`).
    fn has_room(&self, cx: &Core, ask: Ask, cpu: CpuId) -> bool {
        let Ask { p, here, .. } = ask;
        let (root, now) = (&self.rqs.queues[cpu as usize], cx.now());
        let runs_there = ask.execs && cx.task(p).cpu == cpu;
        let pending = cpu != here && cx.curr(cpu).is_none() && self.rqs.nr_running(cpu) > 0;
        if !cx.task(p).allowed.contains(cpu)
            || !cx.online(cpu)
            || pending
            || self.rqs.nr_running(cpu) != root.h_nr
            || root.h_nr - root.h_nr_delayed > 1 + u32::from(runs_there)
        {
            return false;
        }
        let (left, whole) = self.capacity_of(cpu);
        let comes = if cx.task(p).cpu == cpu { 0 } else { self.pelt.task_util_est(self.rqs, p, now) };
        (self.pelt.cpu_util_cfs(cpu, whole, now) + comes) * 100 < MOST * left
    }
}

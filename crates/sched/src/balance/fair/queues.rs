//! The fair class's runqueues as the balancer reads and changes them.

use super::{Averages, Balancer, Occupancy};
use crate::balance::numa::locality::Locality;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Core, TaskId};

/// The order in which balancing looks at the tasks of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The most recently enqueued task first (until 4.14).
    Head,
    /// The task that was enqueued, or ran, longest ago first (from 4.15 on).
    Tail,
}

/// A fair class that can be balanced.
pub trait Queues: Averages {
    /// The balancer. `None` on a machine with a single CPU.
    fn balancer(&mut self) -> &mut Option<Box<Balancer>>;

    /// The number of runnable tasks of all classes on `cpu`, including the running one (`rq->nr_running`).
    fn nr_running(&self, cpu: CpuId) -> u32;

    /// The sets of CPUs on which [`Queues::nr_running`] is above 0 and above 1.
    fn occupancy(&self) -> &Occupancy;

    /// The number of runnable fair tasks on `cpu` (`cfs.h_nr_running`; from 6.14 on
    /// `cfs.h_nr_runnable`, without delayed ones).
    fn nr_fair(&self, cpu: CpuId) -> u32;

    /// The number of runnable fair tasks on `cpu` that are SCHED_IDLE or in an idle group.
    fn nr_fair_idle(&self, cpu: CpuId) -> u32;

    /// Writes the queued fair tasks of `cpu` to `out`, in the order in which they are seen from `end`.
    fn list(&self, cpu: CpuId, end: End, out: &mut Vec<TaskId>);

    /// Writes the queued fair tasks of `cpu` to `out` queue by queue, and the number of tasks of each queue to
    /// `lengths`. Within a queue the tasks are in the order in which they would run (2.6.24) or the most recently
    /// enqueued first (2.6.32).
    fn list_by_queue(&self, cpu: CpuId, out: &mut Vec<TaskId>, lengths: &mut Vec<u32>);

    /// Moves a task that was looked at and not taken to the other end of its CPU's list.
    fn pass_over(&mut self, cpu: CpuId, p: TaskId, end: End);

    /// The time up to which a task's run time has been accounted (`exec_start`), in ns.
    fn last_account(&self, p: TaskId) -> Nanos;

    /// Whether a task is a buddy of its queue.
    fn is_buddy(&self, p: TaskId) -> bool;

    /// The weight of a task within its queue.
    fn weight(&self, p: TaskId) -> u64;

    /// The load that the queue of a task contributes at its CPU's root (`cfs_rq->h_load`, until 3.10).
    fn queue_load(&self, p: TaskId) -> u64;

    /// Whether there are groups besides the root.
    fn has_groups(&self) -> bool;

    /// The weights of a task's queue on its CPU and of the same group's queue on CPU `other`.
    fn queue_weights(&self, p: TaskId, other: CpuId) -> (u64, u64);

    /// The priority of the task that runs, or would run first, in the queue of `p`'s group on `cpu`; 140 if there is
    /// none (`cfs_rq_best_prio`, 2.6.24).
    fn best_prio(&self, cx: &Core, p: TaskId, cpu: CpuId) -> i16;

    /// Whether the group of a task is throttled on either CPU.
    fn throttled_on(&self, p: TaskId, from: CpuId, to: CpuId) -> bool;

    /// Whether a task sleeps and is still queued (`sched_delayed`).
    fn is_delayed(&self, p: TaskId) -> bool {
        let _ = p;
        false
    }

    /// Whether a task has had more than its share and would not run at once on another CPU, because its group has
    /// entities queued there (`task_is_ineligible_on_dst_cpu`).
    fn owes_on(&self, p: TaskId, to: CpuId) -> bool {
        let _ = (p, to);
        false
    }

    /// Dequeues a waiting task from `from` in order to migrate it to `to`.
    fn detach(&mut self, cx: &mut Core, p: TaskId, from: CpuId, to: CpuId);

    /// Enqueues a detached task on `to`.
    fn attach(&mut self, cx: &mut Core, p: TaskId, to: CpuId);

    /// Called after the domain of the last-level cache of `cpu` was balanced. Wake-ups then search fewer of its CPUs
    /// the higher their utilisation (`update_idle_cpu_scan`, 6.x).
    fn cache_balanced(&mut self, cx: &Core, cpu: CpuId);

    /// Whether moving a task between nodes improves its NUMA locality. `idle` says that the destination CPU is idle.
    fn locality(&self, p: TaskId, from: CpuId, to: CpuId, idle: bool) -> Locality {
        let _ = (p, from, to, idle);
        Locality::Equal
    }

    /// Whether NUMA balancing assigns preferred nodes to tasks.
    fn prefers_nodes(&self) -> bool {
        false
    }

    /// How many runnable tasks of `cpu` have a preferred node, and how many are on it (`nr_numa_running`,
    /// `nr_preferred_running`).
    fn nr_preferring(&self, cpu: CpuId) -> (u32, u32) {
        let _ = cpu;
        (0, 0)
    }

    /// Distributes the groups' shares over the CPUs of a domain, in releases that do so when balancing
    /// (`update_shares`). The domain is given by its index and its CPUs; `top` says that it has no parent.
    fn spread_shares(&mut self, cx: &mut Core, domain: usize, cpus: &[CpuId], top: bool);
}

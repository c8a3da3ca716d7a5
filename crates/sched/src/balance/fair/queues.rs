//! What balancing sees of the fair class's queues, and what it does to them.

use super::{Averages, Balancer, Occupancy};
use crate::balance::numa::locality::Locality;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Core, TaskId};

/// In which order the tasks of a CPU are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Those first that were queued last (until 4.14).
    Head,
    /// Those first that were queued, or ran, longest ago (4.15 on).
    Tail,
}

/// A fair class whose tasks are balanced.
pub trait Queues: Averages {
    /// The balancer, where the machine has more than one CPU.
    fn balancer(&mut self) -> &mut Option<Box<Balancer>>;

    /// The runnable tasks of all classes on `cpu`, the running one included (`rq->nr_running`).
    fn nr_running(&self, cpu: CpuId) -> u32;

    /// The CPUs on which that is more than 0 and more than 1, 64 a word.
    fn occupancy(&self) -> &Occupancy;

    /// The runnable tasks of the fair class (`cfs.h_nr_running`).
    fn nr_fair(&self, cpu: CpuId) -> u32;

    /// Of them, those that are SCHED_IDLE or in an idle group.
    fn nr_fair_idle(&self, cpu: CpuId) -> u32;

    /// The fair task that runs on `cpu`.
    fn running(&self, cpu: CpuId) -> Option<TaskId>;

    /// The queued tasks of `cpu`, in their order from one end, into `out`.
    fn list(&self, cpu: CpuId, end: End, out: &mut Vec<TaskId>);

    /// The queued tasks of `cpu` by its queues, each in the order in which it runs them (2.6.24), or which were queued
    /// last first (2.6.32), into `out`: how many there are of each.
    fn list_by_queue(&self, cpu: CpuId, out: &mut Vec<TaskId>, lengths: &mut Vec<u32>);

    /// A task that was looked at goes to the other end of its CPU's list.
    fn pass_over(&mut self, cpu: CpuId, p: TaskId, end: End);

    /// Until when the account of a task reaches (`exec_start`).
    fn last_account(&self, p: TaskId) -> Nanos;

    /// Whether a task is a buddy of its queue.
    fn is_buddy(&self, p: TaskId) -> bool;

    /// The weight of a task among those of its queue.
    fn weight(&self, p: TaskId) -> u64;

    /// What the queue that a task is in weighs at its CPU's root (`cfs_rq->h_load`, until 3.10).
    fn queue_load(&self, p: TaskId) -> u64;

    /// The weights of the queue that a task is in on its CPU, and of the same group's queue on another.
    fn queue_weights(&self, p: TaskId, other: CpuId) -> (u64, u64);

    /// The priority of the task that runs, else would run first, in the queue of the group of a task on a CPU; 140:
    /// there is none (`cfs_rq_best_prio`, 2.6.24).
    fn best_prio(&self, cx: &Core, p: TaskId, cpu: CpuId) -> i16;

    /// Whether the group of a task is throttled on one of two CPUs.
    fn throttled_on(&self, p: TaskId, from: CpuId, to: CpuId) -> bool;

    /// Takes a waiting task off `from`, to be put onto `to`.
    fn detach(&mut self, cx: &mut Core, p: TaskId, from: CpuId, to: CpuId);

    /// Puts it there.
    fn attach(&mut self, cx: &mut Core, p: TaskId, to: CpuId);

    /// The domain of the last-level cache of `cpu` is balanced: wake-ups look at fewer of its CPUs the more they are
    /// used (`update_idle_cpu_scan`, 6.x).
    fn cache_balanced(&mut self, cx: &Core, cpu: CpuId);

    /// What NUMA balancing says of moving a task between nodes; `idle`: the destination idles.
    fn locality(&self, p: TaskId, from: CpuId, to: CpuId, idle: bool) -> Locality {
        let _ = (p, from, to, idle);
        Locality::Equal
    }

    /// Whether NUMA balancing gives tasks nodes to prefer.
    fn prefers_nodes(&self) -> bool {
        false
    }

    /// How many runnable tasks of `cpu` have a preferred node, and how many are on it (`nr_numa_running`,
    /// `nr_preferred_running`).
    fn nr_preferring(&self, cpu: CpuId) -> (u32, u32) {
        let _ = cpu;
        (0, 0)
    }

    /// Spreads the groups' shares over the CPUs of a domain, given by its number and its CPUs, where the kernel does
    /// that when it balances (`update_shares`); `top`: there is no domain above.
    fn spread_shares(&mut self, cx: &mut Core, domain: usize, cpus: &[CpuId], top: bool);
}

//! What is scheduled, and where it is queued: entities and queues, as all fair schedulers have them.
//!
//! An entity is a task, or a group on one CPU. A queue is a CPU's root queue, or that of a group on one CPU; its
//! group's entity there stands in the queue of the group above. Both are numbered densely: first the groups' entities
//! (group `g` on CPU `c` of `n`: `g * n + c`), then the tasks; first the root queues (`c`), then the groups' (`n + g *
//! n + c`). So an entity's own queue is its number plus `n`, and without groups an entity's number is its task's.

use super::load::Load;
use super::timeline::Timeline;
use schedlab_base::{CpuId, Nanos};

/// An entity's number.
pub type EntityId = u32;

/// A queue's number.
pub type QueueId = u32;

/// A schedulable entity (`struct sched_entity`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Entity {
    /// Virtual runtime.
    pub vruntime: u64,
    /// Until when its CPU time is accounted, in ns.
    pub exec_start: Nanos,
    /// CPU time, in ns.
    pub sum_exec: Nanos,
    /// CPU time when it was last picked.
    pub prev_sum_exec: Nanos,
    /// Weight.
    pub load: Load,
    /// The queue that it is on, or was last.
    pub queue: QueueId,
    /// How many groups it is in.
    pub depth: u32,
    /// Queued; the running one is.
    pub on_rq: bool,
    /// SCHED_IDLE, or an idle group's.
    pub idle: bool,
    /// CFS: `vruntime` counts from the `min_vruntime` of the queue that it left.
    pub relative: bool,
    /// CFS: the CPU of the task that created it.
    pub forked_on: Option<CpuId>,
    /// EEVDF: virtual deadline.
    pub deadline: u64,
    /// EEVDF: lag when it left its queue.
    pub vlag: i64,
    /// EEVDF: the length of its requests, in ns.
    pub slice: Nanos,
    /// EEVDF: the slice is its own.
    pub custom_slice: bool,
    /// EEVDF: `deadline` counts from `vruntime`.
    pub rel_deadline: bool,
    /// EEVDF: it sleeps, and stays queued until it owes nothing.
    pub delayed: bool,
    /// EEVDF: it runs to parity: its slice is not consumed and nothing has cancelled the protection.
    pub protected: bool,
}

/// A queue (`struct cfs_rq`).
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// The entities that wait.
    pub tree: Timeline,
    /// The entity that runs: a task, or the group whose task does.
    pub curr: Option<EntityId>,
    /// CFS: no less than any has had, monotonic. EEVDF: the virtual time from which the sums count.
    pub min_vruntime: u64,
    /// The sum of the weights, the running one's included.
    pub load: Load,
    /// Entities, the running and the delayed ones included.
    pub nr_queued: u32,
    /// Of them, idle ones.
    pub nr_idle: u32,
    /// Tasks here and below.
    pub h_nr: u32,
    /// Of them, those that are delayed.
    pub h_nr_delayed: u32,
    /// Of them, those that are idle or in an idle group.
    pub h_nr_idle: u32,
    /// The entity to run next, if that is not too unfair.
    pub next: Option<EntityId>,
    /// CFS: the entity that was preempted and is to run again, if that is not too unfair.
    pub last: Option<EntityId>,
    /// CFS: the entity to pass over.
    pub skip: Option<EntityId>,
    /// EEVDF: the sum of (vruntime - min_vruntime) * weight over the tree.
    pub sum: i64,
    /// EEVDF: the sum of weight over the tree.
    pub weight: i64,
    /// Of an idle group.
    pub idle: bool,
    /// Its group has a quota, and its CPU is online.
    pub limited: bool,
    /// It may not run until its group's quota is renewed.
    pub throttled: bool,
    /// How many of it and the groups above are throttled here.
    pub throttle_count: u32,
    /// What is left of the quota that it has taken, in ns.
    pub runtime: i64,
    /// Until when that is good, in ns (before 5.4).
    pub runtime_expires: Nanos,
}

/// How an entity leaves its queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leave {
    /// To sleep.
    pub sleep: bool,
    /// It comes back at once, to the same queue.
    pub save: bool,
    /// It was delayed and is to leave now.
    pub delayed: bool,
    /// It may not be delayed.
    pub special: bool,
}

impl Leave {
    /// To come back at once.
    pub const SAVE: Self = Self { sleep: false, save: true, delayed: false, special: false };
    /// To another queue.
    pub const MOVE: Self = Self { sleep: false, save: false, delayed: false, special: false };
    /// To sleep.
    pub const SLEEP: Self = Self { sleep: true, save: false, delayed: false, special: false };
    /// To sleep, and not in the queue.
    pub const GONE: Self = Self { sleep: true, save: false, delayed: false, special: true };
    /// It slept in the queue and is to leave it.
    pub const DELAYED: Self = Self { sleep: true, save: false, delayed: true, special: false };
}

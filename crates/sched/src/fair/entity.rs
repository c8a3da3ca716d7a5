//! The entities and queues that both fair disciplines use.
//!
//! An entity is a task, or a group on one CPU. A queue is the root queue of a CPU, or the queue of a group on one CPU;
//! the group's entity there is on the queue of the parent group. Both are numbered densely. Entities are first the
//! groups' (group `g` on CPU `c` of `n` is `g * n + c`), then the tasks. Queues are first the root queues (`c`), then
//! the groups' (`n + g * n + c`). The queue of a group's entity is therefore its number plus `n`, and without groups
//! the number of an entity is that of its task.

use super::load::{Load, OwnLoad};
use super::timeline::Timeline;
use schedlab_base::Nanos;

/// The number of an entity.
pub type EntityId = u32;

/// The number of a queue.
pub type QueueId = u32;

/// What is seldom so of an entity.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flags(u8);

impl Flags {
    /// CFS: `vruntime` is relative to the `min_vruntime` of the queue that it left. EEVDF: `deadline` is relative to
    /// `vruntime`.
    pub const RELATIVE: Self = Self(1 << 0);
    /// EEVDF: it has a slice of its own.
    pub const OWN_SLICE: Self = Self(1 << 1);
    /// From 6.18 on: it was picked from a throttled group, and leaves when it returns to user mode.
    pub const MUST_LEAVE: Self = Self(1 << 2);
    /// From 6.18 on: it is on the list of tasks that its throttled group has put aside.
    pub const ASIDE: Self = Self(1 << 3);

    /// Whether `flag` is set.
    #[inline]
    #[must_use]
    pub fn has(self, flag: Self) -> bool {
        self.0 & flag.0 != 0
    }

    /// Sets `flag`, or clears it.
    #[inline]
    pub fn set(&mut self, flag: Self, on: bool) {
        self.0 = if on { self.0 | flag.0 } else { self.0 & !flag.0 };
    }

    /// Clears `flag`, and returns whether it was set.
    #[inline]
    pub fn take(&mut self, flag: Self) -> bool {
        let was = self.has(flag);
        self.set(flag, false);
        was
    }
}

/// A schedulable entity (`struct sched_entity`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Entity {
    /// The virtual runtime, in ns.
    pub vruntime: u64,
    /// The time up to which its CPU time has been accounted, in ns.
    pub exec_start: Nanos,
    /// The CPU time, in ns.
    pub sum_exec: Nanos,
    /// The CPU time when it was last picked, in ns.
    pub prev_sum_exec: Nanos,
    /// The weight.
    pub load: OwnLoad,
    /// The queue that it is on, or was on last.
    pub queue: QueueId,
    /// The number of groups that contain it.
    pub depth: u16,
    /// Whether it is queued. The running entity counts as queued.
    pub on_rq: bool,
    /// Whether it is a SCHED_IDLE task, or belongs to an idle group.
    pub idle: bool,
    /// EEVDF: it is asleep and stays queued until it no longer owes time.
    pub delayed: bool,
    /// The rest of what it is.
    pub flags: Flags,
    /// CFS: one more than the CPU of the task that forked it; 0 if none did. No machine has as many CPUs.
    pub forked_on: u16,
    /// EEVDF: the virtual deadline, in ns.
    pub deadline: u64,
    /// EEVDF: the lag when it left its queue, in ns. While it is running, the deadline of the slice that is protected
    /// (`set_protect_slice`), and from 6.17 on the virtual runtime up to which it is (`union { vlag; vprot; }`).
    pub vlag: i64,
    /// EEVDF: the length of its requests, in ns ([`slice`](Self::slice)).
    pub(super) slice: u32,
}

impl Entity {
    /// The length of its requests, in ns.
    #[inline]
    #[must_use]
    pub fn slice(&self) -> Nanos {
        self.slice.into()
    }

    /// Sets the length of its requests, in ns: at most 4.29 s, as the kernel's base slice is an `unsigned int` too.
    #[inline]
    pub fn set_slice(&mut self, slice: Nanos) {
        self.slice = u32::try_from(slice).unwrap_or(u32::MAX);
    }
}

/// A queue (`struct cfs_rq`).
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// The waiting entities.
    pub tree: Timeline,
    /// The running entity: a task, or the group whose task is running.
    pub curr: Option<EntityId>,
    /// CFS: the monotonic floor of the entities' virtual runtimes. EEVDF: the origin of the sums. In ns.
    pub min_vruntime: u64,
    /// The sum of the weights, including that of the running entity.
    pub load: Load,
    /// The number of entities, including the running and the delayed ones.
    pub nr_queued: u32,
    /// The number of idle entities among them.
    pub nr_idle: u32,
    /// The number of tasks on this queue and below.
    pub h_nr: u32,
    /// The number of delayed tasks among them.
    pub h_nr_delayed: u32,
    /// The number of tasks among them that are idle or in an idle group.
    pub h_nr_idle: u32,
    /// The next buddy: the entity to run next, unless that is too unfair.
    pub next: Option<EntityId>,
    /// CFS: the last buddy, which was preempted and should run again, unless that is too unfair.
    pub last: Option<EntityId>,
    /// CFS: the skip buddy, which is passed over.
    pub skip: Option<EntityId>,
    /// EEVDF: the sum of `(vruntime - min_vruntime) * weight` over the tree.
    pub sum: i64,
    /// EEVDF: the sum of `weight` over the tree.
    pub weight: i64,
    /// Whether it belongs to an idle group.
    pub idle: bool,
    /// Whether bandwidth control applies: the group has a quota, and the CPU is online.
    pub limited: bool,
    /// Whether it may not run until its group's quota is renewed.
    pub throttled: bool,
    /// Whether it is throttled and its group's entity therefore dequeued, which is so until 6.17.
    pub cut_off: bool,
    /// How many queues are throttled among it and those of the groups above it on this CPU.
    pub throttle_count: u32,
    /// The rest of the quota that it has taken, in ns.
    pub runtime: i64,
    /// The time at which that runtime expires, in ns (until 5.3).
    pub runtime_expires: Nanos,
}

/// How an entity leaves its queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct Leave {
    /// It goes to sleep.
    pub sleep: bool,
    /// It is enqueued again at once, on the same queue.
    pub save: bool,
    /// It was delayed and is now dequeued.
    pub delayed: bool,
    /// It must not be delayed.
    pub special: bool,
    /// Its group is throttled: neither it nor a group that becomes empty is delayed.
    pub throttle: bool,
    /// Its averages leave the queue with it.
    pub detach: bool,
}

impl Leave {
    /// It leaves for no reason of these.
    const PLAIN: Self =
        Self { sleep: false, save: false, delayed: false, special: false, throttle: false, detach: false };
    /// It is enqueued again at once.
    pub const SAVE: Self = Self { save: true, ..Self::PLAIN };
    /// It moves to another queue.
    pub const MOVE: Self = Self::PLAIN;
    /// It goes to sleep.
    pub const SLEEP: Self = Self { sleep: true, ..Self::PLAIN };
    /// It goes to sleep and must not stay queued.
    pub const GONE: Self = Self { special: true, ..Self::SLEEP };
    /// It waits until its throttled group has quota again.
    pub const THROTTLE: Self = Self { throttle: true, ..Self::GONE };
    /// It was asleep while still queued and is now dequeued.
    pub const DELAYED: Self = Self { delayed: true, ..Self::SLEEP };
}

#[cfg(test)]
mod tests {
    use super::Entity;

    /// A load may have a million of them.
    #[test]
    fn an_entity_takes_72_bytes() {
        assert_eq!(size_of::<Entity>(), 72);
    }
}

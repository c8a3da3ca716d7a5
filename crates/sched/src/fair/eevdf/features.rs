//! What releases of EEVDF do differently.

/// The `sched_features` that are modelled, and the rules that differ between releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Features {
    pub place_lag: bool,
    pub place_deadline_initial: bool,
    pub place_rel_deadline: bool,
    pub run_to_parity: bool,
    pub preempt_short: bool,
    pub delay_dequeue: bool,
    pub delay_zero: bool,
    pub wakeup_preemption: bool,
    /// Whether a task that wakes becomes the next buddy of its queues.
    pub next_buddy: bool,
    /// Whether a wake-up of a CPU with another last-level cache is handed over to that CPU (`TTWU_QUEUE`), where it
    /// asks to reschedule at once even if preemption is lazy.
    pub ttwu_queue: bool,
    /// Whether a task may request its own slice (6.12 on).
    pub custom_slice: bool,
    /// Whether `sched_yield()` gives up the rest of the request by moving the virtual deadline by a slice, whether the
    /// task is eligible or not (6.6). Later it sets the virtual runtime to the deadline.
    pub yield_moves_deadline: bool,
    /// Whether a SCHED_IDLE task that a wake-up preempts also loses its protection. In 6.6 it keeps it, and the CPU,
    /// until it is no longer eligible.
    pub idle_loses_protection: bool,
    /// Whether the next buddy is preferred as long as it is eligible: one that woke (`next_buddy`), or another task of
    /// the same group when a task sleeps (`PICK_BUDDY`, 6.12 on; in 6.6 as part of `NEXT_BUDDY`).
    pub pick_buddy: bool,
    /// Whether a group's entity keeps its weight while the group's queue is empty (6.12 on).
    pub empty_keeps_weight: bool,
    /// Whether the pick starts again if a group is throttled in the middle of it (6.12 on).
    pub picks_again: bool,
    /// Whether the tree is sorted by virtual runtime and searched for the earliest deadline (6.6). Later it is sorted
    /// by deadline. The difference only affects the choice between equal deadlines.
    pub tree_by_vruntime: bool,
    /// Whether the running entity is protected for the least slice of its queue at most, loses its turn whenever it is
    /// not protected, and a task with a shorter slice that wakes is compared with it as if it were not: the series
    /// "sched/fair: Manage lag and run to parity with different slices" (6.17).
    pub protects_least_slice: bool,
    /// Whether an entity whose weight changes is placed anew, with its lag and with what is left of its request scaled
    /// by the weights (`reweight_entity`): "sched/fair: Fix EEVDF entity placement bug causing scheduling lag" (6.13).
    /// Before, it is moved around the average.
    pub reweight_places: bool,
    /// Whether lag is bounded by the longest slice of the queue and a tick: "sched/fair: Fix lag clamp", in the stable
    /// tree of 6.18. Before, by twice the entity's own slice.
    pub lag_by_longest: bool,
}

impl Features {
    /// Whether a running entity that is protected and eligible keeps its CPU. From 6.17 on it is so even without
    /// `RUN_TO_PARITY`, for the base slice of a machine with one CPU.
    pub(super) fn protects(self) -> bool {
        self.run_to_parity || self.protects_least_slice
    }
}

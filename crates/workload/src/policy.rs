//! Scheduling policies, as a workload names them.

/// A scheduling policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Policy {
    #[default]
    Other,
    Batch,
    Idle,
    Fifo,
    Rr,
    Deadline,
}

impl Policy {
    /// What a workload calls each.
    pub(crate) const WORDS: &'static [(&'static str, Self)] = &[
        ("SCHED_OTHER", Self::Other),
        ("SCHED_BATCH", Self::Batch),
        ("SCHED_IDLE", Self::Idle),
        ("SCHED_RR", Self::Rr),
        ("SCHED_FIFO", Self::Fifo),
        ("SCHED_DEADLINE", Self::Deadline),
    ];

    /// Whether it is a policy of the fair class.
    pub(crate) fn is_fair(self) -> bool {
        matches!(self, Self::Other | Self::Batch | Self::Idle)
    }

    /// What a workload calls it.
    pub(crate) fn name(self) -> &'static str {
        Self::WORDS.iter().find(|(_, policy)| *policy == self).map_or("SCHED_OTHER", |(word, _)| word)
    }
}

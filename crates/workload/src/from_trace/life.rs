//! How a task begins, and where it is.

use super::sequence::TaskIx;
use schedlab_base::{CpuId, Nanos};

/// How far a task's sequence is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// On a CPU, its time counted up to `since`.
    Running { cpu: CpuId, since: Nanos },
    /// Waiting for a CPU.
    Ready,
    /// Blocked since then; not `sure` when it vanished and may have been elsewhere.
    Blocked { since: Nanos, sure: bool },
    /// Ended.
    Dead,
}

/// How a task begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// This long after the start of the trace.
    After(Nanos),
    /// When its parent forks it, `after` the start of the trace.
    Forked { by: TaskIx, after: Nanos },
}

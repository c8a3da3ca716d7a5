//! What becomes of a recording: where it goes, how far it has come, and how it ended.

use crate::load::CommandStatus;
use schedlab_base::{Nanos, Result, Sink};
use serde::{Deserialize, Serialize};
use std::io::Write;

/// Receives a recording and can make it durable.
pub trait Output: Sink {
    /// The result of a completed recording.
    type Done;

    /// Writes out everything received so far.
    ///
    /// # Errors
    /// The first failure so far.
    fn flush(&mut self) -> Result<()>;

    /// Completes the recording.
    ///
    /// # Errors
    /// The first failure since it began.
    fn finish(self) -> Result<Self::Done>;
}

impl<W: Write> Output for schedlab_trace::Writer<W> {
    type Done = schedlab_trace::Summary;

    fn flush(&mut self) -> Result<()> {
        Self::flush(self)
    }

    fn finish(self) -> Result<Self::Done> {
        Self::finish(self)
    }
}

/// The progress of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Events recorded.
    pub events: u64,
    /// Events that the kernel lost.
    pub lost: u64,
}

/// The reason why a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The command ended.
    Command,
    /// The requested duration has passed.
    Duration,
    /// All recorded processes have ended.
    Processes,
    /// A signal arrived (for example Ctrl-C).
    Signal,
}

/// The result of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Events recorded.
    pub events: u64,
    /// Events lost. Each loss is marked in the trace.
    pub lost: u64,
    /// Places in the trace where events were lost.
    pub gaps: u64,
    /// Events that arrived too late for their place. They are recorded at the time reached by then.
    pub late: u64,
    /// Switches from idle tasks that this machine hides, which were restored.
    pub restored: u64,
    /// The time from the start until the recorder was given real-time priority, because it got too little of a CPU to
    /// empty the kernel's buffers.
    pub promoted_ns: Option<Nanos>,
    /// The time from the start until it was given the highest real-time priority, because that did not help.
    pub highest_ns: Option<Nanos>,
    /// The time from the start to the end.
    pub duration_ns: Nanos,
    /// The reason why it ended.
    pub ending: Ending,
    /// How the command ended, if there was one.
    pub command: Option<CommandStatus>,
}

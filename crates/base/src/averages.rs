//! What a task did before a load begins.

/// How much of the time before a load begins a task was runnable and running, out of [`Self::ALWAYS`]; recent time
/// counts most, as in the load averages of the kernel (PELT).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Averages {
    /// On a CPU, or waiting for one.
    pub runnable: u32,
    /// On a CPU; not more than `runnable`.
    pub running: u32,
}

impl Averages {
    /// All of the time.
    pub const ALWAYS: u32 = 1024;
}

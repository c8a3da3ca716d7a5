//! What the checker asks a machine.

use schedlab_base::{CpuId, CpuList, Tid};

/// A CPU at the time of a look. CPUs that are offline, or of which nothing is known, are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuNow {
    /// Its number.
    pub cpu: CpuId,
    /// Its runnable tasks, including the running one. The checker itself does not count.
    pub queued: u32,
}

impl CpuNow {
    /// Whether it has nothing to run.
    #[must_use]
    pub fn is_idle(self) -> bool {
        self.queued == 0
    }

    /// Whether a task waits there while another one runs.
    #[must_use]
    pub fn is_crowded(self) -> bool {
        self.queued >= 2
    }
}

/// A task that waits for a CPU at the time of a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingNow {
    /// Its thread id.
    pub tid: Tid,
    /// Its name.
    pub name: String,
    /// The CPU on whose queue it waits.
    pub cpu: CpuId,
    /// The CPUs that it may run on; `None` if that is not known, and then it counts as allowed everywhere.
    pub allowed: Option<CpuList>,
}

/// A machine that can be looked at.
pub trait Looked {
    /// Why a look fails.
    type Error;

    /// The CPUs, in the order of their numbers. This is asked at every look and must cost little. `between`: a look
    /// between the first and the last of a watch; its answer may rest on the tasks that were seen at the first.
    ///
    /// # Errors
    /// When the machine cannot be looked at.
    fn cpus(&mut self, between: bool) -> Result<&[CpuNow], Self::Error>;

    /// The tasks that wait for a CPU. This is asked only if a CPU is idle and another has two or more runnable tasks.
    ///
    /// # Errors
    /// When the machine cannot be looked at.
    fn waiting(&mut self) -> Result<&[WaitingNow], Self::Error>;
}

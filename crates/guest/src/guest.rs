//! What is to be run: a kernel on a machine.

use crate::kernel::Kernel;
use schedlab_machine::Machine;
use std::time::Duration;

/// What runs a guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accel {
    /// The processor.
    Kvm,
    /// QEMU's translation, each virtual CPU a thread of the host.
    Tcg,
    /// QEMU's translation in one thread. Time is the number of instructions, so that equal runs give equal bytes.
    Counted,
}

impl Accel {
    /// As messages name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "KVM",
            Self::Tcg => "TCG",
            Self::Counted => "TCG with counted instructions",
        }
    }
}

/// How long a guest may take. What others take of the host's CPUs meanwhile does not count, up to nine times the
/// limit: a busy host is no fault of the guest's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Until its first process runs.
    pub boot: Duration,
    /// From there until it is done.
    pub run: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { boot: Duration::from_secs(120), run: Duration::from_secs(600) }
    }
}

/// A guest to be run.
#[derive(Clone, Debug)]
pub struct Guest<'a> {
    /// Its kernel.
    pub kernel: &'a Kernel,
    /// Its machine.
    pub machine: &'a Machine,
    /// Whether time is counted in instructions.
    pub deterministic: bool,
    /// Its memory in MiB, if not what suits the machine.
    pub memory: Option<u64>,
    /// How long it may take.
    pub limits: Limits,
}

impl<'a> Guest<'a> {
    /// A guest with default limits, whose time is the host's.
    #[must_use]
    pub fn new(kernel: &'a Kernel, machine: &'a Machine) -> Self {
        Self { kernel, machine, deterministic: false, memory: None, limits: Limits::default() }
    }

    /// Its memory in MiB.
    pub(crate) fn memory_mib(&self) -> u64 {
        self.memory.unwrap_or(2048 + 16 * self.machine.cpus.len() as u64)
    }
}

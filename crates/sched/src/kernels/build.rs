//! How a kernel was built: what of its configuration a user would ask about.

/// Where the kernel itself can be preempted. The simulation has no kernel mode to preempt: this decides nothing here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preemption {
    /// As it returns to user mode.
    None,
    /// At explicit points, too.
    Voluntary,
}

impl Preemption {
    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Voluntary => "voluntary",
        }
    }
}

/// How a kernel was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    /// Where the kernel itself can be preempted.
    pub preemption: Preemption,
    /// Whether idle CPUs stop their tick (`NO_HZ_IDLE`, from 2.6.21 on).
    pub no_hz: bool,
}

//! The backends: each runs a request and yields the events of a trace.

pub mod again;
pub mod sim;

use schedlab_base::{Error, Result};

/// Where an experiment runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// The simulator: deterministic, one run decides.
    #[default]
    Sim,
}

impl Backend {
    /// Reads `sim`, `live` or `vm:KERNEL`.
    ///
    /// # Errors
    /// When it is none of them, or one that this version does not have.
    pub fn parse(text: &str) -> Result<Self> {
        match text.split(':').next() {
            Some("sim") if text == "sim" => Ok(Self::Sim),
            Some("live") | Some("vm") => Err(Error::input(format!("--on {text}: not in this version"))
                .mend("experiments run on the simulator: --on sim")),
            _ => Err(Error::input(format!("--on {text}: no such backend")).mend("write --on sim")),
        }
    }

    /// Whether equal requests give equal events.
    #[must_use]
    pub fn deterministic(self) -> bool {
        matches!(self, Self::Sim)
    }

    /// As the command line writes it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_to_come_are_told_from_slips() {
        assert_eq!(Backend::parse("sim").unwrap(), Backend::Sim);
        assert!(Backend::parse("vm:linux-6.12").unwrap_err().to_string().contains("not in this version"));
        assert!(Backend::parse("smi").unwrap_err().to_string().contains("no such backend"));
    }
}

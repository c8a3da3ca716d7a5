//! The process that a journal's values belong to.

use schedlab_base::{Error, Result, Tid};
use schedlab_capture::owner::Process;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A process: its id, and its start time, because the id alone may be another's later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// Its id.
    pub pid: Tid,
    /// Its start time in ticks since boot.
    pub start: u64,
    /// Its name.
    pub name: String,
}

impl Owner {
    /// The process of this id.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(pid: Tid) -> Result<Self> {
        let process = Process::of(pid).ok_or_else(|| {
            Error::input(format!("there is no process {pid}")).mend("name the process that the values are set for")
        })?;
        Ok(Self { pid, start: process.start, name: process.name })
    }

    /// Whether the process still runs. The journal's boot must be this one.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        Process::of(self.pid).is_some_and(|process| process.start == self.start)
    }

    /// Whether this process was started by it, directly or by others in between, or is it.
    #[must_use]
    pub fn is_caller(&self) -> bool {
        let mut process = Process::of(std::process::id() as Tid);
        while let Some(here) = process {
            if here.pid == self.pid {
                return here.start == self.start;
            }
            process = (here.parent > 0).then(|| Process::of(here.parent)).flatten();
        }
        false
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_and_what_started_it_are_known() {
        let this = Owner::of(std::process::id() as Tid).unwrap();
        assert!(this.is_alive() && this.is_caller());
        let other = Owner { start: this.start + 1, ..this.clone() };
        assert!(!other.is_alive() && !other.is_caller(), "the id alone is not enough");
        let parent = Owner::of(Process::of(this.pid).unwrap().parent).unwrap();
        assert!(parent.is_caller());
        assert!(Owner::of(Tid::MAX).unwrap_err().to_string().contains("there is no process"));
    }
}

//! CPUs that are taken offline and brought back during a run. Only a guest's machine is treated so.

use schedlab_base::{Error, Nanos, Result};
use schedlab_sim::program::Hotplug;
use std::fs;

/// The changes of a load, in the order of their times.
pub(crate) struct Switches {
    /// When the run began, once it has.
    begin: Option<Nanos>,
    left: Vec<Hotplug>,
}

impl Switches {
    pub(crate) fn new(all: &[Hotplug]) -> Self {
        let mut left = all.to_vec();
        // The next one is the last of the list. Those of the same time keep their order.
        left.sort_by_key(|change| change.at);
        left.reverse();
        Self { begin: None, left }
    }

    /// The run begins.
    pub(crate) fn begin(&mut self, now: Nanos) {
        self.begin = Some(now);
    }

    /// When the next change is due.
    pub(crate) fn next(&self) -> Nanos {
        self.begin.zip(self.left.last()).map_or(Nanos::MAX, |(begin, change)| begin.saturating_add(change.at))
    }

    /// Makes the changes that are due.
    pub(crate) fn due(&mut self, now: Nanos) -> Result<()> {
        while self.next() <= now
            && let Some(change) = self.left.pop()
        {
            let path = format!("/sys/devices/system/cpu/cpu{}/online", change.cpu);
            let verb = if change.online { "brought online" } else { "taken offline" };
            fs::write(path, if change.online { "1" } else { "0" }).map_err(|e| {
                let what = format!("at {} us CPU {} cannot be {verb}: {e}", change.at / 1000, change.cpu);
                Error::not_permitted(what).key("x-hotplug").mend("a kernel may keep its first CPU online")
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_due_in_the_order_of_their_times() {
        let change = |at, cpu, online| Hotplug { at, cpu, online };
        let mut switches = Switches::new(&[change(300, 1, true), change(100, 4_000_000, false)]);
        assert_eq!(switches.next(), Nanos::MAX, "the run has not begun");
        switches.begin(1000);
        assert_eq!(switches.next(), 1100);
        assert!(switches.due(1099).is_ok());
        let error = switches.due(1100).unwrap_err().to_string();
        assert!(error.starts_with("x-hotplug: at 0 us CPU 4000000 cannot be taken offline:"), "{error}");
        assert_eq!(switches.next(), 1300);
    }
}

//! The guest that stays from one run to the next.

use schedlab_base::Result;
use schedlab_guest::{Guest, Job, Ran, Running, start};
use schedlab_machine::Machine;
use std::fmt;
use std::sync::{Arc, Mutex};

/// What cannot be changed while a guest runs.
#[derive(Clone, Debug, PartialEq)]
struct Shape {
    machine: Machine,
    memory: Option<u64>,
    set: Vec<(String, String)>,
}

/// At most one guest that waits for another run.
#[derive(Clone, Default)]
pub(super) struct Kept(Arc<Mutex<Option<(Shape, Running)>>>);

impl Kept {
    /// Runs a job in the guest that waits, if it is like this one, and otherwise in a new one. The guest waits again
    /// afterwards, unless something speaks against that.
    pub(super) fn run(&self, guest: &Guest<'_>, job: &Job) -> Result<Ran> {
        let shape = Shape { machine: guest.machine.clone(), memory: guest.memory, set: job.set.clone() };
        // Another guest ends here, before the new one takes its memory.
        let fit = self.swap(None).filter(|(kept, _)| *kept == shape).map(|(_, running)| running);
        let alive = fit.and_then(|mut running| running.is_alive().then_some(running));
        let (ran, stays) = match alive {
            Some(running) => running.run(job, guest.limits),
            None => start(guest, job, &mut |_| {}),
        }?;
        drop(self.swap(stays.map(|running| (shape, running))));
        Ok(ran)
    }

    fn swap(&self, other: Option<(Shape, Running)>) -> Option<(Shape, Running)> {
        std::mem::replace(&mut *self.0.lock().expect("no thread panics while it holds the lock"), other)
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Kept")
    }
}

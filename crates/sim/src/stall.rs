//! Explains why no task can go on: which task waits for what.

use crate::process::{Process, Wait};
use crate::program::Load;
use crate::resources::Resources;
use crate::task::TaskId;
use schedlab_base::Error;
use std::fmt::Write as _;

/// Returns the cycle of lock owners that closes when `p` waits for its lock, if there is one.
#[inline]
pub(crate) fn cycle(p: TaskId, processes: &[Process<'_>], resources: &Resources) -> Option<Vec<TaskId>> {
    let owner = |waiter: TaskId| match processes[waiter as usize].wait {
        Wait::Mutex(m) | Wait::SpinLock(m) => resources.mutexes[m as usize].owner,
        _ => None,
    };
    // Most tasks wait for no lock, and this allocates nothing for them.
    let mut at = owner(p)?;
    let mut chain = vec![p];
    while at != p {
        if chain.contains(&at) {
            return None;
        }
        chain.push(at);
        at = owner(at)?;
    }
    Some(chain)
}

/// Describes which task waits for what, and which task holds it.
pub(crate) fn describe(waiting: &[TaskId], processes: &[Process<'_>], resources: &Resources, load: &Load) -> String {
    const SHOWN: usize = 8;
    let mut text = String::new();
    for &p in waiting.iter().take(SHOWN) {
        let process = &processes[p as usize];
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{separator}{} waits for {}", process.name(), process.wait.describe(load));
        if let Wait::Mutex(m) | Wait::SpinLock(m) = process.wait
            && let Some(owner) = resources.mutexes[m as usize].owner
        {
            let _ = write!(text, " (held by {})", processes[owner as usize].name());
        }
        if let Wait::Barrier(b) | Wait::SpinBarrier(b) = process.wait {
            let barrier = &resources.barriers[b as usize];
            let here = barrier.waiters.len() + barrier.spinners.len();
            let _ = write!(text, " ({here} of {} came)", barrier.participants);
        }
    }
    if waiting.len() > SHOWN {
        let _ = write!(text, " and {} more", waiting.len() - SHOWN);
    }
    text
}

pub(crate) fn deadlock(now: u64, description: &str) -> Error {
    Error::input(format!("the workload deadlocks {:.6} s in: {description}", now as f64 / 1e9))
        .mend("let every task release what others wait for")
}

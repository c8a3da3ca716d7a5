//! What records on the kernel that runs these tests: a binary of its own, so that nothing else loads the machine.

mod perf_agreement;
mod perf_sched;
mod record;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Recordings come one after the other: the tests look for what others might leave behind.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

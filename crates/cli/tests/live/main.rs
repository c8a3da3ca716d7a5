//! Tests that record and run workloads on the running kernel, or on others in guests. They have a binary of their own,
//! so that no other test loads the machine.

mod battery;
mod check;
mod exec;
mod guest;
mod knobs;
mod perf_agreement;
mod perf_sched;
mod record;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Serialises the recordings, because the tests look for what other recordings might leave behind.
fn one_at_a_time() -> MutexGuard<'static, ()> {
    static LOCK: Mutex<()> = Mutex::new(());
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

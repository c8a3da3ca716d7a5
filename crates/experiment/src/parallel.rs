//! Work that is done by several threads. Its results do not depend on how many there are.

use schedlab_base::Result;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Does all of the work by several threads, and gives its results in order.
///
/// # Errors
/// The first, in the order of the work.
pub(crate) fn on_threads<W: Copy + Sync, T: Send>(
    work: &[W],
    threads: usize,
    run: &(dyn Fn(W) -> Result<T> + Sync),
    done: &(dyn Fn() + Sync),
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let results: Mutex<Vec<Option<Result<T>>>> = Mutex::new(work.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, work.len().max(1)) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = work.get(index) else { break };
                    let result = run(*one);
                    if result.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    results.lock().expect("no thread panics while it holds the lock")[index] = Some(result);
                    done();
                }
            });
        }
    });
    // Work is taken in order: before the first that failed there is no gap.
    results.into_inner().expect("all threads are done").into_iter().flatten().collect()
}

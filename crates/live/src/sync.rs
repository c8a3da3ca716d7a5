//! Mutexes, conditions, barriers and semaphores of futexes, in memory that processes share.
//!
//! They mean what the engine means by them: a mutex that is released is free for whoever comes first, a signal is lost
//! when no task waits, a post is not.

use crate::region::{BarrierWords, MOST_QUESTIONS, Questions, SemWords, Waiting};
use crate::sys;
use schedlab_base::{Nanos, Tid};
use std::sync::atomic::{AtomicU32, Ordering};

/// A mutex is free, held, or held while others may wait.
const FREE: u32 = 0;
const HELD: u32 = 1;
const WANTED: u32 = 2;
/// How often a spinning task looks before it asks what time it is.
const LOOKS: u32 = 256;

/// Burns CPU time until `done`; after some rounds each time, `between` is called.
fn spin(done: impl Fn() -> bool, mut between: impl FnMut() -> bool) {
    loop {
        for _ in 0..LOOKS {
            if done() {
                return;
            }
            std::hint::spin_loop();
        }
        if between() {
            return;
        }
    }
}

/// Takes a mutex; sleeps while another task holds it.
pub(crate) fn lock(mutex: &AtomicU32) {
    if mutex.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_err() {
        lock_wanted(mutex);
    }
}

/// The same where others may wait for it, as it is behind a condition.
pub(crate) fn lock_wanted(mutex: &AtomicU32) {
    while mutex.swap(WANTED, Ordering::Acquire) != FREE {
        sys::futex_wait(mutex, WANTED, None);
    }
}

/// Takes a mutex; burns CPU time while another task holds it. `between` is called now and then.
pub(crate) fn spin_lock(mutex: &AtomicU32, mut between: impl FnMut()) {
    let take = || mutex.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok();
    spin(
        || mutex.load(Ordering::Relaxed) == FREE && take(),
        || {
            between();
            false
        },
    );
}

/// Releases a mutex, and wakes a task that sleeps for it.
pub(crate) fn unlock(mutex: &AtomicU32) {
    if mutex.swap(FREE, Ordering::Release) == WANTED {
        sys::futex_wake(mutex, 1);
    }
}

/// Takes a mutex whose holder inherits the priority of its waiters.
pub(crate) fn lock_pi(mutex: &AtomicU32, tid: Tid) {
    let free = mutex.compare_exchange(FREE, tid as u32, Ordering::Acquire, Ordering::Relaxed).is_ok();
    if !free && mutex.load(Ordering::Relaxed) & libc::FUTEX_TID_MASK != tid as u32 {
        sys::futex_lock_pi(mutex);
    }
}

/// Releases a mutex of [`lock_pi`].
pub(crate) fn unlock_pi(mutex: &AtomicU32, tid: Tid) {
    if mutex.compare_exchange(tid as u32, FREE, Ordering::Release, Ordering::Relaxed).is_err() {
        sys::futex_unlock_pi(mutex);
    }
}

/// Sleeps until it is signalled; `before` is called when a signal would no longer be lost.
pub(crate) fn wait(cond: &Waiting, before: impl FnOnce()) {
    let sequence = cond.sequence.load(Ordering::Acquire);
    cond.waiters.fetch_add(1, Ordering::AcqRel);
    before();
    while cond.sequence.load(Ordering::Acquire) == sequence {
        sys::futex_wait(&cond.sequence, sequence, None);
    }
    cond.waiters.fetch_sub(1, Ordering::AcqRel);
}

/// Wakes up to `most` tasks that wait; without effect if none does.
pub(crate) fn signal(cond: &Waiting, most: u32) {
    if cond.waiters.load(Ordering::Acquire) > 0 {
        cond.sequence.fetch_add(1, Ordering::AcqRel);
        sys::futex_wake(&cond.sequence, most);
    }
}

/// How a task waits at a barrier.
pub(crate) enum AtBarrier<'a> {
    /// Asleep.
    Sleep,
    /// Awake, until the function says that it is time to sleep.
    Spin(&'a mut dyn FnMut() -> bool),
}

/// Waits until `participants` tasks have arrived.
pub(crate) fn barrier(barrier: &BarrierWords, participants: u32, how: AtBarrier<'_>) {
    let round = barrier.round.load(Ordering::Acquire);
    if barrier.arrived.fetch_add(1, Ordering::AcqRel) + 1 >= participants {
        barrier.arrived.store(0, Ordering::Release);
        barrier.round.fetch_add(1, Ordering::AcqRel);
        sys::futex_wake(&barrier.round, u32::MAX);
        return;
    }
    let passed = || barrier.round.load(Ordering::Acquire) != round;
    if let AtBarrier::Spin(tired) = how {
        spin(passed, tired);
    }
    while !passed() {
        sys::futex_wait(&barrier.round, round, None);
    }
}

/// Increments a semaphore, and wakes a task that sleeps for it.
pub(crate) fn post(sem: &SemWords) {
    sem.count.fetch_add(1, Ordering::SeqCst);
    if sem.waiters.load(Ordering::SeqCst) > 0 {
        sys::futex_wake(&sem.count, 1);
    }
}

/// Decrements a semaphore; `false` if it is 0.
pub(crate) fn take(sem: &SemWords) -> bool {
    sem.count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok()
}

/// Decrements a semaphore; sleeps while it is 0.
pub(crate) fn wait_sem(sem: &SemWords) {
    if take(sem) {
        return;
    }
    sem.waiters.fetch_add(1, Ordering::SeqCst);
    while !take(sem) {
        sys::futex_wait(&sem.count, 0, None);
    }
    sem.waiters.fetch_sub(1, Ordering::SeqCst);
}

/// Asks a question on behalf of the task with this slot; `false` if too many wait already.
pub(crate) fn ask(questions: &Questions, slot: usize) -> bool {
    lock(&questions.mutex);
    let (asked, taken) = (questions.asked.load(Ordering::Relaxed), questions.taken.load(Ordering::Relaxed));
    let fits = asked - taken < MOST_QUESTIONS;
    if fits {
        questions.askers[(asked % MOST_QUESTIONS) as usize].store(slot as u32, Ordering::Relaxed);
        questions.asked.store(asked + 1, Ordering::Relaxed);
    }
    unlock(&questions.mutex);
    fits
}

/// Takes the oldest question: the slot of the task that asked it.
pub(crate) fn take_question(questions: &Questions) -> Option<usize> {
    lock(&questions.mutex);
    let (asked, taken) = (questions.asked.load(Ordering::Relaxed), questions.taken.load(Ordering::Relaxed));
    let first = (taken < asked).then(|| {
        questions.taken.store(taken + 1, Ordering::Relaxed);
        questions.askers[(taken % MOST_QUESTIONS) as usize].load(Ordering::Relaxed) as usize
    });
    unlock(&questions.mutex);
    first
}

/// Sleeps until the word is not 0.
pub(crate) fn wait_until_set(word: &AtomicU32, until: Option<Nanos>) -> bool {
    loop {
        if word.load(Ordering::Acquire) != 0 {
            return true;
        }
        if until.is_some_and(|until| sys::monotonic() >= until) {
            return false;
        }
        sys::futex_wait(word, 0, until);
    }
}

/// Sets the word, and wakes all that sleep on it.
pub(crate) fn set(word: &AtomicU32) {
    word.store(1, Ordering::Release);
    sys::futex_wake(word, u32::MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::UnsafeCell;
    use std::thread;

    fn waiting() -> Waiting {
        Waiting { sequence: AtomicU32::new(0), waiters: AtomicU32::new(0) }
    }

    /// A number that only the holder of a mutex changes.
    struct Guarded(UnsafeCell<u64>);
    // SAFETY: the tests change it under a mutex.
    #[allow(unsafe_code)]
    unsafe impl Sync for Guarded {}

    #[test]
    fn one_at_a_time_holds_a_mutex_however_it_is_taken() {
        let (mutex, sum) = (AtomicU32::new(0), Guarded(UnsafeCell::new(0)));
        let sum = &sum;
        thread::scope(|scope| {
            for n in 0..4 {
                let mutex = &mutex;
                scope.spawn(move || {
                    for _ in 0..5000 {
                        if n % 2 == 0 {
                            lock(mutex)
                        } else {
                            spin_lock(mutex, thread::yield_now)
                        }
                        // SAFETY: this thread holds the mutex.
                        #[allow(unsafe_code)]
                        unsafe {
                            *sum.0.get() += 1;
                        }
                        unlock(mutex);
                    }
                });
            }
        });
        // SAFETY: the threads have ended.
        #[allow(unsafe_code)]
        let sum = unsafe { *sum.0.get() };
        assert_eq!((sum, mutex.load(Ordering::Relaxed)), (20_000, FREE));
    }

    #[test]
    fn nobody_passes_a_barrier_before_all_have_arrived() {
        let words = BarrierWords { arrived: AtomicU32::new(0), round: AtomicU32::new(0) };
        let arrivals = AtomicU32::new(0);
        thread::scope(|scope| {
            for n in 0..3 {
                let (words, arrivals) = (&words, &arrivals);
                scope.spawn(move || {
                    for round in 1..=200 {
                        arrivals.fetch_add(1, Ordering::SeqCst);
                        let mut tired = || true;
                        let how = if n == 0 { AtBarrier::Spin(&mut tired) } else { AtBarrier::Sleep };
                        barrier(words, 3, how);
                        assert!(arrivals.load(Ordering::SeqCst) >= 3 * round);
                    }
                });
            }
        });
    }

    #[test]
    fn posts_are_remembered_and_signals_are_not() {
        let sem = SemWords { count: AtomicU32::new(0), waiters: AtomicU32::new(0) };
        post(&sem);
        post(&sem);
        wait_sem(&sem);
        wait_sem(&sem);
        let cond = waiting();
        signal(&cond, 1);
        let woken = AtomicU32::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    wait(&cond, || {});
                    woken.fetch_add(1, Ordering::SeqCst);
                });
            }
            scope.spawn(|| post(&sem));
            wait_sem(&sem);
            thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(woken.load(Ordering::SeqCst), 0, "the signal before was lost");
            while woken.load(Ordering::SeqCst) < 2 {
                signal(&cond, u32::MAX);
                thread::yield_now();
            }
        });
    }
}

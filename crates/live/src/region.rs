//! The memory that all processes of a run share: its state, the words of its resources, and what each task reports.
#![allow(unsafe_code)]

use crate::sys;
use schedlab_base::{Error, ErrorKind, Nanos, Result};
use schedlab_sim::program::Load;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, AtomicU64, Ordering};

/// The most bytes of an error's text.
const TEXT: usize = 1000;
/// How many forked tasks report figures of their own.
pub(crate) const FORKED: usize = 1 << 17;
/// Classes of a burst's error, by the power of two of its nanoseconds.
pub(crate) const CLASSES: usize = 32;

/// The state of the run.
#[repr(C)]
pub(crate) struct Control {
    /// How many have got ready: tasks, or the launchers where those start the tasks.
    pub(crate) ready: AtomicU32,
    /// 1 from the moment when the time of the start is known.
    pub(crate) armed: AtomicU32,
    /// When the run starts, by the monotonic clock.
    pub(crate) start: AtomicU64,
    /// When it ends.
    pub(crate) end: AtomicU64,
    /// How many tasks were forked by others.
    pub(crate) forked: AtomicU32,
    /// 0: all is well; 1: an error is being written; 2: it can be read.
    failed: AtomicU32,
    kind: AtomicU32,
    length: AtomicU32,
    text: [AtomicU8; TEXT],
}

/// A condition or a suspension point.
#[repr(C)]
pub(crate) struct Waiting {
    pub(crate) sequence: AtomicU32,
    pub(crate) waiters: AtomicU32,
}

/// A barrier.
#[repr(C)]
pub(crate) struct BarrierWords {
    pub(crate) arrived: AtomicU32,
    pub(crate) round: AtomicU32,
}

/// A semaphore.
#[repr(C)]
pub(crate) struct SemWords {
    pub(crate) count: AtomicU32,
    pub(crate) waiters: AtomicU32,
}

/// So many questions at a semaphore may wait until they are taken.
pub(crate) const MOST_QUESTIONS: u64 = 1 << 12;

/// The questions at a semaphore that nobody has taken yet: the slots of the tasks that asked, first come, first served.
#[repr(C)]
pub(crate) struct Questions {
    pub(crate) mutex: AtomicU32,
    /// How many were asked, and how many taken.
    pub(crate) asked: AtomicU64,
    pub(crate) taken: AtomicU64,
    pub(crate) askers: [AtomicU32; MOST_QUESTIONS as usize],
}

/// What a task reports. Only the task writes it.
#[repr(C)]
pub(crate) struct Slot {
    /// The task sleeps on this until it is 1.
    pub(crate) go: AtomicU32,
    /// Its thread id; 0 before it exists.
    pub(crate) tid: AtomicI32,
    /// Which template it was made from; a task of the load has `u32::MAX`.
    pub(crate) template: AtomicU32,
    /// The how-manieth task of its template it is.
    pub(crate) number: AtomicU32,
    /// Whether it has ended.
    pub(crate) ended: AtomicU32,
    /// Its CPU time when it began, and when it ended or was ended.
    pub(crate) cpu_before: AtomicU64,
    pub(crate) cpu_after: AtomicU64,
    /// Bursts, and the CPU time that they were to take.
    pub(crate) bursts: AtomicU64,
    pub(crate) wanted: AtomicU64,
    /// Those that were timed, and the sum and the largest of their errors.
    pub(crate) timed: AtomicU64,
    pub(crate) error_sum: AtomicU64,
    pub(crate) error_max: AtomicU64,
    pub(crate) errors: [AtomicU32; CLASSES],
    /// Waits for a timer, and those of them that came too late to sleep.
    pub(crate) periods: AtomicU64,
    pub(crate) missed: AtomicU64,
    /// What a task with a computation has computed, in its units, and the time from the beginnings of its bursts.
    pub(crate) computed: AtomicU64,
    pub(crate) computing_ns: AtomicU64,
    /// How many of its results were checked, and the largest error of one, as the bits of a number.
    pub(crate) checked: AtomicU64,
    pub(crate) worst: AtomicU64,
    /// The answers to its questions, which others give.
    pub(crate) answers: SemWords,
}

/// Adds to a counter that only this thread writes.
pub(crate) fn add(counter: &AtomicU64, amount: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(amount), Ordering::Relaxed);
}

/// Where each array begins.
#[derive(Clone, Copy, Debug, Default)]
struct Array {
    at: usize,
    count: usize,
}

/// The shared memory. All its words are atomic, so references to it may be used by several processes.
pub(crate) struct Region {
    start: *mut u8,
    bytes: usize,
    mutexes: Array,
    conds: Array,
    suspensions: Array,
    barriers: Array,
    sems: Array,
    questions: Array,
    timers: Array,
    forks: Array,
    jobs: Array,
    slots: Array,
    /// The semaphores that have questions.
    asked: Vec<u32>,
}

// SAFETY: the region is mapped until it is dropped, and every word of it is atomic.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

/// Types that consist of atomic words alone, for which zeros are valid.
trait Words {}
impl Words for AtomicU32 {}
impl Words for AtomicU64 {}
impl Words for Waiting {}
impl Words for BarrierWords {}
impl Words for SemWords {}
impl Words for Questions {}
impl Words for Slot {}

impl Region {
    /// Maps what the load needs.
    pub(crate) fn new(load: &Load) -> Result<Self> {
        let mut end = size_of::<Control>();
        let mut array = |count: usize, size: usize| {
            let at = end.next_multiple_of(64);
            end = at + count * size;
            Array { at, count }
        };
        let forked = if load.templates.is_empty() { 0 } else { FORKED };
        let asked = load.asked();
        let mut region = Self {
            start: std::ptr::null_mut(),
            bytes: 0,
            mutexes: array(load.mutexes.len(), size_of::<AtomicU32>()),
            conds: array(load.conds.len(), size_of::<Waiting>()),
            suspensions: array(load.suspensions.len(), size_of::<Waiting>()),
            barriers: array(load.barriers.len(), size_of::<BarrierWords>()),
            sems: array(load.sems.len(), size_of::<SemWords>()),
            questions: array(asked.len(), size_of::<Questions>()),
            timers: array(load.timers.len(), size_of::<AtomicU64>()),
            forks: array(load.templates.len(), size_of::<AtomicU32>()),
            jobs: array(load.jobs.len(), size_of::<AtomicU64>()),
            slots: array(load.tasks.len() + forked, size_of::<Slot>()),
            asked,
        };
        region.bytes = end;
        region.start = sys::map(end, true).map_err(|e| Error::system("cannot map the memory of the run", &e))?;
        Ok(region)
    }

    pub(crate) fn control(&self) -> &Control {
        // SAFETY: the region begins with it, the mapping is page-aligned, and zeros are valid atomics.
        unsafe { &*self.start.cast() }
    }

    fn array<T: Words>(&self, array: Array) -> &[T] {
        // SAFETY: `new` laid the array out inside the mapping, aligned to 64 bytes, and zeros are valid atomics.
        unsafe { std::slice::from_raw_parts(self.start.add(array.at).cast(), array.count) }
    }

    pub(crate) fn mutexes(&self) -> &[AtomicU32] {
        self.array(self.mutexes)
    }

    pub(crate) fn conds(&self) -> &[Waiting] {
        self.array(self.conds)
    }

    pub(crate) fn suspensions(&self) -> &[Waiting] {
        self.array(self.suspensions)
    }

    pub(crate) fn barriers(&self) -> &[BarrierWords] {
        self.array(self.barriers)
    }

    pub(crate) fn sems(&self) -> &[SemWords] {
        self.array(self.sems)
    }

    /// The questions at a semaphore; none if nobody asks there.
    pub(crate) fn questions(&self, sem: u32) -> Option<&Questions> {
        let at = self.asked.binary_search(&sem).ok()?;
        Some(&self.array(self.questions)[at])
    }

    /// The next expiry of each timer that tasks share; 0 before its first use.
    pub(crate) fn timers(&self) -> &[AtomicU64] {
        self.array(self.timers)
    }

    /// How often each template was forked.
    pub(crate) fn forks(&self) -> &[AtomicU32] {
        self.array(self.forks)
    }

    /// How many jobs of each list are taken.
    pub(crate) fn jobs(&self) -> &[AtomicU64] {
        self.array(self.jobs)
    }

    /// The tasks of the load, then those that were forked.
    pub(crate) fn slots(&self) -> &[Slot] {
        self.array(self.slots)
    }

    /// Notes the first error of the run; later ones are its consequences.
    pub(crate) fn fail(&self, error: &Error) {
        let control = self.control();
        if control.failed.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return;
        }
        let text = error.to_string();
        let end = (0..=text.len().min(TEXT)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        control.text.iter().zip(&text.as_bytes()[..end]).for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
        control.length.store(end as u32, Ordering::Relaxed);
        let kind = match error.kind() {
            ErrorKind::Input | ErrorKind::Absent => 0,
            ErrorKind::NotPermitted => 1,
            ErrorKind::System => 2,
        };
        control.kind.store(kind, Ordering::Relaxed);
        control.failed.store(2, Ordering::Release);
    }

    /// The error that ended the run, if one did.
    pub(crate) fn failure(&self) -> Option<Error> {
        let control = self.control();
        if control.failed.load(Ordering::Acquire) != 2 {
            return None;
        }
        let length = control.length.load(Ordering::Relaxed) as usize;
        let bytes: Vec<u8> = control.text[..length].iter().map(|byte| byte.load(Ordering::Relaxed)).collect();
        let kind = match control.kind.load(Ordering::Relaxed) {
            0 => ErrorKind::Input,
            1 => ErrorKind::NotPermitted,
            _ => ErrorKind::System,
        };
        Some(Error::new(kind, String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// When the run starts and ends, once that is known.
    pub(crate) fn span(&self) -> (Nanos, Nanos) {
        let control = self.control();
        (control.start.load(Ordering::Acquire), control.end.load(Ordering::Acquire))
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: references into the region borrow it, so that none is left.
        unsafe { sys::unmap(self.start, self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load() -> Load {
        Load {
            mutexes: vec!["m".into(); 3],
            sems: vec!["s".into()],
            timers: vec![("t".into(), false)],
            ..Load::default()
        }
    }

    #[test]
    fn each_resource_has_words_of_its_own() {
        let region = Region::new(&load()).unwrap();
        region.mutexes()[2].store(7, Ordering::Relaxed);
        region.timers()[0].store(9, Ordering::Relaxed);
        region.sems()[0].count.store(1, Ordering::Relaxed);
        assert_eq!(region.mutexes().iter().map(|m| m.load(Ordering::Relaxed)).collect::<Vec<_>>(), [0, 0, 7]);
        assert!(region.conds().is_empty() && region.slots().is_empty() && region.failure().is_none());
    }

    #[test]
    fn the_first_error_stays() {
        let region = Region::new(&load()).unwrap();
        region.fail(&Error::not_permitted("no"));
        region.fail(&Error::input("later"));
        let error = region.failure().unwrap();
        assert_eq!((error.to_string().as_str(), error.kind()), ("no", ErrorKind::NotPermitted));
    }
}

//! A delay as the measures take it: what is noted of it is worked out once, for the task and for the CPU.

use schedlab_base::Nanos;
use schedlab_track::Delay;
use std::num::NonZeroU64;

/// The kinds of latency, as bits.
pub(crate) const WAKEUP: usize = 1;
pub(crate) const WAKING: usize = 2;
pub(crate) const DELAY: usize = 4;
/// The number of sets of kinds.
pub(crate) const SETS: usize = 8;

/// A longer duration, of 73 years, is counted as this one.
const LONGEST: Nanos = u64::MAX / SETS as u64;

/// A duration, shifted left, and in the lowest bits the kinds as which it counts, of which there is one at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Note(NonZeroU64);

impl Note {
    #[inline]
    fn new(kinds: usize, duration: Nanos) -> Self {
        Self(NonZeroU64::new(kinds as u64).expect("there is one") | (duration.min(LONGEST) * SETS as u64))
    }

    /// The set of its kinds.
    #[inline]
    pub(crate) fn set(self) -> usize {
        (self.0.get() % SETS as u64) as usize
    }

    /// The duration.
    #[inline]
    pub(crate) fn duration(self) -> Nanos {
        self.0.get() / SETS as u64
    }
}

/// A delay as it is noted.
#[derive(Debug)]
pub(crate) struct Noted {
    pub(crate) wait: Nanos,
    pub(crate) end: Nanos,
    /// The delay itself, with all that count the same.
    pub(crate) whole: Note,
    /// Latencies that differ from it.
    pub(crate) others: [Option<Note>; 2],
}

impl From<&Delay> for Noted {
    #[inline]
    fn from(&Delay { wait, wakeup, waking, end }: &Delay) -> Self {
        let (mut kinds, mut others) = (DELAY, [None; 2]);
        for ((kind, latency), other) in [(WAKEUP, wakeup), (WAKING, waking)].into_iter().zip(&mut others) {
            match latency {
                Some(latency) if latency == wait => kinds |= kind,
                Some(latency) => *other = Some(Note::new(kind, latency)),
                None => {}
            }
        }
        Self { wait, end, whole: Note::new(kinds, wait), others }
    }
}

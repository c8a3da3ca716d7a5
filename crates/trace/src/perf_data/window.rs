//! Sorts the records of several CPUs by time, in bounded memory.
//!
//! perf empties the buffers of the CPUs in rounds and marks the end of each round. Nothing written after the end of a
//! round is older than the newest record of the round before it, so records up to that time can be passed on. Without
//! such marks, or in an enormous round, part of the window is passed on when the window is full.

use super::blocks::Place;
use schedlab_base::{CpuId, Nanos, Result, Tid};

/// The most bytes of records held back.
const BYTES_MAX: usize = 256 << 20;
/// The most records held back.
const ITEMS_MAX: usize = 4 << 20;
/// A record that is this much too early in its CPU's buffer is put in its place by itself: interrupts write records
/// between those of what they interrupt.
const NEAR: usize = 8;

/// What is held back until its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    /// A tracepoint's record, the CPU that wrote it, and the process and thread that ran there.
    Raw { cpu: CpuId, tgid: Tid, tid: Tid, raw: &'a [u8] },
    /// A task's name, and whether it comes from exec.
    Comm { cpu: CpuId, tgid: Tid, tid: Tid, exec: bool, name: &'a [u8] },
    /// A new task.
    Fork { cpu: CpuId, parent: Tid, tgid: Tid, child: Tid },
    /// Records were lost.
    Lost { cpu: CpuId, count: u64 },
}

impl Item<'_> {
    /// The CPU that it was recorded on.
    #[inline(always)]
    pub(super) fn cpu(&self) -> CpuId {
        match *self {
            Self::Raw { cpu, .. } | Self::Comm { cpu, .. } | Self::Fork { cpu, .. } | Self::Lost { cpu, .. } => cpu,
        }
    }

    /// How many bytes it counts for.
    #[inline(always)]
    pub(super) fn size(&self) -> usize {
        const NUMBERS: usize = 12;
        NUMBERS
            + match self {
                Self::Raw { raw: tail, .. } | Self::Comm { name: tail, .. } => tail.len(),
                Self::Fork { .. } => size_of::<Tid>(),
                Self::Lost { .. } => size_of::<u64>(),
            }
    }
}

/// A record that is held back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) time: Nanos,
    block: u32,
    /// Its place in the block, the index of its event, and the two flags.
    word: u32,
}

/// What is known of a record that is held back, beside its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// The index of a sample's event.
    pub(super) event: usize,
    /// It was compressed, and stands among what was decompressed.
    pub(super) packed: bool,
    /// The process of a sample's task is not that of the kernel.
    pub(super) foreign: bool,
}

impl Held {
    const EVENT: u32 = 17;
    const PACKED: u32 = 1 << 30;
    const FOREIGN: u32 = 1 << 31;

    #[inline(always)]
    fn new(time: Nanos, place: Place, known: Known) -> Self {
        let flags = if known.packed { Self::PACKED } else { 0 } | if known.foreign { Self::FOREIGN } else { 0 };
        Self { time, block: place.block, word: place.at | (known.event as u32) << Self::EVENT | flags }
    }

    /// Where it is.
    #[inline(always)]
    pub(super) fn place(&self) -> Place {
        Place { block: self.block, at: self.word & ((1 << Self::EVENT) - 1) }
    }

    #[inline(always)]
    pub(super) fn known(&self) -> Known {
        let event = ((self.word & !(Self::PACKED | Self::FOREIGN)) >> Self::EVENT) as usize;
        Known { event, packed: self.word & Self::PACKED != 0, foreign: self.word & Self::FOREIGN != 0 }
    }
}

/// The records held back.
#[derive(Default)]
pub(super) struct Window {
    entries: Vec<Held>,
    /// What the items count for.
    bytes: usize,
    /// The newest time seen, and what it was at the end of the last round.
    newest: Nanos,
    settled: Nanos,
    /// Everything up to this time has been passed on.
    done: Nanos,
}

/// How much is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// A round has ended: what no later record can precede.
    Round,
    /// The window is full: the older half.
    Half,
    /// The file has ended: everything.
    All,
}

impl Window {
    /// Holds a record back that counts for this many bytes. Returns `false` if it is too late to be put in order.
    #[inline(always)]
    pub(super) fn push(&mut self, time: Nanos, place: Place, known: Known, size: usize) -> bool {
        if time < self.done {
            return false;
        }
        self.newest = self.newest.max(time);
        self.bytes += size;
        self.entries.push(Held::new(time, place, known));
        true
    }

    /// Whether some items must be passed on before more are taken.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.bytes >= BYTES_MAX || self.entries.len() >= ITEMS_MAX
    }

    /// The newest time seen.
    pub(super) fn newest(&self) -> Nanos {
        self.newest
    }

    /// Sorts the records, passes on the first ones, and keeps the rest. `take` returns what a record counted for.
    ///
    /// # Errors
    /// The first of `take`.
    pub(super) fn hand_on(&mut self, due: Due, mut take: impl FnMut(&Held) -> Result<usize>) -> Result<()> {
        // Each CPU's records are nearly in order, so this merges runs. Equal times keep the order of the file.
        settle_near(&mut self.entries);
        self.entries.sort_by_key(|e| e.time);
        let count = match due {
            Due::Round => {
                let limit = std::mem::replace(&mut self.settled, self.newest);
                self.entries.partition_point(|e| e.time <= limit)
            }
            Due::Half => self.entries.len().div_ceil(2),
            Due::All => self.entries.len(),
        };
        for entry in &self.entries[..count] {
            self.bytes = self.bytes.saturating_sub(take(entry)?);
        }
        if let Some(last) = self.entries[..count].last() {
            self.done = last.time;
        }
        self.entries.drain(..count);
        if self.entries.is_empty() {
            self.bytes = 0;
        }
        Ok(())
    }

    /// The blocks of what was compressed, or of what was not, that hold records.
    pub(super) fn blocks(&self, packed: bool) -> impl Iterator<Item = u32> {
        self.entries.iter().filter(move |entry| entry.known().packed == packed).map(|entry| entry.block)
    }
}

/// Moves entries that are a few places too late. Then those of a CPU are one run, which the sort merges with others.
fn settle_near(entries: &mut [Held]) {
    for at in 1..entries.len() {
        let time = entries[at].time;
        if time < entries[at - 1].time {
            let first = at.saturating_sub(NEAR);
            if let Some(place) = entries[first..at].iter().rposition(|entry| entry.time <= time) {
                entries[first + place + 1..=at].rotate_right(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(window: &mut Window, time: Nanos, at: usize) -> bool {
        window.push(time, Place { block: at as u32 >> 10, at: at as u32 & 1023 }, Known::default(), 20)
    }

    fn hand_on(window: &mut Window, due: Due, out: &mut Vec<(Nanos, usize)>) {
        let take = |held: &Held| {
            let Place { block, at } = held.place();
            out.push((held.time, (block << 10 | at) as usize));
            Ok(20)
        };
        window.hand_on(due, take).unwrap();
    }

    #[test]
    fn a_round_passes_on_what_the_round_before_settled() {
        let mut window = Window::default();
        let mut out = Vec::new();
        for time in [10, 30, 20, 40] {
            assert!(push(&mut window, time, time as usize));
        }
        hand_on(&mut window, Due::Round, &mut out);
        assert!(out.is_empty());
        assert!(push(&mut window, 15, 15));
        assert!(push(&mut window, 50, 50));
        hand_on(&mut window, Due::Round, &mut out);
        assert_eq!(out, [10, 15, 20, 30, 40].map(|time| (time, time as usize)));
        assert!(!push(&mut window, 39, 39), "this comes too late");
        assert!(push(&mut window, 45, 45));
        hand_on(&mut window, Due::All, &mut out);
        assert_eq!(out[5..], [(45, 45), (50, 50)]);
        assert_eq!(window.bytes, 0);
    }

    #[test]
    fn equal_times_keep_the_order_of_the_file_over_many_rounds() {
        let mut rng = schedlab_base::Rng::new(5);
        let (mut window, mut all, mut out) = (Window::default(), Vec::new(), Vec::new());
        for round in 0..50u64 {
            for _ in 0..3 {
                for at in 0..100 {
                    // In steps of 4 ns, so that many are equal; some come a few records or many too late.
                    let late = if rng.below(10) == 0 { rng.below(60) } else { rng.below(3) };
                    let time = (1_000 + 400 * round + 4 * at - 4 * late) / 8 * 8;
                    assert!(push(&mut window, time, all.len()));
                    all.push((time, all.len()));
                }
            }
            hand_on(&mut window, Due::Round, &mut out);
        }
        hand_on(&mut window, Due::All, &mut out);
        all.sort_by_key(|(time, ..)| *time);
        assert_eq!(out, all);
    }

    #[test]
    fn what_is_known_of_a_record_is_kept() {
        for event in [0, 1, 4095] {
            for (packed, foreign) in [(false, false), (true, false), (false, true), (true, true)] {
                let (place, known) = (Place { block: 70_000, at: (1 << 17) - 1 }, Known { event, packed, foreign });
                let held = Held::new(7, place, known);
                assert_eq!((held.time, held.place(), held.known()), (7, place, known));
            }
        }
    }
}

//! Sorts the records of several CPUs by time, in bounded memory.
//!
//! perf empties the buffers of the CPUs in rounds and marks the end of each round. Nothing written after the end of a
//! round is older than the newest record of the round before it, so records up to that time can be passed on. Without
//! such marks, or in an enormous round, part of the window is passed on when the window is full.

use super::blocks::Place;
use schedlab_base::{CpuId, Nanos, Tid};

/// The most bytes of records held back.
const BYTES_MAX: usize = 256 << 20;
/// The most records held back.
const ITEMS_MAX: usize = 4 << 20;
/// A record that is this much too early in its CPU's buffer is put in its place by itself: interrupts write records
/// between those of what they interrupt.
const NEAR: usize = 8;

/// What is held back until its turn, besides samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    /// A task's name, and whether it comes from exec.
    Comm { cpu: CpuId, tgid: Tid, tid: Tid, exec: bool, name: &'a [u8] },
    /// A new task.
    Fork { cpu: CpuId, parent: Tid, tgid: Tid, child: Tid },
    /// Records were lost.
    Lost { cpu: CpuId, count: u64 },
}

impl Item<'_> {
    /// The CPU that it was recorded on.
    pub(super) fn cpu(&self) -> CpuId {
        match *self {
            Self::Comm { cpu, .. } | Self::Fork { cpu, .. } | Self::Lost { cpu, .. } => cpu,
        }
    }

    /// How many bytes of it count.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Comm { name, .. } => name.len(),
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
    /// So many of the first ones, which were there when some were passed on last, are in order.
    sorted: usize,
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

/// How many records are passed on: of those that were there when some were passed on last, and of those since.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    early: usize,
    late: usize,
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

    /// Puts the records in order, and finds those that are passed on now.
    pub(super) fn sort(&mut self, due: Due) -> Count {
        if due == Due::Half {
            self.sorted = 0;
        }
        let (early, late) = self.entries.split_at_mut(self.sorted);
        // Each CPU's records are nearly in order, so this merges runs. Equal times keep the order of the file.
        settle_near(late);
        late.sort_by_key(|e| e.time);
        match due {
            Due::Round => {
                let limit = std::mem::replace(&mut self.settled, self.newest);
                let until = |entries: &[Held]| entries.partition_point(|e| e.time <= limit);
                Count { early: until(early), late: until(late) }
            }
            Due::Half => Count { early: 0, late: late.len().div_ceil(2) },
            Due::All => Count { early: early.len(), late: late.len() },
        }
    }

    /// The first records in order, so many of them.
    pub(super) fn first(&self, count: Count) -> impl Iterator<Item = &Held> {
        let (early, late) = self.entries.split_at(self.sorted);
        merged(&early[..count.early], &late[..count.late])
    }

    /// Forgets the first records, which have been passed on and counted for so many bytes.
    pub(super) fn forget(&mut self, Count { early, late }: Count, bytes: usize) {
        let (passed, rest) = self.entries.split_at(self.sorted);
        let last = passed[..early].last().into_iter().chain(rest[..late].last()).map(|last| last.time).max();
        self.done = last.unwrap_or(self.done);
        self.entries.drain(self.sorted..self.sorted + late);
        self.entries.drain(..early);
        self.sorted = if early == self.sorted { self.entries.len() } else { self.sorted - early };
        self.bytes = if self.entries.is_empty() { 0 } else { self.bytes.saturating_sub(bytes) };
    }
}

/// Both in order of time; of equal times the early one first.
fn merged<'a>(mut early: &'a [Held], mut late: &'a [Held]) -> impl Iterator<Item = &'a Held> {
    std::iter::from_fn(move || {
        let next = late.first().filter(|late| early.first().is_none_or(|early| late.time < early.time));
        if next.is_some() {
            late = &late[1..];
            return next;
        }
        let (next, rest) = early.split_first()?;
        early = rest;
        Some(next)
    })
}

/// Moves entries that are a few places too late. Then those of a CPU are one run, which the sort merges with others.
fn settle_near(entries: &mut [Held]) {
    for at in 1..entries.len() {
        if entries[at].time < entries[at - 1].time {
            settle(&mut entries[at.saturating_sub(NEAR)..=at]);
        }
    }
}

/// Moves the last of these to its place, if that is among them.
#[cold]
fn settle(entries: &mut [Held]) {
    if let Some((last, others)) = entries.split_last()
        && let Some(place) = others.iter().rposition(|entry| entry.time <= last.time)
    {
        entries[place + 1..].rotate_right(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push(window: &mut Window, time: Nanos, at: usize) -> bool {
        window.push(time, Place { block: at as u32 >> 10, at: at as u32 & 1023 }, Known::default(), 20)
    }

    fn hand_on(window: &mut Window, due: Due, out: &mut Vec<(Nanos, usize)>) {
        let count = window.sort(due);
        let before = out.len();
        out.extend(window.first(count).map(|held| {
            let Place { block, at } = held.place();
            (held.time, (block << 10 | at) as usize)
        }));
        window.forget(count, 20 * (out.len() - before));
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
    fn halves_and_rounds_pass_on_one_order() {
        let mut rng = schedlab_base::Rng::new(6);
        let (mut window, mut all, mut out) = (Window::default(), Vec::new(), Vec::new());
        for round in 0..100u64 {
            for at in 0..100 {
                let time = (1_000 + 400 * round + 4 * at - rng.below(100)) / 8 * 8;
                assert!(push(&mut window, time, all.len()));
                all.push((time, all.len()));
            }
            hand_on(&mut window, if rng.below(3) == 0 { Due::Half } else { Due::Round }, &mut out);
            assert_eq!(window.bytes, 20 * (all.len() - out.len()));
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

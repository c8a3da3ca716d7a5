//! Sorts the records of several CPUs by time, in bounded memory.
//!
//! perf empties the buffers of the CPUs in rounds and marks the end of each round. Nothing written after the end of a
//! round is older than the newest record of the round before it, so records up to that time can be passed on. Without
//! such marks, or in an enormous round, part of the window is passed on when the window is full.

use schedlab_base::{CpuId, Nanos, Tid};
use std::ops::Range;

/// The most bytes of records held back.
const BYTES_MAX: usize = 256 << 20;
/// The most records held back.
const ITEMS_MAX: usize = 4 << 20;

/// An item that is held back until its turn.
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

#[derive(Clone, Copy)]
struct Entry {
    time: Nanos,
    at: u32,
    size: u16,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Raw,
    Comm,
    Exec,
    Fork,
    Lost,
}

/// The most bytes of room kept for the next time that the window is closed up.
const SPARE_MAX: usize = 16 << 20;
/// A record that is this much too early in its CPU's buffer is put in its place by itself: interrupts write records
/// between those of what they interrupt.
const NEAR: usize = 8;

/// The size of the three numbers before the bytes of each item.
const HEAD: usize = 12;

/// The records held back.
#[derive(Default)]
pub(super) struct Window {
    entries: Vec<Entry>,
    bytes: Vec<u8>,
    /// Room for the bytes when the window is closed up.
    spare: Vec<u8>,
    /// The newest time seen, and what it was at the end of the last round.
    newest: Nanos,
    settled: Nanos,
    /// Everything up to this time has been passed on.
    done: Nanos,
}

impl Window {
    /// Holds an item back. Returns `false` if it is too late to be put in order; it is then dropped.
    #[inline(always)]
    pub(super) fn push(&mut self, time: Nanos, item: Item) -> bool {
        if time < self.done {
            return false;
        }
        self.newest = self.newest.max(time);
        let (kind, head, tail): (_, [u32; 3], &[u8]) = match item {
            Item::Raw { cpu, tgid, tid, raw } => (Kind::Raw, [cpu, tgid as u32, tid as u32], raw),
            Item::Comm { cpu, tgid, tid, exec, name } => {
                (if exec { Kind::Exec } else { Kind::Comm }, [cpu, tgid as u32, tid as u32], name)
            }
            Item::Fork { cpu, parent, tgid, child } => {
                (Kind::Fork, [cpu, parent as u32, tgid as u32], &child.to_le_bytes())
            }
            Item::Lost { cpu, count } => (Kind::Lost, [cpu, 0, 0], &count.to_le_bytes()),
        };
        let at = self.bytes.len() as u32;
        self.bytes.reserve(HEAD + tail.len());
        self.bytes.extend_from_slice(head.map(u32::to_le_bytes).as_flattened());
        self.bytes.extend_from_slice(tail);
        self.entries.push(Entry { time, at, size: tail.len() as u16, kind });
        true
    }

    /// Whether some items must be passed on before more are taken.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= BYTES_MAX || self.entries.len() >= ITEMS_MAX
    }

    /// The newest time seen.
    pub(super) fn newest(&self) -> Nanos {
        self.newest
    }

    /// Ends a round: passes on the items that no later record can precede.
    pub(super) fn end_round(&mut self, take: impl FnMut(Nanos, Item)) {
        let limit = std::mem::replace(&mut self.settled, self.newest);
        self.hand_on(take, |entries| entries.partition_point(|e| e.time <= limit));
    }

    /// Makes room in a full window: passes on the older half.
    pub(super) fn shrink(&mut self, take: impl FnMut(Nanos, Item)) {
        self.hand_on(take, |entries| entries.len().div_ceil(2));
    }

    /// Ends the file: passes on everything.
    pub(super) fn finish(&mut self, take: impl FnMut(Nanos, Item)) {
        self.hand_on(take, <[Entry]>::len);
    }

    /// Sorts the items, passes on the first ones, as many as `how_many` returns, and keeps the rest.
    fn hand_on(&mut self, mut take: impl FnMut(Nanos, Item), how_many: impl Fn(&[Entry]) -> usize) {
        // Each CPU's records are nearly in order, so this merges runs. Equal times keep the order of the file.
        settle_near(&mut self.entries);
        self.entries.sort_by_key(|e| e.time);
        let count = how_many(&self.entries);
        for entry in &self.entries[..count] {
            take(entry.time, item(entry, &self.bytes));
        }
        if let Some(last) = self.entries[..count].last() {
            self.done = last.time;
        }
        self.entries.drain(..count);
        self.close_up();
    }

    /// Forgets the bytes of the items that were passed on. The others keep their order, so that of those with the same
    /// time the first in the file stays the first.
    fn close_up(&mut self) {
        let mut bytes = std::mem::take(&mut self.spare);
        bytes.clear();
        for entry in &mut self.entries {
            let at = bytes.len() as u32;
            bytes.extend_from_slice(&self.bytes[span(entry)]);
            entry.at = at;
        }
        self.spare = std::mem::replace(&mut self.bytes, bytes);
        if self.spare.capacity() > SPARE_MAX {
            self.spare = Vec::new();
        }
    }
}

/// Moves entries that are a few places too late. Then those of a CPU are one run, which the sort merges with others.
fn settle_near(entries: &mut [Entry]) {
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

fn span(entry: &Entry) -> Range<usize> {
    let start = entry.at as usize;
    start..start + HEAD + usize::from(entry.size)
}

#[inline(always)]
fn item<'a>(entry: &Entry, bytes: &'a [u8]) -> Item<'a> {
    let (head, tail) = bytes[span(entry)].split_at(HEAD);
    let number = |i: usize| u32::from_le_bytes([head[4 * i], head[4 * i + 1], head[4 * i + 2], head[4 * i + 3]]);
    let (cpu, tgid, tid) = (number(0), number(1) as Tid, number(2) as Tid);
    match entry.kind {
        Kind::Raw => Item::Raw { cpu, tgid, tid, raw: tail },
        Kind::Comm | Kind::Exec => Item::Comm { cpu, tgid, tid, exec: entry.kind == Kind::Exec, name: tail },
        Kind::Fork => {
            let child = Tid::from_le_bytes(tail.try_into().expect("a child was pushed"));
            Item::Fork { cpu, parent: tgid, tgid: tid, child }
        }
        Kind::Lost => Item::Lost { cpu, count: u64::from_le_bytes(tail.try_into().expect("a count was pushed")) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(cpu: CpuId, raw: &[u8]) -> Item<'_> {
        Item::Raw { cpu, tgid: 1, tid: 2, raw }
    }

    #[test]
    fn a_round_passes_on_what_the_round_before_settled() {
        let mut window = Window::default();
        let mut out = Vec::new();
        for time in [10, 30, 20, 40] {
            assert!(window.push(time, raw(0, &[time as u8])));
        }
        window.end_round(|time, _| out.push(time));
        assert!(out.is_empty());
        assert!(window.push(15, raw(1, &[15])));
        assert!(window.push(50, raw(1, &[50])));
        window.end_round(|time, item| {
            assert_eq!(item, raw(u32::from(time == 15), &[time as u8]));
            out.push(time);
        });
        assert_eq!(out, [10, 15, 20, 30, 40]);
        assert!(!window.push(39, raw(0, &[])), "this comes too late");
        assert!(window.push(45, raw(0, &[])));
        window.finish(|time, _| out.push(time));
        assert_eq!(out, [10, 15, 20, 30, 40, 45, 50]);
    }

    #[test]
    fn equal_times_keep_the_order_of_the_file_over_many_rounds() {
        let mut rng = schedlab_base::Rng::new(5);
        let (mut window, mut all, mut out) = (Window::default(), Vec::new(), Vec::new());
        let mut keep = |time, item: Item| match item {
            Item::Raw { cpu, raw, .. } => out.push((time, cpu, raw.to_vec())),
            _ => unreachable!(),
        };
        for round in 0..50u64 {
            for cpu in 0..3 {
                for at in 0..100 {
                    // In steps of 4 ns, so that many are equal; some come a few records or many too late.
                    let late = if rng.below(10) == 0 { rng.below(60) } else { rng.below(3) };
                    let time = (1_000 + 400 * round + 4 * at - 4 * late) / 8 * 8;
                    let bytes = (all.len() as u32).to_le_bytes();
                    assert!(window.push(time, raw(cpu, &bytes[..1 + at as usize % 4])));
                    all.push((time, cpu, bytes[..1 + at as usize % 4].to_vec()));
                }
            }
            window.end_round(&mut keep);
        }
        window.finish(&mut keep);
        all.sort_by_key(|(time, ..)| *time);
        assert_eq!(out, all);
    }

    #[test]
    fn every_kind_of_item_is_kept_unchanged() {
        let items = [
            raw(3, b"bytes"),
            Item::Comm { cpu: 1, tgid: 5, tid: 6, exec: true, name: b"sh" },
            Item::Comm { cpu: 1, tgid: 5, tid: 6, exec: false, name: b"" },
            Item::Fork { cpu: 2, parent: 7, tgid: 8, child: 9 },
            Item::Lost { cpu: 4, count: u64::MAX },
        ];
        let mut window = Window::default();
        items.iter().for_each(|item| assert!(window.push(7, *item)));
        let mut next = items.iter();
        window.shrink(|_, item| assert_eq!(Some(&item), next.next()));
        window.finish(|_, item| assert_eq!(Some(&item), next.next()));
        assert_eq!(next.len(), 0);
    }
}

//! The records that are held back stay where they were read: in blocks of a few hundred records each.
//!
//! A block is kept as long as a record in it is held. Large buffers of perf make large rounds; of a file's blocks only
//! so many are then kept in memory, and others are read again when their records' turn comes. So memory does not grow
//! with the rounds, and what is written to is in the cache.

use schedlab_base::{Error, Result};
use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The size of a block: longer than any record, and so short that it is still in the cache when it is looked at.
pub(super) const BLOCK: usize = 1 << 17;
/// A file's blocks that are held are all in memory if they are no more than this.
const LOADED: usize = 32;
/// No more of them are ever in memory: 256 MB.
const LOADED_MAX: usize = 1 << 11;

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of its block; they count from 0.
    pub(super) block: u32,
    /// Where it begins in the block: less than [`BLOCK`].
    pub(super) at: u32,
}

/// A block that is full.
struct Full {
    /// Where it begins in the file.
    offset: u64,
    /// Empty if it must be read again.
    bytes: Vec<u8>,
    /// How many of the bytes were read.
    end: usize,
    /// How many of its records are held, and how many were when it was full.
    records: u32,
    all: u32,
}

/// The block that is being filled, and those before it that hold records.
pub(super) struct Blocks {
    pub(super) current: Vec<u8>,
    /// How many records of the current block are held.
    records: u32,
    number: u32,
    /// The number of the first full block.
    first: u32,
    full: Vec<Full>,
    /// In how many of them records are held.
    held: usize,
    spare: Vec<Vec<u8>>,
    again: Option<Again>,
}

/// The file from which blocks can be read again.
struct Again {
    file: File,
    /// As many are in memory at most.
    most: usize,
    /// The full blocks that are in memory, in the order in which they were read.
    loaded: VecDeque<u32>,
}

impl Blocks {
    /// Blocks of what is read but once.
    pub(super) fn new() -> Self {
        let (current, full, spare) = (vec![0; BLOCK], Vec::new(), Vec::new());
        Self { current, records: 0, number: 0, first: 0, full, held: 0, spare, again: None }
    }

    /// Blocks of a file, in which the records of so many CPUs lie side by side.
    pub(super) fn of_file(file: File, cpus: usize) -> Self {
        let again = Again { file, most: (2 * cpus).clamp(LOADED, LOADED_MAX), loaded: VecDeque::new() };
        Self { again: Some(again), ..Self::new() }
    }

    /// The place of a record of the current block.
    #[inline(always)]
    pub(super) fn place(&self, at: usize) -> Place {
        Place { block: self.number, at: at as u32 }
    }

    /// So many more records of the current block are held.
    #[inline]
    pub(super) fn hold(&mut self, records: u32) {
        self.records += records;
    }

    /// Begins a new block with those bytes of the current one that are still to be read. The current one, which begins
    /// at `offset` in the file, is kept if records in it are held.
    pub(super) fn turn(&mut self, rest: std::ops::Range<usize>, offset: u64) {
        let records = std::mem::take(&mut self.records);
        if records == 0 {
            self.current.copy_within(rest, 0);
            return;
        }
        let next = self.room();
        let last = std::mem::replace(&mut self.current, next);
        self.current[..rest.len()].copy_from_slice(&last[rest.clone()]);
        self.full.push(Full { offset, bytes: last, end: rest.end, records, all: records });
        if let Some(again) = &mut self.again {
            again.loaded.push_back(self.number);
        }
        self.number += 1;
        self.held += 1;
    }

    /// Room for a block: what a block had that is not needed now, or new.
    fn room(&mut self) -> Vec<u8> {
        if let Some(again) = &mut self.again
            && again.loaded.len() >= again.most
        {
            let full = &mut self.full;
            let of = |number: u32| (number - self.first) as usize;
            // One that is done with; or else the one that is looked at last, unless some of it has been; or else any.
            let done = again.loaded.iter().position(|number| full[of(*number)].records == 0);
            let untouched = |number: &u32| full[of(*number)].records == full[of(*number)].all;
            let place = done.or_else(|| again.loaded.iter().rposition(untouched)).unwrap_or(0);
            if let Some(number) = again.loaded.remove(place) {
                return std::mem::take(&mut full[of(number)].bytes);
            }
        }
        self.spare.pop().unwrap_or_else(|| vec![0; BLOCK])
    }

    /// The bytes from this place on. The record there, which was held, no longer is.
    #[inline(always)]
    pub(super) fn take(&mut self, place: Place) -> Result<&[u8]> {
        if place.block == self.number {
            self.records -= 1;
            return Ok(&self.current[place.at as usize..]);
        }
        let index = (place.block - self.first) as usize;
        if self.full[index].bytes.is_empty() {
            self.read_again(index)?;
        }
        let block = &mut self.full[index];
        block.records -= 1;
        Ok(&block.bytes[place.at as usize..])
    }

    #[cold]
    fn read_again(&mut self, index: usize) -> Result<()> {
        let mut bytes = self.room();
        if let Some(again) = &mut self.again {
            let block = &mut self.full[index];
            let read = again.file.read_exact_at(&mut bytes[..block.end], block.offset);
            read.map_err(|e| Error::system("reading the perf.data again", &e))?;
            block.bytes = bytes;
            again.loaded.push_back(self.first + index as u32);
        }
        Ok(())
    }

    /// Whether so many blocks are held that records in them must be passed on.
    pub(super) fn are_many(&self) -> bool {
        self.again.is_none() && self.held >= LOADED_MAX
    }

    /// Forgets the full blocks in which no record is held.
    pub(super) fn forget(&mut self) {
        for block in self.full.iter_mut().filter(|block| block.records == 0) {
            let bytes = std::mem::take(&mut block.bytes);
            if !bytes.is_empty() && self.spare.len() < LOADED {
                self.spare.push(bytes);
            }
        }
        self.held = self.full.iter().filter(|block| block.records > 0).count();
        let gone = self.full.iter().take_while(|block| block.records == 0).count();
        self.full.drain(..gone);
        self.first += gone as u32;
        if let Some(again) = &mut self.again {
            let (first, full) = (self.first, &self.full);
            let held = |index: u32| full.get(index as usize).is_some_and(|block| block.records > 0);
            again.loaded.retain(|block| block.checked_sub(first).is_some_and(held));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Fills so many blocks, each with bytes of its own, and holds a record in each, twice.
    fn fill(blocks: &mut Blocks, file: &mut Vec<u8>, count: u32) -> Vec<(Place, u8)> {
        let mut places = Vec::new();
        for number in 0..count {
            let byte = number as u8;
            blocks.current.fill(byte);
            file.extend_from_slice(&blocks.current);
            places.push((blocks.place(number as usize), byte));
            blocks.hold(2);
            blocks.turn(BLOCK..BLOCK, u64::from(number) * BLOCK as u64);
        }
        places
    }

    #[test]
    fn blocks_of_a_file_are_read_again() {
        let (mut bytes, count) = (Vec::new(), 3 * LOADED as u32);
        let mut file = tempfile::tempfile().unwrap();
        let mut blocks = Blocks::of_file(file.try_clone().unwrap(), 2);
        let places = fill(&mut blocks, &mut bytes, count);
        file.write_all(&bytes).unwrap();
        let first = &blocks.full[..LOADED - 1];
        assert!(first.iter().all(|block| !block.bytes.is_empty()), "what is looked at first stays in memory");
        for (place, byte) in places.iter().chain(places.iter().rev()) {
            let from = blocks.take(*place).unwrap();
            assert!(from.len() == BLOCK - place.at as usize && from.iter().all(|found| found == byte), "{place:?}");
            if [7, 9].contains(byte) {
                blocks.full[usize::from(*byte)].records += 1;
            }
        }
        let loaded = |blocks: &Blocks| blocks.full.iter().filter(|block| !block.bytes.is_empty()).count();
        assert_eq!((loaded(&blocks), blocks.are_many()), (LOADED, false));
        blocks.forget();
        assert_eq!((blocks.first, blocks.held), (7, 2));
        assert_eq!(blocks.take(places[9].0).unwrap()[0], 9);
        file.set_len(8 * BLOCK as u64).unwrap();
        let (mut rest, again) = (Blocks::of_file(file, 2), &mut Vec::new());
        let places = fill(&mut rest, again, count);
        assert!(rest.take(places[2 * LOADED].0).is_err(), "the file has become shorter");
    }

    #[test]
    fn too_many_blocks_of_a_pipe_are_noticed() {
        let mut blocks = Blocks::new();
        for _ in 0..LOADED_MAX {
            assert!(!blocks.are_many());
            blocks.full.push(Full { offset: 0, bytes: Vec::new(), end: 0, records: 1, all: 1 });
            (blocks.number, blocks.held) = (blocks.number + 1, blocks.held + 1);
        }
        assert!(blocks.are_many());
        blocks.full[3].records = 0;
        blocks.forget();
        assert!(!blocks.are_many());
    }
}

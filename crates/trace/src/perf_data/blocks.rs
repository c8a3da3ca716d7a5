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
/// No machine needs more of them in memory.
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
}

/// The block that is being filled, and those before it that hold records.
pub(super) struct Blocks {
    pub(super) current: Vec<u8>,
    number: u32,
    /// The number of the first full block; those that are not held are gone.
    first: u32,
    full: VecDeque<Option<Full>>,
    spare: Vec<Vec<u8>>,
    again: Option<Again>,
    marks: Vec<bool>,
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
        let (full, spare, marks) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { current: vec![0; BLOCK], number: 0, first: 0, full, spare, again: None, marks }
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

    /// Begins a new block with those bytes of the current one that are still to be read. The current one, which begins
    /// at `offset` in the file, is kept if records in it are held.
    pub(super) fn turn(&mut self, rest: std::ops::Range<usize>, offset: u64, held: bool) {
        if !held {
            self.current.copy_within(rest, 0);
            return;
        }
        let next = self.room();
        let last = std::mem::replace(&mut self.current, next);
        self.current[..rest.len()].copy_from_slice(&last[rest.clone()]);
        self.full.push_back(Some(Full { offset, bytes: last, end: rest.end }));
        if let Some(again) = &mut self.again {
            again.loaded.push_back(self.number);
        }
        self.number += 1;
    }

    /// Room for a block: what a block had that is not needed now, or new.
    fn room(&mut self) -> Vec<u8> {
        if let Some(again) = &mut self.again
            && again.loaded.len() >= again.most
            && let Some(oldest) = again.loaded.pop_front()
            && let Some(Some(block)) = self.full.get_mut((oldest - self.first) as usize)
        {
            return std::mem::take(&mut block.bytes);
        }
        self.spare.pop().unwrap_or_else(|| vec![0; BLOCK])
    }

    /// The bytes from this place on.
    #[inline(always)]
    pub(super) fn from(&mut self, place: Place) -> Result<&[u8]> {
        if place.block == self.number {
            return Ok(&self.current[place.at as usize..]);
        }
        let index = (place.block - self.first) as usize;
        if matches!(&self.full[index], Some(block) if block.bytes.is_empty()) {
            self.read_again(index)?;
        }
        let block = self.full[index].as_ref().expect("a block with a held record is kept");
        Ok(&block.bytes[place.at as usize..])
    }

    #[cold]
    fn read_again(&mut self, index: usize) -> Result<()> {
        let mut bytes = self.room();
        if let (Some(Some(block)), Some(again)) = (self.full.get_mut(index), &mut self.again) {
            let read = again.file.read_exact_at(&mut bytes[..block.end], block.offset);
            read.map_err(|e| Error::system("reading the perf.data again", &e))?;
            block.bytes = bytes;
            again.loaded.push_back(self.first + index as u32);
        }
        Ok(())
    }

    /// Forgets the full blocks that are not among these.
    pub(super) fn retain(&mut self, held: impl Iterator<Item = u32>) {
        self.marks.clear();
        self.marks.resize(self.full.len(), false);
        for block in held {
            if let Some(mark) = self.marks.get_mut(block.wrapping_sub(self.first) as usize) {
                *mark = true;
            }
        }
        for (block, held) in self.full.iter_mut().zip(&self.marks) {
            if !held
                && let Some(block) = block.take()
                && !block.bytes.is_empty()
                && self.spare.len() < LOADED
            {
                self.spare.push(block.bytes);
            }
        }
        while let Some(None) = self.full.front() {
            self.full.pop_front();
            self.first += 1;
        }
        if let Some(again) = &mut self.again {
            let (first, full) = (self.first, &self.full);
            again.loaded.retain(|block| {
                block.checked_sub(first).is_some_and(|index| full.get(index as usize).is_some_and(Option::is_some))
            });
        }
    }
}

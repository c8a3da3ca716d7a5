//! The memory of tasks: it is mapped and touched before the run starts, and touched again while a task works.
#![allow(unsafe_code)]

use crate::sys;
use schedlab_base::{Error, Result};
use schedlab_sim::program::{Load, MemorySpec, Op, Setting, TaskSpec};
use std::hint::black_box;

/// A cache line.
const LINE: usize = 64;
/// A page.
const PAGE: usize = 4096;
/// Which part of its time a task with a working set, and with no memory of its own, touches it.
const WORKING_SET_PART: f64 = 0.5;
/// From one line to the next one that is touched of a large memory, in lines: so far that no prefetch helps.
const STRIDE: usize = 1_000_003;
/// The bytes that `mem` and `iorun` go through.
const BUFFER: usize = 4 << 20;

/// Memory that is never given back while the process lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: several threads may touch one block; all accesses are volatile and of whole words, and no value matters.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// Maps memory, shared with processes that are forked later, or private.
    pub(crate) fn new(bytes: u64, shared: bool) -> Result<Self> {
        let failed = |e: std::io::Error| {
            Error::system(format!("cannot map {bytes} bytes of memory"), &e).mend("give the tasks less memory")
        };
        let size = usize::try_from(bytes).unwrap_or(usize::MAX / 2).max(LINE);
        Ok(Self { start: sys::map(size, shared).map_err(failed)?, bytes: size })
    }

    /// Puts its pages on the nodes of the specification, in their shares, before they are touched.
    pub(crate) fn place(&self, spec: &MemorySpec) -> Result<()> {
        let shares: u64 = spec.nodes.iter().map(|(_, share)| u64::from(*share)).sum();
        let mut from = 0_u64;
        for (node, share) in &spec.nodes {
            let part = |upto: u64| (self.bytes as u128 * u128::from(upto) / u128::from(shares.max(1))) as usize;
            let (begin, end) = (part(from) / PAGE * PAGE, part(from + u64::from(*share)) / PAGE * PAGE);
            from += u64::from(*share);
            if end > begin {
                sys::place_memory(self.start.wrapping_add(begin), end - begin, &[*node]).map_err(|e| {
                    Error::not_permitted(format!("memory cannot be put on node {node}: {e}"))
                        .mend("leave \"x-memory\" without \"node\", or run on a machine with that node")
                })?;
            }
        }
        Ok(())
    }

    /// Touches every page of part `n` of `parts`.
    pub(crate) fn first_touch(&self, n: u32, parts: u32) {
        let part = |n: u32| self.bytes as u64 as u128 * u128::from(n) / u128::from(parts.max(1));
        let (begin, end) = (part(n) as usize, part(n + 1) as usize);
        for at in (begin..end).step_by(PAGE) {
            self.write(at);
        }
    }

    /// Its whole, as numbers. The block must be this task's alone.
    pub(crate) fn numbers(self) -> &'static mut [f64] {
        // SAFETY: the mapping is page-aligned, stays for the life of the process, and any bits are a number.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.bytes / size_of::<f64>()) }
    }

    /// Its first bytes.
    pub(crate) fn first(&self, bytes: u64) -> Self {
        Self { bytes: self.bytes.min(bytes as usize).max(LINE), ..*self }
    }

    /// Reads and writes the word at this byte.
    fn write(&self, at: usize) {
        // SAFETY: the callers stay inside the mapping, and `start` is page-aligned, so that the word is aligned.
        unsafe {
            let word = self.start.add(at / LINE * LINE).cast::<u64>();
            word.write_volatile(word.read_volatile().wrapping_add(1));
        }
    }

    fn lines(&self) -> usize {
        (self.bytes / LINE).max(1)
    }
}

/// All settings of a task: those that it starts with, and those of its program.
pub(crate) fn settings<'a>(load: &'a Load, spec: &'a TaskSpec) -> Vec<&'a Setting> {
    let sets = spec.program.iter().filter_map(|op| match op {
        Op::Set(i) => Some(&load.settings[*i as usize]),
        _ => None,
    });
    std::iter::once(&spec.initial).chain(sets).collect()
}

/// Refuses a load whose tasks would together touch more memory than there is: the kernel would grant it, and kill
/// somebody later.
pub(crate) fn fits(load: &Load, available: u64) -> Result<()> {
    let (shared, own): (Vec<_>, Vec<_>) = load.memories.iter().enumerate().partition(|(_, spec)| spec.shared);
    let of_task = |spec: &TaskSpec| {
        let settings = settings(load, spec);
        let uses = |n: usize| settings.iter().any(|setting| setting.memory == Some(n as u32));
        let memories = own.iter().filter(|(n, _)| uses(*n)).map(|(_, memory)| u128::from(memory.bytes));
        let working_set = settings.iter().filter_map(|setting| setting.working_set).max().unwrap_or(0);
        (memories.sum::<u128>() + u128::from(working_set)) * u128::from(spec.copies.max(1))
    };
    let shared: u128 = shared.iter().map(|(_, memory)| u128::from(memory.bytes)).sum();
    let all = shared + load.tasks.iter().map(of_task).sum::<u128>();
    if all <= u128::from(available) {
        return Ok(());
    }
    let (needed, available) = (all.div_ceil(1 << 20), available >> 20);
    Err(Error::not_permitted(format!("the tasks need {needed} MiB of memory, and {available} are available here"))
        .mend("give them less, or fewer instances: x-memory, x-working-set, instance"))
}

/// What a task touches while it works.
#[derive(Default)]
pub(crate) struct Touched {
    block: Option<Block>,
    part: f64,
    stride: usize,
    line: usize,
    /// The time that a line takes, as last seen.
    line_ns: f64,
}

impl Touched {
    /// A working set: gone through again and again.
    pub(crate) fn working_set(block: Block) -> Self {
        Self { block: Some(block), part: WORKING_SET_PART, stride: 1, line: 0, line_ns: 5.0 }
    }

    /// A memory of which this percentage of the work waits for.
    pub(crate) fn memory(block: Block, bound_percent: u32) -> Self {
        Self {
            block: Some(block),
            part: f64::from(bound_percent.min(100)) / 100.0,
            stride: STRIDE,
            line: 0,
            line_ns: 50.0,
        }
    }

    /// The part of the work's time that goes into touching.
    pub(crate) fn part(&self) -> f64 {
        if self.block.is_some() { self.part } else { 0.0 }
    }

    /// Touches lines for about this long.
    pub(crate) fn touch(&mut self, time: f64) {
        let Some(block) = self.block else { return };
        let count = (time / self.line_ns).clamp(1.0, 1e7) as usize;
        let start = sys::monotonic();
        let lines = block.lines();
        for _ in 0..count {
            block.write(self.line * LINE);
            self.line += self.stride;
            if self.line >= lines {
                self.line %= lines;
            }
        }
        let took = (sys::monotonic() - start) as f64;
        // A preemption makes this far too long: then it counts as at most twice as long as before.
        let seen = (took / count as f64).clamp(0.1, self.line_ns * 2.0);
        self.line_ns += (seen - self.line_ns) / 8.0;
    }
}

/// The buffer that `mem` and `iorun` go through.
pub(crate) struct Buffer {
    block: Block,
    at: usize,
}

impl Buffer {
    /// Maps it and touches its pages.
    pub(crate) fn new() -> Result<Self> {
        let block = Block::new(BUFFER as u64, false)?;
        block.first_touch(0, 1);
        Ok(Self { block, at: 0 })
    }

    /// Writes this many bytes, one after the other or a line here and a line there.
    pub(crate) fn traffic(&mut self, bytes: u64, random: bool, mut between: impl FnMut()) {
        let lines = bytes.div_ceil(LINE as u64);
        let stride = if random { STRIDE } else { 1 };
        for n in 0..lines {
            self.block.write(self.at % self.block.lines() * LINE);
            self.at = self.at.wrapping_add(stride);
            if n % 8192 == 0 {
                between();
            }
        }
        black_box(self.at);
    }

    /// Some bytes to write to a device.
    pub(crate) fn bytes(&self, most: u64) -> &[u8] {
        // SAFETY: the block is mapped, its bytes are initialised, and this task alone uses it.
        unsafe { std::slice::from_raw_parts(self.block.start, self.block.bytes.min(most as usize)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_touched_part_by_part() {
        let block = Block::new(10 * PAGE as u64, false).unwrap();
        block.first_touch(1, 2);
        // SAFETY: the block is mapped, and no other thread uses it.
        let word = |page: usize| unsafe { block.start.add(page * PAGE).cast::<u64>().read_volatile() };
        assert_eq!((0..10).map(word).collect::<Vec<_>>(), [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let memory = |bytes, shared| MemorySpec { bytes, shared, ..MemorySpec::default() };
        let task = |memory, working_set| TaskSpec {
            copies: 3,
            initial: Setting { memory, working_set, ..Setting::default() },
            ..TaskSpec::default()
        };
        let load = Load {
            memories: vec![memory(5 << 20, true), memory(2 << 20, false)],
            tasks: vec![task(Some(0), None), task(Some(1), Some(1 << 20))],
            ..Load::default()
        };
        assert!(fits(&load, 14 << 20).is_ok());
        let error = fits(&load, (14 << 20) - 1).unwrap_err().to_string();
        assert!(error.starts_with("the tasks need 14 MiB of memory, and 13 are available here"), "{error}");
    }

    #[test]
    fn a_working_set_is_gone_through_whole() {
        let block = Block::new(PAGE as u64, false).unwrap();
        let mut touched = Touched::working_set(block);
        assert_eq!(touched.part(), WORKING_SET_PART);
        for _ in 0..100 {
            touched.touch(1000.0);
        }
        // SAFETY: the block is mapped, and no other thread uses it.
        let word = |line: usize| unsafe { block.start.add(line * LINE).cast::<u64>().read_volatile() };
        assert!((0..PAGE / LINE).all(|line| word(line) > 0));
    }

    #[test]
    fn traffic_is_as_much_as_asked() {
        let mut buffer = Buffer::new().unwrap();
        buffer.traffic(1000, false, || {});
        assert_eq!(buffer.at, 16);
    }
}

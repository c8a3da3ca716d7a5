//! What a task computes if it is not counted loops: Linpack or STREAM. Both stop after any small piece and go on there
//! in the next burst, and both check their results.

mod linpack;
mod stream;

use crate::memory::Block;
use crate::region::{Slot, add};
use crate::sys;
use linpack::Linpack;
use schedlab_base::{Computing, Nanos, Result};
use std::sync::atomic::Ordering;
use stream::Stream;

/// The bytes of memory of a task that names none: a matrix of 1000 x 1000 numbers, and three arrays of a million.
const LINPACK_BYTES: u64 = 8_100_000;
const STREAM_BYTES: u64 = 24_000_000;
/// For how long the rate is measured before the run.
const SAMPLE: Nanos = 1_000_000;

/// What was computed and checked so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Done {
    /// Operations on numbers (Linpack), or bytes read and written (STREAM), as these count them.
    units: u64,
    /// How many results were checked.
    checked: u64,
    /// The largest error of a result, by the measure of each.
    worst: f64,
}

/// A computation that is done piece by piece.
trait Kernel {
    /// Does the next piece, and returns about how much it was in units.
    fn piece(&mut self) -> u64;

    fn done(&self) -> Done;
}

/// The computation of a task.
pub(crate) struct Computation {
    kernel: Box<dyn Kernel>,
    slot: &'static Slot,
    /// Units in a ns of CPU time, as measured before the run.
    rate: f64,
    /// When the present burst was last seen at work, by the monotonic clock.
    seen: Nanos,
    /// The units done before the run.
    before: u64,
}

impl Computation {
    /// What a task computes, in memory of its own or in `memory`; `None` if it is counted loops.
    pub(crate) fn new(kind: Computing, memory: Option<Block>, bytes: u64, slot: &'static Slot) -> Result<Option<Self>> {
        let default = match kind {
            Computing::Loops => return Ok(None),
            Computing::Linpack => LINPACK_BYTES,
            Computing::Stream => STREAM_BYTES,
        };
        let block = match memory {
            Some(block) => block,
            None => Block::new(if bytes > 0 { bytes } else { default }, false)?,
        };
        let numbers = block.numbers();
        let kernel: Box<dyn Kernel> =
            if kind == Computing::Linpack { Box::new(Linpack::new(numbers)) } else { Box::new(Stream::new(numbers)) };
        let mut computation = Self { kernel, slot, rate: 1.0, seen: 0, before: 0 };
        let start = sys::thread_cpu();
        let (mut units, mut took) = (0, 0);
        while took < SAMPLE {
            units += computation.kernel.piece();
            took = sys::thread_cpu() - start;
        }
        computation.rate = units as f64 / took as f64;
        computation.before = computation.kernel.done().units;
        Ok(Some(computation))
    }

    /// Units in a ns of CPU time, as measured before the run.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    /// A burst begins.
    pub(crate) fn begin(&mut self) {
        self.seen = sys::monotonic();
    }

    /// Computes about this much, and reports it.
    pub(crate) fn work(&mut self, units: u64) {
        let mut left = units;
        while left > 0 {
            left = left.saturating_sub(self.kernel.piece().max(1));
        }
        let now = sys::monotonic();
        add(&self.slot.computing_ns, now - std::mem::replace(&mut self.seen, now));
        let Done { units, checked, worst } = self.kernel.done();
        self.slot.computed.store(units - self.before, Ordering::Relaxed);
        self.slot.checked.store(checked, Ordering::Relaxed);
        self.slot.worst.store(worst.to_bits(), Ordering::Relaxed);
    }
}

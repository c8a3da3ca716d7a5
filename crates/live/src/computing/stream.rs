//! STREAM: four loops over three arrays, again and again.

use super::{Done, Kernel};

/// How many numbers a piece has.
const PIECE: usize = 512;
/// After so many rounds the numbers begin anew, before they grow too large.
const ROUNDS: u32 = 10;
/// The factor of `scale` and `triad`.
const FACTOR: f64 = 3.0;
/// The bytes that each loop reads and writes for a number, as STREAM counts them.
const BYTES: [u64; 4] = [16, 16, 24, 24];

/// What is done to the arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Fill,
    /// One of copy, scale, add and triad.
    Loop(usize),
    Check,
}

/// The three arrays, and how far the present loop has come.
pub(super) struct Stream {
    arrays: [&'static mut [f64]; 3],
    /// What all numbers of each array should be.
    expected: [f64; 3],
    stage: Stage,
    at: usize,
    round: u32,
    /// The largest deviation of a number in the present check.
    deviation: f64,
    done: Done,
}

impl Stream {
    /// Three equal arrays that fill this memory.
    pub(super) fn new(memory: &'static mut [f64]) -> Self {
        let length = (memory.len() / 3).max(1);
        let (a, rest) = memory.split_at_mut(length);
        let (b, rest) = rest.split_at_mut(length);
        let arrays = [a, b, &mut rest[..length]];
        Self { arrays, expected: [0.0; 3], stage: Stage::Fill, at: 0, round: 0, deviation: 0.0, done: Done::default() }
    }

    /// What follows a stage that has gone through all numbers.
    fn after(&mut self) -> Stage {
        let [a, b, c] = &mut self.expected;
        match self.stage {
            Stage::Fill => {
                (*a, *b, *c) = (1.0, 2.0, 0.0);
                self.round = 0;
                return Stage::Loop(0);
            }
            Stage::Loop(0) => *c = *a,
            Stage::Loop(1) => *b = FACTOR * *c,
            Stage::Loop(2) => *c = *a + *b,
            Stage::Loop(_) => {
                *a = *b + FACTOR * *c;
                self.round += 1;
                return if self.round < ROUNDS { Stage::Loop(0) } else { Stage::Check };
            }
            Stage::Check => {
                self.done.checked += 1;
                self.done.worst = self.done.worst.max(std::mem::take(&mut self.deviation));
                return Stage::Fill;
            }
        }
        let Stage::Loop(n) = self.stage else { unreachable!("the other stages have returned") };
        Stage::Loop(n + 1)
    }
}

impl Kernel for Stream {
    fn piece(&mut self) -> u64 {
        let range = self.at..(self.at + PIECE).min(self.arrays[0].len());
        let count = range.len() as u64;
        let [a, b, c] = &mut self.arrays;
        let (a, b, c) = (&mut a[range.clone()], &mut b[range.clone()], &mut c[range.clone()]);
        match self.stage {
            Stage::Fill => {
                a.fill(1.0);
                b.fill(2.0);
                c.fill(0.0);
            }
            Stage::Loop(0) => c.copy_from_slice(a),
            Stage::Loop(1) => b.iter_mut().zip(&*c).for_each(|(b, c)| *b = FACTOR * c),
            Stage::Loop(2) => c.iter_mut().zip(&*a).zip(&*b).for_each(|((c, a), b)| *c = a + b),
            Stage::Loop(_) => a.iter_mut().zip(&*b).zip(&*c).for_each(|((a, b), c)| *a = b + FACTOR * c),
            Stage::Check => {
                for (array, expected) in [a, b, c].iter().zip(self.expected) {
                    let off = array.iter().map(|x| ((x - expected) / expected).abs());
                    self.deviation = off.fold(self.deviation, |most, x| if x <= most { most } else { x });
                }
            }
        }
        let bytes = if let Stage::Loop(n) = self.stage { BYTES[n] } else { 0 };
        self.done.units += bytes * count;
        self.at = range.end;
        if self.at == self.arrays[0].len() {
            self.at = 0;
            self.stage = self.after();
        }
        bytes.max(BYTES[3]) * count
    }

    fn done(&self) -> Done {
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rounds: u64, spoil: bool) -> Stream {
        let mut stream = Stream::new(vec![0.0; 3 * 5000].leak());
        while stream.done.checked < rounds {
            if spoil && stream.stage == Stage::Loop(1) && stream.round == 5 {
                stream.arrays[0][4999] *= 1.0 + 1e-9;
            }
            stream.piece();
        }
        stream
    }

    #[test]
    fn the_numbers_are_those_that_stream_expects() {
        let stream = run(2, false);
        assert!(stream.done.worst < 1e-13, "{}", stream.done.worst);
        assert_eq!(stream.done.units, 2 * 10 * 5000 * 80);
    }

    #[test]
    fn a_number_that_somebody_else_wrote_fails_the_check() {
        assert!(run(1, true).done.worst > 1e-10);
    }
}

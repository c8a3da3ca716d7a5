//! A number over time, such as the length of a run queue: its steps, and sums of every 64 of them.

use schedlab_base::Nanos;

/// So many steps have their sums in common.
const BLOCK: usize = 64;

/// The value is not known.
pub const UNKNOWN: u64 = u64::MAX;

/// What a stretch of time comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Area {
    /// The sum of value times time, where it is known.
    pub area: f64,
    /// For how long it is known.
    pub known: Nanos,
    /// For how long tasks waited.
    pub waiting: Nanos,
}

impl Area {
    fn add(&mut self, step: Step, length: Nanos) {
        if step.value != UNKNOWN {
            self.area += step.value as f64 * length as f64;
            self.known += length;
            self.waiting += if step.waiting { length } else { 0 };
        }
    }

    fn add_block(&mut self, block: &Self) {
        self.area += block.area;
        self.known += block.known;
        self.waiting += block.waiting;
    }

    /// The mean, where it is known.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.known > 0).then(|| self.area / self.known as f64)
    }
}

/// A value, and whether tasks wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The value, or [`UNKNOWN`].
    pub value: u64,
    /// Whether tasks wait.
    pub waiting: bool,
}

/// The steps, in order. Before the first the value is not known.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    starts: Vec<Nanos>,
    /// The value and one bit: whether tasks wait; all bits: not known. Few values need more than 31 bits.
    words: Vec<u32>,
    /// The sums of whole blocks.
    blocks: Vec<Area>,
    current: Area,
}

impl Steps {
    /// From `time` on the value is this. A time before the last step counts as that of the last step.
    pub fn push(&mut self, time: Nanos, step: Step) {
        let word = match step.value {
            UNKNOWN => u32::MAX,
            value => (value.min(u64::from(u32::MAX >> 1) - 1) as u32) << 1 | u32::from(step.waiting),
        };
        let last = self.starts.last().copied();
        let time = time.max(last.unwrap_or(0));
        if self.words.last() == Some(&word) {
            return;
        }
        if let (Some(last), Some(step)) = (last, self.words.last().map(|word| step_of(*word))) {
            self.current.add(step, time - last);
            if last == time {
                *self.words.last_mut().expect("there is a step") = word;
                return;
            }
        }
        if self.starts.len().is_multiple_of(BLOCK) && !self.starts.is_empty() {
            self.blocks.push(std::mem::take(&mut self.current));
        }
        self.starts.push(time);
        self.words.push(word);
    }

    /// Gives back memory that is not needed when nothing follows any more.
    pub fn close(&mut self) {
        self.starts.shrink_to_fit();
        self.words.shrink_to_fit();
        self.blocks.shrink_to_fit();
    }

    /// The bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.starts.capacity() * 8 + self.words.capacity() * 4 + self.blocks.capacity() * size_of::<Area>()
    }

    /// How many steps there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The number of the step that holds at this instant; none before the first.
    #[must_use]
    pub fn find(&self, time: Nanos) -> Option<usize> {
        self.starts.partition_point(|start| *start <= time).checked_sub(1)
    }

    /// A step: from when, until when, and its value.
    #[must_use]
    pub fn get(&self, at: usize, now: Nanos) -> Option<(Nanos, Nanos, Step)> {
        let from = *self.starts.get(at)?;
        let to = self.starts.get(at + 1).copied().unwrap_or(now.max(from));
        Some((from, to, step_of(self.words[at])))
    }

    /// The value at this instant, if it is known.
    #[must_use]
    pub fn value(&self, time: Nanos) -> Option<u64> {
        let step = step_of(self.words[self.find(time)?]);
        (step.value != UNKNOWN).then_some(step.value)
    }

    /// What a stretch of time comes to. `cursor` is a step not after its start, and becomes one at its end.
    pub fn area(&self, from: Nanos, to: Nanos, now: Nanos, cursor: &mut usize) -> Area {
        let mut area = Area::default();
        let (add, add_block) = (|area: &mut Area, word, length| area.add(step_of(word), length), Area::add_block);
        self.walk((from, to.min(now)), cursor, &mut area, add, add_block);
        area
    }

    /// For how long tasks waited in a stretch of time; with `cursor` as above.
    pub fn waiting(&self, from: Nanos, to: Nanos, now: Nanos, cursor: &mut usize) -> Nanos {
        let mut waiting = 0;
        let add = |waiting: &mut Nanos, word, length| *waiting += if step_of(word).waiting { length } else { 0 };
        self.walk((from, to.min(now)), cursor, &mut waiting, add, |waiting, block| *waiting += block.waiting);
        waiting
    }

    /// Adds up the steps between two instants, by whole blocks where they are inside.
    fn walk<T>(
        &self,
        (from, to): (Nanos, Nanos),
        cursor: &mut usize,
        sum: &mut T,
        add: impl Fn(&mut T, u32, Nanos),
        add_block: impl Fn(&mut T, &Area),
    ) {
        let mut at = *cursor;
        while let Some(start) = self.starts.get(at).copied().filter(|start| *start < to) {
            let next = (at / BLOCK + 1) * BLOCK;
            if at.is_multiple_of(BLOCK)
                && start >= from
                && let (Some(block), Some(end)) = (self.blocks.get(at / BLOCK), self.starts.get(next))
                && *end <= to
            {
                add_block(sum, block);
                at = next;
                continue;
            }
            // The steps of this block that end within the stretch.
            let mut time = start.max(from);
            let ends = self.starts.get(at + 1..self.starts.len().min(next + 1)).unwrap_or_default();
            for (end, word) in ends.iter().zip(&self.words[at..]) {
                if *end > to {
                    break;
                }
                add(sum, *word, end.saturating_sub(time));
                time = time.max(*end);
                at += 1;
            }
            if at == next {
                continue;
            }
            // The one that lasts longer, or is the last one.
            add(sum, self.words[at], to.saturating_sub(time));
            break;
        }
        *cursor = at;
    }
}

fn step_of(word: u32) -> Step {
    if word == u32::MAX {
        Step { value: UNKNOWN, waiting: false }
    } else {
        Step { value: u64::from(word >> 1), waiting: word & 1 == 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn areas_are_those_of_the_single_steps(
            lengths in proptest::collection::vec((0u64..50, 0u64..6), 1..400),
            cuts in proptest::collection::vec(0u64..12_000, 0..20),
        ) {
            let (mut steps, mut time, mut truth) = (Steps::default(), 5, Vec::new());
            for (length, value) in lengths {
                let step = Step { value: if value == 5 { UNKNOWN } else { value }, waiting: value > 1 && value < 5 };
                steps.push(time, step);
                truth.push((time, time + length, step));
                time += length;
            }
            let now = time;
            let mut cuts: Vec<u64> = cuts.into_iter().map(|cut| cut.min(now)).chain([0, now]).collect();
            cuts.sort_unstable();
            let mut cursor = 0;
            for pair in cuts.windows(2) {
                let area = steps.area(pair[0], pair[1], now, &mut cursor);
                let mut slow = Area::default();
                for (from, to, step) in &truth {
                    slow.add(*step, (*to).min(pair[1]).saturating_sub((*from).max(pair[0])));
                }
                prop_assert_eq!(area, slow);
            }
        }
    }
}

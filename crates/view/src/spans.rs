//! What a row did over time: spans that follow each other without gaps, and sums of every 64 of them.
//!
//! A span takes 12 bytes. What a stretch of time comes to is read from the sums of whole blocks and from the spans at
//! its two ends, so it is exact at every level of zoom, and costs about the same at each.

use schedlab_base::Nanos;

/// So many spans have their sums in common.
const BLOCK: usize = 64;

/// Nobody.
pub const NONE: u32 = (1 << 29) - 1;

/// What a row does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Nobody knows.
    #[default]
    Unknown = 0,
    /// The CPU runs its idle task.
    Idle = 1,
    /// The task runs, or the CPU runs a task.
    Running = 2,
    /// The task is runnable, and another has the CPU.
    Waiting = 3,
    /// The task sleeps.
    Sleeping = 4,
    /// The task sleeps uninterruptibly.
    Blocked = 5,
    /// The task does not exist yet, or has ended.
    Absent = 7,
}

/// How many numbers states have.
pub const STATES: usize = 8;

impl State {
    fn of(bits: u32) -> Self {
        match bits {
            1 => Self::Idle,
            2 => Self::Running,
            3 => Self::Waiting,
            4 => Self::Sleeping,
            5 => Self::Blocked,
            7 => Self::Absent,
            _ => Self::Unknown,
        }
    }
}

/// A span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first instant.
    pub from: Nanos,
    /// The end.
    pub to: Nanos,
    /// What the row did.
    pub state: State,
    /// The task that the CPU ran, or the CPU that the task had or waited for; [`NONE`] if there is none.
    pub who: u32,
}

/// A state and who, as they are stored.
fn word_of(state: State, who: u32) -> u32 {
    (state as u32) << 29 | who.min(NONE)
}

/// What a stretch of time comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums {
    /// The time in each state.
    pub time: [Nanos; STATES],
    /// The longest part of a running span.
    pub longest: Nanos,
    /// Who it was.
    pub who: u32,
}

impl Default for Sums {
    fn default() -> Self {
        Self { time: [0; STATES], longest: 0, who: NONE }
    }
}

impl Sums {
    /// Adds a part of a span of this word.
    fn add(&mut self, word: u32, length: Nanos) {
        let state = (word >> 29) as usize;
        self.time[state] += length;
        // Which span is the longest cannot be foreseen, so there is no branch.
        let longest = if state == State::Running as usize { length } else { 0 };
        let longer = longest > self.longest;
        self.longest = self.longest.max(longest);
        self.who = if longer { word & NONE } else { self.who };
    }

    fn add_block(&mut self, block: &Self) {
        self.time.iter_mut().zip(block.time).for_each(|(sum, part)| *sum += part);
        if block.longest > self.longest {
            (self.longest, self.who) = (block.longest, block.who);
        }
    }

    /// The state that took most of the time.
    #[must_use]
    pub fn dominant(&self) -> State {
        let most = (1..STATES).fold(0, |most, state| if self.time[state] > self.time[most] { state } else { most });
        State::of(most as u32)
    }
}

/// The spans of a row, in order, from the trace's start on.
#[derive(Clone, Debug, Default)]
pub struct Spans {
    starts: Vec<Nanos>,
    /// The state in the highest three bits, and who.
    what: Vec<u32>,
    blocks: Vec<Sums>,
    end: Nanos,
    /// What the row does since then, as far as is known before the span has ended.
    tail: Option<(State, u32)>,
}

impl Spans {
    /// Until when spans are there.
    #[must_use]
    pub fn end(&self) -> Nanos {
        self.end
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Appends a span that lasts until `to`; what lies between the last one and `from` was `gap`. What was already told
    /// to be something else stays so.
    pub fn push(&mut self, from: Nanos, to: Nanos, (state, who): (State, u32), gap: State) {
        if from > self.end {
            self.append(from, gap, NONE);
        }
        if to > self.end {
            self.append(to, state, who);
        }
    }

    fn append(&mut self, to: Nanos, state: State, who: u32) {
        let (length, word) = (to - self.end, word_of(state, who));
        if self.what.last() == Some(&word) {
            // The longest part is that of the whole span, which may have begun earlier.
            let (block, first) = (self.blocks.len() - 1, self.starts[self.starts.len() - 1]);
            let block = &mut self.blocks[block];
            block.time[state as usize] += length;
            if state == State::Running && to - first > block.longest {
                (block.longest, block.who) = (to - first, who.min(NONE));
            }
        } else {
            if self.starts.len().is_multiple_of(BLOCK) {
                self.blocks.push(Sums::default());
            }
            self.starts.push(self.end);
            self.what.push(word);
            let block = self.blocks.len() - 1;
            self.blocks[block].add(word, length);
        }
        self.end = to;
    }

    /// What the row does from the end on, as far as is known so far.
    pub fn set_tail(&mut self, tail: Option<(State, u32)>) {
        self.tail = tail;
    }

    /// What it does now, if that is known.
    #[must_use]
    pub fn tail(&self) -> Option<(State, u32)> {
        self.tail
    }

    /// Gives back memory that is not needed when nothing follows any more.
    pub fn close(&mut self) {
        self.tail = None;
        self.starts.shrink_to_fit();
        self.what.shrink_to_fit();
        self.blocks.shrink_to_fit();
    }

    /// The bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.starts.capacity() * 8 + self.what.capacity() * 4 + self.blocks.capacity() * size_of::<Sums>()
    }

    /// The span with this number; the one after the last is what lasts until `now`.
    #[must_use]
    pub fn get(&self, at: usize, now: Nanos) -> Option<Span> {
        let from = self.starts.get(at).copied().unwrap_or(self.end);
        let (to, word) = self.stored(at, now)?;
        Some(Span { from, to, state: State::of(word >> 29), who: word & NONE })
    }

    /// The end of the span with this number, and what it is.
    fn stored(&self, at: usize, now: Nanos) -> Option<(Nanos, u32)> {
        if let Some(word) = self.what.get(at) {
            return Some((self.starts.get(at + 1).copied().unwrap_or(self.end), *word));
        }
        let lasts = at == self.what.len() && now > self.end;
        lasts.then(|| (now, self.tail.map_or(NONE, |(state, who)| word_of(state, who))))
    }

    /// The number of the span at this instant.
    #[must_use]
    pub fn find(&self, time: Nanos) -> usize {
        if time >= self.end { self.starts.len() } else { self.starts.partition_point(|start| *start <= time) - 1 }
    }

    /// The spans of a stretch of time, clipped to it.
    pub fn within(&self, from: Nanos, to: Nanos, now: Nanos) -> impl Iterator<Item = Span> {
        let (first, to) = (self.find(from), to.min(now));
        let all = (first..).map_while(move |at| self.get(at, now));
        let inside = all.take_while(move |span| span.from < to);
        inside.map(move |span| Span { from: span.from.max(from), to: span.to.min(to), ..span })
    }

    /// How many spans a stretch of time has.
    #[must_use]
    pub fn count(&self, from: Nanos, to: Nanos) -> usize {
        if to <= from { 0 } else { self.find(to - 1) + 1 - self.find(from) }
    }

    /// What a stretch of time comes to. `cursor` is the number of the span at its start, and becomes that at its end.
    pub fn sums(&self, from: Nanos, to: Nanos, now: Nanos, cursor: &mut usize) -> Sums {
        let mut sums = Sums::default();
        let (starts, what) = (&self.starts[..], &self.what[..]);
        let (mut at, mut time, to) = (*cursor, from, to.min(now));
        while time < to {
            if at.is_multiple_of(BLOCK) && starts.get(at) == Some(&time) {
                let next = starts.get(at + BLOCK).copied();
                let whole = next.or((at + BLOCK == starts.len()).then_some(self.end));
                if let Some(end) = whole.filter(|end| *end <= to) {
                    sums.add_block(&self.blocks[at / BLOCK]);
                    (time, at) = (end, at + BLOCK);
                    continue;
                }
            }
            // The spans until the next block that end within the stretch.
            let block = (at / BLOCK + 1) * BLOCK;
            let ends = starts.get(at + 1..starts.len().min(block + 1)).unwrap_or_default();
            for (end, word) in ends.iter().zip(what.get(at..).unwrap_or_default()) {
                if *end > to {
                    break;
                }
                sums.add(*word, end - time);
                time = *end;
                at += 1;
            }
            if at == block {
                continue;
            }
            let Some((end, word)) = self.stored(at, now) else { break };
            sums.add(word, end.min(to).saturating_sub(time));
            time = end;
            if end > to {
                break;
            }
            at += 1;
        }
        *cursor = at;
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(lengths: &[(u64, u8, u32)]) -> Spans {
        let mut spans = Spans::default();
        let mut now = 0;
        for (length, state, who) in lengths {
            let from = now + if who % 5 == 0 { 3 } else { 0 };
            now = from + length;
            spans.push(from, now, (State::of(u32::from(*state)), *who), State::Unknown);
        }
        spans
    }

    proptest! {
        #[test]
        fn sums_are_those_of_the_single_spans(
            lengths in proptest::collection::vec((0u64..50, 0u8..8, 0u32..4), 1..400),
            cuts in proptest::collection::vec(0u64..20_000, 0..20),
        ) {
            let spans = row(&lengths);
            let now = spans.end() + 7;
            let mut cuts: Vec<u64> = cuts.into_iter().map(|cut| cut.min(now)).chain([0, now]).collect();
            cuts.sort_unstable();
            let (mut all, mut cursor) = (Sums::default(), 0);
            for pair in cuts.windows(2) {
                let sums = spans.sums(pair[0], pair[1], now, &mut cursor);
                let mut slow = Sums::default();
                for span in spans.within(pair[0], pair[1], now) {
                    slow.add(word_of(span.state, span.who), span.to - span.from);
                }
                prop_assert_eq!((sums.time, sums.longest), (slow.time, slow.longest));
                prop_assert_eq!(sums.time.iter().sum::<u64>(), pair[1] - pair[0]);
                all.add_block(&sums);
            }
            let whole = spans.sums(0, now, now, &mut 0);
            prop_assert_eq!(all.time, whole.time);
        }
    }

    #[test]
    fn what_was_told_first_stays() {
        let mut spans = Spans::default();
        spans.push(10, 20, (State::Running, 1), State::Absent);
        spans.push(15, 30, (State::Waiting, 2), State::Unknown);
        spans.push(5, 12, (State::Running, 3), State::Unknown);
        let all: Vec<_> = spans.within(0, 40, 40).map(|span| (span.from, span.to, span.state)).collect();
        let expected =
            [(0, 10, State::Absent), (10, 20, State::Running), (20, 30, State::Waiting), (30, 40, State::Unknown)];
        assert_eq!(all, expected);
    }
}

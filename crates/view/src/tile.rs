//! Tiles: what rows did during 512 bins of time, span by span where they are few, bin by bin where they are many.

use crate::arrow::{ranges, stream};
use crate::index::Index;
use crate::rows::{Of, Rows};
use crate::spans::{NONE, STATES, Span, Spans, State, Sums};
use crate::steps::Steps;
use arrow_array::{ArrayRef, Float32Array, UInt8Array, UInt32Array};
use schedlab_base::Nanos;
use std::collections::HashMap;
use std::sync::Arc;

/// A tile has so many bins, and a row that is exact at most so many spans.
pub const BINS: u64 = 512;

/// A bin is at most 2 to the power of this many ns: 19 hours.
pub const MAX_LEVEL: u32 = 46;

/// The bins of so many rows are kept for their own rows when their group was made of them, in each tile.
const KEPT: usize = 256;

/// Stands for no task, or no CPU.
const NOBODY: u32 = u32::MAX;

/// Which tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// A bin is 2 to the power of this many ns.
    pub level: u32,
    /// The number of the tile.
    pub tile: u64,
}

impl Place {
    /// Its first instant and the width of its bins.
    #[must_use]
    pub fn bounds(self) -> (Nanos, Nanos) {
        let width = 1 << self.level.min(MAX_LEVEL);
        (self.tile.saturating_mul(BINS * width), width)
    }
}

/// The columns of a tile.
#[derive(Debug, Default)]
struct Columns {
    start: Vec<f32>,
    width: Vec<f32>,
    state: Vec<u8>,
    task: Vec<u32>,
    /// Running, waiting, blocked, unknown.
    shares: [Vec<u8>; 4],
    /// How many spans each row has.
    spans: Vec<usize>,
    /// The rows whose spans are exact.
    exact: Vec<u32>,
}

/// A part of a whole in 1/255, rounded, which is 0 or 255 only where that is exact.
fn share(part: f64, whole: f64) -> u8 {
    if part <= 0.0 || whole <= 0.0 {
        0
    } else if part >= whole {
        255
    } else {
        (part / whole * 255.0 + 0.5).clamp(1.0, 254.0) as u8
    }
}

impl Columns {
    fn push(&mut self, (start, width): (f32, f32), state: State, who: u32, shares: [u8; 4]) {
        self.start.push(start);
        self.width.push(width);
        self.state.push(state as u8);
        self.task.push(if who == NONE { NOBODY } else { who });
        self.shares.iter_mut().zip(shares).for_each(|(column, share)| column.push(share));
    }

    fn append(&mut self, mut other: Self) {
        self.start.append(&mut other.start);
        self.width.append(&mut other.width);
        self.state.append(&mut other.state);
        self.task.append(&mut other.task);
        self.shares.iter_mut().zip(&mut other.shares).for_each(|(column, more)| column.append(more));
    }

    fn finish(self, beside: &[(&str, String)]) -> Vec<u8> {
        let u32s = |column: Vec<u32>| Arc::new(UInt32Array::from(column)) as ArrayRef;
        let f32s = |column: Vec<f32>| Arc::new(Float32Array::from(column)) as ArrayRef;
        let u8s = |column: Vec<u8>| Arc::new(UInt8Array::from(column)) as ArrayRef;
        let mut columns = vec![("state", u8s(self.state)), ("task", u32s(self.task))];
        if !self.start.is_empty() {
            columns.extend([("start", f32s(self.start)), ("width", f32s(self.width))]);
        }
        // Most tiles have nothing blocked and nothing unknown.
        let shares = ["running", "waiting", "blocked", "unknown"].into_iter().zip(self.shares);
        let some = shares.filter(|(_, shares)| shares.iter().any(|share| *share != 0));
        columns.extend(some.map(|(name, shares)| (name, u8s(shares))));
        stream(columns, beside)
    }
}

/// These tiles of these rows, one after the other.
#[must_use]
pub fn tiles(index: &Index, rows: &Rows, wanted: &[u32], places: &[Place]) -> Vec<u8> {
    let parts = apart(places, |place| columns(index, rows, wanted, place));
    let counts = |part: &Columns| part.spans.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let spans: Vec<String> = parts.iter().map(counts).collect();
    let exact: Vec<String> = parts.iter().map(|part| ranges(part.exact.iter().copied())).collect();
    let last = |part: &Columns| part.width.last().map_or_else(String::new, f32::to_string);
    let mut beside = vec![("spans", spans.join(";")), ("exact", exact.join(";"))];
    let even = parts.iter().all(|part| part.exact.is_empty());
    if even {
        beside.push(("last", parts.iter().map(last).collect::<Vec<_>>().join(";")));
    }
    let all = parts.into_iter().reduce(|mut all, part| {
        all.append(part);
        all
    });
    let mut all = all.unwrap_or_default();
    if even {
        // One span a bin in each row: where it is, its number says. That is half of a full tile.
        (all.start, all.width) = Default::default();
    }
    all.finish(&beside)
}

/// What is computed for each tile, on a thread for each: they are few, and somebody waits for them.
pub(crate) fn apart<T: Send>(places: &[Place], of: impl Fn(Place) -> T + Sync) -> Vec<T> {
    let Some((first, others)) = places.split_first() else { return Vec::new() };
    let of = &of;
    std::thread::scope(|scope| {
        let others: Vec<_> = others.iter().map(|place| scope.spawn(move || of(*place))).collect();
        let mut all = vec![of(*first)];
        all.extend(others.into_iter().map(|other| other.join().expect("a tile's thread has no reason to panic")));
        all
    })
}

/// What a row did in a bin.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    sums: Sums,
    waiting: Nanos,
}

/// Makes a tile: what several rows need is computed once.
struct Maker<'a> {
    index: &'a Index,
    rows: &'a Rows,
    place: Place,
    /// The bins of rows that were asked for and are below a group that was asked for as well.
    kept: HashMap<u32, Vec<Bin>>,
}

fn columns(index: &Index, rows: &Rows, wanted: &[u32], place: Place) -> Columns {
    let mut columns = Columns::default();
    let mut maker = Maker { index, rows, place, kept: HashMap::new() };
    for &number in wanted {
        let before = columns.start.len();
        match rows.rows.get(number as usize).map(|row| &row.of) {
            Some(Of::Group(_)) => maker.group(number, wanted, &mut columns),
            Some(_) => maker.row(number, &mut columns),
            None => {}
        }
        columns.spans.push(columns.start.len() - before);
    }
    columns
}

impl<'a> Maker<'a> {
    /// What is known of a row that is no group: its spans and, of a CPU, its queue.
    fn known(&self, number: u32) -> Option<(&'a Spans, Option<&'a Steps>)> {
        match self.rows.rows.get(number as usize)?.of {
            Of::Cpu(cpu) => Some((self.index.cpus.get(cpu as usize)?, self.index.queues.get(cpu as usize))),
            Of::Task(task) => Some((self.index.tasks.get(task as usize)?, None)),
            Of::Group(_) => None,
        }
    }

    fn row(&mut self, number: u32, columns: &mut Columns) {
        let Some((spans, queue)) = self.known(number) else { return };
        if self.exact(spans) {
            columns.exact.push(number);
            exact_row(self.index.end, spans, queue, self.place, columns);
        } else {
            let bins = self.kept.remove(&number).unwrap_or_else(|| self.bins(spans, queue));
            self.push(&bins, (1, 1), columns);
        }
    }

    fn exact(&self, spans: &Spans) -> bool {
        let (from, width) = self.place.bounds();
        spans.count(from, from + BINS * width) as u64 <= BINS
    }

    fn bins(&self, spans: &Spans, queue: Option<&Steps>) -> Vec<Bin> {
        let (now, (start, _)) = (self.index.end, self.place.bounds());
        let mut cursor = spans.find(start);
        let mut step = queue.and_then(|queue| queue.find(start)).unwrap_or(0);
        let bin = |(from, to)| {
            let sums = spans.sums(from, to, now, &mut cursor);
            let waiting = queue.map(|queue| queue.waiting(from, to, now, &mut step));
            Bin { waiting: waiting.unwrap_or(sums.time[State::Waiting as usize]), sums }
        };
        bounds(now, self.place).map(bin).collect()
    }

    /// Appends the bins of `count` rows together, of which `most` can run, wait and be blocked at once.
    fn push(&self, bins: &[Bin], (most, count): (usize, usize), columns: &mut Columns) {
        let (start, width) = self.place.bounds();
        for ((from, to), Bin { sums, waiting }) in bounds(self.index.end, self.place).zip(bins) {
            let length = (to - from) as f64;
            let of = |time: Nanos, rows: usize| share(time as f64, length * rows as f64);
            let time = |state: State, rows: usize| of(sums.time[state as usize], rows);
            let unknown = time(State::Unknown, count);
            let shares = [time(State::Running, most), of(*waiting, most), time(State::Blocked, most), unknown];
            columns.push(in_bins((from, to), start, width), sums.dominant(), sums.who, shares);
        }
    }

    /// What the rows of a group did together, of what they could have done at most.
    fn group(&mut self, number: u32, wanted: &[u32], columns: &mut Columns) {
        let mut all = vec![Bin::default(); BINS as usize];
        let mut count = 0;
        for below in (number + 1..).take(self.rows.below(number as usize).len()) {
            let Some((spans, queue)) = self.known(below) else { continue };
            count += 1;
            let bins = self.kept.remove(&below).unwrap_or_else(|| self.bins(spans, queue));
            for (all, bin) in all.iter_mut().zip(&bins) {
                (0..STATES).for_each(|state| all.sums.time[state] += bin.sums.time[state]);
                all.waiting += bin.waiting;
            }
            if self.kept.len() < KEPT && wanted.contains(&below) && !self.exact(spans) {
                self.kept.insert(below, bins);
            }
        }
        let most = count.min(self.index.queues.iter().filter(|queue| !queue.is_empty()).count().max(1));
        self.push(&all, (most, count), columns);
    }
}

fn exact_row(now: Nanos, spans: &Spans, queue: Option<&Steps>, place: Place, columns: &mut Columns) {
    let (start, width) = place.bounds();
    let end = start + BINS * width;
    let mut cursor = queue.and_then(|queue| queue.find(start)).unwrap_or(0);
    for span in spans.within(start, end, now) {
        let Span { from, to, state, who } = span;
        let waiting = queue.map(|queue| queue.waiting(from, to, now, &mut cursor));
        let is = |other: State| if state == other { 255 } else { 0 };
        let waiting = waiting.map_or(is(State::Waiting), |waiting| share(waiting as f64, (to - from) as f64));
        let shares = [is(State::Running), waiting, is(State::Blocked), is(State::Unknown)];
        columns.push(in_bins((from, to), start, width), state, who, shares);
    }
}

fn in_bins((from, to): (Nanos, Nanos), start: Nanos, width: Nanos) -> (f32, f32) {
    let bins = |time: Nanos| time as f64 / width as f64;
    (bins(from - start) as f32, bins(to - from) as f32)
}

/// The bins of a tile until the trace's end: from when to when.
fn bounds(now: Nanos, place: Place) -> impl Iterator<Item = (Nanos, Nanos)> {
    let (start, width) = place.bounds();
    let all = (0..BINS).map(move |bin| start.saturating_add(bin * width));
    all.take_while(move |from| *from < now).map(move |from| (from, (from + width).min(now)))
}

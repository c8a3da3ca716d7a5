//! Heat maps: what each CPU had over time, as the cells of a picture, CPUs by time.
//!
//! [`Heatmap`] is a sink for events; [`Heatmap::finish`] yields a [`Heat`]. Its memory is that of the picture: it grows
//! neither with the trace's length nor with its events. Queue lengths and loads are means over a cell, weighted by
//! time; of the CPUs that a scheduler looked at, each cell counts the looks by their reasons.

mod few;
mod grid;
mod rows;
#[cfg(test)]
mod tests;

pub use rows::{HeatRow, MOST_ROWS};

use few::{Counting, Few};
use grid::{Cell, Grid};
use rows::Rows;
use schedlab_base::{AffinityRecord, CpuId, Event, Looking, Meta, NameRecord, Nanos, PAGE, Payload, Sink, total};
use schedlab_track::{Chosen, Observer, Tracker, row};

/// How many reasons to look there are.
const REASONS: usize = Looking::ALL.len();

/// How often the scheduler looked, by reason in the order of [`Looking::ALL`].
pub type Looks = [u32; REASONS];

/// What is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Runnable tasks of each CPU, the running one included.
    Queue,
    /// Their load, in the scheduler's own unit.
    Load,
    /// Memory on each node, in MiB.
    Memory,
    /// The CPUs that the scheduler looked at.
    Considered {
        /// On behalf of this CPU only.
        by: Option<CpuId>,
        /// For these reasons only; for any when empty.
        why: Vec<Looking>,
    },
}

/// Which part of a trace is drawn, in which columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// So long after the trace's start.
    pub from: Nanos,
    /// Until so long after it; to the trace's end when left out, or when that comes first.
    pub to: Option<Nanos>,
    /// Columns of the picture.
    pub columns: usize,
}

/// The cells.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Means weighted by time; none where nothing is known.
    Means(Vec<Option<f64>>),
    /// Looks by reason.
    Looks(Vec<Looks>),
}

/// A heat map's cells, and what they stand for.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    /// What they show.
    pub what: What,
    /// The first instant, from the trace's start on.
    pub from: Nanos,
    /// The end.
    pub to: Nanos,
    /// The CPUs of each row.
    pub rows: Vec<HeatRow>,
    /// The columns of each row.
    pub columns: usize,
    /// The cells, row after row.
    pub cells: Cells,
    /// The scheduler itself told them; otherwise they follow from switches and wake-ups.
    pub told: bool,
}

impl Heat {
    /// The highest mean; 0 where there is none.
    #[must_use]
    pub fn highest(&self) -> f64 {
        match &self.cells {
            Cells::Means(means) => means.iter().flatten().copied().fold(0.0, f64::max),
            Cells::Looks(_) => 0.0,
        }
    }

    /// All looks, by reason.
    #[must_use]
    pub fn looks(&self) -> [u64; REASONS] {
        let mut sum = [0; REASONS];
        if let Cells::Looks(cells) = &self.cells {
            for cell in cells {
                sum.iter_mut().zip(cell).for_each(|(sum, count)| *sum += u64::from(*count));
            }
        }
        sum
    }

    /// What the row of a CPU (of a node, in a map of memory) has over the whole width: the mean where it is known, or
    /// the number of looks; none where there is no such row, or nothing is known.
    #[must_use]
    pub fn over_time(&self, row: u32) -> Option<f64> {
        let is = |r: &HeatRow| if r.cpus.is_empty() { r.node == Some(row) } else { r.cpus.contains(&row) };
        let at = self.rows.iter().position(is)?;
        let range = at * self.columns..(at + 1) * self.columns;
        match &self.cells {
            Cells::Means(means) => {
                let known: Vec<f64> = means[range].iter().flatten().copied().collect();
                (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
            }
            Cells::Looks(looks) => Some(total(looks[range].iter().flatten().copied())),
        }
    }

    /// The width of a column.
    #[must_use]
    pub fn column(&self) -> f64 {
        (self.to - self.from) as f64 / self.columns.max(1) as f64
    }
}

/// A value's area under time.
#[derive(Clone, Debug, Default)]
struct Mean {
    area: f64,
    known: f64,
}

impl Cell for Mean {
    fn add(&mut self, other: &Self, part: f64, _: bool) {
        self.area += other.area * part;
        self.known += other.known * part;
    }
}

#[derive(Clone, Debug, Default)]
struct Tally(Looks);

impl Cell for Tally {
    /// Looks have no length: they count where their cell begins.
    fn add(&mut self, other: &Self, _: f64, begins: bool) {
        if begins {
            self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum = sum.saturating_add(count));
        }
    }
}

/// What is known of a CPU since when.
#[derive(Clone, Copy, Debug, Default)]
struct Gauge {
    value: Option<u64>,
    since: Nanos,
}

/// Values over time.
#[derive(Debug)]
struct Means {
    rows: Rows,
    grid: Grid<Mean>,
    gauges: Vec<Gauge>,
    start: Nanos,
}

impl Means {
    fn set(&mut self, cpu: CpuId, now: Nanos, value: Option<u64>) {
        if self.gauges.get(cpu as usize).and_then(|gauge| gauge.value) == value {
            return;
        }
        let row = match self.rows.of(cpu) {
            Some(row) => row,
            None if self.rows.admit(cpu) => {
                self.grid.add_row();
                self.rows.rows.len() - 1
            }
            None => return,
        };
        let now = now.saturating_sub(self.start);
        let gauge = schedlab_track::row(&mut self.gauges, cpu);
        let since = gauge.since;
        gauge.since = now.max(since);
        if let Some(before) = std::mem::replace(&mut gauge.value, value) {
            self.grid.spread(row, since, now, |cell, time| {
                cell.area += before as f64 * time as f64;
                cell.known += time as f64;
            });
        }
    }

    /// Begins anew: all that was said so far follows from less than is told from now on.
    fn restart(&mut self, value: Option<u64>) {
        self.grid.clear();
        self.gauges.clear();
        for cpu in self.rows.rows.iter().flat_map(|row| &row.cpus) {
            *row(&mut self.gauges, *cpu) = Gauge { value, since: 0 };
        }
    }

    /// Pages come to a node, or leave it.
    fn shift(&mut self, node: u16, now: Nanos, change: impl FnOnce(u64) -> u64) {
        let node = CpuId::from(node);
        if self.rows.of(node).is_some() {
            let before = self.gauges[node as usize].value.unwrap_or(0);
            self.set(node, now, Some(change(before)));
        }
    }

    fn close(&mut self, end: Nanos) {
        for cpu in 0..self.gauges.len() {
            self.set(cpu as CpuId, end, None);
        }
    }
}

impl Observer for Means {
    #[inline]
    fn queue(&mut self, cpu: CpuId, now: Nanos, length: Option<u32>) {
        self.set(cpu, now, length.map(u64::from));
    }
}

#[derive(Debug)]
enum Store {
    Means(Means),
    Looks(Rows, Grid<Tally>),
}

/// A heat map in the making: feed it a trace, then [`Heatmap::finish`].
///
/// Queue lengths are those that the trace tells ([`Payload::Queue`]) from the first one on that it does; a trace that
/// tells none has them worked out by a [`Tracker`]. Loads are told or not known.
#[derive(Debug)]
pub struct Heatmap {
    what: What,
    window: Window,
    store: Store,
    tracker: Tracker,
    /// Only these tasks are counted.
    few: Option<Few>,
    /// A simulation's CPUs begin with empty queues, and it does not say so.
    idle_at_start: bool,
    told: bool,
    span: Option<(Nanos, Nanos)>,
    start: Option<Nanos>,
    now: Nanos,
}

impl Heatmap {
    /// A heat map of a trace with this head.
    #[must_use]
    pub fn new(meta: &Meta, what: What, window: Window) -> Self {
        let Window { from, to, columns } = window;
        let rows = if what == What::Memory { Rows::of_nodes(meta) } else { Rows::new(meta) };
        let count = rows.rows.len();
        // Of a trace whose length is known, each column is exact; the end may still come after the asked one.
        let end = meta.told().map(|(start, end)| end.saturating_sub(start).min(to.unwrap_or(Nanos::MAX)));
        let end = end.filter(|end| *end > from);
        let until = to.unwrap_or(Nanos::MAX);
        let store = if let What::Considered { .. } = what {
            Store::Looks(rows, Grid::new(from, until, end, columns, count))
        } else {
            let grid = Grid::new(from, until, end, columns, count);
            let mut means = Means { rows, grid, gauges: Vec::new(), start: 0 };
            if what == What::Memory {
                means.gauges = vec![Gauge { value: Some(0), since: 0 }; means.rows.keys()];
            }
            Store::Means(means)
        };
        let idle_at_start = meta.source == "sim";
        let (span, tracker) = (meta.told(), Tracker::new(meta));
        Self { what, window, store, tracker, few: None, idle_at_start, told: false, span, start: None, now: 0 }
    }

    /// A heat map of how many of these tasks are runnable on each CPU. It follows from switches and wake-ups, because
    /// what a trace tells of its queues counts all tasks.
    #[must_use]
    pub fn of_tasks(meta: &Meta, window: Window, tasks: Chosen) -> Self {
        Self { few: Some(Few::new(tasks)), ..Self::new(meta, What::Queue, window) }
    }

    /// Ends it: at `end`, or else at the end of the metadata's span, but never before the last event.
    #[must_use]
    pub fn finish(mut self, end: Option<Nanos>) -> Heat {
        let start = self.start.or(self.span.map(|(start, _)| start)).unwrap_or(0);
        let end = end.or(self.span.map(|(_, end)| end)).unwrap_or(0).max(self.now).max(start);
        let length = end - start;
        let (rows, cells, to) = match self.store {
            Store::Looks(rows, grid) => {
                let (cells, to) = grid.finish(length);
                (rows, Cells::Looks(cells.into_iter().map(|tally| tally.0).collect()), to)
            }
            Store::Means(mut means) => {
                if !self.told && self.what == What::Queue {
                    means.start = start;
                    match &mut self.few {
                        Some(few) => self.tracker.finish(Some(end), &mut Counting { means: &mut means, few }),
                        None => self.tracker.finish(Some(end), &mut means),
                    }
                }
                means.close(end);
                let (cells, to) = means.grid.finish(length);
                let unit = if self.what == What::Memory { PAGE as f64 / f64::from(1 << 20) } else { 1.0 };
                let mean = |cell: Mean| (cell.known > 0.0).then(|| cell.area / cell.known * unit);
                (means.rows, Cells::Means(cells.into_iter().map(mean).collect()), to)
            }
        };
        let Window { from, columns, .. } = self.window;
        Heat { what: self.what, from, to, rows: rows.rows, columns: columns.max(1), cells, told: self.told }
    }

    fn one(&mut self, event: &Event) {
        if self.start.is_none() {
            let start = self.span.map_or(event.time, |(start, _)| start.min(event.time));
            self.start = Some(start);
            if let Store::Means(means) = &mut self.store {
                means.start = start;
            }
        }
        let start = self.start.unwrap_or(event.time);
        self.now = self.now.max(event.time);
        if let (Store::Means(means), Some(few)) = (&mut self.store, &mut self.few) {
            self.tracker.event(event, &mut Counting { means, few });
            return;
        }
        match (&mut self.store, event.what) {
            (Store::Means(means), Payload::Pages { from, to, pages, .. }) if self.what == What::Memory => {
                self.told = true;
                means.shift(from, self.now, |before| before.saturating_sub(pages.into()));
                means.shift(to, self.now, |before| before.saturating_add(pages.into()));
            }
            (Store::Means(means), Payload::Queue { length, load }) if self.what != What::Memory => {
                if !std::mem::replace(&mut self.told, true) {
                    means.restart(self.idle_at_start.then_some(0));
                }
                let value = if self.what == What::Queue { length.into() } else { load };
                means.set(event.cpu, self.now, Some(value));
            }
            (Store::Means(means), _) if !self.told && self.what == What::Queue => self.tracker.event(event, means),
            (Store::Looks(rows, grid), Payload::Considered { why, word, mask, .. }) => {
                self.told = true;
                if wanted(&self.what, event.cpu, why) {
                    look(rows, grid, self.now - start, (why, word, mask));
                }
            }
            _ => {}
        }
    }
}

fn wanted(what: &What, cpu: CpuId, reason: Looking) -> bool {
    match what {
        What::Considered { by, why } => by.is_none_or(|by| by == cpu) && (why.is_empty() || why.contains(&reason)),
        What::Queue | What::Load | What::Memory => false,
    }
}

fn look(rows: &mut Rows, grid: &mut Grid<Tally>, time: Nanos, (why, word, mut mask): (Looking, u16, u64)) {
    while mask != 0 {
        let cpu = CpuId::from(word) * 64 + mask.trailing_zeros();
        mask &= mask - 1;
        if rows.of(cpu).is_none() && rows.admit(cpu) {
            grid.add_row();
        }
        if let Some(cell) = rows.of(cpu).and_then(|row| grid.cell(row, time)) {
            cell.0[why as usize] = cell.0[why as usize].saturating_add(1);
        }
    }
}

impl Sink for Heatmap {
    fn events(&mut self, batch: &[Event]) {
        batch.iter().for_each(|event| self.one(event));
    }

    fn name(&mut self, record: &NameRecord) {
        // Slots are numbered by names and affinities too: tasks were chosen in a reading that had them.
        if self.few.is_some() {
            self.tracker.name(record, &mut ());
        }
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        if self.few.is_some() {
            self.tracker.affinity(record, &mut ());
        }
    }

    fn lasts(&mut self, until: Nanos) {
        self.now = self.now.max(until);
    }

    fn wants_queues(&self) -> bool {
        self.what != What::Memory && self.few.is_none()
    }
}

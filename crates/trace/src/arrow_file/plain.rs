//! The quick way from a row to its event: for switches, wake-ups and migrations that lack nothing.
//!
//! These are nearly all rows of a trace. For blocks of 64 rows it is worked out at once which of them have every value
//! that their kind needs. A row with anything else about it is left to [`super::rows`], which takes all rows and says
//! what is wrong with a damaged one.

use super::MAX_TID;
use super::body::Column;
use super::rows::Dictionary;
use super::schema::{COLUMNS, Col, Kind};
use schedlab_base::{Context, Event, Nanos, Payload, TaskState, Tid};

/// As many rows have their validity in one word.
pub(super) const BLOCK: usize = 64;

/// The columns of a batch that these kinds of row fill. A column that has no value in any row is empty.
pub(super) struct Plain<'a> {
    kinds: &'a Dictionary<Kind>,
    states: &'a Dictionary<TaskState>,
    contexts: &'a Dictionary<Context>,
    time: &'a [[u8; 8]],
    cpu: &'a [[u8; 2]],
    event: &'a [[u8; 1]],
    tid: Values<'a, 4>,
    prio: Values<'a, 2>,
    state: Values<'a, 1>,
    next_tid: Values<'a, 4>,
    next_prio: Values<'a, 2>,
    other_tid: Values<'a, 4>,
    orig_cpu: Values<'a, 2>,
    target_cpu: Values<'a, 2>,
    context: Values<'a, 1>,
}

/// The values of a column, and which rows have one.
struct Values<'a, const N: usize> {
    values: &'a [[u8; N]],
    column: &'a Column,
}

/// For each row of a block a bit: whether it has what a row of that kind needs.
pub(super) struct Complete {
    switch: u64,
    waking: u64,
    wakeup: u64,
    migrate: u64,
    /// It names its context.
    context: u64,
}

impl<'a, const N: usize> Values<'a, N> {
    fn of(columns: &'a [Column; COLUMNS.len()], col: Col, rows: usize) -> Self {
        let column = &columns[col as usize];
        let values = if column.lacks_all() { &[] } else { column.values::<N>() };
        Self { values: values.get(..rows).unwrap_or_default(), column }
    }

    /// The rows of a block that have a value.
    fn known(&self, block: usize) -> u64 {
        if self.values.is_empty() { 0 } else { self.column.valid_word(block) }
    }
}

impl<'a> Plain<'a> {
    /// The columns, and what the indices of the dictionaries mean.
    pub(super) fn new(
        columns: &'a [Column; COLUMNS.len()],
        rows: usize,
        (kinds, states, contexts): (&'a Dictionary<Kind>, &'a Dictionary<TaskState>, &'a Dictionary<Context>),
    ) -> Self {
        Self {
            kinds,
            states,
            contexts,
            time: &columns[Col::Time as usize].values()[..rows],
            cpu: &columns[Col::Cpu as usize].values()[..rows],
            event: &columns[Col::Event as usize].values()[..rows],
            tid: Values::of(columns, Col::Tid, rows),
            prio: Values::of(columns, Col::Prio, rows),
            state: Values::of(columns, Col::State, rows),
            next_tid: Values::of(columns, Col::NextTid, rows),
            next_prio: Values::of(columns, Col::NextPrio, rows),
            other_tid: Values::of(columns, Col::OtherTid, rows),
            orig_cpu: Values::of(columns, Col::OrigCpu, rows),
            target_cpu: Values::of(columns, Col::TargetCpu, rows),
            context: Values::of(columns, Col::Context, rows),
        }
    }

    /// Which rows of a block lack nothing.
    pub(super) fn complete(&self, block: usize) -> Complete {
        let task = self.tid.known(block) & self.prio.known(block);
        let wakeup = task & self.target_cpu.known(block);
        Complete {
            switch: task & self.state.known(block) & self.next_tid.known(block) & self.next_prio.known(block),
            waking: wakeup & self.other_tid.known(block),
            wakeup,
            migrate: wakeup & self.orig_cpu.known(block),
            context: self.context.known(block),
        }
    }

    /// The event of a row; `None` if the row is of another kind, earlier than `last`, or unusual in any other way.
    #[inline(always)]
    pub(super) fn event(&self, complete: &Complete, row: usize, last: Nanos) -> Option<Event> {
        let time = u64::from_le_bytes(self.time[row]);
        if time < last {
            return None;
        }
        let has = |rows: u64| rows >> (row % BLOCK) & 1 == 1;
        let tid = || tid(self.tid.values[row]);
        let prio = || i16::from_le_bytes(self.prio.values[row]);
        let target = || u32::from(u16::from_le_bytes(self.target_cpu.values[row]));
        let what = match self.kinds[usize::from(self.event[row][0])]? {
            Kind::Switch if has(complete.switch) => Payload::Switch {
                prev: tid()?,
                prev_prio: prio(),
                prev_state: self.states[usize::from(self.state.values[row][0])]?,
                next: self::tid(self.next_tid.values[row])?,
                next_prio: i16::from_le_bytes(self.next_prio.values[row]),
            },
            Kind::Waking if has(complete.waking) => {
                let context = if has(complete.context) {
                    self.contexts[usize::from(self.context.values[row][0])]?
                } else {
                    Context::Unknown
                };
                let waker = self::tid(self.other_tid.values[row])?;
                Payload::Waking { tid: tid()?, prio: prio(), target: target(), waker, context }
            }
            Kind::Wakeup if has(complete.wakeup) => Payload::Wakeup { tid: tid()?, prio: prio(), target: target() },
            Kind::Migrate if has(complete.migrate) => {
                let from = u32::from(u16::from_le_bytes(self.orig_cpu.values[row]));
                Payload::Migrate { tid: tid()?, prio: prio(), from, to: target() }
            }
            _ => return None,
        };
        let cpu = u32::from(u16::from_le_bytes(self.cpu[row]));
        Some(Event { time, cpu, what })
    }
}

/// A thread id that a kernel can have given.
#[inline(always)]
fn tid(bytes: [u8; 4]) -> Option<Tid> {
    let tid = Tid::from_le_bytes(bytes);
    (0..=MAX_TID).contains(&tid).then_some(tid)
}

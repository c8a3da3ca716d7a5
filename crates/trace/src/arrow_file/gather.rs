//! Gathers the rows of a batch, column by column.

use super::schema::{COLUMNS, CONTEXTS, KINDS, Kind, STATES, Type};
use super::{META_KEY, VERSION, VERSION_KEY};
use arrow_array::builder::{ArrayBuilder, StringBuilder};
use arrow_array::types::{ArrowPrimitiveType, Int32Type, UInt16Type, UInt64Type};
use arrow_array::{
    ArrayRef, DictionaryArray, Int16Array, Int32Array, PrimitiveArray, RecordBatch, StringArray, UInt8Array,
    UInt16Array, UInt64Array,
};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use schedlab_base::{
    AffinityRecord, Context, CpuId, CpuList, Event, GroupRecord, Meta, NOWHERE, NameRecord, Nanos, Payload, TaskRecord,
    Tid,
};
use std::collections::HashMap;
use std::sync::Arc;

/// The Arrow schema with the version and the trace's metadata.
pub(super) fn schema(meta: &Meta) -> SchemaRef {
    let fields: Vec<Field> = COLUMNS
        .iter()
        .map(|&(name, column, nullable)| {
            let data_type = match column {
                Type::Int { bytes: 2, signed: false } => DataType::UInt16,
                Type::Int { bytes: 2, signed: true } => DataType::Int16,
                Type::Int { bytes: 4, .. } => DataType::Int32,
                Type::Int { .. } => DataType::UInt64,
                Type::Text => DataType::Utf8,
                Type::Dictionary => DataType::Dictionary(Box::new(DataType::UInt8), Box::new(DataType::Utf8)),
            };
            Field::new(name, data_type, nullable)
        })
        .collect();
    let meta = serde_json::to_string(meta).expect("plain data is always JSON");
    let metadata = HashMap::from([(VERSION_KEY.to_owned(), VERSION.to_owned()), (META_KEY.to_owned(), meta)]);
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

/// Whether a row says when the recording ended. Nobody knows that when a recording of a live kernel begins.
pub(super) fn has_end(meta: &Meta) -> bool {
    meta.source == "record"
}

/// The rows of the batch being gathered, column by column. The kind of a row decides which columns it fills. So only
/// the values are stored, with 0 where there is none, and the validity masks are computed at once when the batch is
/// full.
pub(super) struct Gather {
    schema: SchemaRef,
    kinds: ArrayRef,
    states: ArrayRef,
    contexts: ArrayRef,
    rows: Rows,
    /// Values of the columns that few rows fill, each with its row.
    orig_cpus: Vec<(usize, u16)>,
    counts: Vec<(usize, u64)>,
    names: Vec<(usize, NameRecord)>,
    /// Paths of cgroups and properties as JSON, of tasks and cgroups.
    paths: Vec<(usize, String)>,
    properties: Vec<(usize, String)>,
    cpus: Vec<(usize, String)>,
    reasons: Vec<(usize, &'static str)>,
    queues: Vec<(usize, u32, u64)>,
    pages: Vec<(usize, PageMove)>,
    /// The numbers of interrupts and signals.
    numbers: Vec<(usize, u16)>,
    /// How long interrupts took.
    took: Vec<(usize, Nanos)>,
}

/// What a row about moved pages holds: the process, the two nodes and the number of pages.
type PageMove = (Tid, [u16; 2], u32);

/// The columns that most rows fill.
#[derive(Default)]
struct Rows {
    time: Vec<u64>,
    cpu: Vec<u16>,
    kind: Vec<u8>,
    tid: Vec<i32>,
    prio: Vec<i16>,
    state: Vec<u8>,
    next_tid: Vec<i32>,
    next_prio: Vec<i16>,
    other_tid: Vec<i32>,
    target_cpu: Vec<u16>,
    context: Vec<u8>,
}

/// A row's values besides its time, CPU and kind; 0 where its kind has no such value.
#[derive(Default)]
struct Row {
    tid: Tid,
    prio: i16,
    state: u8,
    next_tid: Tid,
    next_prio: i16,
    other_tid: Tid,
    target_cpu: CpuId,
    context: Context,
}

/// A set of kinds, one bit per kind.
const fn of(kinds: &[Kind]) -> u32 {
    let (mut set, mut at) = (0, 0);
    while at < kinds.len() {
        set |= 1 << kinds[at] as u32;
        at += 1;
    }
    set
}

/// The kinds whose rows have a subject, the subject's priority, the columns of a switch, another task, a target.
const HAS_TID: u32 =
    !of(&[Kind::Lost, Kind::Queue, Kind::Pages, Kind::Group, Kind::End, Kind::Interrupt, Kind::Frequency]);
const HAS_PRIO: u32 = of(&[Kind::Switch, Kind::Waking, Kind::Wakeup, Kind::WakeupNew, Kind::Migrate, Kind::Exit]);
const IS_SWITCH: u32 = of(&[Kind::Switch]);
const HAS_OTHER: u32 = of(&[Kind::Waking, Kind::Fork, Kind::Exec]);
const HAS_TARGET: u32 = of(&[Kind::Waking, Kind::Wakeup, Kind::WakeupNew, Kind::Migrate, Kind::Frequency]);

impl Rows {
    fn reserve(&mut self, rows: usize) {
        self.time.reserve(rows);
        self.cpu.reserve(rows);
        self.kind.reserve(rows);
        self.tid.reserve(rows);
        self.prio.reserve(rows);
        self.state.reserve(rows);
        self.next_tid.reserve(rows);
        self.next_prio.reserve(rows);
        self.other_tid.reserve(rows);
        self.target_cpu.reserve(rows);
        self.context.reserve(rows);
    }

    #[inline]
    fn push(&mut self, time: Nanos, cpu: CpuId, kind: Kind, row: &Row) {
        self.time.push(time);
        self.cpu.push(cpu as u16);
        self.kind.push(kind as u8);
        self.tid.push(row.tid);
        self.prio.push(row.prio);
        self.state.push(row.state);
        self.next_tid.push(row.next_tid);
        self.next_prio.push(row.next_prio);
        self.other_tid.push(row.other_tid);
        self.target_cpu.push(row.target_cpu as u16);
        self.context.push(row.context as u8);
    }
}

impl Gather {
    pub(super) fn new(schema: SchemaRef) -> Self {
        Self {
            schema,
            kinds: Arc::new(StringArray::from_iter_values(KINDS.iter().map(|(_, name)| name))),
            states: Arc::new(StringArray::from_iter_values(STATES.iter().map(|(_, letter)| letter))),
            contexts: Arc::new(StringArray::from_iter_values(CONTEXTS.iter().map(|(_, name)| name))),
            rows: Rows::default(),
            orig_cpus: Vec::new(),
            counts: Vec::new(),
            names: Vec::new(),
            paths: Vec::new(),
            properties: Vec::new(),
            cpus: Vec::new(),
            reasons: Vec::new(),
            queues: Vec::new(),
            pages: Vec::new(),
            numbers: Vec::new(),
            took: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.kind.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.kind.is_empty()
    }

    #[inline]
    pub(super) fn event(&mut self, event: &Event) {
        match event.what {
            Payload::Migrate { from, .. } => self.orig_cpus.push((self.len(), from as u16)),
            Payload::Lost { count } => self.counts.push((self.len(), count)),
            Payload::Frequency { khz, .. } => self.counts.push((self.len(), khz.into())),
            Payload::Queue { length, load } => self.queues.push((self.len(), length, load)),
            Payload::Pages { tgid, from, to, pages } => self.pages.push((self.len(), (tgid, [from, to], pages))),
            Payload::Considered { why, word, mask, .. } => {
                self.cpus.push((self.len(), cpus_of(word, mask).to_string()));
                self.reasons.push((self.len(), why.name()));
            }
            Payload::Interrupt { kind, number, took } => {
                self.reasons.push((self.len(), kind.name()));
                self.numbers.push((self.len(), number));
                self.took.push((self.len(), took));
            }
            Payload::Sleeps { why, .. } => self.reasons.push((self.len(), why.name())),
            Payload::Killed { signal, .. } => self.numbers.push((self.len(), signal)),
            _ => {}
        }
        let (kind, row) = row_of(&event.what);
        self.rows.push(event.time, event.cpu, kind, &row);
    }

    pub(super) fn name(&mut self, name: &NameRecord) {
        self.names.push((self.len(), name.clone()));
        self.rows.push(name.time, 0, Kind::Name, &Row { tid: name.tid, ..Row::default() });
    }

    pub(super) fn affinity(&mut self, record: &AffinityRecord) {
        self.cpus.push((self.len(), record.cpus.to_string()));
        self.rows.push(record.time, 0, Kind::Affinity, &Row { tid: record.tid, ..Row::default() });
    }

    /// Takes a task's properties, as JSON.
    pub(super) fn task(&mut self, record: &TaskRecord, properties: String) {
        self.properties.push((self.len(), properties));
        self.rows.push(record.time, 0, Kind::Task, &Row { tid: record.tid, ..Row::default() });
    }

    /// Takes a cgroup's properties, as JSON.
    pub(super) fn group(&mut self, record: &GroupRecord, properties: String) {
        self.paths.push((self.len(), record.path.clone()));
        self.properties.push((self.len(), properties));
        self.rows.push(record.time, 0, Kind::Group, &Row::default());
    }

    pub(super) fn end(&mut self, time: Nanos) {
        self.rows.push(time, 0, Kind::End, &Row::default());
    }

    /// Builds a batch of the rows so far and starts a new one.
    pub(super) fn take(&mut self) -> RecordBatch {
        let rows = std::mem::take(&mut self.rows);
        let len = rows.kind.len();
        self.rows.reserve(len);
        let has = |set: u32| {
            let mask = NullBuffer::new(BooleanBuffer::collect_bool(len, |at| set >> rows.kind[at] & 1 == 1));
            Some(mask).filter(|mask| mask.null_count() > 0)
        };
        let dictionary = |keys: Vec<u8>, mask: Option<NullBuffer>, values: &ArrayRef| -> ArrayRef {
            let array = DictionaryArray::try_new(UInt8Array::new(keys.into(), mask), Arc::clone(values));
            Arc::new(array.expect("every key is one of the table's"))
        };
        let (subject, prio, switch, other, target) =
            (has(HAS_TID), has(HAS_PRIO), has(IS_SWITCH), has(HAS_OTHER), has(HAS_TARGET));
        let moved = std::mem::take(&mut self.pages);
        let (tgid, comm, cgroup) = self.take_names(len, &moved);
        let [orig_node, target_node, pages] = page_columns(len, &moved);
        let [cpus, why, length, load] = self.take_queues(len);
        let known = NullBuffer::new(BooleanBuffer::collect_bool(len, |at| rows.context[at] > 0));
        let contexts = rows.context.iter().map(|context| context.saturating_sub(1)).collect();
        let properties = std::mem::take(&mut self.properties);
        let (numbers, took) = (std::mem::take(&mut self.numbers), std::mem::take(&mut self.took));
        let columns: Vec<ArrayRef> = vec![
            Arc::new(UInt64Array::new(rows.time.into(), None)),
            Arc::new(UInt16Array::new(rows.cpu.into(), None)),
            dictionary(rows.kind, None, &self.kinds),
            Arc::new(Int32Array::new(rows.tid.into(), subject)),
            Arc::new(Int16Array::new(rows.prio.into(), prio)),
            dictionary(rows.state, switch.clone(), &self.states),
            Arc::new(Int32Array::new(rows.next_tid.into(), switch.clone())),
            Arc::new(Int16Array::new(rows.next_prio.into(), switch)),
            Arc::new(Int32Array::new(rows.other_tid.into(), other)),
            Arc::new(sparse::<UInt16Type>(len, self.orig_cpus.drain(..))),
            Arc::new(UInt16Array::new(rows.target_cpu.into(), target)),
            Arc::new(sparse::<UInt64Type>(len, self.counts.drain(..))),
            tgid,
            comm,
            cgroup,
            cpus,
            why,
            length,
            load,
            orig_node,
            target_node,
            pages,
            dictionary(contexts, Some(known), &self.contexts),
            sparse_text(len, properties.iter().map(|(at, text)| (*at, text.as_str()))),
            Arc::new(sparse::<UInt16Type>(len, numbers.into_iter())),
            Arc::new(sparse::<UInt64Type>(len, took.into_iter())),
        ];
        RecordBatch::try_new(Arc::clone(&self.schema), columns).expect("the columns are the schema's")
    }

    /// The columns of names. Rows about moved pages also fill the process column, and those about cgroups the paths.
    fn take_names(&mut self, len: usize, moved: &[(usize, PageMove)]) -> (ArrayRef, ArrayRef, ArrayRef) {
        let names = std::mem::take(&mut self.names);
        let tgids = names.iter().filter_map(|(at, name)| Some((*at, name.tgid?)));
        let tgids = tgids.chain(moved.iter().map(|(at, (tgid, ..))| (*at, *tgid)));
        let comms = names.iter().map(|(at, name)| (*at, name.comm.as_str()));
        let paths = std::mem::take(&mut self.paths);
        let of_names = names.iter().filter_map(|(at, name)| Some((*at, name.cgroup.as_deref()?)));
        let mut cgroups: Vec<_> = of_names.chain(paths.iter().map(|(at, path)| (*at, path.as_str()))).collect();
        cgroups.sort_unstable_by_key(|(at, _)| *at);
        (Arc::new(sparse::<Int32Type>(len, tgids)), sparse_text(len, comms), sparse_text(len, cgroups.into_iter()))
    }

    /// The four columns of queues, examined CPUs and affinities.
    fn take_queues(&mut self, len: usize) -> [ArrayRef; 4] {
        let cpus = std::mem::take(&mut self.cpus);
        let queues = std::mem::take(&mut self.queues);
        [
            sparse_text(len, cpus.iter().map(|(at, text)| (*at, text.as_str()))),
            sparse_text(len, self.reasons.drain(..)),
            Arc::new(sparse::<Int32Type>(len, queues.iter().map(|(at, length, _)| (*at, *length as i32)))),
            Arc::new(sparse::<UInt64Type>(len, queues.iter().map(|(at, _, load)| (*at, *load)))),
        ]
    }
}

/// The three columns that only rows about moved pages fill.
fn page_columns(len: usize, moved: &[(usize, PageMove)]) -> [ArrayRef; 3] {
    let node = |which: usize| {
        let filled = moved.iter().map(|(at, (_, nodes, _))| (*at, nodes[which]));
        Arc::new(sparse::<UInt16Type>(len, filled.filter(|(_, node)| *node != NOWHERE)))
    };
    let pages = sparse::<UInt64Type>(len, moved.iter().map(|(at, (.., pages))| (*at, u64::from(*pages))));
    [node(0), node(1), Arc::new(pages)]
}

/// The CPUs that one word of a mask stands for.
fn cpus_of(word: u16, mask: u64) -> CpuList {
    (0..64).filter(|bit| mask >> bit & 1 == 1).map(|bit| CpuId::from(word) * 64 + bit).collect()
}

/// A numeric column with values only in the `filled` rows.
fn sparse<T: ArrowPrimitiveType>(len: usize, filled: impl Iterator<Item = (usize, T::Native)>) -> PrimitiveArray<T> {
    let mut values = vec![T::default_value(); len];
    let mut mask = BooleanBufferBuilder::new(len);
    mask.append_n(len, false);
    for (at, value) in filled {
        values[at] = value;
        mask.set_bit(at, true);
    }
    let mask = NullBuffer::new(mask.finish());
    PrimitiveArray::new(values.into(), Some(mask).filter(|mask| mask.null_count() > 0))
}

/// A text column with values only in the `filled` rows, which are in ascending order.
fn sparse_text<'a>(len: usize, filled: impl Iterator<Item = (usize, &'a str)>) -> ArrayRef {
    let mut column = StringBuilder::new();
    for (at, text) in filled {
        column.append_nulls(at - column.len());
        column.append_value(text);
    }
    column.append_nulls(len - column.len());
    Arc::new(column.finish())
}

#[inline]
fn row_of(what: &Payload) -> (Kind, Row) {
    let none = Row::default();
    match *what {
        Payload::Switch { prev, prev_prio, prev_state, next, next_prio } => {
            let state = STATE_KEYS[prev_state as usize];
            (Kind::Switch, Row { tid: prev, prio: prev_prio, state, next_tid: next, next_prio, ..none })
        }
        Payload::Waking { tid, prio, target, waker, context } => {
            (Kind::Waking, Row { tid, prio, target_cpu: target, other_tid: waker, context, ..none })
        }
        Payload::Wakeup { tid, prio, target } => (Kind::Wakeup, Row { tid, prio, target_cpu: target, ..none }),
        Payload::WakeupNew { tid, prio, target } => (Kind::WakeupNew, Row { tid, prio, target_cpu: target, ..none }),
        Payload::Migrate { tid, prio, to, .. } => (Kind::Migrate, Row { tid, prio, target_cpu: to, ..none }),
        Payload::Fork { parent, child } => (Kind::Fork, Row { tid: child, other_tid: parent, ..none }),
        Payload::Exec { tid, old } => (Kind::Exec, Row { tid, other_tid: old, ..none }),
        Payload::Exit { tid, prio } => (Kind::Exit, Row { tid, prio, ..none }),
        Payload::Lost { .. } => (Kind::Lost, none),
        Payload::Queue { .. } => (Kind::Queue, none),
        Payload::Pages { .. } => (Kind::Pages, none),
        Payload::Interrupt { .. } => (Kind::Interrupt, none),
        Payload::Frequency { target, .. } => (Kind::Frequency, Row { target_cpu: target, ..none }),
        Payload::Sleeps { tid, .. } => (Kind::Sleeps, Row { tid, ..none }),
        Payload::Killed { tid, .. } => (Kind::Killed, Row { tid, ..none }),
        Payload::Considered { tid, .. } => (Kind::Considered, Row { tid, ..none }),
    }
}

/// The index of each state in the dictionary, by its letter.
const STATE_KEYS: [u8; 128] = {
    let mut keys = [0; 128];
    let mut at = 0;
    while at < STATES.len() {
        keys[STATES[at].0 as usize] = at as u8;
        at += 1;
    }
    keys
};

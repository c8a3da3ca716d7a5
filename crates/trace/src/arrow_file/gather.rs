//! Gathering the rows of a batch, column by column.

use super::schema::{COLUMNS, KINDS, Kind, STATES, Type};
use super::{META_KEY, VERSION, VERSION_KEY};
use arrow_array::builder::{Int16Builder, Int32Builder, StringBuilder, UInt8Builder, UInt16Builder, UInt64Builder};
use arrow_array::types::UInt8Type;
use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use schedlab_base::{CpuId, Event, Meta, NameRecord, Nanos, Payload, Tid};
use std::collections::HashMap;
use std::sync::Arc;

/// The Arrow schema, with the version and the trace's metadata.
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

/// The rows of the batch that is gathering, column by column.
pub(super) struct Gather {
    schema: SchemaRef,
    kinds: ArrayRef,
    states: ArrayRef,
    len: usize,
    time: UInt64Builder,
    cpu: UInt16Builder,
    event: UInt8Builder,
    tid: Int32Builder,
    prio: Int16Builder,
    state: UInt8Builder,
    next_tid: Int32Builder,
    next_prio: Int16Builder,
    other_tid: Int32Builder,
    orig_cpu: UInt16Builder,
    target_cpu: UInt16Builder,
    count: UInt64Builder,
    tgid: Int32Builder,
    comm: StringBuilder,
    cgroup: StringBuilder,
}

/// What a row holds beyond its time, its CPU and its kind.
#[derive(Default)]
struct Row<'a> {
    tid: Option<Tid>,
    prio: Option<i16>,
    state: Option<u8>,
    next_tid: Option<Tid>,
    next_prio: Option<i16>,
    other_tid: Option<Tid>,
    orig_cpu: Option<CpuId>,
    target_cpu: Option<CpuId>,
    count: Option<u64>,
    tgid: Option<Tid>,
    comm: Option<&'a str>,
    cgroup: Option<&'a str>,
}

impl Gather {
    pub(super) fn new(schema: SchemaRef) -> Self {
        Self {
            schema,
            kinds: Arc::new(StringArray::from_iter_values(KINDS.iter().map(|(_, name)| name))),
            states: Arc::new(StringArray::from_iter_values(STATES.iter().map(|(_, letter)| letter))),
            len: 0,
            time: UInt64Builder::new(),
            cpu: UInt16Builder::new(),
            event: UInt8Builder::new(),
            tid: Int32Builder::new(),
            prio: Int16Builder::new(),
            state: UInt8Builder::new(),
            next_tid: Int32Builder::new(),
            next_prio: Int16Builder::new(),
            other_tid: Int32Builder::new(),
            orig_cpu: UInt16Builder::new(),
            target_cpu: UInt16Builder::new(),
            count: UInt64Builder::new(),
            tgid: Int32Builder::new(),
            comm: StringBuilder::new(),
            cgroup: StringBuilder::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn push(&mut self, time: Nanos, cpu: CpuId, kind: Kind, row: &Row<'_>) {
        let narrow = |cpu: Option<CpuId>| cpu.map(|cpu| cpu as u16);
        self.time.append_value(time);
        self.cpu.append_value(cpu as u16);
        self.event.append_value(kind as u8);
        self.tid.append_option(row.tid);
        self.prio.append_option(row.prio);
        self.state.append_option(row.state);
        self.next_tid.append_option(row.next_tid);
        self.next_prio.append_option(row.next_prio);
        self.other_tid.append_option(row.other_tid);
        self.orig_cpu.append_option(narrow(row.orig_cpu));
        self.target_cpu.append_option(narrow(row.target_cpu));
        self.count.append_option(row.count);
        self.tgid.append_option(row.tgid);
        self.comm.append_option(row.comm);
        self.cgroup.append_option(row.cgroup);
        self.len += 1;
    }

    pub(super) fn event(&mut self, event: &Event) {
        let (kind, row) = row_of(&event.what);
        self.push(event.time, event.cpu, kind, &row);
    }

    pub(super) fn name(&mut self, name: &NameRecord) {
        let row = Row {
            tid: Some(name.tid),
            tgid: name.tgid,
            comm: Some(&name.comm),
            cgroup: name.cgroup.as_deref(),
            ..Row::default()
        };
        self.push(name.time, 0, Kind::Name, &row);
    }

    /// The batch so far; the rows start anew.
    pub(super) fn take(&mut self) -> RecordBatch {
        self.len = 0;
        let dictionary = |keys: &mut UInt8Builder, values: &ArrayRef| -> ArrayRef {
            let array = DictionaryArray::<UInt8Type>::try_new(keys.finish(), Arc::clone(values));
            Arc::new(array.expect("every key is one of the table's"))
        };
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(COLUMNS.len());
        columns.push(Arc::new(self.time.finish()));
        columns.push(Arc::new(self.cpu.finish()));
        columns.push(dictionary(&mut self.event, &self.kinds));
        columns.push(Arc::new(self.tid.finish()));
        columns.push(Arc::new(self.prio.finish()));
        columns.push(dictionary(&mut self.state, &self.states));
        columns.push(Arc::new(self.next_tid.finish()));
        columns.push(Arc::new(self.next_prio.finish()));
        columns.push(Arc::new(self.other_tid.finish()));
        columns.push(Arc::new(self.orig_cpu.finish()));
        columns.push(Arc::new(self.target_cpu.finish()));
        columns.push(Arc::new(self.count.finish()));
        columns.push(Arc::new(self.tgid.finish()));
        columns.push(Arc::new(self.comm.finish()));
        columns.push(Arc::new(self.cgroup.finish()));
        RecordBatch::try_new(Arc::clone(&self.schema), columns).expect("the columns are the schema's")
    }
}

fn row_of(what: &Payload) -> (Kind, Row<'static>) {
    let subject = |tid, prio| Row { tid: Some(tid), prio, ..Row::default() };
    match *what {
        Payload::Switch { prev, prev_prio, prev_state, next, next_prio } => {
            let state = STATES.iter().position(|(state, _)| *state == prev_state).map(|at| at as u8);
            let row = Row { state, next_tid: Some(next), next_prio: Some(next_prio), ..subject(prev, Some(prev_prio)) };
            (Kind::Switch, row)
        }
        Payload::Waking { tid, prio, target, waker } => {
            (Kind::Waking, Row { target_cpu: Some(target), other_tid: Some(waker), ..subject(tid, Some(prio)) })
        }
        Payload::Wakeup { tid, prio, target } => {
            (Kind::Wakeup, Row { target_cpu: Some(target), ..subject(tid, Some(prio)) })
        }
        Payload::WakeupNew { tid, prio, target } => {
            (Kind::WakeupNew, Row { target_cpu: Some(target), ..subject(tid, Some(prio)) })
        }
        Payload::Migrate { tid, prio, from, to } => {
            (Kind::Migrate, Row { orig_cpu: Some(from), target_cpu: Some(to), ..subject(tid, Some(prio)) })
        }
        Payload::Fork { parent, child } => (Kind::Fork, Row { other_tid: Some(parent), ..subject(child, None) }),
        Payload::Exec { tid, old } => (Kind::Exec, Row { other_tid: Some(old), ..subject(tid, None) }),
        Payload::Exit { tid, prio } => (Kind::Exit, subject(tid, Some(prio))),
        Payload::Lost { count } => (Kind::Lost, Row { count: Some(count), ..Row::default() }),
    }
}

//! Files by other writers: newer minor versions are read, and files that break the format are refused.

use super::gather::{Gather, schema};
use super::*;
use crate::source::Trace;
use arrow_array::types::UInt8Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray, StructArray, UInt8Array};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field, Fields, Schema};
use schedlab_base::{Event, Meta, NameRecord, Payload, Result, TaskState};
use std::collections::HashMap;
use std::io::Cursor;
use std::sync::Arc;

/// A table whose columns a test can change before it is written.
struct Table {
    metadata: HashMap<String, String>,
    columns: Vec<(Field, ArrayRef)>,
    compression: Option<CompressionType>,
}

fn events(n: u64) -> Vec<Event> {
    let switch = Payload::Switch { prev: 1, prev_prio: 120, prev_state: TaskState::Sleeping, next: 2, next_prio: 99 };
    (0..n)
        .map(|i| Event { time: i, cpu: 1, what: if i % 2 == 0 { switch } else { Payload::Lost { count: i } } })
        .collect()
}

impl Table {
    fn new() -> Self {
        let schema = schema(&Meta::default());
        let mut gather = Gather::new(Arc::clone(&schema));
        events(4).iter().for_each(|event| gather.event(event));
        let batch = gather.take();
        let fields = schema.fields().iter().map(|field| field.as_ref().clone());
        Self {
            metadata: schema.metadata().iter().map(|(k, v)| (k.to_string(), v.to_string())).collect(),
            columns: fields.zip(batch.columns().iter().cloned()).collect(),
            compression: Some(CompressionType::ZSTD),
        }
    }

    fn column(&mut self, name: &str) -> &mut (Field, ArrayRef) {
        self.columns.iter_mut().find(|(field, _)| field.name() == name).expect("the column exists")
    }

    fn replace(&mut self, name: &str, array: ArrayRef) {
        *self.column(name) = (Field::new(name, array.data_type().clone(), true), array);
    }

    fn bytes(&self) -> Vec<u8> {
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = self.columns.iter().cloned().unzip();
        let schema = Arc::new(Schema::new_with_metadata(fields, self.metadata.clone()));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap();
        let options = IpcWriteOptions::default().try_with_compression(self.compression).unwrap();
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap()
    }

    fn read(&self) -> Result<Trace> {
        read(self.bytes())
    }

    #[track_caller]
    fn refused(&self, reason: &str) {
        let error = self.read().unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

fn read(bytes: Vec<u8>) -> Result<Trace> {
    let mut reader = Reader::new(Cursor::new(bytes))?;
    let mut trace = Trace::default();
    trace.report = reader.run(&mut trace)?;
    Ok(trace)
}

fn dictionary(keys: Vec<u8>, values: &[&str]) -> ArrayRef {
    let values = Arc::new(StringArray::from(values.to_vec()));
    Arc::new(DictionaryArray::<UInt8Type>::try_new(UInt8Array::from(keys), values).unwrap())
}

#[test]
fn tables_by_arrows_own_writer_are_read_compressed_or_not() {
    let mut table = Table::new();
    assert_eq!(table.read().unwrap().events, events(4));
    table.compression = None;
    assert_eq!(table.read().unwrap().events, events(4));
}

#[test]
fn a_newer_minor_version_may_have_more_columns_events_and_states() {
    let mut table = Table::new();
    table.metadata.insert(VERSION_KEY.into(), "1.9".into());
    let inner = Fields::from(vec![Field::new("text", DataType::Utf8, true)]);
    let text: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("b"), None]));
    let nested: ArrayRef = Arc::new(StructArray::new(inner, vec![text], None));
    let number: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4]));
    let more = dictionary(vec![0, 1, 0, 1], &["x", "y"]);
    for (at, name, array) in [(0, "nested", nested), (5, "figure", number), (9, "more", more)] {
        table.columns.insert(at, (Field::new(name, array.data_type().clone(), true), array));
    }
    assert_eq!(table.read().unwrap().events, events(4));

    table.replace("event", dictionary(vec![1, 0, 1, 0], &["lost", "switch"]));
    assert_eq!(table.read().unwrap().events, events(4), "indices mean what the file's dictionary says");
    table.replace("event", dictionary(vec![0, 1, 0, 2], &["switch", "teleport", "lost"]));
    let trace = table.read().unwrap();
    assert_eq!((trace.events.len(), trace.report.skipped), (3, 1));
    let states = dictionary(vec![0, 0, 1, 0], &["S", "Q"]);
    table.replace("state", states);
    assert_eq!(table.read().unwrap().report.skipped, 2);
}

#[test]
fn another_major_version_is_refused() {
    let mut table = Table::new();
    for version in ["2.0", "0.9", "", "x"] {
        table.metadata.insert(VERSION_KEY.into(), version.into());
        table.refused("version");
    }
    table.metadata.remove(VERSION_KEY);
    table.refused("no trace of schedlab's");
}

#[test]
fn properties_that_no_kernel_has_are_refused() {
    let of = |event: &str, text: Option<&str>| {
        let mut table = Table::new();
        table.replace("event", dictionary(vec![0, 0, 0, 0], &[event]));
        table.replace("tid", Arc::new(arrow_array::Int32Array::from(vec![7; 4])));
        table.replace("cgroup", Arc::new(StringArray::from(vec!["/a"; 4])));
        table.replace("properties", Arc::new(StringArray::from(vec![text; 4])));
        table
    };
    let known = of("task", Some(r#"{"policy": "batch", "nice": -3, "colour": "a later version's"}"#)).read().unwrap();
    assert_eq!((known.tasks.len(), known.tasks[0].properties.nice), (4, Some(-3)));
    assert_eq!(of("group", Some(r#"{"weight": 7}"#)).read().unwrap().groups[0].properties.weight, Some(7));
    of("task", None).refused("a row without properties");
    of("task", Some("{")).refused("the properties: EOF");
    of("task", Some("[]")).refused("the properties are no JSON object");
    of("task", Some(r#"{"nice": 20}"#)).refused("nice is 20, not in -20..19");
    of("task", Some(r#"{"slice_ns": 18446744073709551615}"#)).refused("slice_ns is 18446744073709551615");
    of("group", Some(r#"{"quota_us": -7}"#)).refused("quota_us is -7");
    of("group", Some(&" ".repeat(MAX_PROPERTIES + 1))).refused("more than 4096 bytes");
}

#[test]
fn broken_metadata_is_refused() {
    let mut table = Table::new();
    let hz = r#"{"source":"","kernel":"","machine":"","clock":"","cpus":[],"system":{"hz":0}}"#;
    table.metadata.insert(META_KEY.into(), hz.into());
    table.refused("system: hz is 0");
    table.metadata.insert(META_KEY.into(), "{".into());
    table.refused("metadata is damaged");
    table.metadata.remove(META_KEY);
    table.refused("lacks the trace's metadata");
}

#[test]
fn missing_duplicate_and_mistyped_columns_are_refused_by_name() {
    let mut table = Table::new();
    table.replace("tid", Arc::new(Int64Array::from(vec![1, 2, 3, 4])));
    table.refused("tid: the column is no int32");
    let mut table = Table::new();
    table.replace("event", Arc::new(StringArray::from(vec!["switch"; 4])));
    table.refused("event: the column is no dictionary");
    let mut table = Table::new();
    table.columns.retain(|(field, _)| field.name() != "cgroup");
    table.refused("cgroup: the trace lacks this column");
    let mut table = Table::new();
    let twice = table.column("cpu").clone();
    table.columns.push(twice);
    table.refused("cpu: the trace has this column twice");
}

#[test]
fn values_that_break_the_rules_are_refused_with_their_row() {
    let bent = |bend: fn(&mut Table)| {
        let mut table = Table::new();
        bend(&mut table);
        table
    };
    bent(|t| t.replace("next_tid", Arc::new(arrow_array::Int32Array::from(vec![Some(2), None, None, None]))))
        .refused("row 3: a value that its event needs is missing");
    bent(|t| t.replace("tid", Arc::new(arrow_array::Int32Array::from(vec![-1, 1, 1, 1]))))
        .refused("row 1: a thread id is out of range");
    bent(|t| t.replace("time_ns", Arc::new(arrow_array::UInt64Array::from(vec![1, 5, 4, 9]))))
        .refused("row 3: time goes back by 1 ns");
    bent(|t| t.replace("time_ns", Arc::new(arrow_array::UInt64Array::from(vec![Some(1), None, Some(4), Some(9)]))))
        .refused("time_ns has a row without a value");
}

#[test]
fn an_index_outside_its_dictionary_is_refused() {
    for (column, texts) in [("event", ["x", "x", "x", "lost", "switch"]), ("state", ["x", "x", "x", "S", "R"])] {
        let mut table = Table::new();
        table.compression = None;
        table.replace(column, dictionary(vec![4, 3, 4, 3], &texts));
        let mut bytes = table.bytes();
        let indices = [4u8, 3, 4, 3, 0, 0, 0, 0];
        let at = bytes.windows(8).rposition(|window| window == indices).expect("the indices stand in the file");
        bytes[at + 2] = 200;
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.contains("row 3: ") && error.contains("is not in its dictionary"), "{error}");
    }
}

#[test]
fn a_decompression_bomb_is_refused() {
    // A text column of 100 MB of spaces compresses to a few kilobytes.
    let mut table = Table::new();
    let long = " ".repeat(100 << 20);
    table.replace("comm", Arc::new(StringArray::from(vec![Some(long.as_str()), None, None, None])));
    let bytes = table.bytes();
    assert!(bytes.len() < 1 << 20);
    assert!(read(bytes).unwrap_err().to_string().contains("column comm: buffer"));
}

#[test]
fn names_longer_than_the_limit_are_refused() {
    let mut writer = Writer::new(Vec::new(), &Meta::default()).unwrap();
    let record = NameRecord { time: 0, tid: 1, tgid: None, comm: "x".repeat(MAX_NAME + 1), cgroup: None };
    schedlab_base::Sink::name(&mut writer, &record);
    assert!(writer.finish().unwrap_err().to_string().contains("4097 bytes"));

    let mut table = Table::new();
    table.replace("event", dictionary(vec![0; 4], &["name"]));
    table.replace("tid", Arc::new(arrow_array::Int32Array::from(vec![1; 4])));
    let long = "x".repeat(MAX_NAME + 1);
    table.replace("comm", Arc::new(StringArray::from(vec![long.as_str(), "", "", ""])));
    table.refused("row 1: a text has more than 4096 bytes");
}

#[test]
fn a_huge_claimed_head_allocates_no_memory() {
    for claim in [u32::MAX, 1 << 31, (16 << 20) + 1] {
        let mut bytes = vec![0xff; 4];
        bytes.extend(claim.to_le_bytes());
        bytes.extend([0; 64]);
        let error = read(bytes).unwrap_err().to_string();
        assert!(error.contains("more than the limit"), "{error}");
    }
}

//! Tables that Python takes over without a copy, through Arrow's C stream interface.

use arrow_array::builder::{Int32Builder, Int64Builder, StringBuilder};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{UInt8Type, UInt32Type};
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray, UInt8Array,
    UInt16Array, UInt32Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use schedlab_measure::intervals::{Interval, Table};
use schedlab_measure::lanes::Doing;
use std::collections::HashMap;
use std::sync::Arc;

/// Rows in a batch.
const BATCH: usize = 1 << 20;

/// The states, in the order of their codes.
const STATES: [Doing; 4] = [Doing::Running, Doing::Waiting, Doing::Sleeping, Doing::Blocked];

/// A table that any library takes that knows Arrow's PyCapsule interface: `pyarrow.table(frame)`.
#[pyclass(frozen, module = "schedlab._native")]
pub struct Frame {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Frame {
    /// The rows, as Arrow's interface has it. A `requested_schema` is not followed, as the interface permits.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        // Batches share their buffers, so this copies no rows.
        let batches = self.batches.clone().into_iter().map(Ok);
        let stream = FFI_ArrowArrayStream::new(Box::new(RecordBatchIterator::new(batches, Arc::clone(&self.schema))));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// The intervals as a table.
pub fn intervals(table: &Table) -> PyResult<Frame> {
    let names = Names::of(table);
    let schema = schema();
    let batches = table.rows.chunks(BATCH).map(|rows| batch(rows, table, &names, &schema)).collect::<Result<_, _>>();
    let batches = batches.map_err(|e| PyValueError::new_err(e.to_string()))?;
    Ok(Frame { schema, batches })
}

/// The names of the tasks, each once.
struct Names {
    /// The name of each task, as an index.
    of: Vec<Option<u32>>,
    texts: ArrayRef,
}

impl Names {
    fn of(table: &Table) -> Self {
        let (mut index, mut texts) = (HashMap::new(), StringBuilder::new());
        let of = table.tasks.iter().map(|task| {
            let next = index.len() as u32;
            (!task.name.is_empty()).then(|| {
                *index.entry(Arc::clone(&task.name)).or_insert_with(|| {
                    texts.append_value(&task.name);
                    next
                })
            })
        });
        Self { of: of.collect(), texts: Arc::new(texts.finish()) }
    }
}

fn dictionary(key: DataType) -> DataType {
    DataType::Dictionary(Box::new(key), Box::new(DataType::Utf8))
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("start_ns", DataType::Int64, false),
        Field::new("end_ns", DataType::Int64, false),
        Field::new("cpu", DataType::UInt16, false),
        Field::new("tid", DataType::Int32, false),
        Field::new("tgid", DataType::Int32, true),
        Field::new("name", dictionary(DataType::UInt32), true),
        Field::new("state", dictionary(DataType::UInt8), false),
        Field::new("wait_ns", DataType::Int64, true),
    ]))
}

fn batch(rows: &[Interval], table: &Table, names: &Names, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let task = |row: &Interval| &table.tasks[row.task as usize];
    let mut tgids = Int32Builder::with_capacity(rows.len());
    let mut waits = Int64Builder::with_capacity(rows.len());
    for row in rows {
        tgids.append_option(task(row).tgid);
        waits.append_option(row.wait().map(|wait| wait as i64));
    }
    let names_of: UInt32Array = rows.iter().map(|row| names.of[row.task as usize]).collect();
    let states = UInt8Array::from_iter_values(rows.iter().map(|row| row.doing as u8));
    let words = StringArray::from_iter_values(STATES.map(Doing::word));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.start as i64))),
        Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.end as i64))),
        Arc::new(UInt16Array::from_iter_values(rows.iter().map(|row| row.cpu as u16))),
        Arc::new(Int32Array::from_iter_values(rows.iter().map(|row| task(row).tid))),
        Arc::new(tgids.finish()),
        Arc::new(DictionaryArray::<UInt32Type>::try_new(names_of, Arc::clone(&names.texts))?),
        Arc::new(DictionaryArray::<UInt8Type>::try_new(states, Arc::new(words))?),
        Arc::new(waits.finish()),
    ];
    RecordBatch::try_new(Arc::clone(schema), columns)
}

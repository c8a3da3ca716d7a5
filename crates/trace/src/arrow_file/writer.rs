//! Writes a trace: checks events, gathers them, and writes them as compressed batches.

use super::gather::{Gather, has_end, schema};
use super::{MAX_NAME, MAX_PROPERTIES, MAX_ROWS, MAX_TID};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use arrow_schema::ArrowError;
use schedlab_base::{
    AffinityRecord, CpuId, Error, Event, GroupRecord, Meta, NameRecord, Nanos, Payload, Result, Sink, TaskRecord, Tid,
};
use serde::Serialize;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The number of rows in a batch, unless [`Writer::batch_rows`] changes it.
const BATCH_ROWS: usize = 1 << 16;

/// zstd's level. Level 1 takes half the time of level 3, and the file is a few percent larger.
const LEVEL: i32 = 1;

/// What was written to the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The number of events written.
    pub events: u64,
    /// The number of names written.
    pub(crate) names: u64,
    /// The number of batches written.
    pub(crate) batches: u64,
    /// The size of the whole file in bytes.
    pub bytes: u64,
}

/// Writes a trace. It is a [`Sink`]: it keeps the first failure, and [`Writer::flush`] or [`Writer::finish`] returns
/// it.
///
/// If it is dropped without [`Writer::finish`], the file has no end marker and the rows since the last flush are lost.
/// Readers report such a file as cut off.
pub struct Writer<W: Write = File> {
    out: StreamWriter<Counted<BufWriter<W>>>,
    path: Option<PathBuf>,
    rows: Gather,
    has_end: bool,
    batch_rows: usize,
    last: Nanos,
    summary: Summary,
    failure: Option<Error>,
    broken: bool,
    queues: bool,
}

impl Writer<File> {
    /// Creates the file, or empties an existing one, and writes its head.
    ///
    /// # Errors
    /// When the file cannot be created or written.
    pub fn create(path: impl AsRef<Path>, meta: &Meta) -> Result<Self> {
        let path = path.as_ref();
        let file = File::create(path).map_err(|e| Error::input(format!("cannot be created: {e}")).file(path))?;
        Self::named(file, meta, path)
    }
}

impl<W: Write> Writer<W> {
    /// As [`Writer::new`]. Messages name this file.
    ///
    /// # Errors
    /// When the head cannot be written.
    pub fn named(out: W, meta: &Meta, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut writer = Self::new(out, meta).map_err(|e| e.file(path))?;
        writer.path = Some(path.to_path_buf());
        Ok(writer)
    }

    /// Creates a writer to any output and writes the head. Batches are written in large pieces, so `out` needs no
    /// buffer of its own.
    ///
    /// # Errors
    /// When the head cannot be written.
    pub fn new(out: W, meta: &Meta) -> Result<Self> {
        let schema = schema(meta);
        let options = IpcWriteOptions::default()
            .try_with_compression(Some(CompressionType::ZSTD))
            .and_then(|o| o.try_with_compression_level(Some(LEVEL)))
            .expect("the zstd feature is on");
        let out = StreamWriter::try_new_with_options(
            Counted { out: BufWriter::with_capacity(1 << 18, out), bytes: 0 },
            &schema,
            options,
        )
        .and_then(|mut out| out.flush().map(|()| out))
        .map_err(|e| write_failed(&e))?;
        Ok(Self {
            out,
            path: None,
            rows: Gather::new(schema),
            has_end: has_end(meta),
            batch_rows: BATCH_ROWS,
            last: 0,
            summary: Summary::default(),
            failure: None,
            broken: false,
            queues: false,
        })
    }

    /// Sets the number of rows in a batch, 1 to 1,048,576.
    #[must_use]
    pub fn batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = rows.clamp(1, MAX_ROWS);
        self
    }

    /// Sets whether simulations should also record run queues and the CPUs that the scheduler examined
    /// ([`Sink::wants_queues`]).
    #[must_use]
    pub fn with_queues(mut self, wanted: bool) -> Self {
        self.queues = wanted;
        self
    }

    /// Writes the gathered rows as a batch, so that they survive if the process is killed.
    ///
    /// # Errors
    /// The first failure so far.
    pub fn flush(&mut self) -> Result<()> {
        self.write_batch();
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Writes the last batch and the end marker.
    ///
    /// # Errors
    /// The first failure since the writer was created: of the output, or an event that was out of time order or beyond
    /// a limit of the format. Such an event is left out, and the file is otherwise complete.
    pub fn finish(mut self) -> Result<Summary> {
        self.write_batch();
        if !self.broken
            && let Err(e) = self.out.finish()
        {
            self.fail(write_failed(&e));
        }
        self.summary.bytes = self.out.get_ref().bytes;
        self.failure.map_or(Ok(self.summary), Err)
    }

    /// The number of bytes written so far.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.out.get_ref().bytes
    }

    fn write_batch(&mut self) {
        if self.rows.is_empty() || self.broken {
            return;
        }
        let batch = self.rows.take();
        match self.out.write(&batch).and_then(|()| self.out.flush()) {
            Ok(()) => self.summary.batches += 1,
            Err(e) => {
                self.broken = true;
                self.fail(write_failed(&e));
            }
        }
    }

    fn fail(&mut self, error: Error) {
        let path = self.path.as_ref();
        self.failure.get_or_insert_with(|| path.map_or(error.clone(), |p| error.file(p)));
    }
}

impl<W: Write> Sink for Writer<W> {
    fn events(&mut self, mut batch: &[Event]) {
        while !batch.is_empty() {
            let room = self.batch_rows.saturating_sub(self.rows.len()).max(1);
            let (now, later) = batch.split_at(batch.len().min(room));
            let (taken, wrong) = take(&mut self.rows, &mut self.last, now);
            self.summary.events += taken;
            if let Some(what) = wrong {
                self.fail(Error::input(what).mend("this is a bug of the writing program"));
            }
            if self.rows.len() >= self.batch_rows {
                self.write_batch();
            }
            batch = later;
        }
    }

    fn name(&mut self, record: &NameRecord) {
        let long = record.comm.len().max(record.cgroup.as_ref().map_or(0, String::len));
        if long > MAX_NAME || !(0..=MAX_TID).contains(&record.tid) {
            let what = format!("the name of thread {} has {long} bytes or a thread id out of range", record.tid);
            self.fail(Error::input(what).mend(format!("at most {MAX_NAME} bytes, thread ids 0 to {MAX_TID}")));
            return;
        }
        self.rows.name(record);
        self.summary.names += 1;
        if self.rows.len() >= self.batch_rows {
            self.write_batch();
        }
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        let last = record.cpus.ranges().last().map_or(0, |range| range.1);
        if last > u32::from(u16::MAX) || !(0..=MAX_TID).contains(&record.tid) {
            let what = format!("the affinity of thread {} names CPU {last} or a thread id out of range", record.tid);
            self.fail(Error::input(what).mend(format!("CPUs up to {}, thread ids 0 to {MAX_TID}", u16::MAX)));
            return;
        }
        self.rows.affinity(record);
        if self.rows.len() >= self.batch_rows {
            self.write_batch();
        }
    }

    fn task(&mut self, record: &TaskRecord) {
        let text = serde_json::to_string(&record.properties).expect("plain data is always JSON");
        let wrong = record.properties.check().err();
        let wrong = wrong.or_else(|| (!(0..=MAX_TID).contains(&record.tid)).then(|| "thread id out of range".into()));
        if let Some(what) = wrong.or_else(|| too_long(&text)) {
            self.fail(Error::input(format!("the properties of thread {}: {what}", record.tid)));
            return;
        }
        self.rows.task(record, text);
        if self.rows.len() >= self.batch_rows {
            self.write_batch();
        }
    }

    fn group(&mut self, record: &GroupRecord) {
        let text = serde_json::to_string(&record.properties).expect("plain data is always JSON");
        let long = (record.path.len() > MAX_NAME).then(|| format!("its path has more than {MAX_NAME} bytes"));
        if let Some(what) = record.properties.check().err().or(long).or_else(|| too_long(&text)) {
            self.fail(Error::input(format!("the properties of the cgroup {}: {what}", record.path)));
            return;
        }
        self.rows.group(record, text);
        if self.rows.len() >= self.batch_rows {
            self.write_batch();
        }
    }

    fn lasts(&mut self, until: Nanos) {
        if self.has_end {
            self.last = self.last.max(until);
            self.rows.end(self.last);
        }
    }

    fn wants_queues(&self) -> bool {
        self.queues
    }
}

/// Takes the events that the format can hold: how many those are, and what is wrong with the first that it cannot.
/// It knows nothing of the output, so that this loop is compiled here and not in each crate that writes a trace.
fn take(rows: &mut Gather, last: &mut Nanos, events: &[Event]) -> (u64, Option<String>) {
    let (mut taken, mut wrong) = (0, None);
    for event in events {
        if let Err(what) = check(event, *last) {
            wrong.get_or_insert(what);
            continue;
        }
        *last = event.time;
        rows.event(event);
        taken += 1;
    }
    (taken, wrong)
}

fn check(event: &Event, last: Nanos) -> Result<(), String> {
    if event.time < last {
        return Err(format!("an event at {} ns came after one at {last} ns", event.time));
    }
    let (tids, cpus) = parties(&event.what);
    if let Some(tid) = tids.into_iter().find(|tid| !(0..=MAX_TID).contains(tid)) {
        return Err(format!("the thread id {tid} is out of range (0 to {MAX_TID})"));
    }
    if let Some(cpu) = cpus.into_iter().chain([event.cpu]).find(|cpu| *cpu > u32::from(u16::MAX)) {
        return Err(format!("CPU {cpu} is beyond the format's limit of {}", u16::MAX));
    }
    Ok(())
}

fn too_long(properties: &str) -> Option<String> {
    (properties.len() > MAX_PROPERTIES).then(|| format!("they have more than {MAX_PROPERTIES} bytes"))
}

/// The threads that an event names and the CPUs other than its own; 0 where it names fewer.
fn parties(what: &Payload) -> ([Tid; 2], [CpuId; 2]) {
    match *what {
        Payload::Switch { prev, next, .. } => ([prev, next], [0, 0]),
        Payload::Waking { tid, target, waker, .. } => ([tid, waker], [target, 0]),
        Payload::Wakeup { tid, target, .. } | Payload::WakeupNew { tid, target, .. } => ([tid, 0], [target, 0]),
        Payload::Migrate { tid, from, to, .. } => ([tid, 0], [from, to]),
        Payload::Fork { parent, child } => ([parent, child], [0, 0]),
        Payload::Exec { tid, old } => ([tid, old], [0, 0]),
        Payload::Exit { tid, .. } | Payload::Sleeps { tid, .. } | Payload::Killed { tid, .. } => ([tid, 0], [0, 0]),
        Payload::Considered { tid, word, .. } => ([tid, 0], [CpuId::from(word) * 64, 0]),
        Payload::Pages { tgid, .. } => ([tgid, 0], [0, 0]),
        Payload::Frequency { target, .. } => ([0, 0], [target, 0]),
        Payload::Lost { .. } | Payload::Queue { .. } | Payload::Interrupt { .. } => ([0, 0], [0, 0]),
    }
}

fn write_failed(error: &ArrowError) -> Error {
    Error::system("cannot write the trace", error)
}

/// Counts the bytes written through it.
struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

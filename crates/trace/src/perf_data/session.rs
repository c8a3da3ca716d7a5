//! Interprets the records of a perf.data, once its events and their formats are known.

use super::attr::{Attr, Trailer};
use super::blocks::{Blocks, Place};
use super::cursor::{u32_at, u64_at};
use super::output::Output;
use super::samples::{EventIds, Sample, Samples, id_place};
use super::stream::Record;
use super::tracing_data::{Formats, Names};
use super::window::{Due, Held, Item, Known, Window};
use crate::format::Decoder;
use crate::source::Findings;
use schedlab_base::{CpuId, Error, Event, Nanos, Payload, Result, Sink, Tid};
use std::collections::BTreeMap;

/// Kinds of records. Those from 64 on are perf's own, not the kernel's.
pub(super) mod kind {
    pub(super) const LOST: u32 = 2;
    pub(super) const COMM: u32 = 3;
    pub(super) const FORK: u32 = 7;
    pub(super) const SAMPLE: u32 = 9;
    pub(super) const LOST_SAMPLES: u32 = 13;
    pub(in super::super) const USER_START: u32 = 64;
    pub(in super::super) const HEADER_ATTR: u32 = 64;
    pub(in super::super) const TRACING_DATA: u32 = 66;
    pub(in super::super) const FINISHED_ROUND: u32 = 68;
    pub(in super::super) const AUXTRACE: u32 = 71;
    pub(in super::super) const FEATURE: u32 = 80;
    pub(in super::super) const COMPRESSED: u32 = 81;
    pub(in super::super) const COMPRESSED2: u32 = 83;
}

/// `PERF_RECORD_MISC_COMM_EXEC`: the name comes from exec.
const MISC_COMM_EXEC: u16 = 1 << 13;
/// No machine runs more tasks than this (PID_MAX_LIMIT).
const INVENTORY_MAX: usize = 1 << 22;
/// What the numbers of a record that is held back count for, in bytes.
const NUMBERS: usize = 12;
/// No kernel is built for this many CPUs; a CPU number from here on means damage.
const CPU_END: u32 = 1 << 16;

/// The state of reading a file.
pub(super) struct Session {
    attrs: Vec<Attr>,
    /// One per event.
    samples: Vec<Samples>,
    /// The offset of the event id in the samples, if the id must be read.
    id_at: Option<usize>,
    event_ids: EventIds,
    /// One per event, or a single one if all are equal.
    trailers: Vec<Trailer>,
    decoder: Decoder,
    window: Window,
    /// Whether perf's own records replace these tracepoints, because they were not recorded.
    forks_from_perf: bool,
    execs_from_perf: bool,
    /// Losses according to the counters that perf read at the end, which include the losses already recorded.
    lost_samples: u64,
    late_unmarked: u64,
    ids: Ids,
    findings: Findings,
    /// The names of tracepoints that are not decoded, and the number of their samples, both by id.
    others: Names,
    passed_over: Vec<u64>,
}

/// Whether the ids in perf's own records are those of the tracepoints. perf in a PID namespace (a container) sees ids
/// that count from 1, while tracepoints record the kernel's ids.
enum Ids {
    /// Unknown until the first sample. The names of tasks that ran before the recording wait here.
    Open(Vec<(Tid, Tid, Box<[u8]>)>),
    Same,
    Different,
}

impl Session {
    /// Creates a session for these events and the formats of their kernel.
    pub(super) fn new(attrs: Vec<Attr>, formats: Formats) -> Result<Self> {
        let Formats { scheduling: formats, others } = formats;
        let recorded = |name: &str| {
            formats.iter().any(|f| f.name == name && attrs.iter().any(|a| a.tracepoint() == Some(u64::from(f.id))))
        };
        let (forks_from_perf, execs_from_perf) = (!recorded("sched_process_fork"), !recorded("sched_process_exec"));
        let some = Decoder::EVENTS.into_iter().any(recorded);
        let decoder = Decoder::new(formats)?;
        let wanted = |a: &Attr| a.tracepoint().is_some_and(|id| decoder.knows(id));
        if !some {
            return Err(Error::input("the perf.data holds no scheduling events")
                .mend("record them: perf sched record -- COMMAND"));
        }
        let layouts: Vec<_> = attrs.iter().map(Attr::layout).collect();
        if let Some((attr, _)) = attrs.iter().zip(&layouts).find(|(a, layout)| wanted(a) && layout.is_none()) {
            let id = attr.tracepoint().unwrap_or_default();
            return Err(Error::input(format!(
                "the perf.data's samples of event {id} lack the time, the CPU or the raw data"
            ))
            .mend("record them with: perf sched record, or perf record -R -T --sample-cpu"));
        }
        let id_at = id_place(&attrs, &layouts)?;
        let samples = Samples::of(&attrs, layouts, id_at);
        Ok(Self {
            id_at,
            event_ids: EventIds::of(&attrs),
            trailers: trailers(&attrs),
            attrs,
            samples,
            decoder,
            window: Window::default(),
            forks_from_perf,
            execs_from_perf,
            lost_samples: 0,
            late_unmarked: 0,
            ids: Ids::Open(Vec::new()),
            findings: Findings::default(),
            others,
            passed_over: Vec::new(),
        })
    }

    /// Creates an output for the events of this session.
    pub(super) fn output<'a>(&self, sink: &'a mut dyn Sink) -> Output<'a> {
        Output::new(sink, self.forks_from_perf)
    }

    /// The findings so far.
    pub(super) fn findings(&self) -> Findings {
        let counts = self.decoder.counts();
        Findings {
            other: self.findings.other + counts.other,
            malformed: self.findings.malformed + counts.malformed,
            ..self.findings
        }
    }

    /// The tracepoints whose samples are not decoded, by name, and the number of their samples.
    pub(super) fn passed_over(&self) -> BTreeMap<String, u64> {
        let counted = (0..).zip(&self.passed_over).filter(|(_, count)| **count > 0);
        let name = |id: u64| self.others.get(&id).cloned().unwrap_or_else(|| format!("event {id}"));
        counted.map(|(id, count)| (name(id), *count)).collect()
    }

    /// Counts the first sample of an event. No tracepoint has an id of more than 16 bits.
    #[cold]
    fn pass_over_first(&mut self, id: u64) {
        if let Ok(id) = u16::try_from(id).map(usize::from) {
            self.passed_over.resize(id + 1, 0);
            self.passed_over[id] += 1;
        }
    }

    /// Counts a sample of an event that is not decoded; `id` is its tracepoint's. It is not held back.
    #[inline]
    fn pass_over(&mut self, id: Option<u64>) -> bool {
        self.findings.other += 1;
        if let Some(id) = id {
            match self.passed_over.get_mut(id as usize) {
                Some(count) => *count += 1,
                None => self.pass_over_first(id),
            }
        }
        false
    }

    /// Takes the samples that these bytes begin with, as nearly all records are, up to any other record or until some
    /// records must be passed on; `packed` if they were compressed. Returns their size, and how many are held back.
    pub(super) fn samples(&mut self, bytes: &[u8], mut place: Place, packed: bool) -> (usize, u32) {
        let (mut rest, mut held) = (bytes, 0);
        let mut goes_on = !self.is_full() && !matches!(self.ids, Ids::Open(_));
        while goes_on
            && let Some(record) = Record::first_of(rest)
            && record.kind == kind::SAMPLE
        {
            if self.sample(record.body, place, packed) {
                held += 1;
                goes_on = !self.is_full();
            }
            rest = &rest[record.size()..];
            place.at += record.size() as u32;
        }
        (bytes.len() - rest.len(), held)
    }

    /// Takes a record of the kernel; `packed` if it was compressed. Returns whether it is held back, at its place.
    pub(super) fn record(&mut self, record: Record, place: Place, packed: bool, out: &mut Output) -> bool {
        let known = Known { packed, ..Known::default() };
        match record.kind {
            kind::SAMPLE => {
                let held = self.sample(record.body, place, packed);
                if let Ids::Open(_) = self.ids {
                    self.compare_ids(record.body, out);
                }
                held
            }
            kind::COMM => self.comm(record, place, known),
            kind::FORK => self.fork(record.body, place, known),
            kind::LOST => self.lost(record.body, place, known),
            kind::LOST_SAMPLES => {
                self.lost_samples = self.lost_samples.saturating_add(u64_at(record.body, 0).unwrap_or(0));
                false
            }
            _ => false,
        }
    }

    /// Whether some records must be passed on before more are taken.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.window.is_full()
    }

    /// Passes on records that are due, out of the blocks of those that were not compressed and of those that were.
    ///
    /// # Errors
    /// When a block cannot be read again.
    pub(super) fn pass_on(
        &mut self,
        due: Due,
        plain: &mut Blocks,
        mut packed: Option<&mut Blocks>,
        out: &mut Output,
    ) -> Result<()> {
        let mut window = std::mem::take(&mut self.window);
        let (count, mut bytes) = (window.sort(due), 0);
        for held in window.first(count) {
            let blocks = packed.as_deref_mut().filter(|_| held.known().packed).unwrap_or(plain);
            let passed = match Record::first_of(blocks.take(held.place())?) {
                Some(record) if record.kind == kind::SAMPLE => self.pass_sample(record.body, held, out),
                Some(record) => self.pass_item(record, held, out),
                None => None,
            };
            match passed {
                Some(size) => bytes += size,
                None => self.findings.malformed += 1,
            }
        }
        window.forget(count, bytes);
        plain.forget();
        if let Some(packed) = packed {
            packed.forget();
        }
        self.window = window;
        self.mark_late(out);
        Ok(())
    }

    /// Passes on a sample that was held back, and returns for how many bytes it counted; `None` if the file has changed
    /// meanwhile.
    #[inline(always)]
    fn pass_sample(&mut self, body: &[u8], held: &Held, out: &mut Output) -> Option<usize> {
        let known = held.known();
        let sample = self.samples.get(known.event)?.read(body)?;
        let tgid = if known.foreign { 0 } else { sample.tgid };
        out.sample(&mut self.decoder, Sample { time: held.time, tgid, ..sample });
        Some(NUMBERS + sample.raw.len())
    }

    /// The same for another record.
    #[cold]
    fn pass_item(&mut self, record: Record, held: &Held, out: &mut Output) -> Option<usize> {
        let item = match record.kind {
            kind::COMM => self.name(record)?.1,
            kind::FORK => self.child(record.body)?.1,
            kind::LOST => self.loss(record.body).1,
            _ => return None,
        };
        out.item(&mut self.decoder, held.time, item);
        Some(NUMBERS + item.size())
    }

    /// Passes on everything that is still held back.
    ///
    /// # Errors
    /// As [`Session::pass_on`].
    pub(super) fn finish(&mut self, plain: &mut Blocks, packed: Option<&mut Blocks>, out: &mut Output) -> Result<()> {
        self.settle_ids(Ids::Same, out);
        self.pass_on(Due::All, plain, packed, out)?;
        let unseen = self.lost_samples.saturating_sub(self.findings.lost);
        if unseen > 0 {
            // These were lost after the last record that had room, so only perf's counters know of them.
            self.findings.lost += unseen;
            out.event(Event { time: out.last, cpu: 0, what: Payload::Lost { count: unseen } });
        }
        out.flush();
        Ok(())
    }

    /// The index of a sample's event.
    #[inline(always)]
    fn event_of(&self, body: &[u8]) -> Option<usize> {
        self.id_at.map_or(Some(0), |at| self.event_ids.event(u64_at(body, at)?))
    }

    #[inline(always)]
    fn sample(&mut self, body: &[u8], place: Place, packed: bool) -> bool {
        let Some(index) = self.event_of(body) else { return self.malformed() };
        let samples = &self.samples[index];
        if let Samples::Other = samples {
            return self.pass_over(self.attrs[index].tracepoint());
        }
        let Some(Sample { time, cpu, raw, .. }) = samples.read(body) else { return self.malformed() };
        let id = raw.first_chunk().map_or(0, |id| u64::from(u16::from_le_bytes(*id)));
        if !self.decoder.knows(id) {
            return self.pass_over(Some(id));
        }
        let known = Known { event: index, packed, foreign: matches!(self.ids, Ids::Different) };
        self.hold(time, cpu, raw.len(), place, known)
    }

    #[cold]
    fn malformed(&mut self) -> bool {
        self.findings.malformed += 1;
        false
    }

    /// Decides whether perf's ids are the kernel's, from a sample that names the running task twice.
    #[cold]
    fn compare_ids(&mut self, body: &[u8], out: &mut Output) {
        let sample = self.event_of(body).and_then(|index| self.samples[index].read(body));
        let Some(Sample { tid, raw, .. }) = sample else { return };
        let Some(current) = self.decoder.current(raw).filter(|current| *current > 0 && tid > 0) else { return };
        self.settle_ids(if current == tid { Ids::Same } else { Ids::Different }, out);
    }

    fn settle_ids(&mut self, ids: Ids, out: &mut Output) {
        let before = std::mem::replace(&mut self.ids, ids);
        if let (Ids::Open(waiting), Ids::Same) = (before, &self.ids) {
            for (tgid, tid, name) in waiting {
                let item = Item::Comm { cpu: 0, tgid, tid, exec: false, name: &name };
                out.item(&mut self.decoder, 0, item);
            }
        }
    }

    /// The trailer of a record that is not a sample. The id of its event is the last field of the record.
    fn trailer(&self, body: &[u8]) -> Trailer {
        let index = match &self.trailers[..] {
            [_] => Some(0),
            _ => body.len().checked_sub(8).and_then(|at| self.event_ids.event(u64_at(body, at)?)),
        };
        index.and_then(|i| self.trailers.get(i)).copied().unwrap_or_default()
    }

    /// What a record says of a task's name, and when.
    fn name<'a>(&self, record: Record<'a>) -> Option<(Nanos, Item<'a>)> {
        let body = record.body;
        let trailer = self.trailer(body);
        let (tgid, tid) = (u32_at(body, 0)? as Tid, u32_at(body, 4)? as Tid);
        let name = body.get(8..body.len().saturating_sub(trailer.size))?;
        let exec = record.misc & MISC_COMM_EXEC != 0 && self.execs_from_perf;
        Some((trailer.time(body), Item::Comm { cpu: trailer.cpu(body), tgid, tid, exec, name }))
    }

    fn comm(&mut self, record: Record, place: Place, known: Known) -> bool {
        let Some((time, item)) = self.name(record) else { return self.malformed() };
        let Item::Comm { tgid, tid, name, .. } = item else { return false };
        match (&mut self.ids, time) {
            (Ids::Different, _) => false,
            // perf's inventory of the tasks that ran before the recording.
            (Ids::Open(waiting), 0 | u64::MAX) => {
                if waiting.len() < INVENTORY_MAX {
                    waiting.push((tgid, tid, name[..name.len().min(16)].into()));
                }
                false
            }
            (_, u64::MAX) => self.hold_item(0, &item, place, known),
            _ => self.hold_item(time, &item, place, known),
        }
    }

    /// What a record says of a new task, and when.
    fn child(&self, body: &[u8]) -> Option<(Nanos, Item<'static>)> {
        let number = |i: usize| u32_at(body, 4 * i).map(|n| n as Tid);
        let trailer = self.trailer(body);
        let (tgid, child, parent) = (number(0)?, number(2)?, number(3)?);
        Some((trailer.time(body), Item::Fork { cpu: trailer.cpu(body), parent, tgid, child }))
    }

    fn fork(&mut self, body: &[u8], place: Place, known: Known) -> bool {
        let Some((time, item)) = self.child(body) else { return self.malformed() };
        let counts = time != 0 && time != u64::MAX && !matches!(self.ids, Ids::Different);
        counts && self.hold_item(time, &item, place, known)
    }

    /// How many records were lost, and when; at time 0 if that is unknown.
    fn loss(&self, body: &[u8]) -> (Nanos, Item<'static>) {
        let trailer = self.trailer(body);
        (trailer.time(body), Item::Lost { cpu: trailer.cpu(body), count: u64_at(body, 8).unwrap_or(0) })
    }

    fn lost(&mut self, body: &[u8], place: Place, known: Known) -> bool {
        let (time, item) = self.loss(body);
        if let Item::Lost { count, .. } = item {
            self.findings.lost = self.findings.lost.saturating_add(count);
        }
        let time = if time == 0 { self.window.newest() } else { time };
        self.hold_item(time, &item, place, known)
    }

    fn hold_item(&mut self, time: Nanos, item: &Item, place: Place, known: Known) -> bool {
        self.hold(time, item.cpu(), item.size(), place, known)
    }

    /// Holds a record of this CPU back, so many bytes of which count besides its numbers.
    #[inline(always)]
    fn hold(&mut self, time: Nanos, cpu: CpuId, size: usize, place: Place, known: Known) -> bool {
        if cpu >= CPU_END {
            return self.malformed();
        }
        let held = self.window.push(time, place, known, NUMBERS + size);
        if !held {
            self.findings.late += 1;
            self.late_unmarked += 1;
        }
        held
    }

    /// Records that came too late are missing from the trace. Marks the loss at the place where they are missing.
    fn mark_late(&mut self, out: &mut Output) {
        let count = std::mem::take(&mut self.late_unmarked);
        if count > 0 {
            out.event(Event { time: out.last, cpu: 0, what: Payload::Lost { count } });
        }
    }
}

/// The trailers of each event's records, or a single one if all are equal or do not name their event.
fn trailers(attrs: &[Attr]) -> Vec<Trailer> {
    let each: Vec<_> = attrs.iter().map(Attr::trailer).collect();
    let identified = attrs.iter().all(Attr::has_identifier);
    if identified && each.windows(2).any(|pair| pair[0] != pair[1]) {
        return each;
    }
    vec![each.into_iter().find(|t| t.size > 0).unwrap_or_default()]
}

//! Turns the items of the window, which arrive in time order, into names and events for the sink.

use super::samples::Sample;
use super::window::Item;
use crate::format::Decoder;
use schedlab_base::{Event, NameRecord, Nanos, Payload, Sink, Tid};

/// Events are passed to the sink in batches of this size, which stay in the cache.
const BATCH: usize = 512;

/// Passes names and events to the sink, the events in batches.
pub(super) struct Output<'a> {
    sink: &'a mut dyn Sink,
    batch: Vec<Event>,
    pub(super) events: u64,
    pub(super) names: u64,
    /// The time of the last event.
    pub(super) last: Nanos,
    forks: bool,
}

impl<'a> Output<'a> {
    /// Creates the output. With `forks`, fork events are made from perf's records, because no tracepoint recorded them.
    pub(super) fn new(sink: &'a mut dyn Sink, forks: bool) -> Self {
        Self { sink, batch: Vec::with_capacity(BATCH), events: 0, names: 0, last: 0, forks }
    }

    /// Takes a sample.
    #[inline(always)]
    pub(super) fn sample(&mut self, decoder: &mut Decoder, sample: Sample) {
        let Sample { time, cpu, tgid, tid, raw } = sample;
        let (sink, names) = (&mut *self.sink, &mut self.names);
        let mut on_name = |record: &NameRecord| {
            *names += 1;
            sink.name(record);
        };
        if tgid > 0 {
            decoder.belongs(time, tid, tgid, &mut on_name);
        }
        if let Some(event) = decoder.decode(cpu, time, raw, &mut on_name) {
            self.event(event);
        }
    }

    /// Takes what is no sample.
    pub(super) fn item(&mut self, decoder: &mut Decoder, time: Nanos, item: Item) {
        let (sink, names) = (&mut *self.sink, &mut self.names);
        let mut on_name = |record: &NameRecord| {
            *names += 1;
            sink.name(record);
        };
        let event = match item {
            Item::Comm { cpu, tgid, tid, exec, name } => {
                let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
                decoder.belongs(time, tid, tgid, &mut on_name);
                decoder.named(time, tid, &name[..end], &mut on_name);
                (exec && is_tid(tid)).then_some(Event { time, cpu, what: Payload::Exec { tid, old: tid } })
            }
            Item::Fork { cpu, parent, tgid, child } => {
                decoder.belongs(time, child, tgid, &mut on_name);
                let whole = self.forks && is_tid(parent) && is_tid(child);
                whole.then_some(Event { time, cpu, what: Payload::Fork { parent, child } })
            }
            Item::Lost { cpu, count } => Some(Event { time, cpu, what: Payload::Lost { count } }),
        };
        if let Some(event) = event {
            self.event(event);
        }
    }

    #[inline]
    pub(super) fn event(&mut self, event: Event) {
        self.last = event.time;
        self.events += 1;
        self.batch.push(event);
        if self.batch.len() == BATCH {
            self.flush();
        }
    }

    #[inline(never)]
    pub(super) fn flush(&mut self) {
        if !self.batch.is_empty() {
            self.sink.events(&self.batch);
            self.batch.clear();
        }
    }
}

/// Whether a kernel can have assigned this id.
fn is_tid(tid: Tid) -> bool {
    (0..1 << 22).contains(&tid)
}

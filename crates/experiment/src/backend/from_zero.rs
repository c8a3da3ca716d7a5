//! The times of a recorded run, as experiments count them.

use schedlab_base::{AffinityRecord, Event, GroupRecord, NameRecord, Nanos, Sink, TaskRecord};

/// A sink whose times count from the start of the run, as the simulator's do.
pub(super) struct FromZero<'a> {
    pub(super) sink: &'a mut dyn Sink,
    pub(super) start: Nanos,
}

impl Sink for FromZero<'_> {
    fn events(&mut self, batch: &[Event]) {
        let moved: Vec<Event> =
            batch.iter().map(|event| Event { time: event.time.saturating_sub(self.start), ..*event }).collect();
        self.sink.events(&moved);
    }

    fn name(&mut self, record: &NameRecord) {
        self.sink.name(&NameRecord { time: record.time.saturating_sub(self.start), ..record.clone() });
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.sink.affinity(&AffinityRecord { time: record.time.saturating_sub(self.start), ..record.clone() });
    }

    fn task(&mut self, record: &TaskRecord) {
        self.sink.task(&TaskRecord { time: record.time.saturating_sub(self.start), ..record.clone() });
    }

    fn group(&mut self, record: &GroupRecord) {
        self.sink.group(&GroupRecord { time: record.time.saturating_sub(self.start), ..record.clone() });
    }

    fn lasts(&mut self, end: Nanos) {
        self.sink.lasts(end.saturating_sub(self.start));
    }
}

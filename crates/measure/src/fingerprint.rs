//! A number that stands for the events of a run: equal for equal runs, and in practice for no others.

use schedlab_base::{Event, NameRecord, Payload, Sink};

/// A sink that keeps a fingerprint of what happened when and where. Samples of run queues do not count, which only
/// pictures ask for.
#[derive(Debug, Default)]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.0
    }

    fn add(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Sink for Fingerprint {
    fn events(&mut self, batch: &[Event]) {
        for event in batch {
            let task = match event.what {
                Payload::Queue { .. } | Payload::Considered { .. } => continue,
                Payload::Switch { next, .. } => next,
                Payload::Wakeup { tid, .. } | Payload::WakeupNew { tid, .. } | Payload::Migrate { tid, .. } => tid,
                _ => Default::default(),
            };
            self.add(event.time);
            self.add(u64::from(event.cpu) << 32 | u64::from(task as u32));
        }
    }

    fn name(&mut self, _: &NameRecord) {}
}

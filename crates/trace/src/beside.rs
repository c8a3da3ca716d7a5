//! Where events come from on one core, and what is made of them on another.

use schedlab_base::{AffinityRecord, Event, GroupRecord, Ignored, NameRecord, Nanos, Sink, TaskRecord};
use std::mem::take;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

/// So many blocks may be under way, of so many events and records each.
const UNDER_WAY: usize = 4;
const BLOCK: usize = 8192;

/// Runs `source` on a thread of its own, and hands `sink` what it says, in the same order but in blocks: a source that
/// waits would keep what it has said. Where there is only one core, all is done in turn.
pub fn beside<T: Send>(sink: &mut dyn Sink, source: impl FnOnce(&mut dyn Sink) -> T + Send) -> T {
    if thread::available_parallelism().map_or(1, usize::from) == 1 {
        return source(sink);
    }
    let (wants_queues, ignores) = (sink.wants_queues(), sink.ignores());
    thread::scope(|scope| {
        let (says, said) = sync_channel(UNDER_WAY);
        let (done, again) = channel();
        let source =
            scope.spawn(move || source(&mut Hand { block: Block::default(), says, again, wants_queues, ignores }));
        for mut block in said {
            block.pass_on(sink);
            // Nobody wants it once the source has ended.
            let _ = done.send(block);
        }
        source.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}

/// Some of what a source says to its sink.
#[derive(Default)]
struct Block {
    said: Vec<Said>,
    events: Vec<Event>,
}

/// What comes next in a block.
enum Said {
    /// So many of its events.
    Events(usize),
    Name(NameRecord),
    Affinity(AffinityRecord),
    Task(TaskRecord),
    Group(GroupRecord),
    Lasts(Nanos),
}

impl Block {
    /// Says it all to a sink, and is empty then.
    fn pass_on(&mut self, sink: &mut dyn Sink) {
        let mut rest = &self.events[..];
        for said in self.said.drain(..) {
            match said {
                Said::Events(count) => {
                    let (batch, after) = rest.split_at(count);
                    rest = after;
                    sink.events(batch);
                }
                Said::Name(record) => sink.name(&record),
                Said::Affinity(record) => sink.affinity(&record),
                Said::Task(record) => sink.task(&record),
                Said::Group(record) => sink.group(&record),
                Said::Lasts(until) => sink.lasts(until),
            }
        }
        self.events.clear();
    }
}

/// The sink of the source, on its thread.
struct Hand {
    block: Block,
    says: SyncSender<Block>,
    /// Blocks to be filled again.
    again: Receiver<Block>,
    wants_queues: bool,
    ignores: Ignored,
}

impl Hand {
    fn say(&mut self, said: Said) {
        self.block.said.push(said);
        if self.block.said.len() + self.block.events.len() >= BLOCK {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let full = take(&mut self.block);
        // Nobody listens any more if the sink has panicked, and the panic is what is told.
        let _ = self.says.send(full);
        self.block = self.again.try_recv().unwrap_or_default();
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.hand_over();
    }
}

impl Sink for Hand {
    fn events(&mut self, batch: &[Event]) {
        self.block.events.extend_from_slice(batch);
        self.say(Said::Events(batch.len()));
    }

    fn name(&mut self, record: &NameRecord) {
        self.say(Said::Name(record.clone()));
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.say(Said::Affinity(record.clone()));
    }

    fn task(&mut self, record: &TaskRecord) {
        self.say(Said::Task(record.clone()));
    }

    fn group(&mut self, record: &GroupRecord) {
        self.say(Said::Group(record.clone()));
    }

    fn lasts(&mut self, until: Nanos) {
        self.say(Said::Lasts(until));
    }

    fn wants_queues(&self) -> bool {
        self.wants_queues
    }

    fn ignores(&self) -> Ignored {
        self.ignores
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::Payload;
    use std::panic::catch_unwind;

    /// What a sink heard, in order: the times of events, and names.
    #[derive(Default, PartialEq, Debug)]
    struct Heard(Vec<Result<Nanos, String>>);

    impl Sink for Heard {
        fn events(&mut self, batch: &[Event]) {
            assert!(!batch.is_empty() && batch[0].time != 77_777, "this sink fails there");
            self.0.extend(batch.iter().map(|event| Ok(event.time)));
        }

        fn name(&mut self, record: &NameRecord) {
            self.0.push(Err(record.comm.clone()));
        }
    }

    /// Names and batches of all sizes, by turns.
    fn talk(sink: &mut dyn Sink, until: Nanos) -> Nanos {
        let mut time = 0;
        while time < until {
            sink.name(&NameRecord { time: 0, tid: 1, comm: format!("t{time}"), tgid: None, cgroup: None });
            let event = |time| Event { time, cpu: 0, what: Payload::Lost { count: 1 } };
            let batch: Vec<Event> = (time..time + 1 + time % 5_000).map(event).collect();
            time += batch.len() as Nanos;
            sink.events(&batch);
        }
        time
    }

    #[test]
    fn a_sink_hears_the_same_on_another_thread() {
        let (mut there, mut here) = (Heard::default(), Heard::default());
        let result = beside(&mut there, |sink| talk(sink, 70_000));
        assert_eq!(result, talk(&mut here, 70_000));
        assert!(there == here && there.0.len() > 70_000);
    }

    #[test]
    fn who_panics_ends_it() {
        let source = || beside(&mut Heard::default(), |_| panic!("the source"));
        assert_eq!(catch_unwind(source).unwrap_err().downcast_ref(), Some(&"the source"));
        let event = Event { time: 77_777, cpu: 0, what: Payload::Lost { count: 1 } };
        let sink = || {
            beside(&mut Heard::default(), |sink| {
                sink.events(&[event]);
                talk(sink, 200_000)
            })
        };
        assert!(catch_unwind(sink).unwrap_err().downcast_ref::<&str>().unwrap().contains("this sink fails there"));
    }
}

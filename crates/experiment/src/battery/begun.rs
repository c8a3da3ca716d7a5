//! Whether the tasks of a run had begun in time for it to say something.
//!
//! Tasks begin one after another. Where a machine is slow beside its clock, as a guest is whose many CPUs share one
//! that counts instructions, the last of them may not have begun when the run is over.

use schedlab_base::{Event, NameRecord, Nanos, Payload, Sink, Tid};
use schedlab_workload::Workload;
use std::collections::{BTreeSet, HashMap};

/// When each task was first seen.
#[derive(Default)]
pub(super) struct Begun {
    first: HashMap<Tid, Nanos>,
}

impl Begun {
    /// How many of the tasks that the workload begins in the first quarter of a run had not begun when half of it was
    /// over, and how many those are.
    pub(super) fn missing(&self, workload: &Workload, end: Nanos, own: &BTreeSet<Tid>) -> (usize, usize) {
        let starts = workload.tasks.iter().flat_map(|task| (0..task.instances).map(|n| task.start_of(n)));
        let due = starts.filter(|start| *start <= end / 4).count();
        let begun = own.iter().filter(|tid| self.first.get(tid).is_some_and(|first| *first <= end / 2)).count();
        (due.saturating_sub(begun), due)
    }
}

impl Sink for Begun {
    fn events(&mut self, batch: &[Event]) {
        for event in batch {
            let tid = match event.what {
                Payload::Switch { next, .. } => next,
                Payload::Waking { tid, .. } | Payload::Wakeup { tid, .. } | Payload::WakeupNew { tid, .. } => tid,
                _ => continue,
            };
            self.first.entry(tid).or_insert(event.time);
        }
    }

    fn name(&mut self, _: &NameRecord) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::TaskState;

    #[test]
    fn tasks_that_were_to_begin_early_and_did_not_are_missing() {
        let text = r#"{ "tasks": {
            "now": { "instance": 3, "run": 100 },
            "soon": { "instance": 4, "delay": 100, "x-stagger": 100, "run": 100 },
            "child": { "instance": 0, "run": 1 } } }"#;
        let workload = schedlab_workload::parse(text.as_bytes(), std::path::Path::new("w")).unwrap();
        let mut begun = Begun::default();
        let new = |time, tid| Event { time, cpu: 0, what: Payload::WakeupNew { tid, prio: 120, target: 0 } };
        let runs = |time, next| {
            let what =
                Payload::Switch { prev: 0, prev_prio: 120, prev_state: TaskState::Runnable, next, next_prio: 120 };
            Event { time, cpu: 0, what }
        };
        // Of a run of 1 ms, 3 and the first two of 4 are to begin within a quarter. The last one is too late. 9 is not
        // ours.
        begun.events(&[
            new(0, 1),
            runs(10, 1),
            new(20, 2),
            new(30, 9),
            runs(500_000, 3),
            new(500_001, 4),
            new(900_000, 5),
        ]);
        assert_eq!(begun.missing(&workload, 1_000_000, &BTreeSet::from([1, 2, 3, 4, 5])), (2, 5));
        assert_eq!(begun.missing(&workload, 2_000_000, &BTreeSet::from([1, 2, 3, 4, 5])), (2, 7));
        assert_eq!(begun.missing(&workload, 1_000_000, &BTreeSet::from([1, 2, 3, 9])), (1, 5));
    }
}

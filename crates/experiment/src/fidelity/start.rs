//! When and where the tasks of a real run began, so that those of its simulation begin likewise.
//!
//! Real threads exist before their load begins. They are released together, and then sleep on the CPUs where the
//! release found room for them until their own time comes. A simulator that begins evenly would be spared the balancing
//! that follows.

use schedlab_base::{CpuId, Event, NameRecord, Nanos, Payload, Sink, TaskState, Tid};
use schedlab_workload::{Action, Amount, TaskDef, Workload};
use std::collections::{BTreeMap, BTreeSet};

/// How a task began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    /// When it first woke up by itself, from the beginning of the run.
    at: Nanos,
    /// The CPU where it slept until then.
    cpu: CpuId,
}

/// How the tasks of a run began, by name.
pub(super) type Starts = BTreeMap<String, Start>;

/// Finds it out from the events of a run.
#[derive(Default)]
pub(super) struct Starting {
    names: BTreeMap<Tid, String>,
    seen: BTreeMap<Tid, Seen>,
}

/// A task so far.
enum Seen {
    Awake(CpuId),
    Asleep(CpuId),
    Begun(Start),
}

impl Starting {
    /// How the workload's own tasks began; those that did not are left out.
    pub(super) fn finish(self, own: Option<&BTreeSet<Tid>>) -> Starts {
        let begun = self.seen.iter().filter_map(|(tid, seen)| match seen {
            Seen::Begun(start) if own.is_none_or(|own| own.contains(tid)) => Some((tid, *start)),
            _ => None,
        });
        begun.filter_map(|(tid, start)| Some((self.names.get(tid)?.clone(), start))).collect()
    }

    fn event(&mut self, event: &Event) {
        match event.what {
            Payload::Switch { prev, prev_state, next, .. } => {
                // A CPU whose idle task is hidden is not seen to get a task.
                if prev != 0
                    && prev_state != TaskState::Runnable
                    && let None | Some(Seen::Awake(_)) = self.seen.get(&prev)
                {
                    self.seen.insert(prev, Seen::Asleep(event.cpu));
                }
                if next != 0 && !matches!(self.seen.get(&next), Some(Seen::Begun(_))) {
                    self.seen.insert(next, Seen::Awake(event.cpu));
                }
            }
            // Since Linux 6.12 a task that has gone to sleep can be moved: its queue may not have let go of it yet.
            Payload::Migrate { tid, to, .. } => {
                if let Some(Seen::Awake(cpu) | Seen::Asleep(cpu)) = self.seen.get_mut(&tid) {
                    *cpu = to;
                }
            }
            Payload::Waking { tid, .. } => {
                if let Some(seen) = self.seen.get_mut(&tid)
                    && let Seen::Asleep(cpu) = *seen
                {
                    *seen = Seen::Begun(Start { at: event.time, cpu });
                }
            }
            _ => {}
        }
    }
}

impl Sink for Starting {
    fn events(&mut self, batch: &[Event]) {
        batch.iter().for_each(|event| self.event(event));
    }

    fn name(&mut self, record: &NameRecord) {
        self.names.insert(record.tid, record.comm.clone());
    }
}

/// The workload, each of whose tasks first sleeps, with its tasks begun in this way.
pub(super) fn begun_as(workload: &Workload, starts: &Starts) -> Workload {
    let one = |task: &TaskDef, name: String| {
        let mut task = TaskDef { name, instances: 1, ..task.clone() };
        if let Some(start) = starts.get(&task.name) {
            task.cpu = Some(start.cpu);
            task.phases[0].events[0].what = Action::Sleep(Amount { mean: start.at, sd: 0 });
        }
        task
    };
    let instances = |task: &TaskDef| match task.instances {
        1 => vec![one(task, task.name.clone())],
        many => (0..many).map(|n| one(task, format!("{}-{n}", task.name))).collect(),
    };
    Workload { tasks: workload.tasks.iter().flat_map(instances).collect(), ..workload.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fidelity::loads::LOADS;
    use schedlab_base::Context;

    fn switch(cpu: CpuId, prev: Tid, prev_state: TaskState, next: Tid) -> (CpuId, Payload) {
        (cpu, Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 })
    }

    fn waking(tid: Tid) -> (CpuId, Payload) {
        (0, Payload::Waking { tid, prio: 120, target: 0, waker: 0, context: Context::Unknown })
    }

    fn migrate(tid: Tid, from: CpuId, to: CpuId) -> (CpuId, Payload) {
        (0, Payload::Migrate { tid, prio: 120, from, to })
    }

    #[test]
    fn a_task_begins_where_it_slept_after_its_release() {
        let sleeping = TaskState::Sleeping;
        let events = [
            waking(7),
            migrate(7, 0, 2),
            switch(2, 0, TaskState::Runnable, 7),
            switch(2, 7, sleeping, 0),
            waking(8),
            switch(1, 0, TaskState::Runnable, 8),
            switch(1, 8, sleeping, 0),
            // A task that sleeps is moved, as Linux 6.12 does.
            migrate(8, 1, 3),
            waking(7),
            // Where it goes then is for the simulator to find.
            migrate(7, 2, 1),
            waking(8),
            switch(3, 0, TaskState::Runnable, 8),
            switch(3, 8, sleeping, 0),
            waking(8),
            switch(0, 0, TaskState::Runnable, 9),
            waking(10),
            // It was not seen to get the CPU.
            switch(1, 10, sleeping, 0),
            waking(10),
            switch(1, 10, sleeping, 0),
            waking(10),
        ];
        let mut starting = Starting::default();
        for (tid, comm) in [(7, "a"), (8, "b"), (9, "c"), (10, "d")] {
            starting.name(&NameRecord { time: 0, tid, tgid: None, comm: comm.to_owned(), cgroup: None });
        }
        for (time, (cpu, what)) in (100..).zip(events) {
            starting.events(&[Event { time, cpu, what }]);
        }
        let starts = starting.finish(None);
        let start = |at, cpu| Start { at, cpu };
        let expected = [("a", start(108, 2)), ("b", start(110, 3)), ("d", start(117, 1))];
        assert_eq!(starts, expected.map(|(name, start)| (name.to_owned(), start)).into());
    }

    #[test]
    fn only_the_beginning_of_a_load_changes() {
        for load in LOADS {
            let workload = load.workload(2).unwrap();
            assert!(workload.tasks.iter().all(|task| matches!(task.phases[0].events[0].what, Action::Sleep(_))));
            let first = &workload.tasks[0];
            let name = if first.instances == 1 { first.name.clone() } else { format!("{}-0", first.name) };
            let begun = begun_as(&workload, &[(name.clone(), Start { at: 5, cpu: 1 })].into());
            assert_eq!(begun.tasks.len() as u32, workload.tasks.iter().map(|task| task.instances).sum::<u32>());
            let mut task = begun.tasks[0].clone();
            assert_eq!((&task.name, task.cpu), (&name, Some(1)));
            assert_eq!(task.phases[0].events[0].what, Action::Sleep(Amount { mean: 5, sd: 0 }));
            task.phases[0].events[0].what = first.phases[0].events[0].what.clone();
            let same = TaskDef { name: first.name.clone(), instances: first.instances, cpu: None, ..task };
            assert_eq!(same, *first);
        }
    }
}

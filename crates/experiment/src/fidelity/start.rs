//! When and where the tasks of a real run began, so that those of its simulation begin likewise.
//!
//! Real threads exist before their load begins. They are released together; those whose time has not come sleep on the
//! CPUs where the release found room for them, and the others begin at once. A simulator that begins evenly would be
//! spared the balancing that follows.

use schedlab_base::{CpuId, Event, NameRecord, Nanos, Payload, Sink, TaskState, Tid};
use schedlab_workload::{Action, Amount, TaskDef, Workload};
use std::collections::{BTreeMap, BTreeSet};

/// A wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wakeup {
    /// When, from the beginning of the run.
    at: Nanos,
    /// The CPU where the task slept until then.
    cpu: CpuId,
}

/// How a task began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Start {
    /// When it was released.
    released: Option<Wakeup>,
    /// When it first woke up by itself.
    woke: Option<Wakeup>,
    /// How often it moved between CPUs until then.
    moved: u32,
}

/// How the tasks of a run began, by name.
pub(super) type Starts = BTreeMap<String, Start>;

/// Finds it out from the events of a run.
#[derive(Default)]
pub(super) struct Starting {
    names: BTreeMap<Tid, String>,
    seen: BTreeMap<Tid, Seen>,
    starts: BTreeMap<Tid, Start>,
}

/// A task so far.
enum Seen {
    Awake(CpuId),
    Asleep(CpuId),
    Begun,
}

impl Starting {
    /// How the workload's own tasks began; those that did not are left out.
    pub(super) fn finish(self, own: Option<&BTreeSet<Tid>>) -> Starts {
        let own = self.starts.iter().filter(|(tid, _)| own.is_none_or(|own| own.contains(tid)));
        own.filter_map(|(tid, start)| Some((self.names.get(tid)?.clone(), *start))).collect()
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
                if next != 0 && !matches!(self.seen.get(&next), Some(Seen::Begun)) {
                    self.seen.insert(next, Seen::Awake(event.cpu));
                }
            }
            // Since Linux 6.12 a task that has gone to sleep can be moved: its queue may not have let go of it yet.
            Payload::Migrate { tid, to, .. } => {
                if !matches!(self.seen.get(&tid), Some(Seen::Begun)) {
                    self.starts.entry(tid).or_default().moved += 1;
                }
                if let Some(Seen::Awake(cpu) | Seen::Asleep(cpu)) = self.seen.get_mut(&tid) {
                    *cpu = to;
                }
            }
            // The target of a waking is still the CPU where the task slept.
            Payload::Waking { tid, target, .. } => match self.seen.get_mut(&tid) {
                None => {
                    let released = Wakeup { at: event.time, cpu: target };
                    self.starts.entry(tid).or_default().released.get_or_insert(released);
                }
                Some(seen) => {
                    if let Seen::Asleep(cpu) = *seen {
                        self.starts.entry(tid).or_default().woke = Some(Wakeup { at: event.time, cpu });
                        *seen = Seen::Begun;
                    }
                }
            },
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

/// The workload with its tasks begun in this way, and how often they had moved before. One whose tasks are started one
/// after another starts them itself.
pub(super) fn begun_as(workload: &Workload, starts: &Starts) -> (Workload, u32) {
    if workload.global.start != schedlab_workload::Start::Wake {
        return (workload.clone(), 0);
    }
    let mut moved = 0;
    let mut one = |task: &TaskDef, name: String, nth: u32| {
        let delay = task.start_of(nth);
        let start = starts.get(&name).copied().unwrap_or_default();
        let mut task = TaskDef { name, instances: 1, delay, stagger: 0, ..task.clone() };
        let sleep = first_sleep(&mut task).filter(|_| delay == 0);
        let waits = delay > 0 || sleep.is_some();
        moved += if waits && start.woke.is_some() { start.moved } else { 0 };
        let began = if waits { start.woke } else { start.released };
        if let Some(Wakeup { at, cpu }) = began {
            match sleep {
                Some(sleep) => *sleep = Amount { mean: at, sd: 0 },
                None => task.delay = at,
            }
            task.cpu = Some(cpu);
        }
        task
    };
    let instances = |task: &TaskDef| match task.instances {
        0 => vec![task.clone()],
        1 => vec![one(task, task.name.clone(), 0)],
        many => (0..many).map(|n| one(task, format!("{}-{n}", task.name), n)).collect(),
    };
    let tasks = workload.tasks.iter().flat_map(instances).collect();
    (Workload { tasks, ..workload.clone() }, moved)
}

/// The sleep with which a task begins, if it is not repeated.
fn first_sleep(task: &mut TaskDef) -> Option<&mut Amount> {
    let once = task.loops == Some(1);
    let phase = task.phases.first_mut().filter(|phase| once && phase.loops == Some(1))?;
    match &mut phase.events.first_mut()?.what {
        Action::Sleep(amount) => Some(amount),
        _ => None,
    }
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
        let wakeup = |at, cpu| Some(Wakeup { at, cpu });
        let expected = [
            ("a", Start { released: wakeup(100, 0), woke: wakeup(108, 2), moved: 1 }),
            ("b", Start { released: wakeup(104, 0), woke: wakeup(110, 3), moved: 1 }),
            // It was never seen to sleep.
            ("d", Start { released: wakeup(115, 0), woke: wakeup(117, 1), moved: 0 }),
        ];
        assert_eq!(starts, expected.map(|(name, start)| (name.to_owned(), start)).into());
    }

    #[test]
    fn a_workload_of_the_users_begins_when_it_was_released() {
        let text = r#"{ "tasks": {
            "at-once": { "run": 100 },
            "later": { "instance": 2, "delay": 500, "x-stagger": 100, "run": 100 },
            "child": { "instance": 0, "run": 1 },
            "sleeps-again": { "loop": -1, "sleep": 100, "run": 1 } } }"#;
        let workload = schedlab_workload::parse(text.as_bytes(), std::path::Path::new("w")).unwrap();
        let wakeup = |at, cpu| Some(Wakeup { at, cpu });
        let starts = [
            ("at-once", Start { released: wakeup(7, 1), woke: wakeup(900, 2), moved: 1 }),
            ("later-1", Start { released: wakeup(8, 1), woke: wakeup(600_020, 3), moved: 2 }),
            ("sleeps-again", Start { released: wakeup(9, 2), woke: wakeup(100_500, 2), moved: 4 }),
        ];
        let starts = starts.map(|(name, start)| (name.to_owned(), start)).into();
        let (begun, moved) = begun_as(&workload, &starts);
        assert_eq!(moved, 2, "the others began when they were released");
        let found: Vec<_> = begun.tasks.iter().map(|t| (t.name.as_str(), t.instances, t.delay, t.cpu)).collect();
        let expected = [
            ("at-once", 1, 7, Some(1)),
            // It was not seen to begin.
            ("later-0", 1, 500_000, None),
            ("later-1", 1, 600_020, Some(3)),
            ("child", 0, 0, None),
            ("sleeps-again", 1, 9, Some(2)),
        ];
        assert_eq!(found, expected);
        let forked = r#"{ "tasks": { "a": { "run": 100 } }, "global": { "x-start": "fork" } }"#;
        let workload = schedlab_workload::parse(forked.as_bytes(), std::path::Path::new("w")).unwrap();
        let starts = [("a".to_owned(), Start { released: wakeup(7, 1), woke: None, moved: 0 })].into();
        assert_eq!(begun_as(&workload, &starts), (workload, 0));
    }

    #[test]
    fn only_the_beginning_of_a_load_changes() {
        for load in LOADS {
            let workload = load.workload(2).unwrap();
            assert!(workload.tasks.iter().all(|task| matches!(task.phases[0].events[0].what, Action::Sleep(_))));
            let first = &workload.tasks[0];
            let name = if first.instances == 1 { first.name.clone() } else { format!("{}-0", first.name) };
            let start = Start { released: None, woke: Some(Wakeup { at: 5, cpu: 1 }), moved: 0 };
            let (begun, _) = begun_as(&workload, &[(name.clone(), start)].into());
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

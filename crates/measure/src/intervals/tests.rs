//! The intervals of traces whose story is known, and their agreement with the statistics.

use super::*;
use crate::Stats;
use proptest::prelude::*;
use schedlab_base::{Context, Payload, Tid};
use std::collections::BTreeMap;

fn switch(time: Nanos, cpu: CpuId, prev: Tid, prev_state: TaskState, next: Tid) -> Event {
    Event { time, cpu, what: Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 } }
}

fn waking(time: Nanos, tid: Tid) -> Event {
    Event { time, cpu: 0, what: Payload::Waking { tid, prio: 120, target: 0, waker: 1, context: Context::Unknown } }
}

fn wakeup(time: Nanos, tid: Tid, target: CpuId) -> Event {
    Event { time, cpu: 0, what: Payload::Wakeup { tid, prio: 120, target } }
}

fn table(events: &[Event]) -> Table {
    let mut intervals = Intervals::new(&Meta::default());
    intervals.events(events);
    intervals.finish()
}

/// The intervals of a task: state, CPU, start, end, wait.
fn of(table: &Table, tid: Tid) -> Vec<(&'static str, CpuId, Nanos, Nanos, Option<Nanos>)> {
    let own = table.rows.iter().filter(|row| table.tasks[row.task as usize].tid == tid);
    own.map(|row| (row.doing.word(), row.cpu, row.start, row.end, row.wait())).collect()
}

#[test]
fn each_interval_has_its_state_and_a_run_the_wait_before() {
    use TaskState::{Runnable, Sleeping, Uninterruptible};
    let events = [
        switch(1_000, 0, 0, Runnable, 1),
        waking(1_005, 2),
        wakeup(1_010, 2, 0),
        switch(1_040, 0, 1, Runnable, 2),
        switch(1_060, 0, 2, Uninterruptible, 1),
        switch(1_080, 0, 1, Sleeping, 0),
        wakeup(1_100, 2, 0),
        switch(1_100, 0, 0, Runnable, 2),
        switch(1_130, 0, 2, Sleeping, 0),
        wakeup(1_150, 1, 0),
    ];
    let table = table(&events);
    assert_eq!(
        of(&table, 1),
        [
            ("running", 0, 1_000, 1_040, None),
            ("waiting", 0, 1_040, 1_060, None),
            ("running", 0, 1_060, 1_080, Some(20)),
            ("sleeping", 0, 1_080, 1_150, None),
        ]
    );
    assert_eq!(
        of(&table, 2),
        [
            ("waiting", 0, 1_010, 1_040, None),
            ("running", 0, 1_040, 1_060, Some(30)),
            ("blocked", 0, 1_060, 1_100, None),
            ("running", 0, 1_100, 1_130, Some(0)),
            ("sleeping", 0, 1_130, 1_150, None),
        ]
    );
}

#[test]
fn a_wait_over_two_queues_is_two_rows_and_one_sum() {
    let pull = Event { time: 1_030, cpu: 1, what: Payload::Migrate { tid: 2, prio: 120, from: 0, to: 1 } };
    let events = [
        switch(1_000, 0, 0, TaskState::Runnable, 1),
        wakeup(1_010, 2, 0),
        pull,
        switch(1_050, 1, 0, TaskState::Runnable, 2),
        switch(1_070, 1, 2, TaskState::Dead, 0),
    ];
    assert_eq!(
        of(&table(&events), 2),
        [
            ("waiting", 0, 1_010, 1_030, None),
            ("waiting", 1, 1_030, 1_050, None),
            ("running", 1, 1_050, 1_070, Some(40)),
        ]
    );
}

#[test]
fn a_wait_across_a_loss_is_not_known() {
    use TaskState::{Runnable, Sleeping};
    let lost = Event { time: 1_050, cpu: 0, what: Payload::Lost { count: 3 } };
    let events = [
        switch(1_000, 0, 0, Runnable, 7),
        wakeup(1_010, 9, 0),
        lost,
        switch(1_080, 0, 8, Sleeping, 9),
        switch(1_090, 0, 9, Sleeping, 0),
    ];
    let table = table(&events);
    assert_eq!(of(&table, 7), [("running", 0, 1_000, 1_010, None)]);
    assert_eq!(of(&table, 9), [("running", 0, 1_080, 1_090, None)]);
}

#[test]
fn tasks_have_their_last_names_and_children_their_parents() {
    let mut intervals = Intervals::new(&Meta::default());
    let name = |tid, comm: &str| NameRecord { time: 0, tid, tgid: Some(1), comm: comm.into(), cgroup: None };
    intervals.name(&name(1, "sh"));
    intervals.events(&[
        switch(1_000, 0, 0, TaskState::Runnable, 1),
        Event { time: 1_010, cpu: 0, what: Payload::Fork { parent: 1, child: 2 } },
        switch(1_020, 0, 1, TaskState::Sleeping, 2),
    ]);
    intervals.name(&name(1, "make"));
    let tasks = intervals.finish().tasks;
    let seen: Vec<_> = tasks.iter().map(|task| (task.tid, task.tgid, &*task.name)).collect();
    assert_eq!(seen, [(1, Some(1), "make"), (2, None, "sh")]);
}

proptest! {
    #[test]
    fn sums_are_those_of_the_statistics(
        raw in prop::collection::vec((0u8..7, 0u32..3, 0i32..5, 0i32..5, 0u64..50), 1..300),
        whole in any::<bool>(),
    ) {
        use TaskState::{Dead, Runnable, Sleeping};
        let mut now = 1_000;
        let events: Vec<Event> = raw.into_iter().map(|(kind, cpu, a, b, gap)| {
            now += gap;
            let what = match kind {
                0 | 1 => return switch(now, cpu, a, [Runnable, Sleeping, Dead][gap as usize % 3], b),
                2 => Payload::Waking { tid: a, prio: 0, target: cpu, waker: b, context: Context::Unknown },
                3 => Payload::WakeupNew { tid: a, prio: 0, target: cpu },
                4 => Payload::Wakeup { tid: a, prio: 0, target: cpu },
                5 => Payload::Migrate { tid: a, prio: 0, from: cpu, to: b as CpuId % 3 },
                _ => Payload::Lost { count: 0 },
            };
            Event { time: now, cpu, what }
        }).collect();
        let meta = Meta { span: whole.then_some((900, now + 100)), ..Meta::default() };
        let (mut intervals, mut stats) = (Intervals::new(&meta), Stats::new(&meta));
        intervals.events(&events);
        stats.events(&events);
        let (table, report) = (intervals.finish(), stats.finish(None));
        let sums = |pairs: Vec<(Tid, Nanos, Nanos)>| {
            let mut all: BTreeMap<Tid, (Nanos, Nanos)> = BTreeMap::new();
            for (tid, run, wait) in pairs {
                let sum = all.entry(tid).or_default();
                (sum.0, sum.1) = (sum.0 + run, sum.1 + wait);
            }
            all.retain(|_, sum| *sum != (0, 0));
            all
        };
        let own = sums(table.rows.iter().filter_map(|row| {
            let (tid, time) = (table.tasks[row.task as usize].tid, row.end - row.start);
            match row.doing {
                Doing::Running => Some((tid, time, 0)),
                Doing::Waiting => Some((tid, 0, time)),
                Doing::Sleeping | Doing::Blocked => None,
            }
        }).collect());
        let ns = |us: f64| (us * 1e3).round() as Nanos;
        let tasks = report.tasks.iter();
        let theirs = sums(tasks.map(|t| (t.tid, ns(t.sums.run.run_us), ns(t.sums.wait.wait_us))).collect());
        prop_assert_eq!(own, theirs);
        prop_assert!(table.rows.is_sorted_by_key(|row| row.start));
    }
}

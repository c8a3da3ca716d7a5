//! `/proc/schedstat` of traces made by hand.

use schedlab_base::{Context, CpuId, CpuPlace, Event, Meta, Nanos, Payload, Sink, TaskState, Tid};
use schedlab_measure::schedstat::{CpuLine, Format, Schedstat, SchedstatSink};

const MS: Nanos = 1_000_000;

fn meta() -> Meta {
    Meta {
        cpus: (0..2).map(|cpu| CpuPlace { cpu, ..CpuPlace::default() }).collect(),
        running: vec![(0, 0), (1, 0)],
        span: Some((0, 100 * MS)),
        ..Meta::default()
    }
}

fn at(ms: u64, cpu: CpuId, what: Payload) -> Event {
    Event { time: ms * MS, cpu, what }
}

fn switch(prev: Tid, prev_state: TaskState, next: Tid) -> Payload {
    Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 }
}

/// Task 1 starts on CPU 0 and wakes task 2, which was on CPU 1, onto CPU 0, where it waits 6 ms; moved to CPU 1 it
/// waits 1 ms more. It runs 10 ms there and sleeps, and a timer of CPU 1 wakes it there.
fn events(wakeups: bool) -> Vec<Event> {
    let mut events = vec![
        at(0, 0, Payload::WakeupNew { tid: 1, prio: 120, target: 0 }),
        at(2, 0, switch(0, TaskState::Runnable, 1)),
        at(4, 0, Payload::Waking { tid: 2, prio: 120, target: 1, waker: 1, context: Context::Unknown }),
        at(4, 0, Payload::Wakeup { tid: 2, prio: 120, target: 0 }),
        at(10, 1, Payload::Migrate { tid: 2, prio: 120, from: 0, to: 1 }),
        at(11, 1, switch(0, TaskState::Runnable, 2)),
        at(21, 1, switch(2, TaskState::Sleeping, 0)),
        at(30, 1, Payload::Waking { tid: 2, prio: 120, target: 1, waker: 0, context: Context::Unknown }),
        at(30, 1, Payload::Wakeup { tid: 2, prio: 120, target: 1 }),
        at(30, 1, switch(0, TaskState::Runnable, 2)),
    ];
    events.retain(|e| wakeups || !matches!(e.what, Payload::Wakeup { .. }));
    events
}

fn told(format: Option<Format>, wakeups: bool) -> Schedstat {
    let mut sink = SchedstatSink::new(&meta(), format.expect("a format"));
    sink.events(&events(wakeups));
    sink.finish(250)
}

#[test]
fn each_field_is_what_the_events_say() {
    let told = told(Format::of_kernel("linux-6.1"), true);
    let lines = [
        // Task 1 runs on at the end: that has not been counted yet. It waited 2 ms, task 2 6 ms.
        CpuLine {
            cpu: 0,
            sched_count: 1,
            ttwu_count: 1,
            ttwu_local: 1,
            run_delay: 8 * MS,
            pcount: 1,
            ..CpuLine::default()
        },
        CpuLine {
            cpu: 1,
            sched_count: 3,
            sched_goidle: 1,
            ttwu_count: 1,
            ttwu_local: 1,
            rq_cpu_time: 10 * MS,
            run_delay: MS,
            pcount: 2,
            ..CpuLine::default()
        },
    ];
    assert_eq!(told.cpus, lines);
    assert_eq!(
        told.text(),
        "version 15\ntimestamp 25\ncpu0 0 0 1 0 1 1 0 8000000 1\ncpu1 0 0 3 1 1 1 10000000 1000000 2\n"
    );
}

#[test]
fn older_kernels_count_wake_ups_elsewhere() {
    let ttwu = |kernel, wakeups| {
        let told = told(Format::of_kernel(kernel), wakeups);
        told.cpus.iter().map(|c| (c.ttwu_count, c.ttwu_local)).collect::<Vec<_>>()
    };
    // The first wake-up is CPU 0's, of a task that was on CPU 1 and goes to CPU 0.
    assert_eq!(ttwu("linux-6.12", true), [(1, 1), (1, 1)]);
    assert_eq!(ttwu("linux-2.6.32", true), [(1, 1), (1, 1)]);
    assert_eq!(ttwu("linux-2.6.24", true), [(0, 0), (2, 1)]);
    // Without wake-ups proper, the task is held to have gone where it ran.
    assert_eq!(ttwu("linux-6.12", false), [(1, 0), (1, 1)]);
    assert_eq!(ttwu("linux-2.6.32", false), [(0, 0), (2, 1)]);
}

#[test]
fn version_14_has_more_fields_and_forgets_the_wait_before_a_move() {
    let told = told(Format::of_kernel("linux-2.6.24"), true);
    assert_eq!(
        told.text(),
        "version 14\ntimestamp 25\ncpu0 0 0 0 0 0 1 0 0 0 0 2000000 1\ncpu1 0 0 0 0 0 3 1 2 1 10000000 1000000 2\n"
    );
}

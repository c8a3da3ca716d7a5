//! Spans and cells of traces whose picture is known.

use super::*;
use proptest::prelude::*;
use schedlab_base::{Context, Event, Meta, Payload, Sink, TaskState};

fn switch(time: Nanos, cpu: CpuId, prev: Tid, prev_state: TaskState, next: Tid) -> Event {
    Event { time, cpu, what: Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 } }
}

fn waking(time: Nanos, tid: Tid) -> Event {
    Event { time, cpu: 0, what: Payload::Waking { tid, prio: 120, target: 0, waker: 1, context: Context::Unknown } }
}

const WHOLE: Window = Window { from: 0, to: Nanos::MAX };

fn follow<L: Lanes>(events: &[Event], lanes: L) -> Followed<L> {
    let mut follow = Follow::new(&Meta::default(), lanes, WHOLE);
    follow.events(events);
    follow.finish()
}

/// 1 runs 0..40, 2 (woken at 10) waits until 40 and runs to 60, 1 waits meanwhile and then runs to 100.
fn story() -> Vec<Event> {
    use TaskState::{Runnable, Sleeping};
    vec![
        waking(1_000, 9),
        waking(1_010, 2),
        switch(1_040, 0, 1, Runnable, 2),
        switch(1_060, 0, 2, Sleeping, 1),
        switch(1_100, 0, 1, Sleeping, 0),
    ]
}

#[test]
fn spans_tell_what_each_task_did() {
    let spans = follow(&story(), Spans::new(WHOLE, 100, |_| true)).lanes.kept;
    let of = |tid| spans.iter().filter(|s| s.tid == tid).map(|s| (s.doing.word(), s.from, s.to)).collect::<Vec<_>>();
    assert_eq!(of(1), [("running", 0, 40), ("waiting", 40, 60), ("running", 60, 100)]);
    assert_eq!(of(2), [("sleeping", 0, 10), ("waiting", 10, 40), ("running", 40, 60), ("sleeping", 60, 100)]);
    assert_eq!(follow(&story(), Spans::new(WHOLE, 3, |_| true)).lanes.left_out, 5);
}

#[test]
fn a_census_counts_inside_its_window() {
    let census = follow(&story(), Census::new(Window { from: 20, to: 70 })).lanes;
    // Slots are given in the order of first sight: 9, 2, 1.
    assert_eq!(census.tasks[&2], Sum { run: 30, wait: 20 });
    assert_eq!(census.tasks[&1], Sum { run: 20, wait: 20 });
    assert_eq!(census.busy[&0], 50);
}

#[test]
fn cells_show_the_task_that_ran_longest() {
    let window = Window { from: 0, to: 100 };
    let lanes = follow(&story(), CpuCells::new(window, 4, [0, 1])).lanes.lanes;
    let seen: Vec<_> = lanes[&0].iter().map(|c| (c.tid, (c.most * 25.0).round(), (c.busy * 25.0).round())).collect();
    assert_eq!(seen, [(1, 25.0, 25.0), (1, 15.0, 25.0), (1, 15.0, 25.0), (1, 25.0, 25.0)]);
    assert_eq!(lanes[&0].iter().map(|c| c.wakeups).collect::<Vec<_>>(), [2, 0, 0, 0]);
    assert!(lanes[&1].iter().all(|c| *c == CpuCell::default()));
    let lanes = follow(&story(), TaskCells::new(window, 10, [1])).lanes.lanes;
    let cell = lanes[&1][4];
    assert_eq!((cell.running, cell.waiting, lanes[&1][1].wakeups), (1.0, 0.0, 1));
}

#[test]
fn a_child_did_nothing_before_it_was_made() {
    let new = Event { time: 1_020, cpu: 0, what: Payload::WakeupNew { tid: 5, prio: 120, target: 0 } };
    let events =
        [waking(1_000, 9), new, switch(1_050, 0, 0, TaskState::Runnable, 5), switch(1_070, 0, 5, TaskState::Dead, 0)];
    let spans = follow(&events, Spans::new(WHOLE, 100, |_| true)).lanes.kept;
    let of = spans.iter().filter(|s| s.tid == 5).map(|s| (s.doing.word(), s.from, s.to)).collect::<Vec<_>>();
    assert_eq!(of, [("waiting", 20, 50), ("running", 50, 70)]);
}

fn running(events: &[Event], tid: Tid) -> Vec<(CpuId, Nanos, Nanos)> {
    let spans = follow(events, Spans::new(WHOLE, 100, |s| s.doing == Doing::Running)).lanes.kept;
    spans.iter().filter(|s| s.tid == tid).map(|s| (s.cpu, s.from, s.to)).collect()
}

#[test]
fn an_unseen_switch_is_drawn_where_the_statistics_count_it() {
    use TaskState::{Runnable, Sleeping};
    // 8 was seen to get the CPU at 20, but 7, waiting since 10, is seen to leave it at 100.
    let events = [
        switch(1_000, 0, 0, Runnable, 7),
        switch(1_010, 0, 7, Runnable, 9),
        switch(1_020, 0, 9, Sleeping, 8),
        switch(1_100, 0, 7, Sleeping, 0),
    ];
    assert_eq!(running(&events, 7), [(0, 0, 10), (0, 20, 100)]);
    assert_eq!(running(&events, 8), []);
    let mut stats = crate::Stats::new(&Meta::default());
    stats.events(&events);
    let report = stats.finish(None);
    let seven = report.tasks.iter().find(|task| task.tid == 7).expect("it ran");
    assert_eq!(seven.sums.run.run_us * 1e3, 90.0);
}

#[test]
fn a_task_that_a_hidden_idle_task_gave_way_to_runs() {
    use TaskState::{Runnable, Sleeping};
    let wakeup = |time| Event { time, cpu: 0, what: Payload::Wakeup { tid: 5, prio: 120, target: 0 } };
    let mut events = vec![switch(1_000, 0, 0, Runnable, 5), switch(1_010, 0, 5, Sleeping, 0)];
    // The switches to 5 are missing.
    for round in 1..10 {
        let at = 1_000 + round * 10_000_000;
        events.extend([waking(at, 5), wakeup(at), switch(at + 3_000_000, 0, 5, Sleeping, 0)]);
    }
    let mut stats = crate::Stats::new(&Meta::default());
    stats.events(&events);
    let counted = stats.finish(None).tasks[0].sums.run.run_us;
    let drawn: Nanos = running(&events, 5).iter().map(|(_, from, to)| to - from).sum();
    assert_eq!(drawn as f64 / 1e3, counted);
    assert!(counted > 9.0 * 2_900.0, "{counted}");
}

#[test]
fn across_a_loss_nothing_is_drawn_until_the_cpu_was_seen_again() {
    use TaskState::{Runnable, Sleeping};
    let lost = Event { time: 1_050, cpu: 0, what: Payload::Lost { count: 3 } };
    let events = [switch(1_000, 0, 0, Runnable, 7), waking(1_010, 9), lost, switch(1_080, 0, 8, Sleeping, 7)];
    assert_eq!(running(&events, 7), [(0, 0, 10)], "its last event before the loss is of 10");
    assert_eq!(running(&events, 8), [(0, 50, 80)], "after the loss each switch was seen");
}

#[test]
fn a_cpu_runs_one_task_at_a_time() {
    use TaskState::{Runnable, Sleeping};
    // 9 gets CPU 0 at 20 and is seen to get CPU 1 at 50. Nobody saw when 7 got CPU 0, which it leaves at 100.
    let events = [
        switch(1_000, 0, 0, Runnable, 7),
        switch(1_020, 0, 7, Runnable, 9),
        switch(1_050, 1, 0, Runnable, 9),
        switch(1_100, 0, 7, Sleeping, 0),
    ];
    assert_eq!(running(&events, 9), [(0, 20, 50), (1, 50, 100)]);
    assert_eq!(running(&events, 7), [(0, 0, 20), (0, 50, 100)]);
}

#[test]
fn one_thread_id_does_one_thing_at_a_time() {
    use TaskState::Sleeping;
    // The thread 11 calls exec and takes over the id of its leader, whose end nobody saw.
    let exec = Event { time: 1_030, cpu: 0, what: Payload::Exec { tid: 10, old: 11 } };
    let events = [switch(1_010, 0, 10, Sleeping, 11), exec, switch(1_050, 0, 10, Sleeping, 0)];
    let spans = follow(&events, Spans::new(WHOLE, 100, |_| true)).lanes.kept;
    let of = |tid| spans.iter().filter(|s| s.tid == tid).map(|s| (s.doing.word(), s.from, s.to)).collect::<Vec<_>>();
    assert_eq!(of(10), [("sleeping", 0, 20), ("running", 20, 40)]);
    assert_eq!(of(11), [("running", 0, 20)]);
}

proptest! {
    #[test]
    fn any_events_give_spans_in_order(
        raw in prop::collection::vec((0u8..5, 0u32..3, 0i32..5, 0i32..5, 0u64..50), 1..300),
        cells in 1usize..40,
    ) {
        use TaskState::{Dead, Runnable, Sleeping};
        let mut now = 0;
        let events: Vec<Event> = raw.into_iter().map(|(kind, cpu, a, b, gap)| {
            now += gap;
            let what = match kind {
                0 | 1 => return switch(now, cpu, a, [Runnable, Sleeping, Dead][gap as usize % 3], b),
                2 => Payload::Waking { tid: a, prio: 0, target: u32::MAX, waker: b, context: Context::Unknown },
                3 => Payload::WakeupNew { tid: a, prio: 0, target: cpu },
                _ => Payload::Lost { count: 0 },
            };
            Event { time: now, cpu, what }
        }).collect();
        let spans = follow(&events, Spans::new(WHOLE, 10_000, |_| true)).lanes.kept;
        for tid in 1..5 {
            let own: Vec<_> = spans.iter().filter(|s| s.tid == tid).collect();
            prop_assert!(own.windows(2).all(|w| w[0].to <= w[1].from), "{:?}", own);
        }
        for cpu in 0..3 {
            let own: Vec<_> = spans.iter().filter(|s| s.doing == Doing::Running && s.cpu == cpu).collect();
            prop_assert!(own.windows(2).all(|w| w[0].to <= w[1].from), "{:?}", own);
        }
        let window = Window { from: now / 3, to: now / 3 + 77 };
        let cpus = follow(&events, CpuCells::new(window, cells, 0..3)).lanes;
        let tasks = follow(&events, TaskCells::new(window, cells, 0..9)).lanes;
        prop_assert!(cpus.lanes.values().flatten().all(|c| (0.0..=1.0).contains(&c.busy) && c.most <= 1.0001));
        prop_assert!(tasks.lanes.values().flatten().all(|c| c.running + c.waiting + c.sleeping + c.blocked <= 1.0001));
    }
}

//! Waiting by affinity, and traces that leave a check undecided.

use super::*;
use schedlab_base::{Coverage, Partial};

/// CPU 0 runs task 1 from 0 on. Tasks 2 and 3 are bound to it and wait from 100 and 400 ms on; 2 may go to CPU 1 from
/// 700 ms on. CPU 1 is idle, CPU 2 runs task 4 from 600 ms on.
fn bound() -> Script {
    let mut s = Script::default();
    s.allow(0, 2, "0").allow(0, 3, "0").allow(0, 1, "0-2").allow(0, 4, "2");
    s.start(0, 0, 1).wake(100, 2, 0).wake(400, 3, 0).start(600, 2, 4).allow(700, 2, "0-1");
    s
}

#[test]
fn waiting_by_affinity_is_no_violation_and_is_summed_up() {
    let report = bound().check(&meta(3), Bounds { threshold: 500 * MS, max_wasted: None }, 1000);
    let [group] = &report.bound[..] else { panic!("{:?}", report.bound) };
    assert_eq!((group.allowed.as_str(), group.idle.as_str(), group.waiting_tasks), ("0", "1-2", 2));
    let tasks: Vec<_> = group.waiting.iter().map(|task| (task.tid, task.wait_us / 1e3)).collect();
    assert_eq!(tasks, [(2, 600.0), (3, 600.0)], "until 2 may run elsewhere; 3 to the end");
    assert_eq!((report.bound_wait_us, group.wait_us), (1_200_000.0, 1_200_000.0));
    // From 700 ms on it is a violation that 2 waits, if a short one.
    assert_eq!((report.violations.len(), report.wasted_cpu_us, report.verdict), (0, 300_000.0, Verdict::Pass));
}

#[test]
fn tasks_that_wait_beside_no_idle_cpu_or_may_use_it_do_not_count() {
    let mut s = Script::default();
    s.allow(0, 2, "0").allow(0, 3, "0-1").start(0, 0, 1).start(0, 1, 9).wake(0, 2, 0).wake(0, 3, 0);
    let report = s.check(&meta(2), Bounds::default(), 1000);
    assert_eq!((report.bound.len(), report.bound_wait_us), (0, 0.0), "no CPU is idle");
    s.switch(1000, 1, 9, Sleeping, 0);
    let report = s.check(&meta(2), Bounds::default(), 1500);
    assert_eq!(report.bound.iter().map(|g| (g.allowed.as_str(), g.wait_us)).collect::<Vec<_>>(), [("0", 500_000.0)]);
    // What may have run unseen does not count: events of CPU 0 are lost.
    s.at(1500, 0, Payload::Lost { count: 1 });
    let none = s.check(&meta(2), Bounds::default(), 2000).bound_wait_us;
    assert!(none == 0.0 && none.is_sign_positive(), "{none:?}");
}

#[test]
fn a_recorder_sees_a_change_of_affinity_late() {
    // 2 waits on CPU 0 from 50 ms on, beside the idle CPU 1. At 250 ms it is found to be bound to CPU 0.
    let mut s = Script::default();
    s.allow(0, 2, "0-1").start(0, 0, 1).wake(50, 2, 0).allow(250, 2, "0");
    let found = |source: &str| {
        let running = vec![(0, 0), (1, 0)];
        let report = s.check(&Meta { source: source.into(), running, ..meta(2) }, Bounds::default(), 400);
        (report.violations.len(), report.wasted_cpu_us)
    };
    assert_eq!(found("sim"), (1, 200_000.0), "it was bound at 250 ms");
    assert_eq!(found("record"), (0, 0.0), "it may have been bound all the time");
}

#[test]
fn a_trace_that_cannot_tell_leaves_the_check_undecided() {
    let reason = |script: &Script, meta: &Meta| {
        let report = script.check(meta, Bounds::default(), 300);
        assert_eq!(report.verdict == Verdict::Undecided, report.reason.is_some());
        report.reason.unwrap_or_default()
    };
    assert!(reason(&Script::default(), &meta(2)).contains("no events"));
    let partial = Partial { covers: Coverage::Tasks, only: "process 1".into() };
    let alone = Meta { partial: Some(partial), ..meta(2) };
    assert!(reason(&one_waits(200), &alone).contains("only the events of process 1"));
    assert_eq!(reason(&one_waits(200), &meta(2)), "", "it fails");
    // 20 switches in a chain; then one, and then two, leave a task that was not seen to start.
    let mut s = Script::default();
    s.start(0, 0, 1);
    for n in 1..20 {
        s.switch(n, 0, n as i32, Sleeping, n as i32 + 1);
    }
    s.switch(30, 0, 99, Sleeping, 1);
    assert_eq!(reason(&s, &meta(1)), "");
    s.switch(31, 0, 98, Sleeping, 1);
    assert!(reason(&s, &meta(1)).contains("2 events contradict others"), "{}", reason(&s, &meta(1)));
    let mut s = Script::default();
    s.start(0, 0, 1).at(10, 0, Payload::Lost { count: 40 }).switch(11, 0, 1, Sleeping, 0);
    assert!(reason(&s, &meta(1)).contains("40 of"), "{}", reason(&s, &meta(1)));
}

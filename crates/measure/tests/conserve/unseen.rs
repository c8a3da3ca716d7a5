//! What nobody saw: tasks that ran unseen, and CPUs whose idle task is hidden.

use super::{Script, meta};
use TaskState::{Runnable, Sleeping};
use schedlab_base::{Meta, Payload, TaskState};
use schedlab_measure::Bounds;

#[test]
fn a_task_that_ran_unseen_accuses_nobody() {
    let told = Meta { source: "record".into(), running: vec![(0, 0), (1, 0)], ..meta(2) };
    let mut s = Script::default();
    // Task 2 is woken again at 300 ms, though it was not seen to run since its wake-up at 50 ms.
    s.switch(0, 0, 0, Runnable, 1).wake(50, 2, 0).wake(300, 2, 0).switch(350, 0, 1, Sleeping, 2);
    assert_eq!(s.check(&told, Bounds::default(), 1000).violations, []);
    // As above, with the violation closed before: CPU 1 is busy for an instant at 250 ms.
    let mut s = Script::default();
    s.switch(0, 0, 0, Runnable, 1).wake(50, 2, 0).start(250, 1, 3).switch(260, 1, 3, Sleeping, 0);
    assert_eq!(s.check(&told, Bounds::default(), 261).violations.len(), 1);
    s.wake(300, 2, 0);
    assert_eq!(s.check(&told, Bounds::default(), 301).violations, []);
    // It leaves CPU 1, where it was not seen to come.
    let mut s = Script::default();
    s.switch(0, 0, 0, Runnable, 1).wake(50, 2, 0).switch(300, 1, 2, Sleeping, 0);
    assert_eq!(s.check(&told, Bounds::default(), 1000).violations, []);
    // Another, unseen before, leaves CPU 1: that CPU was not idle.
    let mut s = Script::default();
    s.switch(0, 0, 0, Runnable, 1).wake(50, 2, 0).switch(300, 1, 7, Sleeping, 0);
    let report = s.check(&told, Bounds::default(), 300);
    assert_eq!((report.violations.len(), report.wasted_cpu_us, report.contradictions), (0, 0.0, 1));
    // Its id is given to a new task.
    let mut s = Script::default();
    s.switch(0, 0, 0, Runnable, 1).wake(50, 2, 0).at(300, 0, Payload::Fork { parent: 1, child: 2 });
    assert_eq!(s.check(&told, Bounds::default(), 1000).violations, []);
}

/// No switch away from CPU 1's idle task is recorded, as on some virtual machines.
#[test]
fn a_cpu_whose_idle_task_is_hidden_is_idle_until_a_task_is_woken_onto_it() {
    let told = Meta { source: "record".into(), running: vec![(0, 0), (1, 0)], ..meta(2) };
    let mut s = Script::default();
    s.switch(0, 0, 0, Runnable, 1).wake(10, 3, 1).switch(20, 1, 3, Sleeping, 0).wake(50, 2, 0);
    s.wake(300, 3, 1).switch(310, 1, 3, Sleeping, 0);
    let report = s.check(&told, Bounds::default(), 400);
    let found: Vec<_> = report.violations.iter().map(|v| (v.start_us, v.duration_us, v.idle_cpu)).collect();
    assert_eq!(found, [(50_000.0, 250_000.0, 1)]);
    assert_eq!((report.wasted_cpu_us, report.contradictions), (340_000.0, 1));
    // As CPU 2 takes 5 ms to leave idle, CPU 1 is expected to; task 3 is seen to leave it after 2 ms, of which it is
    // taken to have had the CPU for 1 ms.
    let told = Meta { running: vec![(0, 0), (1, 0), (2, 0)], cpus: meta(3).cpus, ..told };
    let mut s = Script::default();
    s.switch(0, 0, 0, Runnable, 1).wake(10, 3, 1).switch(20, 1, 3, Sleeping, 0);
    s.wake(22, 4, 2).allow(22, 4, "2").switch(27, 2, 0, Runnable, 4).wake(50, 2, 0).allow(50, 2, "0-1");
    s.wake(300, 3, 1).switch(302, 1, 3, Sleeping, 0);
    let report = s.check(&told, Bounds::default(), 350);
    let found: Vec<_> = report.violations.iter().map(|v| (v.start_us, v.duration_us, v.idle_cpu)).collect();
    assert_eq!(found, [(50_000.0, 251_000.0, 1)]);
    assert_eq!((report.wasted_cpu_us, report.contradictions), (299_000.0, 1));
}

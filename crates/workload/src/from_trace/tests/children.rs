//! Children: when they begin, what they become, and how they end.

use super::*;

#[test]
fn children_start_when_they_are_forked() {
    let mut s = Script::default();
    s.name(1, "sh").name(2, "ls").wake(0, 0, 0, 1).switch(0, 0, 0, Runnable, 1);
    s.at(100, 0, Payload::Fork { parent: 1, child: 2 });
    s.at(110, 0, Payload::WakeupNew { tid: 2, prio: 120, target: 1 });
    s.switch(120, 1, 0, Runnable, 2).switch(150, 0, 1, Sleeping, 0);
    s.at(500, 1, Payload::Exit { tid: 2, prio: 120 }).wake(510, 1, 2, 1);
    s.switch(515, 0, 0, Runnable, 1).switch(520, 1, 2, Dead, 0).switch(600, 0, 1, Dead, 0);
    let w = s.model(&Options::default()).unwrap().workload;
    assert_eq!(told(&w, "sh-1"), ["1 x run 100, fork ls-2, run 50, wait, run 85"]);
    assert_eq!(told(&w, "ls-2"), ["1 x run 400, post wake-sh-1"]);
    // It wakes its parent as one that is about to sleep.
    assert!(w.tasks[1].phases[0].events.last().unwrap().sync);
    assert_eq!((w.tasks[0].instances, w.tasks[1].instances), (1, 0));
    // Without the parent the child starts at its time; without the child nobody forks it.
    let only = |n, run: Nanos| Options { tasks: Some(n), min_run: run * US, ..Options::default() };
    let w = s.model(&only(1, 0)).unwrap().workload;
    assert_eq!((w.tasks[0].name.as_str(), w.tasks[0].instances, w.tasks[0].delay), ("ls-2", 1, 100 * US));
    assert_eq!(told(&w, "ls-2"), ["1 x run 400"]);
    assert!(s.model(&only(9, 1_000)).unwrap_err().to_string().contains("the busiest ran 400 us"));
}

/// The child becomes another program, for which the stopper takes it to an idle CPU: that was the scheduler's decision,
/// and another scheduler makes its own.
#[test]
fn programs_begin_where_they_did_and_stoppers_are_left_out() {
    let mut s = Script::default();
    s.name(1, "sh").name(2, "ls").name(3, "migration/0").wake(0, 0, 0, 1).switch(0, 0, 0, Runnable, 1);
    s.at(100, 0, Payload::Fork { parent: 1, child: 2 });
    s.at(110, 0, Payload::WakeupNew { tid: 2, prio: 120, target: 0 }).switch(120, 0, 1, Sleeping, 2);
    s.wake(160, 0, 2, 3).switch(161, 0, 2, Runnable, 3);
    s.at(165, 0, Payload::Migrate { tid: 2, prio: 120, from: 0, to: 1 }).switch(170, 0, 3, Sleeping, 0);
    s.switch(175, 1, 0, Runnable, 2).at(200, 1, Payload::Exec { tid: 2, old: 2 });
    s.switch(500, 1, 2, Dead, 0).wake(700, 0, 0, 1).switch(700, 0, 0, Runnable, 1).switch(800, 0, 1, Dead, 0);
    let w = s.model(&Options::default()).unwrap().workload;
    assert_eq!(told(&w, "ls-2"), ["1 x run 66, x-exec, run 300"]);
    assert_eq!(w.tasks.iter().map(|task| task.name.as_str()).collect::<Vec<_>>(), ["sh-1", "ls-2"]);
}

//! Tasks that are killed while they run, wait and sleep.

use crate::support::{Accounts, MS, bare, exactly, forever, hog, once, run, simulate, sleep};
use schedlab_base::{Nanos, Payload};
use schedlab_sim::program::{Load, Op, Start, TaskSpec};

fn lives(lifetime: Nanos, spec: TaskSpec) -> TaskSpec {
    TaskSpec { lifetime: Some(lifetime), ..spec }
}

fn accounts(kernel: &str, load: &Load, duration: Nanos) -> Accounts {
    simulate(kernel, &bare("1"), load, &[], duration)
}

/// Two hogs share a CPU for 100 ms. Then the one that is killed is over, wherever it is.
#[test]
fn a_task_that_is_killed_computes_no_longer() {
    for kernel in ["linux-2.0", "linux-2.4", "linux-2.6.11", "linux-2.6.32", "linux-6.12", "bfs", "sd"] {
        let tasks = vec![lives(100 * MS, hog("killed", 0)), hog("other", 0)];
        let seen = accounts(kernel, &Load { tasks, ..Load::default() }, 1000 * MS);
        // Turns are as long as 200 ms.
        let killed = seen.named("killed").run;
        assert!((1..=100 * MS).contains(&killed), "{kernel}: {killed}");
        assert_eq!(killed + seen.named("other").run, 1000 * MS, "{kernel}");
    }
}

/// The first sleeps for longer than it lives, the second waits for a message that never comes, the third repeats a
/// sleep for ever. All end, and their last words are said.
#[test]
fn a_task_that_sleeps_is_killed_and_its_posts_come() {
    let words = |body: Vec<Op>| [body, vec![Op::SemPost(1)]].concat();
    let tasks = vec![
        lives(10 * MS, once("sleeper", words(vec![run(1), sleep(500), run(50)]))),
        lives(20 * MS, once("waiter", words(vec![Op::SemWait(0), run(50)]))),
        lives(30 * MS, once("looper", words(vec![Op::LoopStart { times: None }, sleep(7), Op::LoopEnd { start: 0 }]))),
        once("listener", vec![Op::SemWait(1), Op::SemWait(1), Op::SemWait(1), run(2)]),
    ];
    for start in [Start::Wake, Start::Fork, Start::Threads] {
        let load = Load { tasks: tasks.clone(), start, sems: vec!["never".into(), "words".into()], ..Load::default() };
        let seen = accounts("linux-6.12", &load, 1000 * MS);
        let killed = seen.events.iter().filter(|event| matches!(event.what, Payload::Killed { signal: 9, .. })).count();
        assert_eq!(killed, 3, "{start:?}");
        let ran = ["sleeper", "waiter", "looper", "listener"].map(|name| seen.named(name).run);
        assert_eq!(ran, [MS, 0, 0, 2 * MS], "{start:?}");
    }
}

/// What a killed task would have forked is born and killed at once: whoever waits for its posts does not wait in vain.
#[test]
fn children_of_a_killed_task_post_what_they_would_have() {
    let child = once("child", vec![run(5), Op::SemPost(0)]);
    let forks = vec![run(40), Op::Fork(0), run(40), Op::Fork(0)];
    let tasks =
        vec![lives(60 * MS, once("parent", forks)), once("waiter", vec![Op::SemWait(0), Op::SemWait(0), run(1)])];
    let load = Load { tasks, templates: vec![child], sems: vec!["done".into()], ..Load::default() };
    let seen = accounts("linux-6.12", &load, 1000 * MS);
    let ran = ["parent", "child-0", "child-1", "waiter"].map(|name| seen.named(name).run);
    assert!((50 * MS..=55 * MS).contains(&ran[0]), "{ran:?}");
    assert_eq!(ran[1..], [5 * MS, 0, MS]);
}

/// A timer that a killed task had set wakes nobody.
#[test]
fn a_lifetime_counts_from_the_start() {
    let late = TaskSpec { start: 300 * MS, ..forever("late", 0, vec![run(1), Op::Sleep(exactly(9 * MS))]) };
    let load = Load { tasks: vec![lives(100 * MS, late)], ..Load::default() };
    assert_eq!(accounts("linux-6.1", &load, 1000 * MS).named("late").run, 10 * MS);
}

//! Mutexes without priority inheritance: who is woken when, and what remains of those that are killed.

use crate::support::{Accounts, MS, bare, once, rt, run, simulate, sleep};
use schedlab_base::{Nanos, Payload};
use schedlab_sim::program::{Load, Op, Policy, TaskSpec};

fn fifo(priority: u8, name: &str, program: Vec<Op>) -> TaskSpec {
    rt(once(name, program), Policy::Fifo, priority)
}

/// These tasks on one CPU, with one mutex.
fn up(inherits: bool, tasks: Vec<TaskSpec>) -> Accounts {
    let load = Load { tasks, inherits, mutexes: vec!["m".into()], ..Load::default() };
    simulate("linux-6.12", &bare("1"), &load, &[], 1000 * MS)
}

fn section(inside: Op) -> Vec<Op> {
    vec![Op::Lock(0), inside, Op::Unlock(0)]
}

/// When a task is woken, in ms.
fn woken(seen: &Accounts, name: &str) -> Vec<Nanos> {
    let at = |name: &str| seen.names.iter().position(|other| other == name).unwrap() as i32 + 1;
    let is_it = |what: &Payload| matches!(what, Payload::Waking { tid, .. } if *tid == at(name));
    seen.events.iter().filter(|event| is_it(&event.what)).map(|event| event.time / MS).collect()
}

/// At 5 ms the first one wakes the second, and takes the mutex again before that one runs. As with glibc's, the word
/// then says that it is held, not that somebody waits: the third one sleeps until the second one, which tried in vain,
/// is done.
#[test]
fn who_takes_a_mutex_before_the_one_that_was_woken_wakes_nobody() {
    let first = [section(sleep(5)), vec![run(1)], section(run(1)), vec![run(1)]].concat();
    let tasks = vec![fifo(50, "a", first), fifo(40, "b", section(run(10))), fifo(40, "c", section(run(10)))];
    let seen = up(false, tasks);
    assert_eq!(woken(&seen, "b").last(), Some(&5));
    assert_eq!(woken(&seen, "c").last(), Some(&(5 + 3 + 10)));
    assert_eq!(seen.named("c").wait, 0);
}

/// One that holds it is killed, and one that waits: the others get it.
#[test]
fn a_killed_task_keeps_no_mutex() {
    for inherits in [false, true] {
        let lives = |ms, spec: TaskSpec| TaskSpec { lifetime: Some(ms * MS), ..spec };
        let tasks = vec![
            lives(20, fifo(50, "holds", section(sleep(500)))),
            lives(10, fifo(40, "waits", section(run(7)))),
            fifo(30, "other", section(run(3))),
        ];
        let seen = up(inherits, tasks);
        let ran = ["holds", "waits", "other"].map(|name| seen.named(name).run / MS);
        assert_eq!((ran, woken(&seen, "other").last()), ([0, 0, 3], Some(&20)), "{inherits}");
    }
}

/// One that was woken to take it is killed before it gets a CPU: the next one takes it.
#[test]
fn a_task_that_is_killed_when_it_was_woken_passes_the_mutex_on() {
    for inherits in [false, true] {
        let first = [section(sleep(5)), vec![run(45)]].concat();
        let second = TaskSpec { lifetime: Some(20 * MS), ..fifo(40, "b", section(run(7))) };
        let seen = up(inherits, vec![fifo(50, "a", first), second, fifo(30, "c", section(run(3)))]);
        assert_eq!((woken(&seen, "b").last(), woken(&seen, "c").last()), (Some(&5), Some(&50)), "{inherits}");
        assert_eq!(["b", "c"].map(|name| seen.named(name).run / MS), [0, 3], "{inherits}");
    }
}

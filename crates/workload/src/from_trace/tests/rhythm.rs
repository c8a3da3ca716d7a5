//! Tasks that timers wake.

use super::*;
use crate::TimerMode;

#[test]
fn a_beat_is_a_timer() {
    let mut s = Script::default();
    s.name(2, "beat");
    for round in 0..40 {
        let t = 1_000 + round * 10_000;
        s.wake(t, 0, 0, 2).switch(t, 0, 0, Runnable, 2).switch(t + 1_000 + round * 97 % 2_000, 0, 2, Sleeping, 0);
    }
    let w = s.model(&Options::default()).unwrap().workload;
    assert!(told(&w, "beat-2")[0].contains("timer 10000"), "{:?}", told(&w, "beat-2"));
    assert!(!told(&w, "beat-2").join(";").contains("sleep"));
}

/// A task that a timer wakes each 10 ms on average, late by up to 0.2 ms. Each eighth time it is still at work when the
/// timer expires, and goes on at once with what is next; the expiries after it are `shifted` by 3 ms.
fn overrun(shifted: u64) -> Vec<(String, TimerMode)> {
    let mut s = Script::default();
    s.name(2, "beat");
    let (mut due, mut works) = (1_000, 0);
    for round in 0..160u64 {
        let woken = due + round * 37 % 200;
        works = if round % 8 == 7 { 12_000 } else { 1_000 + round * 97 % 3_000 };
        s.wake(woken, 0, 0, 2).switch(woken, 0, 0, Runnable, 2).switch(woken + works, 0, 2, Sleeping, 0);
        due += if round % 8 == 7 { 20_000 + shifted } else { 10_000 };
    }
    s.wake(due, 0, 0, 2).switch(due, 0, 0, Runnable, 2).switch(due + works, 0, 2, Sleeping, 0);
    let w = s.model(&Options::default()).unwrap().workload;
    let task = w.tasks.iter().find(|task| task.name == "beat-2").expect("the task");
    let timer = |step: &Step| match &step.what {
        Action::Timer { period, mode, .. } => Some((format!("timer {}", period.mean / US), *mode)),
        Action::Sleep(_) => Some(("sleep".to_owned(), TimerMode::Relative)),
        _ => None,
    };
    task.phases
        .iter()
        .flat_map(|phase| (0..phase.loops.unwrap()).flat_map(|_| phase.events.iter()))
        .filter_map(timer)
        .collect()
}

#[test]
fn a_timer_that_keeps_its_grid_does_so_in_the_model() {
    let timers = overrun(0);
    assert!(timers.iter().all(|(_, mode)| *mode == TimerMode::Absolute), "{timers:?}");
    let of = |period: &str| timers.iter().filter(|(timer, _)| *timer == period).count();
    assert_eq!((timers.len(), of("timer 10000"), of("timer 20000")), (160, 140, 20));
}

/// What a model's timer would do after a miss is not what this one does.
#[test]
fn a_timer_that_is_late_after_a_miss_is_a_row_of_sleeps() {
    let timers = overrun(3_000);
    assert!(timers.iter().all(|(timer, _)| timer == "sleep"), "{timers:?}");
}

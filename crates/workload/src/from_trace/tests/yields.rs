//! Tasks that yield their CPU.

use super::*;

/// Two tasks with 50 turns each, of these lengths in us, beside each other on CPU 0. `before` tells what happens in the
/// middle of a turn that begins then, of a task and another one.
fn turns(length: u64, before: impl Fn(&mut Script, u64)) -> Script {
    let mut s = Script { system: System { hz: Some(250), ..System::default() }, ..Script::default() };
    s.name(1, "a").name(2, "b").name(3, "c").wake(0, 0, 0, 1).wake(0, 0, 0, 2).switch(10, 0, 0, Runnable, 1);
    for turn in 0..100 {
        let (t, task) = (10 + turn * length, 1 + turn as Tid % 2);
        before(&mut s, t + length / 2);
        s.switch(t + length, 0, task, Runnable, 3 - task);
    }
    s.switch(10 + 100 * length, 0, 1, Dead, 2).switch(11 + 100 * length, 0, 2, Dead, 0);
    s
}

fn yields(s: &Script) -> u64 {
    let w = s.model(&Options::default()).unwrap().workload;
    let of = |step: &Step| u64::from(step.what == Action::Yield);
    let phases = w.tasks.iter().flat_map(|task| &task.phases);
    phases.map(|p| p.loops.unwrap_or(0) * p.events.iter().map(of).sum::<u64>()).sum()
}

#[test]
fn a_task_that_leaves_its_cpu_between_ticks_for_no_other_yields() {
    assert_eq!(yields(&turns(150, |_, _| {})), 100);
    // Each turn may have ended at a tick.
    assert_eq!(yields(&turns(4_000, |_, _| {})), 0);
    // Each turn may have ended because another task had come.
    let comes = |s: &mut Script, at| {
        s.wake(at, 0, 0, 3);
    };
    assert_eq!(yields(&turns(150, comes)), 0);
}

#[test]
fn where_ticks_or_wake_ups_are_unknown_no_task_yields() {
    let mut s = turns(150, |_, _| {});
    s.system.hz = None;
    assert_eq!(yields(&s), 0);
    let mut s = turns(150, |_, _| {});
    s.events.retain(|event| matches!(event.what, Payload::Switch { .. }));
    assert_eq!(yields(&s), 0);
}

#[test]
fn who_makes_way_for_a_higher_class_does_not_yield() {
    let mut s = turns(150, |_, _| {});
    for Event { what, .. } in &mut s.events {
        if let Payload::Switch { prev, prev_prio, next, next_prio, .. } = what {
            let prio = |tid: Tid| if tid == 2 { 50 } else { 120 };
            (*prev_prio, *next_prio) = (prio(*prev), prio(*next));
        }
    }
    // The real-time task does.
    assert_eq!(yields(&s), 50);
}

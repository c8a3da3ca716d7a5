//! How a model ends: with its work, with the trace, or with the recorded command.

use super::*;
use schedlab_base::Target;

/// Until 1 s, a hog (1) that nothing stops, tasks that sleep (2) or wait (4), one that gets a CPU once and waits for 95
/// ms when the trace ends (5), and a command (3) that ends at 900 ms, if it does.
fn hog_beside_others(command_ends: bool) -> Script {
    let mut s = Script::default();
    for (tid, comm) in [(1, "hog"), (2, "sleeper"), (3, "command"), (4, "late"), (5, "starved")] {
        s.name(tid, comm);
    }
    s.switch(0, 0, 0, Runnable, 1).switch(0, 1, 0, Runnable, 3);
    for ms in [100, 300, 500] {
        s.wake(ms * 1000, 0, 1, 2).switch(ms * 1000 + 10, 0, 1, Runnable, 2);
        s.switch(ms * 1000 + 20_000, 0, 2, Sleeping, 1);
    }
    s.switch(900_000, 1, 3, if command_ends { Dead } else { Sleeping }, 0);
    s.wake(900_000, 0, 1, 5).switch(900_000, 0, 1, Runnable, 5).switch(905_000, 0, 5, Runnable, 1);
    // It is at work for the last 50 ms only.
    s.wake(950_000, 1, 0, 4).switch(950_000, 1, 0, Runnable, 4);
    s
}

fn modelled(script: &Script, target: Option<Target>) -> Model {
    let span = Some((0, 1_000_000 * US));
    let mut builder = ModelBuilder::new(&Meta { span, target, ..Meta::default() });
    script.names.iter().for_each(|name| builder.name(name));
    builder.events(&script.events);
    builder.lasts(1_000_000 * US);
    builder.finish(&Options::default()).unwrap()
}

#[test]
fn work_that_the_end_of_the_trace_cuts_goes_on() {
    let Model { workload, report } = modelled(&hog_beside_others(true), None);
    assert_eq!((workload.global.duration, &workload.global.until), (Some(1_000_000 * US), &None));
    assert_eq!(told(&workload, "hog-1").last().unwrap(), "on x run 1000000");
    for task in &workload.tasks {
        let endless = task.phases.iter().any(|phase| phase.loops.is_none());
        assert_eq!(endless, task.name == "hog-1", "{}", task.name);
    }
    assert_eq!((report.going_on, report.demand_ns), (1, demand(&workload).values().sum()));
    let remark = "1 task was in the middle of long work when the trace ended, and goes on with it: the run ends after \
                  1.000 s, as the trace does";
    assert_eq!(report.remarks, [remark]);
}

#[test]
fn a_switch_that_was_not_seen_does_not_end_long_work() {
    let mut s = hog_beside_others(true);
    // Something that the recorder does not see took the CPU from the hog.
    s.switch(970_000, 0, 77, Sleeping, 1);
    let Model { workload, report } = modelled(&s, None);
    assert_eq!((report.going_on, workload.global.duration), (1, Some(1_000_000 * US)));
    assert!(report.remarks[0].starts_with("1 switch contradicts"), "{:?}", report.remarks);
}

/// Some recorders do not see some tasks leave their CPUs: such a one may have slept again at once.
#[test]
fn a_task_that_is_not_seen_to_leave_has_no_more_to_do() {
    let mut s = Script::default();
    s.name(1, "hog").name(2, "unseen").name(3, "other").switch(0, 0, 0, Runnable, 1).switch(0, 1, 0, Runnable, 2);
    s.switch(10_000, 1, 0, Runnable, 3).switch(11_000, 1, 3, Sleeping, 0).wake(500_000, 1, 0, 2);
    let Model { report, .. } = modelled(&s, None);
    assert_eq!(report.going_on, 1, "the hog");
}

/// It may have been done where nobody saw it, and the task may sleep again.
#[test]
fn a_task_whose_wake_up_was_asked_for_and_is_not_done_has_no_more_to_do() {
    let mut s = Script::default();
    s.name(1, "hog").name(2, "sleeper").switch(0, 0, 0, Runnable, 1).wake(100_000, 1, 0, 2);
    s.switch(100_010, 1, 0, Runnable, 2).switch(101_000, 1, 2, Sleeping, 0);
    let waking = |target, context| Payload::Waking { tid: 2, prio: 120, target, waker: 1, context };
    s.at(500_000, 0, waking(1, Context::HardIrq));
    assert_eq!(modelled(&s, None).report.going_on, 1, "the hog");
    s.at(500_001, 1, Payload::Wakeup { tid: 2, prio: 120, target: 1 });
    assert_eq!(modelled(&s, None).report.going_on, 2);
}

#[test]
fn beside_a_command_that_ended_work_goes_on_until_it_has_ended() {
    let target = |tid| Target { command: Some("make".to_owned()), processes: vec![tid], threads: vec![tid] };
    let Model { workload, .. } = modelled(&hog_beside_others(true), Some(target(3)));
    assert_eq!(workload.global.until.as_deref(), Some("command-3"));
    assert!(workload.global.duration.unwrap() > 10_000_000 * US);
    let Model { workload, .. } = modelled(&hog_beside_others(false), Some(target(3)));
    assert_eq!((workload.global.duration, workload.global.until), (Some(1_000_000 * US), None));
}

/// A command is forked by its recorder, or by a shell.
#[test]
fn the_run_waits_for_a_command_that_was_forked() {
    let mut s = Script::default();
    s.name(1, "hog").name(2, "recorder").switch(0, 0, 0, Runnable, 1).switch(0, 1, 0, Runnable, 2);
    s.at(5_000, 1, Payload::Fork { parent: 2, child: 9 }).name(9, "command").wake(5_000, 1, 2, 9);
    s.switch(6_000, 1, 2, Sleeping, 9).switch(990_000, 1, 9, Dead, 0);
    let target = Target { command: Some("make".to_owned()), processes: vec![9], threads: vec![9] };
    let Model { workload, .. } = modelled(&s, Some(target));
    let until = workload.global.until.as_deref().expect("the hog never ends");
    let command = workload.tasks.iter().find(|task| task.name == until).unwrap();
    assert!(command.instances == 0 && workload.tasks.iter().any(|task| task.forks(until)));
}

#[test]
fn work_that_ended_is_what_it_was() {
    let mut s = hog_beside_others(true);
    s.switch(999_000, 0, 1, Dead, 0);
    let Model { workload, report } = modelled(&s, None);
    assert_eq!((workload.global.duration, workload.global.until, report.going_on), (None, None, 0));
    assert!(workload.tasks.iter().all(|task| task.phases.iter().all(|phase| phase.loops.is_some())));
}

#[test]
fn rounds_go_on_beside_work_that_does() {
    let mut s = Script::default();
    s.name(1, "hog").name(2, "player").name(3, "early").switch(0, 0, 0, Runnable, 1);
    for round in 0..25 {
        let t = round * 40_000;
        s.wake(t, 1, 0, 2).switch(t, 1, 0, Runnable, 2).switch(t + 10_000 + round * 100, 1, 2, Sleeping, 0);
        if round < 12 {
            s.wake(t + 20_000, 1, 0, 3).switch(t + 20_000, 1, 0, Runnable, 3).switch(t + 21_000, 1, 3, Sleeping, 0);
        }
    }
    let Model { workload, report } = modelled(&s, None);
    // The player has slept for 27.6 ms of about 29, and the other for half of the trace.
    let endless = |name: &str| told(&workload, name).into_iter().filter(|phase| phase.starts_with("on x")).count();
    assert_eq!(["hog-1", "player-2", "early-3"].map(endless), [1, 1, 0]);
    let rounds = told(&workload, "player-2").pop().unwrap();
    assert!(rounds.ends_with("timer 40000, run 12400"), "{rounds}");
    assert_eq!((report.going_on, report.going_round), (1, 1));
    assert!(
        report.remarks[0].ends_with("as the trace does; so does 1 that works and sleeps by turns"),
        "{:?}",
        report.remarks
    );
    // Without the hog the player does what it did.
    s.switch(999_000, 0, 1, Dead, 0);
    assert!(modelled(&s, None).workload.tasks.iter().all(|task| task.phases.iter().all(|p| p.loops.is_some())));
}

#[test]
fn a_task_that_waits_for_a_cpu_when_the_trace_ends_has_more_to_do() {
    // Awake since the time, it runs for `ran` at first, and then waits beside the hog.
    let starved = |woken: Nanos, ran: Nanos| {
        let mut s = Script::default();
        s.name(1, "hog").name(2, "starved").switch(0, 0, 0, Runnable, 1).wake(woken, 1, 0, 2);
        if ran > 0 {
            s.switch(woken, 0, 1, Runnable, 2).switch(woken + ran, 0, 2, Runnable, 1);
        }
        modelled(&s, None)
    };
    for (woken, ran) in [(500_000, 5_000), (890_000, 5_000), (500_000, 0), (899_000, 0)] {
        let Model { workload, report } = starved(woken, ran);
        assert_eq!(report.going_on, 2, "{woken} {ran}");
        assert_eq!(told(&workload, "starved-2").last().unwrap(), "on x run 1000000", "{woken} {ran}");
    }
    for (woken, ran) in [(896_000, 5_000), (901_000, 5_000)] {
        let Model { workload, report } = starved(woken, ran);
        assert_eq!((report.going_on, told(&workload, "starved-2")), (1, vec!["1 x run 5000".to_owned()]));
    }
    // One that has just come and did not run is not in the model.
    assert_eq!(starved(950_000, 0).workload.tasks.len(), 1);
}

#[test]
fn a_task_that_hardly_ran_and_runs_when_the_trace_ends_has_more_to_do() {
    let mut s = Script::default();
    s.name(1, "hog").name(2, "idle").switch(0, 0, 0, Runnable, 1).wake(100_000, 1, 0, 2);
    s.switch(999_000, 0, 1, Runnable, 2);
    let Model { workload, report } = modelled(&s, None);
    assert_eq!((report.going_on, told(&workload, "idle-2").len()), (2, 2));
}

#[test]
fn of_tasks_that_did_not_run_those_with_enough_cpu_time_are_none() {
    let mut s = Script::default();
    s.name(1, "hog").name(2, "starved").switch(0, 0, 0, Runnable, 1).wake(100_000, 1, 0, 2);
    s.switch(999_000, 0, 1, Runnable, 1);
    let least = Options { min_run: 1, ..Options::default() };
    assert_eq!(s.model(&least).unwrap().workload.tasks.len(), 1);
    assert_eq!(s.model(&Options::default()).unwrap().workload.tasks.len(), 2);
}

/// It was preempted after its exit, and lost events have its last time on a CPU.
#[test]
fn a_task_that_has_exited_does_not_go_on() {
    let mut s = hog_beside_others(true);
    s.name(6, "gone").wake(700_000, 1, 0, 6).switch(700_000, 1, 3, Runnable, 6);
    s.at(800_000, 1, Payload::Exit { tid: 6, prio: 120 }).switch(800_010, 1, 6, Runnable, 3);
    s.events.sort_by_key(|event| event.time);
    let Model { workload, .. } = modelled(&s, None);
    assert_eq!(told(&workload, "gone-6"), ["1 x run 100010"]);
}

//! Tasks that were ended, by a signal or because their time was over.

use super::*;
use crate::TaskDef;

const SIGKILL: u16 = 9;
const SIGPIPE: u16 = 13;

fn task<'a>(model: &'a Model, name: &str) -> &'a TaskDef {
    model.workload.tasks.iter().find(|task| task.name == name).unwrap()
}

fn killed(script: &mut Script, us: Nanos, cpu: CpuId, tid: Tid, signal: u16) {
    script.at(us, cpu, Payload::Killed { tid, signal });
}

/// A hog (2) shares a CPU with another one (3) until at 200 ms a signal ends it.
fn hogs(signal: u16) -> Script {
    let mut s = Script::default();
    s.name(2, "hog").name(3, "other").switch(0, 0, 0, Runnable, 2);
    for ms in (10..200).step_by(20) {
        s.switch(ms * 1000, 0, 2, Runnable, 3).switch((ms + 10) * 1000, 0, 3, Runnable, 2);
    }
    killed(&mut s, 205_000, 0, 2, signal);
    s.switch(205_100, 0, 2, Dead, 3).switch(300_000, 0, 3, Dead, 0);
    s
}

#[test]
fn work_that_a_signal_cut_goes_on_for_as_long() {
    let model = hogs(SIGKILL).model(&Options::default()).unwrap();
    let hog = task(&model, "hog-2");
    assert_eq!(hog.lifetime, Some(205_000 * US));
    assert_eq!(hog.phases.last().unwrap().loops, None, "it computes until then");
    assert_eq!(task(&model, "other-3").lifetime, None);
    let killed = "1 task was ended by a signal: in the model it is killed as long after its beginning";
    assert_eq!((model.report.killed, model.report.remarks.as_slice()), (1, [killed.to_owned()].as_slice()));
}

/// A process whose pipe nobody reads any more, or that failed, did what there was.
#[test]
fn a_task_that_ends_itself_did_what_there_was() {
    for signal in [SIGPIPE, 11] {
        let model = hogs(signal).model(&Options::default()).unwrap();
        let hog = task(&model, "hog-2");
        assert!(hog.lifetime.is_none() && hog.phases.iter().all(|phase| phase.loops.is_some()));
    }
}

/// A task (2) that works for 1 ms and sleeps for 9 ms, by turns, until a signal ends its sleep. Its parent (1) waits.
#[test]
fn rounds_that_a_signal_cut_go_on() {
    let mut s = Script::default();
    s.name(1, "parent").name(2, "child").switch(0, 0, 0, Runnable, 1).at(100, 0, Payload::Fork { parent: 1, child: 2 });
    s.switch(1_000, 0, 1, Sleeping, 2);
    for ms in (2..300).step_by(10) {
        s.switch(ms * 1000, 0, 2, Sleeping, 0).wake((ms + 9) * 1000, 0, 0, 2).switch(
            (ms + 9) * 1000,
            0,
            0,
            Runnable,
            2,
        );
    }
    s.switch(302_000, 0, 2, Sleeping, 0).wake(304_000, 1, 0, 2).switch(304_005, 0, 0, Runnable, 2);
    killed(&mut s, 304_010, 0, 2, SIGKILL);
    s.wake(304_100, 0, 2, 1).switch(304_200, 0, 2, Dead, 1).switch(305_000, 0, 1, Dead, 0);
    let model = s.model(&Options::default()).unwrap();
    let child = task(&model, "child-2");
    assert_eq!(child.lifetime, Some(303_910 * US), "counted from its fork");
    let [.., round, last] = child.phases.as_slice() else { panic!("{:?}", child.phases) };
    assert!(round.loops.is_none() && !round.events.iter().any(|step| matches!(step.what, Action::SemWait(_))));
    assert!(matches!(&last.events.last().unwrap().what, Action::SemPost(name) if name == "wake-parent-1"), "{last:?}");
}

/// A parent (1) forks a child (2), which waits for its CPU, and kills it. What the child does then is its end.
#[test]
fn a_child_that_did_nothing_before_it_was_killed_did_what_there_was() {
    let mut s = Script::default();
    s.name(1, "parent").name(2, "child").switch(0, 0, 0, Runnable, 1).at(100, 0, Payload::Fork { parent: 1, child: 2 });
    s.switch(600, 0, 1, Sleeping, 2);
    killed(&mut s, 605, 0, 2, SIGKILL);
    s.wake(780, 0, 2, 1).switch(790, 0, 2, Dead, 1).switch(900, 0, 1, Dead, 0);
    let model = s.model(&Options::default()).unwrap();
    let child = task(&model, "child-2");
    assert_eq!((child.lifetime, model.report.killed), (None, 0));
    assert!(matches!(child.phases[0].events[0].what, Action::Run(length) if length.mean == 190_000), "{child:?}");
}

/// A hog (2) that a signal ends when it is 50 ms old, after 2 s, would have gone on for longer.
#[test]
fn a_short_life_of_work_that_a_signal_cut_goes_on_too() {
    let mut s = Script::default();
    s.name(1, "parent").name(2, "hog").switch(0, 0, 0, Runnable, 1);
    s.at(1_900_000, 0, Payload::Fork { parent: 1, child: 2 }).switch(1_900_500, 0, 1, Sleeping, 2);
    killed(s.wake(1_949_900, 1, 0, 1), 1_950_000, 0, 2, SIGKILL);
    s.switch(1_950_200, 0, 2, Dead, 1).switch(2_000_000, 0, 1, Dead, 0);
    let model = s.model(&Options::default()).unwrap();
    let hog = task(&model, "hog-2");
    assert_eq!(hog.lifetime, Some(50_000 * US));
    assert_eq!(hog.phases.last().unwrap().loops, None, "it computes until then");
}

/// When the process of 2 and 3 ends by itself, a signal ends its other thread.
#[test]
fn threads_of_a_process_that_ends_did_what_there_was() {
    for by_itself in [true, false] {
        let mut s = hogs(SIGKILL);
        let name = |tid, comm: &str| NameRecord { time: 0, tid, tgid: Some(3), comm: comm.into(), cgroup: None };
        s.names = vec![name(2, "thread"), name(3, "process")];
        if !by_itself {
            let at = s.events.len() - 1;
            let event = Event { time: 299_000 * US, cpu: 0, what: Payload::Killed { tid: 3, signal: SIGKILL } };
            s.events.insert(at, event);
        }
        let model = s.model(&Options::default()).unwrap();
        assert_eq!(task(&model, "thread-2").lifetime.is_none(), by_itself);
    }
}

/// Threads (2, 3) of a process compute until its first one (1) has slept for 200 ms and tells them to stop; so does its
/// child (4), or they end at other times.
fn benchmark(late: Nanos) -> Script {
    let name = |(tid, tgid)| NameRecord { time: 0, tid, tgid: Some(tgid), comm: "b".into(), cgroup: None };
    let names = [(1, 1), (2, 1), (3, 1), (4, 4)].map(name).to_vec();
    let mut s = Script { names, ..Script::default() };
    s.switch(0, 0, 0, Runnable, 1);
    for child in 2..5 {
        s.at(100, 0, Payload::Fork { parent: 1, child });
    }
    s.switch(200, 0, 1, Sleeping, 2).switch(200, 1, 0, Runnable, 3);
    for ms in (10..200).step_by(20) {
        s.switch(ms * 1000, 0, 2, Runnable, 4).switch((ms + 10) * 1000, 0, 4, Runnable, 2);
    }
    s.wake(200_200, 0, 0, 1).switch(200_210, 0, 2, Runnable, 1).switch(200_300, 0, 1, Sleeping, 2);
    let at = 200_000 + late;
    for (us, cpu, tid, next) in [(400, 0, 2, 4), (450, 1, 3, 0), (500, 0, 4, 0)] {
        s.at(at + us, cpu, Payload::Exit { tid, prio: 120 }).switch(at + us + 10, cpu, tid, Dead, next);
    }
    s
}

#[test]
fn work_that_stops_when_a_sleep_is_over_goes_on_for_as_long() {
    let model = benchmark(0).model(&Options::default()).unwrap();
    let lifetimes = ["b-2", "b-3", "b-4"].map(|name| task(&model, name).lifetime);
    assert_eq!(lifetimes, [200_300, 200_350, 200_400].map(|us| Some(us * US)));
    assert_eq!((task(&model, "b-1").lifetime, model.report.stopped, model.report.killed), (None, 3, 0));
    let model = benchmark(30_000).model(&Options::default()).unwrap();
    assert_eq!(model.report.stopped, 0, "that is too late to be the reason");
}

//! Traces with a known program give that program back; random traces keep each task's CPU time.

mod children;
mod consumers;
mod endings;
mod ends;
mod habits;
mod joins;
mod locks;
mod messages;
mod outside;
mod policies;
mod rhythm;
mod stages;
mod stuck;
mod teams;
mod yields;

use super::*;
use crate::{Action, Step};
use proptest::prelude::*;
use schedlab_base::{Context, CpuId, Payload, Rng, System, TaskState};
use std::collections::BTreeMap;
use stuck::stuck;

const US: Nanos = 1_000;

/// Writes a trace by hand.
#[derive(Default)]
struct Script {
    events: Vec<Event>,
    names: Vec<NameRecord>,
    system: System,
}

impl Script {
    fn at(&mut self, us: Nanos, cpu: CpuId, what: Payload) -> &mut Self {
        self.events.push(Event { time: us * US, cpu, what });
        self
    }

    fn switch(&mut self, us: Nanos, cpu: CpuId, prev: Tid, prev_state: TaskState, next: Tid) -> &mut Self {
        self.at(us, cpu, Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 })
    }

    fn wake(&mut self, us: Nanos, cpu: CpuId, waker: Tid, tid: Tid) -> &mut Self {
        self.wake_in(Context::Unknown, us, cpu, waker, tid)
    }

    fn wake_in(&mut self, context: Context, us: Nanos, cpu: CpuId, waker: Tid, tid: Tid) -> &mut Self {
        self.at(us, cpu, Payload::Waking { tid, prio: 120, target: cpu, waker, context });
        self.at(us, cpu, Payload::Wakeup { tid, prio: 120, target: cpu })
    }

    fn name(&mut self, tid: Tid, comm: &str) -> &mut Self {
        self.names.push(NameRecord { time: 0, tid, tgid: None, comm: comm.into(), cgroup: None });
        self
    }

    fn model(&self, options: &Options) -> Result<Model> {
        let mut builder =
            ModelBuilder::new(&Meta { span: Some((0, 0)), system: Some(self.system.clone()), ..Meta::default() });
        self.names.iter().for_each(|n| builder.name(n));
        builder.events(&self.events);
        builder.finish(options)
    }
}

use TaskState::{Dead, Runnable, Sleeping};

/// The phases as `loop x action action ...`.
fn told(workload: &Workload, task: &str) -> Vec<String> {
    let task = workload.tasks.iter().find(|t| t.name == task).expect("the task is in the model");
    let word = |s: &Step| match &s.what {
        Action::Run(a) => format!("run {}", a.mean / US),
        Action::Sleep(a) => format!("sleep {}", a.mean / US),
        Action::Timer { period, .. } => format!("timer {}", period.mean / US),
        Action::Timeout(length) => format!("timeout {}", length / US),
        Action::SemWait(_) => "wait".to_owned(),
        Action::Ask(name) => format!("ask {name}"),
        Action::Answer(name) => format!("answer {name}"),
        Action::Await => "await".to_owned(),
        Action::SemPost(name) => format!("post {name}"),
        Action::Fork(name) => format!("fork {name}"),
        Action::Jobs(name) => format!("jobs {name}"),
        Action::Exec => "x-exec".to_owned(),
        other => panic!("{other:?}"),
    };
    let phase = |p: &crate::Phase| {
        format!(
            "{} x {}",
            p.loops.map_or("on".to_owned(), |n| n.to_string()),
            p.events.iter().map(word).collect::<Vec<_>>().join(", ")
        )
    };
    task.phases.iter().map(phase).collect()
}

/// The CPU time that the workload demands of each task.
fn demand(workload: &Workload) -> BTreeMap<String, Nanos> {
    let run = |s: &Step| if let Action::Run(a) = s.what { a.mean } else { 0 };
    let phase = |p: &crate::Phase| p.loops.unwrap_or(0) * p.events.iter().map(run).sum::<Nanos>();
    workload.tasks.iter().map(|t| (t.name.clone(), t.phases.iter().map(phase).sum())).collect()
}

#[test]
fn two_tasks_that_wake_each_other_stay_tied() {
    let mut s = Script::default();
    s.name(1, "ping").name(2, "pong").wake(0, 0, 0, 1).switch(0, 0, 0, Runnable, 1);
    for round in 0..50 {
        let t = round * 200;
        s.wake(t + 60, 0, 1, 2).switch(t + 62, 1, 0, Runnable, 2).switch(t + 100, 0, 1, Sleeping, 0);
        s.wake(t + 180, 1, 2, 1).switch(t + 190, 1, 2, Sleeping, 0).switch(t + 200, 0, 0, Runnable, 1);
    }
    s.switch(10_005, 0, 1, Dead, 0);
    let model = s.model(&Options::default()).unwrap();
    let w = &model.workload;
    // What slept from the start waits from the start, where it was, for the task that woke it.
    let ping = "50 x run 60, post wake-pong-2, run 40, wait; 1 x run 5";
    assert_eq!(told(w, "ping-1").join("; "), ping);
    let pong = "1 x wait; 49 x run 118, post wake-ping-1, run 10, wait; 1 x run 118, post wake-ping-1, run 10";
    assert_eq!(told(w, "pong-2").join("; "), pong);
    assert_eq!((w.tasks[1].delay, w.tasks[1].cpu), (0, Some(0)));
    assert_eq!(demand(w), BTreeMap::from([("ping-1".into(), 5_005 * US), ("pong-2".into(), 50 * 128 * US)]));
    assert_eq!(stuck(w), [""; 0]);
}

/// An idle CPU does the wake-ups that others ask it for, some time later: the post is where the waker has got by then.
#[test]
fn a_wake_up_that_is_on_its_way_is_a_post_when_it_is_done() {
    let mut s = Script::default();
    s.name(1, "waker").name(2, "sleeper").switch(0, 0, 0, Runnable, 1).switch(0, 1, 0, Runnable, 2);
    s.switch(5, 1, 2, Sleeping, 0);
    // It takes 30 us; the waker goes on for 70 us, or only for 10 us, and sleeps then.
    for (round, more) in [(0, 70), (1, 10)] {
        let at = 1_000 * round + 100;
        s.at(at, 0, Payload::Waking { tid: 2, prio: 120, target: 1, waker: 1, context: Context::Task });
        let mut then = [(at + 30, false), (at + more, true)];
        then.sort_unstable();
        for (time, sleeps) in then {
            if sleeps {
                s.switch(time, 0, 1, Sleeping, 0);
            } else {
                s.at(time, 1, Payload::Wakeup { tid: 2, prio: 120, target: 1 });
                s.switch(time + 1, 1, 0, Runnable, 2);
            }
        }
        s.switch(at + 100, 1, 2, Sleeping, 0);
        s.wake_in(Context::HardIrq, at + 900, 0, 0, 1).switch(at + 900, 0, 0, Runnable, 1);
    }
    s.switch(2_200, 0, 1, Sleeping, 0);
    let workload = s.model(&Options::default()).unwrap().workload;
    let expected =
        "1 x run 130, post wake-sleeper-2, run 40, sleep 830, run 110, post wake-sleeper-2, sleep 890, run 200";
    assert_eq!(told(&workload, "waker-1"), [expected]);
    assert_eq!(told(&workload, "sleeper-2"), ["1 x run 5, wait, run 69, wait, run 69"]);
}

#[test]
fn a_timer_that_interrupts_a_hog_is_a_sleep() {
    let mut s = Script::default();
    s.name(1, "hog").name(2, "nap");
    for round in 0..50 {
        let t = 1_000 + round * 1_100;
        s.wake(t, 0, 1, 2).switch(t, 0, 1, Runnable, 2).switch(t + 100, 0, 2, Sleeping, 1);
    }
    s.switch(60_000, 0, 1, Dead, 0);
    let w = s.model(&Options::default()).unwrap().workload;
    assert_eq!(told(&w, "hog-1"), ["1 x run 55000"]);
    assert_eq!(told(&w, "nap-2"), ["49 x run 100, sleep 1000", "1 x run 100"]);
}

#[test]
fn the_context_of_a_waking_decides_whatever_the_pattern() {
    let model = |context: Context, apart: &dyn Fn(u64) -> u64| {
        let (mut s, mut t) = (Script::default(), 1_000);
        s.name(1, "hog").name(2, "nap");
        for round in 0..50 {
            s.wake_in(context, t, 0, 1, 2).switch(t, 0, 1, Runnable, 2).switch(t + 100, 0, 2, Sleeping, 1);
            t += apart(round);
        }
        s.switch(t, 0, 1, Dead, 0);
        s.model(&Options::default()).unwrap().workload
    };
    let (steady, irregular) = (|_| 1_100, |round| 300 + round * 977 % 3_000);
    let posts = |workload: &Workload| told(workload, "hog-1").join(";").contains("post wake-nap-2");
    assert!(posts(&model(Context::Task, &steady)) && !posts(&model(Context::Unknown, &steady)));
    assert!(!posts(&model(Context::HardIrq, &irregular)) && posts(&model(Context::Unknown, &irregular)));
    assert!(!posts(&model(Context::SoftIrq, &steady)));
}

#[test]
fn what_soft_interrupts_wake_at_ticks_sleeps_for_ticks() {
    // Soft interrupts wake it 20 to 300 us after the second and the third tick in turn, beside a hog.
    let model = |hz: Option<u32>, context: Context, drift: Nanos| {
        let mut s = Script { system: System { hz, ..System::default() }, ..Script::default() };
        s.name(1, "hog").name(2, "rcu");
        let mut t = 4_000;
        for round in 0..40 {
            let at = t + 20 + round * 77 % 280 + round * drift;
            s.wake_in(context, at, 0, 1, 2).switch(at + 5, 0, 1, Runnable, 2);
            s.switch(at + 400 + round * 131 % 900, 0, 2, Sleeping, 1);
            t += 8_000 + round % 2 * 4_000;
        }
        s.switch(t, 0, 1, Dead, 0);
        told(&s.model(&Options::default()).unwrap().workload, "rcu-2").join(";")
    };
    let at_ticks = model(Some(250), Context::SoftIrq, 0);
    assert!(at_ticks.contains("timeout 8000") && at_ticks.contains("timeout 12000"), "{at_ticks}");
    assert!(!at_ticks.contains("sleep"), "{at_ticks}");
    for other in [
        model(None, Context::SoftIrq, 0),
        model(Some(250), Context::HardIrq, 0),
        model(Some(250), Context::SoftIrq, 211),
    ] {
        assert!(!other.contains("timeout") && other.contains("sleep"), "{other}");
    }
}

#[test]
fn after_lost_events_nobody_waits_for_a_post() {
    let mut s = Script::default();
    s.name(1, "a").name(2, "b").wake(0, 0, 0, 1).switch(0, 0, 0, Runnable, 1);
    s.wake(10, 0, 1, 2).switch(20, 1, 0, Runnable, 2).switch(30, 1, 2, Sleeping, 0);
    // a's switches and its wake-up of b are lost: b simply runs again.
    s.at(500, 0, Payload::Lost { count: 7 }).switch(700, 1, 0, Runnable, 2).switch(800, 1, 2, Sleeping, 0);
    s.switch(900, 0, 3, Sleeping, 1).switch(1_000, 0, 1, Dead, 0);
    let model = s.model(&Options::default()).unwrap();
    assert_eq!(told(&model.workload, "b-2"), ["1 x run 10, sleep 670, run 100"]);
    assert_eq!(told(&model.workload, "a-1"), ["1 x run 10, sleep 890, run 100"]);
    // Nobody saw when 3 came onto the CPU: its time is not known, and so not modelled.
    assert_eq!(model.workload.tasks.len(), 2);
    assert!(model.report.remarks[0].contains("lost in 1 place:"), "{:?}", model.report.remarks);
}

#[test]
fn priorities_and_bound_threads_are_kept() {
    let mut s = Script::default();
    s.name(1, "nice").name(2, "rt").name(3, "ksoftirqd/1").name(4, "ksoftirqd/7");
    let prio = |next, next_prio| Payload::Switch { prev: 0, prev_prio: 120, prev_state: Runnable, next, next_prio };
    for (cpu, tid, p) in [(0, 1, 130), (1, 2, 49), (1, 3, 120), (2, 4, 120)] {
        let t = 100 * tid as Nanos;
        s.at(t, cpu, prio(tid, p));
        let away = Payload::Switch { prev: tid, prev_prio: p, prev_state: Sleeping, next: 0, next_prio: 120 };
        s.at(t + 50, cpu, away);
    }
    let w = s.model(&Options::default()).unwrap().workload;
    let props: Vec<_> = w.tasks.iter().map(|t| (t.props.policy, t.props.priority, t.props.cpus.clone())).collect();
    assert_eq!(props[0], (None, Some(10), None));
    assert_eq!(props[1], (Some(Policy::Fifo), Some(50), None));
    assert_eq!(props[2], (None, None, Some(vec![1])));
    // Its name says CPU 7, but it ran on 2: the name is not to be trusted.
    assert_eq!(props[3], (None, None, None));
}

#[test]
fn a_wake_up_that_races_with_the_switch_counts_once() {
    let mut s = Script::default();
    s.name(1, "a").name(2, "b").wake(0, 0, 0, 1).switch(0, 0, 0, Runnable, 1);
    s.wake(1, 1, 0, 2).switch(1, 1, 0, Runnable, 2);
    // b is on its way to sleep: waking is reported before its switch, the wake-up after it.
    s.at(50, 0, Payload::Waking { tid: 2, prio: 120, target: 1, waker: 1, context: Context::Unknown });
    s.switch(51, 1, 2, Sleeping, 0).at(53, 0, Payload::Wakeup { tid: 2, prio: 120, target: 1 });
    s.switch(55, 1, 0, Runnable, 2);
    // b is woken while it still runs: no sleep comes of it.
    s.wake(70, 0, 1, 2).switch(80, 1, 2, Runnable, 0).switch(90, 0, 1, Dead, 0);
    let w = s.model(&Options::default()).unwrap().workload;
    assert_eq!(told(&w, "b-2"), ["1 x run 50, wait, run 25"]);
    assert_eq!(told(&w, "a-1"), ["1 x run 53, post wake-b-2, run 37"]);
}

#[test]
fn who_runs_at_the_start_runs_from_the_first_event_on() {
    let mut script = Script::default();
    script.switch(5_000, 0, 8, Sleeping, 0).switch(5_100, 1, 7, Sleeping, 0).switch(5_200, 0, 0, Runnable, 0);
    let mut builder = ModelBuilder::new(&Meta { running: vec![(0, 0), (1, 7)], ..Meta::default() });
    builder.events(&script.events);
    let w = builder.finish(&Options::default()).unwrap().workload;
    assert_eq!((w.tasks.len(), told(&w, "task-7")), (1, vec!["1 x run 100".to_owned()]));
}

#[test]
fn a_switch_that_was_not_seen_is_put_as_early_as_can_be() {
    let mut s = Script::default();
    // 2 waits from 200 on; that it replaced 1 was not seen.
    s.switch(100, 0, 0, Runnable, 1).wake(200, 0, 1, 2).switch(300, 0, 2, Sleeping, 1).switch(400, 0, 1, Sleeping, 0);
    let model = s.model(&Options::default()).unwrap();
    assert_eq!(told(&model.workload, "task-2"), ["1 x wait, run 100"]);
    assert_eq!(told(&model.workload, "task-1"), ["1 x run 100, post wake-task-2, sleep 100, run 100"]);
    assert!(model.report.remarks[0].starts_with("1 switch contradicts"), "{:?}", model.report.remarks);
}

#[test]
fn what_tasks_are_to_the_scheduler_goes_along_with_its_changes() {
    use schedlab_base::{CpuPlace, GroupProperties, Policy as Known, TaskProperties};
    let cpus = (0..2).map(|cpu| CpuPlace { cpu, ..CpuPlace::default() }).collect();
    let mut builder = ModelBuilder::new(&Meta { cpus, kernel: "6.12.3".into(), ..Meta::default() });
    let group = |path: &str, properties| GroupRecord { time: 0, path: path.into(), properties };
    let weight = GroupProperties { weight: Some(300), ..GroupProperties::default() };
    builder.group(&group("/a", weight));
    builder.group(&group("/a/b", GroupProperties::default()));
    let name = |time, tid, cgroup: &str| NameRecord {
        time: time * US,
        tid,
        tgid: None,
        comm: "t".into(),
        cgroup: Some(cgroup.into()),
    };
    let fair = |nice| TaskProperties {
        policy: Some(Known::Other),
        nice: Some(nice),
        autogroup: Some(7),
        autogroup_nice: Some(3),
        ..TaskProperties::default()
    };
    let task = |time, tid, properties| TaskRecord { time: time * US, tid, properties };
    builder.name(&name(0, 1, "/"));
    builder.task(&task(0, 1, fair(0)));
    builder.name(&name(0, 9, "/"));
    builder.task(&task(0, 9, TaskProperties { autogroup: None, autogroup_nice: None, ..fair(0) }));
    let mut s = Script::default();
    s.switch(0, 0, 0, Runnable, 1);
    // 1 forks 2, which has what 1 has, moves itself to the group, is bound, and becomes nicer while it runs.
    s.at(10, 0, Payload::Fork { parent: 1, child: 2 }).wake(11, 0, 1, 2).switch(100, 0, 1, Sleeping, 2);
    builder.events(&std::mem::take(&mut s.events));
    builder.name(&name(300, 2, "/a/b"));
    builder.affinity(&AffinityRecord { time: 300 * US, tid: 2, cpus: "1".parse().unwrap() });
    builder.task(&task(500, 2, fair(5)));
    s.switch(1_100, 0, 2, Sleeping, 9).switch(1_200, 0, 9, Sleeping, 0);
    builder.events(&s.events);
    let Model { workload: w, report } = builder.finish(&Options::default()).unwrap();
    let of = |tid: &str| w.tasks.iter().find(|t| t.name == tid).unwrap();
    assert_eq!((of("t-1").session, of("t-2").session, of("t-9").session), (Some(7), Some(7), Some(crate::NO_SESSION)));
    assert_eq!((w.sessions.get(&7), report.sessions, report.described, report.groups), (Some(&3), 1, 3, 1));
    assert_eq!((w.groups["/a"].weight, w.recorded.as_ref().unwrap().kernel.as_str()), (Some(300), "6.12.3"));
    assert_eq!(told(&w, "t-2"), ["1 x run 200", "1 x run 200", "1 x run 600"]);
    let phases: Vec<_> = of("t-2").phases.iter().map(|p| p.props.clone()).collect();
    let bound = Props { cpus: Some(vec![1]), ..Props::default() };
    let moved = Props { taskgroup: Some("/a".into()), ..bound.clone() };
    let nicer = Props { policy: Some(Policy::Other), priority: Some(5), ..bound };
    assert_eq!((&of("t-2").props, phases.as_slice()), (&Props::default(), &[Props::default(), moved, nicer][..]));
    let text = crate::write(&w);
    assert_eq!(crate::write(&crate::parse(text.as_bytes(), std::path::Path::new("m.json")).unwrap()), text);
}

#[test]
fn a_trace_where_nothing_ran_is_refused() {
    assert!(Script::default().model(&Options::default()).unwrap_err().to_string().contains("no task that ran"));
}

/// A machine that runs tasks at random: the trace, and the CPU time that each task had. `even`: bursts take about as
/// long as each other, so that longer ones look like several messages.
fn chaos(seed: u64, even: bool, steps: u64, cpus: u32, tasks: i32) -> (Vec<Event>, BTreeMap<Tid, Nanos>) {
    let mut rng = Rng::new(seed);
    let (mut events, mut run) = (Vec::new(), BTreeMap::new());
    let mut current = vec![(0, 0); cpus as usize];
    let (mut ready, mut asleep): (Vec<Tid>, Vec<Tid>) = (Vec::new(), (1..=tasks).collect());
    let mut now = 0;
    for _ in 0..steps {
        now += if even { 10_000 + rng.below(1_000) } else { 1 + rng.below(40_000) };
        let cpu = rng.below(cpus.into()) as u32;
        let (running, since) = current[cpu as usize];
        if rng.below(3) == 0 && !asleep.is_empty() {
            let tid = asleep.swap_remove(rng.below(asleep.len() as u64) as usize);
            let waker = if rng.below(4) == 0 { 0 } else { running };
            let waking = Payload::Waking { tid, prio: 120, target: cpu, waker, context: Context::Unknown };
            let wakeup = Payload::Wakeup { tid, prio: 120, target: cpu };
            events.extend([waking, wakeup].map(|what| Event { time: now, cpu, what }));
            ready.push(tid);
            continue;
        }
        let next = if ready.is_empty() { 0 } else { ready.swap_remove(rng.below(ready.len() as u64) as usize) };
        if running != 0 {
            *run.entry(running).or_insert(0) += now - since;
        }
        let prev_state = if running != 0 && rng.below(3) > 0 { Sleeping } else { Runnable };
        match (running, prev_state) {
            (0, _) => {}
            (tid, Sleeping) => asleep.push(tid),
            (tid, _) => ready.push(tid),
        }
        let what = Payload::Switch { prev: running, prev_prio: 120, prev_state, next, next_prio: 120 };
        events.push(Event { time: now, cpu, what });
        current[cpu as usize] = (next, now);
    }
    for (tid, since) in current.into_iter().filter(|c| c.0 != 0) {
        *run.entry(tid).or_insert(0) += now - since;
    }
    (events, run)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn cpu_time_is_kept_and_nothing_deadlocks(
        seed in any::<u64>(), even in any::<bool>(), steps in 10u64..3_000, cpus in 1u32..5, tasks in 1i32..12,
        memory in prop_oneof![Just(100usize), Just(1_000), Just(1_000_000)],
        most_events in prop_oneof![Just(50usize), Just(500), Just(1_000_000)],
    ) {
        let (events, run) = chaos(seed, even, steps, cpus, tasks);
        let meta = Meta { span: Some((0, 0)), ..Meta::default() };
        let mut builder = ModelBuilder::with_bound(&meta, Part::default(), memory);
        events.chunks(100).for_each(|c| builder.events(c));
        let options = Options { most_events, ..Options::default() };
        let Ok(model) = builder.finish(&options) else {
            prop_assert!(run.values().all(|ns| *ns < SHORTEST));
            return Ok(());
        };
        prop_assert_eq!(stuck(&model.workload), Vec::<String>::new());
        let most = (2 * most_events).max(8 * tasks as usize);
        prop_assert!(model.report.workload_events as usize <= most, "{} events", model.report.workload_events);
        let demand = demand(&model.workload);
        for (tid, ns) in run.into_iter().filter(|r| r.1 >= SHORTEST) {
            let got = demand[&format!("task-{tid}")];
            prop_assert!(got.abs_diff(ns) <= (ns / 100).max(US), "task {} ran {} ns, demands {}", tid, ns, got);
        }
    }

    #[test]
    fn nothing_deadlocks_where_switches_were_not_recorded(
        seed in any::<u64>(), cpus in 1u32..5, tasks in 2i32..12, hidden in 2u64..50,
    ) {
        let (mut events, _) = chaos(seed, true, 4_000, cpus, tasks);
        let mut rng = Rng::new(seed);
        events.retain(|event| !matches!(event.what, Payload::Switch { .. }) || rng.below(hidden) > 0);
        let mut builder = ModelBuilder::new(&Meta { span: Some((0, 0)), ..Meta::default() });
        builder.events(&events);
        if let Ok(model) = builder.finish(&Options::default()) {
            prop_assert_eq!(stuck(&model.workload), Vec::<String>::new());
        }
    }

    #[test]
    fn any_events_make_a_workload_that_ends(
        raw in prop::collection::vec((0u8..8, 0u32..4, 0i32..6, 0i32..6, 0u64..9_000), 1..400),
    ) {
        let mut now = 0;
        let mut builder = ModelBuilder::with_bound(&Meta::default(), Part::default(), 200);
        for (kind, cpu, a, b, gap) in raw {
            now += gap;
            let prev_state = [Runnable, Sleeping, Dead][gap as usize % 3];
            let what = match kind {
                0..=2 => Payload::Switch { prev: a, prev_prio: -1, prev_state, next: b, next_prio: i16::MAX },
                3 => Payload::Waking { tid: a, prio: 0, target: cpu, waker: b, context: Context::Unknown },
                4 => Payload::Wakeup { tid: a, prio: 0, target: u32::MAX },
                5 => Payload::Fork { parent: a, child: b },
                6 => Payload::Exec { tid: a, old: b },
                _ => Payload::Lost { count: u64::MAX },
            };
            builder.events(&[Event { time: now, cpu: if cpu == 3 { u32::MAX } else { cpu }, what }]);
        }
        if let Ok(model) = builder.finish(&Options::default()) {
            prop_assert_eq!(stuck(&model.workload), Vec::<String>::new());
        }
    }
}

//! A workload that is written reads back unchanged.

use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use schedlab_base::{Averages, Computing, CpuPlace, System};
use schedlab_workload::{
    Action, Amount, Global, Group, Hotplug, Interrupt, InterruptKind, MemAccess, Memory, Phase, Policy, Props,
    Recorded, Start, Step, TaskDef, TimerMode, Workload, parse, write,
};
use std::path::Path;

fn us() -> impl Strategy<Value = u64> {
    prop_oneof![0..100_000_u64, 0..1_000_000_000_000_u64].prop_map(|us| us * 1000)
}

fn amount() -> impl Strategy<Value = Amount> {
    // These are in ns. Times finer than 1 us are written as a mean.
    let fine =
        (prop_oneof![Just(0), 100..1_000_000_000_u64], 0..1_000_000_u64).prop_map(|(mean, sd)| Amount { mean, sd });
    prop_oneof![us().prop_map(|mean| Amount { mean, sd: 0 }), fine]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]", "[a-zA-Z0-9 ._\"\\\\/ä😀-]{1,12}"]
}

fn action() -> impl Strategy<Value = Action> {
    let timer = (name(), amount(), any::<bool>()).prop_map(|(name, period, absolute)| Action::Timer {
        unique: name.starts_with("unique"),
        name,
        period,
        mode: if absolute { TimerMode::Absolute } else { TimerMode::Relative },
    });
    let access = prop_oneof![Just(MemAccess::Read), Just(MemAccess::Write), Just(MemAccess::Chase)];
    let memrun = (access, 2..1_000_000_u64, any::<u32>(), 1..64_u64, any::<bool>()).prop_map(
        |(access, strides, count, stride, random)| Action::MemRun {
            access,
            size: strides * stride,
            count: u64::from(count),
            stride,
            random,
            shared: None,
        },
    );
    prop_oneof![
        amount().prop_map(Action::Run),
        amount().prop_map(Action::Runtime),
        amount().prop_map(Action::Sleep),
        us().prop_map(Action::Timeout),
        timer,
        memrun,
        prop_oneof![
            name().prop_map(Action::Lock),
            name().prop_map(Action::Unlock),
            name().prop_map(Action::Signal),
            name().prop_map(Action::Broadcast),
            name().prop_map(Action::Barrier),
            name().prop_map(Action::SemPost),
            name().prop_map(Action::SemWait),
            name().prop_map(Action::Resume),
            (name(), name()).prop_map(|(cond, mutex)| Action::Wait { cond, mutex }),
            (name(), name()).prop_map(|(cond, mutex)| Action::Sync { cond, mutex }),
            any::<u32>().prop_map(|bytes| Action::Mem(u64::from(bytes))),
            any::<u32>().prop_map(|bytes| Action::IoRun(u64::from(bytes))),
            Just(Action::Yield),
            Just(Action::Exec),
            Just(Action::Await),
            name().prop_map(Action::Ask),
            name().prop_map(Action::Answer),
            Just(Action::Jobs("jobs".to_owned())),
            name().prop_map(|name| Action::SpinLock(format!("spin-{name}"))),
            name().prop_map(|name| Action::SpinUnlock(format!("spin-{name}"))),
            name().prop_map(|name| Action::SpinBarrier(format!("spin-{name}"))),
            (name(), us()).prop_map(|(name, spin)| Action::HybridBarrier { name: format!("spin-{name}"), spin }),
        ],
    ]
}

fn props() -> impl Strategy<Value = Props> {
    let sched = prop_oneof![
        Just((None, None)),
        (-20..20_i32).prop_map(|nice| (Some(Policy::Other), Some(nice))),
        Just((Some(Policy::Idle), None)),
        (-20..20_i32).prop_map(|nice| (Some(Policy::Batch), Some(nice))),
    ];
    let nodes =
        proptest::collection::btree_map(0..4_u32, 1..101_u32, 0..4).prop_map(|nodes| nodes.into_iter().collect());
    let memory = of((any::<u32>(), nodes, any::<[bool; 2]>(), 0..101_u32).prop_map(
        |(bytes, nodes, [pinned, shared], bound)| Memory { bytes: u64::from(bytes), nodes, pinned, shared, bound },
    ));
    let cpus = || of(proptest::collection::btree_set(0..128_u32, 1..5).prop_map(|set| set.into_iter().collect()));
    let group = of("(/[a-z]{1,3}){1,3}");
    (
        sched,
        of(0..512_u16),
        of(512..1025_u16),
        cpus(),
        cpus(),
        group,
        of(any::<u32>()),
        memory,
        of(us()),
        of(any::<bool>()),
    )
        .prop_map(
            |(
                (policy, priority),
                util_min,
                util_max,
                cpus,
                nodes_membind,
                taskgroup,
                set,
                memory,
                clock_poll,
                reclaim,
            )| Props {
                policy,
                priority,
                util_min,
                util_max,
                cpus,
                nodes_membind,
                taskgroup,
                working_set: set.map(u64::from),
                memory,
                clock_poll,
                reclaim,
                ..Props::default()
            },
        )
}

/// Whether an event may say `x-sync`.
fn wakes(action: &Action) -> bool {
    use Action::{Answer, Ask, Broadcast, Resume, SemPost, Signal, Sync};
    matches!(action, Signal(_) | Broadcast(_) | Sync { .. } | Resume(_) | SemPost(_) | Ask(_) | Answer(_))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    vec((action(), any::<bool>()), 1..6).prop_map(|actions| {
        let steps = actions.into_iter().map(|(what, sync)| {
            let sync = sync && wakes(&what);
            Step { key: String::new(), line: 0, what, sync }
        });
        steps.collect()
    })
}

fn loops() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), Just(Some(1)), (1..1_000_000_u64).prop_map(Some)]
}

fn body() -> impl Strategy<Value = (Option<u64>, Vec<Phase>)> {
    let inline = (loops(), any::<bool>(), steps()).prop_map(|(loops, for_ever, events)| {
        let (task, phase) = if for_ever { (None, Some(1)) } else { (Some(1), loops) };
        (task, vec![Phase { loops: phase, events, ..Phase::default() }])
    });
    let phase = (loops(), props(), steps());
    let phased = (loops(), vec(phase, 1..4)).prop_map(|(loops, phases)| {
        let named = phases.into_iter().enumerate();
        let phases = named.map(|(n, (loops, props, events))| Phase { name: format!("p{n}"), loops, props, events });
        (loops, phases.collect())
    });
    prop_oneof![inline, phased]
}

fn task() -> impl Strategy<Value = TaskDef> {
    let work = prop::sample::select(Computing::WORDS).prop_map(|(_, work)| work);
    let before = of((0..=Averages::ALWAYS, 0..=Averages::ALWAYS));
    let before = before.prop_map(|both| both.map(|(a, b)| Averages { runnable: a.max(b), running: a.min(b) }));
    (1..9_u32, us(), us(), props(), body(), of(any::<u32>()), of(any::<u32>()), (work, before, of(us()))).prop_map(
        |(instances, delay, stagger, props, (loops, phases), user, session, (work, averages, lifetime))| TaskDef {
            computing: if props.memory.as_ref().is_some_and(|m| m.shared) { Computing::Loops } else { work },
            instances,
            delay,
            stagger,
            loops,
            props,
            phases,
            user,
            session,
            averages,
            lifetime,
            ..TaskDef::default()
        },
    )
}

fn group() -> impl Strategy<Value = Group> {
    (1..10_001_u32, any::<bool>(), of(1..100_u64), of(1..1000_u64), any::<bool>()).prop_map(
        |(n, weight, quota, period, idle)| Group {
            weight: weight.then_some(n),
            shares: (!weight).then_some(u64::from(n)),
            quota: quota.map(|ms| ms * 1_000_000),
            period: period.map(|ms| ms * 1_000_000),
            burst: quota.map(|ms| ms * 500_000),
            idle,
        },
    )
}

prop_compose! {
    fn interrupt()(
        kind in prop_oneof![Just(InterruptKind::Irq), Just(InterruptKind::Softirq), Just(InterruptKind::Steal)],
        cpus in of(vec(0..8_u32, 1..2)),
        at in us(),
        (duration, more, sd) in (1..1000_u64, 1..1000_u64, 0..9_u64),
        random in any::<bool>(),
    ) -> Interrupt {
        let duration = Amount { mean: duration * 1000, sd: sd * 1000 };
        Interrupt { kind, cpus, at, period: duration.mean + more * 1000, random, duration }
    }
}

prop_compose! {
    fn workload()(
        duration in of(prop_oneof![(1..1_000_000_u64).prop_map(|s| s * 1_000_000_000), 1..1_000_000_000_000_000_u64]),
        calibration_ns in of(1..1000_u64),
        policy in prop_oneof![Just(Policy::Other), Just(Policy::Batch)],
        flags in any::<(bool, bool)>(),
        start in prop_oneof![Just(Start::Wake), Just(Start::Fork), Just(Start::Threads)],
        io_device in of("/[a-z]{1,8}"),
        groups in btree_map("(/[a-z]{1,3}){1,3}", group(), 0..3),
        hotplug in vec((us(), 0..8_u32, any::<bool>()), 0..3),
        interrupts in vec(interrupt(), 0..3),
        sessions in btree_map(0..9_u32, -20..=19_i8, 0..3),
        recorded in of("[0-9.]{1,8}"),
        tasks in vec((name(), task()), 1..4),
    ) -> Workload {
        let mut hotplug: Vec<_> = hotplug.into_iter().map(|(at, cpu, online)| Hotplug { at, cpu, online }).collect();
        hotplug.sort_by_key(|change| change.at);
        let named = |(n, (name, task)): (usize, (String, TaskDef))| TaskDef { name: format!("{name}{n}"), ..task };
        let mut tasks: Vec<TaskDef> = tasks.into_iter().enumerate().map(named).collect();
        // Suspends, forks and jobs need names that exist.
        let first = tasks[0].name.clone();
        for task in &mut tasks {
            let own = Action::Suspend(task.name.clone());
            task.phases[0].events.push(Step { key: String::new(), line: 0, what: own, sync: false });
            let fork = Action::Fork(first.clone());
            task.phases[0].events.push(Step { key: String::new(), line: 0, what: fork, sync: false });
        }
        let events = vec![Step { key: String::new(), line: 0, what: Action::Yield, sync: false }];
        let job = Phase { name: "job".to_owned(), loops: Some(7), events, ..Phase::default() };
        tasks.push(TaskDef { name: "jobs".to_owned(), instances: 0, phases: vec![job], ..TaskDef::default() });
        Workload {
            name: "w".to_owned(),
            file: None,
            global: Global {
                duration,
                calibration_ns,
                default_policy: policy,
                pi_enabled: flags.0,
                cumulative_slack: flags.1,
                io_device,
                start,
                ..Global::default()
            },
            tasks,
            groups,
            sessions,
            recorded: recorded.map(|kernel| Recorded {
                system: System { hz: Some(250), autogroup: Some(flags.0), ..System::default() },
                cpus: vec![CpuPlace { cpu: 3, ..CpuPlace::default() }],
                kernel,
                ..Recorded::default()
            }),
            hotplug,
            interrupts,
            validation: None,
            warnings: Vec::new(),
        }
    }
}

/// Drops the keys, which the writer invents where there were none, and the remarks.
fn bare(mut workload: Workload) -> Workload {
    workload.warnings.clear();
    for step in workload.tasks.iter_mut().flat_map(|task| &mut task.phases).flat_map(|phase| &mut phase.events) {
        step.key.clear();
    }
    workload
}

proptest! {
    #[test]
    fn a_workload_reads_back_as_it_was(workload in workload()) {
        let text = write(&workload);
        let path = Path::new("w.json");
        let back = parse(text.as_bytes(), path).unwrap_or_else(|e| panic!("{e}\n{text}"));
        // Now all events have keys, so the second round trip must not change anything.
        let text = write(&back);
        let again = parse(text.as_bytes(), path).unwrap_or_else(|e| panic!("{e}\n{text}"));
        prop_assert_eq!(&back.tasks, &again.tasks);
        prop_assert_eq!(write(&again), text);
        prop_assert_eq!(bare(back), bare(workload));
    }
}

#[test]
fn rounding_keeps_the_sum_of_a_phase() {
    let step = |ns| Step { key: String::new(), line: 0, what: Action::Run(Amount { mean: ns, sd: 0 }), sync: false };
    let events = (0..1000).map(|n| step(400 + n % 7)).collect();
    let task = TaskDef { phases: vec![Phase { events, ..Phase::default() }], ..TaskDef::default() };
    let mut workload = Workload { tasks: vec![task], ..Workload::default() };
    let sum = |workload: &Workload| -> u64 {
        workload.steps().map(|(_, _, step)| if let Action::Run(time) = step.what { time.mean } else { 0 }).sum()
    };
    let before = sum(&workload);
    workload.round_to_micros();
    assert!(workload.steps().all(|(_, _, step)| matches!(step.what, Action::Run(time) if time.mean % 1000 == 0)));
    assert!(before.abs_diff(sum(&workload)) <= 500, "{before} {}", sum(&workload));
}

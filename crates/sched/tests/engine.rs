//! Properties that hold for every kernel over random loads, and what the engine says of loads that cannot go on.

mod support;

use proptest::prelude::*;
use schedlab_base::{Nanos, Payload};
use schedlab_sched::kernels::{How, KERNELS, find};
use schedlab_sim::program::{Amount, Load, Op, Setting, Start, TaskSpec};
use support::{Accounts, bare, exactly, forever, hog, simulate, simulate_how};

const MS: Nanos = 1_000_000;
const SECOND: Nanos = 1_000 * MS;

/// A load of hogs, sleepers and pairs that wake each other.
fn loads() -> impl Strategy<Value = Load> {
    let sleeper =
        (-20i8..20, 20_000u64..5_000_000, 20_000u64..20_000_000, 0u64..500_000).prop_map(|(nice, run, sleep, sd)| {
            forever("sleeper", nice, vec![Op::Run(Amount { mean: run, sd }), Op::Sleep(exactly(sleep))])
        });
    let yielder = (1_000u64..500_000).prop_map(|run| forever("yielder", 0, vec![Op::Run(exactly(run)), Op::Yield]));
    let task = prop_oneof![(-20i8..20).prop_map(|nice| hog("hog", nice)), sleeper, yielder];
    let start = prop_oneof![Just(Start::Wake), Just(Start::Fork), Just(Start::Threads)];
    (proptest::collection::vec(task, 1..12), start, any::<bool>()).prop_map(|(mut tasks, start, pair)| {
        for (i, task) in tasks.iter_mut().enumerate() {
            task.name = format!("{}-{i}", task.name);
            if i % 5 == 4 {
                task.initial.cpus = Some(vec![0]);
            }
        }
        let mut load = Load { tasks, start, sems: vec!["ping".into(), "pong".into()], ..Load::default() };
        if pair {
            load.tasks.push(forever("ping", 0, vec![Op::Run(exactly(30_000)), Op::SemPost(0), Op::SemWait(1)]));
            load.tasks.push(forever("pong", 0, vec![Op::SemWait(0), Op::Run(exactly(50_000)), Op::SemPost(1)]));
            load.tasks.push(TaskSpec {
                name: "forker".into(),
                program: vec![Op::Run(exactly(MS)), Op::Fork(0), Op::Fork(0), Op::Run(exactly(MS))],
                start: 7 * MS,
                ..TaskSpec::default()
            });
            load.templates.push(TaskSpec {
                name: "child".into(),
                program: vec![Op::Run(exactly(3 * MS)), Op::Set(0), Op::Run(exactly(MS))],
                ..TaskSpec::default()
            });
            load.settings.push(Setting { nice: Some(7), ..Setting::default() });
        }
        load
    })
}

fn run(kernel: &str, cpus: &str, load: &Load, skip_ticks: bool) -> Accounts {
    let machine = schedlab_machine::load(cpus).unwrap();
    let how = How { duration: Some(SECOND / 2), seed: 11, skip_ticks };
    simulate_how(kernel, &machine, load, &[], &how)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn skipping_ticks_changes_no_event(load in loads(), cpus in prop_oneof![Just("1"), Just("3"), Just("2x2")]) {
        for kernel in KERNELS {
            let (skipped, taken) = (run(kernel.name, cpus, &load, true), run(kernel.name, cpus, &load, false));
            let first = skipped.events.iter().zip(&taken.events).position(|(a, b)| a != b);
            prop_assert_eq!(first, None, "{}: {:?}", kernel.name, first.map(|i| (skipped.events[i], taken.events[i])));
            prop_assert_eq!(skipped.events.len(), taken.events.len());
        }
    }

    #[test]
    fn time_is_conserved(load in loads(), cpus in prop_oneof![Just("1"), Just("3")]) {
        for kernel in KERNELS {
            let accounts = run(kernel.name, cpus, &load, true);
            let busy: Nanos = accounts.tasks.iter().map(|t| t.run).sum();
            let cpus: Nanos = cpus.parse().unwrap();
            prop_assert!(busy <= cpus * SECOND / 2, "{}: more CPU time than there is", kernel.name);
            for task in &accounts.tasks {
                prop_assert!(task.run + task.wait <= SECOND / 2);
            }
        }
    }

    #[test]
    fn nobody_is_forgotten(nices in proptest::collection::vec(-20i8..=0, 2..8), sleeper in any::<bool>()) {
        let mut tasks: Vec<_> = nices.iter().enumerate().map(|(i, n)| hog(&format!("hog-{i}"), *n)).collect();
        if sleeper {
            tasks.push(forever("sleeper", 0, vec![Op::Run(exactly(2 * MS)), Op::Sleep(exactly(9 * MS))]));
        }
        let load = Load { tasks, start: Start::Fork, ..Load::default() };
        for kernel in KERNELS {
            // O(1) gives nice -20 slices of 800 ms, and interactive tasks may hold the others off for a second each.
            let accounts = simulate(kernel.name, &bare("up"), &load, &[], 20 * SECOND);
            let forgotten: Vec<_> = (0..load.tasks.len()).filter(|i| accounts.tasks[*i].slices == 0).collect();
            prop_assert!(forgotten.is_empty(), "{}: {forgotten:?}", kernel.name);
        }
    }
}

#[test]
fn equal_seeds_give_equal_events() {
    let jitter = Amount { mean: MS, sd: MS / 4 };
    let tasks = (0..4).map(|i| forever(&format!("t{i}"), 0, vec![Op::Run(jitter), Op::Sleep(jitter)])).collect();
    let load = Load { tasks, ..Load::default() };
    let machine = bare("2");
    for kernel in KERNELS {
        let events = |seed| {
            let how = How { duration: Some(SECOND), seed, skip_ticks: true };
            simulate_how(kernel.name, &machine, &load, &[], &how).events
        };
        assert_eq!(events(5), events(5));
        assert_ne!(events(5), events(6));
    }
}

#[test]
fn weights_are_honoured_in_the_long_run() {
    for kernel in ["linux-2.6.32", "linux-6.1", "linux-6.12"] {
        let tasks = [0i8, 1, 5, -3].iter().enumerate().map(|(i, n)| hog(&format!("h{i}"), *n)).collect();
        let accounts = simulate(kernel, &bare("up"), &Load { tasks, ..Load::default() }, &[], 100 * SECOND);
        let weights = [1024.0, 820.0, 335.0, 1991.0];
        let sum: f64 = weights.iter().sum();
        for (task, weight) in accounts.tasks.iter().zip(weights) {
            let (ours, due) = (task.run as f64, 100.0 * SECOND as f64 * weight / sum);
            assert!((ours / due - 1.0).abs() < 0.01, "{kernel}: {ours} for {due}");
        }
    }
}

fn failure(load: &Load, duration: Option<Nanos>) -> String {
    let (kernel, machine) = (find("linux-6.12").unwrap(), bare("2"));
    let values = kernel.values(&machine, &[]).unwrap();
    let how = How { duration, seed: 1, skip_ticks: true };
    kernel.simulate(&machine, load, &values, &how, &mut Accounts::default()).unwrap_err().to_string()
}

#[test]
fn two_locks_taken_in_two_orders_are_a_deadlock() {
    let both = |a, b| vec![Op::Lock(a), Op::Run(exactly(MS)), Op::Lock(b), Op::Unlock(b), Op::Unlock(a)];
    let mut load = Load { mutexes: vec!["A".into(), "B".into()], ..Load::default() };
    load.tasks = vec![forever("first", 0, both(0, 1)), forever("second", 0, both(1, 0)), hog("bystander", 0)];
    let text = failure(&load, Some(10 * SECOND));
    assert!(text.contains("deadlock"), "{text}");
    assert!(text.contains("first waits for lock \"B\" (held by second)"), "{text}");
    assert!(text.contains("second waits for lock \"A\" (held by first)"), "{text}");
    for task in &mut load.tasks[..2] {
        for op in &mut task.program {
            *op = match *op {
                Op::Lock(m) => Op::SpinLock(m),
                Op::Unlock(m) => Op::SpinUnlock(m),
                ref other => other.clone(),
            };
        }
    }
    assert!(failure(&load, Some(10 * SECOND)).contains("deadlock"), "spinning waiters deadlock too");
}

#[test]
fn a_barrier_that_nobody_else_reaches_is_a_deadlock() {
    let load = Load {
        tasks: vec![forever("alone", 0, vec![Op::Run(exactly(MS)), Op::Barrier(0)])],
        barriers: vec![("meet".into(), 2)],
        ..Load::default()
    };
    assert!(failure(&load, None).contains("alone waits for barrier \"meet\" (1 of 2 came)"));
}

#[test]
fn time_that_stands_still_is_told() {
    let load = Load { tasks: vec![forever("spinner", 0, vec![Op::Yield])], ..Load::default() };
    assert!(failure(&load, Some(SECOND)).contains("time stands still"));
}

#[test]
fn forks_without_end_are_told() {
    let load = Load {
        tasks: vec![forever("bomb", 0, vec![Op::Run(exactly(1_000)), Op::Fork(0)])],
        templates: vec![TaskSpec { name: "child".into(), program: vec![], ..TaskSpec::default() }],
        ..Load::default()
    };
    assert!(failure(&load, Some(3_600 * SECOND)).contains("1048576 tasks"));
}

#[test]
fn servers_whose_clients_ended_are_no_deadlock() {
    let client =
        TaskSpec { name: "client".into(), program: vec![Op::Run(exactly(MS)), Op::SemPost(0)], ..TaskSpec::default() };
    let server = forever("server", 0, vec![Op::SemWait(0), Op::Run(exactly(2 * MS))]);
    let load = Load { tasks: vec![server, client], sems: vec!["request".into()], ..Load::default() };
    let accounts = simulate("linux-6.1", &bare("2"), &load, &[], SECOND);
    assert_eq!(accounts.named("server").run, 2 * MS);
    assert!(accounts.events.iter().any(|e| matches!(e.what, Payload::Exit { .. })));
}

#[test]
fn spinning_waiters_burn_cpu_until_the_lock_is_free() {
    let hold = vec![Op::SpinLock(0), Op::Run(exactly(10 * MS)), Op::SpinUnlock(0), Op::Sleep(exactly(100 * MS))];
    let load = Load {
        tasks: vec![forever("a", 0, hold.clone()), forever("b", 0, hold)],
        mutexes: vec!["lock".into()],
        ..Load::default()
    };
    let accounts = simulate("linux-6.1", &bare("2"), &load, &[], 100 * MS);
    assert_eq!(accounts.named("a").run, 10 * MS);
    assert_eq!(accounts.named("b").run, 20 * MS, "10 ms spinning, 10 ms holding");
}

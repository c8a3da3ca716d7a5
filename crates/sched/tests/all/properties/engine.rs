//! Equal inputs give equal events, with ticks skipped or taken; and the engine's messages about loads that cannot go
//! on.

use crate::support::loads::{loads_in_groups, loads_with_changes, loads_with_mutexes, with_costs};
use crate::support::{Accounts, bare, exactly, forever, hog, once, pinned, simulate, simulate_how};
use proptest::prelude::*;
use schedlab_base::{CpuId, Nanos, Payload, Rng};
use schedlab_machine::MachineFile;
use schedlab_sched::kernels::{Feature, How, KERNELS, Kernel, find};
use schedlab_sched::tunables::{Tunable, Unit};
use schedlab_sim::program::{Amount, Load, Op, Start, TaskSpec};
use schedlab_sim::{Core, Dequeue, Enqueue, Options, Scheduler, Stranded, TaskId};

const MS: Nanos = 1_000_000;
const SECOND: Nanos = 1_000 * MS;

fn run(kernel: &str, cpus: &str, load: &Load, skip_ticks: bool) -> Accounts {
    let machine = schedlab_machine::load(cpus).unwrap();
    let how = How { duration: Some(SECOND / 2), seed: 11, skip_ticks };
    simulate_how(kernel, &machine, load, &[], &how)
}

#[test]
fn copies_are_tasks_of_their_own() {
    let jittered = |mean| Op::Run(Amount { mean, sd: mean / 10 });
    let worker = forever("worker", 3, vec![jittered(2 * MS), Op::Sleep(Amount { mean: MS, sd: MS / 10 })]);
    let workers = TaskSpec { copies: 7, start: MS, stagger: 3 * MS, ..worker };
    for start in [Start::Wake, Start::Fork] {
        let load = Load { tasks: vec![hog("first", 0), workers.clone(), hog("last", 0)], start, ..Load::default() };
        assert_eq!(load.nr_tasks(), 9);
        let apart = load.clone().spread();
        let starts: Vec<Nanos> = apart.tasks.iter().map(|task| task.start / MS).collect();
        assert_eq!(starts, [0, 1, 4, 7, 10, 13, 16, 19, 0]);
        for kernel in KERNELS {
            let (copied, written) = (run(kernel.name, "2x2", &load, true), run(kernel.name, "2x2", &apart, true));
            assert_eq!(copied.names, written.names, "{}", kernel.name);
            assert_eq!((&copied.names[1], &copied.names[7]), (&"worker-0".to_owned(), &"worker-6".to_owned()));
            assert!(copied.events == written.events && copied.events.len() > 100, "{}", kernel.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn skipping_ticks_changes_no_event_in_groups(
        load in loads_in_groups(),
        cpus in prop_oneof![Just("1"), Just("3"), Just("2x2")],
        grouping in 0u32..3,
    ) {
        for kernel in KERNELS.iter().filter(|k| !k.lacks(Feature::Groups)) {
            let name = ["none", "group_by_user", "sched_autogroup_enabled"][grouping as usize];
            let set: Vec<_> = kernel.tunable(name).map(|t| (t.name, "1".to_owned())).into_iter().collect();
            let run = |skip_ticks| {
                let how = How { duration: Some(SECOND / 2), seed: 11, skip_ticks };
                simulate_how(kernel.name, &schedlab_machine::load(cpus).unwrap(), &load, &set, &how)
            };
            let (skipped, taken) = (run(true), run(false));
            let first = skipped.events.iter().zip(&taken.events).position(|(a, b)| a != b);
            prop_assert_eq!(first, None, "{}: {:?}", kernel.name, first.map(|i| (skipped.events[i], taken.events[i])));
            prop_assert_eq!(skipped.events.len(), taken.events.len());
        }
    }

    #[test]
    fn skipping_ticks_changes_no_event(
        load in loads_with_changes(),
        cpus in prop_oneof![Just("1"), Just("3"), Just("2x2")],
    ) {
        for kernel in KERNELS {
            let (skipped, taken) = (run(kernel.name, cpus, &load, true), run(kernel.name, cpus, &load, false));
            let first = skipped.events.iter().zip(&taken.events).position(|(a, b)| a != b);
            prop_assert_eq!(first, None, "{}: {:?}", kernel.name, first.map(|i| (skipped.events[i], taken.events[i])));
            prop_assert_eq!(skipped.events.len(), taken.events.len());
        }
    }
}

/// Some of a kernel's `sched_features`, each set on or off.
fn features(kernel: &'static Kernel, seed: u64) -> Vec<(&'static str, String)> {
    let mut rng = Rng::new(seed);
    let is_feature =
        |t: &&Tunable| t.unit == Unit::Switch && t.name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let mut set: Vec<_> =
        kernel.tunables.iter().filter(is_feature).map(|t| (t.name, rng.below(2).to_string())).collect();
    set.retain(|_| rng.below(3) > 0);
    set
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn nor_does_it_whatever_features_are_on(
        load in prop_oneof![loads_with_changes(), loads_in_groups(), loads_with_mutexes()],
        cpus in prop_oneof![Just("1"), Just("3"), Just("2x2")],
        seed in any::<u64>(),
    ) {
        for kernel in KERNELS.iter().filter(|k| !features(k, 0).is_empty()) {
            let load = Load { inherits: load.inherits && !kernel.lacks(Feature::Inheritance), ..load.clone() };
            let machine = schedlab_machine::load(cpus).unwrap();
            let set = features(kernel, seed);
            let run = |skip_ticks| {
                let how = How { duration: Some(SECOND / 4), seed: 11, skip_ticks };
                simulate_how(kernel.name, &machine, &load, &set, &how)
            };
            let (skipped, taken) = (run(true), run(false));
            let first = skipped.events.iter().zip(&taken.events).position(|(a, b)| a != b);
            let events = first.map(|i| (skipped.events[i], taken.events[i]));
            prop_assert_eq!(first, None, "{} with {:?}: {:?}", kernel.name, set, events);
            prop_assert_eq!(skipped.events.len(), taken.events.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn nor_does_it_where_caches_siblings_and_memory_cost(
        load in loads_with_changes(),
        kib in 1u64..4_000,
        (sockets, cores, threads) in prop_oneof![Just((1, 1, 2)), Just((2, 1, 1)), Just((2, 2, 2)), Just((2, 1, 4))],
    ) {
        let distances = if sockets == 1 { vec![vec![10]] } else { vec![vec![10, 21], vec![21, 10]] };
        let file = MachineFile { distances, ..MachineFile::flat("m", sockets, cores, threads) };
        let machine = file.build().expect("a machine");
        let load = with_costs(load, kib);
        let load = if sockets == 1 { without_node_1(load) } else { load };
        for kernel in KERNELS {
            let run = |skip_ticks| {
                let how = How { duration: Some(SECOND / 4), seed: 11, skip_ticks };
                simulate_how(kernel.name, &machine, &load, &[], &how)
            };
            let (skipped, taken) = (run(true), run(false));
            let first = skipped.events.iter().zip(&taken.events).position(|(a, b)| a != b);
            prop_assert_eq!(first, None, "{}: {:?}", kernel.name, first.map(|i| (skipped.events[i], taken.events[i])));
            prop_assert_eq!(skipped.events.len(), taken.events.len());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn nor_does_it_where_mutexes_lend_priorities(
        load in loads_with_mutexes(),
        cpus in prop_oneof![Just("1"), Just("3"), Just("2x2")],
    ) {
        for kernel in KERNELS.iter().filter(|k| !k.lacks(Feature::Inheritance)) {
            let (skipped, taken) = (run(kernel.name, cpus, &load, true), run(kernel.name, cpus, &load, false));
            let first = skipped.events.iter().zip(&taken.events).position(|(a, b)| a != b);
            prop_assert_eq!(first, None, "{}: {:?}", kernel.name, first.map(|i| (skipped.events[i], taken.events[i])));
            prop_assert_eq!(skipped.events.len(), taken.events.len());
        }
    }
}

/// Adapts a load to a machine with one node.
fn without_node_1(mut load: Load) -> Load {
    load.memories[1].nodes = Vec::new();
    for task in &mut load.tasks {
        task.initial.membind = None;
    }
    load
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

/// What a task draws does not depend on when it gets a CPU, nor on what others draw.
#[test]
fn a_task_draws_the_same_under_every_scheduler() {
    let vary = |mean| Amount { mean, sd: mean / 3 };
    let bursts = |name: &str, rounds: u64| {
        let one = [Op::Run(vary(MS)), Op::Sleep(vary(2 * MS))];
        once(name, (0..rounds).flat_map(|_| one.clone()).collect())
    };
    let mut parent = bursts("parent", 3);
    parent.program.extend([Op::Fork(0), Op::Run(vary(MS)), Op::Fork(0), Op::Fork(1)]);
    let load = Load {
        tasks: vec![bursts("a", 20), bursts("b", 30), parent],
        templates: vec![bursts("x", 5), bursts("y", 5)],
        ..Load::default()
    };
    let ran = |kernel: &str, load: &Load| -> Vec<(String, Nanos)> {
        let how = How { duration: None, seed: 11, skip_ticks: true };
        let accounts = simulate_how(kernel, &bare("2"), load, &[], &how);
        let mut ran: Vec<_> = accounts.names.iter().cloned().zip(accounts.tasks.iter().map(|task| task.run)).collect();
        ran.sort();
        ran
    };
    let all = ran("linux-6.12", &load);
    assert_eq!(all.len(), 6);
    assert_eq!(all.iter().map(|(_, run)| run).collect::<std::collections::BTreeSet<_>>().len(), 6, "{all:?}");
    for kernel in KERNELS {
        assert_eq!(ran(kernel.name, &load), all, "{}", kernel.name);
    }
    // Others beside it change nothing, and neither does an amount of its own that does not vary any more.
    let mut changed = load;
    changed.tasks.push(bursts("other", 40));
    changed.tasks[0].program[1] = Op::Sleep(exactly(7 * MS));
    assert_eq!(ran("linux-6.12", &changed).iter().filter(|one| all.contains(one)).count(), 6);
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

/// The stopper of CPU 0 moves the running task to CPU 1, if it moves it, and CPU 0 pulls it back at once.
#[derive(Default)]
struct Bouncer {
    queues: [Vec<TaskId>; 2],
    bounced: bool,
    stays: bool,
}

impl Scheduler for Bouncer {
    fn enqueue_task(&mut self, _cx: &mut Core, cpu: CpuId, p: TaskId, _how: Enqueue) {
        self.queues[cpu as usize].push(p);
    }

    fn dequeue_task(&mut self, _cx: &mut Core, cpu: CpuId, p: TaskId, _how: Dequeue) {
        self.queues[cpu as usize].retain(|q| *q != p);
    }

    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        self.queues[cpu as usize].extend(prev.filter(|p| cx.task(*p).on_rq));
        if cpu == 0 && self.queues[0].is_empty() {
            let p = self.queues[1].pop()?;
            cx.set_task_cpu(p, 0);
            return Some(p);
        }
        self.queues[cpu as usize].pop()
    }

    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        if cpu == 0 && cx.now() >= 5 * MS && !std::mem::replace(&mut self.bounced, true) {
            cx.wake_stopper(0);
        }
    }

    fn run_stopper(&mut self, cx: &mut Core, _cpu: CpuId, prev: Option<TaskId>) {
        let p = prev.expect("it runs");
        if self.stays {
            return self.queues[0].push(p);
        }
        cx.set_task_cpu(p, 1);
        self.queues[1].push(p);
    }
}

/// Runs a task of 15 ms, of which the stopper disposes after 5 ms.
fn bounce(bouncer: Bouncer, context_switch_ns: Nanos) -> Accounts {
    let load = Load { tasks: vec![pinned(once("t", vec![Op::Run(exactly(15 * MS))]), 0)], ..Load::default() };
    let options = Options {
        duration: Some(20 * MS),
        seed: 1,
        skip_ticks: true,
        tick_period: MS,
        tick_first: MS,
        stranded: Stranded::default(),
        lazy: false,
        inheritance: None,
        stopper: true,
        new_migrate: true,
    };
    let mut machine = bare("2");
    machine.costs.context_switch_ns = context_switch_ns;
    let mut accounts = Accounts::default();
    schedlab_sim::run(bouncer, &machine, &load, &options, &mut accounts, None).unwrap();
    accounts.finish(20 * MS);
    accounts
}

/// The CPU switches to the task, to the stopper, and to the task again, wherever it has been meanwhile.
#[test]
fn a_switch_to_the_stopper_takes_as_long_as_any() {
    for stays in [false, true] {
        let accounts = bounce(Bouncer { stays, ..Bouncer::default() }, 2_000);
        assert_eq!(accounts.named("t").run, 15 * MS + 3 * 2_000, "stays: {stays}");
    }
}

#[test]
fn a_task_that_is_moved_away_and_pulled_back_leaves_its_cpu_meanwhile() {
    let accounts = bounce(Bouncer::default(), 0);
    let seen: Vec<_> = accounts
        .events
        .iter()
        .filter(|event| event.time == 5 * MS)
        .map(|event| match event.what {
            Payload::Switch { prev, next, .. } => format!("switch {prev} {next}"),
            Payload::Migrate { from, to, .. } => format!("migrate {from} {to}"),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(seen, ["switch 1 0", "migrate 0 1", "migrate 1 0", "switch 0 1"]);
    assert_eq!(accounts.named("t").run, 15 * MS);
}

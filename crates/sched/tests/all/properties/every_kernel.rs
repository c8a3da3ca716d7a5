//! Properties that hold for every kernel over random loads, and a canary with planted faults that they must catch.

use crate::support::ledger::Ledger;
use crate::support::loads::{hogs_and_sleepers, loads};
use crate::support::toy::{Fault, Toy};
use crate::support::{Accounts, bare, exactly, forever, hog, simulate_how};
use proptest::prelude::*;
use schedlab_base::Nanos;
use schedlab_sched::fair::load::WEIGHTS;
use schedlab_sched::kernels::{Feature, How, KERNELS, Kernel};
use schedlab_sim::program::{Load, Op, Start, TaskSpec};
use schedlab_sim::{Options, Stranded};

const MS: Nanos = 1_000_000;
const SECOND: Nanos = 1_000 * MS;
const US_1024: Nanos = 1_024;

/// A run to check.
struct Run {
    who: String,
    load: Load,
    cpus: Nanos,
    duration: Nanos,
    accounts: Accounts,
    ledger: Ledger,
}

impl Run {
    fn new(who: String, load: &Load, cpus: usize, duration: Nanos, accounts: Accounts) -> Self {
        let specs: Vec<TaskSpec> = accounts.names.iter().map(|name| spec_of(load, name)).collect();
        let allowed = |p: usize, cpu| specs[p].initial.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu));
        let ledger = Ledger::of(&accounts.events, specs.len(), cpus, duration, allowed);
        Self { who, load: load.clone(), cpus: cpus as Nanos, duration, accounts, ledger }
    }

    fn of(kernel: &Kernel, cpus: &str, load: &Load, duration: Nanos) -> Self {
        let machine = bare(cpus);
        let how = How { duration: Some(duration), seed: 7, skip_ticks: true };
        let accounts = simulate_how(kernel.name, &machine, load, &[], &how);
        Self::new(kernel.name.to_owned(), load, machine.cpus.len(), duration, accounts)
    }

    fn of_toy(fault: Fault, cpus: &str, load: &Load, duration: Nanos) -> Self {
        let machine = bare(cpus);
        let options = Options {
            duration: Some(duration),
            seed: 7,
            skip_ticks: true,
            tick_period: MS,
            tick_first: MS,
            stranded: Stranded::default(),
            lazy: false,
            inheritance: None,
            stopper: false,
            new_migrate: true,
        };
        let mut accounts = Accounts::default();
        let toy = Toy::new(machine.cpus.len(), fault);
        schedlab_sim::run(toy, &machine, load, &options, &mut accounts, None).expect("a run");
        accounts.finish(duration);
        Self::new(format!("{fault:?}"), load, machine.cpus.len(), duration, accounts)
    }

    fn fail<T>(&self, what: String) -> Result<T, String> {
        Err(format!("{}: {what}", self.who))
    }
}

/// Returns the specification of a task; a child is named after its template.
fn spec_of(load: &Load, name: &str) -> TaskSpec {
    let named = |spec: &&TaskSpec| {
        let rest = name.strip_prefix(&spec.name);
        rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('-').is_some_and(|n| n.parse::<u32>().is_ok()))
    };
    load.tasks.iter().find(|spec| spec.name == name).or_else(|| load.templates.iter().find(named)).unwrap().clone()
}

fn nices(load: &Load) -> Vec<i8> {
    load.tasks.iter().map(|spec| spec.initial.nice.unwrap_or(0)).collect()
}

/// Checks that no task is on two CPUs, is on a CPU that it may not use, or runs while it sleeps.
fn each_in_its_place(run: &Run) -> Result<(), String> {
    run.ledger.faults.first().map_or(Ok(()), |fault| run.fail(fault.clone()))
}

/// How much a program works at most; none if it does not end. Jobs may all be done by one task.
fn work(program: &[Op], load: &Load) -> Option<Nanos> {
    let run = |op: &Op| match op {
        Op::Run(length) => length.mean,
        Op::Jobs(list) => {
            let list = &load.jobs[*list as usize];
            let job = |n| work(list.job(n).expect("there are so many"), load).unwrap_or(0);
            (0..list.total).map(job).sum()
        }
        _ => 0,
    };
    (!matches!(program.first(), Some(Op::LoopStart { .. }))).then(|| program.iter().map(run).sum())
}

/// Checks that two accounts of the time agree and add up to the CPUs' time; that a task whose program has ended has run
/// for exactly the program's length; and that a lone CPU is never idle while a task waits for it.
fn time_is_conserved(run: &Run) -> Result<(), String> {
    let ran: Vec<Nanos> = run.accounts.tasks.iter().map(|t| t.run).collect();
    if ran != run.ledger.ran {
        return run.fail(format!("{ran:?} or {:?}", run.ledger.ran));
    }
    let busy: Nanos = ran.iter().sum();
    if busy + run.ledger.idle != run.cpus * run.duration {
        return run.fail(format!("{busy} + {} idle on {} CPUs", run.ledger.idle, run.cpus));
    }
    for (task, name) in run.accounts.tasks.iter().zip(&run.accounts.names) {
        let whole = work(&spec_of(&run.load, name).program, &run.load);
        if whole.is_some_and(|whole| task.run > whole) {
            return run.fail(format!("{name} ran for {} of {whole:?}", task.run));
        }
    }
    if run.cpus == 1 && run.ledger.wasted > 0 {
        return run.fail(format!("idle for {} while somebody waits", run.ledger.wasted));
    }
    Ok(())
}

/// Checks that no task waits for longer than `bound`.
fn nobody_is_forgotten(run: &Run, bound: Nanos) -> Result<(), String> {
    match run.ledger.longest_wait.iter().position(|wait| *wait > bound) {
        None => Ok(()),
        Some(p) => {
            let (name, wait) = (&run.accounts.names[p], run.ledger.longest_wait[p]);
            run.fail(format!("{name} waited for {wait}, more than {bound}"))
        }
    }
}

/// Checks that hogs get CPU time in proportion to their weights, within 2%.
fn weights_are_honoured(run: &Run) -> Result<(), String> {
    let weights: Vec<f64> = nices(&run.load).iter().map(|n| WEIGHTS[(*n + 20) as usize] as f64).collect();
    let sum: f64 = weights.iter().sum();
    for (task, weight) in run.accounts.tasks.iter().zip(&weights) {
        let due = run.duration as f64 * weight / sum;
        if (task.run as f64 / due - 1.0).abs() > 0.02 {
            return run.fail(format!("weight {weight} of {sum}: {} for {due}", task.run));
        }
    }
    Ok(())
}

/// Returns the longest time that an ordinary task of `load`, with nice levels -5 to 5, may wait on one CPU under this
/// scheduler.
fn longest_wait(kernel: &Kernel, load: &Load) -> Nanos {
    let n = load.tasks.len() as Nanos;
    match kernel.scheduler {
        // Two epochs, and in each the others' counters, of up to twice 25 ticks of 10 ms (nice -5 under 2.0 and 2.2).
        "counters" | "goodness" | "O(n)" => 2 * (n - 1) * 2 * 250 * MS,
        // Twice, once expired and once active: interactive tasks stay active for a second for each task and one more,
        // and then every other task's slice comes first, of 500 ms at nice -5 (200 under 2.6.0).
        "O(1)" => 2 * ((n + 1) * SECOND + n * 500 * MS),
        // Virtual runtimes differ by at most what the lightest task runs in a slice (32 ms for all) and a tick (10 ms),
        // and by a sleeper's credit (20 ms). The weights of all tasks run through that before this task's turn comes.
        "CFS" | "EEVDF" => {
            let weights = nices(load).into_iter().map(|nice| WEIGHTS[(nice + 20) as usize]);
            let (all, least) = (weights.clone().sum::<u64>(), weights.min().unwrap());
            42 * MS * all / least + 20 * MS * all / 1024
        }
        "BFS" => nices(load).iter().map(|nice| bfs_bound(load, *nice)).max().unwrap(),
        // The time to the next boost and its tick, then for each other task a turn at the top and a tick.
        "MLFQ" => 1_001 * MS + (n - 1) * 11 * MS,
        // The time until the global pass has caught up with the task's own, and a turn of each other task that may come
        // first.
        "Stride" => {
            let tickets = nices(load).into_iter().map(|nice| 20 - i64::from(nice));
            let (all, least) = (tickets.clone().sum::<i64>() as u64, tickets.min().unwrap() as u64);
            11 * MS * (2 * all / least + n)
        }
        // No bound is known here; at least no task waits for ever.
        _ => 30 * SECOND,
    }
}

/// Returns how far ahead BFS sets the deadline of this nice level.
fn bfs_deadline(nice: i8) -> Nanos {
    let ratio = (0..nice + 20).fold(128, |ratio: Nanos, _| ratio * 11 / 10);
    ratio * 6 * ((1 << 20) / 128)
}

/// BFS's bound from its module's documentation, `D(k) - D(least) + (n - 1) * turn`. A turn is a slice of 6144 times
/// 1024 ns, a tick of 1 ms by which its end is noticed late, and at most the same again by rounding.
fn bfs_bound(load: &Load, nice: i8) -> Nanos {
    let least = nices(load).iter().map(|nice| bfs_deadline(*nice)).min().unwrap();
    bfs_deadline(nice) - least + (load.tasks.len() as Nanos - 1) * bfs_turn()
}

fn bfs_turn() -> Nanos {
    6_144 * US_1024 + 2 * MS
}

fn bfs() -> &'static Kernel {
    schedlab_sched::kernels::find("bfs").unwrap()
}

fn checked(result: Result<(), String>) -> Result<(), TestCaseError> {
    result.map_err(TestCaseError::fail)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn time_is_conserved_and_everybody_in_place(
        load in loads(),
        cpus in prop_oneof![Just("1"), Just("3"), Just("2x2")],
    ) {
        for kernel in KERNELS {
            let run = Run::of(kernel, cpus, &load, SECOND / 2);
            checked(each_in_its_place(&run))?;
            checked(time_is_conserved(&run))?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_wait_ends_within_the_schedulers_bound(load in hogs_and_sleepers(-5..=5)) {
        for kernel in KERNELS {
            let bound = longest_wait(kernel, &load);
            checked(nobody_is_forgotten(&Run::of(kernel, "1", &load, bound + 2 * SECOND), bound))?;
        }
    }

    /// Only the fair schedulers guarantee shares by weight. In O(1) and earlier schedulers nice sets the length of
    /// slices, in BFS the deadlines, and in the feedback queue nothing.
    #[test]
    fn fair_schedulers_honour_weights(nices in proptest::collection::vec(-8i8..=8, 2..6)) {
        let tasks = nices.iter().enumerate().map(|(i, nice)| hog(&format!("hog-{i}"), *nice)).collect();
        let load = Load { tasks, ..Load::default() };
        let weights = nices.iter().map(|nice| WEIGHTS[(*nice + 20) as usize]);
        // The lightest gets 5 seconds, since its turns are some ms long.
        let duration = 5 * SECOND * weights.clone().sum::<u64>() / weights.min().unwrap();
        for kernel in KERNELS.iter().filter(|k| !k.lacks(Feature::Groups)) {
            checked(weights_are_honoured(&Run::of(kernel, "1", &load, duration)))?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn bfs_keeps_its_bound_for_each_nice_level(
        load in hogs_and_sleepers(-20..=19),
        cpus in prop_oneof![Just("1"), Just("3"), Just("2x2")],
    ) {
        let run = Run::of(bfs(), cpus, &load, 20 * SECOND);
        for (p, nice) in nices(&load).into_iter().enumerate() {
            // With several CPUs, it takes another turn until one of them looks at the queue.
            let bound = bfs_bound(&load, nice) + if run.cpus > 1 { bfs_turn() } else { 0 };
            let wait = run.ledger.longest_wait[p];
            let name = &run.accounts.names[p];
            prop_assert!(wait <= bound, "{name} of nice {nice} waited for {wait}, more than {bound}");
        }
    }
}

#[test]
fn bfs_is_a_round_robin_among_equals() {
    for n in 2..8 {
        let tasks = (0..n).map(|i| hog(&format!("hog-{i}"), 0)).collect();
        let run = Run::of(bfs(), "1", &Load { tasks, start: Start::Threads, ..Load::default() }, 10 * SECOND);
        assert!(run.ledger.longest_wait.iter().all(|wait| *wait == (n - 1) * 6 * MS), "{:?}", run.ledger.longest_wait);
    }
}

/// Hogs of several weights, one of them pinned to CPU 1 of two, and sleepers.
fn canary_load() -> Load {
    let sleeper = |name: &str| forever(name, 0, vec![Op::Run(exactly(MS)), Op::Sleep(exactly(9 * MS))]);
    let mut pinned = hog("pinned", 0);
    pinned.initial.cpus = Some(vec![1]);
    Load { tasks: vec![hog("hog", 0), hog("nice", 5), pinned, sleeper("a"), sleeper("b")], ..Load::default() }
}

fn hogs_only() -> Load {
    Load { tasks: vec![hog("hog", 0), hog("nice", 5), hog("rude", -3)], ..Load::default() }
}

#[test]
fn a_sound_scheduler_passes_every_property() {
    let run = Run::of_toy(Fault::Nothing, "2", &canary_load(), 10 * SECOND);
    let all = [each_in_its_place(&run), time_is_conserved(&run), nobody_is_forgotten(&run, SECOND)];
    assert_eq!(all, [Ok(()), Ok(()), Ok(())]);
    let alone = Run::of_toy(Fault::Nothing, "1", &hogs_only(), 100 * SECOND);
    assert_eq!([time_is_conserved(&alone), weights_are_honoured(&alone)], [Ok(()), Ok(())]);
}

#[test]
fn planted_faults_are_caught() {
    let forgets = Run::of_toy(Fault::Forgets, "2", &canary_load(), 10 * SECOND);
    assert!(nobody_is_forgotten(&forgets, SECOND).unwrap_err().contains("waited"));
    let strays = Run::of_toy(Fault::IgnoresAffinity, "2", &canary_load(), 10 * SECOND);
    assert!(each_in_its_place(&strays).unwrap_err().contains("may not run on CPU 0"));
    let levels = Run::of_toy(Fault::IgnoresWeights, "1", &hogs_only(), 100 * SECOND);
    assert!(weights_are_honoured(&levels).unwrap_err().contains("weight"));
    let idles = Run::of_toy(Fault::Idles, "1", &hogs_only(), 10 * SECOND);
    assert!(time_is_conserved(&idles).unwrap_err().contains("while somebody waits"));
}

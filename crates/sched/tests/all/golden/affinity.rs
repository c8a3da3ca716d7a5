//! What becomes of a task's affinity when its CPUs go offline and come back, under every kernel.

use crate::support::registry::releases;
use crate::support::{
    Accounts, bare, exactly, forever, hog, lane, on, once, pinned, run as work, simulate_at_1000_hz, simulate_how,
};
use schedlab_base::{Nanos, Payload, v, v2_6};
use schedlab_sched::kernels::{How, KERNELS, Kernel, find};
use schedlab_sim::program::{Hotplug, Load, Op, Setting, Start, TaskSpec};

const MS: Nanos = 1_000_000;

/// The kernels that have several CPUs.
fn kernels() -> impl Iterator<Item = &'static Kernel> {
    KERNELS.iter().copied().filter(|kernel| kernel.most_cpus().is_none())
}

/// CPU 1 of two is offline for a span of time.
fn away(tasks: Vec<TaskSpec>, from: Nanos, to: Nanos) -> Load {
    let change = |at, online| Hotplug { at, cpu: 1, online };
    Load { tasks, hotplug: vec![change(from, false), change(to, true)], ..Load::default() }
}

/// A run of 1 s on two CPUs. No task may have run outside the affinity that the trace records.
fn run(kernel: &Kernel, load: &Load) -> Accounts {
    let how = How { duration: Some(1000 * MS), seed: 1, skip_ticks: true };
    let accounts = simulate_how(kernel.name, &bare("2"), load, &[], &how);
    for event in &accounts.events {
        if let Payload::Switch { next, .. } = event.what
            && next != 0
        {
            let cpus = affinity(&accounts, next, event.time);
            assert!(cpus.contains(&event.cpu), "{}: {next} at {} on {}: {cpus:?}", kernel.name, event.time, event.cpu);
        }
    }
    accounts
}

/// The affinity of a task that was recorded last before `time`, or at it.
fn affinity(accounts: &Accounts, tid: i32, time: Nanos) -> Vec<u32> {
    let record = accounts.affinities.iter().rfind(|record| record.tid == tid && record.time <= time);
    record.expect("every task has one").cpus.iter().collect()
}

/// 2.6.24 to 5.1 leave a task on the CPUs that were online when it lost its own.
fn to_online(kernel: &Kernel) -> bool {
    kernel.release.is_some_and(|release| (("2.6.24".parse().unwrap())..("5.2".parse().unwrap())).contains(&release))
}

#[test]
fn a_child_may_use_its_parents_cpus_unless_it_says_otherwise() {
    let parent = pinned(once("P", vec![work(5), Op::Fork(0), work(50)]), 1);
    let mut elsewhere = hog("C", 0);
    elsewhere.initial.cpus = Some(vec![0]);
    for (child, cpus) in [(hog("C", 0), [1]), (elsewhere, [0])] {
        for hotplug in [vec![], vec![Hotplug { at: 900 * MS, cpu: 1, online: false }]] {
            let (tasks, templates) = (vec![parent.clone()], vec![child.clone()]);
            let load = Load { tasks, templates, hotplug, ..Load::default() };
            for kernel in kernels() {
                assert_eq!(affinity(&run(kernel, &load), 2, 800 * MS), cpus, "{}", kernel.name);
            }
        }
    }
}

#[test]
fn a_task_that_lost_its_cpu_never_gets_its_affinity_back() {
    for kernel in kernels() {
        let accounts = run(kernel, &away(vec![pinned(hog("t", 0), 1), pinned(hog("other", 0), 0)], 100 * MS, 200 * MS));
        assert_eq!(affinity(&accounts, 1, 99 * MS), [1], "{}", kernel.name);
        assert_eq!(affinity(&accounts, 1, 150 * MS), [0], "{}", kernel.name);
        let after: &[u32] = if to_online(kernel) { &[0] } else { &[0, 1] };
        assert_eq!(affinity(&accounts, 1, 1000 * MS), after, "{}", kernel.name);
        // Two tasks, two CPUs: only where it may use CPU 1 again is it not held back by the other.
        let ran = accounts.named("t").run;
        let (least, most) = if to_online(kernel) { (500, 600) } else { (850, 1000) };
        assert!((least * MS..most * MS).contains(&ran), "{}: {ran}", kernel.name);
    }
}

/// The task starts at 0, when its CPU has gone already, so its request is refused and it keeps every CPU.
#[test]
fn a_request_for_a_cpu_that_is_offline_is_refused() {
    for kernel in kernels() {
        for start in [Start::Wake, Start::Fork, Start::Threads] {
            for back in [1000, 50 * MS] {
                let load = Load { start, ..away(vec![pinned(hog("t", 0), 1)], 0, back) };
                let load =
                    Load { tasks: load.tasks.into_iter().map(|t| TaskSpec { start: 500, ..t }).collect(), ..load };
                let accounts = run(kernel, &load);
                assert_eq!(affinity(&accounts, 1, 1000 * MS), [0, 1], "{}", kernel.name);
                assert!(accounts.named("t").run > 990 * MS, "{}: {}", kernel.name, accounts.named("t").run);
            }
        }
    }
}

#[test]
fn a_running_task_keeps_its_affinity_when_another_is_refused() {
    let moves =
        TaskSpec { program: vec![Op::Run(exactly(20 * MS)), Op::Set(0), Op::Run(exactly(100 * MS))], ..hog("t", 0) };
    let settings = vec![Setting { cpus: Some(vec![1]), ..Setting::default() }];
    let load = Load { settings, ..away(vec![pinned(moves, 0)], 10 * MS, 50 * MS) };
    for kernel in kernels() {
        let accounts = run(kernel, &load);
        assert_eq!(affinity(&accounts, 1, 1000 * MS), [0], "{}", kernel.name);
    }
}

/// It sleeps from 1 to 301 ms and so on. Up to 2.6.37 the kernel moves sleeping tasks too. Later ones leave it alone.
#[test]
fn a_task_that_sleeps_meanwhile_keeps_its_affinity_from_2_6_38_on() {
    let sleeper = || pinned(forever("t", 0, vec![Op::Run(exactly(MS)), Op::Sleep(exactly(300 * MS))]), 1);
    for kernel in kernels() {
        let accounts = run(kernel, &away(vec![sleeper()], 100 * MS, 200 * MS));
        let loses = kernel.release.is_some_and(|release| release < "2.6.38".parse().unwrap());
        let after: &[u32] = match (loses, to_online(kernel)) {
            (false, _) => &[1],
            (true, true) => &[0],
            (true, false) => &[0, 1],
        };
        assert_eq!(affinity(&accounts, 1, 1000 * MS), after, "{}", kernel.name);
        // When it wakes while its CPU is away, it loses its affinity under every kernel.
        let accounts = run(kernel, &away(vec![sleeper()], 100 * MS, 400 * MS));
        let after: &[u32] = if to_online(kernel) { &[0] } else { &[0, 1] };
        assert_eq!(affinity(&accounts, 1, 1000 * MS), after, "{}", kernel.name);
    }
}

/// A new task whose parent's CPU is offline was put there by O(1).
#[test]
fn a_task_is_never_born_on_a_cpu_that_is_offline() {
    let born = TaskSpec { start: 5 * MS, ..hog("t", 0) };
    for kernel in kernels() {
        for start in [Start::Wake, Start::Fork, Start::Threads] {
            let hotplug = vec![Hotplug { at: MS, cpu: 0, online: false }];
            let load = Load { start, hotplug, tasks: vec![born.clone()], ..Load::default() };
            let accounts = run(kernel, &load);
            assert!(accounts.named("t").run > 990 * MS, "{}", kernel.name);
        }
    }
}

/// `do_set_cpus_allowed` puts the running task back and sets it anew, from 4.3 on. A wakes at 50.5 beside B on CPU 0,
/// and may no longer use CPU 1 from 54.5 on (its 4 ms of work later). CFS credits it 6 ms for its sleep, and gives it 6
/// ms, up to the tick at 57: B is first by then. Set anew, its slice begins at 54.5, and ends at 61.
///
/// In 6.6 B's requests, of 5.5 ms, end at each sixth tick, so A runs from 54 on. It is set anew after 4.25 ms, and
/// begins a new request as it is placed again: up to the tick at 64, not 60. Later its old one goes on
/// (`rel_deadline`): A runs from 51 on, as B is not protected any more and owes time (`did_preempt_short`), up to the
/// tick at 57. From 6.17 on a task is protected only when it is picked: A is not after 55.25.
#[test]
fn a_running_task_is_set_anew_with_its_new_affinity_from_4_3_on() {
    let tasks = |us: Nanos| {
        let a = once("A", vec![Op::Run(exactly(us * 1_000)), Op::Set(0), work(500)]);
        let a = TaskSpec { cpu: Some(0), start: 50_500_000, ..on(a, [0, 1]) };
        vec![pinned(hog("B", 0), 0), pinned(hog("C", 0), 1), pinned(hog("D", 0), 1), a]
    };
    let load = |us| {
        let settings = vec![Setting { cpus: Some(vec![0]), ..Setting::default() }];
        Load { tasks: tasks(us), settings, ..Load::default() }
    };
    for kernel in releases(v2_6(38)..v(7, 0)) {
        let release = find(kernel).unwrap().release.unwrap();
        let (us, set, turns) = match release {
            release if release < v(4, 3) => (4_000, &[][..], "0 B, 50.5 A, 57 B"),
            release if release < v(6, 6) => (4_000, &[][..], "0 B, 50.5 A, 61 B"),
            release if release < v(6, 8) => (4_250, &[("base_slice_ns", "5500000")][..], "0 B, 54 A, 64 B"),
            release if release < v(6, 17) => (4_250, &[("base_slice_ns", "5500000")][..], "0 B, 51 A, 57 B"),
            _ => (4_250, &[("base_slice_ns", "5500000")][..], "0 B, 51 A, 56 B"),
        };
        let accounts = simulate_at_1000_hz(kernel, "2", &load(us), set, 66);
        let ours = lane(&accounts, 0);
        assert!(ours.starts_with(turns), "{kernel}: {ours}");
    }
}

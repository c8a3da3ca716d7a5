//! A thread of the kernel, the stopper (`migration/N`), moves a task that is running.

use crate::support::registry::releases;
use crate::support::{MS, bare, exactly, forever, hog, once, pinned, run, simulate, sleep};
use schedlab_base::{Payload, v};
use schedlab_sched::kernels::{self, KERNELS};
use schedlab_sim::program::{Load, Op, Policy, Setting, TaskSpec};

const SWITCH: u64 = 2_000;

/// A FIFO task of the highest priority runs for 10 ms on CPU 0 and then asks for CPU 1. A task waits on CPU 0 from 1 ms
/// on. A kernel with a stopper switches to that first (`migration_cpu_stop`; `migration_thread` before 2.6.35),
/// whatever the class of the running task, and only then to the task that waits, which gets its work done a switch
/// later. In 2.4 and BFS `set_cpus_allowed` makes the CPU reschedule, and the task goes by itself.
#[test]
fn a_task_that_asks_for_another_cpu_is_moved_by_the_stopper() {
    let mut machine = bare("2");
    machine.costs.context_switch_ns = SWITCH;
    let mut mover = pinned(once("mover", vec![run(10), Op::Set(0), run(10)]), 0);
    (mover.initial.policy, mover.initial.rt_priority) = (Some(Policy::Fifo), Some(99));
    let mut waiter = pinned(once("waiter", vec![run(5)]), 0);
    waiter.start = 1_000_000;
    let settings = vec![Setting { cpus: Some(vec![1]), ..Setting::default() }];
    let load = Load { tasks: vec![mover, waiter], settings, ..Load::default() };
    for kernel in KERNELS.iter().filter(|kernel| kernel.most_cpus().is_none()) {
        let accounts = simulate(kernel.name, &machine, &load, &[], 100_000_000);
        let without = ["linux-2.0", "linux-2.2", "linux-2.4", "bfs", "mlfq", "stride"].contains(&kernel.name);
        let switches = if without { 1 } else { 2 };
        assert_eq!(accounts.named("waiter").run, 5_000_000 + switches * SWITCH, "{}", kernel.name);
        assert_eq!(accounts.named("mover").run, 20_000_000 + 2 * SWITCH, "{}: a switch on each CPU", kernel.name);
    }
}

/// A hog waits on CPU 0 while a task of a higher class runs there for 30 of each 50 ms, and CPU 1 becomes idle at 528.5
/// ms, 1.5 ms before that task sleeps. The hog is cache-hot, so that balancing does not take it at the first attempt.
/// But it is alone on a CPU of reduced capacity, which is a reason to push at once (`need_active_balance`), if only
/// the task that runs there may run on CPU 1: the kernel asks that of `busiest->curr`, whatever its class. So the
/// stopper moves the hog at 528.5 ms from behind a task that is free, although the hog does not run, and from behind a
/// pinned one not before the hog runs: at the first tick after 530 ms.
#[test]
fn the_stopper_pushes_a_fair_task_if_the_running_one_of_any_class_may_move() {
    let above = |policy, cpus: Option<Vec<u32>>| {
        let mut spec = TaskSpec { cpu: Some(0), ..forever("above", 0, vec![run(30), sleep(20)]) };
        (spec.initial.policy, spec.initial.cpus) = (Some(policy), cpus);
        match policy {
            Policy::Deadline => spec.initial.dl = Some((31 * MS, 50 * MS, 50 * MS)),
            _ => spec.initial.rt_priority = Some(10),
        }
        spec
    };
    let moved = |kernel: &str, above: TaskSpec| {
        let hog = TaskSpec { cpu: Some(0), ..hog("hog", 0) };
        let mut other = once("other", vec![Op::Run(exactly(528 * MS + MS / 2))]);
        // It is so heavy that its CPU pulls nothing meanwhile.
        (other.cpu, other.initial.nice, other.initial.cpus) = (Some(1), Some(-20), Some(vec![1]));
        let load = Load { tasks: vec![hog, other, above], ..Load::default() };
        let kernel = kernels::find(kernel).unwrap();
        let find = |name: &str| kernel.tunables.iter().find(|t| t.name.contains(name));
        let mut set = vec![("hz", "250".to_owned())];
        set.extend(find("migration_cost").map(|t| (t.name, "100000000".to_owned())));
        set.extend(find("NI_RANDOM").map(|t| (t.name, "off".to_owned())));
        let accounts = simulate(kernel.name, &bare("2"), &load, &set, 600 * MS);
        let mut moves = accounts.events.iter().filter(|e| matches!(e.what, Payload::Migrate { tid: 1, .. }));
        moves.next().map(|e| e.time)
    };
    for kernel in releases(v(5, 5)..) {
        let free = Some(vec![0, 1]);
        assert_eq!(moved(kernel, above(Policy::Fifo, free)), Some(528 * MS + MS / 2), "{kernel}: FIFO, free");
        assert_eq!(moved(kernel, above(Policy::Deadline, None)), Some(528 * MS + MS / 2), "{kernel}: deadline");
    }
    // Before 6.0 one task on a CPU of reduced capacity was no reason to look there.
    for kernel in releases(v(6, 0)..) {
        assert_eq!(moved(kernel, above(Policy::Fifo, Some(vec![0]))), Some(532 * MS), "{kernel}: FIFO, pinned");
    }
}

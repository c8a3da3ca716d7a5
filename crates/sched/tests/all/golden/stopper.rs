//! A thread of the kernel, the stopper (`migration/N`), moves a task that is running.

use crate::support::{bare, once, pinned, run, simulate};
use schedlab_sched::kernels::KERNELS;
use schedlab_sim::program::{Load, Op, Policy, Setting};

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

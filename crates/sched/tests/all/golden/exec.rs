//! A task that becomes another program may move to an idler CPU first.

use crate::support::registry::releases;
use crate::support::{Accounts, MS, bare, exactly, hog, once, pinned, run, simulate};
use schedlab_base::{Payload, v, v2_6};
use schedlab_sim::program::{Load, Op, Policy, Setting, TaskSpec};

const ALL: [u32; 4] = [0, 1, 2, 3];

/// A task that begins on CPU 0, works there, may use every CPU from then on, and becomes another program at once.
fn execs() -> TaskSpec {
    execs_after(1)
}

fn execs_after(ms: u64) -> TaskSpec {
    pinned(once("p", vec![run(ms), Op::Set(0), Op::Exec, run(1)]), 0)
}

/// The CPU on which the task becomes another program, and how often it has moved by then.
fn at_exec(accounts: &Accounts) -> (u32, usize) {
    let at = accounts.events.iter().position(|e| matches!(e.what, Payload::Exec { tid: 1, old: 1 })).expect("it does");
    let moves = accounts.events[..at].iter().filter(|e| matches!(e.what, Payload::Migrate { tid: 1, .. })).count();
    (accounts.events[at].cpu, moves)
}

fn under(kernel: &str, machine: &str, tasks: Vec<TaskSpec>) -> (u32, usize) {
    let machine = bare(machine);
    let cpus = (0..machine.cpus.len() as u32).collect();
    let settings = vec![Setting { cpus: Some(cpus), ..Setting::default() }];
    let load = Load { tasks, settings, ..Load::default() };
    at_exec(&simulate(kernel, &machine, &load, &[], 5_000_000_000))
}

/// `sched_exec` asks the class with `SD_BALANCE_EXEC`, and the domains of these releases have that flag.
#[test]
fn a_task_leaves_a_busy_cpu_for_an_idle_one() {
    for kernel in releases(v2_6(24)..v(7, 0)).chain(["linux-2.6.11"]) {
        let (cpu, moves) = under(kernel, "4", vec![execs(), pinned(hog("hog", 0), 0)]);
        assert!(cpu != 0 && moves == 1, "{kernel}: CPU {cpu}, {moves} moves");
        // With every CPU equally busy there is nothing to gain.
        let hogs = ALL.map(|cpu| pinned(hog(&format!("hog-{cpu}"), 0), cpu));
        let (cpu, moves) = under(kernel, "4", [execs()].into_iter().chain(hogs).collect());
        if find(kernel) >= v(5, 10) {
            assert_eq!((cpu, moves), (0, 0), "{kernel}");
        }
    }
}

fn find(kernel: &str) -> schedlab_base::Release {
    schedlab_sched::kernels::find(kernel).expect("a kernel").release.expect("a release")
}

/// From 5.5 on the task does not count where it runs (`cpu_load_without`, `idle_cpu_without`), so that an idle CPU is
/// no better. 2.6.11 looks at the number of tasks first. Between them its own load drives the task away.
#[test]
fn a_task_that_is_alone_stays() {
    for kernel in releases(v(5, 10)..v(7, 0)).chain(["linux-2.6.11"]) {
        assert_eq!(under(kernel, "4", vec![execs()]), (0, 0), "{kernel}");
    }
}

/// On a machine with one node 2.6.18 keeps a domain of that node with a single group (`cpu_attach_domain` skips a
/// comparison after it has removed a domain), and `sched_balance_self` goes down from there to smaller spans only.
#[test]
fn linux_2_6_18_balances_between_nodes() {
    let busy = || vec![execs_after(50), pinned(hog("hog", 0), 0)];
    assert_eq!(under("linux-2.6.18", "4", busy()), (0, 0));
    let (cpu, moves) = under("linux-2.6.18", "z800", busy());
    let node = |cpu: u32| bare("z800").cpus[cpu as usize].place.node;
    assert!(node(cpu) != node(0) && moves == 1, "CPU {cpu}, {moves} moves");
}

/// `select_task_rq_rt` and `select_task_rq_dl` leave the task where it is unless it wakes or is new.
#[test]
fn a_real_time_task_stays() {
    for kernel in releases(v2_6(24)..v(7, 0)) {
        let mut task = execs();
        (task.initial.policy, task.initial.rt_priority) = (Some(Policy::Fifo), Some(5));
        assert_eq!(under(kernel, "4", vec![task, pinned(hog("hog", 0), 0)]), (0, 0), "{kernel}");
    }
}

/// `sched_balance_exec` of 2.6.0 needs several nodes, and three tasks on the CPU (`sched_best_cpu`).
#[test]
fn linux_2_6_0_balances_between_nodes() {
    let hogs = |n| (0..n).map(|i| pinned(hog(&format!("hog-{i}"), 0), 0));
    let on = |machine, n| under("linux-2.6.0", machine, [execs()].into_iter().chain(hogs(n)).collect());
    assert_eq!(on("4", 2), (0, 0));
    assert_eq!(on("z800", 1), (0, 0));
    let (cpu, moves) = on("z800", 2);
    let node = |cpu: u32| bare("z800").cpus[cpu as usize].place.node;
    assert!(node(cpu) != node(0) && moves == 1, "CPU {cpu}, {moves} moves");
}

#[test]
fn kernels_without_balancing_at_exec_go_on() {
    for kernel in ["linux-1.2", "linux-2.4", "bfs", "rsdl", "stride", "mlfq"] {
        assert_eq!(under(kernel, "4", vec![execs(), pinned(hog("hog", 0), 0)]), (0, 0), "{kernel}");
    }
}

/// On each CPU a task that used 40% of it has just become a hog, and p shares CPU 0. Without p both have capacity to
/// spare (`group_has_capacity`), and p stays. With the 600 that p is expected to need (`util_est`), which
/// `cpu_util_without` subtracts, CPU 0 would have none.
#[test]
fn what_a_task_is_expected_to_need_does_not_count_against_its_cpu() {
    let timer = |ms| Op::Timer { timer: 0, period: exactly(ms * MS), absolute: true };
    let periodic = |cpu| {
        let rounds = [Op::LoopStart { times: Some(30) }, run(4), timer(10), Op::LoopEnd { start: 0 }, run(1_000)];
        pinned(once(&format!("periodic-{cpu}"), rounds.into()), cpu)
    };
    let execs = pinned(once("p", vec![run(150), timer(290), run(8), Op::Set(0), Op::Exec, run(1)]), 0);
    let load = Load {
        tasks: vec![execs, periodic(0), periodic(1)],
        settings: vec![Setting { cpus: Some(vec![0, 1]), ..Setting::default() }],
        timers: vec![("own".into(), true)],
        ..Load::default()
    };
    for kernel in releases(v(5, 5)..v(7, 0)) {
        let accounts = simulate(kernel, &bare("2"), &load, &[("hz", "1000".into())], 400 * MS);
        assert_eq!(at_exec(&accounts), (0, 0), "{kernel}");
    }
}

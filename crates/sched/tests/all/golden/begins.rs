//! Tasks that were there before the load begins.

use crate::support::registry::releases;
use crate::support::{Accounts, MS, bare, hog, once, pinned, rt, run, simulate, sleep};
use schedlab_base::{Payload, v, v2_6};
use schedlab_sched::kernels::KERNELS;
use schedlab_sim::program::{Amount, Hotplug, Load, Op, Policy, Start, TaskSpec};

fn on(cpu: u32, spec: TaskSpec) -> TaskSpec {
    TaskSpec { cpu: Some(cpu), ..spec }
}

fn under(kernel: &str, tasks: Vec<TaskSpec>, sems: usize, ns: u64) -> Accounts {
    let load = Load { tasks, sems: (0..sems).map(|n| format!("s{n}")).collect(), ..Load::default() };
    simulate(kernel, &bare("2"), &load, &[], ns)
}

/// The CPUs on whose queues the tasks were first, by thread id.
fn first_cpus(accounts: &Accounts, tasks: i32) -> Vec<Option<u32>> {
    let woken = |e: &schedlab_base::Event, of: i32| match e.what {
        Payload::Wakeup { tid, target, .. } if tid == of => Some(target),
        _ => None,
    };
    (1..=tasks).map(|tid| accounts.events.iter().find_map(|e| woken(e, tid))).collect()
}

#[test]
fn runnable_tasks_begin_on_the_queue_that_they_were_on() {
    for kernel in ["linux-2.6.11", "linux-2.6.32", "linux-6.1", "linux-6.12"] {
        let tasks = || ["a", "b", "c"].map(|name| hog(name, 0)).into_iter();
        let accounts = under(kernel, tasks().map(|task| on(1, task)).collect(), 0, 500_000);
        assert_eq!(first_cpus(&accounts, 3), [Some(1); 3], "{kernel}");
        let accounts = under(kernel, tasks().collect(), 0, 500_000);
        assert!(first_cpus(&accounts, 3).contains(&Some(0)), "{kernel}: without it they are spread");
    }
}

#[test]
fn a_sleeper_wakes_from_the_cpu_where_it_was_and_need_not_run_before() {
    let sleep = |ms: u64| Op::Sleep(Amount { mean: ms * 1_000_000, sd: 0 });
    let tasks = vec![
        on(1, once("sleeps", vec![sleep(3), run(1)])),
        on(1, once("waits", vec![Op::SemWait(0), run(1)])),
        on(0, once("wakes", vec![run(5), Op::SemPost(0), run(1)])),
    ];
    let accounts = under("linux-6.1", tasks, 1, 20_000_000);
    let waking = |of: i32| {
        let what = |e: &schedlab_base::Event| match e.what {
            Payload::Waking { tid, target, waker, .. } if tid == of => Some((e.time, target, waker)),
            _ => None,
        };
        accounts.events.iter().filter_map(what).collect::<Vec<_>>()
    };
    assert_eq!(waking(1), [(3_000_000, 1, 0)]);
    let by_the_third = waking(2);
    assert_eq!(by_the_third.iter().map(|(_, target, waker)| (*target, *waker)).collect::<Vec<_>>(), [(1, 3)]);
}

#[test]
fn a_cpu_may_go_before_the_first_task_is_there() {
    for kernel in ["linux-3.18", "linux-6.1", "linux-6.12"] {
        let late = TaskSpec { start: 20_000_000, ..hog("late", 0) };
        let hotplug = vec![Hotplug { at: 5_000_000, cpu: 0, online: false }];
        let load = Load { tasks: vec![late], start: Start::Fork, hotplug, ..Load::default() };
        let accounts = simulate(kernel, &bare("2"), &load, &[], 40_000_000);
        let switched = |e: &schedlab_base::Event| matches!(e.what, Payload::Switch { next: 1, .. }).then_some(e.cpu);
        assert_eq!(accounts.events.iter().find_map(switched), Some(1), "{kernel}");
    }
}

/// A hog forks another on two CPUs. Until 4.8 the child was put on the idle CPU by `set_task_cpu`, which traces a
/// migration; since then by `__set_task_cpu`, as guests of 6.1 and 6.12 show: no fork has one there.
#[test]
fn a_new_task_that_is_placed_elsewhere_has_migrated_until_4_8() {
    let parent = on(0, once("parent", vec![run(1), Op::Fork(0), run(50)]));
    let load = Load { tasks: vec![parent], templates: vec![hog("child", 0)], ..Load::default() };
    for kernel in KERNELS.iter().filter(|kernel| kernel.release.is_some_and(|release| release >= v2_6(26))) {
        let events = simulate(kernel.name, &bare("2"), &load, &[], 2_000_000).events;
        let new = |e: &schedlab_base::Event| match e.what {
            Payload::WakeupNew { tid: 2, target, .. } => Some(target),
            _ => None,
        };
        assert_eq!(events.iter().find_map(new), Some(1), "{}", kernel.name);
        let moves = events.iter().filter(|e| matches!(e.what, Payload::Migrate { tid: 2, .. })).count();
        assert_eq!(moves, usize::from(kernel.release < Some(v(4, 8))), "{}", kernel.name);
    }
}

/// P on CPU 5 forks C while only CPU 1 is idle. C works there, and sleeps until 23 ms. CPU 1 is busy then, and all
/// others are idle: C's recent CPU is the one on which it was forked (`wake_up_new_task`; 4.16 on).
#[test]
fn a_new_task_first_looks_at_its_parents_cpu() {
    for kernel in releases(v(4, 16)..v(7, 0)) {
        let parent = on(5, pinned(once("P", vec![run(1), Op::Fork(0)]), 5));
        let busy = [0, 2, 3, 4, 6, 7].map(|cpu| pinned(once("busy", vec![run(2)]), cpu));
        let later = TaskSpec { start: 10 * MS, ..pinned(hog("later", 0), 1) };
        let tasks: Vec<_> = [parent, later].into_iter().chain(busy).collect();
        let mut child = once("C", vec![run(2), sleep(20), run(5)]);
        child.initial.cpus = Some((0..8).collect());
        let load = Load { templates: vec![child], tasks, ..Load::default() };
        let accounts = simulate(kernel, &bare("8"), &load, &[], 25 * MS);
        let tid = accounts.names.iter().position(|name| name == "C-0").expect("a child") as i32 + 1;
        let queued = |e: &schedlab_base::Event| match e.what {
            Payload::WakeupNew { tid: of, target, .. } | Payload::Wakeup { tid: of, target, .. } if of == tid => {
                Some((e.time / MS, target))
            }
            _ => None,
        };
        let queued: Vec<_> = accounts.events.iter().filter_map(queued).collect();
        assert_eq!(queued, [(1, 1), (23, 5)], "{kernel}");
    }
}

/// Two new tasks on CPU 0 begin with a utilisation of 512 and 256, and with as much as their runnable average, not with
/// 1024 each (`post_init_entity_util_avg`). So CPU 0 has capacity to spare for a third (`group_has_capacity`), and is
/// not overloaded (`group_is_overloaded`, which looks at that average from 5.7 on); CPU 1, all of which a hog uses, has
/// none. Their parent is a real-time task, which takes no part in that.
#[test]
fn a_new_task_has_not_been_waiting_before() {
    let fork = |template| [Op::Run(Amount { mean: 10_000, sd: 0 }), Op::Fork(template)];
    let program = [vec![sleep(300)], fork(0).into(), fork(0).into(), fork(1).into()].concat();
    let parent = rt(on(0, pinned(once("P", program), 0)), Policy::Fifo, 10);
    let child = |mut spec: TaskSpec| {
        (spec.initial.policy, spec.initial.rt_priority) = (Some(Policy::Other), Some(0));
        spec
    };
    let templates = vec![child(pinned(hog("pinned", 0), 0)), child(hog("third", 0))];
    let load = Load { tasks: vec![parent, pinned(hog("old", 0), 1)], templates, ..Load::default() };
    for kernel in releases(v(5, 7)..v(7, 0)) {
        let accounts = simulate(kernel, &bare("2"), &load, &[], 301 * MS);
        let placed = |e: &schedlab_base::Event| match e.what {
            Payload::WakeupNew { tid: 5, target, .. } => Some(target),
            _ => None,
        };
        assert_eq!(accounts.events.iter().find_map(placed), Some(0), "{kernel}");
    }
}

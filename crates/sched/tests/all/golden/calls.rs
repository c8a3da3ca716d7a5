//! What system calls, wake-ups, forks and exits take from the tasks that do them. Times are worked out by hand.

use crate::support::registry::releases;
use crate::support::{
    Account, MS, bare, exactly, forever, hog, lane, once, pinned, run, simulate, simulate_how, sleep,
};
use schedlab_base::{Event, Nanos, Payload, v};
use schedlab_machine::Machine;
use schedlab_sched::kernels::{Feature, How, KERNELS};
use schedlab_sim::program::{Load, Op, Policy};

#[test]
fn a_task_pays_for_each_call_in_which_it_is_blocked() {
    let turns = (0..5).flat_map(|_| [run(1), Op::SemWait(0), sleep(3)]).collect();
    let poster = (0..5).flat_map(|_| [run(2), Op::SemPost(0), sleep(9)]).collect();
    let load = Load {
        tasks: vec![pinned(once("blocked", turns), 0), pinned(once("poster", poster), 1)],
        sems: vec!["s".to_owned()],
        ..Load::default()
    };
    for kernel in KERNELS.iter().filter(|kernel| !kernel.lacks(Feature::Smp)) {
        let ran = |blocking_call_ns| {
            let mut machine = bare("2");
            machine.costs.blocking_call_ns = blocking_call_ns;
            let accounts = simulate(kernel.name, &machine, &load, &[], 1_000 * MS);
            ["blocked", "poster"].map(|name| accounts.named(name).run)
        };
        assert_eq!(ran(0), [5 * MS, 10 * MS], "{}", kernel.name);
        // It waits at the semaphore each time; the last sleep's call ends before the task does.
        assert_eq!(ran(40_000), [5 * MS + 10 * 40_000, 10 * MS + 5 * 40_000], "{}", kernel.name);
    }
}

/// A call that wakes two tasks takes twice as long as one that wakes one, and one that wakes none takes nothing. Where
/// the woken task preempts the waker later than that, the call ends then.
#[test]
fn a_task_pays_for_each_task_that_it_wakes() {
    let waits = |name: &str| pinned(once(name, vec![Op::Suspend(0), run(1)]), 1);
    let waker = pinned(once("waker", vec![run(2), Op::Resume(0), run(2), Op::SemPost(0), run(2)]), 0);
    let load = Load {
        tasks: vec![waker, waits("first"), waits("second")],
        suspensions: vec!["s".to_owned()],
        sems: vec!["nobody waits for it".to_owned()],
        ..Load::default()
    };
    for kernel in KERNELS.iter().filter(|kernel| !kernel.lacks(Feature::Smp)) {
        let mut machine = bare("2");
        machine.costs.waking_call_ns = 30_000;
        let accounts = simulate(kernel.name, &machine, &load, &[], 1_000 * MS);
        let ran = ["waker", "first", "second"].map(|name| accounts.named(name).run);
        assert_eq!(ran, [6 * MS + 60_000, MS, MS], "{}", kernel.name);
    }
    let mut urgent = once("urgent", vec![Op::SemWait(0), run(3)]);
    (urgent.initial.policy, urgent.initial.rt_priority) = (Some(Policy::Fifo), Some(1));
    let waker = once("waker", vec![run(1), Op::SemPost(0), sleep(9)]);
    let load = Load { tasks: vec![waker, urgent], sems: vec!["sem".to_owned()], ..Load::default() };
    let lane_of = |waking_call_ns, own_wakeup_to_switch_ns: Nanos| {
        let mut machine = bare("1");
        machine.costs.waking_call_ns = waking_call_ns;
        machine.costs.own_wakeup_to_switch_ns = own_wakeup_to_switch_ns.into();
        lane(&simulate("linux-6.12", &machine, &load, &[], 100 * MS), 0)
    };
    assert_eq!(lane_of(100_000, 40_000), "0 urgent, 0 waker, 1.04 urgent, 4.04 waker, 4.1 -, 13.1 waker, 13.1 -");
    assert_eq!(lane_of(10_000, 40_000), "0 urgent, 0 waker, 1.04 urgent, 4.04 waker, 4.04 -, 13.04 waker, 13.04 -");
}

/// Who wakes a task on another CPU tells that CPU first if it is idle: here twice, as the third time it is not.
#[test]
fn it_takes_time_to_wake_a_task_on_an_idle_cpu() {
    let slept = [Op::Ask(0), Op::Await, run(1), Op::SemWait(1), run(1), Op::SemWait(2)];
    let sleeper = pinned(once("sleeper", slept.into()), 1);
    let waker = [run(2), Op::SemWait(0), Op::Answer(0), run(3), Op::SemPost(1), run(9), Op::SemPost(2), run(1)];
    let mut third = pinned(once("third", vec![run(5)]), 1);
    third.start = 13 * MS;
    let load = Load {
        tasks: vec![pinned(once("waker", waker.into()), 0), sleeper, third],
        sems: ["questions", "second", "third"].map(str::to_owned).into(),
        ..Load::default()
    };
    let mut machine = bare("2");
    let lanes = |machine: &Machine| {
        let accounts = simulate("linux-6.12", machine, &load, &[], 100 * MS);
        [lane(&accounts, 0), lane(&accounts, 1)].join("; ")
    };
    assert_eq!(
        lanes(&machine),
        "0 waker, 15 -; 0 sleeper, 0 -, 2 sleeper, 3 -, 5 sleeper, 6 -, 13 third, 16 sleeper, 16 third, 18 -"
    );
    machine.costs.idle_wakeup_ns = 500_000.into();
    let told =
        "0 waker, 16 -; 0 sleeper, 0 -, 2.5 sleeper, 3.5 -, 6 sleeper, 7 -, 13 third, 15 sleeper, 15 third, 18 -";
    assert_eq!(lanes(&machine), told);
}

/// A task that forks pays before the child can run, and the child before its program begins and behind it: its parent,
/// which waits for it, is woken before it exits.
#[test]
fn it_takes_time_to_fork_a_task_and_to_end_one() {
    let child = once("child", vec![run(2), Op::SemPost(0)]);
    let load = Load {
        tasks: vec![once("parent", vec![run(1), Op::Fork(0), run(1), Op::SemWait(0), run(1)])],
        templates: vec![child],
        sems: vec!["done".to_owned()],
        ..Load::default()
    };
    for kernel in KERNELS {
        let mut machine = bare("1");
        let ran = |machine: &Machine| {
            let accounts = simulate(kernel.name, machine, &load, &[], 100 * MS);
            ["parent", "child-0"].map(|name| accounts.named(name).run)
        };
        assert_eq!(ran(&machine), [3 * MS, 2 * MS], "{}", kernel.name);
        (machine.costs.forking_call_ns, machine.costs.forked_task_ns) = (300_000, 500_000);
        assert_eq!(ran(&machine), [3_300_000, 2_500_000], "{}", kernel.name);
        machine.costs.exit_ns = 100_000;
        assert_eq!(ran(&machine), [3_400_000, 2_600_000], "{}", kernel.name);
    }
    let mut machine = bare("2");
    let lanes = |machine: &Machine| {
        let accounts = simulate("linux-6.12", machine, &load, &[], 100 * MS);
        [lane(&accounts, 0), lane(&accounts, 1)].join("; ")
    };
    assert_eq!(lanes(&machine), "0 parent, 2 -, 3 parent, 4 -; 1 child-0, 3 -");
    let costs = &mut machine.costs;
    (costs.forking_call_ns, costs.forked_task_ns, costs.exit_ns) = (300_000, 500_000, 100_000);
    assert_eq!(lanes(&machine), "0 parent, 2.3 -, 3.8 parent, 4.9 -; 1.3 child-0, 3.9 -");
}

/// A child is born with its parent's nice level, and sets its own when it first runs and has set itself up: until then
/// the kernel takes it for what its parent is.
#[test]
fn a_child_is_what_its_parent_is_until_it_has_set_itself_up() {
    let mut parent = once("parent", vec![run(1), Op::Fork(0), run(1)]);
    parent.initial.nice = Some(10);
    let mut child = once("child", vec![run(2)]);
    child.initial.nice = Some(-5);
    let load = Load { tasks: vec![parent], templates: vec![child], ..Load::default() };
    for kernel in KERNELS {
        let mut machine = bare("1");
        machine.costs.forked_task_ns = 500_000;
        let accounts = simulate(kernel.name, &machine, &load, &[], 100 * MS);
        let of_child = |event: &Event| match event.what {
            Payload::WakeupNew { tid: 2, prio, .. } | Payload::Exit { tid: 2, prio } => Some(prio),
            _ => None,
        };
        assert_eq!(accounts.events.iter().filter_map(of_child).collect::<Vec<_>>(), [130, 115], "{}", kernel.name);
        assert_eq!(accounts.named("child-0").run, 2_500_000, "{}", kernel.name);
    }
    // Beside a hog one of SCHED_IDLE waits for long, and so does its child, which is of real time afterwards.
    let mut parent = once("parent", vec![run(1), Op::Fork(0), sleep(1)]);
    parent.initial.policy = Some(Policy::Idle);
    let mut child = once("child", vec![run(50)]);
    (child.initial.policy, child.initial.rt_priority) = (Some(Policy::Fifo), Some(1));
    let load = Load { tasks: vec![parent, hog("hog", 0)], templates: vec![child], ..Load::default() };
    let waited = |forked_task_ns| {
        let mut machine = bare("1");
        machine.costs.forked_task_ns = forked_task_ns;
        simulate("linux-6.12", &machine, &load, &[], 9_000 * MS).named("child-0").wait
    };
    assert!(waited(0) > 100 * MS, "{}", waited(0));
    assert!(waited(20 * MS) > 10 * waited(0), "{}", waited(20 * MS));
}

/// A task wakes one of real time on its own CPU, which preempts it when its system call is over, and then sleeps. It is
/// preempted in the call, before it can sleep; what it computes next has the call's time in it.
#[test]
fn a_waker_is_preempted_before_its_next_operation() {
    let with = |after: Vec<Op>| {
        let mut machine = bare("1");
        machine.costs.own_wakeup_to_switch_ns = 20_000.into();
        let waker = forever("waker", 0, [vec![run(1), Op::SemPost(0)], after, vec![sleep(8)]].concat());
        let mut woken = forever("woken", 0, vec![Op::SemWait(0), run(3)]);
        (woken.initial.policy, woken.initial.rt_priority) = (Some(Policy::Fifo), Some(1));
        let load = Load { tasks: vec![waker, woken], sems: vec!["sem".into()], ..Load::default() };
        (machine, load)
    };
    let ((machine, asleep), (_, at_work)) = (with(vec![]), with(vec![run(1)]));
    for kernel in releases(v(2, 6)..) {
        let account = |load: &Load| simulate(kernel, &machine, load, &[], 100 * MS).tasks.swap_remove(0);
        let (first, second) = (account(&asleep), account(&at_work));
        let times = |account: &Account, run| (account.run / run, account.wait / MS, account.run % run);
        assert_eq!(times(&first, 1_020_000), (9, 26, 0), "{kernel}");
        assert_eq!(first.involuntary, 9, "{kernel}");
        assert_eq!((second.run % (2 * MS), second.involuntary), (0, 8), "{kernel}");
    }
}

/// One that wakes another synchronously as it ends, as a child does its parent, is not preempted before it has ended,
/// however soon it would be, and if it posts once more.
#[test]
fn who_ends_is_not_preempted_by_whom_it_wakes() {
    let lane_of = |cost: Nanos, last: &[Op]| {
        let mut machine = bare("1");
        machine.costs.own_wakeup_to_switch_ns = cost.into();
        let mut parent = once("parent", vec![Op::SemWait(0), run(3)]);
        (parent.initial.policy, parent.initial.rt_priority) = (Some(Policy::Fifo), Some(1));
        let child = once("child", [&[run(1)], last].concat());
        let load = Load { tasks: vec![child, parent], sems: vec!["s".into()], ..Load::default() };
        lane(&simulate("linux-6.12", &machine, &load, &[], 100 * MS), 0)
    };
    let (post, synced) = ([Op::SemPost(0)], Op::Synced(Box::new(Op::SemPost(0))));
    for cost in [0, 20_000] {
        for last in [vec![synced.clone()], vec![synced.clone(); 2]] {
            assert_eq!(lane_of(cost, &last), "0 parent, 0 child, 1 parent, 4 -", "{cost}, {} posts", last.len());
        }
    }
    assert_eq!(lane_of(20_000, &post), "0 parent, 0 child, 1.02 parent, 4.02 child, 4.02 -");
    assert_eq!(lane_of(0, &post), "0 parent, 0 child, 1 parent, 4 child, 4 -");
}

/// A timer wakes a real-time task 10 us before the running one would sleep, which is in the interrupt then and returns
/// from it after 20 us: it is preempted, and sleeps when it has its CPU back.
#[test]
fn who_is_interrupted_is_preempted_before_its_next_operation() {
    let mut machine = bare("1");
    machine.costs.timer_to_switch_ns = 20_000.into();
    let mut urgent = once("urgent", vec![run(3)]);
    (urgent.initial.policy, urgent.initial.rt_priority) = (Some(Policy::Fifo), Some(1));
    urgent.start = 4_990_000;
    let load = Load { tasks: vec![once("task", vec![run(5), sleep(8), run(1)]), urgent], ..Load::default() };
    for kernel in releases(v(2, 6)..) {
        let accounts = simulate(kernel, &machine, &load, &[], 100 * MS);
        assert_eq!(lane(&accounts, 0), "0 task, 5.01 urgent, 8.01 task, 8.01 -, 16.01 task, 17.01 -", "{kernel}");
        assert_eq!(accounts.named("task").involuntary, 1, "{kernel}");
    }
}

/// The same at the end of a tick that ends the turn, whether that tick is taken or skipped.
#[test]
fn whose_turn_a_tick_ends_is_preempted_before_its_next_operation() {
    let mut machine = bare("1");
    machine.costs.tick_to_switch_ns = 20_000.into();
    // The first turn of 3 ms is over at the tick at 4 ms. At 8 the other one has run for 40 us less, and goes on.
    let ends = Op::Run(exactly(4_010_000));
    let load = Load { tasks: vec![once("one", vec![ends, sleep(8)]), hog("two", 0)], ..Load::default() };
    for kernel in releases(v(6, 6)..) {
        for skip_ticks in [true, false] {
            let how = How { duration: Some(14 * MS), seed: 1, skip_ticks };
            let set = [("hz", "250".to_owned()), ("base_slice_ns", "3000000".to_owned())];
            let accounts = simulate_how(kernel, &machine, &load, &set, &how);
            assert_eq!(lane(&accounts, 0), "0 one, 4.02 two, 12.02 one, 12.02 two", "{kernel}, {skip_ticks}");
        }
    }
}

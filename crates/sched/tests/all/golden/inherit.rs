//! Mutexes with priority inheritance: who runs when a task waits for one with a worse priority.

use crate::support::registry::releases;
use crate::support::{Accounts, MS, bare, hog, lane, once, run, simulate};
use schedlab_base::{Nanos, Payload, v, v2_6};
use schedlab_sim::program::{Load, Op, Policy, Setting, TaskSpec};

fn at(start: Nanos, mut spec: TaskSpec) -> TaskSpec {
    spec.start = start * MS;
    spec
}

fn fifo(priority: u8, mut spec: TaskSpec) -> TaskSpec {
    (spec.initial.policy, spec.initial.rt_priority) = (Some(Policy::Fifo), Some(priority));
    spec
}

/// A deadline task; times in ms.
fn dl(runtime: Nanos, period: Nanos, mut spec: TaskSpec) -> TaskSpec {
    spec.initial.policy = Some(Policy::Deadline);
    spec.initial.dl = Some((runtime * MS, period * MS, period * MS));
    spec
}

fn nice(nice: i8, mut spec: TaskSpec) -> TaskSpec {
    spec.initial.nice = Some(nice);
    spec
}

/// A load of these tasks with two mutexes.
fn load(inherits: bool, tasks: Vec<TaskSpec>) -> Load {
    Load { tasks, inherits, mutexes: vec!["a".into(), "b".into()], ..Load::default() }
}

/// Works for `ms` while it holds mutex 0.
fn section(ms: Nanos) -> Vec<Op> {
    vec![Op::Lock(0), run(ms), Op::Unlock(0)]
}

fn up(kernel: &str, load: &Load) -> Accounts {
    simulate(kernel, &bare("up"), load, &[("hz", "1000".into())], 1000 * MS)
}

/// The priority with which a task leaves CPU 0, for each time.
fn priorities(accounts: &Accounts, name: &str) -> Vec<i16> {
    let tid = accounts.names.iter().position(|n| n == name).expect("the task") as i32 + 1;
    let of = |e: &schedlab_base::Event| match e.what {
        Payload::Switch { prev, prev_prio, .. } if prev == tid => Some(prev_prio),
        _ => None,
    };
    accounts.events.iter().filter_map(of).collect()
}

/// A task of low priority holds what one of high priority needs, and one of medium priority wants the CPU.
fn inversion(inherits: bool, low: fn(TaskSpec) -> TaskSpec) -> Load {
    let mut last = section(20);
    last.push(run(5));
    let tasks = vec![
        low(once("low", last)),
        at(2, fifo(90, once("high", section(1)))),
        at(5, fifo(50, once("medium", vec![run(100)]))),
    ];
    load(inherits, tasks)
}

#[test]
fn the_holder_of_a_mutex_runs_with_the_priority_of_its_waiter() {
    let lows: [fn(TaskSpec) -> TaskSpec; 2] = [|spec| fifo(10, spec), |spec| spec];
    for kernel in releases(v2_6(18)..v(7, 0)) {
        for low in lows {
            let without = up(kernel, &inversion(false, low));
            let turns = "0 low, 2 high, 2 low, 5 medium, 105 low, 120 high, 121 low, 126 -";
            assert_eq!(lane(&without, 0), turns, "{kernel}");
            let with = up(kernel, &inversion(true, low));
            let turns = "0 low, 2 high, 2 low, 20 high, 21 medium, 121 low, 126 -";
            assert_eq!(lane(&with, 0), turns, "{kernel}");
        }
    }
}

#[test]
fn older_kernels_and_others_lend_nothing() {
    for kernel in ["linux-2.4", "linux-2.6.11", "bfs", "rsdl", "mlfq"] {
        let fair = |spec| spec;
        let (with, without) = (up(kernel, &inversion(true, fair)), up(kernel, &inversion(false, fair)));
        assert_eq!(with.events, without.events, "{kernel}");
    }
}

/// `last` waits for b, which `middle` holds, which waits for a, which `first` holds.
#[test]
fn a_priority_is_lent_along_a_chain() {
    let middle = vec![Op::Lock(1), Op::Lock(0), run(5), Op::Unlock(0), run(1), Op::Unlock(1), run(3)];
    let tasks = vec![
        once("first", section(20)),
        at(2, fifo(20, once("middle", middle))),
        at(4, fifo(90, once("last", vec![Op::Lock(1), run(1), Op::Unlock(1)]))),
        at(6, fifo(50, once("hog", vec![run(50)]))),
    ];
    for kernel in releases(v2_6(18)..v(7, 0)) {
        let accounts = up(kernel, &load(true, tasks.clone()));
        let turns =
            "0 first, 2 middle, 2 first, 4 last, 4 first, 20 middle, 26 last, 27 hog, 77 middle, 80 first, 80 -";
        assert_eq!(lane(&accounts, 0), turns, "{kernel}");
        // It left the CPU to `middle` at 2, with its own priority; at 4 with that of `middle`, and in the end again
        // with its own.
        assert_eq!(priorities(&accounts, "first"), [120, 79, 120, 120], "{kernel}");
    }
}

#[test]
fn the_waiter_with_the_best_priority_is_next() {
    let tasks = vec![
        once("holder", section(10)),
        at(1, fifo(20, once("early", section(1)))),
        at(2, fifo(90, once("late", section(1)))),
        at(3, fifo(20, once("second", section(1)))),
    ];
    for kernel in releases(v2_6(18)..v(7, 0)) {
        let accounts = up(kernel, &load(true, tasks.clone()));
        let turns = lane(&accounts, 0);
        // `second` finds the mutex reserved for `early`, whose priority is the same.
        assert!(turns.ends_with(", 10 late, 11 second, 11 early, 12 second, 13 holder, 13 -"), "{kernel}: {turns}");
    }
}

/// `__waiter_prio` in kernel/locking/rtmutex.c counts fair tasks alike from 5.15 on; before, the nice level decides.
#[test]
fn fair_waiters_wait_by_their_nice_level_until_5_14() {
    let tasks = vec![
        once("holder", section(200)),
        at(1, once("early", section(1))),
        at(100, nice(-10, once("better", section(1)))),
    ];
    for kernel in releases(v2_6(18)..v(7, 0)) {
        let accounts = up(kernel, &load(true, tasks.clone()));
        let woken = |e: &schedlab_base::Event| match e.what {
            Payload::Wakeup { tid, .. } if e.time >= 190 * MS => Some(accounts.names[tid as usize - 1].as_str()),
            _ => None,
        };
        let order: Vec<&str> = accounts.events.iter().filter_map(woken).collect();
        let since_5_15 = schedlab_sched::kernels::find(kernel).unwrap().release.unwrap() >= v(5, 15);
        let expected = if since_5_15 { ["early", "better"] } else { ["better", "early"] };
        assert_eq!(order, expected, "{kernel}");
        // Nothing else is lent: a fair holder keeps its weight.
        assert!(priorities(&accounts, "holder").iter().all(|prio| *prio >= 100), "{kernel}");
    }
}

/// `replenish_dl_entity`: a fair holder gets the waiter's whole runtime again whenever it has used that up.
#[test]
fn a_fair_holder_is_served_with_the_runtime_and_the_deadline_of_its_waiter() {
    let tasks = vec![
        once("holder", section(36)),
        at(2, dl(10, 100, once("dl", section(1)))),
        at(5, fifo(50, once("medium", vec![run(100)]))),
    ];
    for kernel in releases(v(3, 14)..v(7, 0)) {
        let with = up(kernel, &load(true, tasks.clone()));
        assert_eq!(lane(&with, 0), "0 holder, 2 dl, 2 holder, 36 dl, 37 medium, 137 holder, 137 -", "{kernel}");
        let without = up(kernel, &load(false, tasks.clone()));
        assert!(lane(&without, 0).starts_with("0 holder, 2 dl, 2 holder, 5 medium"), "{kernel}");
    }
}

/// `enqueue_task_dl`: the boost overrides the throttle. By itself the holder has 5 ms of each 100 ms.
#[test]
fn a_boosted_deadline_task_is_not_throttled() {
    let tasks = vec![dl(5, 100, once("holder", section(18))), at(10, dl(10, 20, once("dl", section(1))))];
    for kernel in releases(v(3, 14)..v(7, 0)) {
        let with = up(kernel, &load(true, tasks.clone()));
        assert_eq!(lane(&with, 0), "0 holder, 5 -, 10 dl, 10 holder, 23 dl, 24 holder, 24 -", "{kernel}");
        let without = up(kernel, &load(false, tasks.clone()));
        let turns =
            "0 holder, 5 -, 10 dl, 10 -, 100 holder, 105 -, 200 holder, 205 -, 300 holder, 303 dl, 304 holder, 304 -";
        assert_eq!(lane(&without, 0), turns, "{kernel}");
    }
}

/// `sched_fork`: "make sure we do not leak PI boosting priority to the child".
#[test]
fn the_child_of_a_boosted_task_has_its_own_priority() {
    let program = vec![Op::Lock(0), run(10), Op::Fork(0), run(5), Op::Unlock(0)];
    let tasks = vec![once("holder", program), at(2, fifo(90, once("high", section(1))))];
    let load = Load { templates: vec![once("child", vec![run(1)])], ..load(true, tasks) };
    for kernel in releases(v2_6(18)..v(7, 0)) {
        let accounts = up(kernel, &load);
        let born = accounts.events.iter().find_map(|e| match e.what {
            Payload::WakeupNew { prio, .. } if e.time == 10 * MS => Some(prio),
            _ => None,
        });
        assert!(born.is_some_and(|prio| prio >= 100), "{kernel}: {born:?}");
        assert!(lane(&accounts, 0).starts_with("0 holder, 2 high, 2 holder, 15 high, 16 "), "{kernel}");
    }
}

/// `__sched_setscheduler`: a new priority of its own takes effect at once if it is better than what it is lent, and
/// otherwise when it has released the mutex.
#[test]
fn a_boosted_task_changes_its_own_priority() {
    let to = |priority| Setting { policy: Some(Policy::Fifo), rt_priority: Some(priority), ..Setting::default() };
    let program = vec![Op::Lock(0), run(10), Op::Set(0), run(5), Op::Unlock(0), run(5)];
    let tasks = vec![
        once("holder", program),
        at(2, fifo(60, once("waiter", section(1)))),
        at(11, fifo(50, once("medium", vec![run(10)]))),
        at(12, fifo(70, once("better", vec![run(2)]))),
    ];
    for (own, turns) in [
        // Lent 60 until 17: `better` preempts it, `medium` does not, until it has only its own 40.
        (40, "0 holder, 2 waiter, 2 holder, 12 better, 14 holder, 17 waiter, 18 medium, 28 holder, 33 -"),
        (55, "0 holder, 2 waiter, 2 holder, 12 better, 14 holder, 17 waiter, 18 holder, 23 medium, 33 -"),
        (80, "0 holder, 2 waiter, 2 holder, 20 better, 22 waiter, 23 medium, 33 -"),
    ] {
        let load = Load { settings: vec![to(own)], ..load(true, tasks.clone()) };
        for kernel in releases(v2_6(18)..v(7, 0)) {
            assert_eq!(lane(&up(kernel, &load), 0), turns, "{kernel} with {own}");
        }
    }
}

/// A mutex that was released is reserved for its first waiter; `try_to_take_rt_mutex` lets a task with a better
/// priority take it before that one has run.
#[test]
fn a_released_mutex_is_taken_by_its_waiter_or_by_a_better_task() {
    // On two CPUs: the waiter wakes on CPU 1, beside a task with a better priority that does not yield the CPU.
    let pinned = |cpu, mut spec: TaskSpec| {
        spec.initial.cpus = Some(vec![cpu]);
        spec
    };
    for (priority, expected) in [(10, "waiter thief"), (90, "thief waiter")] {
        let tasks = vec![
            pinned(0, once("holder", section(10))),
            pinned(1, at(1, fifo(30, once("waiter", section(1))))),
            pinned(1, at(2, fifo(95, once("guard", vec![run(20)])))),
            pinned(0, at(12, fifo(priority, once("thief", section(1))))),
            pinned(0, hog("other", 0)),
        ];
        for kernel in releases(v2_6(18)..v(7, 0)) {
            let accounts = simulate(kernel, &bare("2"), &load(true, tasks.clone()), &[("hz", "1000".into())], 900 * MS);
            let name = |tid: i32| accounts.names[tid as usize - 1].as_str();
            let ends = accounts.events.iter().filter_map(|e| match e.what {
                Payload::Exit { tid, .. } => Some(name(tid)),
                _ => None,
            });
            let ends: Vec<&str> = ends.filter(|name| ["waiter", "thief"].contains(name)).collect();
            assert_eq!(ends.join(" "), expected, "{kernel}");
        }
    }
}

/// `low` sleeps while it holds the mutex, and `high` waits for it from 20 ms on. `other` has run for 19 ms by then. As
/// `low` leaves the fair class asleep it gets what a wake-up would give it, 3 ms of credit, and keeps that
/// (`switched_from_fair`): it has 3 ms and its slice once it is back, and not the 47 ms that `other` is ahead.
#[test]
fn a_sleeper_that_is_lent_a_priority_has_no_more_credit_than_if_it_woke() {
    for kernel in releases(v2_6(38)..v(6, 6)) {
        let asleep = Op::Sleep(crate::support::exactly(48 * MS));
        let tasks = vec![
            once("low", vec![Op::Lock(0), run(1), asleep, run(1), Op::Unlock(0), run(500)]),
            hog("other", 0),
            at(20, fifo(90, once("high", section(1)))),
        ];
        let turns = lane(&up(kernel, &load(true, tasks)), 0);
        let start = "0 low, 1 other, 20 high, 20 other, 49 low, 50 high, 51 low, ";
        let back = turns.strip_prefix(start).unwrap_or_else(|| panic!("{kernel}: {turns}"));
        assert!(["54 other", "55 other"].iter().any(|turn| back.starts_with(turn)), "{kernel}: {turns}");
    }
}

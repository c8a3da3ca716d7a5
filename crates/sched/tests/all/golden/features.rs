//! What each `sched_feature` changes, in schedules small enough to follow by hand. Nothing has a cost, virtual runtimes
//! (v) are in ms, and the tick is 1 ms unless a test says otherwise.

mod hrtick;

use crate::support::registry::releases;
use crate::support::{Accounts, MS, bare, exactly, forever, hog, once, pinned, simulate_at_1000_hz};
use schedlab_base::{Event, Nanos, Payload, v, v2_6};
use schedlab_sched::kernels::{How, find};
use schedlab_sim::program::{GroupSpec, Load, Op, Policy, Setting, TaskSpec};
use schedlab_sim::{Decision, Inspect, Inspector, View};

const US: Nanos = 1_000;

fn us(us: Nanos) -> Op {
    Op::Run(exactly(us * US))
}

fn batch(mut spec: TaskSpec) -> TaskSpec {
    spec.initial.policy = Some(Policy::Batch);
    spec
}

fn nice(mut spec: TaskSpec, nice: i8) -> TaskSpec {
    spec.initial.nice = Some(nice);
    spec
}

fn at(mut spec: TaskSpec, us: Nanos) -> TaskSpec {
    spec.start = us * US;
    spec
}

fn on(mut spec: TaskSpec, cpu: u32) -> TaskSpec {
    spec.cpu = Some(cpu);
    spec
}

fn load(tasks: Vec<TaskSpec>) -> Load {
    Load { tasks, ..Load::default() }
}

/// Returns what runs on CPU 0 and from when on, in ms to two places, which hides that slices lose nanoseconds as they
/// are computed (`__calc_delta`).
fn schedule(kernel: &str, load: &Load, set: &[(&str, &str)], ms: Nanos) -> String {
    let accounts = simulate_at_1000_hz(kernel, "up", load, set, ms);
    let lines = accounts.events.iter().filter_map(|e| match e.what {
        Payload::Switch { next, .. } => {
            let name = next.checked_sub(1).map_or("-", |p| &accounts.names[p as usize]);
            Some(format!("{} {name}", (e.time as f64 / 1e4).round() / 1e2))
        }
        _ => None,
    });
    lines.collect::<Vec<_>>().join(", ")
}

/// Looks at the queue of CPU 0 once.
#[derive(Default)]
struct Seen(Option<View>);

impl Inspector for Seen {
    fn view(&mut self, _time: Nanos, _cpu: u32, view: View) {
        self.0 = Some(view);
    }

    fn decision(&mut self, _decision: &Decision) {}
}

fn part<'a>(view: &'a View, key: &str) -> &'a View {
    let View::Map(parts) = view else { panic!("{view:?} has no parts") };
    &parts.iter().find(|(name, _)| *name == key).unwrap_or_else(|| panic!("{view:?} has no {key}")).1
}

/// The virtual runtime of task 2 in 2.6.24, which woke at 15 ms and waits at 16.
fn placed(set: &[(&str, &str)]) -> Nanos {
    let load = load(vec![hog("A", 0), hog("B", 0), at(once("S", vec![us(500)]), 15_000)]);
    let (kernel, machine) = (find("linux-2.6.24").unwrap(), bare("up"));
    let all = [("hz", "1000"), ("NEW_FAIR_SLEEPERS", "0")].iter().chain(set);
    let all: Vec<_> = all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let values = kernel.values(&machine, &all).unwrap();
    let how = How { duration: Some(20 * MS), seed: 1, skip_ticks: true };
    let mut seen = Seen::default();
    let inspect = Inspect { at: &[16 * MS], explain: 0..0, to: Box::new(&mut seen) };
    kernel.simulate_and_look(&machine, &load, &values, &how, &mut Accounts::default(), Some(inspect)).unwrap();
    let view = seen.0.expect("a view");
    let View::List(waiting) = part(part(&view, "queue"), "tree") else { panic!("a tree is a list") };
    let s = waiting.iter().find(|entity| *part(entity, "task") == View::Task(2)).expect("S waits");
    let View::Int(vruntime) = part(s, "vruntime_ns") else { panic!("a number") };
    *vruntime as Nanos
}

#[test]
fn tree_avg_and_approx_avg_place_tasks_in_the_middle() {
    // A runs to 11 ms, the first tick past 10, and B from then on. S wakes at 15: min_vruntime is B's, 4, and the last
    // task in the tree is A, at 11. place_entity(): (4 + 11) / 2. With APPROX_AVG B is already placed after half of A's
    // slice, at 10 less the 1.05 of min_vruntime at boot, so that at 15 it is at 12.95 and min_vruntime is A's, 11.
    // Half of sched_vslice(), 20 * 1024 / 2048, is 5.
    assert_eq!(placed(&[]), 4 * MS);
    assert_eq!(placed(&[("TREE_AVG", "1")]), 7_500 * US);
    assert_eq!(placed(&[("APPROX_AVG", "1")]), 16 * MS);
    assert_eq!(placed(&[("TREE_AVG", "1"), ("APPROX_AVG", "1")]), 7_500 * US);
}

/// 2.6.32 without ADAPTIVE_GRAN, so that the wake-up granularity is 1 ms, and without LAST_BUDDY, which would let the
/// running task go on.
fn plain(load: &Load, set: &[(&str, &str)], ms: Nanos) -> String {
    let all: Vec<_> = [("ADAPTIVE_GRAN", "0"), ("LAST_BUDDY", "0")].iter().chain(set).copied().collect();
    schedule("linux-2.6.32", load, &all, ms)
}

#[test]
fn asym_gran_scales_the_granularity_by_who_wakes() {
    // wakeup_gran(): S is placed 2.5 behind H, whose weight is 335. 1 ms is v 1 by S's weight, and 3.06 by H's.
    let load = self::load(vec![hog("H", 5), at(once("S", vec![us(200)]), 50_500)]);
    assert_eq!(plain(&load, &[], 52), "0 H, 50.5 S, 50.7 H");
    assert!(plain(&load, &[("ASYM_GRAN", "0")], 52).starts_with("0 H, 51 S"));
}

#[test]
fn without_wakeup_preempt_ticks_compare_no_virtual_runtimes() {
    // check_preempt_tick() of the stable releases: once C has had the least granularity of 1 ms, it is compared with A
    // as numbers without a sign. While it is behind, that is far ahead: it is picked anew, and its slice begins again,
    // at 4 and at 5. From 5 on it is not behind, and has 3 ms more.
    let load = self::load(vec![hog("A", 0), hog("C", 0)]);
    let run = |preempt| plain(&load, &[("fix.strong_buddies", "1"), ("WAKEUP_PREEMPT", preempt)], 13);
    assert_eq!(run("1"), "0 A, 3 C, 8 A, 12 C");
    assert_eq!(run("0"), "0 A, 3 C, 6 A, 9 C, 12 A");
}

#[test]
fn normalized_sleeper_credits_light_tasks_more() {
    // place_entity(): S, of weight 335, is placed 2.5 behind A, or 5 * 1024 / 335 / 2 = 7.64; 1 ms is v 3.06 by its
    // weight. SCHED_IDLE tasks have the plain credit.
    let load = self::load(vec![hog("A", 0), at(nice(once("S", vec![us(200)]), 5), 50_500)]);
    assert!(plain(&load, &[], 52).starts_with("0 A, 51 S"));
    assert_eq!(plain(&load, &[("NORMALIZED_SLEEPER", "1")], 52), "0 A, 50.5 S, 50.7 A");
}

#[test]
fn wakeup_sync_lets_synchronous_wake_ups_preempt() {
    // W, placed with S at v 0 after 50 ms in which nothing else ran, wakes S, of weight 15: 2.5 behind W is less than
    // 1 ms by that weight, 68.
    let post = |op: Op| once("W", vec![us(50_500), op, us(5_000)]);
    let with = |op| Load {
        sems: vec!["sem".into()],
        ..load(vec![nice(once("S", vec![Op::SemWait(0), us(200)]), 19), post(op)])
    };
    let synced = with(Op::Synced(Box::new(Op::SemPost(0))));
    let preempts = |load: &Load, set: &[(&str, &str)]| plain(load, set, 52).contains("50.5 S");
    assert!(!preempts(&synced, &[]));
    assert!(preempts(&synced, &[("WAKEUP_SYNC", "1")]));
    assert!(!preempts(&with(Op::SemPost(0)), &[("WAKEUP_SYNC", "1")]));
    assert!(!preempts(&synced, &[("WAKEUP_SYNC", "1"), ("SYNC_WAKEUPS", "0")]));
}

#[test]
fn wakeup_overlap_lets_tasks_preempt_that_do_not_overlap() {
    // check_preempt_wakeup(): both avg_overlap are 0, as long as neither was preempted, and 0 is less than
    // sched_migration_cost unless that is 0. S, of weight 15, would not preempt (see above).
    let load = self::load(vec![hog("A", 0), at(nice(once("S", vec![us(200)]), 19), 50_500)]);
    assert!(plain(&load, &[], 52).starts_with("0 A, 51 S"));
    assert_eq!(plain(&load, &[("WAKEUP_OVERLAP", "1")], 52), "0 A, 50.5 S, 50.7 A");
    let set = [("WAKEUP_OVERLAP", "1"), ("sched_migration_cost", "0")];
    assert!(plain(&load, &set, 52).starts_with("0 A, 51 S"));
}

#[test]
fn each_preemption_lets_the_overlap_of_a_task_grow() {
    // put_prev_task(): a task that is preempted after its turn of 3 ms and more counts as overlapping for twice
    // sched_migration_cost, 1 ms, with a weight of an eighth. After six turns its avg_overlap is no less than the
    // 0.5 ms of sched_migration_cost.
    let hogs = || vec![hog("A", 0), hog("C", 0)];
    let turns = plain(&load(hogs()), &[], 80);
    let turns: Vec<(f64, &str)> = turns
        .split(", ")
        .map(|turn| turn.split_once(' ').unwrap())
        .map(|(at, who)| (at.parse().unwrap(), who))
        .collect();
    let mut counts = [0, 0];
    for ms in 0..75 {
        let when = ms as f64 + 0.5;
        let before: Vec<&str> = turns.iter().take_while(|turn| turn.0 < when).map(|turn| turn.1).collect();
        let running = before.last().unwrap();
        let preempted = before.iter().filter(|who| *who == running).count() - 1;
        let overlap = (0..preempted).fold(0, |mean, _| mean + ((1_000_000 - mean) >> 3));
        let mut tasks = hogs();
        tasks.push(at(nice(once("S", vec![us(200)]), 19), ms * 1_000 + 500));
        let preempts = plain(&load(tasks), &[("WAKEUP_OVERLAP", "1")], 80).contains(&format!(", {when} "));
        assert_eq!(preempts, overlap < 500_000, "at {when} ms, preempted {preempted} times");
        counts[usize::from(preempts)] += 1;
    }
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
}

#[test]
fn wakeup_running_lets_tasks_preempt_that_run_for_less() {
    // Without FAIR_SLEEPERS S is placed where A is, and does not preempt. As it wakes first, both avg_running are 0. It
    // runs from the tick at 51 on for 1 ms, so that A's is 51 / 8, and its own 1 / 8 less an eighth when it wakes at
    // 82.3.
    let s = forever("S", 0, vec![us(1_000), Op::Sleep(exactly(30_300 * US))]);
    let load = self::load(vec![hog("A", 0), at(s, 50_500)]);
    let run = |running| plain(&load, &[("FAIR_SLEEPERS", "0"), ("WAKEUP_RUNNING", running)], 84);
    assert_eq!(run("0"), "0 A, 51 S, 52 A, 83 S");
    assert_eq!(run("1"), "0 A, 51 S, 52 A, 82.3 S, 83.3 A");
}

/// S slept on CPU 1 beside a hog that stays there; W, alone on CPU 0, wakes it at 100 ms.
fn waker_and_sleeper() -> Load {
    let s = on(once("S", vec![Op::SemWait(0), us(500)]), 1);
    let w = pinned(once("W", vec![us(100_000), Op::Synced(Box::new(Op::SemPost(0))), us(20_000)]), 0);
    Load {
        sems: vec!["sem".into()],
        start: schedlab_sim::program::Start::Wake,
        ..load(vec![s, w, pinned(hog("H", 0), 1)])
    }
}

/// The CPU on which a task first runs.
fn first_cpu(accounts: &Accounts, name: &str) -> u32 {
    let tid = accounts.names.iter().position(|n| n == name).expect("a task of that name") as i32 + 1;
    let there = |e: &&Event| matches!(e.what, Payload::Switch { next, .. } if next == tid);
    accounts.events.iter().find(there).expect("it runs").cpu
}

#[test]
fn without_affine_wakeups_a_task_wakes_where_it_slept() {
    // select_task_rq_fair(): want_affine stays 0, and no domain has SD_BALANCE_WAKE.
    let cpu = |affine| {
        let accounts =
            simulate_at_1000_hz("linux-2.6.32", "2x1x1", &waker_and_sleeper(), &[("AFFINE_WAKEUPS", affine)], 105);
        first_cpu(&accounts, "S")
    };
    assert_eq!(["1", "0"].map(cpu), [0, 1]);
}

/// W on CPU 0 wakes S, which slept on CPU 1 beside G; the three are a group. With `beside`, each CPU has one more hog.
fn woken_in_a_group(beside: bool, set: &[(&str, &str)]) -> u32 {
    let member = |mut spec: TaskSpec| {
        spec.initial.group = Some(0);
        spec
    };
    let s = member(on(once("S", vec![Op::SemWait(0), us(500)]), 1));
    let w = member(pinned(once("W", vec![us(3_000), Op::SemPost(0), us(10_000)]), 0));
    let mut tasks = vec![s, w, member(pinned(hog("G", 0), 1))];
    tasks.extend((0..2).filter(|_| beside).map(|cpu| pinned(hog(&format!("H{cpu}"), 0), cpu)));
    let groups = vec![GroupSpec { path: "/g".into(), shares: 1024, ..GroupSpec::default() }];
    let load = Load { sems: vec!["sem".into()], groups, ..self::load(tasks) };
    first_cpu(&simulate_at_1000_hz("linux-2.6.32", "2x1x1", &load, set, 12), "S")
}

#[test]
fn lb_shares_update_spreads_shares_before_a_task_is_placed() {
    // Spread, the group has 512 on each CPU. wake_affine(): with S CPU 0 would have 512 + 512 * (2048 - 1536) / 1536 =
    // 682, and 100 * 682 is more than 112 * 512. As long as nothing has spread the shares, effective_load() takes the
    // group's part of CPU 0 to be 0, and 100 * 1024 is not more than 112 * 1024.
    assert_eq!(["1", "0"].map(|on| woken_in_a_group(false, &[("LB_SHARES_UPDATE", on)])), [1, 0]);
}

#[test]
fn asym_eff_load_does_not_count_what_leaves() {
    // As above, with 1024 more on each CPU: 100 * (1536 + 170) is not more than 112 * 1536. If it counts that the
    // group weighs 170 less on CPU 1, it is more than 112 * 1366.
    assert_eq!(["1", "0"].map(|on| woken_in_a_group(true, &[("ASYM_EFF_LOAD", on)])), [0, 1]);
}

#[test]
fn lb_min_leaves_light_tasks_until_balancing_has_failed() {
    // Tasks of nice 19 weigh 15, less than 16. P ends at 20 ms and CPU 1 takes two of four tasks at once. With LB_MIN
    // it does so once its balancing has failed, a few ticks later.
    for kernel in releases(v(3, 10)..v(4, 2)) {
        let hogs = (0..4).map(|i| on(hog(&format!("h{i}"), 19), 0));
        let load = load(hogs.chain([pinned(nice(once("P", vec![us(20_000)]), 19), 1)]).collect());
        let first = |min| {
            let accounts = simulate_at_1000_hz(kernel, "2x1x1", &load, &[("LB_MIN", min)], 100);
            accounts.events.iter().find(|e| matches!(e.what, Payload::Migrate { .. })).expect("tasks move").time / MS
        };
        assert_eq!(first("0"), 20, "{kernel}");
        assert!((21..30).contains(&first("1")), "{kernel}: {}", first("1"));
    }
    // Later only load counts as such, which balancing evens out between CPUs that are both overloaded. Three hogs of
    // nice 19 stay on CPU 1, and it takes a fourth as it first balances, or as it does so again.
    for kernel in releases(v(5, 10)..v(7, 0)) {
        let light = |name: String| hog(&name, 19);
        let hogs = (0..6).map(|i| on(light(format!("h{i}")), 0));
        let load = load(hogs.chain((0..3).map(|i| pinned(light(format!("p{i}")), 1))).collect());
        let first = |min| {
            let accounts = simulate_at_1000_hz(kernel, "2x1x1", &load, &[("LB_MIN", min)], 100);
            accounts.events.iter().find(|e| matches!(e.what, Payload::Migrate { .. })).expect("tasks move").time / MS
        };
        assert_eq!(["0", "1"].map(first), [10, 41], "{kernel}");
    }
}

/// The names of the tasks that first move, all at one time, and that time.
fn first_moved(accounts: &Accounts) -> (Nanos, Vec<&str>) {
    let moves = || {
        accounts.events.iter().filter_map(|e| match e.what {
            Payload::Migrate { tid, .. } => Some((e.time, accounts.names[tid as usize - 1].as_str())),
            _ => None,
        })
    };
    let at = moves().next().expect("tasks move").0;
    (at, moves().filter(|(time, _)| *time == at).map(|(_, name)| name).collect())
}

/// Eight hogs and W, which runs for 0.9 of each ms, on CPU 0, and a hog that stays on CPU 1 and is joined by others.
fn many_beside(start_us: Nanos, stays: bool) -> Load {
    let w = at(forever("W", -20, vec![us(900), Op::Sleep(exactly(100 * US))]), start_us);
    let w = if stays { pinned(w, 0) } else { on(w, 0) };
    let hogs = (0..8).map(|i| on(hog(&format!("h{i}"), 0), 0));
    load(hogs.chain([pinned(hog("P", 0), 1), w]).collect())
}

/// In how many of 40 phases of W relative to the tick a buddy is among the tasks that first move: the last buddy, which
/// ran as W woke and preempted it, or with `next` the next buddy, W, which was woken and is not eligible yet.
fn buddies_moved(kernel: &str, next: bool, hot: &str) -> usize {
    let costs = ["sched_migration_cost", "sched_migration_cost_ns", "migration_cost_ns"];
    let cost = costs.into_iter().find(|name| find(kernel).unwrap().tunable(name).is_some()).expect("a cost");
    let moves = |phase: &u64| {
        let set = [("CACHE_HOT_BUDDY", hot), (cost, "0"), ("NEXT_BUDDY", if next { "1" } else { "0" })];
        let accounts = simulate_at_1000_hz(kernel, "2x1x1", &many_beside(3_200 + phase * 1_000, !next), &set, 130);
        let (time, moved) = first_moved(&accounts);
        let w = accounts.names.iter().position(|name| name == "W").expect("W") as i32 + 1;
        let preempted = accounts.events.iter().rev().find_map(|e| match e.what {
            Payload::Switch { prev, next, .. } if next == w && e.time <= time => Some(prev),
            _ => None,
        });
        let last = preempted.filter(|p| *p > 0 && !next).map(|p| accounts.names[p as usize - 1].as_str());
        moved.iter().any(|name| Some(*name) == last || next && *name == "W")
    };
    (0..40).filter(moves).count()
}

#[test]
fn cache_hot_buddy_leaves_buddies_where_they_are() {
    // task_hot(): no other task is cache-hot, as the migration cost is 0.
    for (kernel, next) in
        releases(v2_6(32)..v(6, 2)).map(|k| (k, false)).chain(releases(v(6, 6)..v(7, 0)).map(|k| (k, true)))
    {
        let [hot, not] = ["1", "0"].map(|hot| buddies_moved(kernel, next, hot));
        assert!(hot == 0 && not > 0, "{kernel}: {hot} and {not}");
    }
}

#[test]
fn lb_bias_does_not_mistake_a_nap_for_idleness() {
    // Hogs on CPU 0 beside W, which sleeps for 0.5 of each 2 ms, and a hog that stays on CPU 1. Those that are too many
    // move once. CPU 0 balances at its tick; whenever W sleeps then, its own load is a task less. source_load() and
    // target_load() hold it against the average over the last ticks, and find nothing to do.
    for (kernel, n, moves) in [("linux-2.6.32", 2, 1), ("linux-3.10", 2, 1), ("linux-3.18", 4, 2), ("linux-4.1", 4, 2)]
    {
        let w = pinned(forever("W", 0, vec![us(1_500), Op::Sleep(exactly(500 * US))]), 0);
        let hogs = (0..n).map(|i| on(hog(&format!("h{i}"), 0), 0));
        let load = load(hogs.chain([pinned(hog("P", 0), 1), w]).collect());
        let count = |bias| {
            let accounts = simulate_at_1000_hz(kernel, "2x1x1", &load, &[("LB_BIAS", bias)], 2_000);
            accounts.events.iter().filter(|e| matches!(e.what, Payload::Migrate { .. })).count()
        };
        assert_eq!(count("1"), moves, "{kernel}");
        assert!(count("0") > 2 * moves, "{kernel}: {}", count("0"));
    }
}

#[test]
fn without_attach_age_load_a_task_returns_as_it_was() {
    // T computes beside H on CPU 1, is a FIFO task that sleeps for 500 ms, returns, and waits for W on CPU 0.
    // wake_affine_weight(): W's 820 and T's load are less than 108% of H's 1024, and T comes to W, if that load has
    // decayed but for what T ran and waited since. As T left, it was 1024 (attach_entity_cfs_rq() with SKIP_AGE_LOAD),
    // of which two thirds are left.
    let settings = vec![
        Setting { policy: Some(Policy::Fifo), rt_priority: Some(1), ..Setting::default() },
        Setting { policy: Some(Policy::Other), rt_priority: Some(0), cpus: Some(vec![0, 1]), ..Setting::default() },
    ];
    let program = vec![us(100_000), Op::Set(0), Op::Sleep(exactly(500 * MS)), Op::Set(1), Op::SemWait(0), us(100)];
    let w = nice(pinned(once("W", vec![us(720_000), Op::SemPost(0), us(50_000)]), 0), 1);
    let tasks = vec![pinned(once("T", program), 1), w, pinned(hog("H", 0), 1)];
    let load = Load { settings, sems: vec!["sem".into()], ..load(tasks) };
    for kernel in releases(v(5, 10)..v(7, 0)) {
        let last = |ages| {
            let accounts = simulate_at_1000_hz(kernel, "2", &load, &[("ATTACH_AGE_LOAD", ages)], 750);
            let woken = accounts.events.iter().rev().find_map(|e| match e.what {
                Payload::Wakeup { tid: 1, target, .. } => Some(target),
                _ => None,
            });
            woken.expect("T is woken")
        };
        assert_eq!(["1", "0"].map(last), [0, 1], "{kernel}");
    }
}

#[test]
fn rt_runtime_share_lets_a_cpu_borrow() {
    // F borrows half of what CPU 1 has not used of its 950 ms, up to a whole period. Otherwise it is throttled at the
    // first tick past 950.
    let mut f = pinned(hog("F", 0), 0);
    (f.initial.policy, f.initial.rt_priority) = (Some(Policy::Fifo), Some(1));
    let load = load(vec![f, pinned(hog("A", 0), 0)]);
    for kernel in releases(v(3, 10)..v(6, 12)) {
        let had =
            |share| simulate_at_1000_hz(kernel, "2", &load, &[("RT_RUNTIME_SHARE", share)], 1_000).named("F").run / MS;
        assert_eq!(["1", "0"].map(had), [1_000, 951], "{kernel}");
    }
}

/// W on CPU 0 wakes S 300 times, which may use CPUs 1 and 2, and sleeps for 20 us each time; then it computes for
/// `at_last` us and wakes T. All CPUs but the last have something to run.
fn searches(kernel: &str, at_last: u64, set: &[(&str, &str)]) -> u32 {
    let mut s = forever("S", 0, vec![Op::SemWait(0), us(5)]);
    s.initial.cpus = Some(vec![1, 2]);
    let body = [
        Op::LoopStart { times: Some(300) },
        us(100),
        Op::SemPost(0),
        Op::Sleep(exactly(20 * US)),
        Op::LoopEnd { start: 0 },
    ];
    let w = body.into_iter().chain([us(at_last), Op::SemPost(1), us(5_000)]).collect();
    let t = on(once("T", vec![Op::SemWait(1), us(500)]), 1);
    let hogs = (1..7).map(|cpu| pinned(hog(&format!("H{cpu}"), 0), cpu));
    let tasks = [s, pinned(once("W", w), 0), t].into_iter().chain(hogs).collect();
    let load = Load { sems: vec!["s".into(), "t".into()], ..self::load(tasks) };
    let woken = |e: &Event| match e.what {
        Payload::Wakeup { tid: 3, target, .. } => Some(target),
        _ => None,
    };
    let events = simulate_at_1000_hz(kernel, "1x8x1", &load, set, 60).events;
    events.iter().rev().find_map(woken).expect("T is woken")
}

#[test]
fn sis_prop_and_sis_avg_cpu_bound_searches_by_their_cost() {
    // select_idle_cpu() of 5.10: CPU 0 is idle for 20 us on average, 39 of the unit, and its searches of two CPUs cost
    // 120 ns. 8 * 39 is less than 4 * 121, so that no more than three CPUs are looked at. Without SIS_PROP all are,
    // unless 39 < 121 is enough for SIS_AVG_CPU to give up.
    let at = |prop, avg| searches("linux-5.10", 100, &[("SIS_PROP", prop), ("SIS_AVG_CPU", avg)]);
    assert_eq!(at("0", "0"), 7);
    assert_ne!(at("1", "0"), 7);
    assert_ne!(at("0", "1"), 7);
}

#[test]
fn sis_prop_bounds_searches_where_sis_util_is_off() {
    // select_idle_cpu() of 6.1: when CPU 0 became busy, wake_avg_idle was half of 20 us, enough for 82 CPUs of 121 ns
    // each. It is halved at each tick: after ten of them 8 * 9 is less than 4 * 121.
    for kernel in ["linux-5.15", "linux-6.1", "linux-6.6"] {
        let at = |prop, us| searches(kernel, us, &[("SIS_UTIL", "0"), ("SIS_PROP", prop)]);
        assert_eq!([at("0", 100), at("0", 12_000), at("1", 100)], [7; 3], "{kernel}");
        assert_ne!(at("1", 12_000), 7, "{kernel}");
        let by_util = |prop| searches(kernel, 12_000, &[("SIS_PROP", prop)]);
        assert_eq!(by_util("0"), by_util("1"), "{kernel}: beside SIS_UTIL it has no effect");
    }
}

#[test]
fn features_are_of_the_releases_that_have_them() {
    let has = |name: &'static str| -> Vec<&str> {
        releases(v2_6(24)..v(7, 0))
            .filter(|kernel| find(kernel).unwrap().tunable(name).is_some())
            .map(|kernel| &kernel[6..])
            .collect()
    };
    let all = ["2.6.32", "3.10", "3.18", "4.1", "5.10", "5.15", "6.1", "6.6", "6.12", "6.18"];
    assert_eq!(has("HRTICK"), all);
    assert_eq!(has("CACHE_HOT_BUDDY"), all);
    assert_eq!(has("DOUBLE_TICK"), all[..7]);
    assert_eq!(has("LB_MIN"), all[1..]);
    assert_eq!(has("LB_BIAS"), all[..4]);
    assert_eq!(has("HRTICK_DL"), all[5..]);
    assert_eq!(has("NONTASK_POWER"), all[1..2]);
    assert_eq!(has("NONTASK_CAPACITY"), all[2..]);
    assert_eq!(has("RT_RUNTIME_SHARE"), all[1..8]);
    assert_eq!(has("RT_PUSH_IPI"), all[3..]);
    assert_eq!(has("UTIL_EST_FASTUP"), all[4..8]);
    assert_eq!(has("NUMA_RESIST_LOWER"), all[2..4]);
    assert_eq!(has("SIS_AVG_CPU"), all[4..5]);
    assert_eq!(has("SIS_PROP"), all[4..8]);
    assert_eq!(has("ATTACH_AGE_LOAD"), all[4..]);
    assert_eq!(has("TTWU_QUEUE"), all[9..]);
    for name in
        ["AFFINE_WAKEUPS", "ASYM_GRAN", "ASYM_EFF_LOAD", "LB_SHARES_UPDATE", "NORMALIZED_SLEEPER", "WAKEUP_OVERLAP"]
    {
        assert_eq!(has(name), all[..1], "{name}");
    }
}

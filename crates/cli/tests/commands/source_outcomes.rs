//! Outcomes that the source of a kernel dictates, each for one load in `source_outcomes/`. A test is named after what
//! it checks, and its comment names the file and the function of the kernel that decide.

use crate::support::ok;
use serde_json::Value;
use std::path::Path;

const LOADS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/commands/source_outcomes");

/// The statistics of a load under a kernel; `args` has the machine and the settings.
fn stats(kernel: &str, load: &str, args: &str) -> Value {
    let load = format!("{load}.json");
    let mut all = vec!["sim", "--json", "-k", kernel, "-w", &load];
    all.extend(args.split(' '));
    serde_json::from_str(&ok(Path::new(LOADS), &all)).expect("one document")
}

/// A figure of the task with this name.
fn of(stats: &Value, task: &str, figure: &str) -> f64 {
    let all = stats["tasks"].as_array().expect("a list");
    let found = all.iter().find(|t| t["name"] == task).expect("the task");
    found.pointer(figure).and_then(Value::as_f64).expect("a number")
}

/// `set_protect_slice` and `protect_slice` in kernel/sched/fair.c of 6.6 and 6.12 keep the protected deadline in
/// `vlag`, and `reweight_entity` moves the deadline. So each new weight of the group that is running ends its
/// protection, and in 6.12 `did_preempt_short` reschedules once the group is not eligible. With protection that
/// survives, the two hogs of two groups switch 946 times in 3 s. They switch 1,752 times if the weight follows every
/// change of the group's load, and less often as `update_tg_load_avg` has it, which leaves changes of up to 1/64 and
/// within a millisecond for later.
#[test]
fn a_new_weight_ends_the_protection_of_a_group() {
    let switches = |kernel| {
        let stats = stats(kernel, "parity", "-m 8 --set hz=1000");
        of(&stats, "a0", "/slices") + of(&stats, "b0", "/slices")
    };
    let found = switches("linux-6.12");
    assert!((1400.0..1752.0).contains(&found), "{found}");
    // 6.6 has no `did_preempt_short`: the protection matters only when something wakes on the CPU, and nothing does.
    assert!(switches("linux-6.6") < 800.0);
}

/// The CPU time of a task on each CPU, from the table of what each task did on each CPU.
fn on_cpus(kernel: &str, load: &str, args: &str, task: &str) -> Vec<(u64, f64)> {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("t.arrows").to_str().expect("a plain path").to_owned();
    let load = format!("{load}.json");
    let mut all = vec!["sim", "-k", kernel, "-w", &load, "-o", &trace];
    all.extend(args.split(' '));
    ok(Path::new(LOADS), &all);
    let rows: Value =
        serde_json::from_str(&ok(folder.path(), &["stats", &trace, "--by", "task-cpu", "--json"])).expect("one");
    let rows = rows["task_cpus"].as_array().expect("a list");
    let rows = rows.iter().filter(|row| row["name"] == task);
    rows.map(|row| (row["cpu"].as_u64().expect("a CPU"), row["run_us"].as_f64().expect("a time"))).collect()
}

/// The part of a task's CPU time that it had on one CPU.
fn part(cpus: &[(u64, f64)], cpu: u64) -> f64 {
    let all: f64 = cpus.iter().map(|(_, run)| run).sum();
    cpus.iter().filter(|(c, _)| *c == cpu).map(|(_, run)| run / all).sum()
}

/// `select_task_rq` in kernel/sched/core.c asks the class only if `nr_cpus_allowed > 1`: the wake-ups of a pinned task
/// search nothing and leave `has_idle_cores` alone. So a task beside it still finds an idle core (CPU 4), and not the
/// sibling of a busy one (CPU 3). `__update_idle_core` set `has_idle_cores` when the CPUs became idle at boot.
#[test]
fn a_pinned_task_searches_nothing() {
    for load in ["pin", "nopin"] {
        let cpus = on_cpus("linux-6.1", load, "-m quad-smt", "w");
        assert!(part(&cpus, 4) > 0.97 && part(&cpus, 3) == 0.0, "{load}: {cpus:?}");
    }
}

/// `__set_cpus_allowed_ptr` in kernel/sched/core.c takes `cpumask_any_and_distribute` from 5.7 on, and the first CPU
/// before; no class is asked. The wheel of `distribute_cpu_mask_prev` begins after CPU 0.
#[test]
fn a_new_affinity_takes_the_cpus_in_turn() {
    let cpus = |kernel| {
        let all = on_cpus(kernel, "affinity", "-m 4", "w");
        all.into_iter().map(|(cpu, _)| cpu).collect::<Vec<_>>()
    };
    assert_eq!(cpus("linux-6.12"), [0, 1, 2, 3]);
    assert_eq!(cpus("linux-4.1"), [0, 1]);
}

/// `sched_idle_cpu` in kernel/sched/fair.c compares the tasks of all classes (`rq->nr_running`) with the SCHED_IDLE
/// ones. A CPU where a SCHED_FIFO task runs beside a SCHED_IDLE task is not free, so `w` stays where it was, beside a
/// hog that it preempts. It wakes in the middle of each 15 ms of the SCHED_FIFO task.
#[test]
fn a_cpu_with_a_real_time_task_is_not_idle() {
    for kernel in ["linux-5.10", "linux-6.1", "linux-6.12"] {
        let cpus = on_cpus(kernel, "beside_fifo", "-m 2", "w");
        assert!(part(&cpus, 0) > 0.95, "{kernel}: {cpus:?}");
    }
    assert!(of(&stats("linux-6.12", "other_fifo", "-m 2"), "w", "/wait_us") < 1_000.0);
}

/// `dl_task_fits_capacity` (5.9 on; `select_task_rq_dl`, `cpudl_find`) and `rt_task_fits_capacity` (5.6 on;
/// `select_task_rq_rt`, `cpupri_find_fitness`): 7 ms of work every 10 ms do not fit on a little CPU (446 of 1024), nor
/// does a real-time task, which asks for 1024. The CPUs 4 to 7 are big. 4.1 stays on the little CPU 0.
#[test]
fn deadline_and_real_time_tasks_wake_on_a_big_cpu() {
    for load in ["dlbl", "rtbl"] {
        for kernel in ["linux-5.10", "linux-6.1", "linux-6.12"] {
            let stats = stats(kernel, load, "-m big-little-4+4");
            assert_eq!(of(&stats, "d", "/slices"), 300.0, "{load} under {kernel}");
            let run = of(&stats, "d", "/run_us");
            assert!((run - 2_100_000.0).abs() < 20_000.0, "{load} under {kernel}: {run}");
        }
        let slow = stats("linux-4.1", load, "-m big-little-4+4");
        assert!(of(&slow, "d", "/run_us") > 2_300_000.0, "{load}");
    }
}

/// `select_idle_cpu` in kernel/sched/fair.c of 6.7 and later searches the target's cluster before the rest of the
/// cache. The task wakes on CPU 3, which is busy: CPU 0 shares its L2, and CPU 4 does not.
#[test]
fn a_cluster_is_searched_first() {
    let ratio = |kernel| {
        let cpus = on_cpus(kernel, "clu2", "-m clu2.toml", "w");
        part(&cpus, 0) / part(&cpus, 4).max(1e-9)
    };
    assert!(ratio("linux-6.12") > 5.0, "{}", ratio("linux-6.12"));
    assert!(ratio("linux-6.6") < 0.2, "{}", ratio("linux-6.6"));
}

/// `dequeue_task_fair` in kernel/sched/fair.c of 6.12 calls `util_est_update` before the task is dequeued, so the
/// estimate is the utilisation as of the last tick or pick; until 6.11 the average is updated before. Bursts of 3 ms,
/// between ticks, of every 12 ms: 280 at the end of each, and 280 * 0.5^(9/32.8) = 232 when the task is picked. A new
/// task begins with 512, and its estimate falls by quarters until it is within 10 (`UTIL_EST_MARGIN`) of the last one.
#[test]
fn an_estimate_is_taken_when_the_release_takes_it() {
    let utilisation = |kernel, set| {
        let sim =
            ["sim", "-k", kernel, "-w", "ue.json", "-m", "big-little-4+4", "--explain", "2.9s..2.93s", "--set", set];
        let text = ok(Path::new(LOADS), &sim);
        let line = text.lines().find(|line| line.contains("utilisation")).expect("a decision by energy").to_owned();
        line.split_whitespace().last().expect("a number").parse::<f64>().expect("a number")
    };
    for (kernel, expected) in [("linux-6.1", 280.0), ("linux-6.6", 280.0), ("linux-6.12", 233.0)] {
        let found = utilisation(kernel, "UTIL_EST=on");
        assert!((expected - 2.0..expected + 10.0).contains(&found), "{kernel}: {found}");
        // Without an estimate it is the utilisation, which has decayed.
        let found = utilisation(kernel, "UTIL_EST=off");
        assert!((found - 233.0).abs() <= 2.0, "{kernel} without UTIL_EST: {found}");
    }
}

/// `check_preempt_wakeup_fair` in kernel/sched/fair.c of 6.6 and 6.12 makes a task that wakes the next buddy if
/// `NEXT_BUDDY` is on, which `pick_next_entity` prefers. By default it is off.
#[test]
fn a_woken_task_is_the_next_buddy() {
    for kernel in ["linux-6.6", "linux-6.12"] {
        let picks = |set| {
            let sim = ["sim", "-k", kernel, "-w", "buddies.json", "-m", "up", "--explain", "0s..1s", "--set", set];
            ok(Path::new(LOADS), &sim).lines().filter(|line| line.contains("it is the next buddy")).count()
        };
        assert_eq!(picks("NEXT_BUDDY=off"), 0, "{kernel}");
        assert!(picks("NEXT_BUDDY=on") > 10, "{kernel}: {}", picks("NEXT_BUDDY=on"));
    }
}

/// The last-level caches of a 2x4 machine on which a task spent more than a twentieth of its CPU time.
fn caches(kernel: &str, load: &str, set: &str, task: &str) -> Vec<u64> {
    let cpus = on_cpus(kernel, load, &format!("-m 2x4 {set}"), task);
    (0..2).filter(|cache| (0..4).map(|n| part(&cpus, 4 * cache + n)).sum::<f64>() > 0.05).collect()
}

/// A sync wake-up by a task that is alone on its CPU takes the woken task there, and an idle CPU of that cache runs it:
/// `wake_affine_idle` (4.14 on), `wake_affine` without the waker's load (until 4.13, both in kernel/sched/fair.c), and
/// `try_to_wake_up` in kernel/sched.c of 2.6.24 and of the kernels before. Without `x-sync` (a futex) two partners stay
/// on the caches where they began.
#[test]
fn partners_of_a_pipe_share_a_cache() {
    let kernels = ["2.6.0", "2.6.11", "2.6.18", "2.6.24", "2.6.32", "3.10", "3.18", "4.1"];
    for kernel in kernels.into_iter().chain(["5.10", "5.15", "6.1", "6.6", "6.12", "6.18"]) {
        let kernel = format!("linux-{kernel}");
        let of = |load| ["a", "b"].map(|task| caches(&kernel, load, "--costs machine", task));
        assert_eq!(of("pp"), [[0], [1]], "{kernel}: wake-ups as by futexes");
        assert_eq!(of("pipes"), [[0], [0]], "{kernel}: wake-ups as by pipes");
    }
}

/// `wake_affine` in kernel/sched_fair.c of 2.6.32 does not believe a waker that used to go on for longer than
/// `sched_migration_cost` (0.5 ms) after its wake-ups (`SYNC_LESS`, `avg_overlap`). With `SYNC_MORE` it believes it of
/// one that never says so.
#[test]
fn the_hint_of_a_waker_that_goes_on_is_weakened() {
    let of = |load, set| caches("linux-2.6.32", load, set, "b");
    assert_eq!(of("goes_on", "--set SYNC_LESS=on"), [1]);
    assert_eq!(of("goes_on", "--set SYNC_LESS=off"), [0]);
    assert_eq!(of("pipes", "--set SYNC_WAKEUPS=off"), [1]);
    assert_eq!(of("pp", "--set SYNC_MORE=on"), [0]);
}

/// A sync wake-up does not preempt the waker: `try_to_wake_up` in kernel/sched.c of 2.4 (no `reschedule_idle`), of
/// 2.6.0 (`__activate_task`) and of 2.6.11 and 2.6.18 (`!sync || cpu != this_cpu`), the same in RSDL and SD, and
/// `ttwu_activate` in BFS. CFS never looks at it: a task that slept preempts either way.
#[test]
fn a_sync_wake_up_does_not_preempt_the_waker() {
    let waits = |kernel, load| of(&stats(kernel, load, "-m up"), "b", "/latency_us/p50");
    for kernel in ["linux-2.4", "linux-2.6.0", "linux-2.6.11", "linux-2.6.18"] {
        let (other, sync) = (waits(kernel, "waker"), waits(kernel, "waker_sync"));
        assert!(sync > 15_000.0, "{kernel}: {sync} us until the waker sleeps");
        assert!(other < 15_000.0, "{kernel}: {other} us for another wake-up");
    }
    // Their slices are shorter than what the waker does.
    for kernel in ["rsdl", "sd", "bfs"] {
        let (other, sync) = (waits(kernel, "waker"), waits(kernel, "waker_sync"));
        assert!(other < 100.0 && sync > 2_000.0, "{kernel}: {other} us, {sync} us");
    }
    for kernel in ["linux-2.6.24", "linux-2.6.32", "linux-6.1", "linux-6.12"] {
        assert!(waits(kernel, "waker_sync") < 5_000.0, "{kernel}: {}", waits(kernel, "waker_sync"));
    }
}

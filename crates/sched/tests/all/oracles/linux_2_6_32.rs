//! The `linux-2.6.32` profile against the scheduler code of 2.6.32-rc3 itself: CPU hogs on one CPU. The code was built
//! with CONFIG_USER_SCHED: all tasks belong to user 0, whose group of 2048 shares is a level of its own, at which
//! slices lose 1/2049 by rounding. Bounds: CPU time within 2 ticks or 0.5%, switches within 2 or 1%.

use crate::support::{bare, hog, simulate};
use schedlab_sim::program::{Load, Start};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    id: String,
    ticks: u64,
    tick_ns: u64,
    latency_us: u64,
    min_granularity_us: u64,
    wakeup_granularity_us: u64,
    tasks: Vec<Hog>,
}

#[derive(Deserialize)]
struct Hog {
    nice: i8,
    run_us: u64,
    involuntary_switches: u64,
}

#[test]
fn hogs_get_what_the_real_kernel_gave_them() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("linux-2.6.32-hogs.json")).unwrap();
    assert_eq!(cases.len(), 30);
    let mut wrong = Vec::new();
    for case in &cases {
        let tasks = case.tasks.iter().enumerate().map(|(i, t)| hog(&format!("hog-{i}"), t.nice)).collect();
        let load = Load { tasks, start: Start::Fork, ..Load::default() };
        let set = [
            ("hz", "1000".to_owned()),
            ("tick_ns", case.tick_ns.to_string()),
            ("sched_latency_ns", (case.latency_us * 1000).to_string()),
            ("sched_min_granularity_ns", (case.min_granularity_us * 1000).to_string()),
            ("sched_wakeup_granularity_ns", (case.wakeup_granularity_us * 1000).to_string()),
            ("group_by_user", "on".to_owned()),
        ];
        let duration = case.ticks * case.tick_ns + 1;
        let accounts = simulate("linux-2.6.32", &bare("up"), &load, &set, duration);
        for (i, (task, ours)) in case.tasks.iter().zip(&accounts.tasks).enumerate() {
            let (run, switches) = (ours.run as f64 / 1e3, ours.involuntary as f64);
            let run_bound = (2.0 * case.tick_ns as f64 / 1e3).max(0.005 * task.run_us as f64);
            let switch_bound = (0.01 * task.involuntary_switches as f64).max(2.0);
            let run_off = (run - task.run_us as f64).abs() > run_bound;
            if run_off || (switches - task.involuntary_switches as f64).abs() > switch_bound {
                wrong.push(format!(
                    "{} task {i} (nice {}): run {run} us for {}, {switches} switches for {}",
                    case.id, task.nice, task.run_us, task.involuntary_switches
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} tasks off:\n{}", wrong.len(), wrong.join("\n"));
}

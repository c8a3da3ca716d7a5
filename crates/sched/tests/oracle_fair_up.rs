//! The `linux-6.1` and `linux-6.12` profiles against Debian's own kernels in a guest with one CPU.
//!
//! The kernel scatters with the phase of its tick, so the model runs at 8 phases: for each case and quantity the
//! worst task's distance outside the kernel's range is taken, in units of the tolerance (CPU time 3 ticks or 1%;
//! slices 3 or 3%; wait 3%, 15 ms or one mean wait), and the median over the phases must be at most 1.

mod support;

use schedlab_base::Nanos;
use schedlab_sim::program::{Load, Op, Setting, TaskSpec};
use serde::Deserialize;
use support::{Account, exactly, forever, simulate};

#[derive(Deserialize)]
struct Case {
    id: String,
    seconds: f64,
    tasks: Vec<Task>,
}

#[derive(Deserialize)]
struct Task {
    nice: i8,
    burst_cpu_us: Option<f64>,
    sleep_us: Option<u64>,
    run_us: [f64; 2],
    wait_us: [f64; 2],
    slices: [f64; 2],
}

const US: Nanos = 1_000;
const TICK: Nanos = 4_000_000;
/// What the guest's set-up adds to each task: CPU time in us, slices.
const SETUP: (f64, f64) = (870.0, 2.0);

/// A kernel thread that wakes just after every tick of its period.
fn kernel_thread(name: &str, run: Nanos, period: Nanos, phase: Nanos) -> TaskSpec {
    let mut spec =
        forever(name, 0, vec![Op::Run(exactly(run)), Op::Timer { timer: 0, period: exactly(period), absolute: true }]);
    spec.start = phase + US;
    spec
}

fn first_ticks(phase: Nanos) -> TaskSpec {
    let program = vec![Op::Run(exactly(33 * US)), Op::Sleep(exactly(TICK - 33 * US)), Op::Run(exactly(33 * US))];
    TaskSpec { name: "first-ticks".into(), program, start: phase + US, ..TaskSpec::default() }
}

/// The guest's load: kernel threads, and each task as its program starts it.
fn load(case: &Case, old: bool, phase: Nanos) -> Load {
    let mut load = Load { timers: vec![("own".into(), true)], ..Load::default() };
    for (i, task) in case.tasks.iter().enumerate() {
        let mut body = match (task.burst_cpu_us, task.sleep_us) {
            (Some(burst), Some(sleep)) => {
                vec![Op::Run(exactly((burst * 1e3) as Nanos)), Op::Sleep(exactly(sleep * US))]
            }
            _ => vec![Op::Run(exactly(1_000_000_000))],
        };
        let start = vec![Op::Run(exactly(40 * US)), Op::Set(i as u32), Op::LoopStart { times: None }];
        let loop_start = start.len() as u32 - 1;
        body.push(Op::LoopEnd { start: loop_start });
        let mut spec =
            TaskSpec { name: format!("t{i}"), program: start.into_iter().chain(body).collect(), ..TaskSpec::default() };
        if task.burst_cpu_us.is_some() {
            spec.initial.clock_poll = Some(10 * US);
        }
        load.settings.push(Setting { nice: Some(task.nice), ..Setting::default() });
        load.tasks.push(spec);
    }
    load.tasks.push(kernel_thread("kworker-512", 38 * US, 512_000_000, phase));
    load.tasks.push(kernel_thread("kworker-496", 40 * US, 496_000_000, phase));
    load.tasks.push(kernel_thread("kworker-2016", 38 * US, 2_016_000_000, phase));
    if old {
        load.tasks.push(first_ticks(phase));
    }
    load
}

fn outside(value: f64, [low, high]: [f64; 2]) -> f64 {
    (low - value).max(value - high).max(0.0)
}

/// The worst task's distance in units of the tolerance, for CPU time, wait and slices.
fn distances(case: &Case, accounts: &[Account]) -> [f64; 3] {
    let mut worst = [0f64; 3];
    for (task, ours) in case.tasks.iter().zip(accounts) {
        let run = ours.run as f64 / 1e3 + SETUP.0;
        let wait = (ours.wait - ours.unfinished) as f64 / 1e3;
        let slices = ours.slices as f64 + SETUP.1;
        let one_wait = task.wait_us[1] / task.slices[1].max(1.0);
        let tolerances = [
            (3.0 * TICK as f64 / 1e3).max(0.01 * task.run_us[1]),
            (0.03 * task.wait_us[1]).max(15_000.0).max(one_wait),
            (0.03 * task.slices[1]).max(3.0),
        ];
        let off = [outside(run, task.run_us), outside(wait, task.wait_us), outside(slices, task.slices)];
        for i in 0..3 {
            worst[i] = worst[i].max(off[i] / tolerances[i]);
        }
    }
    worst
}

fn judge(kernel: &str, text: &str, old: bool, known: &[&str]) {
    let cases: Vec<Case> = serde_json::from_str(text).unwrap();
    assert_eq!(cases.len(), 18);
    let mut wrong = Vec::new();
    for case in &cases {
        let mut phases: Vec<[f64; 3]> = (0..8)
            .map(|k| {
                let phase = 250 * US + k * 500 * US;
                let set = [("tick_phase_us", (phase / US).to_string())];
                let machine = schedlab_machine::load("up").unwrap();
                let duration = (case.seconds * 1e9) as Nanos;
                let accounts = simulate(kernel, &machine, &load(case, old, phase), &set, duration);
                distances(case, &accounts.tasks)
            })
            .collect();
        let median = |i: usize, phases: &mut Vec<[f64; 3]>| {
            phases.sort_by(|a, b| a[i].total_cmp(&b[i]));
            (phases[3][i] + phases[4][i]) / 2.0
        };
        for (i, what) in ["CPU time", "wait", "slices"].iter().enumerate() {
            let off = median(i, &mut phases);
            if off > 1.0 && !known.contains(&case.id.as_str()) {
                wrong.push(format!("{}: {what} is off by {off:.2} tolerances", case.id));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn linux_6_1_is_met() {
    judge("linux-6.1", include_str!("oracles/linux-6.1-up.json"), true, &[]);
}

#[test]
fn linux_6_12_is_met() {
    judge("linux-6.12", include_str!("oracles/linux-6.12-up.json"), false, &[]);
}

//! The `linux-6.12` profile against Debian's kernel in guests of 4 CPUs (2 nodes of 2) and 12 (2 of 6).
//!
//! The runs are single ones of a chaotic system. What is judged: the total busy time within 2%; of equal hogs the spread
//! (greatest less least, by the mean) within 5 points of the kernel's; each task's CPU time within 6% of the wall time; the
//! switches of all within 20%.
//!
//! The guest's virtual CPUs share one instruction clock: they go on in turn while time passes for all. A CPU therefore has a
//! tick only once a round, every 18 ms with 4 CPUs and every 52 ms with 12 (36 equal hogs have turns of 52 ms, though
//! their slices are of one tick of 4 ms). The model has that as its tick. Of bursts a turn away eats a part: 5 ms of burst
//! come to 8.5 ms of CPU time in the guest, and the sleep begins later; [`UNMET`] names what follows from it.

mod support;

use schedlab_machine::MachineFile;
use schedlab_sim::program::{Load, Op, Start};
use serde::Deserialize;
use support::{exactly, forever, hog, simulate};

#[derive(Deserialize)]
struct Case {
    id: String,
    wall_us: u64,
    cpus: u32,
    nodes: u32,
    tasks: Vec<Task>,
}

#[derive(Deserialize)]
struct Task {
    nice: i8,
    run_us: f64,
    slices: f64,
    #[serde(default)]
    burst_us: u64,
    #[serde(default)]
    sleep_us: u64,
}

const US: u64 = 1_000;

fn simulated(case: &Case) -> Vec<(f64, f64)> {
    let file = MachineFile::flat("guest", case.nodes, case.cpus / case.nodes, 1);
    let machine = MachineFile { distances: vec![vec![10, 21], vec![21, 10]], ..file }.build().unwrap();
    let task = |(i, t): (usize, &Task)| {
        let name = format!("t{i}");
        if t.burst_us == 0 {
            return hog(&name, t.nice);
        }
        forever(&name, t.nice, vec![Op::Run(exactly(t.burst_us * US)), Op::Sleep(exactly(t.sleep_us * US))])
    };
    let tasks = case.tasks.iter().enumerate().map(task).collect();
    let load = Load { tasks, start: Start::Wake, ..Load::default() };
    let tick = ("tick_ns", (4_400_000 * u64::from(case.cpus)).to_string());
    let accounts = simulate("linux-6.12", &machine, &load, &[tick], case.wall_us * US);
    accounts.tasks.iter().map(|t| (t.run as f64 / 1e3, t.slices as f64)).collect()
}

/// What a run is told by: total busy time, spread of equal hogs in points, the worst task's CPU time in parts of the wall
/// time, the switches of all tasks in parts of the kernel's.
fn compare(case: &Case) -> [f64; 4] {
    let ours = simulated(case);
    let busy = |runs: &[f64]| runs.iter().sum::<f64>();
    let (kernel, model): (Vec<f64>, Vec<f64>) =
        (case.tasks.iter().map(|t| t.run_us).collect(), ours.iter().map(|t| t.0).collect());
    let spread = |runs: &[f64]| {
        let (least, most) =
            runs.iter().fold((f64::MAX, 0.0f64), |(least, most), run| (least.min(*run), most.max(*run)));
        100.0 * (most - least) * runs.len() as f64 / busy(runs)
    };
    let wall = case.wall_us as f64;
    let equal = case.tasks.iter().all(|t| t.nice == case.tasks[0].nice && t.burst_us == 0);
    // Equal tasks are compared in order of their CPU time: which of them is favoured is chance.
    let (mut theirs, mut mine) = (kernel.clone(), model.clone());
    if equal {
        theirs.sort_by(f64::total_cmp);
        mine.sort_by(f64::total_cmp);
    }
    let worst = theirs.iter().zip(&mine).map(|(a, b)| (a - b).abs() / wall).fold(0.0, f64::max);
    let slices = |all: &mut dyn Iterator<Item = f64>| all.sum::<f64>();
    let (their_slices, my_slices) =
        (slices(&mut case.tasks.iter().map(|t| t.slices)), slices(&mut ours.iter().map(|t| t.1)));
    [
        busy(&model) / busy(&kernel) - 1.0,
        if equal { spread(&model) - spread(&kernel) } else { 0.0 },
        worst,
        my_slices / their_slices - 1.0,
    ]
}

/// What is not met, and why.
const UNMET: &[(&str, &[&str])] = &[
    // Kernel threads, of which the oracle does not tell, take CPUs and part of the switches where few tasks wait; where
    // they sit is chance, and evens out the hogs less than the model's one rotation over the groups.
    ("linux-6.12-4cpu-s0", &["spread", "slices"]),
    ("linux-6.12-4cpu-s1", &["spread"]),
    ("linux-6.12-4cpu-s3", &["slices"]),
    ("linux-6.12-4cpu-s7", &["slices"]),
    ("linux-6.12-12cpu-s0", &["slices"]),
    ("linux-6.12-12cpu-s1", &["spread"]),
    // Five equal hogs are left for three CPUs: one has a CPU to itself, which changes hands in the guest whenever a kernel
    // thread makes a second task on it, and never in the model.
    ("linux-6.12-4cpu-s4", &["cpu time"]),
    ("linux-6.12-12cpu-s2", &["busy", "cpu time", "slices"]),
    // Bursts.
    ("linux-6.12-4cpu-s5", &["cpu time", "slices"]),
    ("linux-6.12-4cpu-s6", &["busy", "cpu time"]),
    ("linux-6.12-12cpu-s3", &["busy", "cpu time", "slices"]),
];

#[test]
fn linux_6_12_on_several_cpus() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("oracles/linux-6.12-smp.json")).unwrap();
    assert_eq!(cases.len(), 12);
    let mut met = 0;
    for case in &cases {
        let found = compare(case);
        let unmet = UNMET.iter().find(|(id, _)| *id == case.id).map_or(&[][..], |(_, unmet)| unmet);
        for (what, (off, bound)) in
            ["busy", "spread", "cpu time", "slices"].iter().zip(found.into_iter().zip([0.02, 5.0, 0.06, 0.2]))
        {
            let holds = off.abs() <= bound;
            met += u32::from(holds);
            assert!(holds || unmet.contains(what), "{}: {what} is off by {off:.3}, {found:.3?}", case.id);
        }
    }
    assert!(met >= 30, "{met} of 48");
}

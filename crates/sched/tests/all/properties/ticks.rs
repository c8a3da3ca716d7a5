//! Ticks skipped and every tick taken: random loads with all policies, changes and constants give the same events. For
//! O(1) and all schedulers that were never in a release.

use crate::support::{Accounts, bare, forever, simulate_how};
use schedlab_base::{Cost, Nanos, Rng};
use schedlab_machine::Machine;
use schedlab_sched::kernels::{How, KERNELS, Kernel};
use schedlab_sim::program::{Amount, Load, Op, Policy, Setting, Start, TaskSpec};

const US: Nanos = 1_000;
const NICE: [i8; 7] = [0, 0, 0, -20, -5, 7, 19];

fn amount(rng: &mut Rng, most_us: u64) -> Amount {
    // Events coincide at whole ticks, so make these frequent.
    let us = 1 + rng.below(most_us);
    let mean = if rng.below(2) == 0 { us.next_multiple_of(1000) * US } else { us * US };
    Amount { mean, sd: if rng.below(4) == 0 { mean / 4 } else { 0 } }
}

fn body(rng: &mut Rng) -> Vec<Op> {
    let mut ops = vec![Op::Run(amount(rng, 40_000))];
    for _ in 0..rng.below(5) {
        ops.push(match rng.below(9) {
            0..3 => Op::Run(amount(rng, 200_000)),
            3..5 => Op::Sleep(amount(rng, 300_000)),
            5 => Op::Io(rng.below(30_000) * US),
            6 => Op::Yield,
            7 => Op::Set(rng.below(4) as u32),
            _ => Op::SemPost(0),
        });
    }
    match rng.below(8) {
        0 => ops.push(Op::Fork(0)),
        1 => ops.insert(0, Op::SemWait(0)),
        _ => {}
    }
    ops
}

fn setting(rng: &mut Rng) -> Setting {
    Setting { nice: Some(NICE[rng.below(7) as usize]), ..Setting::default() }
}

fn task(rng: &mut Rng, i: u64, cpus: u32) -> TaskSpec {
    let mut spec = match rng.below(3) {
        0 => forever(&format!("hog-{i}"), 0, vec![Op::Run(amount(rng, 1_000_000))]),
        _ => forever(&format!("task-{i}"), 0, body(rng)),
    };
    spec.initial = setting(rng);
    if rng.below(8) == 0 {
        spec.initial.policy = Some(Policy::Batch);
    } else if rng.below(8) == 0 {
        let policy = if rng.below(3) == 0 { Policy::Fifo } else { Policy::Rr };
        (spec.initial.policy, spec.initial.rt_priority) = (Some(policy), Some(1 + rng.below(2) as u8));
    }
    if rng.below(5) == 0 {
        spec.initial.cpus = Some(vec![rng.below(u64::from(cpus)) as u32]);
    }
    spec.start = rng.below(3) * rng.below(50_000) * US;
    spec.lifetime = (rng.below(6) == 0).then(|| amount(rng, 800_000).mean);
    spec
}

fn load(rng: &mut Rng, cpus: u32) -> Load {
    let mut tasks: Vec<_> = (0..1 + rng.below(7)).map(|i| task(rng, i, cpus)).collect();
    // The semaphore is posted regularly, so that no task waits there for ever.
    let feed = vec![Op::Run(amount(rng, 1_000)), Op::SemPost(0), Op::Sleep(amount(rng, 60_000))];
    tasks.push(forever("feeder", 0, feed));
    let child = TaskSpec { name: "child".into(), program: body(rng), ..TaskSpec::default() };
    let child = TaskSpec { program: child.program.into_iter().filter(|op| *op != Op::Fork(0)).collect(), ..child };
    Load {
        tasks,
        templates: vec![child],
        settings: (0..4).map(|_| setting(rng)).collect(),
        sems: vec!["sem".into()],
        start: [Start::Wake, Start::Fork, Start::Threads][rng.below(3) as usize],
        ..Load::default()
    }
}

/// Sometimes returns constants with which more happens in a second than with the released ones.
fn tunables(kernel: &str, rng: &mut Rng) -> Vec<(&'static str, String)> {
    if rng.below(2) == 0 {
        return Vec::new();
    }
    let slice = (1 + rng.below(150)).to_string();
    let turn = (1 + rng.below(10)).to_string();
    let hz = ("hz", ["1000", "1000", "250", "300"][rng.below(4) as usize].to_owned());
    let switch = |rng: &mut Rng| ["on", "off"][rng.below(2) as usize].to_owned();
    let of_release = match kernel {
        "bfs" => {
            return vec![
                hz,
                ("rr_interval", (1 + rng.below(20)).to_string()),
                ("cap_sys_nice", switch(rng)),
                ("iso_cpu", rng.below(20).to_string()),
                ("uptime", (rng.below(2) * 60_000).to_string()),
            ];
        }
        "mlfq" => {
            return vec![
                hz,
                ("base_slice", (1 + rng.below(20)).to_string()),
                ("levels", (1 + rng.below(8)).to_string()),
                ("boost", (rng.below(3) * rng.below(500)).to_string()),
            ];
        }
        "rsdl" => return vec![hz, ("rr_interval", turn)],
        "sd" => return vec![hz, ("rr_interval", turn), ("interactive", switch(rng))],
        _ if !kernel.starts_with("linux") => return vec![hz],
        "linux-2.6.0" => [("max_timeslice", slice), ("min_timeslice", turn)],
        _ => [("def_timeslice", slice), ("timeslice_granularity", turn)],
    };
    let others = [
        hz,
        ("prio_bonus_ratio", rng.below(101).to_string()),
        ("max_sleep_avg", (1 + rng.below(1000)).to_string()),
        ("starvation_limit", rng.below(50).to_string()),
    ];
    of_release.into_iter().chain(others).collect()
}

/// Gives some tasks the policy IDLE, and makes others change their policies.
fn change_policies(load: &mut Load, rng: &mut Rng) {
    const POLICIES: [(Policy, u8); 5] =
        [(Policy::Other, 0), (Policy::Batch, 0), (Policy::Idle, 0), (Policy::Fifo, 1), (Policy::Rr, 2)];
    for setting in &mut load.settings {
        let (policy, rt_priority) = POLICIES[rng.below(5) as usize];
        (setting.policy, setting.rt_priority) = (Some(policy), Some(rt_priority));
    }
    for task in load.tasks.iter_mut().filter(|task| task.initial.policy.is_none()) {
        if rng.below(8) == 0 {
            task.initial.policy = Some(Policy::Idle);
        }
    }
}

fn both(kernel: &str, machine: &Machine, load: &Load, set: &[(&str, String)], seed: u64) -> (Accounts, Accounts) {
    let run = |skip_ticks| {
        let how = How { duration: Some(3_000_000_000), seed, skip_ticks };
        simulate_how(kernel, machine, load, set, &how)
    };
    (run(true), run(false))
}

/// Returns how many events random loads produce, after checking that they are the same with ticks skipped and taken.
fn events_of(kernel: &str) -> usize {
    let mut events = 0;
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let mut machine = match rng.below(4) {
            0 | 1 => bare("up"),
            2 => bare("1x2x1"),
            _ => schedlab_machine::load("2x2x1").expect("a machine"),
        };
        machine.costs.own_wakeup_to_switch_ns = (7_000 * (seed % 2)).into();
        machine.costs.waking_call_ns = 4_000 * (seed % 5 / 3);
        let costs = &mut machine.costs;
        (costs.forking_call_ns, costs.forked_task_ns, costs.exit_ns) =
            (9_000 * (seed % 7 / 5), 30_000 * (seed % 7 / 4), 8_000 * (seed % 7 / 3));
        if seed % 3 == 0 {
            machine.costs.timer_to_switch_ns =
                Cost::Varying([0, 1_000, 2_000, 3_000, 4_000, 9_000, 20_000, 50_000, 90_000]);
        }
        let mut load = load(&mut rng, machine.cpus.len() as u32);
        let set = tunables(kernel, &mut rng);
        if !kernel.starts_with("linux") {
            change_policies(&mut load, &mut rng);
        }
        let (skipped, taken) = both(kernel, &machine, &load, &set, seed);
        let differs = skipped.events.iter().zip(&taken.events).position(|(a, b)| a != b);
        if let Some(i) = differs {
            panic!(
                "{kernel}, seed {seed}: event {i} is {:?}, and with every tick {:?}",
                skipped.events[i], taken.events[i]
            );
        }
        assert_eq!(skipped.events.len(), taken.events.len(), "{kernel}, seed {seed}");
        events += taken.events.len();
    }
    events
}

#[test]
fn skipped_ticks_change_nothing() {
    let others = |kernel: &&&Kernel| kernel.scheduler == "O(1)" || !kernel.name.starts_with("linux");
    for kernel in KERNELS.iter().filter(others) {
        let events = events_of(kernel.name);
        assert!(events > 50_000, "the loads do too little under {}: {events} events", kernel.name);
    }
}

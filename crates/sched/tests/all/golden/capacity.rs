//! The capacity that real-time and deadline tasks leave of a CPU: worked examples.

use crate::support::registry::releases;
use crate::support::{Accounts, MS, bare, exactly, forever, hog, pinned, run, simulate_how, sleep, threads};
use schedlab_base::{Event, Nanos, Payload, v, v2_6};
use schedlab_machine::{Costs, Machine, MachineFile};
use schedlab_sched::kernels::{self, How};
use schedlab_sim::program::{Load, Op, Policy, Setting, TaskSpec};

fn go(kernel: &str, machine: &Machine, load: &Load, ms: Nanos) -> Accounts {
    simulate_how(kernel, machine, load, &[], &How { duration: Some(ms * MS), seed: 1, skip_ticks: true })
}

/// A real-time task that runs for `ms` of each 10 ms on a CPU.
fn real_time(ms: Nanos, cpu: u32) -> TaskSpec {
    let mut spec = pinned(forever("rt", 0, vec![run(ms), sleep(10 - ms)]), cpu);
    (spec.initial.policy, spec.initial.rt_priority) = (Some(Policy::Fifo), Some(10));
    spec
}

/// A hog that starts on CPU 0 and after 5 ms may run anywhere, by setting 0.
fn let_go(name: &str) -> TaskSpec {
    let mut spec = pinned(hog(name, 0), 0);
    spec.program.splice(0..0, [Op::Run(exactly(5 * MS)), Op::Set(0)]);
    if let Some(Op::LoopEnd { start }) = spec.program.last_mut() {
        *start += 2;
    }
    spec
}

fn anywhere(tasks: Vec<TaskSpec>, cpus: u32) -> Load {
    let all = Setting { cpus: Some((0..cpus).collect()), ..Setting::default() };
    Load { settings: vec![all], ..threads(tasks) }
}

fn hogs(n: usize) -> Vec<TaskSpec> {
    ["a", "b", "c"][..n].iter().map(|name| let_go(name)).collect()
}

/// A real-time task leaves 40% of CPU 0 to a hog; the other CPUs are idle. While the hog runs alone, its CPU's capacity
/// is reduced by more than 17%, so an idle CPU has it pushed over (`check_cpu_capacity`). While the hog waits, its CPU
/// is overloaded: 1024 runnable with a capacity of 410. If real-time tasks were not subtracted, 1024 of 1024 with one
/// fair task would make the CPU fully busy and no more: in 6.1 the hog would stay, with 40%.
#[test]
fn a_hog_leaves_a_cpu_of_which_real_time_or_deadline_tasks_use_most() {
    let deadline = || {
        let mut spec = forever("dl", 0, vec![run(6), sleep(4)]);
        (spec.initial.policy, spec.initial.dl) = (Some(Policy::Deadline), Some((7 * MS, 10 * MS, 10 * MS)));
        spec
    };
    for kernel in releases(v(5, 0)..) {
        for above in [real_time(6, 0), deadline()] {
            let name = above.name.clone();
            let load = anywhere([hogs(1), vec![above]].concat(), 4);
            let accounts = go(kernel, &bare("4"), &load, 1000);
            let hog = accounts.named("a");
            assert!(hog.run >= 950 * MS && hog.migrations == 1, "{kernel}, {name}: {hog:?}");
        }
    }
}

/// Real-time tasks take 30% of CPU 0, where three hogs run. 4.1 calls a group overloaded if its usage plus 17% exceeds
/// its capacity: 700 of 1024 would not, and the other CPU would stay idle for ever; 700 of 717 does.
#[test]
fn what_real_time_tasks_leave_is_soon_full() {
    let accounts = go("linux-4.1", &bare("2"), &anywhere([hogs(3), vec![real_time(3, 0)]].concat(), 2), 4000);
    let all: Nanos = ["a", "b", "c"].iter().map(|name| accounts.named(name).run / MS).sum();
    assert!(all >= 6000, "{all} of 6800 ms");
}

/// The same under 2.6.32: one hog on CPU 0, with a power of 717, and two on CPU 1 count as even. By power the loads are
/// 1463 and 2048, the average 1807. CPU 1 has 240 too many, less than half of a hog. If both CPUs had 1024, with loads
/// of 1024 and 2048, a hog would move back and forth for ever.
#[test]
fn a_cpu_that_real_time_tasks_use_is_worth_less() {
    let late = |ms| {
        let tasks = if ms == 0 { hogs(3) } else { [hogs(3), vec![real_time(ms, 0)]].concat() };
        let accounts = go("linux-2.6.32", &bare("2"), &anywhere(tasks, 2), 4000);
        let moved = |e: &&schedlab_base::Event| matches!(e.what, schedlab_base::Payload::Migrate { .. });
        accounts.events.iter().filter(moved).filter(|e| e.time > 2000 * MS).count()
    };
    assert_eq!(late(3), 0);
    assert!(late(0) > 10);
}

/// Skipping ticks does not change the remaining capacity.
#[test]
fn skipped_ticks_leave_the_same() {
    for kernel in releases(v2_6(32)..) {
        for machine in ["4", "big-little-4+4"] {
            let load = anywhere([hogs(3), vec![real_time(3, 0), real_time(6, 1)]].concat(), 4);
            let go = |skip_ticks| {
                let how = How { duration: Some(2000 * MS), seed: 1, skip_ticks };
                simulate_how(kernel, &bare(machine), &load, &[], &how).events
            };
            assert_eq!(go(true), go(false), "{kernel}");
        }
    }
}

/// The time until which hogs are pinned to small CPUs: 1.5 ms after a tick.
const FREE: Nanos = 101 * MS + 500_000;

/// Simulates hogs that are pinned to small CPUs up to `FREE`, with a tick each 4 ms. CPU `looks` looks for work each
/// millisecond, and CPU `two` has two tasks, so that CPUs look for work at all (`rd->overload`).
fn misfits(kernel: &str, machine: &Machine, hogs: &[u32], (looks, two): (u32, u32), others: &[u32]) -> Accounts {
    let small = Nanos::from(machine.cpus[0].place.capacity);
    let hogs = hogs.iter().map(|cpu| {
        let mut hog = let_go(&format!("hog-{cpu}"));
        hog.program[0] = Op::Run(exactly(FREE * small / 1024));
        pinned(hog, *cpu)
    });
    let two = ["c", "d"].map(|name| {
        let mut spec = pinned(hog(name, 0), two);
        (spec.initial.policy, spec.initial.rt_priority) = (Some(Policy::Fifo), Some(10));
        spec
    });
    let mut short = pinned(forever("short", 0, vec![Op::Run(exactly(10_000)), Op::Sleep(exactly(990_000))]), looks);
    short.start = FREE - 5 * MS;
    let others = others.iter().map(|cpu| pinned(hog(&format!("other-{cpu}"), 0), *cpu));
    let load = anywhere(hogs.chain([short]).chain(two).chain(others).collect(), machine.cpus.len() as u32);
    let how = How { duration: Some(FREE + 10 * MS), seed: 1, skip_ticks: true };
    let hz = ("hz", "250".to_owned());
    let random = kernels::find(kernel).unwrap().tunable("NI_RANDOM").map(|t| (t.name, "off".to_owned()));
    let set: Vec<_> = random.into_iter().chain([hz]).collect();
    simulate_how(kernel, machine, &load, &set, &how)
}

/// The first migration: when, of which task, and to which CPU.
fn first_move(accounts: &Accounts) -> Option<(Nanos, &str, u32)> {
    accounts.events.iter().find_map(|e| match e.what {
        Payload::Migrate { tid, to, .. } => Some((e.time, accounts.names[tid as usize - 1].as_str(), to)),
        _ => None,
    })
}

/// A hog on a small CPU becomes too big for it while it is pinned there, and is let go 1.5 ms after a tick. The kernel
/// notes a misfit when the CPU picks a task and at its ticks (`update_misfit_status`), and not for a pinned task. So a
/// big CPU that looks for work each millisecond finds nothing to pull before the next tick, and the hog moves only
/// after it, although it has been too big all the time.
#[test]
fn a_misfit_is_noted_at_the_tick() {
    for kernel in releases(v(5, 5)..) {
        let accounts = misfits(kernel, &bare("big-little-4+4"), &[0], (7, 1), &[]);
        let at = first_move(&accounts).map(|(at, ..)| at);
        let idle = |e: &&Event| e.cpu == 7 && e.time > FREE && matches!(e.what, Payload::Switch { next: 0, .. });
        assert!(at.is_some_and(|at| (104 * MS..105 * MS).contains(&at)), "{kernel}: {at:?}");
        assert!(accounts.events.iter().filter(idle).any(|e| Some(e.time) < at), "{kernel}: CPU 7 looks for work");
    }
}

/// Two hogs are equally too big for CPUs 1 and 2, which are in different groups. CPU 7 compares the groups in their
/// order: its own, then that of CPUs 0 and 1. `update_sd_pick_busiest` takes the last of equal misfits until 6.8, later
/// the first.
#[test]
fn of_equal_misfits_the_last_is_pulled_until_6_8() {
    let file = MachineFile { llc_cores: Some(2), ..MachineFile::of(&bare("big-little-4+4")).unwrap() };
    let machine = Machine { costs: Costs::none(), ..file.build().unwrap() };
    for kernel in releases(v(5, 5)..v(7, 0)) {
        let accounts = misfits(kernel, &machine, &[1, 2], (7, 3), &[]);
        let last = kernels::find(kernel).unwrap().release < Some(v(6, 9));
        let pulled = first_move(&accounts).map(|(_, name, to)| (name, to));
        assert_eq!(pulled, Some((if last { "hog-2" } else { "hog-1" }, 7)), "{kernel}");
    }
}

/// Each big core has two threads, one of which is busy. A misfit task is pulled to the other all the same, unless the
/// release has the change that asks for an idle core (the stable updates of 6.1, 6.12 and 6.18: `dst_core_idle`).
#[test]
fn a_misfit_is_pulled_to_a_busy_core_unless_an_update_forbids_it() {
    let mut file = MachineFile::of(&bare("big-little-4+4")).unwrap();
    file.threads = 2;
    let machine = Machine { costs: Costs::none(), ..file.build().unwrap() };
    let big: Vec<u32> = (0..16).filter(|cpu| machine.cpus[*cpu as usize].place.capacity == 1024).collect();
    let core = |cpu: &u32| machine.cpus[*cpu as usize].place.core;
    let first_of_core = |cpu: &&u32| big.iter().find(|other| core(other) == core(cpu)) == Some(*cpu);
    let busy: Vec<u32> = big.iter().filter(first_of_core).copied().collect();
    let looks = *big.iter().find(|cpu| !busy.contains(cpu)).unwrap();
    let small = (1..16).find(|cpu| !big.contains(cpu) && core(cpu) != core(&0)).unwrap();
    assert_eq!((big.len(), busy.len()), (8, 4));
    for kernel in releases(v(5, 5)..v(7, 0)) {
        let accounts = misfits(kernel, &machine, &[0], (looks, small), &busy);
        let pulled = first_move(&accounts).map(|(_, name, to)| (name, to));
        let asks = ["linux-6.1", "linux-6.12", "linux-6.18"].contains(&kernel);
        assert_eq!(pulled, (!asks).then_some(("hog-0", looks)), "{kernel}");
    }
}

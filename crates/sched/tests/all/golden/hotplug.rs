//! CPUs that go offline and come back online, under every kernel.

use crate::support::{bare, exactly, forever, hog, pinned, simulate_how, threads};
use schedlab_base::{Event, Nanos, Payload};
use schedlab_sched::kernels::{How, KERNELS};
use schedlab_sim::program::{Hotplug, Load, Op};

const MS: Nanos = 1_000_000;

/// Hogs, a sleeper and one task that asks for CPU 3, on four CPUs, of which CPU 3 is offline from 300 to 600 ms.
fn load() -> Load {
    let mut tasks: Vec<_> = (0..5).map(|i| hog(&format!("hog-{i}"), 0)).collect();
    tasks.push(forever("sleeper", 0, vec![Op::Run(exactly(MS)), Op::Sleep(exactly(7 * MS))]));
    let mut pinned = hog("pinned", 0);
    pinned.initial.cpus = Some(vec![3]);
    tasks.push(pinned);
    let change = |at, online| Hotplug { at, cpu: 3, online };
    Load { tasks, hotplug: vec![change(300 * MS, false), change(600 * MS, true)], ..Load::default() }
}

fn runs_on(events: &[Event], cpu: u32) -> Vec<(Nanos, i32)> {
    let on = |e: &&Event| e.cpu == cpu;
    let to = |e: &Event| if let Payload::Switch { next, .. } = e.what { Some((e.time, next)) } else { None };
    events.iter().filter(on).filter_map(to).collect()
}

#[test]
fn nobody_runs_where_there_is_no_cpu_and_nobody_is_lost() {
    for kernel in KERNELS.iter().filter(|k| k.most_cpus().is_none()) {
        for skip_ticks in [true, false] {
            let how = How { duration: Some(1000 * MS), seed: 1, skip_ticks };
            let accounts = simulate_how(kernel.name, &bare("4"), &load(), &[], &how);
            let away: Vec<_> = runs_on(&accounts.events, 3);
            let gone = away.iter().find(|(at, next)| *at == 300 * MS && *next == 0);
            assert!(gone.is_some(), "{}: CPU 3 goes idle when it goes", kernel.name);
            assert!(!away.iter().any(|(at, next)| (300 * MS..600 * MS).contains(at) && *next != 0), "{}", kernel.name);
            let total: Nanos = accounts.tasks.iter().map(|t| t.run).sum();
            let capacity = 3 * 1000 * MS + 700 * MS;
            assert!(total <= capacity && total > capacity - 150 * MS, "{}: {total} of {capacity}", kernel.name);
            let pinned = accounts.named("pinned");
            assert!(pinned.run > 400 * MS, "{}: pinned ran {}", kernel.name, pinned.run);
        }
    }
}

/// Returns the lengths, in ms, of the turns on CPU 0 that began in a span of time.
fn turns(events: &[Event], from: Nanos, to: Nanos) -> Vec<Nanos> {
    let runs = runs_on(events, 0);
    let pairs = runs.windows(2).filter(|w| w[0].0 >= from && w[1].0 < to);
    pairs.map(|w| (w[1].0 - w[0].0) / MS).collect()
}

/// Three hogs on CPU 0 share a latency of 18 ms while four CPUs are counted, and of 12 ms while two or three are: turns
/// of 6 and 4 ms, slightly less by the kernel's rounding, so that the tick then ends them. With one CPU left two are
/// counted, because the CPU that goes offline still counts.
#[test]
fn the_latency_follows_the_cpus_online_and_the_one_that_goes() {
    let tasks = ["a", "b", "c"].map(|name| pinned(hog(name, 0), 0)).to_vec();
    let change = |at: Nanos, cpu, online| Hotplug { at: at * MS, cpu, online };
    let hotplug = [(100, 3, false), (200, 2, false), (300, 1, false), (400, 1, true), (500, 2, true), (600, 3, true)]
        .map(|(at, cpu, online)| change(at, cpu, online))
        .to_vec();
    let load = Load { hotplug, ..threads(tasks) };
    for kernel in ["linux-3.10", "linux-3.18", "linux-4.1"] {
        let run = |skip_ticks| {
            let how = How { duration: Some(700 * MS), seed: 1, skip_ticks };
            simulate_how(kernel, &bare("4"), &load, &[("hz", "1000".to_owned())], &how)
        };
        let (skipping, every) = (run(true), run(false));
        assert_eq!(skipping.events, every.events, "{kernel}: ticks skipped and taken");
        // Four CPUs; three, as the one going offline counts; two, one and two; three; four.
        for (from, turn) in [(30, 6), (110, 6), (210, 4), (310, 4), (410, 4), (510, 4), (610, 6)] {
            let found = turns(&every.events, from * MS, (from + 80) * MS);
            assert!(found.len() > 8 && found.iter().all(|t| *t == turn), "{kernel} from {from} ms: {found:?}");
        }
    }
}

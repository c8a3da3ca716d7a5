//! CPUs that go offline and come back, under every kernel.

mod support;

use schedlab_base::{Event, Nanos, Payload};
use schedlab_sched::kernels::{How, KERNELS};
use schedlab_sim::program::{Hotplug, Load, Op};
use support::{bare, exactly, forever, hog, simulate_how};

const MS: Nanos = 1_000_000;

/// Hogs, a sleeper and one task that asks for CPU 3, on four CPUs of which CPU 3 is away from 300 to 600 ms.
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

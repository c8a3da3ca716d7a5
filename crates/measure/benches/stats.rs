//! How many events of statistics and of delays are done in a CPU second: from memory, and from a trace file.
//!
//! `cargo bench -p schedlab-measure [-- TRACE]`; without a trace, 1.5 million events of 64 tasks on 8 CPUs.

use schedlab_base::{Context, CpuPlace, Event, Meta, Payload, Rng, Sink, TaskState};
use schedlab_measure::Stats;
use schedlab_measure::delays::{Delays, WORST};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const EVENTS: usize = 1_500_000;
const CPUS: u32 = 8;
const TASKS: i32 = 64;

/// A load of tasks that are woken, preempted, moved and put to sleep at random.
fn load() -> (Meta, Vec<Event>) {
    let place = |cpu| CpuPlace { cpu, core: cpu, node: cpu / 4, capacity: 1024, ..CpuPlace::default() };
    let meta = Meta {
        source: "bench".into(),
        cpus: (0..CPUS).map(place).collect(),
        running: (0..CPUS).map(|cpu| (cpu, 0)).collect(),
        ..Meta::default()
    };
    let mut rng = Rng::new(1);
    let mut sleeping: Vec<i32> = (1..=TASKS).map(|i| 1000 + 7 * i).collect();
    let mut queues = vec![Vec::<i32>::new(); CPUS as usize];
    let mut current = vec![0; CPUS as usize];
    let (mut events, mut time) = (Vec::with_capacity(EVENTS + 4), 1_000_000_000u64);
    while events.len() < EVENTS {
        let cpu = rng.below(u64::from(CPUS)) as u32;
        time += 200 + rng.below(3000);
        let mut push = |what| events.push(Event { time, cpu, what });
        if rng.below(2) == 0 && !sleeping.is_empty() {
            let tid = sleeping.swap_remove(rng.below(sleeping.len() as u64) as usize);
            let target = rng.below(u64::from(CPUS)) as u32;
            push(Payload::Waking { tid, prio: 120, target, waker: current[cpu as usize], context: Context::Task });
            if rng.below(4) == 0 {
                push(Payload::Migrate { tid, prio: 120, from: cpu, to: target });
            }
            push(Payload::Wakeup { tid, prio: 120, target });
            queues[target as usize].push(tid);
        } else {
            let queue = &mut queues[cpu as usize];
            let next = if queue.is_empty() { 0 } else { queue.remove(0) };
            let prev = std::mem::replace(&mut current[cpu as usize], next);
            let preempted = prev != 0 && rng.below(3) == 0;
            if preempted {
                queue.push(prev);
            } else if prev != 0 {
                sleeping.push(prev);
            }
            if prev != next {
                let prev_state = if preempted || prev == 0 { TaskState::Runnable } else { TaskState::Sleeping };
                push(Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 });
            }
        }
    }
    (meta, events)
}

/// The process's CPU time, from the kernel's account in ticks of 10 ms; wall time where there is none.
fn cpu_time(started: Instant) -> Duration {
    let ticks = std::fs::read_to_string("/proc/self/stat").ok().and_then(|stat| {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
    });
    ticks.map_or_else(|| started.elapsed(), |ticks| Duration::from_millis(10 * ticks))
}

/// Repeats until two CPU seconds are spent and prints the rate.
fn measure(what: &str, events: u64, mut once: impl FnMut()) {
    let started = Instant::now();
    let before = cpu_time(started);
    let mut rounds = 0u64;
    while cpu_time(started) - before < Duration::from_secs(2) {
        once();
        rounds += 1;
    }
    let rate = (events * rounds) as f64 / (cpu_time(started) - before).as_secs_f64();
    println!("{what}: {:.1} M events per CPU second, {:.1} ns an event ({rounds} rounds)", rate / 1e6, 1e9 / rate);
}

/// A sink that only counts.
struct Count(u64);

impl Sink for Count {
    fn events(&mut self, batch: &[Event]) {
        self.0 += std::hint::black_box(batch).len() as u64;
    }

    fn name(&mut self, _: &schedlab_base::NameRecord) {}
}

fn main() {
    let given = std::env::args().skip(1).find(|arg| !arg.starts_with('-')).map(PathBuf::from);
    let scratch = tempfile::tempdir().expect("a scratch directory");
    let path = given.clone().unwrap_or_else(|| scratch.path().join("bench.arrows"));
    let (meta, events) = match given {
        Some(path) => {
            let trace = schedlab_trace::read_all(path).expect("the trace is readable");
            (trace.meta, trace.events)
        }
        None => load(),
    };
    let count = events.len() as u64;
    measure("write", count, || {
        let mut writer = schedlab_trace::Writer::new(std::io::sink(), &meta).expect("a sink takes all");
        writer.events(&events);
        writer.finish().expect("a sink takes all");
    });
    if !path.exists() {
        let mut writer = schedlab_trace::Writer::create(&path, &meta).expect("the scratch directory is writable");
        writer.events(&events);
        let bytes = writer.finish().expect("the scratch directory is writable").bytes;
        println!("file: {:.2} bytes an event", bytes as f64 / count as f64);
    }
    measure("read", count, || {
        schedlab_trace::read_into(&path, &mut Count(0)).expect("the trace is readable");
    });
    measure("stats from memory", count, || {
        let mut stats = Stats::new(&meta);
        stats.events(&events);
        std::hint::black_box(stats.finish(None));
    });
    measure("delays from memory", count, || {
        let mut delays = Delays::new(&meta, None, WORST);
        delays.events(&events);
        std::hint::black_box(delays.finish(None));
    });
    measure("delays from the file", count, || {
        let mut delays = Delays::new(&meta, None, WORST);
        schedlab_trace::read_into(&path, &mut delays).expect("the trace is readable");
        std::hint::black_box(delays.finish(None));
    });
    measure("stats from the file", count, || {
        let mut stats = Stats::new(&meta);
        schedlab_trace::read_into(&path, &mut stats).expect("the trace is readable");
        std::hint::black_box(stats.finish(None));
    });
}

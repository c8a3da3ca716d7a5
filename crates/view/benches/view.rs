//! How long it takes until a trace can be shown, how long a tile takes at each zoom, and the memory of the rows.
//!
//! `cargo bench -p schedlab-view [-- TRACE]`; without a trace, 10 million events of 1,000 tasks on 64 CPUs, and 10
//! million of 20,000 tasks on 4,096 CPUs over an hour. `-- --keep=DIR` leaves these two in a folder, for
//! `web/bench/page.mjs`.

use schedlab_base::{Context, CpuPlace, Event, Meta, Payload, Rng, Sink, TaskState};
use schedlab_trace::Writer;
use schedlab_view::rows::By;
use schedlab_view::tile::{BINS, Place, tiles};
use schedlab_view::{answer, open};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A load of tasks that are woken, preempted, moved and put to sleep at random, written to a file.
fn write(path: &std::path::Path, events: u64, cpus: u32, tasks: i32, length: u64) {
    let place = |cpu| CpuPlace { cpu, core: cpu, node: cpu / 16, capacity: 1024, ..CpuPlace::default() };
    let meta = Meta {
        source: "bench".into(),
        cpus: (0..cpus).map(place).collect(),
        running: (0..cpus).map(|cpu| (cpu, 0)).collect(),
        span: Some((0, length)),
        ..Meta::default()
    };
    let mut writer = Writer::create(path, &meta).expect("the folder is writable");
    let mut rng = Rng::new(1);
    let mut sleeping: Vec<i32> = (1..=tasks).map(|i| 1000 + 7 * i).collect();
    let mut queues = vec![std::collections::VecDeque::<i32>::new(); cpus as usize];
    let mut current = vec![0; cpus as usize];
    let (mut batch, mut written, mut time, step) = (Vec::new(), 0, 0u64, length / events.max(1));
    while written < events {
        let cpu = rng.below(u64::from(cpus)) as u32;
        time = (time + 1 + rng.below(2 * step.max(1))).min(length);
        let mut push = |what| batch.push(Event { time, cpu, what });
        if rng.below(2) == 0 && !sleeping.is_empty() {
            let tid = sleeping.swap_remove(rng.below(sleeping.len() as u64) as usize);
            let target = rng.below(u64::from(cpus)) as u32;
            push(Payload::Waking { tid, prio: 120, target, waker: current[cpu as usize], context: Context::Task });
            push(Payload::Wakeup { tid, prio: 120, target });
            queues[target as usize].push_back(tid);
        } else {
            let queue = &mut queues[cpu as usize];
            let next = queue.pop_front().unwrap_or(0);
            let prev = std::mem::replace(&mut current[cpu as usize], next);
            let preempted = prev != 0 && rng.below(3) == 0;
            if preempted {
                queue.push_back(prev);
            } else if prev != 0 {
                sleeping.push(prev);
            }
            if prev != next {
                let prev_state = if preempted || prev == 0 { TaskState::Runnable } else { TaskState::Sleeping };
                push(Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 });
            }
        }
        if batch.len() > 1 << 14 {
            written += batch.len() as u64;
            writer.events(&batch);
            batch.clear();
        }
    }
    writer.events(&batch);
    writer.finish().expect("the disk has room");
}

/// The CPU time of this process so far.
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

fn timed<T>(what: &str, act: impl FnOnce() -> T) -> T {
    let (wall, cpu) = (Instant::now(), cpu_time());
    let result = act();
    let (wall, cpu) = (wall.elapsed(), cpu_time() - cpu);
    println!("{what}: {:.1} ms ({:.1} ms of CPU time)", wall.as_secs_f64() * 1e3, cpu.as_secs_f64() * 1e3);
    result
}

fn look(path: &Path) {
    let loaded = open(0, path, None).expect("a trace");
    timed("reading it into rows", || loaded.read(&|| ())).expect("a whole trace");
    let indexer = loaded.indexer();
    let (index, events) = (&indexer.index, indexer.counts().0);
    let mib = index.bytes() as f64 / f64::from(1 << 20);
    println!(
        "{events} events: {} spans, {mib:.0} MiB, {:.1} bytes an event",
        index.spans(),
        index.bytes() as f64 / events as f64
    );
    let rows = timed("the rows of tasks", || loaded.rows(By::Task, &indexer, false));
    let top = (index.end / BINS).max(1).next_power_of_two().trailing_zeros();
    for level in [top, top.saturating_sub(2), top.saturating_sub(5), top.saturating_sub(9), 6] {
        let place = Place { level, tile: 0 };
        let wanted: Vec<u32> = (0..64).collect();
        let cpus = loaded.rows(By::Cpu, &indexer, false);
        timed(&format!("a tile of 64 CPUs, bins of 2^{level} ns"), || tiles(index, &cpus, &wanted, &[place]));
        timed(&format!("a tile of 64 tasks, bins of 2^{level} ns"), || tiles(index, &rows, &wanted, &[place]));
    }
    for (what, query) in [
        ("overview", "bins=2000"),
        ("heat", &format!("of=queue&level={top}&tile=0")),
        ("counters", "name=latency_p99&bins=2000"),
        ("marks", "kind=wake&limit=2000"),
        ("lists", "of=waits&limit=100"),
    ] {
        timed(what, || answer(&loaded, what, query)).expect("an answer");
    }
}

fn main() {
    let given = || std::env::args().skip(1);
    if let Some(path) = given().find(|argument| !argument.starts_with("--")) {
        return look(Path::new(&path));
    }
    let keep = given().find_map(|argument| argument.strip_prefix("--keep=").map(PathBuf::from));
    let temporary = || std::env::temp_dir().join(format!("schedlab-view-bench-{}", std::process::id()));
    let folder = keep.clone().unwrap_or_else(temporary);
    std::fs::create_dir_all(&folder).expect("the folder is writable");
    for (name, file, events, cpus, tasks, length) in [
        ("10 million events, 64 CPUs, 1,000 tasks, 60 s", "64.arrows", 10_000_000, 64, 1_000, 60_000_000_000),
        (
            "10 million events, 4,096 CPUs, 20,000 tasks, an hour",
            "4096.arrows",
            10_000_000,
            4096,
            20_000,
            3_600_000_000_000,
        ),
    ] {
        println!("\n{name}");
        let path = folder.join(file);
        write(&path, events, cpus, tasks, length);
        look(&path);
    }
    if keep.is_none() {
        std::fs::remove_dir_all(&folder).expect("the folder can be removed");
    }
}

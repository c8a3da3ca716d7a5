//! Time is conserved: at every level of zoom the rows sum up to what the statistics count.

use proptest::prelude::*;
use schedlab_base::{Context, CpuPlace, Event, Meta, Payload, Rng, Sink, TaskState};
use schedlab_measure::Stats;
use schedlab_view::index::Indexer;
use schedlab_view::spans::{Spans, State};
use schedlab_view::tile::{BINS, Place};

const CPUS: u32 = 3;
const TASKS: i32 = 7;

fn meta() -> Meta {
    let place = |cpu| CpuPlace { cpu, core: cpu, capacity: 1024, ..CpuPlace::default() };
    Meta {
        source: "test".into(),
        cpus: (0..CPUS).map(place).collect(),
        running: (0..CPUS).map(|cpu| (cpu, 0)).collect(),
        span: Some((1_000_000, 1_240_000)),
        ..Meta::default()
    }
}

/// A load whose tasks are woken, preempted, moved while they wait, put to sleep and blocked; now and then events are
/// lost, if `lossy`.
fn load(seed: u64, events: usize, lossy: bool) -> Vec<Event> {
    let mut rng = Rng::new(seed);
    let mut sleeping: Vec<i32> = (1..=TASKS).map(|i| 100 + i).collect();
    let mut queues = vec![Vec::<i32>::new(); CPUS as usize];
    let mut current = vec![0; CPUS as usize];
    let (mut all, mut time) = (Vec::new(), 1_000_000u64);
    while all.len() < events {
        let cpu = rng.below(u64::from(CPUS)) as u32;
        time += 1 + rng.below(600);
        let mut push = |what| all.push(Event { time, cpu, what });
        match rng.below(if lossy { 21 } else { 20 }) {
            20 => push(Payload::Lost { count: 3 }),
            0..8 if !sleeping.is_empty() => {
                let tid = sleeping.swap_remove(rng.below(sleeping.len() as u64) as usize);
                let target = rng.below(u64::from(CPUS)) as u32;
                push(Payload::Waking { tid, prio: 120, target, waker: current[cpu as usize], context: Context::Task });
                push(Payload::Wakeup { tid, prio: 120, target });
                queues[target as usize].push(tid);
            }
            8..10 if !queues[cpu as usize].is_empty() => {
                let tid = queues[cpu as usize].remove(0);
                let to = (cpu + 1) % CPUS;
                push(Payload::Migrate { tid, prio: 120, from: cpu, to });
                queues[to as usize].push(tid);
            }
            kind => {
                let queue = &mut queues[cpu as usize];
                let next = if queue.is_empty() { 0 } else { queue.remove(0) };
                let prev = std::mem::replace(&mut current[cpu as usize], next);
                let prev_state = match kind {
                    10..13 => TaskState::Runnable,
                    13..15 => TaskState::Uninterruptible,
                    _ => TaskState::Sleeping,
                };
                match prev {
                    0 => {}
                    prev if prev_state == TaskState::Runnable => queue.push(prev),
                    prev => sleeping.push(prev),
                }
                if prev != next {
                    let prev_state = if prev == 0 { TaskState::Runnable } else { prev_state };
                    push(Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 });
                }
            }
        }
    }
    all
}

/// What all bins of all tiles of a level come to: the time in each state.
fn whole(row: &Spans, end: u64, level: u32) -> [u64; 8] {
    let mut time = [0; 8];
    let (_, width) = Place { level, tile: 0 }.bounds();
    for tile in 0..=end / (width * BINS) {
        let (start, _) = Place { level, tile }.bounds();
        let mut cursor = row.find(start);
        for bin in 0..BINS {
            let from = start + bin * width;
            let sums = row.sums(from.min(end), (from + width).min(end), end, &mut cursor);
            time.iter_mut().zip(sums.time).for_each(|(sum, part)| *sum += part);
        }
    }
    time
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn rows_come_to_the_statistics_at_every_level(
        seed in any::<u64>(), events in 0usize..3000, lossy in any::<bool>(),
    ) {
        let (meta, events) = (meta(), load(seed, events, lossy));
        let mut indexer = Indexer::new(&meta);
        let mut stats = Stats::new(&meta);
        for batch in events.chunks(97) {
            indexer.events(batch);
            stats.events(batch);
        }
        indexer.finish();
        let report = stats.finish(None);
        let index = &indexer.index;
        let us = |ns: u64| ns as f64 / 1e3;
        prop_assert_eq!(us(index.end), report.total.span_us);
        for (facts, row) in index.facts.iter().zip(&index.tasks) {
            if facts.tid == 0 {
                continue;
            }
            let exact = row.sums(0, index.end, index.end, &mut 0);
            prop_assert_eq!(exact.time.iter().sum::<u64>(), index.end);
            let known = report.tasks.iter().find(|task| task.tid == facts.tid);
            let (run, wait) = known.map_or((0.0, 0.0), |task| (task.sums.run.run_us, task.sums.wait.wait_us));
            prop_assert_eq!(us(exact.time[State::Running as usize]), run, "task {}", facts.tid);
            if !lossy {
                prop_assert_eq!(us(exact.time[State::Waiting as usize]), wait, "task {}", facts.tid);
            }
        }
        for row in index.cpus.iter().chain(&index.tasks) {
            let exact = row.sums(0, index.end, index.end, &mut 0);
            let levels = [0, 3, 5, 8, 10, 11, 13, 14, 17, 20, 46];
            for level in levels.into_iter().filter(|level| *level > 10 || row.len() < 40) {
                prop_assert_eq!(whole(row, index.end, level), exact.time, "level {}", level);
            }
        }
        for (cpu, row) in report.cpus.iter().zip(&index.cpus) {
            let exact = row.sums(0, index.end, index.end, &mut 0);
            prop_assert_eq!(us(exact.time[State::Idle as usize]), cpu.idle_us);
            prop_assert_eq!(us(exact.time[State::Unknown as usize]), cpu.unknown_us);
        }
    }
}

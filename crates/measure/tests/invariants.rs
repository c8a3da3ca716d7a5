//! What holds for every sequence of events, sensible or not.

use proptest::prelude::*;
use schedlab_base::{Context, CpuPlace, Event, Meta, NameRecord, Payload, Sink, TaskState};
use schedlab_measure::{Part, Report, Stats, StatsOfParts, TaskStats};

fn state() -> impl Strategy<Value = TaskState> {
    prop::sample::select(vec![TaskState::Runnable, TaskState::Sleeping, TaskState::Uninterruptible, TaskState::Zombie])
}

fn payload(tids: std::ops::Range<i32>, cpus: u32) -> impl Strategy<Value = Payload> {
    let (tid, cpu) = (|| tids.clone(), move || 0..cpus);
    prop_oneof![
        6 => (tid(), state(), tid()).prop_map(|(prev, prev_state, next)| {
            Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 }
        }),
        2 => (tid(), cpu(), tid()).prop_map(|(tid, target, waker)| {
            Payload::Waking { tid, prio: 1, target, waker, context: Context::Unknown }
        }),
        3 => (tid(), cpu()).prop_map(|(tid, target)| Payload::Wakeup { tid, prio: 1, target }),
        1 => (tid(), cpu()).prop_map(|(tid, target)| Payload::WakeupNew { tid, prio: 1, target }),
        2 => (tid(), cpu(), cpu()).prop_map(|(tid, from, to)| Payload::Migrate { tid, prio: 1, from, to }),
        1 => (tid(), tid()).prop_map(|(parent, child)| Payload::Fork { parent, child }),
        1 => (tid(), tid()).prop_map(|(tid, old)| Payload::Exec { tid, old }),
        1 => tid().prop_map(|tid| Payload::Exit { tid, prio: 1 }),
        1 => any::<u64>().prop_map(|count| Payload::Lost { count }),
    ]
}

fn events(tids: std::ops::Range<i32>, cpus: u32, step: u64) -> impl Strategy<Value = Vec<Event>> {
    prop::collection::vec((0..step, 0..cpus, payload(tids, cpus)), 0..200).prop_map(|list| {
        let mut time = 1000u64;
        let at = |(step, cpu, what)| {
            time = time.saturating_add(step);
            Event { time, cpu, what }
        };
        list.into_iter().map(at).collect()
    })
}

fn meta() -> impl Strategy<Value = Meta> {
    let running = prop::collection::vec((0u32..4, 0i32..6), 0..4);
    let span = prop::option::of((0u64..2000, 0u64..10_000));
    (running, span, 0u32..4, any::<bool>()).prop_map(|(running, span, cpus, sim)| Meta {
        source: if sim { "sim" } else { "record" }.into(),
        cpus: (0..cpus).map(|cpu| CpuPlace { cpu, node: cpu * 1_000_000_007, ..CpuPlace::default() }).collect(),
        running,
        span,
        ..Meta::default()
    })
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(b.abs()).max(1.0)
}

fn check(report: &Report) -> Result<(), TestCaseError> {
    let total = &report.total;
    let sum = |f: fn(&schedlab_measure::TaskStats) -> f64| report.tasks.iter().map(f).sum::<f64>();
    let time = total.sums.run.run_us + total.idle_us + total.unknown_us;
    prop_assert!(close(time, total.span_us * total.cpus as f64), "{} {} {}", time, total.span_us, total.cpus);
    for cpu in &report.cpus {
        prop_assert!(close(cpu.sums.run.run_us + cpu.idle_us + cpu.unknown_us, total.span_us), "{:?}", cpu);
    }
    prop_assert!(close(sum(|t| t.sums.run.run_us), total.sums.run.run_us));
    prop_assert!(close(sum(|t| t.sums.wait.wait_us), total.sums.wait.wait_us));
    prop_assert!(close(report.groups.iter().map(|g| g.sums.run.run_us).sum(), total.sums.run.run_us));
    prop_assert!(close(report.nodes.iter().map(|n| n.sums.run.run_us).sum(), total.sums.run.run_us));
    prop_assert_eq!(report.tasks.iter().map(|t| t.sums.switches.slices).sum::<u64>(), total.sums.switches.slices);
    prop_assert_eq!(
        report.tasks.iter().map(|t| t.sums.latency.latency_us.count).sum::<u64>(),
        total.sums.latency.latency_us.count
    );
    for task in &report.tasks {
        // A task cannot have waited longer than the trace is long; it may seem to run on two CPUs at once.
        prop_assert!(task.sums.wait.wait_us <= total.span_us + 1e-6, "{:?}", task);
        prop_assert!(task.sums.latency.latency_us.max <= total.span_us + 1e-6);
        prop_assert!(task.sums.wait.wait_unfinished_us <= task.sums.wait.wait_us);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn times_add_up(meta in meta(), events in events(0..6, 4, 1000), end in any::<Option<u16>>()) {
        let mut stats = Stats::new(&meta);
        let (early, late) = events.split_at(events.len() / 2);
        stats.events(early);
        stats.name(&NameRecord { time: 0, tid: 3, tgid: None, comm: "x".into(), cgroup: Some("/x".into()) });
        stats.events(late);
        check(&stats.finish(end.map(u64::from)))?;
    }

    #[test]
    fn parts_told_together_are_those_told_alone(
        meta in meta(),
        events in events(0..6, 4, 1000),
        mut edges in prop::collection::vec(0..3000u64, 2..6),
    ) {
        edges.sort_unstable();
        let parts = || edges.windows(2).map(|edge| Part { from: edge[0], to: edge[1].max(edge[0] + 1), tasks: None });
        let teams = |tasks: &[TaskStats]| vec![(0..tasks.len()).collect()];
        let mut together = StatsOfParts::new(&meta, parts());
        together.events(&events);
        let alone = parts().map(|part| {
            let mut stats = Stats::of_part(&meta, Some(part));
            stats.events(&events);
            stats.finish_with_teams(None, &teams)
        });
        let (together, alone) = (together.finish_with_teams(None, &teams), alone.collect::<Vec<_>>());
        prop_assert_eq!(format!("{together:?}"), format!("{alone:?}"));
    }

    #[test]
    fn wild_ids_and_times_do_no_harm(events in events(-5..i32::MAX, u32::MAX, u64::MAX / 50)) {
        let mut stats = Stats::new(&Meta::default());
        stats.events(&events);
        let report = stats.finish(None);
        prop_assert!(report.tasks.len() <= 2 * events.len() + 1);
    }
}

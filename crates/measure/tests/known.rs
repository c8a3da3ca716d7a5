//! Hand-made traces whose statistics are known.

use schedlab_base::{
    AffinityRecord, Context, Coverage, CpuId, CpuPlace, Event, Meta, NameRecord, Nanos, Partial, Payload, Sink, Target,
    TaskState, Tid,
};
use schedlab_measure::{Report, Series, Stats, StatsOverTime, TaskStats};

const MS: Nanos = 1_000_000;

fn meta(cpus: u32) -> Meta {
    Meta {
        cpus: (0..cpus).map(|cpu| CpuPlace { cpu, node: cpu / 2, ..CpuPlace::default() }).collect(),
        running: (0..cpus).map(|cpu| (cpu, 0)).collect(),
        ..Meta::default()
    }
}

/// Events written briefly; times in milliseconds.
#[derive(Default)]
struct Script(Vec<Event>);

impl Script {
    fn at(mut self, ms: u64, cpu: CpuId, what: Payload) -> Self {
        self.0.push(Event { time: ms * MS, cpu, what });
        self
    }

    fn switch(self, ms: u64, cpu: CpuId, prev: Tid, prev_state: TaskState, next: Tid) -> Self {
        self.at(ms, cpu, Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 })
    }

    fn waking(self, ms: u64, cpu: CpuId, tid: Tid, target: CpuId) -> Self {
        self.at(ms, cpu, Payload::Waking { tid, prio: 120, target, waker: 0, context: Context::Unknown })
    }

    fn wakeup(self, ms: u64, cpu: CpuId, tid: Tid, target: CpuId) -> Self {
        self.at(ms, cpu, Payload::Wakeup { tid, prio: 120, target })
    }

    fn new_task(self, ms: u64, cpu: CpuId, tid: Tid) -> Self {
        self.at(ms, cpu, Payload::WakeupNew { tid, prio: 120, target: cpu })
    }

    fn migrate(self, ms: u64, tid: Tid, from: CpuId, to: CpuId) -> Self {
        self.at(ms, from, Payload::Migrate { tid, prio: 120, from, to })
    }

    fn stats(&self, meta: &Meta, end_ms: u64) -> Report {
        let mut stats = Stats::new(meta);
        stats.events(&self.0);
        let report = stats.finish(Some(end_ms * MS));
        let total = &report.total;
        let time = total.sums.run.run_us + total.idle_us + total.unknown_us;
        assert!((time - total.span_us * total.cpus as f64).abs() < 1e-6, "{total:?}");
        assert_eq!(total.contradictions, 0);
        report
    }
}

fn task(report: &Report, tid: Tid) -> &TaskStats {
    report.tasks.iter().find(|task| task.tid == tid).expect("the task is reported")
}

use TaskState::{Runnable as R, Sleeping as S, Zombie as Z};

#[test]
fn two_tasks_share_a_cpu() {
    let report = Script::default()
        .new_task(0, 0, 1)
        .switch(0, 0, 0, R, 1)
        .new_task(1, 0, 2)
        .switch(4, 0, 1, R, 2)
        .switch(8, 0, 2, R, 1)
        .switch(10, 0, 1, S, 2)
        .stats(&meta(1), 20);
    let (one, two) = (&task(&report, 1).sums, &task(&report, 2).sums);
    assert_eq!(
        (one.run.run_us, one.wait.wait_us, one.switches.slices, one.switches.voluntary, one.switches.involuntary),
        (6e3, 4e3, 2, 1, 1)
    );
    assert_eq!(
        (two.run.run_us, two.wait.wait_us, two.switches.slices, two.switches.voluntary, two.switches.involuntary),
        (14e3, 5e3, 2, 0, 1)
    );
    assert_eq!(one.latency.latency_us.count + two.latency.latency_us.count, 0, "a first start is no wake-up");
    assert_eq!(report.total.sums.run.run_us, 20e3);
    assert_eq!((report.total.queue.max, report.total.queue.mean), (2, 1.45));
    assert_eq!(task(&report, 2).share, 0.7);
    assert_eq!((two.latency.delay_us.count, two.latency.delay_us.max, two.latency.delay_us.mean), (2, 3e3, 2.5e3));
    assert!((report.total.fairness.jain - 20.0f64.powi(2) / (2.0 * (36.0 + 196.0))).abs() < 1e-9);
}

#[test]
fn latency_is_from_waking_and_from_wakeup_to_running() {
    let report = Script::default()
        .switch(0, 0, 0, R, 7)
        .switch(1, 1, 0, R, 8)
        .switch(2, 1, 8, S, 0)
        .waking(10, 0, 8, 0)
        .migrate(11, 8, 1, 0)
        .wakeup(12, 0, 8, 0)
        .switch(15, 0, 7, R, 8)
        .switch(16, 0, 8, S, 7)
        .stats(&meta(2), 20);
    let eight = &task(&report, 8).sums;
    assert_eq!(
        (eight.latency.latency_us.count, eight.latency.latency_us.max, eight.latency.latency_us.mean),
        (1, 3e3, 3e3)
    );
    assert_eq!((eight.latency.waking_latency_us.p50, eight.wait.wait_us, eight.run.run_us), (5e3, 3e3, 2e3));
    assert_eq!(
        (eight.moves.migrations, report.cpus[0].sums.moves.migrations, report.cpus[1].migrations_out),
        (1, 1, 1)
    );
    assert_eq!((report.cpus[0].sums.latency.latency_us.count, report.cpus[1].sums.latency.latency_us.count), (1, 0));
    assert_eq!((report.cpus[1].sums.run.run_us, report.cpus[1].idle_us), (1e3, 19e3));
    let seven = &task(&report, 7).sums;
    assert_eq!((seven.run.run_us, seven.wait.wait_us, seven.latency.latency_us.count), (19e3, 1e3, 0));
}

#[test]
fn a_wake_up_of_a_task_that_had_not_yet_slept_is_none() {
    let report = Script::default()
        .switch(0, 0, 0, R, 7)
        .waking(1, 1, 7, 0)
        .wakeup(1, 1, 7, 0)
        .new_task(1, 0, 8)
        .switch(2, 0, 7, R, 8)
        .waking(3, 1, 7, 0)
        .wakeup(3, 1, 7, 0)
        .switch(4, 0, 8, S, 7)
        .stats(&meta(2), 5);
    let seven = &task(&report, 7).sums;
    assert_eq!(
        (seven.latency.latency_us.count, seven.latency.waking_latency_us.count, seven.wait.wait_us),
        (0, 0, 2e3)
    );
}

#[test]
fn a_waking_just_before_the_switch_out_counts() {
    let report = Script::default()
        .switch(0, 0, 0, R, 7)
        .waking(2, 1, 7, 0)
        .switch(3, 0, 7, S, 0)
        .wakeup(4, 0, 7, 0)
        .switch(6, 0, 0, R, 7)
        .stats(&meta(2), 7);
    let seven = &task(&report, 7).sums;
    assert_eq!((seven.latency.latency_us.max, seven.latency.waking_latency_us.max), (2e3, 4e3));
}

#[test]
fn statistics_over_time_lack_nothing_but_the_delays_after_preemptions() {
    let script = Script::default()
        .wakeup(1, 0, 7, 0)
        .switch(3, 0, 0, R, 7)
        .wakeup(4, 0, 8, 0)
        .switch(6, 0, 7, R, 8)
        .switch(9, 0, 8, R, 7)
        .switch(10, 0, 7, S, 8);
    let whole = script.stats(&meta(2), 12);
    let mut over_time = StatsOverTime::new(&meta(2), Series::new(2, None));
    over_time.events(&script.0);
    let (report, _) = over_time.finish(Some(12 * MS));
    for (all, some) in whole.tasks.iter().zip(&report.tasks) {
        let (all, some) = (&all.sums, &some.sums);
        assert_eq!((&some.run, &some.wait, &some.switches), (&all.run, &all.wait, &all.switches));
        assert_eq!((some.latency.latency_us, some.latency.delay_us.count), (all.latency.latency_us, 1));
        assert_eq!(all.latency.delay_us.count, 2, "one after the wake-up, one after the preemption");
    }
}

#[test]
fn a_queued_task_that_is_moved_waits_on_both_cpus() {
    let report = Script::default()
        .switch(0, 0, 0, R, 7)
        .new_task(1, 0, 8)
        .migrate(4, 8, 0, 1)
        .switch(9, 1, 0, R, 8)
        .stats(&meta(2), 10);
    assert_eq!((report.cpus[0].sums.wait.wait_us, report.cpus[1].sums.wait.wait_us), (3e3, 5e3));
    assert_eq!((task(&report, 8).sums.wait.wait_us, task(&report, 8).sums.run.run_us), (8e3, 1e3));
    assert_eq!((task(&report, 8).sums.latency.delay_us.count, task(&report, 8).sums.latency.delay_us.max), (1, 8e3));
    assert_eq!((report.cpus[0].queue.max, report.cpus[1].queue.max, report.total.queue.max), (2, 1, 2));
    assert_eq!(report.nodes.len(), 1);
    assert_eq!(report.nodes[0].queue.mean, 1.9);
}

#[test]
fn waits_under_way_at_the_end_are_told_apart() {
    let report = Script::default().switch(0, 0, 0, R, 7).new_task(1, 0, 8).wakeup(3, 0, 9, 0).stats(&meta(1), 10);
    let (eight, nine) = (&task(&report, 8).sums, &task(&report, 9).sums);
    assert_eq!((eight.wait.wait_us, eight.wait.wait_unfinished_us, eight.switches.slices), (9e3, 9e3, 0));
    assert_eq!((nine.wait.wait_us, nine.latency.latency_us.count), (7e3, 0));
    assert_eq!(report.total.sums.wait.wait_unfinished_us, 16e3);
}

#[test]
fn what_ran_before_the_first_switch_is_unknown_unless_the_trace_is_whole() {
    let script = Script::default().wakeup(0, 1, 9, 1).switch(4, 0, 7, S, 0);
    let mut bare = meta(2);
    bare.running.clear();
    let report = script.stats(&bare, 10);
    assert_eq!((report.cpus[0].unknown_us, report.cpus[0].sums.run.run_us, report.cpus[0].idle_us), (4e3, 0.0, 6e3));
    assert_eq!(report.cpus[1].unknown_us, 10e3);

    let whole = Meta { span: Some((0, 10 * MS)), ..bare.clone() };
    let report = script.stats(&whole, 10);
    assert_eq!((report.cpus[0].unknown_us, task(&report, 7).sums.run.run_us), (0.0, 4e3));

    let told = Meta { running: vec![(0, 7), (1, 5)], ..bare };
    let report = script.stats(&told, 10);
    assert_eq!((task(&report, 7).sums.run.run_us, task(&report, 5).sums.run.run_us), (4e3, 10e3));
}

#[test]
fn lost_events_make_the_cpu_unknown_until_its_next_switch() {
    let report = Script::default()
        .switch(0, 0, 0, R, 7)
        .new_task(1, 0, 8)
        .at(5, 0, Payload::Lost { count: 3 })
        .switch(6, 0, 9, S, 8)
        .switch(8, 0, 8, S, 7)
        .stats(&meta(1), 10);
    // Known are 0 to 1 (7 ran; the last event before the loss) and 6 to 10.
    assert_eq!((report.total.unknown_us, report.total.lost_events, report.total.losses), (5e3, 3, 1));
    assert_eq!((task(&report, 7).sums.run.run_us, task(&report, 8).sums.run.run_us), (3e3, 2e3));
    assert_eq!(task(&report, 8).sums.wait.wait_us, 0.0, "it may have run in the gap");
}

#[test]
fn each_life_of_a_thread_id_is_a_task() {
    let name = |tid, comm: &str| NameRecord { time: 0, tid, tgid: None, comm: comm.into(), cgroup: Some("/a".into()) };
    let mut stats = Stats::new(&meta(1));
    stats.name(&name(5, "first"));
    let first = Script::default().switch(0, 0, 0, R, 5).at(2, 0, Payload::Exit { tid: 5, prio: 120 });
    stats.events(&first.switch(3, 0, 5, Z, 0).0);
    stats.name(&name(5, "second"));
    let second = Script::default().at(4, 0, Payload::Fork { parent: 1, child: 5 }).new_task(4, 0, 5);
    stats.events(&second.switch(5, 0, 0, R, 5).0);
    let report = stats.finish(Some(9 * MS));
    let lives: Vec<_> = report.tasks.iter().map(|t| (&*t.name, t.sums.run.run_us, t.group.as_deref())).collect();
    assert_eq!(lives, [("second", 4e3, Some("/a")), ("first", 3e3, Some("/a"))]);
    assert_eq!((report.groups.len(), report.groups[0].tasks, report.groups[0].sums.run.run_us), (1, 2, 7e3));
}

#[test]
fn a_child_bears_its_parents_name_until_it_has_its_own() {
    let mut stats = Stats::new(&meta(1));
    stats.name(&NameRecord { time: 0, tid: 1, tgid: Some(1), comm: "sh".into(), cgroup: Some("/g".into()) });
    let fork = |child| Payload::Fork { parent: 1, child };
    let script = Script::default().at(0, 0, fork(2)).at(0, 0, fork(3)).switch(1, 0, 0, R, 2).switch(2, 0, 2, S, 3);
    stats.events(&script.0);
    stats.name(&NameRecord { time: 2, tid: 3, tgid: None, comm: "ls".into(), cgroup: None });
    let report = stats.finish(Some(3 * MS));
    let named = |tid| (&*task(&report, tid).name, task(&report, tid).group.as_deref());
    assert_eq!((named(2), named(3)), (("sh", Some("/g")), ("ls", Some("/g"))));
}

#[test]
fn a_thread_that_called_exec_goes_on_under_its_leaders_id() {
    let report = Script::default()
        .switch(0, 0, 0, R, 11)
        .at(2, 0, Payload::Exec { tid: 10, old: 11 })
        .switch(5, 0, 10, S, 0)
        .stats(&meta(1), 6);
    assert_eq!((report.tasks.len(), task(&report, 10).sums.run.run_us), (1, 5e3));
}

#[test]
fn an_unseen_switch_is_put_at_the_earliest_instant() {
    // 8 was seen to get the CPU at 2, but 7, waiting since 1, is seen to leave it at 10.
    let script = Script::default().switch(0, 0, 0, R, 7).switch(1, 0, 7, R, 9).switch(2, 0, 9, S, 8);
    let mut stats = Stats::new(&meta(1));
    stats.events(&script.switch(10, 0, 7, S, 0).0);
    let report = stats.finish(Some(12 * MS));
    let seven = &task(&report, 7).sums;
    assert_eq!(
        (seven.run.run_us, seven.wait.wait_us, seven.switches.slices, seven.latency.latency_us.count),
        (9e3, 1e3, 2, 0)
    );
    assert_eq!((task(&report, 8).sums.run.run_us, report.cpus[0].idle_us), (0.0, 2e3));
    assert_eq!((report.total.contradictions, report.total.contradicted_us), (1, 8e3));
}

#[test]
fn clocks_that_differ_a_little_do_not_break_a_move() {
    // Task 7 is seen to start on CPU 1 just before it is seen to leave CPU 0.
    let report = Script::default()
        .switch(0, 0, 0, R, 7)
        .switch(4, 1, 0, R, 7)
        .switch(5, 0, 7, R, 0)
        .switch(8, 1, 7, S, 0)
        .stats(&meta(2), 10);
    assert_eq!((task(&report, 7).sums.run.run_us, task(&report, 7).sums.wait.wait_us), (9e3, 0.0));
}

#[test]
fn a_trace_with_wakings_only_still_has_waits() {
    let report =
        Script::default().switch(0, 0, 7, S, 8).waking(2, 0, 7, 0).switch(5, 0, 8, S, 7).stats(&Meta::default(), 6);
    let seven = &task(&report, 7).sums;
    assert_eq!(
        (seven.wait.wait_us, seven.latency.waking_latency_us.max, seven.latency.latency_us.count),
        (3e3, 3e3, 0)
    );
}

#[test]
fn an_empty_trace_has_a_span_of_idle_or_nothing() {
    let report = Stats::new(&Meta::default()).finish(None);
    assert_eq!((report.total.span_us, report.total.cpus), (0.0, 0));
    let whole = Meta { span: Some((0, 10 * MS)), source: "sim".into(), ..meta(4) };
    let report = Stats::new(&whole).finish(None);
    assert_eq!((report.total.idle_us, report.total.span_us, report.nodes.len()), (40e3, 10e3, 2));
}

#[test]
fn the_queue_series_adds_up_to_the_mean() {
    let mut script = Script::default().new_task(0, 0, 1).switch(0, 0, 0, R, 1);
    for i in 0..1000 {
        script = script.new_task(3 * i, 0, 2 + i as i32).switch(3 * i + 1, 0, 1 + i as i32, S, 2 + i as i32);
    }
    let report = script.stats(&meta(1), 4096);
    let queue = &report.cpus[0].queue;
    assert!((128..=256).contains(&queue.series.len()), "{}", queue.series.len());
    let area: f64 = queue.series.iter().map(|length| length * queue.step_us).sum();
    assert!((area / 4096e3 - queue.mean).abs() < 1e-9);
}

#[test]
fn tasks_come_to_rest_when_they_and_their_memory_move_no_more() {
    let mut meta = meta(2);
    meta.cpus[1].node = 1;
    let mut stats = Stats::new(&meta);
    let name = |tid, tgid| NameRecord { time: 0, tid, tgid: Some(tgid), comm: "t".into(), cgroup: None };
    [name(7, 7), name(8, 7), name(9, 9)].iter().for_each(|record| stats.name(record));
    let pages = |from, to, pages| Payload::Pages { tgid: 7, from, to, pages };
    let moved = |tid, from, to| Payload::Migrate { tid, prio: 120, from, to };
    let none = schedlab_base::NOWHERE;
    let script = Script::default()
        .at(0, 0, moved(7, 1, 0))
        .switch(1, 0, 0, R, 7)
        .at(1, 0, pages(none, 0, 10))
        .switch(2, 1, 0, R, 8)
        .switch(3, 1, 8, R, 0)
        .at(4, 0, moved(8, 1, 0))
        .at(5, 0, pages(0, 1, 6))
        .at(6, 0, pages(0, 1, 4));
    stats.events(&script.0);
    let report = stats.finish(Some(9 * MS));
    let of = |tid| task(&report, tid);
    assert_eq!((of(7).node_migrations, of(8).node_migrations), (0, 1), "before it first ran 7 was not moved");
    assert_eq!((of(7).settled_us, of(8).settled_us), (Some(5e3), Some(5e3)), "most of it came to node 1 then");
    let memory = of(8).memory.as_ref().expect("it is 7's");
    assert_eq!((&memory.bytes_by_node[..], memory.moved_bytes, memory.node), (&[0, 40_960][..], 40_960, Some(1)));
}

/// Task 1 is the target and forks 2; task 9 is a stranger. CPU 0: 1 from 0, 9 from 4, 2 from 6, idle from 8.
fn for_a_target() -> (Script, Meta) {
    let script = Script::default()
        .switch(0, 0, 0, R, 1)
        .at(1, 0, Payload::Fork { parent: 1, child: 2 })
        .new_task(1, 0, 2)
        .wakeup(2, 0, 9, 0)
        .switch(4, 0, 1, S, 9)
        .switch(6, 0, 9, S, 2)
        .switch(8, 0, 2, Z, 0);
    let target = Target { processes: vec![1], threads: vec![1], ..Target::default() };
    (script, Meta { target: Some(target), ..meta(1) })
}

#[test]
fn a_target_and_the_others_add_up_to_the_whole() {
    let (script, meta) = for_a_target();
    let report = script.stats(&meta, 10);
    let (target, others) = (report.target.as_ref().unwrap(), report.others.as_ref().unwrap());
    assert_eq!((target.tasks, target.sums.run.run_us, target.sums.wait.wait_us, target.share), (2, 6e3, 5e3, 0.75));
    assert_eq!((others.tasks, others.sums.run.run_us, others.sums.wait.wait_us, others.share), (1, 2e3, 2e3, 0.25));
    let marks: Vec<_> = [1, 2, 9].map(|tid| task(&report, tid).target).to_vec();
    assert_eq!(marks, [Some(true), Some(true), Some(false)]);
    let whole = Script::default().switch(0, 0, 0, R, 1).stats(&Meta { target: None, ..meta }, 10);
    assert_eq!((whole.target, whole.others, whole.tasks[0].target), (None, None, None));
}

#[test]
fn a_partial_recording_has_the_same_figures_of_its_target() {
    let (script, meta) = for_a_target();
    let alone = Partial { covers: Coverage::Tasks, only: "process 1".into() };
    let report = script.stats(&Meta { partial: Some(alone), running: Vec::new(), ..meta }, 10);
    assert_eq!(report.tasks.iter().map(|task| task.tid).collect::<Vec<_>>(), [1, 2]);
    let figures = |tid| (task(&report, tid).sums.run.run_us, task(&report, tid).sums.wait.wait_us);
    assert_eq!((figures(1), figures(2)), ((4e3, 0.0), (2e3, 5e3)));
    assert_eq!((report.total.idle_us, report.total.queue.max), (0.0, 0), "neither is known");
}

#[test]
fn tasks_are_told_apart_by_cpu_and_affinities_are_inherited() {
    let mut stats = Stats::new(&meta(2)).by_task_cpu();
    let list = |text: &str| text.parse().unwrap();
    stats.affinity(&AffinityRecord { time: 0, tid: 1, cpus: list("0-1") });
    let script = Script::default()
        .switch(0, 0, 0, R, 1)
        .at(1, 0, Payload::Fork { parent: 1, child: 2 })
        .new_task(1, 0, 2)
        .migrate(2, 2, 0, 1)
        .switch(3, 1, 0, R, 2)
        .switch(6, 1, 2, R, 0);
    stats.events(&script.0);
    stats.affinity(&AffinityRecord { time: 6 * MS, tid: 1, cpus: list("0") });
    let report = stats.finish(Some(8 * MS));
    let rows = report.task_cpus.as_ref().unwrap().iter();
    let rows: Vec<_> = rows.map(|r| (r.tid, r.cpu, r.run_us, r.wait_us, r.slices, r.run_share)).collect();
    assert_eq!(rows, [(1, 0, 8e3, 0.0, 1, 1.0), (2, 0, 0.0, 1e3, 0, 0.0), (2, 1, 3e3, 3e3, 1, 1.0)]);
    let allowed = [1, 2].map(|tid| task(&report, tid).allowed.as_ref().map(ToString::to_string));
    assert_eq!(allowed, [Some("0".to_owned()), Some("0-1".to_owned())]);
}

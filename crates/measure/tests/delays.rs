//! Hand-made traces in which it is known who delayed whom.

use proptest::prelude::*;
use schedlab_base::{
    AffinityRecord, Context, Coverage, CpuId, CpuPlace, Event, Meta, NameRecord, Nanos, Partial, Payload, Sink, Target,
    TaskState, Tid,
};
use schedlab_measure::delays::{After, DelayReport, Delays, Wait};
use schedlab_measure::{Bounds, Check, Part, Stats};

const MS: Nanos = 1_000_000;

/// So many waits are listed.
const WORST: usize = 100;

fn meta(cpus: u32) -> Meta {
    Meta {
        cpus: (0..cpus).map(|cpu| CpuPlace { cpu, ..CpuPlace::default() }).collect(),
        running: (0..cpus).map(|cpu| (cpu, 0)).collect(),
        span: Some((0, 0)),
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

    fn report(&self, meta: &Meta, end_ms: u64, part: Option<Part>) -> DelayReport {
        self.report_with(meta, end_ms, part, &[])
    }

    fn report_with(&self, meta: &Meta, end_ms: u64, part: Option<Part>, bound: &[AffinityRecord]) -> DelayReport {
        let mut delays = Delays::new(meta, part.clone(), WORST);
        let mut stats = Stats::of_part(meta, part);
        for tid in 1..=9 {
            let name = NameRecord { time: 0, tid, tgid: Some(tid % 2), comm: format!("t{}", tid / 4), cgroup: None };
            delays.name(&name);
        }
        bound.iter().for_each(|record| delays.affinity(record));
        delays.events(&self.0);
        stats.events(&self.0);
        let (report, stats) = (delays.finish(Some(end_ms * MS)), stats.finish(Some(end_ms * MS)));
        assert_eq!(report.total.wait_us, stats.total.sums.wait.wait_us, "the statistics have the same waits");
        consistent(&report);
        report
    }
}

/// What must hold of any report.
fn consistent(report: &DelayReport) {
    let total = &report.total;
    let caused: f64 = report.culprits.iter().map(|culprit| culprit.caused_us).sum();
    let suffered: f64 = report.victims.iter().map(|victim| victim.wait_us).sum();
    assert!((caused + total.idle_us + total.unknown_us - total.wait_us).abs() < 1e-3, "{report:?}");
    assert!((suffered - total.wait_us).abs() < 1e-3, "{report:?}");
    for wait in &report.waits {
        let ran: f64 = wait.culprits.iter().map(|culprit| culprit.run_us).sum();
        let parts = ran + wait.other_us + wait.idle_us + wait.unknown_us;
        assert!((parts - wait.duration_us).abs() < 1e-3, "{wait:?}");
        let queued: f64 = wait.queues.iter().map(|queue| queue.wait_us).sum();
        assert!((queued - wait.duration_us).abs() < 1e-3, "{wait:?}");
        assert!(wait.idle_allowed_us <= wait.duration_us - wait.idle_us + 1e-3, "{wait:?}");
    }
    assert!(report.waits.is_sorted_by(|a, b| a.duration_us >= b.duration_us));
    let listed: f64 = report.waits.iter().map(|wait| wait.duration_us).sum();
    assert!(report.waits.len() >= WORST || (listed - total.wait_us).abs() < 1e-3, "{report:?}");
}

/// Start, duration and culprits of a wait, in ms.
type Figures = (f64, f64, Vec<(Tid, f64)>);

/// The task's longest wait.
fn wait(report: &DelayReport, tid: Tid) -> (&Wait, Figures) {
    let wait = report.waits.iter().find(|wait| wait.task.tid == tid).expect("the task waited");
    let culprits = wait.culprits.iter().map(|culprit| (culprit.task.tid, culprit.run_us / 1e3)).collect();
    (wait, (wait.start_us / 1e3, wait.duration_us / 1e3, culprits))
}

fn caused(report: &DelayReport) -> Vec<(Tid, f64)> {
    report.culprits.iter().map(|culprit| (culprit.of.tid, culprit.caused_us / 1e3)).collect()
}

use TaskState::{Runnable as R, Sleeping as S};

#[test]
fn several_culprits_share_a_wait() {
    // 1 runs 0..4, 2 runs 4..9, 3 (woken at 2) runs at 9; 2 (woken at 1) waits 1..4.
    let report = Script::default()
        .switch(0, 0, 0, R, 1)
        .wakeup(1, 0, 2, 0)
        .wakeup(2, 0, 3, 0)
        .switch(4, 0, 1, S, 2)
        .switch(9, 0, 2, S, 3)
        .switch(12, 0, 3, S, 0)
        .report(&meta(1), 20, None);
    let (found, three) = wait(&report, 3);
    assert_eq!(three, (2.0, 7.0, vec![(2, 5.0), (1, 2.0)]));
    assert_eq!((found.after, found.finished, found.cpu, found.idle_us), (After::Wakeup, true, 0, 0.0));
    assert_eq!(wait(&report, 2).1, (1.0, 3.0, vec![(1, 3.0)]));
    // 1 kept two tasks waiting: 3 ms the one, 2 ms the other.
    assert_eq!(caused(&report), [(1, 5.0), (2, 5.0)]);
    assert_eq!((report.total.waits, report.total.wait_us), (2, 10e3));
    assert_eq!(report.culprits_by_name[0].caused_us, 10e3, "both are named t0");
    let by_process: Vec<_> = report.victims_by_process.iter().map(|sum| (sum.of.tgid, sum.wait_us)).collect();
    assert_eq!(by_process, [(Some(1), 7e3), (Some(0), 3e3)]);
}

#[test]
fn of_many_culprits_exactly_the_longest_are_kept_apart() {
    // 400 tasks run for 1 ms each, and half of them for 10 ms more, while task 5 waits.
    let mut script = Script::default().wakeup(0, 0, 5, 0);
    let (mut now, mut on) = (0, 0);
    for (tid, ms) in (1000..1400).map(|tid| (tid, 1)).chain((1200..1400).map(|tid| (tid, 10))) {
        script = script.switch(now, 0, on, if on == 0 { R } else { S }, tid);
        (now, on) = (now + ms, tid);
    }
    let report = script.switch(now, 0, on, S, 5).report(&meta(1), now + 1, None);
    let (found, (start, length, culprits)) = wait(&report, 5);
    assert_eq!((start, length, culprits.len(), found.other_us), (0.0, 2400.0, 256, 144e3));
    assert_eq!(culprits[..200], (1200..1400).map(|tid| (tid, 11.0)).collect::<Vec<_>>());
    assert!(culprits[200..].iter().all(|(tid, ms)| *tid < 1200 && *ms == 1.0));
}

#[test]
fn a_wait_goes_on_when_the_task_is_moved() {
    // 5 waits on CPU 0 behind 1 from 2 to 6, is moved to CPU 1 and waits there behind 2 from 6 to 9, then runs.
    let report = Script::default()
        .switch(0, 0, 0, R, 1)
        .switch(0, 1, 0, R, 2)
        .wakeup(2, 0, 5, 0)
        .wakeup(3, 0, 6, 0)
        .migrate(6, 5, 0, 1)
        .switch(9, 1, 2, S, 5)
        .switch(10, 0, 1, S, 6)
        .switch(11, 1, 5, S, 0)
        .report(&meta(2), 20, None);
    let (found, five) = wait(&report, 5);
    assert_eq!(five, (2.0, 7.0, vec![(1, 4.0), (2, 3.0)]));
    let queues: Vec<_> = found.queues.iter().map(|queue| (queue.cpu, queue.wait_us)).collect();
    assert_eq!((found.cpu, queues), (1, vec![(0, 4e3), (1, 3e3)]));
    assert_eq!(wait(&report, 6).1, (3.0, 7.0, vec![(1, 7.0)]), "what the other left behind is not lost");
    assert_eq!(caused(&report), [(1, 11.0), (2, 3.0)]);
}

#[test]
fn the_middle_of_a_queue_is_served_first() {
    // 1 runs 0..3, then 3 runs 3..5 before 2, 2 runs 5..6, then 4.
    let report = Script::default()
        .switch(0, 0, 0, R, 1)
        .wakeup(0, 0, 2, 0)
        .wakeup(1, 0, 3, 0)
        .wakeup(2, 0, 4, 0)
        .switch(3, 0, 1, S, 3)
        .switch(5, 0, 3, S, 2)
        .switch(6, 0, 2, S, 4)
        .switch(7, 0, 4, S, 0)
        .report(&meta(1), 8, None);
    assert_eq!(wait(&report, 2).1, (0.0, 5.0, vec![(1, 3.0), (3, 2.0)]));
    assert_eq!(wait(&report, 3).1, (1.0, 2.0, vec![(1, 2.0)]));
    assert_eq!(wait(&report, 4).1, (2.0, 4.0, vec![(3, 2.0), (1, 1.0), (2, 1.0)]));
}

#[test]
fn a_chain_of_preemptions_is_told() {
    // 1 runs and is preempted by 2 at 4, that by 3 at 6; 3 sleeps at 9, 2 runs to 11, 1 goes on.
    let script = Script::default()
        .switch(0, 0, 0, R, 1)
        .wakeup(4, 0, 2, 0)
        .switch(4, 0, 1, R, 2)
        .wakeup(6, 0, 3, 0)
        .switch(6, 0, 2, R, 3)
        .switch(9, 0, 3, S, 2)
        .switch(11, 0, 2, S, 1)
        .switch(12, 0, 1, S, 0);
    let report = script.report(&meta(1), 20, None);
    let chain = |tid| wait(&report, tid).0.preempted_by.iter().map(|task| task.tid).collect::<Vec<_>>();
    let (found, one) = wait(&report, 1);
    assert_eq!(one, (4.0, 7.0, vec![(2, 4.0), (3, 3.0)]));
    assert_eq!((found.after, chain(1), chain(2)), (After::Preemption, vec![2, 3], vec![3]));
    assert_eq!((report.chains.len(), report.chains[0].count), (1, 1));
    // 2 sleeps before anybody preempts it: no chain.
    let report = Script::default()
        .switch(0, 0, 0, R, 1)
        .switch(4, 0, 1, R, 2)
        .switch(6, 0, 2, S, 3)
        .switch(8, 0, 3, R, 4)
        .switch(9, 0, 4, S, 1)
        .report(&meta(1), 20, None);
    assert_eq!(wait(&report, 1).0.preempted_by.iter().map(|task| task.tid).collect::<Vec<_>>(), [2]);
    assert!(report.chains.is_empty());
}

#[test]
fn idle_cpus_that_the_task_was_allowed_on_are_told() {
    // CPU 1 is idle until 5, CPU 2 from 7 on. 8 may run on CPUs 0 and 1, 9 everywhere, 7 on CPU 0 alone.
    let script = Script::default()
        .switch(0, 0, 0, R, 1)
        .switch(0, 2, 0, R, 3)
        .wakeup(2, 0, 7, 0)
        .wakeup(2, 0, 8, 0)
        .wakeup(2, 0, 9, 0)
        .switch(5, 1, 0, R, 2)
        .switch(7, 2, 3, S, 0)
        .switch(10, 0, 1, S, 8)
        .switch(11, 0, 8, S, 9)
        .switch(12, 0, 9, S, 7);
    let allow = |tid, cpus: &str| AffinityRecord { time: 0, tid, cpus: cpus.parse().expect("a list") };
    let report = script.report_with(&meta(3), 20, None, &[allow(7, "0"), allow(8, "0-1")]);
    let idle = |tid| (wait(&report, tid).0.idle_allowed_us / 1e3, wait(&report, tid).0.affinity_known);
    assert_eq!(idle(7), (0.0, true));
    assert_eq!(idle(8), (3.0, true));
    assert_eq!(idle(9), (3.0 + 4.0, false));
}

#[test]
fn the_time_before_an_idle_cpu_runs_the_task_is_idle() {
    let report =
        Script::default().wakeup(2, 0, 5, 0).switch(3, 0, 0, R, 5).switch(9, 0, 5, S, 0).report(&meta(1), 10, None);
    let (found, five) = wait(&report, 5);
    assert_eq!((five, found.idle_us, found.idle_allowed_us), ((2.0, 1.0, vec![]), 1e3, 0.0));
    assert_eq!(report.total.idle_us, 1e3);
}

#[test]
fn a_window_cuts_waits_at_both_ends() {
    // 2 waits from 1 to 8 behind 1; 3 from 6 to the end behind 1 and 2.
    let script = Script::default()
        .switch(0, 0, 0, R, 1)
        .wakeup(1, 0, 2, 0)
        .new_task(6, 0, 3)
        .switch(8, 0, 1, S, 2)
        .switch(15, 0, 2, S, 3);
    let part = |from: u64, to: u64| Some(Part { from: from * MS, to: to * MS, tasks: None });
    let report = script.report(&meta(1), 20, part(4, 10));
    let (two, figures) = wait(&report, 2);
    assert_eq!((figures, two.began_before, two.finished), ((4.0, 4.0, vec![(1, 4.0)]), true, true));
    let (three, figures) = wait(&report, 3);
    assert_eq!(figures, (6.0, 4.0, vec![(1, 2.0), (2, 2.0)]));
    assert_eq!((three.began_before, three.finished, three.after), (false, false, After::Fork));
    assert_eq!((report.total.start_us, report.total.span_us), (4e3, 6e3));
    // A wait that begins with the window was not there before.
    assert!(!wait(&script.report(&meta(1), 20, part(6, 20)), 3).0.began_before);
    let chosen = Part { from: 0, to: Nanos::MAX, tasks: Some([2].into_iter().collect()) };
    let report = script.report(&meta(1), 20, Some(chosen));
    assert_eq!(report.victims.len(), 1, "slots count from 0 in the order of names: 3 was chosen");
}

#[test]
fn what_only_a_later_switch_tells_counts() {
    // Nothing says what CPU 0 runs until 9; the trace is whole, so 1 ran all the time.
    let unknown = Meta { running: Vec::new(), ..meta(1) };
    let report =
        Script::default().wakeup(2, 0, 5, 0).wakeup(4, 0, 6, 0).switch(9, 0, 1, S, 5).report(&unknown, 12, None);
    assert_eq!(wait(&report, 5).1, (2.0, 7.0, vec![(1, 7.0)]));
    assert_eq!(wait(&report, 6).1, (4.0, 8.0, vec![(1, 5.0), (5, 3.0)]));
    assert_eq!(report.total.unknown_us, 0.0);
}

#[test]
fn waits_across_lost_events_count_for_nobody() {
    let report = Script::default()
        .switch(0, 0, 0, R, 1)
        .wakeup(2, 0, 5, 0)
        .at(6, 0, Payload::Lost { count: 3 })
        .wakeup(7, 0, 6, 0)
        .switch(9, 0, 1, S, 6)
        .report(&meta(1), 12, None);
    assert!(report.waits.iter().all(|wait| wait.task.tid != 5));
    let (found, six) = wait(&report, 6);
    assert_eq!((six, found.unknown_us), ((7.0, 2.0, vec![]), 2e3));
}

#[test]
fn a_trace_without_wakeups_has_waits_from_the_waking_on() {
    let report = Script::default()
        .switch(0, 0, 0, R, 1)
        .waking(2, 0, 5, 0)
        .waking(3, 0, 6, 1)
        .migrate(3, 6, 1, 0)
        .switch(7, 0, 1, S, 5)
        .switch(9, 0, 5, S, 6)
        .report(&meta(2), 12, None);
    assert_eq!(wait(&report, 5).1, (2.0, 5.0, vec![(1, 5.0)]));
    assert_eq!(wait(&report, 6).1, (3.0, 6.0, vec![(1, 4.0), (5, 2.0)]));
}

/// It was on its CPU when the trace began, and was woken there before it slept.
#[test]
fn a_trace_without_wakeups_has_no_wait_of_a_task_that_was_on_its_cpu() {
    let report = Script::default()
        .waking(1, 1, 5, 0)
        .switch(2, 0, 5, S, 6)
        .waking(50, 1, 5, 0)
        .switch(51, 0, 6, R, 5)
        .switch(60, 0, 5, S, 6)
        .report(&Meta { running: Vec::new(), ..meta(2) }, 60, None);
    assert_eq!(wait(&report, 5).1, (50.0, 1.0, vec![(6, 1.0)]));
    assert_eq!((report.waits.len(), report.total.wait_us), (2, 10e3));
}

#[test]
fn a_wait_that_was_not_followed_is_listed() {
    // 2 has a wakeup, 5 has only a waking.
    let script = Script::default().switch(0, 0, 0, R, 1).wakeup(1, 0, 2, 0).switch(2, 0, 1, S, 2);
    let script = script.waking(4, 0, 5, 0).switch(6, 0, 2, S, 5).switch(9, 0, 5, S, 0);
    let report = script.report(&meta(1), 10, None);
    let (found, five) = wait(&report, 5);
    assert_eq!((five, found.unknown_us, found.finished, found.cpu), ((4.0, 2.0, vec![]), 2e3, true, 0));
}

/// A task that leaves its CPU, and was not seen to get it, has not been waiting until the end of the recording.
#[test]
fn a_task_that_got_its_cpu_unseen_no_longer_waits_when_it_leaves() {
    let report = Script::default()
        .wakeup(1, 0, 5, 0)
        .wakeup(2, 0, 6, 0)
        .switch(4, 0, 5, S, 6)
        .switch(6, 0, 6, S, 0)
        .report(&part_of_tasks(), 100, None);
    assert_eq!((report.waits.len(), wait(&report, 6).1.0, wait(&report, 6).1.1), (1, 2.0, 2.0));
}

/// What a recording with `record --only` says of itself.
fn part_of_tasks() -> Meta {
    let target = Target { command: None, processes: vec![1], threads: (1..=9).collect() };
    let partial = Partial { covers: Coverage::Tasks, only: "process 1".into() };
    Meta { target: Some(target), partial: Some(partial), ..meta(3) }
}

/// A task's wait from one instant to another, and how long which tasks ran.
type Known = (Tid, Nanos, Nanos, Vec<(Tid, Nanos)>);

/// Every wait with what ran, by the definition: one look at the events for each instant.
fn by_definition(events: &[Event], end: Nanos) -> Vec<Known> {
    let mut on = [0; 3];
    let mut waiting: Vec<(Tid, CpuId, Nanos, std::collections::BTreeMap<Tid, Nanos>)> = Vec::new();
    let (mut now, mut found) = (0, Vec::new());
    let last = Event { time: end, cpu: 0, what: Payload::Lost { count: 0 } };
    for event in events.iter().chain([&last]) {
        for (_, cpu, _, ran) in &mut waiting {
            *ran.entry(on[*cpu as usize]).or_default() += event.time - now;
        }
        now = event.time;
        match event.what {
            Payload::Wakeup { tid, target, .. } => waiting.push((tid, target, now, Default::default())),
            Payload::Migrate { tid, to, .. } => {
                waiting.iter_mut().filter(|wait| wait.0 == tid).for_each(|wait| wait.1 = to);
            }
            Payload::Switch { prev, prev_state, next, .. } => {
                if let Some(at) = waiting.iter().position(|wait| wait.0 == next) {
                    let (tid, _, since, ran) = waiting.remove(at);
                    found.push((tid, since, now, ran));
                }
                if prev != 0 && prev_state == R {
                    waiting.push((prev, event.cpu, now, Default::default()));
                }
                on[event.cpu as usize] = next;
            }
            _ => {}
        }
    }
    found.extend(waiting.into_iter().map(|(tid, _, since, ran)| (tid, since, end, ran)));
    let parts = |ran: std::collections::BTreeMap<Tid, Nanos>| {
        ran.into_iter().filter(|(tid, time)| *tid != 0 && *time > 0).collect()
    };
    let mut found: Vec<_> = found.into_iter().map(|(tid, from, to, ran)| (tid, from, to, parts(ran))).collect();
    found.retain(|(_, from, to, _)| to > from);
    found.sort();
    found
}

/// A consistent trace of twelve tasks on three CPUs out of random numbers.
fn random_events(choices: &[(u8, u8, u8)]) -> Vec<Event> {
    let (mut on, mut queues, mut asleep) = ([0; 3], [const { Vec::<Tid>::new() }; 3], (1..=12).collect::<Vec<Tid>>());
    let (mut events, mut time) = (Vec::new(), 0);
    for &(what, a, b) in choices {
        time += u64::from(a % 7);
        let (cpu, other) = (usize::from(a) % 3, usize::from(b) % 3);
        let mut push = |what| events.push(Event { time, cpu: cpu as CpuId, what });
        match what % 4 {
            0 if !asleep.is_empty() => {
                let tid = asleep.swap_remove(usize::from(b) % asleep.len());
                queues[cpu].push(tid);
                push(Payload::Wakeup { tid, prio: 120, target: cpu as CpuId });
            }
            1 if other != cpu && !queues[cpu].is_empty() => {
                let at = usize::from(b) % queues[cpu].len();
                let tid = queues[cpu].remove(at);
                queues[other].push(tid);
                push(Payload::Migrate { tid, prio: 120, from: cpu as CpuId, to: other as CpuId });
            }
            _ => {
                let prev = on[cpu];
                let at = usize::from(b) % (queues[cpu].len() + 1);
                let next = if at < queues[cpu].len() { queues[cpu].remove(at) } else { 0 };
                if prev == next {
                    continue;
                }
                let prev_state = if prev == 0 || what % 4 == 2 { R } else { S };
                match prev_state {
                    R if prev != 0 => queues[cpu].push(prev),
                    S => asleep.push(prev),
                    _ => {}
                }
                on[cpu] = next;
                push(Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 });
            }
        }
    }
    events
}

proptest! {
    /// Where events are missing, the delays and the statistics decide alike what a wait is.
    #[test]
    fn the_statistics_have_the_same_waits_of_a_damaged_trace(
        choices in prop::collection::vec((any::<u8>(), any::<u8>(), any::<u8>()), 1..300),
        missing in prop::collection::vec(0_u8..20, 300),
        kind in 0_usize..4,
    ) {
        let covers = [None, Some(Coverage::Tasks), Some(Coverage::Inside), Some(Coverage::Cpus)][kind];
        let partial = covers.map(|covers| Partial { covers, only: String::new() });
        let meta = Meta { partial, ..part_of_tasks() };
        let mut events: Vec<Event> = Vec::new();
        for (event, missing) in random_events(&choices).into_iter().zip(missing) {
            let what = match missing {
                0 => continue,
                1 => Payload::Lost { count: 1 },
                _ => event.what,
            };
            events.push(Event { time: event.time * MS, what, ..event });
        }
        let script = Script(events);
        script.report(&meta, 1 << 16, None);
        // And the statistics and the check have the same tasks.
        let (mut stats, mut check) = (Stats::new(&meta), Check::new(&meta, Bounds::default()));
        stats.events(&script.0);
        check.events(&script.0);
        prop_assert_eq!(stats.finish(None).total.tasks, check.finish(None).tasks);
    }

    #[test]
    fn any_trace_is_taken_apart_as_the_definition_says(
        choices in prop::collection::vec((any::<u8>(), any::<u8>(), any::<u8>()), 1..300)
    ) {
        let events = random_events(&choices);
        let end = events.last().map_or(0, |event| event.time) + 5;
        let mut delays = Delays::new(&meta(3), None, 10_000);
        delays.events(&events);
        let report = delays.finish(Some(end));
        consistent(&report);
        let ns = |us: f64| (us * 1e3).round() as Nanos;
        let mut found: Vec<_> = report.waits.iter().map(|wait| {
            let mut ran: Vec<_> = wait.culprits.iter().map(|c| (c.task.tid, ns(c.run_us))).collect();
            ran.sort_unstable();
            (wait.task.tid, ns(wait.start_us), ns(wait.end_us), ran)
        }).collect();
        found.sort();
        prop_assert_eq!(found, by_definition(&events, end));
        // The ten longest are the ten longest of all.
        let mut few = Delays::new(&meta(3), None, 10);
        few.events(&events);
        let few = few.finish(Some(end)).waits;
        prop_assert_eq!(&few[..], &report.waits[..report.waits.len().min(10)]);
    }
}

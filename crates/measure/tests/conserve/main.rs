//! Work conservation on events written by hand, with the answers worked out, and on random ones (wake-ups, switches,
//! moves, forks, ends, affinities, lost events, tasks that run from before the start) against a reference that looks at
//! every CPU and task at every instant.

mod bound;
mod unseen;

use proptest::prelude::*;
use schedlab_base::{AffinityRecord, CpuPlace, Event, Looking, Meta, NameRecord, Nanos, Payload, Sink, TaskState};
use schedlab_measure::{Bounds, Check, CheckReport, Level, Verdict};
use std::collections::BTreeMap;

const MS: Nanos = 1_000_000;

fn meta(cpus: u32) -> Meta {
    let place = |cpu| CpuPlace { cpu, core: cpu, llc: cpu / 2, package: cpu / 4, node: cpu / 4, capacity: 1024 };
    Meta {
        source: "sim".into(),
        span: Some((0, 0)),
        cpus: (0..cpus).map(place).collect(),
        distances: vec![vec![10, 22], vec![22, 10]],
        ..Meta::default()
    }
}

enum Step {
    Event(Event),
    Affinity(AffinityRecord),
}

#[derive(Default)]
struct Script(Vec<Step>);

impl Script {
    fn at(&mut self, ms: u64, cpu: u32, what: Payload) -> &mut Self {
        self.0.push(Step::Event(Event { time: ms * MS, cpu, what }));
        self
    }

    fn wake(&mut self, ms: u64, tid: i32, target: u32) -> &mut Self {
        self.at(ms, target, Payload::Wakeup { tid, prio: 120, target })
    }

    fn switch(&mut self, ms: u64, cpu: u32, prev: i32, prev_state: TaskState, next: i32) -> &mut Self {
        self.at(ms, cpu, Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 })
    }

    /// The task wakes on an idle CPU and gets it.
    fn start(&mut self, ms: u64, cpu: u32, tid: i32) -> &mut Self {
        self.wake(ms, tid, cpu).switch(ms, cpu, 0, TaskState::Runnable, tid)
    }

    fn migrate(&mut self, ms: u64, tid: i32, from: u32, to: u32) -> &mut Self {
        self.at(ms, to, Payload::Migrate { tid, prio: 120, from, to })
    }

    fn allow(&mut self, ms: u64, tid: i32, cpus: &str) -> &mut Self {
        let cpus = cpus.parse().expect("a list");
        self.0.push(Step::Affinity(AffinityRecord { time: ms * MS, tid, cpus }));
        self
    }

    fn check(&self, meta: &Meta, bounds: Bounds, end_ms: u64) -> CheckReport {
        let mut check = Check::new(meta, bounds);
        for step in &self.0 {
            match step {
                Step::Event(event) => check.events(&[*event]),
                Step::Affinity(record) => check.affinity(record),
            }
        }
        check.finish(Some(end_ms * MS))
    }
}

use TaskState::{Runnable, Sleeping};

/// CPU 0 runs task 1 from 0 on; task 2 waits there from 50 ms until `until`, then is moved to CPU 1 and runs.
fn one_waits(until: u64) -> Script {
    let mut s = Script::default();
    s.start(0, 0, 1).wake(50, 2, 0).migrate(until, 2, 0, 1).switch(until, 1, 0, Runnable, 2);
    s
}

#[test]
fn a_cpu_idle_for_150_ms_while_one_waits_is_found() {
    let report = one_waits(200).check(&meta(2), Bounds::default(), 300);
    let [v] = &report.violations[..] else { panic!("{:?}", report.violations) };
    assert_eq!((v.start_us, v.duration_us, v.idle_cpu, v.busy_cpu), (50_000.0, 150_000.0, 1, 0));
    assert_eq!((v.level, v.distance, v.until_end), (Level::Mc, None, false));
    assert_eq!((v.waiting.len(), v.waiting[0].tid, v.waiting[0].cpu, v.waiting[0].wait_us), (1, 2, 0, 150_000.0));
    assert_eq!((v.migrations_to_idle, v.migrations_elsewhere, v.looks), (1, 0, None));
    assert_eq!((report.wasted_cpu_us, report.verdict, report.longest_us), (150_000.0, Verdict::Fail, 150_000.0));
    assert_eq!((report.idle_us, report.unknown_us, report.affinity_unknown), (200_000.0, 0.0, 2));
}

#[test]
fn what_does_not_exceed_the_threshold_is_none_and_wastes_all_the_same() {
    for (until, threshold, found) in [(149, 100, 0), (150, 100, 0), (151, 100, 1), (149, 98, 1), (149, 99, 0)] {
        let bounds = Bounds { threshold: threshold * MS, max_wasted: None };
        let report = one_waits(until).check(&meta(2), bounds, 300);
        assert_eq!(report.violations.len(), found, "{until} {threshold}");
        assert_eq!(report.wasted_cpu_us, (until - 50) as f64 * 1e3);
        assert_eq!(report.verdict, if found > 0 { Verdict::Fail } else { Verdict::Pass });
    }
}

#[test]
fn a_bound_on_the_waste_decides_where_one_is_given() {
    for (most, verdict) in [(149, Verdict::Fail), (150, Verdict::Pass)] {
        let bounds = Bounds { max_wasted: Some(most * MS), ..Bounds::default() };
        let report = one_waits(200).check(&meta(2), bounds, 300);
        assert_eq!((report.violations.len(), report.verdict), (1, verdict));
    }
}

#[test]
fn a_task_that_may_not_run_there_accuses_nobody() {
    let mut s = Script::default();
    s.allow(0, 2, "0").start(0, 0, 1).wake(50, 2, 0);
    let report = s.check(&meta(2), Bounds::default(), 1000);
    assert_eq!((report.violations.len(), report.wasted_cpu_us, report.verdict), (0, 0.0, Verdict::Pass));
    // Until it may: CPU 1 from 400 ms on, everything from 700 ms on.
    s.allow(400, 2, "0-1").allow(700, 2, "0-3");
    let report = s.check(&meta(4), Bounds::default(), 1000);
    let told: Vec<_> = report.violations.iter().map(|v| (v.idle_cpu, v.start_us / 1e3, v.duration_us / 1e3)).collect();
    assert_eq!(told, [(1, 400.0, 600.0), (2, 700.0, 300.0), (3, 700.0, 300.0)]);
    assert_eq!((report.wasted_cpu_us, report.affinity_unknown), (600_000.0, 1), "one task waits: one CPU is wasted");
}

#[test]
fn another_task_on_another_queue_takes_over_without_a_gap() {
    let mut s = Script::default();
    // CPUs 0 and 4 are busy; 2 waits on CPU 0 from 50 to 120 ms, then 4 waits on CPU 4 until 180 ms. CPU 1 is idle.
    s.start(0, 0, 1).start(0, 4, 3).wake(50, 2, 0);
    for cpu in [2, 3, 5, 6, 7] {
        s.start(0, cpu, 10 + cpu as i32);
    }
    s.switch(120, 0, 1, Sleeping, 2).wake(120, 4, 4).switch(180, 4, 3, Sleeping, 4);
    s.0.sort_by_key(|step| if let Step::Event(event) = step { event.time } else { 0 });
    let report = s.check(&meta(8), Bounds::default(), 300);
    let [v] = &report.violations[..] else { panic!("{:?}", report.violations) };
    assert_eq!((v.start_us, v.duration_us, v.idle_cpu), (50_000.0, 130_000.0, 1));
    // CPU 0's queue had somebody for 70 of the 130 ms, CPU 4's for 60.
    assert_eq!((v.busy_cpu, v.level, v.waiting_tasks), (0, Level::Mc, 2));
    assert_eq!(v.waiting.iter().map(|w| w.tid).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(report.wasted_cpu_us, 130_000.0);
}

#[test]
fn the_distance_of_nodes_is_told() {
    let mut s = Script::default();
    for cpu in 0..4 {
        s.start(0, cpu, 1 + cpu as i32);
    }
    s.wake(0, 9, 2);
    let report = s.check(&meta(8), Bounds::default(), 500);
    assert_eq!(report.violations.len(), 4, "four CPUs of the other node are idle all the time");
    assert!(report.violations.iter().all(|v| (v.level, v.distance, v.busy_cpu) == (Level::Numa, Some(22), 2)));
    assert!(report.violations.iter().all(|v| v.until_end));
    assert_eq!(report.wasted_cpu_us, 500_000.0, "but one task could have used only one of them");
}

/// Each instant's waste is a matching: a task takes one CPU, and a CPU one task.
#[test]
fn waste_is_a_matching_that_respects_affinity() {
    let waste = |affinities: [&str; 3]| {
        let mut s = Script::default();
        s.start(0, 0, 1);
        for (tid, cpus) in (2..).zip(affinities) {
            s.allow(0, tid, cpus).wake(0, tid, 0);
        }
        s.check(&meta(4), Bounds::default(), 100).wasted_cpu_us / 100_000.0
    };
    assert_eq!(waste(["0-3", "0-3", "0-3"]), 3.0);
    assert_eq!(waste(["0-1", "0-1", "0-1"]), 1.0, "all three could only have CPU 1");
    assert_eq!(waste(["0-1", "0-3", "0-1"]), 2.0);
    assert_eq!(waste(["0", "0", "0-3"]), 1.0);
    // Sets that cross: {1,2}, {2,3}, {1,3} match all three; {1,2} twice and {2} only two.
    assert_eq!(waste(["1-2", "2-3", "1,3"]), 3.0);
    assert_eq!(waste(["0-1", "1-2", "2"]), 2.0);
}

#[test]
fn what_nobody_saw_accuses_nobody() {
    let bare = Meta { source: "record".into(), span: None, ..meta(2) };
    // CPU 1 is never seen: it may have been busy.
    let mut s = Script::default();
    s.switch(0, 0, 0, Runnable, 1).wake(50, 2, 0).switch(900, 0, 1, Sleeping, 2);
    let report = s.check(&bare, Bounds::default(), 1000);
    assert_eq!((report.violations.len(), report.wasted_cpu_us), (0, 0.0));
    // It is told that CPU 1 was idle, but events are lost on CPU 0 at 100 ms: who waits there is not known any more.
    let told = Meta { running: vec![(0, 0), (1, 0)], ..bare.clone() };
    let mut s = Script::default();
    s.switch(0, 0, 0, Runnable, 1).wake(50, 2, 0).at(100, 0, Payload::Lost { count: 3 });
    let report = s.check(&told, Bounds::default(), 1000);
    assert_eq!((report.violations.len(), report.wasted_cpu_us, report.losses), (0, 50_000.0, 1));
    // Nothing is known of most of the time: no verdict.
    assert_eq!(Script::default().check(&bare, Bounds::default(), 1000).verdict, Verdict::Undecided);
}

#[test]
fn tasks_of_an_idle_cpu_are_on_their_way() {
    let mut s = Script::default();
    // Woken on an idle CPU that does not get round to it: no other CPU is to blame.
    s.wake(0, 1, 0);
    let report = s.check(&meta(2), Bounds::default(), 1000);
    assert_eq!((report.violations.len(), report.wasted_cpu_us), (0, 0.0));
}

#[test]
fn children_and_kernel_threads_have_known_affinities() {
    let mut check = Check::new(&meta(2), Bounds::default());
    let one = |time, cpu, what| [Event { time, cpu, what }];
    let switch = |next| Payload::Switch { prev: 0, prev_prio: 120, prev_state: Runnable, next, next_prio: 120 };
    check.affinity(&AffinityRecord { time: 0, tid: 1, cpus: "0".parse().expect("a list") });
    check.name(&NameRecord { time: 0, tid: 3, tgid: None, comm: "kworker/0:1".into(), cgroup: None });
    check.events(&one(0, 0, switch(1)));
    check.events(&one(MS, 0, Payload::Fork { parent: 1, child: 2 }));
    check.events(&one(MS, 0, Payload::WakeupNew { tid: 2, prio: 120, target: 0 }));
    check.events(&one(MS, 0, Payload::Wakeup { tid: 3, prio: 120, target: 0 }));
    let report = check.finish(Some(1000 * MS));
    assert_eq!((report.violations.len(), report.affinity_unknown, report.tasks), (0, 0, 3));
}

#[test]
fn what_the_balancer_looked_at_is_told() {
    let mut s = Script::default();
    let look = |why, mask| Payload::Considered { why, tid: 0, word: 0, mask };
    s.start(0, 0, 1).wake(50, 2, 0).at(10, 1, look(Looking::NewIdle, 1));
    s.at(60, 1, look(Looking::Periodic, 4)).at(70, 1, look(Looking::Wake, 1)).at(80, 0, look(Looking::Periodic, 1));
    s.0.sort_by_key(|step| if let Step::Event(event) = step { event.time } else { 0 });
    let v = &s.check(&meta(2), Bounds::default(), 500).violations[0];
    assert_eq!((v.looks, v.looked_at_busy), (Some(1), Some(false)), "one look, not at CPU 0");
    s.at(90, 1, look(Looking::NoHz, 1));
    let v = &s.check(&meta(2), Bounds::default(), 500).violations[0];
    assert_eq!((v.looks, v.looked_at_busy), (Some(2), Some(true)));
}

/// What a random machine does next.
#[derive(Clone, Debug)]
struct Move {
    wait: u64,
    kind: u8,
    task: usize,
    cpu: usize,
}

/// What a CPU is known to do; `None`: nobody can tell.
type Seen = Option<Option<usize>>;

/// Whom each CPU runs, where each task is known to wait, where each may run.
type State = (Vec<Seen>, Vec<Option<usize>>, Vec<u64>);

/// A machine that is always in order: its own state tells which moves are possible.
struct Machine {
    running: Vec<Option<usize>>,
    /// Where each task waits.
    waiting: Vec<Option<usize>>,
    allowed: Vec<u64>,
    /// Tasks from here on were not born yet, tasks before may have ended.
    born: usize,
    ended: Vec<bool>,
    /// CPUs and queued tasks of which events were lost since they were last seen.
    lost_cpu: Vec<bool>,
    lost_task: Vec<bool>,
    script: Script,
    now: u64,
    /// What the reference knows: by instant, the state after all its events.
    states: BTreeMap<u64, State>,
}

/// So many tasks may be born while the machine runs.
const CHILDREN: usize = 6;

impl Machine {
    /// The first tasks already run when the trace begins, as its metadata says.
    fn new(cpus: usize, masks: &[u64], first: usize) -> Self {
        let mut script = Script::default();
        for (task, mask) in masks.iter().enumerate() {
            script.allow(0, task as i32 + 1, &list(*mask));
        }
        let tasks = masks.len() + CHILDREN;
        let running: Vec<_> = (0..cpus).map(|cpu| (cpu < first.min(masks.len())).then_some(cpu)).collect();
        let mut me = Self {
            running,
            waiting: vec![None; tasks],
            allowed: [masks, &[0; CHILDREN]].concat(),
            born: masks.len(),
            ended: vec![false; tasks],
            lost_cpu: vec![false; cpus],
            lost_task: vec![false; tasks],
            script,
            now: 0,
            states: BTreeMap::new(),
        };
        me.see();
        me
    }

    fn meta(&self) -> Meta {
        let running = (0..).zip(&self.running).map(|(cpu, task)| (cpu, task.map_or(0, |task| task as i32 + 1)));
        // Not "sim", which begins idle, nor "record", whose affinities are late.
        Meta { source: "test".into(), running: running.collect(), ..meta(self.running.len() as u32) }
    }

    fn see(&mut self) {
        let used = self.running.iter().zip(&self.lost_cpu).map(|(task, lost)| (!lost).then_some(*task));
        let waiting = self.waiting.iter().zip(&self.lost_task).map(|(at, lost)| at.filter(|_| !lost));
        self.states.insert(self.now, (used.collect(), waiting.collect(), self.allowed.clone()));
    }

    fn step(&mut self, step: &Move) {
        self.now += step.wait;
        let (now, cpu, task) = (self.now, step.cpu % self.running.len(), step.task % self.born);
        let (tid, asleep) = (task as i32 + 1, !self.running.contains(&Some(task)) && self.waiting[task].is_none());
        match step.kind {
            0 | 1 if asleep && !self.ended[task] => {
                self.script.wake(now, tid, cpu as u32);
                self.waiting[task] = Some(cpu);
            }
            2 | 3 => self.switch(cpu, step.kind == 2, Sleeping),
            4 => {
                if let Some(from) = self.waiting[task].filter(|from| *from != cpu) {
                    self.script.migrate(now, tid, from as u32, cpu as u32);
                    self.waiting[task] = Some(cpu);
                    self.lost_task[task] = false;
                }
            }
            5 => {
                self.allowed[task] = self.allowed[task].rotate_left(7) | 1 << (step.wait % 8);
                let list = list(self.allowed[task]);
                self.script.allow(now, tid, &list);
            }
            6 => self.fork(cpu, step.task % self.running.len()),
            7 => {
                if let Some(task) = self.running[cpu] {
                    self.ended[task] = true;
                    self.switch(cpu, false, TaskState::Dead);
                }
            }
            8 => self.lose(cpu),
            _ => {}
        }
        self.see();
    }

    /// Who runs on a CPU makes a child, which has its affinity and waits on any CPU.
    fn fork(&mut self, cpu: usize, target: usize) {
        let Some(parent) = self.running[cpu].filter(|_| self.born < self.waiting.len()) else { return };
        let child = self.born;
        let (tid, on) = (child as i32 + 1, target as u32);
        self.script.at(self.now, cpu as u32, Payload::Fork { parent: parent as i32 + 1, child: tid });
        self.script.at(self.now, on, Payload::WakeupNew { tid, prio: 120, target: on });
        (self.allowed[child], self.waiting[child]) = (self.allowed[parent], Some(target));
        self.born += 1;
    }

    fn lose(&mut self, cpu: usize) {
        self.script.at(self.now, cpu as u32, Payload::Lost { count: 1 });
        self.lost_cpu[cpu] = true;
        for (lost, at) in self.lost_task.iter_mut().zip(&self.waiting) {
            *lost |= *at == Some(cpu);
        }
    }

    /// The CPU takes another task of its queue, or goes idle.
    fn switch(&mut self, cpu: usize, preempted: bool, left: TaskState) {
        let next = self.waiting.iter().position(|at| *at == Some(cpu));
        let prev = self.running[cpu];
        let state = if preempted && next.is_some() { Runnable } else { left };
        if prev.is_some() || next.is_some() {
            let tid = |task: Option<usize>| task.map_or(0, |task| task as i32 + 1);
            self.script.switch(self.now, cpu as u32, tid(prev), state, tid(next));
            if let Some(prev) = prev {
                self.waiting[prev] = (state == Runnable).then_some(cpu);
            }
            if let Some(next) = next {
                (self.waiting[next], self.lost_task[next]) = (None, false);
            }
            (self.running[cpu], self.lost_cpu[cpu]) = (next, false);
        }
    }

    /// Every CPU, every task, every instant.
    fn reference(&self, end: u64, threshold: u64) -> (Vec<(usize, u64, u64)>, u64) {
        let cpus = self.running.len();
        let (mut found, mut wasted) = (Vec::new(), 0);
        let mut since: Vec<Option<u64>> = vec![None; cpus];
        let times: Vec<u64> = self.states.keys().copied().chain([end]).collect();
        for (at, (time, (used, waiting, allowed))) in self.states.iter().enumerate() {
            if times[at + 1] == *time {
                continue;
            }
            let steals = |cpu: usize, task: usize| {
                let busy = waiting[task].is_some_and(|on| matches!(used[on], Some(Some(_))));
                used[cpu] == Some(None) && busy && allowed[task] >> cpu & 1 == 1
            };
            for (cpu, since) in since.iter_mut().enumerate() {
                let open = (0..waiting.len()).any(|task| steals(cpu, task));
                match *since {
                    None if open => *since = Some(*time),
                    Some(from) if !open => {
                        found.push((cpu, from, *time - from));
                        *since = None;
                    }
                    _ => {}
                }
            }
            let mut owner = vec![None; cpus];
            let matched = (0..waiting.len())
                .filter(|task| give(*task, &steals, &mut vec![false; cpus], &mut owner))
                .count() as u64;
            wasted += matched * (times[at + 1] - time);
        }
        found.extend(since.iter().enumerate().filter_map(|(cpu, since)| Some((cpu, (*since)?, end - (*since)?))));
        found.retain(|(_, _, length)| *length > threshold);
        found.sort_unstable();
        (found, wasted)
    }
}

fn give(task: usize, fits: &dyn Fn(usize, usize) -> bool, seen: &mut [bool], owner: &mut [Option<usize>]) -> bool {
    for cpu in 0..owner.len() {
        if !seen[cpu] && fits(cpu, task) {
            seen[cpu] = true;
            if owner[cpu].is_none_or(|other| give(other, fits, seen, owner)) {
                owner[cpu] = Some(task);
                return true;
            }
        }
    }
    false
}

fn list(mask: u64) -> String {
    (0..64).filter(|cpu| mask >> cpu & 1 == 1).map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",")
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = (0u64..4, 0u8..9, 0usize..16, 0usize..70);
    prop::collection::vec(one.prop_map(|(wait, kind, task, cpu)| Move { wait, kind, task, cpu }), 1..250)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]
    #[test]
    fn random_machines_are_judged_as_the_reference_does(
        moves in moves(),
        cpus in prop::sample::select(vec![2usize, 4, 8]),
        kinds in prop::collection::vec(0usize..7, 1..14),
        first in 0usize..4,
        threshold in 0u64..12,
    ) {
        // Everywhere, halves, one CPU, sets that cross.
        let masks: Vec<u64> = kinds.iter().map(|kind| [0xff, 0x0f, 0xf0, 0x01, 0x33, 0x3c, 0x06][*kind]).collect();
        let mut machine = Machine::new(cpus, &masks, first);
        let meta = machine.meta();
        moves.iter().for_each(|step| machine.step(step));
        let end = machine.now + 3;
        let report = machine.script.check(&meta, Bounds { threshold: threshold * MS, max_wasted: None }, end);
        let mut found: Vec<(usize, u64, u64)> = report
            .violations
            .iter()
            .map(|v| (v.idle_cpu as usize, (v.start_us / 1e3) as u64, (v.duration_us / 1e3) as u64))
            .collect();
        found.sort_unstable();
        let (expected, wasted) = machine.reference(end, threshold);
        prop_assert_eq!(found, expected);
        prop_assert_eq!(report.wasted_cpu_us, wasted as f64 * 1e3);
        prop_assert_eq!(report.contradictions, 0);
    }
}

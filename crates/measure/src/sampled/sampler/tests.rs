//! The checker on machines made by hand.

use super::*;
use schedlab_base::CpuPlace;
use std::convert::Infallible;

const MS: Nanos = 1_000_000;

/// A machine whose state is a function of the time.
struct ByHand<F> {
    now: Nanos,
    state: F,
    cpus: Vec<CpuNow>,
    waiting: Vec<WaitingNow>,
}

/// The lengths of the queues, and the waiting tasks: tid, CPU, allowed CPUs.
type Scene = (Vec<u32>, Vec<(Tid, CpuId, &'static str)>);

impl<F: Fn(Nanos) -> Scene> Looked for ByHand<F> {
    type Error = Infallible;

    fn cpus(&mut self, _: bool) -> Result<&[CpuNow], Infallible> {
        let (lengths, waiting) = (self.state)(self.now);
        self.cpus = (0..).zip(lengths).map(|(cpu, queued)| CpuNow { cpu, queued }).collect();
        let task = |(tid, cpu, allowed): (Tid, CpuId, &str)| {
            let allowed = (!allowed.is_empty()).then(|| allowed.parse().unwrap());
            WaitingNow { tid, name: format!("t{tid}"), cpu, allowed }
        };
        self.waiting = waiting.into_iter().map(task).collect();
        Ok(&self.cpus)
    }

    fn waiting(&mut self) -> Result<&[WaitingNow], Infallible> {
        Ok(&self.waiting)
    }
}

fn meta(cpus: CpuId) -> Meta {
    let place = |cpu| CpuPlace { cpu, core: cpu, llc: cpu / 2, capacity: 1024, ..CpuPlace::default() };
    Meta { cpus: (0..cpus).map(place).collect(), ..Meta::default() }
}

/// Everything that is found until `end`, and what it took.
fn found(end: Nanos, cpus: CpuId, state: impl Fn(Nanos) -> Scene) -> (Vec<Finding>, Work) {
    let mut machine = ByHand { now: 0, state, cpus: Vec::new(), waiting: Vec::new() };
    let mut sampler = Sampler::new(Timing::default(), &meta(cpus), 0);
    let mut found = Vec::new();
    while sampler.next() <= end {
        machine.now = sampler.next();
        let Ok(one) = sampler.look(machine.now, &mut machine);
        found.extend(one);
    }
    (found, sampler.work())
}

#[test]
fn a_lasting_violation_is_found_at_each_look() {
    let (found, work) = found(3_500 * MS, 4, |_| (vec![3, 0, 0, 1], vec![(7, 0, "0-2"), (8, 0, "")]));
    assert_eq!(found.len(), 3);
    let first = &found[0];
    assert_eq!((first.start_us, first.duration_us), (1e6, 1e5));
    assert_eq!((first.idle_cpu, first.busy_cpu, first.level), (1, 0, Level::Mc));
    assert_eq!((first.idle_cpus.as_str(), first.busy_cpus.as_str(), first.waiting_tasks), ("1-2", "0", 2));
    let known: Vec<_> = first.waiting.iter().map(|task| (task.tid, task.affinity_known)).collect();
    assert_eq!(known, [(7, true), (8, false)]);
    // A watch is 17 looks, of which the first and the last read the tasks.
    assert_eq!((work.looks, work.task_lists, work.watches, work.violations), (3 * 17, 6, 3, 3));
    assert_eq!(work.cpus_read, 4 * work.looks);
}

#[test]
fn the_first_look_may_be_at_the_start() {
    let mut machine = ByHand { now: 500, state: |_| (vec![1], vec![]), cpus: Vec::new(), waiting: Vec::new() };
    let mut sampler = Sampler::new(Timing::default(), &meta(1), 500).at_once();
    assert_eq!(sampler.next(), 500);
    let Ok(found) = sampler.look(510, &mut machine);
    assert_eq!((found, sampler.next()), (None, 1_000 * MS + 500));
}

#[test]
fn pinned_tasks_are_no_violation() {
    let (found, work) = found(5_000 * MS, 2, |_| (vec![4, 0], vec![(7, 0, "0"), (8, 0, "0"), (9, 0, "0")]));
    assert_eq!((found.len(), work.watches), (0, 0));
}

#[test]
fn nothing_is_read_of_tasks_unless_a_cpu_is_idle_beside_a_long_queue() {
    for lengths in [vec![1, 1], vec![0, 0], vec![5, 5], vec![0, 1]] {
        let (found, work) = found(5_000 * MS, 2, |_| (lengths.clone(), vec![(7, 0, "0-1")]));
        assert_eq!((found.len(), work.task_lists, work.looks), (0, 0, 5), "{lengths:?}");
    }
}

#[test]
fn what_ends_within_the_watch_is_none() {
    // From 950 ms on for `lasts`: the look at 1 s sees it, and the watch ends at 1.1 s.
    for (lasts, expected) in [(20, 0), (149, 0), (151, 1)] {
        let state = |now: Nanos| match (950 * MS..(950 + lasts) * MS).contains(&now) {
            true => (vec![2, 0], vec![(7, 0, "0-1")]),
            false => (vec![1, 1], vec![]),
        };
        assert_eq!(found(1_900 * MS, 2, state).0.len(), expected, "{lasts} ms");
    }
}

#[test]
fn a_queue_that_moves_from_cpu_to_cpu_is_still_one() {
    let state = |now: Nanos| match now / (30 * MS) % 2 {
        0 => (vec![2, 1, 0], vec![(7, 0, "0-2")]),
        _ => (vec![1, 2, 0], vec![(8, 1, "0-2")]),
    };
    assert_eq!(found(1_500 * MS, 3, state).0.len(), 1);
}

#[test]
fn cpus_that_take_turns_at_being_idle_are_none() {
    let state = |now: Nanos| match now / (30 * MS) % 2 {
        0 => (vec![2, 1, 0], vec![(7, 0, "0-2")]),
        _ => (vec![2, 0, 1], vec![(7, 0, "0-2")]),
    };
    assert_eq!(found(5_000 * MS, 3, state).0.len(), 0);
}

#[test]
fn a_cpu_may_run_something_at_two_looks_but_not_at_the_last() {
    // CPU 1 runs something for 10 ms from here on, counted from the begin of the watch: two looks fall into that.
    for (from, to, expected) in [(40, 47, 1), (40, 75, 0), (99, 101, 0)] {
        let state = |now: Nanos| match (1_000 * MS + from * MS..1_000 * MS + to * MS).contains(&now) {
            true => (vec![2, 1], vec![(7, 0, "0-1")]),
            false => (vec![2, 0], vec![(7, 0, "0-1")]),
        };
        let (found, _) = found(1_500 * MS, 2, state);
        assert_eq!(found.len(), expected, "{from} ms to {to} ms");
        assert!(found.iter().all(|one| (1..=2).contains(&one.disturbed)), "{found:?}");
    }
}

/// A task that is woken every 5 ms and runs at once, beside one that waits for 1 ms each time: at equal distances of
/// 5 ms the looks would always meet the same phase.
#[test]
fn what_is_periodic_is_not_met_in_the_same_phase() {
    for phase in 0..50 {
        let state = |now: Nanos| match (now + phase * MS / 10) % (5 * MS) < MS {
            true => (vec![2, 0], vec![(7, 0, "0-1")]),
            false => (vec![1, 0], vec![]),
        };
        assert_eq!(found(20_000 * MS, 2, state).0.len(), 0, "{phase}");
    }
}

#[test]
fn the_looks_of_a_watch_are_in_order_and_end_with_it() {
    let timing = Timing::default();
    let offsets: Vec<Nanos> = (0..=SAMPLES).map(|sample| timing.offset(sample)).collect();
    assert!(offsets.is_sorted_by(|a, b| a < b), "{offsets:?}");
    assert_eq!((offsets[0], offsets[SAMPLES as usize]), (0, timing.watch));
}

#[test]
fn the_nearest_idle_cpu_that_a_task_may_use_is_named() {
    let (found, _) = found(1_500 * MS, 8, |_| (vec![1, 1, 1, 2, 0, 0, 0, 0], vec![(7, 3, "5")]));
    assert_eq!((found[0].idle_cpu, found[0].idle_cpus.as_str(), found[0].level), (5, "5", Level::Package));
}

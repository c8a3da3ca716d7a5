//! Tasks that share a mutex.

use super::*;
use std::collections::VecDeque;

/// Where the next task of a kind waits, and what it does then.
const OUTSIDER: Tid = 1;
const FIRST: Tid = 11;

/// Tasks with a CPU each that take turns in sections, of which there may be several at a time.
struct Sharers {
    script: Script,
    rng: Rng,
    /// What happens next: when, who, and whether it comes to a section or leaves it.
    next: Vec<(Nanos, u32, bool)>,
    waiting: VecDeque<u32>,
    /// How many are in a section, and may be.
    inside: usize,
    places: usize,
    /// Who came last is the first to be woken.
    last_first: bool,
    /// How many sections there were.
    sections: usize,
    /// A task that none of them forks or locks with, and until when it is awake.
    outsider: Nanos,
}

impl Sharers {
    fn new(seed: u64, sharers: u32, places: usize) -> Self {
        let mut script = Script::default();
        script.name(OUTSIDER, "outsider").wake(0, 0, 0, OUTSIDER).switch(0, 0, 0, Runnable, OUTSIDER);
        script.switch(10, 0, OUTSIDER, Sleeping, 0);
        for n in 0..sharers {
            script.name(Self::tid(n), &format!("sharer-{n}")).switch(0, 1 + n, 0, Runnable, Self::tid(n));
        }
        let mut rng = Rng::new(seed);
        let next = (0..sharers).map(|n| (20 + rng.below(900), n, true)).collect();
        Self {
            script,
            rng,
            next,
            waiting: VecDeque::new(),
            inside: 0,
            places,
            last_first: false,
            sections: 0,
            outsider: 20,
        }
    }

    fn tid(n: u32) -> Tid {
        FIRST + n as Tid
    }

    /// Goes on until so many sections are over, each so long, with so much work between two of a task; `meanwhile` is
    /// what a task does that is in one or between two (`true`), which takes so much time.
    fn on(
        mut self,
        sections: usize,
        [between, length]: [Nanos; 2],
        mut meanwhile: impl FnMut(&mut Self, u32, bool, Nanos) -> Nanos,
    ) -> Self {
        while self.sections < sections {
            let at = (0..self.next.len()).min_by_key(|at| self.next[*at].0).expect("somebody is awake");
            let (time, n, comes) = self.next.swap_remove(at);
            let (cpu, tid) = (1 + n, Self::tid(n));
            if comes && self.inside == self.places {
                self.script.switch(time, cpu, tid, Sleeping, 0);
                self.waiting.push_back(n);
            } else if comes {
                self.inside += 1;
                let took = meanwhile(&mut self, n, false, time + 1);
                self.leaves_after(n, time + took, length);
            } else {
                self.sections += 1;
                match if self.last_first { self.waiting.pop_back() } else { self.waiting.pop_front() } {
                    Some(other) => {
                        self.script.wake_in(Context::Task, time, cpu, tid, Self::tid(other));
                        self.script.switch(time + 1, 1 + other, 0, Runnable, Self::tid(other));
                        self.leaves_after(other, time + 1, length);
                    }
                    None => self.inside -= 1,
                }
                let took = meanwhile(&mut self, n, true, time + 5);
                let work = between / 2 + self.rng.below(between);
                self.next.push((time + 5 + took + work, n, true));
            }
        }
        self
    }

    fn leaves_after(&mut self, n: u32, time: Nanos, length: Nanos) {
        let length = length / 2 + self.rng.below(length);
        self.next.push((time + length.max(8), n, false));
    }

    /// Sleeps for so long, from then on.
    fn sleeps(&mut self, n: u32, from: Nanos, length: Nanos) -> Nanos {
        let (cpu, tid) = (1 + n, Self::tid(n));
        self.script.switch(from, cpu, tid, Sleeping, 0);
        self.script.wake_in(Context::HardIrq, from + length, cpu, 0, tid).switch(from + length, cpu, 0, Runnable, tid);
        length
    }

    /// Wakes the outsider, and is perhaps answered.
    fn asks(&mut self, n: u32, at: Nanos, answer: bool) -> Nanos {
        let (cpu, tid) = (1 + n, Self::tid(n));
        if self.outsider > at {
            return 0;
        }
        self.script.wake_in(Context::Task, at, cpu, tid, OUTSIDER).switch(at + 1, 0, 0, Runnable, OUTSIDER);
        self.outsider = at + 20;
        self.script.switch(at + 15, 0, OUTSIDER, Sleeping, 0);
        if !answer {
            return 0;
        }
        self.script.switch(at + 5, cpu, tid, Sleeping, 0);
        self.script.wake_in(Context::Task, at + 12, 0, OUTSIDER, tid).switch(at + 14, cpu, 0, Runnable, tid);
        14
    }

    /// All that are awake end.
    fn model(mut self) -> Model {
        for (time, n, _) in &self.next {
            let (cpu, tid) = (1 + n, Self::tid(*n));
            self.script.at(time + 50, cpu, Payload::Exit { tid, prio: 120 }).switch(time + 52, cpu, tid, Dead, 0);
        }
        self.script.events.sort_by_key(|event| event.time);
        self.script.model(&Options::default()).unwrap()
    }
}

/// How many sections of the mutex the tasks have. A task is in one of them at a time, and waits for nothing else there.
fn sections(workload: &Workload) -> u64 {
    let mut all = 0;
    for task in &workload.tasks {
        let mut inside = false;
        for step in task.phases.iter().flat_map(|phase| (0..phase.loops.unwrap_or(1)).flat_map(|_| &phase.events)) {
            match step.what {
                Action::Lock(_) => assert!(!std::mem::replace(&mut inside, true), "{}: locks twice", task.name),
                Action::Unlock(_) => {
                    assert!(std::mem::take(&mut inside), "{}: unlocks what it does not hold", task.name);
                    all += 1;
                }
                Action::Run(_) | Action::SemPost(_) => {}
                _ => assert!(!inside, "{}: {step:?} in a section", task.name),
            }
        }
        assert!(!inside, "{} ends in a section", task.name);
    }
    all
}

#[test]
fn tasks_that_wait_for_whoever_holds_a_mutex_share_it() {
    for (sharers, between, length) in [(3, 900, 600), (4, 1_000, 300), (6, 2_000, 400), (8, 4_000, 200)] {
        let sharers = Sharers::new(7, sharers, 1).on(2_000, [between, length], |_, _, _, _| 0);
        let number = sharers.next.len() + sharers.waiting.len();
        let model = sharers.model();
        let w = &model.workload;
        assert_eq!((model.report.lockers, w.tasks.len()), (number, number + 1), "{between}, {length}");
        let all = sections(w);
        assert!(all.abs_diff(2_000) < 240, "{between}, {length}: {all} sections of 2,000");
        assert_eq!(model.report.demand_ns / US / 1000, model.report.modelled_ns / US / 1000);
        let remark = format!("sharer-0-11 and {} more share a mutex", number - 1);
        assert!(model.report.remarks[0].starts_with(&remark), "{:?}", model.report.remarks);
        assert_eq!(stuck(w), [""; 0]);
    }
}

#[test]
fn a_mutex_may_wake_whom_it_likes() {
    let sharers = Sharers { last_first: true, ..Sharers::new(3, 5, 1) }.on(2_000, [1_000, 400], |_, _, _, _| 0);
    let model = sharers.model();
    assert_eq!(model.report.lockers, 5);
    assert!(sections(&model.workload).abs_diff(2_000) < 240);
}

#[test]
fn what_is_no_mutex_is_none() {
    let lockers = |sharers: Sharers| sharers.model().report.lockers;
    // Two take turns: that may be a conversation.
    assert_eq!(lockers(Sharers::new(1, 2, 1).on(1_000, [500, 400], |_, _, _, _| 0)), 0);
    // Somebody hardly ever waits.
    assert_eq!(lockers(Sharers::new(1, 3, 1).on(300, [9_000, 20], |_, _, _, _| 0)), 0);
    // Two at a time.
    assert_eq!(lockers(Sharers::new(1, 6, 2).on(1_000, [500, 400], |_, _, _, _| 0)), 0);
    // They sleep in it: one of several places, as of `make`'s jobs.
    let works = |sharers: &mut Sharers, n, outside, at| if outside { 0 } else { sharers.sleeps(n, at, 3_000) };
    assert_eq!(lockers(Sharers::new(1, 6, 3).on(1_000, [200, 100], works)), 0);
    // Who comes last to a barrier wakes all others.
    let mut barrier = Sharers::new(1, 4, 1);
    for round in 1..200 {
        let mut times: Vec<(Nanos, u32)> =
            (0..4).map(|n| (round * 2_000 + barrier.rng.below(900) + Nanos::from(n), n)).collect();
        times.sort_unstable();
        let (last, waker) = times.pop().expect("there are four");
        for (time, n) in times {
            let (cpu, tid) = (1 + n, Sharers::tid(n));
            barrier.script.switch(time, cpu, tid, Sleeping, 0);
            barrier.script.wake_in(Context::Task, last, 1 + waker, Sharers::tid(waker), tid);
            barrier.script.switch(last + 1, cpu, 0, Runnable, tid);
        }
    }
    barrier.next.iter_mut().for_each(|next| next.0 = 400_000);
    assert_eq!(lockers(barrier), 0);
}

/// One of three is awake, and wakes another one now and then. That one mostly waits again, and only now and then goes
/// on in its place.
#[test]
fn who_waits_again_before_it_wakes_one_has_no_mutex() {
    let mut three = Sharers::new(1, 3, 1);
    three.script.switch(30, 2, Sharers::tid(1), Sleeping, 0).switch(30, 3, Sharers::tid(2), Sleeping, 0);
    let mut awake = 0;
    for round in 1..1_000 {
        let time = round * 100;
        let other = (awake + 1 + three.rng.below(2) as u32) % 3;
        let (cpu, tid) = (1 + other, Sharers::tid(other));
        three.script.wake_in(Context::Task, time, 1 + awake, Sharers::tid(awake), tid);
        three.script.switch(time + 1, cpu, 0, Runnable, tid);
        let stays = if three.rng.below(6) == 0 { std::mem::replace(&mut awake, other) } else { other };
        three.script.switch(time + 5 + round % 7, 1 + stays, Sharers::tid(stays), Sleeping, 0);
    }
    three.next = vec![(100_000, awake, true)];
    assert_eq!(three.model().report.lockers, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn nobody_gets_stuck_at_a_mutex(
        seed in any::<u64>(), sharers in 3u32..7, between in 50u64..3_000, length in 10u64..800,
        sleepy in 1u64..30, chatty in 1u64..30,
    ) {
        let meanwhile = |all: &mut Sharers, n, outside, at| match (all.rng.below(sleepy), all.rng.below(chatty)) {
            (0, _) if outside || sleepy > 25 => all.sleeps(n, at, 1 + 3 * sleepy),
            (_, 0) => all.asks(n, at, outside && chatty > 10),
            _ => 0,
        };
        let model = Sharers::new(seed, sharers, 1).on(400, [between, length], meanwhile).model();
        prop_assert_eq!(stuck(&model.workload), Vec::<String>::new());
        sections(&model.workload);
        let (demand, run) = (model.report.demand_ns, model.report.modelled_ns);
        prop_assert!(demand.abs_diff(run) <= run / 100 + 50 * US, "{} {}", demand, run);
    }
}

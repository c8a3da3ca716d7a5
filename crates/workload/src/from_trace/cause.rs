//! Who truly woke whom: a wake-up names the task that was on the CPU, which an interrupt may only have interrupted.

use super::rhythm::{Beat, Rhythm};
use super::sequence::{NOBODY, TaskIx};
use schedlab_base::{Context, Cost, Nanos, Sleep};
use std::collections::HashMap;

/// How many pairs of waker and sleeper are counted; wake-ups of further pairs count as an interrupt's.
const MOST_PAIRS: usize = 1 << 18;

/// A timer never wakes earlier than this: shorter sleeps are no sign of one (the kernel's slack alone is 50 us).
pub(super) const SHORTEST_TIMED: Nanos = 30_000;

/// So many sleeps at least make a pattern.
const FEWEST_TIMED: usize = 5;

/// Tasks that it wakes wake a server so often at least.
const FEWEST_IN_TURN: u64 = 8;

/// An even sample of a long list of numbers in bounded memory: every n-th, n doubling.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample<const MOST: usize = 128> {
    kept: Vec<Nanos>,
    seen: u64,
    stride: u64,
}

impl<const MOST: usize> Sample<MOST> {
    pub(super) fn add(&mut self, value: Nanos) {
        self.stride = self.stride.max(1);
        if self.seen.is_multiple_of(self.stride) {
            if self.kept.len() == MOST {
                let mut odd = true;
                self.kept.retain(|_| {
                    odd = !odd;
                    !odd
                });
                self.stride *= 2;
            }
            if self.seen.is_multiple_of(self.stride) {
                self.kept.push(value);
            }
        }
        self.seen += 1;
    }

    /// This sample and another one, each by how many numbers there were.
    pub(super) fn with(&self, other: &Self) -> Self {
        let (fine, coarse) = if self.stride <= other.stride { (self, other) } else { (other, self) };
        let thinned = fine.kept.iter().step_by((coarse.stride / fine.stride.max(1)).max(1) as usize);
        let mut both = coarse.clone();
        both.kept.extend(thinned);
        both.seen += fine.seen;
        both
    }

    /// How many numbers there were.
    pub(super) fn seen(&self) -> u64 {
        self.seen
    }

    /// Those that are kept, and how many of all each of them stands for.
    pub(super) fn kept(&self) -> (&[Nanos], f64) {
        (&self.kept, self.seen as f64 / self.kept.len().max(1) as f64)
    }

    /// As what an operation costs; nothing where there is none.
    pub(super) fn cost(&self) -> Option<Cost> {
        Cost::of(self.kept.clone())
    }

    /// The number that so many percent do not exceed; 0 where there is none.
    pub(super) fn percentile(&self, percent: usize) -> Nanos {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0)
    }

    /// The median, and the distance between the tenth and the ninetieth percentile as a part of it.
    pub(super) fn spread(&self) -> Option<(Nanos, f64)> {
        if self.kept.len() < FEWEST_TIMED {
            return None;
        }
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        let at = |percent: usize| sorted[(sorted.len() - 1) * percent / 100];
        let median = at(50);
        (median > 0).then(|| (median, (at(90) - at(10)) as f64 / median as f64))
    }
}

/// What is known of a task's wake-ups.
#[derive(Clone, Debug, Default)]
pub(super) struct Wakes {
    /// All of them.
    pub all: u64,
    /// Those out of the idle task or an unknown place: by interrupts, so.
    pub by_nobody: u64,
    /// Lengths of its sleeps.
    pub lengths: Sample,
    /// When they were.
    pub rhythm: Rhythm,
    /// Those by tasks, as by a pipe or a socket.
    synced: u64,
}

impl Wakes {
    /// Counts a wake-up after a sleep of this length, which is there in the task's sequence.
    pub(super) fn add(&mut self, now: Nanos, (length, place): (Nanos, usize), waker: TaskIx, slept_for: Option<Sleep>) {
        self.all += 1;
        self.by_nobody += u64::from(waker == NOBODY);
        let sync = matches!(slept_for, Some(Sleep::Pipe | Sleep::Socket | Sleep::Poll));
        self.synced += u64::from(waker != NOBODY && sync);
        self.lengths.add(length);
        self.rhythm.add(now, length, place);
    }

    /// Whether most of its wake-ups by tasks are as by a pipe or a socket (`WF_SYNC`).
    pub(super) fn sync(&self) -> bool {
        self.synced * 2 > self.all - self.by_nobody
    }

    /// Whether its sleeps look like a timer's: nearly all of one length, or a fixed time from wake-up to wake-up.
    fn timed(&self) -> bool {
        let regular = |s: &Sample| s.spread().is_some_and(|(median, part)| median >= SHORTEST_TIMED && part <= 0.1);
        regular(&self.rhythm.intervals) || regular(&self.lengths)
    }

    /// The rhythm in which a timer wakes it, if one does.
    pub(super) fn beat(&self) -> Option<Beat> {
        let (_, varies) = self.lengths.spread().unwrap_or((0, 1.0));
        self.rhythm.beat(varies).filter(|_| self.by_nobody * 10 >= self.all * 9)
    }
}

/// What the rule needs to know of a task.
pub(super) struct Facts<'a> {
    /// Its wake-ups.
    pub wakes: &'a Wakes,
    /// Its CPU time.
    pub run: Nanos,
}

/// An interrupt woke the task, or something that is not modelled.
pub(super) const NO_WAKER: (TaskIx, Context) = (NOBODY, Context::Unknown);

/// Who woke a task, given what it slept for. A timer expires in an interrupt. What acts on pipes, futexes and children
/// does so as a task; packets arrive in soft interrupts too.
pub(super) fn believed((by, context): (TaskIx, Context), slept_for: Option<Sleep>) -> (TaskIx, Context) {
    match (slept_for, context) {
        (None, _) | (_, Context::Task) => (by, context),
        (Some(Sleep::Timer), _) => NO_WAKER,
        (Some(Sleep::Pipe | Sleep::Futex | Sleep::Child | Sleep::Ipc), Context::Unknown) => (by, Context::Task),
        (Some(Sleep::Pipe | Sleep::Futex | Sleep::Child | Sleep::Ipc | Sleep::File), _) => NO_WAKER,
        (Some(_), _) => (by, context),
    }
}

/// How often a waker woke a sleeper.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    all: u64,
    /// In the context of the waker itself, not in that of an interrupt.
    sure: u64,
    /// In that of a soft interrupt.
    soft: u64,
}

/// Wake-ups counted by waker and sleeper.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    counts: HashMap<(TaskIx, TaskIx), Count>,
    /// How often each task was woken by tasks that it woke.
    in_turn: HashMap<TaskIx, u64>,
}

impl Pairs {
    /// Counts one; `false` when there is no room for another pair.
    pub(super) fn add(&mut self, waker: TaskIx, sleeper: TaskIx, context: Context) -> bool {
        if self.counts.len() >= MOST_PAIRS && !self.counts.contains_key(&(waker, sleeper)) {
            return false;
        }
        let count = self.counts.entry((waker, sleeper)).or_default();
        count.all += 1;
        count.sure += u64::from(context == Context::Task);
        count.soft += u64::from(context == Context::SoftIrq);
        true
    }

    /// Every waker and sleeper, with how often it woke it.
    pub(super) fn all(&self) -> impl Iterator<Item = (TaskIx, TaskIx, u64)> {
        self.counts.iter().map(|((waker, sleeper), count)| (*waker, *sleeper, count.all))
    }

    /// All are counted: which tasks wake each other is known.
    pub(super) fn settle(&mut self) {
        let in_turn = |(waker, sleeper, times)| (self.count(sleeper, waker).all > 0).then_some((sleeper, times));
        let mut all = HashMap::new();
        self.all().filter_map(in_turn).for_each(|(task, times)| *all.entry(task).or_default() += times);
        self.in_turn = all;
    }

    /// Whether most of what soft interrupts woke while a task ran was woken by that task, if these are causal.
    pub(super) fn soft_irqs_are_sent(&self, mut causal: impl FnMut(TaskIx, TaskIx) -> bool) -> bool {
        let (mut sent, mut all) = (0, 0);
        for ((waker, sleeper), count) in self.counts.iter().filter(|(_, count)| count.soft > 0) {
            all += count.soft;
            sent += if causal(*waker, *sleeper) { count.soft } else { 0 };
        }
        sent * 2 > all
    }

    fn count(&self, waker: TaskIx, sleeper: TaskIx) -> Count {
        self.counts.get(&(waker, sleeper)).copied().unwrap_or_default()
    }

    /// Whether the waker is taken as the cause of the sleeper's wake-ups.
    ///
    /// It is if the trace contains that most of them were requested in its own context. Of those that soft interrupts
    /// requested it is if it was on the CPU more often than its share of the CPU time explains by chance (by three
    /// standard deviations): most of these are timers, and the rest packets that the task sent. So are they where most
    /// of its own wake-ups are by tasks that it wakes, of which the sleeper is one: a server that has much to do is
    /// always there when its clients wake, and sleeps until one of them asks. Without contexts it is, unless the
    /// sleeper looks driven by interrupts (most wake-ups come out of idle, or the sleeps are timed) and the waker was
    /// there no more often than by chance. Two tasks that wake each other are each other's cause.
    pub(super) fn causal(&self, waker: TaskIx, w: &Facts, sleeper: TaskIx, s: &Facts, span: Nanos) -> bool {
        let Count { all: count, sure, soft } = self.count(waker, sleeper);
        let back = self.count(sleeper, waker).all;
        if count == 0 || sure * 2 >= count || back * 2 >= count {
            return count > 0;
        }
        let in_turn = self.in_turn.get(&waker).copied().unwrap_or(0);
        if soft * 2 >= count && back > 0 && in_turn >= FEWEST_IN_TURN.max(w.wakes.all / 2) {
            return true;
        }
        let n = s.wakes.all as f64;
        let share = (w.run as f64 / span.saturating_sub(s.run).max(1) as f64).min(1.0);
        let by_chance = n * share + 3.0 * (n * share * (1.0 - share)).sqrt() + 1.0;
        let by_interrupts = soft * 2 >= count || s.wakes.by_nobody * 2 >= s.wakes.all || s.wakes.timed();
        !(by_interrupts && count as f64 <= by_chance)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wakes(n: u64, length: impl Fn(u64) -> Nanos, waker: impl Fn(u64) -> TaskIx) -> Wakes {
        let mut w = Wakes::default();
        let mut now = 0;
        for i in 0..n {
            now += length(i) + 1_000;
            w.add(now, (length(i), 0), waker(i), None);
        }
        w
    }

    fn judge(wakes: &Wakes, count: u64, back: u64, waker_share: f64) -> bool {
        judge_in(Context::Unknown, wakes, count, back, waker_share)
    }

    fn judge_in(context: Context, wakes: &Wakes, count: u64, back: u64, waker_share: f64) -> bool {
        let mut pairs = Pairs::default();
        (0..count).for_each(|_| assert!(pairs.add(1, 2, context)));
        (0..back).for_each(|_| assert!(pairs.add(2, 1, context)));
        let quiet = Wakes::default();
        let w = Facts { wakes: &quiet, run: (waker_share * 1e9) as Nanos };
        pairs.causal(1, &w, 2, &Facts { wakes, run: 0 }, 1_000_000_000)
    }

    #[test]
    fn two_samples_together_weigh_as_much_as_there_were_numbers() {
        let of = |numbers: u64, value: Nanos| {
            let mut sample = Sample::<128>::default();
            (0..numbers).for_each(|_| sample.add(value));
            sample
        };
        let (few, many) = (of(100, 1), of(1000, 2));
        for both in [few.with(&many), many.with(&few)] {
            let ones = both.kept.iter().filter(|value| **value == 1).count();
            assert_eq!((both.seen(), ones, both.kept.len()), (1100, 13, 138));
        }
        assert_eq!((few.with(&Sample::default()).kept, Sample::default().with(&few).seen()), (vec![1; 100], 100));
    }

    #[test]
    fn a_hog_that_a_timer_interrupts_is_no_cause() {
        let timed = wakes(100, |_| 1_000_000, |_| 1);
        assert!(!judge(&timed, 100, 0, 1.0));
        // Without a pattern the task on the CPU is believed.
        assert!(judge(&wakes(100, |i| 100_000 * (1 + i * 7 % 13), |_| 1), 100, 0, 1.0));
    }

    #[test]
    fn a_hog_that_wakes_on_a_beat_is_the_cause_if_the_trace_says_so() {
        let timed = wakes(100, |_| 1_000_000, |_| 1);
        assert!(judge_in(Context::Task, &timed, 100, 0, 1.0));
        // A soft interrupt may have been on behalf of the task or not.
        assert!(!judge_in(Context::SoftIrq, &timed, 100, 0, 1.0));
    }

    #[test]
    fn soft_interrupts_are_on_behalf_of_a_task_that_is_there_more_often_than_by_chance() {
        let irregular = wakes(100, |i| 100_000 * (1 + i * 7 % 13), |_| 1);
        assert!(judge_in(Context::SoftIrq, &irregular, 100, 0, 0.4));
        assert!(judge_in(Context::Task, &irregular, 10, 0, 0.1));
        assert!(!judge_in(Context::SoftIrq, &irregular, 10, 0, 0.1));
    }

    #[test]
    fn a_server_that_is_always_there_wakes_the_clients_that_wake_it() {
        // Two clients, of which one finds it asleep twice; it is woken `otherwise` for something else.
        let judge = |otherwise: u64, client: TaskIx| {
            let mut pairs = Pairs::default();
            let counts = [(0, 1, 1000), (0, 2, 1000), (1, 0, 2), (2, 0, 20), (3, 0, otherwise)];
            for (waker, sleeper, times) in counts {
                (0..times).for_each(|_| assert!(pairs.add(waker, sleeper, Context::SoftIrq)));
            }
            pairs.settle();
            let server = wakes(22 + otherwise, |i| 100_000 * (1 + i * 7 % 13), |_| 1);
            let asleep = wakes(1000, |i| 100_000 * (1 + i * 7 % 13), |_| 0);
            let (w, s) = (Facts { wakes: &server, run: 1_000_000_000 }, Facts { wakes: &asleep, run: 0 });
            pairs.causal(0, &w, client, &s, 1_000_000_000)
        };
        assert!(judge(0, 1) && judge(0, 2) && judge(20, 1));
        assert!(!judge(30, 1) && !judge(30, 2), "timers may interrupt it");
        assert!(!judge(0, 3), "no client");
    }

    #[test]
    fn a_task_that_is_there_more_often_than_chance_is_the_cause() {
        assert!(judge(&wakes(100, |_| 1_000_000, |_| 1), 100, 0, 0.05));
        assert!(!judge(&wakes(100, |_| 1_000_000, |i| if i % 20 == 0 { 1 } else { NOBODY }), 5, 0, 0.05));
    }

    #[test]
    fn two_that_wake_each_other_are_causes() {
        assert!(judge(&wakes(100, |_| 1_000_000, |_| 1), 100, 99, 1.0));
    }

    #[test]
    fn samples_are_even_and_bounded() {
        let mut s = Sample::<100>::default();
        (0..10_000).for_each(|i| s.add(i));
        assert!(s.kept.len() <= 100 && s.kept.len() >= 50);
        let (median, _) = s.spread().unwrap();
        assert!((4_500..5_500).contains(&median), "{median}");
    }

    #[test]
    fn a_beat_shows_when_sleeps_make_up_for_bursts() {
        let mut w = Wakes::default();
        (1..50u64).for_each(|i| w.add(i * 10_000_000, (10_000_000 - i * 100_000 % 3_000_000, 0), NOBODY, None));
        assert_eq!(w.beat(), Some(Beat { period: 10_000_000, keeps_grid: false }));
        // Equal sleeps are a relative sleep, whatever the beat.
        assert_eq!(wakes(50, |_| 1_000_000, |_| NOBODY).beat(), None);
    }
}

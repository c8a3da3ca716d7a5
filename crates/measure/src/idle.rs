//! How long CPUs are left idle at a time, and what wakes them: tasks, and under kernels without `NO_HZ` the tick.

use schedlab_base::{CpuId, Nanos};
use schedlab_track::{Observer, Occupant, row};
use std::collections::BTreeMap;

/// Each octave has so many buckets of equal width: periods of idleness are told apart to within 1.6%.
const SUB: u32 = 64;

/// Periods of idleness by length: how many there were and how long they were together, by the bucket of their length.
#[derive(Clone, Debug, Default)]
pub struct IdlePeriods(BTreeMap<usize, (u64, Nanos)>);

impl IdlePeriods {
    /// Time in periods of at least `length`.
    #[must_use]
    pub fn at_least(&self, length: Nanos) -> Nanos {
        self.0.range(bucket(length)..).map(|(_, (_, spent))| spent).sum()
    }

    /// How many periods of at least `length` there were.
    #[must_use]
    pub fn count(&self, length: Nanos) -> u64 {
        self.0.range(bucket(length)..).map(|(_, (count, _))| count).sum()
    }

    fn add(&mut self, bucket: usize, count: u64, spent: Nanos) {
        let (counted, all) = self.0.entry(bucket).or_default();
        *counted += count;
        *all += spent;
    }
}

/// The idleness of all CPUs together.
#[derive(Clone, Debug, Default)]
pub struct Idle {
    /// The first tick and the time between two, where the tick comes to idle CPUs too.
    pub(crate) tick: Option<(Nanos, Nanos)>,
    /// Whether each CPU is idle.
    idle: Vec<bool>,
    /// The width of the windows, where it is fixed, and until when there are any.
    fixed: Option<(Nanos, Nanos)>,
    windows: Vec<IdlePeriods>,
    /// The periods of the whole run.
    pub all: IdlePeriods,
    /// Times that an idle CPU was given a task.
    pub by_task: u64,
    /// Times that the tick came to an idle CPU.
    pub by_tick: u64,
}

impl Observer for Idle {
    fn span(&mut self, _: CpuId, who: Occupant, from: Nanos, to: Nanos) {
        if who == Occupant::Idle {
            self.period(from, to);
        }
    }

    fn occupied(&mut self, cpu: CpuId, who: Occupant, _: Nanos) {
        let was_idle = std::mem::replace(row(&mut self.idle, cpu), who == Occupant::Idle);
        self.by_task += u64::from(was_idle && matches!(who, Occupant::Task(_)));
    }
}

impl Idle {
    /// `fixed`: the width of the windows, if it is, and until when there are any.
    pub(crate) fn new(fixed: Option<(Nanos, Nanos)>) -> Self {
        Self { fixed, ..Self::default() }
    }

    /// The periods of a window, `None` where windows have no fixed width. A period that lasts from one window into
    /// another has its time in both, and counts where it ends.
    #[must_use]
    pub fn window(&self, window: u64) -> Option<IdlePeriods> {
        self.fixed?;
        Some(self.windows.get(window as usize).cloned().unwrap_or_default())
    }

    /// A period without a task, which the ticks in it cut up.
    fn period(&mut self, from: Nanos, to: Nanos) {
        let Some((first, every)) = self.tick else { return self.spend(from, to - from, 1) };
        let next = if from < first { first } else { first + ((from - first) / every + 1) * every };
        if next >= to {
            return self.spend(from, to - from, 1);
        }
        let more = (to - 1 - next) / every;
        self.by_tick += more + 1;
        self.spend(from, next - from, 1);
        self.spend(next, every, more);
        let last = next + more * every;
        self.spend(last, to - last, 1);
    }

    /// Periods of one length, one after another.
    fn spend(&mut self, from: Nanos, length: Nanos, times: u64) {
        if length == 0 || times == 0 {
            return;
        }
        let bucket = bucket(length);
        self.all.add(bucket, times, length * times);
        let Some((width, until)) = self.fixed else { return };
        let (mut at, end) = (from, (from + length * times).min(until));
        while at < end {
            let to = end.min((at / width + 1) * width);
            let ended = (to - from) / length - (at - from) / length;
            row(&mut self.windows, (at / width) as u32).add(bucket, ended, to - at);
            at = to;
        }
    }
}

/// The bucket of a length in ns.
fn bucket(length: Nanos) -> usize {
    let octave = length.max(1).ilog2();
    let sub = if octave < SUB.ilog2() { length } else { (length >> (octave - SUB.ilog2())) & u64::from(SUB - 1) };
    (octave * SUB) as usize + sub as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A CPU that is idle from the first instant to the second, then runs a task.
    fn rest(idle: &mut Idle, cpu: CpuId, from: Nanos, to: Nanos) {
        idle.occupied(cpu, Occupant::Idle, from);
        idle.span(cpu, Occupant::Idle, from, to);
        idle.occupied(cpu, Occupant::Task(0), to);
    }

    #[test]
    fn without_ticks_a_period_lasts_until_a_task_comes() {
        let mut idle = Idle::default();
        rest(&mut idle, 0, 0, 900_000);
        // These last until the end, or until events are lost.
        idle.span(0, Occupant::Idle, 1_000_000, 5_000_000);
        idle.span(1, Occupant::Idle, 0, 5_000_000);
        assert_eq!((idle.by_task, idle.by_tick), (1, 0));
        assert_eq!(idle.all.at_least(0), 900_000 + 4_000_000 + 5_000_000);
        assert_eq!(idle.all.at_least(1_000_000), 9_000_000);
        assert_eq!(idle.all.at_least(6_000_000), 0);
    }

    #[test]
    fn ticks_cut_idleness_up() {
        let mut idle = Idle { tick: Some((1_000_000, 1_000_000)), ..Idle::default() };
        // Ticks at 1, 2, 3 and 4 ms come to the idle CPU; at 5 ms the task is there.
        rest(&mut idle, 0, 0, 4_500_000);
        idle.span(0, Occupant::Idle, 5_200_000, 5_800_000);
        assert_eq!((idle.by_task, idle.by_tick), (1, 4));
        assert_eq!(idle.all.at_least(990_000), 4_000_000);
        assert_eq!(idle.all.at_least(550_000), 4_600_000);
        assert_eq!(idle.all.at_least(0), 5_100_000);
        assert_eq!((idle.all.count(990_000), idle.all.count(0)), (4, 6));
    }

    #[test]
    fn a_tick_and_a_task_at_one_time_wake_once() {
        let mut idle = Idle { tick: Some((1000, 1000)), ..Idle::default() };
        rest(&mut idle, 0, 0, 3000);
        assert_eq!((idle.by_task, idle.by_tick), (1, 2));
        assert_eq!(idle.all.at_least(0), 3000);
    }

    #[test]
    fn windows_have_the_time_of_periods_and_count_those_that_end_in_them() {
        let mut idle = Idle::new(Some((1000, Nanos::MAX)));
        idle.span(0, Occupant::Idle, 200, 400);
        idle.span(0, Occupant::Idle, 700, 2500);
        let of = |window| idle.window(window).map(|w| (w.at_least(0), w.at_least(1000), w.count(0)));
        assert_eq!([0, 1, 2, 3].map(of), [(500, 300, 1), (1000, 1000, 0), (500, 500, 1), (0, 0, 0)].map(Some));
        let mut ticking = Idle { tick: Some((100, 100)), ..Idle::new(Some((250, Nanos::MAX))) };
        rest(&mut ticking, 0, 50, 620);
        let of = |window| ticking.window(window).map(|w| (w.at_least(0), w.count(0)));
        // Periods end at 100 and 200, at 300, 400 and 500, and at 600 and 620.
        assert_eq!([0, 1, 2].map(of), [(200, 2), (250, 3), (120, 2)].map(Some));
        assert!(Idle::default().window(0).is_none());
    }

    #[test]
    fn buckets_ascend() {
        let lengths = [0, 1, 2, 63, 64, 65, 127, 128, 1000, 1016, 1 << 40, u64::MAX];
        assert!(lengths.is_sorted_by_key(|l| bucket(*l)));
    }
}

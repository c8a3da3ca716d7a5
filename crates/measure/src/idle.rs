//! How long CPUs are left idle at a time, and what wakes them: tasks, and under kernels without `NO_HZ` the tick.

use schedlab_base::{CpuId, Nanos};
use schedlab_track::{Observer, Occupant, row};

/// Each octave has so many buckets of equal width: periods of idleness are told apart to within 1.6%.
const SUB: u32 = 64;

/// Periods of idleness, by length.
#[derive(Clone, Debug, Default)]
pub struct Idle {
    /// The first tick and the time between two, where the tick comes to idle CPUs too.
    tick: Option<(Nanos, Nanos)>,
    /// Whether each CPU is idle.
    idle: Vec<bool>,
    /// Periods and the time spent in them, by the bucket of their length.
    periods: Vec<(u64, Nanos)>,
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
    /// `tick`: the first and the time between two, if they come to idle CPUs.
    pub(crate) fn new(tick: Option<(Nanos, Nanos)>) -> Self {
        Self { tick, ..Self::default() }
    }

    /// Time that CPUs were idle in periods of at least `length`, all CPUs together.
    #[must_use]
    pub fn at_least(&self, length: Nanos) -> Nanos {
        self.periods.iter().skip(bucket(length)).map(|(_, spent)| spent).sum()
    }

    /// How many periods of at least `length` there were.
    #[must_use]
    pub fn count(&self, length: Nanos) -> u64 {
        self.periods.iter().skip(bucket(length)).map(|(count, _)| count).sum()
    }

    /// A period without a task, which the ticks in it cut up.
    fn period(&mut self, from: Nanos, to: Nanos) {
        let Some((first, every)) = self.tick else { return self.spend(from, to, 1) };
        let next = if from < first { first } else { first + ((from - first) / every + 1) * every };
        if next >= to {
            return self.spend(from, to, 1);
        }
        let more = (to - 1 - next) / every;
        self.by_tick += more + 1;
        self.spend(from, next, 1);
        self.spend(0, every, more);
        self.spend(next + more * every, to, 1);
    }

    fn spend(&mut self, from: Nanos, to: Nanos, times: u64) {
        if to > from && times > 0 {
            let at = bucket(to - from);
            if self.periods.len() <= at {
                self.periods.resize(at + 1, (0, 0));
            }
            self.periods[at].0 += times;
            self.periods[at].1 += (to - from) * times;
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
        let mut idle = Idle::new(None);
        rest(&mut idle, 0, 0, 900_000);
        // These last until the end, or until events are lost.
        idle.span(0, Occupant::Idle, 1_000_000, 5_000_000);
        idle.span(1, Occupant::Idle, 0, 5_000_000);
        assert_eq!((idle.by_task, idle.by_tick), (1, 0));
        assert_eq!(idle.at_least(0), 900_000 + 4_000_000 + 5_000_000);
        assert_eq!(idle.at_least(1_000_000), 9_000_000);
        assert_eq!(idle.at_least(6_000_000), 0);
    }

    #[test]
    fn ticks_cut_idleness_up() {
        let mut idle = Idle::new(Some((1_000_000, 1_000_000)));
        // Ticks at 1, 2, 3 and 4 ms come to the idle CPU; at 5 ms the task is there.
        rest(&mut idle, 0, 0, 4_500_000);
        idle.span(0, Occupant::Idle, 5_200_000, 5_800_000);
        assert_eq!((idle.by_task, idle.by_tick), (1, 4));
        assert_eq!(idle.at_least(990_000), 4_000_000);
        assert_eq!(idle.at_least(550_000), 4_600_000);
        assert_eq!(idle.at_least(0), 5_100_000);
        assert_eq!((idle.count(990_000), idle.count(0)), (4, 6));
    }

    #[test]
    fn a_tick_and_a_task_at_one_time_wake_once() {
        let mut idle = Idle::new(Some((1000, 1000)));
        rest(&mut idle, 0, 0, 3000);
        assert_eq!((idle.by_task, idle.by_tick), (1, 2));
        assert_eq!(idle.at_least(0), 3000);
    }

    #[test]
    fn buckets_ascend() {
        let lengths = [0, 1, 2, 63, 64, 65, 127, 128, 1000, 1016, 1 << 40, u64::MAX];
        assert!(lengths.is_sorted_by_key(|l| bucket(*l)));
    }
}

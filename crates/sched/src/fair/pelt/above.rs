//! The CPU time that higher classes use, the capacity that they leave, and the clock of a CPU's averages.
//!
//! # Rule
//! | release | the time of real-time and deadline tasks |
//! |---|---|
//! | until 2.6.31 | is not considered |
//! | 2.6.32 to 4.18 | summed over the last half to whole second: `rt_avg`, halved every half of `sched_time_avg` |
//! | 4.19 on | is averaged like a task's utilisation (`avg_rt`, `avg_dl`) |
//!
//! Interrupts and stolen time count in the same way if the kernel accounts for them: in `rt_avg` from 2.6.37 to 4.18,
//! and as an average by which the rest is scaled from 4.19 on (`avg_irq`, `scale_irq_capacity`).
//!
//! When load balancing computes the capacities of groups, the capacity of a CPU is what is left (`scale_rt_power`,
//! `scale_rt_capacity`).
//!
//! # Differences from the kernel
//! Before 4.3 the averages of tasks go on during an interrupt. `rt_avg` is exact at any time; the kernel's lags by up
//! to a tick.
//!
//! # Reference
//! kernel/sched.c of 2.6.32; kernel/sched/fair.c, core.c and pelt.h of 3.10 to 6.12.

use super::average::Average;
use crate::classes::ClassId;
use schedlab_base::{Nanos, Release, v, v2_6};

/// The capacity of a CPU, and the maximum utilisation.
const SCALE: u64 = 1024;

/// Half of `sched_time_avg`, in ns (`sched_avg_period`).
const PERIOD: Nanos = 500_000_000;

/// After this many halvings nothing is left.
const FORGOTTEN: Nanos = 64;

/// Time spent, which is halved at the end of each period (`rq->rt_avg`, `rq->age_stamp`).
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    sum: Nanos,
    since: Nanos,
    runs: bool,
}

impl Spent {
    /// The number of the period that contains a time. A period includes its end.
    fn period(at: Nanos) -> Nanos {
        at.saturating_sub(1) / PERIOD
    }

    fn fold(&mut self, now: Nanos) {
        let (mut at, last) = (Self::period(self.since), Self::period(now));
        if last - at > FORGOTTEN {
            // After many periods of running without a break, the halved sum is one period.
            (self.sum, self.since, at) = (if self.runs { PERIOD } else { 0 }, last * PERIOD, last);
        }
        while at < last {
            at += 1;
            self.sum = (self.sum + if self.runs { at * PERIOD - self.since } else { 0 }) / 2;
            self.since = at * PERIOD;
        }
        self.sum += if self.runs { now - self.since } else { 0 };
        self.since = now;
    }

    fn run(&mut self, now: Nanos, runs: bool) {
        self.fold(now);
        self.runs = runs;
    }

    /// The part of the time that is left, out of 1024.
    fn left(mut self, now: Nanos, release: Release) -> u64 {
        self.fold(now);
        let total = PERIOD + now - Self::period(now) * PERIOD;
        // "sched: Make scale_rt invariant with frequency" (4.1).
        if release >= v(4, 1) {
            return SCALE.checked_sub(self.sum * SCALE / total).filter(|left| *left > 0).unwrap_or(1);
        }
        total.saturating_sub(self.sum) / (total / SCALE)
    }
}

/// The use of one CPU by the classes above fair.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Above {
    runs: Option<ClassId>,
    spent: Spent,
    rt: Average,
    dl: Average,
    /// Interrupts and stolen time (`avg_irq`), which end at `taken_until`.
    irq: Average,
    taken_until: Nanos,
}

impl Above {
    /// Sets the running class. `clock` is the time by the clock of the CPU's averages.
    pub fn run(&mut self, now: Nanos, clock: Nanos, class: Option<ClassId>) {
        let class = class.filter(|class| *class != ClassId::Fair);
        if class == self.runs {
            return;
        }
        let level = |of: ClassId| if class == Some(of) { SCALE as f64 } else { 0.0 };
        self.spent.run(now, class.is_some());
        self.rt.steer(clock, level(ClassId::RealTime));
        self.dl.steer(clock, level(ClassId::Deadline));
        self.runs = class;
    }

    /// Counts the time from `from` to `until`, during which no task runs. What follows another without a gap prolongs
    /// it.
    pub fn take(&mut self, from: Nanos, until: Nanos) {
        self.spent.sum += if self.spent.runs { 0 } else { until - from };
        if from > self.taken_until || self.taken_until == 0 {
            self.irq = self.irq_at(from);
            self.irq.steer(from, SCALE as f64);
        }
        self.taken_until = until;
    }

    /// The average of interrupts as of `now`, which goes on from there. Its clock is the time, which interrupts do not
    /// stop (`update_irq_load_avg`).
    fn irq_at(&self, now: Nanos) -> Average {
        let mut irq = self.irq;
        if self.taken_until > 0 && now >= self.taken_until {
            irq.steer(self.taken_until, 0.0);
        }
        irq
    }

    /// The utilisation by real-time and by deadline tasks (`cpu_util_rt`, `cpu_util_dl`).
    pub fn util(&self, clock: Nanos) -> (u64, u64) {
        (self.rt.at(clock) as u64, self.dl.at(clock) as u64)
    }

    /// What is left of a capacity.
    pub fn leave(&self, release: Release, capacity: u64, now: Nanos, clock: Nanos) -> u64 {
        // "sched: Scale down cpu_power due to RT tasks" (2.6.32).
        if release < v2_6(32) {
            return capacity;
        }
        // `rt_avg` was removed in 4.19.
        if release < v(4, 19) {
            return (capacity * self.spent.left(now, release) / SCALE).max(1);
        }
        let (rt, dl) = self.util(clock);
        let irq = (self.irq_at(now).at(now) as u64).min(SCALE);
        (capacity.saturating_sub(rt + dl) * (SCALE - irq) / SCALE).max(1)
    }
}

/// The clock of a CPU's averages (`rq_clock_pelt`, 5.1 on). It goes by a clock that stands during interrupts
/// (`rq_clock_task`). While a small CPU is busy, it is slower in proportion to the capacity, so that the work of a task
/// counts as on the biggest CPU. When the CPU becomes idle, the clock catches up, unless the CPU was so busy that it
/// would have had no idle time on the biggest CPU either.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorkClock {
    capacity: u64,
    works: bool,
    /// By the clock that stands during interrupts.
    since: Nanos,
    at: Nanos,
    lost: Nanos,
    /// The time that interrupts have taken, with the one that ends at `until`.
    taken: Nanos,
    until: Nanos,
}

/// The utilisation from which a CPU counts as having no idle time. It is the minimum sum in
/// `update_idle_rq_clock_pelt`, `(LOAD_AVG_MAX - 1024) / LOAD_AVG_MAX - 1/1024` of 1024.
const FULL: f64 = 1024.0 * (47742.0 - 1024.0) / 47742.0 - 1.0;

impl WorkClock {
    /// Creates the clock for a CPU of this capacity.
    pub fn new(capacity: u32) -> Self {
        Self { capacity: capacity.into(), works: false, since: 0, at: 0, lost: 0, taken: 0, until: 0 }
    }

    /// The time by this clock, in ns.
    pub fn at(&self, now: Nanos) -> Nanos {
        let passed = self.untaken(now) - self.since;
        self.at + if self.works { passed * self.capacity / SCALE } else { passed }
    }

    /// The time without that of interrupts, in ns.
    fn untaken(&self, now: Nanos) -> Nanos {
        now.max(self.until) - self.taken
    }

    /// Counts the time from `from` to `until` as taken by an interrupt.
    pub fn take(&mut self, from: Nanos, until: Nanos) {
        let (stands, until) = (self.untaken(from), until.max(self.until));
        (self.until, self.taken) = (until, until - stands);
    }

    /// Called when the CPU starts to run something.
    pub fn work(&mut self, now: Nanos) {
        if !self.works {
            (self.at, self.since, self.works) = (self.at(now), self.untaken(now), true);
        }
    }

    /// Called when the CPU becomes idle with the utilisation `util`.
    pub fn idle(&mut self, now: Nanos, util: f64) {
        if self.works {
            let untaken = self.untaken(now);
            if util >= FULL {
                self.lost = untaken - self.at(now);
            }
            (self.at, self.since, self.works) = (untaken - self.lost, untaken, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    /// A real-time task runs for 60 of every 100 ms, so it has used 60% of the last 500 ms and of the current period.
    #[test]
    fn time_spent_is_three_fifths() {
        let mut above = Above::default();
        for round in 0..30 {
            above.run(round * 100 * MS, 0, Some(ClassId::RealTime));
            above.run((round * 100 + 60) * MS, 0, None);
        }
        // At 3 s, five of the six halvings leave 300 * (1/2 + ... + 1/32) ms, and the last period adds 300 ms: 590.6 of
        // 1000.
        let now = 3000 * MS;
        let left = |release| above.leave(release, 1024, now, now);
        assert_eq!(left(v2_6(24)), 1024);
        assert_eq!(left(v2_6(32)), 419); // (1000 - 590.625) / 976.5625 us, of 1024
        assert_eq!(left(v(4, 1)), 420); // 1024 - 604
        // Half a second later nothing was added, and the sum was halved once.
        assert_eq!(above.leave(v(4, 1), 1024, now + PERIOD, 0), 1024 - 302);
        assert_eq!(above.leave(v(4, 1), 512, now + PERIOD, 0), (1024 - 302) / 2);
        assert_eq!(above.leave(v(4, 1), 1024, now + 100 * PERIOD, 0), 1024);
    }

    #[test]
    fn who_runs_for_ever_leaves_nothing() {
        let mut above = Above::default();
        above.run(0, 0, Some(ClassId::Deadline));
        let now = 1_000_000 * MS + 1;
        for release in [v2_6(32), v(3, 18), v(4, 1), v(6, 1)] {
            assert!(above.leave(release, 1024, now, now) <= 1, "{release:?}");
        }
    }

    /// Half of a running task's utilisation is reached after 32 periods of 1024 us. Real-time and deadline time add up.
    #[test]
    fn averages_add_up() {
        let mut above = Above::default();
        let half = 32 * (1 << 20);
        above.run(0, 0, Some(ClassId::RealTime));
        assert_eq!(above.util(half), (512, 0));
        above.run(half, half, Some(ClassId::Deadline));
        assert_eq!(above.util(2 * half), (256, 512));
        assert_eq!(above.leave(v(6, 12), 1024, 2 * half, 2 * half), 256);
        assert_eq!(above.leave(v(6, 1), 462, 2 * half, 2 * half), 1);
    }

    /// A CPU of half the capacity is busy for 10 ms, which is 5 ms on the biggest CPU; the other 5 ms count as idle.
    #[test]
    fn a_small_cpus_clock_lags_while_it_works() {
        let mut clock = WorkClock::new(512);
        clock.work(100);
        assert_eq!(clock.at(10_100), 5_100);
        clock.idle(10_100, 300.0);
        assert_eq!((clock.at(10_100), clock.at(10_200)), (10_100, 10_200));
        clock.work(10_200);
        clock.idle(20_200, 1010.0);
        assert_eq!((clock.at(20_200), clock.at(20_300)), (15_200, 15_300));
    }

    #[test]
    fn a_clock_stands_during_interrupts() {
        let mut clock = WorkClock::new(1024);
        clock.take(1_000, 1_300);
        assert_eq!((clock.at(1_000), clock.at(1_200), clock.at(1_300), clock.at(2_000)), (1_000, 1_000, 1_000, 1_700));
        // One that begins as another ends prolongs it.
        clock.take(2_000, 2_100);
        clock.take(2_100, 2_300);
        assert_eq!((clock.at(2_050), clock.at(2_300), clock.at(2_400)), (1_700, 1_700, 1_800));
        // The work of a CPU of half the capacity counts by half of the time that is left.
        let mut small = WorkClock::new(512);
        small.work(0);
        small.take(100, 200);
        assert_eq!((small.at(150), small.at(300)), (50, 100));
        small.idle(300, 0.0);
        assert_eq!(small.at(400), 300);
    }
}

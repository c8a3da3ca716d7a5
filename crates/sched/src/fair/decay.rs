//! Load averages: how much of the time an entity was runnable or running of late (PELT, 3.8 on), and what a CPU's queue
//! weighed at its ticks (`cpu_load`, until 4.x).
//!
//! # Idea
//! What was `n` periods ago counts `y^n`, where `y^32` is a half and a period is 1024 us. So an average moves towards
//! what now is, half of the way in 32.768 ms.
//!
//! # Rule
//! Between two events what is averaged is constant, so an average is known at any time from the last event: nothing is
//! done at ticks. The kernel adds up periods in integers; the difference is below a thousandth.
//!
//! # Reference
//! kernel/sched/pelt.c of 6.1; `__update_cpu_load` in kernel/sched/core.c of 3.10.

use schedlab_base::Nanos;

/// Half of an average is older than this.
const HALF: f64 = 32.0 * 1024.0 * 1024.0;

/// 2^-(i / 32).
const PARTS: [f64; 32] = [
    1.0,
    0.9785720620877001,
    0.9576032806985737,
    0.93708381705515,
    0.9170040432046712,
    0.8973545375015536,
    0.8781260801866497,
    0.859309649061239,
    0.8408964152537145,
    0.8228777390769825,
    0.8052451659746271,
    0.7879904225539432,
    0.7711054127039704,
    0.7545822137967114,
    0.7384130729697497,
    0.7225904034885233,
    std::f64::consts::FRAC_1_SQRT_2,
    0.691954940981916,
    0.6771277734684463,
    0.6626183215798707,
    0.6484197773255048,
    0.6345254785958666,
    0.620928906036742,
    0.6076236799902345,
    0.5946035575013605,
    0.5818624293887887,
    0.5693943173783458,
    0.5571933712979462,
    0.5452538663326288,
    0.5335702003384118,
    0.5221368912137069,
    0.5109485743270583,
];

/// 2^-x for x >= 0, from additions and multiplications alone: the same bits on every machine.
#[inline]
fn halved(x: f64) -> f64 {
    if x >= 64.0 {
        return 0.0;
    }
    let steps = (x * 32.0) as u32;
    // exp(-rest * ln 2) by its series; the rest is below 1/32, so that six terms are exact.
    let z = (x - f64::from(steps) / 32.0) * -std::f64::consts::LN_2;
    let series = 1.0 + z * (1.0 + z * (0.5 + z * (1.0 / 6.0 + z * (1.0 / 24.0 + z * (1.0 / 120.0)))));
    let whole = f64::from_bits(u64::from(1023 - steps / 32) << 52);
    PARTS[(steps % 32) as usize] * series * whole
}

/// What is left of `delta` ns ago.
#[inline]
fn decay(delta: Nanos) -> f64 {
    if delta == 0 { 1.0 } else { halved(delta as f64 * (1.0 / HALF)) }
}

/// An average that moves towards a level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Average {
    value: f64,
    level: f64,
    since: Nanos,
}

impl Average {
    /// One that has stood at `value` for ever.
    #[must_use]
    pub fn of(value: f64, level: f64, now: Nanos) -> Self {
        Self { value, level, since: now }
    }

    /// Its value.
    #[inline]
    #[must_use]
    pub fn at(&self, now: Nanos) -> f64 {
        if self.value == self.level {
            return self.value;
        }
        self.level + (self.value - self.level) * decay(now - self.since)
    }

    /// Whether, rounded to a whole number, it is where it moves to.
    #[must_use]
    pub fn is_settled(&self, now: Nanos) -> bool {
        self.at(now).round() == self.level.round() && (self.at(now) - self.level).abs() < 0.25
    }

    /// What it moves towards.
    #[must_use]
    pub fn level(&self) -> f64 {
        self.level
    }

    /// From now on it moves towards `level`.
    #[inline]
    pub fn steer(&mut self, now: Nanos, level: f64) {
        *self = Self { value: self.at(now), level, since: now };
    }

    /// Something joins or leaves that is averaged already: the value and the level change by so much.
    #[inline]
    pub fn shift(&mut self, now: Nanos, value: f64, level: f64) {
        let value = (self.at(now) + value).max(0.0);
        *self = Self { value, level: (self.level + level).max(0.0), since: now };
    }
}

/// How much of the time an entity was runnable and running, each of 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfEntity {
    /// Runnable.
    pub runnable: Average,
    /// Running, in parts of the biggest CPU.
    pub running: Average,
    /// Counted in its queue's averages.
    pub attached: bool,
}

/// What is averaged of a queue.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfQueue {
    /// Weight of the entities, runnable ones and those that were of late.
    pub load: Average,
}

/// What is averaged of a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfCpu {
    /// Runnable fair tasks, 1024 each.
    pub runnable: Average,
    /// The part of the time in which fair tasks ran, of 1024 for the biggest CPU.
    pub util: Average,
}

/// A CPU's load as its ticks saw it, averaged over about 1, 2, 4, 8 and 16 of them (`rq->cpu_load`).
#[derive(Clone, Copy, Debug)]
pub struct CpuLoad {
    values: [u64; 5],
    /// The load since the last change, and the next tick that is to be counted.
    load: u64,
    next: Nanos,
    period: Nanos,
    /// More ticks change nothing.
    settled: bool,
}

impl CpuLoad {
    /// Of a CPU without load whose ticks begin at `first` and are `period` apart.
    #[must_use]
    pub fn new(first: Nanos, period: Nanos) -> Self {
        Self { values: [0; 5], load: 0, next: first, period, settled: true }
    }

    /// The load is `load` from now on; the ticks until now are counted already.
    pub fn change(&mut self, load: u64) {
        self.settled &= load == self.load;
        self.load = load;
    }

    /// The load since the last change.
    #[must_use]
    pub fn load(&self) -> u64 {
        self.load
    }

    /// The load as the ticks that were counted saw it, averaged over about 2^index of them.
    #[must_use]
    pub fn get(&self, index: u8) -> u64 {
        self.values[usize::from(index).min(4)]
    }

    /// The ticks up to now are made up for, as of an idle CPU, by a table (`decay_load_missed`, 2.6.38 to 4.x).
    pub fn miss(&mut self, now: Nanos) {
        /// After so many ticks nothing is left, of each average; and what is left after 1, 2, 4, ... ticks, of 128.
        const GONE: [u64; 5] = [0, 8, 32, 64, 128];
        const LEFT: [[u64; 7]; 5] = [
            [0; 7],
            [64, 32, 8, 0, 0, 0, 0],
            [96, 72, 40, 12, 1, 0, 0],
            [112, 98, 75, 43, 15, 1, 0],
            [120, 112, 98, 76, 45, 16, 2],
        ];
        if self.next > now {
            return;
        }
        let before = (now - self.next) / self.period;
        for (i, value) in self.values.iter_mut().enumerate() {
            let mut old = *value;
            if before >= GONE[i] {
                old = if before == 0 { old } else { 0 };
            } else if i == 1 {
                old >>= before;
            } else {
                let bits = (0..7).filter(|bit| before >> bit & 1 == 1);
                old = bits.fold(old, |old, bit| (old * LEFT[i][bit]) >> 7);
            }
            *value = (old * ((1 << i) - 1)) >> i;
        }
        self.skip(now);
        self.settled = self.load == 0 && self.values == [0; 5];
    }

    /// The ticks up to now did not come.
    pub fn skip(&mut self, now: Nanos) {
        if self.next <= now {
            self.next += ((now - self.next) / self.period + 1) * self.period;
        }
    }

    /// Counts the ticks up to now in.
    pub fn fold(&mut self, now: Nanos) {
        while self.next <= now {
            if self.settled {
                return self.skip(now);
            }
            self.take_tick(self.load);
        }
    }

    /// Counts the ticks up to now in; each saw an average, which nothing has changed since, as it was then.
    pub fn fold_average(&mut self, now: Nanos, load: &Average) {
        while self.next <= now {
            if self.settled && load.is_settled(self.next) {
                return self.skip(now);
            }
            self.take_tick(load.at(self.next).round() as u64);
        }
    }

    fn take_tick(&mut self, load: u64) {
        self.next += self.period;
        let mut changed = 0;
        for (i, value) in self.values.iter_mut().enumerate() {
            // (value * (2^i - 1) + load) / 2^i; rounds up while it rises, so that it gets there.
            let gap = load as i64 - *value as i64;
            let up = if gap > 0 { (1 << i) - 1 } else { 0 };
            let step = (gap + up) >> i;
            changed |= step;
            *value = value.wrapping_add_signed(step);
        }
        self.settled = changed == 0;
    }

    /// The average that the ticks see changes from now on.
    pub fn unsettle(&mut self) {
        self.settled = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Nanos = 1 << 20;

    #[test]
    fn half_is_forgotten_in_32_periods() {
        let mut average = Average::of(1.0, 1.0, 0);
        average.steer(100, 0.0);
        assert!((average.at(100 + 32 * PERIOD) - 0.5).abs() < 1e-12);
        assert!((average.at(100 + 64 * PERIOD) - 0.25).abs() < 1e-12);
        average.steer(100 + 64 * PERIOD, 1.0);
        assert!((average.at(100 + 96 * PERIOD) - 0.625).abs() < 1e-12);
        assert_eq!(average.at(Nanos::MAX / 2), 1.0);
    }

    #[test]
    fn the_kernel_says_nearly_the_same() {
        // LOAD_AVG_MAX counts n full periods up to 47742: after n periods of running from nothing, the sum is
        // 1024 * (y + ... + y^n), of 47742; kernel/sched/sched-pelt.h tabulates y^n in 2^32.
        let y = halved(1.0 / 32.0);
        assert!((y - f64::from(0xfa83_b2dau32) / 4294967296.0).abs() < 1e-9);
        let mut sum = 0.0;
        for _ in 0..10 {
            sum = (sum + 1024.0) * y;
        }
        let mut average = Average::default();
        average.steer(0, 1.0);
        assert!((average.at(10 * PERIOD) - sum / 47742.0).abs() < 0.015);
    }

    #[test]
    fn what_joins_brings_its_average() {
        let mut queue = Average::of(2048.0, 2048.0, 0);
        let mut one = Average::of(1024.0, 1024.0, 0);
        one.steer(0, 0.0);
        queue.steer(0, 1024.0);
        let now = 20 * PERIOD;
        queue.shift(now, -one.at(now), -one.level());
        assert!((queue.at(now) - 1024.0).abs() < 1e-9 && (queue.level() - 1024.0).abs() < 1e-9);
    }

    #[test]
    fn ticks_see_an_average_as_it_is_by_then() {
        let mut seen = CpuLoad::new(PERIOD, PERIOD);
        let mut load = Average::of(0.0, 1024.0, 0);
        seen.unsettle();
        seen.fold_average(32 * PERIOD, &load);
        assert_eq!(seen.get(0), 512);
        assert!((440..512).contains(&seen.get(2)), "{seen:?}");
        seen.fold_average(10_000 * PERIOD, &load);
        assert!((0..5).all(|index| seen.get(index) == 1024), "{seen:?}");
        load.steer(10_000 * PERIOD, 0.0);
        seen.unsettle();
        seen.fold_average(10_032 * PERIOD, &load);
        assert_eq!(seen.get(0), 512);
    }

    #[test]
    fn loads_follow_the_ticks() {
        let mut load = CpuLoad::new(10, 10);
        let at = |load: &mut CpuLoad, now: Nanos| {
            load.fold(now);
            [0, 1, 2, 3, 4].map(|i| load.get(i))
        };
        load.change(1024);
        assert_eq!(at(&mut load, 9), [0; 5]);
        assert_eq!(at(&mut load, 10), [1024, 512, 256, 128, 64]);
        assert_eq!(at(&mut load, 25), [1024, 768, 448, 240, 124]);
        load.change(0);
        assert_eq!(at(&mut load, 30), [0, 384, 336, 210, 116]);
        assert_eq!(at(&mut load, 1_000_000_000), [0; 5]);
        load.change(3);
        assert_eq!(at(&mut load, 2_000_000_000), [3; 5]);
        load.change(0);
        load.skip(3_000_000_000);
        assert_eq!(at(&mut load, 3_000_000_000), [3; 5]);
    }

    #[test]
    fn missed_ticks_are_made_up_for_by_a_table() {
        // kernel/sched/core.c of 3.10, decay_load_missed(): 10 missed ticks are 9 of decay and one that sees nothing. 9
        // = 1 + 8: 1024 >> 9 would be 2, but after 8 nothing is left; 1024 * 96 / 128 = 768, * 12 / 128 = 72, of which
        // 3/4; 896 * 43 / 128 = 301, 7/8; 960 * 76 / 128 = 570, 15/16.
        let mut load = CpuLoad::new(10, 10);
        load.change(1024);
        load.fold(100_000);
        load.change(0);
        load.miss(100_009);
        assert_eq!([0, 1, 2, 3, 4].map(|i| load.get(i)), [1024; 5]);
        load.miss(100_100);
        assert_eq!([0, 1, 2, 3, 4].map(|i| load.get(i)), [0, 0, 54, 263, 534]);
        // One tick is none of decay.
        let mut load = CpuLoad::new(10, 10);
        load.change(1024);
        load.fold(100_000);
        load.change(0);
        load.miss(100_010);
        assert_eq!([0, 1, 2, 3, 4].map(|i| load.get(i)), [0, 512, 768, 896, 960]);
    }
}

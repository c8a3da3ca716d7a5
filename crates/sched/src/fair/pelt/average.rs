//! A decaying average: half of its weight is older than 32.768 ms.
//!
//! # Idea
//! A contribution from `n` periods ago counts `y^n`, where `y^32` is one half and a period is 1024 us. The average
//! therefore moves towards the current level, half of the way in 32.768 ms.
//!
//! # Rule
//! Between two events the averaged level is constant, so the value at any time can be computed from the last event, and
//! ticks need no work. The kernel adds up periods in integers; the difference is below a thousandth.
//!
//! # Reference
//! kernel/sched/pelt.c of 6.1.

use schedlab_base::Nanos;

/// The half-life of an average, in ns.
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

/// 2^-x for x >= 0, computed by additions and multiplications only, so that every machine gets the same bits.
#[inline]
fn halved(x: f64) -> f64 {
    if x >= 64.0 {
        return 0.0;
    }
    let steps = (x * 32.0) as u32;
    // exp(-rest * ln 2) as a series. The rest is below 1/32, so six terms are exact.
    let z = (x - f64::from(steps) / 32.0) * -std::f64::consts::LN_2;
    let series = 1.0 + z * (1.0 + z * (0.5 + z * (1.0 / 6.0 + z * (1.0 / 24.0 + z * (1.0 / 120.0)))));
    let whole = f64::from_bits(u64::from(1023 - steps / 32) << 52);
    PARTS[(steps % 32) as usize] * series * whole
}

/// The part of a value that is left after `delta` ns.
#[inline]
fn decay(delta: Nanos) -> f64 {
    if delta == 0 { 1.0 } else { halved(delta.cast_signed() as f64 * (1.0 / HALF)) }
}

/// What is left of a value after the time that was last asked about. Averages that change together have mostly changed
/// together before too.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    delta: Nanos,
    part: f64,
}

impl Default for Left {
    fn default() -> Self {
        Self { delta: 0, part: 1.0 }
    }
}

impl Left {
    /// The part that is left after `delta` ns.
    #[inline]
    fn after(&mut self, delta: Nanos) -> f64 {
        if delta == 0 {
            return 1.0;
        }
        if delta != self.delta {
            *self = Self { delta, part: decay(delta) };
        }
        self.part
    }
}

/// An average that moves towards a level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Average {
    value: f64,
    level: f64,
    since: Nanos,
}

impl Average {
    /// An average with this value that moves towards `level` from `now` on.
    #[must_use]
    pub fn of(value: f64, level: f64, now: Nanos) -> Self {
        Self { value, level, since: now }
    }

    /// The value at a time.
    #[inline]
    #[must_use]
    pub fn at(&self, now: Nanos) -> f64 {
        self.at_by(now, decay)
    }

    /// The value at a time, where `left` knows what is left of it after some time.
    #[inline]
    fn at_by(&self, now: Nanos, left: impl FnOnce(Nanos) -> f64) -> f64 {
        if self.value == self.level {
            return self.value;
        }
        self.level + (self.value - self.level) * left(now - self.since)
    }

    /// The value when the level last changed.
    #[must_use]
    pub fn last(&self) -> f64 {
        self.value
    }

    /// When the level last changed.
    #[must_use]
    pub fn since(&self) -> Nanos {
        self.since
    }

    /// Whether the value, rounded to a whole number, has reached the level.
    #[must_use]
    pub fn is_settled(&self, now: Nanos) -> bool {
        self.at(now).round() == self.level.round() && (self.at(now) - self.level).abs() < 0.25
    }

    /// The level that it moves towards.
    #[must_use]
    pub fn level(&self) -> f64 {
        self.level
    }

    /// Makes it move towards `level` from now on.
    #[inline]
    pub fn steer(&mut self, now: Nanos, level: f64) {
        *self = Self { value: self.at(now), level, since: now };
    }

    /// The same, one of several averages that change. Returns the value.
    #[inline]
    pub fn steer_by(&mut self, now: Nanos, level: f64, left: &mut Left) -> f64 {
        let value = self.at_by(now, |delta| left.after(delta));
        *self = Self { value, level, since: now };
        value
    }

    /// Adds another average that joins, or subtracts one that leaves: the value and the level change by these amounts.
    #[inline]
    pub fn shift(&mut self, now: Nanos, value: f64, level: f64, left: &mut Left) {
        let value = (self.at_by(now, |delta| left.after(delta)) + value).max(0.0);
        *self = Self { value, level: (self.level + level).max(0.0), since: now };
    }
}

/// An average that only decays.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decay {
    value: f64,
    since: Nanos,
}

impl Decay {
    /// An average with this value that decays from `now` on.
    #[must_use]
    pub fn of(value: f64, now: Nanos) -> Self {
        Self { value, since: now }
    }

    /// The value at a time.
    #[must_use]
    pub fn at(&self, now: Nanos) -> f64 {
        Average::of(self.value, 0.0, self.since).at(now)
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
        // LOAD_AVG_MAX is the sum of full periods, 47742. After n periods of running from nothing, the sum is 1024 * (y
        // + ... + y^n) of 47742. kernel/sched/sched-pelt.h tabulates y^n in units of 2^-32.
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
        queue.shift(now, -one.at(now), -one.level(), &mut Left::default());
        assert!((queue.at(now) - 1024.0).abs() < 1e-9 && (queue.level() - 1024.0).abs() < 1e-9);
    }
}

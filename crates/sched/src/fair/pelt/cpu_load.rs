//! A CPU's load as sampled by its ticks: `rq->cpu_load[]`, until 5.2.
//!
//! # Reference
//! `__update_cpu_load` in kernel/sched/core.c of 3.10.

use super::average::Average;
use schedlab_base::Nanos;

/// How many averages are kept. The kernel has two more, over 8 and 16 ticks, which no domain uses.
const KEPT: usize = 3;

/// A CPU's load as sampled by its ticks, averaged over about 1, 2 and 4 of them (`rq->cpu_load`).
#[derive(Clone, Copy, Debug)]
pub struct CpuLoad {
    values: [u64; KEPT],
    /// The load since the last change, and the time of the next tick to apply.
    load: u64,
    next: Nanos,
    period: Nanos,
    /// Whether further ticks change nothing.
    settled: bool,
}

impl CpuLoad {
    /// Creates the loads of a CPU without load whose ticks start at `first` and are `period` ns apart.
    #[must_use]
    pub fn new(first: Nanos, period: Nanos) -> Self {
        Self { values: [0; KEPT], load: 0, next: first, period, settled: true }
    }

    /// Sets the load that is sampled from now on. The ticks up to now must have been applied.
    pub fn change(&mut self, load: u64) {
        self.settled &= load == self.load;
        self.load = load;
    }

    /// The load averaged over about 2^index ticks, as of the last applied tick.
    #[must_use]
    pub fn get(&self, index: u8) -> u64 {
        self.values[usize::from(index)]
    }

    /// Makes up for the missed ticks of an idle CPU with the kernel's table (`decay_load_missed`, 2.6.38 to 4.x).
    pub fn miss(&mut self, now: Nanos) {
        /// For each average, the number of ticks after which nothing is left, and what is left after 1, 2, 4, ...
        /// ticks, out of 128.
        const GONE: [u64; KEPT] = [0, 8, 32];
        const LEFT: [[u64; 7]; KEPT] = [[0; 7], [64, 32, 8, 0, 0, 0, 0], [96, 72, 40, 12, 1, 0, 0]];
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
        self.settled = self.load == 0 && self.values == [0; KEPT];
    }

    /// Skips the ticks up to now, as if they had not happened.
    pub fn skip(&mut self, now: Nanos) {
        if self.next <= now {
            self.next += ((now - self.next) / self.period + 1) * self.period;
        }
    }

    /// Applies the ticks up to now.
    #[inline]
    pub fn fold(&mut self, now: Nanos) {
        if self.next > now {
        } else if self.settled {
            self.skip(now);
        } else {
            self.take_ticks(now);
        }
    }

    /// Applies the ticks up to now, all of which sample the same load.
    fn take_ticks(&mut self, now: Nanos) {
        let ticks = (now - self.next) / self.period + 1;
        self.next += ticks * self.period;
        let load = self.load;
        self.settled = true;
        for (i, value) in self.values.iter_mut().enumerate() {
            // As in `take_tick`, the gap shrinks by 2^-i, rounded up: the value reaches the load and never passes it.
            let (above, up) = (*value > load, (1 << i) - 1);
            let mut gap = value.abs_diff(load);
            let mut left = ticks;
            while gap > 0 && left > 0 {
                gap -= (gap + up) >> i;
                left -= 1;
            }
            *value = if above { load + gap } else { load - gap };
            self.settled &= gap == 0;
        }
    }

    /// Applies the ticks up to now. Each samples the average `load`, which must not have changed since, as of its own
    /// time.
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
            // (value * (2^i - 1) + load) / 2^i. It rounds up while the value rises, so that it reaches the load.
            let gap = load as i64 - *value as i64;
            let up = if gap > 0 { (1 << i) - 1 } else { 0 };
            let step = (gap + up) >> i;
            changed |= step;
            *value = value.wrapping_add_signed(step);
        }
        self.settled = changed == 0;
    }

    /// Called when the average that the ticks sample changes.
    pub fn unsettle(&mut self) {
        self.settled = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Nanos = 1 << 20;

    #[test]
    fn ticks_see_an_average_as_it_is_by_then() {
        let mut seen = CpuLoad::new(PERIOD, PERIOD);
        let mut load = Average::of(0.0, 1024.0, 0);
        seen.unsettle();
        seen.fold_average(32 * PERIOD, &load);
        assert_eq!(seen.get(0), 512);
        assert!((440..512).contains(&seen.get(2)), "{seen:?}");
        seen.fold_average(10_000 * PERIOD, &load);
        assert!((0..3).all(|index| seen.get(index) == 1024), "{seen:?}");
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
            [0, 1, 2].map(|i| load.get(i))
        };
        load.change(1024);
        assert_eq!(at(&mut load, 9), [0; 3]);
        assert_eq!(at(&mut load, 10), [1024, 512, 256]);
        assert_eq!(at(&mut load, 25), [1024, 768, 448]);
        load.change(0);
        assert_eq!(at(&mut load, 30), [0, 384, 336]);
        assert_eq!(at(&mut load, 1_000_000_000), [0; 3]);
        load.change(3);
        assert_eq!(at(&mut load, 2_000_000_000), [3; 3]);
        load.change(0);
        load.skip(3_000_000_000);
        assert_eq!(at(&mut load, 3_000_000_000), [3; 3]);
    }

    #[test]
    fn many_ticks_at_once_are_as_one_by_one() {
        let mut rng = schedlab_base::Rng::new(5);
        let (mut one, mut all) = (CpuLoad::new(10, 10), CpuLoad::new(10, 10));
        for round in 1..2_000 {
            let bits = rng.below(24);
            let load = rng.below(1 << bits);
            (one.load, one.settled) = (load, false);
            all.change(load);
            let now = all.next + 10 * rng.below(if round % 7 == 0 { 300 } else { 6 });
            while one.next <= now {
                one.take_tick(load);
            }
            all.fold(now);
            assert_eq!((one.values, one.next), (all.values, all.next), "{load}");
        }
    }

    #[test]
    fn missed_ticks_are_made_up_for_by_a_table() {
        // kernel/sched/core.c of 3.10, decay_load_missed(): 10 missed ticks are 9 of decay and one that samples 0. 9 =
        // 1 + 8: 1024 >> 9 would be 2, but after 8 nothing is left; 1024 * 96 / 128 = 768, * 12 / 128 = 72, of which
        // 3/4.
        let mut load = CpuLoad::new(10, 10);
        load.change(1024);
        load.fold(100_000);
        load.change(0);
        load.miss(100_009);
        assert_eq!([0, 1, 2].map(|i| load.get(i)), [1024; 3]);
        load.miss(100_100);
        assert_eq!([0, 1, 2].map(|i| load.get(i)), [0, 0, 54]);
        // A single tick has no decay.
        let mut load = CpuLoad::new(10, 10);
        load.change(1024);
        load.fold(100_000);
        load.change(0);
        load.miss(100_010);
        assert_eq!([0, 1, 2].map(|i| load.get(i)), [0, 512, 768]);
    }
}

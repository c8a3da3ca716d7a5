//! Load weights and their arithmetic, including the rounding of `sched_prio_to_weight`, `calc_delta_mine` (2.6.24 to
//! 3.12) and `__calc_delta` (3.13 on).

use schedlab_base::Nanos;
use schedlab_sim::Attributes;
use schedlab_sim::program::Policy;

/// The weight of nice 0.
pub const NICE_0: u64 = 1024;

/// The weights of nice -20 to 19. One nice level is a factor of about 1.25 (kernel/sched.c, 2.6.24 on).
pub const WEIGHTS: [u64; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501,
    1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// 2^32 / weight, from the kernel's table (`sched_prio_to_wmult`).
const INVERSE: [u64; 40] = [
    48388, 59856, 76040, 92818, 118348, 147320, 184698, 229616, 287308, 360437, 449829, 563644, 704093, 875809,
    1099582, 1376151, 1717300, 2157191, 2708050, 3363326, 4194304, 5237765, 6557202, 8165337, 10153587, 12820798,
    15790321, 19976592, 24970740, 31350126, 39045157, 49367440, 61356676, 76695844, 95443717, 119304647, 148102320,
    186737708, 238609294, 286331153,
];

/// The weight of a SCHED_IDLE task from 2.6.29 on.
const IDLE_WEIGHT: u64 = 3;

/// A weight, and the inverse by which the kernel multiplies instead of dividing (`struct load_weight`). An inverse of 0
/// has not been computed yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// The weight; 1024 corresponds to nice 0.
    pub weight: u64,
    inverse: u64,
}

/// The load of an entity. It is at most that of a group, and fits into half of what that of a queue takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnLoad {
    weight: u32,
    /// 0 if it does not fit, which is of the least weights: it is computed again.
    inverse: u32,
}

impl From<Load> for OwnLoad {
    fn from(load: Load) -> Self {
        let weight = u32::try_from(load.weight).expect("no entity is as heavy");
        Self { weight, inverse: u32::try_from(load.inverse).unwrap_or(0) }
    }
}

impl OwnLoad {
    /// The weight; 1024 corresponds to nice 0.
    #[inline]
    #[must_use]
    pub fn weight(self) -> u64 {
        self.weight.into()
    }

    /// As the load of a queue.
    #[inline]
    #[must_use]
    pub fn get(self) -> Load {
        Load { weight: self.weight.into(), inverse: self.inverse.into() }
    }
}

/// The fixed-point arithmetic of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// `calc_delta_mine` on 64 bits. It rounds to the nearest, in two steps if the product is large. The inverse of a
    /// sum is computed for a weight of one more (2.6.24 to 2.6.39).
    Mine,
    /// `calc_delta_mine` with a truncated inverse (3.0 to 3.12).
    MineTruncated,
    /// `__calc_delta`, which truncates (3.13 on).
    Calc,
    /// A plain division, as for the slices of 2.6.24.
    Divide,
}

impl Load {
    /// The load of a task, from its nice level and policy (`set_load_weight`).
    #[must_use]
    pub fn of(attributes: &Attributes) -> Self {
        Self::with_idle(attributes, IDLE_WEIGHT)
    }

    /// The load of a task, for a kernel with another weight of SCHED_IDLE tasks.
    #[must_use]
    pub fn with_idle(attributes: &Attributes, idle_weight: u64) -> Self {
        if attributes.policy == Policy::Idle {
            return Self { weight: idle_weight, inverse: (1 << 32) / idle_weight };
        }
        let i = (i32::from(attributes.nice) + 20).clamp(0, 39) as usize;
        Self { weight: WEIGHTS[i], inverse: INVERSE[i] }
    }

    /// The load of a group (`update_load_set`), with the inverse computed by this arithmetic.
    #[must_use]
    pub fn with_weight(weight: u64, arithmetic: Arithmetic) -> Self {
        let mut load = Self { weight, inverse: 0 };
        load.scale(1, 1, arithmetic);
        load
    }

    /// Adds the load of an entity.
    #[inline]
    pub fn add(&mut self, own: OwnLoad) {
        self.weight += own.weight();
        self.inverse = 0;
    }

    /// Subtracts the load of an entity.
    #[inline]
    pub fn sub(&mut self, own: OwnLoad) {
        self.weight -= own.weight();
        self.inverse = 0;
    }

    /// `delta * weight / self.weight` in the kernel's arithmetic. Computes the inverse if needed.
    #[inline]
    pub fn scale(&mut self, delta: Nanos, weight: u64, arithmetic: Arithmetic) -> Nanos {
        match arithmetic {
            Arithmetic::Mine | Arithmetic::MineTruncated => self.scale_mine(delta, weight, arithmetic),
            Arithmetic::Calc => self.scale_calc(delta, weight),
            Arithmetic::Divide => (u128::from(delta) * u128::from(weight) / u128::from(self.weight)) as Nanos,
        }
    }

    fn scale_mine(&mut self, delta: Nanos, weight: u64, arithmetic: Arithmetic) -> Nanos {
        const CONST: u64 = 1 << 32;
        if self.inverse == 0 {
            self.inverse = match self.weight {
                w if w >= CONST => 1,
                w if arithmetic == Arithmetic::MineTruncated => CONST / w.max(1),
                w => 1 + (CONST - w / 2) / (w + 1),
            };
        }
        let round = |x: u64, shift: u32| (x.wrapping_add(1 << (shift - 1))) >> shift;
        let product = delta.wrapping_mul(weight);
        if product > CONST {
            round(round(product, 16).wrapping_mul(self.inverse), 16)
        } else {
            round(product.wrapping_mul(self.inverse), 32)
        }
    }

    fn scale_calc(&mut self, delta: Nanos, weight: u64) -> Nanos {
        if self.inverse == 0 {
            self.inverse = match self.weight {
                0 => u64::from(u32::MAX),
                w if w >= u64::from(u32::MAX) => 1,
                w => u64::from(u32::MAX) / w,
            };
        }
        let (mut fact, mut shift) = (weight, 32u32);
        let narrow = |fact: &mut u64, shift: &mut u32| {
            let bits = 64 - (*fact >> 32).leading_zeros();
            *fact >>= bits;
            *shift -= bits;
        };
        narrow(&mut fact, &mut shift);
        fact *= self.inverse;
        narrow(&mut fact, &mut shift);
        ((u128::from(delta) * u128::from(fact)) >> shift) as Nanos
    }

    /// The virtual time of `delta` ns at this weight (`calc_delta_fair`). It equals `delta` at nice 0.
    #[inline]
    pub fn virtual_time(&self, delta: Nanos, arithmetic: Arithmetic) -> Nanos {
        if self.weight == NICE_0 { delta } else { self.scaled_to_nice_0(delta, arithmetic) }
    }

    // Apart, so that the arithmetic is not repeated wherever virtual time is used.
    #[inline(never)]
    fn scaled_to_nice_0(mut self, delta: Nanos, arithmetic: Arithmetic) -> Nanos {
        self.scale(delta, NICE_0, arithmetic)
    }

    /// A time, in ns, during which the virtual time is certain to advance by at most `delta`. It is a slightly low
    /// bound.
    #[inline]
    pub fn real_time_at_least(&self, delta: Nanos) -> Nanos {
        if self.weight == NICE_0 { delta } else { self.weighted_time_at_least(delta) }
    }

    #[inline(never)]
    fn weighted_time_at_least(&self, delta: Nanos) -> Nanos {
        let exact = u128::from(delta) * u128::from(self.weight) / u128::from(NICE_0);
        let early = (exact >> 12) + u128::from(self.weight / NICE_0) + 2;
        exact.saturating_sub(early).min(u128::from(Nanos::MAX)) as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Arithmetic; 4] = [Arithmetic::Mine, Arithmetic::MineTruncated, Arithmetic::Calc, Arithmetic::Divide];

    fn nice(nice: i8) -> Load {
        Load::of(&Attributes { nice, ..Attributes::default() })
    }

    #[test]
    fn a_level_is_a_quarter() {
        for pair in WEIGHTS.windows(2) {
            let ratio = pair[0] as f64 / pair[1] as f64;
            assert!((1.15..1.32).contains(&ratio), "{pair:?}");
        }
    }

    #[test]
    fn every_arithmetic_divides() {
        for arithmetic in ALL {
            for n in -20..20 {
                let load = nice(n);
                let exact = 1e6 * 1024.0 / load.weight as f64;
                let ours = load.virtual_time(1_000_000, arithmetic) as f64;
                assert!((ours - exact).abs() <= 1.0 + exact * 1e-4, "nice {n}: {ours} {exact}");
                let mut sum = Load::default();
                sum.add(load.into());
                sum.add(nice(0).into());
                let ours = sum.scale(20_000_000, load.weight, arithmetic) as f64;
                let exact = 2e7 * load.weight as f64 / sum.weight as f64;
                assert!((ours - exact).abs() <= 2.0 + exact * 1e-3, "nice {n}: {ours} {exact}");
            }
        }
    }

    #[test]
    fn the_lower_bound_is_one() {
        for n in -20..20 {
            let load = nice(n);
            for delta in [1, 1000, 1_000_000, 5_000_000_000] {
                let real = load.real_time_at_least(delta);
                for arithmetic in ALL {
                    assert!(load.virtual_time(real, arithmetic) <= delta, "nice {n}, {delta}");
                }
            }
        }
    }
}

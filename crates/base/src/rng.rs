//! The seeded generator behind every random draw. The same seed gives the same draws on every machine.

/// xoshiro256** (Blackman and Vigna, 2018), seeded by SplitMix64.
#[derive(Clone, Debug)]
pub struct Rng([u64; 4]);

impl Rng {
    /// Creates a generator; equal seeds give equal draws.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut x = seed;
        Self(std::array::from_fn(|_| {
            x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = x;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }))
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[1].wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in `0..n` (0 when n is 0).
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Uniform in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A draw from nearly a normal distribution with this mean and standard deviation, never below 0. It is the sum of
    /// four uniform draws (Irwin-Hall), which needs no transcendental function and so gives the same bits on every
    /// machine. Its tails end at 3.46 standard deviations.
    pub fn about(&mut self, mean: u64, sd: u64) -> u64 {
        let sum: f64 = (0..4).map(|_| self.unit()).sum();
        let draw = mean as f64 + (sum - 2.0) * 1.732_050_807_568_877_2 * sd as f64;
        if draw <= 0.0 { 0 } else { rounded(draw) }
    }
}

/// Rounds a number that is not negative to the nearest integer, halves up. `round()` would be a function call on
/// targets where the compiler may not use the processor's rounding instruction.
#[inline]
#[must_use]
pub fn rounded(x: f64) -> u64 {
    let whole = x as u64;
    whole + u64::from(x - whole as f64 >= 0.5)
}

#[cfg(test)]
mod tests {
    use super::Rng;

    #[test]
    fn equal_seeds_draw_equal_numbers() {
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));
        assert!((0..100).all(|_| a.next_u64() == b.next_u64()));
        assert_ne!(Rng::new(1).next_u64(), Rng::new(2).next_u64());
    }

    #[test]
    fn about_has_its_mean_and_deviation() {
        let mut rng = Rng::new(3);
        let draws: Vec<f64> = (0..20_000).map(|_| rng.about(5000, 500) as f64).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let sd = (draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / draws.len() as f64).sqrt();
        assert!((mean - 5000.0).abs() < 15.0 && (sd - 500.0).abs() < 15.0, "{mean} {sd}");
    }
}

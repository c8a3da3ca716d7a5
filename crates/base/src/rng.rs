//! The seeded generators behind every random draw. The same seed gives the same draws on every machine.

/// What SplitMix64 (Steele, Lea and Flood, 2014) adds for each number.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// What SplitMix64 makes of its sum: 64 random bits.
#[inline]
fn mixed(sum: u64) -> u64 {
    let z = (sum ^ (sum >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// xoshiro256** (Blackman and Vigna, 2018), seeded by SplitMix64.
#[derive(Clone, Debug)]
pub struct Rng([u64; 4]);

impl Rng {
    /// Creates a generator; equal seeds give equal draws.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut x = seed;
        Self(std::array::from_fn(|_| {
            x = x.wrapping_add(GAMMA);
            mixed(x)
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

    /// A draw from nearly a normal distribution with this mean and standard deviation, never below 0. Without a
    /// deviation nothing is drawn.
    pub fn about(&mut self, mean: u64, sd: u64) -> u64 {
        if sd == 0 {
            return mean;
        }
        let bits = [self.next_u64(), self.next_u64()];
        about(mean, sd, bits)
    }
}

/// A draw from nearly a normal distribution with this mean and standard deviation, never below 0. It is the sum of
/// four uniform draws of 32 bits (Irwin-Hall), which needs no transcendental function and so gives the same result on
/// every machine. Its tails end at 3.46 standard deviations.
#[inline]
fn about(mean: u64, sd: u64, bits: [u64; 2]) -> u64 {
    let sum: u64 = bits.iter().map(|bits| (bits >> 32) + (bits & 0xffff_ffff)).sum();
    let deviation = (sum as i64 - (2 << 32)) as f64 * (1.732_050_807_568_877_2 / (1_u64 << 32) as f64);
    let draw = mean as f64 + deviation * sd as f64;
    if draw <= 0.0 { 0 } else { rounded(draw) }
}

/// Random draws for many tasks. Each task has its own sequence, so that what one draws does not depend on the others:
/// its bursts are the same under every scheduler, in the simulation and on a real kernel.
#[derive(Clone, Copy, Debug)]
pub struct Draws(u64);

impl Draws {
    /// The sequence of all forked tasks.
    pub const FORKED: u32 = u32::MAX;

    /// The number in [`Self::FORKED`] of the first draw of a forked task, the `nth` of its kind.
    #[must_use]
    pub fn first_of(kind: u32, nth: u32) -> u32 {
        mixed(u64::from(kind) << 32 | u64::from(nth)) as u32
    }

    /// Creates the sequences; equal seeds give equal ones.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(mixed(seed.wrapping_add(GAMMA)))
    }

    /// The next draw of a sequence in which `drawn` were made before, distributed as [`Rng::about`]. One without a
    /// deviation counts too, so that it does not shift the draws after it.
    #[inline]
    pub fn next(self, sequence: u32, drawn: &mut u32, mean: u64, sd: u64) -> u64 {
        let number = *drawn;
        *drawn = number.wrapping_add(1);
        if sd == 0 { mean } else { self.about(sequence, number, mean, sd) }
    }

    /// The draw with this number of a sequence.
    #[inline]
    fn about(self, sequence: u32, number: u32, mean: u64, sd: u64) -> u64 {
        // The sequences begin at places of SplitMix64's that are nowhere near each other.
        let at = self.0.wrapping_add(u64::from(sequence).wrapping_mul(0xd134_2543_de82_ef95));
        let first = at.wrapping_add(u64::from(number).wrapping_mul(GAMMA.wrapping_mul(2)));
        about(mean, sd, [mixed(first), mixed(first.wrapping_add(GAMMA))])
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
    use super::{Draws, Rng};

    #[test]
    fn equal_seeds_draw_equal_numbers() {
        let (mut a, mut b) = (Rng::new(7), Rng::new(7));
        assert!((0..100).all(|_| a.next_u64() == b.next_u64()));
        assert_ne!(Rng::new(1).next_u64(), Rng::new(2).next_u64());
    }

    #[test]
    fn about_has_its_mean_and_deviation() {
        let (mut rng, draws) = (Rng::new(3), Draws::new(3));
        is_about(&(0..20_000).map(|_| rng.about(5000, 500)).collect::<Vec<_>>());
        is_about(&(0..20_000).map(|number| draws.about(7, number, 5000, 500)).collect::<Vec<_>>());
        is_about(&(0..20_000).map(|sequence| draws.about(sequence, 7, 5000, 500)).collect::<Vec<_>>());
        is_about(&(0..20_000).map(|seed| Draws::new(seed).about(0, 0, 5000, 500)).collect::<Vec<_>>());
    }

    /// The draws have a mean of 5,000 and a deviation of 500, and one says nothing about the next.
    fn is_about(draws: &[u64]) {
        let n = draws.len() as f64;
        let off: Vec<f64> = draws.iter().map(|draw| *draw as f64 - 5000.0).collect();
        let (mean, sd) = (off.iter().sum::<f64>() / n, (off.iter().map(|d| d * d).sum::<f64>() / n).sqrt());
        let next = off.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / n / 250_000.0;
        assert!(mean.abs() < 15.0 && (sd - 500.0).abs() < 15.0 && next.abs() < 0.03, "{mean} {sd} {next}");
    }

    #[test]
    fn sequences_differ_by_seed_and_number() {
        let one = |seed, sequence| (0..4).map(|n| Draws::new(seed).about(sequence, n, 5000, 500)).collect::<Vec<_>>();
        assert_eq!(one(7, 1), one(7, 1));
        assert_ne!(one(7, 1), one(7, 2));
        assert_ne!(one(7, 1), one(8, 1));
    }

    #[test]
    fn a_draw_without_a_deviation_shifts_no_other() {
        let draw = |sds: [u64; 3]| {
            let mut drawn = 0;
            sds.map(|sd| Draws::new(7).next(1, &mut drawn, 5000, sd))
        };
        let (all, [first, second, third]) = (draw([500; 3]), draw([500, 0, 500]));
        assert_eq!(([first, third], second), ([all[0], all[2]], 5000));
    }
}

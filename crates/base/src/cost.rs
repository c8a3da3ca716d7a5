//! What an operation costs: a time that is always the same, or one that varies as it was measured.

use crate::{Nanos, Rng};
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The quantiles that describe a time that varies.
const QUANTILES: usize = 9;

/// Of which shares of all times the quantiles are, in percent.
const PERCENT: [u64; QUANTILES] = [0, 10, 25, 50, 75, 90, 95, 99, 100];

/// Where the median is among the quantiles.
const MEDIAN: usize = 3;

/// A time that an operation takes, in ns. In files it is a number, or a list of nine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Always the same.
    Fixed(Nanos),
    /// What 0, 10, 25, 50, 75, 90, 95, 99 and 100% of the times do not exceed, in ascending order.
    Varying([Nanos; QUANTILES]),
}

impl Default for Cost {
    fn default() -> Self {
        Self::Fixed(0)
    }
}

impl From<Nanos> for Cost {
    fn from(time: Nanos) -> Self {
        Self::Fixed(time)
    }
}

impl Cost {
    /// As measured; `None` where nothing was.
    #[must_use]
    pub fn of(mut times: Vec<Nanos>) -> Option<Self> {
        times.sort_unstable();
        let last = times.len().checked_sub(1)?;
        Some(Self::with(PERCENT.map(|percent| times[last * percent as usize / 100])))
    }

    /// The cost with these quantiles.
    fn with(quantiles: [Nanos; QUANTILES]) -> Self {
        let [least, .., most] = quantiles;
        if least == most { Self::Fixed(least) } else { Self::Varying(quantiles) }
    }

    /// The mean of several measurements, quantile by quantile; `None` of nothing.
    #[must_use]
    pub fn mean(measured: &[Self]) -> Option<Self> {
        let count = Nanos::try_from(measured.len()).ok().filter(|count| *count > 0)?;
        let mut sums = [0u128; QUANTILES];
        for cost in measured {
            std::iter::zip(&mut sums, cost.quantiles()).for_each(|(sum, time)| *sum += u128::from(time));
        }
        Some(Self::with(sums.map(|sum| (sum / u128::from(count)) as Nanos)))
    }

    /// What 0, 10, 25, 50, 75, 90, 95, 99 and 100% of the times do not exceed.
    #[must_use]
    pub fn quantiles(&self) -> [Nanos; QUANTILES] {
        match self {
            Self::Fixed(time) => [*time; QUANTILES],
            Self::Varying(quantiles) => *quantiles,
        }
    }

    /// What half of the times do not exceed.
    #[inline]
    #[must_use]
    pub fn median(&self) -> Nanos {
        match self {
            Self::Fixed(time) => *time,
            Self::Varying(quantiles) => quantiles[MEDIAN],
        }
    }

    /// The longest time.
    #[must_use]
    pub fn most(&self) -> Nanos {
        match self {
            Self::Fixed(time) => *time,
            Self::Varying([.., most]) => *most,
        }
    }

    /// Whether it is not always the same.
    #[must_use]
    pub fn varies(&self) -> bool {
        matches!(self, Self::Varying(_))
    }

    /// A time drawn from those that were measured; between two quantiles all are equally likely. A cost that is always
    /// the same draws nothing.
    #[must_use]
    pub fn draw(&self, rng: &mut Rng) -> Nanos {
        /// Steps of one percent.
        const STEPS: u64 = 1000;
        let quantiles = match self {
            Self::Fixed(time) => return *time,
            Self::Varying(quantiles) => quantiles,
        };
        let at = rng.below(100 * STEPS);
        let above = PERCENT.iter().position(|percent| at < percent * STEPS).unwrap_or(QUANTILES - 1);
        let (from, to) = (PERCENT[above - 1] * STEPS, PERCENT[above] * STEPS);
        let (low, high) = (quantiles[above - 1], quantiles[above]);
        low + ((u128::from(high - low) * u128::from(at - from)) / u128::from(to - from)) as Nanos
    }
}

/// The median, and in brackets what 10 and 99% of the times do not exceed.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(time) => write!(f, "{time}"),
            Self::Varying([_, low, _, median, .., high, _]) => write!(f, "{median} ({low} to {high})"),
        }
    }
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(time) => time.serialize(serializer),
            Self::Varying(quantiles) => quantiles.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Cost;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a time in ns, or a list of nine in ascending order: what 0, 10, 25, 50, 75, 90, 95, 99 and 100% \
                     of the times do not exceed",
                )
            }

            fn visit_u64<E: Error>(self, time: u64) -> Result<Cost, E> {
                Ok(Cost::Fixed(time))
            }

            fn visit_i64<E: Error>(self, time: i64) -> Result<Cost, E> {
                let wrong = |_| E::invalid_value(serde::de::Unexpected::Signed(time), &self);
                time.try_into().map(Cost::Fixed).map_err(wrong)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Cost, A::Error> {
                let mut quantiles = [0; QUANTILES];
                for (i, quantile) in quantiles.iter_mut().enumerate() {
                    *quantile = items.next_element()?.ok_or_else(|| A::Error::invalid_length(i, &self))?;
                }
                if items.next_element::<Nanos>()?.is_some() {
                    return Err(A::Error::invalid_length(QUANTILES + 1, &self));
                }
                if quantiles.is_sorted() {
                    Ok(Cost::Varying(quantiles))
                } else {
                    Err(A::Error::invalid_value(serde::de::Unexpected::Other("a list that descends"), &self))
                }
            }
        }
        deserializer.deserialize_any(Either)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_quantiles_that_were_measured() {
        // Of 1,000 times 950 are 1 to 2 us, and the rest up to 52 us.
        let times: Vec<Nanos> =
            (0..1000).map(|i| if i < 950 { 1_000 + i } else { 2_000 + (i - 949) * 1_000 }).collect();
        let cost = Cost::of(times).unwrap();
        assert_eq!((cost.median(), cost.most(), cost.varies()), (1_499, 52_000, true));
        assert_eq!((cost.to_string(), Cost::Fixed(7).to_string()), ("1499 (1099 to 42000)".to_owned(), "7".to_owned()));
        let mut rng = Rng::new(5);
        let mut draws: Vec<Nanos> = (0..100_000).map(|_| cost.draw(&mut rng)).collect();
        draws.sort_unstable();
        for (percent, expected) in [(10, 1_099), (50, 1_499), (90, 1_899), (99, 41_000)] {
            let drawn = draws[draws.len() * percent / 100] as f64;
            assert!((drawn / f64::from(expected) - 1.0).abs() < 0.02, "{percent}%: {drawn}, not {expected}");
        }
        assert!(draws[0] >= 1_000 && *draws.last().unwrap() <= 52_000);
    }

    #[test]
    fn what_never_varies_draws_nothing() {
        assert_eq!(Cost::of(Vec::new()), None);
        let [slow, fast] = [Cost::Varying([9; 9].map(|n| n * 3)), Cost::Varying([1, 1, 1, 1, 1, 1, 1, 1, 3])];
        let mean = Cost::Varying([14, 14, 14, 14, 14, 14, 14, 14, 15]);
        assert_eq!((Cost::mean(&[slow, fast]), Cost::mean(&[fast]), Cost::mean(&[])), (Some(mean), Some(fast), None));
        assert_eq!(Cost::of(vec![7; 20]), Some(Cost::Fixed(7)));
        let (mut rng, mut same) = (Rng::new(1), Rng::new(1));
        assert_eq!(Cost::Fixed(9).draw(&mut rng), 9);
        assert_eq!(rng.next_u64(), same.next_u64());
        // The longest times do not overflow.
        let most = Cost::Varying([0, 0, 0, 0, 0, 0, 0, Nanos::MAX / 2, Nanos::MAX]);
        assert!((0..1000).any(|_| most.draw(&mut rng) > Nanos::MAX / 2));
    }
}

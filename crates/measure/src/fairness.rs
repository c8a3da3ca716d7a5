//! Fairness of shares: Jain's index and the variance.

use serde::Serialize;

/// How evenly something was shared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Fairness {
    /// Among how many.
    pub parties: u64,
    /// Jain's index, (Σx)² / (n·Σx²): 1 when all have the same, 1/n when one has all. 0 when none has anything.
    /// (Jain, Chiu and Hawe, 1984.)
    pub jain: f64,
    /// The variance of the shares, each party's part of the whole; 0 when all have the same.
    pub share_variance: f64,
}

impl Fairness {
    /// The fairness of a division.
    pub fn of(parts: impl IntoIterator<Item = f64>) -> Self {
        let (mut n, mut sum, mut squares) = (0u64, 0.0, 0.0);
        for part in parts {
            n += 1;
            sum += part;
            squares += part * part;
        }
        if sum <= 0.0 {
            return Self { parties: n, ..Self::default() };
        }
        let count = n as f64;
        let mean_share = 1.0 / count;
        let variance = squares / (sum * sum) / count - mean_share * mean_share;
        Self { parties: n, jain: sum * sum / (count * squares), share_variance: variance.max(0.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::Fairness;

    #[test]
    fn known_divisions() {
        let equal = Fairness::of([5.0; 4]);
        assert!((equal.jain - 1.0).abs() < 1e-12 && equal.share_variance < 1e-12 && equal.parties == 4);
        let one = Fairness::of([0.0, 0.0, 7.0, 0.0]);
        assert!((one.jain - 0.25).abs() < 1e-12);
        // Shares 1, 0, 0, 0 about a mean of 1/4: (9 + 1 + 1 + 1) / 16 / 4.
        assert!((one.share_variance - 0.1875).abs() < 1e-12);
        assert_eq!(Fairness::of([0.0, 0.0]), Fairness { parties: 2, ..Fairness::default() });
        assert_eq!(Fairness::of([]), Fairness::default());
    }
}

//! What an expectation allows beyond its bound.

use crate::scalar::Scalar;

/// What is allowed beyond the bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Margin {
    /// This part of the bound.
    Relative(f64),
    /// This much.
    Absolute(f64),
}

impl Margin {
    /// Reads `"2%"`, or an amount.
    ///
    /// # Errors
    /// When it is neither, or negative.
    pub fn parse(scalar: &Scalar) -> Result<Self, String> {
        let bad = || format!("\"{scalar}\" is no margin");
        let margin = match scalar {
            Scalar::Text(text) => {
                let percent = text.trim().strip_suffix('%').ok_or_else(bad)?;
                Self::Relative(percent.trim().parse::<f64>().map_err(|_| bad())? / 100.0)
            }
            number => Self::Absolute(number.number().ok_or_else(bad)?),
        };
        let (Self::Relative(size) | Self::Absolute(size)) = margin;
        if size.is_finite() && size >= 0.0 { Ok(margin) } else { Err(bad()) }
    }

    /// The amount that it is of a bound.
    #[must_use]
    pub fn of(self, bound: f64) -> f64 {
        match self {
            Self::Relative(part) => part * bound.abs(),
            Self::Absolute(amount) => amount,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_margins_are_refused() {
        for text in ["2", "x%", "-1%", "%", "inf%"] {
            assert!(Margin::parse(&Scalar::Text(text.into())).is_err(), "{text}");
        }
        assert!(Margin::parse(&Scalar::Float(-0.1)).is_err());
    }
}

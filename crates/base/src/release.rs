//! Releases of Linux in chronological order.

use crate::Error;
use std::fmt;
use std::str::FromStr;

/// A release of Linux: `2.6.32`, `4.1`, `6.12`. Releases compare in chronological order.
///
/// From 3.0 on, the third number counts the fixes of a stable release. They do not change how this project models the
/// kernel, so [`Release::from_str`] drops it: 6.1.176 is read as 6.1.
///
/// It is one number, so that a scheduler compares it as fast as an integer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release(u64);

impl Release {
    const fn new(major: u16, minor: u16, patch: u16) -> Self {
        Self((major as u64) << 32 | (minor as u64) << 16 | patch as u64)
    }

    fn parts(self) -> [u16; 3] {
        [self.0 >> 32, self.0 >> 16, self.0].map(|part| part as u16)
    }
}

/// The release `major.minor`, for 3.0 and later and for 2.4 and earlier: `release >= v(5, 5)`.
#[must_use]
pub const fn v(major: u16, minor: u16) -> Release {
    Release::new(major, minor, 0)
}

/// The release `2.6.patch`.
#[must_use]
pub const fn v2_6(patch: u16) -> Release {
    Release::new(2, 6, patch)
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.parts();
        write!(f, "{major}.{minor}")?;
        if (major, minor) == (2, 6) { write!(f, ".{patch}") } else { Ok(()) }
    }
}

impl fmt::Debug for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Release {
    type Err = Error;

    /// Reads `6.12`, and what `uname -r` prints: `6.1.0-28-amd64`, `2.6.32.5`, `6.12-rc3`, `6.18.0+`.
    ///
    /// # Errors
    /// When the text does not begin with two numbers separated by a dot.
    fn from_str(text: &str) -> Result<Self, Error> {
        let numbers = text.split_once(['-', '+', '_', ' ']).map_or(text, |(numbers, _)| numbers);
        let mut numbers = numbers.split('.').map(|number| number.parse::<u16>().ok());
        let mut next = || numbers.next().flatten();
        let (Some(major), Some(minor)) = (next(), next()) else {
            return Err(
                Error::input(format!("\"{text}\" is not a release of Linux")).mend("write one as 2.6.32 or 6.12")
            );
        };
        let patch = if (major, minor) == (2, 6) { next().unwrap_or(0) } else { 0 };
        Ok(Self::new(major, minor, patch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_ordered_as_they_came() {
        let order = [v(1, 2), v(2, 4), v2_6(0), v2_6(9), v2_6(11), v2_6(32), v(3, 2), v(3, 10), v(6, 6), v(6, 12)];
        assert!(order.is_sorted() && v(6, 12) > v(6, 2));
    }

    #[test]
    fn what_uname_prints_is_read() {
        let read = |text: &str| text.parse::<Release>().map_err(|e| e.to_string());
        assert_eq!(read("6.1.0-28-amd64"), Ok(v(6, 1)));
        assert_eq!(read("2.6.32.5"), Ok(v2_6(32)));
        assert_eq!(read("6.12-rc3"), Ok(v(6, 12)));
        assert_eq!(read("6.18.0+"), Ok(v(6, 18)));
        assert_eq!(read("2.4"), Ok(v(2, 4)));
        for bad in ["", "6", "linux", "6.", "6.x", "99999.1"] {
            assert!(read(bad).is_err(), "{bad} was accepted");
        }
    }

    #[test]
    fn a_release_is_written_as_it_is_read() {
        for text in ["2.6.0", "2.6.32", "2.4", "3.10", "6.12"] {
            assert_eq!(text.parse::<Release>().unwrap().to_string(), text);
        }
    }
}

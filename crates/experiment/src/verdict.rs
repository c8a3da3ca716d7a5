//! The verdicts, and how several make one.

use serde::Serialize;
use std::fmt;

/// The verdict on an expectation, or on a whole experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// It holds.
    #[serde(rename = "pass")]
    Pass,
    /// It does not hold (or a known difference is there no more).
    #[serde(rename = "fail")]
    Fail,
    /// The runs do not decide it.
    #[serde(rename = "undecided")]
    Undecided,
    /// It was not asked.
    #[serde(rename = "skipped")]
    Skipped,
    /// It does not hold, for a cause that the file names.
    #[serde(rename = "known difference")]
    KnownDifference,
    /// Something was fitted to what was published, so that it counts neither as a pass nor as a failure.
    #[serde(rename = "calibration")]
    Calibration,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Undecided => "undecided",
            Self::Skipped => "skipped",
            Self::KnownDifference => "known difference",
            Self::Calibration => "calibration",
        })
    }
}

impl Verdict {
    /// The verdict of all together: a failure decides, then an undecided one, then a pass. Of nothing: skipped.
    pub(crate) fn all(verdicts: impl IntoIterator<Item = Self>) -> Self {
        let rank = |v: &Self| match v {
            Self::Fail => 5,
            Self::Undecided => 4,
            Self::Pass => 3,
            Self::KnownDifference => 2,
            Self::Calibration => 1,
            Self::Skipped => 0,
        };
        verdicts.into_iter().max_by_key(rank).unwrap_or(Self::Skipped)
    }

    /// The exit status of a command that ends with this verdict.
    #[must_use]
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Fail => 1,
            Self::Undecided => 3,
            Self::Pass | Self::Skipped | Self::KnownDifference | Self::Calibration => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Calibration, Fail, KnownDifference, Pass, Skipped, Undecided};
    use super::*;

    #[test]
    fn one_failure_fails_all_and_nothing_is_skipped() {
        assert_eq!(Verdict::all([Pass, Undecided, Fail]), Fail);
        assert_eq!(Verdict::all([Pass, Undecided, Skipped]), Undecided);
        assert_eq!(Verdict::all([Skipped, Pass, KnownDifference]), Pass);
        assert_eq!(Verdict::all([Skipped, KnownDifference]), KnownDifference);
        assert_eq!(Verdict::all([Calibration, Skipped]), Calibration);
        assert_eq!(Verdict::all([Calibration, KnownDifference]), KnownDifference);
        assert_eq!(Verdict::all([]), Skipped);
    }

    #[test]
    fn exit_statuses_are_the_designs() {
        let statuses = [Pass, KnownDifference, Calibration, Skipped, Fail, Undecided].map(Verdict::exit_status);
        assert_eq!(statuses, [0, 0, 0, 0, 1, 3]);
    }
}

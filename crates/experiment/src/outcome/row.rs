//! A row of the table: an expectation, judged over all its cases.

use crate::compare::Case;
use crate::file::{ExpectationFile, Kind};
use crate::judge::Required;
use crate::verdict::Verdict;
use serde::Serialize;

/// An expectation, judged over all its cases.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The source's figure or table, or the file's name for the expectation.
    pub figure: Option<String>,
    /// What it says.
    pub claim: Option<String>,
    /// How firm it is.
    pub kind: Option<Kind>,
    /// What was published.
    pub published: Option<serde_json::Value>,
    /// Ours, in the case that lies nearest to (or farthest beyond) its bound.
    pub measured: Option<f64>,
    /// Its 95% confidence interval, where several seeds were run.
    pub interval: Option<[f64; 2]>,
    /// The bound in that case.
    pub bound: Option<f64>,
    /// The values that are allowed in that case, margin included.
    pub required: Option<Required>,
    /// The metric, the relation, the bound and the margin as written.
    pub expected: String,
    /// That case's kernel.
    pub kernel: Option<String>,
    /// That case's parameters.
    pub at: String,
    /// The verdict on the expectation.
    pub verdict: Verdict,
    /// The reason, where the figures do not show it.
    pub reason: Option<String>,
    /// Every case.
    pub cases: Vec<Case>,
}

impl Row {
    /// What the user calls it: its figure, or else what is expected.
    #[must_use]
    pub fn name(&self) -> &str {
        self.figure.as_deref().unwrap_or(&self.expected)
    }

    /// What was found in each case that decided the verdict, the reason included.
    #[must_use]
    pub fn findings(&self) -> Vec<String> {
        let finding = |c: &Case| {
            let reason = c.reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
            c.finding(&self.expected) + &reason
        };
        self.cases.iter().filter(|c| c.verdict == self.verdict).map(finding).collect()
    }
}

/// The row of an expectation: the case that lies nearest to its bound, or farthest beyond, stands for all.
pub(super) fn row(file: &ExpectationFile, cases: Vec<Case>) -> Row {
    let verdict = if cases.is_empty() { Verdict::Skipped } else { over_cases(file, &cases) };
    let worst = cases
        .iter()
        .filter(|c| c.verdict == verdict)
        .min_by(|a, b| a.slack.total_cmp(&b.slack))
        .or_else(|| cases.first());
    let margin = file.margin.as_ref().map_or_else(String::new, |m| format!(" within {m}"));
    let passed_at_last = file.known_difference.is_some() && verdict == Verdict::Fail;
    let reason = match (&file.skip, &file.known_difference) {
        (Some(why), _) => Some(why.clone()),
        (None, Some(cause)) if verdict == Verdict::KnownDifference => Some(cause.clone()),
        (None, Some(_)) if passed_at_last => {
            Some("the known difference has disappeared: remove known_difference from the file".to_owned())
        }
        (None, None) if cases.is_empty() => Some("none of its kernels and points is selected".to_owned()),
        _ => worst.and_then(|c| c.reason.clone()),
    };
    Row {
        figure: file.figure.clone(),
        claim: file.claim.clone(),
        kind: file.kind,
        published: worst.and_then(|c| c.published.clone()).or_else(|| plain_published(file)),
        measured: worst.and_then(|c| c.measured),
        interval: worst.and_then(|c| c.interval),
        bound: worst.and_then(|c| c.bound),
        required: worst.and_then(|c| c.required),
        expected: format!("{} {} {}{margin}", file.metric, file.relation.sign(), file.bound),
        kernel: worst.and_then(|c| c.kernel.clone()),
        at: worst.map_or_else(String::new, |c| c.at.clone()),
        verdict,
        reason,
        cases,
    }
}

/// A known difference is there as long as any case shows it; else every case counts.
fn over_cases(file: &ExpectationFile, cases: &[Case]) -> Verdict {
    let verdicts = || cases.iter().map(|c| c.verdict);
    if file.known_difference.is_some() && verdicts().any(|v| v == Verdict::KnownDifference) {
        return Verdict::KnownDifference;
    }
    Verdict::all(verdicts())
}

fn plain_published(file: &ExpectationFile) -> Option<serde_json::Value> {
    let published = file.published.as_ref()?;
    serde_json::to_value(published).ok().filter(|v| !v.as_str().is_some_and(|s| s.starts_with('=')))
}

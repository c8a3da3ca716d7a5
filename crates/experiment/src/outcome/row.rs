//! A row of the table: an expectation, judged over all its cases.

use crate::compare::{Beside, Case};
use crate::experiment::Expectation;
use crate::file::{ExpectationFile, Kind};
use crate::judge::Required;
use crate::look::Look;
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
    /// The least and the greatest over the seeds, where several were run.
    pub range: Option<[f64; 2]>,
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
    /// What the simulation has in that case, where ours is a real kernel's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Beside>,
    /// The verdict on the expectation.
    pub verdict: Verdict,
    /// The reason, where the figures do not show it.
    pub reason: Option<String>,
    /// Every case.
    pub cases: Vec<Case>,
    /// Where to look, if it does not hold and the trace of that case was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look: Option<Look>,
}

impl Row {
    /// What the user calls it: its figure, or else what is expected.
    #[must_use]
    pub fn name(&self) -> &str {
        self.figure.as_deref().unwrap_or(&self.expected)
    }

    /// Whether it has several cases, with a published figure beside ours.
    #[must_use]
    pub fn has_published_cases(&self) -> bool {
        self.cases.len() > 1 && self.cases.iter().any(|c| c.published.is_some())
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
pub(super) fn row(expectation: &Expectation, cases: Vec<Case>) -> Row {
    let file = &expectation.file;
    let left_out = expectation.left_out.as_ref();
    let verdict = left_out.map_or_else(|| Verdict::all(cases.iter().map(|c| c.verdict)), |(verdict, _)| *verdict);
    let worst = cases
        .iter()
        .filter(|c| c.verdict == verdict)
        .min_by(|a, b| a.slack.total_cmp(&b.slack))
        .or_else(|| cases.first());
    Row {
        figure: file.figure.clone(),
        claim: file.claim.clone(),
        kind: file.kind,
        published: worst.and_then(|c| c.published.clone()).or_else(|| plain_published(file)),
        measured: worst.and_then(|c| c.measured),
        interval: worst.and_then(|c| c.interval),
        range: worst.and_then(|c| c.range),
        bound: worst.and_then(|c| c.bound),
        required: worst.and_then(|c| c.required),
        expected: expectation.text.clone(),
        kernel: worst.and_then(|c| c.kernel.clone()),
        at: worst.map_or_else(String::new, |c| c.at.clone()),
        simulated: None,
        verdict,
        reason: left_out
            .map(|(_, why)| why.clone())
            .or_else(|| reason(file, verdict, &cases))
            .or_else(|| worst.and_then(|c| c.reason.clone())),
        cases,
        look: None,
    }
}

impl Row {
    /// Puts the simulation of the same expectation beside it, case by case.
    pub(super) fn set_beside(&mut self, simulated: &Self) {
        for (real, simulated) in self.cases.iter_mut().zip(&simulated.cases) {
            assert_eq!(real.at, simulated.at, "both are of the same cases");
            real.simulated = Some(Beside::new(real, simulated));
        }
        let shown = self.cases.iter().find(|case| case.kernel == self.kernel && case.at == self.at);
        self.simulated = shown.and_then(|case| case.simulated.clone());
    }
}

/// The reason of a verdict, where the cases themselves do not show it.
fn reason(file: &ExpectationFile, verdict: Verdict, cases: &[Case]) -> Option<String> {
    let of = |verdict| cases.iter().filter(|c| c.verdict == verdict).count();
    match (&file.skip, file.known_difference.as_ref().or(file.seed_dependent.as_ref())) {
        (Some(why), _) => Some(why.clone()),
        (None, Some(cause)) if verdict == Verdict::KnownDifference => Some(cause.clone()),
        (None, Some(_)) if verdict == Verdict::Fail && file.seed_dependent.is_some() => {
            let (all, seeds) = (of(Verdict::Fail), cases.iter().map(|case| case.seeds).max().unwrap_or(0));
            Some(format!("with {seeds} seeds it no longer depends on them in {all} of {} cases", cases.len()))
        }
        (None, Some(_)) if verdict == Verdict::Fail && of(Verdict::Fail) == cases.len() => {
            let keys = "known_difference, or a test's [[test.known]]";
            Some(format!("the known difference has disappeared: remove it from the file ({keys})"))
        }
        (None, Some(_)) if verdict == Verdict::Fail => Some(format!(
            "the known difference has disappeared in {} of {} cases: judge these in an expectation of their own",
            of(Verdict::Fail),
            cases.len()
        )),
        (None, None) if cases.is_empty() => Some("none of its kernels and points is selected".to_owned()),
        (None, None) if verdict == Verdict::Calibration => {
            let off = cases.iter().filter(|c| c.slack < 0.0).count();
            let off = if off == 0 { String::new() } else { format!("; {off} of {} are outside it", cases.len()) };
            Some(format!("fitted to what was published: neither a pass nor a failure{off}"))
        }
        _ => None,
    }
}

fn plain_published(file: &ExpectationFile) -> Option<serde_json::Value> {
    let published = file.published.as_ref()?;
    serde_json::to_value(published).ok().filter(|v| !v.as_str().is_some_and(|s| s.starts_with('=')))
}

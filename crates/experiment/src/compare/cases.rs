//! The cases of an expectation: one for each kernel and point that it is asked of, judged.

use super::{CompareScope, Results};
use crate::experiment::{Expectation, Published};
use crate::expr::{Expr, Problem, Selector, Value, eval, eval_number};
use crate::judge::{Judged, Required, Sample, judge};
use crate::points::Point;
use crate::scatter::Interval;
use crate::verdict::Verdict;
use schedlab_base::Result;
use schedlab_chart::number;
use serde::Serialize;
use std::fmt::Write;

/// One kernel at one point, judged.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// The kernel's label; none where the expression names its kernels itself.
    pub kernel: Option<String>,
    /// The point's label; empty where the expression names its points itself.
    pub at: String,
    /// Ours (the mean over the seeds).
    pub measured: Option<f64>,
    /// Its 95% confidence interval, where several seeds were run.
    pub interval: Option<[f64; 2]>,
    /// How many seeds it is the mean of.
    pub seeds: usize,
    /// What it was compared with (the mean over the seeds).
    pub bound: Option<f64>,
    /// The values that are allowed, margin included.
    pub required: Option<Required>,
    /// Measured less bound with its 95% interval, where the bound differs between seeds: low, mean, high.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<[f64; 3]>,
    /// What was published.
    pub published: Option<serde_json::Value>,
    /// The verdict on this case.
    pub verdict: Verdict,
    /// The reason, where the figures do not show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How far inside its bound, in units of the bound.
    #[serde(skip)]
    pub slack: f64,
}

impl Case {
    /// The kernel and the parameters that it is of.
    #[must_use]
    pub fn place(&self) -> String {
        let kernel = self.kernel.iter().map(String::as_str);
        kernel.chain((!self.at.is_empty()).then_some(self.at.as_str())).collect::<Vec<_>>().join(", ")
    }

    /// `measured 3.04 (95% interval 2.9 to 3.2, 5 seeds); required 9.5 to 10.5 (linux-6.12, n=3)`; `place` stands in
    /// for a kernel that the expectation names itself.
    #[must_use]
    pub fn finding(&self, place: &str) -> String {
        let Some(measured) = self.measured else { return format!("no value ({place})") };
        let mut text = format!("measured {}", number(measured));
        if let Some([low, high]) = self.interval {
            let _ = write!(text, " (95% interval {} to {}, {} seeds)", number(low), number(high), self.seeds);
        }
        if let Some(required) = self.required {
            let _ = write!(text, "; required {required}");
        }
        if let Some([low, mean, high]) = self.difference {
            let [low, mean, high] = [low, mean, high].map(number);
            let _ = write!(text, " on average; measured less bound {mean} (95% interval {low} to {high})");
        }
        let own = self.place();
        let _ = write!(text, " ({})", if own.is_empty() { place } else { &own });
        text
    }
}

impl Results<'_> {
    /// Judges one expectation, case by case.
    ///
    /// # Errors
    /// When its expressions make no sense with these runs.
    pub fn judge(&self, index: usize, deterministic: bool) -> Result<Vec<Case>> {
        let expectation = &self.experiment.expectations[index];
        if expectation.file.skip.is_some() {
            return Ok(Vec::new());
        }
        let path = format!("expectations[{index}]");
        let mut cases = Vec::new();
        for kernel in self.kernels(expectation) {
            for point in self.points(expectation) {
                let case = self.case(expectation, kernel, &point, deterministic);
                cases.push(case.map_err(|what| self.experiment.document.error(&path, what))?);
            }
        }
        Ok(cases)
    }

    /// The kernels that it is asked of; one `None` where every metric in it names its own.
    fn kernels(&self, expectation: &Expectation) -> Vec<Option<usize>> {
        let mut free = false;
        for expr in [&expectation.metric, &expectation.bound] {
            expr.references(&mut |r| {
                free |= r.kernel.is_none() && self.experiment.metrics.contains_key(&r.path);
            });
        }
        if !free {
            return vec![None];
        }
        let asked = |name: &String| expectation.file.kernels.is_empty() || expectation.file.kernels.contains(name);
        let kernels = &self.experiment.file.kernels;
        (0..kernels.len()).filter(|k| asked(&kernels[*k].name)).map(Some).collect()
    }

    /// The points that it is asked at: of the parameters that its expressions leave free, each combination once.
    fn points(&self, expectation: &Expectation) -> Vec<Point> {
        let free = self.free_parameters([&expectation.metric, &expectation.bound]);
        let asked =
            |p: &Point| expectation.file.at.iter().all(|(n, values)| p.0.get(n).is_none_or(|v| values.contains(v)));
        let mut found: Vec<Point> = Vec::new();
        for point in self.experiment.points.iter().filter(|p| asked(p)) {
            let point = point.project(&free);
            if !found.contains(&point) {
                found.push(point);
            }
        }
        found
    }

    fn free_parameters<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> Vec<String> {
        let sweep = &self.experiment.file.sweep;
        let mut free = Vec::new();
        for expr in exprs {
            expr.references(&mut |r| {
                let selects = |name: &String| {
                    r.selectors.iter().any(|s| matches!(s, Selector::Equal(k, _) | Selector::All(k) if k == name))
                };
                let metric = self.experiment.metrics.contains_key(&r.path);
                let names = sweep.keys().filter(|name| (metric || **name == r.path) && !selects(name));
                free.extend(names.cloned());
            });
        }
        free
    }

    fn case(
        &self,
        expectation: &Expectation,
        kernel: Option<usize>,
        point: &Point,
        deterministic: bool,
    ) -> Result<Case, String> {
        let mut samples = Vec::new();
        let (mut undefined, mut not_run) = (None, None);
        for seed in 0..self.experiment.file.seeds.len() {
            let scope = CompareScope { results: self, kernel, point, seed };
            let both = eval_number(&expectation.metric, &scope)
                .and_then(|value| Ok(Sample { value, bound: eval_number(&expectation.bound, &scope)? }));
            match both {
                Ok(sample) => samples.push(sample),
                Err(Problem::Undefined(why)) => undefined = Some(why),
                Err(Problem::NotRun(why)) => not_run = Some(why),
                Err(Problem::Wrong(what)) => return Err(what),
            }
        }
        let file = &expectation.file;
        let judged = judge(file.relation, expectation.margin, &samples, deterministic);
        let (verdict, reason) = match (not_run, undefined) {
            (Some(why), _) => (Verdict::Skipped, Some(why)),
            (None, Some(why)) => (Verdict::Undecided, Some(why)),
            (None, None) => {
                (judged.verdict, (judged.verdict == Verdict::Undecided).then(|| scatter(&samples, &judged)))
            }
        };
        let of = |get: fn(&Sample) -> f64| {
            let figures: Vec<f64> = samples.iter().map(get).collect();
            (!figures.is_empty()).then(|| Interval::of(&figures))
        };
        let several = samples.len() > 1;
        let varies = samples.windows(2).any(|pair| pair[0].bound != pair[1].bound);
        // The mean of equal numbers may differ from them in its last digit.
        let bound = if varies { of(|s| s.bound).map(|i| i.mean) } else { samples.first().map(|s| s.bound) };
        Ok(Case {
            kernel: kernel.map(|k| self.experiment.kernel_label(k).to_owned()),
            at: point.label(),
            measured: of(|s| s.value).map(|i| i.mean),
            interval: of(|s| s.value).filter(|_| several).map(|i| [i.low, i.high]),
            seeds: samples.len(),
            bound,
            required: bound.map(|bound| Required::new(file.relation, bound, expectation.margin.of(bound))),
            difference: of(|s| s.value - s.bound).filter(|_| varies).map(|i| [i.low, i.mean, i.high]),
            published: self.published(expectation, kernel, point),
            verdict: if file.known_difference.is_some() { verdict.with_known_difference() } else { verdict },
            reason,
            slack: judged.slack,
        })
    }

    fn published(&self, expectation: &Expectation, kernel: Option<usize>, point: &Point) -> Option<serde_json::Value> {
        match &expectation.published {
            Published::Nothing => None,
            Published::Plain(scalar) => serde_json::to_value(scalar).ok(),
            Published::Computed(expr) => {
                match eval(expr, &CompareScope { results: self, kernel, point, seed: 0 }).ok()? {
                    Value::Number(x) => serde_json::to_value(x).ok(),
                    Value::Text(text) => Some(text.into()),
                    Value::List(list) => serde_json::to_value(list).ok(),
                }
            }
        }
    }
}

/// Why runs do not decide, and how many would.
fn scatter(samples: &[Sample], judged: &Judged) -> String {
    if samples.len() < 2 {
        return "one run on this backend decides nothing; give several seeds".to_owned();
    }
    match judged.runs_needed {
        Some(needed) => format!(
            "the runs scatter across the bound; about {needed} seeds would settle it if they scatter as much as these \
             (the interval then narrows with the square root of their number)"
        ),
        None => {
            "the runs scatter across the bound, and the mean is so near to it that 10,000 seeds would not settle it"
                .to_owned()
        }
    }
}

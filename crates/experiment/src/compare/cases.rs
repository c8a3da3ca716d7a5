//! The cases of an expectation: one for each kernel and point that it is asked of, judged.

use super::{CompareScope, Results};
use crate::experiment::{Expectation, Published};
use crate::expr::{Expr, Problem, Selector, Value, eval, eval_number};
use crate::judge::{Sample, judge};
use crate::points::Point;
use crate::verdict::Verdict;
use schedlab_base::Result;
use serde::Serialize;

/// One kernel at one point, judged.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// The kernel's label; none where the expression names its kernels itself.
    pub kernel: Option<String>,
    /// The point's label; empty where the expression names its points itself.
    pub at: String,
    /// Ours (the mean over the seeds).
    pub measured: Option<f64>,
    /// What it was compared with (the mean over the seeds).
    pub bound: Option<f64>,
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
        let mut reason = None;
        for seed in 0..self.experiment.file.seeds.len() {
            let scope = CompareScope { results: self, kernel, point, seed };
            let both = eval_number(&expectation.metric, &scope)
                .and_then(|value| Ok(Sample { value, bound: eval_number(&expectation.bound, &scope)? }));
            match both {
                Ok(sample) => samples.push(sample),
                Err(Problem::Undefined(why)) => reason = Some(why),
                Err(Problem::Wrong(what)) => return Err(what),
            }
        }
        let file = &expectation.file;
        let judged = judge(file.relation, expectation.margin, &samples, deterministic);
        let verdict = if reason.is_some() { Verdict::Undecided } else { judged.verdict };
        let mean = |get: fn(&Sample) -> f64| {
            (!samples.is_empty()).then(|| samples.iter().map(get).sum::<f64>() / samples.len() as f64)
        };
        if verdict == Verdict::Undecided && reason.is_none() {
            reason = Some(if samples.len() < 2 { "one run decides nothing" } else { "the runs scatter" }.to_owned());
        }
        Ok(Case {
            kernel: kernel.map(|k| self.experiment.kernel_label(k).to_owned()),
            at: point.label(),
            measured: mean(|s| s.value),
            bound: mean(|s| s.bound),
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

//! Expectations against the results of all runs: which cases there are, what each comes to.

use crate::experiment::{Expectation, Experiment, Published};
use crate::expr::{Expr, Problem, Reference, Scope, Selected, Selector, Value, eval, eval_number};
use crate::judge::{Sample, judge};
use crate::points::{Point, same, value_of};
use crate::run::RunResult;
use crate::scalar::Scalar;
use crate::verdict::Verdict;
use schedlab_base::Result;
use serde::Serialize;

/// The metrics of all runs of an experiment, found by kernel, point and seed.
pub struct Results<'a> {
    experiment: &'a Experiment,
    runs: &'a [RunResult],
}

/// One kernel at one point, judged.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// The kernel's label; none where the expression names its kernels itself.
    pub kernel: Option<String>,
    /// The point's label; empty where the expression names its points itself.
    pub at: String,
    /// Ours (the mean over the seeds).
    pub measured: Option<f64>,
    /// What it was held against (the mean over the seeds).
    pub bound: Option<f64>,
    /// What was published.
    pub published: Option<serde_json::Value>,
    /// What it comes to.
    pub verdict: Verdict,
    /// Why, where that does not show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How far inside its bound, in units of the bound.
    #[serde(skip)]
    pub slack: f64,
}

impl<'a> Results<'a> {
    /// The results of `experiment`; `runs` as its plan ordered them.
    #[must_use]
    pub fn new(experiment: &'a Experiment, runs: &'a [RunResult]) -> Self {
        Self { experiment, runs }
    }

    fn run(&self, kernel: usize, point: usize, seed: usize) -> &'a RunResult {
        let (points, seeds) = (self.experiment.points.len(), self.experiment.file.seeds.len());
        &self.runs[(kernel * points + point) * seeds + seed]
    }

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
            Published::Computed(expr) => match self.value(expr, kernel, point, 0).ok()? {
                Value::Number(x) => serde_json::to_value(x).ok(),
                Value::Text(text) => Some(text.into()),
                Value::List(list) => serde_json::to_value(list).ok(),
            },
        }
    }

    /// An expression's value for one kernel at one point.
    ///
    /// # Errors
    /// When it has none.
    pub fn value(&self, expr: &Expr, kernel: Option<usize>, point: &Point, seed: usize) -> Result<Value, Problem> {
        eval(expr, &CompareScope { results: self, kernel, point, seed })
    }

    /// An expression's number for one kernel at one point, the mean over the seeds that have one.
    #[must_use]
    pub fn number(&self, expr: &Expr, kernel: Option<usize>, point: &Point) -> Option<f64> {
        let seeds = 0..self.experiment.file.seeds.len();
        let values: Vec<f64> = seeds
            .filter_map(|seed| eval_number(expr, &CompareScope { results: self, kernel, point, seed }).ok())
            .collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }
}

struct CompareScope<'a> {
    results: &'a Results<'a>,
    kernel: Option<usize>,
    point: &'a Point,
    seed: usize,
}

impl Scope for CompareScope<'_> {
    fn value(&self, reference: &Reference, selected: &[Selected]) -> Result<Value, Problem> {
        let experiment = self.results.experiment;
        if let Some(value) = experiment.tables.value(&reference.path, selected) {
            return value;
        }
        if let Some(values) = experiment.file.sweep.get(&reference.path) {
            return self.parameter(reference, values, selected);
        }
        let kernel = match &reference.kernel {
            Some(name) => experiment.file.kernels.iter().position(|k| k.name == *name),
            None => self.kernel.or((experiment.file.kernels.len() == 1).then_some(0)),
        };
        let kernel = kernel.ok_or_else(|| Problem::Wrong(format!("say of which kernel: {}@...", reference.path)))?;
        let metric = |point: usize| self.results.run(kernel, point, self.seed).metrics[&reference.path].clone();
        let (points, many) = self.points(reference, selected)?;
        match (many, &points[..]) {
            (false, [one]) => metric(*one).map(Value::Number),
            (false, _) => Err(Problem::Wrong(format!("\"{}\" was not run at one such point", reference.path))),
            (true, points) => points.iter().map(|p| metric(*p)).collect::<Result<_, _>>().map(Value::List),
        }
    }
}

impl CompareScope<'_> {
    fn parameter(&self, reference: &Reference, values: &[Scalar], selected: &[Selected]) -> Result<Value, Problem> {
        match selected {
            [] => match self.point.0.get(&reference.path) {
                Some(value) => Ok(value_of(value)),
                None => Err(Problem::Wrong(format!("\"{0}\" has no one value here; take {0}[{0}=*]", reference.path))),
            },
            [(_, None)] => {
                let number = |v: &Scalar| {
                    v.number().ok_or_else(|| Problem::Wrong(format!("{}={v} is no number", reference.path)))
                };
                values.iter().map(number).collect::<Result<_, _>>().map(Value::List)
            }
            _ => Err(Problem::Wrong(format!("write \"{0}\" or \"{0}[{0}=*]\"", reference.path))),
        }
    }

    /// The points that the selectors and, where they say nothing, the case's own point name.
    fn points(&self, reference: &Reference, selected: &[Selected]) -> Result<(Vec<usize>, bool), Problem> {
        let experiment = self.results.experiment;
        let fits = |point: &Point| {
            point.0.iter().all(|(name, value)| match selected.iter().find(|(k, _)| k == name) {
                Some((_, Some(wanted))) => same(value, wanted),
                Some((_, None)) => true,
                None => self.point.0.get(name).is_none_or(|own| own == value),
            })
        };
        let found: Vec<usize> = (0..experiment.points.len()).filter(|p| fits(&experiment.points[*p])).collect();
        if found.is_empty() {
            return Err(Problem::Wrong(format!("\"{}\" was run at no such point", reference.path)));
        }
        Ok((found, selected.iter().any(|(_, wanted)| wanted.is_none())))
    }
}

//! The cases of an expectation: one for each kernel and point that it is asked of, judged.

use super::{CompareScope, Results};
use crate::experiment::{Bound, Expectation, Published};
use crate::expr::{Expr, Problem, Selector, Value, eval, eval_number};
use crate::file::{Kind, Relation};
use crate::judge::{Judged, Required, Sample, judge};
use crate::points::Point;
use crate::scalar::Scalar;
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
    /// The least and the greatest over the seeds, where several were run.
    pub range: Option<[f64; 2]>,
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
    /// What the simulation has in its place, where ours is a real kernel's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Beside>,
    /// How far inside its bound, in units of the bound.
    #[serde(skip)]
    pub slack: f64,
    /// Whether the range over the seeds decided.
    #[serde(skip)]
    pub by_range: bool,
}

/// The simulation of a case that a real kernel was judged by.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// The simulation's figure (the mean over the seeds).
    pub measured: Option<f64>,
    /// The least and the greatest over the seeds, where several were run.
    pub range: Option<[f64; 2]>,
    /// The verdict that the simulation has.
    pub verdict: Verdict,
    /// How far the figure is from the real kernel's, as a part of that.
    pub off: Option<f64>,
    /// Whether it lies between the least and the greatest of the real kernel's runs.
    pub within_scatter: bool,
}

impl Beside {
    /// The simulation of a case beside the real kernel's.
    #[must_use]
    pub fn new(real: &Case, simulated: &Case) -> Self {
        let both = real.measured.zip(simulated.measured);
        let off = both.and_then(|(real, simulated)| match simulated - real {
            0.0 => Some(0.0),
            difference => (real != 0.0).then(|| difference / real.abs()),
        });
        let within = |x: f64| real.range.is_some_and(|[low, high]| low <= x && x <= high);
        Self {
            measured: simulated.measured,
            range: simulated.range,
            verdict: simulated.verdict,
            off,
            within_scatter: simulated.measured.is_some_and(within),
        }
    }
}

/// The figures of the seeds, and why one has none.
#[derive(Default)]
struct Samples {
    samples: Vec<Sample>,
    undefined: Option<String>,
    not_run: Option<String>,
}

/// Where an expectation is asked: a point, and the row of the table that the case is of.
struct Place {
    point: Point,
    row: Option<usize>,
    label: String,
}

impl Case {
    /// The kernel and the parameters that it is of.
    #[must_use]
    pub fn place(&self) -> String {
        let kernel = self.kernel.iter().map(String::as_str);
        kernel.chain((!self.at.is_empty()).then_some(self.at.as_str())).collect::<Vec<_>>().join(", ")
    }

    /// `measured 3.04 (2.9 to 3.2 over 5 seeds); required 9.5 to 10.5 (linux-6.12, n=3)`; `place` stands in for a
    /// kernel that the expectation names itself.
    #[must_use]
    pub fn finding(&self, place: &str) -> String {
        let mut text = self.measured.map_or_else(|| "no value".to_owned(), |x| format!("measured {}", number(x)));
        if let (Some([low, high]), true) = (self.range, self.by_range) {
            if low < high {
                let _ = write!(text, " ({} to {} over {} seeds)", number(low), number(high), self.seeds);
            }
        } else if let Some([low, high]) = self.interval {
            let _ = write!(text, " (95% interval {} to {}, {} seeds)", number(low), number(high), self.seeds);
        }
        if let Some(required) = self.required {
            let _ = write!(text, "; required {required}");
        }
        if let (Some([low, mean, high]), false) = (self.difference, self.by_range) {
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
        if expectation.file.skip.is_some() || expectation.left_out.is_some() {
            return Ok(Vec::new());
        }
        let path = format!("expectations[{index}]");
        let mut cases = Vec::new();
        for kernel in self.kernels(expectation) {
            for place in self.places(expectation).map_err(|what| self.experiment.document.error(&path, what))? {
                let case = self.case(expectation, kernel, &place, deterministic);
                cases.push(case.map_err(|what| self.experiment.document.error(&path, what))?);
            }
        }
        Ok(cases)
    }

    /// Where it is asked: at each point, or for each figure of its table's column.
    fn places(&self, expectation: &Expectation) -> Result<Vec<Place>, String> {
        let at_point = |point: Point| Place { label: point.label(), point, row: None };
        let Some((table, column)) = expectation.cells else {
            return Ok(self.points(expectation).into_iter().map(at_point).collect());
        };
        let points = self.points(expectation);
        let mut places: Vec<Place> = Vec::new();
        for row in self.rows_asked(expectation, table, column) {
            let own = self.row_point(table, row);
            let fits = |p: &&Point| p.0.iter().all(|(name, value)| own.0.get(name).is_none_or(|cell| cell == value));
            let mut found = points.iter().filter(fits).peekable();
            if found.peek().is_none() && self.experiment.narrowed.is_empty() {
                let what = format!("the row {} of the table is not run", own.label());
                return Err(format!("{what}; add its values to the sweep, or write \"-\" for its figure"));
            }
            for point in found {
                let point = Point(own.0.clone().into_iter().chain(point.0.clone()).collect());
                let again = places.iter().filter(|place| place.point == point).count();
                let label =
                    if again > 0 { format!("{} (again, row {})", point.label(), row + 1) } else { point.label() };
                places.push(Place { point, row: Some(row), label });
            }
        }
        Ok(places)
    }

    /// The rows of a table that have a figure in the column and whose values are among those asked for.
    fn rows_asked(&self, expectation: &Expectation, table: usize, column: usize) -> Vec<usize> {
        let file = &self.experiment.file.tables[table];
        let asked = |row: &Vec<Scalar>| {
            let cells = file.columns.iter().zip(row);
            cells.into_iter().all(|(name, cell)| expectation.file.at.get(name).is_none_or(|all| all.contains(cell)))
        };
        let wanted = |r: &usize| file.rows[*r][column].number().is_some() && asked(&file.rows[*r]);
        (0..file.rows.len()).filter(wanted).collect()
    }

    /// The parameters that a row of a table gives values to.
    pub(crate) fn row_point(&self, table: usize, row: usize) -> Point {
        let file = &self.experiment.file.tables[table];
        let cells = file.columns.iter().zip(&file.rows[row]);
        let known = |(name, _): &(&String, &Scalar)| self.experiment.file.sweep.contains_key(*name);
        Point(cells.filter(known).map(|(name, cell)| (name.clone(), cell.clone())).collect())
    }

    /// The kernels that it is asked of; one `None` where every metric in it names its own.
    fn kernels(&self, expectation: &Expectation) -> Vec<Option<usize>> {
        let mut free = false;
        for expr in expectation.expressions() {
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
        let free = self.free_parameters(expectation.expressions());
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
        place: &Place,
        deterministic: bool,
    ) -> Result<Case, String> {
        let published = self.published(expectation, kernel, place);
        let figure = published.as_ref().and_then(serde_json::Value::as_f64);
        let Samples { samples, mut undefined, not_run } = self.samples(expectation, kernel, &place.point, figure)?;
        let relation = match (expectation.relation, figure, samples.first()) {
            (Relation::AsPublished, Some(figure), Some(sample)) => side(figure, sample.bound),
            (Relation::AsPublished, None, _) => {
                undefined = Some("the published figure has no value here".to_owned());
                Relation::Equal
            }
            (relation, ..) => relation,
        };
        let judged = judge(relation, expectation.margin, &samples, deterministic);
        let (verdict, reason) = match (not_run, undefined) {
            (Some(why), _) => (Verdict::Skipped, Some(why)),
            (None, Some(why)) => (Verdict::Undecided, Some(why)),
            (None, None) => {
                let told = judged.verdict == Verdict::Undecided || expectation.file.seed_dependent.is_some();
                let scatter = told.then(|| scatter(&samples, &judged, deterministic));
                (expectation.judged(&judged, samples.len()), scatter)
            }
        };
        let of = |get: fn(&Sample) -> f64| {
            let figures: Vec<f64> = samples.iter().map(get).collect();
            (!figures.is_empty()).then(|| Interval::of(&figures))
        };
        let several = samples.len() > 1;
        let ends = |s: &[Sample]| {
            s.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[l, h], s| [l.min(s.value), h.max(s.value)])
        };
        let varies = samples.windows(2).any(|pair| pair[0].bound != pair[1].bound);
        // The mean of equal numbers may differ from them in its last digit.
        let bound = if varies { of(|s| s.bound).map(|i| i.mean) } else { samples.first().map(|s| s.bound) };
        Ok(Case {
            kernel: kernel.map(|k| self.experiment.kernel_label(k).to_owned()),
            at: place.label.clone(),
            measured: of(|s| s.value).map(|i| i.mean),
            interval: of(|s| s.value).filter(|_| several).map(|i| [i.low, i.high]),
            range: several.then(|| ends(&samples)),
            seeds: samples.len(),
            bound,
            required: bound.map(|bound| Required::new(relation, bound, expectation.margin.of(bound))),
            difference: of(|s| s.value - s.bound).filter(|_| varies).map(|i| [i.low, i.mean, i.high]),
            published,
            verdict,
            reason,
            simulated: None,
            slack: judged.slack,
            by_range: deterministic,
        })
    }

    /// The value and the bound of each seed that has both.
    fn samples(
        &self,
        expectation: &Expectation,
        kernel: Option<usize>,
        point: &Point,
        figure: Option<f64>,
    ) -> Result<Samples, String> {
        let mut found = Samples::default();
        for seed in 0..self.experiment.file.seeds.len() {
            let scope = CompareScope { results: self, kernel, point, seed };
            let bound = || match &expectation.bound {
                Bound::Computed(expr) => eval_number(expr, &scope),
                Bound::Published => figure.ok_or_else(|| Problem::Undefined("nothing was published here".into())),
            };
            let both = eval_number(&expectation.metric, &scope).and_then(|value| Ok(Sample { value, bound: bound()? }));
            match both {
                Ok(sample) => found.samples.push(sample),
                Err(Problem::Undefined(why)) => found.undefined = Some(why),
                Err(Problem::NotRun(why)) => found.not_run = Some(why),
                Err(Problem::Wrong(what)) => return Err(what),
            }
        }
        Ok(found)
    }

    fn published(&self, expectation: &Expectation, kernel: Option<usize>, place: &Place) -> Option<serde_json::Value> {
        let point = &place.point;
        match &expectation.published {
            Published::Nothing => None,
            Published::Cell => {
                let (table, column) = expectation.cells?;
                serde_json::to_value(&self.experiment.file.tables[table].rows[place.row?][column]).ok()
            }
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

impl Expectation {
    /// The verdict on a case, given that of its figures. What holds for some seeds only does not hold.
    fn judged(&self, &Judged { verdict, holds, .. }: &Judged, seeds: usize) -> Verdict {
        if self.file.seed_dependent.is_some() && !self.stands_in {
            let settled = seeds >= SETTLED && (holds == 0 || holds == seeds);
            return if settled { Verdict::Fail } else { Verdict::KnownDifference };
        }
        match (self.file.kind, &self.file.known_difference, verdict) {
            (Some(Kind::Calibration), ..) => Verdict::Calibration,
            (_, Some(_), Verdict::Fail | Verdict::Undecided) => Verdict::KnownDifference,
            (_, Some(_), Verdict::Pass) if !self.stands_in => Verdict::Fail,
            (.., verdict) => verdict,
        }
    }
}

/// With so many seeds, what depends on the seed both holds and does not hold.
const SETTLED: usize = 20;

/// The relation that has ours on the published figure's side of the bound.
fn side(figure: f64, bound: f64) -> Relation {
    if figure < bound {
        Relation::Less
    } else if figure > bound {
        Relation::More
    } else {
        Relation::Equal
    }
}

/// Why runs do not decide.
fn scatter(samples: &[Sample], judged: &Judged, deterministic: bool) -> String {
    if deterministic {
        return format!("it holds for {} of {} seeds", judged.holds, samples.len());
    }
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

//! An experiment file read and checked: expressions parsed, names known, sizes bounded.

mod check;
mod expectation;
mod expressions;
mod heatmaps;
mod margin;
mod names;
mod selection;
mod stand_in;

pub use margin::Margin;
pub use selection::Selection;

pub use names::Names;

use crate::expr::Expr;
use crate::file::{ChartFile, ExpectationFile, ExperimentFile, Relation};
use crate::points::{self, Point};
use crate::scalar::Scalar;
use crate::tables::Tables;
use crate::verdict::Verdict;
use check::Check;
use schedlab_base::{Nanos, Result, parse_duration};
use schedlab_machine::tomltext::TomlText;
use schedlab_measure::heatmap::What;
use std::collections::BTreeMap;
use std::path::Path;

/// An experiment, ready to be planned.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// As it is written.
    pub file: ExperimentFile,
    /// Its text, for messages.
    pub(crate) document: TomlText,
    /// The sweep's points.
    pub(crate) points: Vec<Point>,
    /// The width of the windows, where one is asked for.
    pub(crate) window: Option<Nanos>,
    /// The metrics by name.
    pub(crate) metrics: BTreeMap<String, Expr>,
    /// The expectations, in order.
    pub(crate) expectations: Vec<Expectation>,
    /// The charts, in order.
    pub(crate) charts: Vec<Chart>,
    /// The heat maps, in order.
    pub(crate) heatmaps: Vec<HeatmapPlan>,
    /// The tables.
    pub(crate) tables: Tables,
    /// For each table, by column: the expression that is ours.
    pub(crate) ours: Ours,
    /// The parameters of which a selection has left out values.
    pub(crate) narrowed: Vec<String>,
}

/// For each table, by column: the expression that is ours.
pub(crate) type Ours = Vec<BTreeMap<usize, Expr>>;

/// An expectation's expressions.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// As it is written.
    pub file: ExpectationFile,
    /// What is expected, as reports write it.
    pub text: String,
    /// The table and the column whose figures are its cases.
    pub cells: Option<(usize, usize)>,
    /// What is judged.
    pub metric: Expr,
    /// How it must stand to the bound.
    pub relation: Relation,
    /// Against what.
    pub bound: Bound,
    /// What is allowed beyond.
    pub margin: Margin,
    /// What was published.
    pub published: Published,
    /// It is asked of a kernel that stands in for another: a known difference may then be there or not.
    pub stands_in: bool,
    /// Why it is not asked, and the verdict that it has instead.
    pub left_out: Option<(Verdict, String)>,
}

/// What a figure is judged against.
#[derive(Clone, Debug)]
pub enum Bound {
    /// An expression.
    Computed(Expr),
    /// What was published.
    Published,
}

/// What was published for a figure.
#[derive(Clone, Debug)]
pub enum Published {
    /// Nothing.
    Nothing,
    /// A number or a text.
    Plain(Scalar),
    /// Where to find it.
    Computed(Expr),
    /// The table's cell.
    Cell,
}

/// A chart's expressions.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The y axis.
    pub y: Option<Expr>,
    /// Half the length of the error bars.
    pub error: Option<Expr>,
    /// Figures side by side, each with what was published.
    pub groups: Vec<(Expr, Option<Expr>)>,
    /// A value for each task, and its place along the x axis.
    pub tasks: Option<(Expr, Option<Expr>)>,
    /// Published values: label and expression.
    pub published: Vec<(String, Expr)>,
}

/// What a heat map is drawn of.
#[derive(Clone, Debug)]
pub struct HeatmapPlan {
    /// What it shows.
    pub what: What,
    /// The part of the run: from so long after its start,
    pub from: Nanos,
    /// until so long after it; to its end where `None`.
    pub to: Option<Nanos>,
    /// Index into the experiment's points.
    pub point: usize,
    /// Indices into the file's kernels.
    pub kernels: Vec<usize>,
}

impl Experiment {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// When it cannot be read, or anything in it is wrong; file, line and key are named.
    pub fn open(path: &Path) -> Result<Self> {
        Self::parse(TomlText::open(path)?)
    }

    /// Reads and checks a text.
    ///
    /// # Errors
    /// As [`Experiment::open`].
    pub fn parse(document: TomlText) -> Result<Self> {
        let file: ExperimentFile = document.read()?;
        if file.test.is_some() {
            return Err(document
                .error("test", "is a test: which kernel is tested is said beside it")
                .mend(format!("schedlab test {} --on sim:linux-6.12", document.file.display())));
        }
        Self::of(file, document)
    }

    /// Checks a file that was read; `document` is its text, for messages.
    ///
    /// # Errors
    /// As [`Experiment::open`].
    pub(crate) fn of(file: ExperimentFile, document: TomlText) -> Result<Self> {
        let check = Check { file: &file, document: &document };
        check.head()?;
        check.sweep()?;
        check.kernels()?;
        check.tables()?;
        let tables = Tables(file.tables.clone());
        check.points_table()?;
        let metrics = check.metrics(&tables)?;
        check.terms(&tables)?;
        let ours = check.ours(&tables)?;
        let expectations = check.expectations(&tables, &ours)?;
        let charts = check.charts(&tables)?;
        let window = file.window.as_deref().map(parse_duration).transpose().map_err(|e| check.at("window", &e))?;
        check.window(window)?;
        let points = points::of(&file.sweep, file.points_table());
        if points.is_empty() {
            return check.wrong(
                "points",
                "leaves none of the sweep's combinations",
                "name a table with the parameters",
            );
        }
        let heatmaps = check.heatmaps(&points)?;
        let narrowed = Vec::new();
        Ok(Self { points, window, metrics, expectations, charts, heatmaps, tables, ours, narrowed, document, file })
    }

    /// Whether a metric measures what a heat map shows.
    pub(crate) fn measures_heat(&self) -> bool {
        let mut measures = false;
        self.metrics.values().for_each(|expr| expr.references(&mut |r| measures |= r.path == "heat"));
        measures
    }

    /// Whether a metric measures CPU time that was wasted.
    pub(crate) fn measures_waste(&self) -> bool {
        let mut measures = false;
        let mut look = |path: &str| measures |= crate::measures::find(path).is_some_and(|m| m.is_of_waste());
        self.metrics.values().for_each(|expr| expr.references(&mut |r| look(&r.path)));
        measures
    }

    /// Whether it is asked of a kernel that stands in for its own.
    pub(crate) fn stands_in(&self) -> bool {
        self.expectations.iter().any(|expectation| expectation.stands_in)
    }

    /// The point whose runs the report draws in full.
    pub(crate) fn shown_point(&self) -> usize {
        shown(&self.points, &[&self.file.show])
    }

    /// The values along a chart's parameter, each with its point; one without a value where it has no parameter.
    pub(crate) fn along(&self, chart: &ChartFile) -> Vec<(Option<&Scalar>, Point)> {
        let mut base = self.points[self.shown_point()].clone();
        for (name, values) in chart.at.iter().filter(|(name, _)| chart.x.as_ref() != Some(name)) {
            base.0.insert(name.clone(), values[0].clone());
        }
        let Some(x) = &chart.x else { return vec![(None, base)] };
        let place = |value| {
            let mut point = base.clone();
            point.0.insert(x.clone(), Scalar::clone(value));
            (Some(value), point)
        };
        self.file.sweep[x].iter().map(place).filter(|(_, point)| self.draws(chart, point)).collect()
    }

    /// Whether a chart is drawn at a point: where it says, along its parameter, or at the values of the shown point.
    pub(crate) fn draws(&self, chart: &ChartFile, point: &Point) -> bool {
        let shown = &self.points[self.shown_point()].0;
        point.0.iter().all(|(name, value)| match chart.at.get(name) {
            Some(values) => values.contains(value),
            None => chart.x.as_ref() == Some(name) || shown.get(name) == Some(value),
        })
    }

    /// How reports call the kernel.
    pub(crate) fn kernel_label(&self, kernel: usize) -> &str {
        let kernel = &self.file.kernels[kernel];
        kernel.label.as_deref().unwrap_or(&kernel.kernel)
    }
}

/// The first point that has the values of all of these; a later one's count where they differ.
fn shown(points: &[Point], values: &[&BTreeMap<String, Scalar>]) -> usize {
    let wanted: BTreeMap<_, _> = values.iter().copied().flatten().collect();
    let fits = |p: &Point| wanted.iter().all(|(name, value)| p.0.get(*name) == Some(value));
    points.iter().position(fits).unwrap_or(0)
}

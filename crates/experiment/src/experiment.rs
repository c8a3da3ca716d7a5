//! An experiment file read and checked: expressions parsed, names known, sizes bounded.

use crate::expr::{Expr, parse};
use crate::file::{ExpectationFile, ExperimentFile, HeatmapChoice, HeatmapFile};
use crate::judge::Margin;
use crate::names::{Names, known};
use crate::points::{self, Point};
use crate::report::chart::heatmap::COLUMNS;
use crate::scalar::Scalar;
use crate::tables::Tables;
use schedlab_base::{Error, Nanos, Result, parse_duration};
use schedlab_machine::tomltext::TomlText;
use schedlab_measure::heatmap::{What, Window};
use schedlab_measure::series::MOST_FIXED;
use std::collections::BTreeMap;
use std::path::Path;

/// The most runs of one experiment.
const MOST_RUNS: usize = 20_000;
/// The most heat maps of one experiment, each a picture a kernel.
const MOST_HEATMAPS: usize = 32;

/// An experiment, ready to be planned.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// As it is written.
    pub file: ExperimentFile,
    /// Its text, for messages.
    pub document: TomlText,
    /// The sweep's points.
    pub points: Vec<Point>,
    /// The width of the windows, where one is asked for.
    pub window: Option<Nanos>,
    /// The metrics by name.
    pub metrics: BTreeMap<String, Expr>,
    /// The expectations, in order.
    pub expectations: Vec<Expectation>,
    /// The charts, in order.
    pub charts: Vec<Chart>,
    /// The heat maps, in order.
    pub heatmaps: Vec<HeatmapPlan>,
    /// The tables.
    pub tables: Tables,
}

/// An expectation's expressions.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// As it is written.
    pub file: ExpectationFile,
    /// What is judged.
    pub metric: Expr,
    /// Against what.
    pub bound: Expr,
    /// What is allowed beyond.
    pub margin: Margin,
    /// What was published.
    pub published: Published,
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
}

/// A chart's expressions.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The y axis.
    pub y: Expr,
    /// Published values: label and expression.
    pub published: Vec<(String, Expr)>,
}

/// What a heat map is drawn of.
#[derive(Clone, Debug)]
pub struct HeatmapPlan {
    /// What it shows.
    pub what: What,
    /// The part of the run.
    pub window: Window,
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
        let check = Check { file: &file, document: &document };
        check.head()?;
        check.sweep()?;
        check.kernels()?;
        check.tables()?;
        let tables = Tables(file.tables.clone());
        let metrics = check.metrics(&tables)?;
        let expectations = check.expectations(&tables)?;
        let charts = check.charts(&tables)?;
        let window = file.window.as_deref().map(parse_duration).transpose().map_err(|e| check.at("window", &e))?;
        check.window(window)?;
        let points = points::points(&file.sweep);
        let heatmaps = check.heatmaps(&points)?;
        Ok(Self { points, window, metrics, expectations, charts, heatmaps, tables, document, file })
    }

    /// The point whose runs the report draws in full.
    #[must_use]
    pub fn shown_point(&self) -> usize {
        shown(&self.points, &[&self.file.show])
    }

    /// How reports call the kernel.
    #[must_use]
    pub fn kernel_label(&self, kernel: usize) -> &str {
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

struct Check<'a> {
    file: &'a ExperimentFile,
    document: &'a TomlText,
}

impl Check<'_> {
    fn wrong<T>(&self, path: &str, what: impl Into<String>, mend: &str) -> Result<T> {
        Err(self.document.error(path, what).mend(mend))
    }

    /// An error from elsewhere at this place.
    fn at(&self, path: &str, error: &Error) -> Error {
        self.document.error(path, error.to_string())
    }

    fn head(&self) -> Result<()> {
        let id = &self.file.id;
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
        if id.is_empty() || id.len() > 64 || !id.chars().all(fits) {
            return self.wrong("id", format!("\"{id}\" is no id"), "letters, digits, '-', '_', '.'; 64 at most");
        }
        if self.file.seeds.is_empty() {
            return self.wrong("seeds", "no seed, no run", "write [1]");
        }
        let given = [&self.file.workload.preset, &self.file.workload.file, &self.file.workload.inline];
        if given.iter().filter(|w| w.is_some()).count() != 1 {
            return self.wrong("workload", "is not one workload", "give exactly one of preset, file, inline");
        }
        Ok(())
    }

    fn sweep(&self) -> Result<()> {
        for (name, values) in &self.file.sweep {
            let path = format!("sweep.{name}");
            if !is_name(name) {
                return self.wrong(&path, format!("\"{name}\" is no name"), "letters, digits and '_'");
            }
            if values.is_empty() {
                return self.wrong(&path, "has no value", "give at least one");
            }
            if (1..values.len()).any(|i| values[..i].contains(&values[i])) {
                return self.wrong(&path, "has a value twice", "give each once");
            }
        }
        let runs = points::count(&self.file.sweep)
            .saturating_mul(self.file.kernels.len())
            .saturating_mul(self.file.seeds.len());
        if runs > MOST_RUNS {
            return self.wrong("sweep", format!("{runs} runs are too many"), "at most 20000: values x kernels x seeds");
        }
        self.values("show", &self.file.show)
    }

    /// One value of each of some parameters.
    fn values(&self, path: &str, values: &BTreeMap<String, Scalar>) -> Result<()> {
        for (name, value) in values {
            let path = format!("{path}.{name}");
            self.parameter(&path, name)?;
            if !self.file.sweep[name].contains(value) {
                return self.wrong(&path, format!("{value} is not among the sweep's"), "take one that is");
            }
        }
        Ok(())
    }

    fn parameter(&self, path: &str, name: &str) -> Result<()> {
        self.known(path, name, "parameter of the sweep", self.file.sweep.keys().map(String::as_str))
    }

    fn known<'n>(&self, path: &str, name: &str, noun: &str, all: impl Iterator<Item = &'n str> + Clone) -> Result<()> {
        known(name, noun, all).map_err(|(what, mend)| self.slip(path, what, mend))
    }

    fn slip(&self, path: &str, what: String, mend: Option<String>) -> Error {
        let error = self.document.error(path, what);
        match mend {
            Some(mend) => error.mend(mend),
            None => error,
        }
    }

    fn kernels(&self) -> Result<()> {
        let kernels = &self.file.kernels;
        if kernels.is_empty() {
            return self.wrong("kernels", "no kernel, no run", "give at least one [[kernels]]");
        }
        for (i, kernel) in kernels.iter().enumerate() {
            let path = format!("kernels[{i}].name");
            if !is_name(&kernel.name) {
                return self.wrong(&path, format!("\"{}\" is no name", kernel.name), "letters, digits and '_'");
            }
            if kernels[..i].iter().any(|k| k.name == kernel.name) {
                return self.wrong(&path, format!("\"{}\" is there twice", kernel.name), "give each its own name");
            }
        }
        Ok(())
    }

    fn tables(&self) -> Result<()> {
        for (i, table) in self.file.tables.iter().enumerate() {
            let path = format!("tables[{i}]");
            if !is_name(&table.name) || self.file.tables[..i].iter().any(|t| t.name == table.name) {
                let what = format!("\"{}\" is no name, or there twice", table.name);
                return self.wrong(&format!("{path}.name"), what, "letters, digits and '_'");
            }
            if let Some(column) = table.columns.iter().find(|c| !is_name(c)) {
                let what = format!("\"{column}\" is no name");
                return self.wrong(&format!("{path}.columns"), what, "letters, digits and '_'");
            }
            if let Some(row) = table.rows.iter().position(|r| r.len() != table.columns.len()) {
                let what = format!("{} cells for {} columns", table.rows[row].len(), table.columns.len());
                return self.wrong(&format!("{path}.rows[{row}]"), what, "give each column its cell");
            }
        }
        Ok(())
    }

    fn expression(&self, path: &str, text: &str, names: &Names) -> Result<Expr> {
        let expr = parse(text).map_err(|e| self.at(path, &e))?;
        names.check(&expr).map_err(|(what, mend)| self.slip(path, what, mend))?;
        Ok(expr)
    }

    fn names<'n>(&'n self, tables: &'n Tables, metrics: bool) -> Names<'n> {
        Names {
            parameters: self.file.sweep.keys().map(String::as_str).collect(),
            metrics: metrics.then(|| self.file.metrics.keys().map(String::as_str).collect()),
            kernels: self.file.kernels.iter().map(|k| k.name.as_str()).collect(),
            tables,
        }
    }

    fn metrics(&self, tables: &Tables) -> Result<BTreeMap<String, Expr>> {
        let names = self.names(tables, false);
        let mut metrics = BTreeMap::new();
        for (name, metric) in &self.file.metrics {
            let path = format!("metrics.{name}");
            if !is_name(name) || self.file.sweep.contains_key(name) {
                return self.wrong(
                    &path,
                    format!("\"{name}\" cannot be its name"),
                    "letters, digits, '_'; no parameter's",
                );
            }
            metrics.insert(name.clone(), self.expression(&format!("{path}.value"), &metric.value, &names)?);
        }
        Ok(metrics)
    }

    fn expectations(&self, tables: &Tables) -> Result<Vec<Expectation>> {
        let names = self.names(tables, true);
        let one = |(i, file): (usize, &ExpectationFile)| self.expectation(&format!("expectations[{i}]"), file, &names);
        self.file.expectations.iter().enumerate().map(one).collect()
    }

    fn expectation(&self, path: &str, file: &ExpectationFile, names: &Names) -> Result<Expectation> {
        for kernel in &file.kernels {
            self.known(&format!("{path}.kernels"), kernel, "kernel of this file", names.kernels.iter().copied())?;
        }
        for (name, values) in &file.at {
            let place = format!("{path}.at");
            self.parameter(&place, name)?;
            if let Some(value) = values.iter().find(|v| !self.file.sweep[name].contains(v)) {
                return self.wrong(&place, format!("{name} = {value} is not among the sweep's"), "take one that is");
            }
        }
        let bound = match &file.bound {
            Scalar::Text(text) => self.expression(&format!("{path}.bound"), text, names)?,
            number => Expr::Number(number.number().unwrap_or_default()),
        };
        let margin = file.margin.as_ref().map_or(Ok(Margin::Absolute(0.0)), Margin::parse);
        let published = match &file.published {
            None => Published::Nothing,
            Some(Scalar::Text(text)) if text.starts_with('=') => {
                Published::Computed(self.expression(&format!("{path}.published"), &text[1..], names)?)
            }
            Some(plain) => Published::Plain(plain.clone()),
        };
        Ok(Expectation {
            metric: self.expression(&format!("{path}.metric"), &file.metric, names)?,
            bound,
            margin: margin
                .or_else(|what| self.wrong(&format!("{path}.margin"), what, "\"2%\", or an amount such as 0.5"))?,
            published,
            file: file.clone(),
        })
    }

    fn charts(&self, tables: &Tables) -> Result<Vec<Chart>> {
        let names = self.names(tables, true);
        let mut charts = Vec::new();
        for (i, chart) in self.file.charts.iter().enumerate() {
            let path = format!("charts[{i}]");
            self.parameter(&format!("{path}.x"), &chart.x)?;
            for kernel in &chart.kernels {
                self.known(&format!("{path}.kernels"), kernel, "kernel of this file", names.kernels.iter().copied())?;
            }
            let y = self.expression(&format!("{path}.y"), &chart.y, &names)?;
            let published = chart
                .published
                .iter()
                .map(|(label, text)| Ok((label.clone(), self.expression(&format!("{path}.published"), text, &names)?)))
                .collect::<Result<_>>()?;
            charts.push(Chart { y, published });
        }
        Ok(charts)
    }

    fn heatmaps(&self, points: &[Point]) -> Result<Vec<HeatmapPlan>> {
        if self.file.heatmaps.len() > MOST_HEATMAPS {
            return self.wrong("heatmaps", "are too many", "at most 32");
        }
        let one = |(i, file)| self.heatmap(&format!("heatmaps[{i}]"), file, points);
        self.file.heatmaps.iter().enumerate().map(one).collect()
    }

    fn heatmap(&self, path: &str, file: &HeatmapFile, points: &[Point]) -> Result<HeatmapPlan> {
        let kernels = &self.file.kernels;
        for kernel in &file.kernels {
            let names = kernels.iter().map(|k| k.name.as_str());
            self.known(&format!("{path}.kernels"), kernel, "kernel of this file", names)?;
        }
        self.values(&format!("{path}.at"), &file.at)?;
        let time = |key: &str, text: &Option<String>| {
            let path = format!("{path}.{key}");
            text.as_deref().map(parse_duration).transpose().map_err(|e| self.at(&path, &e))
        };
        let (from, to) = (time("from", &file.from)?.unwrap_or(0), time("to", &file.to)?);
        if to.is_some_and(|to| to <= from) {
            return self.wrong(&format!("{path}.to"), "ends before it begins", "give a \"to\" after \"from\"");
        }
        let what = match (file.what, file.cpu) {
            (HeatmapChoice::Considered, by) => What::Considered { by, why: Vec::new() },
            (_, Some(_)) => {
                let mend = "leave it out, or draw what = \"considered\"";
                return self.wrong(&format!("{path}.cpu"), "chooses who looked at CPUs", mend);
            }
            (HeatmapChoice::Queue, None) => What::Queue,
            (HeatmapChoice::Load, None) => What::Load,
            (HeatmapChoice::Memory, None) => What::Memory,
        };
        let asked = |k: &usize| file.kernels.is_empty() || file.kernels.contains(&kernels[*k].name);
        Ok(HeatmapPlan {
            what,
            window: Window { from, to, columns: COLUMNS },
            point: shown(points, &[&self.file.show, &file.at]),
            kernels: (0..kernels.len()).filter(asked).collect(),
        })
    }

    fn window(&self, window: Option<Nanos>) -> Result<()> {
        let Some(window) = window else { return Ok(()) };
        if window == 0 {
            return self.wrong("window", "a window of no width", "write a width: 1s");
        }
        let duration = self.file.duration.as_deref().and_then(|d| parse_duration(d).ok());
        if duration.is_some_and(|d| d / window > MOST_FIXED) {
            return self.wrong("window", "makes too many windows", "at most 10000 in the duration");
        }
        Ok(())
    }
}

fn is_name(text: &str) -> bool {
    let starts = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.len() <= 64 && text.starts_with(starts) && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

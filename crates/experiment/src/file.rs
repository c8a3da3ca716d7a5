//! The experiment file as it is written: TOML, every key known, nothing computed yet.

mod expectation;
mod picture;
mod test;

pub use expectation::{ExpectationFile, Kind, Relation};
pub use picture::{ChartFile, ChartKind, HeatmapChoice, HeatmapFile};
pub use test::{KnownFile, Need, TestFile};

use crate::scalar::Scalar;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An experiment: what is run, what is measured, what was published and what is expected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "schedlab experiment")]
pub struct ExperimentFile {
    /// A short name, unique among the experiments: `cfs-17`.
    pub id: String,
    /// What it is about, in one line.
    pub title: String,
    /// Who ran it first, and where that is written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceFile>,
    /// Remarks that a reader needs: what was chosen, what is wrong in the source.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The machine: a preset, a shorthand such as `2x6`, or a machine file beside this one.
    pub machine: String,
    /// How long it runs, with its unit (`100s`); until every task has ended when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// One run a seed; `[1, 2, 3, 4, 5]` when left out. Where the second seed gives the same events as the first,
    /// nothing depends on the seed, and the others are not run.
    #[serde(default = "five_seeds")]
    pub seeds: Vec<u64>,
    /// `machine`: switches and wake-ups cost what the machine says; `none`: the bare algorithm.
    #[serde(default)]
    pub costs: CostsChoice,
    /// The windows of `run_s[window=k]` and of the charts over time, with unit; chosen to fit when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
    /// Parameters and their values: everything runs once for each combination. `{name}` in any text of `machine`,
    /// `duration`, `workload` and `set` stands for the value.
    #[serde(default)]
    pub sweep: BTreeMap<String, Vec<Scalar>>,
    /// A table: of the sweep's combinations only those are run that are in one of its rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub points: Option<String>,
    /// The parameter values whose runs the report draws in full; the first of each when left out.
    #[serde(default)]
    pub show: BTreeMap<String, Scalar>,
    /// What runs.
    pub workload: WorkloadFile,
    /// The kernels that are put side by side. A test has none: `schedlab test` says which.
    #[serde(default)]
    pub kernels: Vec<KernelFile>,
    /// Makes it a test of the battery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<TestFile>,
    /// Figures by name, each computed for every run.
    #[serde(default)]
    pub metrics: BTreeMap<String, MetricFile>,
    /// Expressions over metrics by name, for expectations, charts and other terms to name.
    #[serde(default)]
    pub terms: BTreeMap<String, String>,
    /// Published (or reference) tables.
    #[serde(default)]
    pub tables: Vec<TableFile>,
    /// What must hold.
    #[serde(default)]
    pub expectations: Vec<ExpectationFile>,
    /// Charts for the report, over a parameter of the sweep.
    #[serde(default)]
    pub charts: Vec<ChartFile>,
    /// Heat maps for the report, CPUs by time.
    #[serde(default)]
    pub heatmaps: Vec<HeatmapFile>,
}

impl ExperimentFile {
    /// The table whose rows are the combinations that are run, where there is one.
    pub(crate) fn points_table(&self) -> Option<&TableFile> {
        self.points.as_ref().and_then(|name| self.tables.iter().find(|table| table.name == *name))
    }
}

fn five_seeds() -> Vec<u64> {
    vec![1, 2, 3, 4, 5]
}

/// Where an experiment was published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceFile {
    /// The work: author or kind, title, year.
    pub work: String,
    /// The figure, table or section in it.
    pub place: String,
    /// The machine and kernel that the authors had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// What it reports or claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
}

/// Whether switches and wake-ups take time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CostsChoice {
    /// What the machine's file says.
    #[default]
    Machine,
    /// Nothing: the bare algorithm.
    None,
}

/// The workload: exactly one of its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadFile {
    /// A preset with its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// A file in rt-app's JSON, beside this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// rt-app's JSON itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline: Option<String>,
    /// Where its tasks run that are bound nowhere, in place of its own `x-placement`: `scheduler`, `cpu` or `numa`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placement: Option<String>,
}

/// A kernel and its settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KernelFile {
    /// The name by which this file speaks of it (`variance@cfs`); letters, digits, `_`.
    pub name: String,
    /// The profile: `linux-2.6.32`, ...
    pub kernel: String,
    /// How reports call it; the profile's name when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Tunables, with the value that the running system would have after scaling.
    #[serde(default)]
    pub set: BTreeMap<String, Scalar>,
    /// How long it runs, in place of the file's `duration`: a kernel that the source did not run need not run as long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
}

/// A figure computed for each run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricFile {
    /// The expression over the run's measures: `var(run_s['hog-*'])`.
    pub value: String,
    /// What it is, for axes and tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

/// A table of numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableFile {
    /// The name by which expressions speak of it (`weights.weight[nice=0]`).
    pub name: String,
    /// What it shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The columns' names.
    pub columns: Vec<String>,
    /// The rows; a cell without a figure is a text, such as `"-"`.
    pub rows: Vec<Vec<Scalar>>,
    /// By column: the expression that is ours for its cells, with the row's parameters. The report puts it beside them.
    #[serde(default)]
    pub ours: BTreeMap<String, String>,
}

//! The charts and heat maps of the report, as they are written.

use crate::scalar::Scalar;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A chart: figures over a parameter of the sweep, side by side, or of each task of the runs that are shown; ours and
/// what was published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChartFile {
    /// What it shows.
    pub title: String,
    /// How it is drawn.
    #[serde(default)]
    pub kind: ChartKind,
    /// The parameter along the x axis; of bars, the groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x: Option<String>,
    /// The x axis's label; the parameter's name when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_label: Option<String>,
    /// The expression along the y axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<String>,
    /// The y axis's label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_label: Option<String>,
    /// Of lines: the expression that is half the length of the error bars; without it they reach from the least to the
    /// greatest of the seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// In place of `x` and `y`: figures side by side; of `stacked` and `pie`, the parts.
    #[serde(default)]
    pub groups: Vec<GroupFile>,
    /// In place of `y`: an expression over the measures of a run with a value for each task, of the runs shown. Of
    /// `stacked`, with `x`: the parts, of the first seed's run at each value of the parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks: Option<String>,
    /// Of points: each task's place along the x axis, like `tasks`; its number when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tasks_x: Option<String>,
    /// The kernels drawn; all when left out.
    #[serde(default)]
    pub kernels: Vec<String>,
    /// The values of the parameter along the x axis that are drawn, all when left out; of the other parameters the one
    /// value at which it is drawn, those of `show` when left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub at: BTreeMap<String, Vec<Scalar>>,
    /// A logarithmic y axis.
    #[serde(default)]
    pub log: bool,
    /// Published values to lay under ours: label and expression.
    #[serde(default)]
    pub published: BTreeMap<String, String>,
}

/// How a chart is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChartKind {
    /// A line a kernel over a parameter.
    #[default]
    Lines,
    /// Bars in groups: one group for each value of the parameter, figure or task, one bar a kernel.
    Bars,
    /// One bar for each value of the parameter, the parts or the tasks on top of each other; one drawing a kernel.
    Stacked,
    /// The parts of a whole; one drawing a kernel, and one of what was published.
    Pie,
    /// A point for each task of the runs shown.
    Points,
    /// The share of each task of the runs shown in each window, on top of each other; one drawing a kernel.
    Shares,
}

/// A figure that stands beside others in a chart, or a part of a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupFile {
    /// What it is.
    pub label: String,
    /// The expression: a metric, or more.
    pub value: String,
    /// What was published: an expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
}

/// A heat map, CPUs by time: one picture a kernel, of the first seed's run at one point of the sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HeatmapFile {
    /// What it shows.
    pub title: String,
    /// `queue`: runnable tasks; `load`: their load; `memory` of each node; `considered`: CPUs that were looked at.
    #[serde(default)]
    pub what: HeatmapChoice,
    /// The kernels drawn; all when left out.
    #[serde(default)]
    pub kernels: Vec<String>,
    /// The parameter values of the run; those of `show` when left out.
    #[serde(default)]
    pub at: BTreeMap<String, Scalar>,
    /// From so long after the start, with unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Until so long after the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Of `considered`: what was looked at on behalf of this CPU only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
}

/// What a heat map shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HeatmapChoice {
    /// Runnable tasks, the running one included.
    #[default]
    Queue,
    /// Their load, in the scheduler's own unit.
    Load,
    /// Memory on each node.
    Memory,
    /// The CPUs that the scheduler looked at, by reason.
    Considered,
}

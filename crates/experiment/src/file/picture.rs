//! The charts and heat maps of the report, as they are written.

use crate::scalar::Scalar;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A chart over a parameter of the sweep: one line a kernel, and what was published.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChartFile {
    /// What it shows.
    pub title: String,
    /// The parameter along the x axis.
    pub x: String,
    /// The x axis's label; the parameter's name when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub x_label: Option<String>,
    /// The expression along the y axis.
    pub y: String,
    /// The y axis's label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y_label: Option<String>,
    /// The kernels drawn; all when left out.
    #[serde(default)]
    pub kernels: Vec<String>,
    /// A logarithmic y axis.
    #[serde(default)]
    pub log: bool,
    /// Published values to lay under ours: label and expression.
    #[serde(default)]
    pub published: BTreeMap<String, String>,
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

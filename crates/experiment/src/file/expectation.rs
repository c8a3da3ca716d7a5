//! What must hold, as it is written.

use crate::scalar::Scalar;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What must hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectationFile {
    /// The figure or table of the source that it answers to, or any other short name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figure: Option<String>,
    /// What it says, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// `number`: within a tolerance; `shape`: sign, order and rough factor; `calibration`: what was fitted to the
    /// published figure, which is shown and neither passes nor fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    /// The expression that is judged: a metric's name, or more. With `cells`, the table's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// A column of a table, `table.column`: each of its figures is a case, published beside the table's `ours`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<String>,
    /// The kernels that it is asked of; all when left out.
    #[serde(default)]
    pub kernels: Vec<String>,
    /// The parameter values (with `cells`, also the values of other columns) at which it is asked; all when left out.
    #[serde(default)]
    pub at: BTreeMap<String, Vec<Scalar>>,
    /// How the metric must stand to the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<Relation>,
    /// The bound: a number or an expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound: Option<Scalar>,
    /// In place of relation, bound and margin: how far ours may be from what was published, `"5%"` of it or an amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<Scalar>,
    /// What is allowed beyond the bound: `"2%"` of it, or an amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<Scalar>,
    /// What was published: a number, a text, or `=` and an expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<Scalar>,
    /// Why the bound is what it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Why a faithful model cannot meet it; it fails if it ever starts to hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_difference: Option<String>,
    /// Why it holds with some seeds and not with others; it fails if it turns out to hold, or not to hold, with each of
    /// at least 20.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed_dependent: Option<String>,
    /// Why it is not judged for now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<String>,
}

/// How firm a claim is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Depends on the algorithm alone: agreement within the tolerance.
    Number,
    /// Depends on their hardware too: sign, order, rough factor.
    Shape,
    /// Something was fitted to the figure, so that agreement proves nothing.
    Calibration,
}

/// How a metric must stand to its bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Relation {
    /// Less.
    #[serde(rename = "<")]
    Less,
    /// At most.
    #[serde(rename = "<=")]
    AtMost,
    /// Equal, within the margin.
    #[serde(rename = "==", alias = "=")]
    Equal,
    /// At least.
    #[serde(rename = ">=")]
    AtLeast,
    /// More.
    #[serde(rename = ">")]
    More,
    /// On the side of the bound on which the published figure lies.
    #[serde(rename = "as published")]
    AsPublished,
}

impl Relation {
    /// As it is written.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Equal => "==",
            Self::AtLeast => ">=",
            Self::More => ">",
            Self::AsPublished => "as published beside",
        }
    }
}

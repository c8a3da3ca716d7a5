//! The rows of a heat map: their names and the nodes that they belong to.

use super::{LEFT, RIGHT, TOP};
use crate::canvas::Canvas;
use crate::svg::Anchor;
use schedlab_base::CpuId;
use std::ops::Range;

/// Below this height, rows are not ruled and not each has its label.
const RULED: usize = 8;
/// The least distance of two labels.
const LABEL: usize = 11;

/// What a row stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// A CPU, or several of which this is the first, with the node that they are on.
    Cpu(CpuId, Option<u32>),
    /// A node.
    Node(u32),
}

impl Row {
    pub(super) fn name(self) -> String {
        match self {
            Self::Cpu(cpu, _) => format!("cpu {cpu}"),
            Self::Node(node) => format!("node {node}"),
        }
    }

    fn node(self) -> Option<u32> {
        match self {
            Self::Cpu(_, node) => node,
            Self::Node(node) => Some(node),
        }
    }
}

/// Labels, and rules between rows that are high enough; `height`: of a row.
pub fn names(canvas: &mut impl Canvas, rows: &[Row], height: usize) {
    let stride = LABEL.div_ceil(height).next_power_of_two();
    let class = if height < LABEL { "tick small" } else { "tick" };
    for band in bands(rows) {
        for at in band.clone() {
            let top = TOP + (at * height) as f64;
            if height >= RULED && at > 0 {
                canvas.line("row", (LEFT, top), (RIGHT, top));
            }
            if (at - band.start).is_multiple_of(stride) {
                let middle = top + height as f64 / 2.0;
                canvas.text(class, (LEFT - 7.0, middle + 4.0), Anchor::End, &rows[at].name());
            }
        }
    }
}

/// A line between nodes, and their names; none where each row is a node.
pub fn nodes(canvas: &mut impl Canvas, rows: &[Row], height: usize) {
    let bands = bands(rows);
    if bands.len() < 2 || matches!(rows[0], Row::Node(_)) {
        return;
    }
    for band in bands {
        let edge = |at: usize| TOP + (at * height) as f64;
        let (top, bottom) = (edge(band.start), edge(band.end));
        if band.start > 0 {
            canvas.line("gap", (LEFT, top), (RIGHT, top));
            canvas.line("node", (8.0, top), (RIGHT, top));
        }
        let Some(node) = rows[band.start].node() else { continue };
        let middle = (top + bottom) / 2.0;
        if bottom - top >= 50.0 {
            canvas.text_up("label", (22.0, middle), &format!("node {node}"));
        } else if bottom - top >= LABEL as f64 {
            canvas.text("tick small", (8.0, middle + 4.0), Anchor::Start, &format!("n{node}"));
        }
    }
}

/// The rows of each node.
fn bands(rows: &[Row]) -> Vec<Range<usize>> {
    let mut start = 0;
    let band = |rows: &[Row]| {
        let from = start;
        start += rows.len();
        from..start
    };
    rows.chunk_by(|a, b| a.node() == b.node()).map(band).collect()
}

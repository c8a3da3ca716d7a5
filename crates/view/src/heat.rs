//! Heat: a value of each CPU (or of a few together) in each bin of a tile.

use crate::arrow::stream;
use crate::index::Index;
use crate::overview::{Axis, means};
use crate::tile::{BINS, Place, apart};
use arrow_array::{ArrayRef, UInt16Array};
use schedlab_base::{CpuId, total};
use schedlab_measure::Heat;
use schedlab_measure::heatmap::{Cells, HeatRow};
use serde_json::json;
use std::sync::Arc;

/// A cell of which nothing is known.
const UNKNOWN: u16 = u16::MAX;

/// What the cells come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Runnable tasks.
    Queue,
    /// Their load.
    Load,
}

/// The cells of a tile, row by row; what is not known is not a number.
#[derive(Debug)]
struct Picture {
    cells: Vec<f32>,
}

impl Picture {
    fn new(rows: usize) -> Self {
        Self { cells: vec![0.0; rows * BINS as usize] }
    }

    fn cell(&mut self, row: usize, bin: usize, value: Option<f64>) {
        self.cells[row * BINS as usize + bin] = value.map_or(f32::NAN, |value| value as f32);
    }
}

/// The pictures one after the other; the highest value is the highest number that a cell can have.
fn finish(pictures: &[Picture], labels: &[String]) -> Vec<u8> {
    let all = || pictures.iter().flat_map(|picture| &picture.cells);
    let highest = all().copied().filter(|value| !value.is_nan()).fold(0.0, f32::max);
    let share = f32::from(UNKNOWN - 1) / highest;
    let cell = |value: &f32| match *value {
        value if value.is_nan() => UNKNOWN,
        value if value <= 0.0 => 0,
        value => (value * share).round().clamp(1.0, f32::from(UNKNOWN - 1)) as u16,
    };
    let cells = UInt16Array::from_iter_values(all().map(cell));
    let beside =
        [("highest", highest.to_string()), ("rows", labels.len().to_string()), ("labels", json!(labels).to_string())];
    stream(vec![("cell", Arc::new(cells) as ArrayRef)], &beside)
}

/// What stands beside a row of these CPUs.
fn label(cpus: &[CpuId]) -> String {
    match *cpus {
        [only] => format!("CPU {only}"),
        [first, .., last] => format!("CPUs {first}-{last}"),
        [] => String::new(),
    }
}

/// The tiles of a value that steps are kept of; `group` CPUs share a row.
#[must_use]
pub fn tiles(index: &Index, cpus: &[CpuId], value: Value, places: &[Place], group: usize) -> Vec<u8> {
    let rows: Vec<&[CpuId]> = cpus.chunks(group.max(1)).collect();
    let labels: Vec<String> = rows.iter().map(|cpus| label(cpus)).collect();
    finish(&apart(places, |place| picture(index, &rows, value, place)), &labels)
}

fn picture(index: &Index, rows: &[&[CpuId]], value: Value, place: Place) -> Picture {
    let steps = if value == Value::Queue { &index.queues } else { &index.loads };
    let mut picture = Picture::new(rows.len());
    let (from, width) = place.bounds();
    let axis = Axis { from, to: from.saturating_add(BINS * width), bins: BINS as usize };
    for (row, cpus) in rows.iter().enumerate() {
        let known = cpus.iter().filter_map(|cpu| steps.get(*cpu as usize));
        for (bin, mean) in means(known, axis, index.end).into_iter().enumerate() {
            if axis.edge(bin) >= index.end {
                break;
            }
            picture.cell(row, bin, mean);
        }
    }
    picture
}

/// Pictures that `schedlab heatmap` would draw, as tiles.
#[must_use]
pub fn drawn(heats: &[Heat]) -> Vec<u8> {
    let label = |row: &HeatRow| match row.node {
        Some(node) if row.cpus.is_empty() => format!("node {node}"),
        _ => label(&row.cpus),
    };
    let labels: Vec<String> = heats.first().map_or_else(Vec::new, |heat| heat.rows.iter().map(label).collect());
    let picture = |heat: &Heat| {
        let mut picture = Picture::new(labels.len());
        for row in 0..labels.len().min(heat.rows.len()) {
            for bin in 0..heat.columns.min(BINS as usize) {
                let at = row * heat.columns + bin;
                let value = match &heat.cells {
                    Cells::Means(means) => means[at],
                    Cells::Looks(looks) => Some(total(looks[at].iter().copied())),
                };
                picture.cell(row, bin, value);
            }
        }
        picture
    };
    finish(&heats.iter().map(picture).collect::<Vec<_>>(), &labels)
}

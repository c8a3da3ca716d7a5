//! Heat: a value of each CPU (or of a few together) in each bin of a tile.

use crate::arrow::stream;
use crate::index::Index;
use crate::overview::{Axis, Spread, spread_steps};
use crate::steps::Steps;
use crate::tile::{BINS, Place};
use arrow_array::{ArrayRef, Float32Array, UInt16Array, UInt32Array};
use schedlab_base::CpuId;
use schedlab_measure::Heat;
use schedlab_measure::heatmap::Cells;
use serde_json::json;
use std::sync::Arc;

/// At most so many stretches are listed in which nothing is known.
const MOST_UNKNOWN: usize = 10_000;

/// What the cells come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// Runnable tasks.
    Queue,
    /// Their load.
    Load,
}

/// The cells of a tile, and where nothing is known.
#[derive(Debug, Default)]
struct Picture {
    row: Vec<u32>,
    bin: Vec<u16>,
    value: Vec<f32>,
    unknown: Vec<(u32, u16, u16)>,
    highest: f32,
}

impl Picture {
    fn cell(&mut self, row: u32, bin: u16, value: Option<f64>) {
        match value {
            Some(0.0) => {}
            Some(value) => {
                let value = value as f32;
                self.row.push(row);
                self.bin.push(bin);
                self.value.push(value);
                self.highest = self.highest.max(value);
            }
            None => {
                let many = self.unknown.len() >= MOST_UNKNOWN;
                match self.unknown.last_mut() {
                    Some((of, _, last)) if *of == row && *last + 1 == bin => *last = bin,
                    _ if many => {}
                    _ => self.unknown.push((row, bin, bin)),
                }
            }
        }
    }

    fn finish(self, labels: &[String]) -> Vec<u8> {
        let columns = vec![
            ("row", Arc::new(UInt32Array::from(self.row)) as ArrayRef),
            ("bin", Arc::new(UInt16Array::from(self.bin)) as ArrayRef),
            ("value", Arc::new(Float32Array::from(self.value)) as ArrayRef),
        ];
        let beside = [
            ("highest", self.highest.to_string()),
            ("rows", labels.len().to_string()),
            ("labels", json!(labels).to_string()),
            ("unknown", json!(self.unknown).to_string()),
        ];
        stream(columns, &beside)
    }
}

/// The tile of a value that steps are kept of; `group` CPUs share a row.
#[must_use]
pub fn tile(index: &Index, cpus: &[CpuId], value: Value, place: Place, group: usize) -> Vec<u8> {
    let steps = if value == Value::Queue { &index.queues } else { &index.loads };
    let mut picture = Picture::default();
    let mut labels = Vec::new();
    let (from, width) = place.bounds();
    let axis = Axis { from, to: from.saturating_add(BINS * width), bins: BINS as usize };
    for (row, cpus) in (0..).zip(cpus.chunks(group.max(1))) {
        let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
        labels.push(if first == last { format!("CPU {first}") } else { format!("CPUs {first}-{last}") });
        let (mut area, mut unknown) = (Spread::new(axis), Spread::new(axis));
        let known: Vec<&Steps> = cpus.iter().filter_map(|cpu| steps.get(*cpu as usize)).collect();
        known.iter().for_each(|steps| spread_steps(steps, axis, index.end, &mut area, Some(&mut unknown)));
        for (bin, (area, unknown)) in area.finish().into_iter().zip(unknown.finish()).enumerate() {
            let (from, to) = (axis.edge(bin), axis.edge(bin + 1).min(index.end));
            if from >= to {
                break;
            }
            let time = (to - from) as f64 * known.len() as f64 - unknown;
            picture.cell(row, bin as u16, (time > 0.0).then(|| area / time));
        }
    }
    picture.finish(&labels)
}

/// A picture that `schedlab heatmap` would draw, as a tile.
#[must_use]
pub fn drawn(heat: &Heat, axis: Axis) -> Vec<u8> {
    let mut picture = Picture::default();
    let label = |row: &schedlab_measure::heatmap::HeatRow| match (row.cpus.first(), row.cpus.last(), row.node) {
        (Some(first), Some(last), _) if first == last => format!("CPU {first}"),
        (Some(first), Some(last), _) => format!("CPUs {first}-{last}"),
        (_, _, Some(node)) => format!("node {node}"),
        _ => String::new(),
    };
    let labels: Vec<String> = heat.rows.iter().map(label).collect();
    for row in 0..labels.len() {
        for bin in 0..heat.columns.min(axis.bins) {
            let at = row * heat.columns + bin;
            let value = match &heat.cells {
                Cells::Means(means) => means[at],
                Cells::Looks(looks) => Some(looks[at].iter().map(|count| f64::from(*count)).sum()),
            };
            picture.cell(row as u32, bin as u16, value);
        }
    }
    picture.finish(&labels)
}

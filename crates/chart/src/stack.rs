//! Shares over time, stacked: who had the CPUs when.

use crate::axis::Axis;
use crate::colour::TASKS;
use crate::number::number;
use crate::svg::{Anchor, Svg, clip};

/// One layer: its values in each window, in CPUs.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Whose it is.
    pub label: String,
    /// Its part of each window.
    pub values: Vec<f64>,
}

/// How long the windows are, and when the last one ends.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The width of a window.
    pub window_s: f64,
    /// The end of the run.
    pub end_s: f64,
}

impl Span {
    /// Where a window begins; the last ends with the run.
    pub fn edge(self, window: usize) -> f64 {
        (window as f64 * self.window_s).min(self.end_s)
    }
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 780.0;
const TOP: f64 = 28.0;
const PLOT: f64 = 150.0;

/// Draws the layers from the bottom up.
pub fn stack(title: &str, span: Span, cpus: f64, layers: &[Layer]) -> String {
    let windows = layers.iter().map(|l| l.values.len()).max().unwrap_or(0);
    let bottom = TOP + PLOT;
    let mut svg = Svg::new(WIDTH, bottom + 48.0, title);
    svg.text("heading", (LEFT, 16.0), Anchor::Start, title);
    let x = Axis::exact((0.0, span.end_s), (LEFT, RIGHT));
    let y = Axis::exact((0.0, cpus), (bottom, TOP));
    let mut floor = vec![0.0; windows];
    for (i, layer) in layers.iter().enumerate() {
        let ceiling: Vec<f64> = (0..windows).map(|k| floor[k] + layer.values.get(k).unwrap_or(&0.0)).collect();
        let edge = |heights: &[f64]| -> Vec<(f64, f64)> {
            let step = |(k, h): (usize, &f64)| {
                let y = y.at(*h);
                [(x.at(span.edge(k)), y), (x.at(span.edge(k + 1)), y)]
            };
            heights.iter().enumerate().flat_map(step).collect()
        };
        let mut outline = edge(&ceiling);
        outline.extend(edge(&floor).into_iter().rev());
        svg.path(&format!("area s{}", TASKS[i % TASKS.len()]), &outline, true, &layer.label);
        let at = TOP + 10.0 + 19.0 * i as f64;
        svg.rect(&format!("bar s{}", TASKS[i % TASKS.len()]), (RIGHT + 18.0, at - 10.0), (12.0, 12.0), "");
        svg.text("legend", (RIGHT + 36.0, at), Anchor::Start, &clip(&layer.label, 20));
        floor = ceiling;
    }
    for tick in y.ticks() {
        svg.text("tick", (LEFT - 8.0, y.at(tick) + 4.0), Anchor::End, &number(tick));
    }
    x.draw_horizontal(&mut svg, bottom, " s");
    svg.text_up("label", (16.0, (TOP + bottom) / 2.0), "CPUs");
    svg.finish()
}

//! Shares over time, stacked: who had the CPUs when.

use crate::axis::Axis;
use crate::colour::TASKS;
use crate::number::number;
use crate::svg::{Anchor, Svg, clip};
use crate::time;

/// One layer: its values in each window.
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

    /// `1.2 to 1.4 s`: from the start of a window to that of another.
    pub(crate) fn words(self, from: usize, to: usize) -> String {
        let (size, name) = time::unit(self.end_s * 1e9);
        let [from, to] = [from, to].map(|window| number(self.edge(window) * 1e9 / size));
        format!("{from} to {to} {name}")
    }
}

/// Up to so many parts of a drawing show their values when pointed at.
const MOST_BLOCKS: usize = 60;

/// Of so many layers at most the values show when they are pointed at.
const MOST_TOLD: usize = 24;

/// Of more layers than these the legend has no names.
const MOST_NAMES: usize = 9;

/// Windows, a few at a time.
fn blocks(windows: usize) -> impl Iterator<Item = (usize, usize)> {
    let step = windows.div_ceil(MOST_BLOCKS).max(1);
    (0..windows).step_by(step).map(move |from| (from, (from + step).min(windows)))
}

/// The mean of some windows.
fn mean(values: &[f64], from: usize, to: usize) -> f64 {
    (from..to).map(|k| values.get(k).unwrap_or(&0.0)).sum::<f64>() / (to - from) as f64
}

/// Draws an axis of time from 0 to the end of the run, in the unit that suits it.
pub(crate) fn draw_time(svg: &mut Svg, span: Span, place: (f64, f64), y: f64) {
    let (size, name) = time::unit(span.end_s * 1e9);
    Axis::exact((0.0, span.end_s * 1e9 / size), place).draw_horizontal(svg, y, &format!(" {name}"));
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 780.0;
const TOP: f64 = 28.0;
const PLOT: f64 = 150.0;

/// Draws the layers from the bottom up, in `unit`, of which there are `most` at any time.
pub fn stack(title: &str, span: Span, (unit, most): (&str, f64), layers: &[Layer]) -> String {
    let windows = layers.iter().map(|l| l.values.len()).max().unwrap_or(0);
    let bottom = TOP + PLOT;
    let mut svg = Svg::new(WIDTH, bottom + 48.0, title);
    svg.text("heading", (LEFT, 16.0), Anchor::Start, title);
    let x = Axis::exact((0.0, span.end_s), (LEFT, RIGHT));
    let y = Axis::exact((0.0, most), (bottom, TOP));
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
        if layers.len() <= MOST_NAMES {
            let at = TOP + 10.0 + 19.0 * i as f64;
            svg.rect(&format!("bar s{}", TASKS[i % TASKS.len()]), (RIGHT + 18.0, at - 10.0), (12.0, 12.0), "");
            svg.text("legend", (RIGHT + 36.0, at), Anchor::Start, &clip(&layer.label, 20));
        }
        floor = ceiling;
    }
    if layers.len() > MOST_NAMES {
        let words = format!("{} tasks, the first", layers.len());
        svg.text("legend", (RIGHT + 18.0, TOP + 10.0), Anchor::Start, &words);
        svg.text("legend", (RIGHT + 18.0, TOP + 29.0), Anchor::Start, "at the bottom");
    }
    for tick in y.ticks() {
        svg.text("tick", (LEFT - 8.0, y.at(tick) + 4.0), Anchor::End, &number(tick));
    }
    draw_time(&mut svg, span, (LEFT, RIGHT), bottom);
    for (from, to) in blocks(windows) {
        let mut title = span.words(from, to);
        for layer in layers.iter().take(MOST_TOLD) {
            let share = mean(&layer.values, from, to);
            if share >= 0.005 {
                title += &format!("\n{}: {share:.2}", layer.label);
            }
        }
        let (left, right) = (x.at(span.edge(from)), x.at(span.edge(to)));
        svg.rect("hover", (left, TOP), (right - left, PLOT), &title);
    }
    svg.text_up("label", (16.0, (TOP + bottom) / 2.0), unit);
    svg.finish()
}

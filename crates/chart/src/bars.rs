//! Horizontal bars: one figure compared between kernels, and with what was published.

use crate::axis::Axis;
use crate::colour::SERIES;
use crate::number::number;
use crate::svg::{Anchor, Svg};

/// One bar.
#[derive(Clone, Debug, Default)]
pub struct Bar {
    /// What it is of.
    pub label: String,
    /// Its length; none is drawn as "no value".
    pub value: Option<f64>,
    /// The figures that it is the mean of, drawn as points where there are several.
    pub scatter: Vec<f64>,
}

const WIDTH: f64 = 460.0;
const ROW: f64 = 26.0;

/// Draws bars from 0; the values stand at their ends.
pub fn bars(title: &str, unit: &str, bars: &[Bar]) -> String {
    let widest = bars.iter().map(|b| b.label.chars().count()).max().unwrap_or(0) as f64;
    let left = (20.0 + 7.0 * widest).min(180.0);
    let height = 30.0 + ROW * bars.len() as f64;
    let mut svg = Svg::new(WIDTH, height, title);
    let heading = if unit.is_empty() { title.to_owned() } else { format!("{title}, {unit}") };
    svg.text("heading", (0.0, 15.0), Anchor::Start, &heading);
    let drawn = || bars.iter().flat_map(|b| b.scatter.iter().copied().chain(b.value));
    let axis = Axis::exact((drawn().fold(0.0, f64::min), drawn().fold(0.0, f64::max)), (left, WIDTH - 84.0));
    for (i, bar) in bars.iter().enumerate() {
        let y = 26.0 + ROW * i as f64;
        svg.text("tick", (left - 8.0, y + 14.0), Anchor::End, &bar.label);
        let Some(value) = bar.value else {
            svg.text("tick", (left, y + 14.0), Anchor::Start, "no value");
            continue;
        };
        let (from, to) = (axis.at(0.0).min(axis.at(value)), axis.at(0.0).max(axis.at(value)));
        let title = format!("{}: {}", bar.label, number(value));
        svg.rect(&format!("bar s{}", i % SERIES), (from, y), ((to - from).max(1.0), ROW - 8.0), &title);
        let mut end = to;
        if bar.scatter.iter().any(|figure| *figure != bar.scatter[0]) {
            for figure in &bar.scatter {
                let x = axis.at(*figure);
                end = end.max(x + 3.0);
                let title = format!("{}, one of {} runs: {}", bar.label, bar.scatter.len(), number(*figure));
                svg.circle("run", (x, y + ROW / 2.0 - 4.0), 3.0, &title);
            }
        }
        svg.text("value", (end + 6.0, y + 14.0), Anchor::Start, &number(value));
    }
    svg.finish()
}

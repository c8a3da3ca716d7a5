//! Shares over time as a heat map: a row a task, darker where it had more of the CPU.

use crate::axis::Axis;
use crate::number::number;
use crate::stack::{Layer, Span, draw_time};
use crate::svg::{Anchor, Svg, clip};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 944.0;
const TOP: f64 = 28.0;
/// Rows and columns beyond these are left out or merged, so that the page stays small.
const MOST_ROWS: usize = 64;
const MOST_COLUMNS: usize = 120;

/// Draws one row a layer. Full colour is a share that hardly any window exceeds.
pub fn shares(title: &str, span: Span, layers: &[Layer]) -> String {
    let shown = &layers[..layers.len().min(MOST_ROWS)];
    let windows = layers.iter().map(|l| l.values.len()).max().unwrap_or(0).max(1);
    let merge = windows.div_ceil(MOST_COLUMNS);
    let row = if shown.len() > 32 { 7.0 } else { 12.0 };
    let bottom = TOP + row * shown.len() as f64 + 4.0;
    let mut svg = Svg::new(WIDTH, bottom + 30.0, title);
    let left_out = layers.len() - shown.len();
    let more = if left_out > 0 { format!(" (the first {MOST_ROWS} of {})", layers.len()) } else { String::new() };
    svg.text("heading", (LEFT, 16.0), Anchor::Start, &format!("{title}{more}"));
    let x = Axis::exact((0.0, span.end_s), (LEFT, RIGHT));
    let merged = |layer: &Layer| -> Vec<f64> {
        layer.values.chunks(merge).map(|c| c.iter().sum::<f64>() / merge as f64).collect()
    };
    let full = full_colour(shown.iter().flat_map(merged).collect());
    svg.text("tick", (RIGHT, 16.0), Anchor::End, &format!("full colour: {} of a CPU", number(full)));
    for (i, layer) in shown.iter().enumerate() {
        let y = TOP + row * i as f64;
        if row > 8.0 || i % 8 == 0 {
            svg.text("tick small", (LEFT - 8.0, y + row - 2.0), Anchor::End, &clip(&layer.label, 18));
        }
        for (k, value) in merged(layer).into_iter().enumerate() {
            if value > 0.0 {
                let from = x.at(span.edge(k * merge));
                let to = x.at(span.edge(((k + 1) * merge).min(windows)));
                let title =
                    format!("{}, {}: {value:.2}", layer.label, span.words(k * merge, ((k + 1) * merge).min(windows)));
                svg.cell((value / full).min(1.0), (from, y), (to - from + 0.3, row - 1.5), &title);
            }
        }
    }
    draw_time(&mut svg, span, (LEFT, RIGHT), bottom);
    svg.finish()
}

/// The share that gets full colour: all but one in a hundred lie at or below it.
fn full_colour(mut shares: Vec<f64>) -> f64 {
    shares.retain(|s| *s > 0.0);
    shares.sort_by(f64::total_cmp);
    shares.get(shares.len() * 99 / 100).copied().unwrap_or(1.0)
}

//! Latencies by powers of two: one row a kernel over one common axis.

use crate::axis::Axis;
use crate::colour::SERIES;
use crate::number::number;
use crate::svg::{Anchor, Svg};
use crate::time::unit;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 200.0;
/// Where the names of the rows end.
const NAMES: f64 = LEFT - 60.0;
const RIGHT: f64 = 924.0;
const ROW: f64 = 92.0;
/// Everything shorter than 2^8 ns is drawn as one bar: such differences mean nothing.
const SHORTEST: usize = 8;

/// Counts by powers of two: bucket `k` holds those of 2^k up to 2^(k+1) ns, bucket 0 from 0.
pub type Histogram = [u64; 48];

/// Draws one histogram a row. Heights are shares of each kernel's own wake-ups; one that is too small to see is drawn
/// as a line, so that the tail shows.
pub fn histograms(title: &str, rows: &[(&str, &Histogram)]) -> String {
    let rows: Vec<(&str, Histogram)> = rows.iter().map(|(label, h)| (*label, joined(h))).collect();
    let used = |k: &usize| rows.iter().any(|(_, h)| h[*k] > 0);
    let first = (0..48).find(used).unwrap_or(9).saturating_sub(1).max(SHORTEST);
    let last = (0..48).rev().find(used).unwrap_or(20).max(first + 8);
    let width = (RIGHT - LEFT) / (last - first + 1) as f64;
    let bottom = 8.0 + ROW * rows.len() as f64;
    let mut svg = Svg::new(WIDTH, bottom + 52.0, title);
    for (i, (label, histogram)) in rows.iter().enumerate() {
        let top = 8.0 + ROW * i as f64;
        row(&mut svg, label, histogram, i, (top, first, last, width));
    }
    for k in first..=last + 1 {
        if (k - first).is_multiple_of(label_stride(width)) {
            let x = LEFT + width * (k - first) as f64;
            svg.line("axis", (x, bottom), (x, bottom + 5.0));
            svg.text("tick", (x, bottom + 19.0), Anchor::Middle, &edge(k));
        }
    }
    svg.text(
        "label",
        ((LEFT + RIGHT) / 2.0, bottom + 42.0),
        Anchor::Middle,
        "time from wake-up to running; height: share of the wake-ups in %",
    );
    svg.finish()
}

/// The histogram with everything shorter than [`SHORTEST`] in its bucket.
fn joined(histogram: &Histogram) -> Histogram {
    let mut joined = *histogram;
    joined[SHORTEST] = histogram[..=SHORTEST].iter().sum();
    joined[..SHORTEST].fill(0);
    joined
}

/// Where bucket `k` begins.
fn edge(k: usize) -> String {
    if k <= SHORTEST { "0".to_owned() } else { time(1 << k.min(62)) }
}

fn label_stride(width: f64) -> usize {
    (58.0 / width).ceil().max(1.0) as usize
}

fn row(svg: &mut Svg, label: &str, histogram: &Histogram, i: usize, place: (f64, usize, usize, f64)) {
    let (top, first, last, width) = place;
    let all: u64 = histogram.iter().sum();
    let (ceiling, base) = (top + 20.0, top + ROW - 14.0);
    svg.text("heading", (NAMES, top + 34.0), Anchor::End, label);
    svg.text("tick", (NAMES, top + 52.0), Anchor::End, &format!("{all} wake-ups"));
    let percent = |count: u64| 100.0 * count as f64 / all.max(1) as f64;
    let most = percent(histogram.iter().copied().max().unwrap_or(0));
    let axis = Axis::exact((0.0, most), (base, ceiling));
    for tick in [0.0, most / 2.0, most] {
        svg.line("grid", (LEFT, axis.at(tick)), (RIGHT, axis.at(tick)));
        svg.text("tick small", (LEFT - 6.0, axis.at(tick) + 4.0), Anchor::End, &format!("{}%", number(tick.round())));
    }
    for (k, count) in histogram.iter().enumerate().take(last + 1).skip(first).filter(|(_, count)| **count > 0) {
        let share = percent(*count);
        let tall = (base - axis.at(share)).max(1.0);
        let x = LEFT + width * (k - first) as f64;
        svg.rect(&format!("bar s{}", i % SERIES), (x + 1.0, base - tall), (width - 2.0, tall), "");
        let title = format!("{label}: {} to {}\n{count} of {all} ({}%)", edge(k), edge(k + 1), number(share));
        svg.rect("hover", (x, ceiling), (width, base - ceiling), &title);
        if share >= 1.0 {
            let at = (x + width / 2.0, base - tall - 4.0);
            svg.text("value small", at, Anchor::Middle, &format!("{share:.0}%"));
        }
    }
}

/// A power of two of ns in the unit that suits it.
fn time(ns: u64) -> String {
    let (size, name) = unit(ns as f64);
    format!("{:.0} {name}", ns as f64 / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The heights of the bars.
    fn heights(svg: &str) -> Vec<f64> {
        let bars = svg.split("<rect class=\"bar").skip(1);
        bars.map(|bar| bar.split("height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()).collect()
    }

    #[test]
    fn heights_are_in_proportion_to_the_shares() {
        let mut counts: Histogram = [0; 48];
        (counts[12], counts[14]) = (400, 100);
        let svg = histograms("latency", &[("cfs", &counts)]);
        let heights = heights(&svg);
        assert!((heights[0] / heights[1] - 4.0).abs() < 0.01, "{heights:?}");
        assert!(svg.contains("cfs: 4 us to 8 us\n400 of 500 (80%)"), "{svg}");
    }
}

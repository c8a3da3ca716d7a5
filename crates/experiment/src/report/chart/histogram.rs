//! Latencies by powers of two: one row a kernel over one common axis.

use super::COLOURS;
use super::svg::{Anchor, Svg};
use schedlab_measure::series::Histogram;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 150.0;
const RIGHT: f64 = 924.0;
const ROW: f64 = 92.0;
/// What is shorter than 2^8 ns is drawn as one: nobody can tell it from nothing.
const SHORTEST: usize = 8;

/// Draws one histogram a row. Heights go by the square root of each kernel's part of its own wake-ups, so that the
/// tail shows.
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
        "from wake-up to running (heights by the square root)",
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
    let base = top + ROW - 14.0;
    let height = ROW - 34.0;
    svg.text("heading", (LEFT - 14.0, top + 34.0), Anchor::End, label);
    svg.text("tick", (LEFT - 14.0, top + 52.0), Anchor::End, &format!("{all} wake-ups"));
    svg.line("axis", (LEFT, base), (RIGHT, base));
    let most = histogram.iter().copied().max().unwrap_or(0).max(1);
    for (k, count) in histogram.iter().enumerate().take(last + 1).skip(first).filter(|(_, count)| **count > 0) {
        let part = *count as f64 / all as f64;
        let tall = ((*count as f64 / most as f64).sqrt() * height).max(1.0);
        let x = LEFT + width * (k - first) as f64;
        let title = format!("{label}: {:.2}% from {} to {}", part * 100.0, edge(k), edge(k + 1));
        svg.rect(&format!("bar s{}", i % COLOURS), (x + 1.0, base - tall), (width - 2.0, tall), &title);
        if part >= 0.01 {
            svg.text(
                "value small",
                (x + width / 2.0, base - tall - 4.0),
                Anchor::Middle,
                &format!("{:.0}%", part * 100.0),
            );
        }
    }
}

/// A power of two of ns in the unit that suits it.
fn time(ns: u64) -> String {
    match ns {
        ..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.0} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.0} ms", ns as f64 / 1e6),
        _ => format!("{:.0} s", ns as f64 / 1e9),
    }
}

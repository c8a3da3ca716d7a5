//! Lines over a parameter: ours with points, what was published dashed and hollow.

use crate::axis::Axis;
use crate::colour::SERIES;
use crate::number::number;
use crate::svg::{Anchor, Svg};

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Ours: solid, filled points.
    Ours,
    /// Published: dashed, hollow points.
    Published,
    /// Ours, points alone.
    Points,
}

/// One line.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name in the legend.
    pub label: String,
    /// How it is drawn.
    pub mark: Mark,
    /// Its points, by x.
    pub points: Vec<(f64, f64)>,
    /// The runs that the points are the means of, drawn faintly.
    pub scatter: Vec<(f64, f64)>,
    /// Error bars: x, the lower and the upper end.
    pub ends: Vec<(f64, f64, f64)>,
}

/// A chart of lines.
#[derive(Clone, Debug)]
pub struct LineChart {
    /// What it shows.
    pub title: String,
    /// The x axis's label.
    pub x: String,
    /// The y axis's label.
    pub y: String,
    /// A logarithmic y axis.
    pub log: bool,
    /// The lines.
    pub lines: Vec<Line>,
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 944.0;
const PLOT: f64 = 300.0;
/// Of a line with more points, they are not drawn.
const MOST_POINTS: usize = 120;

/// Draws the chart.
pub fn lines(chart: &LineChart) -> String {
    let labels: Vec<&str> = chart.lines.iter().map(|l| l.label.as_str()).collect();
    let places = legend_places(&labels, (LEFT, RIGHT));
    let legend_rows = places.last().map_or(1.0, |(_, y)| y / 22.0 + 1.0);
    let top = 16.0 + legend_rows * 22.0;
    let bottom = top + PLOT;
    let mut svg = Svg::new(WIDTH, bottom + 52.0, &chart.title);
    let xs = || chart.lines.iter().flat_map(|l| l.points.iter().map(|p| p.0));
    let ends = |l: &Line| l.ends.iter().flat_map(|(_, low, high)| [*low, *high]).collect::<Vec<_>>();
    let ys = || chart.lines.iter().flat_map(|l| l.points.iter().chain(&l.scatter).map(|p| p.1).chain(ends(l)));
    let x = Axis::linear(xs(), false, (LEFT, RIGHT));
    let y = if chart.log { Axis::log(ys(), (bottom, top)) } else { Axis::linear(ys(), false, (bottom, top)) };
    y.draw_vertical(&mut svg, (LEFT, RIGHT));
    x.draw_horizontal(&mut svg, bottom, "");
    svg.text("label", ((LEFT + RIGHT) / 2.0, bottom + 42.0), Anchor::Middle, &chart.x);
    svg.text_up("label", (16.0, (top + bottom) / 2.0), &chart.y);
    // What was published lies below ours.
    for published in [true, false] {
        for (line, class) in chart.lines.iter().zip(classes(chart)) {
            if (line.mark == Mark::Published) == published {
                draw(&mut svg, line, &class, &x, &y);
            }
        }
    }
    for ((line, class), (x, y)) in chart.lines.iter().zip(classes(chart)).zip(places) {
        legend(&mut svg, line, &class, (x, y + 14.0));
    }
    svg.finish()
}

/// Ours take the series' colours in order; the published are greys.
fn classes(chart: &LineChart) -> Vec<String> {
    let (mut ours, mut theirs) = (0, 0);
    chart
        .lines
        .iter()
        .map(|line| match line.mark {
            Mark::Ours | Mark::Points => {
                ours += 1;
                format!("s{}", (ours - 1) % SERIES)
            }
            Mark::Published => {
                theirs += 1;
                format!("p{}", (theirs - 1) % 2)
            }
        })
        .collect()
}

fn draw(svg: &mut Svg, line: &Line, class: &str, x: &Axis, y: &Axis) {
    let places: Vec<(f64, f64)> = line.points.iter().map(|p| (x.at(p.0), y.at(p.1))).collect();
    let dashed = if line.mark == Mark::Published { " dashed" } else { "" };
    if line.mark != Mark::Points {
        svg.path(&format!("line {class}{dashed}"), &places, false, &line.label);
    }
    if places.len() > MOST_POINTS && line.mark != Mark::Points {
        return;
    }
    for &(at, low, high) in line.ends.iter().filter(|(_, low, high)| low < high) {
        let title = format!("{}: {} to {} at {}", line.label, number(low), number(high), number(at));
        error_bar(svg, (x.at(at), y.at(low), y.at(high)), 8.0, &title);
    }
    for value in &line.scatter {
        let title = format!("{}, one run: {} at {}", line.label, number(value.1), number(value.0));
        svg.circle(&format!("faint {class}"), (x.at(value.0), y.at(value.1)), 2.5, &title);
    }
    for (place, value) in places.iter().zip(&line.points) {
        let title = format!("{}: {} at {}", line.label, number(value.1), number(value.0));
        match line.mark {
            Mark::Ours | Mark::Points => svg.circle(&format!("point {class}"), *place, 3.0, &title),
            Mark::Published => svg.circle(&format!("hollow {class}"), *place, 4.5, &title),
        }
    }
}

/// A bar from the lower to the upper end, with feet.
pub(crate) fn error_bar(svg: &mut Svg, (x, low, high): (f64, f64, f64), feet: f64, title: &str) {
    svg.line("error", (x, low), (x, high));
    for y in [low, high] {
        svg.line("error", (x - feet / 2.0, y), (x + feet / 2.0, y));
    }
    svg.rect("hover", (x - 4.0, high.min(low)), (8.0, (low - high).abs()), title);
}

/// The places of the legend's labels, in as many rows as they need.
pub(crate) fn legend_places(labels: &[&str], (left, right): (f64, f64)) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (left, 0.0);
    let place = |label: &&str| {
        let width = 48.0 + 7.6 * label.chars().count() as f64;
        if x + width > right && x > left {
            (x, y) = (left, y + 22.0);
        }
        let place = (x, y);
        x += width;
        place
    };
    labels.iter().map(place).collect()
}

fn legend(svg: &mut Svg, line: &Line, class: &str, (x, y): (f64, f64)) {
    let dashed = if line.mark == Mark::Published { " dashed" } else { "" };
    if line.mark != Mark::Points {
        svg.line(&format!("line {class}{dashed}"), (x, y - 4.0), (x + 24.0, y - 4.0));
    }
    match line.mark {
        Mark::Ours | Mark::Points => svg.circle(&format!("point {class}"), (x + 12.0, y - 4.0), 3.0, ""),
        Mark::Published => svg.circle(&format!("hollow {class}"), (x + 12.0, y - 4.0), 4.5, ""),
    }
    svg.text("legend", (x + 30.0, y), Anchor::Start, &line.label);
}

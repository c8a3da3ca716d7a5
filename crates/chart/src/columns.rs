//! Columns: figures in groups side by side or on top of each other, ours filled, what was published in outline.

use crate::axis::Axis;
use crate::colour::SERIES;
use crate::lines::{self, Mark};
use crate::number::number;
use crate::svg::{Anchor, Svg, clip};

/// One series: a column in each group, or a part of each column.
#[derive(Clone, Debug)]
pub struct Columns {
    /// Its name in the legend.
    pub label: String,
    /// How it is drawn.
    pub mark: Mark,
    /// Its value in each group.
    pub values: Vec<Option<f64>>,
    /// The least and the greatest of the runs that the value is the mean of, drawn as an error bar.
    pub ends: Vec<Option<(f64, f64)>>,
}

/// A chart of columns.
#[derive(Clone, Debug)]
pub struct ColumnChart {
    /// What it shows.
    pub title: String,
    /// The x axis's label.
    pub x: String,
    /// The y axis's label.
    pub y: String,
    /// A logarithmic y axis.
    pub log: bool,
    /// On top of each other, not side by side.
    pub stacked: bool,
    /// The groups' names.
    pub groups: Vec<String>,
    /// The series.
    pub series: Vec<Columns>,
}

/// Of more series than these the legend has no names.
const MOST_NAMES: usize = 12;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = 944.0;
const PLOT: f64 = 260.0;

/// Draws the chart.
pub fn columns(chart: &ColumnChart) -> String {
    let named = if chart.series.len() > MOST_NAMES { 0 } else { chart.series.len() };
    let labels: Vec<&str> = chart.series[..named].iter().map(|s| s.label.as_str()).collect();
    let places = lines::legend_places(&labels, (LEFT, RIGHT));
    let top = 16.0 + places.last().map_or(1.0, |(_, y)| y / 22.0 + 1.0) * 22.0;
    let bottom = top + PLOT;
    let mut svg = Svg::new(WIDTH, bottom + 52.0, &chart.title);
    let y = axis(chart, (bottom, top));
    y.draw_vertical(&mut svg, (LEFT, RIGHT));
    svg.line("axis", (LEFT, bottom), (RIGHT, bottom));
    svg.text("label", ((LEFT + RIGHT) / 2.0, bottom + 42.0), Anchor::Middle, &chart.x);
    svg.text_up("label", (16.0, (top + bottom) / 2.0), &chart.y);
    let width = (RIGHT - LEFT) / chart.groups.len().max(1) as f64;
    // Where there are many groups, not each has room for its name.
    let letters = (width / 7.0).max(3.0) as usize;
    let every = (28.0 / width).ceil().max(1.0) as usize;
    for (g, group) in chart.groups.iter().enumerate() {
        let left = LEFT + width * g as f64;
        if g % every == 0 {
            svg.text("tick", (left + width / 2.0, bottom + 19.0), Anchor::Middle, &clip(group, letters.max(every * 4)));
        }
        let inner = (left + width * 0.1, width * 0.8);
        if chart.stacked { pile(&mut svg, chart, g, inner, &y) } else { side_by_side(&mut svg, chart, g, inner, &y) }
    }
    for ((series, class), (x, at)) in chart.series.iter().zip(classes(chart)).zip(places) {
        svg.rect(&class, (x, at + 4.0), (12.0, 12.0), "");
        svg.text("legend", (x + 20.0, at + 14.0), Anchor::Start, &series.label);
    }
    svg.finish()
}

fn axis(chart: &ColumnChart, place: (f64, f64)) -> Axis {
    let values = || chart.series.iter().flat_map(|s| s.values.iter().flatten().copied());
    let ends = || chart.series.iter().flat_map(|s| s.ends.iter().flatten()).flat_map(|(low, high)| [*low, *high]);
    if chart.stacked {
        let sum = |g: usize| chart.series.iter().filter_map(|s| s.values.get(g).copied().flatten()).sum::<f64>();
        return Axis::linear((0..chart.groups.len()).map(sum), true, place);
    }
    if chart.log { Axis::log(values().chain(ends()), place) } else { Axis::linear(values().chain(ends()), true, place) }
}

/// Ours take the series' colours in order; the published are outlines.
fn classes(chart: &ColumnChart) -> Vec<String> {
    let (mut ours, mut theirs) = (0, 0);
    let class = |series: &Columns| match series.mark {
        Mark::Published if !chart.stacked => {
            theirs += 1;
            format!("outline p{}", (theirs - 1) % 2)
        }
        _ => {
            ours += 1;
            format!("bar s{}", (ours - 1) % SERIES)
        }
    };
    chart.series.iter().map(class).collect()
}

fn side_by_side(svg: &mut Svg, chart: &ColumnChart, group: usize, (left, width): (f64, f64), y: &Axis) {
    let each = width / chart.series.len().max(1) as f64;
    let floor = if chart.log { y.bottom() } else { y.at(0.0) };
    for (k, (series, class)) in chart.series.iter().zip(classes(chart)).enumerate() {
        let Some(value) = series.values.get(group).copied().flatten() else { continue };
        let (x, at) = (left + each * k as f64, y.at(value));
        let title = format!("{}, {}: {}", chart.groups[group], series.label, number(value));
        let (from, to) = (at.min(floor), at.max(floor));
        svg.rect(&class, (x, from), ((each - 1.0).max(0.8), (to - from).max(0.8)), &title);
        if let Some((low, high)) = series.ends.get(group).copied().flatten().filter(|(low, high)| low < high) {
            let title = format!("{title}; {} to {} over the seeds", number(low), number(high));
            lines::error_bar(svg, (x + each / 2.0, y.at(low), y.at(high)), each.min(8.0), &title);
        }
    }
}

fn pile(svg: &mut Svg, chart: &ColumnChart, group: usize, (left, width): (f64, f64), y: &Axis) {
    let mut floor = 0.0;
    for (series, class) in chart.series.iter().zip(classes(chart)) {
        let Some(value) = series.values.get(group).copied().flatten() else { continue };
        let (from, to) = (y.at(floor + value), y.at(floor));
        let title = format!("{}, {}: {}", chart.groups[group], series.label, number(value));
        svg.rect(&class, (left, from), (width.max(0.8), (to - from).max(0.0)), &title);
        floor += value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(stacked: bool) -> ColumnChart {
        let series = |label: &str, mark, values: [f64; 2]| Columns {
            label: label.into(),
            mark,
            values: values.into_iter().map(Some).collect(),
            ends: vec![Some((values[0] * 0.9, values[0] * 1.1)), None],
        };
        ColumnChart {
            title: "t".into(),
            x: "n".into(),
            y: "s".into(),
            log: false,
            stacked,
            groups: vec!["one".into(), "two".into()],
            series: vec![series("ours", Mark::Ours, [2.0, 4.0]), series("paper", Mark::Published, [1.0, 3.0])],
        }
    }

    #[test]
    fn every_value_has_its_column_and_says_it() {
        let svg = columns(&chart(false));
        for part in ["one, ours: 2<", "two, paper: 3<", "1.8 to 2.2 over the seeds", "class=\"outline p0\""] {
            assert!(svg.contains(part), "{part} is not in {svg}");
        }
    }

    #[test]
    fn parts_stand_on_each_other() {
        let svg = columns(&chart(true));
        let heights = |class: &str| -> Vec<f64> {
            let start = format!("<rect class=\"{class}\"");
            let of = svg.split(start.as_str()).skip(1);
            of.filter_map(|rest| rest.split("height=\"").nth(1)?.split('"').next()?.parse().ok()).collect()
        };
        let (below, above) = (heights("bar s0"), heights("bar s1"));
        assert!((below[0] / above[0] - 2.0).abs() < 0.05 && (below[1] / above[1] - 4.0 / 3.0).abs() < 0.05, "{svg}");
    }
}

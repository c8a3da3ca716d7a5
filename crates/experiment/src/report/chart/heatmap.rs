//! Heat maps: CPUs from the top down, time to the right, a colour in each cell; nodes apart, the scale above.
//!
//! The same drawing goes into reports, SVG files and PNG files.

mod canvas;
mod raster;
mod scale;
#[cfg(test)]
mod tests;

pub use scale::Scale;

use super::axis::Axis;
use super::svg::{Anchor, Svg, clip};
use crate::text::number;
use canvas::{Canvas, Tiles};
use raster::Raster;
use scale::{UNKNOWN, colour_at, most, reason};
use schedlab_base::Looking;
use schedlab_measure::heatmap::{Cells, Heat, HeatRow, What};

/// The columns of a picture: one for each unit of its width.
pub const COLUMNS: usize = 900;

const LEFT: f64 = 92.0;
const RIGHT: f64 = LEFT + COLUMNS as f64;
const WIDTH: f64 = RIGHT + 22.0;
const TOP: f64 = 96.0;
/// All rows together are about so high, where that leaves each between 1 and [`HIGHEST`].
const PLOT: usize = 640;
const HIGHEST: usize = 40;
/// Below this height, rows are not ruled and not each has its label.
const RULED: usize = 8;
/// The least distance of two labels.
const LABEL: usize = 11;
const LEGEND: f64 = 280.0;

/// The style of a file of its own: as the page's, on white.
const STYLE: &str = "\
.chart{font-family:system-ui,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}text{fill:#5b6672;font-size:13px}\
.tick{font-size:12px}.small{font-size:10px}.heading{fill:#1c2127;font-size:15px;font-weight:600}\
.axis{stroke:#5b6672}.row{stroke:#d9dee4;stroke-width:.5}.gap{stroke:#fff;stroke-width:4}.node{stroke:#1c2127;stroke-width:1.5}";

/// What a heat map cannot show, as words for the user; `None` where it shows something.
#[must_use]
pub fn missing(heat: &Heat) -> Option<&'static str> {
    match heat.what {
        _ if heat.to <= heat.from || heat.rows.is_empty() => Some("nothing happens in this part of the trace"),
        What::Load if !heat.told => Some("loads are not in the trace"),
        What::Memory if !heat.told => Some("where memory is is not in the trace"),
        What::Considered { .. } if !heat.told => Some("the CPUs that the scheduler looked at are not in the trace"),
        _ => None,
    }
}

/// A heat map to be drawn.
#[derive(Clone, Copy, Debug)]
pub struct Picture<'a> {
    /// What it is of.
    pub title: &'a str,
    /// More about that, in small letters.
    pub about: &'a str,
    /// The cells.
    pub heat: &'a Heat,
    /// The scale of their values.
    pub scale: Scale,
}

impl Picture<'_> {
    /// As part of a page that has the report's style.
    #[must_use]
    pub fn inline(&self) -> String {
        let mut svg = Svg::new(WIDTH, self.height(), self.title);
        self.draw(&mut svg);
        svg.finish()
    }

    /// As an SVG file.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut svg = Svg::standalone(WIDTH, self.height(), self.title, STYLE);
        self.draw(&mut svg);
        svg.finish()
    }

    /// As a PNG file.
    #[must_use]
    pub fn png(&self) -> Vec<u8> {
        let mut raster = Raster::new(WIDTH, self.height());
        self.draw(&mut raster);
        raster.finish()
    }

    fn row(&self) -> usize {
        (PLOT / self.heat.rows.len().max(1)).clamp(1, HIGHEST)
    }

    fn bottom(&self) -> f64 {
        TOP + (self.row() * self.heat.rows.len()) as f64
    }

    fn height(&self) -> f64 {
        self.bottom() + 50.0
    }

    fn draw(&self, canvas: &mut impl Canvas) {
        canvas.text("heading", (12.0, 22.0), Anchor::Start, &clip(self.title, 110));
        canvas.text("tick", (12.0, 42.0), Anchor::Start, &clip(&self.subtitle(), 150));
        match &self.heat.cells {
            Cells::Means(means) => self.scale_legend(canvas, means.contains(&None)),
            Cells::Looks(_) => self.reasons_legend(canvas),
        }
        canvas.tiles(&self.tiles(), (LEFT, TOP));
        self.rows(canvas);
        self.nodes(canvas);
        self.frame(canvas);
    }

    fn subtitle(&self) -> String {
        let column = duration(self.heat.column());
        let how = match &self.heat.what {
            What::Considered { by: Some(cpu), .. } => format!("CPUs looked at for cpu {cpu}"),
            What::Considered { by: None, .. } => "CPUs looked at for any".to_owned(),
            What::Queue if !self.heat.told => "means, worked out from switches and wake-ups".to_owned(),
            What::Queue | What::Load | What::Memory => "means".to_owned(),
        };
        let shared = self.heat.rows.iter().map(|row| row.cpus.len()).max().unwrap_or(1);
        let shared = if shared > 1 { format!(", a row {shared} CPUs") } else { String::new() };
        let about = if self.about.is_empty() { String::new() } else { format!("{} \u{b7} ", self.about) };
        format!("{about}{how}, a column is {column}{shared}")
    }

    fn scale_legend(&self, canvas: &mut impl Canvas, unknown: bool) {
        let (label, from) = match self.heat.what {
            What::Load => ("load of a CPU, in the scheduler's unit", 282.0),
            What::Memory => ("memory on a node, MiB", 282.0),
            _ => ("runnable tasks of a CPU, the running one included", 358.0),
        };
        canvas.text("label", (12.0, 66.0), Anchor::Start, label);
        for at in 0..LEGEND as usize {
            let part = (at as f64 + 0.5) / LEGEND;
            canvas.swatch(colour_at(part), (from + at as f64, 55.0), (1.0, 13.0));
        }
        outline(canvas, (from, 55.0), (LEGEND, 13.0));
        for (part, name) in self.scale.ticks() {
            let x = from + part * LEGEND;
            canvas.line("axis", (x, 68.0), (x, 72.0));
            canvas.text("tick", (x, 84.0), Anchor::Middle, &name);
        }
        if unknown {
            let x = from + LEGEND + 50.0;
            canvas.swatch(UNKNOWN, (x, 55.0), (13.0, 13.0));
            canvas.text("label", (x + 20.0, 66.0), Anchor::Start, "not known");
        }
    }

    /// Each reason with its number of looks, where there were any.
    fn reasons_legend(&self, canvas: &mut impl Canvas) {
        let (mut x, mut y) = (12.0, 66.0);
        for ((why, name), looks) in Looking::ALL.iter().zip(self.heat.looks()).filter(|(_, looks)| *looks > 0) {
            let text = format!("{name} {}", number(looks as f64));
            let width = 44.0 + 7.6 * text.chars().count() as f64;
            if x + width > RIGHT {
                (x, y) = (12.0, y + 20.0);
            }
            canvas.swatch(reason(*why), (x, y - 11.0), (13.0, 13.0));
            canvas.text("label", (x + 20.0, y), Anchor::Start, &text);
            x += width;
        }
    }

    fn tiles(&self) -> Tiles {
        let colours = match &self.heat.cells {
            Cells::Means(means) => means.iter().map(|m| m.map_or(UNKNOWN, |mean| self.scale.colour(mean))).collect(),
            Cells::Looks(looks) => looks.iter().map(most).collect(),
        };
        Tiles { columns: self.heat.columns, row: self.row(), colours }
    }

    /// Labels, and rules between rows that are high enough.
    fn rows(&self, canvas: &mut impl Canvas) {
        let row = self.row();
        let stride = LABEL.div_ceil(row).next_power_of_two();
        let class = if row < LABEL { "tick small" } else { "tick" };
        for node in self.bands() {
            for (at, heat_row) in node.clone().zip(&self.heat.rows[node.clone()]) {
                let top = TOP + (at * row) as f64;
                if row >= RULED && at > 0 {
                    canvas.line("row", (LEFT, top), (RIGHT, top));
                }
                if (at - node.start).is_multiple_of(stride) {
                    let middle = top + row as f64 / 2.0;
                    let name = match (heat_row.cpus.first(), heat_row.node) {
                        (Some(cpu), _) => format!("cpu {cpu}"),
                        (None, node) => format!("node {}", node.unwrap_or(0)),
                    };
                    canvas.text(class, (LEFT - 7.0, middle + 4.0), Anchor::End, &name);
                }
            }
        }
    }

    /// The rows of each node.
    fn bands(&self) -> Vec<std::ops::Range<usize>> {
        let mut start = 0;
        let band = |rows: &[HeatRow]| {
            let from = start;
            start += rows.len();
            from..start
        };
        self.heat.rows.chunk_by(|a, b| a.node == b.node).map(band).collect()
    }

    /// A line between nodes, and their names.
    fn nodes(&self, canvas: &mut impl Canvas) {
        let bands = self.bands();
        if bands.len() < 2 || self.heat.what == What::Memory {
            return;
        }
        for band in bands {
            let edge = |at: usize| TOP + (at * self.row()) as f64;
            let (top, bottom) = (edge(band.start), edge(band.end));
            if band.start > 0 {
                canvas.line("gap", (LEFT, top), (RIGHT, top));
                canvas.line("node", (8.0, top), (RIGHT, top));
            }
            let Some(node) = self.heat.rows[band.start].node else { continue };
            let middle = (top + bottom) / 2.0;
            if bottom - top >= 50.0 {
                canvas.text_up("label", (22.0, middle), &format!("node {node}"));
            } else if bottom - top >= LABEL as f64 {
                canvas.text("tick small", (8.0, middle + 4.0), Anchor::Start, &format!("n{node}"));
            }
        }
    }

    fn frame(&self, canvas: &mut impl Canvas) {
        let bottom = self.bottom();
        outline(canvas, (LEFT, TOP), (RIGHT - LEFT, bottom - TOP));
        let (unit, name) = match self.heat.to {
            ..10_000 => (1.0, "ns"),
            10_000..10_000_000 => (1e3, "us"),
            10_000_000..10_000_000_000 => (1e6, "ms"),
            _ => (1e9, "s"),
        };
        let axis = Axis::exact((self.heat.from as f64 / unit, self.heat.to as f64 / unit), (LEFT, RIGHT));
        for tick in axis.ticks() {
            let x = axis.at(tick);
            canvas.line("axis", (x, bottom), (x, bottom + 5.0));
            canvas.text("tick", (x, bottom + 19.0), Anchor::Middle, &number(tick));
        }
        let label = format!("time since the start, {name}");
        canvas.text("label", ((LEFT + RIGHT) / 2.0, bottom + 40.0), Anchor::Middle, &label);
    }
}

fn outline(canvas: &mut impl Canvas, (x, y): (f64, f64), (width, height): (f64, f64)) {
    let (right, bottom) = (x + width, y + height);
    canvas.line("axis", (x, y), (right, y));
    canvas.line("axis", (x, bottom), (right, bottom));
    canvas.line("axis", (x, y), (x, bottom));
    canvas.line("axis", (right, y), (right, bottom));
}

/// A time to three digits in the unit that suits it.
fn duration(ns: f64) -> String {
    let (unit, name) = match ns {
        ..1e3 => (1.0, "ns"),
        ..1e6 => (1e3, "us"),
        ..1e9 => (1e6, "ms"),
        _ => (1e9, "s"),
    };
    let value = ns / unit;
    let digits = (2 - value.max(1.0).log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {name}")
}

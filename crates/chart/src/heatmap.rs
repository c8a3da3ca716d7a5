//! Heat maps: rows from the top down, time to the right, a colour in each cell; nodes apart, the legend above.
//!
//! The same drawing goes into pages, SVG files and PNG files.

mod hover;
mod legend;
mod rows;
mod scale;
#[cfg(test)]
mod tests;

pub use rows::Row;
pub use scale::Scale;

use crate::axis::Axis;
use crate::canvas::{Canvas, Tiles};
use crate::colour::{KINDS, NOTHING, UNKNOWN};
use crate::number::number;
use crate::raster::Raster;
use crate::svg::{Anchor, Svg, clip};
use crate::time::unit;
use schedlab_base::Nanos;

/// The columns of a picture: one for each unit of its width.
pub const COLUMNS: usize = 900;

const LEFT: f64 = 92.0;
const RIGHT: f64 = LEFT + COLUMNS as f64;
const WIDTH: f64 = RIGHT + 22.0;
const TOP: f64 = 96.0;
/// All rows together are about so high, where that leaves each between 1 and [`HIGHEST`].
const PLOT: usize = 640;
const HIGHEST: usize = 40;

/// The style of a file of its own: as the page's, on white.
const STYLE: &str = "\
.chart{font-family:system-ui,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}text{fill:#5b6672;font-size:13px}\
.tick{font-size:12px}.small{font-size:10px}.heading{fill:#1c2127;font-size:15px;font-weight:600}\
.axis{stroke:#5b6672}.row{stroke:#d9dee4;stroke-width:.5}.gap{stroke:#fff;stroke-width:4}\
.node{stroke:#1c2127;stroke-width:1.5}";

/// The cells of a picture, row after row, with what its legend says of them.
#[derive(Clone, Debug)]
pub enum Cells {
    /// Values on a scale; `None` where a value is not known.
    Values {
        /// The values.
        values: Vec<Option<f64>>,
        /// From values to colours.
        scale: Scale,
        /// What the values are.
        label: String,
    },
    /// Each cell is of one of up to eight kinds, or of none.
    Kinds {
        /// The kinds, numbered from 0 on.
        kinds: Vec<Option<u8>>,
        /// The kinds that the legend names.
        names: Vec<(u8, String)>,
    },
}

/// A heat map to be drawn.
#[derive(Clone, Debug)]
pub struct Picture {
    /// What it is of.
    pub title: String,
    /// More about that, in small letters.
    pub about: String,
    /// The rows from the top down.
    pub rows: Vec<Row>,
    /// How many cells a row has: [`COLUMNS`] fill the width.
    pub columns: usize,
    /// The cells.
    pub cells: Cells,
    /// Where the time begins and ends.
    pub span: (Nanos, Nanos),
}

impl Picture {
    /// As part of a page that has the report's style.
    #[must_use]
    pub fn inline(&self) -> String {
        let mut svg = Svg::new(WIDTH, self.height(), &self.title);
        self.draw(&mut svg);
        hover::values(&mut svg, self);
        svg.finish()
    }

    /// As an SVG file.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut svg = Svg::standalone(WIDTH, self.height(), &self.title, STYLE);
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

    /// The height of a row.
    fn row(&self) -> usize {
        (PLOT / self.rows.len().max(1)).clamp(1, HIGHEST)
    }

    fn bottom(&self) -> f64 {
        TOP + (self.row() * self.rows.len()) as f64
    }

    fn height(&self) -> f64 {
        self.bottom() + 50.0
    }

    fn draw(&self, canvas: &mut impl Canvas) {
        canvas.text("heading", (12.0, 22.0), Anchor::Start, &clip(&self.title, 110));
        canvas.text("tick", (12.0, 42.0), Anchor::Start, &clip(&self.about, 150));
        match &self.cells {
            Cells::Values { values, scale, label } => legend::scale(canvas, scale, label, values.contains(&None)),
            Cells::Kinds { names, .. } => legend::kinds(canvas, names),
        }
        canvas.tiles(&self.tiles(), (LEFT, TOP));
        rows::names(canvas, &self.rows, self.row());
        rows::nodes(canvas, &self.rows, self.row());
        self.frame(canvas);
    }

    fn tiles(&self) -> Tiles {
        let colours = match &self.cells {
            Cells::Values { values, scale, .. } => {
                values.iter().map(|value| value.map_or(UNKNOWN, |value| scale.colour(value))).collect()
            }
            Cells::Kinds { kinds, .. } => {
                kinds.iter().map(|kind| kind.map_or(NOTHING, |kind| KINDS[usize::from(kind)])).collect()
            }
        };
        Tiles { columns: self.columns, row: self.row(), colours }
    }

    /// The outline, and the axis of time.
    fn frame(&self, canvas: &mut impl Canvas) {
        let bottom = self.bottom();
        outline(canvas, (LEFT, TOP), (RIGHT - LEFT, bottom - TOP));
        let (from, to) = self.span;
        let (unit, name) = unit(to as f64);
        let axis = Axis::exact((from as f64 / unit, to as f64 / unit), (LEFT, RIGHT));
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

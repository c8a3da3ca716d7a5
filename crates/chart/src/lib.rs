//! Pictures: plain data in, SVG or PNG out.
//!
//! One kind of picture a file. [`bars()`], [`columns()`], [`histograms()`], [`lines()`], [`pie()`], [`shares()`] and
//! [`stack()`] give inline SVG
//! for a page: colours and type come from the page's style sheet, so that they follow its light and dark side. A
//! [`heatmap::Picture`] is also a file of its own, SVG or PNG. Nothing refers to anything outside the picture. What the
//! data mean is the caller's knowledge: no experiment and no measure is known here.

mod axis;
mod bars;
mod canvas;
mod colour;
mod columns;
pub mod heatmap;
mod histogram;
mod lines;
mod number;
mod pie;
mod png;
mod raster;
mod shares;
mod stack;
mod svg;
mod time;

pub use bars::{Bar, bars};
pub use columns::{ColumnChart, Columns, columns};
pub use histogram::histograms;
pub use lines::{Line, LineChart, Mark, lines};
pub use number::number;
pub use pie::pie;
pub use shares::shares;
pub use stack::{Layer, Span, stack};
pub use svg::escape;
pub use time::unit;

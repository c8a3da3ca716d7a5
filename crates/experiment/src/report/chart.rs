//! Charts as inline SVG, one kind a file. Colours and type come from the page's style sheet, so that they follow
//! its light and dark side; nothing is fetched.

mod axis;
mod bars;
mod heat;
pub mod heatmap;
mod histogram;
mod lines;
mod stack;
mod svg;

pub use bars::{Bar, bars};
pub use heat::heat;
pub use histogram::histograms;
pub use lines::{Line, LineChart, Mark, lines};
pub use stack::{Layer, Span, stack};
pub use svg::escape;

/// How many series colours the style sheet has.
pub const COLOURS: usize = 8;

/// The series colours in the order in which tasks take them: kernels take them from the first on.
const TASK_COLOURS: [usize; COLOURS] = [4, 5, 6, 7, 0, 1, 2, 3];

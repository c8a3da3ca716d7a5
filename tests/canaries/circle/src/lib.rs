//! A circle that `scripts/check_circles.py` must find: `first` uses `second`, which uses `first`.

mod alone;
mod first;
mod second;

pub use second::Second;

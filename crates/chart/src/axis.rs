//! Axes: from values to places in the drawing, with round ticks.

use crate::number::number;
use crate::svg::{Anchor, Svg};

/// A range of values laid along a range of the drawing.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    min: f64,
    max: f64,
    from: f64,
    to: f64,
    step: f64,
    log: bool,
}

impl Axis {
    /// An axis over `values`, widened to round ticks; `zero`: it starts at 0.
    pub fn linear(values: impl Iterator<Item = f64>, zero: bool, (from, to): (f64, f64)) -> Self {
        let (mut min, mut max) = range(values);
        if zero {
            min = min.min(0.0);
            max = max.max(0.0);
        }
        if max - min < 1e-12 * max.abs().max(1e-300) {
            let half = if max == 0.0 { 1.0 } else { max.abs() * 0.1 };
            (min, max) = (if zero && min == 0.0 { 0.0 } else { min - half }, max + half);
        }
        let step = step(max - min);
        // Sums that should be round are so but for rounding.
        let (min, max) = ((min / step + 1e-9).floor() * step, (max / step - 1e-9).ceil() * step);
        Self { min, max, from, to, step, log: false }
    }

    /// An axis of exactly this range.
    pub fn exact((min, max): (f64, f64), (from, to): (f64, f64)) -> Self {
        let max = if max > min { max } else { min + 1.0 };
        Self { min, max, from, to, step: step(max - min), log: false }
    }

    /// A logarithmic axis over whole decades; values not above 0 do not show.
    pub fn log(values: impl Iterator<Item = f64>, (from, to): (f64, f64)) -> Self {
        let (min, max) = range(values.filter(|v| *v > 0.0));
        let (min, max) = if min > 0.0 { (min, max) } else { (1.0, 10.0) };
        let (low, high) = (min.log10().floor(), max.log10().ceil());
        Self { min: 10f64.powf(low), max: 10f64.powf(high.max(low + 1.0)), from, to, step: 1.0, log: true }
    }

    /// The place of a value.
    pub fn at(&self, value: f64) -> f64 {
        let part = if self.log {
            (value.max(self.min * 1e-3).log10() - self.min.log10()) / (self.max.log10() - self.min.log10())
        } else {
            (value - self.min) / (self.max - self.min)
        };
        self.from + (self.to - self.from) * part.clamp(-0.05, 1.05)
    }

    /// The place of its least value.
    pub fn bottom(&self) -> f64 {
        self.from
    }

    /// The round values along it.
    pub fn ticks(&self) -> Vec<f64> {
        if self.log {
            let (low, high) = (self.min.log10().round() as i32, self.max.log10().round() as i32);
            let stride = 1 + (high - low) / 8;
            return (low..=high).step_by(stride as usize).map(|e| 10f64.powi(e)).collect();
        }
        let first = (self.min / self.step - 1e-9).ceil() as i64;
        let last = (self.max / self.step + 1e-9).floor() as i64;
        (first..=last).map(|k| k as f64 * self.step).collect()
    }

    /// Draws the horizontal grid lines and labels of a vertical axis.
    pub fn draw_vertical(&self, svg: &mut Svg, (left, right): (f64, f64)) {
        for tick in self.ticks() {
            let y = self.at(tick);
            svg.line("grid", (left, y), (right, y));
            svg.text("tick", (left - 8.0, y + 4.0), Anchor::End, &number(tick));
        }
    }

    /// Draws the ticks and labels of a horizontal axis at the height `y`.
    pub fn draw_horizontal(&self, svg: &mut Svg, y: f64, suffix: &str) {
        svg.line("axis", (self.from, y), (self.to, y));
        for tick in self.ticks() {
            let x = self.at(tick);
            svg.line("axis", (x, y), (x, y + 5.0));
            svg.text("tick", (x, y + 19.0), Anchor::Middle, &format!("{}{suffix}", number(tick)));
        }
    }
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (min, max) = values
        .filter(|v| v.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), v| (v.min(min), v.max(max)));
    if min <= max { (min, max) } else { (0.0, 1.0) }
}

/// A round step that makes four to nine ticks.
fn step(range: f64) -> f64 {
    let rough = range / 6.0;
    let decade = 10f64.powf(rough.log10().floor());
    decade * [1.0, 2.0, 5.0, 10.0].into_iter().find(|m| m * decade >= rough).unwrap_or(10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for (min, max) in [(0.0, 1.0), (-20.0, 19.0), (0.3, 0.31), (0.0, 58.4), (0.0, 1e9), (5.0, 5.0), (0.0, 0.0)] {
            let axis = Axis::linear([min, max].into_iter(), false, (0.0, 100.0));
            let ticks = axis.ticks();
            assert!((2..=10).contains(&ticks.len()), "{min} {max}: {ticks:?}");
            assert!(axis.at(min) >= 0.0 && axis.at(max) <= 100.0, "{min} {max}");
        }
        let axis = Axis::log([0.015, 86.0].into_iter(), (0.0, 4.0));
        assert_eq!(axis.ticks(), [0.01, 0.1, 1.0, 10.0, 100.0]);
        assert!((axis.at(1.0) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_sum_that_is_round_but_for_rounding_ends_the_axis() {
        let axis = Axis::linear([100.0 + 1e-12].into_iter(), true, (0.0, 10.0));
        assert_eq!(axis.ticks().last(), Some(&100.0));
    }

    #[test]
    fn odd_values_make_an_axis_all_the_same() {
        let axis = Axis::linear([f64::NAN, f64::INFINITY].into_iter(), true, (0.0, 10.0));
        assert!(axis.ticks().len() >= 2);
        assert!(Axis::log([0.0, -1.0].into_iter(), (0.0, 10.0)).ticks().len() >= 2);
    }
}

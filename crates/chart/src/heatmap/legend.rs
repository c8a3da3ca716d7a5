//! The legend of a heat map: its scale of colours, or its kinds.

use super::{RIGHT, Scale, outline};
use crate::canvas::Canvas;
use crate::colour::{KINDS, UNKNOWN, on_scale};
use crate::svg::Anchor;

const LENGTH: f64 = 280.0;
/// Where a scale begins, beside a label of up to [`SHORT`] characters and beside a longer one.
const BEGINS: [f64; 2] = [282.0, 358.0];
const SHORT: usize = 40;

/// A scale with its label; `unknown`: some values are not known.
pub fn scale(canvas: &mut impl Canvas, scale: &Scale, label: &str, unknown: bool) {
    let from = BEGINS[usize::from(label.chars().count() > SHORT)];
    canvas.text("label", (12.0, 66.0), Anchor::Start, label);
    for at in 0..LENGTH as usize {
        let part = (at as f64 + 0.5) / LENGTH;
        canvas.swatch(on_scale(part), (from + at as f64, 55.0), (1.0, 13.0));
    }
    outline(canvas, (from, 55.0), (LENGTH, 13.0));
    for (part, name) in scale.ticks() {
        let x = from + part * LENGTH;
        canvas.line("axis", (x, 68.0), (x, 72.0));
        canvas.text("tick", (x, 84.0), Anchor::Middle, &name);
    }
    if unknown {
        let x = from + LENGTH + 50.0;
        canvas.swatch(UNKNOWN, (x, 55.0), (13.0, 13.0));
        canvas.text("label", (x + 20.0, 66.0), Anchor::Start, "not known");
    }
}

/// The kinds with their names.
pub fn kinds(canvas: &mut impl Canvas, names: &[(u8, String)]) {
    let (mut x, mut y) = (12.0, 66.0);
    for (kind, name) in names {
        let width = 44.0 + 7.6 * name.chars().count() as f64;
        if x + width > RIGHT {
            (x, y) = (12.0, y + 20.0);
        }
        canvas.swatch(KINDS[usize::from(*kind)], (x, y - 11.0), (13.0, 13.0));
        canvas.text("label", (x + 20.0, y), Anchor::Start, name);
        x += width;
    }
}

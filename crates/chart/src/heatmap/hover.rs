//! What a heat map in a page shows when it is pointed at: the values of parts of its rows.

use super::{Cells, LEFT, Picture, RIGHT, TOP};
use crate::number::number;
use crate::svg::Svg;
use crate::time::unit;

/// Up to so many parts of a picture have a text of their own.
const MOST_PARTS: usize = 800;

/// Lays the parts over the picture: of each row some columns together, with the mean of their values. Kinds have none.
pub fn values(svg: &mut Svg, picture: &Picture) {
    let Cells::Values { values, .. } = &picture.cells else { return };
    let rows = picture.rows.len().max(1);
    let parts = (MOST_PARTS / rows).clamp(1, 60).min(picture.columns);
    let height = picture.row() as f64;
    let (from, to) = picture.span;
    let (size, name) = unit(to as f64);
    let time = |column: usize| {
        let passed = (to - from) as f64 * column as f64 / picture.columns as f64;
        number((from as f64 + passed) / size)
    };
    for (r, (row, cells)) in picture.rows.iter().zip(values.chunks(picture.columns)).enumerate() {
        for part in 0..parts {
            let (first, last) = (part * picture.columns / parts, (part + 1) * picture.columns / parts);
            let known: Vec<f64> = cells[first..last].iter().flatten().copied().collect();
            if known.is_empty() {
                continue;
            }
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            let title = format!("{}, {} to {} {name}: {mean:.2}", row.name(), time(first), time(last));
            let x = |column: usize| LEFT + (RIGHT - LEFT) * column as f64 / picture.columns as f64;
            svg.rect("hover", (x(first), TOP + r as f64 * height), (x(last) - x(first), height), &title);
        }
    }
}

//! Pies: the parts of a whole.

use crate::colour::SERIES;
use crate::number::number;
use crate::svg::{Anchor, Svg};

const SIZE: f64 = 300.0;
const RADIUS: f64 = 92.0;
const CENTRE: (f64, f64) = (110.0, 128.0);

/// Draws the parts from the top, clockwise, each with its name and its share.
pub fn pie(title: &str, parts: &[(String, f64)]) -> String {
    let whole: f64 = parts.iter().map(|(_, value)| value.max(0.0)).sum();
    let mut svg = Svg::new(SIZE + 160.0, 236.0, title);
    svg.text("heading", (0.0, 16.0), Anchor::Start, title);
    let mut from = 0.0;
    for (i, (label, value)) in parts.iter().enumerate() {
        let share = if whole > 0.0 { value.max(0.0) / whole } else { 0.0 };
        let words = format!("{label}: {}%", number((share * 1000.0).round() / 10.0));
        svg.path(&format!("area s{}", i % SERIES), &slice(from, from + share), true, &words);
        let y = 60.0 + 22.0 * i as f64;
        svg.rect(&format!("bar s{}", i % SERIES), (232.0, y - 10.0), (12.0, 12.0), "");
        svg.text("legend", (250.0, y), Anchor::Start, &words);
        from += share;
    }
    svg.finish()
}

/// The outline of a slice, in parts of the whole turn. Its arc is drawn in steps of a degree.
fn slice(from: f64, to: f64) -> Vec<(f64, f64)> {
    let at = |part: f64| {
        let angle = (part - 0.25) * std::f64::consts::TAU;
        (CENTRE.0 + RADIUS * angle.cos(), CENTRE.1 + RADIUS * angle.sin())
    };
    let steps = ((to - from) * 360.0).ceil().max(1.0) as usize;
    let arc = (0..=steps).map(|k| at(from + (to - from) * k as f64 / steps as f64));
    std::iter::once(CENTRE).chain(arc).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_whole() {
        let svg = pie("t", &[("a".into(), 1.0), ("b".into(), 3.0)]);
        assert!(svg.contains("a: 25%") && svg.contains("b: 75%"), "{svg}");
        let quarter = slice(0.0, 0.25);
        let (x, y) = quarter[quarter.len() - 1];
        assert!((x - CENTRE.0 - RADIUS).abs() < 1e-9 && (y - CENTRE.1).abs() < 1e-9, "a quarter ends at the right");
    }
}

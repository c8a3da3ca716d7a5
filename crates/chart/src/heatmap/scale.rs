//! From a cell's value to its place on the scale of colours.

use crate::colour::{KNEE, Rgb, on_scale};
use crate::number::number;

/// A scale of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    top: f64,
    highest: f64,
    powers: bool,
}

impl Scale {
    /// A scale in proportion, from 0 to `top`; its legend says so when values reach higher, up to `highest`.
    #[must_use]
    pub fn linear(top: f64, highest: f64) -> Self {
        Self { top, highest, powers: false }
    }

    /// A scale from 0 to `top` that goes by powers of two above one, so that none, one and two differ however high the
    /// top is.
    #[must_use]
    pub fn powers(top: f64) -> Self {
        Self { top, highest: top, powers: true }
    }

    /// Where a value lies, 0 to 1.
    fn part(&self, value: f64) -> f64 {
        let part = match value {
            _ if !self.powers => value / self.top,
            ..=1.0 => value * KNEE,
            _ => KNEE + (1.0 - KNEE) * value.log2() / self.top.log2(),
        };
        part.clamp(0.0, 1.0)
    }

    /// The colour of a value.
    pub(super) fn colour(&self, value: f64) -> Rgb {
        on_scale(self.part(value))
    }

    /// The values that its legend names, with their places (0 to 1).
    #[must_use]
    pub fn ticks(&self) -> Vec<(f64, String)> {
        if !self.powers {
            let more = if self.highest > self.top { "\u{2265} " } else { "" };
            let label =
                |part: f64| if part < 1.0 { number(part * self.top) } else { more.to_owned() + &number(self.top) };
            return [0.0, 0.25, 0.5, 0.75, 1.0].map(|part| (part, label(part))).to_vec();
        }
        let powers = (0..20).map(|k| f64::from(1u32 << k)).take_while(|value| self.part(*value) < 0.92);
        let values = [0.0].into_iter().chain(powers).chain([self.top]);
        values.map(|value| (self.part(value), number(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::colour::{NOTHING, lightness};

    #[test]
    fn none_and_one_and_two_differ_however_long_the_longest_queue() {
        for longest in [4.0, 16.0, 1_000.0] {
            let scale = Scale::powers(longest);
            let [none, one, two] = [0.0, 1.0, 2.0].map(|n| lightness(scale.colour(n)));
            assert_eq!(scale.colour(0.0), NOTHING);
            assert!(none > 2.0 * one && one > 1.1 * two, "{longest}: {none} {one} {two}");
        }
    }

    #[test]
    fn legends_name_round_values_in_order() {
        let names = |scale: Scale| {
            let ticks = scale.ticks();
            assert!(ticks.windows(2).all(|pair| pair[0].0 < pair[1].0), "{ticks:?}");
            ticks.into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(Scale::powers(4.0)), "0 1 2 4");
        assert_eq!(names(Scale::powers(11.0)), "0 1 2 4 8 11");
        assert_eq!(names(Scale::linear(1024.0, 1024.0)), "0 256 512 768 1024");
        assert!(names(Scale::linear(100.0, 1e9)).ends_with("\u{2265} 100"));
    }
}

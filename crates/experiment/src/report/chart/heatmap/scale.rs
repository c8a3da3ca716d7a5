//! From a cell's value to its colour.
//!
//! Nothing is white, and all else is darker the more it is: what differs in lightness is told apart by every eye and on
//! paper. The colours are those of viridis, its dark end last. Reasons have the colours of Okabe and Ito.

use crate::text::number;
use schedlab_base::Looking;
use schedlab_measure::heatmap::{Cells, Heat, Looks, What};

/// A colour: red, green, blue.
pub type Rgb = [u8; 3];

/// Of no value, and of 0.
pub const NOTHING: Rgb = [255, 255, 255];
/// What is not known.
pub const UNKNOWN: Rgb = [189, 184, 178];

/// viridis at equal steps from its bright end down, without the brightest yellows: white stands before them.
const VIRIDIS: [Rgb; 7] =
    [[92, 200, 99], [39, 173, 129], [33, 144, 141], [44, 113, 142], [59, 81, 139], [71, 44, 122], [68, 1, 84]];

/// The part of the scale in which white goes over into the first of [`VIRIDIS`]: for queues, from none to one task.
const KNEE: f64 = 0.2;

/// The colours of reasons, in the order of [`Looking::ALL`].
const REASONS: [Rgb; Looking::ALL.len()] = [
    [0, 114, 178],
    [86, 180, 233],
    [204, 121, 167],
    [0, 158, 115],
    [213, 94, 0],
    [230, 159, 0],
    [0, 0, 0],
    [122, 81, 149],
];

/// A scale of queues reaches to so many tasks at least: two are no crowd.
const LEAST: f64 = 4.0;

/// All but one in so many cells lie within a scale of loads.
const OUTLIERS: usize = 200;

/// A scale of values: runnable tasks by powers of two above one, loads in proportion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    top: f64,
    highest: f64,
    powers: bool,
}

impl Scale {
    /// One scale for pictures that are to be compared.
    pub fn of<'a>(heats: impl Iterator<Item = &'a Heat> + Clone) -> Self {
        let highest = heats.clone().map(Heat::highest).fold(0.0, f64::max);
        let powers = heats.clone().any(|heat| heat.what == What::Queue);
        let top = match heats.clone().next().map(|heat| &heat.what) {
            Some(What::Memory) if highest > 1024.0 => (highest / 1024.0).ceil() * 1024.0,
            Some(What::Memory) => highest.max(1.0),
            _ if powers => highest.ceil().max(LEAST),
            _ => usual(heats),
        };
        Self { top, highest, powers }
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
    pub fn colour(&self, value: f64) -> Rgb {
        colour_at(self.part(value))
    }

    /// The values that its legend names, with their places (0 to 1).
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

/// The load that hardly a cell exceeds; 1 where there is none.
fn usual<'a>(heats: impl Iterator<Item = &'a Heat>) -> f64 {
    let means = |heat: &'a Heat| match &heat.cells {
        Cells::Means(means) => means.as_slice(),
        Cells::Looks(_) => &[],
    };
    let mut loads: Vec<f64> = heats.flat_map(means).flatten().copied().filter(|load| *load > 0.0).collect();
    loads.sort_by(f64::total_cmp);
    loads.get((loads.len().max(1) - 1) * (OUTLIERS - 1) / OUTLIERS).copied().unwrap_or(1.0)
}

/// The colour of a place on a scale.
pub fn colour_at(part: f64) -> Rgb {
    if part < KNEE {
        return between(NOTHING, VIRIDIS[0], part / KNEE);
    }
    let at = (part - KNEE) / (1.0 - KNEE) * (VIRIDIS.len() - 1) as f64;
    let first = (at as usize).min(VIRIDIS.len() - 2);
    between(VIRIDIS[first], VIRIDIS[first + 1], at - first as f64)
}

fn between(a: Rgb, b: Rgb, part: f64) -> Rgb {
    std::array::from_fn(|k| (f64::from(a[k]) + (f64::from(b[k]) - f64::from(a[k])) * part).round() as u8)
}

/// The colour of a reason.
pub fn reason(why: Looking) -> Rgb {
    REASONS[why as usize]
}

/// The colour of the reason for most of the looks.
pub fn most(looks: &Looks) -> Rgb {
    let most = looks.iter().copied().max().unwrap_or(0);
    looks.iter().position(|count| *count == most).filter(|_| most > 0).map_or(NOTHING, |why| REASONS[why])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How light a colour is, as sRGB's luminance has it.
    fn lightness(colour: Rgb) -> f64 {
        let linear = |c: u8| (f64::from(c) / 255.0).powf(2.2);
        0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2])
    }

    fn heat(what: What, means: &[f64]) -> Heat {
        let cells = Cells::Means(means.iter().copied().map(Some).collect());
        Heat { what, from: 0, to: 1, rows: Vec::new(), columns: 1, cells, told: true }
    }

    #[test]
    fn more_is_always_darker() {
        let lights: Vec<f64> = (0..=100).map(|k| lightness(colour_at(f64::from(k) / 100.0))).collect();
        assert!(lights.windows(2).all(|pair| pair[1] < pair[0] + 1e-9), "{lights:?}");
    }

    #[test]
    fn none_and_one_and_two_differ_however_long_the_longest_queue() {
        for longest in [1.0, 2.0, 3.0, 16.0, 1_000.0] {
            let scale = Scale::of([heat(What::Queue, &[0.0, longest])].iter());
            let [none, one, two] = [0.0, 1.0, 2.0].map(|n| lightness(scale.colour(n)));
            assert_eq!(scale.colour(0.0), NOTHING);
            assert!(none > 2.0 * one && one > 1.1 * two, "{longest}: {none} {one} {two}");
        }
    }

    #[test]
    fn legends_name_round_values_in_order() {
        let names = |what: What, means: &[f64]| {
            let ticks = Scale::of([heat(what, means)].iter()).ticks();
            assert!(ticks.windows(2).all(|pair| pair[0].0 < pair[1].0), "{ticks:?}");
            ticks.into_iter().map(|(_, name)| name).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(What::Queue, &[0.0, 0.5]), "0 1 2 4");
        assert_eq!(names(What::Queue, &[10.5]), "0 1 2 4 8 11", "the top is a whole number");
        assert_eq!(names(What::Load, &[512.0, 1024.0, 1024.0]), "0 256 512 768 1024");
        let mut loads = vec![100.0; 1_000];
        loads.push(1e9);
        assert!(names(What::Load, &loads).ends_with("\u{2265} 100"));
    }

    #[test]
    fn the_most_frequent_reason_gives_the_colour() {
        assert_eq!(most(&[0; 8]), NOTHING);
        assert_eq!(most(&[1, 0, 0, 2, 0, 0, 0, 0]), reason(Looking::NewIdle));
        let mut all: Vec<Rgb> = Looking::ALL.iter().map(|(why, _)| reason(*why)).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), Looking::ALL.len());
    }
}

//! The colours of pictures.
//!
//! Nothing is white, and more is always darker: every eye, and a copy on paper, can tell colours apart that differ in
//! lightness. The scale has the colours of viridis, its dark end last; kinds have the colours of Okabe and Ito.

/// A colour: red, green, blue.
pub type Rgb = [u8; 3];

/// The series colours of a page's style sheet (`s0`, `s1`, ...).
pub const SERIES: usize = 8;

/// The order in which tasks take the series colours; kernels take them from the first on.
pub const TASKS: [usize; SERIES] = [4, 5, 6, 7, 0, 1, 2, 3];

/// Of no value, and of 0.
pub const NOTHING: Rgb = [255, 255, 255];
/// Of a value that is not known.
pub const UNKNOWN: Rgb = [189, 184, 178];

/// viridis at equal steps from its bright end down, without the brightest yellows: white stands before them.
const VIRIDIS: [Rgb; 7] =
    [[92, 200, 99], [39, 173, 129], [33, 144, 141], [44, 113, 142], [59, 81, 139], [71, 44, 122], [68, 1, 84]];

/// The part of a scale in which white goes over into the first of [`VIRIDIS`].
pub const KNEE: f64 = 0.2;

/// The colours of kinds.
pub const KINDS: [Rgb; 8] = [
    [0, 114, 178],
    [86, 180, 233],
    [204, 121, 167],
    [0, 158, 115],
    [213, 94, 0],
    [230, 159, 0],
    [0, 0, 0],
    [122, 81, 149],
];

/// The colour of a place on a scale, 0 to 1.
pub fn on_scale(part: f64) -> Rgb {
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

/// How light a colour is, as sRGB's luminance has it.
#[cfg(test)]
pub fn lightness(colour: Rgb) -> f64 {
    let linear = |c: u8| (f64::from(c) / 255.0).powf(2.2);
    0.2126 * linear(colour[0]) + 0.7152 * linear(colour[1]) + 0.0722 * linear(colour[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_always_darker() {
        let lights: Vec<f64> = (0..=100).map(|k| lightness(on_scale(f64::from(k) / 100.0))).collect();
        assert!(lights.windows(2).all(|pair| pair[1] < pair[0] + 1e-9), "{lights:?}");
    }

    #[test]
    fn kinds_have_different_colours() {
        let mut all = KINDS.to_vec();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), KINDS.len());
    }
}

//! Drawing on pixels, two by two for each unit of length, so that small text is sharp.

use crate::canvas::{Canvas, Tiles};
use crate::colour::{NOTHING, Rgb};
use crate::png::encode;
use crate::svg::Anchor;
use ab_glyph::{Font, FontRef, Glyph, PxScale, ScaleFont, point};

const FONT: &[u8] = include_bytes!("../fonts/labels.ttf");
/// Pixels for each unit.
const SHARP: f64 = 2.0;

const INK: Rgb = [0x1c, 0x21, 0x27];
const SOFT: Rgb = [0x5b, 0x66, 0x72];
const RULE: Rgb = [0xd9, 0xde, 0xe4];

/// A picture in the making.
pub struct Raster {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
    font: FontRef<'static>,
}

/// Size and colour of a class of text, and whether it is bold.
fn lettering(class: &str) -> (f64, Rgb, bool) {
    match class {
        "heading" => (15.0, INK, true),
        "tick small" => (10.0, SOFT, false),
        "tick" => (12.0, SOFT, false),
        _ => (13.0, SOFT, false),
    }
}

impl Raster {
    /// An empty picture, so many units wide and high.
    pub fn new(width: f64, height: f64) -> Self {
        let (width, height) = ((width * SHARP) as usize, (height * SHARP) as usize);
        let font = FontRef::try_from_slice(FONT).expect("the font is part of the program");
        Self { width, height, pixels: vec![255; 3 * width * height], font }
    }

    /// The picture as a PNG.
    pub fn finish(self) -> Vec<u8> {
        encode(self.width as u32, self.height as u32, &self.pixels)
    }

    fn blend(&mut self, (x, y): (i64, i64), colour: Rgb, cover: f32) {
        let inside = |at: i64, size: usize| usize::try_from(at).ok().filter(|at| *at < size);
        let (Some(x), Some(y)) = (inside(x, self.width), inside(y, self.height)) else { return };
        let at = 3 * (y * self.width + x);
        for (below, ink) in self.pixels[at..at + 3].iter_mut().zip(colour) {
            *below = (f32::from(*below) + (f32::from(ink) - f32::from(*below)) * cover.clamp(0.0, 1.0)).round() as u8;
        }
    }

    /// Fills whole pixels.
    fn fill(&mut self, colour: Rgb, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let to = |at: f64| (at * SHARP).round() as i64;
        for y in to(y)..to(y + height).max(to(y) + 1) {
            for x in to(x)..to(x + width).max(to(x) + 1) {
                self.blend((x, y), colour, 1.0);
            }
        }
    }

    /// Letters on a line that begins at its point and goes on to the right, or upwards.
    fn letters(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str, upwards: bool) {
        let (size, colour, bold) = lettering(class);
        // ab_glyph measures a font by its height, everybody else by its em.
        let em = self.font.units_per_em().unwrap_or(1000.0);
        let scale = PxScale::from((size * SHARP) as f32 * self.font.height_unscaled() / em);
        let font = self.font.clone();
        let scaled = font.as_scaled(scale);
        let mut glyphs: Vec<Glyph> = Vec::new();
        let mut pen = 0.0;
        for letter in text.chars() {
            let id = Some(scaled.glyph_id(letter)).filter(|id| id.0 != 0).unwrap_or(scaled.glyph_id('\u{fffd}'));
            glyphs.push(id.with_scale_and_position(scale, point(pen, 0.0)));
            pen += scaled.h_advance(id);
        }
        let shift = match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => -pen / 2.0,
            Anchor::End => -pen,
        };
        let (x, y) = ((at.0 * SHARP).round() as i64, (at.1 * SHARP).round() as i64);
        for outlined in glyphs.into_iter().filter_map(|glyph| font.outline_glyph(glyph)) {
            let bounds = outlined.px_bounds();
            let (left, top) = ((bounds.min.x + shift).round() as i64, bounds.min.y as i64);
            outlined.draw(|across, down, cover| {
                let (along, below) = (left + i64::from(across), top + i64::from(down));
                for bolder in 0..=i64::from(bold) {
                    let (along, place) = (along + bolder, (x, y));
                    let pixel =
                        if upwards { (place.0 + below, place.1 - along) } else { (place.0 + along, place.1 + below) };
                    self.blend(pixel, colour, cover);
                }
            });
        }
    }
}

impl Canvas for Raster {
    fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let (colour, width) = match class {
            "node" => (INK, 1.5),
            "gap" => (NOTHING, 4.0),
            "axis" => (SOFT, 1.0),
            _ => (RULE, 0.5),
        };
        let half = width / 2.0;
        if y1 == y2 {
            self.fill(colour, (x1.min(x2), y1 - half), ((x2 - x1).abs(), width));
        } else {
            self.fill(colour, (x1 - half, y1.min(y2)), (width, (y2 - y1).abs()));
        }
    }

    fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        self.letters(class, at, anchor, text, false);
    }

    fn text_up(&mut self, class: &str, at: (f64, f64), text: &str) {
        self.letters(class, at, Anchor::Middle, text, true);
    }

    fn swatch(&mut self, colour: Rgb, at: (f64, f64), size: (f64, f64)) {
        self.fill(colour, at, size);
    }

    fn tiles(&mut self, tiles: &Tiles, (x, y): (f64, f64)) {
        for (at, colour) in tiles.colours.iter().enumerate() {
            let (row, column) = (at / tiles.columns * tiles.row, at % tiles.columns);
            self.fill(*colour, (x + column as f64, y + row as f64), (1.0, tiles.row as f64));
        }
    }
}

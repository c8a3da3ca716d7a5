//! What a picture is drawn on: an SVG, or the pixels of a PNG.

use crate::colour::Rgb;
use crate::png::encode;
use crate::svg::{Anchor, Svg};

/// The cells' colours, row after row from the top.
pub struct Tiles {
    /// Columns, each one unit wide.
    pub columns: usize,
    /// How high a row is.
    pub row: usize,
    /// The colours.
    pub colours: Vec<Rgb>,
}

/// Takes the parts of a drawing; classes are those of the page's style sheet.
pub trait Canvas {
    /// A straight line.
    fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64));
    /// A text.
    fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str);
    /// A text that runs upwards, centred at its point.
    fn text_up(&mut self, class: &str, at: (f64, f64), text: &str);
    /// A rectangle of one colour.
    fn swatch(&mut self, colour: Rgb, at: (f64, f64), size: (f64, f64));
    /// The cells.
    fn tiles(&mut self, tiles: &Tiles, at: (f64, f64));
}

impl Canvas for Svg {
    fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        Svg::line(self, class, from, to);
    }

    fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        Svg::text(self, class, at, anchor, text);
    }

    fn text_up(&mut self, class: &str, at: (f64, f64), text: &str) {
        Svg::text_up(self, class, at, text);
    }

    fn swatch(&mut self, [red, green, blue]: Rgb, at: (f64, f64), size: (f64, f64)) {
        self.filled(&format!("#{red:02x}{green:02x}{blue:02x}"), at, size);
    }

    /// As a PNG in the SVG: tens of thousands of rectangles would take a hundred times as much.
    fn tiles(&mut self, tiles: &Tiles, at: (f64, f64)) {
        let rows = tiles.colours.len() / tiles.columns;
        let mut pixels = Vec::with_capacity(3 * tiles.colours.len() * tiles.row);
        for row in tiles.colours.chunks(tiles.columns) {
            (0..tiles.row).for_each(|_| pixels.extend(row.iter().flatten()));
        }
        let (width, height) = (tiles.columns, rows * tiles.row);
        let png = encode(width as u32, height as u32, &pixels);
        self.image(at, (width as f64, height as f64), &png);
    }
}

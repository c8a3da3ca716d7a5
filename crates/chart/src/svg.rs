//! Writes SVG elements.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write;

/// A drawing in the making.
pub struct Svg {
    out: String,
}

/// Where a text stands to its point.
#[derive(Clone, Copy)]
pub enum Anchor {
    /// It starts there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

/// Text made safe for HTML and SVG, in content and in quoted attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The text, or so many of its characters and an ellipsis.
pub fn clip(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        text.to_owned()
    } else {
        text.chars().take(most - 1).chain(['\u{2026}']).collect()
    }
}

impl Svg {
    /// An empty drawing of that size; `label` says to a screen reader what it shows.
    pub fn new(width: f64, height: f64, label: &str) -> Self {
        let mut out = String::new();
        let _ = write!(
            out,
            "<svg class=\"chart\" viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">",
            escape(label)
        );
        Self { out }
    }

    /// A drawing for a file of its own, with its own style and a white ground.
    pub fn standalone(width: f64, height: f64, label: &str, style: &str) -> Self {
        let mut svg = Self::new(width, height, label);
        let size = format!("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\"");
        svg.out = svg.out.replacen("<svg", &size, 1);
        let _ = write!(svg.out, "<style>{style}</style>");
        svg.filled("#ffffff", (0.0, 0.0), (width, height));
        svg
    }

    /// A rectangle of a colour that does not follow the page's.
    pub fn filled(&mut self, colour: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let _ = write!(
            self.out,
            "<rect fill=\"{colour}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        );
    }

    /// A picture (a PNG), its pixels kept apart when it is enlarged.
    pub fn image(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), png: &[u8]) {
        let _ = write!(
            self.out,
            "<image x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             preserveAspectRatio=\"none\" style=\"image-rendering:pixelated\" href=\"data:image/png;base64,{}\"/>",
            STANDARD.encode(png)
        );
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let _ =
            write!(self.out, "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>");
    }

    /// A rectangle, with a tooltip where `title` says something.
    pub fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), title: &str) {
        let size =
            format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.2}\" height=\"{:.2}\"", width.max(0.0), height.max(0.0));
        self.titled("rect", &format!("class=\"{class}\" {size}"), title);
    }

    /// A rectangle of the sequential scale, at `part` of it (0 to 1).
    pub fn cell(&mut self, part: f64, (x, y): (f64, f64), (width, height): (f64, f64), title: &str) {
        let size = format!("x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{height:.2}\"");
        self.titled("rect", &format!("class=\"cell\" {size} fill-opacity=\"{part:.2}\""), title);
    }

    /// A circle.
    pub fn circle(&mut self, class: &str, (x, y): (f64, f64), radius: f64, title: &str) {
        self.titled("circle", &format!("class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\""), title);
    }

    /// An open line through points, or a closed area.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)], closed: bool, title: &str) {
        let mut d = String::new();
        for (i, (x, y)) in points.iter().enumerate() {
            let _ = write!(d, "{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' });
        }
        if closed {
            d.push('Z');
        }
        self.titled("path", &format!("class=\"{class}\" d=\"{d}\""), title);
    }

    /// A text.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let _ = write!(
            self.out,
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>",
            escape(text)
        );
    }

    /// A text that runs upwards, centred at its point.
    pub fn text_up(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let _ = write!(
            self.out,
            "<text class=\"{class}\" transform=\"translate({x:.1} {y:.1}) rotate(-90)\" \
             text-anchor=\"middle\">{}</text>",
            escape(text)
        );
    }

    fn titled(&mut self, element: &str, attributes: &str, title: &str) {
        let _ = if title.is_empty() {
            write!(self.out, "<{element} {attributes}/>")
        } else {
            write!(self.out, "<{element} {attributes}><title>{}</title></{element}>", escape(title))
        };
    }

    /// The finished drawing.
    pub fn finish(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }
}

//! Tables and readable numbers.

use schedlab_base::is_hidden;
pub use schedlab_base::{counted, duration_text as duration, grouped};
use schedlab_trace::ReadReport;
use std::cmp::Reverse;

/// A part of the whole.
pub fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// The events that were passed over, by name with their numbers, the most frequent first.
pub fn kinds_text(report: &ReadReport) -> String {
    let mut kinds: Vec<_> = report.kinds.iter().collect();
    kinds.sort_by_key(|(name, count)| (Reverse(**count), *name));
    kinds.iter().map(|(name, count)| format!("{} {name}", grouped(**count))).collect::<Vec<_>>().join(", ")
}

/// A name that fits a column and cannot disturb the terminal.
pub fn shorten(name: &str) -> String {
    const WIDTH: usize = 32;
    let clean = |c: char| if is_hidden(c) { '?' } else { c };
    match name.chars().count() {
        n if n <= WIDTH => name.chars().map(clean).collect(),
        n => std::iter::once('…').chain(name.chars().skip(n - WIDTH + 1).map(clean)).collect(),
    }
}

/// A table: the first `left` columns flush left, the rest right; the last row is the total.
pub struct Table {
    left: usize,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these heads.
    pub fn new(left: usize, heads: impl IntoIterator<Item = &'static str>) -> Self {
        Self { left, rows: vec![heads.into_iter().map(str::to_owned).collect()] }
    }

    /// Adds a row, as long as the head.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Takes the column with this head out, if there is one.
    pub fn drop_head(&mut self, head: &str) {
        let Some(at) = self.rows[0].iter().position(|text| text == head) else { return };
        self.rows.iter_mut().for_each(|row| drop(row.remove(at)));
        self.left -= usize::from(at < self.left);
    }

    /// The text, a line for each row.
    pub fn render(&self) -> String {
        let width = |at: usize| self.rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.rows[0].len()).map(width).collect();
        let line = |row: &Vec<String>| {
            let cell = |(at, text): (usize, &String)| {
                let width = widths[at];
                if at < self.left { format!("{text:<width$}") } else { format!("{text:>width$}") }
            };
            row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
        };
        self.rows.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!([0.0, 0.5, 1500.0, 2e6].map(duration), ["0", "0.500 us", "1.500 ms", "2.000 s"]);
        assert_eq!(shorten("a\x1b[31mb"), "a?[31mb");
        assert_eq!(shorten(&"x".repeat(40)).chars().count(), 32);
    }
}

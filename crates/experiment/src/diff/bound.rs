//! Bounds for CI: how much a figure may grow.

use super::{DURATION, Row};
use schedlab_base::{Error, Result, counted, listed, nearest, parse_duration};
use schedlab_measure::compared::{FIGURES, Figure, Unit};
use serde::Serialize;
use std::fmt::Write;
use std::str::FromStr;

/// A bound: `wait > +10%`, `server: p99 > +200us`, `*: wait > +25%`.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    text: String,
    /// The row; all tasks where none is named, each row for `*`.
    row: Option<String>,
    figure: &'static str,
    /// Whether it is about growing; else about shrinking.
    above: bool,
    by: By,
}

/// By how much.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    /// A part of what it was.
    Part(f64),
    /// Microseconds, or a number.
    Amount(f64),
}

/// What became of a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ruling {
    /// The whole interval is within the bound.
    Held,
    /// The interval contains the bound, or there is none, or the figure is unknown.
    Undecided,
    /// The whole interval is beyond the bound.
    Exceeded,
}

/// A bound, judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// As it was written.
    pub bound: String,
    /// What became of it.
    pub ruling: Ruling,
    /// Why: the rows that decide it.
    pub reason: String,
}

/// The names of figures that are shorter than their keys.
const SHORT: [(&str, &str); 9] = [
    ("run", "run_us"),
    ("wait", "wait_us"),
    ("switches", "slices"),
    ("duration", "duration_us"),
    ("p50", "latency_p50_us"),
    ("p90", "latency_p90_us"),
    ("p99", "latency_p99_us"),
    ("p99.9", "latency_p999_us"),
    ("p999", "latency_p999_us"),
];

/// Every figure that a bound may name.
fn figures() -> impl Iterator<Item = &'static Figure> {
    FIGURES.iter().chain(std::iter::once(&DURATION))
}

impl FromStr for Bound {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong =
            |what: String| Error::input(what).mend("write [ROW:] FIGURE > +10%, for example \"server: p99 > +200us\"");
        let at = text.find(['>', '<']).ok_or_else(|| wrong(format!("\"{text}\" has neither > nor <")))?;
        let (left, right) = (text[..at].trim(), text[at + 1..].trim());
        let (row, name) = match left.rsplit_once(':') {
            Some((row, figure)) => (Some(row.trim().to_owned()), figure.trim()),
            None => (None, left),
        };
        let key = SHORT.iter().find(|(short, _)| *short == name).map_or(name, |(_, key)| key);
        let figure = figures().find(|figure| figure.key == key).ok_or_else(|| {
            let names: Vec<&str> = SHORT.iter().map(|(short, _)| *short).chain(["migrations", "wakeups"]).collect();
            let error = Error::input(format!("there is no figure \"{name}\""));
            match nearest(name, names.iter().copied()) {
                Some(near) => error.mend(format!("did you mean \"{near}\"?")),
                None => error.mend(format!("known are {}", names.join(", "))),
            }
        })?;
        let unsigned = right.strip_prefix(['+', '-']).unwrap_or(right);
        let sign = if right.starts_with('-') { -1.0 } else { 1.0 };
        let number = |text: &str| text.trim().parse::<f64>().ok().filter(|value| value.is_finite());
        let by = match (unsigned.strip_suffix('%'), figure.unit) {
            (Some(percent), _) => number(percent).map(|percent| By::Part(sign * percent / 100.0)),
            (None, Unit::Count) => number(unsigned).map(|count| By::Amount(sign * count)),
            (None, Unit::Time) => Some(By::Amount(sign * parse_duration(unsigned)? as f64 / 1e3)),
        };
        let by = by.ok_or_else(|| wrong(format!("\"{right}\" is no part and no amount")))?;
        let above = text.as_bytes()[at] == b'>';
        Ok(Self { text: text.trim().to_owned(), row, figure: figure.key, above, by })
    }
}

impl Bound {
    /// Holds the rows against it; the first is all tasks.
    pub(super) fn judge(&self, rows: &[&Row]) -> Judged {
        let judged = |ruling, reason| Judged { bound: self.text.clone(), ruling, reason };
        let chosen: Vec<&Row> = match self.row.as_deref() {
            None => rows[..1].to_vec(),
            Some("*") => rows[1..].to_vec(),
            Some(name) => rows.iter().copied().filter(|row| row.name == name).collect(),
        };
        if chosen.is_empty() {
            let name = self.row.as_deref().unwrap_or_default();
            let near = nearest(name, rows.iter().map(|row| row.name.as_str()));
            let near = near.map_or_else(String::new, |near| format!("; did you mean \"{near}\"?"));
            return judged(Ruling::Undecided, format!("no row \"{name}\" is in both{near}"));
        }
        // Of many rows, one is beyond its interval by chance.
        let level = 1.0 - 0.05 / chosen.len() as f64;
        let rulings: Vec<(Ruling, String)> = chosen.iter().map(|row| self.judge_row(row, level)).collect();
        let worst = rulings.iter().map(|(ruling, _)| *ruling).max().unwrap_or(Ruling::Undecided);
        let reasons: Vec<String> =
            rulings.into_iter().filter(|(ruling, _)| *ruling == worst).map(|(_, reason)| reason).collect();
        let reason = if worst == Ruling::Held && reasons.len() > 1 {
            counted(reasons.len() as u64, "row")
        } else {
            listed(&reasons)
        };
        judged(worst, reason)
    }

    fn judge_row(&self, row: &Row, level: f64) -> (Ruling, String) {
        if row.unknown.contains(&self.figure) {
            return (Ruling::Undecided, format!("{}: unknown, because a recording is partial", row.name));
        }
        let Some(effect) = row.figures.get(self.figure) else {
            return (Ruling::Undecided, format!("{}: too few wake-ups", row.name));
        };
        let (interval, bound) = match self.by {
            By::Part(part) => (effect.relative(level), part),
            By::Amount(amount) => (effect.absolute(), amount),
        };
        let mut reason = format!("{}: {}", row.name, self.shown(effect.change, effect.b - effect.a));
        let Some([low, high]) = interval else {
            reason += ", and nothing to judge its scatter by";
            return (Ruling::Undecided, reason);
        };
        let _ = write!(reason, ", {} to {}", self.shown(low, low), self.shown(high, high));
        let ruling = match self.above {
            true if low > bound => Ruling::Exceeded,
            true if high <= bound => Ruling::Held,
            false if high < bound => Ruling::Exceeded,
            false if low >= bound => Ruling::Held,
            _ => Ruling::Undecided,
        };
        (ruling, reason)
    }

    fn shown(&self, part: f64, amount: f64) -> String {
        let time = figures().any(|figure| figure.key == self.figure && figure.unit == Unit::Time);
        match self.by {
            By::Part(_) => format!("{:+.1}%", part * 100.0),
            By::Amount(_) if time => format!("{amount:+.1} us"),
            By::Amount(_) => format!("{amount:+.1}"),
        }
    }
}

impl Ruling {
    /// The exit status that it asks for.
    #[must_use]
    pub fn exit_status(self) -> u8 {
        match self {
            Self::Held => 0,
            Self::Exceeded => 1,
            Self::Undecided => 3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Effect;
    use super::*;
    use std::collections::BTreeMap;

    fn row(name: &str, a: &[f64], b: &[f64]) -> Row {
        let effect = Effect::new("wait_us", a.to_vec(), b.to_vec(), 0.0, a.len() > 1);
        Row {
            name: name.to_owned(),
            tasks: [1.0, 1.0],
            figures: BTreeMap::from([("wait_us", effect)]),
            unknown: vec!["migrations"],
        }
    }

    #[test]
    fn a_bound_is_exceeded_beyond_the_interval_only() {
        let all = row("all tasks", &[100.0, 101.0, 99.0], &[130.0, 131.0, 129.0]);
        let loose = row("loose", &[100.0, 150.0, 50.0], &[130.0, 190.0, 70.0]);
        let ruling = |text: &str| text.parse::<Bound>().unwrap().judge(&[&all, &loose]).ruling;
        assert_eq!(ruling("wait > +10%"), Ruling::Exceeded);
        assert_eq!(ruling("wait > +50%"), Ruling::Held);
        assert_eq!(ruling("wait > +30%"), Ruling::Undecided);
        assert_eq!(ruling("wait > 20us"), Ruling::Exceeded);
        assert_eq!(ruling("wait > 1ms"), Ruling::Held);
        assert_eq!(ruling("wait < -10%"), Ruling::Held);
        assert_eq!(ruling("loose: wait > +10%"), Ruling::Undecided);
        assert_eq!(ruling("*: wait > +10%"), Ruling::Undecided);
        assert_eq!(ruling("nobody: wait > +10%"), Ruling::Undecided);
        assert_eq!(ruling("p99 > +10%"), Ruling::Undecided, "too few wake-ups");
        assert_eq!(ruling("migrations > +10%"), Ruling::Undecided, "unknown");
        let single = row("all tasks", &[100.0], &[200.0]);
        assert_eq!("wait > +10%".parse::<Bound>().unwrap().judge(&[&single]).ruling, Ruling::Undecided);
    }

    #[test]
    fn a_bound_is_checked() {
        let parse = |text: &str| text.parse::<Bound>();
        let bound = parse("kworker/0:1: p99 > +200us").unwrap();
        assert_eq!(
            (bound.row.as_deref(), bound.figure, bound.by),
            (Some("kworker/0:1"), "latency_p99_us", By::Amount(200.0))
        );
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert!(message("wait").contains("neither"));
        assert!(message("waits > 5%").contains("did you mean \"wait\""));
        assert!(message("wait > 5").contains("unit"), "{}", message("wait > 5"));
        assert!(message("switches > many").contains("no part"));
        assert!(message("wait > x%").contains("no part"));
    }
}

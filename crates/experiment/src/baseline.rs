//! Compares an outcome with that of an earlier run: which metrics have changed by more than they scatter between seeds,
//! and which verdicts have changed.

use crate::outcome::{Judged, MetricResult, Outcome};
use crate::scatter::{Interval, beyond_chance, difference};
use crate::verdict::Verdict;
use schedlab_base::{Error, Result, path_text};
use schedlab_chart::number;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes.
const MOST_BYTES: u64 = 1 << 30;

/// What an earlier `run --json` printed.
#[derive(Clone, Debug)]
pub struct Baseline {
    file: PathBuf,
    experiments: Vec<Earlier>,
}

#[derive(Deserialize)]
struct Document {
    experiments: Vec<Earlier>,
}

#[derive(Clone, Debug, Deserialize)]
struct Earlier {
    id: String,
    results: Vec<MetricResult>,
    expectations: Vec<Expected>,
}

#[derive(Clone, Debug, Deserialize)]
struct Expected {
    figure: Option<String>,
    expected: String,
    verdict: String,
}

/// A metric that has changed by more than its scatter.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    experiment: String,
    kernel: String,
    at: String,
    metric: String,
    /// The means over the seeds; none where it is not defined for any.
    before: Option<f64>,
    now: Option<f64>,
    /// How many seeds have a value.
    seeds_before: usize,
    seeds_now: usize,
    /// The 95% interval of the difference; none with one run each.
    interval: Option<[f64; 2]>,
}

/// An expectation with another verdict than before.
#[derive(Clone, Debug, Serialize)]
struct Turned {
    experiment: String,
    expectation: String,
    before: String,
    now: Verdict,
}

/// The comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    #[serde(serialize_with = "path_text")]
    file: PathBuf,
    /// How many metrics of one kernel at one point were compared.
    compared: usize,
    changes: Vec<Change>,
    verdicts: Vec<Turned>,
    /// Metrics that only this outcome has.
    added: Vec<String>,
    /// Metrics of the same experiments that only the baseline has.
    missing: Vec<String>,
}

impl Baseline {
    /// Reads the document.
    ///
    /// # Errors
    /// When it cannot be read, or is not what `run --json` prints.
    pub fn open(path: &Path) -> Result<Self> {
        let size = std::fs::metadata(path).map_err(|e| Error::system("cannot read the baseline", &e).file(path))?.len();
        if size > MOST_BYTES {
            return Err(Error::input("is larger than 1 GiB").mend("give what run --json printed").file(path));
        }
        let text = std::fs::read(path).map_err(|e| Error::system("cannot read the baseline", &e).file(path))?;
        let document: Document = serde_json::from_slice(&text).map_err(|e| {
            Error::input(format!("is not a baseline: {e}"))
                .mend("make one with schedlab run ... --json > FILE")
                .file(path)
        })?;
        Ok(Self { file: path.to_owned(), experiments: document.experiments })
    }

    /// Compares an outcome with it. Experiments that only the baseline has are ignored; in a part of an experiment
    /// (`partial`) nothing is missing.
    #[must_use]
    pub fn compare(&self, outcome: &Outcome, partial: bool) -> Compared {
        let mut compared = Compared {
            file: self.file.clone(),
            compared: 0,
            changes: Vec::new(),
            verdicts: Vec::new(),
            added: Vec::new(),
            missing: Vec::new(),
        };
        let mut tests = Vec::new();
        for judged in &outcome.experiments {
            let id = &judged.experiment.file.id;
            let Some(earlier) = self.experiments.iter().find(|e| e.id == *id) else {
                compared.added.push(id.clone());
                continue;
            };
            let results = judged.results();
            for now in &results {
                match earlier.results.iter().find(|before| same(before, now)) {
                    Some(before) => tests.push(test(id, before, now)),
                    None => compared.added.push(name(id, now)),
                }
            }
            let gone = earlier.results.iter().filter(|before| !partial && !results.iter().any(|now| same(before, now)));
            compared.missing.extend(gone.map(|before| name(id, before)));
            compared.verdicts.extend(turned(earlier, judged));
        }
        compared.compared = tests.len();
        let chances: Vec<f64> = tests.iter().map(|(chance, _)| *chance).collect();
        let changed = tests.into_iter().zip(beyond_chance(&chances)).filter(|(_, beyond)| *beyond);
        compared.changes = changed.map(|((_, change), _)| change).collect();
        compared
    }
}

fn same(a: &MetricResult, b: &MetricResult) -> bool {
    (&a.kernel, &a.at, &a.metric) == (&b.kernel, &b.at, &b.metric)
}

fn name(id: &str, result: &MetricResult) -> String {
    place(id, &result.metric, &result.kernel, &result.at)
}

/// `hogs: spread (cfs, n=3)`.
fn place(id: &str, metric: &str, kernel: &str, at: &str) -> String {
    let comma = if at.is_empty() { "" } else { ", " };
    format!("{id}: {metric} ({kernel}{comma}{at})")
}

/// How likely the difference is by chance, and the change that it would be.
fn test(id: &str, before: &MetricResult, now: &MetricResult) -> (f64, Change) {
    let defined = |result: &MetricResult| -> Vec<f64> { result.values.iter().flatten().copied().collect() };
    let (old, new) = (defined(before), defined(now));
    let mean = |values: &[f64]| (!values.is_empty()).then(|| Interval::of(values).mean);
    let lacks = |result: &MetricResult| result.values.iter().any(Option::is_none);
    let (chance, interval) = match (old.is_empty(), new.is_empty()) {
        (true, true) => (1.0, None),
        (false, false) if lacks(before) == lacks(now) => {
            let difference = difference(&old, &new);
            (difference.chance, difference.interval.map(|i| [i.low, i.high]))
        }
        // It has no value where it had one, or the other way round.
        _ => (0.0, None),
    };
    let change = Change {
        experiment: id.to_owned(),
        kernel: now.kernel.clone(),
        at: now.at.clone(),
        metric: now.metric.clone(),
        before: mean(&old),
        now: mean(&new),
        seeds_before: old.len(),
        seeds_now: new.len(),
        interval,
    };
    (chance, change)
}

/// The expectations whose verdict is another one than before. What was not judged now is left out.
fn turned(earlier: &Earlier, judged: &Judged) -> Vec<Turned> {
    let mut left: Vec<&Expected> = earlier.expectations.iter().collect();
    let mut found = Vec::new();
    for row in &judged.rows {
        let same = |e: &&Expected| e.figure == row.figure && e.expected == row.expected;
        let Some(at) = left.iter().position(same) else { continue };
        let before = left.remove(at);
        if row.verdict != Verdict::Skipped && before.verdict != row.verdict.to_string() {
            found.push(Turned {
                experiment: earlier.id.clone(),
                expectation: row.name().to_owned(),
                before: before.verdict.clone(),
                now: row.verdict,
            });
        }
    }
    found
}

impl Compared {
    /// The exit status that it asks for: 1 if a metric or a verdict has changed, 3 if nothing could be compared.
    #[must_use]
    pub fn exit_status(&self) -> u8 {
        match (self.changes.is_empty() && self.verdicts.is_empty(), self.compared) {
            (false, _) => 1,
            (true, 0) => 3,
            (true, _) => 0,
        }
    }

    /// The comparison in words.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        let changed =
            if self.changes.is_empty() { "none has".to_owned() } else { format!("{} have", self.changes.len()) };
        let _ = writeln!(
            out,
            "\nCompared with {}: of {} metrics {changed} changed by more than the scatter of the runs.",
            self.file.display(),
            self.compared
        );
        for change in &self.changes {
            let _ = writeln!(out, "  {}", change.text());
        }
        for turned in &self.verdicts {
            let Turned { experiment, expectation, before, now } = turned;
            let _ = writeln!(out, "  {experiment}: {expectation}: {before} before, {now} now");
        }
        for (names, what) in [(&self.added, "not in the baseline"), (&self.missing, "only in the baseline")] {
            if let Some((first, others)) = names.split_first() {
                let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
                let _ = writeln!(out, "  {what}: {first}{more}");
            }
        }
        out
    }
}

impl Change {
    fn text(&self) -> String {
        let value = |x: Option<f64>| x.map_or_else(|| "no value".to_owned(), number);
        let mut text = format!(
            "{}: {} before, {} now",
            place(&self.experiment, &self.metric, &self.kernel, &self.at),
            value(self.before),
            value(self.now)
        );
        if let (Some(before), Some(now)) = (self.before, self.now)
            && before != 0.0
        {
            let _ = write!(text, " ({:+.1}%)", 100.0 * (now - before) / before.abs());
        }
        let seeds = match (self.seeds_before, self.seeds_now) {
            (1, 1) => "; one run each, so any difference counts".to_owned(),
            (before, now) if before == now => format!("; {now} seeds each"),
            (before, now) => format!("; {before} seeds before, {now} now"),
        };
        if let Some([low, high]) = self.interval {
            let _ = write!(text, "; difference {} to {} (95% interval)", number(low), number(high));
        }
        text + &seeds
    }
}

//! What differs between two traces, or between two sets of traces of repeated runs.
//!
//! Tasks are aligned by what they are called, because the runs have other thread ids. Each figure of each row is
//! compared: between the runs of the sets, or, of one trace each, between their blocks of time.

mod align;
mod bound;
mod effect;
mod known;
mod run;
mod text;

pub use bound::{Bound, Judged, Ruling};
pub use effect::{Direction, Effect};
pub use run::{By, Earlier, Run, read};

use crate::scatter::discoveries;
use align::{Aligned, Key};
use schedlab_measure::compared::{Compared, FIGURES, Figure, Unit};
use serde::Serialize;
use std::collections::BTreeMap;

/// A row counts if it used this part of a CPU, or waited for this part of all waiting.
const LEAST_PART: f64 = 0.01;

/// It also counts if it was woken this often.
const LEAST_WAKEUPS: f64 = 100.0;

/// Beyond this part, traces of other lengths are remarked on.
const OTHER_LENGTH: f64 = 0.05;

/// How long a run takes.
pub(crate) const DURATION: Figure = Figure { key: "duration_us", name: "duration", unit: Unit::Time, wakeups: 0 };

/// What sums are given for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// A whole run.
    #[default]
    Run,
    /// A second of it.
    Second,
}

/// What is to be compared, and how.
pub struct Question {
    /// The runs of the first set, of which there is at least one.
    pub a: Vec<Run>,
    /// Those of the second.
    pub b: Vec<Run>,
    /// How tasks are aligned.
    pub by: By,
    /// What sums are given for.
    pub per: Per,
}

/// The comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The files of the first set.
    pub a: Vec<String>,
    /// Those of the second.
    pub b: Vec<String>,
    /// How tasks were aligned.
    pub by: By,
    /// What sums are given for.
    pub per: Per,
    /// Where the intervals come from: `runs`, `blocks`, or `none`.
    pub intervals: Intervals,
    /// How many blocks of time each trace was cut into; 0 if the runs are compared.
    pub blocks: usize,
    /// What changed beyond the scatter: what got worse first, then the rest, then what got better.
    pub changes: Vec<Change>,
    /// All tasks, then the rows that count: what got worse first.
    pub rows: Vec<Row>,
    /// Bounds, judged.
    pub bounds: Vec<Judged>,
    /// How it was aligned, and what to bear in mind.
    pub remarks: Vec<String>,
    /// Rows of the first set without a partner.
    pub only_a: Vec<String>,
    /// Rows of the second set without a partner.
    pub only_b: Vec<String>,
}

/// Where the intervals come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Intervals {
    /// From the scatter between runs.
    Runs,
    /// From the scatter between the blocks of time of one trace each.
    Blocks,
    /// There are none.
    None,
}

/// A row.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What it is called.
    pub name: String,
    /// How many tasks it has in a run of the first set (the mean), and of the second.
    pub tasks: [f64; 2],
    /// Each figure that has enough behind it.
    pub figures: BTreeMap<&'static str, Effect>,
    /// The figures that a partial recording does not tell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<&'static str>,
}

/// A figure of a row that changed beyond the scatter.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// The row's name.
    pub row: String,
    /// The figure's key.
    pub figure: &'static str,
    /// How it changed.
    #[serde(flatten)]
    pub effect: Effect,
}

/// Compares, and judges the bounds.
#[must_use]
pub fn compare(question: &Question, bounds: &[Bound]) -> Comparison {
    let Aligned { rows: keys, mut remarks, only_a, only_b } = align::align(&question.a, &question.b, question.by);
    let intervals = question.intervals();
    let rows: Vec<(Key, Row)> = keys.into_iter().filter_map(|key| Some((key.clone(), question.row(&key)?))).collect();
    let judged = bounds.iter().map(|bound| bound.judge(&rows.iter().map(|(_, row)| row).collect::<Vec<_>>())).collect();
    let mut rows: Vec<Row> = rows.into_iter().map(|(_, row)| row).collect();
    decide(&mut rows);
    let importance = |row: &Row| row.figures.values().map(Effect::worsening).fold(0.0, f64::max);
    rows[1..].sort_by(|x, y| importance(y).total_cmp(&importance(x)).then_with(|| y.added().total_cmp(&x.added())));
    question.remark(&mut remarks);
    let files = |runs: &[Run]| runs.iter().map(|run| run.file.clone()).collect();
    Comparison {
        a: files(&question.a),
        b: files(&question.b),
        by: question.by,
        per: question.per,
        intervals,
        blocks: if intervals == Intervals::Blocks { question.a[0].blocks.len() } else { 0 },
        changes: changes(&rows),
        rows,
        bounds: judged,
        remarks,
        only_a,
        only_b,
    }
}

/// Marks what is beyond chance, over all figures together.
fn decide(rows: &mut [Row]) {
    let tested = |effect: &&mut Effect| effect.chance.is_some();
    let mut all: Vec<&mut Effect> = rows.iter_mut().flat_map(|row| row.figures.values_mut()).filter(tested).collect();
    let chances: Vec<f64> = all.iter().filter_map(|effect| effect.chance).collect();
    for (effect, beyond) in all.iter_mut().zip(discoveries(&chances)) {
        effect.settle(beyond);
    }
}

fn changes(rows: &[Row]) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for row in rows {
        for (&figure, effect) in &row.figures {
            if effect.direction.changed() {
                changes.push(Change { row: row.name.clone(), figure, effect: effect.clone() });
            }
        }
    }
    let rank = |change: &Change| match change.effect.direction {
        Direction::Worse => 0,
        Direction::Better => 2,
        _ => 1,
    };
    let size = |change: &Change| change.effect.size();
    changes.sort_by(|x, y| rank(x).cmp(&rank(y)).then_with(|| size(y).total_cmp(&size(x))));
    changes
}

impl Question {
    fn intervals(&self) -> Intervals {
        match (self.a.len(), self.b.len()) {
            (1, 1) if self.a[0].blocks.len() > 1 && self.b[0].blocks.len() > 1 => Intervals::Blocks,
            (1, 1) => Intervals::None,
            _ => Intervals::Runs,
        }
    }

    /// A row with its figures; none if it does not count.
    fn row(&self, key: &Key) -> Option<Row> {
        let (a, b) = (of(&self.a, key), of(&self.b, key));
        let all = [of(&self.a, &Key::All), of(&self.b, &Key::All)];
        let counts = |own: &[Compared], all: &[Compared], runs: &[Run]| {
            let (own, all) = (mean(own), mean(all));
            let span = runs.iter().map(|run| run.span_us).sum::<f64>() / runs.len() as f64;
            own.run_us >= span * LEAST_PART
                || (own.wait_us >= all.wait_us * LEAST_PART && own.wait_us > 0.0)
                || own.wakeups >= LEAST_WAKEUPS
        };
        if *key != Key::All && !counts(&a, &all[0], &self.a) && !counts(&b, &all[1], &self.b) {
            return None;
        }
        let tasks = |runs: &[Run]| runs.iter().map(|run| run.tasks(key) as f64).sum::<f64>() / runs.len() as f64;
        let (mut figures, unknown) = (BTreeMap::new(), self.unknown(key));
        for (at, figure) in FIGURES.iter().enumerate().filter(|(_, figure)| !unknown.contains(&figure.key)) {
            if mean(&a).wakeups.min(mean(&b).wakeups) >= f64::from(figure.wakeups) {
                figures.insert(figure.key, self.effect(key, at, (&a, &b)));
            }
        }
        if *key == Key::All {
            let spans = |runs: &[Run]| runs.iter().map(|run| run.span_us).collect::<Vec<_>>();
            let effect =
                Effect::new(DURATION.key, spans(&self.a), spans(&self.b), 0.0, self.intervals() == Intervals::Runs);
            figures.insert(DURATION.key, effect);
        }
        Some(Row { name: key.label(), tasks: [tasks(&self.a), tasks(&self.b)], figures, unknown })
    }

    fn effect(&self, key: &Key, at: usize, (a, b): (&[Compared], &[Compared])) -> Effect {
        let figure = &FIGURES[at];
        let floor = mean(a).floors()[at].min(mean(b).floors()[at]);
        let scaled = |value: f64, span_us: f64| match self.per {
            Per::Second if figure.wakeups == 0 => value / (span_us / 1e6),
            _ => value,
        };
        let values = |own: &[Compared], runs: &[Run]| -> Vec<f64> {
            own.iter().zip(runs).map(|(own, run)| scaled(own.values()[at], run.span_us)).collect()
        };
        let (values_a, values_b) = (values(a, &self.a), values(b, &self.b));
        let intervals = self.intervals();
        let effect = Effect::new(figure.key, values_a, values_b, floor, intervals == Intervals::Runs);
        if intervals != Intervals::Blocks {
            return effect;
        }
        let blocks = |run: &Run| -> Option<Vec<f64>> {
            let own: Vec<Compared> =
                run.blocks.iter().map(|block| block.get(key).copied().unwrap_or_default()).collect();
            let enough = mean(&own).wakeups >= f64::from(figure.wakeups);
            // A block has its part of what the run sums up.
            let parts = if figure.wakeups == 0 { own.len() as f64 } else { 1.0 };
            enough.then(|| own.iter().map(|own| scaled(own.values()[at] * parts, run.span_us)).collect())
        };
        match (blocks(&self.a[0]), blocks(&self.b[0])) {
            (Some(a), Some(b)) => effect.scattering(a, b, floor),
            _ => effect,
        }
    }

    fn remark(&self, remarks: &mut Vec<String>) {
        let span = |runs: &[Run]| runs.iter().map(|run| run.span_us).sum::<f64>() / runs.len() as f64 / 1e6;
        let (a, b) = (span(&self.a), span(&self.b));
        if (a - b).abs() > OTHER_LENGTH * a.max(b) && self.per == Per::Run {
            remarks.push(format!("A lasts {a:.3} s and B {b:.3} s: --per second compares rates instead of sums"));
        }
        self.remark_partial(remarks);
        for run in self.a.iter().chain(&self.b) {
            remarks.extend(run.remarks.iter().map(|remark| format!("{}: {remark}", run.file)));
        }
    }
}

impl Row {
    /// How much more it waits.
    fn added(&self) -> f64 {
        self.figures.get("wait_us").map_or(0.0, |wait| wait.b - wait.a)
    }
}

/// The figures of a row in each run.
fn of(runs: &[Run], key: &Key) -> Vec<Compared> {
    runs.iter().map(|run| run.figures(key)).collect()
}

fn mean(runs: &[Compared]) -> Compared {
    let count = runs.len().max(1) as f64;
    runs.iter().fold(Compared::default(), |sum, own| sum.map2(*own, |sum, one| sum + one / count))
}

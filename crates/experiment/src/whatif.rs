//! What another kernel, other settings or another machine would do with a recorded load.
//!
//! The model of the load is simulated as recorded and as asked, each with several seeds. What is predicted is the
//! change between the two, of each figure of each row: all tasks, groups, roles, single tasks. How far the simulation
//! as recorded is from the recording is the uncertainty of that change.

mod judge;
mod looks;
mod roster;
mod sentences;

pub use judge::{Outcome, Verdict};
pub use roster::{Kind, Roster, Row};
pub use sentences::Sentence;

use crate::as_recorded::Setup;
use crate::fitted::fitted;
use crate::look::Look;
use crate::prediction::{Doubts, Series, Simulated, Validated, simulate_all};
use crate::run::trace_name;
use judge::{Cell, judge};
use schedlab_base::{Coverage, Nanos, Result};
use schedlab_measure::compared::{Compared, FIGURES};
use schedlab_measure::validation::{Errors, Validation};
use schedlab_measure::{Report, TaskStats, TeamStats};
use schedlab_workload::Workload;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A row counts if it used this part of a CPU, or waited for this part of all waiting.
const LEAST_PART: f64 = 0.01;

/// It also counts if it was woken this often.
const LEAST_WAKEUPS: f64 = 100.0;

/// The logarithm of a change to which larger ones are equal in the order of the rows: to a quarter, or to four times.
const LARGE: f64 = 1.386;

/// The load as it was recorded.
pub struct Recording {
    /// Its statistics.
    pub report: Report,
    /// Those of the roster's rows.
    pub rows: Vec<TeamStats>,
    /// What it covers, if that is not the whole machine.
    pub covers: Option<Coverage>,
    /// What the model cannot know of it.
    pub doubts: Doubts,
}

/// A question.
pub struct Question<'a> {
    /// The model.
    pub workload: &'a Workload,
    /// The rows.
    pub roster: &'a Roster,
    /// The recording that it was made from, where that is there.
    pub recording: Option<Recording>,
    /// How far the model was off when it was validated, where the recording is not there but the model says so.
    pub stored: Option<Errors>,
    /// As recorded.
    pub baseline: Setup,
    /// As asked, by name.
    pub variants: Vec<(String, Setup)>,
    /// How often each is simulated.
    pub seeds: u64,
    /// How long; until all is done where `None`.
    pub duration: Option<Nanos>,
    /// A folder for the trace of the first simulation of each.
    pub keep: Option<&'a Path>,
}

/// The answer.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// Where the load was simulated as recorded.
    pub baseline: Place,
    /// How often each was simulated.
    pub seeds: u64,
    /// How far the simulation as recorded is from the recording; none where there is no recording.
    pub validation: Option<Validated>,
    /// How far the model was off when it was made, where it says so and there is no recording.
    pub stored_errors: Option<Errors>,
    /// What was asked.
    pub variants: Vec<Variant>,
}

/// A kernel on a machine, with settings.
#[derive(Clone, Debug, Serialize)]
pub struct Place {
    /// The kernel's profile.
    pub kernel: String,
    /// The machine's name.
    pub machine: String,
    /// Tunables that are set.
    pub set: BTreeMap<String, String>,
    /// The trace of the first simulation, if it was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<PathBuf>,
}

/// One thing that was asked, answered.
#[derive(Clone, Debug, Serialize)]
pub struct Variant {
    /// Its name.
    pub name: String,
    /// Where.
    #[serde(flatten)]
    pub place: Place,
    /// The answer in words, what changes most first.
    pub sentences: Vec<Sentence>,
    /// How long all of it takes.
    pub duration_us: Outcome,
    /// All tasks, then the rows that count, what changes most first.
    pub rows: Vec<Predicted>,
    /// What the simulation remarked.
    pub notes: Vec<String>,
}

/// A row: some tasks, or all.
#[derive(Clone, Debug, Serialize)]
pub struct Predicted {
    /// Which tasks.
    #[serde(flatten)]
    pub row: Row,
    /// Each figure that has enough behind it.
    pub figures: BTreeMap<&'static str, Outcome>,
    /// Where to look for the change, if the traces were kept and a sentence is about this row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look: Option<Look>,
}

impl Place {
    fn of(setup: &Setup, runs: &[Simulated]) -> Self {
        let Setup { kernel, machine, set } = setup;
        let trace = runs.first().and_then(|run| run.trace.clone());
        Self { kernel: kernel.clone(), machine: machine.name.clone(), set: set.iter().cloned().collect(), trace }
    }
}

/// Simulates as recorded and as asked, by several threads; `done` is called after each simulation.
///
/// # Errors
/// When the model cannot be simulated, or a trace cannot be written or read again.
pub fn answer(question: &Question, threads: usize, done: &(dyn Fn() + Sync)) -> Result<Answer> {
    let setups: Vec<Setup> =
        std::iter::once(&question.baseline).chain(question.variants.iter().map(|v| &v.1)).cloned().collect();
    let choose = |tasks: &[TaskStats]| question.roster.of_simulated(tasks);
    let Question { workload, seeds, duration, .. } = question;
    let traces = question.traces();
    let series =
        Series { workload, setups: &setups, seeds: *seeds, duration: *duration, choose: &choose, traces: &traces };
    let mut simulated = simulate_all(&series, threads, done)?.into_iter();
    let baseline = simulated.next().expect("the baseline is simulated first");
    let table = Table::new(question, &baseline);
    let asked = question.variants.iter().zip(simulated);
    let mut variants = Vec::new();
    for ((name, setup), runs) in asked {
        let mut variant = table.variant(name, setup, &runs);
        variant.find_looks(question.roster, &baseline[0], &runs[0])?;
        variants.push(variant);
    }
    Ok(Answer {
        baseline: Place::of(&question.baseline, &baseline),
        seeds: *seeds,
        validation: question.recording.as_ref().map(|recording| validated(question, recording, &baseline)),
        stored_errors: question.stored.filter(|_| question.recording.is_none()),
        variants,
    })
}

impl Question<'_> {
    /// The files for the traces: as recorded, then each as asked.
    fn traces(&self) -> Vec<PathBuf> {
        let Some(folder) = self.keep else { return Vec::new() };
        let names = std::iter::once("as-recorded").chain(self.variants.iter().map(|(name, _)| name.as_str()));
        names.enumerate().map(|(number, name)| folder.join(trace_name(&format!("{number}-{name}")))).collect()
    }
}

impl Answer {
    /// The places to look at.
    pub fn looks_mut(&mut self) -> impl Iterator<Item = &mut Look> {
        self.variants.iter_mut().flat_map(|variant| &mut variant.rows).filter_map(|row| row.look.as_mut())
    }
}

fn validated(question: &Question, recording: &Recording, baseline: &[Simulated]) -> Validated {
    let keys: BTreeSet<&str> = question.workload.tasks.iter().map(|task| task.name.as_str()).collect();
    let reports = baseline.iter().map(|run| &run.report);
    let validation = Validation::of((&recording.report, recording.covers), reports, &keys);
    let mut doubts = recording.doubts.clone();
    doubts.causes.extend(baseline.iter().take(1).flat_map(|run| run.notes.clone()));
    Validated::new(&question.baseline, validation, doubts)
}

/// What the rows are compared with.
struct Table<'a> {
    question: &'a Question<'a>,
    /// The rows that count.
    rows: Vec<usize>,
    /// As recorded, by row; nothing for rows of tasks that were added to the model.
    recorded: Option<Vec<Option<Compared>>>,
    /// Simulated as recorded, by row and seed.
    baseline: Vec<Vec<Compared>>,
    baseline_ends: Vec<f64>,
    /// The median error of each figure over single tasks.
    typical: [Option<f64>; FIGURES.len()],
}

fn by_row(rows: usize, runs: &[Simulated]) -> Vec<Vec<Compared>> {
    (0..rows).map(|row| runs.iter().map(|run| Compared::of(&run.teams[row].sums)).collect()).collect()
}

fn ends(runs: &[Simulated]) -> Vec<f64> {
    runs.iter().map(|run| run.end as f64 / 1e3).collect()
}

impl<'a> Table<'a> {
    fn new(question: &'a Question<'a>, runs: &[Simulated]) -> Self {
        let baseline = by_row(question.roster.rows.len(), runs);
        let recorded = question.recording.as_ref().map(|own| {
            let row = |team: &TeamStats| (team.tasks > 0).then(|| Compared::of(&team.sums).told_by(own.covers));
            own.rows.iter().map(row).collect()
        });
        let mut table = Self {
            question,
            rows: Vec::new(),
            recorded,
            baseline,
            baseline_ends: ends(runs),
            typical: [None; FIGURES.len()],
        };
        table.rows = (0..question.roster.rows.len()).filter(|row| table.counts(*row)).collect();
        table.typical = table.typical_errors();
        table
    }

    /// A row as it was recorded, or else as it was simulated first.
    fn reference(&self, row: usize) -> &Compared {
        self.recorded(row).unwrap_or(&self.baseline[row][0])
    }

    fn recorded(&self, row: usize) -> Option<&Compared> {
        self.recorded.as_ref()?[row].as_ref()
    }

    fn counts(&self, row: usize) -> bool {
        let (own, all) = (self.reference(row), self.reference(0));
        let span = match &self.question.recording {
            Some(recording) => recording.report.total.span_us,
            None => self.baseline_ends[0],
        };
        row == 0
            || own.run_us >= span * LEAST_PART
            || (own.wait_us >= all.wait_us * LEAST_PART && own.wait_us > 0.0)
            || own.wakeups >= LEAST_WAKEUPS
    }

    /// Whether a figure of a row has enough behind it.
    fn holds(&self, row: usize, figure: usize) -> bool {
        self.reference(row).wakeups >= f64::from(FIGURES[figure].wakeups)
    }

    fn typical_errors(&self) -> [Option<f64>; FIGURES.len()] {
        if let Some(stored) = self.question.stored.filter(|_| self.recorded.is_none()) {
            return judge::stored(&stored);
        }
        std::array::from_fn(|figure| {
            let tasks = self.rows.iter().filter(|row| self.question.roster.rows[**row].kind == Kind::Task);
            let with = tasks.filter(|row| self.holds(**row, figure));
            let mut sizes: Vec<f64> =
                with.filter_map(|row| self.cell(*row, figure, &[]).error()).map(f64::abs).collect();
            sizes.sort_by(f64::total_cmp);
            sizes.get((sizes.len().max(1) - 1) / 2).copied()
        })
    }

    fn cell(&self, row: usize, figure: usize, asked: &[Compared]) -> Cell {
        let values = |runs: &[Compared]| runs.iter().map(|own| own.values()[figure]).collect::<Vec<_>>();
        Cell {
            recorded: self.recorded(row).map(|recorded| recorded.values()[figure]).filter(|value| !value.is_nan()),
            baseline: values(&self.baseline[row]),
            asked: values(asked),
            floor: self.reference(row).floors()[figure],
            least: self.reference(row).least_differences()[figure],
            // A sum over all tasks has an error of its own, which may cancel out that of single tasks.
            typical: self.typical[figure].filter(|_| row > 0 || self.recorded.is_none()),
        }
    }

    fn variant(&self, name: &str, setup: &Setup, runs: &[Simulated]) -> Variant {
        let asked = by_row(self.question.roster.rows.len(), runs);
        let predicted = |row: &usize| {
            let judged = (0..FIGURES.len()).filter(|figure| self.holds(*row, *figure));
            let outcome = |figure: usize| (FIGURES[figure].key, judge(&self.cell(*row, figure, &asked[*row])));
            let figures = judged.map(outcome).collect();
            Predicted { row: self.question.roster.rows[*row].clone(), figures, look: None }
        };
        let gone =
            self.question.roster.without(&fitted(self.question.workload, &setup.kernel, &setup.machine).left_out);
        let mut rows: Vec<Predicted> = self.rows.iter().filter(|row| !gone.contains(row)).map(predicted).collect();
        rows[1..].sort_by(|a, b| b.size().total_cmp(&a.size()).then(b.wait().total_cmp(&a.wait())));
        let recorded = self.question.recording.as_ref().map(|own| own.report.total.span_us);
        let (baseline, asked) = (self.baseline_ends.clone(), ends(runs));
        let duration = Cell { recorded, baseline, asked, floor: 1.0, least: 0.0, typical: None };
        let duration_us = judge(&duration);
        let notes = runs.first().map(|run| run.notes.clone()).unwrap_or_default();
        let Question { workload, duration, .. } = self.question;
        let for_a_time = duration.is_some() || (workload.global.duration.is_some() && workload.global.until.is_none());
        let sentences = sentences::of((!for_a_time).then_some(&duration_us), &rows);
        Variant { name: name.to_owned(), place: Place::of(setup, runs), sentences, duration_us, rows, notes }
    }
}

impl Predicted {
    /// The figure that changes most, if one does, and by how much; beyond [`LARGE`], large is large.
    fn most(&self) -> Option<(&'static str, &Outcome, f64)> {
        let told = ["latency_p99_us", "wait_us", "latency_p50_us"].into_iter().filter_map(|key| {
            let outcome = self.figures.get(key).filter(|own| own.verdict.changes())?;
            Some((key, outcome, outcome.change.ln_1p().abs().min(LARGE)))
        });
        told.reduce(|most, next| if next.2 > most.2 { next } else { most })
    }

    /// How much it changes, for the order.
    fn size(&self) -> f64 {
        self.most().map_or(0.0, |(_, _, size)| size)
    }

    /// By how much its wait differs.
    fn wait(&self) -> f64 {
        self.figures.get("wait_us").map_or(0.0, |wait| (wait.asked - wait.baseline).abs())
    }
}

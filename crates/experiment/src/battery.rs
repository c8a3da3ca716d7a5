//! The battery: tests of what any scheduler must do, each an experiment of one kernel that somebody names.
//!
//! A [`Test`] is a file with a `[test]` table. [`run`] fits it to a machine and a kernel (`fit`), runs it on a backend
//! that keeps its traces and watches for foreign tasks (`watch`), and judges ([`Tested`]).

mod begun;
mod fit;
mod judge;
mod junit;
mod scale;
mod shipped;
mod subject;
mod text;
mod watch;

pub use judge::{Tested, Verdicts};
pub use junit::junit;
pub use shipped::{shipped, written};
pub use subject::Subject;
pub(crate) use text::counts;
pub use text::{list, table};

use crate::file::{ExperimentFile, TestFile};
use crate::parallel::on_threads;
use schedlab_base::{Error, Result};
use schedlab_machine::tomltext::TomlText;
use std::path::{Path, PathBuf};

/// A test as it is written.
#[derive(Clone, Debug)]
pub struct Test {
    /// The experiment, without a kernel.
    pub file: ExperimentFile,
    /// The keys that make it a test.
    pub keys: TestFile,
    /// Its text.
    document: TomlText,
    /// Whether it is one of those that schedlab comes with.
    pub is_shipped: bool,
}

impl Test {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, anything in it is wrong, or it is no test.
    pub fn open(path: &Path) -> Result<Self> {
        Self::parse(TomlText::open(path)?)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// As [`Test::open`].
    pub fn parse(document: TomlText) -> Result<Self> {
        let file: ExperimentFile = document.read()?;
        let Some(keys) = file.test.clone() else {
            let what = "is an experiment without a [test] table";
            return Err(Error::input(what).file(&document.file).mend("judge it with `schedlab run`"));
        };
        if let Some(kernel) = file.kernels.first() {
            let what = format!("a test names no kernel (\"{}\"): it is asked of the one that --on names", kernel.name);
            return Err(document.error("kernels", what).mend("remove [[kernels]]"));
        }
        if file.expectations.is_empty() {
            return Err(document.error("expectations", "a test expects something").mend("give one [[expectations]]"));
        }
        let test = Self { file, keys, document, is_shipped: false };
        fit::check(&test)?;
        Ok(test)
    }
}

/// How tests are run.
#[derive(Clone, Debug, Default)]
pub struct How {
    /// The machine in place of each test's own; on a live kernel, this host's if it is left out.
    pub machine: Option<String>,
    /// Tunables, for all tests.
    pub set: Vec<(String, String)>,
    /// How many runs each test has, where that is not left to the test and the backend.
    pub repeats: Option<usize>,
    /// The part of the CPU time that foreign tasks may take on a live kernel, before a run decides nothing.
    pub noise: f64,
    /// The folder for the traces of what does not pass.
    pub keep: Option<PathBuf>,
    /// The command that runs one test again, up to the test itself.
    pub command: Vec<String>,
    /// How many tests run at once, where they do not disturb each other.
    pub threads: usize,
}

/// Runs tests; `progress` is called with how many are done. A test that the machine or the kernel has no part for is
/// skipped.
///
/// # Errors
/// When a test is wrong, or nothing can be run here at all.
pub fn run(tests: &[Test], subject: &Subject, how: &How, progress: &(dyn Fn(usize) + Sync)) -> Result<Verdicts> {
    let done = std::sync::atomic::AtomicUsize::new(0);
    let tick = || progress(1 + done.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    let mut order: Vec<usize> = (0..tests.len()).collect();
    if subject.is_real() {
        // A guest stays for the next test if that has the same machine and the same settings.
        let shape = |index: &usize| (&tests[*index].file.machine, format!("{:?}", tests[*index].keys.set));
        order.sort_by(|a, b| shape(a).cmp(&shape(b)));
    }
    let one = |index: usize| judge::test(&tests[index], subject, how);
    let outcomes = on_threads(&order, subject.backend.at_once(how.threads), &one, &tick)?;
    let mut outcomes: Vec<_> = order.into_iter().zip(outcomes).collect();
    outcomes.sort_by_key(|(index, _)| *index);
    let (tested, refused): (Vec<Tested>, Vec<Option<Error>>) = outcomes.into_iter().map(|(_, outcome)| outcome).unzip();
    // What keeps every test from running is no property of the tests.
    let ran = tested.iter().any(|test| test.judged.is_some());
    match refused.into_iter().flatten().next() {
        Some(error) if !ran && tested.iter().all(|t| t.judged.is_none() && (t.error || t.lacking)) => Err(error),
        _ => Ok(Verdicts { tests: tested, on: subject.on.clone(), kernel: subject.kernel_name() }),
    }
}

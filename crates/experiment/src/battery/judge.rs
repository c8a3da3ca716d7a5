//! One test from its file to its verdict.

use super::fit::{Fitted, fit};
use super::watch::{Noise, Seen, Watched};
use super::{How, Subject, Test};
use crate::backend::Backend;
use crate::outcome::{Judged, judged, run_experiments};
use crate::verdict::Verdict;
use schedlab_base::{Error, ErrorKind, Result, counted};
use schedlab_capture::busy::named;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A test with its verdict.
#[derive(Clone, Debug)]
pub struct Tested {
    /// The test.
    pub test: Test,
    /// Pass, fail, undecided or skipped.
    pub verdict: Verdict,
    /// Why, where it did not plainly pass.
    pub reason: Option<String>,
    /// The machine, as the user would write it.
    pub machine: String,
    /// The experiment with its runs, if it ran.
    pub judged: Option<Judged>,
    /// What foreign tasks took, run by run, on a live kernel.
    pub noise: Vec<Noise>,
    /// The command that runs it again.
    pub command: String,
    /// Where its traces are kept.
    pub kept: Option<PathBuf>,
    /// It was not run because something failed.
    pub(super) error: bool,
    /// It was not run because the machine or the kernel lacks something.
    pub(super) lacking: bool,
}

/// Tests with their verdicts.
#[derive(Clone, Debug)]
pub struct Verdicts {
    /// In the order of the battery.
    pub tests: Vec<Tested>,
    /// Where they ran, as the command line writes it.
    pub on: String,
    /// The kernel.
    pub kernel: String,
}

impl Verdicts {
    /// The verdict of all together.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        Verdict::all(self.tests.iter().map(|test| test.verdict))
    }

    /// How many tests have a verdict.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        self.tests.iter().filter(|test| test.verdict == verdict).count()
    }

    /// The JSON that `test --json` prints.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let one = |tested: &Tested| {
            let judged = tested.judged.as_ref();
            serde_json::json!({
                "id": tested.test.file.id,
                "group": tested.test.keys.group,
                "title": tested.test.file.title,
                "verdict": tested.verdict,
                "reason": tested.reason,
                "machine": tested.machine,
                "seeds": judged.map(|judged| &judged.experiment.file.seeds),
                "expectations": judged.map(|judged| &judged.rows),
                "results": judged.map(Judged::results),
                "remarks": judged.map(Judged::remarks),
                "noise": tested.noise,
                "command": tested.command,
                "kept": tested.kept,
            })
        };
        serde_json::json!({
            "on": self.on,
            "kernel": self.kernel,
            "verdict": self.verdict(),
            "tests": self.tests.iter().map(one).collect::<Vec<_>>(),
        })
    }
}

/// Runs one test. The error is why it could not be run, where that may be why no test can.
///
/// # Errors
/// When the test itself is wrong, or a trace cannot be written.
pub(super) fn test(test: &Test, subject: &Subject, how: &How) -> Result<(Tested, Option<Error>)> {
    let mut tested = Tested {
        test: test.clone(),
        verdict: Verdict::Skipped,
        reason: None,
        machine: how.machine.clone().unwrap_or_else(|| test.file.machine.clone()),
        judged: None,
        noise: Vec::new(),
        command: command(test, how),
        kept: None,
        error: false,
        lacking: false,
    };
    let Fitted { experiment, cpus, machine } = match fit(test, subject, how)? {
        Ok(fitted) => fitted,
        Err(why) => {
            (tested.reason, tested.lacking) = (Some(why), true);
            return Ok((tested, None));
        }
    };
    tested.machine = machine;
    let traces = how.keep.as_ref().map(|keep| keep.join(&test.file.id));
    let seen = Mutex::new(Seen::default());
    let watched = Watched { inner: &*subject.backend, traces: traces.clone(), cpus, seen };
    let outcome = run_experiments(vec![experiment], &watched, 1, &|_, _| {});
    let mut judged = match outcome.map(|mut outcome| outcome.experiments.pop()) {
        Ok(judged) => judged.expect("one experiment was given"),
        Err(error) if subject.is_real() => {
            discard(traces.as_deref())?;
            tested.error = true;
            tested.verdict = if error.is_refusal() { Verdict::Skipped } else { Verdict::Undecided };
            tested.reason = Some(absent(test, subject, &error).unwrap_or_else(|| error.to_string()));
            return Ok((tested, Some(error)));
        }
        Err(error) => return Err(error),
    };
    let seen = watched.seen.into_inner().expect("no thread panics while it holds the lock");
    tested.noise = seen.noise;
    let mut decides = true;
    if subject.is_live() {
        let quiet = quiet(judged, &tested.noise, how.noise, watched.inner)?;
        (judged, tested.reason, decides) = (quiet.judged, quiet.remark, quiet.decides);
    }
    tested.verdict = match judged.verdict {
        _ if !decides => Verdict::Undecided,
        // A test is passed or it is not; what a kernel is known not to meet is no failure of it.
        Verdict::KnownDifference | Verdict::Calibration => Verdict::Skipped,
        verdict => verdict,
    };
    tested.reason = if decides { reason(&judged).or(tested.reason) } else { tested.reason };
    let excuse = match seen.missing {
        _ if !matches!(tested.verdict, Verdict::Fail | Verdict::Undecided) => None,
        (0, _) => (seen.taken > how.noise).then(|| taken(seen.taken, subject.is_live())),
        missing => Some(late(missing)),
    };
    if let Some(excuse) = excuse {
        tested.verdict = Verdict::Undecided;
        tested.reason = Some(format!("{excuse}: {}", tested.reason.as_deref().unwrap_or_default()));
    }
    tested.judged = Some(judged);
    keep(&mut tested, traces, subject, how)?;
    Ok((tested, None))
}

/// Why a failure on a virtual machine decides nothing, of whose CPUs the host took so much. This machine may be one.
fn taken(share: f64, live: bool) -> String {
    let (who, whose, instead) = match live {
        true => ("a hypervisor", "this machine's", ""),
        false => ("the host", "the guest's", " (--deterministic counts instructions instead)"),
    };
    format!(
        "{who} took up to {:.0}% of the time from {whose} CPUs, so that this says nothing of the kernel{instead}",
        share * 100.0
    )
}

/// Why a failure decides nothing if so many of the tasks had not begun.
fn late((missing, all): (usize, usize)) -> String {
    format!(
        "{missing} of {all} tasks had not begun when half of the time was over, so that this says nothing of the kernel"
    )
}

/// A test judged without the runs that foreign tasks disturbed.
struct Quiet {
    judged: Judged,
    /// Which runs were disturbed.
    remark: Option<String>,
    /// Whether enough runs are left.
    decides: bool,
}

/// Judges by the runs that foreign tasks did not disturb.
fn quiet(noisy: Judged, noise: &[Noise], most: f64, backend: &dyn Backend) -> Result<Quiet> {
    let disturbed = |seed: &u64| noise.iter().any(|run| run.seed == *seed && run.share > most);
    let seeds = &noisy.experiment.file.seeds;
    let loud = seeds.iter().filter(|seed| disturbed(seed)).count();
    let Some(worst) = noise.iter().max_by(|a, b| a.share.total_cmp(&b.share)).filter(|_| loud > 0) else {
        return Ok(Quiet { judged: noisy, remark: None, decides: true });
    };
    let said = format!(
        "foreign tasks took more than {:.1}% of the CPU time in {loud} of {}, up to {:.1}%: {}",
        most * 100.0,
        counted(seeds.len() as u64, "run"),
        worst.share * 100.0,
        named(&worst.tasks)
    );
    // One run decides nothing, and neither do fewer.
    if seeds.len() - loud < 2 {
        return Ok(Quiet { judged: noisy, remark: Some(said), decides: false });
    }
    let mut experiment = noisy.experiment.clone();
    experiment.file.seeds.retain(|seed| !disturbed(seed));
    let runs = noisy.runs.iter().filter(|run| !disturbed(&run.seed)).cloned().collect();
    let judged = judged(experiment, runs, backend)?;
    Ok(Quiet { judged, remark: Some(format!("{said}; these do not count")), decides: true })
}

/// What the test sets and a real kernel does not have, if that is why it was not run.
fn absent(test: &Test, subject: &Subject, error: &Error) -> Option<String> {
    let text = error.to_string();
    let mut names = test.keys.set.keys().filter(|_| error.kind() == ErrorKind::Absent);
    let name = names.find(|name| text.contains(&format!("--set {name}=")))?;
    Some(format!("{} has no tunable {name}", subject.kernel_name()))
}

/// What decided a verdict that is no plain pass: each expectation that failed, or is undecided, or was skipped.
fn reason(judged: &Judged) -> Option<String> {
    let rows = judged.rows.iter().filter(|row| row.verdict == judged.verdict || judged.verdict == Verdict::Pass);
    let said = rows.filter_map(|row| match row.verdict {
        Verdict::Fail | Verdict::Undecided => {
            let why = row.reason.iter().filter(|_| row.verdict == Verdict::Fail).cloned();
            let found = row.findings().into_iter().take(1).chain(why).collect::<Vec<_>>().join(": ");
            Some(format!("{}: {found}", row.name()))
        }
        Verdict::KnownDifference | Verdict::Skipped => {
            Some(format!("{}: {}", row.name(), row.reason.clone().unwrap_or_default()))
        }
        Verdict::Pass | Verdict::Calibration => None,
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| said.join("; "))
}

/// The command that runs a test again.
fn command(test: &Test, how: &How) -> String {
    let mut words = how.command.clone();
    if test.is_shipped {
        words.extend(["--only".to_owned(), test.file.id.clone()]);
    } else {
        words.extend(["--".to_owned(), test.document.file.display().to_string()]);
    }
    quoted(&words)
}

/// The words as a shell reads them.
fn quoted(words: &[String]) -> String {
    // Only a word with a zero byte cannot be quoted, and no argument has one.
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

/// The script that runs a kept test again, from whichever folder it is called: a test of the user's is the copy beside
/// the script.
fn again(test: &Test, subject: &Subject, how: &How) -> String {
    let is_place = |word: &String| *word == subject.on || how.machine.as_ref() == Some(word);
    let word = |word: &String| if is_place(word) { anywhere(word) } else { word.clone() };
    let words = quoted(&how.command.iter().map(word).collect::<Vec<_>>());
    let id = &test.file.id;
    if test.is_shipped { format!("{words} --only {id}") } else { format!("{words} -- \"$(dirname \"$0\")/{id}.toml\"") }
}

/// A machine or a kernel, the path of its file from the root if it has one.
fn anywhere(word: &str) -> String {
    let (kind, path) = word.strip_prefix("vm:").map_or(("", word), |path| ("vm:", path));
    match std::path::absolute(path) {
        Ok(absolute) if absolute.is_file() => format!("{kind}{}", absolute.display()),
        _ => word.to_owned(),
    }
}

/// Keeps the traces of a test that failed or is undecided, with the test and the command; removes the others.
fn keep(tested: &mut Tested, traces: Option<PathBuf>, subject: &Subject, how: &How) -> Result<()> {
    let Some(folder) = traces else { return Ok(()) };
    if !matches!(tested.verdict, Verdict::Fail | Verdict::Undecided) {
        return discard(Some(&folder));
    }
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|e| Error::system("cannot be written", &e).file(&path))
    };
    let reason = tested.reason.as_deref().unwrap_or_default();
    write(&format!("{}.toml", tested.test.file.id), tested.test.document.text())?;
    let head = format!("# {}: {}: {reason}\n", tested.test.file.id, tested.verdict);
    write("again.sh", &format!("#!/bin/sh\n{head}{}\n", again(&tested.test, subject, how)))?;
    tested.kept = Some(folder);
    Ok(())
}

/// Removes the folder of a test's traces, which this run has made.
fn discard(folder: Option<&Path>) -> Result<()> {
    let Some(folder) = folder.filter(|folder| folder.exists()) else { return Ok(()) };
    std::fs::remove_dir_all(folder).map_err(|e| Error::system("cannot be removed", &e).file(folder))
}

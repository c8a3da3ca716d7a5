//! Fits a test to a kernel and a machine: an experiment with one kernel, or the reason why there is none.

use super::scale::{fill, numbers};
use super::{How, Subject, Test};
use crate::experiment::Experiment;
use crate::expr::parse;
use crate::file::{KernelFile, KnownFile};
use crate::measures;
use crate::run;
use crate::scalar::Scalar;
use schedlab_base::Result;
use schedlab_machine::Machine;
use schedlab_sched::kernels;

/// How often a test runs on a real kernel, whose runs scatter.
const REPEATS: usize = 3;

/// The name that a test's kernel has in expressions and messages.
const NAME: &str = "tested";

/// A test that can run.
pub(super) struct Fitted {
    /// The experiment.
    pub(super) experiment: Experiment,
    /// The CPUs of its machine.
    pub(super) cpus: usize,
    /// The machine, as the user would write it.
    pub(super) machine: String,
}

/// Fits a test, or says why it is skipped.
///
/// # Errors
/// When something in the test, the machine or the settings is wrong.
pub(super) fn fit(test: &Test, subject: &Subject, how: &How) -> Result<Result<Fitted, String>> {
    let (spec, machine) = machine(test, subject, how)?;
    if let Some(why) = lacking(test, subject, &machine) {
        return Ok(Err(why));
    }
    let mut file = test.file.clone();
    file.machine = spec.clone();
    let numbers = numbers(&machine, &test.keys.scale)
        .map_err(|(name, what)| test.document.error(&format!("test.scale.{name}"), what))?;
    fill(&mut file, &numbers);
    // A setting that the kernel does not have is none that the test could need of it.
    let own = test.keys.set.iter().filter(|(name, _)| subject.is_real() || subject.profile.tunable(name).is_some());
    let own = own.filter(|_| !subject.is_live()).map(|(name, value)| (name.clone(), value.clone()));
    let given = how.set.iter().map(|(name, value)| (name.clone(), Scalar::Text(value.clone())));
    let label = subject.is_real().then(|| subject.kernel_name());
    let kernel = subject.profile.name.to_owned();
    file.kernels =
        vec![KernelFile { name: NAME.to_owned(), kernel, label, set: own.chain(given).collect(), duration: None }];
    if let Some(repeats) = how.repeats.or_else(|| repeats(subject)) {
        file.seeds = (1..=repeats as u64).collect();
    }
    known(test, subject, how, &mut file);
    let experiment = Experiment::of(file, test.document.clone())?;
    Ok(Ok(Fitted { experiment, cpus: machine.cpus.len(), machine: spec }))
}

/// How often a test runs, if the backend decides: equal runs of a deterministic guest are equal.
fn repeats(subject: &Subject) -> Option<usize> {
    subject.is_real().then(|| if subject.backend.deterministic() { 1 } else { REPEATS })
}

/// The machine that a test runs on: the one asked for, on a live kernel this host, and otherwise its own.
fn machine(test: &Test, subject: &Subject, how: &How) -> Result<(String, Machine)> {
    let spec = match &how.machine {
        // A file that the user names is where the user is, not beside the test.
        Some(spec) => std::fs::canonicalize(spec).map_or_else(|_| spec.clone(), |path| path.display().to_string()),
        None if subject.is_live() => "host".to_owned(),
        None => test.file.machine.clone(),
    };
    let machine = match &how.machine {
        Some(_) => schedlab_machine::load(&spec)?,
        None => run::machine(&test.document, &spec)?,
    };
    Ok((spec, machine))
}

/// What the machine or the kernel lacks for a test.
fn lacking(test: &Test, subject: &Subject, machine: &Machine) -> Option<String> {
    let needs = &test.keys.needs;
    let too_few = |needed: usize, there: usize, one: &str, several: &str| {
        let there = if there == 1 { format!("1 {one}") } else { format!("{there} {several}") };
        (there.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0) < needed)
            .then(|| format!("it needs {needed} {several}, and the machine has {there}"))
    };
    let threads = machine.threads();
    too_few(needs.cpus, machine.cpus.len(), "CPU", "CPUs")
        .or_else(|| too_few(needs.threads, threads, "thread", "threads in a core"))
        .or_else(|| too_few(needs.llcs, machine.llcs(), "last-level cache", "last-level caches"))
        .or_else(|| too_few(needs.nodes, machine.nodes(), "node", "nodes"))
        .or_else(|| {
            let differ = machine.cpus.windows(2).any(|pair| pair[0].place.capacity != pair[1].place.capacity);
            (needs.symmetric && differ).then(|| "it needs CPUs of one capacity, and the machine's differ".to_owned())
        })
        .or_else(|| {
            subject
                .profile
                .most_cpus()
                .filter(|_| machine.cpus.len() > 1)
                .map(|_| format!("{} knows one CPU", subject.kernel_name()))
        })
        .or_else(|| needs.features.iter().find_map(|need| subject.lacks(*need)))
        .or_else(|| unseen(test).filter(|_| subject.is_real()))
        .or_else(|| subject.backend.lacks(machine))
        .or_else(|| subject.leaves_out(&needs.features, machine))
        .or_else(|| test.keys.set.iter().find_map(|(name, value)| subject.cannot_set(name, &value.to_string())))
}

/// Why a test cannot be judged by a recording.
fn unseen(test: &Test) -> Option<String> {
    let mut found = None;
    for metric in test.file.metrics.values() {
        // What does not parse before the machine is filled in names CPUs.
        let Ok(expr) = parse(&metric.value) else { continue };
        expr.references(&mut |reference| {
            found = found.or_else(|| measures::find(&reference.path).filter(|measure| measure.is_of_simulations()));
        });
    }
    found.map(|measure| format!("a recording of a real kernel does not show {}", measure.name))
}

/// Marks what this kernel is known not to meet. On the machine that the test is written for, the simulator's kernel
/// must then truly not meet it; of any other kernel or machine nobody can know, so that it is not judged.
fn known(test: &Test, subject: &Subject, how: &How, file: &mut crate::file::ExperimentFile) {
    let as_written = !subject.is_real() && how.machine.is_none() && how.set.is_empty();
    let given = |(name, value): (&String, &Scalar)| how.set.iter().any(|(n, v)| n == name && *v == value.to_string());
    let fits =
        |known: &&KnownFile| known.kernels.iter().any(|k| k == subject.profile.name) && known.set.iter().all(given);
    for known in test.keys.known.iter().filter(fits) {
        let of = |figure: &Option<String>| known.figure.is_none() || known.figure == *figure;
        for expectation in file.expectations.iter_mut().filter(|expectation| of(&expectation.figure)) {
            let reason = format!("known of {}: {} ({})", subject.profile.name, known.reason, known.source);
            if as_written {
                expectation.known_difference = Some(reason);
            } else {
                expectation.skip = Some(reason);
            }
        }
    }
}

/// Checks what no machine or kernel changes: the names in `known`, and everything else on the test's own machine.
///
/// # Errors
/// When something is wrong, with its place.
pub(super) fn check(test: &Test) -> Result<()> {
    for (i, known) in test.keys.known.iter().enumerate() {
        for name in &known.kernels {
            let path = format!("test.known[{i}].kernels");
            if !kernels::KERNELS.iter().any(|kernel| kernel.name == name) {
                let error = test.document.error(&path, format!("there is no kernel \"{name}\""));
                let near = schedlab_base::nearest(name, kernels::KERNELS.iter().map(|kernel| kernel.name));
                return Err(match near {
                    Some(near) => error.mend(format!("did you mean \"{near}\"?")),
                    None => error,
                });
            }
        }
        let has = |figure: &String| test.file.expectations.iter().any(|e| e.figure.as_ref() == Some(figure));
        if let Some(figure) = known.figure.as_ref().filter(|figure| !has(figure)) {
            let what = format!("no expectation has the figure \"{figure}\"");
            return Err(test.document.error(&format!("test.known[{i}].figure"), what));
        }
    }
    if test.keys.group.trim().is_empty() || test.keys.why.trim().is_empty() {
        return Err(test.document.error("test", "says nothing of its group or of why it matters"));
    }
    let machine = run::machine(&test.document, &test.file.machine)?;
    let numbers = numbers(&machine, &test.keys.scale)
        .map_err(|(name, what)| test.document.error(&format!("test.scale.{name}"), what))?;
    let mut file = test.file.clone();
    fill(&mut file, &numbers);
    let kernel = kernels::KERNELS.last().expect("there are kernels").name.to_owned();
    file.kernels =
        vec![KernelFile { name: NAME.to_owned(), kernel, label: None, set: Default::default(), duration: None }];
    let experiment = Experiment::of(file, test.document.clone())?;
    run::plan(&experiment).map(drop)
}

//! `schedlab test`: the battery, or the user's own tests, on one kernel.

use super::run::{files, reproduce};
use crate::busy;
use crate::jobs::Jobs;
use crate::target::Target;
use crate::ui::Ui;
use schedlab_base::{Error, Result, nearest};
use schedlab_experiment::battery::{self, How, Subject, Test, Verdicts};
use schedlab_experiment::report;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The percentage of the CPU time that foreign tasks may take, unless the user says another.
const NOISE: f64 = 1.0;

/// What `test` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  schedlab test --on sim:linux-6.12\n  \
    schedlab test --on live --group fairness --group response\n  \
    schedlab test --on vm:/boot/bzImage --deterministic --junit results.xml -o report.html --keep failed\n  \
    schedlab test --on sim:linux-4.1 --set fix.group_imbalance=on --only balance-sessions\n  \
    schedlab test --show fair-equal > mine.toml; schedlab test mine.toml --on live\n\n\
    Exit status: 0 all pass or were skipped, 1 some fail, 2 bad input or output that cannot be written, 3 nothing \
    failed but something is undecided, 4 nothing is permitted here.")]
pub struct Args {
    /// Test files, or folders that contain them, in place of the battery.
    #[arg(value_name = "FILE|DIR")]
    tests: Vec<PathBuf>,
    /// The kernel to test: `sim:KERNEL` simulates it, `live` is this kernel (as root), and `vm:KERNEL` runs in guests
    /// (vm:debian-6.12, vm:/path/to/bzImage).
    #[arg(long, default_value = "sim:linux-6.12", value_name = "WHERE")]
    on: String,
    /// The machine in place of each test's own: a preset, a shorthand (4, 2x6, 4x15x2) or a machine file; on a live
    /// kernel, how many of its CPUs to use.
    #[arg(long, short)]
    machine: Option<String>,
    /// Set a tunable of the kernel, for all tests; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = super::sim::setting)]
    set: Vec<(String, String)>,
    /// In guests: count time in instructions, so that equal runs give equal bytes.
    #[arg(long)]
    deterministic: bool,
    /// Run only this group; may be repeated.
    #[arg(long, value_name = "GROUP")]
    group: Vec<String>,
    /// Run only this test; may be repeated.
    #[arg(long, value_name = "ID")]
    only: Vec<String>,
    /// List the tests.
    #[arg(long)]
    list: bool,
    /// Print the file of one test, to copy and to edit.
    #[arg(long, value_name = "ID")]
    show: Option<String>,
    /// How often to run each test, with seeds 1, 2, ... (default: the test's seeds; 3 on a real kernel).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: Option<u16>,
    /// The percentage of the CPU time that foreign tasks may take on a live kernel before a run decides nothing.
    #[arg(long, default_value_t = NOISE, value_name = "PERCENT")]
    noise: f64,
    /// Keep the traces of each test that fails or is undecided in this folder, with the test and its command.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Write a report: one self-contained HTML page.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write the verdicts as JUnit XML, for CI.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Overwrite the files if they exist.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    jobs: Jobs,
}

/// Runs the tests and prints their verdicts.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    if let Some(id) = &args.show {
        let text = battery::written(id)?;
        if ui.json {
            ui.print_json(&serde_json::json!({ "id": id, "toml": text }));
        } else {
            ui.print(text);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let tests = selected(&args)?;
    if args.list {
        list(&tests, ui);
        return Ok(ExitCode::SUCCESS);
    }
    if !(0.0..=100.0).contains(&args.noise) {
        return Err(Error::input(format!("{} is no percentage", args.noise)).key("--noise").mend("write 0 to 100"));
    }
    let subject = Subject::new(&args.on, args.deterministic)?;
    if subject.on == "live" && !args.set.is_empty() {
        let mend = "set them with sysctl, or test in a guest (--on vm:debian-6.12)";
        return Err(Error::input("is not done on a live kernel: it would change it for everybody")
            .key("--set")
            .mend(mend));
    }
    if subject.backend.real_kernel().is_none() {
        // What no test could set is said once, and not as a fault of a test.
        subject.profile.values(&schedlab_machine::load("up")?, &args.set)?;
    }
    let [page, junit] = Target::two(args.output.as_deref(), args.junit.as_deref(), args.force)?;
    args.keep.as_deref().map_or(Ok(()), is_free)?;
    let how = how(&args, &subject);
    busy::remark(args.on == "live", ui);
    let bar = ui.progress(Some(tests.len() as u64), "testing");
    let verdicts = battery::run(&tests, &subject, &how, &|done| bar.set_position(done as u64));
    bar.finish_and_clear();
    let verdicts = verdicts?;
    print(&verdicts, ui);
    // After the results: they are printed even if a file cannot be written.
    if let Some(page) = page {
        page.write_and_say(report::battery(&verdicts, &reproduce()).as_bytes(), ui)?;
    }
    if let Some(junit) = junit {
        junit.write_and_say(battery::junit(&verdicts)?.as_bytes(), ui)?;
    }
    Ok(ExitCode::from(verdicts.verdict().exit_status()))
}

/// The tests that are asked for.
fn selected(args: &Args) -> Result<Vec<Test>> {
    let mut tests = if args.tests.is_empty() {
        battery::shipped()?
    } else {
        files(&args.tests)?.iter().map(|file| Test::open(file)).collect::<Result<_>>()?
    };
    let ids: Vec<String> = tests.iter().map(|test| test.file.id.clone()).collect();
    if let Some((_, id)) = ids.iter().enumerate().find(|(i, id)| ids[..*i].contains(id)) {
        return Err(Error::input(format!("two tests have the id \"{id}\"")).mend("give each its own"));
    }
    let groups: Vec<String> = tests.iter().map(|test| test.keys.group.clone()).collect();
    known("--group", "group", &args.group, &groups)?;
    known("--only", "test", &args.only, &ids)?;
    tests.retain(|test| {
        let of = |all: &[String], own: &String| all.is_empty() || all.contains(own);
        of(&args.group, &test.keys.group) && of(&args.only, &test.file.id)
    });
    if tests.is_empty() {
        return Err(Error::input("no test is in these groups and has one of these names").mend("select less at a time"));
    }
    Ok(tests)
}

/// Checks that there is what the user names.
fn known(option: &str, noun: &str, names: &[String], all: &[String]) -> Result<()> {
    let mut all = all.to_vec();
    all.sort();
    all.dedup();
    let Some(name) = names.iter().find(|name| !all.contains(name)) else { return Ok(()) };
    let error = Error::input(format!("\"{name}\" is no {noun} here")).key(option);
    Err(match nearest(name, all.iter().map(String::as_str)) {
        Some(near) => error.mend(format!("did you mean \"{near}\"?")),
        None => error.mend(format!("there are {}", all.join(", "))),
    })
}

/// Checks that nothing is in the folder that is to be kept.
fn is_free(folder: &Path) -> Result<()> {
    let fail = |e: std::io::Error| Error::system("cannot be used", &e).file(folder);
    if folder.exists() && std::fs::read_dir(folder).map_err(fail)?.next().is_some() {
        return Err(Error::input("is not empty").key("--keep").mend("name a new folder").file(folder));
    }
    std::fs::create_dir_all(folder).map_err(fail)
}

fn how(args: &Args, subject: &Subject) -> How {
    let mut command: Vec<String> = ["schedlab", "test", "--on"].map(str::to_owned).into();
    command.push(subject.on.clone());
    if args.deterministic {
        command.push("--deterministic".to_owned());
    }
    command.extend(args.machine.iter().flat_map(|machine| ["--machine".to_owned(), machine.clone()]));
    command.extend(args.repeats.iter().flat_map(|repeats| ["--repeats".to_owned(), repeats.to_string()]));
    command.extend(args.set.iter().flat_map(|(name, value)| ["--set".to_owned(), format!("{name}={value}")]));
    if args.noise != NOISE {
        command.extend(["--noise".to_owned(), args.noise.to_string()]);
    }
    How {
        machine: args.machine.clone(),
        set: args.set.clone(),
        repeats: args.repeats.map(usize::from),
        noise: args.noise / 100.0,
        keep: args.keep.clone(),
        command,
        threads: args.jobs.count(),
    }
}

fn list(tests: &[Test], ui: &Ui) {
    if !ui.json {
        ui.print(&battery::list(tests));
        return;
    }
    let one = |test: &Test| {
        serde_json::json!({
            "id": test.file.id,
            "group": test.keys.group,
            "title": test.file.title,
            "machine": test.file.machine,
            "why": test.keys.why,
            "needs": test.keys.needs,
        })
    };
    ui.print_json(&serde_json::json!({ "tests": tests.iter().map(one).collect::<Vec<_>>() }));
}

fn print(verdicts: &Verdicts, ui: &Ui) {
    if ui.json {
        ui.print_json(&verdicts.to_json());
    } else {
        ui.print(&battery::table(verdicts));
    }
}

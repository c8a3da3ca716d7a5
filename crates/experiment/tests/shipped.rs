//! The experiments in `experiments/` are well-formed, and their report stands on its own. That they all hold, `make
//! test` asks of the command that is released: with checks for debugging they take twice as long.

use schedlab_experiment::backend::Sim;
use schedlab_experiment::{Experiment, Outcome, Verdict, report, run_experiments, text};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments")
}

fn run(files: &[&str], threads: usize) -> Outcome {
    let experiments = files.iter().map(|f| Experiment::open(&folder().join(f)).expect("it is well-formed")).collect();
    run_experiments(experiments, &Sim, threads, &|_, _| {}).expect("it runs")
}

fn page(outcome: &Outcome) -> String {
    let reproduce = report::Reproduce { command: "schedlab run experiments".into(), version: "0".into() };
    report::experiments(outcome, &reproduce)
}

#[test]
fn every_shipped_experiment_is_well_formed() {
    let mut seen = 0;
    for entry in std::fs::read_dir(folder()).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|e| e == "toml") {
            let experiment = Experiment::open(&path).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(Some(experiment.file.id.as_str()), path.file_stem().and_then(|s| s.to_str()));
            seen += 1;
        }
    }
    assert!(seen >= 2, "{seen} experiments");
}

/// The files of all experiments, by name.
fn shipped() -> Vec<String> {
    let names =
        std::fs::read_dir(folder()).expect("the folder is there").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = names.map(|n| n.into_string().expect("a plain name")).collect();
    names.retain(|name| name.ends_with(".toml"));
    names.sort();
    names
}

#[test]
fn the_manual_lists_every_experiment() {
    let manual = include_str!("../../../docs/published.md");
    let listed: Vec<&str> = manual.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').collect();
    for file in shipped() {
        let id = file.trim_end_matches(".toml");
        assert!(listed.contains(&id), "docs/published.md does not list {id}");
    }
}

#[test]
fn the_report_of_experiments_that_hold_stands_on_its_own() {
    let outcome = run(&["cfs-02.toml", "cfs-17.toml", "qe-01.toml"], 2);
    let page = page(&outcome);
    assert_eq!(outcome.verdict(), Verdict::Pass, "{}", text::table(&outcome));
    for outside in ["http:", "https:", "src=", "href=\"/", "url(", "@import", "<script", "<link"] {
        assert!(!page.contains(outside), "the report refers outside by {outside}");
    }
    for wanted in ["<svg", "prefers-color-scheme: dark", "qe-01", "EEVDF 6.12", "weight table"] {
        assert!(page.contains(wanted), "the report lacks {wanted}");
    }
}

#[test]
fn the_outcome_does_not_depend_on_the_threads() {
    // One with several runs that are short.
    let one = run(&["cfs-03.toml"], 1);
    let three = run(&["cfs-03.toml"], 3);
    assert_eq!(one.to_json(), three.to_json());
    assert_eq!(page(&one), page(&three));
}

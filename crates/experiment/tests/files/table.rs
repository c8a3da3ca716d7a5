//! What is judged against published tables, and runs that are equal.

use super::{GOOD, SEVERAL, parse, run};
use schedlab_base::{Error, Meta, Nanos, Sink};
use schedlab_experiment::backend::{self, Backend, Request, Sim};
use schedlab_experiment::{Verdict, junit, report, run_experiments, text};

/// Loads on one CPU, with a table of what was published.
const TABLE: &str = r#"id = "table"
title = "loads and their times"
machine = "up"
points = "paper"
[sweep]
n = [1, 2, 3]
load_us = [10000, 20000]
[workload]
inline = """{"global": {"x-start": "fork"}, "tasks": {"cf": {"instance": {n}, "loop": 1, "run": {load_us}}}}"""
[[kernels]]
name = "cfs"
kernel = "linux-2.6.32"
[metrics.last_ms]
value = "1000 * max(finish_s)"
[[tables]]
name = "paper"
columns = ["n", "load_us", "last", "odd"]
rows = [[1, 10000, 10, "-"], [2, 20000, 40, 5], [3, 10000, 30.1, "-"]]
ours = { last = "last_ms", odd = "last_ms" }
[[expectations]]
cells = "paper.last"
within = "5%"
[[expectations]]
cells = "paper.odd"
within = "5%"
known_difference = "a misprint"
[[expectations]]
cells = "paper.last"
at = { n = [2, 3] }
relation = "as published"
bound = "35"
[[expectations]]
kind = "calibration"
metric = "last_ms"
published = "= paper.odd[n=n]"
within = "5%"
at = { n = [2] }
"#;

#[test]
fn every_figure_of_a_table_is_a_case_and_only_its_rows_are_run() {
    let outcome = run(TABLE, &[]);
    let judged = &outcome.experiments[0];
    let mut points: Vec<usize> = judged.runs.iter().map(|r| r.point).collect();
    points.dedup();
    assert_eq!(points.len(), 3, "n=1 and n=3 with 10 ms, n=2 with 20 ms");
    use Verdict::{Calibration, KnownDifference, Pass};
    let verdicts: Vec<_> = judged.rows.iter().map(|r| (r.verdict, r.cases.len())).collect();
    assert_eq!(verdicts, [(Pass, 3), (KnownDifference, 1), (Pass, 2), (Calibration, 1)], "{}", text::table(&outcome));
    assert_eq!(judged.rows[0].cases[2].published, Some(30.1.into()));
    assert_eq!(judged.rows[0].expected, "last_ms == paper.last within 5%");
    assert_eq!(outcome.verdict(), Pass);
    let table = text::table(&outcome);
    assert!(table.contains("n=3, load_us=10000") || table.contains("load_us=10000, n=3"), "{table}");
    assert!(table.contains("1 known difference, 1 calibration"), "{table}");
    let page = report::experiments(&outcome, &report::Reproduce { command: String::new(), version: "0".into() });
    for part in ["every figure", "Tables, published and ours", "<th class=\"n own\">ours, linux-2.6.32</th>"] {
        assert!(page.contains(part), "{part}");
    }
    let xml = junit::write(&outcome).unwrap();
    assert!(xml.contains("<skipped message=\"calibration: measured"), "{xml}");
}

#[test]
fn a_known_difference_must_be_missed_in_each_case() {
    let known = TABLE.replacen("within = \"5%\"", "within = \"5%\"\nknown_difference = \"none\"", 1);
    let row = run(&known, &[]).experiments[0].rows[0].clone();
    assert_eq!(row.verdict, Verdict::Fail);
    let one_off = TABLE.replacen("[3, 10000, 30.1,", "[3, 10000, 50,", 1);
    let one_off = one_off.replacen("within = \"5%\"", "within = \"5%\"\nknown_difference = \"none\"", 1);
    let row = run(&one_off, &[]).experiments[0].rows[0].clone();
    assert_eq!(row.verdict, Verdict::Fail);
    assert!(row.reason.unwrap().contains("has disappeared in 2 of 3 cases"));
}

#[test]
fn a_figure_of_a_table_that_is_not_run_is_an_error() {
    let text = TABLE.replacen("n = [1, 2, 3]", "n = [1, 2]", 1);
    let error = run_experiments(vec![parse(&text).unwrap()], &Sim, 1, &|_, _| {}).unwrap_err().to_string();
    assert!(error.contains("load_us=10000, n=3 of the table is not run"), "{error}");
}

#[test]
fn expectations_that_cannot_be_are_refused() {
    for (from, to, told) in [
        ("within = \"5%\"", "within = \"5%\"\nrelation = \"<\"", "relation: stands beside within"),
        ("within = \"5%\"", "relation = \"<\"", "bound: is missing"),
        ("within = \"5%\"", "bound = 3", "relation: is missing"),
        ("cells = \"paper.last\"", "cells = \"paper.lost\"", "\"paper.lost\" is no column"),
        ("cells = \"paper.last\"", "cells = \"paper.n\"", "the column \"n\" has nothing of ours"),
        ("cells = \"paper.last\"", "metric = \"last_ms\"", "within: has no published figure to be near to"),
        ("points = \"paper\"", "points = \"papers\"", "\"papers\" is no table of this file"),
        ("at = { n = [2, 3] }", "at = { n = [7] }", "n = 7 is in no row of the table"),
        ("kind = \"calibration\"", "kind = \"calibration\"\nknown_difference = \"x\"", "has no known difference"),
        ("machine = \"up\"", "machine = \"up\"\nseeds = [1, 1]", "has a seed twice"),
    ] {
        let text = TABLE.replacen(from, to, 1);
        let got = parse(&text).expect_err(to);
        assert!(got.starts_with("e.toml:") && got.contains(told), "{to}: {got}");
    }
}

#[test]
fn equal_runs_are_run_once() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    struct Counting(AtomicUsize);
    impl Backend for Counting {
        fn name(&self) -> &str {
            "counting"
        }
        fn deterministic(&self) -> bool {
            true
        }
        fn meta(&self, request: &Request) -> Meta {
            Sim.meta(request)
        }
        fn idle_ticks(&self, request: &Request) -> Result<Option<(Nanos, Nanos)>, Error> {
            Sim.idle_ticks(request)
        }
        fn run(&self, request: &Request, sink: &mut dyn Sink) -> Result<backend::Outcome, Error> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Sim.run(request, sink)
        }
    }
    let count = |text: &str| {
        let counting = Counting(AtomicUsize::new(0));
        let outcome = run_experiments(vec![parse(text).unwrap()], &counting, 2, &|_, _| {}).unwrap();
        (counting.0.into_inner(), outcome.experiments[0].runs.len())
    };
    assert_eq!(count(GOOD), (4, 10), "two points; nothing is drawn, so that two seeds show it");
    assert_eq!(count(SEVERAL), (12, 12), "two kernels, two points, three seeds");
    let metric_only = GOOD.replacen("\"instance\": {n}", "\"instance\": 2", 1);
    assert_eq!(count(&metric_only).0, 2, "only the metrics name n");
}

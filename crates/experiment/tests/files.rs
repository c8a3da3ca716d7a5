//! Experiment files that are wrong: each is refused with its file, its line, its key, what is wrong and the mend.

#[path = "files/charts.rs"]
mod charts;
#[path = "files/table.rs"]
mod table;

use proptest::prelude::*;
use schedlab_base::{Error, Meta, Nanos, Sink};
use schedlab_experiment::backend::{self, Backend, Request, Sim};
use schedlab_experiment::{Baseline, Experiment, Outcome, Selection, Verdict, junit, report, run_experiments, text};
use schedlab_machine::tomltext::TomlText;

const GOOD: &str = r#"id = "x-1"
title = "two hogs"
machine = "up"
duration = "1s"

[sweep]
n = [2, 3]

[workload]
inline = '{"tasks": {"hog": {"instance": {n}, "loop": -1, "run": 1000}}}'

[[kernels]]
name = "cfs"
kernel = "linux-2.6.32"

[metrics.share]
value = "max(run_s['hog-*']) / sum(run_s)"

[[tables]]
name = "paper"
columns = ["n", "share"]
rows = [[2, 0.5], [3, 0.333]]

[[expectations]]
figure = "T1"
kind = "number"
metric = "share"
relation = "=="
bound = "paper.share[n=n]"
margin = "3%"
"#;

fn parse(text: &str) -> Result<Experiment, String> {
    Experiment::parse(TomlText::new("e.toml", text)).map_err(|e| e.to_string())
}

/// The message that replacing `from` by `to` in the good file brings.
fn slip(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from} is not in the file");
    parse(&GOOD.replacen(from, to, 1)).expect_err(to)
}

/// The message that running the changed file brings.
fn slip_when_run(from: &str, to: &str) -> String {
    let experiment = parse(&GOOD.replacen(from, to, 1)).expect("it is well-formed");
    run_experiments(vec![experiment], &Sim, 1, &|_, _| {}).expect_err(to).to_string()
}

#[test]
fn the_good_file_runs_and_passes() {
    let outcome = run_experiments(vec![parse(GOOD).unwrap()], &Sim, 1, &|_, _| {}).unwrap();
    assert_eq!(outcome.verdict(), Verdict::Pass, "{}", text::table(&outcome));
    let json = outcome.to_json();
    let expectation = &json["experiments"][0]["expectations"][0];
    assert_eq!((&expectation["figure"], &expectation["verdict"]), (&"T1".into(), &"pass".into()));
    assert!(expectation["measured"].is_number() && expectation.get("published").is_some());
}

#[test]
fn unknown_keys_name_the_nearest() {
    assert_eq!(
        slip("duration =", "durration ="),
        "e.toml:4: durration: \"durration\" is no key; did you mean \"duration\"?"
    );
    assert_eq!(
        slip("margin =", "margine ="),
        "e.toml:30: expectations[0].margine: \"margine\" is no key; did you mean \"margin\"?"
    );
    assert!(
        slip("inline =", "online =")
            .starts_with("e.toml:10: workload.online: \"online\" is no key; did you mean \"inline\"?")
    );
    assert!(
        slip("kind = \"number\"", "kind = \"numbre\"")
            .contains("\"numbre\" is no known value; did you mean \"number\"?")
    );
}

#[test]
fn unknown_names_in_expressions_name_the_nearest_with_file_line_and_key() {
    assert_eq!(
        slip("max(run_s['hog-*'])", "max(rum_s['hog-*'])"),
        "e.toml:17: metrics.share.value: \"rum_s\" is no measure, parameter or table; did you mean \"run_s\"?"
    );
    assert_eq!(
        slip("metric = \"share\"", "metric = \"shaer\""),
        "e.toml:27: expectations[0].metric: \"shaer\" is no metric, parameter or table; did you mean \"share\"?"
    );
    assert!(
        slip("metric = \"share\"", "metric = \"share@csf\"")
            .contains("\"csf\" is no kernel of this file; did you mean \"cfs\"?")
    );
    assert!(slip("paper.share[n=n]", "papper.share[n=n]").contains("did you mean \"paper.share\"?"));
    assert!(slip("max(run_s", "mx(run_s").contains("\"mx\" is no function; did you mean \"max\"?"));
    assert!(slip("run_s['hog-*']", "wait_s[window=1]").contains("\"window\" is no selector here"));
}

#[test]
fn values_that_cannot_be_are_refused() {
    for (from, to, told) in [
        ("id = \"x-1\"", "id = \"x 1\"", "e.toml:1: id: \"x 1\" is no id"),
        ("n = [2, 3]", "n = []", "e.toml:7: sweep.n: has no value"),
        ("n = [2, 3]", "n = [2, 2]", "has a value twice"),
        ("name = \"cfs\"", "name = \"c f s\"", "kernels[0].name: \"c f s\" is no name"),
        ("[2, 0.5]", "[2]", "tables[0].rows[0]: 1 cells for 2 columns"),
        ("margin = \"3%\"", "margin = \"3\"", "expectations[0].margin: \"3\" is no margin"),
        ("margin = \"3%\"", "at = { n = [9] }", "n = 9 is not among the sweep's"),
        ("margin = \"3%\"", "at = { m = [2] }", "\"m\" is no parameter of the sweep"),
        ("margin = \"3%\"", "kernels = [\"cf\"]", "\"cf\" is no kernel of this file"),
        ("[workload]", "[workload]\npreset = \"li\"", "workload: is not one workload"),
        ("duration = \"1s\"", "duration = \"1s\"\nseeds = []", "seeds: no seed, no run"),
        ("duration = \"1s\"", "duration = \"1s\"\nwindow = \"0s\"", "window: a window of no width"),
        ("duration = \"1s\"", "duration = \"1s\"\nwindow = \"1ns\"", "makes too many windows"),
    ] {
        let got = slip(from, to);
        assert!(got.starts_with("e.toml:") && got.contains(told), "{to}: {got}");
    }
    let many: Vec<String> = (0..20_001).map(|n| n.to_string()).collect();
    assert!(slip("n = [2, 3]", &format!("n = [{}]", many.join(","))).contains("runs are too many"));
}

#[test]
fn terms_stand_for_expressions_over_metrics() {
    let with = |terms: &str, metric: &str| {
        let text = GOOD.replacen("metric = \"share\"", &format!("metric = \"{metric}\""), 1);
        parse(&format!("{text}\n[terms]\n{terms}"))
    };
    let good = with("half = \"share / 2\"\nwhole = \"half + half\"", "whole").unwrap();
    let outcome = run_experiments(vec![good], &Sim, 1, &|_, _| {}).unwrap();
    assert_eq!(outcome.verdict(), Verdict::Pass, "{}", text::table(&outcome));
    let slip = |terms: &str| with(terms, "share").unwrap_err().to_string();
    assert!(slip("a = \"b\"\nb = \"1 + a\"").contains("\"a\" contains itself"));
    assert!(
        slip("a = \"shaer\"").contains("terms.a: \"shaer\" is no metric, parameter or table; did you mean \"share\"?")
    );
    assert!(slip("share = \"1\"").contains("terms.share: \"share\" cannot be its name"));
}

#[test]
fn a_kernel_may_have_a_duration_of_its_own() {
    const TEXT: &str = r#"
        id = "d"
        title = "durations"
        machine = "up"
        duration = "1s"
        workload = { preset = "li:tasks=1" }
        kernels = [
            { name = "a", kernel = "linux-6.1" },
            { name = "b", kernel = "linux-6.12", duration = "3s" },
        ]
        metrics = { d = { value = "duration_s" } }
        expectations = [
            { metric = "d@a", relation = "==", bound = 1 },
            { metric = "d@b", relation = "==", bound = 3 },
        ]
    "#;
    let outcome = run_experiments(vec![parse(TEXT).unwrap()], &Sim, 1, &|_, _| {}).unwrap();
    assert_eq!(outcome.verdict(), Verdict::Pass, "{}", text::table(&outcome));
    let wrong = parse(&TEXT.replacen("3s", "3x", 1)).unwrap();
    let message = run_experiments(vec![wrong], &Sim, 1, &|_, _| {}).unwrap_err().to_string();
    assert!(message.contains("kernels[1].duration"), "{message}");
}

/// The good file with heat maps.
fn with_heatmaps(heatmaps: &str) -> String {
    format!("{GOOD}\n{heatmaps}").replacen("machine = \"up\"", "machine = \"2x2\"", 1)
}

#[test]
fn heat_maps_are_drawn_of_the_run_that_they_name() {
    let text = with_heatmaps(
        "[[heatmaps]]\ntitle = \"Queues\"\nat = { n = 3 }\nto = \"400ms\"\n\
         [[heatmaps]]\ntitle = \"Looks\"\nwhat = \"considered\"\ncpu = 0\n\
         [[heatmaps]]\ntitle = \"Loads\"\nwhat = \"load\"\n",
    );
    let run = |text: &str| run_experiments(vec![parse(text).unwrap()], &Sim, 2, &|_, _| {}).unwrap();
    let outcome = run(&text);
    let runs = &outcome.experiments[0].runs;
    let first: Vec<_> = runs.iter().filter(|r| r.seed == 1).collect();
    let drawn: Vec<_> = first.iter().map(|r| r.heats.iter().map(|(index, _)| *index).collect::<Vec<_>>()).collect();
    assert_eq!(drawn, [vec![1, 2], vec![0]], "n = 2 and n = 3");
    assert!(runs.iter().all(|r| r.seed == 1 || r.heats.is_empty()), "pictures are of the first seed");
    let queues = &first[1].heats[0].1;
    assert_eq!((queues.to, queues.rows.len(), queues.told, queues.highest()), (400_000_000, 4, true, 1.0));
    let plain = run(&GOOD.replacen("machine = \"up\"", "machine = \"2x2\"", 1));
    assert_eq!(plain.to_json(), outcome.to_json(), "drawing changes no figure");
    let reproduce = report::Reproduce { command: String::new(), version: "0".into() };
    let page = report::experiments(&outcome, &reproduce);
    for part in ["Queues", "Looks", "Loads", "data:image/png;base64,", "CPUs looked at for cpu 0", "cpu 3"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("http"), "the page refers to nothing outside");
}

#[test]
fn heat_maps_that_cannot_be_are_refused() {
    for (key, told) in [
        ("what = \"queues\"", "did you mean \"queue\"?"),
        ("at = { n = 9 }", "heatmaps[0].at.n: 9 is not among the sweep's"),
        ("at = { m = 2 }", "heatmaps[0].at.m: \"m\" is no parameter of the sweep"),
        ("kernels = [\"cf\"]", "heatmaps[0].kernels: \"cf\" is no kernel of this file; did you mean \"cfs\"?"),
        ("from = \"5\"", "heatmaps[0].from: the duration \"5\" has no unit"),
        ("from = \"2s\"\nto = \"2s\"", "heatmaps[0].to: ends before it begins"),
        ("cpu = 1", "heatmaps[0].cpu: chooses the CPU that looked"),
    ] {
        let got = parse(&with_heatmaps(&format!("[[heatmaps]]\ntitle = \"t\"\n{key}\n"))).expect_err(key);
        assert!(got.starts_with("e.toml:") && got.contains(told), "{key}: {got}");
    }
}

#[test]
fn what_shows_only_when_it_is_run_is_told_with_file_and_line() {
    for (from, to, told) in [
        ("duration = \"1s\"", "duration = \"1\"", "e.toml:4: duration: the duration \"1\" has no unit"),
        ("machine = \"up\"", "machine = \"upp\"", "e.toml:3: machine: \"upp\" is no machine; did you mean \"up\"?"),
        ("linux-2.6.32", "linux-2.6.33", "the nearest are linux-2.6.32 and linux-3.10"),
        ("\"run\": 1000", "\"rum\": 1000", "e.toml:10: workload.inline:"),
        ("'hog-*'", "'hig-*'", "e.toml:17: metrics.share.value: cfs at n=2: no task is named 'hig-*'"),
        (
            "max(run_s['hog-*'])",
            "idle_s[window=0]",
            "cfs at n=2: idleness has windows only where the file gives their width",
        ),
        ("inline = '", "file = 'gone.json' #", "workload.file: there is no file gone.json"),
        ("duration = \"1s\"", "", "never ends"),
        ("metric = \"share\"", "metric = \"share[n=7]\"", "expectations[0]: \"share\" was run at no such point"),
    ] {
        let got = slip_when_run(from, to);
        assert!(got.starts_with("e.toml:") && got.contains(told), "{to}: {got}");
    }
}

#[test]
fn what_is_not_modelled_is_remarked_once() {
    let locks = GOOD.replacen("\"run\": 1000", "\"lock\": \"m\", \"run\": 1000, \"unlock\": \"m\"", 1);
    let text = locks.replacen("{\"tasks\"", "{\"global\": {\"pi_enabled\": true}, \"tasks\"", 1);
    let remarks = |text: &str| {
        let outcome = run_experiments(vec![parse(text).unwrap()], &Sim, 1, &|_, _| {}).unwrap();
        outcome.experiments[0].remarks().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let older = remarks(&text.replacen("linux-2.6.32", "linux-2.6.11", 1));
    assert_eq!(older.len(), 1, "{older:?}");
    assert!(older[0].contains("no priority inheritance"), "{older:?}");
    assert!(remarks(&text).is_empty());
}

#[test]
fn verdicts_are_judged_case_by_case() {
    let verdict = |from: &str, to: &str| {
        let experiment = parse(&GOOD.replacen(from, to, 1)).unwrap();
        let outcome = run_experiments(vec![experiment], &Sim, 1, &|_, _| {}).unwrap();
        (outcome.verdict(), outcome.experiments[0].rows[0].clone())
    };
    let (failed, row) = verdict("bound = \"paper.share[n=n]\"", "bound = 0.5");
    assert_eq!((failed, row.cases.len(), row.at.as_str()), (Verdict::Fail, 2, "n=3"));
    let known = "margin = \"3%\"\nknown_difference = \"the cause\"";
    let (_, row) = verdict("margin = \"3%\"", known);
    assert_eq!(row.verdict, Verdict::Fail, "a known difference that holds fails");
    assert!(row.reason.unwrap().contains("has disappeared"));
    let off = format!("bound = 0.5\nat.n = [3]\n{known}");
    let (all, row) = verdict("bound = \"paper.share[n=n]\"\nmargin = \"3%\"", &off);
    assert_eq!((all, row.reason.as_deref()), (Verdict::KnownDifference, Some("the cause")));
    let (skipped, _) = verdict("margin = \"3%\"", "skip = \"not now\"");
    assert_eq!(skipped, Verdict::Skipped);
    let (undecided, row) = verdict("value = \"max(run_s['hog-*']) / sum(run_s)\"", "value = \"mean(finish_s)\"");
    assert_eq!(undecided, Verdict::Undecided);
    assert_eq!(row.reason.as_deref(), Some("the task 'hog-0' had not ended"));
    assert!(row.findings()[0].starts_with("no value (linux-2.6.32, n=2): the task"), "{:?}", row.findings());
}

/// The simulator, as if equal requests gave different events: a stand-in for a real kernel.
struct Scattering;

impl Backend for Scattering {
    fn name(&self) -> &str {
        "scattering"
    }

    fn deterministic(&self) -> bool {
        false
    }

    fn meta(&self, request: &Request) -> Meta {
        Sim.meta(request)
    }

    fn idle_ticks(&self, _: &Request) -> Result<Option<(Nanos, Nanos)>, Error> {
        Ok(None)
    }

    fn run(&self, request: &Request, sink: &mut dyn Sink) -> Result<backend::Outcome, Error> {
        Sim.run(&Request { seed: request.seed % 2, ..request.clone() }, sink)
    }
}

#[test]
fn a_backend_that_scatters_is_judged_by_several_runs() {
    let verdict = |text: &str| {
        let outcome = run_experiments(vec![parse(text).unwrap()], &Scattering, 2, &|_, _| {}).unwrap();
        (outcome.verdict(), outcome.experiments[0].rows[0].reason.clone())
    };
    let one = (Verdict::Undecided, Some("one run on this backend decides nothing; give several seeds".to_owned()));
    assert_eq!(verdict(&GOOD.replacen("duration = \"1s\"", "duration = \"1s\"\nseeds = [1]", 1)), one);
    let several = GOOD.replacen("duration = \"1s\"", "duration = \"1s\"\nseeds = [1, 2, 3]", 1);
    assert_eq!(verdict(&several), (Verdict::Pass, None));
}

/// The good file under two kernels, judged at three seeds by a figure that scatters.
const SEVERAL: &str = r#"id = "several"
title = "two hogs that sleep"
machine = "up"
duration = "1s"
seeds = [1, 2, 3]
[sweep]
n = [2, 3]
[workload]
inline = """{"tasks": {"hog": {"instance": {n}, "loop": -1, "run": {"mean": 3000, "sd": 900}, "sleep": 2000}}}"""
[[kernels]]
name = "cfs"
kernel = "linux-2.6.32"
[[kernels]]
name = "eevdf"
kernel = "linux-6.12"
label = "EEVDF"
[metrics.time]
value = "sum(run_s)"
[[expectations]]
metric = "time"
relation = "<="
bound = 0.1
[[expectations]]
metric = "time@cfs"
relation = ">"
bound = "time@eevdf / 2"
[[expectations]]
metric = "slope(n[n=*], time[n=*])"
relation = ">"
bound = 0
"#;

fn run(text: &str, only: &[&str]) -> Outcome {
    let experiments = vec![parse(text).unwrap()];
    let only: Vec<String> = only.iter().map(|o| (*o).to_owned()).collect();
    let selection = Selection::new(&experiments, &[], &only).unwrap();
    run_experiments(selection.apply(experiments).unwrap(), &Sim, 2, &|_, _| {}).unwrap()
}

#[test]
fn an_expectation_needs_no_figure_and_empty_columns_are_hidden() {
    let table = text::table(&run(SEVERAL, &[]));
    let head = table.lines().next().unwrap();
    assert!(head.contains("expectation") && !head.contains("figure") && !head.contains("published"), "{table}");
    assert!(table.contains("time@cfs > time@eevdf / 2"), "{table}");
}

#[test]
fn a_failure_says_what_was_measured_what_is_required_and_where() {
    let outcome = run(SEVERAL, &[]);
    let table = text::table(&outcome);
    let line = table.lines().find(|l| l.contains("time <= 0.1: fail") && l.contains("(EEVDF, n=3)")).expect(&table);
    assert!(line.contains("measured 0.9") && line.contains(" over 3 seeds)"), "{line}");
    assert!(line.contains("; required at most 0.1 (EEVDF, n=3)"), "{line}");
    let case = &outcome.to_json()["experiments"][0]["expectations"][0]["cases"][0];
    assert_eq!((&case["required"]["low"], &case["required"]["high"]), (&serde_json::Value::Null, &0.1.into()));
    let interval = case["interval"].as_array().unwrap();
    assert!(interval[0].as_f64() < case["measured"].as_f64() && case["measured"].as_f64() < interval[1].as_f64());
}

#[test]
fn what_holds_for_some_seeds_only_does_not_hold() {
    let case = run(SEVERAL, &[]).to_json()["experiments"][0]["expectations"][0]["cases"][0].clone();
    let middle = case["measured"].as_f64().unwrap();
    assert!(case["range"][0].as_f64().unwrap() < middle && middle < case["range"][1].as_f64().unwrap(), "{case}");
    let bound = format!("bound = {middle}\nkernels = [\"cfs\"]\nat.n = [2]");
    let row = |text: &str| run(text, &[]).experiments[0].rows[0].clone();
    let mixed = row(&SEVERAL.replacen("bound = 0.1", &bound, 1));
    assert_eq!(mixed.verdict, Verdict::Undecided);
    let reason = mixed.reason.unwrap();
    assert!(reason == "it holds for 1 of 3 seeds" || reason == "it holds for 2 of 3 seeds", "{reason}");
    let known = row(&SEVERAL.replacen("bound = 0.1", &format!("{bound}\nknown_difference = \"the cause\""), 1));
    assert_eq!((known.verdict, known.reason.as_deref()), (Verdict::KnownDifference, Some("the cause")));
}

#[test]
fn a_selection_runs_a_part_and_judges_what_it_can() {
    let verdicts = |only: &[&str]| {
        let outcome = run(SEVERAL, only);
        let rows = &outcome.experiments[0].rows;
        let verdicts: Vec<_> = rows.iter().map(|r| r.verdict).collect();
        (outcome.experiments[0].runs.len(), verdicts)
    };
    use Verdict::{Fail, Pass, Skipped};
    assert_eq!(verdicts(&[]), (12, vec![Fail, Pass, Pass]));
    assert_eq!(verdicts(&["several"]).0, 12);
    assert_eq!(verdicts(&["EEVDF"]), (6, vec![Fail, Skipped, Pass]), "no cfs to compare with");
    assert_eq!(verdicts(&["n=3"]), (6, vec![Fail, Pass, Skipped]), "no slope over one point");
    assert_eq!(verdicts(&["n=3", "n=2"]), (12, vec![Fail, Pass, Pass]));
    assert_eq!(verdicts(&["cfs", "n=3"]).0, 3);
    let skipped = &run(SEVERAL, &["EEVDF"]).experiments[0].rows[1];
    assert_eq!(skipped.reason.as_deref(), Some("it needs the kernel \"cfs\", which is not selected"));
    let experiments = [parse(SEVERAL).unwrap()];
    for (only, message) in
        [("n=4", "did you mean"), ("m=3", "is no parameter"), ("severel", "did you mean \"several\"?")]
    {
        let error = Selection::new(&experiments, &[], &[only.to_owned()]).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn junit_has_a_test_for_each_case() {
    let xml = junit::write(&run(SEVERAL, &["n=3"])).unwrap();
    for part in [
        "<testsuites name=\"schedlab run\" tests=\"5\" failures=\"2\" errors=\"0\"",
        "<testcase name=\"time &lt;= 0.1 (EEVDF, n=3)\" classname=\"several\">",
        "<failure message=\"measured 0.",
        "<skipped message=",
    ] {
        assert!(xml.contains(part), "{part} is not in {xml}");
    }
}

#[test]
fn a_baseline_shows_what_has_changed_beyond_the_scatter() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("old.json");
    std::fs::write(&file, run(SEVERAL, &[]).to_json().to_string()).unwrap();
    let baseline = Baseline::open(&file).unwrap();
    let compare = |text: &str, only: &[&str]| baseline.compare(&run(text, only), !only.is_empty());
    let same = compare(SEVERAL, &[]);
    assert_eq!(same.exit_status(), 0, "{}", same.text());
    assert!(same.text().contains("of 4 metrics none has changed"), "{}", same.text());
    let other_seeds = compare(&SEVERAL.replace("[1, 2, 3]", "[4, 5, 6]"), &[]);
    assert_eq!(other_seeds.exit_status(), 0, "seeds scatter: {}", other_seeds.text());
    let halved = compare(&SEVERAL.replace("\"mean\": 3000", "\"mean\": 300"), &[]);
    assert_eq!(halved.exit_status(), 1, "{}", halved.text());
    assert!(halved.text().contains("several: time (cfs, n=2): 0."), "{}", halved.text());
    let part = compare(SEVERAL, &["cfs"]).text();
    assert!(part.contains("of 2 metrics none has changed") && !part.contains("only in"), "{part}");
    let none = compare(&SEVERAL.replace("id = \"several\"", "id = \"new\""), &[]);
    assert_eq!(none.exit_status(), 3, "nothing was compared");
    std::fs::write(&file, "{}").unwrap();
    assert!(Baseline::open(&file).unwrap_err().to_string().contains("is not a baseline"));
}

#[test]
fn remarks_on_workloads_reach_the_outcome_and_unknown_keys_are_refused() {
    let remarked = GOOD.replacen("\"tasks\": {\"hog\"", "\"tasks\": {\"hog\": {\"run\": 1}, \"hog\"", 1);
    let outcome = run_experiments(vec![parse(&remarked).unwrap()], &Sim, 1, &|_, _| {}).unwrap();
    let json = outcome.to_json();
    assert!(json["experiments"][0]["remarks"][0].as_str().unwrap().contains("tasks.hog"), "{json}");
    let page = report::experiments(&outcome, &report::Reproduce { command: String::new(), version: "0".into() });
    assert!(page.contains("tasks.hog"), "the report has the remark");
    let nice = slip_when_run("\"loop\": -1", "\"nice\": 5, \"loop\": -1");
    assert!(nice.contains("tasks.hog.nice: no such key here; did you mean \"priority\"?"), "{nice}");
    let colour = slip_when_run("\"loop\": -1", "\"colour\": 5, \"loop\": -1");
    assert!(colour.contains("e.toml:10: workload.inline:") && colour.contains("no such key here"), "{colour}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_mutated_file_panics(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
                              cut in any::<prop::sample::Index>(), truncate in any::<bool>()) {
        let mut bytes = GOOD.as_bytes().to_vec();
        for (at, byte) in &changes {
            let n = bytes.len();
            bytes[at.index(n)] = *byte;
        }
        if truncate {
            bytes.truncate(cut.index(GOOD.len()));
        }
        let _ = parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_shuffled_file_panics(order in Just((0..GOOD.lines().count()).collect::<Vec<_>>()).prop_shuffle(),
                               keep in 1usize..30) {
        let lines: Vec<&str> = GOOD.lines().collect();
        let text: Vec<&str> = order.iter().take(keep).map(|i| lines[*i]).collect();
        let _ = parse(&text.join("\n"));
    }
}

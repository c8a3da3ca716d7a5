//! Charts along a parameter: where they are drawn, and of which tasks.

use super::{GOOD, parse, run};
use schedlab_experiment::report;

fn with_chart(chart: &str) -> String {
    format!("{GOOD}\n[[charts]]\ntitle = \"shares\"\n{chart}")
}

/// What is drawn below the chart's heading: the texts that its columns show when they are pointed at.
fn drawn(chart: &str) -> Vec<String> {
    let outcome = run(&with_chart(chart), &[]);
    let page = report::experiments(&outcome, &report::Reproduce { command: String::new(), version: "0".into() });
    let svg = page.split("aria-label=\"shares, ").nth(1).expect("the chart is there");
    let svg = svg.split("</svg>").next().expect("it ends");
    let titles = svg.split("<title>").skip(1).filter_map(|rest| rest.split("</title>").next());
    titles.map(str::to_owned).filter(|title| title.contains("task")).collect()
}

#[test]
fn each_task_is_a_part_of_its_runs_column() {
    let shares = "kind = \"stacked\"\nx = \"n\"\ntasks = \"100 * run_s['hog-*'] / sum(run_s)\"";
    let all = drawn(shares);
    assert_eq!(all.len(), 2 + 3, "{all:?}");
    let sum = |n: &str| -> f64 {
        let values = all.iter().filter(|title| title.starts_with(n)).filter_map(|title| title.rsplit(' ').next());
        values.map(|value| value.parse::<f64>().expect("a number")).sum()
    };
    assert!((sum("2, ") - 100.0).abs() < 0.1 && (sum("3, ") - 100.0).abs() < 0.1, "{all:?}");

    let one = drawn(&format!("{shares}\nat = {{ n = [3] }}"));
    assert!(one.len() == 3 && one.iter().all(|title| title.starts_with("3, ")), "{one:?}");
}

#[test]
fn places_that_are_not_in_the_sweep_are_refused() {
    for (chart, why) in [
        ("x = \"n\"\ny = \"share\"\nat = { n = [5] }", "charts[0].at.n: 5 is not among the sweep's"),
        ("x = \"n\"\ny = \"share\"\nat = { n = [] }", "charts[0].at.n: is one point of the chart"),
        ("x = \"n\"\ny = \"share\"\nat = { m = [2] }", "\"m\" is no parameter of the sweep"),
        ("kind = \"bars\"\ntasks = \"run_s\"\nat = { n = [2] }", "the tasks are those of the runs shown"),
        ("kind = \"bars\"\ngroups = [{ label = \"a\", value = \"share\" }]\nat = { n = [2, 3] }", "is one point"),
        ("kind = \"stacked\"\ntasks = \"run_s\"", "the parts are given as groups, or as tasks along x"),
    ] {
        let message = parse(&with_chart(chart)).expect_err(chart);
        assert!(message.contains(why), "{chart}: {message}");
    }
}

#[test]
fn a_selection_without_a_charts_places_leaves_it_empty() {
    for chart in [
        "x = \"n\"\ny = \"share\"\nat = { n = [3] }",
        "kind = \"bars\"\nx = \"n\"\nat = { n = [3] }\ngroups = [{ label = \"a\", value = \"share\" }]",
        "kind = \"stacked\"\nx = \"n\"\nat = { n = [3] }\ntasks = \"run_s\"",
    ] {
        let outcome = run(&with_chart(chart), &["n=2"]);
        let page = report::experiments(&outcome, &report::Reproduce { command: String::new(), version: "0".into() });
        assert!(page.contains("shares"), "{chart}");
    }
}

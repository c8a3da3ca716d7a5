//! Experiments with `--on live`.

use super::{SCHEDLAB, may_record};
use std::fs;
use std::process::Command;

#[test]
fn an_experiment_runs_on_this_kernel() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.toml");
    let text = r#"
id = "pair"
title = "Two equal hogs on one CPU"
machine = "1"
duration = "1s"
seeds = [1, 2, 3]

[source]
work = "a test"
place = "here"
setup = "this machine"
claim = "equal tasks have equal shares"

[workload]
preset = "li:tasks=2"

[[kernels]]
name = "eevdf"
kernel = "linux-6.12"

[[kernels]]
name = "old"
kernel = "linux-2.6.0"

[metrics.ratio]
value = "run_s['li-0'] / run_s['li-1']"

[metrics.tasks]
value = "count(run_s)"

[[expectations]]
figure = "equal shares"
kind = "number"
metric = "ratio"
relation = ">="
bound = 0.8
kernels = ["eevdf"]

[[expectations]]
figure = "its own tasks alone"
kind = "number"
metric = "tasks"
relation = "=="
bound = 2
kernels = ["eevdf"]
"#;
    fs::write(&file, text).unwrap();
    let output = Command::new(SCHEDLAB).args(["run", "--on", "live", "--json"]).arg(&file).output().unwrap();
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(problem.contains("stands in for linux-"), "{problem}");
    assert_eq!(output.status.code(), Some(0), "{problem} {}", String::from_utf8_lossy(&output.stdout));
    fs::write(&file, text.replace("machine = \"1\"", "machine = \"epyc-2x64-smt\"")).unwrap();
    let output = Command::new(SCHEDLAB).args(["run", "--on", "live"]).arg(&file).output().unwrap();
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(4) && problem.contains("its machine has 256 CPUs"), "{problem}");
}

//! Checks the pages with real output. Each `console` block is run again, in the order of the page, and must print what
//! the page shows. A line `...` stands for any omitted lines. With `SCHEDLAB_WRITE_DOCS=1` in the environment the pages
//! are rewritten instead.

use schedlab_base::v;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The command follows the prompt, up to the end of the line. Its output is on the following lines.
const PROMPT: &str = "$ ";

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

/// The output of a command, with this build's `schedlab` first in the path.
fn print(command: &str, dir: &Path) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_schedlab"));
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    if let Some(rest) = std::env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }
    let output = Command::new("sh").args(["-c", command]).current_dir(dir).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Whether `text` matches `pattern`, in which a line `...` stands for any number of lines.
fn matches(pattern: &[&str], text: &[&str]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((&"...", rest)) => (0..=text.len()).any(|from| matches(rest, &text[from..])),
        Some((line, rest)) => text.first() == Some(line) && matches(rest, &text[1..]),
    }
}

/// The page with the output that its commands print now, and the differences.
fn run_again(name: &str) -> (String, Vec<String>) {
    let text = std::fs::read_to_string(page(name)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(page("../workloads"), dir.path().join("workloads")).unwrap();
    let (mut anew, mut wrong) = (String::new(), Vec::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        anew.push_str(line);
        anew.push('\n');
        if line != "```console" {
            continue;
        }
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        for part in block.split_inclusive_before(|line| line.starts_with(PROMPT)) {
            let printed = print(part[0].strip_prefix(PROMPT).expect("a block begins with a prompt"), dir.path());
            let now: Vec<&str> = printed.lines().map(str::trim_end).collect();
            let same = matches(&part[1..], &now);
            if !same {
                wrong.push(format!("{}\n{printed}", part[0]));
            }
            let kept = if same { &part[1..] } else { &now[..] };
            anew.extend([&part[..1], kept].concat().iter().flat_map(|line| [line, "\n"]));
        }
        anew.push_str("```\n");
    }
    (anew, wrong)
}

/// Splits a list into parts, each of which begins where `begins` is true.
trait Parts<'a> {
    fn split_inclusive_before(&self, begins: impl Fn(&str) -> bool) -> Vec<Vec<&'a str>>;
}

impl<'a> Parts<'a> for Vec<&'a str> {
    fn split_inclusive_before(&self, begins: impl Fn(&str) -> bool) -> Vec<Vec<&'a str>> {
        let mut parts: Vec<Vec<&str>> = Vec::new();
        for line in self {
            match parts.last_mut() {
                Some(part) if !begins(line) => part.push(line),
                _ => parts.push(vec![line]),
            }
        }
        parts
    }
}

fn check(name: &str) {
    let (anew, wrong) = run_again(name);
    if std::env::var_os("SCHEDLAB_WRITE_DOCS").is_some() {
        std::fs::write(page(name), anew).unwrap();
    } else {
        assert!(
            wrong.is_empty(),
            "docs/{name} is out of date; SCHEDLAB_WRITE_DOCS=1 writes it anew. Now:\n{}",
            wrong.join("\n")
        );
    }
}

#[test]
fn the_tutorial_shows_real_output() {
    check("tutorial.md");
}

#[test]
fn the_page_on_explain_shows_real_output() {
    check("explain.md");
}

#[test]
fn the_page_on_the_inside_shows_real_output() {
    check("inside.md");
}

#[test]
fn the_page_on_delays_shows_real_output() {
    check("delays.md");
}

#[test]
fn the_page_on_statistics_shows_real_output() {
    check("stats.md");
}

#[test]
fn the_page_on_whatif_shows_real_output() {
    check("whatif.md");
}

#[test]
fn the_page_on_diff_shows_real_output() {
    check("diff.md");
}

#[test]
fn the_page_on_models_shows_real_output() {
    check("model.md");
}

#[test]
fn the_page_on_the_battery_shows_real_output() {
    check("battery.md");
}

#[test]
fn the_page_on_tunables_shows_real_output() {
    check("tunables.md");
}

#[test]
fn the_guides_show_real_output() {
    for guide in ["sre", "kernel-developer", "qa", "lab-sheet"] {
        check(&format!("guides/{guide}.md"));
    }
}

fn keys(value: &serde_json::Value, into: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                into.insert(key.clone());
                keys(value, into);
            }
        }
        serde_json::Value::Array(list) => list.iter().for_each(|item| keys(item, into)),
        _ => {}
    }
}

/// Real-time, deadline and idle tasks, and a group with a quota.
const CLASSES: &str = r#"{
    "tasks": {
        "rr": { "loop": -1, "instance": 3, "policy": "SCHED_RR", "priority": 10, "run": 3000, "sleep": 9000 },
        "dl": { "loop": -1, "policy": "SCHED_DEADLINE", "dl-runtime": 5000, "dl-deadline": 20000, "dl-period": 20000,
                "run": 4000, "sleep": 2000 },
        "quiet": { "loop": -1, "policy": "SCHED_IDLE", "run": 100000 },
        "hog": { "loop": -1, "instance": 2, "run": 100000 }
    }
}"#;

/// docs/inside.md describes every key that any scheduler shows.
#[test]
fn every_key_of_every_scheduler_is_explained() {
    let text = std::fs::read_to_string(page("inside.md")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let kernels: serde_json::Value = serde_json::from_str(&print("schedlab kernels --json", dir.path())).unwrap();
    let names = kernels.as_array().or_else(|| kernels["kernels"].as_array()).expect("a list of kernels");
    std::fs::write(dir.path().join("classes.json"), CLASSES).unwrap();
    let mut unknown = BTreeSet::new();
    for kernel in names.iter().map(|kernel| kernel["name"].as_str().expect("a name")) {
        let mut found = BTreeSet::new();
        for workload in ["messaging:groups=1", "classes.json"] {
            let at = "--queues-at 7ms --queues-at 23ms --queues-at 41ms";
            let command = format!("schedlab sim -k {kernel} -m 2 -w {workload} -d 60ms {at} --json");
            let seen: serde_json::Value = serde_json::from_str(&print(&command, dir.path())).unwrap();
            keys(&seen["queues"], &mut found);
        }
        assert!(found.len() > 5, "{kernel} shows nothing");
        unknown.extend(
            found.into_iter().filter(|key| !text.contains(&format!("`{key}`"))).map(|key| format!("{kernel}: {key}")),
        );
    }
    assert!(unknown.is_empty(), "docs/inside.md does not tell of {unknown:#?}");
}

/// What each kernel is held to, or that nothing is known of it, stands in docs/simulation.md.
#[test]
fn every_kernel_of_the_registry_is_on_the_page_of_the_simulation() {
    let text = std::fs::read_to_string(page("simulation.md")).unwrap();
    let (_, faithful) = text.split_once("## How faithful").expect("the heading");
    let kernels = schedlab_sched::kernels::KERNELS.iter().map(|kernel| kernel.name);
    let missing: Vec<_> = kernels.filter(|name| !text.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "docs/simulation.md does not name {missing:?}");
    let held = schedlab_sched::kernels::KERNELS.iter().filter(|kernel| kernel.release > Some(v(2, 2)));
    let missing: Vec<_> = held.map(|k| k.name).filter(|name| !faithful.contains(&format!("`{name}`"))).collect();
    assert!(missing.is_empty(), "\"How faithful\" does not name {missing:?}");
}

#[test]
fn dots_stand_for_lines() {
    assert!(matches(&["a", "...", "d"], &["a", "b", "c", "d"]));
    assert!(matches(&["...", "d", "..."], &["a", "d"]));
    assert!(!matches(&["a", "...", "d"], &["a", "b", "c"]));
    assert!(!matches(&["a"], &["a", "b"]));
}

//! The battery through the command line: what sound kernels pass, what bugs fail, and what a user gets of it.

use crate::support::{ok, schedlab};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// The fixes of the bugs that `linux-4.1` has, each with the tests that fail without it.
const BUGS: [(&str, &[&str]); 4] = [
    ("fix.group_imbalance", &["balance-groups", "balance-sessions"]),
    ("fix.group_construction", &["balance-nodes"]),
    ("fix.overload_on_wakeup", &["balance-wakeup"]),
    ("fix.missing_domains", &["stability-hotplug"]),
];

/// The document of a battery, and the exit status.
fn battery(folder: &Path, args: &[&str]) -> (Option<i32>, Value) {
    let out = schedlab(folder, &[&["test", "--json"], args].concat());
    let document = serde_json::from_slice(&out.stdout);
    (out.status.code(), document.unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr))))
}

fn tests(document: &Value) -> &[Value] {
    document["tests"].as_array().expect("a list of tests")
}

/// The tests with this verdict.
fn with<'a>(document: &'a Value, verdict: &str) -> BTreeSet<&'a str> {
    tests(document).iter().filter(|test| test["verdict"] == verdict).map(|test| test["id"].as_str().unwrap()).collect()
}

fn on(kernel: &str, set: &[String]) -> (Option<i32>, Value) {
    let folder = tempfile::tempdir().unwrap();
    let on = format!("sim:{kernel}");
    let set: Vec<&str> = set.iter().flat_map(|set| ["--set", set.as_str()]).collect();
    battery(folder.path(), &[&["--on", on.as_str()][..], &set].concat())
}

#[test]
fn a_sound_kernel_passes_the_battery() {
    let (status, document) = on("linux-6.12", &[]);
    assert_eq!((status, &document["verdict"]), (Some(0), &"pass".into()), "{document}");
    assert!(with(&document, "fail").is_empty() && with(&document, "undecided").is_empty());
    assert!(with(&document, "pass").len() >= 30, "{document}");
    let groups: BTreeSet<&str> = tests(&document).iter().map(|test| test["group"].as_str().unwrap()).collect();
    let wanted = "balance conservation fairness isolation locality response scaling stability throughput";
    assert_eq!(groups.into_iter().collect::<Vec<_>>().join(" "), wanted);
    for test in tests(&document).iter().filter(|test| test["verdict"] == "skipped") {
        assert!(test["reason"].as_str().is_some_and(|reason| reason.len() > 10), "{test}");
    }
}

#[test]
fn every_kernel_fails_by_its_bugs_alone() {
    let all: BTreeSet<&str> = BUGS.iter().flat_map(|(_, tests)| tests.iter().copied()).collect();
    let none = BTreeSet::new();
    for kernel in schedlab_sched::kernels::KERNELS {
        let (_, document) = on(kernel.name, &[]);
        let expected = match kernel.name {
            // Group imbalance is in releases from 2.6.38 on (A Decade of Wasted Cores, table 4).
            "linux-3.10" => BUGS[..2].iter().flat_map(|(_, tests)| tests.iter().copied()).collect(),
            "linux-3.18" | "linux-4.1" => all.clone(),
            _ => none.clone(),
        };
        assert_eq!(with(&document, "fail"), expected, "{}", kernel.name);
        assert_eq!(with(&document, "undecided"), none, "{}", kernel.name);
    }
}

/// Each bug alone fails its tests and no others, and with its fix these pass beside the other bugs.
#[test]
fn each_bug_fails_its_own_tests() {
    let fix = |name: &str| format!("{name}=on");
    let all: Vec<String> = BUGS.iter().map(|(name, _)| fix(name)).collect();
    let (status, document) = on("linux-4.1", &all);
    assert_eq!((status, with(&document, "fail")), (Some(0), BTreeSet::new()));
    for (name, own) in BUGS {
        let own: BTreeSet<&str> = own.iter().copied().collect();
        let (_, fixed) = on("linux-4.1", &[fix(name)]);
        assert!(with(&fixed, "fail").is_disjoint(&own), "{name}: {:?}", with(&fixed, "fail"));
        assert!(with(&fixed, "pass").is_superset(&own), "{name}: {:?}", with(&fixed, "pass"));
        let others = BUGS.iter().map(|(other, _)| *other).filter(|other| *other != name);
        let (status, alone) = on("linux-4.1", &others.map(fix).collect::<Vec<_>>());
        assert_eq!((status, with(&alone, "fail")), (Some(1), own), "{name}");
    }
}

#[test]
fn a_test_whose_tasks_the_kernel_refuses_is_named_by_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let text = r#"
        id = "full"
        title = "More deadline tasks than one CPU takes"
        machine = "1"
        duration = "1s"
        [test]
        group = "isolation"
        why = "It is refused."
        [workload]
        inline = '''{ "tasks": { "dl": { "instance": 2, "policy": "SCHED_DEADLINE", "loop": -1, "run": 10000,
                                          "dl-runtime": 90000, "dl-period": 100000 } } }'''
        [metrics.spread]
        value = "spread(run_s)"
        [[expectations]]
        figure = "spread"
        metric = "spread"
        relation = "<="
        bound = 1
        why = "There is none."
    "#;
    std::fs::write(folder.path().join("full.toml"), text).unwrap();
    let refused = schedlab(folder.path(), &["test", "full.toml", "--on", "sim:linux-6.12"]);
    let message = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(message.starts_with("schedlab: full.toml: does not run: the kernel refuses task dl-1"), "{message}");
}

#[test]
fn a_failure_has_its_trace_and_the_command_that_reproduces_it() {
    let folder = tempfile::tempdir().unwrap();
    let args = "--on sim:linux-4.1 --noise 2.5 --only balance-groups --only fair-equal --keep kept -o page.html \
                --junit out.xml";
    let (status, document) = battery(folder.path(), &args.split(' ').collect::<Vec<_>>());
    assert_eq!(status, Some(1));
    let failed = tests(&document).iter().find(|test| test["verdict"] == "fail").expect("one failed");
    assert_eq!(failed["id"], "balance-groups");
    assert!(failed["reason"].as_str().unwrap().contains("required at most"), "{failed}");
    let kept = folder.path().join("kept");
    assert_eq!(std::fs::read_dir(&kept).unwrap().count(), 1, "what passed is not kept");
    let command = failed["command"].as_str().unwrap();
    assert_eq!(command, "schedlab test --on sim:linux-4.1 --noise 2.5 --only balance-groups");
    assert!(std::fs::read_to_string(kept.join("balance-groups/again.sh")).unwrap().contains(command));
    let trace = kept.join("balance-groups/seed1.arrows");
    let checked = schedlab(folder.path(), &["check", trace.to_str().unwrap()]);
    assert_eq!(checked.status.code(), Some(1), "the trace shows the violation");
    let (again, same) = battery(folder.path(), &command.split(' ').skip(2).collect::<Vec<_>>());
    assert_eq!((again, &tests(&same)[0]["reason"]), (Some(1), &failed["reason"]));
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    for wanted in ["balance-groups", command, "fair-equal", "Group Imbalance"] {
        assert!(page.contains(wanted), "the page lacks {wanted}");
    }
    let xml = std::fs::read_to_string(folder.path().join("out.xml")).unwrap();
    assert!(
        xml.contains("<testsuite name=\"balance\" tests=\"1\" disabled=\"0\" errors=\"0\" failures=\"1\">"),
        "{xml}"
    );
    assert!(xml.contains("<testcase name=\"fair-equal\" classname=\"schedlab.fairness\">"), "{xml}");
    let refused = schedlab(
        folder.path(),
        &args.split(' ').fold(vec!["test"], |mut all, word| {
            all.push(word);
            all
        }),
    );
    assert_eq!(refused.status.code(), Some(2), "nothing is overwritten");
}

#[test]
fn the_script_beside_a_kept_test_runs_the_copy_from_any_folder() {
    let folder = tempfile::tempdir().unwrap();
    let text = ok(folder.path(), &["test", "--show", "fair-equal"]);
    let shown: serde_json::Value =
        serde_json::from_str(&ok(folder.path(), &["test", "--show", "fair-equal", "--json"])).unwrap();
    assert_eq!(shown, serde_json::json!({ "id": "fair-equal", "toml": text }));
    let text = text.replace("id = \"fair-equal\"", "id = \"my-1\"").replace("bound = 0.25", "bound = 0");
    std::fs::write(folder.path().join("my.toml"), text).unwrap();
    let machine = "sockets = 1\ncores = 2\nthreads = 1\n";
    std::fs::write(folder.path().join("m.toml"), machine).unwrap();
    let args = ["my.toml", "--machine", "m.toml", "--repeats", "1", "--keep", "kept"];
    assert_eq!(battery(folder.path(), &args).0, Some(1));
    let kept = folder.path().join("kept/my-1");
    let commands = Path::new(env!("CARGO_BIN_EXE_schedlab")).parent().unwrap();
    let path = format!("{}:{}", commands.display(), std::env::var("PATH").unwrap());
    for (from, script) in [(kept.as_path(), "again.sh"), (folder.path(), "kept/my-1/again.sh")] {
        let out = Command::new("sh").arg(script).current_dir(from).env("PATH", &path).output().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        assert!(out.status.code() == Some(1) && said.contains("my-1"), "{script}: {said}");
    }
}

#[test]
fn a_user_s_own_test_is_a_copy_that_was_edited() {
    let folder = tempfile::tempdir().unwrap();
    let shown = schedlab(folder.path(), &["test", "--show", "fair-equal"]);
    let text = String::from_utf8(shown.stdout).unwrap();
    let write = |text: &str| std::fs::write(folder.path().join("mine.toml"), text).unwrap();
    write(&text.replace("bound = 0.25", "bound = 0"));
    let (status, document) = battery(folder.path(), &["mine.toml", "--machine", "2", "--repeats", "2"]);
    assert_eq!(status, Some(1), "{document}");
    let test = &tests(&document)[0];
    assert_eq!((&test["machine"], &test["seeds"]), (&"2".into(), &serde_json::json!([1, 2])));
    assert!(test["command"].as_str().unwrap().ends_with("--machine 2 --repeats 2 -- mine.toml"), "{test}");
    for (from, to, message) in [
        ("id = \"fair-equal\"", "id = \"fair equal\"", "mine.toml:1: id: \"fair equal\" is no id"),
        ("hogs = \"cpus * 2\"", "hogs = \"cpu * 2\"", "test.scale.hogs: no \"cpu\" is known of a machine"),
        ("group =", "gruop =", "test.gruop: \"gruop\" is no key; did you mean \"group\"?"),
        ("[workload]", "[[kernels]]\nname = \"a\"\nkernel = \"linux-6.1\"\n[workload]", "a test names no kernel"),
    ] {
        assert!(text.contains(from), "{from}");
        write(&text.replacen(from, to, 1));
        let out = schedlab(folder.path(), &["test", "mine.toml"]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.code() == Some(2) && said.contains(message), "{from}: {said}");
    }
    write(&text);
    let out = schedlab(folder.path(), &["run", "mine.toml"]);
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(out.status.code() == Some(2) && said.contains("schedlab test mine.toml"), "{said}");
}

#[test]
fn what_a_machine_or_a_kernel_lacks_is_skipped_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let reason = |args: &str| {
        let (status, document) = battery(folder.path(), &args.split(' ').collect::<Vec<_>>());
        assert_eq!(status, Some(0), "{document}");
        assert_eq!(tests(&document)[0]["verdict"], "skipped");
        tests(&document)[0]["reason"].as_str().unwrap().to_owned()
    };
    let said = reason("--on sim:linux-2.6.11 --only fair-groups");
    assert_eq!(said, "linux-2.6.11 has no groups of tasks");
    let said = reason("--on sim:linux-6.12 --only locality-numa --machine 4");
    assert_eq!(said, "it needs 2 nodes, and the machine has 1 node");
    let said = reason("--on sim:linux-1.2 --only balance-pingpong");
    assert_eq!(said, "linux-1.2 knows one CPU");
    let said = reason("--on sim:linux-2.6.11 --only fair-equal");
    assert!(said.contains("known of linux-2.6.11: ") && said.contains("kernel/sched.c"), "{said}");
}

#[test]
fn names_that_are_not_there_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (args, message) in [
        ("--only fair-equl", "--only: \"fair-equl\" is no test here; did you mean \"fair-equal\"?"),
        ("--group fairnes", "--group: \"fairnes\" is no group here; did you mean \"fairness\"?"),
        ("--on sim", "--on sim: which kernel?; write --on sim:linux-6.12"),
        ("--on sim:linux-7.9", "there is no kernel \"linux-7.9\""),
        ("--on smi", "--on smi: no such backend"),
        ("--on live --set hz=100", "--set: is not done on a live kernel"),
        ("--noise 101", "--noise: 101 is no percentage"),
        ("--set base_slise_ns=3", "schedlab: --set base_slise_ns: no such tunable; did you mean \"base_slice_ns\""),
        ("--show fair", "\"fair\" is no test of the battery"),
    ] {
        let out = schedlab(
            folder.path(),
            &args.split(' ').fold(vec!["test"], |mut all, word| {
                all.push(word);
                all
            }),
        );
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.code() == Some(2) && said.contains(message), "{args}: {said}");
    }
    let out = schedlab(folder.path(), &["test", "--list"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(text.contains("fairness") && text.contains("isolation-quota"), "{text}");
}

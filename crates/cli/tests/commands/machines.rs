//! `schedlab machines` through the command line.

use std::process::{Command, Output};

fn machines(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_schedlab")).arg("machines").args(args).output().expect("the binary runs")
}

fn json(args: &[&str]) -> serde_json::Value {
    let out = machines(args);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).expect("one JSON document")
}

#[test]
fn the_list_names_every_preset_with_its_size() {
    let value = json(&["--json"]);
    let sizes: Vec<_> = value["machines"].as_array().unwrap().iter().map(|m| (&m["name"], &m["cpus"])).collect();
    assert!(sizes.contains(&(&"z800".into(), &12.into())), "{sizes:?}");
    assert!(sizes.contains(&(&"dl580".into(), &120.into())), "{sizes:?}");
}

#[test]
fn a_machine_printed_as_a_file_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("copy.toml");
    let out = machines(&["bulldozer-64", "--toml"]);
    std::fs::write(&path, &out.stdout).unwrap();
    assert_eq!(json(&[path.to_str().unwrap(), "--json"]), json(&["bulldozer-64", "--json"]));
}

#[test]
fn bad_machines_are_refused_with_status_2_and_one_message() {
    for (spec, message) in [("z80", "did you mean \"z800\""), ("0", "no fewer than one"), ("9000", "at most 8192")] {
        let out = machines(&[spec]);
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{spec}");
        assert!(stderr.contains(message) && stderr.lines().count() == 1, "{stderr}");
    }
}

#[test]
fn domains_come_as_json_in_the_order_of_the_kernel() {
    let value = json(&["2x2x2", "--domains", "--kernel", "linux-6.12", "--json"]);
    let of = value["domains"].as_object().unwrap();
    assert_eq!(of.len(), 8);
    let of_5 = &of["5"];
    let levels: Vec<_> = of_5.as_array().unwrap().iter().map(|d| d["level"].as_str().unwrap()).collect();
    assert_eq!(levels, ["SMT", "MC", "PKG"]);
    assert_eq!(of_5[0]["groups"], serde_json::json!([{"span": [5]}, {"span": [4]}]));
    assert_eq!(of_5[2]["groups"], serde_json::json!([{"span": [4, 5, 6, 7]}, {"span": [0, 1, 2, 3]}]));
    assert_eq!((&of_5[2]["min_interval_ms"], &of_5[2]["busy_factor"]), (&8.into(), &16.into()));
    assert_eq!(of_5[0]["flags"][4], "SD_SHARE_CPUCAPACITY");
    let after = json(&["2x2x2", "--domains", "--kernel", "linux-6.12", "--offline", "5", "--json"]);
    assert!(after["domains"]["5"].is_null());
    assert_eq!(after["domains"]["4"][0]["level"], "MC", "it is alone on its core");
}

#[test]
fn the_bugs_of_wasted_cores_show_and_their_fixes_remove_them() {
    let top = |extra: &[&str]| {
        let args = ["bulldozer-64", "--domains", "--kernel", "linux-4.1", "--cpu", "8", "--json"];
        json(&[&args[..], extra].concat())["domains"]["8"].as_array().unwrap().clone()
    };
    let groups = |levels: &[serde_json::Value]| levels.last().unwrap()["groups"].as_array().unwrap().clone();
    let both = |levels: &[serde_json::Value]| {
        groups(levels).iter().all(|group| {
            let cpus = group["span"].as_array().unwrap();
            cpus.contains(&8.into()) && cpus.contains(&16.into())
        })
    };
    assert!(both(&top(&[])), "nodes 1 and 2 lie in every group together");
    assert!(!both(&top(&["--set", "fix.group_construction=on"])));
    let returned = ["--offline", "3", "--online", "3"];
    assert_eq!(top(&returned).len(), 1);
    assert_eq!(top(&[&returned[..], &["--set", "fix.missing_domains=on"]].concat()).len(), top(&[]).len());
}

#[test]
fn domains_are_drawn_as_text() {
    let out = machines(&["z800", "--domains", "--kernel", "linux-6.1"]);
    let text = String::from_utf8(out.stdout).unwrap();
    for part in ["CPUs 0-5\n", "NUMA    0-11: each 12 to 24 ms", "[0-5] [6-11]", "SHARE_PKG_RESOURCES"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn bad_questions_for_domains_are_refused() {
    for (args, message) in [
        (vec!["z800", "--domains", "--kernel", "linux-6.13"], "the nearest are linux-6.12 and linux-6.18"),
        (vec!["z800", "--domains", "--kernel", "linux-6.1", "--offline", "12"], "CPUs 0 to 11"),
        (vec!["up", "--domains", "--kernel", "linux-6.1", "--offline", "0"], "last one online"),
        (vec!["z800", "--domains", "--kernel", "linux-6.1", "--online", "0"], "CPU 0 is online"),
        (vec!["--domains", "--kernel", "linux-6.1"], "--domains needs a machine"),
        (vec!["z800", "--domains", "--kernel", "linux-6.1", "--set", "fix.missing_domains=on"], "no such tunable"),
    ] {
        let out = machines(&args);
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        assert!(stderr.contains(message), "{args:?}: {stderr}");
    }
}

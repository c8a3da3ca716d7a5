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
    for (spec, told) in [("z80", "did you mean \"z800\""), ("0", "no fewer than one"), ("9000", "at most 8192")] {
        let out = machines(&[spec]);
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{spec}");
        assert!(stderr.contains(told) && stderr.lines().count() == 1, "{stderr}");
    }
}

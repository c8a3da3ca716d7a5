//! `schedlab tunables` on the running kernel: one harmless value, how often the counts of memory are added up, is set
//! and put back.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const FILE: &str = "/proc/sys/vm/stat_interval";

/// Puts the value back, however the test ends.
struct Kept(String);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = fs::write(FILE, &self.0);
    }
}

fn value() -> String {
    fs::read_to_string(FILE).unwrap().trim().to_owned()
}

fn tunables(state: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .arg("tunables")
        .args(args)
        .env("SCHEDLAB_STATE", state)
        .output()
        .unwrap()
}

fn json(state: &Path, args: &[&str]) -> Value {
    let output = tunables(state, &[args, &["--json"]].concat());
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The names and values that can be set here.
fn settable(state: &Path) -> Vec<(String, String)> {
    let document = json(state, &["--live"]);
    let rows = document["tunables"].as_array().unwrap().iter().filter(|row| row["settable"] == true);
    rows.map(|row| (row["name"].as_str().unwrap().to_owned(), row["value"].as_str().unwrap_or_default().to_owned()))
        .collect()
}

#[test]
fn a_real_value_is_set_and_put_back_also_after_its_process_was_killed() {
    let state = tempfile::tempdir().unwrap();
    let before = settable(state.path());
    if !before.iter().any(|(name, _)| name == "vm.stat_interval") {
        println!("skipped: vm.stat_interval cannot be set here (it needs root)");
        return;
    }
    let kept = Kept(value());
    let other = if kept.0 == "2" { "3" } else { "2" };
    let file = state.path().join("s.toml");
    fs::write(&file, format!("vm.stat_interval = {other}\n")).unwrap();
    let mut owner = Command::new("sleep").arg("600").spawn().unwrap();
    let id = owner.id().to_string();
    let set = tunables(state.path(), &["--apply", file.to_str().unwrap(), "--owner", &id]);
    let now = value();
    let refused = tunables(state.path(), &["--restore"]).status.code();
    owner.kill().unwrap();
    owner.wait().unwrap();
    let back = json(state.path(), &["--restore"]);
    assert!(set.status.success(), "{}", String::from_utf8_lossy(&set.stderr));
    assert_eq!((now.as_str(), refused, value()), (other, Some(4), kept.0.clone()));
    assert_eq!(back["restored"][0]["name"], "vm.stat_interval");
    // Values that the kernel or another program changes by itself meanwhile are none of this test's.
    assert_eq!(settable(state.path()).len(), before.len());
}

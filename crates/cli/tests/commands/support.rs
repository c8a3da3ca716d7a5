//! Shared by the tests of the verbs: runs the command in a folder.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `schedlab` in a folder.
pub fn schedlab(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_schedlab")).current_dir(folder).args(args).output().expect("the binary runs")
}

/// The output of `schedlab`, which must succeed.
pub fn ok(folder: &Path, args: &[&str]) -> String {
    let out = schedlab(folder, args);
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("text")
}

/// The JSON document that `schedlab` prints with `--json`; it must succeed.
pub fn json(folder: &Path, args: &[&str]) -> Value {
    serde_json::from_str(&ok(folder, &[args, &["--json"]].concat())).expect("one JSON document")
}

//! `schedlab vm`, as far as it boots nothing.

use crate::support::schedlab;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `schedlab vm` with a cache of its own in `folder`.
fn vm(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    command.env("XDG_CACHE_HOME", folder).arg("vm").args(args).output().expect("the binary runs")
}

fn message(output: &Output, status: i32) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn an_empty_cache_lists_nothing_and_says_how_to_fill_it() {
    let dir = tempfile::tempdir().unwrap();
    assert!(message(&vm(dir.path(), &["list"]), 0).contains("schedlab vm fetch debian-6.12"));
    let json = vm(dir.path(), &["list", "--json"]);
    let document: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(document["kernels"], serde_json::json!([]));
}

#[test]
fn kernels_that_are_not_here_are_named_with_what_gets_them() {
    let dir = tempfile::tempdir().unwrap();
    let text = message(&vm(dir.path(), &["boot", "debian-6.12"]), 2);
    assert_eq!(
        text,
        "schedlab: the kernel debian-6.12 is not on this machine; get it: schedlab vm fetch debian-6.12\n"
    );
    assert!(message(&vm(dir.path(), &["boot", "linux-6.12"]), 2).contains("is no kernel; known are debian-6.12"));
    std::fs::write(dir.path().join("text"), "x").unwrap();
    let path = dir.path().join("text");
    assert!(message(&vm(dir.path(), &["boot", path.to_str().unwrap()]), 2).contains("text: is no kernel for x86"));
    assert!(message(&vm(dir.path(), &["fetch", "fedora-41"]), 2).contains("debian-6.1, debian-6.12"));
}

#[test]
fn without_a_place_for_kernels_the_message_says_which_variable() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    let output = command.env_remove("XDG_CACHE_HOME").env_remove("HOME").args(["vm", "list"]).output().unwrap();
    assert!(message(&output, 2).contains("set XDG_CACHE_HOME or HOME"));
}

#[test]
fn the_help_shows_examples() {
    let dir = tempfile::tempdir().unwrap();
    let output = schedlab(dir.path(), &["vm", "--help"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("schedlab vm fetch debian-6.12") && text.contains("schedlab vm boot"), "{text}");
}

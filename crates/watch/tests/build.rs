//! The build script where there is no clang, or one that cannot compile for eBPF: the crate is built all the same, and
//! knows why it has no program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles the build script as cargo does.
fn script(folder: &Path) -> PathBuf {
    let program = folder.join("script");
    let rustc = Path::new(env!("CARGO")).with_file_name("rustc");
    let compiled = Command::new(rustc)
        .args(["--edition", "2024", "-o"])
        .arg(&program)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("build.rs"))
        .status()
        .expect("rustc runs");
    assert!(compiled.success());
    program
}

/// Runs it with this clang; what it says to cargo about the program, and the program.
fn built(script: &Path, folder: &Path, clang: &str) -> (String, Vec<u8>) {
    let output = Command::new(script)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .envs([("OUT_DIR", folder.as_os_str()), ("SCHEDLAB_CLANG", clang.as_ref())])
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    let why = said.lines().find_map(|line| line.strip_prefix("cargo::rustc-env=SCHEDLAB_NO_EBPF="));
    (why.expect("it says why, or nothing").to_owned(), fs::read(folder.join("queues.bpf.o")).unwrap())
}

#[test]
fn without_a_clang_that_can_there_is_no_program_and_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let script = script(dir.path());
    let (why, object) = built(&script, dir.path(), "/nonexistent/clang");
    assert_eq!((why.as_str(), object.len()), ("there was no /nonexistent/clang when schedlab was built", 0));

    let poor = dir.path().join("poor");
    fs::write(&poor, "#!/bin/sh\necho 'error: unknown target triple bpf' >&2\necho more >&2\nexit 1\n").unwrap();
    fs::set_permissions(&poor, fs::Permissions::from_mode(0o755)).unwrap();
    let poor = poor.to_str().unwrap();
    let (why, object) = built(&script, dir.path(), poor);
    let said = format!("{poor} could not compile it when schedlab was built: error: unknown target triple bpf");
    assert_eq!((why, object.len()), (said, 0));
}

//! The files that verbs write are complete or absent, and an earlier file is never lost.

use crate::support::schedlab;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SCHEDLAB: &str = env!("CARGO_BIN_EXE_schedlab");

const PRECIOUS: &str = "precious";

/// The arguments of each verb that writes a file, with the output last.
const VERBS: [&[&str]; 6] = [
    &["sim", "-k", "linux-6.12", "-w", "li:tasks=2", "-d", "50ms", "-o"],
    &["import", "perf.data", "-o"],
    &["model", "t.arrows", "-o"],
    &["heatmap", "t.arrows", "-o"],
    &["run", "hogs.toml", "-o"],
    &["workloads", "li:tasks=2", "-o"],
];

/// Like [`schedlab`], but no byte can be written to a file, as if the disk were full.
fn on_a_full_disk(folder: &Path, args: &[&str]) -> Output {
    let script = "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"";
    Command::new("/bin/sh").current_dir(folder).args(["-c", script, SCHEDLAB]).args(args).output().unwrap()
}

/// A folder with the inputs of the verbs.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/data/pipes.perf.data");
    std::os::unix::fs::symlink(recording, folder.path().join("perf.data")).unwrap();
    std::fs::write(folder.path().join("hogs.toml"), crate::run::FILE).unwrap();
    let made = schedlab(folder.path(), &[VERBS[0], &["t.arrows"]].concat());
    assert!(made.status.success(), "{}", text(&made.stderr));
    folder
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = folder.read_dir().unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn make(program: &str, arguments: &[&str], path: &Path, more: &[&str]) -> bool {
    Command::new(program).args(arguments).arg(path).args(more).stderr(Stdio::null()).status().unwrap().success()
}

#[test]
fn a_full_disk_costs_no_file_and_leaves_none() {
    let folder = folder();
    let before = files(folder.path());
    for verb in VERBS {
        let failed = on_a_full_disk(folder.path(), &[verb, &["out.png"]].concat());
        let problem = text(&failed.stderr);
        assert_eq!(failed.status.code(), Some(2), "{verb:?}: {problem}");
        assert!(problem.contains("out.png: ") && problem.contains("File too large"), "{verb:?}: {problem}");
        assert!(!problem.contains(".part"), "the file is called as the user called it: {problem}");
        assert_eq!(files(folder.path()), before, "{verb:?}");
    }
    let file = folder.path().join("out.png");
    std::fs::write(&file, PRECIOUS).unwrap();
    let before = files(folder.path());
    for verb in VERBS {
        let failed = on_a_full_disk(folder.path(), &[verb, &["out.png", "--force"]].concat());
        assert_eq!(failed.status.code(), Some(2), "{verb:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), PRECIOUS, "{verb:?}");
        assert_eq!(files(folder.path()), before, "{verb:?}");
    }
}

#[test]
fn a_device_that_takes_nothing_is_named() {
    let folder = folder();
    // The name of a picture says of what kind it is, which this one does not.
    for verb in VERBS.iter().filter(|verb| verb[0] != "heatmap") {
        let failed = schedlab(folder.path(), &[verb, &["/dev/full"][..]].concat());
        let problem = text(&failed.stderr);
        assert_eq!(failed.status.code(), Some(2), "{verb:?}: {problem}");
        assert!(problem.contains("/dev/full: ") && problem.contains("No space left on device"), "{verb:?}: {problem}");
    }
}

#[test]
fn a_file_is_replaced_with_its_links_its_mode_and_its_owner() {
    let folder = folder();
    let file = folder.path().join("real.png");
    let link = folder.path().join("out.png");
    std::os::unix::fs::symlink("real.png", &link).unwrap();
    for verb in VERBS {
        std::fs::write(&file, PRECIOUS).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o640)).unwrap();
        // Only root may give a file away. For other users the owner stays the same.
        let _ = std::os::unix::fs::chown(&file, Some(65534), Some(65534));
        let before = file.metadata().unwrap();
        let refused = schedlab(folder.path(), &[verb, &["out.png"]].concat());
        assert_eq!(refused.status.code(), Some(2), "{verb:?}");
        assert!(text(&refused.stderr).contains("out.png: exists already"), "{}", text(&refused.stderr));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), PRECIOUS, "{verb:?}");
        let done = schedlab(folder.path(), &[verb, &["out.png", "--force"]].concat());
        assert!(done.status.success(), "{verb:?}: {}", text(&done.stderr));
        assert!(link.is_symlink(), "{verb:?}");
        assert_ne!(std::fs::read(&file).unwrap(), PRECIOUS.as_bytes(), "{verb:?}");
        let after = file.metadata().unwrap();
        assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()), "{verb:?}");
    }
}

#[test]
fn outputs_that_are_not_files_are_refused() {
    let folder = folder();
    std::os::unix::fs::symlink("nowhere", folder.path().join("out.png")).unwrap();
    std::fs::create_dir(folder.path().join("folder.png")).unwrap();
    let before = files(folder.path());
    for verb in VERBS {
        for (name, message) in [
            ("out.png", "out.png: is a symbolic link that leads nowhere"),
            ("folder.png", "folder.png: is a folder"),
            ("no/such/out.png", "no/such/out.png: cannot be created"),
        ] {
            for more in [&[name][..], &[name, "--force"]] {
                let refused = schedlab(folder.path(), &[verb, more].concat());
                assert_eq!(refused.status.code(), Some(2), "{verb:?} {name}");
                assert!(text(&refused.stderr).contains(message), "{verb:?}: {}", text(&refused.stderr));
                assert_eq!(files(folder.path()), before, "{verb:?} {name}");
            }
        }
    }
    assert!(folder.path().join("out.png").is_symlink());
}

#[test]
fn a_fifo_is_written_to_and_stays() {
    let folder = folder();
    let fifo = folder.path().join("out.png");
    assert!(make("mkfifo", &[], &fifo, &[]));
    for verb in VERBS {
        let path = fifo.clone();
        let reader = std::thread::spawn(move || std::fs::read(path).unwrap());
        let done = schedlab(folder.path(), &[verb, &["out.png", "--force"]].concat());
        assert!(done.status.success(), "{verb:?}: {}", text(&done.stderr));
        let file = schedlab(folder.path(), &[verb, &["file.png", "--force"]].concat());
        assert!(file.status.success(), "{verb:?}: {}", text(&file.stderr));
        // A report names the file that it was written to.
        let (fifo_has, file_has) = (reader.join().unwrap(), std::fs::read(folder.path().join("file.png")).unwrap());
        let same = text(&fifo_has).replace("out.png", "file.png") == text(&file_has);
        assert!(same, "{verb:?}: not what a file has");
        assert!(fifo.metadata().unwrap().file_type().is_fifo(), "{verb:?}");
    }
}

#[test]
fn a_device_is_written_to_and_stays() {
    let folder = folder();
    let nodes = [("null.png", "3", 0), ("full.png", "7", 2)];
    for (name, minor, _) in nodes {
        if !make("mknod", &[], &folder.path().join(name), &["c", "1", minor]) {
            eprintln!("skipped: only root makes devices, and not everywhere");
            return;
        }
    }
    let before = files(folder.path());
    for verb in VERBS {
        for (name, _, status) in nodes {
            let done = schedlab(folder.path(), &[verb, &[name][..]].concat());
            assert_eq!(done.status.code(), Some(status), "{verb:?} {name}: {}", text(&done.stderr));
            let meta = folder.path().join(name).metadata().unwrap();
            assert!(meta.file_type().is_char_device(), "{verb:?} {name}");
            assert_eq!(files(folder.path()), before, "{verb:?} {name}");
        }
    }
}

#[test]
fn of_several_runs_with_one_output_one_succeeds() {
    let folder = folder();
    let before = files(folder.path());
    let args = ["sim", "-k", "linux-6.12", "-m", "4", "-w", "messaging", "-d", "200ms", "-o", "one.arrows", "--seed"];
    let start = |seed: i32| {
        let mut command = Command::new(SCHEDLAB);
        command.current_dir(folder.path()).args(args).arg(seed.to_string());
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let outputs = [1, 2, 3, 4].map(start).map(|child| child.wait_with_output().unwrap());
    let (done, failed): (Vec<_>, Vec<_>) = outputs.iter().partition(|output| output.status.success());
    assert_eq!(done.len(), 1);
    for output in failed {
        assert!(text(&output.stderr).contains("one.arrows: exists already"), "{}", text(&output.stderr));
    }
    let mut after = before;
    after.push("one.arrows".to_owned());
    after.sort();
    assert_eq!(files(folder.path()), after);
}

/// JSON has no place for bytes that are not UTF-8.
#[test]
fn files_whose_names_are_not_utf8_are_read_and_written() {
    let folder = folder();
    let name = |ending: &str| OsString::from_vec([b"n\xff", ending.as_bytes()].concat());
    std::fs::copy(folder.path().join("t.arrows"), folder.path().join(name(".arrows"))).unwrap();
    let run = |args: &[&OsStr]| Command::new(SCHEDLAB).current_dir(folder.path()).args(args).output().unwrap();
    let printed = |verb: &str, more: &[&OsStr]| {
        let out = run(&[&[OsStr::new(verb), &name(".arrows"), OsStr::new("--json")], more].concat());
        assert!(out.status.success(), "{verb}: {}", text(&out.stderr));
        let document: serde_json::Value = serde_json::from_slice(&out.stdout).expect("one JSON document");
        document.to_string()
    };
    for verb in ["stats", "delays", "check"] {
        assert!(printed(verb, &[]).contains("n\u{fffd}.arrows"), "{verb}");
    }
    assert!(printed("whatif", &["--kernel".as_ref(), "linux-6.1".as_ref()]).contains("n\u{fffd}.arrows"));
    for (verb, ending) in [("export", ".csv"), ("model", ".json"), ("heatmap", ".svg")] {
        let output = name(ending);
        assert!(printed(verb, &["-o".as_ref(), &output]).contains(&format!("n\u{fffd}{ending}")), "{verb}");
        assert!(folder.path().join(output).exists(), "{verb}");
    }
    let kept = run(&[
        "whatif".as_ref(),
        "t.arrows".as_ref(),
        "-k".as_ref(),
        "linux-6.1".as_ref(),
        "--keep".as_ref(),
        &name(".d"),
    ]);
    assert!(text(&kept.stderr).contains("--keep: the name is not UTF-8"), "{}", text(&kept.stderr));
}

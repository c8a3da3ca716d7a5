//! `schedlab import`, through the command line.

use crate::support::schedlab;
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/data/pipes.perf.data")
}

/// The single message with which a command refused its input.
fn refused(output: &Output) -> String {
    let message = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert_eq!(message.lines().count(), 1, "{message}");
    message
}

/// The names of the files in the folder.
fn listing(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = folder.read_dir().unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_recording_becomes_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let file = recording();
    let output = schedlab(folder.path(), &["import", file.to_str().unwrap(), "-o", "t.arrows", "--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&summary["events"], &summary["lost"], &summary["cut"]),
        (&Value::from(631), &Value::from(0), &Value::Null)
    );
    assert_eq!(summary["kernel"], "6.18.44");
    assert_eq!(listing(folder.path()), ["t.arrows"]);
    let imported = schedlab_trace::read_all(folder.path().join("t.arrows")).unwrap();
    let direct = schedlab_trace::read_all(&file).unwrap();
    assert!(imported.events == direct.events && imported.meta == direct.meta);
}

#[test]
fn nothing_is_overwritten_without_force() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.arrows"), "precious").unwrap();
    let file = recording();
    let import = ["import", file.to_str().unwrap(), "-o", "t.arrows"];
    assert!(refused(&schedlab(folder.path(), &import)).contains("--force"));
    assert_eq!(std::fs::read(folder.path().join("t.arrows")).unwrap(), b"precious");
    assert!(schedlab(folder.path(), &[&import[..], &["--force"]].concat()).status.success());
    assert_ne!(std::fs::read(folder.path().join("t.arrows")).unwrap(), b"precious");
}

#[test]
fn a_failed_import_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let mut damaged = std::fs::read(recording()).unwrap();
    let data = u64::from_le_bytes(damaged[40..48].try_into().unwrap()) as usize;
    damaged[data + 20_000..data + 24_000].fill(0);
    write("damaged", &damaged);
    write("empty", b"");
    write("text", b"what perf would never write");
    write("big-endian", b"2ELIFREP\0\0\0\0\0\0\0\x68");
    let before = listing(folder.path());
    let refusal = |name: &str| refused(&schedlab(folder.path(), &["import", name, "-o", "t.arrows"]));
    assert!(refusal("damaged").contains("damaged: the perf.data is damaged"));
    assert!(refusal("empty").contains("empty: the file is empty"));
    assert!(refusal("text").contains("perf.data (perf sched record"), "the formats that are read are listed");
    assert!(refusal("big-endian").contains("big-endian"));
    assert!(refusal("absent").contains("absent: cannot be read"));
    assert!(refusal(".").contains("folder"));
    assert_eq!(listing(folder.path()), before);
    let file = recording();
    let nowhere = schedlab(folder.path(), &["import", file.to_str().unwrap(), "-o", "no/such/t.arrows"]);
    assert!(refused(&nowhere).contains("no/such/t.arrows: cannot be created"));
}

#[test]
fn a_trace_needs_no_import() {
    let folder = tempfile::tempdir().unwrap();
    let file = recording();
    assert!(schedlab(folder.path(), &["import", file.to_str().unwrap(), "-o", "t.arrows"]).status.success());
    assert!(refused(&schedlab(folder.path(), &["import", "t.arrows", "-o", "u.arrows"])).contains("needs no import"));
}

#[test]
fn a_pipe_is_not_imported() {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_schedlab"))
        .current_dir(folder.path())
        .args(["import", "-", "-o", "t.arrows"])
        .stdin(Stdio::from(File::open(recording()).unwrap()))
        .output()
        .unwrap();
    assert!(refused(&output).contains("give its name, or record with -o -"));
    assert!(listing(folder.path()).is_empty());
}

#[test]
fn a_cut_recording_is_imported_with_a_remark() {
    let folder = tempfile::tempdir().unwrap();
    let file = std::fs::read(recording()).unwrap();
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    let end = number(40) + number(48);
    std::fs::write(folder.path().join("cut"), &file[..end - 1000]).unwrap();
    // The formats follow the data. Here they are moved to a folder laid out like tracefs.
    let formats = String::from_utf8_lossy(&file[end..]).into_owned();
    for (at, _) in formats.match_indices("name: sched_") {
        let name = formats[at + 6..].lines().next().unwrap();
        let text = formats[at..].split_inclusive('\n').scan(false, |over, line| {
            let more = !std::mem::replace(over, line.starts_with("print fmt:"));
            more.then_some(line)
        });
        std::fs::create_dir_all(folder.path().join("events/sched").join(name)).unwrap();
        let path = folder.path().join("events/sched").join(name).join("format");
        std::fs::write(path, text.collect::<String>()).unwrap();
    }
    let output = schedlab(folder.path(), &["import", "cut", "-o", "t.arrows", "--formats", "events"]);
    let remarks = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{remarks}");
    assert!(remarks.contains("cut at byte") && remarks.contains("those in events were used"), "{remarks}");
    let events = schedlab_trace::read_all(folder.path().join("t.arrows")).unwrap().events.len();
    assert!((500..631).contains(&events), "{events} events");
}

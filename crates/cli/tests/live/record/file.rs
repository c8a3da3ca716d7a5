//! The output file of a recording: where it is after a success, after a failure, and after the recorder is killed.

use super::*;
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

const PRECIOUS: &str = "an earlier recording";

/// A folder with an earlier recording.
fn earlier() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.arrows");
    std::fs::write(&file, PRECIOUS).unwrap();
    (dir, file)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn files(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = folder.read_dir().unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn run(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).stderr(Stdio::null()).status().unwrap().success()
}

#[test]
fn a_recording_that_cannot_begin_leaves_the_earlier_file() {
    let Some(_guard) = may_record() else { return };
    let (dir, file) = earlier();
    let failing = ["--force", "--", "/no/such/command"];
    let output = record(&file, &failing);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), PRECIOUS);
    assert_eq!(files(dir.path()), ["t.arrows"]);

    let fifo = dir.path().join("fifo");
    assert!(run("mkfifo", &[fifo.to_str().unwrap()]));
    let path = fifo.clone();
    let reader = std::thread::spawn(move || std::fs::read(path).unwrap());
    assert_eq!(record(&fifo, &failing).status.code(), Some(2));
    assert!(reader.join().unwrap().is_empty());
    assert!(fifo.metadata().unwrap().file_type().is_fifo(), "the FIFO is still there");

    let device = dir.path().join("null");
    if run("mknod", &[device.to_str().unwrap(), "c", "1", "3"]) {
        assert_eq!(record(&device, &failing).status.code(), Some(2));
        assert!(device.metadata().unwrap().file_type().is_char_device(), "the device is still there");
    }
}

#[test]
fn a_device_and_a_fifo_are_written_to_and_stay() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    assert!(run("mkfifo", &[fifo.to_str().unwrap()]));
    let path = fifo.clone();
    let reader = std::thread::spawn(move || std::fs::read(path).unwrap());
    let summary = json(&record(&fifo, &["--", "true"]));
    let bytes = reader.join().unwrap();
    assert_eq!(summary["bytes"].as_u64().unwrap(), bytes.len() as u64);
    let copy = dir.path().join("copy.arrows");
    std::fs::write(&copy, bytes).unwrap();
    assert!(!read_all(&copy).unwrap().events.is_empty());
    assert!(fifo.metadata().unwrap().file_type().is_fifo(), "the FIFO is still there");

    let device = dir.path().join("null");
    if run("mknod", &[device.to_str().unwrap(), "c", "1", "3"]) {
        assert!(record(&device, &["--force", "--", "true"]).status.success());
        assert!(device.metadata().unwrap().file_type().is_char_device(), "the device is still there");
    }
}

#[test]
fn a_recording_that_fails_later_leaves_the_earlier_file_and_its_own_events() {
    let Some(_guard) = may_record() else { return };
    let (dir, file) = earlier();
    // The limit is 1 MiB or half of that, depending on the shell's unit. It acts like a full disk.
    let script = "trap '' XFSZ; ulimit -f 1024; exec \"$0\" record --force -o \"$1\"";
    let mut child = Command::new("/bin/sh")
        .args(["-c", script, SCHEDLAB, file.to_str().unwrap()])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(start.elapsed() < Duration::from_secs(60), "the recording goes on");
        ping_pong(Duration::from_millis(100));
    }
    let output = child.wait_with_output().unwrap();
    let problem = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{problem}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), PRECIOUS);
    let part = dir.path().join("t.arrows.part");
    let kept = format!("recorded before the failure is in {}", part.display());
    assert!(problem.contains(&kept), "{problem}");
    assert!(read_all(&part).unwrap().events.len() > 100);
}

#[test]
fn a_killed_recorder_leaves_the_earlier_recording_and_its_own_beside_it() {
    let Some(_guard) = may_record() else { return };
    let (dir, file) = earlier();
    let part = dir.path().join("t.arrows.part");
    let mut child = start(&file, &["--force"]);
    wait_for_bytes(&part);
    let head = part.metadata().unwrap().len();
    let start = Instant::now();
    while part.metadata().unwrap().len() == head && start.elapsed() < Duration::from_secs(20) {
        ping_pong(Duration::from_millis(100));
    }
    child.kill().unwrap();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    child.wait().unwrap();
    assert!(stderr.contains(&format!("the recording is in {}", part.display())), "{stderr}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), PRECIOUS);
    let trace = read_all(&part).unwrap();
    assert!(trace.report.cut.is_some() && trace.events.len() > 100, "what was flushed is there");
    assert_nothing_left(child.id());
    // The next recording overwrites neither.
    let before = std::fs::read(&part).unwrap();
    assert!(record(&file, &["--force", "--", "true"]).status.success());
    assert!(read_all(&file).unwrap().report.cut.is_none());
    assert_eq!(std::fs::read(&part).unwrap(), before);
    assert_eq!(files(dir.path()), ["t.arrows", "t.arrows.part"]);
}

#[test]
fn a_recording_that_cannot_take_its_name_is_kept() {
    let Some(_guard) = may_record() else { return };
    let (dir, file) = earlier();
    let script = format!("rm {0} && mkfifo {0}", file.display());
    let output = record(&file, &["--force", "--", "/bin/sh", "-c", &script]);
    let problem = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{problem}");
    let part = dir.path().join("t.arrows.part");
    assert!(problem.contains(&format!("; the recording is in {}", part.display())), "{problem}");
    assert!(read_all(&part).unwrap().report.cut.is_none());
    assert!(file.metadata().unwrap().file_type().is_fifo(), "what took the name meanwhile is still there");
}

#[test]
fn a_second_recording_to_the_same_file_is_refused_at_once() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.arrows");
    let script = format!("echo ran >>{}; sleep 1", dir.path().join("ran").display());
    let children = [(); 4].map(|()| start(&file, &["--", "/bin/sh", "-c", &script]));
    let outputs = children.map(|child| child.wait_with_output().unwrap());
    let mut statuses = outputs.each_ref().map(|output| output.status.code());
    statuses.sort();
    assert_eq!(statuses, [Some(0), Some(2), Some(2), Some(2)]);
    assert!(outputs.iter().filter(|o| !o.status.success()).all(|o| text(&o.stderr).contains("exists already")));
    assert_eq!(std::fs::read_to_string(dir.path().join("ran")).unwrap(), "ran\n", "only one command was started");
    assert!(read_all(&file).unwrap().report.cut.is_none());
}

#[test]
fn failed_prints_cost_no_recording() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let full = || std::fs::File::options().write(true).open("/dev/full").unwrap();
    for (name, stdout, stderr, status) in [
        ("stderr.arrows", Stdio::piped(), full().into(), 0),
        ("stdout.arrows", full().into(), Stdio::piped(), 2),
        ("both.arrows", full().into(), full().into(), 2),
    ] {
        let file = dir.path().join(name);
        let mut command = Command::new(SCHEDLAB);
        command.args(["record", "--json", "-o"]).arg(&file).args(["--", "/bin/sleep", "0.1"]);
        let child = command.stdout(stdout).stderr(stderr).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{name}: {}", text(&output.stderr));
        assert!(read_all(&file).unwrap().report.cut.is_none(), "{name}");
    }
}

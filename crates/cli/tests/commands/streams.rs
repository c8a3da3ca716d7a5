//! The behaviour of commands whose standard output or standard error cannot be written.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    command.current_dir(folder).args(args);
    command
}

/// A device on which every write fails.
fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

/// A pipe whose reader has gone away.
fn unread() -> Stdio {
    std::io::pipe().unwrap().1.into()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The exit status and standard error of a command with this standard output.
fn with_stdout(folder: &Path, args: &[&str], stdout: Stdio) -> (Option<i32>, String) {
    let Output { status, stderr, .. } = command(folder, args).stdout(stdout).output().unwrap();
    (status.code(), text(&stderr))
}

/// An experiment with this exit status: 0 pass, 1 fail, 3 undecided.
fn experiment(verdict: i32) -> String {
    let value = if verdict == 3 { "mean(finish_s)" } else { "spread(run_s)" };
    let bound = if verdict == 1 { -1.0 } else { 0.01 };
    format!(
        "id = \"hogs\"\ntitle = \"two hogs\"\nmachine = \"up\"\nduration = \"1s\"\n\
         [workload]\ninline = '{{\"tasks\": {{\"hog\": {{\"instance\": 2, \"loop\": -1, \"run\": 1000}}}}}}'\n\
         [[kernels]]\nname = \"cfs\"\nkernel = \"linux-6.1\"\n[metrics.spread]\nvalue = \"{value}\"\n\
         [[expectations]]\nfigure = \"T1\"\nkind = \"number\"\nmetric = \"spread\"\nrelation = \"<=\"\n\
         bound = {bound}\npublished = \"equal\"\n"
    )
}

/// A folder with an experiment for each verdict, and two traces.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for verdict in [0, 1, 3] {
        std::fs::write(folder.path().join(format!("{verdict}.toml")), experiment(verdict)).unwrap();
    }
    for (workload, duration, trace) in [("li:tasks=5", "20s", "t.arrows"), ("messaging", "100ms", "wasteful.arrows")] {
        let sim = ["sim", "-k", "linux-6.12", "-m", "2", "-w", workload, "-d", duration, "-o", trace];
        assert!(command(folder.path(), &sim).output().unwrap().status.success());
    }
    folder
}

/// Commands that give a verdict, each with the exit status of its verdict.
const VERDICTS: [(&[&str], i32); 7] = [
    (&["run", "0.toml"], 0),
    (&["run", "1.toml"], 1),
    (&["run", "3.toml"], 3),
    (&["run", "1.toml", "--json"], 1),
    (&["check", "t.arrows"], 0),
    (&["check", "wasteful.arrows", "--max-wasted", "0ns"], 1),
    (&["check", "wasteful.arrows", "--max-wasted", "0ns", "--json"], 1),
];

#[test]
fn a_verdict_stands_when_the_reader_goes_away() {
    let folder = folder();
    for (args, verdict) in VERDICTS {
        assert_eq!(command(folder.path(), args).output().unwrap().status.code(), Some(verdict), "{args:?}");
        let (status, stderr) = with_stdout(folder.path(), args, unread());
        assert_eq!(status, Some(verdict), "{args:?}: {stderr}");
        assert!(!stderr.contains("standard output"), "{args:?}: {stderr}");
    }
}

#[test]
fn a_failed_write_to_standard_output_is_an_error() {
    let folder = folder();
    let others: [&[&str]; 9] = [
        &["stats", "t.arrows"],
        &["model", "t.arrows"],
        &["gantt", "t.arrows", "--json"],
        &["sim", "-k", "linux-6.12", "-w", "li:tasks=2", "-d", "20ms", "--explain"],
        &["kernels"],
        &["workloads"],
        &["doctor"],
        &["--help"],
        &["--version"],
    ];
    for args in VERDICTS.map(|(args, _)| args).into_iter().chain(others) {
        let (status, stderr) = with_stdout(folder.path(), args, full());
        assert_eq!(status, Some(2), "{args:?}: {stderr}");
        let lines =
            stderr.lines().filter(|line| line.contains("cannot write to standard output: No space left")).count();
        assert_eq!(lines, 1, "{args:?}: {stderr}");
        let (_, stderr) = with_stdout(folder.path(), args, unread());
        assert!(!stderr.contains("standard output") && !stderr.contains("panic"), "{args:?}: {stderr}");
    }
}

#[test]
fn all_output_reaches_a_non_blocking_pipe() {
    let folder = folder();
    let args = ["gantt", "t.arrows", "--json"];
    let whole = command(folder.path(), &args).output().unwrap().stdout;
    let (mut reader, writer) = UnixStream::pair().unwrap();
    writer.set_nonblocking(true).unwrap();
    let mut child = command(folder.path(), &args).stdout(OwnedFd::from(writer)).spawn().unwrap();
    // By then a long enough document has filled the socket.
    std::thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "the document of {} bytes fits into the socket", whole.len());
    let mut read = Vec::new();
    reader.read_to_end(&mut read).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(read == whole, "{} of {} bytes came", read.len(), whole.len());
}

#[test]
fn an_unwritable_standard_error_changes_no_status() {
    let folder = folder();
    for stderr in [full, unread] {
        for (args, status) in [
            (&["model", "t.arrows", "-o", "m.json", "--force"][..], 0),
            (&["workloads", "no-such-workload"], 2),
            (&["run", "1.toml"], 1),
            (&["no-such-verb"], 2),
        ] {
            let child = command(folder.path(), args).stdout(Stdio::piped()).stderr(stderr()).spawn().unwrap();
            assert_eq!(child.wait_with_output().unwrap().status.code(), Some(status), "{args:?}");
        }
    }
    assert!(folder.path().join("m.json").metadata().unwrap().len() > 0);
    let both = command(folder.path(), &["run", "0.toml"]).stdout(full()).stderr(full()).status().unwrap();
    assert_eq!(both.code(), Some(2));
}

#[test]
fn an_unread_simulation_ends_unless_it_writes_a_trace() {
    let folder = folder();
    let explain = ["sim", "-k", "linux-6.12", "-w", "li:tasks=3", "--explain", "-d"];
    let mut child = command(folder.path(), &[&explain[..], &["1000000s"]].concat()).stdout(unread()).spawn().unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status.code(), Some(0));
    let args = [&explain[..], &["1s", "-o", "read.arrows"]].concat();
    assert!(command(folder.path(), &args).output().unwrap().status.success());
    let args = [&explain[..], &["1s", "-o", "unread.arrows"]].concat();
    assert_eq!(with_stdout(folder.path(), &args, unread()).0, Some(0));
    let bytes = |name| std::fs::read(folder.path().join(name)).unwrap();
    assert!(bytes("unread.arrows") == bytes("read.arrows"));
    let unfinished = |name: std::ffi::OsString| name.to_string_lossy().ends_with(".part");
    let left = folder.path().read_dir().unwrap().any(|entry| unfinished(entry.unwrap().file_name()));
    assert!(!left, "an unfinished file is left");
}

//! Random arguments for the command. It ends with a documented status, in bounded time and memory, and prints nothing
//! that a terminal would act on.

use crate::driver::{Campaign, Verdict};
use schedlab_base::{Rng, is_hidden};
use std::path::Path;
use std::process::Command;

/// The verbs that neither record nor read this machine.
const VERBS: [&str; 13] = [
    "sim",
    "sim",
    "sim",
    "import",
    "model",
    "check",
    "gantt",
    "heatmap",
    "stats",
    "kernels",
    "machines",
    "workloads",
    "export",
];
const OPTIONS: [&str; 34] = [
    "-k",
    "-m",
    "-w",
    "-d",
    "-o",
    "--json",
    "--seed",
    "--set",
    "--costs",
    "--every-tick",
    "--explain",
    "--queues-at",
    "--sched-debug",
    "--by",
    "--all",
    "--from",
    "--to",
    "--cpu",
    "--what",
    "--width",
    "--lanes",
    "--tasks",
    "--min-run",
    "--again",
    "--trace-queues",
    "--force",
    "--threshold",
    "--color",
    "--formats",
    "--no-pin",
    "--help",
    "--nonsense",
    "-",
    "--",
];
const VALUES: [&str; 44] = [
    "linux-6.12",
    "linux-2.6.11",
    "linux-2.4",
    "6.18",
    "eevdf",
    "bfs",
    "up",
    "dual",
    "2x2x2",
    "0x0x0",
    "9999x9999x9",
    "li:tasks=3",
    "li:tasks=0",
    "periodic",
    "messaging:groups=1,fds=1",
    "hostile.json",
    "good.json",
    "trace.arrows",
    "cut.arrows",
    "bad.toml",
    "missing",
    ".",
    "",
    "-",
    "/dev/null",
    "out",
    "1ms",
    "0ms",
    "-1ms",
    "5ms",
    "1e300s",
    "nan",
    "0",
    "1",
    "-1",
    "18446744073709551615",
    "cpu",
    "task",
    "none",
    "hz=100",
    "base_slice_ns=3ms",
    "=",
    "\u{1b}[31m",
    "0ms..2ms",
];

/// Workloads and traces whose names would disturb a terminal.
const HOSTILE: &str =
    r#"{"tasks": {"t\u001b[31m\u202e\u0007": {"x-user": 1, "run": 100, "sleep": 100, "odd\u001b": 1}}}"#;

fn make(rng: &mut Rng) -> Vec<u8> {
    let of = |rng: &mut Rng, all: &[&str]| all[rng.below(all.len() as u64) as usize].to_owned();
    let verb = of(rng, &VERBS);
    let mut args = vec![verb.clone()];
    if verb == "sim" && rng.below(3) > 0 {
        let kernel = of(rng, &VALUES[..6]);
        let machine = of(rng, &VALUES[6..11]);
        let workload = of(rng, &VALUES[11..18]);
        args.extend(["-k", &kernel, "-m", &machine, "-w", &workload, "-d", "3ms"].map(str::to_owned));
    } else if rng.below(2) == 0 {
        args.push(of(rng, &VALUES[15..20]));
    }
    for _ in 0..rng.below(5) {
        args.push(if rng.below(2) == 0 { of(rng, &OPTIONS) } else { of(rng, &VALUES) });
    }
    args.join("\0").into_bytes()
}

/// Runs the command in a folder, with 2 GiB of address space.
fn check(folder: &Path, input: &[u8]) -> Verdict {
    let text = String::from_utf8_lossy(input);
    let mut command = Command::new("sh");
    command.current_dir(folder).args(["-c", "ulimit -v 2097152; exec timeout 15 \"$0\" \"$@\" </dev/null"]);
    let out = command.arg(env!("CARGO_BIN_EXE_schedlab")).args(text.split('\0')).output().expect("sh runs");
    let said = [&out.stdout[..], &out.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let args: Vec<&str> = text.split('\0').collect();
    let status = out.status.code();
    assert!(matches!(status, Some(0..=4)), "{args:?} ended with {:?}: {}", out.status, said[1]);
    for text in &said {
        let odd = text.chars().find(|c| !matches!(c, '\n' | '\t') && is_hidden(*c));
        // clap repeats the user's own arguments as they are.
        assert!(odd.is_none() || args.iter().any(|arg| arg.contains(is_hidden)), "{args:?} printed {odd:?}: {text}");
    }
    let leftovers = std::fs::read_dir(folder).expect("a folder").flatten();
    for entry in leftovers {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(!name.contains(".part"), "{args:?} left {name}");
        if !["hostile.json", "good.json", "trace.arrows", "cut.arrows", "bad.toml"].contains(&name.as_str()) {
            std::fs::remove_file(entry.path()).expect("an output is a file");
        }
    }
    if status == Some(0) { Verdict::Accepted } else { Verdict::Refused }
}

#[test]
fn arguments() {
    let folder = tempfile::tempdir().expect("a folder");
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).expect("written");
    put("hostile.json", HOSTILE.as_bytes());
    put("good.json", br#"{"tasks": {"t": {"instance": 2, "run": 100, "sleep": 300}}}"#);
    put("bad.toml", b"sockets = 1\ncores = \"\\u001b[31m\"\n");
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    command.current_dir(folder.path());
    let made = command.args(["sim", "-k", "linux-6.12", "-m", "dual", "-w", "hostile.json", "-d", "20ms"]);
    let out = made.args(["-o", "trace.arrows"]).output().expect("the command runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let trace = std::fs::read(folder.path().join("trace.arrows")).expect("the trace");
    put("cut.arrows", &trace[..trace.len() * 2 / 3]);
    let keep = |name: &str| std::fs::read(folder.path().join(name)).expect("it is there");
    let before = ["hostile.json", "good.json", "trace.arrows", "cut.arrows", "bad.toml"].map(|name| (name, keep(name)));
    Campaign { name: "arguments", rounds: 250, least_percent: 5 }.run(make, |input| {
        let verdict = check(folder.path(), input);
        // `--force` may have replaced an input. It is put back, so that each round is a function of its input.
        before.iter().for_each(|(name, bytes)| put(name, bytes));
        verdict
    });
}

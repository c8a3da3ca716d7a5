//! 2,000 simulations over all kernels, machines and features. Each trace must have the same events as ever. A change
//! that is meant to change traces says so and writes the hashes again: `SCHEDLAB_WRITE_HASHES=1 cargo test -p
//! schedlab-cli --test same_traces`.

mod cases;

use cases::{Case, Machine, Workload, case};
use schedlab_base::{AffinityRecord, Event, NameRecord, Sink};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

const CASES: u64 = 2000;
const HASHES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/same_traces/hashes.txt");

/// FNV-1a over the content of a trace, in words that do not change when code is renamed.
struct Hash {
    state: u64,
    events: u64,
}

impl Hash {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.state = (self.state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

impl Sink for Hash {
    fn events(&mut self, batch: &[Event]) {
        let mut text = String::new();
        for event in batch {
            text.clear();
            let _ = write!(text, "{} {} {:?};", event.time, event.cpu, event.what);
            // The hashes are older than contexts, which simulations do not have.
            self.write(text.replace(", context: Unknown", "").as_bytes());
            self.events += 1;
        }
    }

    fn name(&mut self, record: &NameRecord) {
        self.write(format!("{} {} {} {:?};", record.time, record.tid, record.comm, record.cgroup).as_bytes());
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.write(format!("{} {} {:?};", record.time, record.tid, record.cpus).as_bytes());
    }
}

/// Writes a file with this text to `folder` and returns its path.
fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    path.to_str().expect("a plain path").to_owned()
}

/// The command of a case, whose files are in `folder`.
fn command(case: &Case, folder: &Path) -> Command {
    let machine = match &case.machine {
        Machine::Named(name) => (*name).to_owned(),
        Machine::File(text) => file(folder, "machine.toml", text),
    };
    let workload = match &case.workload {
        Workload::Named(name) => (*name).to_owned(),
        Workload::File(json) => file(folder, "workload.json", &json.to_string()),
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    command.args(["sim", "--kernel", case.kernel, "--machine", &machine, "--workload", &workload, "--trace-queues"]);
    command.args(["--seed", &case.seed.to_string(), "--duration", &format!("{}ms", case.duration_ms)]);
    command.args(["--costs", if case.bare { "none" } else { "machine" }, "--force", "-o"]);
    command.arg(folder.join("trace.arrows"));
    command.args(case.set.iter().flat_map(|set| ["--set", set]));
    command
}

/// The line of a case: its number, kernel, events and hash, or how it was refused.
fn line(number: u64, folder: &Path) -> String {
    let case = case(number);
    let out = command(&case, folder).output().expect("the command runs");
    if !out.status.success() {
        return format!("{number:04} {} refused with {:?}", case.kernel, out.status.code());
    }
    let mut hash = Hash { state: 0xcbf2_9ce4_8422_2325, events: 0 };
    schedlab_trace::read_into(folder.join("trace.arrows"), &mut hash).expect("a whole trace");
    format!("{number:04} {} {} {:016x}", case.kernel, hash.events, hash.state)
}

fn lines() -> Vec<String> {
    let next = AtomicU64::new(0);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            let folder = tempfile::tempdir().expect("a folder");
            let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
            numbers.take_while(|n| *n < CASES).map(|n| line(n, folder.path())).collect::<Vec<_>>()
        };
        let running: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        running.into_iter().flat_map(|worker| worker.join().expect("no case panics")).collect()
    });
    all.sort();
    all
}

#[test]
fn the_traces_are_the_same_as_before() {
    let lines = lines();
    if std::env::var_os("SCHEDLAB_WRITE_HASHES").is_some() {
        std::fs::write(HASHES, lines.join("\n") + "\n").expect("written");
        return;
    }
    let known = std::fs::read_to_string(HASHES).expect("the hashes are committed");
    let changed: Vec<_> = known.lines().zip(&lines).filter(|(was, is)| was != is).collect();
    assert_eq!(known.lines().count(), lines.len());
    if let Some((was, is)) = changed.first() {
        let number = is[..4].parse().expect("a number");
        let folder = tempfile::tempdir().expect("a folder").keep();
        let command = command(&case(number), &folder);
        panic!("{} of {} traces changed; the first was\n{was}\nand is\n{is}\n{command:?}", changed.len(), lines.len());
    }
}

//! Measures how many events of a perf.data are read, and imported into a trace file, per CPU second.
//!
//! `cargo bench -p schedlab-trace --bench import [-- perf.data]`. Without a file it uses the tests' recording, repeated
//! 1,600 times: 1.0 million events.

#[path = "../tests/support/mod.rs"]
mod support;

use schedlab_base::{Event, NameRecord, Sink};
use schedlab_trace::perf_data::PerfData;
use schedlab_trace::{Source, Writer};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::forge::Parts;

const REPEATS: u64 = 1600;
/// The offset of the time in a sample of that recording: after the header, identifier, address and task.
const SAMPLE_TIME: usize = 32;

/// Appends the recording to itself again and again, each time later and as a round of its own.
fn enlarge(path: &Path) {
    let parts = Parts::load();
    let samples: Vec<Vec<u8>> = parts.records().iter().filter(|r| r[0] == 9).map(|r| r.to_vec()).collect();
    let round = [68u8, 0, 0, 0, 0, 0, 8, 0].to_vec();
    let mut records = Vec::new();
    for repeat in 0..REPEATS {
        for sample in &samples {
            let mut sample = sample.clone();
            let time = u64::from_le_bytes(sample[SAMPLE_TIME..SAMPLE_TIME + 8].try_into().unwrap());
            sample[SAMPLE_TIME..SAMPLE_TIME + 8].copy_from_slice(&(time + repeat * 50_000_000).to_le_bytes());
            records.push(sample);
        }
        records.push(round.clone());
    }
    std::fs::write(path, parts.pipe(&records)).unwrap();
}

/// The process's CPU time in the kernel's ticks of 10 ms, or wall time if the kernel does not provide it.
fn cpu_time(started: Instant) -> Duration {
    let ticks = std::fs::read_to_string("/proc/self/stat").ok().and_then(|stat| {
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        Some(fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?)
    });
    ticks.map_or_else(|| started.elapsed(), |ticks| Duration::from_millis(10 * ticks))
}

/// Repeats until two CPU seconds are spent and prints the rates.
fn measure(what: &str, mut once: impl FnMut() -> (u64, u64)) {
    let started = Instant::now();
    let before = cpu_time(started);
    let (mut events, mut samples) = (0, 0);
    while cpu_time(started) - before < Duration::from_secs(2) {
        let (taken, skipped) = once();
        events += taken;
        samples += taken + skipped;
    }
    let spent = (cpu_time(started) - before).as_secs_f64();
    let (events, samples) = (events as f64 / spent / 1e6, samples as f64 / spent / 1e6);
    println!("{what}: {events:.1} M events and {samples:.1} M samples per CPU second");
}

/// A sink that only counts events.
struct Count(u64);

impl Sink for Count {
    fn events(&mut self, batch: &[Event]) {
        self.0 += std::hint::black_box(batch).len() as u64;
    }

    fn name(&mut self, _: &NameRecord) {}
}

fn read(path: &Path, sink: &mut dyn Sink) -> (u64, u64) {
    let mut source = PerfData::open(path).expect("the file is a recording");
    let report = source.run(sink).expect("the file is whole");
    (report.events, report.skipped)
}

fn main() {
    let folder = tempfile::tempdir().expect("a folder for the files");
    // Cargo adds an argument --bench.
    let given = std::env::args().skip(1).find(|a| !a.starts_with("--")).map(PathBuf::from);
    let file = given.unwrap_or_else(|| {
        let file = folder.path().join("perf.data");
        enlarge(&file);
        file
    });
    measure("perf.data read", || read(&file, &mut Count(0)));
    let trace = folder.path().join("trace.arrows");
    measure("perf.data imported", || {
        let meta = PerfData::open(&file).expect("the file is a recording").meta().clone();
        let mut writer = Writer::create(&trace, &meta).expect("the trace can be written");
        let counts = read(&file, &mut writer);
        writer.finish().expect("the trace can be written");
        counts
    });
}

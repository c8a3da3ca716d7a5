//! Mutated files for every reader. Each is accepted, or refused with a message of one line that shows no control
//! character.

use crate::driver::{Campaign, Verdict};
use crate::mutate;
use schedlab_base::{AffinityRecord, Error, Event, NameRecord, Rng, Sink, is_hidden};
use schedlab_experiment::Experiment;
use schedlab_machine::MachineFile;
use schedlab_machine::tomltext::TomlText;
use std::path::{Path, PathBuf};

/// The files in a folder of the repository with this ending, in a fixed order.
fn files(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("one").path()).collect();
    paths.sort();
    let texts = paths.iter().filter(|path| path.to_string_lossy().ends_with(ending));
    texts.map(|path| std::fs::read(path).expect("a file")).collect()
}

/// The verdict on a reader's result.
pub fn verdict<T>(result: Result<T, Error>) -> Verdict {
    let Err(error) = result else { return Verdict::Accepted };
    let message = error.to_string();
    assert!(!message.is_empty() && !message.contains(is_hidden), "{message:?}");
    assert!(message.len() < 20_000, "a message of {} bytes", message.len());
    Verdict::Refused
}

/// A mutation of one of the texts, with pieces of another.
fn mutated(texts: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let pick = |rng: &mut Rng| &texts[rng.below(texts.len() as u64) as usize];
    let mut bytes = pick(rng).clone();
    let other = pick(rng);
    mutate::text(&mut bytes, other, rng);
    bytes
}

#[test]
fn workloads() {
    let mut texts = files("workloads", ".json");
    let preset = schedlab_workload::presets::build("messaging:groups=1,fds=2").expect("a preset");
    texts.push(schedlab_workload::write(&preset).into_bytes());
    let campaign = Campaign { name: "workloads", rounds: 10_000, least_percent: 5 };
    campaign.run(
        |rng| mutated(&texts, rng),
        |bytes| {
            let path = Path::new("w.json");
            let result = schedlab_workload::parse(bytes, path);
            if let Ok(workload) = &result {
                // What is accepted survives writing and reading.
                let again = schedlab_workload::parse(schedlab_workload::write(workload).as_bytes(), path);
                assert_eq!(again.expect("what was written can be read").tasks, workload.tasks);
            }
            verdict(result)
        },
    );
}

#[test]
fn machines() {
    let texts: Vec<Vec<u8>> = ["up", "quad-smt", "z800", "big-little-4+4", "bulldozer-64"]
        .iter()
        .filter_map(|name| MachineFile::of(&schedlab_machine::load(name).expect("a preset")))
        .map(|file| file.to_toml().into_bytes())
        .collect();
    let campaign = Campaign { name: "machines", rounds: 5_000, least_percent: 1 };
    campaign.run(
        |rng| mutated(&texts, rng),
        |bytes| {
            let text = TomlText::new("m.toml", String::from_utf8_lossy(bytes));
            verdict(MachineFile::parse(&text))
        },
    );
}

#[test]
fn experiments() {
    let texts = files("experiments", ".toml");
    let campaign = Campaign { name: "experiments", rounds: 2_000, least_percent: 2 };
    campaign.run(
        |rng| mutated(&texts, rng),
        |bytes| {
            let text = TomlText::new("e.toml", String::from_utf8_lossy(bytes));
            verdict(Experiment::parse(text))
        },
    );
}

/// Counts what a trace holds.
#[derive(Default)]
struct Counts {
    events: usize,
    names: usize,
    last: u64,
}

impl Sink for Counts {
    fn events(&mut self, batch: &[Event]) {
        assert!(batch.is_sorted_by_key(|e| e.time) && batch.first().is_none_or(|e| e.time >= self.last));
        self.last = batch.last().map_or(self.last, |e| e.time);
        self.events += batch.len();
    }

    fn name(&mut self, _: &NameRecord) {
        self.names += 1;
    }

    fn affinity(&mut self, _: &AffinityRecord) {}
}

/// Mutates and reads traces in files of their own.
fn traces(name: &'static str, rounds: u64, files: &[Vec<u8>]) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace");
    Campaign { name, rounds, least_percent: 5 }.run(
        |rng| {
            let mut bytes = files[rng.below(files.len() as u64) as usize].clone();
            mutate::binary(&mut bytes, rng);
            bytes
        },
        |bytes| {
            std::fs::write(&path, bytes).expect("written");
            let mut counts = Counts::default();
            let result = schedlab_trace::read_into(&path, &mut counts);
            // A compressed byte holds no more than so many rows.
            let room = 4000 * (bytes.len() + 1);
            assert!(counts.events <= room && counts.names <= room, "{} events", counts.events);
            verdict(result)
        },
    );
}

#[test]
fn perf_data() {
    traces("perf_data", 1_000, &files("crates/trace/tests/data", "pipes.perf.data"));
}

#[test]
fn arrows() {
    let folder = tempfile::tempdir().expect("a folder");
    let files: Vec<Vec<u8>> = ["linux-6.12", "linux-2.6.0"]
        .iter()
        .map(|kernel| {
            let path = folder.path().join(kernel);
            let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_schedlab"));
            command.args(["sim", "-k", kernel, "-m", "dual", "-w", "messaging:groups=1,fds=3", "-d", "60ms"]);
            let out = command.args(["--trace-queues", "-o"]).arg(&path).output().expect("the command runs");
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            std::fs::read(path).expect("the trace")
        })
        .collect();
    traces("arrows", 1_000, &files);
}

//! A simulated trace carries what made it, so that the same run can be made again and looked into.

use super::Request;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schedlab_base::{Error, Meta, Result};
use schedlab_machine::tomltext::TomlText;
use schedlab_machine::{Machine, MachineFile};
use schedlab_workload::Workload;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::Path;

const MACHINE: &str = "made.machine";
/// A machine that no machine file can describe, because its CPUs are not regular, as JSON.
const IRREGULAR: &str = "made.machine.json";
/// The workload as JSON.
const WORKLOAD: &str = "made.workload";
/// The same compressed with zstd, as base64.
const COMPRESSED: &str = "made.workload.zstd";
/// Where the workload is, and the SHA-256 of that file.
const FILE: &str = "made.workload.file";
const SHA256: &str = "made.workload.sha256";
const EVERY_TICK: &str = "made.every_tick";
const SET: &str = "set.";

/// The most bytes of workload that a trace carries as they are.
const MOST_PLAIN: usize = 1 << 20;
/// The most bytes of compressed workload that a trace carries. A trace's head has at most 16 MiB.
const MOST_COMPRESSED: usize = 8 << 20;
/// The most bytes that a compressed workload may have had, and that a file is read of.
const MOST_BYTES: usize = 128 << 20;

/// The longest run that is believed, in ns: a year.
const LONGEST: u64 = 365 * 24 * 3600 * 1_000_000_000;

/// Notes what made the trace, where that can be written down.
pub(super) fn note(request: &Request, notes: &mut BTreeMap<String, String>) {
    let machine = match MachineFile::of(&request.machine) {
        Some(machine) => Some((MACHINE, machine.to_toml())),
        None if request.machine.check().is_ok() => {
            Some((IRREGULAR, serde_json::to_string(&request.machine).expect("plain data is always JSON")))
        }
        None => None,
    };
    if let Some((key, machine)) = machine {
        notes.insert(key.to_owned(), machine);
        note_workload(&request.workload, notes);
        notes.insert(EVERY_TICK.to_owned(), (!request.skip_ticks).to_string());
    }
    for (name, value) in &request.set {
        notes.insert(format!("{SET}{name}"), value.clone());
    }
}

/// Notes the workload: as it is, compressed, or by its file.
fn note_workload(workload: &Workload, notes: &mut BTreeMap<String, String>) {
    let text = schedlab_workload::write(workload);
    if text.len() <= MOST_PLAIN {
        notes.insert(WORKLOAD.to_owned(), text);
        return;
    }
    if text.len() <= MOST_BYTES {
        let packed = zstd::encode_all(text.as_bytes(), 0).expect("memory can be written to");
        let packed = STANDARD.encode(packed);
        if packed.len() <= MOST_COMPRESSED {
            notes.insert(COMPRESSED.to_owned(), packed);
            return;
        }
    }
    if let Some(file) = workload.file.as_deref()
        && let Ok(file) = std::path::absolute(file)
        && let Some(path) = file.to_str()
        && let Ok(hash) = hash(&file)
    {
        notes.insert(FILE.to_owned(), path.to_owned());
        notes.insert(SHA256.to_owned(), hash);
    }
}

/// The SHA-256 of a file, as `sha256sum` prints it.
fn hash(file: &Path) -> std::io::Result<String> {
    let mut hash = Sha256::new();
    std::io::copy(&mut File::open(file)?.take(MOST_BYTES as u64 + 1), &mut hash)?;
    Ok(hash.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}")))
}

/// What the user should know about making a trace with this metadata again, if it does not carry all that made it.
#[must_use]
pub fn remark(meta: &Meta) -> Option<String> {
    let notes = &meta.notes;
    if let Some(file) = notes.get(FILE) {
        return Some(format!(
            "the workload is too large to be stored in the trace (more than {} MiB compressed); sim --again will read \
             it from {file}, which must not change",
            MOST_COMPRESSED >> 20
        ));
    }
    if !notes.contains_key(MACHINE) && !notes.contains_key(IRREGULAR) {
        return Some("this machine cannot be stored in the trace; sim --again cannot make it again".into());
    }
    let carried = notes.contains_key(WORKLOAD) || notes.contains_key(COMPRESSED);
    (!carried).then(|| "the workload is too large to be stored; sim --again cannot make the trace again".to_owned())
}

/// The request that made a trace.
///
/// # Errors
/// When the trace was not simulated, or does not carry what made it, or the file of a very large workload is gone or
/// has changed.
pub fn request(meta: &Meta) -> Result<Request> {
    let note = |name: &str| meta.notes.get(name).ok_or_else(|| lacks(meta, name));
    let machine = match meta.notes.get(IRREGULAR) {
        Some(text) => irregular(text)?,
        None => MachineFile::parse(&TomlText::new(MACHINE, note(MACHINE)?.as_str()))?,
    };
    let mut workload = workload(meta)?;
    workload.name.clone_from(note("workload")?);
    let seed = note("seed")?;
    let duration = meta.span.map(|(_, end)| end);
    if duration.is_some_and(|end| end > LONGEST) {
        return Err(Error::input("the trace is damaged: it claims to span more than a year"));
    }
    Ok(Request {
        kernel: meta.kernel.clone(),
        machine,
        workload,
        set: meta
            .notes
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix(SET)?.to_owned(), value.clone())))
            .collect(),
        duration,
        seed: seed.parse().map_err(|_| Error::input(format!("\"{seed}\" is no seed")))?,
        skip_ticks: note(EVERY_TICK)? != "true",
    })
}

fn lacks(meta: &Meta, name: &str) -> Error {
    let error = Error::input(format!("the trace does not say what made it (no \"{name}\")"));
    error.mend(if meta.source == "sim" {
        "simulate again with --kernel, --machine and --workload"
    } else {
        "only a simulated trace can be made again"
    })
}

fn irregular(text: &str) -> Result<Machine> {
    let machine: Machine =
        serde_json::from_str(text).map_err(|e| Error::input(format!("{IRREGULAR} is damaged: {e}")))?;
    machine.check()?;
    Ok(machine)
}

fn workload(meta: &Meta) -> Result<Workload> {
    let parse = |text: &[u8]| schedlab_workload::parse(text, Path::new(WORKLOAD));
    if let Some(text) = meta.notes.get(WORKLOAD) {
        return parse(text.as_bytes());
    }
    if let Some(packed) = meta.notes.get(COMPRESSED) {
        let damaged = |what: &dyn Display| Error::input(format!("{COMPRESSED} is damaged: {what}"));
        let packed = STANDARD.decode(packed).map_err(|e| damaged(&e))?;
        let mut text = Vec::new();
        let mut reader = zstd::Decoder::new(packed.as_slice()).map_err(|e| damaged(&e))?.take(MOST_BYTES as u64 + 1);
        reader.read_to_end(&mut text).map_err(|e| damaged(&e))?;
        return if text.len() > MOST_BYTES { Err(damaged(&"it is larger than 128 MiB")) } else { parse(&text) };
    }
    let (Some(file), Some(wanted)) = (meta.notes.get(FILE), meta.notes.get(SHA256)) else {
        return Err(lacks(meta, WORKLOAD));
    };
    let file = Path::new(file);
    let mend = "the trace stores only its path and its SHA-256; put the file back, or simulate again with --workload";
    let gone = |e: std::io::Error| {
        Error::input(format!("the workload of this trace cannot be read from {}: {e}", file.display())).mend(mend)
    };
    if hash(file).map_err(gone)? != *wanted {
        let what = format!("the workload of this trace, {}, has changed since", file.display());
        return Err(Error::input(what).mend(mend));
    }
    schedlab_workload::load(&file.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::super::{head, simulate};
    use super::*;
    use schedlab_base::{Event, NameRecord, Sink};

    #[derive(Default)]
    struct All(Vec<Event>);

    impl Sink for All {
        fn events(&mut self, batch: &[Event]) {
            self.0.extend_from_slice(batch);
        }

        fn name(&mut self, _: &NameRecord) {}
    }

    fn events(request: &Request) -> Vec<Event> {
        let mut all = All::default();
        simulate(request, &mut all, None).unwrap();
        all.0
    }

    #[test]
    fn a_run_can_be_made_again_from_its_trace() {
        let text = r#"{"tasks": {"a": {"instance": 3, "loop": -1, "run": {"mean": 900, "sd": 100}, "sleep": 500}}}"#;
        let mut machine = schedlab_machine::load("2x2").unwrap();
        machine.costs.idle_exit_ns = 7.into();
        let first = Request {
            kernel: "linux-2.6.32".into(),
            machine,
            workload: schedlab_workload::parse(text.as_bytes(), Path::new("w.json")).unwrap(),
            set: vec![("sched_latency_ns".into(), "9000000".into())],
            duration: Some(200_000_000),
            seed: 7,
            skip_ticks: true,
        };
        let again = request(&head(&first)).unwrap();
        assert_eq!(again.workload.name, "w");
        let (first, again) = (events(&first), events(&again));
        assert!(first.len() > 500 && first == again);
    }

    /// A workload of one task with this many phases, each unlike the others.
    fn large(phases: u64) -> String {
        let mut state = 1u64;
        let mut draw = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % 1_000_000
        };
        let phases: Vec<String> =
            (0..phases).map(|p| format!("\"p{p}\": {{\"run\": {}, \"sleep\": {}}}", 1 + draw(), 1 + draw())).collect();
        format!("{{\"tasks\": {{\"a\": {{\"loop\": 1, \"phases\": {{{}}}}}}}}}", phases.join(",\n"))
    }

    fn of_file(file: &Path) -> Request {
        Request {
            kernel: "linux-6.12".into(),
            machine: schedlab_machine::load("2").unwrap(),
            workload: schedlab_workload::load(file.to_str().unwrap()).unwrap(),
            set: Vec::new(),
            duration: Some(2_000_000_000),
            seed: 3,
            skip_ticks: true,
        }
    }

    #[test]
    fn a_machine_that_no_file_describes_travels_too() {
        let text = r#"{"tasks": {"a": {"instance": 5, "loop": -1, "run": 900, "sleep": 500}}}"#;
        let mut machine = schedlab_machine::load("2x2x2").unwrap();
        // The second thread of core n is CPU n + 4, as on most servers.
        for (number, cpu) in machine.cpus.iter_mut().enumerate() {
            cpu.place.core = number as u32 % 4;
            cpu.cluster = cpu.place.core;
            cpu.place.package = cpu.place.core / 2;
            cpu.place.llc = cpu.place.package;
        }
        let first = Request {
            kernel: "linux-6.12".into(),
            machine,
            workload: schedlab_workload::parse(text.as_bytes(), Path::new("w.json")).unwrap(),
            set: Vec::new(),
            duration: Some(100_000_000),
            seed: 1,
            skip_ticks: true,
        };
        let mut meta = head(&first);
        assert!(!meta.notes.contains_key(MACHINE) && remark(&meta).is_none());
        let again = request(&meta).unwrap();
        assert_eq!(again.machine, first.machine);
        assert_eq!(events(&first), events(&again));
        for damage in ["", "{}", "[1"] {
            meta.notes.insert(IRREGULAR.to_owned(), damage.to_owned());
            assert!(request(&meta).unwrap_err().to_string().contains("made.machine.json is damaged"), "{damage}");
        }
    }

    #[test]
    fn a_large_workload_travels_compressed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("large.json");
        std::fs::write(&file, large(30_000)).unwrap();
        let first = of_file(&file);
        let meta = head(&first);
        assert!(meta.notes.contains_key(COMPRESSED) && !meta.notes.contains_key(WORKLOAD), "{:?}", meta.notes.keys());
        assert_eq!(remark(&meta), None);
        std::fs::remove_file(&file).unwrap();
        let again = request(&meta).unwrap();
        assert_eq!((&again.workload.tasks, &again.workload.name), (&first.workload.tasks, &first.workload.name));
        assert_eq!(events(&first), events(&again));
        for damage in ["", "!", "AAAA"] {
            let mut damaged = meta.clone();
            damaged.notes.insert(COMPRESSED.to_owned(), damage.to_owned());
            assert!(request(&damaged).unwrap_err().to_string().contains("made.workload"), "{damage}");
        }
    }

    #[test]
    fn a_very_large_workload_is_found_by_path_and_hash() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("huge.json");
        let text = large(1_100_000);
        std::fs::write(&file, &text).unwrap();
        let first = of_file(&file);
        let meta = head(&first);
        let path = file.to_str().unwrap();
        assert_eq!(meta.notes.get(FILE).map(String::as_str), Some(path));
        assert!(remark(&meta).unwrap().contains(path));
        assert_eq!(request(&meta).unwrap().workload.tasks, first.workload.tasks);
        std::fs::write(&file, text + "\n").unwrap();
        let error = request(&meta).unwrap_err().to_string();
        assert!(error.contains(path) && error.contains("has changed since"), "{error}");
        std::fs::remove_file(&file).unwrap();
        let error = request(&meta).unwrap_err().to_string();
        assert!(error.contains(path) && error.contains("cannot be read"), "{error}");
    }

    #[test]
    fn a_recorded_trace_is_refused() {
        let error = request(&Meta { source: "record".into(), ..Meta::default() }).unwrap_err().to_string();
        assert!(error.contains("only a simulated trace"), "{error}");
    }

    #[test]
    fn a_machine_of_an_older_trace_has_the_usual_reclaim_distance() {
        let mut machine = serde_json::to_value(schedlab_machine::load("epyc-2x64-smt").unwrap()).unwrap();
        machine.as_object_mut().unwrap().remove("reclaim_distance").expect("it is written");
        assert_eq!(irregular(&machine.to_string()).unwrap().reclaim_distance, schedlab_machine::RECLAIM_DISTANCE);
    }
}

//! Reading a real perf.data: held against `perf script`, in each of its forms, cut and damaged.

mod support;

use schedlab_base::{Payload, Result, Rng, Tid};
use schedlab_trace::perf_data::PerfData;
use schedlab_trace::{Input, Options, Source, Trace, open_input, read_all};
use support::forge::{self, Parts};
use support::{assert_agrees, data, perf_script};

/// Reads a file of these bytes.
fn read(bytes: &[u8], options: &Options) -> Result<Trace> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let mut source = PerfData::read(Input::open(file.path())?, options)?;
    let mut trace = Trace::default();
    trace.report = source.run(&mut trace)?;
    trace.meta = source.meta().clone();
    Ok(trace)
}

fn whole() -> Trace {
    read_all(data("pipes.perf.data")).unwrap()
}

#[test]
fn every_event_and_name_is_as_perf_script_says() {
    let text = std::fs::read(data("pipes.perf-script.txt.zst")).unwrap();
    let text = String::from_utf8(zstd::decode_all(&text[..]).unwrap()).unwrap();
    let told = perf_script(&text);
    assert_eq!(told.len(), 631);
    let ours = whole();
    assert_agrees(&ours, &told);
    assert_eq!((ours.report.events, ours.report.skipped, ours.report.cut.clone()), (631, 0, None));
}

#[test]
fn the_metadata_tells_the_machine() {
    let meta = whole().meta;
    assert_eq!((meta.machine.as_str(), meta.kernel.as_str(), meta.clock.as_str()), ("example", "6.18.44", "perf"));
    assert_eq!(meta.source, "import:perf.data");
    assert_eq!(
        meta.cpus.iter().map(|c| (c.cpu, c.core, c.llc, c.package, c.node)).collect::<Vec<_>>(),
        [(0, 0, 0, 0, 0), (1, 1, 0, 0, 0)]
    );
    assert!(meta.notes["command"].starts_with("/usr/bin/perf record -a"), "{:?}", meta.notes);
}

#[test]
fn threads_know_their_process() {
    let trace = whole();
    let yes = trace.names.iter().rfind(|n| n.comm == "yes").unwrap();
    assert_eq!(yes.tgid, Some(yes.tid), "a process without threads");
    let unknown: Vec<_> = trace.names.iter().filter(|n| n.time > 0 && n.comm == "tee" && n.tgid.is_none()).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn pipes_and_compressed_recordings_say_the_same() {
    let (parts, whole) = (Parts::load(), whole());
    let plain: Vec<Vec<u8>> = parts.records().iter().map(|r| r.to_vec()).collect();
    let forms = [
        ("pipe", plain),
        ("compressed", forge::compressed(&parts.records(), false)),
        ("compressed, second kind", forge::compressed(&parts.records(), true)),
    ];
    for (form, records) in forms {
        let trace = read(&parts.pipe(&records), &Options::default()).unwrap();
        assert!(trace.events == whole.events && trace.names == whole.names, "{form}");
        assert_eq!(trace.report, whole.report, "{form}");
    }
    let stream = std::io::Cursor::new(parts.pipe(&forge::compressed(&parts.records(), false)));
    let mut source = open_input(Input::pipe(Box::new(stream), "standard input").unwrap(), &Options::default()).unwrap();
    let mut trace = Trace::default();
    source.run(&mut trace).unwrap();
    assert!(trace.events == whole.events);
    assert_eq!(source.run(&mut trace).unwrap().events, 0, "a second run finds nothing more");
}

#[test]
fn data_of_auxtrace_is_passed_over() {
    let (parts, whole) = (Parts::load(), whole());
    let mut records: Vec<Vec<u8>> = parts.records().iter().map(|r| r.to_vec()).collect();
    let hidden = parts.records()[20].to_vec();
    let mut aux = forge::record(71, &[&(hidden.len() as u64).to_le_bytes()[..], &[0; 32]].concat());
    aux.extend(hidden);
    records.insert(10, aux);
    let trace = read(&parts.pipe(&records), &Options::default()).unwrap();
    assert!(trace.events == whole.events);
}

#[test]
fn losses_are_marked_where_they_happened() {
    let (parts, whole) = (Parts::load(), whole());
    let mut records: Vec<Vec<u8>> = parts.records().iter().map(|r| r.to_vec()).collect();
    let last = whole.events.last().unwrap().time;
    // Its event's id, how many; then the trailer: pid, tid, time, cpu, identifier.
    let body = [0, 77, 0, last, 1, 0].map(u64::to_le_bytes).concat();
    records.insert(30, forge::record(2, &body));
    // What the counters say in the end: five more than the buffers could tell.
    records.push(forge::record(13, &[82, 0, 0, 0, 0].map(u64::to_le_bytes).concat()));
    let trace = read(&parts.pipe(&records), &Options::default()).unwrap();
    let lost: Vec<_> = trace
        .events
        .iter()
        .filter_map(|e| match e.what {
            Payload::Lost { count } => Some((e.time, e.cpu, count)),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [(last, 1, 77), (last, 0, 5)]);
}

#[test]
fn a_recording_that_was_cut_reads_as_far_as_it_goes() {
    let (parts, whole) = (Parts::load(), whole());
    let folder = tempfile::tempdir().unwrap();
    parts.formats_folder(folder.path());
    let options = Options { formats: Some(folder.path().to_path_buf()) };

    let killed = read(&parts.killed(), &options).unwrap();
    assert!(killed.events == whole.events);
    let cut = killed.report.cut.unwrap();
    assert!(cut.offset == parts.data.end as u64 && cut.what.contains("killed"), "{cut:?}");

    let end = parts.data.end - 3000;
    let short = read(&parts.file[..end], &options).unwrap();
    assert!(short.events.len() < whole.events.len() && short.events.len() > 500);
    assert!(short.events.iter().all(|e| whole.events.contains(e)));
    assert!(short.report.cut.unwrap().offset <= end as u64);

    let mut zeros = parts.killed();
    zeros.truncate(end);
    zeros.resize(end + 5000, 0);
    let zeros = read(&zeros, &options);
    // Where the zeros begin inside a record, its tail is zeros too: either way no event is made up.
    assert!(zeros.is_ok_and(|t| t.report.cut.is_some()));
}

#[test]
fn ids_of_a_container_are_not_mistaken_for_the_kernels() {
    let parts = Parts::load();
    let records: Vec<Vec<u8>> = parts
        .records()
        .iter()
        .map(|r| {
            let mut record = r.to_vec();
            if record[0] == 9 {
                // Identifier and address come before the ids of process and thread.
                let tid = Tid::from_le_bytes(record[28..32].try_into().unwrap());
                let inside = if tid > 0 { tid % 100 + 2 } else { 0 };
                record[24..28].copy_from_slice(&inside.to_le_bytes());
                record[28..32].copy_from_slice(&inside.to_le_bytes());
            }
            record
        })
        .collect();
    let trace = read(&parts.pipe(&records), &Options::default()).unwrap();
    assert!(trace.events == whole().events);
    assert!(trace.names.iter().all(|n| n.tgid.is_none() && n.time > 0), "perf's ids were trusted");
}

#[test]
fn what_cannot_be_read_is_refused_in_one_sentence() {
    let parts = Parts::load();
    let refused = |bytes: &[u8], why: &str| {
        let message = read(bytes, &Options::default()).unwrap_err().to_string();
        assert!(message.contains(why) && message.lines().count() == 1, "{message}");
    };
    refused(&[], "empty");
    refused(b"not perf at all, whatever it is", "does not begin");
    refused(&parts.file[..50], "ends within its header");
    refused(&parts.file[..200], "list of events");
    refused(&parts.pipe(&[])[..3000], "formats of events");
    let mut other = parts.file.clone();
    let (at, size) = (parts.data.start, parts.data.len());
    other[at + 6] = 3;
    other[at + 7] = 0;
    assert!(size > 8);
    refused(&other, "a record of 3 bytes");
    let mut attr = parts.file.clone();
    attr[16..24].fill(0xff);
    refused(&attr, "list of events");
    let folder = tempfile::tempdir().unwrap();
    let message = PerfData::open(folder.path()).err().unwrap().to_string();
    assert!(message.contains("folder"), "{message}");
}

/// Damaged files give an error or fewer events, never a panic, and never more events than they have room for.
#[test]
fn no_damage_harms() {
    let parts = Parts::load();
    let packed = parts.pipe(&forge::compressed(&parts.records(), false));
    let mut rng = Rng::new(20);
    let mut read_whole = 0;
    for round in 0..1500 {
        let original = if round % 3 == 0 { &packed } else { &parts.file };
        let mut bytes = original.clone();
        if round % 5 == 0 {
            bytes.truncate(rng.below(bytes.len() as u64) as usize);
        }
        for _ in 0..rng.below(8) {
            // Half of the damage goes where structure is dense.
            let reach = if rng.below(2) == 0 { bytes.len() as u64 } else { 4096.min(bytes.len() as u64) };
            let at = rng.below(reach) as usize;
            if let Some(byte) = bytes.get_mut(at) {
                *byte = match rng.below(4) {
                    0 => 0,
                    1 => 0xff,
                    _ => rng.next_u64() as u8,
                };
            }
        }
        if let Ok(trace) = read(&bytes, &Options::default()) {
            let room = 40 * bytes.len();
            assert!(trace.events.len() < room && trace.names.len() < room, "round {round}");
            assert!(trace.events.is_sorted_by_key(|e| e.time), "round {round}");
            read_whole += 1;
        }
    }
    assert!(read_whole > 300, "most damage is small: {read_whole} were read");
}

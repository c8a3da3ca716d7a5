//! What is written is read back, and files that are cut, mutated or hostile are reported without a panic.

use super::*;
use crate::source::{ReadReport, Trace};
use proptest::prelude::*;
use schedlab_base::{
    AffinityRecord, Context, CpuPlace, Event, GroupProperties, GroupRecord, Ignored, Interrupt, Looking, Meta, NOWHERE,
    NameRecord, Payload, Policy, Result, Sink, Sleep, TaskProperties, TaskRecord, TaskState,
};
use std::cell::RefCell;
use std::io::{Cursor, Write};
use std::rc::Rc;

/// An output that can still be read after its writer is dropped.
#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn meta() -> Meta {
    Meta {
        source: "test".into(),
        kernel: "6.1".into(),
        clock: "sim".into(),
        cpus: (0..4).map(|cpu| CpuPlace { cpu, ..CpuPlace::default() }).collect(),
        running: vec![(1, 7)],
        ..Meta::default()
    }
}

fn name(tid: i32, comm: &str, cgroup: Option<&str>) -> NameRecord {
    NameRecord { time: 0, tid, tgid: Some(tid), comm: comm.into(), cgroup: cgroup.map(str::to_owned) }
}

/// One event of each kind.
fn one_of_each() -> Vec<Event> {
    let kinds = [
        Payload::Switch { prev: 1, prev_prio: 120, prev_state: TaskState::Runnable, next: 2, next_prio: -1 },
        Payload::Switch { prev: 2, prev_prio: 98, prev_state: TaskState::Zombie, next: 0, next_prio: 120 },
        Payload::Waking { tid: 3, prio: 100, target: 2, waker: 9, context: Context::Unknown },
        Payload::Wakeup { tid: 3, prio: 100, target: 2 },
        Payload::WakeupNew { tid: 4, prio: 139, target: 65535 },
        Payload::Migrate { tid: 4, prio: 139, from: 3, to: 1 },
        Payload::Fork { parent: 1, child: MAX_TID },
        Payload::Exec { tid: 5, old: 6 },
        Payload::Exit { tid: 5, prio: 0 },
        Payload::Lost { count: u64::MAX },
        Payload::Queue { length: 70, load: u64::MAX },
        Payload::Considered { why: Looking::Wake, tid: 5, word: 1, mask: 0x8000_0000_0000_00ff },
        Payload::Considered { why: Looking::NewIdle, tid: 0, word: 0, mask: 2 },
        Payload::Pages { tgid: 5, from: NOWHERE, to: 0, pages: u32::MAX },
        Payload::Pages { tgid: 5, from: 0, to: 1023, pages: 1 },
        Payload::Pages { tgid: 5, from: 1, to: NOWHERE, pages: 7 },
        Payload::Frequency { target: 0, khz: 0 },
        Payload::Frequency { target: 1023, khz: u32::MAX },
        Payload::Interrupt { kind: Interrupt::SoftIrq, number: 3, took: 1_234 },
        Payload::Interrupt { kind: Interrupt::Irq, number: u16::MAX, took: 0 },
        Payload::Interrupt { kind: Interrupt::Steal, number: 0, took: u64::MAX },
        Payload::Sleeps { tid: 7, why: Sleep::Timer },
        Payload::Sleeps { tid: 4_194_303, why: Sleep::Io },
        Payload::Killed { tid: 7, signal: 9 },
        Payload::Killed { tid: 4_194_303, signal: u16::MAX },
    ];
    kinds.iter().enumerate().map(|(i, &what)| Event { time: 100 * (i as u64 / 2), cpu: i as u32, what }).collect()
}

fn file(events: &[Event], names: &[NameRecord], batch_rows: usize) -> Vec<u8> {
    let out = Shared::default();
    let mut writer = Writer::new(out.clone(), &meta()).unwrap().batch_rows(batch_rows);
    for record in names {
        writer.name(record);
    }
    writer.events(events);
    let summary = writer.finish().unwrap();
    assert_eq!(summary.events, events.len() as u64);
    assert_eq!(summary.bytes, out.0.borrow().len() as u64);
    out.0.take()
}

fn read(bytes: Vec<u8>) -> Result<Trace> {
    let mut reader = Reader::new(Cursor::new(bytes))?;
    let mut trace = Trace { meta: reader.meta().clone(), ..Trace::default() };
    trace.report = reader.run(&mut trace)?;
    Ok(trace)
}

#[test]
fn every_kind_of_row_comes_back() {
    let names = [name(1, "init", Some("/")), name(2, "", None), name(3, "μs\n\"quoted\"", Some("/a/b"))];
    for batch_rows in [1, 3, 1000] {
        let trace = read(file(&one_of_each(), &names, batch_rows)).unwrap();
        assert_eq!(trace.meta, meta());
        assert_eq!(trace.events, one_of_each());
        assert_eq!(trace.names, names);
        assert_eq!(trace.report, ReadReport { events: 25, names: 3, ..ReadReport::default() });
    }
}

#[test]
fn a_file_of_the_first_version_without_the_later_columns_is_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/version-1.0.arrows");
    let trace = crate::read_all(path).unwrap();
    assert!(trace.events.len() > 1000 && !trace.names.is_empty());
    assert_eq!((trace.report.skipped, trace.affinities), (0, Vec::new()));
}

#[test]
fn a_trace_without_events_is_read() {
    assert_eq!(read(file(&[], &[], 10)).unwrap().report, ReadReport::default());
}

#[test]
fn the_end_of_a_recording_comes_back() {
    let written = |source: &str| {
        let out = Shared::default();
        let mut writer = Writer::new(out.clone(), &Meta { source: source.into(), ..meta() }).unwrap();
        writer.events(&one_of_each()[..3]);
        writer.lasts(5_000);
        writer.finish().unwrap();
        out.0.take()
    };
    let (recorded, simulated) = (read(written("record")).unwrap(), read(written("sim")).unwrap());
    assert_eq!((recorded.end, simulated.end), (Some(5_000), None));
    assert_eq!((recorded.events, recorded.report), (simulated.events, simulated.report));
}

#[test]
fn contexts_come_back() {
    let contexts = [Context::HardIrq, Context::Unknown, Context::Task, Context::SoftIrq];
    let wakings = contexts.map(|context| Payload::Waking { tid: 3, prio: 100, target: 2, waker: 9, context });
    let events = wakings.map(|what| Event { time: 7, cpu: 1, what });
    let back = |source: &str| {
        let out = Shared::default();
        let mut writer = Writer::new(out.clone(), &Meta { source: source.into(), ..meta() }).unwrap();
        writer.events(&events);
        writer.finish().unwrap();
        let of = |event: &Event| matches!(event.what, Payload::Waking { context, .. } if context != Context::Unknown);
        let events = read(out.0.take()).unwrap().events;
        (events.clone(), events.iter().filter(|event| of(event)).count())
    };
    assert_eq!(back("import:perf.data"), (events.to_vec(), 3));
}

#[test]
fn properties_of_tasks_and_groups_come_back() {
    let task = |tid, properties| TaskRecord { time: 3, tid, properties };
    let all = TaskProperties {
        policy: Some(Policy::Deadline),
        nice: Some(-20),
        rt_priority: Some(99),
        slice_ns: Some(3_000_000),
        runtime_ns: Some(1),
        deadline_ns: Some(2),
        period_ns: Some(3),
        util_min: Some(0),
        util_max: Some(1024),
        reset_on_fork: true,
        reclaim: true,
        autogroup: Some(u64::MAX),
        autogroup_nice: Some(19),
    };
    let tasks = [task(7, all), task(8, TaskProperties::default())];
    let limits = GroupProperties { weight: Some(300), quota_us: Some(-1), idle: true, ..GroupProperties::default() };
    let groups = ["/", "/a/b"].map(|path| GroupRecord { time: 0, path: path.into(), properties: limits.clone() });
    for batch_rows in [1, 2, 100] {
        let out = Shared::default();
        let mut writer = Writer::new(out.clone(), &meta()).unwrap().batch_rows(batch_rows);
        groups.iter().for_each(|record| writer.group(record));
        writer.name(&name(7, "init", Some("/a/b")));
        tasks.iter().for_each(|record| writer.task(record));
        writer.events(&one_of_each());
        writer.finish().unwrap();
        let trace = read(out.0.take()).unwrap();
        assert_eq!((&trace.tasks[..], &trace.groups[..]), (&tasks[..], &groups[..]));
        assert_eq!((trace.names[0].cgroup.as_deref(), trace.events), (Some("/a/b"), one_of_each()));
    }
    let nice = TaskProperties { nice: Some(20), ..TaskProperties::default() };
    let mut writer = Writer::new(Vec::new(), &meta()).unwrap();
    writer.task(&task(7, nice));
    assert!(writer.finish().unwrap_err().to_string().contains("thread 7: nice is 20"));
}

#[test]
fn affinities_keep_their_place_among_the_events() {
    #[derive(Default)]
    struct Order(Vec<String>);
    impl Sink for Order {
        fn events(&mut self, batch: &[Event]) {
            self.0.extend(batch.iter().map(|e| e.time.to_string()));
        }
        fn name(&mut self, _: &NameRecord) {}
        fn affinity(&mut self, record: &AffinityRecord) {
            self.0.push(format!("{}: {}", record.tid, record.cpus));
        }
    }
    let out = Shared::default();
    let mut writer = Writer::new(out.clone(), &meta()).unwrap();
    let record = |cpus: &str| AffinityRecord { time: 1, tid: 7, cpus: cpus.parse().unwrap() };
    let event = |time| Event { time, cpu: 0, what: Payload::Exit { tid: 7, prio: 1 } };
    writer.affinity(&record("0-3,8,65535"));
    writer.events(&[event(1)]);
    writer.affinity(&record(""));
    writer.events(&[event(3)]);
    writer.finish().unwrap();
    let mut order = Order::default();
    let report = Reader::new(Cursor::new(out.0.take())).unwrap().run(&mut order).unwrap();
    assert_eq!(order.0, ["7: 0-3,8,65535", "1", "7: ", "3"]);
    assert_eq!(report, ReadReport { events: 2, ..ReadReport::default() });
}

#[test]
fn names_keep_their_place_among_the_events() {
    struct Order(Vec<String>);
    impl Sink for Order {
        fn events(&mut self, batch: &[Event]) {
            self.0.extend(batch.iter().map(|e| e.time.to_string()));
        }
        fn name(&mut self, record: &NameRecord) {
            self.0.push(record.comm.clone());
        }
    }
    let out = Shared::default();
    let mut writer = Writer::new(out.clone(), &meta()).unwrap();
    let event = |time| Event { time, cpu: 0, what: Payload::Exit { tid: 1, prio: 1 } };
    writer.events(&[event(1), event(2)]);
    writer.name(&name(1, "a", None));
    writer.events(&[event(3)]);
    writer.finish().unwrap();
    let mut order = Order(Vec::new());
    Reader::new(Cursor::new(out.0.take())).unwrap().run(&mut order).unwrap();
    assert_eq!(order.0, ["1", "2", "a", "3"]);
}

#[test]
fn a_file_cut_at_any_byte_reads_back_up_to_its_last_whole_batch() {
    let whole = file(&one_of_each(), &[name(1, "init", None)], 4);
    let head = (0..whole.len()).find(|&n| read(whole[..n].to_vec()).is_ok()).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for n in 0..whole.len() {
        match read(whole[..n].to_vec()) {
            Err(e) => {
                assert!(n < head, "{n}: {e}");
                assert_eq!(e.exit_status(), 2);
            }
            Ok(trace) => {
                assert!(n >= head);
                let cut = trace.report.cut.expect("the cut is reported");
                assert!(cut.offset <= n as u64);
                assert_eq!(trace.events, one_of_each()[..trace.events.len()]);
                seen.insert(trace.events.len());
            }
        }
    }
    // Batches have 4 rows and the first row is a name. Every cut file lacks at least the end marker.
    let all = one_of_each().len();
    assert_eq!(seen, [0, all].into_iter().chain((3..all).step_by(4)).collect());
}

#[test]
fn zeros_at_the_end_are_a_cut() {
    let mut bytes = file(&one_of_each(), &[], 100);
    let end = bytes.len() - 8;
    bytes.truncate(end);
    bytes.extend([0; 5000]);
    let trace = read(bytes).unwrap();
    assert_eq!(trace.events, one_of_each());
    assert_eq!(trace.report.cut.unwrap().offset, end as u64);
}

#[test]
fn flushed_events_survive_a_killed_writer() {
    let out = Shared::default();
    let mut writer = Writer::new(out.clone(), &meta()).unwrap();
    writer.events(&one_of_each()[..6]);
    writer.flush().unwrap();
    writer.events(&one_of_each()[6..]);
    std::mem::forget(writer);
    let trace = read(out.0.borrow().clone()).unwrap();
    assert_eq!(trace.events, one_of_each()[..6]);
    assert!(trace.report.cut.is_some());
}

#[test]
fn files_that_are_not_traces_are_refused_with_the_reason() {
    let mut two = file(&[], &[], 1);
    two.extend(two.clone());
    let cases: [(&[u8], &str); 6] = [
        (b"", "empty"),
        (b"PERFILE2\0\0", "perf.data"),
        (b"ARROW1\0\0....", "not a stream"),
        (b"{\"tasks\": 1}", "no trace"),
        (b"\xff\xff\xff\xff\xff\xff\xff\x7f", "claims 2147483647 bytes"),
        (&two, "follows the end mark"),
    ];
    for (bytes, reason) in cases {
        let error = read(bytes.to_vec()).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
        assert_eq!(error.exit_status(), 2);
    }
}

#[test]
fn the_writer_omits_and_reports_events_that_the_format_cannot_hold() {
    let good = Event { time: 10, cpu: 0, what: Payload::Exit { tid: 1, prio: 1 } };
    let bad = [
        (Event { time: 9, ..good }, "came after"),
        (Event { cpu: 65536, ..good }, "CPU 65536"),
        (Event { what: Payload::Exit { tid: -1, prio: 1 }, ..good }, "thread id -1"),
    ];
    for (event, reason) in bad {
        let out = Shared::default();
        let mut writer = Writer::new(out.clone(), &meta()).unwrap();
        writer.events(&[good, event, good]);
        let error = writer.finish().unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert_eq!(read(out.0.take()).unwrap().events, [good, good]);
    }
}

#[test]
fn a_full_disk_is_reported_once_and_leaves_a_readable_file() {
    struct Full(Shared);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.0.0.borrow().len() + bytes.len() > 4000 {
                return Err(std::io::Error::from(std::io::ErrorKind::StorageFull));
            }
            self.0.write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let out = Shared::default();
    let mut writer = Writer::new(Full(out.clone()), &meta()).unwrap().batch_rows(10);
    for round in 0..100 {
        let events: Vec<Event> = one_of_each().iter().map(|e| Event { time: e.time + 1000 * round, ..*e }).collect();
        writer.events(&events);
    }
    assert!(writer.flush().is_err());
    assert!(writer.finish().unwrap_err().to_string().contains("cannot write the trace"));
    assert!(read(out.0.borrow().clone()).unwrap().report.cut.is_some());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn mutated_files_never_panic(places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
                                 cut in any::<Option<prop::sample::Index>>()) {
        let mut bytes = file(&one_of_each(), &[name(1, "init", Some("/"))], 6);
        for (at, value) in places {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Err(error) = read(bytes) {
            prop_assert_eq!(error.exit_status(), 2);
        }
    }
}

/// Keeps the events, and ignores what can be ignored.
struct Ignoring(Vec<Event>, Ignored);

impl Sink for Ignoring {
    fn events(&mut self, batch: &[Event]) {
        self.0.extend_from_slice(batch);
    }

    fn name(&mut self, _: &NameRecord) {}

    fn ignores(&self) -> Ignored {
        self.1
    }
}

#[test]
fn only_what_a_sink_ignores_is_left_out() {
    let mut events = one_of_each();
    let waking = |tid| Payload::Waking { tid, prio: 100, target: 2, waker: 9, context: Context::HardIrq };
    // In batches of 8 rows, so that some have forks and others not.
    events.extend((0..40).map(|i| Event { time: 10_000 + i, cpu: 1, what: waking(i as i32) }));
    for priorities in [false, true] {
        for wakers in [false, true] {
            let mut sink = Ignoring(Vec::new(), Ignored { priorities, wakers });
            Reader::new(Cursor::new(file(&events, &[], 8))).unwrap().run(&mut sink).unwrap();
            assert_eq!(sink.0.len(), events.len());
            let (mut without, mut known) = (0, 0);
            for (mut got, mut was) in sink.0.into_iter().zip(events.clone()) {
                if let (Payload::Waking { waker, .. }, Payload::Waking { .. }) = (got.what, was.what) {
                    without += usize::from(waker == 0);
                    known += usize::from(waker == 9);
                }
                for event in [&mut got, &mut was] {
                    blank(&mut event.what, Ignored { priorities, wakers });
                }
                assert_eq!(got, was);
            }
            // A batch with a fork or an exec has all its wakers.
            assert!(if wakers { without >= 40 && without + known == 41 } else { known == 41 });
        }
    }
}

/// Leaves out what is ignored.
fn blank(what: &mut Payload, ignored: Ignored) {
    if let (true, Payload::Waking { waker, context, .. }) = (ignored.wakers, &mut *what) {
        (*waker, *context) = (0, Context::Unknown);
    }
    match what {
        Payload::Switch { prev_prio, next_prio, .. } if ignored.priorities => (*prev_prio, *next_prio) = (0, 0),
        Payload::Waking { prio, .. }
        | Payload::Wakeup { prio, .. }
        | Payload::WakeupNew { prio, .. }
        | Payload::Migrate { prio, .. }
        | Payload::Exit { prio, .. }
            if ignored.priorities =>
        {
            *prio = 0;
        }
        _ => {}
    }
}

//! Records in the layouts of several kernels, built by hand.

use super::*;
use proptest::prelude::*;
use schedlab_base::{Interrupt, TaskState};

const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
    \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";

/// A format whose `(declaration, size)` fields follow one another from byte 8 on.
fn format(name: &str, id: u16, fields: &[(&str, u32)]) -> Format {
    let mut text = format!("name: {name}\nID: {id}\nformat:\n{COMMON}");
    let mut offset = 8;
    for (declaration, size) in fields {
        let signed = u8::from(!declaration.contains("char"));
        text += &format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
        offset += size;
    }
    Format::parse(&text).unwrap()
}

fn record(id: u16, current: i32, parts: &[&[u8]]) -> Vec<u8> {
    let mut raw = id.to_le_bytes().to_vec();
    raw.extend([0, 0]);
    raw.extend(current.to_le_bytes());
    parts.iter().for_each(|p| raw.extend(*p));
    raw
}

fn comm(name: &str) -> [u8; 16] {
    std::array::from_fn(|i| name.as_bytes().get(i).copied().unwrap_or(0))
}

fn loc(offset: u16, length: u16) -> [u8; 4] {
    (u32::from(offset) | u32::from(length) << 16).to_le_bytes()
}

/// The payload of one record, with the names that it reported and the counts.
fn decode(formats: Vec<Format>, raw: &[u8]) -> (Option<Payload>, Vec<(Tid, String)>, Counts) {
    let mut decoder = Decoder::new(formats).unwrap();
    let mut names = Vec::new();
    let event = decoder.decode(5, 1, raw, |n| names.push((n.tid, n.comm.clone())));
    (event.map(|e| e.what), names, decoder.counts())
}

fn switch() -> Format {
    let pair =
        |p: &str| [(format!("char {p}_comm[16]"), 16), (format!("pid_t {p}_pid"), 4), (format!("int {p}_prio"), 4)];
    let (prev, next) = (pair("prev"), pair("next"));
    let mut fields: Vec<(&str, u32)> = prev.iter().map(|(d, s)| (d.as_str(), *s)).collect();
    fields.push(("long prev_state", 8));
    fields.extend(next.iter().map(|(d, s)| (d.as_str(), *s)));
    format("sched_switch", 300, &fields)
}

#[test]
fn a_switch_is_decoded_with_its_names() {
    let (prev, next) = (comm("make"), comm("cc1"));
    let parts: [&[u8]; 7] = [
        &prev,
        &100i32.to_le_bytes(),
        &120i32.to_le_bytes(),
        &2i64.to_le_bytes(),
        &next,
        &200i32.to_le_bytes(),
        &(-1i32).to_le_bytes(),
    ];
    let (what, names, _) = decode(vec![switch()], &record(300, 100, &parts));
    let state = TaskState::Uninterruptible;
    assert_eq!(what, Some(Payload::Switch { prev: 100, prev_prio: 120, prev_state: state, next: 200, next_prio: -1 }));
    assert_eq!(names, [(100, "make".to_owned()), (200, "cc1".to_owned())]);
}

#[test]
fn an_old_wakeup_that_woke_no_task_is_no_event() {
    let fields: &[(&str, u32)] =
        &[("char comm[16]", 16), ("pid_t pid", 4), ("int prio", 4), ("int success", 4), ("int target_cpu", 4)];
    let raw = |success: i32| {
        let numbers = [7, 120, success, 3].map(i32::to_le_bytes).concat();
        record(9, 1, &[&comm("x"), &numbers])
    };
    let wakeup = || vec![format("sched_wakeup", 9, fields)];
    assert_eq!(decode(wakeup(), &raw(1)).0, Some(Payload::Wakeup { tid: 7, prio: 120, target: 3 }));
    let (what, _, counts) = decode(wakeup(), &raw(0));
    assert_eq!((what, counts.other), (None, 1));
}

#[test]
fn a_wakeup_without_a_target_woke_on_its_own_cpu() {
    let fields: &[(&str, u32)] = &[("char comm[16]", 16), ("pid_t pid", 4), ("int prio", 4)];
    let raw = record(9, 44, &[&comm("x"), &[7, 120].map(i32::to_le_bytes).concat()]);
    let (what, ..) = decode(vec![format("sched_waking", 9, fields)], &raw);
    assert_eq!(what, Some(Payload::Waking { tid: 7, prio: 120, target: 5, waker: 44, context: Context::Task }));
}

#[test]
fn flags_say_what_asked_for_a_wakeup() {
    let fields: &[(&str, u32)] = &[("char comm[16]", 16), ("pid_t pid", 4), ("int prio", 4)];
    let context = |flags: u8| {
        let mut raw = record(9, 44, &[&comm("x"), &[7, 120].map(i32::to_le_bytes).concat()]);
        raw[2] = flags;
        match decode(vec![format("sched_waking", 9, fields)], &raw).0 {
            Some(Payload::Waking { context, .. }) => context,
            other => panic!("{other:?}"),
        }
    };
    // Interrupts off and a rescheduling due say nothing of it; bottom halves off neither.
    let found = [0, 0x01 | 0x04, 0x80, 0x10, 0x10 | 0x80, 0x08, 0x08 | 0x10, 0x40].map(context);
    let (task, soft, hard) = (Context::Task, Context::SoftIrq, Context::HardIrq);
    assert_eq!(found, [task, task, task, soft, soft, hard, hard, hard]);
}

#[test]
fn a_fork_with_names_after_the_fixed_fields() {
    let fields = |kind| {
        [(format!("{kind} char[] parent_comm"), 4), ("pid_t parent_pid".to_owned(), 4)]
            .into_iter()
            .chain([(format!("{kind} char[] child_comm"), 4), ("pid_t child_pid".to_owned(), 4)])
            .collect::<Vec<_>>()
    };
    for (kind, base) in [("__data_loc", [0, 0]), ("__rel_loc", [12, 20])] {
        let fields = fields(kind);
        let fields: Vec<(&str, u32)> = fields.iter().map(|(d, s)| (d.as_str(), *s)).collect();
        let parts: [&[u8]; 6] = [
            &loc(24 - base[0], 5),
            &10i32.to_le_bytes(),
            &loc(29 - base[1], 19),
            &11i32.to_le_bytes(),
            b"bash\0",
            b"a-name-of-18-bytes\0",
        ];
        let raw = record(7, 10, &parts);
        let (what, names, _) = decode(vec![format("sched_process_fork", 7, &fields)], &raw);
        assert_eq!(what, Some(Payload::Fork { parent: 10, child: 11 }), "{kind}");
        assert_eq!(names, [(10, "bash".to_owned()), (11, "a-name-of-18-byt".to_owned())], "{kind}");
    }
}

#[test]
fn damaged_and_unknown_records_are_counted() {
    assert_eq!(decode(vec![switch()], &[]).2.malformed, 1);
    assert_eq!(decode(vec![switch()], &record(300, 1, &[])).2.malformed, 1);
    assert_eq!(decode(vec![switch()], &record(301, 1, &[])).2.other, 1);
    assert_eq!(decode(vec![switch()], &record(300, 1, &[&[0xff; 64]])).2.malformed, 1);
    let incomplete = format("sched_switch", 300, &[("pid_t prev_pid", 4)]);
    assert!(Decoder::new([incomplete]).err().unwrap().to_string().contains("prev_prio"));
}

proptest! {
    #[test]
    fn no_record_panics(tail in prop::collection::vec(any::<u8>(), 0..80), id in 300u16..302, loc in any::<u32>()) {
        let fields = [("__data_loc char[] comm", 4), ("pid_t pid", 4), ("int prio", 4)];
        let strings = format("sched_process_exit", 301, &fields);
        let raw = record(id, 1, &[&loc.to_le_bytes(), &tail]);
        decode(vec![switch(), strings], &raw);
    }
}

#[test]
fn an_interrupt_is_an_event_at_its_end() {
    let vec: &[(&str, u32)] = &[("unsigned int vec", 4)];
    let irq: &[(&str, u32)] = &[("int irq", 4), ("int ret", 4)];
    let formats = [
        format("softirq_entry", 10, vec),
        format("softirq_exit", 11, vec),
        format("irq_handler_entry", 12, irq),
        format("irq_handler_exit", 13, irq),
        format("local_timer_entry", 14, &[("int vector", 4)]),
        format("local_timer_exit", 15, &[("int vector", 4)]),
    ];
    let mut decoder = Decoder::new(formats).unwrap();
    let mut at = |time: u64, id: u16, number: i32| {
        let numbers = [number, 1].map(i32::to_le_bytes).concat();
        decoder.decode(2, time, &record(id, 7, &[&numbers]), |_| {}).map(|event| (event.time, event.cpu, event.what))
    };
    let ended = |time, kind, number, took| Some((time, 2, Payload::Interrupt { kind, number, took }));
    assert_eq!((at(1_000, 12, 36), at(1_700, 13, 36)), (None, ended(1_700, Interrupt::Irq, 36, 700)));
    assert_eq!((at(2_000, 10, 3), at(2_300, 14, 236)), (None, None));
    assert_eq!(at(2_500, 15, 236), ended(2_500, Interrupt::Timer, 0, 200));
    assert_eq!(at(3_000, 11, 3), ended(3_000, Interrupt::SoftIrq, 3, 800));
    // Its beginning was not seen.
    assert_eq!(at(4_000, 11, 9), None);
}

#[test]
fn a_signal_ends_its_task_if_nothing_handles_it() {
    let sent = format("signal_generate", 20, &[("int sig", 4), ("pid_t pid", 4)]);
    let delivered = format("signal_deliver", 21, &[("int sig", 4), ("unsigned long sa_handler", 8)]);
    let mut decoder = Decoder::new([sent, delivered]).unwrap();
    let mut sends = |sender: i32, signal: i32, to: i32| {
        let raw = record(20, sender, &[&signal.to_le_bytes(), &to.to_le_bytes()]);
        assert_eq!(decoder.decode(3, 0, &raw, |_| {}), None);
    };
    sends(8, 15, 7);
    sends(9, 13, 9);
    let mut reaches = |tid: i32, signal: i32, handler: u64| {
        let raw = record(21, tid, &[&signal.to_le_bytes(), &handler.to_le_bytes()]);
        decoder.decode(3, 0, &raw, |_| {}).map(|event| event.what)
    };
    assert_eq!(reaches(7, 9, 0), Some(Payload::Killed { tid: 7, signal: 9 }));
    assert_eq!(reaches(9, 9, 0), Some(Payload::Killed { tid: 9, signal: 13 }), "its own SIGPIPE");
    assert_eq!(reaches(7, 11, 0), Some(Payload::Killed { tid: 7, signal: 11 }));
    // One that is handled; those that end no task; and one that is none.
    assert_eq!(
        [(15, 0x5555), (17, 0), (19, 0), (28, 0)].map(|(signal, handler)| reaches(7, signal, handler)),
        [None; 4]
    );
    assert_eq!((reaches(7, -1, 0), decoder.counts().malformed), (None, 1));
}

#[test]
fn a_frequency_is_that_of_the_cpu_that_the_record_names() {
    let fields: &[(&str, u32)] = &[("u32 state", 4), ("u32 cpu_id", 4)];
    let decode = |khz: u32, cpu: u32| {
        let numbers = [khz, cpu].map(u32::to_le_bytes).concat();
        decode(vec![format("cpu_frequency", 20, fields)], &record(20, 7, &[&numbers]))
    };
    assert_eq!(decode(3_100_000, 11).0, Some(Payload::Frequency { target: 11, khz: 3_100_000 }));
    assert_eq!(decode(800_000, 1 << 20).2.malformed, 1);
    assert!(Decoder::wants("power", "cpu_frequency") && !Decoder::wants("power", "cpu_idle"));
}

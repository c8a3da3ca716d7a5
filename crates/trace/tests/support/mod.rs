//! Shared by the tests of perf.data: perf's own reading of a recording, and ours in the same form.
#![allow(dead_code, reason = "each test uses its part of it")]

pub mod forge;

use schedlab_base::{Context, CpuId, Event, Nanos, Payload, TaskState, Tid};
use schedlab_trace::Trace;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The path of a file under tests/data.
pub fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// One event as `perf script --ns -F tid,cpu,time,event,trace` prints it, with the names in it.
#[derive(Debug, PartialEq, Eq)]
pub struct Told {
    pub event: Event,
    /// The task that was running on the CPU.
    pub current: Tid,
    pub names: Vec<(Tid, String)>,
}

/// Parses the output of perf script. Other events are skipped.
pub fn perf_script(text: &str) -> Vec<Told> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<Told> {
    let (head, rest) = line.split_once(": ")?;
    let (name, text) = rest.trim_start().split_once(": ")?;
    let mut head = head.split_whitespace();
    let current: Tid = head.next()?.parse().ok()?;
    let cpu: CpuId = head.next()?.trim_matches(['[', ']']).parse().ok()?;
    let (seconds, nanos) = head.next()?.split_once('.')?;
    let time = seconds.parse::<Nanos>().ok()? * 1_000_000_000 + nanos.parse::<Nanos>().ok()?;
    let fields = Fields(text);
    let named = |comm: &str, tid: Tid| (tid, fields.text(comm));
    let (tid, prio) = (|| fields.number("pid") as Tid, || fields.number("prio") as i16);
    let target = || fields.number("target_cpu") as CpuId;
    let one = || vec![named("comm", tid())];
    let (what, names) = match name {
        "sched:sched_switch" => {
            let (prev, next) = (fields.number("prev_pid") as Tid, fields.number("next_pid") as Tid);
            let what = Payload::Switch {
                prev,
                prev_prio: fields.number("prev_prio") as i16,
                prev_state: TaskState::from_letter(fields.text("prev_state").as_bytes()[0]).unwrap(),
                next,
                next_prio: fields.number("next_prio") as i16,
            };
            (what, vec![named("prev_comm", prev), named("next_comm", next)])
        }
        "sched:sched_waking" => (
            Payload::Waking { tid: tid(), prio: prio(), target: target(), waker: current, context: Context::Unknown },
            one(),
        ),
        "sched:sched_wakeup" => (Payload::Wakeup { tid: tid(), prio: prio(), target: target() }, one()),
        "sched:sched_wakeup_new" => (Payload::WakeupNew { tid: tid(), prio: prio(), target: target() }, one()),
        "sched:sched_migrate_task" => {
            let (from, to) = (fields.number("orig_cpu") as CpuId, fields.number("dest_cpu") as CpuId);
            (Payload::Migrate { tid: tid(), prio: prio(), from, to }, one())
        }
        "sched:sched_process_fork" => {
            let child = fields.number("child_pid") as Tid;
            (Payload::Fork { parent: tid(), child }, vec![named("comm", tid()), named("child_comm", child)])
        }
        "sched:sched_process_exec" => (Payload::Exec { tid: tid(), old: fields.number("old_pid") as Tid }, vec![]),
        "sched:sched_process_exit" => (Payload::Exit { tid: tid(), prio: prio() }, one()),
        _ => return None,
    };
    Some(Told { event: Event { time, cpu, what }, current, names })
}

/// `key=value` pairs. Values that are names may contain spaces.
struct Fields<'a>(&'a str);

impl Fields<'_> {
    fn text(&self, key: &str) -> String {
        let start = match self.0.strip_prefix(&format!("{key}=")) {
            Some(rest) => rest,
            None => self.0.split_once(&format!(" {key}=")).unwrap_or_else(|| panic!("{key} in {}", self.0)).1,
        };
        // The value extends to the next ` key=`, or to the arrow of a switch.
        let words: Vec<&str> = start.split(' ').collect();
        let end = words.iter().position(|w| w.contains('=') || *w == "==>").unwrap_or(words.len());
        words[..end].join(" ")
    }

    fn number(&self, key: &str) -> i64 {
        let text = self.text(key);
        text.parse().unwrap_or_else(|_| panic!("{key}={text} in {}", self.0))
    }
}

/// Compares our reading with perf's: every event in perf's order, and every name at its time. The caller has removed
/// events from ours that perf's text cannot contain (those made from perf's records).
pub fn assert_agrees(ours: &Trace, perf: &[Told]) {
    for (index, (our, theirs)) in ours.events.iter().zip(perf).enumerate() {
        let mut expected = theirs.event;
        if let (Payload::Waking { waker, context, .. }, Payload::Waking { waker: known, context: recorded, .. }) =
            (&mut expected.what, our.what)
        {
            // perf does not print it.
            *context = recorded;
            // perf finds the waker by the sample's id, which is gone once a task is reaped. The event's own id remains.
            *waker = if *waker == -1 { known } else { *waker };
        }
        assert_eq!(our, &expected, "event {index}");
    }
    assert_eq!(ours.events.len(), perf.len());
    let mut names: HashMap<Tid, Vec<(Nanos, &str)>> = HashMap::new();
    for record in &ours.names {
        names.entry(record.tid).or_default().push((record.time, &record.comm));
    }
    for expected in perf {
        for (tid, name) in expected.names.iter().filter(|(tid, _)| *tid != 0) {
            let at = names.get(tid).and_then(|n| n.iter().rev().find(|(time, _)| *time <= expected.event.time));
            assert_eq!(at.map(|(_, name)| *name), Some(name.as_str()), "the name of {tid} at {}", expected.event.time);
        }
    }
}

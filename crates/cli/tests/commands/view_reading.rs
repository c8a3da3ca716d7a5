//! `schedlab view` while the trace is still being read or recorded.

use crate::view::{MS, PATIENCE, Served};
use crate::view_drawn::u8s;
use schedlab_base::{Event, Meta, Payload, Sink, TaskState};
use schedlab_trace::Writer;
use serde_json::Value;
use std::io::Write;
use std::time::{Duration, Instant};

/// Asks what is known of the first trace until `done` says that it is what is waited for.
fn until(served: &Served, done: impl Fn(&Value) -> bool) -> Value {
    let begun = Instant::now();
    loop {
        let now = served.json("api/traces")["traces"][0].clone();
        if done(&now) {
            return now;
        }
        assert!(begun.elapsed() < PATIENCE, "{now}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_trace_that_grows_is_shown_as_it_grows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let file = |name: &str| path.join(name);
    let append = |bytes: &[u8]| {
        let file = std::fs::OpenOptions::new().append(true).open(file("growing.arrows"));
        file.and_then(|mut file| file.write_all(bytes)).unwrap();
    };
    // Each flush ends a batch, as a recorder's does.
    let meta = Meta { source: "record".into(), running: vec![(0, 31)], ..Meta::default() };
    let mut writer = Writer::create(file("growing.arrows"), &meta).expect("written");
    writer.flush().unwrap();
    let served = Served::new(path, &["growing.arrows", "--follow"]);
    let empty = served.json("api/traces")["traces"][0].clone();
    assert_eq!((empty["growing"].as_bool(), empty["events"].as_u64()), (Some(true), Some(0)), "{empty}");
    assert_eq!(empty["remarks"], serde_json::json!([]), "it may yet get events");
    let switch = |ms: u64, prev, next| {
        let what = Payload::Switch { prev, prev_prio: 120, prev_state: TaskState::Runnable, next, next_prio: 120 };
        Event { time: 100 * MS + ms * MS, cpu: 0, what }
    };
    writer.events(&[switch(0, 31, 11), switch(20, 11, 12)]);
    writer.flush().unwrap();
    let first = until(&served, |now| now["events"] == 2);
    assert_eq!((first["end"].as_u64(), first["checked"].as_bool()), (Some(20 * MS), Some(false)));
    let rows = |served: &Served| -> Vec<Value> {
        let rows = served.json("api/0/rows?by=task");
        rows["rows"].as_array().unwrap().iter().map(|row| row["tid"].clone()).collect()
    };
    assert!(rows(&served).contains(&11.into()) && !rows(&served).contains(&99.into()));
    let tile = "api/0/tiles?by=cpu&level=18&tile=0&rows=0";
    assert_eq!(u8s(&served.arrow(tile).0, "state"), [2]);
    // The rest arrives in two parts, of which the first ends inside a message.
    let begun = std::fs::metadata(file("growing.arrows")).unwrap().len() as usize;
    writer.events(&[switch(40, 12, 99), switch(90, 99, 11)]);
    writer.finish().unwrap();
    let whole = std::fs::read(file("growing.arrows")).unwrap();
    std::fs::write(file("whole.arrows"), &whole).unwrap();
    drop(served);
    std::fs::write(file("growing.arrows"), &whole[..begun]).unwrap();
    let served = Served::new(path, &["growing.arrows", "--follow"]);
    until(&served, |now| now["events"] == 2);
    append(&whole[begun..begun + 100]);
    append(&whole[begun + 100..]);
    let after = until(&served, |now| now["checked"] == true);
    let complete = Served::new(path, &["whole.arrows"]);
    let whole = until(&complete, |now| now["checked"] == true);
    assert!(rows(&served).contains(&99.into()));
    assert_eq!(rows(&served), rows(&complete));
    assert_eq!(served.get(tile).body, complete.get(tile).body);
    for key in ["events", "end", "tasks", "growing", "reading", "remarks"] {
        assert_eq!(after[key], whole[key], "{key}");
    }
    assert_eq!((whole["end"].as_u64(), whole["growing"].as_bool()), (Some(90 * MS), Some(false)));
}

#[test]
fn a_large_trace_is_shown_while_it_is_read_and_up_to_a_damage() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large.arrows");
    let meta = Meta { source: "record".into(), running: vec![(0, 11)], ..Meta::default() };
    let mut writer = Writer::create(&file, &meta).expect("written");
    let switch = |at: u64| {
        let (prev, next) = if at.is_multiple_of(2) { (11, 12) } else { (12, 11) };
        let prev_state = TaskState::Runnable;
        Event {
            time: at * 1000,
            cpu: 0,
            what: Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 },
        }
    };
    writer.events(&(0..700_000).map(switch).collect::<Vec<_>>());
    writer.finish().unwrap();
    let served = Served::new(folder.path(), &["large.arrows"]);
    let whole = until(&served, |now| now["checked"] == true);
    assert_eq!((whole["events"].as_u64(), whole["reading"].as_bool()), (Some(700_000), Some(false)));
    drop(served);
    let mut bytes = std::fs::read(&file).unwrap();
    let end = bytes.len() - 1000;
    bytes[end..end + 500].fill(0x55);
    std::fs::write(&file, bytes).unwrap();
    // More was read than the page waits for, so it is there, with what could be read.
    let served = Served::new(folder.path(), &["large.arrows"]);
    let part = until(&served, |now| now["reading"] == false);
    let events = part["events"].as_u64().unwrap();
    assert!((500_000..700_000).contains(&events), "{events}");
    let remark = part["remarks"][0].as_str().unwrap();
    assert!(
        remark.starts_with("from here on the trace cannot be read: ") && remark.contains("large.arrows"),
        "{remark}"
    );
    assert_eq!(part["end"].as_u64(), Some((events - 1) * 1000), "nothing is known after the last event");
    assert_eq!(served.refused("api/0/lists?of=violations").0, 404);
    assert_eq!(served.interrupt().code(), Some(2));
}

//! `schedlab view`: what the page draws: tiles, strips, curves and marks.

use crate::view::{HOSTILE, MS, PATIENCE, Served, trace};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, UInt8Type, UInt16Type, UInt32Type};
use schedlab_base::{Event, Meta, Payload, Sink, TaskState};
use schedlab_trace::Writer;
use std::time::{Duration, Instant};

fn u32s(batch: &RecordBatch, name: &str) -> Vec<u32> {
    batch.column_by_name(name).unwrap().as_primitive::<UInt32Type>().values().to_vec()
}

fn u16s(batch: &RecordBatch, name: &str) -> Vec<u16> {
    batch.column_by_name(name).unwrap().as_primitive::<UInt16Type>().values().to_vec()
}

pub fn u8s(batch: &RecordBatch, name: &str) -> Vec<u8> {
    batch.column_by_name(name).unwrap().as_primitive::<UInt8Type>().values().to_vec()
}

fn f32s(batch: &RecordBatch, name: &str) -> Vec<f32> {
    batch.column_by_name(name).unwrap().as_primitive::<Float32Type>().values().to_vec()
}

fn f64s(batch: &RecordBatch, name: &str) -> Vec<f64> {
    batch.column_by_name(name).unwrap().as_primitive::<Float64Type>().values().to_vec()
}

#[test]
fn rows_and_tiles_show_what_ran_and_waited() {
    let folder = trace();
    let served = Served::new(folder.path(), &["t.arrows", "--from", "10ms"]);
    let traces = served.json("api/traces");
    let first = &traces["traces"][0];
    assert_eq!((first["end"].as_u64(), first["events"].as_u64()), (Some(100 * MS), Some(7)));
    assert_eq!(first["explainable"], false);
    assert_eq!(traces["view"]["from"].as_u64(), Some(10 * MS));
    let rows = served.json("api/0/rows?by=task");
    let labels: Vec<&str> = rows["rows"].as_array().unwrap().iter().map(|row| row["label"].as_str().unwrap()).collect();
    let hostile = format!("{HOSTILE} 12");
    assert_eq!(labels, ["/jobs", "batch 31", "/site/a", "web 11", "web 11", &hostile, "/site/b", "db 21"]);
    // All of it is one tile of 512 bins of 2^18 ns.
    let (tile, beside) = served.arrow("api/0/tiles?by=task&level=18&tile=0&rows=0-7");
    assert_eq!(beside["exact"], "1,4-5,7");
    let bin = f64::from(1 << 18);
    let state = u8s(&tile, "state");
    let (start, width) = (f32s(&tile, "start"), f32s(&tile, "width"));
    let spans: Vec<usize> = beside["spans"].split(',').map(|count| count.parse().unwrap()).collect();
    assert_eq!((spans.len(), spans.iter().sum::<usize>()), (8, tile.num_rows()));
    let of = |row: usize| -> Vec<(u8, u64, u64)> {
        let ms = |bins: f32| (f64::from(bins) * bin / 1e6).round() as u64;
        let before: usize = spans[..row].iter().sum();
        (before..before + spans[row]).map(|at| (state[at], ms(start[at]), ms(start[at] + width[at]))).collect()
    };
    assert_eq!(of(5), [(4, 0, 20), (3, 20, 50), (2, 50, 58), (4, 58, 100)]);
    assert_eq!(of(1), [(2, 0, 30), (3, 30, 58), (2, 58, 100)]);
    let (cpus, _) = served.arrow("api/0/tiles?by=cpu&level=18&tile=0&rows=0-1");
    assert_eq!(u8s(&cpus, "state"), [2, 2, 2, 2, 2, 1]);
    assert!(cpus.column_by_name("unknown").is_none(), "nothing is unknown");
    let (late, _) = served.arrow("api/0/tiles?by=cpu&level=18&tile=9&rows=0-1");
    assert_eq!(late.num_rows(), 0);
    // Two tiles are those of the two, one after the other.
    let [(one, of_one), (other, of_other), (both, beside)] =
        ["0", "1", "0-1"].map(|tiles| served.arrow(&format!("api/0/tiles?by=task&level=17&tile={tiles}&rows=0-7")));
    assert_eq!(beside["spans"], format!("{};{}", of_one["spans"], of_other["spans"]));
    assert_eq!(beside["exact"], "1,4-5,7;1,4-5,7");
    assert_eq!(u32s(&both, "task"), [u32s(&one, "task"), u32s(&other, "task")].concat());
    assert_eq!(f32s(&both, "start"), [f32s(&one, "start"), f32s(&other, "start")].concat());
    assert_eq!(u8s(&both, "running"), [u8s(&one, "running"), u8s(&other, "running")].concat());
    for bad in [
        "level=47&tile=0&rows=0",
        "level=x&tile=0&rows=0",
        "level=3&rows=0",
        "level=40&tile=99999999&rows=0",
        "level=1&tile=0",
        "level=1&tile=0&rows=4-2",
        "level=1&tile=5-4&rows=0",
        "level=1&tile=0-16&rows=0",
    ] {
        assert_eq!(served.refused(&format!("api/0/tiles?by=cpu&{bad}")).0, 400, "{bad}");
    }
}

#[test]
fn strips_marks_and_lists_agree_with_the_trace() {
    let folder = trace();
    let served = Served::new(folder.path(), &["t.arrows", "--threshold", "5ms"]);
    let begun = Instant::now();
    while served.json("api/traces")["traces"][0]["checked"] != true {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(10));
    }
    // From 20 to 58 ms somebody waits while CPU 1 is idle.
    let (strip, beside) = served.arrow("api/0/overview?bins=50");
    assert_eq!(beside["checked"], "true");
    let violation: f32 = f32s(&strip, "violation").iter().map(|share| share * 2.0).sum();
    assert!((violation - 38.0).abs() < 1e-3, "{violation}");
    assert!((f32s(&strip, "running").iter().sum::<f32>() * 2.0 - 100.0).abs() < 1e-3);
    let (marks, beside) = served.arrow("api/0/marks?kind=wake");
    assert_eq!((marks.num_rows(), beside["count"].as_str(), beside["more"].as_str()), (3, "3", "false"));
    assert_eq!(f64s(&marks, "time"), [20e6, 25e6, 34e6]);
    assert_eq!(served.arrow("api/0/marks?kind=violation").0.num_rows(), 1);
    assert_eq!(served.arrow("api/0/marks?kind=wake&limit=2").1["more"], "true");
    let waits = served.json("api/0/lists?of=waits");
    let first = &waits["items"][0];
    assert_eq!((first["start"].as_u64(), first["duration"].as_u64()), (Some(20 * MS), Some(30 * MS)));
    assert_eq!(first["task"]["tid"], 12);
    let violations = served.json("api/0/lists?of=violations");
    assert_eq!(violations["items"][0]["idle_cpu"], 1);
    assert_eq!(violations["items"][0]["duration"].as_u64(), Some(38 * MS));
    let (heat, beside) = served.arrow("api/0/heat?of=queue&level=18&tile=0");
    assert_eq!((beside["highest"].as_str(), beside["rows"].as_str(), heat.num_rows()), ("4", "2", 2 * 512));
    // From 34 to 38 ms four tasks are on CPU 0, and one before; after the trace's 382 bins there is nothing, and CPU 1
    // is idle.
    let cells = u16s(&heat, "cell");
    assert_eq!((cells[0], cells[135], cells[383]), (16384, 65534, 0));
    assert!(cells[512..].iter().all(|cell| *cell == 0));
    // Two tiles are those of the two, one after the other.
    let values = |tiles: &str| {
        let (heat, beside) = served.arrow(&format!("api/0/heat?of=queue&level=17&tile={tiles}"));
        let highest: f64 = beside["highest"].parse().unwrap();
        u16s(&heat, "cell").into_iter().map(|cell| (f64::from(cell) / 65534.0 * highest * 1e3).round()).collect()
    };
    let (both, one, other): (Vec<f64>, Vec<f64>, Vec<f64>) = (values("0-1"), values("0"), values("1"));
    assert_eq!(both, [one, other].concat());
    assert_eq!(served.refused("api/0/heat?of=memory&level=18&tile=0").0, 404);
    // Of the bins of 10 ms, two have tasks that get the CPU after a wake-up: 21 at 30 ms, 5 ms after it, and 11 at
    // 38 ms, 4 ms after it; 12 at 50 ms, 30 ms after it. 31 comes back at 58 ms without one. By nearest rank, the 99th
    // percentile of 4 and 5 ms is 5 ms, and the 50th is 4 ms.
    for (name, values) in [("latency_p99", [5e6, 30e6]), ("latency_p50", [4e6, 30e6])] {
        let (curve, beside) = served.arrow(&format!("api/0/counters?name={name}&bins=10"));
        assert_eq!((u32s(&curve, "bin"), f64s(&curve, "value")), (vec![3, 5], values.to_vec()), "{name}");
        assert_eq!(beside["unit"], "ns");
    }
    assert_eq!(served.refused("api/0/counters?name=frequency").0, 404);
}

/// CPU 0 switches every 10 us, CPU 1 never, until 61.44 ms: at level 17, tile 0 has 512 bins of 131 us, 468.75 of which
/// are used.
#[test]
fn rows_of_one_span_a_bin_do_not_say_where_each_is() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let end = 61_440_000;
    let meta = Meta { source: "test".into(), running: vec![(0, 11), (1, 0)], span: Some((0, end)), ..Meta::default() };
    let mut writer = Writer::create(folder.path().join("t.arrows"), &meta).expect("written");
    let switch = |at: u64| {
        let (prev, next) = if at.is_multiple_of(2) { (11, 12) } else { (12, 11) };
        let prev_state = TaskState::Runnable;
        let what = Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 };
        Event { time: (at + 1) * 10_000, cpu: 0, what }
    };
    writer.events(&(0..6_000).map(switch).collect::<Vec<_>>());
    writer.finish().expect("written");
    let served = Served::new(folder.path(), &["t.arrows"]);
    let (bins, beside) = served.arrow("api/0/tiles?by=cpu&level=17&tile=0&rows=0");
    assert!(bins.column_by_name("start").is_none() && bins.column_by_name("width").is_none());
    assert_eq!((&*beside["spans"], &*beside["exact"], &*beside["last"]), ("469", "", "0.75"));
    let (both, beside) = served.arrow("api/0/tiles?by=cpu&level=17&tile=0&rows=0-1");
    assert_eq!((&*beside["spans"], &*beside["exact"], beside.get("last")), ("469,1", "1", None));
    assert_eq!(f32s(&both, "start")[..469], (0..469).map(|bin| bin as f32).collect::<Vec<_>>());
    assert_eq!((f32s(&both, "width")[..468].to_vec(), f32s(&both, "width")[468]), (vec![1.0; 468], 0.75));
    assert_eq!(u32s(&bins, "task"), u32s(&both, "task")[..469]);
    // Bins of half of that: the second tile ends in the middle of one.
    let (_, beside) = served.arrow("api/0/tiles?by=cpu&level=16&tile=0-1&rows=0");
    assert_eq!((&*beside["spans"], &*beside["last"]), ("512;426", "1;0.5"));
}

/// CPU 0 has 1 GHz from 10 ms on and 2 GHz from 30 ms on, CPU 1 has 4 GHz from 20 ms on.
#[test]
fn frequencies_are_a_curve_where_they_were_recorded() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let meta =
        Meta { source: "test".into(), running: vec![(0, 0), (1, 0)], span: Some((0, 50 * MS)), ..Meta::default() };
    let mut writer = Writer::create(folder.path().join("t.arrows"), &meta).expect("written");
    let from = |ms: u64, target, khz| Event { time: ms * MS, cpu: 0, what: Payload::Frequency { target, khz } };
    writer.events(&[from(10, 0, 1_000_000), from(20, 1, 4_000_000), from(30, 0, 2_000_000)]);
    writer.finish().expect("written");
    let served = Served::new(folder.path(), &["t.arrows"]);
    assert_eq!(served.json("api/traces")["traces"][0]["frequency"], true);
    let (curve, beside) = served.arrow("api/0/counters?name=frequency&bins=5");
    assert_eq!(u32s(&curve, "bin"), [1, 2, 3, 4]);
    assert_eq!(f64s(&curve, "value"), [1e6, 2.5e6, 3e6, 3e6]);
    assert_eq!(beside["unit"], "kHz");
    let (curve, _) = served.arrow("api/0/counters?name=frequency&bins=1");
    assert_eq!(f64s(&curve, "value"), [(20.0 * 1e6 + 20.0 * 2e6 + 30.0 * 4e6) / 70.0]);
}

//! `schedlab view`: the server, as a browser and as others ask it.

use crate::support::{ok, schedlab};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_ipc::reader::StreamReader;
use schedlab_base::{CpuPlace, Event, Meta, NameRecord, Payload, Sink, TaskState};
use schedlab_trace::Writer;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

pub const MS: u64 = 1_000_000;

/// Nothing here takes so long.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A name that a page must not take for its own text.
const HOSTILE: &str = "</script><img src=x onerror=alert(1)>";

/// Two CPUs, of which the second is idle. Task 12 waits from 20 to 50 ms behind 31, 21 and 11.
fn write(path: &Path) {
    let place = |cpu| CpuPlace { cpu, core: cpu, capacity: 1024, ..CpuPlace::default() };
    let meta = Meta {
        source: "test".into(),
        kernel: "6.1".into(),
        cpus: vec![place(0), place(1)],
        running: vec![(0, 31), (1, 0)],
        span: Some((0, 100 * MS)),
        ..Meta::default()
    };
    let mut writer = Writer::create(path, &meta).expect("written");
    for (tid, tgid, comm, cgroup) in [
        (11, 11, "web", "/site/a"),
        (12, 11, HOSTILE, "/site/a"),
        (21, 21, "db", "/site/b"),
        (31, 31, "batch", "/jobs"),
    ] {
        let (tgid, comm, cgroup) = (Some(tgid), comm.to_owned(), Some(cgroup.to_owned()));
        writer.name(&NameRecord { time: 0, tid, tgid, comm, cgroup });
    }
    let wake = |ms: u64, tid| Event { time: ms * MS, cpu: 0, what: Payload::Wakeup { tid, prio: 120, target: 0 } };
    let switch = |ms: u64, prev, prev_state, next| {
        let what = Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 };
        Event { time: ms * MS, cpu: 0, what }
    };
    use TaskState::{Runnable as R, Sleeping as S};
    writer.events(&[
        wake(20, 12),
        wake(25, 21),
        switch(30, 31, R, 21),
        wake(34, 11),
        switch(38, 21, S, 11),
        switch(50, 11, S, 12),
        switch(58, 12, S, 31),
    ]);
    writer.finish().expect("written");
}

pub fn trace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(&folder.path().join("t.arrows"));
    folder
}

/// A server that runs.
pub struct Served {
    child: Child,
    port: String,
    token: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An answer.
pub struct Answer {
    status: u16,
    head: String,
    pub body: Vec<u8>,
}

impl Served {
    pub fn new(folder: &Path, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_schedlab"))
            .current_dir(folder)
            .args(["view", "--no-open"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).expect("an address");
        let rest = address.trim().strip_prefix("http://127.0.0.1:");
        let Some((port, token)) = rest.and_then(|rest| rest.strip_suffix('/')).and_then(|rest| rest.split_once('/'))
        else {
            let mut text = String::new();
            child.stderr.take().unwrap().read_to_string(&mut text).expect("text");
            panic!("no address: {address}{text}");
        };
        Self { port: port.to_owned(), token: token.to_owned(), child }
    }

    /// Sends a request as it is.
    fn send(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", self.port)).expect("the server listens");
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.as_bytes()).expect("sent");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("answered");
        let end = bytes.windows(4).position(|at| at == b"\r\n\r\n").expect("a head");
        let head = String::from_utf8(bytes[..end].to_vec()).expect("text").to_lowercase();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map(str::to_owned);
        let body = bytes[end + 4..].to_vec();
        assert_eq!(length.and_then(|length| length.parse().ok()), Some(body.len()), "{head}");
        Answer { status, head, body }
    }

    pub fn get(&self, path: &str) -> Answer {
        let (port, token) = (&self.port, &self.token);
        self.send(&format!("GET /{token}/{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"))
    }

    pub fn json(&self, path: &str) -> Value {
        let Answer { status, head, body } = self.get(path);
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        assert!(head.contains("content-type: application/json"), "{head}");
        serde_json::from_slice(&body).expect("a document")
    }

    /// The message of a question that is refused.
    pub fn refused(&self, path: &str) -> (u16, String) {
        let Answer { status, body, .. } = self.get(path);
        let document: Value = serde_json::from_slice(&body).expect("a document");
        (status, document["error"].as_str().expect("a sentence").to_owned())
    }

    pub fn arrow(&self, path: &str) -> (RecordBatch, BTreeMap<String, String>) {
        let Answer { status, body, .. } = self.get(path);
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        let mut reader = StreamReader::try_new(&body[..], None).expect("a stream");
        let beside = reader.schema().metadata().iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        let batch = reader.next().expect("a batch").expect("a whole one");
        assert!(reader.next().is_none());
        (batch, beside)
    }

    /// Ends it as Ctrl-C does.
    pub fn interrupt(mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill runs").success());
        self.child.wait().expect("it ends")
    }
}

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

pub fn message(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let out = schedlab(folder, args);
    assert!(out.stdout.is_empty(), "{args:?}");
    let text = String::from_utf8(out.stderr).expect("text");
    assert_eq!(text.lines().count(), 1, "{text}");
    (out.status.code(), text)
}

#[test]
fn nobody_but_the_own_page_gets_anything() {
    let folder = trace();
    let served = Served::new(folder.path(), &["t.arrows"]);
    let (port, token) = (&served.port, &served.token);
    let good = format!("/{token}/api/traces");
    let ask = |method: &str, path: &str, headers: &str| {
        served.send(&format!("{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n"))
    };
    let own = format!("Host: 127.0.0.1:{port}\r\n");
    let local = format!("Host: localhost:{port}\r\nOrigin: http://localhost:{port}\r\nSec-Fetch-Site: same-origin\r\n");
    for headers in [&own, &local] {
        let answer = ask("GET", &good, headers);
        assert_eq!(answer.status, 200);
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; \
             img-src 'self' blob: data:;",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cache-control: no-store",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(answer.head.contains(header), "{}", answer.head);
        }
        assert!(!answer.head.contains("unsafe") && !answer.head.contains("access-control"));
    }
    let wrong = format!("/{}/api/traces", "0".repeat(token.len()));
    let hosts = ["evil.example".to_owned(), format!("evil.example:{port}"), "127.0.0.1".into(), "127.0.0.1:1".into()];
    let mut refused: Vec<(String, String)> = hosts.iter().map(|h| (good.clone(), format!("Host: {h}\r\n"))).collect();
    for path in [&wrong, "/", "/api/traces", "/index.html", &good[..good.len() - 11], "/../etc/passwd"] {
        refused.push((path.to_owned(), own.clone()));
    }
    for more in
        ["Origin: http://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"]
    {
        refused.push((good.clone(), format!("{own}{more}\r\n")));
    }
    // A name that was bound to this address anew, a host that only begins like this one, two hosts.
    for hosts in ["Host: 127.0.0.1.evil.example:PORT\r\n", "Host: 127.0.0.1:PORT\r\nHost: evil.example:PORT\r\n"] {
        refused.push((good.clone(), hosts.replace("PORT", port)));
    }
    assert_ne!(ask("GET", &good, "").status, 200, "no host");
    let asks = format!("{own}Origin: http://evil.example\r\nAccess-Control-Request-Method: GET\r\n");
    let preflight = ask("OPTIONS", &good, &asks);
    assert!(preflight.status == 403 && !preflight.head.contains("access-control"), "{}", preflight.head);
    for (path, headers) in refused {
        let answer = ask("GET", &path, &headers);
        assert_eq!((answer.status, answer.body.len()), (403, 0), "{path} {headers}");
    }
    assert_eq!(ask("POST", &good, &own).status, 405);
    assert_eq!(served.refused("api/7/rows"), (404, "there is no trace 7".into()));
    for path in ["api/0/secrets", "../t.arrows", "t.arrows", "api/0/rows/..", "%2e%2e/t.arrows", "api"] {
        assert_eq!(served.get(path).status, 404, "{path}");
    }
}

#[test]
fn ctrl_c_ends_it_and_a_port_is_taken_once() {
    let folder = trace();
    let served = Served::new(folder.path(), &["t.arrows"]);
    let (status, text) = message(folder.path(), &["view", "t.arrows", "--no-open", "--port", &served.port]);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("--port") && text.contains("is in use"), "{text}");
    assert_eq!(served.interrupt().code(), Some(0));
}

#[test]
fn what_is_no_trace_is_refused_in_one_message() {
    let folder = trace();
    let at = |name: &str| folder.path().join(name);
    let whole = std::fs::read(at("t.arrows")).unwrap();
    std::fs::write(at("text"), "no trace").unwrap();
    std::fs::write(at("nothing"), "").unwrap();
    let mut damaged = whole.clone();
    let middle = damaged.len() - 200;
    damaged[middle..middle + 100].fill(0x55);
    std::fs::write(at("damaged"), damaged).unwrap();
    let empty = Writer::create(at("empty"), &Meta::default()).unwrap();
    empty.finish().unwrap();
    for (name, what) in [
        ("missing", "cannot be read"),
        ("text", "no trace of a known format"),
        ("nothing", "the file is empty"),
        ("damaged", "damaged"),
        ("empty", "has no events"),
    ] {
        let (status, text) = message(folder.path(), &["view", "--no-open", name]);
        assert!(status == Some(2) && text.contains(what) && text.contains(name), "{text}");
    }
    // What a killed recorder left is shown, and says so.
    std::fs::write(at("cut"), &whole[..whole.len() - 8]).unwrap();
    let served = Served::new(folder.path(), &["cut"]);
    let traces = served.json("api/traces");
    assert!(traces["traces"][0]["remarks"][0].as_str().unwrap().starts_with("the file was cut"), "{traces}");
    let (status, text) = message(folder.path(), &["view", "t.arrows", "--from", "5ms", "--to", "5ms"]);
    assert!(status == Some(2) && text.contains("--to"), "{text}");
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

#[test]
fn a_wait_is_explained_as_delays_explains_it() {
    let folder = trace();
    let served = Served::new(folder.path(), &["t.arrows"]);
    let rows = served.json("api/0/rows?by=task");
    let row = rows["rows"].as_array().unwrap().iter().find(|row| row["tid"] == 12).unwrap().clone();
    let wait = served.json(&format!("api/0/wait?task={}&time={}", row["task"], 33 * MS));
    let delays: Value =
        serde_json::from_str(&ok(folder.path(), &["delays", "t.arrows", "--worst", "1", "--json"])).unwrap();
    let known = &delays["waits"][0];
    let ns = |us: &Value| (us.as_f64().unwrap() * 1e3) as u64;
    assert_eq!(wait["from"].as_u64(), Some(ns(&known["start_us"])));
    assert_eq!(wait["to"].as_u64(), Some(ns(&known["end_us"])));
    assert_eq!(wait["idle_allowed"].as_u64(), Some(ns(&known["idle_allowed_us"])));
    let culprits = |of: &Value, tid: &dyn Fn(&Value) -> Value, run: &dyn Fn(&Value) -> u64| -> Vec<(Value, u64)> {
        of["culprits"].as_array().unwrap().iter().map(|c| (tid(c), run(c))).collect()
    };
    let own = culprits(&wait, &|c| c["task"]["tid"].clone(), &|c| c["run"].as_u64().unwrap());
    assert_eq!(own, culprits(known, &|c| c["tid"].clone(), &|c| ns(&c["run_us"])));
    assert!(wait["why"].as_str().unwrap().contains("a CPU was idle on which it was allowed"), "{wait}");
    let at = served.json(&format!("api/0/at?time={}&cpu=0", 35 * MS));
    assert_eq!((at["state"].as_u64(), at["task"]["tid"].as_i64(), at["queue"].as_u64()), (Some(2), Some(21), Some(4)));
    let at = served.json(&format!("api/0/at?time={}&task={}", 60 * MS, row["task"]));
    assert_eq!((at["state"].as_u64(), at["task"]["name"].as_str()), (Some(4), Some(HOSTILE)));
    assert_eq!(served.refused(&format!("api/0/wait?task={}&time=0", row["task"])).0, 404);
    let step = served.json(&format!("api/0/step?task={}&time=0&state=2", row["task"]));
    assert_eq!(step["time"].as_u64(), Some(50 * MS));
    let found = served.json("api/0/find?q=onerror");
    assert_eq!(found["rows"][0]["task"]["tid"], 12);
    assert_eq!(served.json("api/0/wakers")["edges"].as_array().unwrap().len(), 3);
}

#[test]
fn numbers_are_those_of_the_verbs() {
    let folder = trace();
    let path = folder.path();
    ok(path, &["sim", "-k", "linux-6.12", "-m", "2", "-w", "li:tasks=5", "-d", "200ms", "-o", "s.arrows"]);
    let file = path.join("s.arrows");
    let served = Served::new(path, &["s.arrows", "t.arrows"]);
    let verb = |args: &[&str]| -> Value { serde_json::from_str(&ok(path, args)).expect("one document") };
    for (asked, args) in [
        ("api/0/stats", &["stats", "s.arrows"][..]),
        ("api/0/stats?from=20000000&to=50000000", &["stats", "s.arrows", "--from", "20ms", "--to", "50ms"]),
        ("api/0/stats?names=li*", &["stats", "s.arrows", "--task", "li*"]),
        ("api/0/delays?from=20000000", &["delays", "s.arrows", "--from", "20ms"]),
        ("api/1/stats?pids=11", &["stats", "t.arrows", "--pid", "11"]),
    ] {
        if asked.contains("names=")
            && verb(&["stats", "s.arrows", "--json"])["tasks"][0]["name"].as_str().is_none_or(|n| !n.starts_with("li"))
        {
            continue;
        }
        assert_eq!(served.json(asked), verb(&[args, &["--json"]].concat()), "{asked}");
    }
    let check = schedlab(path, &["check", "t.arrows", "--json"]);
    assert_eq!(served.json("api/1/check"), serde_json::from_slice::<Value>(&check.stdout).unwrap());
    assert_eq!(served.json("api/diff?a=1&b=0")["b"], verb(&["diff", "t.arrows", "s.arrows", "--json"])["b"]);
    // The decision and the queue are those that the run itself shows when it is made again.
    let text = file.to_str().unwrap();
    let again = verb(&["sim", "--again", text, "--explain", "..", "--queues-at", "100ms", "--json"]);
    let own: Vec<&Value> = again["decisions"].as_array().unwrap().iter().filter(|d| d["cpu"] == 1).collect();
    let before: Vec<&&Value> = own.iter().filter(|d| d["time_us"].as_f64().unwrap() <= 100e3).collect();
    let explained = served.json(&format!("api/0/explain?cpu=1&time={}", 100 * MS));
    let (decision, last) = (&explained["decision"], before[before.len() - 1]);
    for key in ["choice", "who", "over", "rule", "numbers"] {
        assert_eq!(decision[key], last[key], "{key}");
    }
    let queue = again["queues"].as_array().unwrap().iter().find(|q| q["cpu"] == 1).unwrap();
    assert_eq!(explained["queue"], queue["queue"]);
    let after = served.json(&format!("api/0/explain?cpu=1&time={}", explained["after"]));
    assert_eq!(after["decision"]["time"], explained["after"]);
    assert!(after["queue"].is_object() || after["queue"].is_array(), "{after}");
    assert_eq!(served.refused("api/1/explain?cpu=0&time=0").0, 404);
}

#[test]
fn one_file_has_the_page_and_the_data() {
    let folder = trace();
    let out = schedlab(folder.path(), &["view", "t.arrows", "-o", "view.html"]);
    let text = String::from_utf8(out.stderr).unwrap();
    if out.status.code() == Some(4) {
        assert!(text.contains("built without the page"), "{text}");
        return;
    }
    assert!(out.status.success(), "{text}");
    let page = std::fs::read_to_string(folder.path().join("view.html")).unwrap();
    let data = page.split_once("id=\"bundle\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(data["traces"]["traces"][0]["events"], 7);
    assert!(data["arrow"]["0/task"].is_string() && data["responses"]["api/0/stats"].is_object());
    assert!(page.contains("script-src 'sha256-") && !page.contains(HOSTILE));
    let (status, text) = message(folder.path(), &["view", "t.arrows", "-o", "view.html"]);
    assert!(status == Some(2) && text.contains("exists already"), "{text}");
}

//! `schedlab view`: the server, as a browser and as others ask it.

use crate::support::{ok, schedlab};
use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use schedlab_base::{CpuPlace, Event, Meta, NameRecord, Payload, Sink, TaskState};
use schedlab_trace::Writer;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

pub const MS: u64 = 1_000_000;

/// Nothing here takes so long.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A name that a page must not take for its own text.
pub const HOSTILE: &str = "</script><img src=x onerror=alert(1)>";

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
    std::fs::write(at("torn"), &whole[..whole.len() / 2]).unwrap();
    let empty = Writer::create(at("empty"), &Meta::default()).unwrap();
    empty.finish().unwrap();
    for (name, what) in [
        ("missing", "cannot be read"),
        ("text", "no trace of a known format"),
        ("nothing", "the file is empty"),
        ("damaged", "damaged"),
        ("torn", "nothing is left of the trace: the file ends in the middle of a batch"),
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
    for how in [["-o", "later.html"], ["--port", "0"]] {
        let args = [&["view", "t.arrows", "--from", "5s"], &how[..]].concat();
        let (status, text) = message(folder.path(), &args);
        assert!(status == Some(2) && text.contains("--from: the trace ends before that"), "{text}");
    }
    assert!(!folder.path().join("later.html").exists());
    let page = std::fs::read_to_string(folder.path().join("view.html")).unwrap();
    let data = page.split_once("id=\"bundle\">").unwrap().1.split_once("</script>").unwrap().0;
    let data: Value = serde_json::from_str(data).expect("JSON");
    assert_eq!(data["traces"]["traces"][0]["events"], 7);
    assert!(data["arrow"]["0/task"].is_string() && data["responses"]["api/0/stats"].is_object());
    assert!(page.contains("script-src 'sha256-") && !page.contains(HOSTILE));
    let (status, text) = message(folder.path(), &["view", "t.arrows", "-o", "view.html"]);
    assert!(status == Some(2) && text.contains("exists already"), "{text}");
}

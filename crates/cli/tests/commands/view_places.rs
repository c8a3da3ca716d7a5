//! `schedlab view` opens where something is to be seen: at the place that explains a measure, and at violations.

use crate::support::{ok, schedlab};
use crate::view::{MS, PATIENCE, Served, message, trace};
use serde_json::Value;
use std::time::{Duration, Instant};

#[test]
fn it_opens_at_the_place_that_explains_a_measure() {
    let folder = trace();
    let folder = folder.path();
    let shown = |args: &[&str]| -> Option<Value> {
        let out = schedlab(folder, &[&["--json", "view"], args, &["-o", "v.html", "--force"]].concat());
        assert!(matches!(out.status.code(), Some(0 | 4)), "{}", String::from_utf8_lossy(&out.stderr));
        out.status.success().then(|| serde_json::from_slice::<Value>(&out.stdout).expect("JSON")["look"].clone())
    };
    let Some(look) = shown(&["t.arrows", "--worst", "wait_s['web']"]) else { return };
    // The wait of 11 from 34 to 38 ms, with half of its length around it.
    assert_eq!((&look["pick"], &look["from_ns"]), (&"task:11@36000us".into(), &(32 * MS).into()));
    let look = shown(&["t.arrows", "--worst", "wasted_s"]).unwrap();
    assert_eq!((&look["pick"], &look["to_ns"]), (&"cpu:1@39000us".into(), &(77 * MS).into()));
    // Of two traces, the one where it is worse: in the other, a task waits for 2 us.
    ok(folder, &["sim", "-k", "linux-6.12", "-m", "2", "-w", "li:tasks=1", "-d", "90ms", "-o", "calm.arrows"]);
    let look = shown(&["calm.arrows", "t.arrows", "--worst", "wait_s"]).unwrap();
    assert_eq!((&look["pick"], &look["trace"]), (&"2/task:12@35000us".into(), &"t.arrows".into()));
    assert!(look["command"].as_str().unwrap().starts_with("schedlab view calm.arrows t.arrows --from "), "{look}");
    let page = std::fs::read_to_string(folder.join("v.html")).unwrap();
    assert!(page.contains("\"trace\":1"), "the page opens in the second trace");
    for (args, part) in [
        (&["t.arrows", "--worst", "wiat_s"][..], "wiat_s"),
        (&["t.arrows", "--pick", "2/cpu:1@30ms"], "no trace number 2"),
    ] {
        let (status, text) = message(folder, &[&["view"], args, &["--no-open"]].concat());
        assert!(status == Some(2) && text.contains(part), "{text}");
    }
}

#[test]
fn short_violations_are_listed_where_no_long_ones_are() {
    let folder = trace();
    for (args, threshold) in [(&[][..], 1), (&["--threshold", "50ms"][..], 50)] {
        let served = Served::new(folder.path(), &[&["t.arrows"], args].concat());
        let begun = Instant::now();
        while served.json("api/traces")["traces"][0]["checked"] != true {
            assert!(begun.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(10));
        }
        // One lasts 38 ms.
        let violations = served.json("api/0/lists?of=violations");
        assert_eq!(violations["threshold"].as_u64(), Some(threshold * MS));
        assert_eq!(violations["items"].as_array().map(Vec::len), Some(usize::from(threshold < 38)), "{violations}");
    }
}

//! Real kernels in guests. Where QEMU or a kernel is missing and cannot be had, the tests say so and pass.

use schedlab_base::{Event, Payload};
use schedlab_trace::Trace;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const SCHEDLAB: &str = env!("CARGO_BIN_EXE_schedlab");
/// How long a guest may take to boot while the machine is busy with other tests.
const PATIENCE: &str = "200s";

/// The folder with the fetched kernel, or why there is none.
fn cache() -> Option<&'static Path> {
    static CACHE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let cache = CACHE.get_or_init(|| {
        if !cfg!(target_arch = "x86_64") {
            return Err("guests need an x86-64 host".to_owned());
        }
        if Command::new("qemu-system-x86_64").arg("--version").output().is_err() {
            return Err("there is no QEMU (Debian: apt-get install qemu-system-x86)".to_owned());
        }
        // Kept with the build, so that it is fetched once.
        let folder = Path::new(SCHEDLAB).parent().unwrap().join("guest-tests");
        let fetched = command(&folder).args(["vm", "fetch", "debian-6.12"]).output().unwrap();
        match fetched.status.success() {
            true => Ok(folder),
            false => Err(String::from_utf8_lossy(&fetched.stderr).trim().to_owned()),
        }
    });
    cache.as_ref().map_err(|why| eprintln!("skipped: {why}")).ok().map(PathBuf::as_path)
}

fn command(cache: &Path) -> Command {
    let mut command = Command::new(SCHEDLAB);
    command.env("XDG_CACHE_HOME", cache).stdin(Stdio::null());
    command
}

fn run(cache: &Path, args: &[&str]) -> Output {
    command(cache).args(args).output().expect("the binary runs")
}

fn ok(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn message(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text.lines().last().unwrap_or_default();
    last.trim_start_matches("schedlab: ").to_owned()
}

#[test]
fn two_deterministic_runs_give_the_same_bytes_under_the_kernel_s_own_tunables() {
    let Some(cache) = cache() else { return };
    let dir = tempfile::tempdir().unwrap();
    let workload = dir.path().join("w.json");
    let text = r#"{"tasks": {"hog": {"instance": 3, "loop": -1, "run": 1000},
                             "light": {"loop": -1, "run": 500, "sleep": 9500}}}"#;
    fs::write(&workload, text).unwrap();
    let trace = |name: &str| {
        let path = dir.path().join(name);
        let options = ["--on", "vm:debian-6.12", "--machine", "2", "--deterministic", "--duration", "500ms", "--json"];
        let files = [workload.to_str().unwrap(), "--output", path.to_str().unwrap(), "--boot-limit", PATIENCE];
        let set = ["--set", "base_slice_ns=9000000", "--set", "RUN_TO_PARITY=0"];
        let printed = ok(run(cache, &[&["exec"], &files[..], &options[..], &set[..]].concat()));
        (fs::read(path).unwrap(), serde_json::from_str::<Value>(&printed).unwrap())
    };
    let ((first, document), (second, _)) = (trace("1.arrows"), trace("2.arrows"));
    if first != second {
        // Seen once in some 200 runs, on a machine that could not be asked why. Two of three must agree.
        let difference = first_difference(dir.path(), "1.arrows", "2.arrows");
        eprintln!("two runs differ: {difference}");
        let (third, _) = trace("3.arrows");
        assert!([first, second].contains(&third), "no two of three runs agree; the first two: {difference}");
    }
    let meta = schedlab_trace::open(dir.path().join("1.arrows")).unwrap().meta().clone();
    assert!(meta.kernel.starts_with("6.12."), "{}", meta.kernel);
    assert_eq!((meta.machine.as_str(), meta.cpus.len()), ("2", 2));
    assert_eq!(meta.target.unwrap().command.unwrap(), "w", "a workload has its name inside, too");
    assert_eq!(meta.notes["set"], "base_slice_ns=9000000 RUN_TO_PARITY=0");
    let tasks = document["tasks"].as_array().unwrap();
    let run_us = |name: &str| tasks.iter().find(|task| task["name"] == name).unwrap()["run_us"].as_f64().unwrap();
    let hogs: f64 = (0..3).map(|n| run_us(&format!("hog-{n}"))).sum();
    assert!((600e3..1000e3).contains(&hogs), "two CPUs for half a second: {hogs} us");
    assert!((15e3..45e3).contains(&run_us("light")), "a twentieth of a CPU: {} us", run_us("light"));
}

#[test]
fn in_a_guest_the_recorder_waits_until_the_tasks_have_ended() {
    let Some(cache) = cache() else { return };
    let dir = tempfile::tempdir().unwrap();
    let workload = dir.path().join("w.json");
    // Which of them met the supervisor on its way was chance.
    for workers in [48, 64, 72] {
        let text = format!(r#"{{"tasks": {{"worker": {{"instance": {workers}, "loop": 1, "run": 10000}}}}}}"#);
        fs::write(&workload, text).unwrap();
        let path = dir.path().join("t.arrows");
        let files = [workload.to_str().unwrap(), "--output", path.to_str().unwrap(), "--force"];
        let options = ["--on", "vm:debian-6.12", "--deterministic", "--boot-limit", PATIENCE];
        ok(run(cache, &[&["exec"], &files[..], &options[..]].concat()));
        let Ran { theirs, meanwhile, afterwards } = Ran::of(&schedlab_trace::read_all(&path).unwrap());
        // The recorder once wrote what it knew of each task while they ran: that took a fifth of their time.
        assert!(
            theirs > workers * 9_375_000 && meanwhile < theirs / 50,
            "{workers} workers: {meanwhile} ns beside {theirs} ns"
        );
        // The supervisor, when it had the highest priority while it reaped, kept the last thread from its end, and
        // waited 0.95 s for that. What the kernel does to clear the threads away may be on its account, up to 15 ms.
        assert!(afterwards < 100_000_000, "{workers} workers: {afterwards} ns when they had ended");
    }
}

/// The CPU time of workers, in ns, that of Schedlab's own tasks until these had nearly all of theirs, and that of its
/// supervisor from then on.
#[derive(Default)]
struct Ran {
    theirs: u64,
    meanwhile: u64,
    afterwards: u64,
}

impl Ran {
    fn of(trace: &Trace) -> Self {
        let names: BTreeMap<_, _> = trace.names.iter().map(|record| (record.tid, record.comm.as_str())).collect();
        let mut since = BTreeMap::new();
        let stint = |event: &Event| {
            let Payload::Switch { prev, next, .. } = event.what else { return None };
            let (_, since) = since.insert(event.cpu, (next, event.time)).filter(|(tid, _)| *tid == prev)?;
            Some((*names.get(&prev)?, event.time - since))
        };
        let stints: Vec<(&str, u64)> = trace.events.iter().filter_map(stint).collect();
        let is_worker = |name: &str| name.starts_with("worker");
        let all: u64 = stints.iter().filter(|(name, _)| is_worker(name)).map(|(_, ran)| ran).sum();
        let mut ran = Self::default();
        for (name, took) in stints {
            match name {
                _ if is_worker(name) => ran.theirs += took,
                "schedlab" | "schedlab-super" if ran.theirs < all / 100 * 98 => ran.meanwhile += took,
                "schedlab-super" => ran.afterwards += took,
                _ => {}
            }
        }
        ran
    }
}

/// Where two traces differ first: the metadata, the tasks, or an event.
fn first_difference(dir: &Path, one: &str, other: &str) -> String {
    let lines = |name: &str| {
        let trace = schedlab_trace::read_all(dir.join(name)).unwrap();
        let events = trace.events.iter().map(|event| format!("{event:?}"));
        let rest = [format!("{:?}", trace.meta), format!("{:?}", trace.names), format!("{:?}", trace.tasks)];
        rest.into_iter().chain(events).collect::<Vec<_>>()
    };
    let (one, other) = (lines(one), lines(other));
    let equal = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    format!("{} and {} lines, from line {equal}\n{:?}\n{:?}", one.len(), other.len(), one.get(equal), other.get(equal))
}

#[test]
fn a_guest_sees_the_machine_that_was_asked_for() {
    let Some(cache) = cache() else { return };
    let dir = tempfile::tempdir().unwrap();
    let machine = dir.path().join("m.toml");
    fs::write(&machine, "sockets = 2\ncores = 2\nthreads = 2\ndistances = [[10, 17], [17, 10]]\n").unwrap();
    let args =
        ["vm", "boot", "debian-6.12", "--json", "--boot-limit", PATIENCE, "--machine", machine.to_str().unwrap()];
    let output = run(cache, &args);
    let document: Value = serde_json::from_str(&ok(output)).unwrap();
    // Under QEMU's emulation a kernel may have to be started again.
    let again = |remark: &Value| remark.as_str().unwrap().ends_with("it was started again");
    assert!(document["remarks"].as_array().unwrap().iter().all(again), "{}", document["remarks"]);
    assert_eq!(document["distances"], serde_json::json!([[10, 17], [17, 10]]));
    let of = |key: &str| document["cpus"].as_array().unwrap().iter().map(|cpu| cpu[key].as_u64().unwrap()).collect();
    let expect = |key: &str, wanted: [u64; 8]| {
        let seen: Vec<u64> = of(key);
        assert_eq!(seen, wanted, "{key}");
    };
    expect("core", [0, 0, 1, 1, 2, 2, 3, 3]);
    expect("package", [0, 0, 0, 0, 1, 1, 1, 1]);
    expect("node", [0, 0, 0, 0, 1, 1, 1, 1]);
}

#[test]
fn what_a_kernel_does_not_have_is_refused_with_what_it_has() {
    let Some(cache) = cache() else { return };
    let args = ["vm", "boot", "debian-6.12", "--boot-limit", PATIENCE, "--set", "latency_ns=1"];
    let text = message(&run(cache, &args));
    assert!(text.contains("latency_ns=1: this kernel has no such tunable;"), "{text}");
    assert!(text.contains("base_slice_ns") && text.contains("sched_rt_runtime_us"), "{text}");
}

/// Counted time has no noise, and the share of two tasks of SCHED_IDLE follows from their weights.
#[test]
fn a_test_of_the_battery_runs_in_a_guest() {
    let Some(cache) = cache() else { return };
    let args = ["test", "--on", "vm:debian-6.12", "--deterministic", "--only", "isolation-idle", "--json"];
    let document: Value = serde_json::from_str(&ok(run(cache, &args))).unwrap();
    let test = &document["tests"][0];
    assert_eq!((&test["verdict"], &test["seeds"]), (&"pass".into(), &serde_json::json!([1])), "{test}");
    assert!(document["kernel"].as_str().unwrap().starts_with("Linux 6.12"), "{document}");
}

/// A kernel may be built without what a test switches on, as one for real time is without autogroup.
#[test]
fn a_test_that_sets_what_the_kernel_lacks_is_skipped() {
    let Some(cache) = cache() else { return };
    let folder = tempfile::tempdir().unwrap();
    let shown = ok(run(cache, &["test", "--show", "isolation-idle"]));
    for (id, set) in [("plain", ""), ("lacking", "[test.set]\nsched_autogroup_strength = 1\n\n")] {
        let text = shown.replace("isolation-idle", id).replace("[workload]", &format!("{set}[workload]"));
        fs::write(folder.path().join(format!("{id}.toml")), text).unwrap();
    }
    let path = folder.path().to_str().unwrap();
    let args = ["test", path, "--on", "vm:debian-6.12", "--deterministic", "--json"];
    let document: Value = serde_json::from_str(&ok(run(cache, &args))).unwrap();
    let of = |index: usize| &document["tests"][index];
    let verdicts = [0, 1].map(|index| (of(index)["id"].as_str().unwrap(), of(index)["verdict"].as_str().unwrap()));
    assert_eq!(verdicts, [("lacking", "skipped"), ("plain", "pass")], "{document}");
    let why = of(0)["reason"].as_str().unwrap();
    assert!(why.starts_with("Linux 6.12") && why.ends_with(" has no tunable sched_autogroup_strength"), "{why}");
}

/// Of a published experiment, a real kernel is asked what it can be asked. The share of two hogs follows from their
/// weights, in every kernel since 2.6.23.
#[test]
fn an_experiment_has_three_columns() {
    let Some(cache) = cache() else { return };
    let dir = tempfile::tempdir().unwrap();
    let (file, page) = (dir.path().join("pair.toml"), dir.path().join("pair.html"));
    let kernel = |name: &str, profile: &str, more: &str| {
        format!("[[kernels]]\nname = \"{name}\"\nkernel = \"{profile}\"\n{more}\n")
    };
    let expect = |figure: &str, metric: &str, bound: &str| {
        format!(
            "[[expectations]]\nfigure = \"{figure}\"\nmetric = \"{metric}\"\npublished = {bound}\nwithin = \"15%\"\n"
        )
    };
    let load = r#"{"tasks": {"zero": {"loop": -1, "run": 1000000},
                             "niced": {"priority": 5, "loop": -1, "run": 1000000}}}"#;
    let text = "id = \"pair\"\ntitle = \"A nice level\"\nmachine = \"1\"\nduration = \"500ms\"\n".to_owned()
        + &format!("[workload]\ninline = '''{load}'''\n[metrics.ratio]\nvalue = \"run_s['niced'] / run_s['zero']\"\n")
        + &kernel("cfs", "linux-2.6.32", "")
        + &kernel("old", "linux-2.6.11", "")
        + &kernel("long", "linux-2.6.32", "set = { sched_latency_ns = 100000000 }")
        + &expect("the weights", "ratio@cfs", "0.327")
        + &expect("another scheduler", "ratio@old", "0.6")
        + &expect("a setting", "ratio@long / ratio@cfs", "1");
    fs::write(&file, text).unwrap();
    let paths = ["-o", page.to_str().unwrap(), file.to_str().unwrap()];
    let args = ["run", "--on", "vm:debian-6.12", "--deterministic", "--repeats", "1", "--json"];
    let output = run(cache, &[&args[..], &paths[..]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said} {}", String::from_utf8_lossy(&output.stdout));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&document["real"]["on"], &document["real"]["simulated"]),
        (&"vm:debian-6.12".into(), &"linux-6.12".into())
    );
    let rows = &document["experiments"][0]["expectations"];
    let text = |at: usize, key: &str| rows[at][key].as_str().unwrap_or_default().to_owned();
    assert_eq!(text(0, "verdict"), "pass", "{rows}");
    let simulated = &rows[0]["simulated"];
    assert_eq!(simulated["verdict"], "pass", "{rows}");
    assert!(simulated["off"].as_f64().unwrap().abs() < 0.15, "both are within 15% of the weights: {rows}");
    assert_eq!((text(1, "verdict"), text(2, "verdict")), ("skipped".to_owned(), "skipped".to_owned()));
    assert_eq!(text(1, "reason"), "it is about linux-2.6.11: its scheduler is another one (O(1))");
    assert!(text(2, "reason").contains("has no sched_latency_ns that could be set"), "{rows}");
    assert!(rows[1]["simulated"].is_null(), "{rows}");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("Published, real and simulated") && page.contains(">simulated</th>"), "{page}");
}

/// The console that a message names.
fn console(text: &str) -> String {
    let path = text.split("its console is in ").nth(1).unwrap_or_else(|| panic!("no console is named: {text}"));
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_guest_that_does_not_boot_in_time_gives_one_message_and_its_console() {
    let Some(cache) = cache() else { return };
    let text = message(&run(cache, &["vm", "boot", "debian-6.12", "--boot-limit", "1s"]));
    assert!(text.starts_with("debian-6.12: the guest did not boot within 1 s"), "{text}");
    console(&text);
}

/// The processes whose parent was `parent` and that run QEMU.
fn guests_of(parent: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((head, rest)) = stat.rsplit_once(')') else { continue };
        let fields: Vec<&str> = rest.split_whitespace().collect();
        if head.contains("(qemu-system") && fields[1] == parent.to_string() {
            found.push(entry.file_name().to_str().unwrap().parse().unwrap());
        }
    }
    found
}

#[test]
fn a_killed_schedlab_leaves_no_guest() {
    let Some(cache) = cache() else { return };
    let mut child = command(cache).args(["vm", "boot", "debian-6.12", "--deterministic"]).spawn().unwrap();
    let begin = Instant::now();
    let guest = loop {
        if let [guest] = guests_of(child.id())[..] {
            break guest;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "QEMU was never started");
        std::thread::sleep(Duration::from_millis(20));
    };
    child.kill().unwrap();
    child.wait().unwrap();
    let begin = Instant::now();
    while Path::new(&format!("/proc/{guest}")).exists() {
        assert!(begin.elapsed() < Duration::from_secs(20), "QEMU outlives schedlab");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn fetching_again_keeps_the_kernel_usable_and_leaves_no_folders() {
    let Some(cache) = cache() else { return };
    let kernels = cache.join("schedlab/kernels");
    let names = || -> Vec<String> {
        let entries = fs::read_dir(&kernels).unwrap().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    // Tests of other crates keep theirs in the same cache.
    let before = names();
    // A fetch that is killed while it works.
    let mut child =
        command(cache).args(["vm", "fetch", "debian-6.12", "--again"]).stderr(Stdio::piped()).spawn().unwrap();
    let first = BufReader::new(child.stderr.take().unwrap()).lines().next();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(first.is_some());
    ok(run(cache, &["vm", "fetch", "debian-6.12"]));
    assert_eq!(names(), before);
    let listed: Value = serde_json::from_str(&ok(run(cache, &["vm", "list", "--json"]))).unwrap();
    let kernels = listed["kernels"].as_array().unwrap();
    assert!(kernels.iter().any(|kernel| kernel["name"] == "debian-6.12" && kernel["image"].is_string()), "{listed}");
}

#[test]
fn the_simulator_is_held_against_a_real_kernel() {
    let Some(cache) = cache() else { return };
    let place = ["--on", "vm:debian-6.12", "--deterministic", "--machine", "1"];
    let length = ["--duration", "400ms", "--repeats", "2", "--load", "nice", "--json"];
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("mine.json");
    // They begin at once, and each has its turns of 3 ms in the other's.
    std::fs::write(&own, r#"{ "tasks": { "of-mine": { "instance": 2, "x-clock-poll": 0, "run": 1000000 } } }"#)
        .unwrap();
    let output = run(cache, &[&["fidelity"], &place[..], &length[..], &[own.to_str().unwrap()]].concat());
    let problem = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{problem}");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["places"][0]["profile"], "linux-6.12");
    let rows = found["rows"].as_array().unwrap();
    let row_of =
        |load: &str, figure: &str| rows.iter().find(|row| row["load"] == load && row["figure"] == figure).unwrap();
    let row = |figure: &str| row_of("nice", figure);
    // Two hogs of different weight on one CPU: in 0.4 s each share is known to a slice of 4 ms.
    let share = row("CPU time, worst task");
    assert!(share["error"].as_f64().unwrap().abs() < 0.1, "{share}");
    assert!(row("switches")["real"].as_f64() > Some(20.0) && row("wait")["bar"].is_null(), "{rows:?}");
    let share = row_of("mine", "CPU time, worst task");
    assert!(share["real"].as_f64() > Some(180_000.0) && share["error"].as_f64().unwrap().abs() < 0.1, "{share}");
    let refused = run(cache, &["fidelity", "--on", "sim"]);
    assert!(message(&refused).contains("this needs a real kernel"));
    let refused = run(cache, &[&["fidelity"], &place[..], &["--load", "hog"]].concat());
    assert!(message(&refused).contains("there is no load \"hog\"; did you mean \"hogs\"?"));
}

//! Violations made on purpose on real kernels: in guests, where nothing else runs.
//!
//! This program starts itself as a guest. There two hogs are on CPU 0 of two. While they are bound to it, the checker
//! must be silent. Then the balancer is stopped (`sched_load_balance` of a cpuset of version 1), and they may run on
//! both: CPU 1 stays idle, and the checker must see it, by eBPF and by /proc.
//!
//! 6.12 has no such cpusets. Guests run on the host's clock: whether a watch sees the violation through depends on the
//! host there, which can take a virtual CPU away from a kernel thread, so that the CPU looks busy for long.
//!
//! Where QEMU, a kernel or eBPF is missing, the test says so and passes.

use rustix::mount::{MountFlags, mount};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use schedlab_capture::host;
use schedlab_guest::{Guest, Job, Limits, Store, agent, find};
use schedlab_measure::Timing;
use schedlab_watch::{By, Live, Options};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const CPUSET: &str = "/tmp/cpuset";
const MS: u64 = 1_000_000;
/// How long a guest may take while the machine is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(300);

fn main() {
    if agent::is_due() {
        agent::main();
    }
    match std::env::args().nth(1).as_deref() {
        Some("inside") => inside(),
        Some("hog") => loop {
            std::hint::spin_loop();
        },
        Some("--list") => println!("0 tests, 0 benchmarks"),
        Some("outside") => outside(),
        _ => {
            // Kernels are kept with the build, where the other tests of guests look for them too.
            let own = std::env::current_exe().expect("this program");
            let kept = own.parent().and_then(Path::parent).expect("the build's folder").join("guest-tests");
            let status = Command::new(&own).arg("outside").env("XDG_CACHE_HOME", kept).status().expect("it starts");
            std::process::exit(status.code().unwrap_or(1));
        }
    }
}

/// The host's side.
fn outside() {
    if !cfg!(target_arch = "x86_64") || Command::new("qemu-system-x86_64").arg("--version").output().is_err() {
        println!("skipped: there is no QEMU (Debian: apt-get install qemu-system-x86)");
        return;
    }
    for name in ["debian-6.12", "debian-6.1"] {
        match kernel(name) {
            Ok(()) => on(name),
            Err(why) => println!("skipped {name}: {why}"),
        }
    }
}

/// Makes sure that the kernel is there. Only 6.1 is fetched for this test: it has cpusets of version 1.
fn kernel(name: &str) -> Result<(), String> {
    let store = Store::open().map_err(|e| e.to_string())?;
    match store.get(name).map_err(|e| e.to_string())? {
        Some(_) => Ok(()),
        None if name != "debian-6.1" => Err("it has not been fetched".to_owned()),
        None => store.fetch(name, false, &mut |_| ()).map(drop).map_err(|e| e.to_string()),
    }
}

fn on(name: &str) {
    let machine = schedlab_machine::load("2").expect("a machine of two CPUs");
    let kernel = find(name).expect("it is there");
    let limits = Limits { boot: PATIENCE, run: PATIENCE };
    let guest = Guest { limits, ..Guest::new(&kernel, &machine) };
    let job = Job { command: vec!["inside".to_owned()], ..Job::default() };
    let ran = schedlab_guest::run(&guest, &job, &mut |_| ()).expect("the guest runs");
    assert_eq!(ran.done.status, 0, "{name}: {}\n{}", ran.done.printed, ran.done.said);
    let lines = ran.done.printed.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let lines: Vec<Value> = lines.collect();
    let mut checked = 0;
    for line in &lines {
        if let Some(why) = line["skipped"].as_str() {
            println!("skipped {name}: {why}");
            continue;
        }
        checked += 1;
        let (scene, by) = (line["scene"].as_str().unwrap(), line["by"].as_str().unwrap());
        let found = line["found"].as_array().unwrap();
        println!("{name}, {by}, {scene}: {} found, {}", found.len(), line["summary"]);
        if scene != "a stopped balancer" {
            assert_eq!(found.len(), 0, "{name}: {line}");
            continue;
        }
        let Some(one) = found.first() else {
            assert!(line["summary"]["watches"].as_u64().unwrap() > 0, "{name}: nothing is seen: {line}");
            println!("{name}, {by}: the host was too busy for a watch to see it through");
            continue;
        };
        assert_eq!((one["idle_cpu"].as_u64(), one["busy_cpu"].as_u64()), (Some(1), Some(0)), "{name}: {line}");
        let hogs: Vec<i64> = line["hogs"].as_array().unwrap().iter().filter_map(Value::as_i64).collect();
        let is_hog = |task: &Value| task["tid"].as_i64().is_some_and(|tid| hogs.contains(&tid));
        assert!(one["waiting"].as_array().unwrap().iter().any(is_hog), "{name}: {line}");
        // The profile can be missing for its cost, and the checker itself can be what ran longest.
        match one["profile"]["cpus"][0]["tasks"].as_array() {
            Some(tasks) => assert!(tasks.iter().any(is_hog), "{name}: {line}"),
            None => assert!(one["no_profile"].is_string(), "{name}: {line}"),
        }
    }
    assert!(checked >= 1, "{name}: {lines:?}");
}

/// The guest's side.
fn inside() {
    let mut hogs: Vec<Child> = (0..2).map(|_| hog()).collect();
    bind(&hogs, &[0]);
    let mut sources = vec![By::Proc];
    match schedlab_watch::Ebpf::open() {
        Ok(_) => sources.push(By::Ebpf),
        Err(e) => println!("{}", json!({ "skipped": e.to_string() })),
    }
    // Until the hogs are on their CPU.
    std::thread::sleep(Duration::from_millis(500));
    let all = |scene: &str, length: u64| sources.iter().for_each(|by| look(*by, scene, length, &hogs));
    all("bound to a CPU", 1_000);
    fs::create_dir_all(CPUSET).expect("a folder");
    if let Err(e) = mount("none", CPUSET, "cgroup", MountFlags::empty(), c"cpuset") {
        println!(
            "{}",
            json!({ "skipped": format!("the balancer cannot be stopped without cpusets of version 1: {e}") })
        );
        hogs.iter_mut().for_each(|hog| hog.kill().expect("it ends"));
        return;
    }
    let balance = Path::new(CPUSET).join("cpuset.sched_load_balance");
    fs::write(&balance, "0").expect("the balancer stops");
    bind(&hogs, &[0, 1]);
    all("a stopped balancer", 10_000);
    hogs.iter_mut().for_each(|hog| hog.kill().expect("it ends"));
}

fn hog() -> Child {
    Command::new("/proc/self/exe").arg("hog").stdin(Stdio::null()).spawn().expect("a hog")
}

fn bind(hogs: &[Child], cpus: &[usize]) {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    for hog in hogs {
        sched_setaffinity(Pid::from_raw(hog.id() as i32), &set).expect("it may be bound");
    }
}

/// Lets the checker look, and prints what it finds.
fn look(by: By, scene: &str, length_ms: u64, hogs: &[Child]) {
    let timing = Timing { every: 300 * MS, watch: 100 * MS };
    let options =
        Options { by: Some(by), timing, count: Some(1), duration: Some(length_ms * MS), ..Options::default() };
    let mut found = Vec::new();
    let live = Live::new(options, host()).expect("it can look");
    let summary = live.run(|alarm| {
        found.push(json!(alarm));
        true
    });
    let hogs: Vec<u32> = hogs.iter().map(Child::id).collect();
    let summary = summary.expect("it looks");
    println!("{}", json!({ "scene": scene, "by": by.name(), "hogs": hogs, "found": found, "summary": summary }));
}

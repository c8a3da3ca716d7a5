//! The simulations. The number of a case determines its kernel, machine, load, settings and seed. Any change here makes
//! them different simulations, and their hashes must be written again.

use serde_json::{Map, Value, json};

/// One simulation.
pub struct Case {
    pub kernel: &'static str,
    /// A preset, or the text of a machine file.
    pub machine: Machine,
    /// A preset, or the text of a workload file.
    pub workload: Workload,
    pub set: Vec<String>,
    pub duration_ms: u64,
    pub seed: u64,
    pub bare: bool,
}

pub enum Machine {
    Named(&'static str),
    File(String),
}

pub enum Workload {
    Named(&'static str),
    File(Value),
}

/// The list is written out, so that adding a kernel does not change any case.
const KERNELS: [&str; 19] = [
    "linux-1.2",
    "linux-2.0",
    "linux-2.2",
    "linux-2.4",
    "linux-2.6.0",
    "linux-2.6.11",
    "linux-2.6.18",
    "rsdl",
    "sd",
    "linux-2.6.24",
    "linux-2.6.32",
    "linux-3.10",
    "linux-3.18",
    "linux-4.1",
    "linux-6.1",
    "linux-6.6",
    "linux-6.12",
    "bfs",
    "mlfq",
];

/// SplitMix64, implemented here so that the cases do not depend on other code.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn range(&mut self, from: i64, to: i64) -> i64 {
        from + self.below((to - from + 1) as u64) as i64
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

/// The case with this number.
pub fn case(number: u64) -> Case {
    let draw = &mut Draw(number.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x5c4e_d1ab);
    let kernel = KERNELS[(number % KERNELS.len() as u64) as usize];
    let (machine, cpus, nodes) = machine(draw);
    let workload = if draw.one_in(8) {
        Workload::Named(draw.of(&[
            "li:tasks=7",
            "li:tasks=19,nice=3,stagger=2ms",
            "periodic:tasks=9,run=700us,period=3ms",
            "messaging:groups=1,fds=5,loops=9",
            "messaging:groups=3,fds=3,loops=20",
            "nas:cg",
            "nas:lu",
            "make-r:parallel=12,jobs=60,compile=9ms,seconds=1",
            "linpack:instances=9,bound=no",
            "tpch",
        ]))
    } else {
        Workload::File(workload(draw, kernel, cpus, nodes))
    };
    let duration_ms = if cpus > 64 { 30 } else { draw.of(&[60, 120, 250, 400]) };
    Case {
        kernel,
        machine,
        workload,
        set: settings(draw, kernel),
        duration_ms,
        seed: 1 + draw.below(1000),
        bare: draw.one_in(4),
    }
}

/// A machine, with its numbers of CPUs and nodes.
fn machine(draw: &mut Draw) -> (Machine, u64, u64) {
    let (name, cpus, nodes) = draw.of(&[
        ("up", 1, 1),
        ("dual", 2, 1),
        ("3", 3, 1),
        ("4", 4, 1),
        ("quad-smt", 8, 1),
        ("2x4", 8, 1),
        ("2x2x2", 8, 1),
        ("z800", 12, 2),
        ("big-little-4+4", 8, 1),
        ("bulldozer-64", 64, 8),
        ("dl580", 120, 4),
        ("ring", 16, 4),
        ("costs", 6, 2),
        ("clusters", 16, 2),
    ]);
    let text = match name {
        "ring" => {
            "sockets = 4\ncores = 2\nthreads = 2\n\
             distances = [[10, 16, 22, 16], [16, 10, 16, 22], [22, 16, 10, 16], [16, 22, 16, 10]]\n"
        }
        "costs" => {
            "sockets = 2\ncores = 3\nthreads = 1\nnodes_per_package = 1\ndistances = [[10, 31], [31, 10]]\n\
             [costs]\ncontext_switch_ns = 1300\nidle_exit_ns = 40000\nremote_percent = 60\n"
        }
        "clusters" => {
            "sockets = 2\ncores = 8\nthreads = 1\nllc_cores = 4\ncluster_cores = 2\n\
             distances = [[10, 21], [21, 10]]\n"
        }
        preset => return (Machine::Named(preset), cpus, nodes),
    };
    (Machine::File(text.to_owned()), cpus, nodes)
}

fn workload(draw: &mut Draw, kernel: &str, cpus: u64, nodes: u64) -> Value {
    let mut root = Map::new();
    root.insert("global".into(), json!({ "x-start": draw.of(&["wake", "fork", "threads"]) }));
    let grouped = draw.one_in(3);
    if grouped {
        root.insert("x-groups".into(), groups(draw));
    }
    if cpus > 1 && draw.one_in(8) {
        let cpu = cpus - 1;
        root.insert(
            "x-hotplug".into(),
            json!([
                { "at_us": 7000 + draw.below(9000), "cpu": cpu, "online": false },
                { "at_us": 30000 + draw.below(9000), "cpu": cpu, "online": true },
            ]),
        );
    }
    let mut tasks = Map::new();
    for number in 0..draw.range(1, 7) {
        let (name, mut task) = task(draw, number);
        // 1.2 uses only the first CPU.
        decorate(draw, &mut task, if kernel == "linux-1.2" { 1 } else { cpus }, nodes, grouped);
        tasks.insert(name, Value::Object(task));
    }
    if draw.one_in(3) {
        partners(draw, &mut tasks);
    }
    root.insert("tasks".into(), Value::Object(tasks));
    Value::Object(root)
}

fn groups(draw: &mut Draw) -> Value {
    let mut all = Map::new();
    for path in ["/a", "/a/b", "/c"] {
        let mut group = Map::new();
        if draw.one_in(2) {
            group.insert("weight".into(), json!(draw.range(1, 400)));
        } else {
            group.insert("shares".into(), json!(draw.range(2, 4096)));
        }
        if draw.one_in(3) {
            group.insert("quota_us".into(), json!(draw.range(2, 90) * 1000));
            group.insert("period_us".into(), json!(draw.range(20, 100) * 1000));
        }
        if path == "/c" && draw.one_in(3) {
            group.insert("idle".into(), json!(1));
        }
        all.insert(path.into(), Value::Object(group));
    }
    Value::Object(all)
}

/// A task that computes all the time, sleeps, waits for a timer, yields, takes locks, or has phases.
fn task(draw: &mut Draw, number: i64) -> (String, Map<String, Value>) {
    let run = draw.range(50, 9000);
    let sleep = draw.range(50, 20000);
    let amount = |draw: &mut Draw, mean: i64| {
        if draw.one_in(2) { json!(mean) } else { json!({ "mean": mean, "sd": mean / 4 }) }
    };
    let (kind, body) = match draw.below(9) {
        0..=2 => ("hog", json!({ "run": 1000000 })),
        3 | 4 => ("sleeper", json!({ "run": amount(draw, run), "sleep": amount(draw, sleep) })),
        5 => ("beat", json!({ "run": amount(draw, run), "timer": { "ref": "unique", "period": run + sleep } })),
        6 => ("yielder", json!({ "run": amount(draw, run / 8 + 1), "yield": "" })),
        7 => (
            "locker",
            json!({ "run_a": amount(draw, run), "lock": "m", "run_b": run / 9, "unlock": "m", "sleep": sleep / 9 }),
        ),
        _ => (
            "phases",
            json!({ "phases": {
                "one": { "loop": 3, "run": run, "sleep": sleep },
                "two": { "priority": draw.range(-19, 19), "loop": 2, "run": amount(draw, run) },
                "three": { "priority": 0, "run": run, "sleep": sleep / 3 },
            } }),
        ),
    };
    (format!("{kind}{number}"), body.as_object().expect("an object").clone())
}

/// Sets the properties that the scheduler looks at: policy, nice, affinity, group, session and memory.
fn decorate(draw: &mut Draw, task: &mut Map<String, Value>, cpus: u64, nodes: u64, grouped: bool) {
    let phases = task.contains_key("phases");
    let mut put = |key: &str, value: Value| {
        task.insert(key.into(), value);
    };
    put("instance", json!(draw.range(1, 5)));
    // Phases set priorities of their own, which are nice levels.
    let kind = if phases { draw.range(1, 2) } else { draw.range(0, 11) };
    match kind {
        0 => {
            put("policy", json!(draw.of(&["SCHED_FIFO", "SCHED_RR"])));
            put("priority", json!(draw.range(1, 90)));
        }
        1 => put("policy", json!("SCHED_BATCH")),
        2 => put("policy", json!("SCHED_IDLE")),
        3 => {
            put("policy", json!("SCHED_DEADLINE"));
            put("dl-runtime", json!(2000));
            put("dl-period", json!(30000));
        }
        4..=6 => put("priority", json!(draw.range(-20, 19))),
        7 => put("dl-runtime", json!(draw.range(200, 9000))),
        _ => {}
    }
    // Groups are for SCHED_OTHER here, and deadline tasks may run on every CPU.
    let grouped = grouped && !matches!(kind, 0 | 3);
    if draw.one_in(5) && kind != 3 {
        let first = draw.below(cpus);
        let second = (first + 1) % cpus;
        put("cpus", if first == second { json!([first]) } else { json!([first, second]) });
    }
    if grouped && draw.one_in(2) {
        put("taskgroup", json!(draw.of(&["/a", "/a/b", "/c"])));
    }
    if draw.one_in(3) {
        put("x-session", json!(draw.below(3)));
        put("x-user", json!(draw.below(3)));
    }
    if draw.one_in(4) {
        put("x-stagger", json!(draw.range(100, 9000)));
        put("delay", json!(draw.range(0, 20000)));
    }
    if draw.one_in(6) {
        put("x-working-set", json!(draw.range(1, 4000) * 1024));
    }
    if nodes > 1 && draw.one_in(3) {
        let bytes = draw.range(1, 300) << 20;
        put("x-memory", json!({ "bytes": bytes, "node": draw.below(nodes), "shared": draw.one_in(2) }));
    }
    if draw.one_in(9) {
        put("util_min", json!(draw.range(0, 500)));
        put("util_max", json!(draw.range(501, 1024)));
    }
}

/// Adds tasks that wake each other, meet at a barrier, and fork.
fn partners(draw: &mut Draw, tasks: &mut Map<String, Value>) {
    let work = draw.range(20, 3000);
    match draw.below(3) {
        0 => {
            tasks.insert("ping".into(), json!({ "run": work, "sem_post": "a", "sem_wait": "b" }));
            tasks.insert("pong".into(), json!({ "sem_wait": "a", "run": work / 2, "sem_post": "b" }));
        }
        1 => {
            let run = json!({ "mean": work, "sd": work / 5 });
            let meet = draw.of(&["barrier", "x-spin-barrier"]);
            tasks.insert("team".into(), json!({ "instance": 4, "run": run, meet: "meet" }));
        }
        _ => {
            tasks.insert("child".into(), json!({ "instance": 0, "loop": 1, "run": work * 3 }));
            tasks.insert("parent".into(), json!({ "run": work, "fork": "child", "sleep": work * 9 }));
        }
    }
}

/// Draws settings for some of this kernel's tunables.
fn settings(draw: &mut Draw, kernel: &str) -> Vec<String> {
    let known: &[&str] = match kernel {
        "linux-2.0" | "linux-2.2" | "linux-2.4" => &["proc_change_penalty=3"],
        "linux-2.6.0" | "linux-2.6.11" | "linux-2.6.18" => {
            &["child_penalty=50", "max_sleep_avg=300", "interactive_delta=5", "starvation_limit=100"]
        }
        "rsdl" => &["rr_interval=15"],
        "sd" => &["interactive=off", "rr_interval=3"],
        "linux-2.6.24" => &["sched_latency_ns=9000000", "sched_child_runs_first=1"],
        "linux-2.6.32" => {
            &["group_by_user=on", "LAST_BUDDY=off", "NEXT_BUDDY=on", "sched_migration_cost=0", "sched_compat_yield=1"]
        }
        "linux-3.10" => {
            &["sched_autogroup_enabled=0", "fix.group_construction=on", "START_DEBIT=off", "sched_nr_migrate=3"]
        }
        "linux-3.18" | "linux-4.1" => &[
            "sched_autogroup_enabled=0",
            "fix.group_imbalance=on",
            "fix.group_construction=on",
            "fix.overload_on_wakeup=on",
            "fix.missing_domains=on",
            "numa_balancing_scan_delay_ms=10",
        ],
        "linux-6.1" => &[
            "sched_autogroup_enabled=1",
            "ALT_PERIOD=off",
            "BASE_SLICE=off",
            "numa_balancing/scan_delay_ms=5",
            "NEXT_BUDDY=on",
        ],
        "linux-6.6" => &["sched_autogroup_enabled=0", "base_slice_ns=1500000", "RUN_TO_PARITY=off", "PLACE_LAG=off"],
        "linux-6.12" => &[
            "sched_autogroup_enabled=1",
            "base_slice_ns=1500000",
            "RUN_TO_PARITY=off",
            "DELAY_DEQUEUE=off",
            "DELAY_ZERO=off",
            "PREEMPT_SHORT=off",
            "fair_server_runtime=200000000",
            "sched_energy_aware=0",
        ],
        "bfs" => &["rr_interval=2", "iso_cpu=10"],
        "mlfq" => &["levels=3", "boost=50", "start_level=1"],
        _ => &[],
    };
    let mut set: Vec<String> = known.iter().filter(|_| draw.one_in(3)).map(|s| (*s).to_owned()).collect();
    if draw.one_in(4) {
        set.push(format!("hz={}", draw.of(&[100, 250, 300, 1000])));
    }
    set
}

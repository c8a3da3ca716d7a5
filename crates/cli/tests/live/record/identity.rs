//! What tasks are to the scheduler, as a recording and its model have it.

use super::{SCHEDLAB, json, may_record, record};
use schedlab_base::{Policy, Tid};
use schedlab_trace::{Trace, read_all};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A cgroup of the scheduler's hierarchy, which is removed again.
struct Cgroup {
    dir: PathBuf,
    path: String,
    /// The file with its weight.
    weight: &'static str,
}

impl Cgroup {
    /// Makes one, if the cpu controller can be used: that of version 1, or of version 2 where it is enabled.
    fn new() -> Option<Self> {
        let path = format!("/schedlab-test-{}", std::process::id());
        let enabled = fs::read_to_string("/sys/fs/cgroup/cgroup.subtree_control").unwrap_or_default();
        let (root, weight) = if Path::new("/sys/fs/cgroup/cpu/cpu.shares").exists() {
            ("/sys/fs/cgroup/cpu", "cpu.shares")
        } else if enabled.split_whitespace().any(|controller| controller == "cpu") {
            ("/sys/fs/cgroup", "cpu.weight")
        } else {
            return None;
        };
        let dir = PathBuf::from(format!("{root}{path}"));
        fs::create_dir(&dir).ok()?;
        let group = Self { dir, path, weight };
        fs::write(group.dir.join(weight), "300").ok()?;
        Some(group)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::remove_dir(&self.dir).is_ok() || !self.dir.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        eprintln!("{} could not be removed", self.dir.display());
    }
}

fn tid(trace: &Trace, comm: &str) -> Tid {
    let named = trace.names.iter().find(|name| name.comm == comm);
    named.unwrap_or_else(|| panic!("no task is called {comm}")).tid
}

/// The nice level that a child of this test gets with `nice -n 7`.
fn nicer() -> i8 {
    let own = Command::new("nice").output().unwrap().stdout;
    let own: i8 = String::from_utf8(own).unwrap().trim().parse().unwrap();
    (own + 7).min(19)
}

fn has_autogroups() -> bool {
    fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").is_ok()
}

/// The load: each task under a name of its own, which is that of a link to the shell.
fn script(dir: &Path, group: Option<&Cgroup>) -> String {
    for name in ["in-group", "in-session", "nicer", "renicer", "fifo", "bound"] {
        std::os::unix::fs::symlink("/bin/sh", dir.join(name)).unwrap();
    }
    let dir = dir.display();
    // The recorder looks at a task some time after its system call, and later on a busy machine: so the tasks stay.
    let work = |name: &str| format!("{dir}/{name} -c 'i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; sleep 2; :'");
    let mut script = format!(
        "setsid {} &\nnice -n 7 {} &\nchrt -f 9 {} &\ntaskset -c 0 {} &\n",
        work("in-session"),
        work("nicer"),
        work("fifo"),
        work("bound"),
    );
    script += &format!("{} & pid=$!\nsleep 0.2\nrenice -n 12 -p $pid >/dev/null\n", work("renicer"));
    if let Some(Cgroup { dir, weight, .. }) = group {
        let (dir, work) = (dir.display(), work("in-group"));
        script += &format!("sh -c \"echo \\$\\$ > {dir}/cgroup.procs; exec {}\" &\n", work.replace('$', "\\$"));
        script += &format!("sleep 1\necho 700 > {dir}/{weight}\nsleep 1\n");
    }
    script + "wait\n"
}

#[test]
fn what_tasks_are_to_the_scheduler_is_recorded_and_modelled() {
    let Some(_guard) = may_record() else { return };
    let dir = tempfile::tempdir().unwrap();
    let group = Cgroup::new();
    if group.is_none() {
        eprintln!("without a cgroup: the cpu controller is not enabled here");
    }
    fs::write(dir.path().join("load.sh"), script(dir.path(), group.as_ref())).unwrap();
    let file = dir.path().join("t.arrows");
    let load = dir.path().join("load.sh");
    json(&record(&file, &["--", "sh", load.to_str().unwrap()]));
    let trace = read_all(&file).unwrap();
    check_trace(&trace, group.as_ref());
    let model = dir.path().join("m.json");
    let out = Command::new(SCHEDLAB).arg("model").arg(&file).arg("-o").arg(&model).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let model: Value = serde_json::from_str(&fs::read_to_string(&model).unwrap()).unwrap();
    check_model(&model, &trace, group.as_ref());
}

#[test]
fn tasks_that_live_for_a_moment_are_known_to_be_bound() {
    let Some(_guard) = may_record() else { return };
    let doctor = json(&Command::new(SCHEDLAB).args(["doctor", "--json"]).output().unwrap());
    let checks = doctor["checks"].as_array().unwrap();
    if !checks.iter().any(|check| check["id"] == "ebpf" && check["status"] == "ok") {
        return eprintln!("skipped: eBPF cannot be used here");
    }
    let dir = tempfile::tempdir().unwrap();
    let (moment, file) = (dir.path().join("moment"), dir.path().join("t.arrows"));
    std::os::unix::fs::symlink("/bin/sh", &moment).unwrap();
    let script = format!("for i in 1 2 3 4 5 6 7 8; do taskset -c 0 {} -c :; done", moment.display());
    json(&record(&file, &["--", "sh", "-c", &script]));
    let trace = read_all(&file).unwrap();
    let moments: Vec<Tid> = trace.names.iter().filter(|name| name.comm == "moment").map(|name| name.tid).collect();
    let last = |tid: &Tid| trace.affinities.iter().rfind(|record| record.tid == *tid).map(|r| r.cpus.to_string());
    assert_eq!(moments.iter().map(last).collect::<Vec<_>>(), vec![Some("0".to_owned()); 8]);
}

fn check_trace(trace: &Trace, group: Option<&Cgroup>) {
    let all = |comm: &str| {
        let tid = tid(trace, comm);
        trace.tasks.iter().filter(move |record| record.tid == tid)
    };
    let last = |comm: &str| all(comm).next_back().unwrap_or_else(|| panic!("nothing is said of {comm}"));
    assert_eq!(last("nicer").properties.nice, Some(nicer()));
    let fifo = &last("fifo").properties;
    assert_eq!((fifo.policy, fifo.rt_priority), (Some(Policy::Fifo), Some(9)));
    let renicer = last("renicer");
    assert_eq!(renicer.properties.nice, Some(12));
    assert!(renicer.time > trace.meta.span.unwrap().0, "it has a time");
    let bound = tid(trace, "bound");
    let cpus = trace.affinities.iter().rfind(|record| record.tid == bound).unwrap();
    assert_eq!(cpus.cpus.to_string(), "0");
    let system = trace.meta.system.as_ref().unwrap();
    assert!(system.hz.is_some() || system.unreadable.contains_key("hz"), "{system:?}");
    if has_autogroups() {
        assert!(system.autogroup.is_some());
        let session = last("in-session").properties.autogroup;
        assert!(session.is_some() && session != last("nicer").properties.autogroup, "{session:?}");
    }
    let Some(group) = group else { return };
    let member = tid(trace, "in-group");
    let name = trace.names.iter().rfind(|name| name.tid == member).unwrap();
    assert_eq!(name.cgroup.as_deref(), Some(group.path.as_str()));
    let weights: Vec<_> = trace.groups.iter().filter(|record| record.path == group.path).collect();
    let weight = |n: usize| weights[n].properties.shares.or(weights[n].properties.weight.map(u64::from));
    assert_eq!((weights.len(), weight(0), weight(1)), (2, Some(300), Some(700)), "{weights:?}");
    assert!(weights[1].time > weights[0].time + 100_000_000, "{weights:?}");
}

fn check_model(model: &Value, trace: &Trace, group: Option<&Cgroup>) {
    let of = |comm: &str| &model["tasks"][format!("{comm}-{}", tid(trace, comm))];
    let phases = |comm: &str| of(comm)["phases"].as_object().unwrap().values();
    let has = |comm: &str, key: &str, value: Value| of(comm)[key] == value || phases(comm).any(|p| p[key] == value);
    assert!(has("nicer", "priority", nicer().into()));
    assert!(has("renicer", "priority", 12.into()));
    assert!(has("fifo", "policy", "SCHED_FIFO".into()) && has("fifo", "priority", 9.into()));
    if trace.meta.cpus.len() > 1 {
        assert!(has("bound", "cpus", vec![0].into()), "{}", of("bound"));
    }
    if has_autogroups() {
        assert_ne!(of("in-session")["x-session"], of("nicer")["x-session"]);
    }
    if let Some(group) = group {
        assert!(has("in-group", "taskgroup", group.path.as_str().into()), "{}", of("in-group"));
        let known = &model["x-groups"][&group.path];
        let weight = known["shares"].as_u64().or(known["weight"].as_u64());
        assert!(matches!(weight, Some(300 | 700)), "{known}");
    }
    assert_eq!(model["x-recorded"]["kernel"], trace.meta.kernel.as_str());
}

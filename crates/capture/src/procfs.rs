//! What /proc says about tasks: names, processes, cgroups, and which tasks run or wait on which CPU.

use crate::sched_attr::SchedAttr;
use schedlab_base::{CpuId, CpuList, Policy, TaskProperties, Tid};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::str::SplitWhitespace;
use std::sync::Arc;

/// A task as /proc shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) tid: Tid,
    pub(crate) tgid: Tid,
    /// The process that is its process's parent.
    pub(crate) parent: Tid,
    pub(crate) comm: String,
    pub(crate) cgroup: Option<Arc<str>>,
    /// The CPUs that it may run on, if /proc says.
    pub(crate) allowed: Option<CpuList>,
    /// How it is scheduled.
    pub(crate) properties: TaskProperties,
    /// Whether it is running or waiting for a CPU.
    pub(crate) runnable: bool,
    /// The CPU that it runs on, waits for, or last ran on.
    pub(crate) cpu: CpuId,
}

/// The memory that is available, in KiB, if /proc says.
#[must_use]
pub fn available_kib() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let rest = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// All tasks by thread id. Tasks that end during the search are left out. Of a task that is among those `before`, which
/// are sorted by id, only what is in its `stat` is read again.
pub(crate) fn tasks(proc: &Path, before: &[Task]) -> Vec<Task> {
    let hierarchy = hierarchy(proc);
    let clamped = clamps(proc);
    let mut tasks = Vec::new();
    for tgid in numbered(proc) {
        let dir = proc.join(tgid.to_string());
        let mut of_process = None;
        for tid in numbered(&dir.join("task")) {
            let own = dir.join("task").join(tid.to_string());
            let stat = fs::read(own.join("stat")).unwrap_or_default();
            let stat = String::from_utf8_lossy(&stat);
            let Some(task) = parse_stat(&stat, tid, tgid) else { continue };
            let known = before.binary_search_by_key(&tid, |old| old.tid).ok().map(|at| &before[at]);
            if let Some(old) = known.filter(|old| old.comm == task.comm && old.tgid == tgid) {
                let Task { cgroup, allowed, properties, .. } = old.clone();
                tasks.push(Task { cgroup, allowed, properties, ..task });
                continue;
            }
            let (cgroup, session) =
                of_process.get_or_insert_with(|| (cgroup(&dir, hierarchy).map(Arc::from), autogroup(&dir)));
            let attr = SchedAttr::of(tid).ok();
            let properties = properties(attr, *session, clamped);
            // A process's threads may be in groups of their own: in version 1, and in threaded ones of version 2.
            let of_thread = || self::cgroup(&own, hierarchy).map(Arc::from);
            let cgroup = if tid == tgid { cgroup.clone() } else { of_thread().or_else(|| cgroup.clone()) };
            tasks.push(Task { cgroup, allowed: allowed(&own), properties, ..task });
        }
    }
    tasks.sort_by_key(|task| task.tid);
    tasks
}

/// How a task is scheduled now; `None` if it has ended.
pub(crate) fn properties_of(proc: &Path, tid: Tid) -> Option<TaskProperties> {
    let attr = SchedAttr::of(tid).ok()?;
    Some(properties(Some(attr), autogroup(&proc.join(tid.to_string())), clamps(proc)))
}

/// The slice of tasks that asked for none: that of the most ordinary tasks.
pub(crate) fn base_slice(tasks: &[Task]) -> Option<u64> {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for slice in tasks.iter().filter_map(|task| task.properties.slice_ns) {
        *counts.entry(slice).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map(|(slice, _)| slice)
}

/// Whether the kernel has utilisation clamps. If not, it reports 0 for both.
fn clamps(proc: &Path) -> bool {
    proc.join("sys/kernel/sched_util_clamp_max").exists()
}

fn properties(attr: Option<SchedAttr>, session: Option<(u64, i8)>, clamped: bool) -> TaskProperties {
    let mut found = TaskProperties {
        autogroup: session.map(|(number, _)| number),
        autogroup_nice: session.map(|(_, nice)| nice).filter(|nice| *nice != 0),
        ..TaskProperties::default()
    };
    let Some(attr) = attr else { return found };
    let policy = Policy::from_number(attr.policy);
    let time = |wanted: bool, ns: u64| Some(ns).filter(|ns| wanted && *ns > 0);
    let deadline = policy == Some(Policy::Deadline);
    found.policy = policy;
    found.nice = i8::try_from(attr.nice).ok();
    found.rt_priority = u8::try_from(attr.priority).ok().filter(|priority| *priority > 0);
    found.slice_ns = time(policy.is_some_and(Policy::is_fair), attr.runtime);
    found.runtime_ns = time(deadline, attr.runtime);
    found.deadline_ns = time(deadline, attr.deadline);
    found.period_ns = time(deadline, attr.period);
    found.util_min = u16::try_from(attr.util_min).ok().filter(|_| clamped);
    found.util_max = u16::try_from(attr.util_max).ok().filter(|_| clamped);
    found.reset_on_fork = attr.flags & SchedAttr::RESET_ON_FORK != 0;
    found.reclaim = deadline && attr.flags & SchedAttr::RECLAIM != 0;
    if found.check().is_err() { TaskProperties::default() } else { found }
}

/// The number and the nice level of a process's autogroup: `/autogroup-7 nice 0`. Processes without one have an empty
/// file.
fn autogroup(dir: &Path) -> Option<(u64, i8)> {
    let text = fs::read_to_string(dir.join("autogroup")).ok()?;
    let (number, nice) = text.trim().strip_prefix("/autogroup-")?.split_once(" nice ")?;
    Some((number.parse().ok()?, nice.parse().ok()?))
}

/// Whether a process's ids, as its system calls name them, are those of this /proc; `None` if it has ended.
pub(crate) fn counts_alike(proc: &Path, tid: Tid) -> Option<bool> {
    let space = |who: &str| fs::read_link(proc.join(who).join("ns/pid")).ok();
    space(&tid.to_string()).map(|own| Some(own) == space("self"))
}

/// The current process and cgroup of one task.
pub(crate) fn identity(proc: &Path, hierarchy: u32, tid: Tid) -> Option<(Tid, Option<Arc<str>>)> {
    let dir = proc.join(tid.to_string());
    Some((process_of(proc, tid)?, cgroup(&dir, hierarchy).map(Arc::from)))
}

/// The process that a thread belongs to.
pub(crate) fn process_of(proc: &Path, tid: Tid) -> Option<Tid> {
    // The file contains the task's name, which may not be UTF-8.
    let status = fs::read(proc.join(tid.to_string()).join("status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}

/// Whether the ids in this /proc are those in the kernel's events. In a container they are not, because its PID
/// namespace has ids of its own. The initial namespace has a fixed inode number (`PROC_PID_INIT_INO`).
pub(crate) fn counts_as_the_kernel(proc: &Path) -> bool {
    fs::read_link(proc.join("self/ns/pid")).is_ok_and(|link| link.as_os_str() == "pid:[4026531836]")
}

/// Whether a process still runs. A zombie does not.
pub(crate) fn runs(proc: &Path, pid: Tid) -> bool {
    has_state(proc, pid, |state| !matches!(state, "Z" | "X"))
}

/// Whether a task runs or waits for a CPU.
pub(crate) fn is_runnable(proc: &Path, tid: Tid) -> bool {
    has_state(proc, tid, |state| state == "R")
}

/// Whether a task exists and has such a state.
fn has_state(proc: &Path, tid: Tid, such: impl Fn(&str) -> bool) -> bool {
    fs::read(proc.join(tid.to_string()).join("stat")).is_ok_and(|stat| {
        let stat = String::from_utf8_lossy(&stat);
        split_stat(&stat).is_some_and(|(_, mut fields)| fields.next().is_none_or(such))
    })
}

/// The number of the cgroup hierarchy that the scheduler uses: that of version 1's `cpu` controller if it is mounted,
/// or else 0, which is version 2's.
pub(crate) fn hierarchy(proc: &Path) -> u32 {
    let text = fs::read_to_string(proc.join("self/cgroup")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        Some((parts.next()?.parse::<u32>().ok()?, parts.next()?))
    });
    lines.into_iter().find(|(_, controllers)| controllers.split(',').any(|c| c == "cpu")).map_or(0, |(id, _)| id)
}

/// The task's path in this hierarchy.
pub(crate) fn cgroup(dir: &Path, hierarchy: u32) -> Option<String> {
    let text = fs::read(dir.join("cgroup")).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.lines().find_map(|line| {
        let (id, rest) = line.split_once(':')?;
        let (_, path) = rest.split_once(':')?;
        (id.parse() == Ok(hierarchy)).then(|| path.to_owned())
    })
}

/// The CPUs that the thread may run on now.
pub(crate) fn allowed_of(proc: &Path, tid: Tid) -> Option<CpuList> {
    allowed(&proc.join(tid.to_string()))
}

/// The CPUs that a task may run on.
fn allowed(dir: &Path) -> Option<CpuList> {
    // The file contains the task's name, which may not be UTF-8.
    let status = fs::read(dir.join("status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    list.trim().parse().ok().filter(|cpus: &CpuList| !cpus.is_empty())
}

/// The entries of a directory whose names are numbers.
pub(crate) fn numbered(dir: &Path) -> Vec<Tid> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(|n| *n > 0).collect()
}

/// The name in a `stat` line, `tid (comm) state ...`, and the fields that follow it. The name may itself contain spaces
/// and parentheses.
pub(crate) fn split_stat(stat: &str) -> Option<(&str, SplitWhitespace<'_>)> {
    let (head, rest) = stat.rsplit_once(')')?;
    Some((head.split_once('(')?.1, rest.split_whitespace()))
}

/// Parses a `stat` line; the CPU is field 39.
pub(crate) fn parse_stat(stat: &str, tid: Tid, tgid: Tid) -> Option<Task> {
    let (comm, mut fields) = split_stat(stat)?;
    let comm = comm.to_owned();
    let runnable = fields.next()? == "R";
    let parent = fields.next()?.parse().ok()?;
    let cpu = fields.nth(34)?.parse().ok()?;
    let properties = TaskProperties::default();
    Some(Task { tid, tgid, parent, comm, cgroup: None, allowed: None, properties, runnable, cpu })
}

/// The threads of these processes and of their descendants.
pub(crate) fn family(tasks: &[Task], processes: &[Tid]) -> BTreeSet<Tid> {
    let mut members: BTreeSet<Tid> = processes.iter().copied().collect();
    loop {
        let child = |task: &&Task| members.contains(&task.parent) && !members.contains(&task.tgid);
        let children: Vec<Tid> = tasks.iter().filter(child).map(|task| task.tgid).collect();
        if children.is_empty() {
            return tasks.iter().filter(|task| members.contains(&task.tgid)).map(|task| task.tid).collect();
        }
        members.extend(children);
    }
}

/// The task running on each of these CPUs, according to a list of tasks taken while none of them switched: the only
/// runnable task, or the idle task if none is runnable. CPUs with several runnable tasks are left out.
pub(crate) fn running(tasks: &[Task], cpus: impl IntoIterator<Item = CpuId>) -> Vec<(CpuId, Tid)> {
    let mut runnable: BTreeMap<CpuId, Vec<Tid>> = BTreeMap::new();
    for task in tasks.iter().filter(|task| task.runnable) {
        runnable.entry(task.cpu).or_default().push(task.tid);
    }
    let sole = |cpu: CpuId| match runnable.get(&cpu).map(Vec::as_slice) {
        None | Some([]) => Some((cpu, 0)),
        Some([tid]) => Some((cpu, *tid)),
        Some(_) => None,
    };
    cpus.into_iter().filter_map(sole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree;

    fn stat(tid: Tid, comm: &str, state: char, cpu: CpuId) -> String {
        let zeros = "0 ".repeat(35);
        format!("{tid} ({comm}) {state} {zeros}{cpu} 0 0")
    }

    fn proc() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| tree::write(dir.path(), path, text);
        write("self/cgroup", "7:memory:/m\n3:cpu,cpuacct:/here\n0::/two\n");
        write("10/cgroup", "7:memory:/m\n3:cpu,cpuacct:/a:b\n0::/two\n");
        write("10/task/10/stat", &stat(10, "a ) (b", 'S', 1));
        write("10/task/11/stat", &stat(11, "w", 'R', 1));
        write("10/task/11/status", "Name:\tw\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1,4\n");
        write("12/task/12/stat", "12 (cut");
        write("13/stat", "13 (z) Z 1");
        write("self/task/x", "");
        dir
    }

    #[test]
    fn tasks_have_names_processes_and_cgroups() {
        let dir = proc();
        let tasks = tasks(dir.path(), &[]);
        assert_eq!(tasks.len(), 2, "a cut line is no task");
        assert_eq!((tasks[0].comm.as_str(), tasks[0].tgid, tasks[0].cgroup.as_deref()), ("a ) (b", 10, Some("/a:b")));
        assert_eq!(tasks[1].allowed.as_ref().map(ToString::to_string).as_deref(), Some("0-1,4"));
        assert_eq!(tasks[0].allowed, None);
        assert_eq!((tasks[1].tid, tasks[1].tgid, tasks[1].runnable, tasks[1].cpu), (11, 10, true, 1));
        assert!(!runs(dir.path(), 13) && !runs(dir.path(), 99));
    }

    #[test]
    fn a_family_is_the_threads_of_a_process_and_of_all_its_descendants() {
        let task = |(tid, tgid, parent)| {
            let line = format!("{tid} (x) S {parent} {}", "0 ".repeat(34) + "3");
            parse_stat(&line, tid, tgid).expect("a stat line")
        };
        // 10 has a thread 11 and a child 20, whose thread forked 5; 30 is a child of init.
        let tasks = [(5, 5, 20), (10, 10, 1), (11, 10, 1), (20, 20, 10), (21, 20, 10), (30, 30, 1)].map(task);
        assert_eq!(tasks[0].cpu, 3);
        assert_eq!(family(&tasks, &[10]).into_iter().collect::<Vec<_>>(), [5, 10, 11, 20, 21]);
        assert_eq!(family(&tasks, &[5, 30, 99]).into_iter().collect::<Vec<_>>(), [5, 30]);
    }

    #[test]
    fn a_containers_ids_differ_from_the_kernels() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("self/ns")).unwrap();
        assert!(!counts_as_the_kernel(dir.path()));
        std::os::unix::fs::symlink("pid:[4026532000]", dir.path().join("self/ns/pid")).unwrap();
        assert!(!counts_as_the_kernel(dir.path()));
    }

    #[test]
    fn what_was_read_before_is_kept() {
        let dir = proc();
        let mut before = tasks(dir.path(), &[]);
        before[1].properties = TaskProperties { nice: Some(7), ..TaskProperties::default() };
        before[0].comm = "renamed".into();
        before[0].properties.nice = Some(8);
        let again = tasks(dir.path(), &before);
        assert_eq!((again[1].properties.nice, again[1].allowed.is_some()), (Some(7), true));
        assert_ne!(again[0].properties.nice, Some(8));
    }

    #[test]
    fn what_the_kernel_reports_becomes_properties() {
        let attr = SchedAttr { nice: -3, runtime: 2_800_000, flags: SchedAttr::RESET_ON_FORK, ..SchedAttr::default() };
        let fair = properties(Some(attr), Some((7, 5)), false);
        assert_eq!((fair.policy, fair.nice, fair.slice_ns), (Some(Policy::Other), Some(-3), Some(2_800_000)));
        assert_eq!((fair.autogroup, fair.autogroup_nice, fair.reset_on_fork), (Some(7), Some(5), true));
        assert_eq!((fair.rt_priority, fair.runtime_ns, fair.util_max), (None, None, None));
        let attr = SchedAttr {
            policy: 6,
            runtime: 1,
            deadline: 2,
            period: 3,
            flags: SchedAttr::RECLAIM,
            util_max: 512,
            ..attr
        };
        let deadline = properties(Some(attr), None, true);
        assert_eq!((deadline.runtime_ns, deadline.period_ns, deadline.slice_ns), (Some(1), Some(3), None));
        assert_eq!((deadline.reclaim, deadline.util_min, deadline.util_max), (true, Some(0), Some(512)));
        let fifo = properties(Some(SchedAttr { policy: 1, priority: 50, ..SchedAttr::default() }), None, false);
        assert_eq!((fifo.prio(), fifo.slice_ns), (Some(49), None));
    }

    #[test]
    fn a_session_is_read_with_its_nice_level() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(autogroup(dir.path()), None);
        fs::write(dir.path().join("autogroup"), "/autogroup-1689 nice -4\n").unwrap();
        assert_eq!(autogroup(dir.path()), Some((1689, -4)));
        fs::write(dir.path().join("autogroup"), "").unwrap();
        assert_eq!(autogroup(dir.path()), None);
    }

    #[test]
    fn version_two_is_hierarchy_zero() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("self")).unwrap();
        fs::write(dir.path().join("self/cgroup"), "0::/x\n").unwrap();
        assert_eq!(hierarchy(dir.path()), 0);
        assert_eq!(cgroup(&dir.path().join("self"), 0).as_deref(), Some("/x"));
    }

    #[test]
    fn the_running_task_is_given_only_where_it_is_certain() {
        let task = |tid, cpu| Task {
            tid,
            tgid: tid,
            cpu,
            parent: 1,
            comm: String::new(),
            cgroup: None,
            allowed: None,
            properties: TaskProperties::default(),
            runnable: true,
        };
        let tasks = [task(1, 0), task(2, 1), task(3, 1)];
        assert_eq!(running(&tasks, [0, 1, 2]), vec![(0, 1), (2, 0)]);
    }
}

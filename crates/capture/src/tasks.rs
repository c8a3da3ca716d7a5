//! The identity of each task: its name, process and cgroup, updated by the events that change them.

use crate::procfs;
use schedlab_base::{AffinityRecord, CpuList, NameRecord, Nanos, Sink, Tid};
use schedlab_trace::format::{Field, Format, Shape};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The flag of `clone()` for a thread of the parent's process.
const CLONE_THREAD: u64 = 0x1_0000;
/// The flag of `clone3()` for a child that starts in another cgroup.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
/// The number of look-ups in /proc allowed between two drains. Few are needed, because events report most identities.
const LOOKUPS: u32 = 64;
/// The number of tasks whose affinity is read again each second, because no event reports that it changed.
const LOOKED_AT_AGAIN: usize = 128;

/// The events about identities, besides the scheduler's own, as system and name. A kernel may lack some of them.
pub(crate) const EVENTS: [(&str, &str); 3] =
    [("task", "task_newtask"), ("task", "task_rename"), ("cgroup", "cgroup_attach_task")];

/// A change of a task's identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// A task was created. The scheduler's fork event follows.
    New { parent: Tid, tid: Tid, comm: String, flags: u64 },
    /// The task has this name now.
    Named { tid: Tid, comm: String },
    /// A process moved to another cgroup of this hierarchy.
    Moved { tgid: Tid, hierarchy: u32, path: String },
}

/// Reads the changes from raw records, using the kernel's formats.
pub(crate) struct Changes {
    formats: Vec<Format>,
}

impl Changes {
    /// Creates a reader for those of [`EVENTS`] whose formats are given.
    pub(crate) fn new(formats: Vec<Format>) -> Self {
        Self { formats }
    }

    /// The change in a record, if it is one of these events.
    #[inline]
    pub(crate) fn read(&self, raw: &[u8]) -> Option<Change> {
        let [low, high, ..] = *raw else { return None };
        let id = u16::from_le_bytes([low, high]);
        let format = self.formats.iter().find(|f| f.id == id)?;
        change(format, raw)
    }
}

fn change(format: &Format, raw: &[u8]) -> Option<Change> {
    let number = |name: &str| format.field(name).and_then(|f| load(f, raw));
    let text = |name: &str| format.field(name).and_then(|f| string(f, raw));
    let tid = |name: &str| number(name).and_then(|n| Tid::try_from(n as i32).ok()).filter(|tid| *tid > 0);
    match format.name.as_str() {
        "task_newtask" => Some(Change::New {
            parent: number("common_pid")? as i32,
            tid: tid("pid")?,
            comm: text("comm")?,
            flags: number("clone_flags")?,
        }),
        // Newer kernels leave out "pid", because a task can only rename itself.
        "task_rename" => Some(Change::Named { tid: tid("pid").or_else(|| tid("common_pid"))?, comm: text("newcomm")? }),
        "cgroup_attach_task" => {
            Some(Change::Moved { tgid: tid("pid")?, hierarchy: number("dst_root")? as u32, path: text("dst_path")? })
        }
        _ => None,
    }
}

/// A little-endian number of 1 to 8 bytes.
fn load(field: &Field, raw: &[u8]) -> Option<u64> {
    let bytes = raw.get(field.offset as usize..)?.get(..field.size as usize).filter(|b| b.len() <= 8)?;
    Some(bytes.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte)))
}

/// A string, stored in place or through a `__data_loc` word.
fn string(field: &Field, raw: &[u8]) -> Option<String> {
    let (at, size) = match field.shape {
        Shape::Array | Shape::Inline => (field.offset as usize, field.size as usize),
        Shape::DataLoc | Shape::RelLoc => {
            let word = load(field, raw)?;
            let base = if field.shape == Shape::RelLoc { (field.offset + field.size) as usize } else { 0 };
            ((word & 0xffff) as usize + base, (word >> 16 & 0xffff) as usize)
        }
    };
    let bytes = raw.get(at..)?.get(..size)?;
    let bytes = bytes.split(|b| *b == 0).next()?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

/// The known identity of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Task {
    comm: String,
    tgid: Option<Tid>,
    cgroup: Option<Arc<str>>,
    /// The CPUs that it may run on, as last written or inherited.
    allowed: Option<CpuList>,
    /// /proc does not have it any more.
    gone: bool,
}

/// Every task seen so far, with the identity that was last written.
pub(crate) struct Tasks {
    /// The path of /proc, if its ids are the kernel's.
    proc: Option<PathBuf>,
    hierarchy: u32,
    tasks: HashMap<Tid, Task>,
    lookups: u32,
    /// The last task whose affinity was read again.
    looked_at: Tid,
}

impl Tasks {
    /// Creates an empty table; `proc` is where /proc is mounted, if its ids are the kernel's.
    pub(crate) fn new(proc: Option<PathBuf>) -> Self {
        let hierarchy = proc.as_deref().map_or(0, procfs::hierarchy);
        Self { proc, hierarchy, tasks: HashMap::new(), lookups: LOOKUPS, looked_at: 0 }
    }

    /// Writes the tasks that existed at the start.
    pub(crate) fn begin(&mut self, found: &[procfs::Task], sink: &mut dyn Sink) {
        for task in found {
            let (tgid, cgroup, allowed) = (Some(task.tgid), task.cgroup.clone(), task.allowed.clone());
            let known = Task { comm: task.comm.clone(), tgid, cgroup, allowed, gone: false };
            write(0, task.tid, &known, sink);
            if let Some(cpus) = task.allowed.clone() {
                sink.affinity(&AffinityRecord { time: 0, tid: task.tid, cpus });
            }
            self.tasks.insert(task.tid, known);
        }
    }

    /// Allows look-ups in /proc again.
    pub(crate) fn renew(&mut self) {
        self.lookups = LOOKUPS;
    }

    /// Takes a change and writes the identities that it alters. Changes must come in time order.
    pub(crate) fn change(&mut self, time: Nanos, change: Change, sink: &mut dyn Sink) {
        match change {
            Change::New { parent, tid, comm, flags } => {
                let parent = self.tasks.get(&parent).cloned().unwrap_or_default();
                let tgid = if flags & CLONE_THREAD == 0 { Some(tid) } else { parent.tgid };
                let cgroup = if flags & CLONE_INTO_CGROUP == 0 { parent.cgroup } else { self.look_up(tid).1 };
                let task = Task { comm, tgid, cgroup, allowed: parent.allowed, gone: false };
                write(time, tid, &task, sink);
                self.tasks.insert(tid, task);
            }
            Change::Named { tid, comm } => {
                // A task may set its affinity before it calls exec, as taskset does; exec renames it.
                if self.lookups > 0 {
                    self.lookups -= 1;
                    self.look_at_affinity(time, tid, sink);
                }
                let mut task = self.tasks.get(&tid).cloned().unwrap_or_default();
                if task.comm == comm {
                    return;
                }
                task.comm = comm;
                if task.tgid.is_none() {
                    (task.tgid, task.cgroup) = self.look_up(tid);
                }
                write(time, tid, &task, sink);
                self.tasks.insert(tid, task);
            }
            Change::Moved { tgid, hierarchy, path } if hierarchy == self.hierarchy => {
                let path: Arc<str> = Arc::from(path);
                // The event names the leader of a process that moves whole, or else the thread that moves.
                let moves = |(tid, task): &(&Tid, &Task)| task.tgid == Some(tgid) || **tid == tgid;
                let mut moved: Vec<Tid> = self.tasks.iter().filter(moves).map(|(tid, _)| *tid).collect();
                moved.sort_unstable();
                for tid in moved {
                    let Some(task) = self.tasks.get_mut(&tid) else { continue };
                    task.cgroup = Some(Arc::clone(&path));
                    write(time, tid, task, sink);
                }
            }
            Change::Moved { .. } => {}
        }
    }

    /// Reads the affinity of some tasks again, those that have waited longest for it, and writes those that changed. To
    /// be called about once a second.
    pub(crate) fn look_again(&mut self, time: Nanos, sink: &mut dyn Sink) {
        let mut living: Vec<Tid> = self.tasks.iter().filter(|(_, task)| !task.gone).map(|(tid, _)| *tid).collect();
        living.sort_unstable();
        let next = living.partition_point(|tid| *tid <= self.looked_at);
        living.rotate_left(next);
        living.truncate(LOOKED_AT_AGAIN);
        self.looked_at = living.last().copied().unwrap_or(0);
        living.into_iter().for_each(|tid| self.look_at_affinity(time, tid, sink));
    }

    /// Reads a task's affinity, and writes it if it is another than before.
    fn look_at_affinity(&mut self, time: Nanos, tid: Tid, sink: &mut dyn Sink) {
        let Some(proc) = &self.proc else { return };
        let found = procfs::allowed_of(proc, tid);
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        task.gone = found.is_none();
        if let Some(cpus) = found.filter(|cpus| task.allowed.as_ref() != Some(cpus)) {
            task.allowed = Some(cpus.clone());
            sink.affinity(&AffinityRecord { time, tid, cpus });
        }
    }

    /// The process and cgroup of a task whose creation was missed, if it still lives.
    fn look_up(&mut self, tid: Tid) -> (Option<Tid>, Option<Arc<str>>) {
        let Some(proc) = self.proc.as_deref().filter(|_| self.lookups > 0) else { return (None, None) };
        self.lookups -= 1;
        procfs::identity(proc, self.hierarchy, tid).map_or((None, None), |(tgid, cgroup)| (Some(tgid), cgroup))
    }
}

fn write(time: Nanos, tid: Tid, task: &Task, sink: &mut dyn Sink) {
    let cgroup = task.cgroup.as_deref().map(str::to_owned);
    sink.name(&NameRecord { time, tid, tgid: task.tgid, comm: task.comm.clone(), cgroup });
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::Event;

    #[derive(Default)]
    struct Written(Vec<NameRecord>, Vec<String>);

    impl Sink for Written {
        fn events(&mut self, _: &[Event]) {}
        fn name(&mut self, record: &NameRecord) {
            self.0.push(record.clone());
        }
        fn affinity(&mut self, record: &AffinityRecord) {
            self.1.push(format!("{} {}: {}", record.time, record.tid, record.cpus));
        }
    }

    fn task(tid: Tid, tgid: Tid) -> procfs::Task {
        let (comm, cgroup) = ("sh".into(), Some("/a".into()));
        procfs::Task { tid, tgid, parent: 1, comm, cgroup, allowed: None, runnable: false, cpu: 0 }
    }

    type Row<'a> = (u64, Tid, Option<Tid>, &'a str, Option<&'a str>);

    fn summary(written: &Written) -> Vec<Row<'_>> {
        written.0.iter().map(|n| (n.time, n.tid, n.tgid, n.comm.as_str(), n.cgroup.as_deref())).collect()
    }

    #[test]
    fn children_inherit_and_changes_are_written_once() {
        let dir = tempfile::tempdir().unwrap();
        let (mut tasks, mut out) = (Tasks::new(Some(dir.path().into())), Written::default());
        tasks.begin(&[task(5, 5)], &mut out);
        let new = |tid, flags| Change::New { parent: 5, tid, comm: "sh".into(), flags };
        tasks.change(10, new(6, 0), &mut out);
        tasks.change(11, new(7, CLONE_THREAD), &mut out);
        let named = |comm: &str| Change::Named { tid: 6, comm: comm.into() };
        tasks.change(12, named("sh"), &mut out);
        tasks.change(13, named("cc1"), &mut out);
        tasks.change(14, Change::Moved { tgid: 5, hierarchy: 0, path: "/b".into() }, &mut out);
        tasks.change(15, Change::Moved { tgid: 5, hierarchy: 4, path: "/other".into() }, &mut out);
        assert_eq!(
            summary(&out),
            vec![
                (0, 5, Some(5), "sh", Some("/a")),
                (10, 6, Some(6), "sh", Some("/a")),
                (11, 7, Some(5), "sh", Some("/a")),
                (13, 6, Some(6), "cc1", Some("/a")),
                (14, 5, Some(5), "sh", Some("/b")),
                (14, 7, Some(5), "sh", Some("/b")),
            ]
        );
    }

    #[test]
    fn affinities_are_read_at_an_exec_and_again_later() {
        let dir = tempfile::tempdir().unwrap();
        let allow = |tid: Tid, cpus: &str| {
            let own = dir.path().join(tid.to_string());
            std::fs::create_dir_all(&own).unwrap();
            std::fs::write(own.join("status"), format!("Name:\tx\nCpus_allowed_list:\t{cpus}\n")).unwrap();
        };
        let (mut tasks, mut out) = (Tasks::new(Some(dir.path().into())), Written::default());
        let both: CpuList = "0-1".parse().unwrap();
        tasks.begin(&[procfs::Task { allowed: Some(both), ..task(5, 5) }], &mut out);
        tasks.change(10, Change::New { parent: 5, tid: 6, comm: "sh".into(), flags: 0 }, &mut out);
        // 6 is taskset, which binds itself and calls exec; 5 is bound by somebody at some time.
        allow(6, "1");
        tasks.change(12, Change::Named { tid: 6, comm: "load".into() }, &mut out);
        allow(5, "0-1");
        tasks.look_again(20, &mut out);
        allow(5, "0");
        tasks.look_again(30, &mut out);
        tasks.look_again(40, &mut out);
        assert_eq!(out.1, ["0 5: 0-1", "12 6: 1", "30 5: 0"]);
    }

    #[test]
    fn a_task_whose_creation_was_missed_is_looked_up() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("9")).unwrap();
        std::fs::write(dir.path().join("9/status"), "Name:\tx\nTgid:\t8\n").unwrap();
        std::fs::write(dir.path().join("9/cgroup"), "0::/c\n").unwrap();
        let (mut tasks, mut out) = (Tasks::new(Some(dir.path().into())), Written::default());
        tasks.change(1, Change::Named { tid: 9, comm: "x".into() }, &mut out);
        tasks.change(2, Change::Named { tid: 77, comm: "gone".into() }, &mut out);
        assert_eq!(summary(&out), vec![(1, 9, Some(8), "x", Some("/c")), (2, 77, None, "gone", None)]);
    }

    #[test]
    fn records_are_read_by_their_format() {
        let text = "name: cgroup_attach_task\nID: 7\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
            \tfield:int dst_root;\toffset:8;\tsize:4;\tsigned:1;\n\
            \tfield:__data_loc char[] dst_path;\toffset:12;\tsize:4;\tsigned:0;\n\
            \tfield:int pid;\toffset:16;\tsize:4;\tsigned:1;\n";
        let changes = Changes::new(vec![Format::parse(text).unwrap()]);
        let mut raw = vec![7, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 20, 0, 3, 0, 42, 0, 0, 0, b'/', b'x', 0];
        let moved = Change::Moved { tgid: 42, hierarchy: 3, path: "/x".into() };
        assert_eq!(changes.read(&raw), Some(moved));
        for cut in 0..raw.len() {
            let _ = changes.read(&raw[..cut]);
        }
        raw[12] = 0xff;
        assert_eq!(changes.read(&raw), None, "a string outside the record");
    }
}

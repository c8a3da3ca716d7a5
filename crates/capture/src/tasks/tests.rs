//! Identities by the changes that events report.

use super::*;
use schedlab_base::Event;

#[derive(Default)]
struct Written(Vec<NameRecord>, Vec<String>, Vec<String>);

impl Sink for Written {
    fn events(&mut self, _: &[Event]) {}
    fn name(&mut self, record: &NameRecord) {
        self.0.push(record.clone());
    }
    fn affinity(&mut self, record: &AffinityRecord) {
        self.1.push(format!("{} {}: {}", record.time, record.tid, record.cpus));
    }
    fn task(&mut self, record: &TaskRecord) {
        let TaskProperties { nice, autogroup, .. } = record.properties;
        self.2.push(format!("{} {}: nice {nice:?} session {autogroup:?}", record.time, record.tid));
    }
}

fn task(tid: Tid, tgid: Tid) -> procfs::Task {
    let (comm, cgroup) = ("sh".into(), Some("/a".into()));
    let properties = TaskProperties::default();
    procfs::Task { tid, tgid, parent: 1, comm, cgroup, allowed: None, properties, runnable: false, cpu: 0 }
}

/// Writes into a folder that stands for /proc where a task may run.
fn allow(proc: &std::path::Path, tid: Tid, cpus: &str) {
    let own = proc.join(tid.to_string());
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("status"), format!("Name:\tx\nCpus_allowed_list:\t{cpus}\n")).unwrap();
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
    let allow = |tid, cpus| allow(dir.path(), tid, cpus);
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
fn what_is_bound_while_many_programs_start_is_known_to_be() {
    let dir = tempfile::tempdir().unwrap();
    let allow = |tid, cpus| allow(dir.path(), tid, cpus);
    let (mut tasks, mut out) = (Tasks::new(Some(dir.path().into())), Written::default());
    tasks.begin(&[task(5, 5)], &mut out);
    let new = |parent, tid| Change::New { parent, tid, comm: "sh".into(), flags: 0 };
    for tid in 1000..1200 {
        tasks.change(10, new(5, tid), &mut out);
        tasks.change(11, Change::Named { tid, comm: format!("cc{tid}") }, &mut out);
    }
    let mut bind = |time, tid: Tid| {
        allow(tid, "1");
        tasks.change(time, Change::Asks { tid, call: Call::Affinity { who: 0, cpus: None } }, &mut out);
        tasks.change(time + 1, Change::Answered { tid, done: true }, &mut out);
    };
    bind(20, 1000);
    (1001..1064).for_each(|tid| bind(30, tid));
    // This one has to wait, and its child with it.
    bind(40, 1100);
    allow(2000, "1");
    tasks.change(42, new(1100, 2000), &mut out);
    tasks.settle(50, &mut out);
    assert_eq!((out.1[0].as_str(), out.1.len()), ("21 1000: 1", 66));
    assert_eq!(out.1[64..], ["50 1100: 1", "50 2000: 1"]);
}

#[test]
fn what_a_task_asked_for_counts_where_it_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (mut tasks, mut out) = (Tasks::new(Some(dir.path().into())), Written::default());
    tasks.begin(&[task(5, 5)], &mut out);
    let new = |parent, tid| Change::New { parent, tid, comm: "sh".into(), flags: 0 };
    let call = |cpus: &str| Call::Affinity { who: 0, cpus: Some(cpus.parse().unwrap()) };
    tasks.change(10, new(5, 6), &mut out);
    tasks.change(11, Change::Asks { tid: 6, call: call("0") }, &mut out);
    tasks.change(12, Change::Answered { tid: 6, done: false }, &mut out);
    tasks.change(13, Change::Asks { tid: 6, call: call("1-3") }, &mut out);
    tasks.change(14, Change::Answered { tid: 6, done: true }, &mut out);
    // Its cpuset leaves less of what the other asks for.
    allow(dir.path(), 5, "1");
    tasks.change(20, Change::Asks { tid: 5, call: call("0-1") }, &mut out);
    tasks.change(21, Change::Answered { tid: 5, done: true }, &mut out);
    assert_eq!(out.1, ["14 6: 1-3", "21 5: 0-1", "21 5: 1"]);
    assert_eq!(tasks.tasks[&6].allowed, Some("1-3".parse().unwrap()));
}

#[test]
fn a_task_that_changes_all_the_time_is_looked_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (mut tasks, mut out) = (Tasks::new(Some(dir.path().into())), Written::default());
    tasks.begin(&[task(5, 5), task(6, 6)], &mut out);
    for time in 0..1_000 {
        let tid = 5 + time as Tid % 2;
        tasks.change(time, Change::Asks { tid, call: Call::Policy { who: 0 } }, &mut out);
        tasks.change(time, Change::Answered { tid, done: true }, &mut out);
    }
    assert_eq!(tasks.doubtful, [(64, 5), (65, 6)]);
    allow(dir.path(), 5, "1");
    tasks.settle(1_000, &mut out);
    assert_eq!((tasks.doubtful.len(), out.1), (0, vec!["1000 5: 1".to_owned()]));
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
fn system_calls_change_how_tasks_are_scheduled() {
    let dir = tempfile::tempdir().unwrap();
    let (mut tasks, mut out) = (Tasks::new(Some(dir.path().into())), Written::default());
    let properties = TaskProperties { nice: Some(0), autogroup: Some(7), ..TaskProperties::default() };
    // No task has these ids, so nothing is found when they are looked at.
    let (five, six) = (Tid::MAX - 5, Tid::MAX - 6);
    tasks.begin(&[procfs::Task { properties, ..task(five, five) }], &mut out);
    let mut call = |time, tid, call, done| {
        tasks.change(time, Change::Asks { tid, call }, &mut out);
        tasks.change(time + 1, Change::Answered { tid, done }, &mut out);
    };
    call(10, five, Call::Nice { who: 0, nice: 3 }, true);
    call(20, five, Call::Nice { who: 0, nice: 9 }, false);
    // The caller's ids may be those of a container.
    call(30, six, Call::Nice { who: five, nice: 9 }, true);
    tasks.change(40, Change::New { parent: five, tid: six, comm: "sh".into(), flags: 0 }, &mut out);
    tasks.change(41, Change::Asks { tid: six, call: Call::Session }, &mut out);
    tasks.change(42, Change::Answered { tid: six, done: true }, &mut out);
    let of = |time, tid, nice, session: u64| format!("{time} {tid}: nice Some({nice}) session Some({session})");
    let unread = UNREAD_SESSIONS + 1;
    assert_eq!(out.2, [of(0, five, 0, 7), of(11, five, 3, 7), of(42, six, 3, unread)]);
}

#[test]
fn a_thread_can_move_without_its_process() {
    let dir = tempfile::tempdir().unwrap();
    let (mut tasks, mut out) = (Tasks::new(Some(dir.path().into())), Written::default());
    tasks.begin(&[task(5, 5), task(6, 5)], &mut out);
    tasks.change(14, Change::Moved { tgid: 6, hierarchy: 0, path: "/b".into() }, &mut out);
    assert_eq!(summary(&out)[2..], [(14, 6, Some(5), "sh", Some("/b"))]);
}

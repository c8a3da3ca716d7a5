//! The identity of each task: its name, process and cgroup, and how it is scheduled, updated by the events that change
//! them.

#[cfg(test)]
mod tests;

use crate::cgroups::Cgroups;
use crate::changes::{Call, Change};
use crate::procfs;
use schedlab_base::{AffinityRecord, CpuList, GroupRecord, NameRecord, Nanos, Sink, TaskProperties, TaskRecord, Tid};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

/// The flag of `clone()` for a thread of the parent's process.
const CLONE_THREAD: u64 = 0x1_0000;
/// The flag of `clone3()` for a child that starts in another cgroup.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
/// The number of look-ups in /proc allowed between two drains, each for tasks that call exec and for those that system
/// calls have changed. Few are needed, because events report most identities.
const LOOKUPS: u32 = 64;
/// The number of tasks that are looked at again at a time, for changes that no event reports.
const LOOKED_AT_AGAIN: usize = 128;
/// The most system calls under way, and tasks to be looked at, that are remembered.
const MOST_PENDING: usize = 1 << 16;
/// Sessions whose number was not read get a number from here on, beyond the kernel's, which have 32 bits.
const UNREAD_SESSIONS: u64 = 1 << 32;

/// The known identity of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Task {
    comm: String,
    tgid: Option<Tid>,
    cgroup: Option<Arc<str>>,
    /// The CPUs that it may run on, as last written or inherited.
    allowed: Option<CpuList>,
    /// How it is scheduled, as last written or inherited.
    properties: TaskProperties,
    /// /proc does not have it any more.
    gone: bool,
    /// How it is scheduled has changed, and is still to be looked at.
    doubted: bool,
}

/// Every task seen so far, with the identity that was last written.
pub(crate) struct Tasks {
    /// The path of /proc, if its ids are the kernel's.
    proc: Option<PathBuf>,
    hierarchy: u32,
    tasks: HashMap<Tid, Task>,
    cgroups: Cgroups,
    lookups: u32,
    /// The look-ups that are left for what system calls have changed.
    answers: u32,
    /// The last task that was looked at again.
    looked_at: Tid,
    /// System calls under way, by caller.
    calls: HashMap<Tid, Call>,
    /// Tasks that are still to be looked at, and since when.
    doubtful: VecDeque<(Nanos, Tid)>,
    unread_sessions: u64,
}

impl Tasks {
    /// Creates an empty table; `proc` is where /proc is mounted, if its ids are the kernel's.
    pub(crate) fn new(proc: Option<PathBuf>) -> Self {
        let hierarchy = proc.as_deref().map_or(0, procfs::hierarchy);
        let cgroups = Cgroups::new(proc.as_deref());
        Self {
            proc,
            hierarchy,
            tasks: HashMap::new(),
            cgroups,
            lookups: LOOKUPS,
            answers: LOOKUPS,
            looked_at: 0,
            calls: HashMap::new(),
            doubtful: VecDeque::new(),
            unread_sessions: UNREAD_SESSIONS,
        }
    }

    /// The cgroups that tasks were seen in.
    pub(crate) fn cgroups(&mut self) -> &mut Cgroups {
        &mut self.cgroups
    }

    /// Reads the groups that tasks are in at the start. What is to be recorded may be over, and they gone, before
    /// anything is written.
    pub(crate) fn read_groups(&mut self, found: &[procfs::Task]) {
        let paths: BTreeSet<&str> = found.iter().filter_map(|task| task.cgroup.as_deref()).collect();
        paths.into_iter().for_each(|path| self.cgroups.read_ahead(path));
    }

    /// Writes the tasks that existed at the start.
    pub(crate) fn begin(&mut self, found: &[procfs::Task], sink: &mut dyn Sink) {
        for task in found {
            let (tgid, cgroup, allowed) = (Some(task.tgid), task.cgroup.clone(), task.allowed.clone());
            let (comm, properties) = (task.comm.clone(), task.properties.clone());
            let known = Task { comm, tgid, cgroup, allowed, properties, ..Task::default() };
            self.write(0, task.tid, &known, sink);
            if let Some(cpus) = task.allowed.clone() {
                sink.affinity(&AffinityRecord { time: 0, tid: task.tid, cpus });
            }
            describe(0, task.tid, &known, sink);
            self.tasks.insert(task.tid, known);
        }
    }

    /// Allows look-ups in /proc again.
    pub(crate) fn renew(&mut self) {
        (self.lookups, self.answers) = (LOOKUPS, LOOKUPS);
    }

    /// Takes a change and writes the identities that it alters. Changes must come in time order.
    pub(crate) fn change(&mut self, time: Nanos, change: Change, sink: &mut dyn Sink) {
        match change {
            Change::New { parent, tid, comm, flags } => {
                let parent = self.tasks.get(&parent).cloned().unwrap_or_default();
                let tgid = if flags & CLONE_THREAD == 0 { Some(tid) } else { parent.tgid };
                let cgroup = if flags & CLONE_INTO_CGROUP == 0 { parent.cgroup } else { self.look_up(tid).1 };
                let properties = parent.properties.of_child();
                let task = Task { comm, tgid, cgroup, allowed: parent.allowed, properties, ..Task::default() };
                self.write(time, tid, &task, sink);
                self.calls.remove(&tid);
                self.tasks.insert(tid, task);
                if parent.doubted {
                    self.doubt(time, tid);
                }
            }
            Change::Named { tid, comm } => self.named(time, tid, comm, sink),
            Change::Moved { tgid, hierarchy, path } if hierarchy == self.hierarchy => {
                self.moved(time, tgid, path, sink)
            }
            Change::Moved { .. } => {}
            Change::Asks { tid, call } => {
                if self.calls.len() < MOST_PENDING {
                    self.calls.insert(tid, call);
                }
            }
            Change::Answered { tid, done } => {
                if let Some(call) = self.calls.remove(&tid).filter(|_| done) {
                    self.called(time, tid, call, sink);
                }
            }
            Change::Group { path, properties } => sink.group(&GroupRecord { time, path, properties }),
        }
    }

    fn named(&mut self, time: Nanos, tid: Tid, comm: String, sink: &mut dyn Sink) {
        // Something may have changed unseen before it calls exec; exec renames it.
        self.look(time, tid, sink);
        let mut task = self.tasks.get(&tid).cloned().unwrap_or_default();
        if task.comm == comm {
            return;
        }
        task.comm = comm;
        if task.tgid.is_none() {
            (task.tgid, task.cgroup) = self.look_up(tid);
        }
        self.write(time, tid, &task, sink);
        self.tasks.insert(tid, task);
    }

    /// A process moved to another cgroup, or a thread that is not its process's first.
    fn moved(&mut self, time: Nanos, tgid: Tid, path: String, sink: &mut dyn Sink) {
        let path: Arc<str> = Arc::from(path);
        let alone = self.tasks.get(&tgid).is_some_and(|task| task.tgid.is_some_and(|own| own != tgid));
        let members = self.tasks.iter().filter(|(_, t)| t.tgid == Some(tgid)).map(|(tid, _)| *tid);
        let mut moved: Vec<Tid> = if alone { vec![tgid] } else { members.collect() };
        moved.sort_unstable();
        for tid in moved {
            let Some(task) = self.tasks.get_mut(&tid) else { continue };
            task.cgroup = Some(Arc::clone(&path));
            let task = task.clone();
            self.write(time, tid, &task, sink);
        }
    }

    /// A system call that changes how tasks are scheduled has succeeded.
    fn called(&mut self, time: Nanos, caller: Tid, call: Call, sink: &mut dyn Sink) {
        let target = |who: Tid| if who == 0 { caller } else { who };
        match call {
            // In a container the ids are others; what is looked at again shows the change.
            Call::Nice { who, .. } if who != 0 && !self.counts_alike(caller, who) => {}
            Call::Nice { who, nice } => {
                if let Some(task) = self.tasks.get_mut(&target(who)) {
                    task.properties.nice = Some(nice);
                    describe(time, target(who), task, sink);
                }
            }
            Call::Policy { who } => self.doubt(time, target(who)),
            Call::Affinity { who, cpus } => {
                // It may be gone before it is looked at, which also shows what its cpuset leaves of these.
                if let (Some(cpus), true) = (cpus, who == 0 || self.counts_alike(caller, who))
                    && let Some(task) = self.tasks.get_mut(&target(who))
                {
                    allow(time, target(who), task, cpus, sink);
                }
                self.doubt(time, target(who));
            }
            Call::NiceOfMany => {
                let mut all: Vec<Tid> = self.tasks.iter().filter(|(_, t)| !t.gone).map(|(tid, _)| *tid).collect();
                all.sort_unstable();
                all.into_iter().for_each(|tid| self.doubt(time, tid));
            }
            Call::Session => self.new_session(time, caller, sink),
        }
        self.look_at_doubtful(sink);
    }

    /// Whether a task means the same task by an id as the events do. Of a caller that has ended, this is taken from the
    /// cgroups: a container has its own.
    fn counts_alike(&self, caller: Tid, target: Tid) -> bool {
        let cgroup = |tid: Tid| self.tasks.get(&tid).and_then(|task| task.cgroup.as_deref());
        let alike = self.proc.as_deref().and_then(|proc| procfs::counts_alike(proc, caller));
        alike.unwrap_or_else(|| cgroup(caller).is_some() && cgroup(caller) == cgroup(target))
    }

    /// A process, which has this thread alone as a rule, has a new session, and with that a new autogroup.
    fn new_session(&mut self, time: Nanos, caller: Tid, sink: &mut dyn Sink) {
        let found = self.proc.as_deref().filter(|_| self.lookups > 0).and_then(|p| procfs::properties_of(p, caller));
        self.lookups = self.lookups.saturating_sub(1);
        let Some(task) = self.tasks.get_mut(&caller) else { return };
        match found {
            Some(properties) => task.properties = properties,
            // Without autogroups before, there is none now.
            None if task.properties.autogroup.is_none() => return,
            None => {
                self.unread_sessions += 1;
                task.properties.autogroup = Some(self.unread_sessions);
                task.properties.autogroup_nice = None;
            }
        }
        describe(time, caller, task, sink);
    }

    /// Notes that a task is to be looked at, once for all that happens to it until then.
    fn doubt(&mut self, time: Nanos, tid: Tid) {
        let Some(task) = self.tasks.get_mut(&tid).filter(|task| !task.doubted) else { return };
        if self.doubtful.len() < MOST_PENDING {
            self.doubtful.push_back((time, tid));
            task.doubted = true;
        }
    }

    /// Looks at the tasks that were noted, as many as allowed.
    fn look_at_doubtful(&mut self, sink: &mut dyn Sink) {
        while self.answers > 0
            && let Some((time, tid)) = self.doubtful.pop_front()
        {
            self.answers -= 1;
            self.look_freely(time, tid, sink);
        }
    }

    /// Looks at all tasks that are still noted, at the end of a round.
    pub(crate) fn settle(&mut self, time: Nanos, sink: &mut dyn Sink) {
        for (_, tid) in std::mem::take(&mut self.doubtful) {
            self.look_freely(time, tid, sink);
        }
    }

    /// Looks at some tasks again, those that have waited longest for it, and writes what changed.
    pub(crate) fn look_again(&mut self, time: Nanos, sink: &mut dyn Sink) {
        let mut living: Vec<Tid> = self.tasks.iter().filter(|(_, task)| !task.gone).map(|(tid, _)| *tid).collect();
        living.sort_unstable();
        let next = living.partition_point(|tid| *tid <= self.looked_at);
        living.rotate_left(next);
        living.truncate(LOOKED_AT_AGAIN);
        self.looked_at = living.last().copied().unwrap_or(0);
        living.into_iter().for_each(|tid| self.look_freely(time, tid, sink));
    }

    /// Looks at a task, if that is still allowed until the next drain.
    fn look(&mut self, time: Nanos, tid: Tid, sink: &mut dyn Sink) {
        if self.lookups > 0 {
            self.lookups -= 1;
            self.look_freely(time, tid, sink);
        }
    }

    /// Reads where a task may run and how it is scheduled, and writes what differs from before.
    fn look_freely(&mut self, time: Nanos, tid: Tid, sink: &mut dyn Sink) {
        let (Some(proc), Some(task)) = (&self.proc, self.tasks.get_mut(&tid)) else { return };
        let found = procfs::allowed_of(proc, tid);
        (task.gone, task.doubted) = (found.is_none(), false);
        let Some(cpus) = found else { return };
        allow(time, tid, task, cpus, sink);
        if let Some(properties) = procfs::properties_of(proc, tid).filter(|found| *found != task.properties) {
            task.properties = properties;
            describe(time, tid, task, sink);
        }
    }

    /// The process and cgroup of a task whose creation was missed, if it still lives.
    fn look_up(&mut self, tid: Tid) -> (Option<Tid>, Option<Arc<str>>) {
        let Some(proc) = self.proc.as_deref().filter(|_| self.lookups > 0) else { return (None, None) };
        self.lookups -= 1;
        procfs::identity(proc, self.hierarchy, tid).map_or((None, None), |(tgid, cgroup)| (Some(tgid), cgroup))
    }

    /// Writes a task's name, and its cgroup before that if it is new.
    fn write(&mut self, time: Nanos, tid: Tid, task: &Task, sink: &mut dyn Sink) {
        let cgroup = task.cgroup.as_deref();
        cgroup.iter().for_each(|path| self.cgroups.see(time, path, sink));
        let cgroup = cgroup.map(str::to_owned);
        sink.name(&NameRecord { time, tid, tgid: task.tgid, comm: task.comm.clone(), cgroup });
    }
}

/// Writes where a task may run, if that is new.
fn allow(time: Nanos, tid: Tid, task: &mut Task, cpus: CpuList, sink: &mut dyn Sink) {
    if task.allowed.as_ref() != Some(&cpus) {
        task.allowed = Some(cpus.clone());
        sink.affinity(&AffinityRecord { time, tid, cpus });
    }
}

fn describe(time: Nanos, tid: Tid, task: &Task, sink: &mut dyn Sink) {
    if task.properties != TaskProperties::default() {
        sink.task(&TaskRecord { time, tid, properties: task.properties.clone() });
    }
}

//! Names become indices: what rt-app makes a resource of at its first mention.

use schedlab_base::{Error, Result};
use schedlab_sim::program::{Amount, Load, Op};
use schedlab_workload::{Action, Global, MemAccess, TimerMode, Workload};
use schedlab_workload::{TaskDef, path_of};
use std::collections::{HashMap, HashSet};

/// The time of one `write` to /dev/null, where `iorun` goes unless `io_device` says otherwise: nothing is moved, the
/// system call alone counts (some 100 to 300 ns on today's machines).
const NULL_WRITE_NS: u64 = 200;
/// What a hop of a pointer chase fetches.
const CACHE_LINE: u64 = 64;

/// Names in the order of their first mention.
#[derive(Default)]
pub(super) struct Index {
    by_name: hashbrown::HashMap<String, u32>,
    names: Vec<String>,
}

impl Index {
    /// The name's number, given now if it has none.
    pub(super) fn add(&mut self, name: &str) -> u32 {
        if let Some(&at) = self.by_name.get(name) {
            return at;
        }
        let at = self.names.len() as u32;
        self.by_name.insert(name.to_owned(), at);
        self.names.push(name.to_owned());
        at
    }

    pub(super) fn get(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }
}

/// All names of a workload.
pub(super) struct Names<'a> {
    mutexes: Index,
    conds: Index,
    sems: Index,
    suspensions: Index,
    templates: Index,
    jobs: Index,
    barriers: Index,
    participants: Vec<u64>,
    /// A unique timer is the task's own; a plain one is shared by all tasks that name it.
    timers: HashMap<(Option<usize>, &'a str), u32>,
    timer_names: Vec<(String, bool)>,
    /// Whether any task suspends itself or resumes another.
    suspends: bool,
    /// rt-app's timers are absolute as soon as one mention says so.
    absolute: HashSet<u32>,
    /// Suspensions whose name is a condition's or a mutex's, too; in rt-app they are the same things.
    mixed: HashSet<String>,
    task_of: HashMap<&'a str, usize>,
}

impl<'a> Names<'a> {
    pub(super) fn of(workload: &'a Workload) -> Result<Self> {
        let mut names = Self {
            mutexes: Index::default(),
            conds: Index::default(),
            sems: Index::default(),
            suspensions: Index::default(),
            templates: Index::default(),
            jobs: Index::default(),
            barriers: Index::default(),
            participants: Vec::new(),
            timers: HashMap::new(),
            timer_names: Vec::new(),
            suspends: false,
            absolute: HashSet::new(),
            mixed: HashSet::new(),
            task_of: workload.tasks.iter().enumerate().map(|(n, task)| (task.name.as_str(), n)).collect(),
        };
        for (n, task) in workload.tasks.iter().enumerate() {
            for phase in &task.phases {
                for step in &phase.events {
                    names.mention(n, task, &step.what);
                    // A workload that was not read from a file may name what is not there.
                    if let Action::Fork(name) | Action::Jobs(name) = &step.what
                        && !names.task_of.contains_key(name.as_str())
                    {
                        let error = Error::input(format!("there is no task \"{name}\"")).line(step.line);
                        return Err(error.key(path_of(task, phase, &step.key)));
                    }
                }
            }
        }
        names.mix(workload);
        names.check_barriers(workload)?;
        Ok(names)
    }

    fn mention(&mut self, n: usize, task: &TaskDef, action: &'a Action) {
        match action {
            Action::Lock(name) | Action::Unlock(name) | Action::SpinLock(name) | Action::SpinUnlock(name) => {
                self.mutexes.add(name);
            }
            Action::Wait { cond, mutex } | Action::Sync { cond, mutex } => {
                self.conds.add(cond);
                self.mutexes.add(mutex);
            }
            Action::Signal(name) | Action::Broadcast(name) => _ = self.conds.add(name),
            Action::SemPost(name) | Action::SemWait(name) | Action::Ask(name) | Action::Answer(name) => {
                self.sems.add(name);
            }
            Action::Fork(name) => _ = self.templates.add(name),
            Action::Jobs(name) => _ = self.jobs.add(name),
            Action::Barrier(name) | Action::SpinBarrier(name) | Action::HybridBarrier { name, .. } => {
                // rt-app counts mentions, each for all instances of its task.
                let at = self.barriers.add(name) as usize;
                self.participants.resize(self.participants.len().max(at + 1), 0);
                self.participants[at] += u64::from(task.instances);
            }
            Action::Timer { name, unique, mode, .. } => {
                let next = self.timer_names.len() as u32;
                let at = *self.timers.entry((unique.then_some(n), name)).or_insert(next);
                if at == next {
                    self.timer_names.push((name.clone(), *unique));
                }
                if *mode == TimerMode::Absolute {
                    self.absolute.insert(at);
                }
            }
            Action::Suspend(_) | Action::Resume(_) => self.suspends = true,
            _ => {}
        }
    }

    /// Suspensions come last: those that share a name with a condition or mutex are made of these.
    fn mix(&mut self, workload: &'a Workload) {
        if !self.suspends {
            return;
        }
        for (task, _, step) in workload.steps() {
            let name = match &step.what {
                Action::Suspend(name) => suspension(task, name),
                Action::Resume(name) => name,
                _ => continue,
            };
            if self.conds.get(name).is_some() || self.mutexes.get(name).is_some() {
                self.mixed.insert(name.to_owned());
            } else {
                self.suspensions.add(name);
            }
        }
        for (task, _, step) in workload.steps() {
            if let Action::Suspend(name) | Action::Resume(name) = &step.what {
                let name = if matches!(step.what, Action::Suspend(_)) { suspension(task, name) } else { name };
                if self.mixed.contains(name) {
                    self.conds.add(name);
                    self.mutexes.add(name);
                }
            }
        }
    }

    fn check_barriers(&self, workload: &Workload) -> Result<()> {
        if self.participants.is_empty() {
            return Ok(());
        }
        for (task, phase, step) in workload.steps() {
            let (Action::Barrier(name) | Action::SpinBarrier(name) | Action::HybridBarrier { name, .. }) = &step.what
            else {
                continue;
            };
            let count = self.participants(name);
            let error = |what: String| Error::input(what).line(step.line).key(path_of(task, phase, &step.key));
            if count == 0 {
                let what = format!("only forked tasks use the barrier \"{name}\", and rt-app does not count those");
                return Err(
                    error(what).mend("let a task that exists from the start use it, or use sem_post and sem_wait")
                );
            }
            if count > u64::from(u32::MAX) {
                return Err(error(format!("the barrier \"{name}\" has too many users")));
            }
        }
        Ok(())
    }

    /// How many tasks a barrier waits for.
    pub(super) fn participants(&self, barrier: &str) -> u64 {
        self.barriers.get(barrier).map_or(0, |at| self.participants[at as usize])
    }

    /// The template's number, where the task is forked by some task.
    pub(super) fn template(&self, task: &TaskDef) -> Option<u32> {
        self.templates.get(&task.name)
    }

    /// The number of the list of jobs that the task's phases are, where some task does them.
    pub(super) fn jobs(&self, task: &TaskDef) -> Option<u32> {
        self.jobs.get(&task.name)
    }

    /// The index of a task by its name.
    pub(super) fn task(&self, name: &str) -> Option<usize> {
        self.task_of.get(name).copied()
    }

    /// Hands the names over to the load.
    pub(super) fn fill(&mut self, load: &mut Load) {
        load.mutexes = std::mem::take(&mut self.mutexes.names);
        load.conds = std::mem::take(&mut self.conds.names);
        load.sems = std::mem::take(&mut self.sems.names);
        load.suspensions = std::mem::take(&mut self.suspensions.names);
        load.timers = std::mem::take(&mut self.timer_names);
        let barriers = std::mem::take(&mut self.barriers.names);
        load.barriers = barriers.into_iter().zip(self.participants.iter().map(|n| *n as u32)).collect();
    }

    /// Adds the operations of one event of task `n` to a program.
    pub(super) fn ops(&self, n: usize, task: &TaskDef, action: &Action, global: &Global, program: &mut Vec<Op>) {
        let of = |index: &Index, name: &str| index.get(name).expect("every name was mentioned");
        let mutex = |name: &str| of(&self.mutexes, name);
        let cond = |name: &str| of(&self.conds, name);
        let op = match action {
            Action::Run(time) => Op::Run(amount(*time)),
            Action::Runtime(time) => Op::Runtime(amount(*time)),
            Action::Sleep(time) => Op::Sleep(amount(*time)),
            Action::Timeout(length) => Op::Timeout(*length),
            Action::Timer { name, unique, period, .. } => {
                let timer = self.timers[&(unique.then_some(n), name.as_str())];
                Op::Timer { timer, period: amount(*period), absolute: self.absolute.contains(&timer) }
            }
            Action::Lock(name) => Op::Lock(mutex(name)),
            Action::Unlock(name) => Op::Unlock(mutex(name)),
            Action::SpinLock(name) => Op::SpinLock(mutex(name)),
            Action::SpinUnlock(name) => Op::SpinUnlock(mutex(name)),
            Action::Wait { cond: c, mutex: m } => Op::Wait { cond: cond(c), mutex: mutex(m) },
            Action::Sync { cond: c, mutex: m } => {
                return program.extend([Op::Signal(cond(c)), Op::Wait { cond: cond(c), mutex: mutex(m) }]);
            }
            Action::Signal(name) => Op::Signal(cond(name)),
            Action::Broadcast(name) => Op::Broadcast(cond(name)),
            Action::Barrier(name) => Op::Barrier(of(&self.barriers, name)),
            Action::SpinBarrier(name) => Op::SpinBarrier(of(&self.barriers, name)),
            Action::HybridBarrier { name, spin } => {
                Op::HybridBarrier { barrier: of(&self.barriers, name), spin: *spin }
            }
            Action::Suspend(name) => {
                let name = suspension(task, name);
                if self.mixed.contains(name) {
                    let (m, c) = (mutex(name), cond(name));
                    return program.extend([Op::Lock(m), Op::Wait { cond: c, mutex: m }, Op::Unlock(m)]);
                }
                Op::Suspend(of(&self.suspensions, name))
            }
            Action::Resume(name) if self.mixed.contains(name) => {
                let (m, c) = (mutex(name), cond(name));
                return program.extend([Op::Lock(m), Op::Broadcast(c), Op::Unlock(m)]);
            }
            Action::Resume(name) => Op::Resume(of(&self.suspensions, name)),
            Action::Mem(bytes) => Op::Mem { bytes: *bytes, random: false },
            Action::MemRun { access, count, stride, random, .. } => match access {
                MemAccess::Read | MemAccess::Write => Op::Mem { bytes: *count, random: false },
                MemAccess::Chase => Op::Mem { bytes: count.saturating_mul((*stride).min(CACHE_LINE)), random: *random },
            },
            Action::IoRun(bytes) => io(*bytes, global),
            Action::Yield => Op::Yield,
            Action::Exec => Op::Exec,
            Action::Fork(name) => Op::Fork(of(&self.templates, name)),
            Action::Jobs(name) => Op::Jobs(of(&self.jobs, name)),
            Action::SemPost(name) => Op::SemPost(of(&self.sems, name)),
            Action::SemWait(name) => Op::SemWait(of(&self.sems, name)),
            Action::Ask(name) => Op::Ask(of(&self.sems, name)),
            Action::Answer(name) => Op::Answer(of(&self.sems, name)),
            Action::Await => Op::Await,
        };
        program.push(op);
    }
}

/// Under which name a task suspends itself: its own where nothing is said.
fn suspension<'n>(task: &'n TaskDef, name: &'n str) -> &'n str {
    if name.is_empty() { &task.name } else { name }
}

pub(super) fn amount(amount: schedlab_workload::Amount) -> Amount {
    Amount { mean: amount.mean, sd: amount.sd }
}

/// Writing to a device sleeps; writing to /dev/null is a system call for each buffer full.
fn io(bytes: u64, global: &Global) -> Op {
    if global.io_device.is_some() {
        return Op::Io(bytes);
    }
    let calls = bytes.div_ceil(global.mem_buffer_size.max(1));
    Op::Runtime(Amount { mean: calls.saturating_mul(NULL_WRITE_NS), sd: 0 })
}

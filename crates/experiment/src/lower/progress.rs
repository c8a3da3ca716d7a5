//! Loops in which no time passes would keep the simulator at one instant for ever: they are refused.
//!
//! Judged task by task: a loop must compute, sleep, or wait for somebody else. Tasks that wake each other in turn and
//! never compute are not found here; the engine watches for them.

use super::names::Names;
use schedlab_base::{Error, Result};
use schedlab_workload::{Action, Phase, Step, TaskDef, Workload, path_of};

/// The most events that a task may carry out at one instant.
const MAX_AT_ONCE: u64 = 10_000_000;

/// Checks every task.
pub(super) fn check(workload: &Workload, names: &Names) -> Result<()> {
    for task in &workload.tasks {
        check_task(task, names)?;
    }
    check_forks(workload, names)
}

/// Refuses a task that is killed while it may hold what others need, or while others count on it.
fn check_lifetime(task: &TaskDef) -> Result<()> {
    if task.lifetime.is_none() {
        return Ok(());
    }
    let needed = |what: &Action| {
        matches!(
            what,
            Action::SpinLock(_)
                | Action::Wait { .. }
                | Action::Sync { .. }
                | Action::Barrier(_)
                | Action::SpinBarrier(_)
                | Action::HybridBarrier { .. }
                | Action::Jobs(_)
        )
    };
    let mut steps = task.phases.iter().flat_map(|phase| phase.events.iter().map(move |step| (phase, step)));
    match steps.find(|(_, step)| needed(&step.what)) {
        None => Ok(()),
        Some((phase, step)) => {
            let what = "a task with x-lifetime cannot spin for locks, wait at conditions and barriers, or do x-jobs: \
                        others would wait for it in vain when it is killed";
            Err(at(what, task, phase, Some(step)).mend("use locks and semaphores, or leave x-lifetime out"))
        }
    }
}

/// An error at an event of a phase, or at the phase.
fn at(what: &str, task: &TaskDef, phase: &Phase, step: Option<&Step>) -> Error {
    let (key, line) = step.map_or(("", 0), |step| (step.key.as_str(), step.line));
    let error = Error::input(what).key(path_of(task, phase, key));
    if line > 0 { error.line(line) } else { error }
}

fn check_task(task: &TaskDef, names: &Names) -> Result<()> {
    check_lifetime(task)?;
    let mut round: u64 = 0;
    let mut passes = false;
    for phase in &task.phases {
        if phase_passes(phase, names) {
            passes = true;
            continue;
        }
        let events = phase.loops.map(|n| n.saturating_mul(phase.events.len() as u64));
        match events {
            Some(events) if events <= MAX_AT_ONCE => round = round.saturating_add(events),
            _ => return Err(endless(task, phase)),
        }
    }
    let all = task.loops.map_or(u64::MAX, |n| n.saturating_mul(round));
    match task.phases.first() {
        Some(phase) if !passes && all > MAX_AT_ONCE => Err(endless(task, phase)),
        _ => Ok(()),
    }
}

fn endless(task: &TaskDef, phase: &Phase) -> Error {
    let error = at("this loop goes on without any time passing", task, phase, phase.events.first());
    error.mend("let it run, sleep or wait for another task, or loop fewer times")
}

/// Whether a round of the phase takes time or waits for others.
fn phase_passes(phase: &Phase, names: &Names) -> bool {
    let posts = |name: &String| {
        phase.events.iter().any(|s| matches!(&s.what, Action::SemPost(n) | Action::Ask(n) if n == name))
    };
    let answers = phase.events.iter().any(|s| matches!(s.what, Action::Answer(_)));
    phase.events.iter().any(|step| match &step.what {
        Action::SemWait(name) => !posts(name),
        Action::Await => !answers,
        what => takes_time(what) || waits(what, names),
    })
}

fn takes_time(action: &Action) -> bool {
    match action {
        Action::Run(time) | Action::Runtime(time) | Action::Sleep(time) => time.mean > 0 || time.sd > 0,
        Action::Timeout(_) => true,
        Action::Timer { period, .. } => period.mean > 0 || period.sd > 0,
        // Less than this may come to no whole ns.
        Action::Mem(bytes) => *bytes >= 64,
        Action::MemRun { count, .. } => *count >= 64,
        Action::IoRun(bytes) => *bytes > 0,
        _ => false,
    }
}

/// Whether it waits for others, semaphores and answers aside.
fn waits(action: &Action, names: &Names) -> bool {
    match action {
        Action::Wait { .. } | Action::Sync { .. } | Action::Suspend(_) => true,
        Action::Barrier(name) | Action::SpinBarrier(name) | Action::HybridBarrier { name, .. } => {
            names.participants(name) > 1
        }
        _ => false,
    }
}

/// Refuses a task that forks itself, perhaps through others, before any time has passed.
fn check_forks(workload: &Workload, names: &Names) -> Result<()> {
    let children: Vec<Vec<usize>> = workload
        .tasks
        .iter()
        .map(|task| at_once(task).into_iter().filter_map(|name| names.task(name)).collect())
        .collect();
    let mut parents = vec![0_u32; children.len()];
    for &child in children.iter().flatten() {
        parents[child] += 1;
    }
    // Take away who is forked by nobody that is left: what stays forks itself, or is forked by such a one.
    let mut free: Vec<usize> = (0..children.len()).filter(|n| parents[*n] == 0).collect();
    while let Some(n) = free.pop() {
        for &child in &children[n] {
            parents[child] -= 1;
            if parents[child] == 0 {
                free.push(child);
            }
        }
    }
    match workload.tasks.iter().zip(&parents).find(|(_, parents)| **parents > 0) {
        None => Ok(()),
        Some((task, _)) => {
            let what = format!("forks of \"{}\" go on without any time passing", task.name);
            Err(Error::input(what).key(format!("tasks.{}", task.name)).mend("let it run or sleep first"))
        }
    }
}

/// What a task forks at the instant at which it starts.
fn at_once(task: &TaskDef) -> Vec<&str> {
    if task.loops == Some(0) || task.delay > 0 {
        return Vec::new();
    }
    let steps = task.phases.iter().flat_map(|phase| &phase.events);
    steps
        .take_while(|step| !takes_time(&step.what))
        .filter_map(|step| if let Action::Fork(name) = &step.what { Some(name.as_str()) } else { None })
        .collect()
}

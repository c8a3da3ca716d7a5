//! Checks that need the whole workload: references that must exist, and uses of a name that must agree.

use super::{Remarks, jobs, path_of};
use crate::{Action, MemAccess, Phase, Step, TaskDef, Workload};
use schedlab_base::{Error, Result, nearest};
use std::collections::{HashMap, HashSet};

/// An event with the task and the phase that it is in.
pub(super) type Placed<'w> = (&'w TaskDef, &'w Phase, &'w Step);

/// Checks the workload as a whole.
pub(crate) fn whole(workload: &Workload, remarks: &mut Remarks) -> Result<()> {
    // Nearly all events of a large workload are those that nothing is to be checked of.
    let plain = |what: &Action| {
        use Action::{Run, SemPost, SemWait, Sleep};
        matches!(what, Run(_) | Sleep(_) | SemPost(_) | SemWait(_))
    };
    let steps: Vec<Placed> = workload.steps().filter(|(_, _, step)| !plain(&step.what)).collect();
    let jobs = jobs::check(workload, &steps)?;
    forks(workload, &steps, &jobs, remarks)?;
    spinning(&steps)?;
    shared_buffers(&steps)?;
    barriers(&steps, remarks);
    waits(&steps, remarks);
    questions(&steps, remarks);
    Ok(())
}

pub(super) fn error(task: &TaskDef, phase: &Phase, step: &Step, what: String) -> Error {
    Error::input(what).line(step.line).key(path_of(task, phase, &step.key))
}

/// The error with the name that may be meant in place of one that no task has.
pub(super) fn no_task(error: Error, workload: &Workload, name: &str) -> Error {
    match nearest(name, workload.tasks.iter().map(|task| task.name.as_str())) {
        Some(near) => error.mend(format!("did you mean \"{near}\"?")),
        None => error.mend("name a key of \"tasks\""),
    }
}

/// Checks that every forked task exists, and remarks on templates that are never forked, nor jobs.
fn forks(workload: &Workload, steps: &[Placed], jobs: &HashSet<&str>, remarks: &mut Remarks) -> Result<()> {
    let names: HashSet<&str> = workload.tasks.iter().map(|task| task.name.as_str()).collect();
    let mut forked = jobs.clone();
    for &(task, phase, step) in steps {
        let Action::Fork(child) = &step.what else { continue };
        forked.insert(child.as_str());
        if !names.contains(child.as_str()) {
            let error = error(task, phase, step, format!("there is no task \"{child}\" to fork"));
            return Err(no_task(error, workload, child));
        }
    }
    for task in workload.tasks.iter().filter(|task| task.instances == 0 && !forked.contains(task.name.as_str())) {
        if let Some(phase) = task.phases.first()
            && let Some(step) = phase.events.first()
        {
            remarks.step(task, phase, step, "a task of instance 0 that no task forks never runs");
        }
    }
    Ok(())
}

/// A name cannot be both a spinning and a sleeping lock or barrier, because these are different objects.
fn spinning(steps: &[Placed]) -> Result<()> {
    let mut kinds: HashMap<(&str, &str), bool> = HashMap::new();
    for &(task, phase, step) in steps {
        let (kind, name, spins) = match &step.what {
            Action::Lock(name) | Action::Unlock(name) => ("lock", name, false),
            Action::Wait { mutex, .. } | Action::Sync { mutex, .. } => ("lock", mutex, false),
            Action::SpinLock(name) | Action::SpinUnlock(name) => ("lock", name, true),
            Action::Barrier(name) => ("barrier", name, false),
            Action::SpinBarrier(name) | Action::HybridBarrier { name, .. } => ("barrier", name, true),
            _ => continue,
        };
        if *kinds.entry((kind, name)).or_insert(spins) != spins {
            let what = format!("\"{name}\" is a spinning {kind} in one place and a sleeping one in another");
            return Err(error(task, phase, step, what).mend("give them different names"));
        }
    }
    Ok(())
}

/// All `memrun`s with the same `ref` and `type` must describe the same buffer, as rt-app demands.
fn shared_buffers(steps: &[Placed]) -> Result<()> {
    let mut buffers = HashMap::new();
    for &(task, phase, step) in steps {
        let Action::MemRun { access, size, stride, random, shared: Some(name), .. } = &step.what else { continue };
        let shape = if *access == MemAccess::Chase { (*size, *stride, *random) } else { (*size, 0, false) };
        if *buffers.entry((name, *access)).or_insert(shape) != shape {
            let what = format!("shares the buffer \"{name}\" but differs in size, stride or pattern");
            return Err(error(task, phase, step, what).mend("give all of one \"ref\" the same"));
        }
    }
    Ok(())
}

/// rt-app counts each mention of a barrier as a user. If one task mentions it twice, the barrier waits for a task that
/// does not exist.
fn barriers(steps: &[Placed], remarks: &mut Remarks) {
    let mut seen = HashSet::new();
    for &(task, phase, step) in steps {
        if let Action::Barrier(name) | Action::SpinBarrier(name) | Action::HybridBarrier { name, .. } = &step.what
            && !seen.insert((&task.name, name))
        {
            let what = format!("the task names the barrier \"{name}\" twice, and so counts as two users of it");
            remarks.step(task, phase, step, what);
        }
    }
}

/// Somebody must ask what is answered, and a task what it awaits an answer to.
fn questions(steps: &[Placed], remarks: &mut Remarks) {
    let (mut asked, mut askers) = (HashSet::new(), HashSet::new());
    for (task, _, step) in steps {
        if let Action::Ask(name) = &step.what {
            asked.insert(name);
            askers.insert(&task.name);
        }
    }
    for &(task, phase, step) in steps {
        match &step.what {
            Action::Answer(name) if !asked.contains(name) => {
                remarks.step(
                    task,
                    phase,
                    step,
                    format!("no task asks anything at \"{name}\": there is nothing to answer"),
                );
            }
            Action::Await if !askers.contains(&task.name) => {
                remarks.step(task, phase, step, "the task awaits an answer, but asks nothing: it sleeps for ever");
            }
            _ => {}
        }
    }
}

/// A `wait` releases its mutex, so the task should hold it.
fn waits(steps: &[Placed], remarks: &mut Remarks) {
    let mut locked = HashSet::new();
    for &(task, _, step) in steps {
        if let Action::Lock(name) = &step.what {
            locked.insert((&task.name, name));
        }
    }
    for &(task, phase, step) in steps {
        if let Action::Wait { mutex, .. } | Action::Sync { mutex, .. } = &step.what
            && !locked.contains(&(&task.name, mutex))
        {
            remarks.step(task, phase, step, format!("the task never locks the mutex \"{mutex}\" that it waits with"));
        }
    }
}

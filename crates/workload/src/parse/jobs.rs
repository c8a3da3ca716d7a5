//! Checks of `x-jobs`: the task whose phases others share out.

use super::check::{Placed, error, no_task};
use crate::{Action, Props, TaskDef, Workload};
use schedlab_base::{Computing, Error, Result};
use std::collections::HashSet;

/// Checks that jobs exist, and that nothing is asked of them that only a task of its own can do. Returns the names of
/// the tasks whose phases are jobs.
pub(super) fn check<'w>(workload: &'w Workload, steps: &[Placed<'w>]) -> Result<HashSet<&'w str>> {
    let mut lists = HashSet::new();
    for &(task, phase, step) in steps {
        let Action::Jobs(name) = &step.what else { continue };
        if lists.contains(name.as_str()) {
            continue;
        }
        let Some(list) = workload.tasks.iter().find(|task| task.name == *name) else {
            let error = error(task, phase, step, format!("there is no task \"{name}\" whose phases would be jobs"));
            return Err(no_task(error, workload, name));
        };
        if list.instances > 0 {
            let what = format!("the phases of \"{name}\" are jobs, but it starts as a task of its own");
            return Err(error(task, phase, step, what).mend(format!("give \"{name}\" \"instance\": 0")));
        }
        plain(list)?;
        lists.insert(list.name.as_str());
    }
    if lists.is_empty() {
        return Ok(lists);
    }
    for &(task, phase, step) in steps {
        match &step.what {
            Action::Fork(name) if lists.contains(name.as_str()) => {
                let what = format!("the phases of \"{name}\" are jobs (x-jobs): it cannot be forked");
                return Err(error(task, phase, step, what));
            }
            Action::Jobs(_) if lists.contains(task.name.as_str()) => {
                return Err(error(task, phase, step, "a job cannot share out other jobs".to_owned()));
            }
            Action::Barrier(_) | Action::SpinBarrier(_) | Action::HybridBarrier { .. }
                if lists.contains(task.name.as_str()) =>
            {
                let what = "a job cannot wait at a barrier: how many tasks will meet there is unknown".to_owned();
                return Err(error(task, phase, step, what).mend("use sem_post and sem_wait"));
            }
            _ => {}
        }
    }
    Ok(lists)
}

/// Refuses jobs with properties of a task: whoever takes one does it as what it is.
fn plain(list: &TaskDef) -> Result<()> {
    let TaskDef { name: _, instances: _, loops: _, phases, props, .. } = list;
    let TaskDef { delay, stagger, user, session, cpu, averages, lifetime, computing, .. } = list;
    let nowhere = user.is_none() && session.is_none() && cpu.is_none() && averages.is_none() && lifetime.is_none();
    let bare = nowhere && (*delay, *stagger) == (0, 0) && *computing == Computing::default();
    if bare && phases.iter().map(|phase| &phase.props).chain([props]).all(|props| *props == Props::default()) {
        return Ok(());
    }
    let what = "its phases are jobs (x-jobs), which whoever takes them does as the task that it is: only \"loop\" and \
                \"phases\" count";
    Err(Error::input(what)
        .key(format!("tasks.{}", list.name))
        .mend("give the properties to the tasks that do the jobs"))
}

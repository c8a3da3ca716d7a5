//! Checks of `x-jobs`: the task whose phases others share out.

use super::check::{Placed, error};
use crate::{Action, Props, TaskDef, Workload};
use schedlab_base::{Error, Result, nearest};
use std::collections::{HashMap, HashSet};

/// Checks that jobs exist, and that nothing is asked of them that only a task of its own can do. Returns the names of
/// the tasks whose phases are jobs.
pub(super) fn check<'w>(workload: &'w Workload, steps: &[Placed<'w>]) -> Result<HashSet<&'w str>> {
    let tasks: HashMap<&str, &TaskDef> = workload.tasks.iter().map(|task| (task.name.as_str(), task)).collect();
    let mut lists = HashSet::new();
    for &(task, phase, step) in steps {
        let Action::Jobs(name) = &step.what else { continue };
        let Some(&list) = tasks.get(name.as_str()) else {
            let error = error(task, phase, step, format!("there is no task \"{name}\" whose phases would be jobs"));
            return Err(match nearest(name, tasks.keys().copied()) {
                Some(near) => error.mend(format!("did you mean \"{near}\"?")),
                None => error.mend("name a key of \"tasks\""),
            });
        };
        if list.instances > 0 {
            let what = format!("the phases of \"{name}\" are jobs, but it starts as a task of its own");
            return Err(error(task, phase, step, what).mend(format!("give \"{name}\" \"instance\": 0")));
        }
        lists.insert(list.name.as_str());
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
    workload.tasks.iter().filter(|task| lists.contains(task.name.as_str())).try_for_each(plain)?;
    Ok(lists)
}

/// Refuses jobs with properties of a task: whoever takes one does it as what it is.
fn plain(list: &TaskDef) -> Result<()> {
    let TaskDef { name, instances, loops, phases, .. } = list.clone();
    let bare = TaskDef { name, instances, loops, phases, ..TaskDef::default() } == *list;
    if bare && list.phases.iter().all(|phase| phase.props == Props::default()) {
        return Ok(());
    }
    let what = "its phases are jobs (x-jobs), which whoever takes them does as the task that it is: only \"loop\" and \
                \"phases\" count";
    Err(Error::input(what)
        .key(format!("tasks.{}", list.name))
        .mend("give the properties to the tasks that do the jobs"))
}

//! Chooses the name under which a `suspend` sleeps.
//!
//! rt-app 1.0, which Debian ships, sleeps under the name that the event gives. rt-app 55cb0c0 ignores it and sleeps
//! under the task's own name. rt-app's examples contain files of both ages. The task's own name is therefore used,
//! unless no event resumes it and some event resumes the given name. A file for the later rt-app means the same here. A
//! file for the earlier one, which would sleep for ever with the later, works too.

use super::Remarks;
use crate::{Action, Workload};
use std::collections::HashSet;

/// Replaces the value of each `suspend` by the name that it sleeps under.
pub(crate) fn resolve(workload: &mut Workload, remarks: &mut Remarks) {
    let (mut resumed, mut suspends) = (HashSet::new(), false);
    for (_, _, step) in workload.steps() {
        match &step.what {
            Action::Resume(name) => _ = resumed.insert(name.clone()),
            Action::Suspend(_) => suspends = true,
            _ => {}
        }
    }
    if !suspends {
        return;
    }
    for (task, phase, step) in workload.steps() {
        let Action::Suspend(given) = &step.what else { continue };
        if given.is_empty() || *given == task.name {
            continue;
        }
        if resumed.contains(&task.name) {
            remarks.step(
                task,
                phase,
                step,
                format!("sleeps until \"{}\" is resumed: the task's own name counts", task.name),
            );
        } else if resumed.contains(given) {
            let what = format!("sleeps until \"{given}\" is resumed, as in rt-app 1.0; later ones ignore the name");
            remarks.step(task, phase, step, what);
        }
    }
    for task in &mut workload.tasks {
        for step in task.phases.iter_mut().flat_map(|phase| &mut phase.events) {
            if let Action::Suspend(given) = &mut step.what
                && (resumed.contains(&task.name) || !resumed.contains(given))
            {
                given.clone_from(&task.name);
            }
        }
    }
}

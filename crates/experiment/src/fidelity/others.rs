//! What else ran on a real kernel during a run, so that it runs in the simulation as well: kernel threads, and whatever
//! the machine has besides. They preempt the workload's tasks, and balancing counts them.

use crate::backend::Recording;
use schedlab_base::Result;
use schedlab_measure::{Chooser, Part};
use schedlab_workload::from_trace::{ModelBuilder, Options};
use schedlab_workload::{Action, TaskDef, Workload};
use std::collections::BTreeMap;

/// The other tasks of the recording, as a workload: each computes and sleeps as it did, wherever it was woken from.
/// It is empty if there are none. `smt_loss` is that of the machine, in percent.
///
/// # Errors
/// When the recording cannot be read.
pub(super) fn of(recording: &Recording, smt_loss: u64) -> Result<Workload> {
    let mut source = recording.open()?;
    let mut chooser = Chooser::new(source.meta());
    source.run(&mut chooser)?;
    let mut source = recording.open()?;
    let part = Part { tasks: Some(chooser.all_but(&recording.own())), ..Default::default() };
    let mut builder = ModelBuilder::of_part(source.meta(), part).with_smt_loss(smt_loss);
    source.run(&mut builder)?;
    // A model of nothing is an error.
    Ok(builder.finish(&Options::default()).map(|model| model.workload).unwrap_or_default())
}

/// The workload with these tasks beside its own, under names that none of its own has.
pub(super) fn beside(workload: Workload, others: &Workload) -> Workload {
    let free = |name: &String| workload.tasks.iter().all(|task| task.name != *name);
    let names = (1..).map(|n| format!("other {n}")).filter(free);
    let names: BTreeMap<&str, String> = others.tasks.iter().map(|task| task.name.as_str()).zip(names).collect();
    let renamed = others.tasks.iter().map(|task| {
        let mut task = TaskDef { name: names[task.name.as_str()].clone(), ..task.clone() };
        for step in task.phases.iter_mut().flat_map(|phase| &mut phase.events) {
            if let Action::Fork(other) | Action::Jobs(other) = &mut step.what
                && let Some(name) = names.get(other.as_str())
            {
                other.clone_from(name);
            }
        }
        task
    });
    let tasks = workload.tasks.iter().cloned().chain(renamed).collect();
    let mut groups = others.groups.clone();
    groups.extend(workload.groups.clone());
    let mut sessions = others.sessions.clone();
    sessions.extend(workload.sessions.clone());
    Workload { tasks, groups, sessions, ..workload }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_tasks_stand_beside_the_workloads_own() {
        let workload = |names: &[&str], groups: &[&str]| Workload {
            tasks: names.iter().map(|name| TaskDef { name: (*name).to_owned(), ..TaskDef::default() }).collect(),
            groups: groups.iter().map(|path| ((*path).to_owned(), Default::default())).collect(),
            ..Workload::default()
        };
        let both = beside(workload(&["hog", "other 1"], &["/low"]), &workload(&["hog", "kworker"], &["/", "/low"]));
        let names: Vec<&str> = both.tasks.iter().map(|task| task.name.as_str()).collect();
        assert_eq!(names, ["hog", "other 1", "other 2", "other 3"]);
        assert_eq!(both.groups.keys().collect::<Vec<_>>(), ["/", "/low"]);
    }

    #[test]
    fn other_tasks_fork_each_other_under_their_new_names() {
        let parse = |text: &str| schedlab_workload::parse(text.as_bytes(), std::path::Path::new("w")).unwrap();
        let own = parse(r#"{ "tasks": { "true": { "run": 1 } } }"#);
        let others =
            parse(r#"{ "tasks": { "sh": { "run": 5, "fork": "true" }, "true": { "instance": 0, "run": 2 } } }"#);
        let both = beside(own, &others);
        assert_eq!(both.tasks[1].phases[0].events[1].what, Action::Fork("other 2".to_owned()));
        assert_eq!((both.tasks[2].name.as_str(), both.tasks[2].instances), ("other 2", 0));
    }
}

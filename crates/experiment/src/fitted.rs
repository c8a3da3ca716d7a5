//! A recorded load on a machine that lacks some of its CPUs.
//!
//! The kernel's own threads of a CPU (`ksoftirqd/3`, `migration/3`) are there because the CPU is: on a machine without
//! it they are left out, and so are its interrupts. Those that others wait for have work to do all the same. The kernel
//! gives it to the CPUs that there are, and so the thread may run on any of them. A user's own task is never left out:
//! one that is bound to CPUs that the machine lacks is refused, as it is in a workload that was not recorded.

use schedlab_base::counted;
use schedlab_machine::Machine;
use schedlab_sched::kernels::{self, Kernel};
use schedlab_workload::from_trace::is_kernel_thread;
use schedlab_workload::{Action, Props, TaskDef, Workload};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// How many names a remark has.
const NAMED: usize = 3;

/// A workload as a machine can run it.
pub struct Fitted<'a> {
    /// The workload.
    pub workload: Cow<'a, Workload>,
    /// The keys of the tasks that are left out.
    pub left_out: BTreeSet<String>,
    /// What is not as in the original.
    pub remarks: Vec<String>,
}

/// The workload as the kernel can run it on the machine: itself, unless it was recorded on more CPUs than it uses.
#[must_use]
pub fn fitted<'a>(workload: &'a Workload, kernel: &str, machine: &Machine) -> Fitted<'a> {
    let there = machine.cpus.len();
    let most = kernels::find(kernel).ok().and_then(Kernel::most_cpus);
    let here = most.map_or(there, |most| there.min(most as usize));
    let all = workload.recorded.as_ref().map_or(0, |recorded| recorded.cpus.len());
    if all <= here {
        return Fitted { workload: Cow::Borrowed(workload), left_out: BTreeSet::new(), remarks: Vec::new() };
    }
    let is_there = |cpu: &u32| (*cpu as usize) < here;
    let homeless = |task: &&TaskDef| is_kernel_thread(task) && bounds(task).any(|cpus| !cpus.iter().any(is_there));
    let homeless: BTreeSet<&str> = workload.tasks.iter().filter(homeless).map(|task| task.name.as_str()).collect();
    let freed = needed(workload, &homeless);
    let left_out: BTreeSet<String> = homeless.difference(&freed).map(|name| (*name).to_owned()).collect();
    let mut own = workload.clone();
    own.tasks.retain(|task| !left_out.contains(&task.name));
    for task in &mut own.tasks {
        let (frees, is_kernels) = (freed.contains(task.name.as_str()), is_kernel_thread(task));
        for props in std::iter::once(&mut task.props).chain(task.phases.iter_mut().map(|phase| &mut phase.props)) {
            match &mut props.cpus {
                bound if frees => *bound = None,
                Some(cpus) if is_kernels || cpus.len() == all => cpus.retain(is_there),
                _ => {}
            }
        }
        for phase in &mut task.phases {
            phase.events.retain(|step| !matches!(&step.what, Action::Fork(name) if left_out.contains(name)));
        }
    }
    let interrupts = own.interrupts.len();
    own.interrupts.retain_mut(|interrupt| {
        interrupt.cpus.iter_mut().for_each(|cpus| cpus.retain(is_there));
        interrupt.cpus.as_ref().is_none_or(|cpus| !cpus.is_empty())
    });
    let without =
        if here < there { format!("{kernel} does not use") } else { format!("the machine {} lacks", machine.name) };
    let remarks = remarks(&without, &left_out, &freed, own.interrupts.len() < interrupts);
    Fitted { workload: Cow::Owned(own), left_out, remarks }
}

/// The CPUs that a task is bound to, at first and from each phase on that says so.
fn bounds(task: &TaskDef) -> impl Iterator<Item = &Vec<u32>> {
    let props = std::iter::once(&task.props).chain(task.phases.iter().map(|phase| &phase.props));
    props.filter_map(|props: &Props| props.cpus.as_ref())
}

/// Which of the threads others wait for: those that stay, or such a thread itself.
fn needed<'a>(workload: &'a Workload, homeless: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
    let actions = |task: &'a TaskDef| task.phases.iter().flat_map(|phase| &phase.events).map(|step| &step.what);
    let waits =
        |task| actions(task).filter_map(|what| if let Action::SemWait(name) = what { Some(&**name) } else { None });
    let (mut out, stay): (Vec<&TaskDef>, Vec<&TaskDef>) =
        workload.tasks.iter().partition(|task| homeless.contains(task.name.as_str()));
    let mut tasks: BTreeSet<&str> = stay.iter().map(|task| task.name.as_str()).collect();
    let mut awaited: BTreeSet<&str> = stay.iter().flat_map(|task| waits(task)).collect();
    let mut needed = BTreeSet::new();
    loop {
        let (now, rest): (Vec<&TaskDef>, Vec<&TaskDef>) = out.into_iter().partition(|task| {
            actions(task).any(|what| match what {
                Action::SemPost(name) | Action::Ask(name) => awaited.contains(name.as_str()),
                Action::Fork(name) => tasks.contains(name.as_str()),
                _ => false,
            })
        });
        if now.is_empty() {
            return needed;
        }
        for task in now {
            needed.insert(task.name.as_str());
            tasks.insert(&task.name);
            awaited.extend(waits(task));
        }
        out = rest;
    }
}

fn remarks(without: &str, left_out: &BTreeSet<String>, freed: &BTreeSet<&str>, interrupts: bool) -> Vec<String> {
    let threads = |number: usize| counted(number as u64, "kernel thread");
    let mut remarks = Vec::new();
    if !left_out.is_empty() {
        let (count, names) = (threads(left_out.len()), some_of(left_out.iter().map(String::as_str)));
        let are = if left_out.len() == 1 { "is" } else { "are" };
        remarks.push(format!("{count} of CPUs that {without} {are} left out: {names}"));
    }
    if !freed.is_empty() {
        let (count, names) = (threads(freed.len()), some_of(freed.iter().copied()));
        let wakes = if freed.len() == 1 { "wakes other tasks, and runs" } else { "wake other tasks, and run" };
        remarks.push(format!("{count} of such CPUs {wakes} on those that there are: {names}"));
    }
    if interrupts {
        remarks.push(format!("the interrupts of CPUs that {without} are left out"));
    }
    remarks
}

/// The first names, and how many more there are.
fn some_of<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(NAMED);
    let named = names.take(NAMED).collect::<Vec<_>>().join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::CpuPlace;
    use schedlab_workload::Recorded;
    use std::path::Path;

    /// A load that was recorded on four CPUs.
    fn recorded(tasks: &str) -> Workload {
        let text = format!(
            r#"{{"x-irq": [{{"cpus": [0], "period_us": 9, "duration_us": 1}},
            {{"cpus": [3], "period_us": 9, "duration_us": 1}}], "tasks": {{ {tasks} }} }}"#
        );
        let cpus = (0..4).map(|cpu| CpuPlace { cpu, core: cpu, capacity: 1024, ..CpuPlace::default() }).collect();
        let workload = schedlab_workload::parse(text.as_bytes(), Path::new("w.json")).unwrap();
        Workload { recorded: Some(Recorded { cpus, ..Recorded::default() }), ..workload }
    }

    /// A task's name, and the CPUs that it is bound to.
    type Bound = (String, Option<Vec<u32>>);

    fn on(workload: &Workload, machine: &str) -> (Vec<Bound>, Vec<String>) {
        under("linux-6.12", workload, machine)
    }

    fn under(kernel: &str, workload: &Workload, machine: &str) -> (Vec<Bound>, Vec<String>) {
        let machine = schedlab_machine::load(machine).unwrap();
        let Fitted { workload, remarks, .. } = fitted(workload, kernel, &machine);
        (workload.tasks.iter().map(|task| (task.name.clone(), task.props.cpus.clone())).collect(), remarks)
    }

    const THREADS: &str = r#"
        "ksoftirqd_1-2": {"loop": 1, "cpus": [1], "x-session": -1, "run": 1, "sem_post": "wake-a-9"},
        "kworker_2:1-3": {"loop": 1, "cpus": [2], "x-session": -1, "run": 1, "sem_post": "wake-ksoftirqd_3-4"},
        "ksoftirqd_3-4": {"loop": 1, "cpus": [3], "x-session": -1, "sem_wait": "wake-ksoftirqd_3-4", "run": 1,
                          "sem_post": "wake-a-9"},
        "migration_3-5": {"loop": 1, "cpus": [3], "x-session": -1, "run": 1},
        "kswapd0-6": {"loop": 1, "cpus": [1, 2], "x-session": -1, "run": 1},
        "a-9": {"loop": 1, "x-session": 1, "phases": {"p0": {"cpus": [0], "sem_wait": "wake-a-9"},
                "p1": {"cpus": [0, 1, 2, 3], "sem_wait": "wake-a-9", "run": 1}}}"#;

    #[test]
    fn threads_of_missing_cpus_are_left_out_unless_others_wait_for_them() {
        let load = recorded(THREADS);
        let (tasks, remarks) = on(&load, "2");
        let own = |name: &str, cpus: Option<&[u32]>| (name.to_owned(), cpus.map(<[u32]>::to_vec));
        let wanted = [
            own("ksoftirqd_1-2", Some(&[1])),
            own("kworker_2:1-3", None),
            own("ksoftirqd_3-4", None),
            own("kswapd0-6", Some(&[1])),
            own("a-9", None),
        ];
        assert_eq!(tasks, wanted);
        let said = [
            "1 kernel thread of CPUs that the machine 2 lacks is left out: migration_3-5",
            "2 kernel threads of such CPUs wake other tasks, and run on those that there are: ksoftirqd_3-4, \
             kworker_2:1-3",
            "the interrupts of CPUs that the machine 2 lacks are left out",
        ];
        assert_eq!(remarks, said);
        let up = schedlab_machine::load("up").unwrap();
        let Fitted { workload, .. } = fitted(&load, "linux-6.12", &up);
        assert_eq!((workload.interrupts.len(), workload.tasks.len()), (1, 4));
        assert_eq!(workload.tasks[3].phases[1].props.cpus, Some(vec![0]), "it was free");
        crate::lower::lower(&workload, &up).unwrap();
    }

    #[test]
    fn a_kernel_of_one_cpu_uses_no_other() {
        let (tasks, remarks) = under("linux-1.2", &recorded(THREADS), "4");
        assert_eq!(tasks, on(&recorded(THREADS), "up").0);
        assert!(
            remarks[0].contains("of CPUs that linux-1.2 does not use are left out: kswapd0-6, migration_3-5"),
            "{remarks:?}"
        );
    }

    #[test]
    fn what_is_there_stays() {
        let load = recorded(THREADS);
        let (tasks, remarks) = on(&load, "4");
        assert_eq!((tasks.len(), remarks), (6, Vec::new()));
        let own = Workload { recorded: None, ..load };
        assert_eq!(on(&own, "2").0.len(), 6);
        let bound = recorded(r#""ksoftirqd_3-4": {"loop": 1, "cpus": [3], "x-session": 7, "run": 1}"#);
        assert_eq!(on(&bound, "2").0[0].1, Some(vec![3]), "it is a user's");
    }

    #[test]
    fn nobody_forks_what_is_left_out() {
        let load = recorded(
            r#""kthreadd-2": {"loop": 1, "x-session": -1, "run": 1, "fork": "kworker_3:2-8", "sleep": 1},
               "kworker_3:2-8": {"instance": 0, "loop": 1, "x-session": -1, "phases": {
                   "p0": {"run": 1}, "p1": {"cpus": [3], "run": 1}}}"#,
        );
        let machine = schedlab_machine::load("2").unwrap();
        let Fitted { workload, left_out, .. } = fitted(&load, "linux-6.12", &machine);
        assert_eq!((workload.tasks.len(), left_out.len()), (1, 1));
        assert_eq!(crate::lower::lower(&workload, &machine).unwrap().nr_tasks(), 1);
    }
}

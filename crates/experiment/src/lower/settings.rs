//! Properties become settings, and are held against the machine.

use super::names::Index;
use schedlab_base::{Error, Result};
use schedlab_machine::Machine;
use schedlab_sim::program::{Hotplug, Policy, ROOT_GROUP, Setting};
use schedlab_workload::plan::{Change, Cpus, Plan, Sched};
use schedlab_workload::{Props, TaskDef, Workload};
use std::fmt::Arguments;

fn policy(policy: schedlab_workload::Policy) -> Policy {
    match policy {
        schedlab_workload::Policy::Other => Policy::Other,
        schedlab_workload::Policy::Batch => Policy::Batch,
        schedlab_workload::Policy::Idle => Policy::Idle,
        schedlab_workload::Policy::Fifo => Policy::Fifo,
        schedlab_workload::Policy::Rr => Policy::Rr,
        schedlab_workload::Policy::Deadline => Policy::Deadline,
    }
}

/// Which kinds of policy a task has at some time.
#[derive(Clone, Copy)]
pub(super) struct Had {
    real_time: bool,
    deadline: bool,
}

impl Had {
    pub(super) fn of(plan: &Plan) -> Self {
        let scheds = || plan.phases.iter().chain([&plan.initial]).filter_map(|change| change.sched);
        Self {
            real_time: scheds().any(|sched| matches!(sched, Sched::RealTime { .. })),
            deadline: scheds().any(|sched| matches!(sched, Sched::Deadline { .. })),
        }
    }
}

/// The setting that a change is, of a task that had these kinds of policy.
pub(super) fn setting(change: &Change, had: Had, machine: &Machine, groups: &Index) -> Setting {
    let mut setting = Setting {
        util: (change.util_min, change.util_max),
        cpus: change.cpus.as_ref().map(|cpus| match cpus {
            Cpus::All => machine.common_cpus(),
            Cpus::These(cpus) => cpus.clone(),
        }),
        group: change.taskgroup.as_ref().map(|path| groups.get(path).unwrap_or(ROOT_GROUP)),
        working_set: change.working_set,
        membind: change.nodes_membind.clone(),
        clock_poll: change.clock_poll,
        reclaim: change.reclaim,
        ..Setting::default()
    };
    if let Some(sched) = change.sched {
        set_sched(&mut setting, sched, had);
    }
    setting
}

fn set_sched(setting: &mut Setting, sched: Sched, had: Had) {
    setting.policy = Some(policy(sched.policy()));
    // A policy's parameters end with it; those that it never had need no ending.
    if had.real_time {
        setting.rt_priority = Some(0);
    }
    if had.deadline {
        setting.dl = Some((0, 0, 0));
    }
    match sched {
        Sched::Fair { nice, slice, .. } => {
            setting.nice = Some(nice);
            if let Some(slice) = slice {
                setting.dl = Some((slice, 0, 0));
            }
        }
        Sched::RealTime { priority, .. } => setting.rt_priority = Some(priority),
        Sched::Deadline { runtime, deadline, period } => setting.dl = Some((runtime, deadline, period)),
    }
}

/// Refuses CPUs and nodes that the machine lacks.
pub(super) fn check_machine(workload: &Workload, machine: &Machine) -> Result<()> {
    for task in &workload.tasks {
        check_props(&task.props, format_args!("tasks.{}", task.name), machine)?;
        if let Some(cpu) = home(workload, task, machine) {
            let key = || format!("tasks.{}.x-cpu", task.name);
            check_cpu(cpu, machine).map_err(|e| e.key(key()))?;
            if workload.global.start != schedlab_workload::Start::Wake {
                let what = "the task is created when it starts: it was nowhere before";
                return Err(Error::input(what).key(key()).mend("leave it out, or let \"x-start\" be \"wake\""));
            }
        }
        for phase in &task.phases {
            check_props(&phase.props, format_args!("tasks.{}.phases.{}", task.name, phase.name), machine)?;
        }
    }
    for change in &workload.hotplug {
        check_cpu(change.cpu, machine).map_err(|e| e.key("x-hotplug"))?;
    }
    Ok(())
}

/// The task's `x-cpu`. A recorded load's says something on a machine of as many CPUs as the recorded one alone.
pub(super) fn home(workload: &Workload, task: &TaskDef, machine: &Machine) -> Option<u32> {
    let alike = workload.recorded.as_ref().is_none_or(|recorded| recorded.cpus.len() == machine.cpus.len());
    task.cpu.filter(|_| alike)
}

/// The CPUs that go and come. One stays online at every time: the kernel refuses to take the last one (`EBUSY`).
pub(super) fn hotplug(workload: &Workload, machine: &Machine) -> Result<Vec<Hotplug>> {
    let mut online = vec![true; machine.cpus.len()];
    let change = |change: &schedlab_workload::Hotplug| {
        let schedlab_workload::Hotplug { at, cpu, online: comes } = *change;
        online[cpu as usize] = comes;
        if online.iter().all(|cpu| !cpu) {
            let what = format!("at {} us CPU {cpu} is the last one online", at / 1000);
            return Err(Error::input(what).key("x-hotplug").mend("leave one CPU online"));
        }
        Ok(Hotplug { at, cpu, online: comes })
    };
    workload.hotplug.iter().map(change).collect()
}

/// Refuses what a machine with isolated CPUs or partitions does not let a task do.
pub(super) fn check_split(workload: &Workload, machine: &Machine) -> Result<()> {
    if !machine.is_split() {
        return Ok(());
    }
    for task in &workload.tasks {
        let props = || std::iter::once(&task.props).chain(task.phases.iter().map(|phase| &phase.props));
        let key = |name: &str| format!("tasks.{}.{name}", task.name);
        for cpus in props().filter_map(|props| props.cpus.as_ref()) {
            let part = |cpu: &u32| machine.partitions.iter().position(|part| part.contains(cpu));
            if let Some(other) = cpus.iter().find(|cpu| part(cpu) != part(&cpus[0])) {
                let what = format!("CPUs {} and {other} are in different partitions, and no cpuset has both", cpus[0]);
                return Err(Error::input(what).key(key("cpus")).mend("name CPUs of one partition"));
            }
        }
    }
    Ok(())
}

fn check_props(props: &Props, place: Arguments<'_>, machine: &Machine) -> Result<()> {
    for &cpu in props.cpus.iter().flatten() {
        check_cpu(cpu, machine).map_err(|e| e.key(format!("{place}.cpus")))?;
    }
    for &node in props.nodes_membind.iter().flatten() {
        check_node(node, machine).map_err(|e| e.key(format!("{place}.nodes_membind")))?;
    }
    for &(node, _) in props.memory.iter().flat_map(|memory| &memory.nodes) {
        check_node(node, machine).map_err(|e| e.key(format!("{place}.x-memory.node")))?;
    }
    Ok(())
}

pub(super) fn check_cpu(cpu: u32, machine: &Machine) -> Result<()> {
    if (cpu as usize) < machine.cpus.len() {
        return Ok(());
    }
    let (name, count) = (&machine.name, machine.cpus.len());
    let error = Error::input(format!("the machine \"{name}\" has no CPU {cpu}"));
    Err(error.mend(if count == 1 {
        "it has CPU 0 alone".to_owned()
    } else {
        format!("it has CPUs 0 to {}", count - 1)
    }))
}

fn check_node(node: u32, machine: &Machine) -> Result<()> {
    let nodes = machine.distances.len().max(1);
    if (node as usize) < nodes {
        return Ok(());
    }
    let error = Error::input(format!("the machine \"{}\" has no node {node}", machine.name));
    Err(error.mend(if nodes == 1 {
        "it has node 0 alone".to_owned()
    } else {
        format!("it has nodes 0 to {}", nodes - 1)
    }))
}

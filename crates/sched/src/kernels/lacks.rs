//! What old kernels had not, and what becomes of a load that asks for it.

use super::Kernel;
use schedlab_machine::Machine;
use schedlab_sim::program::{GroupSpec, Load, Op};

/// The first two numbers of a Linux kernel's release.
fn release(kernel: &Kernel) -> Option<(u32, u32)> {
    let mut numbers = kernel.name.strip_prefix("linux-")?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn before(kernel: &Kernel, first: (u32, u32)) -> bool {
    release(kernel).is_some_and(|release| release < first)
}

/// It knows one CPU only; several came with 2.0.
pub(super) fn smp(kernel: &Kernel) -> bool {
    before(kernel, (2, 0))
}

/// A remark for each thing that the load asks for and this kernel has not.
pub(super) fn remarks(kernel: &Kernel, machine: &Machine, load: &Load) -> Vec<String> {
    let specs = || load.tasks.iter().chain(&load.templates);
    let name = kernel.name;
    let mut remarks = Vec::new();
    if smp(kernel) && machine.cpus.len() > 1 {
        remarks.push(format!("{name} knows one CPU: every task runs on CPU 0, and the others idle"));
    } else if before(kernel, (2, 4)) && machine.cpus.len() > 1 {
        let pinned = specs().map(|spec| &spec.initial).chain(&load.settings).any(|s| s.cpus.is_some());
        if pinned {
            remarks.push(format!(
                "{name} has no affinity (2.4 has): the CPUs that tasks ask for are kept to all the same"
            ));
        }
    }
    if before(kernel, (2, 0)) && specs().any(|spec| spec.program.contains(&Op::Yield)) {
        remarks.push(format!("{name} has no sched_yield() (2.0 has): who yields goes on"));
    }
    remarks.extend(of_groups(kernel, load));
    remarks
}

/// What it lacks of the groups that the load has.
fn of_groups(kernel: &Kernel, load: &Load) -> Vec<String> {
    let name = kernel.name;
    let any = |has: fn(&GroupSpec) -> bool| load.groups.iter().any(has);
    if load.groups.is_empty() {
        return Vec::new();
    }
    if !matches!(kernel.scheduler, "CFS" | "EEVDF") {
        return vec![format!("{name} has no groups (2.6.24 has): every task counts for itself")];
    }
    let lacking = [
        (before(kernel, (2, 7)) && any(|g| g.bandwidth.is_some()), "quotas (3.2 has): groups use what they get"),
        (before(kernel, (5, 14)) && any(|g| g.burst > 0), "bursts (5.14 has): quota that is not used is lost"),
        (before(kernel, (5, 15)) && any(|g| g.idle), "idle groups (5.15 has): they share by their weight"),
        (name == "linux-2.6.24" && any(|g| g.parent.is_some()), "nested groups (2.6.25 has): all stand side by side"),
    ];
    lacking.iter().filter(|(lacks, _)| *lacks).map(|(_, what)| format!("{name} has no {what}")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use schedlab_sim::program::{Load, Op, Setting, TaskSpec};

    #[test]
    fn what_a_release_lacks_is_told() {
        let pinned = Setting { cpus: Some(vec![0]), ..Setting::default() };
        let task = TaskSpec { initial: pinned, program: vec![Op::Yield], ..TaskSpec::default() };
        let load = Load { tasks: vec![task], ..Load::default() };
        let told = |kernel: &str, machine: &str| {
            let machine = schedlab_machine::load(machine).unwrap();
            find(kernel).unwrap().unmodelled(&machine, &load).join("; ")
        };
        assert!(told("linux-1.2", "4").contains("knows one CPU"));
        assert!(told("linux-1.2", "up").contains("no sched_yield()") && !told("linux-1.2", "up").contains("CPU 0"));
        assert!(told("linux-2.2", "4").contains("no affinity"));
        assert_eq!(told("linux-2.2", "up") + &told("linux-2.4", "4"), "");
    }
}

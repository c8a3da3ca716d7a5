//! The kernel, the machine and the settings on which a load was recorded, as nearly as they can be simulated.

use crate::backend::again;
use schedlab_base::{Error, Meta, Release, Result, SMT_LOSS_PERCENT};
use schedlab_machine::Machine;
use schedlab_sched::kernels::{self, Kernel};
use schedlab_sched::tunables::Scaling;
use schedlab_workload::{Recorded, Workload};

/// The name that stands for the recorded kernel or machine.
pub const RECORDED: &str = "recorded";

/// The setting that belongs to a load with sessions, whatever the kernel.
const AUTOGROUP: &str = "sched_autogroup_enabled";

/// What a workload was recorded on.
///
/// # Errors
/// When the workload does not say. The error names `option`, with which the user says it.
fn of_workload<'a>(workload: &'a Workload, option: &str) -> Result<&'a Recorded> {
    workload.recorded.as_ref().ok_or_else(|| {
        Error::input(format!("the workload \"{}\" does not say where it was recorded", workload.name))
            .mend(format!("name one with {option}, or make the workload with schedlab model"))
    })
}

/// What a simulation runs on.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The kernel's profile.
    pub kernel: String,
    /// The machine.
    pub machine: Machine,
    /// Tunables: name and value.
    pub set: Vec<(String, String)>,
}

/// What a workload runs on: `recorded` (or nothing) stands for what it was recorded on, and the kernel `host` for the
/// one that `host` describes. A workload that was not recorded runs on one CPU if no machine is named. The remarks say
/// what differs from what was recorded, or is taken over from it.
///
/// # Errors
/// When a name is not known, or the workload does not say where it was recorded.
pub fn setup(
    kernel: Option<&str>,
    machine: Option<&str>,
    workload: &Workload,
    host: impl FnOnce() -> Option<Recorded>,
) -> Result<(Setup, Vec<String>)> {
    if kernel.is_none() && workload.recorded.is_none() {
        let error = Error::input("no kernel, and the workload was not recorded on one");
        return Err(error.mend("give --kernel; schedlab kernels lists them"));
    }
    let machine = match machine {
        None if workload.recorded.is_none() => schedlab_machine::load("up")?,
        None | Some(RECORDED) => self::machine(of_workload(workload, "--machine")?)?,
        Some(spec) => schedlab_machine::load(spec)?,
    };
    let of_host;
    let recorded = match kernel {
        None | Some(RECORDED) => of_workload(workload, "--kernel")?,
        Some("host") => {
            of_host =
                host().ok_or_else(|| Error::input("the host's kernel is not known here").mend("name a kernel"))?;
            &of_host
        }
        Some(name) => {
            let kernel = kernels::find(name)?;
            let set = settings_of_load(workload, kernel, &machine);
            let remarks = set.iter().map(|(name, value)| format!("{name}={value}, as recorded")).collect();
            return Ok((Setup { kernel: kernel.name.to_owned(), machine, set }, remarks));
        }
    };
    let (kernel, remark) = self::kernel(recorded)?;
    let (set, refused) = settings(recorded, kernel, &machine);
    let setup = Setup { kernel: kernel.name.to_owned(), machine, set };
    Ok((setup, remark.into_iter().chain(refused).collect()))
}

/// As [`setup`], for a model whose trace is there: a simulated one contains all of its settings.
///
/// # Errors
/// As for [`setup`].
pub fn of_trace(
    meta: Option<&Meta>,
    (kernel, machine): (Option<&str>, Option<&str>),
    workload: &Workload,
    host: impl FnOnce() -> Option<Recorded>,
) -> Result<(Setup, Vec<String>)> {
    let made = meta.filter(|meta| meta.source == "sim").and_then(|meta| again::request(meta).ok());
    let recorded = |name: Option<&str>| name.is_none_or(|name| name == RECORDED);
    let (mut setup, remarks) = setup(kernel, machine, workload, host)?;
    if let Some(made) = made {
        if recorded(kernel) {
            setup.set = made.set;
        }
        if recorded(machine) {
            setup.machine = made.machine;
        }
    }
    Ok((setup, remarks))
}

/// By how many percent each of two busy SMT siblings was slower on the machine of a trace: one that was simulated says
/// so, and for others that of a recorded machine is assumed.
#[must_use]
pub fn smt_loss(meta: &Meta) -> u64 {
    let made = (meta.source == "sim").then(|| again::request(meta).ok()).flatten();
    made.map_or(SMT_LOSS_PERCENT, |made| made.machine.costs.smt_loss_percent)
}

/// The profile of the recorded kernel, and a remark if it is of another release.
///
/// # Errors
/// When the recorded kernel's name is no release.
fn kernel(recorded: &Recorded) -> Result<(&'static Kernel, Option<String>)> {
    let name = &recorded.kernel;
    if let Ok(kernel) = kernels::find(name) {
        return Ok((kernel, None));
    }
    let release: Release = name.parse().map_err(|_| {
        Error::input(format!("it is not known on which kernel this was recorded (\"{name}\")"))
            .mend("name one with --kernel")
    })?;
    let kernel = kernels::not_newer_than(release);
    let same = kernel.release == Some(release);
    let remark = (!same).then(|| format!("the kernel was {release}, which is simulated as {}", kernel.name));
    Ok((kernel, remark))
}

/// The machine that was recorded, with what wake-ups cost there. Which CPUs are isolated follows from where tasks may
/// run.
///
/// # Errors
/// When its CPUs are not known, or are impossible.
fn machine(recorded: &Recorded) -> Result<Machine> {
    let Recorded { machine, cpus, distances, costs, .. } = recorded.clone();
    let mut machine = schedlab_machine::recorded(&Meta { machine, cpus, distances, ..Meta::default() })?;
    let own = &mut machine.costs;
    let (near, far) = (costs.idle_exit_ns, costs.remote_idle_exit_ns);
    own.idle_exit_ns = near.or(far).unwrap_or(own.idle_exit_ns);
    own.remote_idle_exit_ns = far.or(near).unwrap_or(own.remote_idle_exit_ns);
    own.idle_wakeup_ns = costs.idle_wakeup_ns.unwrap_or(own.idle_wakeup_ns);
    own.wakeup_to_switch_ns = costs.wakeup_to_switch_ns.unwrap_or(own.wakeup_to_switch_ns);
    own.timer_to_switch_ns = costs.timer_to_switch_ns.unwrap_or(own.timer_to_switch_ns);
    own.own_wakeup_to_switch_ns = costs.own_wakeup_to_switch_ns.unwrap_or(own.own_wakeup_to_switch_ns);
    own.tick_to_switch_ns = costs.tick_to_switch_ns.unwrap_or(own.tick_to_switch_ns);
    Ok(machine)
}

/// The recorded tunables as settings of the profile, those alone that differ from its defaults on this machine, and
/// remarks about what cannot be set. On another machine than the recorded one, those that follow the number of CPUs
/// are left out.
fn settings(recorded: &Recorded, kernel: &Kernel, machine: &Machine) -> (Vec<(String, String)>, Vec<String>) {
    let system = &recorded.system;
    let same_machine = machine.cpus.len() == recorded.cpus.len();
    let on = |flag: bool| if flag { "on" } else { "off" }.to_owned();
    let facts = [
        ("hz", system.hz.map(|hz| hz.to_string())),
        ("preempt", system.preemption.clone()),
        (AUTOGROUP, system.autogroup.map(on)),
        ("numa_balancing", system.numa_balancing.map(on)),
    ];
    let facts = facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let tunables = system.tunables.clone().into_iter();
    let (mut set, mut remarks) = (Vec::new(), Vec::new());
    let Ok(defaults) = kernel.values(machine, &[]) else { return (set, remarks) };
    for (name, value) in tunables.chain(facts) {
        let Some(tunable) = kernel.tunable(&name) else { continue };
        if !same_machine && !matches!(tunable.scaling, Scaling::None) {
            continue;
        }
        let own = vec![(tunable.name.to_owned(), value.clone())];
        match kernel.values(machine, &own) {
            Ok(values) if values == defaults => {}
            Ok(_) => {
                set.retain(|(other, _): &(String, String)| other != tunable.name);
                set.extend(own);
            }
            Err(_) => remarks.push(format!("{name} was {value}, which {} cannot be set to", kernel.name)),
        }
    }
    (set, remarks)
}

/// What of the recorded settings holds under any kernel: whether sessions share as groups, since the load has sessions.
pub fn settings_of_load(workload: &Workload, kernel: &Kernel, machine: &Machine) -> Vec<(String, String)> {
    let Some(recorded) = &workload.recorded else { return Vec::new() };
    let (set, _) = settings(recorded, kernel, machine);
    set.into_iter().filter(|(name, _)| name == AUTOGROUP).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::{Cost, CpuPlace, System};
    use schedlab_workload::SeenCosts;

    fn recorded(kernel: &str, tunables: &[(&str, &str)]) -> Recorded {
        let tunables = tunables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let cpus = (0..2).map(|cpu| CpuPlace { cpu, core: cpu, capacity: 1024, ..CpuPlace::default() }).collect();
        let system = System { hz: Some(1000), autogroup: Some(true), tunables, ..System::default() };
        Recorded { kernel: kernel.into(), cpus, system, ..Recorded::default() }
    }

    #[test]
    fn the_nearest_profile_stands_for_a_kernel() {
        let of = |name: &str| kernel(&recorded(name, &[])).map(|(kernel, remark)| (kernel.name, remark));
        assert_eq!(of("linux-6.12").unwrap(), ("linux-6.12", None));
        let (name, remark) = of("6.14.3-arch1").unwrap();
        assert_eq!(
            (name, remark.unwrap().as_str()),
            ("linux-6.12", "the kernel was 6.14, which is simulated as linux-6.12")
        );
        assert!(of("").unwrap_err().to_string().contains("name one with --kernel"));
    }

    #[test]
    fn the_machine_has_the_recorded_costs() {
        let idle = Cost::Varying([1, 2, 3, 7_000, 8_000, 9_000, 10_000, 11_000, 90_000]);
        let costs =
            SeenCosts { idle_exit_ns: Some(idle), own_wakeup_to_switch_ns: Some(900.into()), ..SeenCosts::default() };
        let own = machine(&Recorded { costs, ..recorded("6.12", &[]) }).unwrap().costs;
        let default = machine(&recorded("6.12", &[])).unwrap().costs;
        assert_eq!((own.idle_exit_ns, own.wakeup_to_switch_ns), (idle, default.wakeup_to_switch_ns));
        assert_eq!((own.own_wakeup_to_switch_ns, own.timer_to_switch_ns), (900.into(), default.timer_to_switch_ns));
    }

    #[test]
    fn a_workload_runs_as_recorded_unless_a_kernel_is_named() {
        let load = Workload { recorded: Some(recorded("6.12.3", &[("RUN_TO_PARITY", "off")])), ..Workload::default() };
        let of = |kernel, machine, load: &Workload| setup(kernel, machine, load, || None);
        let (as_recorded, _) = of(None, None, &load).unwrap();
        assert_eq!(
            (as_recorded.kernel.as_str(), as_recorded.machine.cpus.len(), as_recorded.set.len()),
            ("linux-6.12", 2, 3)
        );
        let (named, remarks) = of(Some("linux-6.1"), Some("recorded"), &load).unwrap();
        assert_eq!((named.kernel.as_str(), named.set.len(), remarks.len()), ("linux-6.1", 1, 1));
        let plain = Workload::default();
        assert_eq!(of(Some("linux-6.1"), None, &plain).unwrap().0.machine.cpus.len(), 1);
        assert!(of(None, None, &plain).unwrap_err().to_string().contains("give --kernel"));
        let error = of(Some("linux-6.1"), Some("recorded"), &plain).unwrap_err().to_string();
        assert!(error.contains("does not say where it was recorded; name one with --machine"), "{error}");
        let (host, _) = setup(Some("host"), Some("up"), &plain, || Some(recorded("6.18.1", &[]))).unwrap();
        assert_eq!((host.kernel.as_str(), host.machine.cpus.len()), ("linux-6.18", 1));
        assert!(of(Some("host"), None, &plain).is_err());
    }

    #[test]
    fn settings_that_differ_from_the_profile_are_set() {
        let load = recorded(
            "6.12",
            &[
                ("base_slice_ns", "3000000"),
                ("RUN_TO_PARITY", "off"),
                ("sched_rr_timeslice_ms", "100"),
                ("colour", "red"),
            ],
        );
        let (kernel, _) = kernel(&load).unwrap();
        let (set, remarks) = settings(&load, kernel, &machine(&load).unwrap());
        let set: Vec<_> = set.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let wanted = ["RUN_TO_PARITY=off", "base_slice_ns=3000000", "hz=1000", "sched_autogroup_enabled=on"];
        assert_eq!((set.as_slice(), remarks), (&wanted.map(str::to_owned)[..], Vec::new()));
        // The slice follows the number of CPUs.
        let other = schedlab_machine::load("2x6").unwrap();
        assert!(settings(&load, kernel, &other).0.iter().all(|(name, _)| name != "base_slice_ns"));
        let wrong = recorded("6.12", &[("base_slice_ns", "-7")]);
        assert_eq!(settings(&wrong, kernel, &machine(&wrong).unwrap()).1.len(), 1);
        let workload = Workload { recorded: Some(load), ..Workload::default() };
        let carried = settings_of_load(&workload, kernels::find("linux-6.1").unwrap(), &other);
        assert_eq!(carried, [(AUTOGROUP.to_owned(), "on".to_owned())]);
    }
}

//! What is tested: a kernel on a backend.

use crate::backend::{self, Backend, Sim};
use crate::file::Need;
use schedlab_base::{Error, Result};
use schedlab_machine::Machine;
use schedlab_sched::kernels::{self, Feature, Kernel};
use schedlab_sim::program::Policy;
use std::fs;

/// A kernel on a backend.
pub struct Subject {
    /// As the command line writes it.
    pub on: String,
    /// What runs it.
    pub backend: Box<dyn Backend>,
    /// The profile: the kernel itself, or the last release that is not after a real one.
    pub profile: &'static Kernel,
}

impl Subject {
    /// The kernel that `--on` names: `sim:KERNEL`, `live`, or `vm:KERNEL`, which may be `deterministic`.
    ///
    /// # Errors
    /// When there is no such kernel or backend.
    pub fn new(on: &str, deterministic: bool) -> Result<Self> {
        let on = on.to_owned();
        if on == "sim" {
            return Err(Error::input("--on sim: which kernel?").mend("write --on sim:linux-6.12"));
        }
        if let Some(kernel) = on.strip_prefix("sim:") {
            if deterministic {
                let mend = "leave it out: the simulator always is";
                return Err(Error::input("is for guests").key("--deterministic").mend(mend));
            }
            let profile = kernels::find(kernel)?;
            return Ok(Self { backend: Box::new(Sim), profile, on });
        }
        let backend =
            backend::parse(&on, deterministic).map_err(|e| match e.to_string().contains("no such backend") {
                true => Error::input(format!("--on {on}: no such backend"))
                    .mend("write --on sim:linux-6.12, --on live or --on vm:debian-6.12"),
                false => e,
            })?;
        let release = backend.real_kernel().and_then(|name| name.parse().ok());
        let release = release.ok_or_else(|| Error::input(format!("--on {on}: the kernel's release cannot be read")))?;
        Ok(Self { backend, profile: kernels::not_newer_than(release), on })
    }

    /// The kernel's name, or its release.
    #[must_use]
    pub fn kernel_name(&self) -> String {
        self.backend.real_kernel().map_or_else(|| self.profile.name.to_owned(), |release| format!("Linux {release}"))
    }

    /// Whether it is this machine's own kernel.
    pub(super) fn is_live(&self) -> bool {
        self.on == "live"
    }

    /// Whether it is a real kernel.
    pub(super) fn is_real(&self) -> bool {
        self.backend.real_kernel().is_some()
    }

    /// Why it cannot do something, as the end of a sentence; `None` if it can.
    pub(super) fn lacks(&self, need: Need) -> Option<String> {
        let kernel = self.profile;
        let name = self.kernel_name();
        let without = |what: &str| Some(format!("{name} has no {what}"));
        let feature = |feature: Feature, what: &str| kernel.lacks(feature).then(|| without(what)).flatten();
        let policy = |policy: Policy, what: &str| {
            if kernel.policies.contains(&policy) { None } else { without(what) }
        };
        let tunable = |tunable: &str, what: &str| {
            if kernel.tunable(tunable).is_some() { None } else { without(what) }
        };
        match need {
            Need::Affinity => feature(Feature::Affinity, "affinity of tasks to CPUs"),
            Need::Groups => feature(Feature::Groups, "groups of tasks"),
            Need::NestedGroups => feature(Feature::NestedGroups, "groups within groups"),
            Need::Quotas => feature(Feature::Quotas, "quotas of groups"),
            Need::Sessions if kernel.autogroup().is_none() => without("groups by session"),
            Need::Sessions => None,
            Need::RealTime => policy(Policy::Fifo, "real-time policies"),
            Need::RtThrottling => tunable("sched_rt_runtime_us", "limit on real-time tasks"),
            Need::Deadline => policy(Policy::Deadline, "SCHED_DEADLINE"),
            Need::Idle => policy(Policy::Idle, "SCHED_IDLE"),
            Need::NumaBalancing => tunable("numa_balancing", "NUMA balancing"),
            Need::Hotplug if self.is_live() => {
                Some("CPUs of this machine are not taken offline: that would change it for everybody".to_owned())
            }
            Need::Hotplug => None,
        }
    }

    /// Why a part of a live machine is not enough.
    pub(super) fn leaves_out(&self, needs: &[Need], machine: &Machine) -> Option<String> {
        let part = self.is_live() && schedlab_machine::host().is_ok_and(|host| machine.cpus.len() < host.cpus.len());
        (part && needs.contains(&Need::Deadline))
            .then(|| "a deadline task must be allowed to use every CPU, and --machine leaves some out".to_owned())
    }

    /// Why a tunable that a test sets does not have that value; `None` if it has or will be set.
    pub(super) fn cannot_set(&self, name: &str, value: &str) -> Option<String> {
        if !self.is_live() {
            return None;
        }
        let path = format!("/proc/sys/kernel/{name}");
        match fs::read_to_string(&path) {
            Ok(text) if text.trim() == value => None,
            Ok(text) => Some(format!("it needs kernel.{name} = {value}, and this kernel has {}", text.trim())),
            Err(_) => Some(format!("this kernel has no kernel.{name}")),
        }
    }
}

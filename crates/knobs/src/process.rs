//! Tunables that belong to each process and not to the machine: shown with the caller's values, so that a user finds
//! them beside the others, and never set here. They are given to a command when it is started.

use crate::here::Here;
use crate::knob::Shown;
use crate::spec::Spec;
use rustix::process::{Resource, getpriority_process, getrlimit};
use std::fs;

/// The rows of those of these specs that belong to a process.
#[must_use]
pub fn of_processes(specs: &[Spec], here: &Here) -> Vec<Shown> {
    let row = |spec: &Spec| {
        let value = own(spec.name)?;
        Some(Shown {
            name: spec.name.to_owned(),
            group: spec.group.to_string(),
            risk: spec.risk.to_string(),
            unit: spec.unit.to_owned(),
            location: spec.path.to_owned(),
            value: Some(value),
            default: spec.default.to_owned(),
            range: None,
            choices: None,
            settable: false,
            reason: Some("it belongs to each process, not to the machine; the value is this process's".to_owned()),
            instead: here.instead(spec.instead),
            meaning: spec.meaning.to_owned(),
            harm: spec.harm.to_owned(),
            entry: spec.name.to_owned(),
        })
    };
    specs.iter().filter_map(row).collect()
}

/// This process's value.
fn own(name: &str) -> Option<String> {
    Some(match name {
        "nice" => getpriority_process(None).ok()?.to_string(),
        "nofile" => getrlimit(Resource::Nofile).current.map_or_else(|| "unlimited".to_owned(), |n| n.to_string()),
        "oom_score_adj" => fs::read_to_string("/proc/self/oom_score_adj").ok()?.trim().to_owned(),
        "ionice" => io_priority()?,
        _ => return None,
    })
}

/// This thread's disk priority, as `ionice` prints it.
#[allow(unsafe_code)]
fn io_priority() -> Option<String> {
    const WHO_PROCESS: libc::c_long = 1;
    // SAFETY: the call takes and returns numbers.
    let value = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0 as libc::c_long) };
    let class = ["none", "realtime", "best-effort", "idle"].get(usize::try_from(value >> 13 & 7).ok()?)?;
    (value >= 0)
        .then(|| if matches!(*class, "none" | "idle") { (*class).to_owned() } else { format!("{class} {}", value & 7) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_each_of_them() {
        for name in ["nice", "nofile", "oom_score_adj", "ionice"] {
            assert!(own(name).is_some_and(|value| !value.is_empty()), "{name}");
        }
        assert_eq!(own("vm.swappiness"), None);
    }
}

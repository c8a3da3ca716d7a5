//! How the kernels were built: what of their configuration a user of theirs would ask about. The simulation has no
//! kernel mode to preempt, so that the preemption model decides nothing here.

/// How a kernel was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Build {
    /// Where the kernel itself can be preempted: `none` (as it returns to user mode), `voluntary` (at explicit points)
    /// or `full`.
    pub preemption: &'static str,
    /// Whether idle CPUs stop their tick (`NO_HZ_IDLE`).
    pub no_hz: bool,
    /// Whether the tasks of one session share as a group (`SCHED_AUTOGROUP`): `None` where that release has none.
    pub autogroup: Option<bool>,
}

const fn build(preemption: &'static str, no_hz: bool, autogroup: Option<bool>) -> Build {
    Build { preemption, no_hz, autogroup }
}

/// Before 2.6.21 every tick comes; from 2.6.38 on there are autogroups, which Debian's kernels have off.
const BUILDS: [(&str, Build); 20] = [
    ("linux-1.2", build("none", false, None)),
    ("linux-2.0", build("none", false, None)),
    ("linux-2.2", build("none", false, None)),
    ("linux-2.4", build("none", false, None)),
    ("linux-2.6.0", build("none", false, None)),
    ("linux-2.6.11", build("none", false, None)),
    ("linux-2.6.18", build("voluntary", false, None)),
    ("rsdl", build("voluntary", false, None)),
    ("sd", build("voluntary", false, None)),
    ("linux-2.6.24", build("voluntary", true, None)),
    ("linux-2.6.32", build("voluntary", true, None)),
    ("linux-3.10", build("voluntary", true, Some(true))),
    ("linux-3.18", build("voluntary", true, Some(true))),
    ("linux-4.1", build("voluntary", true, Some(true))),
    ("linux-6.1", build("voluntary", true, Some(false))),
    ("linux-6.6", build("voluntary", true, Some(true))),
    ("linux-6.12", build("voluntary", true, Some(false))),
    ("bfs", build("voluntary", true, None)),
    ("mlfq", build("voluntary", true, None)),
    ("stride", build("voluntary", true, None)),
];

/// How the kernel of that name was built; one that is not listed as the oldest.
pub(super) fn of(name: &str) -> Build {
    BUILDS.iter().find(|(known, _)| *known == name).map_or(BUILDS[0].1, |(_, build)| *build)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::KERNELS;

    #[test]
    fn every_release_is_listed() {
        for kernel in KERNELS.iter().filter(|k| k.name.starts_with("linux-")) {
            assert!(BUILDS.iter().any(|(name, _)| *name == kernel.name), "say how {} was built", kernel.name);
        }
    }
}

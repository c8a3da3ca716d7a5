//! Checks what this machine supports, and says how to fix what is missing.

use crate::prepare::Options;
use crate::recorder::Recorder;
use crate::tracefs::{self, Tracefs};
use crate::{instance, procfs, sys};
use schedlab_base::{Release, counted, v, v2_6};
use serde::Serialize;
use std::ffi::CStr;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It is available.
    Ok,
    /// It is missing.
    No,
    /// It could be better, or cannot be determined.
    Hint,
}

/// One check and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The check's name, for scripts.
    pub id: &'static str,
    /// The outcome.
    pub status: Status,
    /// What was found.
    pub found: String,
    /// What it is needed for, or how to fix it. Absent if the outcome is [`Status::Ok`].
    pub mend: Option<String>,
}

impl Check {
    fn ok(id: &'static str, found: impl Into<String>) -> Self {
        Self { id, status: Status::Ok, found: found.into(), mend: None }
    }

    fn no(id: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { id, status: Status::No, found: found.into(), mend: Some(mend.into()) }
    }

    fn hint(id: &'static str, found: impl Into<String>, mend: impl Into<String>) -> Self {
        Self { id, status: Status::Hint, found: found.into(), mend: Some(mend.into()) }
    }
}

/// Runs every check. Leaves nothing behind, and removes the instances of recorders that were killed.
#[must_use]
pub fn examine() -> Vec<Check> {
    let root = Path::new("/");
    let mut checks = vec![kernel(root), machine(), clock(root), rights(root), lockdown(root)];
    checks.extend(recording());
    checks.extend([perf_events(root), btf(root), sched_ext(root), cgroups(root), knobs(root)]);
    checks
}

/// A file's text without the last newline.
fn text(root: &Path, path: &str) -> Option<String> {
    fs::read_to_string(root.join(path)).ok().map(|text| text.trim_end().to_owned())
}

fn kernel(root: &Path) -> Check {
    let release = text(root, "proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".to_owned());
    let version = text(root, "proc/sys/kernel/version").unwrap_or_default();
    let preempt: Vec<&str> = version.split_whitespace().filter(|word| word.starts_with("PREEMPT")).collect();
    let preempt = if preempt.is_empty() { String::new() } else { format!(", {}", preempt.join(" ")) };
    Check::ok("kernel", format!("{release}, {}{preempt}", generation(&release)))
}

/// The scheduler that a kernel of this release uses for fair tasks.
fn generation(release: &str) -> &'static str {
    match release.parse::<Release>() {
        Err(_) => "scheduler unknown",
        Ok(release) if release >= v(6, 6) => "EEVDF",
        Ok(release) if release >= v2_6(23) => "CFS",
        Ok(release) if release >= v2_6(0) => "O(1)",
        Ok(_) => "O(n)",
    }
}

fn machine() -> Check {
    match schedlab_machine::host() {
        Ok(machine) => Check::ok(
            "machine",
            [
                counted(machine.cpus.len() as u64, "CPU"),
                counted(machine.cores() as u64, "core"),
                counted(machine.sockets() as u64, "socket"),
                counted(machine.distances.len() as u64, "node"),
            ]
            .join(", "),
        ),
        Err(e) => Check::no("machine", e.to_string(), "is /sys mounted? mount -t sysfs nodev /sys"),
    }
}

fn clock(root: &Path) -> Check {
    match text(root, "sys/devices/system/clocksource/clocksource0/current_clocksource") {
        Some(source) if matches!(source.as_str(), "tsc" | "arch_sys_counter" | "timebase" | "tod" | "kvm-clock") => {
            Check::ok("clock", source)
        }
        Some(source) => {
            let mend = "each event costs more with a slow clock; the kernel's log says why it gave up a faster one";
            Check::hint("clock", source, mend)
        }
        None => Check::hint("clock", "unknown", "/sys does not name the clock source"),
    }
}

/// Capabilities with their bit numbers (include/uapi/linux/capability.h).
const CAPABILITIES: [(u32, &str); 4] =
    [(21, "CAP_SYS_ADMIN"), (23, "CAP_SYS_NICE"), (38, "CAP_PERFMON"), (39, "CAP_BPF")];

fn rights(root: &Path) -> Check {
    let status = text(root, "proc/self/status").unwrap_or_default();
    let field = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim);
    let user = field("Uid:").and_then(|uids| uids.split_whitespace().nth(1)).unwrap_or("?");
    let caps = field("CapEff:").and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
    let missing: Vec<&str> = CAPABILITIES.iter().filter(|(bit, _)| caps >> bit & 1 == 0).map(|(_, n)| *n).collect();
    match (user, missing.as_slice()) {
        ("0", []) => Check::ok("rights", "root"),
        ("0", missing) => Check::hint(
            "rights",
            format!("root without {}", missing.join(", ")),
            "a container was given less than root: start it with --privileged",
        ),
        (user, _) => Check::no("rights", format!("user {user}"), "recording needs root: sudo schedlab ..."),
    }
}

fn lockdown(root: &Path) -> Check {
    lockdown_by(securityfs(root).map(|folder| folder.and_then(|(folder, _mount)| tracefs::lockdown_in(&folder))))
}

/// Where securityfs is, with the mount that it needs, if the kernel has it.
///
/// # Errors
/// When it is mounted nowhere, and this process may not mount it.
fn securityfs(root: &Path) -> io::Result<Option<(PathBuf, Option<OwnedFd>)>> {
    let mounted = root.join("sys/kernel/security");
    if fs::read_dir(&mounted).is_ok_and(|mut files| files.next().is_some()) {
        return Ok(Some((mounted, None)));
    }
    match sys::detached_mount(c"securityfs") {
        Ok(mount) => Ok(Some((PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd())), Some(mount)))),
        Err(e) if e.raw_os_error() == Some(libc::ENODEV) => Ok(None),
        Err(e) => Err(e),
    }
}

/// The check by what securityfs says, if it can be seen.
fn lockdown_by(level: io::Result<Option<String>>) -> Check {
    match level {
        Err(e) => Check::hint(
            "lockdown",
            format!("not known: securityfs is not mounted ({e})"),
            "only root can look it up here: sudo schedlab doctor",
        ),
        Ok(Some(level)) if level == "none" => Check::ok("lockdown", "none"),
        Ok(Some(level)) => Check::hint(
            "lockdown",
            level,
            "debugfs and some tracers are closed; switch off Secure Boot or drop lockdown= from the kernel's \
             command line",
        ),
        Ok(None) => Check::ok("lockdown", "not in this kernel"),
    }
}

/// Checks tracefs, and whether a recording can be set up. It does everything except to start the recording.
fn recording() -> Vec<Check> {
    let tracefs = match Tracefs::open() {
        Ok(tracefs) => tracefs,
        Err(e) => return vec![Check::no("tracefs", e.to_string(), "nothing can be recorded without it")],
    };
    let place = if tracefs.was_mounted() {
        format!("mounted at {}", tracefs.root().display())
    } else {
        "not mounted; each recording mounts it for itself".to_owned()
    };
    let mut checks = vec![Check::ok("tracefs", place)];
    let removed = instance::remove_stale(&tracefs);
    if !removed.is_empty() {
        let found = format!("removed what killed recorders left: {}", removed.join(", "));
        checks.push(Check::ok("leftovers", found));
    }
    checks.push(match Recorder::new(Options::default()) {
        Ok(_) => Check::ok("recording", "an instance of our own works: schedlab record"),
        Err(e) => Check::no("recording", e.to_string(), "see the lines above"),
    });
    checks
}

fn perf_events(root: &Path) -> Check {
    match text(root, "proc/sys/kernel/perf_event_paranoid").and_then(|n| n.parse::<i32>().ok()) {
        None => Check::hint("perf_events", "not in this kernel", "only `perf` itself needs them"),
        Some(level) if level < 0 => Check::ok("perf_events", format!("perf_event_paranoid is {level}: open to all")),
        Some(level) if sys::effective_user() == 0 => {
            Check::ok("perf_events", format!("perf_event_paranoid is {level}: root may use them"))
        }
        Some(level) => Check::hint(
            "perf_events",
            format!("perf_event_paranoid is {level}"),
            "`perf sched record` needs root, or: sysctl kernel.perf_event_paranoid=-1",
        ),
    }
}

fn btf(root: &Path) -> Check {
    if root.join("sys/kernel/btf/vmlinux").exists() {
        Check::ok("btf", "/sys/kernel/btf/vmlinux")
    } else {
        Check::hint("btf", "none", "sched_ext schedulers need CONFIG_DEBUG_INFO_BTF; recording does not")
    }
}

fn sched_ext(root: &Path) -> Check {
    match text(root, "sys/kernel/sched_ext/state") {
        Some(state) => {
            let ops = text(root, "sys/kernel/sched_ext/root/ops").map_or(String::new(), |ops| format!(": {ops}"));
            Check::ok("sched_ext", format!("{state}{ops}"))
        }
        None => Check::hint("sched_ext", "not in this kernel", "CONFIG_SCHED_CLASS_EXT, from 6.12 on"),
    }
}

fn cgroups(root: &Path) -> Check {
    let controllers = text(root, "sys/fs/cgroup/cgroup.controllers");
    let has_cpu = |list: &str| list.split_whitespace().any(|c| c == "cpu");
    match (controllers, procfs::hierarchy(&root.join("proc"))) {
        (Some(list), _) if has_cpu(&list) => Check::ok("cgroups", "version 2, with the cpu controller"),
        (_, 0) => Check::hint(
            "cgroups",
            "no cpu controller",
            "CPU shares of groups cannot be set; boot with systemd.unified_cgroup_hierarchy=1",
        ),
        (_, _) => Check::ok("cgroups", "version 1 for the cpu controller"),
    }
}

/// The scheduler's tunables: in debugfs from 5.13 on, in /proc/sys/kernel before.
const KNOBS: [&str; 6] =
    ["base_slice_ns", "latency_ns", "min_granularity_ns", "migration_cost_ns", "nr_migrate", "features"];

fn knobs(root: &Path) -> Check {
    if let Some(check) = knobs_in(&root.join("sys/kernel/debug/sched")) {
        return check;
    }
    let old = root.join("proc/sys/kernel/sched_latency_ns");
    if OpenOptions::new().write(true).open(&old).is_ok() {
        return Check::ok("knobs", "writable under /proc/sys/kernel/sched_*");
    }
    let detached = |kind: &CStr| {
        let mount = sys::detached_mount(kind).ok()?;
        knobs_in(&PathBuf::from(format!("/proc/self/fd/{}/sched", mount.as_raw_fd())))
    };
    detached(c"debugfs").unwrap_or_else(|| {
        let mend = match sys::effective_user() {
            0 => "mount -t debugfs nodev /sys/kernel/debug; needs CONFIG_SCHED_DEBUG",
            _ => "they are root's",
        };
        Check::no("knobs", "none that can be reached", mend)
    })
}

/// Opens the tunables in this directory for writing, without changing them. `None` if there are none.
fn knobs_in(dir: &Path) -> Option<Check> {
    let open = |knob: &&str| OpenOptions::new().write(true).open(dir.join(knob));
    let tried: Vec<(&str, io::Result<fs::File>)> = KNOBS.iter().map(|knob| (*knob, open(knob))).collect();
    let writable: Vec<&str> = tried.iter().filter(|(_, file)| file.is_ok()).map(|(knob, _)| *knob).collect();
    if !writable.is_empty() {
        return Some(Check::ok("knobs", format!("writable: {}", writable.join(", "))));
    }
    let refusal =
        tried.iter().filter_map(|(_, file)| file.as_ref().err()).find(|e| e.kind() != io::ErrorKind::NotFound)?;
    let why = match refusal.raw_os_error() {
        Some(libc::EPERM) if sys::effective_user() == 0 => {
            "the kernel is locked down; switch off Secure Boot or drop lockdown= from its command line"
        }
        _ => "they are root's",
    };
    Some(Check::no("knobs", format!("not writable: {refusal}"), why))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn releases_have_their_generation() {
        let of = ["6.18.4-x", "6.6.0", "6.5.13", "6.1.0-21-amd64", "2.6.23", "2.6.18-8.el5", "2.4.37", "strange"];
        let is = ["EEVDF", "EEVDF", "CFS", "CFS", "CFS", "O(1)", "O(n)", "scheduler unknown"];
        assert_eq!(of.map(generation), is);
    }

    #[test]
    fn missing_rights_are_named() {
        let status = |uid: u32, caps: &str| {
            let text = format!("Name:\tx\nUid:\t1\t{uid}\t1\t1\nCapEff:\t{caps}\n");
            rights(tree(&[("proc/self/status", &text)]).path())
        };
        assert_eq!(status(0, "000001ffffffffff").status, Status::Ok);
        let container = status(0, "00000000a80425fb");
        assert!(container.status == Status::Hint && container.found.contains("CAP_SYS_ADMIN"), "{container:?}");
        assert_eq!(status(1000, "0000000000000000").status, Status::No);
    }

    #[test]
    fn lockdown_that_cannot_be_seen_is_not_known() {
        let of = |files: &[(&str, &str)]| lockdown(tree(files).path());
        let locked = of(&[("sys/kernel/security/lockdown", "none [integrity] confidentiality\n")]);
        assert_eq!((locked.status, locked.found.as_str()), (Status::Hint, "integrity"));
        let without = of(&[("sys/kernel/security/lsm", "capability")]);
        assert_eq!((without.status, without.found.as_str()), (Status::Ok, "not in this kernel"));
        let hidden = lockdown_by(Err(io::Error::from_raw_os_error(libc::EPERM)));
        assert!(hidden.status == Status::Hint && hidden.found.starts_with("not known"), "{hidden:?}");
        assert_eq!(lockdown_by(Ok(None)).status, Status::Ok);
    }

    #[test]
    fn both_cgroup_versions_are_recognised() {
        let v2 = tree(&[("sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n"), ("proc/self/cgroup", "0::/\n")]);
        let v1 = tree(&[("proc/self/cgroup", "2:cpu,cpuacct:/\n0::/\n")]);
        let none = tree(&[("proc/self/cgroup", "0::/\n")]);
        let of = |dir: &tempfile::TempDir| cgroups(dir.path());
        assert!(of(&v2).found.contains("version 2") && of(&v1).found.contains("version 1"));
        assert_eq!(of(&none).status, Status::Hint);
    }

    #[test]
    fn writable_tunables_are_named() {
        let dir = tree(&[("base_slice_ns", "700000"), ("features", "X")]);
        assert_eq!(knobs_in(dir.path()).unwrap().found, "writable: base_slice_ns, features");
        assert_eq!(knobs_in(Path::new("/nonexistent")), None);
    }

    #[test]
    fn every_check_runs_under_an_id_of_its_own() {
        let checks = examine();
        let mut ids: Vec<&str> = checks.iter().map(|c| c.id).collect();
        assert!(checks.iter().all(|c| (c.status == Status::Ok) == c.mend.is_none()), "{checks:?}");
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), checks.len());
    }
}

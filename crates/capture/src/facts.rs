//! The facts about the running kernel that decide how it schedules, as far as it shows them.

use crate::debugfs::Debugfs;
use crate::{newidle, online, procfs, sys};
use flate2::read::GzDecoder;
use schedlab_base::{Nanos, System};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The files of /proc/sys/kernel about scheduling begin with this.
const SYSCTLS: &str = "sched_";
/// Files of debugfs that are not a tunable with one value.
const NOT_TUNABLES: [&str; 6] = ["debug", "features", "preempt", "domains", "ext", "verbose"];
/// A vendor's kernel is told this when it starts, and shows it nowhere else.
const VCPU_PACK: &str = "sched_vcpu_pack";
/// The longest file that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// What the kernel under `root` shows. `base_slice` is the slice of a task that asked for none, `tick` the resolution
/// of its coarse clocks.
pub(crate) fn of(root: &Path, base_slice: Option<Nanos>, tick: Option<Nanos>) -> System {
    let text = |path: &str| read(&root.join(path)).ok();
    // Of a mask that is not there the kernel writes "(null)", after as many blanks as there are CPUs.
    let list = |path: &str| {
        text(path).map(|list| list.trim_start().to_owned()).filter(|list| !list.is_empty() && list != "(null)")
    };
    let flag = |path: &str| text(path).and_then(|text| text.parse::<i64>().ok()).map(|n| n != 0);
    let config = config(root);
    let mut system = System {
        hz: hz(root, config.as_deref()).or_else(|| Some((1_000_000_000 / tick?) as u32)),
        autogroup: flag("proc/sys/kernel/sched_autogroup_enabled"),
        numa_balancing: flag("proc/sys/kernel/numa_balancing"),
        smt: flag("sys/devices/system/cpu/smt/active"),
        isolated: list("sys/devices/system/cpu/isolated"),
        nohz_full: list("sys/devices/system/cpu/nohz_full"),
        governors: governors(root),
        cgroup_version: Some(if procfs::hierarchy(&root.join("proc")) == 0 { 2 } else { 1 }),
        tunables: sysctls(root),
        ..System::default()
    };
    let debug = match Debugfs::open(root) {
        Ok(debug) => {
            debug.tunables(&mut system);
            debug.preemption()
        }
        Err(why) => {
            let why = format!("not readable here: {why}");
            system.unreadable.insert("tunables and features in debugfs".to_owned(), why);
            None
        }
    };
    system.preemption = debug.or_else(|| preemption(root, config.as_deref()));
    if let Some(slice) = base_slice {
        system.tunables.entry("base_slice_ns".to_owned()).or_insert_with(|| slice.to_string());
        system.unreadable.remove("base_slice_ns");
    }
    match newidle::ratio(root, &online(), sys::monotonic()) {
        Ok(Some(ratio)) => drop(system.tunables.insert(newidle::NAME.to_owned(), ratio.to_string())),
        Ok(None) => {}
        Err(why) => drop(system.unreadable.insert(newidle::NAME.to_owned(), format!("not readable here: {why}"))),
    }
    if let Some(room) = boot_parameter(root, VCPU_PACK) {
        system.tunables.insert(VCPU_PACK.to_owned(), room);
    }
    let missing = [("hz", system.hz.is_none()), ("preemption", system.preemption.is_none())];
    for (fact, _) in missing.into_iter().filter(|(_, missing)| *missing) {
        system.unreadable.insert(fact.to_owned(), "the kernel does not show its configuration".to_owned());
    }
    system
}

/// A text file without the last newline.
fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST).read_to_string(&mut text)?;
    Ok(text.trim_end().to_owned())
}

/// The configuration that the kernel was built with.
fn config(root: &Path) -> Option<String> {
    if let Ok(file) = File::open(root.join("proc/config.gz")) {
        let mut text = String::new();
        GzDecoder::new(file).take(LONGEST).read_to_string(&mut text).ok()?;
        return Some(text);
    }
    let release = read(&root.join("proc/sys/kernel/osrelease")).ok()?;
    read(&root.join(format!("boot/config-{release}"))).ok()
}

/// The value of an option in a configuration.
fn option<'a>(config: &'a str, name: &str) -> Option<&'a str> {
    config.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
}

/// Ticks a second: by the configuration, or by the ticks counted since boot.
fn hz(root: &Path, config: Option<&str>) -> Option<u32> {
    if let Some(hz) = config.and_then(|config| option(config, "CONFIG_HZ")) {
        return hz.parse().ok();
    }
    let timers = read(&root.join("proc/timer_list")).ok()?;
    let number = |line: &str| line.split_whitespace().find_map(|word| word.parse::<u64>().ok());
    let now = timers.lines().find(|line| line.starts_with("now at")).and_then(number)?;
    let jiffies = timers.lines().find_map(|line| line.strip_prefix("jiffies:")).and_then(number)?;
    hz_of(now, jiffies)
}

/// The counter starts five minutes before it passes 2^32 (`INITIAL_JIFFIES`), so HZ follows from one reading.
fn hz_of(now: Nanos, jiffies: u64) -> Option<u32> {
    let close = |hz: u64| {
        let expected = (1u64 << 32) - 300 * hz + (u128::from(now) * u128::from(hz) / 1_000_000_000) as u64;
        jiffies.abs_diff(expected) <= hz / 10 + 2
    };
    [100, 250, 300, 1000].into_iter().find(|hz| close(*hz)).map(|hz| hz as u32)
}

/// Where the kernel can be preempted, by its version and configuration.
fn preemption(root: &Path, config: Option<&str>) -> Option<String> {
    let version = read(&root.join("proc/sys/kernel/version")).unwrap_or_default();
    let has = |word: &str| version.split_whitespace().any(|w| w.trim_matches(|c| "(){}+".contains(c)) == word);
    let built = || {
        let config = config?;
        let models = [
            ("CONFIG_PREEMPT_RT", "rt"),
            ("CONFIG_PREEMPT_NONE", "none"),
            ("CONFIG_PREEMPT_VOLUNTARY", "voluntary"),
            ("CONFIG_PREEMPT_LAZY", "lazy"),
            ("CONFIG_PREEMPT", "full"),
        ];
        models.into_iter().find(|(name, _)| option(config, name) == Some("y")).map(|(_, model)| model)
    };
    let found = if has("PREEMPT_RT") {
        Some("rt")
    } else if has("PREEMPT_DYNAMIC") {
        return boot_parameter(root, "preempt").or_else(|| built().map(str::to_owned));
    } else if has("PREEMPT_LAZY") {
        Some("lazy")
    } else if has("PREEMPT") {
        Some("full")
    } else {
        built()
    };
    found.map(str::to_owned)
}

/// What the kernel was started with; the last of several values.
fn boot_parameter(root: &Path, name: &str) -> Option<String> {
    let line = read(&root.join("proc/cmdline")).unwrap_or_default();
    let value = |word: &str| Some(word.strip_prefix(name)?.strip_prefix('=')?.to_owned());
    line.split_whitespace().rev().find_map(value)
}

fn governors(root: &Path) -> Vec<String> {
    let policies = fs::read_dir(root.join("sys/devices/system/cpu/cpufreq")).into_iter().flatten().flatten();
    let mut found: Vec<String> = policies.filter_map(|p| read(&p.path().join("scaling_governor")).ok()).collect();
    found.sort();
    found.dedup();
    found
}

/// The values of /proc/sys/kernel/sched_*.
fn sysctls(root: &Path) -> BTreeMap<String, String> {
    let dir = root.join("proc/sys/kernel");
    let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let ours = names.filter(|name| name.starts_with(SYSCTLS));
    // One that means nothing on this machine reads empty, as sched_energy_aware does where CPUs are alike.
    let set = ours.filter_map(|name| read(&dir.join(&name)).ok().map(|value| (name, value)));
    set.filter(|(_, value)| !value.is_empty()).collect()
}

impl Debugfs {
    /// The scheduler's directory.
    fn sched(&self) -> PathBuf {
        self.dir().join("sched")
    }

    /// The active one of `none voluntary (full) lazy`.
    fn preemption(&self) -> Option<String> {
        let text = read(&self.sched().join("preempt")).ok()?;
        text.split_whitespace().find_map(|word| word.strip_prefix('(')?.strip_suffix(')')).map(str::to_owned)
    }

    fn tunables(&self, system: &mut System) {
        let mut note = |name: String, file: &Path| match read(file) {
            Ok(value) if !value.contains('\n') => {
                system.tunables.insert(name, value);
            }
            Ok(_) => {}
            Err(e) => {
                system.unreadable.insert(name, unreadable(&e));
            }
        };
        for (prefix, dir) in [("", self.sched()), ("numa_balancing/", self.sched().join("numa_balancing"))] {
            for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
                let Ok(name) = entry.file_name().into_string() else { continue };
                let file = entry.file_type().is_ok_and(|kind| kind.is_file());
                if file && !(prefix.is_empty() && NOT_TUNABLES.contains(&name.as_str())) {
                    note(format!("{prefix}{name}"), &entry.path());
                }
            }
        }
        for what in ["runtime", "period"] {
            let file = self.sched().join("fair_server/cpu0").join(what);
            if file.exists() {
                note(format!("fair_server_{what}"), &file);
            }
        }
        match read(&self.sched().join("features")) {
            Ok(features) => system.tunables.extend(features.split_whitespace().map(feature)),
            Err(e) => {
                system.unreadable.insert("features".to_owned(), unreadable(&e));
            }
        }
    }
}

/// Why a file of debugfs cannot be read. A kernel that is locked down refuses it even to root.
fn unreadable(error: &io::Error) -> String {
    let denied = matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES));
    if denied { "not readable here: locked down".to_owned() } else { format!("not readable here: {error}") }
}

/// `GENTLE_FAIR_SLEEPERS` is on, `NO_GENTLE_FAIR_SLEEPERS` off.
fn feature(word: &str) -> (String, String) {
    match word.strip_prefix("NO_") {
        Some(name) => (name.to_owned(), "off".to_owned()),
        None => (word.to_owned(), "on".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn the_kernel_of_a_distribution_shows_most() {
        let dir = tree(&[
            ("proc/sys/kernel/osrelease", "6.1.0-26-amd64\n"),
            ("proc/sys/kernel/sched_energy_aware", ""),
            ("proc/sys/kernel/version", "#1 SMP PREEMPT_DYNAMIC Debian 6.1.112-1\n"),
            ("proc/cmdline", "root=/dev/sda1 preempt=none preempt=voluntary sched_vcpu_pack=15 quiet\n"),
            ("proc/sys/kernel/sched_autogroup_enabled", "1\n"),
            ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
            ("proc/sys/kernel/numa_balancing", "0\n"),
            ("proc/self/cgroup", "0::/x\n"),
            ("boot/config-6.1.0-26-amd64", "CONFIG_HZ_250=y\nCONFIG_HZ=250\nCONFIG_PREEMPT=y\n"),
            ("sys/devices/system/cpu/isolated", "2-3\n"),
            ("sys/devices/system/cpu/nohz_full", "                (null)\n"),
            ("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "schedutil\n"),
            ("sys/kernel/debug/sched/latency_ns", "6000000\n"),
            ("sys/kernel/debug/sched/debug", "Sched Debug Version\nand more\n"),
            ("sys/kernel/debug/sched/features", "GENTLE_FAIR_SLEEPERS NO_HRTICK\n"),
            ("sys/kernel/debug/sched/numa_balancing/scan_delay_ms", "1000\n"),
        ]);
        let facts = of(dir.path(), None, Some(1_000_000));
        assert_eq!((facts.hz, facts.preemption.as_deref()), (Some(250), Some("voluntary")));
        assert_eq!((facts.autogroup, facts.numa_balancing, facts.smt), (Some(true), Some(false), None));
        assert_eq!((facts.isolated.as_deref(), facts.nohz_full, facts.cgroup_version), (Some("2-3"), None, Some(2)));
        assert_eq!(facts.governors, ["schedutil"]);
        let tunables: Vec<_> = facts.tunables.iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(
            tunables,
            [
                "GENTLE_FAIR_SLEEPERS=on",
                "HRTICK=off",
                "latency_ns=6000000",
                "numa_balancing/scan_delay_ms=1000",
                "sched_autogroup_enabled=1",
                "sched_rt_runtime_us=950000",
                "sched_vcpu_pack=15",
            ]
        );
        assert_eq!(facts.unreadable, BTreeMap::new());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let dir = tree(&[("proc/sys/kernel/version", "#1 SMP PREEMPT_RT x\n")]);
        let facts = of(dir.path(), Some(3_000_000), None);
        assert_eq!(facts.preemption.as_deref(), Some("rt"));
        assert_eq!(facts.tunables["base_slice_ns"], "3000000");
        let names: Vec<_> = facts.unreadable.keys().map(String::as_str).collect();
        assert_eq!(names, ["hz", "tunables and features in debugfs"]);
        assert_eq!(of(dir.path(), None, Some(4_000_000)).hz, Some(250));
    }

    #[test]
    fn ticks_are_counted_from_before_the_start() {
        // 1000 s after boot, at 250 and 1000 ticks a second.
        assert_eq!(hz_of(1_000_000_000_000, (1 << 32) + 700 * 250), Some(250));
        assert_eq!(hz_of(1_000_000_000_000, (1 << 32) + 700 * 1000), Some(1000));
        assert_eq!(hz_of(1_000_000_000_000, 5), None);
    }
}

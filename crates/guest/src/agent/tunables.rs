//! The scheduler's tunables inside the guest, under the names that its kernel has for them: files in debugfs, files in
//! /proc/sys/kernel, and the names in the file `features`.

use schedlab_base::{Error, Result, nearest};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder in debugfs, from 5.13 on, and its only file before.
const DEBUG: &str = "sys/kernel/debug/sched";
const OLD_FEATURES: &str = "sys/kernel/debug/sched_features";
const SYSCTL: &str = "proc/sys/kernel";
/// What is in those folders and is no tunable.
const NO_TUNABLES: [&str; 2] = ["debug", "domains"];
/// Further tunables in /proc/sys/kernel beside those that begin with `sched_`.
const OTHERS: [&str; 2] = ["numa_balancing", "timer_migration"];

/// Sets tunables, in this order.
///
/// # Errors
/// When one does not exist, with those that do, or the kernel refuses a value.
pub(super) fn set(root: &Path, settings: &[(String, String)]) -> Result<()> {
    settings.iter().try_for_each(|(name, value)| set_one(root, name, value))
}

fn set_one(root: &Path, name: &str, value: &str) -> Result<()> {
    let features_file = features_file(root);
    if let Some(file) = &features_file {
        let known = features(file);
        if let Some((feature, _)) = known.iter().find(|(feature, _)| feature == name) {
            let on = match value {
                "1" | "on" | "true" => true,
                "0" | "off" | "false" => false,
                _ => return Err(Error::input(format!("--set {name}={value}: a feature is 1 or 0"))),
            };
            return write(file, &spelled(feature, on), name, value);
        }
        if name == "features" || name == "sched_features" {
            let words = value.split([',', ' ', '|']).filter(|word| !word.is_empty());
            for word in words {
                let plain = word.strip_prefix("NO_").unwrap_or(word);
                if !known.iter().any(|(feature, _)| feature == plain || feature == word) {
                    return Err(absent(&format!("{name}={word}"), plain, known.iter().map(|(f, _)| f.as_str())));
                }
                write(file, word, name, value)?;
            }
            return Ok(());
        }
    }
    let files = files(root);
    if let Some(path) = files.get(name) {
        return write(path, value, name, value);
    }
    let known = features_file.map(|file| features(&file)).unwrap_or_default();
    let exist = files.keys().map(String::as_str).chain(known.iter().map(|(feature, _)| feature.as_str()));
    Err(absent(&format!("{name}={value}"), name, exist))
}

fn absent<'a>(setting: &str, name: &str, exist: impl Iterator<Item = &'a str>) -> Error {
    let mut exist: Vec<&str> = exist.collect();
    exist.sort_unstable();
    let near =
        nearest(name, exist.iter().copied()).map(|near| format!("did you mean \"{near}\"? ")).unwrap_or_default();
    let all = exist.join(", ");
    Error::absent(format!("--set {setting}: this kernel has no such tunable")).mend(format!("{near}it has {all}"))
}

fn write(path: &Path, text: &str, name: &str, value: &str) -> Result<()> {
    let at = path.display();
    let refused = |e| Error::input(format!("--set {name}={value}: the kernel refuses it at {at}: {e}"));
    fs::write(path, text).map_err(refused)
}

/// The files of tunables by name.
fn files(root: &Path) -> BTreeMap<String, PathBuf> {
    let mut files = BTreeMap::new();
    let mut add = |folder: &str, prefix: &str, wanted: &dyn Fn(&str) -> bool| {
        for entry in fs::read_dir(root.join(folder)).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if wanted(&name) && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                files.insert(format!("{prefix}{name}"), entry.path());
            }
        }
    };
    add(SYSCTL, "", &|name| name.starts_with("sched_") || name.starts_with("numa_balancing") || OTHERS.contains(&name));
    add(DEBUG, "", &|name| !NO_TUNABLES.contains(&name) && name != "features");
    add(&format!("{DEBUG}/numa_balancing"), "numa_balancing_", &|_| true);
    files
}

fn features_file(root: &Path) -> Option<PathBuf> {
    [format!("{DEBUG}/features"), OLD_FEATURES.to_owned()].iter().map(|path| root.join(path)).find(|path| path.exists())
}

/// The features by name, and whether each is on.
fn features(file: &Path) -> Vec<(String, bool)> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let words = text.split_whitespace();
    words
        .map(|word| match word.strip_prefix("NO_") {
            Some(feature) => (feature.to_owned(), false),
            None => (word.to_owned(), true),
        })
        .collect()
}

fn spelled(feature: &str, on: bool) -> String {
    if on { feature.to_owned() } else { format!("NO_{feature}") }
}

/// Every tunable with its value.
pub(super) fn all(root: &Path) -> BTreeMap<String, String> {
    let value = |path: PathBuf| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
    let files = files(root).into_iter().filter_map(|(name, path)| Some((name, value(path)?)));
    let features = features_file(root).map(|file| features(&file)).unwrap_or_default();
    files.chain(features.into_iter().map(|(name, on)| (name, u8::from(on).to_string()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::ErrorKind;

    fn kernel() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            ("sys/kernel/debug/sched/base_slice_ns", "2800000\n"),
            ("sys/kernel/debug/sched/debug", "long"),
            ("sys/kernel/debug/sched/features", "PLACE_LAG NO_NEXT_BUDDY NONTASK_CAPACITY \n"),
            ("sys/kernel/debug/sched/numa_balancing/scan_delay_ms", "1000\n"),
            ("proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
            ("proc/sys/kernel/hostname", "(none)\n"),
        ];
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        dir
    }

    fn try_set(dir: &tempfile::TempDir, name: &str, value: &str) -> Result<()> {
        set(dir.path(), &[(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn tunables_are_set_where_the_kernel_has_them() {
        let dir = kernel();
        let text = |path: &str| fs::read_to_string(dir.path().join(path)).unwrap();
        try_set(&dir, "base_slice_ns", "3000000").unwrap();
        assert_eq!(text("sys/kernel/debug/sched/base_slice_ns"), "3000000");
        try_set(&dir, "numa_balancing_scan_delay_ms", "5").unwrap();
        assert_eq!(text("sys/kernel/debug/sched/numa_balancing/scan_delay_ms"), "5");
        try_set(&dir, "sched_rt_runtime_us", "-1").unwrap();
        assert_eq!(text("proc/sys/kernel/sched_rt_runtime_us"), "-1");
    }

    #[test]
    fn features_are_written_as_the_kernel_reads_them() {
        for (name, value, written) in [
            ("PLACE_LAG", "0", "NO_PLACE_LAG"),
            ("NEXT_BUDDY", "1", "NEXT_BUDDY"),
            ("features", "NO_PLACE_LAG", "NO_PLACE_LAG"),
        ] {
            let dir = kernel();
            try_set(&dir, name, value).unwrap();
            assert_eq!(fs::read_to_string(dir.path().join("sys/kernel/debug/sched/features")).unwrap(), written);
        }
        let message = try_set(&kernel(), "features", "NO_PLACE_LOG").unwrap_err().to_string();
        assert!(message.contains("did you mean \"PLACE_LAG\"?"), "{message}");
        assert!(try_set(&kernel(), "PLACE_LAG", "7").unwrap_err().to_string().contains("1 or 0"));
    }

    #[test]
    fn what_does_not_exist_is_refused_with_what_does() {
        let error = try_set(&kernel(), "latency_ns", "6000000").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Absent);
        assert_eq!(
            error.to_string(),
            "--set latency_ns=6000000: this kernel has no such tunable; it has NEXT_BUDDY, NONTASK_CAPACITY, \
             PLACE_LAG, base_slice_ns, numa_balancing_scan_delay_ms, sched_rt_runtime_us"
        );
        assert!(try_set(&kernel(), "hostname", "x").is_err(), "/proc/sys/kernel has more than tunables");
        assert!(try_set(&kernel(), "../../etc/x", "1").is_err());
    }

    #[test]
    fn every_tunable_has_its_value() {
        let all = all(kernel().path());
        assert_eq!(
            (all["base_slice_ns"].as_str(), all["PLACE_LAG"].as_str(), all["NEXT_BUDDY"].as_str()),
            ("2800000", "1", "0")
        );
        assert!(!all.contains_key("debug"));
    }
}

//! The cgroups that the scheduler knows: where they are, their weights and limits, and changes of these.

use crate::procfs;
use crate::sys::Watches;
use schedlab_base::{GroupProperties, GroupRecord, Nanos, Sink};
use std::collections::BTreeMap;
use std::fs;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

/// The most cgroups that are followed.
const MOST: usize = 1 << 14;

/// The files of a cgroup whose changes count. Each begins with this.
const FILES: &str = "cpu.";

/// All cgroups of the scheduler's hierarchy that a task was seen in, and those above them.
pub(crate) struct Cgroups {
    /// Where the hierarchy is mounted, and which cgroup the mount shows as its root.
    mount: Option<(PathBuf, String)>,
    known: BTreeMap<String, GroupProperties>,
    /// What was read before it is to be written.
    ahead: BTreeMap<String, GroupProperties>,
    watches: Option<Watches<String>>,
}

impl Cgroups {
    /// Finds the hierarchy; nothing of it is read yet.
    pub(crate) fn new(proc: Option<&Path>) -> Self {
        let mount = proc.and_then(mounted);
        let watches = mount.as_ref().and_then(|_| Watches::new().ok());
        Self { mount, known: BTreeMap::new(), ahead: BTreeMap::new(), watches }
    }

    /// The descriptor that becomes readable when somebody writes to a cgroup's files.
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        self.watches.as_ref().map(Watches::raw_fd)
    }

    /// Writes the properties of a cgroup and of those above it, unless that was done before.
    pub(crate) fn see(&mut self, time: Nanos, path: &str, sink: &mut dyn Sink) {
        if self.known.contains_key(path) || self.known.len() >= MOST {
            return;
        }
        for path in levels(path) {
            if self.known.contains_key(path) {
                continue;
            }
            let Some(properties) = self.ahead.remove(path).or_else(|| self.look(path)) else { continue };
            self.known.insert(path.to_owned(), properties.clone());
            sink.group(&GroupRecord { time, path: path.to_owned(), properties });
        }
    }

    /// Reads the properties of a cgroup and of those above it, which may be gone when they are to be written.
    pub(crate) fn read_ahead(&mut self, path: &str) {
        for path in levels(path) {
            if !self.ahead.contains_key(path)
                && self.ahead.len() < MOST
                && let Some(properties) = self.look(path)
            {
                self.ahead.insert(path.to_owned(), properties);
            }
        }
    }

    /// The properties of a cgroup that exists; from now on it is watched.
    fn look(&mut self, path: &str) -> Option<GroupProperties> {
        let dir = self.directory(path)?;
        // The watch comes first, so that a change while the files are read is not missed.
        if let Some(watches) = &mut self.watches {
            watches.add(&dir, path.to_owned());
        }
        Some(read(&dir))
    }

    /// The cgroups whose properties were changed since the last call, as they are now.
    pub(crate) fn changed(&mut self) -> Vec<(String, GroupProperties)> {
        let Some(watches) = &mut self.watches else { return Vec::new() };
        let mut written = watches.take(|file| file.starts_with(FILES));
        written.sort();
        written.dedup();
        let now = written.into_iter().filter_map(|path| {
            let properties = read(&self.directory(&path)?);
            (self.known.get(&path) != Some(&properties)).then_some((path, properties))
        });
        let now: Vec<_> = now.collect();
        self.known.extend(now.iter().cloned());
        now
    }

    /// Whether this cgroup, or one above it, has a quota of CPU time.
    pub(crate) fn has_quota(&self, path: &str) -> bool {
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
        let dirs = ends.filter_map(|end| self.directory(&path[..end]));
        dirs.map(|dir| read(&dir)).any(|group| group.quota_us.is_some_and(|quota| quota > 0))
    }

    /// The directory of a cgroup, if the mount shows it.
    fn directory(&self, path: &str) -> Option<PathBuf> {
        let (mount, root) = self.mount.as_ref()?;
        let below = if root == "/" { path } else { path.strip_prefix(root.as_str())? };
        let dir = mount.join(below.trim_start_matches('/'));
        dir.is_dir().then_some(dir)
    }
}

/// The path and those above it, without the root, from the top.
fn levels(path: &str) -> impl Iterator<Item = &str> {
    let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
    ends.map(|end| &path[..end]).filter(|path| path.len() > 1)
}

/// Where the scheduler's hierarchy is mounted, and which cgroup is the root of that mount.
fn mounted(proc: &Path) -> Option<(PathBuf, String)> {
    let first = procfs::hierarchy(proc) != 0;
    let text = fs::read_to_string(proc.join("self/mountinfo")).ok()?;
    text.lines().find_map(|line| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(3);
        let (root, point) = (mount.next()?, mount.next()?);
        let mut kind = kind.split(' ');
        let (name, options) = (kind.next()?, kind.nth(1)?);
        let ours = if first { name == "cgroup" && options.split(',').any(|o| o == "cpu") } else { name == "cgroup2" };
        ours.then(|| (PathBuf::from(point), root.to_owned()))
    })
}

/// The properties of a cgroup; none where the cpu controller is not enabled for it.
fn read(dir: &Path) -> GroupProperties {
    let text = |file: &str| fs::read_to_string(dir.join(file)).ok().map(|text| text.trim().to_owned());
    let number = |file: &str| text(file).and_then(|text| text.parse::<i64>().ok());
    let positive = |file: &str| number(file).and_then(|n| u64::try_from(n).ok());
    let mut group = GroupProperties {
        weight: positive("cpu.weight").and_then(|n| u32::try_from(n).ok()),
        shares: positive("cpu.shares"),
        quota_us: number("cpu.cfs_quota_us"),
        period_us: positive("cpu.cfs_period_us"),
        burst_us: positive("cpu.max.burst").or_else(|| positive("cpu.cfs_burst_us")),
        idle: number("cpu.idle") == Some(1),
        util_min: text("cpu.uclamp.min").as_deref().and_then(hundredths),
        util_max: text("cpu.uclamp.max").as_deref().and_then(hundredths),
    };
    if let Some((quota, period)) = text("cpu.max").as_deref().and_then(|text| text.split_once(' ')) {
        group.quota_us = if quota == "max" { Some(-1) } else { quota.parse().ok() };
        group.period_us = period.parse().ok();
    }
    // What the kernel shows it also accepts; anything else is not recorded.
    if group.check().is_err() { GroupProperties::default() } else { group }
}

/// A percentage with up to two decimals, or `max`.
fn hundredths(text: &str) -> Option<u16> {
    if text == "max" {
        return Some(10_000);
    }
    let percent: f64 = text.parse().ok()?;
    (0.0..=100.0).contains(&percent).then(|| (percent * 100.0).round() as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::write;
    use schedlab_base::{Event, NameRecord};

    #[derive(Default)]
    struct Written(Vec<(Nanos, String, GroupProperties)>);

    impl Sink for Written {
        fn events(&mut self, _: &[Event]) {}
        fn name(&mut self, _: &NameRecord) {}
        fn group(&mut self, record: &GroupRecord) {
            self.0.push((record.time, record.path.clone(), record.properties.clone()));
        }
    }

    /// A /proc whose hierarchy of this kind is mounted in the folder itself.
    fn host(version: u8, files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path().display();
        let (cgroup, options) = if version == 1 {
            ("3:cpu:/\n0::/\n", "cgroup cgroup rw,cpu\n")
        } else {
            ("0::/\n", "cgroup2 cgroup2 rw\n")
        };
        write(dir.path(), "proc/self/cgroup", cgroup);
        let line = format!("30 25 0:26 / {at}/fs rw,nosuid shared:4 - {options}");
        fs::write(dir.path().join("proc/self/mountinfo"), format!("20 1 0:2 / / rw - ext4 x rw\n{line}")).unwrap();
        for (path, text) in files {
            write(&dir.path().join("fs"), path, text);
        }
        dir
    }

    #[test]
    fn groups_are_read_with_those_above_them_and_changes_are_noticed() {
        let dir = host(
            2,
            &[
                ("a/cpu.weight", "300\n"),
                ("a/cpu.max", "20000 100000\n"),
                ("a/cpu.max.burst", "5000\n"),
                ("a/cpu.uclamp.min", "12.34\n"),
                ("a/cpu.uclamp.max", "max\n"),
                ("a/b/cpu.weight", "100\n"),
                ("a/b/cpu.idle", "1\n"),
                ("a/b/c/cgroup.procs", ""),
            ],
        );
        let (mut groups, mut out) = (Cgroups::new(Some(&dir.path().join("proc"))), Written::default());
        assert!(groups.has_quota("/a") && groups.has_quota("/a/b/c") && !groups.has_quota("/"));
        groups.see(0, "/a/b/c", &mut out);
        groups.see(5, "/a/b", &mut out);
        groups.see(5, "/", &mut out);
        groups.see(5, "/gone", &mut out);
        let a = GroupProperties {
            weight: Some(300),
            quota_us: Some(20_000),
            period_us: Some(100_000),
            burst_us: Some(5_000),
            util_min: Some(1_234),
            util_max: Some(10_000),
            ..GroupProperties::default()
        };
        let b = GroupProperties { weight: Some(100), idle: true, ..GroupProperties::default() };
        let none = GroupProperties::default();
        let paths = [(0, "/a".to_owned(), a), (0, "/a/b".to_owned(), b.clone()), (0, "/a/b/c".to_owned(), none)];
        assert_eq!(out.0, paths);
        assert_eq!(groups.changed(), []);
        fs::write(dir.path().join("fs/a/b/cpu.weight"), "70\n").unwrap();
        fs::write(dir.path().join("fs/a/cgroup.procs"), "7\n").unwrap();
        let heavy = GroupProperties { weight: Some(70), ..b };
        assert_eq!(groups.changed(), [("/a/b".to_owned(), heavy)]);
        assert_eq!(groups.changed(), []);
    }

    #[test]
    fn what_was_read_ahead_is_written_although_the_group_is_gone() {
        let dir = host(2, &[("a/cpu.weight", "300\n"), ("a/b/cpu.weight", "70\n")]);
        let (mut groups, mut out) = (Cgroups::new(Some(&dir.path().join("proc"))), Written::default());
        groups.read_ahead("/a/b");
        fs::remove_dir_all(dir.path().join("fs/a")).unwrap();
        groups.see(0, "/a/b", &mut out);
        groups.see(0, "/a/b", &mut out);
        let seen: Vec<_> = out.0.iter().map(|(_, path, group)| (path.as_str(), group.weight)).collect();
        assert_eq!(seen, [("/a", Some(300)), ("/a/b", Some(70))]);
    }

    #[test]
    fn the_first_version_has_shares() {
        let dir =
            host(1, &[("a/cpu.shares", "2048\n"), ("a/cpu.cfs_quota_us", "-1\n"), ("a/cpu.cfs_period_us", "100000\n")]);
        let (mut groups, mut out) = (Cgroups::new(Some(&dir.path().join("proc"))), Written::default());
        groups.see(0, "/a", &mut out);
        let a = &out.0[0].2;
        assert_eq!((a.shares, a.quota_us, a.period_us, a.weight), (Some(2048), Some(-1), Some(100_000), None));
        Cgroups::new(None).see(0, "/a", &mut out);
        assert_eq!(out.0.len(), 1);
    }
}

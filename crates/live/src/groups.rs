//! The groups of a workload as cgroups, of version 1 or 2, whichever has the cpu controller.
//!
//! They stand directly below the root of the hierarchy, so that they compete with each other and with tasks of no
//! group as the workload says. `/a/b` becomes `schedlab-PID-START-a/b`, where the numbers are the mark of the process
//! that made it: groups of processes that were killed are recognised by it and removed.

use schedlab_base::{Error, Result};
use schedlab_capture::owner;
use schedlab_sim::program::{GroupSpec, ROOT_GROUP};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The file of a cgroup of version 2 that says which controllers its children have.
const FOR_CHILDREN: &str = "cgroup.subtree_control";
/// How the directories of all runs begin.
const PREFIX: &str = "schedlab-";

/// Where the cpu controller is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// The root of its hierarchy.
    pub root: PathBuf,
    /// 1 or 2.
    pub version: u8,
}

impl Controller {
    /// Finds it among the mounts of this process.
    #[must_use]
    pub fn find() -> Option<Self> {
        find(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default(), |root| {
            fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default()
        })
    }
}

impl Controller {
    /// The file of a group that takes threads.
    fn members(&self) -> &'static str {
        if self.version == 1 { "tasks" } else { "cgroup.threads" }
    }
}

fn find(mountinfo: &str, controllers: impl Fn(&Path) -> String) -> Option<Controller> {
    let mounts: Vec<(PathBuf, &str, &str)> = mountinfo
        .lines()
        .filter_map(|line| {
            let (mount, kind) = line.split_once(" - ")?;
            let path = mount.split(' ').nth(4)?.replace("\\040", " ");
            let mut kind = kind.split(' ');
            Some((PathBuf::from(path), kind.next()?, kind.nth(1).unwrap_or("")))
        })
        .collect();
    let one = mounts.iter().find(|(_, kind, options)| *kind == "cgroup" && options.split(',').any(|o| o == "cpu"));
    let two = || {
        mounts.iter().find(|(path, kind, _)| {
            *kind == "cgroup2" && controllers(path).split_whitespace().any(|controller| controller == "cpu")
        })
    };
    one.map(|mount| (mount, 1))
        .or_else(|| two().map(|mount| (mount, 2)))
        .map(|((root, ..), version)| Controller { root: root.clone(), version })
}

/// The groups of a run. They are removed when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    controller: Option<Controller>,
    /// Their directories, each after its parent.
    dirs: Vec<PathBuf>,
    /// How the paths of this run's groups begin.
    mark: String,
    made: OnceLock<Made>,
    /// Whether the children of the root have the cpu controller by this run alone.
    enabled: AtomicBool,
}

/// What is open once they are made.
#[derive(Debug)]
struct Made {
    /// For each group the file that takes the threads that join it.
    files: Vec<File>,
    /// The same file of the hierarchy's root.
    root: File,
    /// The file of the root that takes whole processes. Version 2 moves threads only within what it calls a domain, and
    /// this process may be in any.
    home: File,
}

impl Groups {
    /// Plans the groups.
    pub(crate) fn plan(specs: &[GroupSpec]) -> Result<Self> {
        if specs.is_empty() {
            return Ok(Self::default());
        }
        let controller = Controller::find().ok_or_else(|| {
            Error::not_permitted("the workload has groups, and no cgroup hierarchy here has the cpu controller")
                .mend("mount one: mount -t cgroup2 none /sys/fs/cgroup, or mount -t cgroup -o cpu none DIRECTORY")
        })?;
        let mark = format!("{PREFIX}{}-", owner::mark());
        let dirs = specs.iter().map(|spec| directory(&controller, &mark, spec)).collect::<Result<_>>()?;
        let (made, enabled) = (OnceLock::new(), AtomicBool::new(false));
        Ok(Self { controller: Some(controller), dirs, mark, made, enabled })
    }

    /// Makes them, each after its parent. Those of earlier runs that were killed are removed. The process that does
    /// this is the supervisor, which outlives a command that is killed.
    pub(crate) fn make(&self, specs: &[GroupSpec]) -> Result<()> {
        let Some(controller) = &self.controller else { return Ok(()) };
        remove_stale(&controller.root);
        let root = open(&controller.root, controller.members())?;
        let home = open(&controller.root, "cgroup.procs")?;
        if controller.version == 2 {
            self.enable(&controller.root)?;
        }
        let make = |(dir, spec): (&PathBuf, &GroupSpec)| {
            fs::create_dir(dir).map_err(|e| refused("make the cgroup", dir, &e))?;
            if controller.version == 1 {
                configure_1(dir, spec)?
            } else {
                configure_2(dir, spec)?
            }
            open(dir, controller.members())
        };
        let files = self.dirs.iter().zip(specs).map(make).collect::<Result<_>>()?;
        let _ = self.made.set(Made { files, root, home });
        Ok(())
    }

    /// Gives the children of the root the cpu controller, unless they have it.
    fn enable(&self, root: &Path) -> Result<()> {
        let has = fs::read_to_string(root.join(FOR_CHILDREN)).unwrap_or_default();
        if !has.split_whitespace().any(|controller| controller == "cpu") {
            write(root, FOR_CHILDREN, "+cpu")?;
            self.enabled.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Moves this process to the root of the hierarchy, where its threads can go to the groups from.
    pub(crate) fn enter(&self) -> Result<()> {
        let result = self.made.get().map_or(Ok(()), |made| (&made.home).write_all(b"0"));
        result.map_err(|e| {
            Error::not_permitted(format!("the tasks cannot move to the root of the cgroups: {e}"))
                .mend("run it as root")
        })
    }

    /// Moves this thread into a group.
    pub(crate) fn join(&self, group: u32) -> Result<()> {
        let made = self.made.get();
        let file = made.and_then(|it| if group == ROOT_GROUP { Some(&it.root) } else { it.files.get(group as usize) });
        // 0 stands for the thread that writes.
        let result = file.map_or(Ok(()), |mut file| file.write_all(b"0"));
        result.map_err(|e| {
            Error::not_permitted(format!("the task cannot join its cgroup: {e}"))
                .mend("run it as root; a deadline or real-time task can only join a group that has such time")
        })
    }

    /// How the paths of the groups begin in a recording, where the workload has `/`.
    pub(crate) fn prefix(&self) -> Option<String> {
        (!self.dirs.is_empty()).then(|| format!("/{}", self.mark))
    }

    /// Removes them, when their tasks have ended.
    pub(crate) fn remove(&self) {
        for dir in self.dirs.iter().rev() {
            for _ in 0..100 {
                match fs::remove_dir(dir) {
                    // The last task is still on its way out.
                    Err(e) if e.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(Duration::from_millis(10)),
                    _ => break,
                }
            }
        }
        if let Some(controller) = &self.controller
            && self.enabled.swap(false, Ordering::Relaxed)
            && names(&controller.root).next().is_none()
        {
            let _ = write(&controller.root, FOR_CHILDREN, "-cpu");
        }
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Where a group is.
fn directory(controller: &Controller, mark: &str, spec: &GroupSpec) -> Result<PathBuf> {
    let inside = spec.path.trim_start_matches('/');
    if inside.split('/').any(|part| matches!(part, "" | "." | "..") || part.contains(['\n', '\0'])) {
        return Err(Error::input(format!("\"{}\" cannot be the path of a cgroup", spec.path))
            .mend("write a path like /a/b, without . and .."));
    }
    Ok(controller.root.join(format!("{mark}{inside}")))
}

fn open(dir: &Path, file: &str) -> Result<File> {
    let path = dir.join(file);
    OpenOptions::new().write(true).open(&path).map_err(|e| refused("open", &path, &e))
}

fn configure_1(dir: &Path, spec: &GroupSpec) -> Result<()> {
    if spec.idle {
        write(dir, "cpu.idle", "1")?;
    } else {
        write(dir, "cpu.shares", &spec.shares.to_string())?;
    }
    if let Some((quota, period)) = spec.bandwidth {
        write(dir, "cpu.cfs_period_us", &(period / 1000).to_string())?;
        write(dir, "cpu.cfs_quota_us", &(quota / 1000).to_string())?;
        if spec.burst > 0 {
            write(dir, "cpu.cfs_burst_us", &(spec.burst / 1000).to_string())?;
        }
    }
    Ok(())
}

fn configure_2(dir: &Path, spec: &GroupSpec) -> Result<()> {
    // Threads of one process may be in different groups only if these are threaded.
    write(dir, "cgroup.type", "threaded")?;
    write(dir, FOR_CHILDREN, "+cpu")?;
    if spec.idle {
        write(dir, "cpu.idle", "1")?;
    } else {
        // As the kernel shows shares as a weight: DIV_ROUND_CLOSEST(shares * 100, 1024).
        let weight = ((spec.shares * 100 + 512) / 1024).clamp(1, 10_000);
        write(dir, "cpu.weight", &weight.to_string())?;
    }
    if let Some((quota, period)) = spec.bandwidth {
        write(dir, "cpu.max", &format!("{} {}", quota / 1000, period / 1000))?;
        if spec.burst > 0 {
            write(dir, "cpu.max.burst", &(spec.burst / 1000).to_string())?;
        }
    }
    Ok(())
}

fn write(dir: &Path, file: &str, value: &str) -> Result<()> {
    let path = dir.join(file);
    let result = OpenOptions::new().write(true).open(&path).and_then(|mut f| f.write_all(value.as_bytes()));
    result.map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => Error::not_permitted(format!("this kernel's cgroups have no {file}"))
            .mend("leave it out of the workload's x-groups, or run on a kernel that has it"),
        _ => refused(&format!("write {value} to"), &path, &e),
    })
}

fn refused(doing: &str, path: &Path, error: &io::Error) -> Error {
    let text = format!("cannot {doing} {}: {error}", path.display());
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Error::not_permitted(text).mend("cgroups need root: run it with sudo"),
        Some(libc::EROFS) => {
            Error::not_permitted(text).mend("in a container, mount the cgroups so that they can be written")
        }
        Some(libc::EBUSY) => Error::not_permitted(text).mend(
            "the root of these cgroups is a container's, and has processes; run it outside, or with the host's cgroups",
        ),
        Some(libc::EINVAL | libc::ERANGE) => Error::input(text)
            .mend("the kernel refuses the value: a quota must be 1 ms or more, and no more than its parent's share"),
        _ => Error::system(format!("cannot {doing} {}", path.display()), error),
    }
}

/// The names of the groups of all runs, without what they begin with.
fn names(root: &Path) -> impl Iterator<Item = String> {
    let names = fs::read_dir(root).into_iter().flatten().flatten();
    names.filter_map(|entry| Some(entry.file_name().to_str()?.strip_prefix(PREFIX)?.to_owned()))
}

/// Removes the groups of runs whose process no longer exists.
pub(crate) fn remove_stale(root: &Path) {
    for name in names(root).filter(|name| owner::is_gone(name)) {
        remove_tree(&root.join(format!("{PREFIX}{name}")));
    }
}

/// Removes a cgroup and those below it. One in use stays.
fn remove_tree(dir: &Path) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path());
        }
    }
    // If tasks are still in it, the next run tries again.
    let _ = fs::remove_dir(dir);
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "36 32 0:33 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n\
                       37 32 0:34 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n";
    const TWO: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_controller_is_found_in_either_version() {
        let found = |text: &str, controllers: &str| find(text, |_| controllers.to_owned());
        let one = Controller { root: "/sys/fs/cgroup/cpu,cpuacct".into(), version: 1 };
        assert_eq!(found(&format!("{TWO}{ONE}"), "memory"), Some(one));
        assert_eq!(found(TWO, "cpuset cpu io"), Some(Controller { root: "/sys/fs/cgroup".into(), version: 2 }));
        assert_eq!(found(TWO, "cpuset io"), None);
        assert_eq!(found("", ""), None);
    }

    /// A root of cgroups of version 2 whose children have these controllers, as plain files.
    fn root(controllers: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in [("cgroup.threads", ""), ("cgroup.procs", ""), (FOR_CHILDREN, controllers)] {
            fs::write(dir.path().join(file), text).unwrap();
        }
        dir
    }

    /// What the file says about the controllers at a run's end, and what it said meanwhile.
    fn controllers(root: &Path) -> (String, String) {
        let read = || fs::read_to_string(root.join(FOR_CHILDREN)).unwrap();
        let mut groups = Groups::default();
        groups.controller = Some(Controller { root: root.to_owned(), version: 2 });
        groups.make(&[]).unwrap();
        let meanwhile = read();
        drop(groups);
        (read(), meanwhile)
    }

    #[test]
    fn the_controller_is_taken_back_from_the_root_by_who_gave_it_if_nobody_else_uses_it() {
        let pair = |end: &str, meanwhile: &str| (end.to_owned(), meanwhile.to_owned());
        assert_eq!(controllers(root("").path()), pair("-cpu", "+cpu"));
        assert_eq!(controllers(root("cpuset cpu\n").path()), pair("cpuset cpu\n", "cpuset cpu\n"));
        let used = root("");
        fs::create_dir(used.path().join(format!("{PREFIX}{}-a", owner::mark()))).unwrap();
        assert_eq!(controllers(used.path()), pair("+cpu", "+cpu"));
    }

    /// Only a kernel that has the cpu controller in version 2 refuses this, in a container whose root has processes of
    /// its own and children with others.
    #[test]
    fn who_runs_in_a_container_with_a_busy_root_is_told_so() {
        let busy = io::Error::from_raw_os_error(libc::EBUSY);
        let error = refused("write +cpu to", Path::new("/sys/fs/cgroup/cgroup.subtree_control"), &busy);
        assert_eq!(error.exit_status(), 4);
        assert_eq!(
            error.to_string(),
            "cannot write +cpu to /sys/fs/cgroup/cgroup.subtree_control: Device or resource busy (os error 16); the \
             root of these cgroups is a container's, and has processes; run it outside, or with the host's cgroups"
        );
    }

    #[test]
    fn groups_of_processes_that_are_gone_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let names = ["schedlab-1-1-a", "schedlab-1-1-a/b", &format!("schedlab-{}-c", owner::mark()), "other-1-1"];
        names.iter().for_each(|name| fs::create_dir(dir.path().join(name)).unwrap());
        remove_stale(dir.path());
        let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["other-1-1", names[2]]);
    }
}

//! The tasks that run or wait for a CPU, as /proc shows them: for a checker that has nothing better.

use crate::cgroups::Cgroups;
use crate::procfs;
use schedlab_base::{CpuId, CpuList, Tid};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

/// A task that runs or waits for a CPU. /proc does not say which of the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunnableTask {
    /// Its thread id.
    pub tid: Tid,
    /// Its process.
    pub tgid: Tid,
    /// Its name.
    pub comm: String,
    /// The CPU that it runs on or waits for.
    pub cpu: CpuId,
}

/// Reads the runnable tasks. A thread costs one read, most of them that alone.
pub struct Runnable {
    proc: PathBuf,
    /// The scheduler's cgroup hierarchy.
    hierarchy: u32,
    cgroups: Cgroups,
    buffer: Vec<u8>,
}

impl Default for Runnable {
    fn default() -> Self {
        Self::at(Path::new("/proc"))
    }
}

impl Runnable {
    fn at(proc: &Path) -> Self {
        let (hierarchy, cgroups) = (procfs::hierarchy(proc), Cgroups::new(Some(proc)));
        Self { proc: proc.to_path_buf(), hierarchy, cgroups, buffer: Vec::new() }
    }

    /// All runnable tasks but those of the process `but`.
    pub fn all(&mut self, but: Tid) -> Vec<RunnableTask> {
        let mut found = Vec::new();
        for tgid in procfs::numbered(&self.proc).into_iter().filter(|tgid| *tgid != but) {
            let dir = self.proc.join(tgid.to_string());
            // The file of the process counts its threads: most have one, and that is in the file.
            if self.threads(&dir) == 1 {
                found.extend(self.parse(tgid, tgid));
                continue;
            }
            for tid in procfs::numbered(&dir.join("task")) {
                found.extend(self.read(tid, tgid));
            }
        }
        found
    }

    /// Those of these tasks that are still runnable, as they are now.
    pub fn again(&mut self, tasks: &[RunnableTask]) -> Vec<RunnableTask> {
        tasks.iter().filter_map(|task| self.read(task.tid, task.tgid)).collect()
    }

    /// The CPUs that the task may run on, if it has not ended.
    #[must_use]
    pub fn allowed(&self, task: &RunnableTask) -> Option<CpuList> {
        procfs::allowed_of(&self.proc, task.tid)
    }

    /// Whether the task may have to wait for a budget, not for a CPU: its cgroup or one above has a quota, or it has a
    /// deadline.
    pub fn has_budget(&mut self, task: &RunnableTask) -> bool {
        let dir = self.proc.join(task.tid.to_string());
        let deadline = crate::sched_attr::SchedAttr::of(task.tid).is_ok_and(|attr| attr.policy == DEADLINE);
        let cgroup = procfs::cgroup(&dir, self.hierarchy);
        deadline || cgroup.is_some_and(|path| self.cgroups.has_quota(&path))
    }

    /// Reads the `stat` of a process and returns how many threads it has: field 20.
    fn threads(&mut self, dir: &Path) -> u32 {
        self.load(&dir.join("stat"));
        let text = String::from_utf8_lossy(&self.buffer);
        procfs::split_stat(&text).and_then(|(_, mut fields)| fields.nth(17)?.parse().ok()).unwrap_or(0)
    }

    fn read(&mut self, tid: Tid, tgid: Tid) -> Option<RunnableTask> {
        let path = self.proc.join(tgid.to_string()).join("task").join(tid.to_string()).join("stat");
        self.load(&path);
        self.parse(tid, tgid)
    }

    fn parse(&self, tid: Tid, tgid: Tid) -> Option<RunnableTask> {
        let text = String::from_utf8_lossy(&self.buffer);
        // Most tasks sleep, which is seen without looking at the other fields.
        if !text.rsplit_once(')')?.1.starts_with(" R") {
            return None;
        }
        let task = procfs::parse_stat(&text, tid, tgid)?;
        task.runnable.then_some(RunnableTask { tid, tgid, comm: task.comm, cpu: task.cpu })
    }

    fn load(&mut self, path: &Path) {
        self.buffer.clear();
        if let Ok(mut file) = File::open(path) {
            let _ = file.read_to_end(&mut self.buffer);
        }
    }
}

/// SCHED_DEADLINE.
const DEADLINE: u32 = 6;

/// The CPUs that are online; none if /sys does not say.
#[must_use]
pub fn online() -> CpuList {
    let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    text.trim().parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(tid: Tid, comm: &str, state: char, threads: u32, cpu: CpuId) -> String {
        format!("{tid} ({comm}) {state} 1 {}{threads} {}{cpu} 0 0", "0 ".repeat(15), "0 ".repeat(18))
    }

    #[test]
    fn runnable_tasks_are_found_in_processes_of_one_and_of_many_threads() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("5/stat", &stat(5, "one", 'R', 1, 3));
        write("6/stat", &stat(6, "asleep) R", 'S', 1, 3));
        write("7/stat", &stat(7, "many", 'S', 2, 0));
        write("7/task/7/stat", &stat(7, "many", 'S', 2, 0));
        write("7/task/8/stat", &stat(8, "of) R many", 'R', 2, 1));
        write("9/stat", &stat(9, "ours", 'R', 1, 1));
        write("10/stat", "10 (cut");
        let mut runnable = Runnable::at(dir.path());
        let mut found = runnable.all(9);
        found.sort_by_key(|task| task.tid);
        let seen: Vec<_> = found.iter().map(|task| (task.tid, task.tgid, task.comm.as_str(), task.cpu)).collect();
        assert_eq!(seen, [(5, 5, "one", 3), (8, 7, "of) R many", 1)]);
        write("7/task/8/stat", &stat(8, "of) R many", 'S', 2, 1));
        write("5/task/5/stat", &stat(5, "one", 'R', 1, 2));
        let again = runnable.again(&found);
        assert_eq!(again.iter().map(|task| (task.tid, task.cpu)).collect::<Vec<_>>(), [(5, 2)]);
    }
}

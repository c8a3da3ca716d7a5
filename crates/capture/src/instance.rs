//! The recorder's own tracefs instance. It is created, set up, and removed whatever happens.

use crate::owner;
use crate::sys;
use crate::tracefs::{Tracefs, read_text, refused};
use schedlab_base::{CpuId, Error, Result, Tid};
use std::ffi::{CString, OsStr};
use std::fs::{self, File, OpenOptions};
use std::io::{self, PipeWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Instances are named `schedlab-PID-START-N`: the mark of their owner, and a number.
const PREFIX: &str = "schedlab-";

/// An instance of the kernel's tracer, with buffers, events and a clock of its own, separate from other users.
///
/// It is removed when it is dropped. If this process is killed, a forked guard removes it; if the guard fails too,
/// [`remove_stale`] finds it later.
#[derive(Debug)]
pub(crate) struct Instance {
    path: PathBuf,
    /// The guard waits for the end of this pipe, which closes when this process ends.
    alive: Option<PipeWriter>,
    guard: Tid,
}

impl Instance {
    /// Creates an instance that does not record yet.
    pub(crate) fn new(tracefs: &Tracefs) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{PREFIX}{}-{}", owner::mark(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = tracefs.root().join("instances").join(name);
        let guard_failed = |e: io::Error| Error::system("cannot start the guard of the tracefs instance", &e);
        let (reader, writer) = io::pipe().map_err(guard_failed)?;
        let c_path = CString::new(path.to_string_lossy().into_owned()).expect("a path that we made has no NUL");
        let guard = sys::fork_remover(reader.as_fd(), tracefs.descriptor(), &c_path).map_err(guard_failed)?;
        drop(reader);
        let instance = Self { path, alive: Some(writer), guard };
        fs::create_dir(&instance.path).map_err(|e| refused("create a tracefs instance", &instance.path, &e))?;
        instance.write("tracing_on", "0")?;
        Ok(instance)
    }

    /// Writes one of the instance's files.
    pub(crate) fn write(&self, file: &str, value: &str) -> Result<()> {
        let path = self.path.join(file);
        OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut f| f.write_all(value.as_bytes()))
            .map_err(|e| refused(&format!("set {file} to {value}"), &path, &e))
    }

    /// Appends to one of the instance's files. All lines are one write: after each one, the kernel waits some 40 ms
    /// until no CPU uses the old list.
    pub(crate) fn append(&self, file: &str, lines: &str) -> Result<()> {
        let path = self.path.join(file);
        let opened = OpenOptions::new().append(true).open(&path);
        opened
            .and_then(|mut open| open.write_all(lines.as_bytes()))
            .map_err(|e| refused(&format!("add to {file}"), &path, &e))
    }

    /// Reads one of the instance's files.
    pub(crate) fn read(&self, file: &str) -> Result<String> {
        let path = self.path.join(file);
        read_text(&path).map_err(|e| refused(&format!("read {file}"), &path, &e))
    }

    /// Turns off the list of command names that the kernel keeps for the text of `trace` (a third of the cost of an
    /// event). The option also affects events that other users have enabled, so it is left on if someone else is
    /// tracing. It belongs to this instance and disappears with it.
    pub(crate) fn drop_saved_names(&self, tracefs: &Tracefs) {
        let others = fs::read_dir(tracefs.root().join("instances"))
            .map_or(true, |entries| entries.flatten().any(|e| !e.file_name().to_string_lossy().starts_with(PREFIX)));
        let top = read_text(&tracefs.root().join("set_event")).map_or(true, |events| !events.trim().is_empty());
        if !others && !top {
            // An old kernel without the option is only a little slower.
            let _ = self.write("trace_options", "norecord-cmd");
        }
    }

    /// Whether the instance has this file.
    pub(crate) fn has(&self, file: &str) -> bool {
        self.path.join(file).exists()
    }

    /// Turns recording on or off.
    pub(crate) fn switch(&self, on: bool) -> Result<()> {
        self.write("tracing_on", if on { "1" } else { "0" })
    }

    /// The buffers of the CPUs, opened in non-blocking mode.
    pub(crate) fn buffers(&self) -> Result<Vec<(CpuId, File)>> {
        let dir = self.path.join("per_cpu");
        let entries = fs::read_dir(&dir).map_err(|e| refused("list the buffers", &dir, &e))?;
        let mut buffers = Vec::new();
        for entry in entries.flatten() {
            let Some(cpu) = cpu_of(&entry.file_name()) else { continue };
            let path = entry.path().join("trace_pipe_raw");
            match OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path) {
                Ok(file) => buffers.push((cpu, file)),
                // The CPU could be plugged in but is not present.
                Err(e) if e.raw_os_error() == Some(libc::ENODEV) => {}
                Err(e) => return Err(refused("open a buffer", &path, &e)),
            }
        }
        buffers.sort_by_key(|(cpu, _)| *cpu);
        if buffers.is_empty() {
            return Err(Error::system("cannot record", &"the tracefs instance has no buffer").file(&dir));
        }
        Ok(buffers)
    }

    /// The number of events that this CPU's buffer has lost so far, according to its statistics.
    pub(crate) fn lost(&self, cpu: CpuId) -> u64 {
        let path = self.path.join(format!("per_cpu/cpu{cpu}/stats"));
        read_text(&path).map_or(0, |text| count_lost(&text))
    }
}

/// Adds up the losses in a `stats` file: events overwritten, dropped, and nested too deeply.
fn count_lost(stats: &str) -> u64 {
    stats
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(key, _)| matches!(key.trim(), "overrun" | "commit overrun" | "dropped events"))
        .filter_map(|(_, value)| value.trim().parse::<u64>().ok())
        .fold(0, u64::saturating_add)
}

impl Drop for Instance {
    fn drop(&mut self) {
        for _ in 0..50 {
            match fs::remove_dir(&self.path) {
                // It is busy: the last pages are still being freed.
                Err(e) if e.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(Duration::from_millis(10)),
                _ => break,
            }
        }
        // This wakes the guard. It finds nothing to remove, or retries the removal, and ends.
        self.alive = None;
        sys::reap(self.guard);
    }
}

/// Removes the instances of processes that no longer exist, and returns their names. The kernel refuses to remove an
/// instance that is still open, so one in use is kept whatever its name.
pub(crate) fn remove_stale(tracefs: &Tracefs) -> Vec<String> {
    let dir = tracefs.root().join("instances");
    let Ok(entries) = fs::read_dir(&dir) else { return Vec::new() };
    let stale = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        (owner::is_gone(name.strip_prefix(PREFIX)?) && fs::remove_dir(dir.join(&name)).is_ok()).then_some(name)
    });
    stale.collect()
}

/// The CPU that a folder such as `cpu11` is about.
pub(crate) fn cpu_of(folder: &OsStr) -> Option<CpuId> {
    folder.to_str()?.strip_prefix("cpu")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_loss_counts() {
        let stats = "entries: 12\noverrun: 5\ncommit overrun: 2\nbytes: 9\ndropped events: 1\nread events: 7\n";
        assert_eq!(count_lost(stats), 8);
        assert_eq!(count_lost("nonsense"), 0);
    }
}

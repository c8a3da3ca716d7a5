//! Our own tracefs instance: made, set up, and removed whatever happens.

use crate::sys;
use crate::tracefs::{Tracefs, read_text, refused};
use schedlab_base::{CpuId, Error, Result, Tid};
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, PipeWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Our instances are called `schedlab-PID-START-N`, where START is when that process began (in ticks since boot).
const PREFIX: &str = "schedlab-";

/// An instance of the kernel's tracer: its own buffers, events and clock, apart from anybody else's.
///
/// Dropped, it removes itself. A forked guard does it when this process is killed; what even that
/// leaves behind, [`remove_stale`] finds.
#[derive(Debug)]
pub(crate) struct Instance {
    path: PathBuf,
    /// The guard waits for the end of this pipe, which comes with ours.
    alive: Option<PipeWriter>,
    guard: Tid,
}

impl Instance {
    /// Makes an instance, silent yet.
    pub(crate) fn new(tracefs: &Tracefs) -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let pid = std::process::id() as Tid;
        let start = start_time(Path::new("/proc"), pid).unwrap_or(0);
        let name = format!("{PREFIX}{pid}-{start}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
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

    /// Writes one of its files.
    pub(crate) fn write(&self, file: &str, value: &str) -> Result<()> {
        let path = self.path.join(file);
        OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut f| f.write_all(value.as_bytes()))
            .map_err(|e| refused(&format!("set {file} to {value}"), &path, &e))
    }

    /// Adds to one of its files, a line at a time.
    pub(crate) fn append(&self, file: &str, lines: impl IntoIterator<Item = String>) -> Result<()> {
        let path = self.path.join(file);
        let failed = |e: io::Error| refused(&format!("add to {file}"), &path, &e);
        let mut open = OpenOptions::new().append(true).open(&path).map_err(failed)?;
        for line in lines {
            match open.write_all(line.as_bytes()) {
                // A thread that has ended meanwhile.
                Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
                result => result.map_err(failed)?,
            }
        }
        Ok(())
    }

    /// Reads one of its files.
    pub(crate) fn read(&self, file: &str) -> Result<String> {
        let path = self.path.join(file);
        read_text(&path).map_err(|e| refused(&format!("read {file}"), &path, &e))
    }

    /// Spares the kernel the list of command names that it keeps for the text of `trace` (a third of the
    /// cost of an event). That switch also reaches events that others have on, so it stays where somebody
    /// else traces; it is our instance's own and goes with it.
    pub(crate) fn drop_saved_names(&self, tracefs: &Tracefs) {
        let others = fs::read_dir(tracefs.root().join("instances"))
            .map_or(true, |entries| entries.flatten().any(|e| !e.file_name().to_string_lossy().starts_with(PREFIX)));
        let top = read_text(&tracefs.root().join("set_event")).map_or(true, |events| !events.trim().is_empty());
        if !others && !top {
            // An old kernel without the switch is a little slower, no more.
            let _ = self.write("trace_options", "norecord-cmd");
        }
    }

    /// Whether it has such a file.
    pub(crate) fn has(&self, file: &str) -> bool {
        self.path.join(file).exists()
    }

    /// Turns recording on or off.
    pub(crate) fn switch(&self, on: bool) -> Result<()> {
        self.write("tracing_on", if on { "1" } else { "0" })
    }

    /// The buffers of its CPUs, by CPU, opened without waiting.
    pub(crate) fn buffers(&self) -> Result<Vec<(CpuId, File)>> {
        let dir = self.path.join("per_cpu");
        let entries = fs::read_dir(&dir).map_err(|e| refused("list the buffers", &dir, &e))?;
        let mut buffers = Vec::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let cpu = name.to_str().and_then(|name| name.strip_prefix("cpu")).and_then(|n| n.parse::<CpuId>().ok());
            let Some(cpu) = cpu else { continue };
            let path = entry.path().join("trace_pipe_raw");
            match OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path) {
                Ok(file) => buffers.push((cpu, file)),
                // A CPU that could be plugged in but is not there.
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

    /// Events that this CPU's buffer lost so far, as its statistics count them.
    pub(crate) fn lost(&self, cpu: CpuId) -> u64 {
        let path = self.path.join(format!("per_cpu/cpu{cpu}/stats"));
        read_text(&path).map_or(0, |text| count_lost(&text))
    }
}

/// Adds up the losses in a `stats` file: overwritten, dropped, and too deeply nested.
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
                // Busy: the last pages are still on their way to being freed.
                Err(e) if e.raw_os_error() == Some(libc::EBUSY) => std::thread::sleep(Duration::from_millis(10)),
                _ => break,
            }
        }
        // The guard wakes, finds nothing left to remove (or tries on), and ends.
        self.alive = None;
        sys::reap(self.guard);
    }
}

/// Removes the instances of processes that are gone; returns their names. One that is still open is
/// somebody's, whatever its name, and the kernel keeps it.
pub fn remove_stale(tracefs: &Tracefs) -> Vec<String> {
    let dir = tracefs.root().join("instances");
    let Ok(entries) = fs::read_dir(&dir) else { return Vec::new() };
    let stale = entries.flatten().filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let (pid, start) = owner(&name)?;
        let gone = start_time(Path::new("/proc"), pid) != Some(start);
        (gone && fs::remove_dir(dir.join(&name)).is_ok()).then_some(name)
    });
    stale.collect()
}

/// The process that an instance's name says it belongs to, and when that process began.
fn owner(name: &str) -> Option<(Tid, u64)> {
    let mut parts = name.strip_prefix(PREFIX)?.split('-');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// When a process began, in ticks since boot: field 22 of its `stat`.
fn start_time(proc: &Path, pid: Tid) -> Option<u64> {
    let stat = fs::read_to_string(proc.join(pid.to_string()).join("stat")).ok()?;
    // The name in parentheses may itself hold spaces and parentheses.
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
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

    #[test]
    fn an_instance_names_its_owner() {
        assert_eq!(owner("schedlab-42-1000-0"), Some((42, 1000)));
        assert_eq!(owner("schedlab-x"), None);
        assert_eq!(owner("perf-42-1000-0"), None);
    }

    #[test]
    fn a_process_has_a_start_whatever_its_name() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("7")).unwrap();
        let fields: Vec<String> = (4..=30).map(|n| n.to_string()).collect();
        fs::write(dir.path().join("7/stat"), format!("7 (a) b) R {}", fields.join(" "))).unwrap();
        assert_eq!(start_time(dir.path(), 7), Some(22));
        assert_eq!(start_time(dir.path(), 8), None);
    }
}

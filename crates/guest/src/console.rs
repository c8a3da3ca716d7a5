//! The guest's console: what went wrong, in its own words, and a file to read the rest in.

use crate::store::Store;
use schedlab_base::{Error, Result};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The most that is read of a console.
pub(crate) const MOST_BYTES: u64 = 64 << 20;
/// How many consoles of guests that failed are kept.
const MOST_KEPT: usize = 20;
/// What the agent's own messages begin with.
pub(crate) const OWN: &str = "schedlab-agent: ";

/// A console's text so far.
pub(crate) fn text(console: &File) -> String {
    let length = console.metadata().map_or(0, |meta| meta.len()).min(MOST_BYTES);
    let mut bytes = vec![0; length as usize];
    let read = console.read_at(&mut bytes, 0).unwrap_or(0);
    bytes.truncate(read);
    String::from_utf8_lossy(&bytes).replace('\r', "")
}

/// What the kernel or the agent says went wrong, if either does.
pub(crate) fn trouble(text: &str) -> Option<String> {
    let after = |mark: &str| {
        let rest = &text[text.find(mark)? + mark.len()..];
        rest.lines().next().map(|line| line.trim().to_owned())
    };
    if let Some(own) = after(OWN) {
        return Some(own);
    }
    if ran_out_of_memory(text) {
        return Some("it ran out of memory".to_owned());
    }
    if text.contains("Initramfs unpacking failed") {
        return Some("its kernel could not unpack the initramfs".to_owned());
    }
    after("Kernel panic - not syncing: ").map(|why| format!("its kernel panicked: {why}"))
}

/// Whether the kernel says that memory ran out, and not only that of a cgroup.
pub(crate) fn ran_out_of_memory(text: &str) -> bool {
    // The initramfs is unpacked into memory, of which it may take one half.
    let marks =
        ["Out of memory", "out of memory", "System is deadlocked on memory", "Initramfs unpacking failed: write error"];
    let mut lines = text.lines().filter(|line| !line.contains("Memory cgroup out of memory"));
    lines.any(|line| marks.iter().any(|mark| line.contains(mark)))
}

/// The last line that a command printed, if it failed for lack of memory. The number of threads that a kernel allows
/// follows from its memory, too.
pub(crate) fn lacked_memory(said: &str) -> Option<&str> {
    let marks = ["Cannot allocate memory", "MiB of memory, and", "cannot start a thread: Resource temporarily"];
    let last = said.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    let last = last.trim_start_matches("schedlab: ");
    marks.iter().any(|mark| last.contains(mark)).then_some(last)
}

/// Whether the kernel died of a breakpoint of its own. It changes its code by way of breakpoints, and makes sure that
/// no CPU can meet one when they are gone (`text_poke_bp_batch`). QEMU, which translates the code for the CPUs that it
/// emulates, now and then runs one afterwards.
pub(crate) fn stumbled(text: &str) -> bool {
    text.contains("int3: 0000 [#")
}

/// How long nothing has been written to a console.
pub(crate) fn silent(console: &File) -> Duration {
    let written = console.metadata().and_then(|meta| meta.modified());
    written.ok().and_then(|at| at.elapsed().ok()).unwrap_or_default()
}

/// Keeps a console as a file in the user's cache, and gives the file's name.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn keep(console: &File, kernel: &str) -> Result<PathBuf> {
    let folder = Store::open()?.folder("consoles")?;
    let name = plain(kernel);
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let path = folder.join(format!("{seconds}-{}-{}.log", std::process::id(), name.trim_matches('-')));
    fs::write(&path, text(console)).map_err(|e| Error::system("cannot be written", &e).file(&path))?;
    let mut kept: Vec<PathBuf> = fs::read_dir(&folder).into_iter().flatten().flatten().map(|e| e.path()).collect();
    kept.sort();
    for old in kept.iter().rev().skip(MOST_KEPT) {
        let _ = fs::remove_file(old);
    }
    Ok(path)
}

/// A kernel's name without the folders, with what any file system takes.
fn plain(kernel: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    kernel.rsplit('/').next().unwrap_or(kernel).chars().map(kept).collect()
}

/// The last line of what QEMU said.
pub(crate) fn last_line(mut complaints: &File) -> Option<String> {
    use std::io::{Seek, SeekFrom};
    let mut text = String::new();
    complaints.seek(SeekFrom::Start(0)).ok()?;
    complaints.take(1 << 20).read_to_string(&mut text).ok()?;
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty() && !line.contains("warning:"))?;
    Some(line.trim_start_matches("qemu-system-x86_64: ").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_console_is_named_as_its_kernel_is() {
        assert_eq!(
            ["./bzImage", "/boot/vmlinuz-6.1", "debian-6.1"].map(plain),
            ["bzImage", "vmlinuz-6.1", "debian-6.1"]
        );
    }

    #[test]
    fn trouble_is_recognised() {
        let panic = "[    3.0] Kernel panic - not syncing: VFS: Unable to mount root fs\n[    3.0] CPU: 0\n";
        assert_eq!(trouble(panic).unwrap(), "its kernel panicked: VFS: Unable to mount root fs");
        let killed = "[ 9.1] Out of memory: Killed process 60 (schedlab)\n";
        assert_eq!(trouble(killed).unwrap(), "it ran out of memory");
        let both = "Kernel panic - not syncing: System is deadlocked on memory\n";
        assert_eq!(trouble(both).unwrap(), "it ran out of memory");
        let unpacked = "[    3.8] Initramfs unpacking failed: write error\nKernel panic - not syncing: VFS\n";
        assert_eq!(trouble(unpacked).unwrap(), "it ran out of memory");
        let own = format!("x\n{OWN}no shared memory\nKernel panic - not syncing: Attempted to kill init!\n");
        assert_eq!(trouble(&own).unwrap(), "no shared memory");
        assert_eq!(trouble("[    0.0] Linux version 6.1\n"), None);
    }

    #[test]
    fn a_command_that_lacked_memory_is_recognised() {
        let buffer = "w.json: cannot read the trace buffer of CPU 0: Cannot allocate memory (os error 12)";
        assert_eq!(lacked_memory(&format!("a remark\nschedlab: {buffer}\n\n")), Some(buffer));
        let threads = "w.json: cannot start a thread: Resource temporarily unavailable (os error 11); run fewer tasks";
        assert_eq!(lacked_memory(threads), Some(threads));
        let tasks = "w.json: the tasks need 382 MiB of memory, and 58 are available here; give them less";
        assert_eq!(lacked_memory(tasks), Some(tasks));
        assert_eq!(lacked_memory("Cannot allocate memory\nw.json: line 3: no such key\n"), None);
        assert_eq!(lacked_memory(""), None);
        assert!(ran_out_of_memory("[    3.1] Out of memory: Killed process 71 (stress)\n"));
        assert!(!ran_out_of_memory("[    3.1] Memory cgroup out of memory: Killed process 71 (stress)\n"));
    }

    #[test]
    fn a_breakpoint_of_the_kernel_s_own_is_no_fault_of_the_kernel() {
        assert!(stumbled("[    2.0] Oops: int3: 0000 [#1] PREEMPT SMP PTI\n[    2.0] CPU: 4 UID: 0 PID: 1\n"));
        assert!(stumbled("[    2.0] int3: 0000 [#1] PREEMPT SMP PTI\n"));
        assert!(!stumbled("[    2.0] Oops: Oops: 0000 [#1] PREEMPT SMP PTI\nKernel panic - not syncing: int3\n"));
    }

    #[test]
    fn the_last_line_of_qemu_that_is_no_warning_counts() {
        let mut file = tempfile::tempfile().unwrap();
        assert_eq!(last_line(&file), None);
        file.write_all(b"qemu-system-x86_64: -smp 300: too many\nqemu-system-x86_64: warning: x\n\n").unwrap();
        assert_eq!(last_line(&file).unwrap(), "-smp 300: too many");
    }
}

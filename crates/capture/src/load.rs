//! What is recorded: a command that the recorder starts, processes that already run, or everything until it is stopped.

use crate::procfs;
use crate::sys::{self, Signals};
use schedlab_base::{Error, Result, Tid};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

/// How a command ended. One of the two is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandStatus {
    /// Its exit status.
    pub code: Option<i32>,
    /// The signal that killed it.
    pub signal: Option<i32>,
}

impl From<ExitStatus> for CommandStatus {
    fn from(status: ExitStatus) -> Self {
        Self { code: status.code(), signal: status.signal() }
    }
}

/// A command being recorded. If it still runs when this is dropped, it gets SIGTERM.
pub(crate) struct Load {
    child: Child,
    status: Option<CommandStatus>,
}

impl Load {
    /// Starts the command. With `quiet`, its standard output goes to our standard error.
    pub(crate) fn start(command: &[OsString], quiet: bool, signals: &Signals) -> Result<Self> {
        let (program, arguments) = command.split_first().ok_or_else(|| Error::input("there is no command to run"))?;
        let mut start = Command::new(program);
        start.args(arguments);
        if quiet {
            start.stdout(io::stderr());
        }
        signals.restore_in(&mut start);
        let child = start.spawn().map_err(|e| {
            let error = Error::input(format!("cannot run the command \"{}\": {e}", program.display()));
            match e.kind() {
                io::ErrorKind::NotFound => error.mend("give its name as in $PATH, or its path"),
                _ => error,
            }
        })?;
        Ok(Self { child, status: None })
    }

    /// Its process.
    pub(crate) fn pid(&self) -> Tid {
        self.child.id() as Tid
    }

    /// How it ended, if it has ended.
    pub(crate) fn poll(&mut self) -> Option<CommandStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten().map(CommandStatus::from);
        }
        self.status
    }

    /// Sends it a signal if it still runs.
    pub(crate) fn signal(&mut self, number: i32) {
        if self.poll().is_none() {
            // It may end between the check and the signal. That is harmless: it has not been reaped, so its id is not
            // reused.
            let _ = sys::kill(self.child.id() as Tid, number);
        }
    }

    /// Waits for it to end. A signal that arrives meanwhile kills it.
    pub(crate) fn wait(&mut self, signals: &Signals) -> CommandStatus {
        loop {
            if let Some(status) = self.poll() {
                return status;
            }
            if let Some(signal) = signals.next() {
                if signal.number != libc::SIGCHLD {
                    self.signal(libc::SIGKILL);
                }
                continue;
            }
            // If waiting fails, the loop only runs once more.
            let _ = sys::wait_readable(std::iter::once(signals.raw_fd()), std::time::Duration::from_millis(500));
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.signal(libc::SIGTERM);
    }
}

/// Checks that the processes to record exist, and that they are processes.
pub(crate) fn check_processes(proc: &Path, processes: &[Tid]) -> Result<()> {
    for pid in processes {
        if *pid <= 0 || !procfs::runs(proc, *pid) {
            let mend = "give the ids of running processes, as ps or pgrep print them";
            return Err(Error::input(format!("there is no process {pid}")).mend(mend));
        }
        if let Some(process) = procfs::process_of(proc, *pid).filter(|process| process != pid) {
            return Err(Error::input(format!("{pid} is a thread of process {process}"))
                .mend(format!("give {process}: a process is recorded with all its threads"))
                .key("--pid"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn a_thread_is_no_process() {
        let stat = "(name) S 1 0";
        let files = [("70/stat", stat), ("70/status", "Tgid:\t70\n"), ("71/stat", stat), ("71/status", "Tgid:\t70\n")];
        let proc = tree(&files);
        assert!(check_processes(proc.path(), &[70]).is_ok());
        let message = |pid| check_processes(proc.path(), &[70, pid]).unwrap_err().to_string();
        assert!(message(71).contains("71 is a thread of process 70; give 70"), "{}", message(71));
        assert!(message(72).contains("there is no process 72"), "{}", message(72));
    }
}

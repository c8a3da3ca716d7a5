//! One guest from its start to its end.

use crate::console;
use crate::guest::{Accel, Guest, Limits};
use crate::initramfs;
use crate::mailbox::{self, Done, Job, Mailbox, Stage};
use crate::program;
use crate::qemu::{self, Files, Qemu};
use crate::topology;
use schedlab_base::{Error, Result};
use std::collections::BTreeMap;
use std::io::Write;
use std::time::{Duration, Instant};

/// How often the host looks how far the guest is.
const LOOK: Duration = Duration::from_millis(20);
/// How long QEMU may take to end after the guest is done.
const LAST: Duration = Duration::from_secs(10);

/// A guest that ran.
#[derive(Clone, Debug)]
pub struct Ran {
    /// What it said at the end.
    pub done: Done,
    /// The files that it handed back.
    pub files: BTreeMap<String, Vec<u8>>,
    /// What ran its instructions.
    pub accel: Accel,
    /// The host's time from the start of QEMU until the guest's first process ran.
    pub boot: Duration,
    /// The host's time until the command was started.
    pub started: Duration,
    /// What the guest lacks of its machine.
    pub remarks: Vec<String>,
}

/// Runs a guest.
///
/// # Errors
/// When QEMU, the kernel, the agent or the command's surroundings fail, or a limit is reached. The guest's console is
/// then in a file that the message names.
pub(crate) fn run(guest: &Guest<'_>, job: &Job, accel: Accel) -> Result<Ran> {
    let mut files = Files::new()?;
    let arguments = qemu::arguments(guest, accel, &files)?;
    let even_turns = accel == Accel::Counted && guest.machine.cpus.len() > 1;
    let archive = initramfs::build(&program::own()?, &Job { even_turns, ..job.clone() });
    let failed = |e: std::io::Error| Error::system("cannot prepare the guest's memory", &e);
    files.initramfs.write_all(&archive).map_err(failed)?;
    drop(archive);
    files.mailbox.set_len(mailbox::BYTES).map_err(failed)?;
    let mailbox = Mailbox::new(files.mailbox.try_clone().map_err(failed)?);
    let mut watch = Watch { guest, files: &files, mailbox, begin: Instant::now(), up: None, started: None };
    watch.follow(Qemu::start(&arguments, &files)?)?;
    let (done, handed) = watch.mailbox.results().map_err(|e| watch.failed(&e.to_string()))?;
    if let Some(refused) = &done.refused {
        return Err(Error::input(format!("{}: {refused}", guest.kernel.name)));
    }
    if done.status != 0 && console::trouble(&console::text(&files.console)).is_some() {
        return Err(watch.failed(&format!("the guest's command failed with status {}", done.status)));
    }
    let mut remarks = topology::remarks(guest.machine);
    remarks.extend(topology::difference(guest.machine, &done.seen.cpus, &done.seen.distances));
    let since = |at: Option<Instant>| at.map_or(Duration::ZERO, |at| at - watch.begin);
    Ok(Ran { done, files: handed, accel, boot: since(watch.up), started: since(watch.started), remarks })
}

/// The host's watch over a guest.
struct Watch<'a> {
    guest: &'a Guest<'a>,
    files: &'a Files,
    mailbox: Mailbox,
    begin: Instant,
    up: Option<Instant>,
    started: Option<Instant>,
}

impl Watch<'_> {
    /// Waits until the guest is done. QEMU has ended then, whatever happened.
    fn follow(&mut self, mut qemu: Qemu) -> Result<()> {
        let mut done: Option<Instant> = None;
        loop {
            let ended = qemu.child.try_wait().map_err(|e| Error::system("cannot wait for QEMU", &e))?;
            let (now, stage) = (Instant::now(), self.mailbox.stage());
            if stage >= Stage::Up {
                self.up.get_or_insert(now);
            }
            if stage >= Stage::Started {
                self.started.get_or_insert(now);
            }
            if stage == Stage::Done {
                let since = *done.get_or_insert(now);
                if ended.is_some() || now - since > LAST {
                    return Ok(());
                }
            } else if let Some(status) = ended {
                return Err(self.ended_early(status));
            } else if let Some(what) = self.too_long(now) {
                return Err(self.failed(&what));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// What has taken too long, if something has.
    fn too_long(&self, now: Instant) -> Option<String> {
        let Limits { boot, run } = self.guest.limits;
        if self.files.console.metadata().is_ok_and(|meta| meta.len() > console::MOST_BYTES) {
            return Some("the guest never stops printing on its console".to_owned());
        }
        match self.up {
            None if now - self.begin > boot => Some(format!("the guest did not boot within {} s", boot.as_secs())),
            Some(up) if now - up > run => {
                let what = if self.started.is_some() { "was not done" } else { "did not start its command" };
                Some(format!("the guest {what} within {} s after it had booted", run.as_secs()))
            }
            _ => None,
        }
    }

    fn ended_early(&self, status: std::process::ExitStatus) -> Error {
        let said = console::last_line(&self.files.complaints);
        match said.filter(|_| !status.success()) {
            Some(said) if self.up.is_none() => {
                Error::input(format!("QEMU cannot run the guest {}: {said}", self.guest.kernel.name))
            }
            _ => self.failed("the guest ended before it was done"),
        }
    }

    /// The message for a guest that failed: what the console says if it says something, and where the console is.
    fn failed(&self, what: &str) -> Error {
        let text = console::text(&self.files.console);
        let memory = self.guest.memory_mib();
        let why = match console::trouble(&text) {
            Some(why) if why.contains("memory") => format!(": {why} ({memory} MiB)"),
            Some(why) => format!(": {why}"),
            None if text.is_empty() => ": it printed nothing".to_owned(),
            None => String::new(),
        };
        let mend = match console::keep(&self.files.console, &self.guest.kernel.name) {
            Ok(path) => format!("its console is in {}", path.display()),
            Err(e) => format!("its console could not be kept: {e}"),
        };
        Error::input(format!("{}: {what}{why}", self.guest.kernel.name)).mend(mend)
    }
}

//! One guest from its start to its end.

use crate::console;
use crate::guest::{Accel, Guest, Limits};
use crate::initramfs;
use crate::mailbox::{self, Done, Job, Mailbox, Stage};
use crate::program;
use crate::qemu::{self, Files, Qemu};
use crate::topology;
use schedlab_base::{Error, ErrorKind, Result};
use schedlab_machine::Machine;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::time::{Duration, Instant};

/// How often the host looks how far the guest is.
const LOOK: Duration = Duration::from_millis(20);
/// So many times a limit is the end, however much others took of the host's CPUs.
const PATIENCE: u32 = 10;
/// How often a guest is started again that stumbled over QEMU.
const MOST_STUMBLES: usize = 2;
/// What its kernel did.
const BREAKPOINT: &str = "met a breakpoint of its own";
const STOOD_STILL: &str = "stood still while it booted";
/// How long QEMU may take to end after the guest is done, and a guest to end whose memory ran out.
const LAST: Duration = Duration::from_secs(10);

/// A job that a guest has done.
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
    /// The host's time from the start of QEMU, or for a later job from its request, until the command was started.
    pub started: Duration,
    /// The part of the time since then that the host took from the guest's CPUs: they waited for one of the host's.
    /// None where the guest's time is not the host's.
    pub taken: Option<f64>,
    /// What the guest lacks of its machine.
    pub remarks: Vec<String>,
}

/// Runs a guest for one job.
///
/// # Errors
/// When QEMU, the kernel, the agent or the command's surroundings fail, or a limit is reached. The guest's console is
/// then in a file that the message names.
pub(crate) fn run(guest: &Guest<'_>, job: &Job, accel: Accel) -> Result<Ran> {
    let job = Job { stay: false, ..job.clone() };
    start(guest, &job, accel).map(|(ran, _)| ran)
}

/// Starts a guest for a job; if the job says that it shall stay, and nothing speaks against that, it waits for another.
/// A guest whose kernel [stumbled](console::stumbled) over QEMU, or stood still while it booted, is started again, and
/// a remark says so.
///
/// # Errors
/// As [`run`].
pub(crate) fn start(guest: &Guest<'_>, job: &Job, accel: Accel) -> Result<(Ran, Option<Running>)> {
    let mut again: Vec<&'static str> = Vec::new();
    loop {
        let running = boot(guest, job, accel)?;
        let stumble = Stumble::of(&running)?;
        match running.job(job, guest.limits) {
            Ok((mut ran, stays)) => {
                let said =
                    again.last().map(|what| format!("under QEMU's emulation its kernel {what}; it was started again"));
                ran.remarks.extend(said);
                return Ok((ran, stays));
            }
            Err(e) => match stumble.reason(guest.limits.boot, &again) {
                Some(what) if accel == Accel::Tcg => again.push(what),
                _ => return Err(e),
            },
        }
    }
}

/// By what a guest shows that its kernel failed for QEMU's sake.
struct Stumble {
    console: File,
    mailbox: Mailbox,
}

impl Stumble {
    fn of(running: &Running) -> Result<Self> {
        let failed = |e: std::io::Error| Error::system("cannot keep the console", &e);
        let files = &running.files;
        let mailbox = Mailbox::new(files.mailbox.try_clone().map_err(failed)?);
        Ok(Self { console: files.console.try_clone().map_err(failed)?, mailbox })
    }

    /// Why a guest that failed is to be started once more, if it is. `limit` is what it may take to boot, and `before`
    /// why it was started again so far.
    fn reason(&self, limit: Duration, before: &[&str]) -> Option<&'static str> {
        let text = console::text(&self.console);
        if console::stumbled(&text) {
            return Some(BREAKPOINT).filter(|_| before.len() < MOST_STUMBLES);
        }
        let up = self.mailbox.stage(0) >= Stage::Up;
        let silent = !up && !text.is_empty() && console::silent(&self.console) > limit / 2;
        // A kernel that never boots is to fail soon.
        (silent && console::trouble(&text).is_none() && before.is_empty()).then_some(STOOD_STILL)
    }
}

/// Starts QEMU with a job.
fn boot(guest: &Guest<'_>, job: &Job, accel: Accel) -> Result<Running> {
    let mut files = Files::new()?;
    let arguments = qemu::arguments(guest, accel, &files)?;
    let even_turns = accel == Accel::Counted && guest.machine.cpus.len() > 1;
    let archive = initramfs::build(&program::own()?, &Job { even_turns, ..job.clone() });
    let failed = |e: std::io::Error| Error::system("cannot prepare the guest's memory", &e);
    files.initramfs.write_all(&archive).map_err(failed)?;
    drop(archive);
    files.mailbox.set_len(mailbox::BYTES).map_err(failed)?;
    let mailbox = Mailbox::new(files.mailbox.try_clone().map_err(failed)?);
    let qemu = Qemu::start(arguments, &files)?;
    let (name, memory) = (guest.kernel.name.clone(), guest.memory_mib());
    let machine = guest.machine.clone();
    Ok(Running { qemu, files, mailbox, name, machine, memory, accel, boot: None, job: 0, said: 0 })
}

/// A guest that is there, and takes one job after the other. It ends when this value goes.
pub struct Running {
    qemu: Qemu,
    files: Files,
    mailbox: Mailbox,
    /// The kernel.
    name: String,
    machine: Machine,
    /// In MiB.
    memory: u64,
    accel: Accel,
    /// How long it took to boot, once it has.
    boot: Option<Duration>,
    /// The number of its job.
    job: u64,
    /// How much it had printed on its console before that.
    said: usize,
}

impl Running {
    /// Runs another job, whose tunables must be those of the first. The guest is given back if it can take one more.
    ///
    /// # Errors
    /// As [`crate::run()`].
    pub fn run(mut self, job: &Job, limits: Limits) -> Result<(Ran, Option<Self>)> {
        self.job += 1;
        self.said = self.printed().len();
        let job = Job { stay: true, ..job.clone() };
        self.mailbox.ask(self.job, &job)?;
        self.job(&job, limits)
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.qemu.child.try_wait(), Ok(None))
    }

    /// Waits for the end of its job.
    fn job(mut self, job: &Job, limits: Limits) -> Result<(Ran, Option<Self>)> {
        let begin = Moment::of(&self.qemu);
        let mut watch = Watch { limits, begin, up: None, started: None, printed: 0, short: None, taken: None };
        watch.follow(&mut self, job.stay)?;
        let (done, handed) = self.mailbox.results().map_err(|e| self.failed(&e.to_string()))?;
        if let Some(refused) = &done.refused {
            let kind = if done.absent { ErrorKind::Absent } else { ErrorKind::Input };
            return Err(Error::new(kind, format!("{}: {refused}", self.name)));
        }
        if let Some(said) = console::lacked_memory(&done.said).filter(|_| done.status != 0) {
            return Err(self.failed(&format!("the guest's command lacked memory: {said}")));
        }
        let trouble = self.trouble();
        if done.status != 0 && trouble.is_some() {
            return Err(self.failed(&format!("the guest's command failed with status {}", done.status)));
        }
        let mut remarks = topology::remarks(&self.machine);
        remarks.extend(topology::difference(&self.machine, &done.seen.cpus, &done.seen.distances));
        let since = |at: Option<Instant>| at.map_or(Duration::ZERO, |at| at - watch.begin.at);
        let boot = *self.boot.get_or_insert(since(watch.up.map(|up| up.at)));
        let stays = job.stay && done.unfit.is_none() && done.status == 0 && trouble.is_none();
        let (accel, started) = (self.accel, since(watch.started));
        let taken = watch.taken.filter(|_| accel != Accel::Counted);
        Ok((Ran { done, files: handed, accel, boot, started, taken, remarks }, stays.then_some(self)))
    }

    /// What the kernel or the agent said went wrong since the job began.
    fn trouble(&self) -> Option<String> {
        console::trouble(self.printed().get(self.said..).unwrap_or_default())
    }

    /// Whether the kernel said that its memory ran out since the job began.
    fn lacks_memory(&self) -> bool {
        console::ran_out_of_memory(self.printed().get(self.said..).unwrap_or_default())
    }

    /// The console's text.
    fn printed(&self) -> String {
        console::text(&self.files.console)
    }

    /// The message for a guest that failed: what the console says if it says something, and where the console is.
    fn failed(&self, what: &str) -> Error {
        let why = match self.trouble() {
            Some(why) => format!(": {why}"),
            None if self.printed().is_empty() => ": it printed nothing".to_owned(),
            None => String::new(),
        };
        let more = if what.contains("memory") || why.contains("memory") {
            format!("it has {} MiB; give it more: --memory {}; ", self.memory, self.memory * 2)
        } else {
            String::new()
        };
        let mend = match console::keep(&self.files.console, &self.name) {
            Ok(path) => format!("{more}its console is in {}", path.display()),
            Err(e) => format!("{more}its console could not be kept: {e}"),
        };
        Error::input(format!("{}: {what}{why}", self.name)).mend(mend)
    }
}

/// A moment, and what QEMU had had of the host's CPUs by then.
#[derive(Clone, Copy)]
struct Moment {
    at: Instant,
    /// The CPU time of all its threads.
    ran: Duration,
    /// How long the one that had waited longest for a CPU had.
    waited: Duration,
}

impl Moment {
    /// This one.
    fn of(qemu: &Qemu) -> Self {
        let times = qemu.times();
        let waited = times.iter().map(|thread| thread.waited).max().unwrap_or_default();
        Self { at: Instant::now(), ran: times.iter().map(|thread| thread.ran).sum(), waited }
    }

    /// Whether more than `limit` has passed since, not counting what others took from QEMU.
    fn is_over(&self, limit: Duration, qemu: &Qemu) -> bool {
        // Most of the time there is nothing to ask.
        self.at.elapsed() > limit && {
            let now = Self::of(qemu);
            let passed = now.at - self.at;
            let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
            let (ran, waited) = (now.ran.saturating_sub(self.ran), now.waited.saturating_sub(self.waited));
            exceeds(passed, taken(passed, ran / cpus, waited), limit)
        }
    }
}

/// How long the threads of QEMU have waited for a CPU so far, all together.
fn all_waited(qemu: &Qemu) -> Duration {
    qemu.times().iter().map(|thread| thread.waited).sum()
}

/// How much of a time others took from QEMU: what its thread that waited longest waited for a CPU, but no more than
/// QEMU did not run on this machine's CPUs (`ran`: on each of them). The virtual CPUs of a guest that has more of them
/// than there are here wait for each other, too.
fn taken(passed: Duration, ran: Duration, waited: Duration) -> Duration {
    waited.min(passed.saturating_sub(ran))
}

/// Whether a time exceeds its limit: the part that others did not take, or all of it by far.
fn exceeds(passed: Duration, taken: Duration, limit: Duration) -> bool {
    passed.saturating_sub(taken) > limit || passed > limit * PATIENCE
}

/// The host's watch over one job of a guest.
struct Watch {
    limits: Limits,
    begin: Moment,
    up: Option<Moment>,
    started: Option<Instant>,
    /// How much it had printed on its console when that was read last.
    printed: u64,
    /// When its memory had run out.
    short: Option<Moment>,
    /// The part of the time since then that the guest's CPUs waited, once it is done.
    taken: Option<f64>,
}

impl Watch {
    /// Waits until the guest is done. QEMU has ended then, whatever happened, unless the guest stays.
    fn follow(&mut self, guest: &mut Running, stays: bool) -> Result<()> {
        let mut done: Option<Instant> = None;
        let mut waited = Duration::ZERO;
        loop {
            let ended = guest.qemu.child.try_wait().map_err(|e| Error::system("cannot wait for QEMU", &e))?;
            let (now, stage) = (Instant::now(), guest.mailbox.stage(guest.job));
            if stage >= Stage::Up {
                self.up.get_or_insert_with(|| Moment::of(&guest.qemu));
            }
            if stage >= Stage::Started && self.started.is_none() {
                self.started = Some(now);
                waited = all_waited(&guest.qemu);
            }
            if stage == Stage::Done {
                if let (None, Some(started)) = (done, self.started) {
                    let there = (now - started).as_secs_f64() * guest.machine.cpus.len() as f64;
                    self.taken = Some(all_waited(&guest.qemu).saturating_sub(waited).as_secs_f64() / there.max(1e-3));
                }
                let since = *done.get_or_insert(now);
                if stays || ended.is_some() || now - since > LAST {
                    return Ok(());
                }
            } else if let Some(status) = ended {
                return Err(self.ended_early(guest, status));
            } else if let Some(what) = self.too_long(guest) {
                return Err(guest.failed(&what));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// What has taken too long, if something has.
    fn too_long(&mut self, guest: &Running) -> Option<String> {
        let Limits { boot, run } = self.limits;
        let printed = guest.files.console.metadata().map_or(0, |meta| meta.len());
        if printed > console::MOST_BYTES {
            return Some("the guest never stops printing on its console".to_owned());
        }
        if self.short.is_none() && std::mem::replace(&mut self.printed, printed) < printed && guest.lacks_memory() {
            self.short = Some(Moment::of(&guest.qemu));
        }
        if self.short.is_some_and(|short| short.is_over(LAST, &guest.qemu)) {
            return Some("the guest did not end".to_owned());
        }
        match self.up {
            None if self.begin.is_over(boot, &guest.qemu) => {
                Some(format!("the guest did not boot within {} s", boot.as_secs()))
            }
            Some(up) if up.is_over(run, &guest.qemu) => {
                let what = if self.started.is_some() { "was not done" } else { "did not start its command" };
                let since = if guest.job == 0 { "it had booted" } else { "it was asked" };
                Some(format!("the guest {what} within {} s after {since}", run.as_secs()))
            }
            _ => None,
        }
    }

    fn ended_early(&self, guest: &Running, status: std::process::ExitStatus) -> Error {
        let said = console::last_line(&guest.files.complaints);
        match said.filter(|_| !status.success()) {
            Some(said) if self.up.is_none() => {
                Error::input(format!("QEMU cannot run the guest {}: {said}", guest.name))
            }
            _ => guest.failed("the guest ended before it was done"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn what_others_take_does_not_count() {
        let over = |passed, taken| exceeds(passed * SECOND, taken * SECOND, 100 * SECOND);
        assert!(!over(100, 0) && over(101, 0));
        assert!(!over(500, 400) && over(500, 399));
        assert!(!over(1000, 950) && over(1001, 1000), "at last there is an end");
    }

    #[test]
    fn a_kernel_that_stands_still_while_it_boots_is_started_once_more() {
        let console = tempfile::tempfile().unwrap();
        let memory = tempfile::tempfile().unwrap();
        memory.set_len(mailbox::BYTES).unwrap();
        let stumble = || {
            let [console, memory] = [&console, &memory].map(|file| file.try_clone().unwrap());
            Stumble { console, mailbox: Mailbox::new(memory) }
        };
        let limit = 100 * SECOND;
        assert_eq!(stumble().reason(limit, &[]), None, "it printed nothing");
        (&console).write_all(b"[    0.4] sched_clock: Marking stable\n").unwrap();
        assert_eq!(stumble().reason(limit, &[]), None, "it has just said something");
        let long_ago = std::time::SystemTime::now() - 51 * SECOND;
        console.set_modified(long_ago).unwrap();
        assert_eq!(stumble().reason(limit, &[]), Some(STOOD_STILL));
        assert_eq!(stumble().reason(limit, &[STOOD_STILL]), None, "it is no chance");
        assert_eq!(stumble().reason(3 * limit, &[]), None, "it may be slow");
        (&console).write_all(b"[    0.5] Oops: int3: 0000 [#1] PREEMPT SMP\n").unwrap();
        assert_eq!(stumble().reason(limit, &[STOOD_STILL]), Some(BREAKPOINT));
        assert_eq!(stumble().reason(limit, &[BREAKPOINT; MOST_STUMBLES]), None);
    }

    #[test]
    fn virtual_cpus_that_wait_for_each_other_are_no_excuse() {
        let taken = |passed, ran, waited| taken(passed * SECOND, ran * SECOND, waited * SECOND).as_secs();
        assert_eq!(taken(100, 100, 97), 0, "64 of them spin on an idle host");
        assert_eq!(taken(100, 25, 97), 75, "others have three quarters of the host");
        assert_eq!(taken(100, 25, 50), 50, "one of them on a host with two CPUs, of which it had a half of one");
        assert_eq!(taken(100, 0, 0), 0, "all of them sleep");
    }
}

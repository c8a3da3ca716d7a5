//! The guest's first process: it mounts what a system has, sets the tunables, runs the command, hands its files back,
//! and takes another job if the host may ask for one. It restarts the machine after the last, which ends the guest.

mod memory;
mod mounts;
mod traces;
mod tunables;
#[cfg(target_arch = "x86_64")]
mod turns;

use crate::console::OWN;
use crate::initramfs::{JOB, PROGRAM};
use crate::mailbox::{Done, Job, Seen, Stage, asked, post, reach};
use memory::Shared;
use rustix::process::{WaitOptions, wait};
use rustix::system::{RebootCommand, reboot};
use schedlab_base::ErrorKind;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Where the command's standard output goes. A job that needs all of it wants this file.
pub const PRINTED: &str = "/run/schedlab-printed";
/// Where its standard error goes.
const SAID: &str = "/run/schedlab-said";
/// How often the agent looks for another job.
const POLL: Duration = Duration::from_millis(10);

/// Whether this process is the first one of a guest that schedlab has started.
#[must_use]
pub fn is_due() -> bool {
    std::process::id() == 1 && Path::new(JOB).exists()
}

/// Whether this process is the command that the agent of a guest has started.
#[must_use]
pub fn is_inside() -> bool {
    std::os::unix::process::parent_id() == 1 && Path::new(JOB).exists()
}

/// Does the guest's jobs and ends the guest.
pub fn main() -> ! {
    mounts::first();
    match Shared::find() {
        Ok(mut shared) => {
            reach(&mut shared, Stage::Up);
            serve(&mut shared);
        }
        Err(why) => eprintln!("{OWN}{why}"),
    }
    // The kernel was started with reboot=t. If even this fails, the end of process 1 is a panic, and that a restart.
    let _ = reboot(RebootCommand::Restart);
    std::process::exit(1);
}

/// The first job, and those that the host asks for after it, until one is the last.
fn serve(shared: &mut Shared) {
    let boot_s = up_time();
    mounts::rest();
    let mut job = fs::read(JOB).map_err(|e| e.to_string()).and_then(|text| read_job(&text));
    let mut number = 0;
    loop {
        let stay = job.as_ref().is_ok_and(|job| job.stay);
        let (mut done, files) = match &job {
            Ok(job) => work(job, number, boot_s, shared),
            Err(e) => refused(format!("the agent cannot read its job: {e}")),
        };
        if stay && done.unfit.is_none() {
            done.unfit = traces::left(&done);
        }
        let last = !stay || done.unfit.is_some();
        post(shared, done, files);
        if last {
            return;
        }
        (number, job) = loop {
            match asked(shared, number) {
                Some(next) => break next,
                None => std::thread::sleep(POLL),
            }
        };
    }
}

fn refused(why: String) -> (Done, Vec<(String, Vec<u8>)>) {
    (Done { refused: Some(why), unfit: Some("a job was refused".to_owned()), ..Done::default() }, Vec::new())
}

fn work(job: &Job, number: u64, boot_s: f64, shared: &mut Shared) -> (Done, Vec<(String, Vec<u8>)>) {
    let written = job.files.iter().try_for_each(|(path, contents)| fs::write(path, contents));
    if let Err(e) = written {
        return refused(format!("the agent cannot write the job's files: {e}"));
    }
    // A later job finds the settings of the first: the host asks for none with others.
    if number == 0
        && let Err(why) = tunables::set(Path::new("/"), &job.set)
    {
        let (done, files) = refused(why.to_string());
        return (Done { absent: why.kind() == ErrorKind::Absent, ..done }, files);
    }
    #[cfg(target_arch = "x86_64")]
    if job.even_turns
        && let Err(e) = turns::even()
    {
        return refused(format!("the agent cannot make the virtual CPUs take even turns: {e}"));
    }
    let seen = look_around(boot_s);
    if job.command.is_empty() {
        reach(shared, Stage::Started);
        return (Done { seen, ..Done::default() }, Vec::new());
    }
    // From here on only what is serious disturbs the command.
    let _ = fs::write("/proc/sys/kernel/printk", "4 4 1 4");
    reach(shared, Stage::Started);
    let status = match command(&job.command) {
        Ok(status) => status,
        Err(e) => return refused(format!("the agent cannot start the command: {e}")),
    };
    let text = |path: &str| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let tunables = tunables::all(Path::new("/"));
    let done = Done { status, printed: text(PRINTED), said: text(SAID), seen, tunables, ..Done::default() };
    let read = |path: &String| Some((path.clone(), fs::read(path).ok()?));
    let handed = job.wanted.iter().filter_map(read).collect();
    for path in job.wanted.iter().chain(job.files.iter().map(|(path, _)| path)) {
        let _ = fs::remove_file(path);
    }
    (done, handed)
}

fn read_job(text: &[u8]) -> Result<Job, String> {
    serde_json::from_slice(text).map_err(|e| e.to_string())
}

/// Runs this program with these arguments to its end, and returns its exit status.
fn command(arguments: &[String]) -> std::io::Result<i32> {
    let child = Command::new(PROGRAM)
        .args(arguments)
        .env("PATH", "/bin:/sbin:/usr/bin:/usr/sbin")
        .env("HOME", "/tmp")
        .stdin(Stdio::null())
        .stdout(File::create(PRINTED)?)
        .stderr(File::create(SAID)?)
        .spawn()?;
    // Orphans of the command are children of process 1 too, and are waited for here.
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((process, status))) if process.as_raw_nonzero().get() as u32 == child.id() => {
                let signal = status.terminating_signal().map(|signal| 128 + signal);
                return Ok(status.exit_status().or(signal).unwrap_or(255));
            }
            Ok(_) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

fn look_around(boot_s: f64) -> Seen {
    let kernel =
        |name: &str| fs::read_to_string(Path::new("/proc/sys/kernel").join(name)).unwrap_or_default().trim().to_owned();
    let (cpus, distances) = match schedlab_machine::host() {
        Ok(machine) => (machine.cpus.into_iter().map(|cpu| cpu.place).collect(), machine.distances),
        Err(_) => Default::default(),
    };
    let tunables = tunables::all(Path::new("/"));
    Seen { release: kernel("osrelease"), version: kernel("version"), cpus, distances, boot_s, tunables }
}

/// Seconds since the kernel's start.
fn up_time() -> f64 {
    let text = fs::read_to_string("/proc/uptime").unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

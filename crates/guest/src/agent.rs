//! The guest's first process: it mounts what a system has, sets the tunables, runs the command, hands its files back
//! and restarts the machine, which ends the guest.

mod memory;
mod mounts;
mod tunables;
#[cfg(target_arch = "x86_64")]
mod turns;

use crate::console::OWN;
use crate::initramfs::{JOB, PROGRAM};
use crate::mailbox::{Done, Job, Seen, Stage, post, reach};
use memory::Shared;
use rustix::process::{WaitOptions, wait};
use rustix::system::{RebootCommand, reboot};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

/// Where the command's standard output goes. A job that needs all of it wants this file.
pub const PRINTED: &str = "/run/schedlab-printed";
/// Where its standard error goes.
const SAID: &str = "/run/schedlab-said";

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

/// Does the guest's job and ends the guest.
pub fn main() -> ! {
    mounts::first();
    match Shared::find() {
        Ok(mut shared) => {
            reach(&mut shared, Stage::Up);
            let (done, files) = work(&mut shared);
            post(&mut shared, done, files);
        }
        Err(why) => eprintln!("{OWN}{why}"),
    }
    // The kernel was started with reboot=t. If even this fails, the end of process 1 is a panic, and that a restart.
    let _ = reboot(RebootCommand::Restart);
    std::process::exit(1);
}

fn work(shared: &mut Shared) -> (Done, Vec<(String, Vec<u8>)>) {
    let refused = |why: String| (Done { refused: Some(why), ..Done::default() }, Vec::new());
    let boot_s = up_time();
    mounts::rest();
    let job = match fs::read(JOB).map_err(|e| e.to_string()).and_then(|text| read_job(&text)) {
        Ok(job) => job,
        Err(e) => return refused(format!("the agent cannot read its job: {e}")),
    };
    if let Err(why) = tunables::set(Path::new("/"), &job.set) {
        return refused(why);
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
    let done = Done { status, printed: text(PRINTED), said: text(SAID), seen, ..Done::default() };
    let read = |path: &String| Some((path.clone(), fs::read(path).ok()?));
    (done, job.wanted.iter().filter_map(read).collect())
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

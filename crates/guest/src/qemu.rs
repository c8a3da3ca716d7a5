//! QEMU: its command line, and its process, which never outlives this one.

use crate::guest::{Accel, Guest};
use crate::topology::{self, CPU, has_spare};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use schedlab_base::{CpuList, Error, Result};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

/// The program, from Debian's package qemu-system-x86.
pub(crate) const PROGRAM: &str = "qemu-system-x86_64";

/// The files that a guest is made of. They have no names: nothing is left of them when nobody has them open.
pub(crate) struct Files {
    pub(crate) initramfs: File,
    pub(crate) console: File,
    pub(crate) mailbox: File,
    /// What QEMU itself says.
    pub(crate) complaints: File,
}

impl Files {
    /// New empty files.
    pub(crate) fn new() -> Result<Self> {
        let file = |name: &str| {
            let made = memfd_create(name, MemfdFlags::CLOEXEC);
            made.map(File::from).map_err(|e| Error::system("cannot make a file in memory", &e))
        };
        Ok(Self {
            initramfs: file("schedlab-initramfs")?,
            console: file("schedlab-console")?,
            mailbox: file("schedlab-mailbox")?,
            complaints: file("schedlab-qemu")?,
        })
    }
}

/// The name by which QEMU opens a file of ours that it has inherited.
fn inherited(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// QEMU's arguments for a guest.
///
/// # Errors
/// When QEMU cannot have the machine.
pub(crate) fn arguments(guest: &Guest<'_>, accel: Accel, files: &Files) -> Result<Vec<String>> {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let mut arguments = words("-nodefaults -no-user-config -display none -no-reboot -machine pc");
    arguments.extend(match accel {
        Accel::Kvm => words(&format!("-accel kvm -cpu {}", host_cpu())),
        Accel::Tcg => words(&format!("-accel tcg,thread=multi -cpu {CPU}")),
        Accel::Counted => {
            let mut counted = words("-accel tcg,thread=single -icount shift=3,sleep=off -seed 1");
            counted.extend(words(&format!("-cpu {CPU}")));
            counted.extend(words("-rtc base=2024-01-01,clock=vm"));
            counted
        }
    });
    arguments.extend(topology::arguments(guest.machine, guest.memory_mib(), accel == Accel::Counted)?);
    let console = format!("file,id=console,path={}", inherited(&files.console));
    let mailbox = format!(
        "memory-backend-file,id=mailbox,share=on,mem-path={},size={}",
        inherited(&files.mailbox),
        crate::mailbox::BYTES
    );
    let pairs = [
        ("-kernel", guest.kernel.image.to_string_lossy().into_owned()),
        ("-initrd", inherited(&files.initramfs)),
        ("-append", parameters(guest, accel)),
        ("-chardev", console),
        ("-serial", "chardev:console".to_owned()),
        ("-object", mailbox),
        ("-device", "ivshmem-plain,memdev=mailbox".to_owned()),
    ];
    arguments.extend(pairs.into_iter().flat_map(|(option, value)| [option.to_owned(), value]));
    Ok(arguments)
}

/// The parameters on the kernel's command line.
fn parameters(guest: &Guest<'_>, accel: Accel) -> String {
    // A panic or the end of the agent restarts the machine at once, by a fault that needs no firmware; QEMU then ends.
    let mut words = vec!["console=ttyS0", "rdinit=/init", "panic=-1", "reboot=t", "nokaslr"];
    // Guests have the host's entropy. Self-tests of ciphers would run for seconds beside the workload.
    words.extend(["random.trust_bootloader=on", "cryptomgr.notests"]);
    if accel != Accel::Kvm {
        // All virtual CPUs read one clock, and some stand still for a while when the host is busy.
        words.extend(["tsc=reliable", "nowatchdog"]);
    }
    if accel == Accel::Tcg {
        // Ten ticks must come within the time that ten take. Beside a busy host they may not, and the kernel panics.
        words.push("no_timer_check");
        // A kernel that stumbled over QEMU would hang until its limit; it is to end at once, to be started again.
        words.push("oops=panic");
    }
    let cpus =
        (accel == Accel::Counted && has_spare(guest.machine)).then(|| format!("nr_cpus={}", guest.machine.cpus.len()));
    words.extend(cpus.as_deref());
    let isolated = CpuList::from_iter(guest.machine.isolated.iter().copied());
    let isolated = (!isolated.is_empty()).then(|| format!("isolcpus=domain,{isolated}"));
    words.extend(isolated.as_deref());
    words.join(" ")
}

/// The processor under KVM: this one, with threads that Linux recognises.
fn host_cpu() -> &'static str {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    if info.contains("AuthenticAMD") { "host,topoext=on" } else { "host" }
}

/// The first line of `qemu-system-x86_64 --version`, if there is one to run.
pub(crate) fn version() -> Option<String> {
    let output = Command::new(PROGRAM).arg("--version").stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned();
    output.status.success().then_some(text)
}

/// A running QEMU, killed when this value goes, or this process ends in any way.
pub(crate) struct Qemu {
    pub(crate) child: Child,
    /// The thread that started it ends when this goes.
    _keeper: Sender<()>,
}

impl Qemu {
    /// Starts QEMU with these arguments.
    ///
    /// The kernel kills it when the thread that started it ends, so a thread of its own does that: the caller's may
    /// end before the guest is needed no more.
    ///
    /// # Errors
    /// When there is no QEMU.
    pub(crate) fn start(arguments: Vec<String>, files: &Files) -> Result<Self> {
        let failed = |e: io::Error| Error::system("cannot start QEMU", &e);
        let complaints = files.complaints.try_clone().map_err(failed)?;
        let passed = [files.initramfs.as_raw_fd(), files.console.as_raw_fd(), files.mailbox.as_raw_fd()];
        let (started, is_started) = mpsc::channel();
        let (keeper, is_over) = mpsc::channel::<()>();
        let keep = move || {
            // The descriptors are open: the caller waits, and `files` is borrowed.
            let _ = started.send(spawn(&arguments, complaints, passed));
            let _ = is_over.recv();
        };
        std::thread::Builder::new().name("schedlab-guest".to_owned()).spawn(keep).map_err(failed)?;
        let child = is_started.recv().map_err(|e| failed(io::Error::other(e)))?.map_err(|e| {
            let mend = "install QEMU; Debian, as root: apt-get install qemu-system-x86";
            Error::not_permitted(format!("{PROGRAM} cannot be run: {e}")).mend(mend)
        })?;
        Ok(Self { child, _keeper: keeper })
    }
}

impl Qemu {
    /// How much CPU time each of its threads has had so far, and how long it has waited for a CPU.
    pub(crate) fn times(&self) -> Vec<Times> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).into_iter().flatten().flatten();
        // Time on a CPU, time in wait for one, and how often it got one (Documentation/scheduler/sched-stats.rst).
        let each = tasks.filter_map(|task| {
            let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            let mut numbers = text.split_whitespace().map_while(|word| word.parse().ok().map(Duration::from_nanos));
            Some(Times { ran: numbers.next()?, waited: numbers.next()? })
        });
        each.collect()
    }
}

/// What a thread has had of the host's CPUs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) ran: Duration,
    pub(crate) waited: Duration,
}

/// Starts QEMU, which inherits the descriptors `passed` and dies with the calling thread.
#[allow(unsafe_code)]
fn spawn(arguments: &[String], complaints: File, passed: [RawFd; 3]) -> io::Result<Child> {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(complaints);
    let parent = rustix::process::getpid();
    // SAFETY: between fork and exec it makes three kinds of system calls and no other: none allocates or locks.
    // The descriptors are open, as the caller says.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if getppid() != Some(parent) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            for fd in passed {
                fcntl_setfd(BorrowedFd::borrow_raw(fd), FdFlags::empty())?;
            }
            Ok(())
        });
    }
    command.spawn()
}

impl Drop for Qemu {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kernel;

    fn line(machine: &str, accel: Accel) -> String {
        let kernel = Kernel { name: "k".into(), image: "/boot/k".into(), release: "6.12".into() };
        let mut machine = schedlab_machine::load(machine).unwrap();
        machine.isolated = vec![2, 3];
        arguments(&Guest::new(&kernel, &machine), accel, &Files::new().unwrap()).unwrap().join(" ")
    }

    #[test]
    fn counted_time_has_one_thread_and_no_draws() {
        let text = line("4", Accel::Counted);
        for word in ["thread=single", "-icount shift=3,sleep=off", "-seed 1", "clock=vm", "nokaslr", "tsc=reliable"] {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(!text.contains("virtio"), "{text}");
    }

    #[test]
    fn isolated_cpus_are_isolated_by_the_kernel() {
        assert!(line("4", Accel::Tcg).contains("isolcpus=domain,2-3"));
    }

    #[test]
    fn a_kernel_that_stumbled_over_qemu_ends_at_once() {
        assert!(line("4", Accel::Tcg).contains("oops=panic"));
        assert!(!line("4", Accel::Counted).contains("oops=panic"), "there it does not stumble");
    }

    #[test]
    fn kvm_has_this_processor_and_its_own_clock() {
        let text = line("4", Accel::Kvm);
        assert!(text.contains("-accel kvm -cpu host") && !text.contains("tsc=reliable"), "{text}");
    }
}

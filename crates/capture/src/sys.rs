//! System calls that the standard library does not offer. With `bpf`, `mask` and `sched_attr`, this is the recorder's
//! only unsafe code.
#![allow(unsafe_code)]

use schedlab_base::{Nanos, Tid};
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Converts a result of -1 into the system call's error.
pub(crate) fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Takes the descriptor that a system call has returned.
pub(crate) fn own(fd: libc::c_long) -> OwnedFd {
    // SAFETY: the kernel has just returned this descriptor and nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(fd as RawFd) }
}

/// Mounts a pseudo file system without attaching it anywhere. It is reached through `/proc/self/fd/N` and disappears
/// when the descriptor is closed, however the process ends. Requires Linux 5.2.
pub(crate) fn detached_mount(kind: &CStr) -> io::Result<OwnedFd> {
    const CLOEXEC: libc::c_long = 1; // FSOPEN_CLOEXEC and FSMOUNT_CLOEXEC
    const CMD_CREATE: libc::c_long = 6; // FSCONFIG_CMD_CREATE
    const NULL: libc::c_long = 0;
    // SAFETY: `kind` is a C string; the other arguments are numbers or null, as each call allows.
    unsafe {
        let fs = own(checked(libc::syscall(libc::SYS_fsopen, kind.as_ptr(), CLOEXEC))?);
        checked(libc::syscall(libc::SYS_fsconfig, fs.as_raw_fd(), CMD_CREATE, NULL, NULL, NULL))?;
        Ok(own(checked(libc::syscall(libc::SYS_fsmount, fs.as_raw_fd(), CLOEXEC, NULL))?))
    }
}

/// Moves up to `bytes` from a trace buffer into a pipe without waiting. `None` if no page is full.
pub(crate) fn splice(from: BorrowedFd<'_>, to: BorrowedFd<'_>, bytes: usize) -> io::Result<Option<usize>> {
    let flags = libc::SPLICE_F_MOVE | libc::SPLICE_F_NONBLOCK;
    let null = std::ptr::null_mut();
    // SAFETY: both descriptors are open, and null offsets are what pipes and trace buffers take.
    let moved = unsafe { libc::splice(from.as_raw_fd(), null, to.as_raw_fd(), null, bytes, flags) };
    match checked(moved as libc::c_long) {
        Ok(0) => Ok(None),
        Ok(n) => Ok(Some(n as usize)),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Sets a pipe's capacity and returns the capacity that the kernel chose.
pub(crate) fn set_pipe_size(pipe: BorrowedFd<'_>, bytes: usize) -> io::Result<usize> {
    // SAFETY: the descriptor is open and the command takes a number.
    let size = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, bytes as libc::c_int) };
    checked(libc::c_long::from(size)).map(|n| n as usize)
}

/// Waits until one of the descriptors is readable, or the time is over. Whether one is.
pub(crate) fn wait_readable(fds: impl Iterator<Item = RawFd>, timeout: Duration) -> io::Result<bool> {
    let mut polled: Vec<libc::pollfd> = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 }).collect();
    let millis = timeout.as_millis().min(i32::MAX as u128) as libc::c_int;
    // SAFETY: the pointer and the length are those of a live vector.
    let result = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, millis) };
    match checked(libc::c_long::from(result)) {
        Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(false),
        Err(e) => Err(e),
        Ok(readable) => Ok(readable > 0),
    }
}

/// The monotonic clock, which is the trace clock `mono`.
pub(crate) fn monotonic() -> Nanos {
    clock(libc::CLOCK_MONOTONIC).expect("this clock always exists")
}

/// The time of a clock.
pub(crate) fn clock(clock: libc::clockid_t) -> io::Result<Nanos> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec.
    checked(libc::c_long::from(unsafe { libc::clock_gettime(clock, &raw mut time) }))?;
    Ok(time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos)
}

/// The clock of the CPU time of the calling thread, which other threads of this process can read.
pub(crate) fn clock_of_this_thread() -> Option<libc::clockid_t> {
    let mut clock = 0;
    // SAFETY: the pointer is to a live clock id, and this thread exists.
    let failed = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &raw mut clock) };
    (failed == 0).then_some(clock)
}

/// The id of the calling thread.
pub(crate) fn this_thread() -> Tid {
    // SAFETY: the call takes no arguments and cannot fail.
    unsafe { libc::gettid() }
}

/// The resolution of the coarse clocks, which advance with each tick.
#[must_use]
pub fn tick() -> Option<Nanos> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec.
    let done = unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    Some(time.tv_nsec as Nanos).filter(|ns| done == 0 && time.tv_sec == 0 && *ns > 0)
}

/// The effective user's id; 0 is root.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: the call takes no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// Sends a signal.
pub(crate) fn kill(process: Tid, signal: i32) -> io::Result<()> {
    // SAFETY: the call takes two numbers.
    checked(libc::c_long::from(unsafe { libc::kill(process, signal) })).map(drop)
}

/// Waits for a child of this process to end and reaps it.
pub(crate) fn reap(child: Tid) {
    // SAFETY: a null status is allowed; the child is ours.
    while unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// A signal that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Its number.
    pub number: i32,
    /// Whether the kernel sent it (as for a terminal's Ctrl-C, which the whole process group gets) and not a process.
    pub from_kernel: bool,
}

/// Reads the signals that end a recording, and `SIGCHLD`, from a descriptor, so that they do not interrupt. When it is
/// dropped, they interrupt again.
pub struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
}

impl Signals {
    /// Blocks the signals and opens the descriptor. If `SIGHUP` was ignored before (nohup), it stays ignored.
    ///
    /// # Errors
    /// When the kernel refuses the descriptor.
    pub fn take() -> io::Result<Self> {
        // SAFETY: the sets are live and initialised by `sigemptyset` or the kernel before they are used;
        // all-zero bytes are valid in both C structures.
        unsafe {
            let (mut set, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigemptyset(&raw mut set);
            let mut hangup: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut hangup);
            let nohup = hangup.sa_sigaction == libc::SIG_IGN;
            for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGQUIT, libc::SIGHUP, libc::SIGCHLD] {
                if !(signal == libc::SIGHUP && nohup) {
                    libc::sigaddset(&raw mut set, signal);
                }
            }
            let failed = libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, &raw mut before);
            if failed != 0 {
                return Err(io::Error::from_raw_os_error(failed));
            }
            let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            match checked(libc::c_long::from(fd)) {
                Ok(fd) => Ok(Self { fd: own(fd), before }),
                Err(e) => {
                    libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
                    Err(e)
                }
            }
        }
    }

    /// The descriptor, which is readable when a signal has arrived.
    #[must_use]
    pub fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Takes the next signal that has arrived.
    #[must_use]
    pub fn next(&self) -> Option<Signal> {
        // SAFETY: all-zero bytes are a valid signalfd_siginfo, and the read is bounded by its size.
        let (info, read) = unsafe {
            let mut info: libc::signalfd_siginfo = std::mem::zeroed();
            let size = size_of::<libc::signalfd_siginfo>();
            let read = libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size);
            (info, read == size as isize)
        };
        read.then_some(Signal { number: info.ssi_signo as i32, from_kernel: info.ssi_code == 0x80 })
    }

    /// Gives this thread the original signal mask back: for a process forked from this one.
    pub fn restore(&self) {
        // SAFETY: `before` is the mask that the kernel gave to `take`.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }

    /// Makes a command start with the original signal mask, and end by SIGTERM when this process is killed.
    pub fn restore_in(&self, command: &mut Command) {
        let (before, parent) = (self.before, std::process::id().cast_signed());
        // SAFETY: these calls are safe between fork and exec, and the set is the closure's own.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM, 0, 0, 0);
                if libc::getppid() != parent {
                    return Err(io::ErrorKind::Interrupted.into());
                }
                match libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) {
                    0 => Ok(()),
                    failed => Err(io::Error::from_raw_os_error(failed)),
                }
            });
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Discard pending signals, so that an unread second Ctrl-C does not kill this process now.
        while self.next().is_some() {}
        self.restore();
    }
}

/// Starts a process that outlives this one. When every writer of the pipe `alive` is closed, it removes the directory
/// `path` and ends. It keeps only `alive` and `keep` open.
pub(crate) fn fork_remover(alive: BorrowedFd<'_>, keep: Option<RawFd>, path: &CStr) -> io::Result<Tid> {
    // SAFETY: the child only makes calls that are safe after a fork in a multithreaded process, on data created before
    // the fork, and never returns.
    unsafe {
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => remover(alive.as_raw_fd(), keep.unwrap_or(-1), path),
            child => Ok(child),
        }
    }
}

/// The body of the process that [`fork_remover`] starts.
///
/// # Safety
/// Call it only in a child that has just been forked.
unsafe fn remover(alive: RawFd, keep: RawFd, path: &CStr) -> ! {
    const TRIES: u32 = 250;
    let pause = libc::timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    // SAFETY: plain system calls on numbers and on memory that the fork copied.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, c"schedlab-guard".as_ptr());
        let (low, high) = if keep < 0 { (alive, alive) } else { (alive.min(keep), alive.max(keep)) };
        for (first, last) in [(0, low - 1), (low + 1, high - 1), (high + 1, i32::MAX)] {
            if first <= last {
                libc::syscall(libc::SYS_close_range, first as libc::c_uint, last as libc::c_uint, 0);
            }
        }
        let mut byte = 0u8;
        loop {
            let read = libc::read(alive, (&raw mut byte).cast(), 1);
            if read == 0 || (read < 0 && *libc::__errno_location() != libc::EINTR) {
                break;
            }
        }
        for _ in 0..TRIES {
            let gone = libc::unlinkat(libc::AT_FDCWD, path.as_ptr(), libc::AT_REMOVEDIR) == 0;
            if gone || *libc::__errno_location() == libc::ENOENT {
                break;
            }
            libc::nanosleep(&raw const pause, std::ptr::null_mut());
        }
        libc::_exit(0)
    }
}

/// Watches directories for writes to the files in them. Each directory has a key.
pub(crate) struct Watches<K> {
    fd: OwnedFd,
    keys: std::collections::HashMap<libc::c_int, K>,
}

impl<K: Clone> Watches<K> {
    /// Watches nothing yet.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the call takes a number.
        let fd = checked(libc::c_long::from(unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) }))?;
        Ok(Self { fd: own(fd), keys: std::collections::HashMap::new() })
    }

    /// The descriptor, which is readable when there was a write.
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Watches one more directory. If the kernel refuses, for example because there are too many, it is not watched.
    pub(crate) fn add(&mut self, dir: &std::path::Path, key: K) {
        let Ok(path) = std::ffi::CString::new(dir.as_os_str().as_encoded_bytes()) else { return };
        // SAFETY: the descriptor is open and the path is a C string.
        let watch = unsafe { libc::inotify_add_watch(self.fd.as_raw_fd(), path.as_ptr(), libc::IN_MODIFY) };
        if watch >= 0 {
            self.keys.insert(watch, key);
        }
    }

    /// The keys of the directories in which a file was written whose name `counts`.
    pub(crate) fn take(&mut self, counts: impl Fn(&str) -> bool) -> Vec<K> {
        const HEAD: usize = size_of::<libc::inotify_event>();
        let mut found = Vec::new();
        let mut buffer = [0u8; 4096];
        loop {
            // SAFETY: the read is bounded by the buffer.
            let read = unsafe { libc::read(self.fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
            let Some(mut rest) = usize::try_from(read).ok().filter(|n| *n > 0).map(|n| &buffer[..n]) else { break };
            while let Some((head, tail)) = rest.split_at_checked(HEAD) {
                let word = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
                let (name, tail) = tail.split_at((word(12) as usize).min(tail.len()));
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                let (watch, mask) = (word(0) as libc::c_int, word(4));
                if mask & libc::IN_IGNORED != 0 {
                    self.keys.remove(&watch);
                } else if std::str::from_utf8(name).is_ok_and(&counts) {
                    found.extend(self.keys.get(&watch).cloned());
                }
                rest = tail;
            }
        }
        found
    }
}

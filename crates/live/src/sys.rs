//! The system calls that tasks and their supervisor make. Other unsafe code of the room is in `region.rs` and
//! `memory.rs`, which use memory that they have mapped, and where processes are forked.
#![allow(unsafe_code)]

use schedlab_base::{Nanos, Tid};
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::AtomicU32;

/// Nanoseconds in a second.
const SECOND: Nanos = 1_000_000_000;

fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn timespec(time: Nanos) -> libc::timespec {
    libc::timespec { tv_sec: (time / SECOND) as libc::time_t, tv_nsec: (time % SECOND) as libc::c_long }
}

fn clock(id: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec; the clocks that are read here always exist.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    time.tv_sec as Nanos * SECOND + time.tv_nsec as Nanos
}

/// The monotonic clock. Reading it is no system call.
pub(crate) fn monotonic() -> Nanos {
    clock(libc::CLOCK_MONOTONIC)
}

/// The time of the last tick by the monotonic clock, and the time between two ticks, or 1 ns if that is not known.
fn last_tick() -> (Nanos, Nanos) {
    (clock(libc::CLOCK_MONOTONIC_COARSE), schedlab_capture::tick().unwrap_or(1))
}

/// The time of the tick with which a timeout of this length ends if it begins now.
pub(crate) fn tick_after(length: Nanos) -> Nanos {
    let (ticked, tick) = last_tick();
    ticked.saturating_add(length.div_ceil(tick).max(1).saturating_mul(tick))
}

/// How often this thread has left its CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Switches {
    /// To sleep.
    pub(crate) voluntary: i64,
    /// Because it was preempted, or yielded.
    pub(crate) involuntary: i64,
}

/// How often this thread has left its CPU. Asking does not make the kernel account it.
pub(crate) fn switches() -> Switches {
    // SAFETY: a structure of numbers may be all zero, and the kernel fills it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is of the type that the call writes.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    Switches { voluntary: usage.ru_nvcsw, involuntary: usage.ru_nivcsw }
}

/// The CPU time of this thread. Reading it makes the kernel account the thread.
pub(crate) fn thread_cpu() -> Nanos {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Sleeps until this time of the monotonic clock.
pub(crate) fn sleep_until(time: Nanos) {
    let time = timespec(time);
    // SAFETY: the pointer is to a live timespec, and an absolute sleep has no rest to report.
    while unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &raw const time, std::ptr::null_mut())
    } == libc::EINTR
    {}
}

/// Sleeps while the word has this value, until it is woken or (if there is one) the time of the monotonic clock.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32, until: Option<Nanos>) {
    let until = until.map(timespec);
    let until = until.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the word outlives the call, and the time is null or a live timespec. WAIT_BITSET takes absolute times.
    unsafe {
        let (op, all) = (libc::FUTEX_WAIT_BITSET, u32::MAX);
        libc::syscall(libc::SYS_futex, word.as_ptr(), op, value, until, std::ptr::null::<u32>(), all);
    }
}

/// Wakes up to `most` tasks that sleep on the word.
pub(crate) fn futex_wake(word: &AtomicU32, most: u32) {
    let most = most.min(i32::MAX as u32);
    // SAFETY: the kernel only uses the word's address.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, most) };
}

/// Takes a mutex whose holder inherits its waiters' priority.
pub(crate) fn futex_lock_pi(word: &AtomicU32) {
    // SAFETY: the word outlives the call; there is no time limit.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_LOCK_PI, 0, std::ptr::null::<u8>()) };
}

/// Releases a mutex whose holder inherits its waiters' priority.
pub(crate) fn futex_unlock_pi(word: &AtomicU32) {
    // SAFETY: the kernel only uses the word.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_UNLOCK_PI) };
}

/// Calls `sched_yield()`.
pub(crate) fn sched_yield() {
    // SAFETY: the call takes no arguments.
    unsafe { libc::sched_yield() };
}

/// The CPU that this thread is on.
pub(crate) fn current_cpu() -> usize {
    // SAFETY: the call takes no arguments.
    usize::try_from(unsafe { libc::sched_getcpu() }).unwrap_or(0)
}

/// The id of this thread.
pub(crate) fn tid() -> Tid {
    // SAFETY: the call takes no arguments.
    unsafe { libc::gettid() }
}

/// Whether this process has root's effective user id.
pub(crate) fn is_root() -> bool {
    // SAFETY: the call takes no arguments.
    unsafe { libc::geteuid() == 0 }
}

/// Lets this thread run on these CPUs only.
pub(crate) fn set_affinity(cpus: &[u32]) -> io::Result<()> {
    let words = cpus.iter().max().map_or(1, |most| *most as usize / 64 + 1);
    let mut mask = vec![0_u64; words];
    cpus.iter().for_each(|cpu| mask[*cpu as usize / 64] |= 1 << (cpu % 64));
    // SAFETY: the mask is live and its size in bytes is given.
    checked(unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, words * 8, mask.as_ptr()) }).map(drop)
}

/// `MPOL_BIND`: memory comes from these nodes only.
const MPOL_BIND: libc::c_int = 2;

fn node_mask(nodes: &[u32]) -> Vec<u64> {
    let mut mask = vec![0_u64; nodes.iter().max().map_or(1, |most| *most as usize / 64 + 1)];
    nodes.iter().for_each(|node| mask[*node as usize / 64] |= 1 << (node % 64));
    mask
}

/// Lets what this thread touches first come from these nodes only.
pub(crate) fn bind_memory(nodes: &[u32]) -> io::Result<()> {
    let mask = node_mask(nodes);
    // SAFETY: the mask is live; its size in bits, plus one as the call counts, is given.
    let result = unsafe { libc::syscall(libc::SYS_set_mempolicy, MPOL_BIND, mask.as_ptr(), mask.len() * 64 + 1) };
    checked(result).map(drop)
}

/// Puts pages that were not touched yet on these nodes.
pub(crate) fn place_memory(start: *mut u8, bytes: usize, nodes: &[u32]) -> io::Result<()> {
    let mask = node_mask(nodes);
    // SAFETY: the kernel checks the range, and the mask is live.
    let result =
        unsafe { libc::syscall(libc::SYS_mbind, start, bytes, MPOL_BIND, mask.as_ptr(), mask.len() * 64 + 1, 0) };
    checked(result).map(drop)
}

/// Maps memory of zeros, shared with processes that are forked later, or private.
pub(crate) fn map(bytes: usize, shared: bool) -> io::Result<*mut u8> {
    let flags = libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | if shared { libc::MAP_SHARED } else { libc::MAP_PRIVATE };
    // SAFETY: an anonymous mapping at an address of the kernel's choice.
    let start =
        unsafe { libc::mmap(std::ptr::null_mut(), bytes.max(1), libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if start == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(start.cast()) }
}

/// Gives the memory of [`map`] back.
///
/// # Safety
/// Nothing may use it any more.
pub(crate) unsafe fn unmap(start: *mut u8, bytes: usize) {
    // SAFETY: as the caller says.
    unsafe { libc::munmap(start.cast(), bytes.max(1)) };
}

/// Names this thread, with up to 15 bytes.
pub(crate) fn set_name(name: &str) {
    let mut bytes = [0_u8; 16];
    let end = (0..=name.len().min(15)).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
    bytes[..end].copy_from_slice(&name.as_bytes()[..end]);
    // SAFETY: the name ends with a NUL.
    unsafe { libc::prctl(libc::PR_SET_NAME, bytes.as_ptr()) };
}

/// Makes this thread act for another user. Its capabilities stay, so that it can go on changing its own attributes. The
/// raw calls act on the thread alone, where the C library's would act on all threads.
pub(crate) fn become_user(user: u32) -> io::Result<()> {
    const PR_SET_SECUREBITS: libc::c_int = 28;
    const SECBIT_NO_SETUID_FIXUP: libc::c_ulong = 4;
    // SAFETY: the calls take numbers.
    unsafe {
        libc::prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0);
        checked(libc::syscall(libc::SYS_setresuid, user, user, user)).map(drop)
    }
}

/// Forks a process that does this and ends. It has this thread alone.
///
/// # Safety
/// No other thread may hold a lock that the child needs.
pub(crate) unsafe fn fork(child: impl FnOnce()) -> io::Result<Tid> {
    // SAFETY: as the caller says.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // A panic must not go on as the parent.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
            exit(101)
        }
        child => Ok(child),
    }
}

/// Ends this process at once, with all its threads.
pub(crate) fn exit(status: i32) -> ! {
    // SAFETY: the call never returns.
    unsafe { libc::_exit(status) }
}

/// Sleeps for good.
pub(crate) fn pause_forever() -> ! {
    loop {
        // SAFETY: the call takes no arguments.
        unsafe { libc::pause() };
    }
}

/// Begins a session of its own, and with it an autogroup.
pub(crate) fn new_session() {
    // SAFETY: the call takes no arguments. It fails only for the leader of a process group, which a child is not.
    unsafe { libc::setsid() };
}

/// Has the kernel kill this process when its parent ends; ends it now if `parent` has ended already.
pub(crate) fn die_with(parent: Tid) {
    // SAFETY: the calls take numbers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        if libc::getppid() != parent {
            libc::_exit(1);
        }
    }
}

/// The id of this process.
pub(crate) fn pid() -> Tid {
    std::process::id() as Tid
}

/// Makes this process the parent of descendants whose own parent ends.
pub(crate) fn adopt_orphans() {
    // SAFETY: the call takes numbers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
}

/// Kills a process.
pub(crate) fn kill(process: Tid) {
    // SAFETY: the call takes two numbers.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

/// A child that ended, if there is one.
pub(crate) enum Reaped {
    /// It did, by this signal if one killed it.
    Child(Option<i32>),
    /// There are children, and all live.
    None,
    /// There are no children.
    NoChildren,
}

/// A child that has ended and was not reaped yet. It is an error if there are no children.
pub(crate) fn ended_child() -> io::Result<Option<Tid>> {
    // SAFETY: zeros are a value of this type; it is live, and has the id of a child or 0 if the call succeeds.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
        match libc::waitid(libc::P_ALL, 0, &raw mut info, options) {
            0 => Ok(Some(info.si_pid()).filter(|child| *child != 0)),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Reaps a child; waits for one if `wait`.
pub(crate) fn reap(which: Tid, wait: bool) -> Reaped {
    let mut status = 0;
    // SAFETY: the status is live.
    match unsafe { libc::waitpid(which, &raw mut status, if wait { 0 } else { libc::WNOHANG }) } {
        0 => Reaped::None,
        -1 if io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) => Reaped::None,
        -1 => Reaped::NoChildren,
        _ => Reaped::Child(libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))),
    }
}

/// Closes every descriptor from 3 on but these.
pub(crate) fn close_all_but(keep: &[RawFd]) {
    let mut keep: Vec<libc::c_uint> = keep.iter().map(|fd| *fd as libc::c_uint).filter(|fd| *fd > 2).collect();
    keep.sort_unstable();
    let mut first = 3;
    for fd in keep.into_iter().chain([libc::c_uint::MAX]) {
        if first < fd {
            // SAFETY: the process uses none of these descriptors from here on.
            unsafe { libc::syscall(libc::SYS_close_range, first, fd - 1, 0) };
        }
        first = fd.saturating_add(1);
    }
}

/// Lets standard input, output and error lead nowhere.
pub(crate) fn detach_standard_streams() {
    // SAFETY: plain calls on descriptors of this process.
    unsafe {
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        if null >= 0 {
            (0..3).for_each(|fd| _ = libc::dup2(null, fd));
            if null > 2 {
                libc::close(null);
            }
        }
    }
}

/// Waits until one of the descriptors is readable or hung up, or until the time of the monotonic clock.
pub(crate) fn wait_readable<const N: usize>(fds: [RawFd; N], until: Option<Nanos>) -> [bool; N] {
    let mut polled = fds.map(|fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 });
    let left = until.map(|until| timespec(until.saturating_sub(monotonic())));
    let left = left.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the array and the time are live; a null mask leaves the signals as they are.
    let count = unsafe { libc::ppoll(polled.as_mut_ptr(), N as libc::nfds_t, left, std::ptr::null()) };
    polled.map(|fd| count > 0 && fd.revents != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_the_kernels() {
        let (wall, cpu) = (monotonic(), thread_cpu());
        sleep_until(wall + 3_000_000);
        assert!(monotonic() >= wall + 3_000_000);
        assert!(thread_cpu() - cpu < 3_000_000, "a sleep takes no CPU time");
    }

    #[test]
    fn the_last_tick_was_less_than_a_few_ticks_ago() {
        let ((ticked, tick), now) = (last_tick(), monotonic());
        assert!((100_000..=10_000_000).contains(&tick), "{tick}");
        assert!(ticked <= now && now - ticked < 1_000_000_000, "{ticked} {now}");
        let until = tick_after(3 * tick);
        assert!((until - ticked).is_multiple_of(tick) && until >= now + tick, "{until} {now}");
    }

    #[test]
    fn a_futex_that_has_another_value_does_not_sleep() {
        let word = AtomicU32::new(1);
        futex_wait(&word, 0, None);
        let start = monotonic();
        futex_wait(&word, 1, Some(start + 2_000_000));
        assert!(monotonic() - start >= 2_000_000);
    }
}

//! System calls that the standard library does not offer.
#![allow(unsafe_code)]

use schedlab_base::Nanos;
use std::os::fd::RawFd;

/// The effective user's id; 0 is root.
pub(crate) fn effective_user() -> u32 {
    // SAFETY: the call takes no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// Lets this process lock as much memory as it needs, if it may.
pub(crate) fn lift_memory_limit() {
    let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the pointer is to a live structure.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) };
}

fn clock(id: libc::clockid_t) -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live structure; both clocks that are asked for always exist.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos
}

/// The monotonic clock.
pub(crate) fn monotonic() -> Nanos {
    clock(libc::CLOCK_MONOTONIC)
}

/// The CPU time that this process has used.
pub(crate) fn cpu_time() -> Nanos {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Waits until the descriptor is readable, or so long.
pub(crate) fn wait_readable(fd: RawFd, longest: Nanos) {
    let mut polled = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    let left = libc::timespec {
        tv_sec: (longest / 1_000_000_000) as libc::time_t,
        tv_nsec: (longest % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the pointers are to live structures. An interruption is as good as the time being over.
    unsafe { libc::ppoll(&raw mut polled, 1, &raw const left, std::ptr::null()) };
}

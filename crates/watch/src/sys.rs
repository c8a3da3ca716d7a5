//! System calls that the standard library does not offer.
#![allow(unsafe_code)]

use schedlab_base::{CpuId, Nanos};
use std::io;
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

/// The CPUs that this thread may run on, 64 to a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mask(Vec<u64>);

impl Mask {
    /// The present one.
    pub(crate) fn present() -> io::Result<Self> {
        let mut words = vec![0u64; 1 << 10];
        // SAFETY: the pointer and the size are those of a live vector.
        let bytes = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, words.len() * 8, words.as_mut_ptr()) };
        if bytes < 0 {
            return Err(io::Error::last_os_error());
        }
        words.truncate(bytes as usize / 8);
        Ok(Self(words))
    }

    /// One CPU.
    #[cfg(test)]
    pub(crate) fn only(cpu: CpuId) -> Self {
        let mut words = vec![0u64; cpu as usize / 64 + 1];
        words[cpu as usize / 64] |= 1 << (cpu % 64);
        Self(words)
    }

    /// The same without some CPUs; `None` if none would be left.
    pub(crate) fn without(&self, cpus: &[CpuId]) -> Option<Self> {
        let mut words = self.0.clone();
        for cpu in cpus {
            if let Some(word) = words.get_mut(*cpu as usize / 64) {
                *word &= !(1 << (cpu % 64));
            }
        }
        words.iter().any(|word| *word != 0).then_some(Self(words))
    }

    /// Makes it the present one. If the kernel refuses, nothing changes.
    pub(crate) fn set(&self) {
        // SAFETY: the pointer and the size are those of a live vector.
        unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, self.0.len() * 8, self.0.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_loses_cpus_but_never_all() {
        let mask = Mask(vec![0b111, 1]);
        assert_eq!(mask.without(&[1, 64, 999]), Some(Mask(vec![0b101, 0])));
        assert_eq!(mask.without(&[0, 1, 2, 64]), None);
    }

    #[test]
    fn this_thread_may_run_somewhere() {
        let present = Mask::present().unwrap();
        assert!(present.0.iter().any(|word| *word != 0));
        present.set();
        assert_eq!(Mask::present().unwrap(), present);
    }
}

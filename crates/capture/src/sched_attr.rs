//! How the kernel schedules a task, as `sched_getattr()` and `sched_setattr()` exchange it.
#![allow(unsafe_code)]

use crate::sys::checked;
use schedlab_base::Tid;
use std::io;

/// `struct sched_attr` of include/uapi/linux/sched/types.h: the policy of a task with its parameters. Times are in
/// nanoseconds. Requires Linux 3.14.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SchedAttr {
    /// The size in bytes of the structure that the caller or the kernel knows.
    pub size: u32,
    /// The number of the policy: `SCHED_OTHER` and its like.
    pub policy: u32,
    /// The `SCHED_FLAG_` constants below.
    pub flags: u64,
    /// The nice value of an ordinary task.
    pub nice: i32,
    /// The priority of a real-time task.
    pub priority: u32,
    /// The runtime of a deadline task; since Linux 6.12 the slice of an ordinary one.
    pub runtime: u64,
    /// The relative deadline of a deadline task.
    pub deadline: u64,
    /// The period of a deadline task.
    pub period: u64,
    /// The lower clamp of the utilisation, 0 to 1024. Kernels before 5.3 leave out both clamps.
    pub util_min: u32,
    /// The upper clamp of the utilisation, 0 to 1024.
    pub util_max: u32,
}

/// The size of the structure before it had the clamps, which every kernel takes.
const SIZE_VER0: u32 = 48;

impl SchedAttr {
    /// `SCHED_FLAG_RESET_ON_FORK`: children begin with ordinary attributes.
    pub const RESET_ON_FORK: u64 = 0x01;
    /// `SCHED_FLAG_RECLAIM`: a deadline task reclaims unused bandwidth.
    pub const RECLAIM: u64 = 0x02;
    /// `SCHED_FLAG_UTIL_CLAMP_MIN`: the lower clamp is set.
    pub const UTIL_CLAMP_MIN: u64 = 0x20;
    /// `SCHED_FLAG_UTIL_CLAMP_MAX`: the upper clamp is set.
    pub const UTIL_CLAMP_MAX: u64 = 0x40;

    /// Those of a `SCHED_FIFO` thread whose children are ordinary.
    #[must_use]
    pub fn fifo(priority: u32) -> Self {
        Self { policy: libc::SCHED_FIFO as u32, priority, flags: Self::RESET_ON_FORK, ..Self::default() }
    }

    /// The attributes of a thread; of the calling one if `tid` is 0.
    ///
    /// # Errors
    ///
    /// The thread has ended, or the kernel is older than 3.14.
    pub fn of(tid: Tid) -> io::Result<Self> {
        let mut attr = Self::default();
        let size = size_of::<Self>() as libc::c_uint;
        // SAFETY: the pointer is to a live structure, and the kernel writes at most the size that is given.
        checked(unsafe { libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attr, size, 0) })?;
        Ok(attr)
    }

    /// Gives these attributes to the calling thread.
    ///
    /// # Errors
    ///
    /// The kernel refuses them: the caller lacks the right, or a value is out of its range.
    pub fn set(self) -> io::Result<()> {
        self.set_of(0)
    }

    /// Gives these attributes to a thread; to the calling one if `tid` is 0.
    ///
    /// # Errors
    ///
    /// As for [`SchedAttr::set`], and when the thread has ended.
    pub fn set_of(mut self, tid: Tid) -> io::Result<()> {
        let clamps = self.flags & (Self::UTIL_CLAMP_MIN | Self::UTIL_CLAMP_MAX) != 0;
        self.size = if clamps { size_of::<Self>() as u32 } else { SIZE_VER0 };
        // SAFETY: the structure is live and its size is stated in it.
        checked(unsafe { libc::syscall(libc::SYS_sched_setattr, tid, &raw const self, 0) }).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_takes_what_it_gave() {
        let attr = SchedAttr::of(0).unwrap();
        attr.set().unwrap();
        assert_eq!(SchedAttr::of(0).unwrap(), attr);
        assert!(SchedAttr::of(Tid::MAX).is_err());
    }
}

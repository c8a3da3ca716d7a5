//! The pseudo file systems that a system has. A kernel that lacks one goes without; what needs it says so later.

use rustix::mount::{MountFlags, mount};
use std::ffi::CStr;
use std::fs;

/// What is mounted first: the shared memory is found with it.
pub(super) fn first() {
    at("/proc", "proc", c"");
    at("/sys", "sysfs", c"");
    at("/dev", "devtmpfs", c"mode=0755");
}

/// The rest, with the folders in /dev.
pub(super) fn rest() {
    at("/run", "tmpfs", c"mode=0755");
    at("/tmp", "tmpfs", c"mode=1777");
    at("/dev/shm", "tmpfs", c"mode=1777");
    at("/dev/pts", "devpts", c"");
    at("/sys/fs/cgroup", "cgroup2", c"");
    at("/sys/kernel/debug", "debugfs", c"");
    at("/sys/kernel/tracing", "tracefs", c"");
}

fn at(place: &str, kind: &str, options: &CStr) {
    let _ = fs::create_dir_all(place);
    let _ = mount("none", place, kind, MountFlags::empty(), options);
}

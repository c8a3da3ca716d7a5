//! The scheduler's files in debugfs, which is mounted for the moment if it is not.

use crate::sys;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// A debugfs that has the scheduler's directory.
pub struct Debugfs {
    dir: PathBuf,
    _mount: Option<OwnedFd>,
}

impl Debugfs {
    /// Opens the one below `root`, or mounts one that only this process sees while this value lives.
    ///
    /// # Errors
    /// Why there is none.
    pub fn open(root: &Path) -> Result<Self, String> {
        let mounted = root.join("sys/kernel/debug");
        if fs::read_dir(mounted.join("sched")).is_ok() {
            return Ok(Self { dir: mounted, _mount: None });
        }
        if root != Path::new("/") {
            return Err("it is not mounted".to_owned());
        }
        let mount = sys::detached_mount(c"debugfs").map_err(|e| format!("it cannot be mounted ({e})"))?;
        let dir = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        match fs::read_dir(dir.join("sched")) {
            Ok(_) => Ok(Self { dir, _mount: Some(mount) }),
            Err(e) => Err(format!("debugfs has no directory of the scheduler ({e})")),
        }
    }

    /// Its root directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

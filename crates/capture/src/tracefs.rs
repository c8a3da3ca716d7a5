//! Opens tracefs, mounted or not, and says which right is missing if that fails.

use crate::sys;
use schedlab_base::{Error, Result};
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

/// Where distributions mount tracefs.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The kernel's tracefs: an existing mount, or a private mount that is not attached to the file tree.
#[derive(Debug)]
pub struct Tracefs {
    root: PathBuf,
    own: Option<OwnedFd>,
}

impl Tracefs {
    /// Opens tracefs. If it is not mounted, it is mounted privately until this value is dropped.
    ///
    /// # Errors
    /// When a right is missing; the error names it and says how to get it.
    pub fn open() -> Result<Self> {
        for root in PLACES.map(Path::new) {
            match fs::metadata(root.join("instances")) {
                Ok(_) => return Ok(Self { root: root.to_path_buf(), own: None }),
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Err(refused("open tracefs", root, &e)),
                Err(_) => {}
            }
        }
        let mount = sys::detached_mount(c"tracefs").map_err(|e| mount_refused(&e))?;
        let root = PathBuf::from(format!("/proc/self/fd/{}", mount.as_raw_fd()));
        match fs::metadata(root.join("instances")) {
            Ok(_) => Ok(Self { root, own: Some(mount) }),
            Err(e) => Err(refused("open tracefs", Path::new("/sys/kernel/tracing"), &e)),
        }
    }

    /// Its root directory. The path is valid as long as this value exists.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether it was already mounted. If not, it is mounted for this process only.
    #[must_use]
    pub(crate) fn was_mounted(&self) -> bool {
        self.own.is_none()
    }

    /// The descriptor that a child process must keep open so that [`Tracefs::root`] stays valid.
    pub(crate) fn descriptor(&self) -> Option<RawFd> {
        self.own.as_ref().map(AsRawFd::as_raw_fd)
    }
}

/// Reads a file of tracefs in large reads, because some files (`header_page` in 6.18) return nothing on a second read.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    const MOST: usize = 1 << 20;
    let mut file = fs::File::open(path)?;
    let (mut text, mut chunk) = (Vec::new(), vec![0; 64 << 10]);
    loop {
        match file.read(&mut chunk)? {
            0 => break,
            n if text.len() + n > MOST => return Err(io::Error::other("longer than any such file")),
            n => text.extend_from_slice(&chunk[..n]),
        }
    }
    String::from_utf8(text).map_err(io::Error::other)
}

/// The error of a mount that failed.
fn mount_refused(error: &io::Error) -> Error {
    let by_hand = "have root mount it: mount -t tracefs nodev /sys/kernel/tracing";
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) if sys::effective_user() != 0 => {
            Error::not_permitted("recording needs root: tracefs is not mounted, and mounting it needs CAP_SYS_ADMIN")
                .mend("run it with sudo")
        }
        Some(libc::EPERM | libc::EACCES) => {
            Error::not_permitted("tracefs is not mounted, and this process lacks CAP_SYS_ADMIN to mount it")
                .mend(format!("{by_hand}; in a container, start it with --privileged or mount the host's"))
        }
        Some(libc::ENODEV) => Error::not_permitted("this kernel has no tracefs")
            .mend("use a kernel built with CONFIG_FTRACE and CONFIG_EVENT_TRACING"),
        Some(libc::ENOSYS) => {
            Error::not_permitted("tracefs is not mounted, and this kernel cannot mount it out of sight").mend(by_hand)
        }
        _ => Error::not_permitted(format!("tracefs cannot be mounted: {error}")).mend(by_hand),
    }
}

/// The error for an access to tracefs that the kernel refused. It names the missing right.
pub(crate) fn refused(doing: &str, path: &Path, error: &io::Error) -> Error {
    let what = format!("cannot {doing}: {error}");
    let denied = matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::EROFS));
    if !denied {
        return Error::system(format!("cannot {doing}"), error).file(path);
    }
    let mend = if sys::effective_user() != 0 {
        "recording needs root: run it with sudo".to_owned()
    } else if let Some(level) = lockdown(Path::new("/")).filter(|level| level != "none") {
        format!("the kernel is locked down (\"{level}\"): boot without lockdown= or Secure Boot's lockdown")
    } else if error.raw_os_error() == Some(libc::EROFS) {
        "tracefs is mounted read-only: mount -o remount,rw it".to_owned()
    } else {
        "root is not enough here: a container or a security module forbids it; record on the host".to_owned()
    };
    Error::not_permitted(what).mend(mend).file(path)
}

/// The kernel's lockdown state, if it is shown: `none`, `integrity` or `confidentiality`.
pub(crate) fn lockdown(root: &Path) -> Option<String> {
    lockdown_in(&root.join("sys/kernel/security"))
}

/// The same of a securityfs that is mounted there.
pub(crate) fn lockdown_in(securityfs: &Path) -> Option<String> {
    chosen(&fs::read_to_string(securityfs.join("lockdown")).ok()?)
}

/// The word in brackets, with which the kernel marks the active choice.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lockdown_state_is_the_word_in_brackets() {
        assert_eq!(chosen("none [integrity] confidentiality\n").as_deref(), Some("integrity"));
        assert_eq!(chosen("none"), None);
    }

    #[test]
    fn a_refusal_names_the_missing_right_and_the_exit_status_is_four() {
        let denied = io::Error::from_raw_os_error(libc::EPERM);
        let error = refused("create a tracefs instance", Path::new("/t"), &denied);
        assert_eq!(error.exit_status(), 4);
        assert!(error.to_string().starts_with("/t: cannot create a tracefs instance"), "{error}");
        assert_eq!(mount_refused(&denied).exit_status(), 4);
        let full = refused("x", Path::new("/t"), &io::Error::from_raw_os_error(libc::ENOSPC));
        assert_eq!(full.exit_status(), 2);
    }
}

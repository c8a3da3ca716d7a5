//! A kernel that a guest can boot, by the name that follows `vm:`.

use crate::image;
use crate::store::Store;
use schedlab_base::{Error, Release, Result};
use std::path::{Path, PathBuf};

/// A kernel's image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name: what the user wrote.
    pub name: String,
    /// The file with the image.
    pub image: PathBuf,
    /// Its release, as `uname -r` prints it.
    pub release: String,
}

impl Kernel {
    /// Its release for comparisons, if it is a release of Linux.
    #[must_use]
    pub fn version(&self) -> Option<Release> {
        self.release.parse().ok()
    }

    /// The kernel in this file.
    ///
    /// # Errors
    /// When the file cannot be read, or is no kernel for x86.
    pub fn open(path: &Path, name: &str) -> Result<Self> {
        Ok(Self { name: name.to_owned(), image: path.to_owned(), release: image::release(path)? })
    }
}

/// The kernel that `name` means: `debian-6.12`, if it has been fetched, or the path of a bzImage.
///
/// # Errors
/// When there is no such kernel here.
pub fn find(name: &str) -> Result<Kernel> {
    let path = Path::new(name);
    if name.contains('/') || path.is_file() {
        return Kernel::open(path, name);
    }
    let store = Store::open()?;
    if let Some(kept) = store.get(name)? {
        return Kernel::open(&kept.image(), name);
    }
    if crate::store::is_known(name) {
        let what = format!("the kernel {name} is not on this machine");
        return Err(Error::input(what).mend(format!("get it: schedlab vm fetch {name}")));
    }
    Err(Error::input(format!("\"{name}\" is no kernel"))
        .mend("known are debian-6.12 and debian-6.1; a file is named by its path, as /path/to/bzImage"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::v;

    fn image(version: &str) -> Vec<u8> {
        let mut bytes = vec![0; 0x400];
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x1f1] = 1;
        bytes[0x206..0x208].copy_from_slice(&0x20fu16.to_le_bytes());
        bytes[0x236] = 1;
        bytes[0x20e..0x210].copy_from_slice(&0x100u16.to_le_bytes());
        bytes[0x300..0x300 + version.len()].copy_from_slice(version.as_bytes());
        bytes
    }

    #[test]
    fn an_image_says_its_release() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bzImage");
        std::fs::write(&path, image("6.12.117+deb12-cloud-amd64 (a@b) #1 SMP")).unwrap();
        let kernel = find(path.to_str().unwrap()).unwrap();
        assert_eq!(kernel.release, "6.12.117+deb12-cloud-amd64");
        assert_eq!(kernel.version(), Some(v(6, 12)));
    }

    #[test]
    fn other_files_and_names_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("text");
        let message = |name: &str| find(name).unwrap_err().to_string();
        let name = path.to_str().unwrap();
        assert!(message(name).contains("cannot be read"));
        std::fs::write(&path, "no kernel").unwrap();
        assert!(message(name).contains("is no kernel for x86"));
        std::fs::write(&path, image("")).unwrap();
        assert!(message(name).contains("is no kernel for x86"));
        std::fs::write(&path, &image("6.12")[..0x300]).unwrap();
        assert!(message(name).contains("text: is not all of a kernel: 768 of 1024 bytes are there"));
        let mut narrow = image("6.12");
        narrow[0x236] = 0;
        std::fs::write(&path, narrow).unwrap();
        assert!(message(name).contains("is no kernel for 64 bits"));
        let fifo = dir.path().join("fifo");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
        assert!(message(fifo.to_str().unwrap()).contains("is no kernel for x86"), "nobody waits for a writer");
        assert!(message("debina-6.1").contains("known are debian-6.12 and debian-6.1;"));
    }
}

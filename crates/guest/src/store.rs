//! The kernels of the distribution: fetched by its package manager, and kept in the user's cache.
//!
//! A kernel is a folder with its image and a description. It gets its name when it is complete, by renaming, so that
//! nobody ever finds half of one; a lock lets one schedlab fetch at a time; what a killed one left is removed by the
//! next.

mod apt;

use schedlab_base::{Error, Result};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The kernels that the project is tested with.
pub(crate) const KNOWN: [&str; 2] = ["debian-6.1", "debian-6.12"];
/// The names of the files in a kernel's folder.
const IMAGE: &str = "vmlinuz";
const DESCRIPTION: &str = "kernel.json";
/// What the folder of a kernel begins with while it is not complete.
const UNFINISHED: &str = ".new-";

/// Whether a kernel of this name can be fetched: `debian-` and a release.
pub(crate) fn is_known(name: &str) -> bool {
    release(name).is_some()
}

/// The release in `debian-6.12`.
fn release(name: &str) -> Option<&str> {
    let release = name.strip_prefix("debian-")?;
    let (major, minor) = release.split_once('.')?;
    let number = |text: &str| !text.is_empty() && text.len() <= 3 && text.bytes().all(|b| b.is_ascii_digit());
    (number(major) && number(minor)).then_some(release)
}

/// A kernel that has been fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Its name: `debian-6.12`.
    pub name: String,
    /// Its release, as `uname -r` prints it.
    pub release: String,
    /// The package that it is from.
    pub package: String,
    /// The package's version.
    pub version: String,
    /// The SHA-256 of the image.
    pub sha256: String,
    #[serde(skip)]
    folder: PathBuf,
}

impl Kept {
    /// The file with the image.
    #[must_use]
    pub fn image(&self) -> PathBuf {
        self.folder.join(IMAGE)
    }
}

/// The user's cache.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

impl Store {
    /// The cache in `$XDG_CACHE_HOME/schedlab`, or `~/.cache/schedlab`.
    ///
    /// # Errors
    /// When neither variable is set.
    pub fn open() -> Result<Self> {
        let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let cache = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
        let root = cache.ok_or_else(|| {
            Error::input("there is no folder for kernels").mend("set XDG_CACHE_HOME or HOME to an absolute path")
        })?;
        Ok(Self { root: root.join("schedlab") })
    }

    /// A folder of the cache, made if it is not there.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.root.join(name);
        fs::create_dir_all(&folder).map_err(|e| Error::system("cannot be made", &e).file(&folder))?;
        Ok(folder)
    }

    /// The kernels that are here, by name.
    ///
    /// # Errors
    /// When the cache cannot be read, or a kernel in it is damaged.
    pub fn kept(&self) -> Result<Vec<Kept>> {
        let folder = self.root.join("kernels");
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::system("cannot be read", &e).file(folder)),
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| is_known(name)).collect();
        names.sort();
        names.iter().filter_map(|name| self.get(name).transpose()).collect()
    }

    /// The kernel of this name, if it is here.
    ///
    /// # Errors
    /// When it is damaged.
    pub fn get(&self, name: &str) -> Result<Option<Kept>> {
        if !is_known(name) {
            return Ok(None);
        }
        let folder = self.root.join("kernels").join(name);
        let path = folder.join(DESCRIPTION);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::system("cannot be read", &e).file(path)),
        };
        let again = format!("fetch it again: schedlab vm fetch {name} --again");
        let damaged = |what: &str, file: &Path| Error::input(what).mend(again.clone()).file(file);
        let kept: Kept = serde_json::from_slice(&text).map_err(|e| damaged(&e.to_string(), &path))?;
        let kept = Kept { folder, ..kept };
        let image = kept.image();
        if checksum(&image).ok().as_ref() != Some(&kept.sha256) {
            return Err(damaged("is not what was fetched", &image));
        }
        Ok(Some(kept))
    }

    /// Fetches the kernel of this name by the distribution's package manager, unless it is here. `again` fetches it in
    /// any case, which also gets a newer one. `say` is called with what goes on.
    ///
    /// # Errors
    /// When the distribution has none, it cannot be fetched, or it does not agree with its checksum.
    pub fn fetch(&self, name: &str, again: bool, say: &mut dyn FnMut(&str)) -> Result<Kept> {
        let release = release(name).ok_or_else(|| {
            Error::input(format!("\"{name}\" is no kernel of a distribution"))
                .mend(format!("write {} or another release", KNOWN.join(", ")))
        })?;
        let folder = self.folder("kernels")?;
        let _lock = Lock::take(&folder.join("lock"), say)?;
        remove_unfinished(&folder);
        if !again && let Some(kept) = self.get(name)? {
            return Ok(kept);
        }
        let package = apt::newest(release)?;
        say(&format!("fetching {} {}", package.name, package.version));
        let unfinished = Unfinished::make(folder.join(format!("{UNFINISHED}{name}")))?;
        let work = &unfinished.0;
        let file = apt::download(&package, work)?;
        if checksum(&file)? != package.sha256 {
            return Err(Error::input("does not agree with the checksum that apt has for it").file(file));
        }
        let image = apt::unpack(&file, &work.join("unpacked"))?;
        let release = crate::image::release(&image)?;
        let done = Unfinished::make(work.join("done"))?;
        let failed = |e: std::io::Error| Error::system("cannot be kept", &e).file(&folder);
        fs::rename(&image, done.0.join(IMAGE)).map_err(failed)?;
        let kept = Kept {
            name: name.to_owned(),
            release,
            package: package.name,
            version: package.version,
            sha256: checksum(&done.0.join(IMAGE))?,
            folder: folder.join(name),
        };
        let text = serde_json::to_vec_pretty(&kept).expect("plain data is always JSON");
        fs::write(done.0.join(DESCRIPTION), text).map_err(failed)?;
        sync(&done.0).map_err(failed)?;
        if kept.folder.exists() {
            // Out of the way first: only an empty folder can be renamed over.
            fs::rename(&kept.folder, work.join("old")).map_err(failed)?;
        }
        fs::rename(&done.0, &kept.folder).map_err(failed)?;
        Ok(kept)
    }
}

/// Makes what is in this folder durable.
fn sync(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        File::open(entry?.path())?.sync_all()?;
    }
    File::open(folder)?.sync_all()
}

/// The SHA-256 of a file, in hexadecimal digits.
fn checksum(path: &Path) -> Result<String> {
    let failed = |e: std::io::Error| Error::system("cannot be read", &e).file(path);
    let mut hash = Sha256::new();
    std::io::copy(&mut File::open(path).map_err(failed)?, &mut hash).map_err(failed)?;
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Removes what killed fetches left. The caller holds the lock.
fn remove_unfinished(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(UNFINISHED)) {
        let _ = fs::remove_dir_all(entry.path());
    }
}

/// A folder that goes when this value goes.
struct Unfinished(PathBuf);

impl Unfinished {
    fn make(path: PathBuf) -> Result<Self> {
        fs::create_dir(&path).map_err(|e| Error::system("cannot be made", &e).file(&path))?;
        Ok(Self(path))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A lock on a file, released when this value goes or the process ends.
struct Lock {
    _file: File,
}

impl Lock {
    fn take(path: &Path, say: &mut dyn FnMut(&str)) -> Result<Self> {
        use rustix::fs::{FlockOperation, flock};
        let failed = |e: std::io::Error| Error::system("cannot be locked", &e).file(path);
        let file = File::options().create(true).append(true).open(path).map_err(failed)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            say("another schedlab fetches a kernel; waiting for it");
            flock(&file, FlockOperation::LockExclusive).map_err(|e| failed(e.into()))?;
        }
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store { root: dir.path().join("schedlab") };
        (dir, store)
    }

    fn keep(store: &Store, name: &str, image: &[u8]) -> PathBuf {
        let folder = store.folder(&format!("kernels/{name}")).unwrap();
        fs::write(folder.join(IMAGE), image).unwrap();
        let sha256 = checksum(&folder.join(IMAGE)).unwrap();
        let kept = Kept {
            name: name.to_owned(),
            release: "6.1.0-1".into(),
            package: "linux-image".into(),
            version: "1".into(),
            sha256,
            folder: PathBuf::new(),
        };
        fs::write(folder.join(DESCRIPTION), serde_json::to_vec(&kept).unwrap()).unwrap();
        folder
    }

    #[test]
    fn names_are_a_distribution_and_a_release() {
        assert_eq!(release("debian-6.12"), Some("6.12"));
        for name in ["debian-", "debian-6", "debian-6.1/..", "debian-6.x", "fedora-6.1", "debian-6.1.0", "6.1"] {
            assert!(!is_known(name), "{name}");
        }
    }

    #[test]
    fn a_kernel_that_changed_on_disk_is_refused() {
        let (_dir, store) = store();
        assert_eq!(store.get("debian-6.1").unwrap(), None);
        assert_eq!(store.kept().unwrap(), []);
        let folder = keep(&store, "debian-6.1", b"image");
        let kept = store.get("debian-6.1").unwrap().unwrap();
        assert_eq!(kept.sha256, "6105d6cc76af400325e94d588ce511be5bfdbb73b437dc51eca43917d7a43e3d");
        assert_eq!(store.kept().unwrap(), [kept]);
        fs::write(folder.join(IMAGE), b"imagf").unwrap();
        let message = store.get("debian-6.1").unwrap_err().to_string();
        assert!(message.contains("vmlinuz: is not what was fetched; fetch it again"), "{message}");
        fs::write(folder.join(DESCRIPTION), b"{").unwrap();
        assert!(store.kept().unwrap_err().to_string().contains("--again"));
    }

    #[test]
    fn what_a_killed_fetch_left_is_no_kernel_and_goes() {
        let (_dir, store) = store();
        let folder = store.folder("kernels/.new-debian-6.12/done").unwrap();
        fs::write(folder.join(DESCRIPTION), b"{}").unwrap();
        assert_eq!(store.kept().unwrap(), []);
        assert_eq!(store.get("debian-6.12").unwrap(), None);
        remove_unfinished(&store.root.join("kernels"));
        assert!(!store.root.join("kernels/.new-debian-6.12").exists());
    }

    #[test]
    fn a_second_fetch_waits_for_the_first() {
        let (dir, _store) = store();
        let path = dir.path().join("lock");
        let first = Lock::take(&path, &mut |_| panic!("nobody else has it")).unwrap();
        let (send, receive) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                Lock::take(&path, &mut |text| send.send(text.to_owned()).unwrap()).unwrap();
            });
            assert!(receive.recv().unwrap().contains("waiting"));
            assert!(!other.is_finished());
            drop(first);
        });
    }
}

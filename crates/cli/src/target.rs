//! The file that a verb writes. A failure never costs the user a file: an existing file is replaced only when the new
//! one is complete and no other run is writing it, devices and FIFOs are written to in place, and only files that this
//! run created are removed.

use crate::ui::Ui;
use rustix::fs::{Access, AtFlags, CWD, FlockOperation, OFlags, access, flock, linkat};
use schedlab_base::{Error, Result};
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// The largest number of unfinished files beside one output.
const MOST_PARTS: u32 = 1000;

/// The requested name of an output, and what currently has that name.
pub struct Target {
    path: PathBuf,
    place: Place,
    force: bool,
}

/// What currently has the name.
enum Place {
    /// There is no such file.
    New,
    /// A regular file, under the name that symbolic links lead to.
    Existing(PathBuf, Box<Metadata>),
    /// A device or a FIFO.
    Special(File),
}

/// A file that is being written.
pub struct Draft {
    /// The path that the user gave.
    path: PathBuf,
    /// The path where the file is now; `None` while it has no name, so that nothing is left if this process is killed.
    at: Option<PathBuf>,
    /// The file that this run created; `None` for a device or a FIFO.
    made: Option<File>,
    /// The path that it gets when it is complete; `None` if it has that path already.
    name: Option<PathBuf>,
    force: bool,
}

impl Target {
    /// Prepares to write the file with this name. A device or a FIFO is opened at once, which waits for a FIFO's
    /// reader.
    ///
    /// # Errors
    /// When the name has something that could be lost and `force` is not set, or nothing can be written there.
    pub fn new(path: &Path, force: bool) -> Result<Self> {
        let refuse = |what: &str, mend: &str| Err(Error::input(what).mend(mend).file(path));
        if path == Path::new("-") {
            return refuse(
                "cannot be standard output, where the results go",
                "name a file; ./- is a file of this name",
            );
        }
        let failed = |e: io::Error| Error::input(format!("cannot be written: {e}")).file(path);
        let place = match path.metadata() {
            Ok(meta) if meta.is_dir() => return refuse("is a folder", "name a file in it"),
            Ok(meta) if !force && keeps_what_it_has(&meta) => return Err(exists(path)),
            Ok(meta) if meta.is_file() => {
                if is_being_written(path) {
                    return refuse("is being written by another run", "choose another name or end that run");
                }
                let name = if path.is_symlink() { path.canonicalize() } else { Ok(path.to_owned()) };
                Place::Existing(name.map_err(failed)?, Box::new(meta))
            }
            Ok(_) => Place::Special(OpenOptions::new().write(true).open(path).map_err(failed)?),
            Err(_) if path.is_symlink() => {
                return refuse("is a symbolic link that leads nowhere", "remove it or choose another name");
            }
            // Any other problem with the name shows when the file is created.
            Err(_) => Place::New,
        };
        // What a long run has found must not be lost because its folder is missing or read-only.
        let folder = match &place {
            Place::New => Some(folder_of(path)),
            Place::Existing(name, _) => Some(folder_of(name)),
            Place::Special(_) => None,
        };
        folder.map_or(Ok(()), |folder| access(folder, Access::WRITE_OK)).map_err(|e| cannot_create(path, &e.into()))?;
        Ok(Self { path: path.to_owned(), place, force })
    }

    /// Prepares to write two files, each if it is named.
    ///
    /// # Errors
    /// Those of [`Target::new`], and when both names are one file's, of which only one would be left.
    pub fn two(first: Option<&Path>, second: Option<&Path>, force: bool) -> Result<[Option<Self>; 2]> {
        let target = |path: Option<&Path>| path.map(|path| Self::new(path, force)).transpose();
        let both = [target(first)?, target(second)?];
        match &both {
            [Some(first), Some(second)] if first.is_also(second) => {
                let twice = Error::input("is given for two outputs").mend("give each a file of its own");
                Err(twice.file(&second.path))
            }
            _ => Ok(both),
        }
    }

    /// Whether the other name is this file's, too. Devices and FIFOs take both outputs.
    fn is_also(&self, other: &Self) -> bool {
        let here = |meta: &Metadata| (meta.dev(), meta.ino());
        match (&self.place, &other.place) {
            (Place::Existing(_, own), Place::Existing(_, meta)) => here(own) == here(meta),
            (Place::New, Place::New) => {
                let folder = |path: &Path| folder_of(path).metadata().ok().as_ref().map(here);
                let (own, path) = (&self.path, &other.path);
                own.file_name() == path.file_name() && folder(own) == folder(path)
            }
            _ => false,
        }
    }

    /// Writes the file completely or not at all.
    ///
    /// # Errors
    /// When `fill` fails, the file cannot be created, or another process has created its name meanwhile.
    pub fn write<T>(self, fill: impl FnOnce(File) -> Result<T>) -> Result<T> {
        let Self { path, place, force } = self;
        let (draft, file) = match place {
            Place::New => Draft::unnamed(&path, path.clone(), None, force),
            Place::Existing(name, like) => Draft::unnamed(&path, name, Some(&like), force),
            Place::Special(file) => return fill(file),
        }?;
        let result = fill(file).and_then(|done| draft.complete().map(|()| done));
        if result.is_err() {
            draft.remove();
        }
        result
    }

    /// Writes these bytes as the file, completely or not at all.
    ///
    /// # Errors
    /// Those of [`Target::write`].
    pub fn write_all(self, bytes: &[u8]) -> Result<()> {
        let path = self.path.clone();
        self.write(|mut file| file.write_all(bytes).map_err(|e| Error::system("cannot be written", &e).file(path)))
    }

    /// The same, and says that the file was written.
    ///
    /// # Errors
    /// Those of [`Target::write`].
    pub fn write_and_say(self, bytes: &[u8], ui: &Ui) -> Result<()> {
        let path = self.path.clone();
        self.write_all(bytes)?;
        ui.note(format!("wrote {}", path.display()));
        Ok(())
    }

    /// Starts a file that can be found and read even if this process is killed. It is under its own name if that is
    /// new, and locked so that no other run replaces it; or otherwise beside the existing file until
    /// [`Draft::complete`].
    ///
    /// # Errors
    /// When the file cannot be created, or another process has created its name meanwhile.
    pub fn begin(self) -> Result<(Draft, File)> {
        let Self { path, place, force } = self;
        match place {
            Place::New => {
                let file = create(&path, 0o666).map_err(|e| cannot_create(&path, &e))?;
                // Not every file system has locks.
                let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
                let made = file.try_clone().map_err(|e| cannot_create(&path, &e))?;
                Ok((Draft { at: Some(path.clone()), path, made: Some(made), name: None, force }, file))
            }
            Place::Existing(name, like) => Draft::beside(&path, name, "", Some(&like), force),
            Place::Special(file) => Ok((Draft { at: Some(path.clone()), path, made: None, name: None, force }, file)),
        }
    }
}

impl Draft {
    /// Creates a draft without a name in the folder of its final name. Where the file system or a missing /proc does
    /// not allow that, it has a name.
    fn unnamed(path: &Path, name: PathBuf, like: Option<&Metadata>, force: bool) -> Result<(Self, File)> {
        let flags = OFlags::TMPFILE.bits().cast_signed();
        let mode = if like.is_some() { 0o600 } else { 0o666 };
        match OpenOptions::new().write(true).custom_flags(flags).mode(mode).open(folder_of(&name)) {
            Ok(file) if own_path(&file).exists() => {
                like.inspect(|like| resemble(&file, like));
                let made = Some(file.try_clone().map_err(|e| cannot_create(path, &e))?);
                Ok((Self { path: path.to_owned(), at: None, made, name: Some(name), force }, file))
            }
            _ => Self::beside(path, name, ".", like, force),
        }
    }

    /// Creates a draft in the folder of its final name, called PREFIX NAME.part. It gets the owner and the mode of the
    /// file that it will replace.
    fn beside(path: &Path, name: PathBuf, prefix: &str, like: Option<&Metadata>, force: bool) -> Result<(Self, File)> {
        let failed = |e: io::Error| cannot_create(path, &e);
        let mode = if like.is_some() { 0o600 } else { 0o666 };
        let (at, file) = with_part(&name, prefix, |part| create(part, mode)).map_err(failed)?;
        like.inspect(|like| resemble(&file, like));
        let made = Some(file.try_clone().map_err(failed)?);
        Ok((Self { path: path.to_owned(), at: Some(at), made, name: Some(name), force }, file))
    }

    /// Where the file is until it is complete, if that is not its final name.
    pub fn part(&self) -> Option<&Path> {
        self.name.as_ref().and(self.at.as_deref())
    }

    /// Gives the complete file its final name.
    ///
    /// # Errors
    /// When that fails. The file then stays where it is.
    pub fn complete(&self) -> Result<()> {
        let Some(name) = &self.name else { return Ok(()) };
        let failed = |e: io::Error| Error::system("cannot be replaced", &e).file(&self.path);
        let unnamed = self.made.as_ref().filter(|_| self.at.is_none());
        if let Some(file) = unnamed.filter(|_| !self.force) {
            return link(file, name).map_err(|e| cannot_create(&self.path, &e));
        }
        if !self.force {
            // Two runs can find the name free, but only one of them can create it.
            create(name, 0o600).map_err(|e| cannot_create(&self.path, &e))?;
        } else if name.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
            return Err(failed(io::Error::other("it is no longer a regular file")));
        }
        let at = match (&self.at, unnamed) {
            (None, Some(file)) => with_part(name, ".", |part| link(file, part)).map_err(failed)?.0,
            (at, _) => at.clone().expect("a draft has a name or a file"),
        };
        fs::rename(&at, name).map_err(|e| {
            if unnamed.is_some() {
                // If it cannot be removed, it stays, which does no harm.
                let _ = fs::remove_file(&at);
            }
            if !self.force {
                // Removes the empty file created above. If that fails, an empty file is left, which does no harm.
                let _ = fs::remove_file(name);
            }
            failed(e)
        })
    }

    /// Ends a draft that could not be completed. It is removed if it has at most `useless` bytes; otherwise it stays,
    /// and its path is returned.
    pub fn abandon(self, useless: u64) -> Option<PathBuf> {
        let length = self.made.as_ref()?.metadata().map_or(0, |meta| meta.len());
        if length > useless {
            return self.at;
        }
        self.remove();
        None
    }

    /// Removes the file, if the file at that path is the one that this run created.
    fn remove(&self) {
        let here = |meta: Metadata| (meta.dev(), meta.ino());
        let made = self.made.as_ref().and_then(|file| file.metadata().ok()).map(here);
        let Some(at) = self.at.as_ref().filter(|_| made.is_some()) else { return };
        if at.symlink_metadata().ok().map(here) == made {
            // If it cannot be removed, it stays, which does no harm.
            let _ = fs::remove_file(at);
        }
    }
}

/// Creates a file where nothing exists, not even a symbolic link.
fn create(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

/// Makes a file at the first free path PREFIX NAME.part beside `name`.
fn with_part<T>(name: &Path, prefix: &str, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(PathBuf, T)> {
    let last = name.file_name().ok_or(ErrorKind::InvalidFilename)?;
    let mut n = 1;
    loop {
        let mut part = OsString::from(prefix);
        part.push(last);
        part.push(if n == 1 { ".part".to_owned() } else { format!(".{n}.part") });
        let at = name.with_file_name(part);
        match make(&at) {
            // It belongs to a run that was killed, or to one that is still running.
            Err(e) if e.kind() == ErrorKind::AlreadyExists && n < MOST_PARTS => n += 1,
            made => return made.map(|made| (at, made)),
        }
    }
}

/// The path of an open file that has no other.
fn own_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Gives a file without a name this name, which must be free.
fn link(file: &File, name: &Path) -> io::Result<()> {
    Ok(linkat(CWD, own_path(file), CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

/// Gives a file the owner and the mode of another.
fn resemble(file: &File, like: &Metadata) {
    // Not every user may give files away, and not every file system has owners and modes.
    let _ = fchown(file, Some(like.uid()), Some(like.gid()));
    let _ = file.set_permissions(Permissions::from_mode(like.mode() & 0o777));
}

/// Whether writing there would lose something. A FIFO, a terminal or `/dev/null` has nothing.
fn keeps_what_it_has(meta: &Metadata) -> bool {
    let kind = meta.file_type();
    !(kind.is_char_device() || kind.is_fifo())
}

/// Whether another run, which holds a lock on it, is writing this file.
fn is_being_written(path: &Path) -> bool {
    let locked = |file| flock(file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK);
    File::open(path).is_ok_and(locked)
}

fn exists(path: &Path) -> Error {
    Error::input("exists already").mend("choose another name or give --force").file(path)
}

fn cannot_create(path: &Path, error: &io::Error) -> Error {
    let refused = Error::input(format!("cannot be created: {error}")).file(path);
    match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        ErrorKind::NotFound => refused.mend("make its folder first, or choose another"),
        ErrorKind::PermissionDenied => refused.mend("choose a folder that you may write to"),
        _ => refused,
    }
}

/// The folder that a file of this name is in.
fn folder_of(name: &Path) -> &Path {
    name.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &Path) -> usize {
        folder.read_dir().unwrap().count()
    }

    #[test]
    fn two_outputs_are_two_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("old"), "x").unwrap();
        std::os::unix::fs::symlink(path("old"), path("link")).unwrap();
        let message = |a: &str, b: &str| Target::two(Some(&path(a)), Some(&path(b)), true).err().map(|e| e.to_string());
        for (a, b) in [("new", "new"), ("new", "./new"), ("old", "link")] {
            assert!(
                message(a, b).unwrap().ends_with("is given for two outputs; give each a file of its own"),
                "{a} {b}"
            );
        }
        assert_eq!((message("new", "other"), message("new", "old")), (None, None));
        assert!(Target::two(Some(Path::new("/dev/null")), Some(Path::new("/dev/null")), false).is_ok());
        assert!(matches!(Target::two(Some(&path("new")), None, false), Ok([Some(_), None])));
    }

    #[test]
    fn a_name_that_is_created_meanwhile_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let (before, during) = (Target::new(&path, false).unwrap(), Target::new(&path, false).unwrap());
        let taken = |_| fs::write(&path, "theirs").map_err(|e| Error::system("the other's write", &e));
        let error = during.write(taken).unwrap_err();
        assert!(error.to_string().contains("exists already"), "{error}");
        assert!(before.begin().is_err());
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), files(folder.path())), ("theirs", 1));
    }

    #[test]
    fn a_file_that_is_written_whole_has_no_name_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        for (force, text) in [(false, "first"), (true, "second")] {
            let seen = Target::new(&path, force).unwrap().write(|mut file| {
                let _ = file.write_all(text.as_bytes());
                Ok(files(folder.path()))
            });
            // As before: none, and then the first file.
            assert_eq!(seen.unwrap(), usize::from(force));
            assert_eq!((fs::read_to_string(&path).unwrap().as_str(), files(folder.path())), (text, 1));
        }
    }

    #[test]
    fn a_folder_that_is_missing_is_found_out_before_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let message = |path: &Path| Target::new(path, false).err().map(|e| e.to_string());
        let missing = message(&folder.path().join("missing/t"));
        assert!(missing.is_some_and(|m| m.contains("missing/t: cannot be created: No such file")));
        assert_eq!(message(&folder.path().join("t")), None);
        assert_eq!(message(Path::new("t")), None);
    }

    #[test]
    fn a_dash_is_not_taken_for_a_file() {
        let message = |path: &str| Target::new(Path::new(path), false).err().map(|e| e.to_string());
        assert!(message("-").is_some_and(|m| m.contains("cannot be standard output")));
        assert_eq!(message("./-"), None);
    }

    #[test]
    fn only_files_that_this_run_created_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let (draft, _) = Target::new(&path, false).unwrap().begin().unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, "theirs").unwrap();
        assert_eq!(draft.abandon(u64::MAX), None);
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        let (draft, _) = Target::new(&path, true).unwrap().begin().unwrap();
        assert_eq!(draft.abandon(u64::MAX), None);
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), files(folder.path())), ("theirs", 1));
    }

    #[test]
    fn a_file_that_another_run_is_writing_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        let (draft, file) = Target::new(&path, false).unwrap().begin().unwrap();
        let message = || Target::new(&path, true).err().map(|e| e.to_string());
        assert!(message().is_some_and(|m| m.contains("is being written by another run")));
        draft.complete().unwrap();
        drop((draft, file));
        assert_eq!(message(), None);
    }

    #[test]
    fn unfinished_files_of_earlier_runs_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        fs::write(&path, "old").unwrap();
        let parts: Vec<_> = (0..3).map(|_| Target::new(&path, true).unwrap().begin().unwrap().0).collect();
        let names: Vec<_> = parts.iter().map(|draft| draft.part().unwrap().file_name().unwrap()).collect();
        assert_eq!(names, ["t.part", "t.2.part", "t.3.part"]);
    }
}

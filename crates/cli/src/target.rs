//! The file that a verb writes. Whatever fails, nothing of the user's is lost: an existing file is replaced only once
//! its successor is complete, a device or a FIFO is written to as it is, and only files that this run made are removed.

use schedlab_base::{Error, Result};
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// As many unfinished files may lie beside one output.
const MOST_PARTS: u32 = 1000;

/// The name that an output is to have, and what is there now.
pub struct Target {
    path: PathBuf,
    place: Place,
    force: bool,
}

/// What the name stands for.
enum Place {
    /// Nothing yet.
    New,
    /// A regular file, by the name that symbolic links lead to.
    Existing(PathBuf, Box<Metadata>),
    /// A device or a FIFO.
    Special(File),
}

/// A file that is being written.
pub struct Draft {
    /// What the user calls it.
    path: PathBuf,
    /// Where it is now.
    at: PathBuf,
    /// The file that this run made; `None` for a device or a FIFO.
    made: Option<File>,
    /// The name that it gets once it is complete; `None` if it has that name already.
    name: Option<PathBuf>,
    force: bool,
}

impl Target {
    /// The file of that name. A device or a FIFO is opened at once, which waits for a FIFO's reader.
    ///
    /// # Errors
    /// When something of that name exists and `force` is not set, or when it cannot be written.
    pub fn new(path: &Path, force: bool) -> Result<Self> {
        let refuse = |what: &str, mend: &str| Err(Error::input(what).mend(mend).file(path));
        let failed = |e: io::Error| Error::input(format!("cannot be written: {e}")).file(path);
        let place = match path.metadata() {
            Ok(meta) if meta.is_dir() => return refuse("is a folder", "name a file in it"),
            Ok(_) if !force => return Err(exists(path)),
            Ok(meta) if meta.is_file() => {
                let name = if path.is_symlink() { path.canonicalize() } else { Ok(path.to_owned()) };
                Place::Existing(name.map_err(failed)?, Box::new(meta))
            }
            Ok(_) => Place::Special(OpenOptions::new().write(true).open(path).map_err(failed)?),
            Err(_) if path.is_symlink() => {
                return refuse("is a symbolic link that leads nowhere", "remove it or choose another name");
            }
            // What else is wrong with the name shows when the file is created.
            Err(_) => Place::New,
        };
        Ok(Self { path: path.to_owned(), place, force })
    }

    /// Writes the file: complete, or not at all.
    ///
    /// # Errors
    /// When `fill` fails, when the file cannot be created, or when its name has been taken meanwhile.
    pub fn write<T>(self, fill: impl FnOnce(File) -> Result<T>) -> Result<T> {
        let Self { path, place, force } = self;
        let (draft, file) = match place {
            Place::New => Draft::beside(&path, path.clone(), ".", None, force),
            Place::Existing(name, like) => Draft::beside(&path, name, ".", Some(&like), force),
            Place::Special(file) => return fill(file),
        }?;
        let result = fill(file).and_then(|done| draft.complete().map(|()| done));
        if result.is_err() {
            draft.remove();
        }
        result
    }

    /// Writes these bytes as the file: all of them, or nothing.
    ///
    /// # Errors
    /// As [`Target::write`].
    pub fn write_all(self, bytes: &[u8]) -> Result<()> {
        let path = self.path.clone();
        self.write(|mut file| file.write_all(bytes).map_err(|e| Error::system("cannot be written", &e).file(path)))
    }

    /// Begins a file that can be found and read even if this process is killed: under its own name if that is new,
    /// else beside the existing file until [`Draft::complete`].
    ///
    /// # Errors
    /// When the file cannot be created, or its name has been taken meanwhile.
    pub fn begin(self) -> Result<(Draft, File)> {
        let Self { path, place, force } = self;
        match place {
            Place::New => {
                let file = create(&path, 0o666).map_err(|e| cannot_create(&path, &e))?;
                let made = file.try_clone().map_err(|e| cannot_create(&path, &e))?;
                Ok((Draft { at: path.clone(), path, made: Some(made), name: None, force }, file))
            }
            Place::Existing(name, like) => Draft::beside(&path, name, "", Some(&like), force),
            Place::Special(file) => Ok((Draft { at: path.clone(), path, made: None, name: None, force }, file)),
        }
    }
}

impl Draft {
    /// A draft in the folder of the name that it is to get, called PREFIX NAME.part; it takes over the owner and the
    /// mode of the file that it is to replace.
    fn beside(path: &Path, name: PathBuf, prefix: &str, like: Option<&Metadata>, force: bool) -> Result<(Self, File)> {
        let failed = |e: io::Error| cannot_create(path, &e);
        let last = name.file_name().ok_or_else(|| failed(ErrorKind::InvalidFilename.into()))?;
        let mode = if like.is_some() { 0o600 } else { 0o666 };
        let mut n = 1;
        let (at, file) = loop {
            let mut part = OsString::from(prefix);
            part.push(last);
            part.push(if n == 1 { ".part".to_owned() } else { format!(".{n}.part") });
            let at = name.with_file_name(part);
            match create(&at, mode) {
                // Of a run that was killed, or of one that is under way.
                Err(e) if e.kind() == ErrorKind::AlreadyExists && n < MOST_PARTS => n += 1,
                made => break (at, made.map_err(failed)?),
            }
        };
        if let Some(like) = like {
            // Not every user may give files away, and not every file system has owners and modes.
            let _ = fchown(&file, Some(like.uid()), Some(like.gid()));
            let _ = file.set_permissions(Permissions::from_mode(like.mode() & 0o777));
        }
        let made = Some(file.try_clone().map_err(failed)?);
        Ok((Self { path: path.to_owned(), at, made, name: Some(name), force }, file))
    }

    /// Where the file is until it is complete, if that is beside its own name.
    pub fn part(&self) -> Option<&Path> {
        self.name.as_ref().map(|_| self.at.as_path())
    }

    /// Gives the complete file its name.
    ///
    /// # Errors
    /// When that fails; the file then stays where it is.
    pub fn complete(&self) -> Result<()> {
        let Some(name) = &self.name else { return Ok(()) };
        let failed = |e: io::Error| Error::system("cannot be replaced", &e).file(&self.path);
        if !self.force {
            // Two runs can find the name free, but only one of them can create it.
            create(name, 0o600).map_err(|e| cannot_create(&self.path, &e))?;
        } else if name.symlink_metadata().is_ok_and(|meta| !meta.is_file()) {
            return Err(failed(io::Error::other("it is no longer a regular file")));
        }
        fs::rename(&self.at, name).map_err(|e| {
            if !self.force {
                // The empty file from above; one that cannot be removed is no worse than one that is left.
                let _ = fs::remove_file(name);
            }
            failed(e)
        })
    }

    /// Ends a draft that could not be completed: one of at most `useless` bytes is removed. Returns where it is if it
    /// stays.
    pub fn abandon(self, useless: u64) -> Option<PathBuf> {
        let length = self.made.as_ref()?.metadata().map_or(0, |meta| meta.len());
        if length > useless {
            return Some(self.at);
        }
        self.remove();
        None
    }

    /// Removes the file, if this run made what has its name.
    fn remove(&self) {
        let here = |meta: Metadata| (meta.dev(), meta.ino());
        let made = self.made.as_ref().and_then(|file| file.metadata().ok()).map(here);
        if made.is_some() && self.at.symlink_metadata().ok().map(here) == made {
            // A file that cannot be removed is no worse than one that is left.
            let _ = fs::remove_file(&self.at);
        }
    }
}

/// Creates a file where there is nothing, not even a symbolic link.
fn create(path: &Path, mode: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn files(folder: &Path) -> usize {
        folder.read_dir().unwrap().count()
    }

    #[test]
    fn a_name_that_is_taken_meanwhile_is_refused() {
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
    fn only_what_this_run_made_is_removed() {
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
    fn unfinished_files_of_earlier_runs_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        fs::write(&path, "old").unwrap();
        let parts: Vec<_> = (0..3).map(|_| Target::new(&path, true).unwrap().begin().unwrap().0).collect();
        let names: Vec<_> = parts.iter().map(|draft| draft.part().unwrap().file_name().unwrap()).collect();
        assert_eq!(names, ["t.part", "t.2.part", "t.3.part"]);
    }
}

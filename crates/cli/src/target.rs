//! A file to be written, under a name of its own until it is whole.

use schedlab_base::{Error, Result};
use std::path::{Path, PathBuf};

/// The file to write: what fails leaves nothing behind and takes nothing away.
pub struct Target<'a> {
    path: &'a Path,
    part: PathBuf,
}

impl<'a> Target<'a> {
    /// The file of that name; a device or a pipe (/dev/null) is written as it is.
    pub fn of(path: &'a Path) -> Self {
        let special = path.metadata().is_ok_and(|m| !m.is_file());
        let part = match path.file_name() {
            Some(name) if !special => {
                let mut part = std::ffi::OsString::from(".");
                part.push(name);
                part.push(format!(".{}.part", std::process::id()));
                path.with_file_name(part)
            }
            _ => path.to_path_buf(),
        };
        Self { path, part }
    }

    /// Fills the file, which bears its own name once `fill` has held.
    ///
    /// # Errors
    /// When `fill` fails, or the file cannot be given its name.
    pub fn write<T>(&self, fill: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        let result = fill(&self.part);
        if self.part != self.path {
            match &result {
                Ok(_) => std::fs::rename(&self.part, self.path)
                    .map_err(|e| Error::system("giving the file its name", &e).file(self.path))?,
                // A part that cannot be removed is no worse than one that is left.
                Err(_) => drop(std::fs::remove_file(&self.part)),
            }
        }
        result
    }
}

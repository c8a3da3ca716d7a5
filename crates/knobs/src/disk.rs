//! Files that are whole on disk or not there at all, whatever happens.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// Replaces a file by this text: it is written beside it, brought to the disk, given its name, and the name is brought
/// to the disk. A crash at any moment leaves the old file or the new one.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file = File::create(&part)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if let Err(e) = written.and_then(|()| fs::rename(&part, path)) {
        // If it cannot be removed, the next journal replaces it.
        let _ = fs::remove_file(&part);
        return Err(e);
    }
    sync_names(path)
}

/// Removes a file; nothing happens if there is none.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => sync_names(path),
    }
}

/// Brings the names in a file's directory to the disk.
pub(crate) fn sync_names(path: &Path) -> io::Result<()> {
    File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
}

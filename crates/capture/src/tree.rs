//! For tests: files that stand in for those of a kernel.

use std::fs;
use std::path::Path;

/// Writes a file below a directory, with the directories that it needs.
pub(crate) fn write(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A temporary directory with these files.
pub(crate) fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    files.iter().for_each(|(path, text)| write(dir.path(), path, text));
    dir
}

//! Paths as text, for JSON, which has no place for other bytes.

use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};

/// A path as text. Bytes of a name that are not UTF-8 become U+FFFD.
#[derive(Clone, Copy, Debug)]
pub struct PathText<'a>(pub &'a Path);

impl Serialize for PathText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.display())
    }
}

/// Serialises a path as [`PathText`].
///
/// # Errors
/// Those of the serialiser.
pub fn path_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    PathText(path).serialize(serializer)
}

/// Serialises paths as [`PathText`].
///
/// # Errors
/// Those of the serialiser.
pub fn path_texts<'a, S: Serializer>(
    paths: impl IntoIterator<Item = &'a PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.into_iter().map(|path| PathText(path)))
}

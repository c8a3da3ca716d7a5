//! What a trace is read from: a file or a pipe, of which the first bytes are known.

use schedlab_base::{Error, Result};
use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// As many first bytes are looked at to recognise a format.
const HEAD: u64 = 16;

/// An input whose first bytes were looked at and are still to be read.
pub struct Input {
    name: PathBuf,
    head: Vec<u8>,
    bytes: Bytes,
}

/// Where the bytes are.
pub(crate) enum Bytes {
    /// A regular file, at its start, and its length.
    File(File, u64),
    /// A pipe, from its first byte on.
    Pipe(Box<dyn Read + Send>),
}

impl Input {
    /// Opens a file or a named pipe; `-` is standard input.
    ///
    /// # Errors
    /// When it cannot be read, or is a folder.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path == Path::new("-") {
            return Self::pipe(Box::new(std::io::stdin()), "standard input");
        }
        let unreadable = |e: std::io::Error| Error::input(format!("cannot be read: {e}")).file(path);
        let mut file = File::open(path).map_err(unreadable)?;
        let status = file.metadata().map_err(unreadable)?;
        if status.is_dir() {
            let what = "is a folder, as perf record --threads writes; one file would be right";
            return Err(Error::input(what).mend("record without --threads").file(path));
        }
        if !status.is_file() {
            return Self::pipe(Box::new(file), path);
        }
        let mut head = Vec::new();
        (&mut file).take(HEAD).read_to_end(&mut head).map_err(unreadable)?;
        file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        Ok(Self { name: path.to_path_buf(), head, bytes: Bytes::File(file, status.len()) })
    }

    /// Takes what comes out of a pipe; `name` stands for it in messages.
    ///
    /// # Errors
    /// When its first bytes cannot be read.
    pub fn pipe(mut pipe: Box<dyn Read + Send>, name: impl AsRef<Path>) -> Result<Self> {
        let name = name.as_ref().to_path_buf();
        let mut head = Vec::new();
        let read = pipe.by_ref().take(HEAD).read_to_end(&mut head);
        read.map_err(|e| Error::input(format!("cannot be read: {e}")).file(&name))?;
        let whole = Cursor::new(head.clone()).chain(pipe);
        Ok(Self { name, head, bytes: Bytes::Pipe(Box::new(whole)) })
    }

    /// Whether what has this name can be read but once: standard input or a named pipe.
    #[must_use]
    pub fn is_read_once(path: &Path) -> bool {
        path == Path::new("-") || std::fs::metadata(path).is_ok_and(|file| !file.is_file() && !file.is_dir())
    }

    /// Its name in messages.
    #[must_use]
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// Whether it can be read but once.
    pub(crate) fn is_pipe(&self) -> bool {
        matches!(self.bytes, Bytes::Pipe(_))
    }

    /// Its first bytes; fewer than [`HEAD`] where it is shorter.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Its name, and all its bytes.
    pub(crate) fn into_parts(self) -> (PathBuf, Bytes) {
        (self.name, self.bytes)
    }
}

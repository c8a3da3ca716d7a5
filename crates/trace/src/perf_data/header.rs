//! The head of a perf.data file: its magic number and the places of its sections.

use super::cursor::Cursor;
use schedlab_base::{Error, Result};

/// `PERFILE2` as a little-endian machine writes it.
const MAGIC: &[u8; 8] = b"PERFILE2";
/// The same from a big-endian machine.
const MAGIC_SWAPPED: &[u8; 8] = b"2ELIFREP";
/// The first version of the format, obsolete since Linux 3.6 (2012).
const MAGIC_OLD: &[u8; 8] = b"PERFFILE";

/// The size of the header of a file, and of the shorter one of a pipe.
pub(super) const FILE_SIZE: usize = 104;
pub(super) const PIPE_SIZE: usize = 16;

/// A range of bytes in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) offset: u64,
    pub(super) size: u64,
}

impl Section {
    pub(super) fn read(from: &mut Cursor) -> Option<Self> {
        Some(Self { offset: from.u64()?, size: from.u64()? })
    }
}

/// The content of the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// perf wrote to a file: sections have known places.
    File { attr_size: u64, attrs: Section, data: Section, features: [u64; 4] },
    /// perf wrote to a pipe: everything is a record.
    Pipe,
}

/// Whether these first bytes of a file (eight are enough) belong to any perf.data file, including one that is refused
/// later (another byte order, or the old version).
#[must_use]
pub fn is_perf_data(first_bytes: &[u8]) -> bool {
    [MAGIC, MAGIC_SWAPPED, MAGIC_OLD].iter().any(|magic| first_bytes.starts_with(*magic))
}

impl Head {
    /// Reads the head from the first [`FILE_SIZE`] bytes of a file, or from fewer if the file is shorter.
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        let size = header_size(bytes)?;
        if size == PIPE_SIZE as u64 {
            return Ok(Self::Pipe);
        }
        Self::read_file(&mut Cursor::new(&bytes[PIPE_SIZE..])).ok_or_else(|| ends_within(bytes))
    }

    /// Checks the head of a stream from a pipe: its first [`PIPE_SIZE`] bytes.
    pub(super) fn check_pipe(bytes: &[u8]) -> Result<()> {
        if header_size(bytes)? == PIPE_SIZE as u64 {
            return Ok(());
        }
        Err(Error::input("a perf.data made as a file cannot be read out of a pipe")
            .mend("give its name, or record with -o -"))
    }

    fn read_file(from: &mut Cursor) -> Option<Self> {
        let attr_size = from.u64()?;
        let (attrs, data, _types) = (Section::read(from)?, Section::read(from)?, Section::read(from)?);
        let features = [from.u64()?, from.u64()?, from.u64()?, from.u64()?];
        Some(Self::File { attr_size, attrs, data, features })
    }
}

/// The header's size as the header itself states it, which differs between pipes and files.
fn header_size(bytes: &[u8]) -> Result<u64> {
    if bytes.is_empty() {
        return Err(Error::input("the file is empty"));
    }
    let mut from = Cursor::new(bytes);
    let magic = from.take(8).unwrap_or(bytes);
    if magic == MAGIC_SWAPPED {
        return Err(Error::input("this perf.data comes from a big-endian machine, which is not read"));
    }
    if magic == MAGIC_OLD {
        return Err(Error::input("this perf.data has version 1 of the format (before Linux 3.6), which is not read"));
    }
    if magic != MAGIC {
        return Err(Error::input("no perf.data: it does not begin with \"PERFILE2\""));
    }
    let size = from.u64().ok_or_else(|| ends_within(bytes))?;
    if size != PIPE_SIZE as u64 && size < FILE_SIZE as u64 {
        return Err(Error::input(format!("the perf.data has a header of {size} bytes; {FILE_SIZE} would be right")));
    }
    Ok(size)
}

fn ends_within(bytes: &[u8]) -> Error {
    Error::input(format!("the perf.data ends within its header, after {} bytes", bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: &[u8]) -> String {
        Head::read(bytes).unwrap_err().to_string()
    }

    #[test]
    fn other_files_are_recognised_and_refused() {
        assert!(message(b"").contains("empty"));
        assert!(message(b"PERF").contains("does not begin"));
        assert!(message(b"2ELIFREP\0\0\0\0\0\0\0\x68").contains("big-endian"));
        assert!(message(b"PERFFILE").contains("version 1"));
        assert!(message(b"PERFILE2").contains("ends within its header"));
        assert!(message(b"PERFILE2\x20\0\0\0\0\0\0\0").contains("32 bytes"));
        assert!(message(b"PERFILE2\x68\0\0\0\0\0\0\0\x90").contains("ends within its header"));
        assert_eq!(Head::read(b"PERFILE2\x10\0\0\0\0\0\0\0").unwrap(), Head::Pipe);
        assert!(is_perf_data(b"PERFFILEx") && !is_perf_data(b"PERFILE") && !is_perf_data(b"ARROW1"));
    }
}

//! The journal: the old value of every knob that is changed, on disk before the first change.
//!
//! It is a line with a checksum and a JSON document, so that a person can read it and put values back by hand.

use crate::disk;
use crate::owner::Owner;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;

/// The first words of the file.
const MAGIC: &str = "schedlab-journal 1";

/// One knob, before it was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: String,
    /// The value that it is to have again.
    pub old: String,
    /// The value that it was given, as the kernel then showed it; none as long as that is not known.
    pub set: Option<String>,
}

/// The old values of all knobs that are changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    /// The boot in which they were changed: another one begins with its own values.
    pub boot: String,
    /// The process for which they were changed; none if a user did it by hand, until the user restores them.
    pub owner: Option<Owner>,
    /// The knobs, in the order in which they were first changed.
    pub records: Vec<Record>,
}

/// What a file of that name holds.
pub(crate) enum Found {
    /// There is none.
    Nothing,
    /// A journal.
    Whole(Journal),
    /// Something else, with what is wrong with it.
    Damaged(String),
}

impl Journal {
    /// Writes it to the disk.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let body = serde_json::to_string_pretty(self).expect("plain data is always JSON");
        let head = format!("{MAGIC} {:08x} {}", crc32fast::hash(body.as_bytes()), body.len());
        disk::replace(path, &format!("{head}\n{body}\n"))
    }

    /// Reads it.
    pub(crate) fn read(path: &Path) -> io::Result<Found> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(e) => return Err(e),
        };
        Ok(Self::parse(&bytes).map_or_else(|why| Found::Damaged(why.to_owned()), Found::Whole))
    }

    fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is no text")?;
        let (head, body) = text.split_once('\n').ok_or("it is cut off")?;
        let head = head.strip_prefix(MAGIC).ok_or("its first line is not that of a journal")?;
        let (sum, length) = head.trim_start().split_once(' ').ok_or("its first line is not that of a journal")?;
        let length: usize = length.parse().map_err(|_| "its first line is not that of a journal")?;
        let body = body.get(..length).ok_or("it is cut off")?;
        if format!("{:08x}", crc32fast::hash(body.as_bytes())) != sum {
            return Err("its checksum is wrong");
        }
        serde_json::from_str(body).map_err(|_| "its document is not that of a journal")
    }

    /// The record of a knob.
    #[must_use]
    pub fn record(&self, path: &str) -> Option<&Record> {
        self.records.iter().find(|record| record.path == path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal() -> Journal {
        let record = |name: &str, set: Option<&str>| Record {
            name: name.to_owned(),
            path: format!("/proc/sys/{name}"),
            old: "60".to_owned(),
            set: set.map(str::to_owned),
        };
        let owner = Owner { pid: 7, start: 9, name: "tune".to_owned() };
        Journal { boot: "b".to_owned(), owner: Some(owner), records: vec![record("a", None), record("b", Some("1"))] }
    }

    #[test]
    fn a_journal_comes_back_as_it_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        assert!(matches!(Journal::read(&path).unwrap(), Found::Nothing));
        journal().write(&path).unwrap();
        assert!(matches!(Journal::read(&path).unwrap(), Found::Whole(found) if found == journal()));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left beside it");
        disk::remove(&path).unwrap();
        disk::remove(&path).unwrap();
    }

    #[test]
    fn a_cut_or_changed_journal_is_noticed_at_every_byte() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        journal().write(&path).unwrap();
        let bytes = fs::read(&path).unwrap();
        // The last byte is a newline, which is no part of the document.
        for length in 0..bytes.len() - 1 {
            assert!(Journal::parse(&bytes[..length]).is_err(), "cut at {length}");
        }
        for at in 0..bytes.len() - 1 {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(Journal::parse(&changed).is_err(), "changed at {at}");
        }
    }
}

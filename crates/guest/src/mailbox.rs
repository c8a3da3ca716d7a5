//! What host and guest say to each other: the job, and its results in memory that both sides share.
//!
//! The memory is a file on the host and a PCI device in the guest (QEMU's `ivshmem-plain`), which maps it through
//! sysfs. That takes no driver, so no module, in any kernel with PCI; it raises no interrupts, so that it does not
//! disturb time; and it is as fast as memory.
//!
//! The first page holds, in little-endian numbers of eight bytes, what the guest has reached, and the length of the
//! results. These begin at the second page: a JSON text, then the contents of the files that it lists. The host
//! trusts none of it.

use schedlab_base::{CpuPlace, Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The size of the shared memory. Only pages that the guest writes take memory.
pub(crate) const BYTES: u64 = 1 << 30;
/// Where the results begin.
const BODY: u64 = 4096;
/// The largest JSON text.
const MOST_TEXT: u64 = 16 << 20;

/// How far the guest has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// The guest has not written yet.
    Silent = 0,
    /// Its first process runs.
    Up = 1,
    /// The command has been started.
    Started = 2,
    /// The results are complete.
    Done = 3,
}

/// What the guest is to do.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Job {
    /// The arguments of `schedlab` that it runs with; with none it only looks around.
    pub command: Vec<String>,
    /// Files to be there before, by their absolute paths.
    #[serde(skip)]
    pub files: Vec<(String, Vec<u8>)>,
    /// Tunables to set before, under that kernel's own names.
    pub set: Vec<(String, String)>,
    /// Whether QEMU is to give the virtual CPUs even turns. [`crate::run()`] sets it where time is counted.
    pub even_turns: bool,
    /// Files to hand back, by their absolute paths.
    pub wanted: Vec<String>,
}

/// What the guest has to say at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// What went wrong before the command could be started.
    pub refused: Option<String>,
    /// The exit status of the command; 128 and the signal's number if a signal ended it.
    pub status: i32,
    /// What the command printed.
    pub printed: String,
    /// What the command said on standard error.
    pub said: String,
    /// What the guest saw of itself.
    pub seen: Seen,
    /// The files handed back, with their lengths in the order of their contents.
    pub(crate) files: Vec<(String, u64)>,
}

/// A guest as its first process saw it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// The kernel's release.
    pub release: String,
    /// The kernel's version: its build.
    pub version: String,
    /// The CPUs and their places.
    pub cpus: Vec<CpuPlace>,
    /// The distances between the nodes.
    pub distances: Vec<Vec<u32>>,
    /// Guest time when its first process began, in seconds.
    pub boot_s: f64,
    /// The scheduler's tunables when the command began.
    pub tunables: BTreeMap<String, String>,
}

/// The host's side of the shared memory.
pub(crate) struct Mailbox {
    file: File,
}

impl Mailbox {
    /// The host's side of this file.
    pub(crate) fn new(file: File) -> Self {
        Self { file }
    }

    /// How far the guest has come.
    pub(crate) fn stage(&self) -> Stage {
        match self.number(0) {
            Ok(1) => Stage::Up,
            Ok(2) => Stage::Started,
            Ok(3) => Stage::Done,
            _ => Stage::Silent,
        }
    }

    /// The results.
    ///
    /// # Errors
    /// When they are not what the guest's side writes.
    pub(crate) fn results(&self) -> Result<(Done, BTreeMap<String, Vec<u8>>)> {
        let odd = |what: &str| Error::input(format!("the guest's results cannot be read: {what}"));
        let failed = |e: std::io::Error| odd(&e.to_string());
        let length = self.number(8).map_err(failed)?;
        if length > MOST_TEXT {
            return Err(odd("they are too long"));
        }
        let mut text = vec![0; length as usize];
        self.file.read_exact_at(&mut text, BODY).map_err(failed)?;
        let done: Done = serde_json::from_slice(&text).map_err(|e| odd(&e.to_string()))?;
        let mut files = BTreeMap::new();
        let mut at = BODY + length;
        for (path, bytes) in &done.files {
            let end = at.checked_add(*bytes).filter(|end| *end <= BYTES).ok_or_else(|| odd("a file is too long"))?;
            let mut contents = vec![0; *bytes as usize];
            self.file.read_exact_at(&mut contents, at).map_err(failed)?;
            files.insert(path.clone(), contents);
            at = end;
        }
        Ok((done, files))
    }

    fn number(&self, at: u64) -> std::io::Result<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// The guest's side of the shared memory.
pub(crate) trait Memory {
    /// Writes bytes there. What is written earlier is seen earlier.
    fn write(&mut self, at: u64, bytes: &[u8]);
}

/// Says how far the guest has come.
pub(crate) fn reach(memory: &mut dyn Memory, stage: Stage) {
    memory.write(0, &(stage as u64).to_le_bytes());
}

/// Writes the results, and says so.
pub(crate) fn post(memory: &mut dyn Memory, done: Done, files: Vec<(String, Vec<u8>)>) {
    let mut done = done;
    let mut kept: Vec<(String, Vec<u8>)> = Vec::new();
    let mut left = BYTES - BODY - MOST_TEXT;
    for (path, contents) in files {
        match left.checked_sub(contents.len() as u64) {
            Some(rest) => {
                left = rest;
                kept.push((path, contents));
            }
            None => {
                let most = BYTES >> 20;
                done.refused = Some(format!("{path} is too large to be handed back: more than {most} MiB"));
            }
        }
    }
    done.files = kept.iter().map(|(path, contents)| (path.clone(), contents.len() as u64)).collect();
    for text in [&mut done.printed, &mut done.said] {
        let most = MOST_TEXT as usize / 16;
        if text.len() > most {
            let cut = text.char_indices().map(|(at, _)| at).find(|at| *at >= text.len() - most).unwrap_or(0);
            text.replace_range(..cut, "[...] ");
        }
    }
    let text = serde_json::to_vec(&done).expect("plain data is always JSON");
    memory.write(8, &(text.len() as u64).to_le_bytes());
    let mut at = BODY;
    for part in std::iter::once(&text).chain(kept.iter().map(|(_, contents)| contents)) {
        memory.write(at, part);
        at += part.len() as u64;
    }
    reach(memory, Stage::Done);
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Memory for File {
        fn write(&mut self, at: u64, bytes: &[u8]) {
            self.write_all_at(bytes, at).unwrap();
        }
    }

    fn sides() -> (File, Mailbox) {
        let file = tempfile::tempfile().unwrap();
        file.set_len(BYTES).unwrap();
        (file.try_clone().unwrap(), Mailbox::new(file))
    }

    #[test]
    fn what_the_guest_posts_is_what_the_host_reads() {
        let (mut guest, host) = sides();
        assert_eq!(host.stage(), Stage::Silent);
        reach(&mut guest, Stage::Up);
        assert_eq!(host.stage(), Stage::Up);
        let done = Done { status: 3, printed: "1\n".into(), said: "\u{e9}".repeat(2 << 20), ..Done::default() };
        let files = vec![("/a".to_owned(), vec![1, 2]), ("/b".to_owned(), Vec::new()), ("/c".to_owned(), vec![9; 9])];
        post(&mut guest, done, files);
        assert_eq!(host.stage(), Stage::Done);
        let (done, files) = host.results().unwrap();
        assert_eq!((done.status, done.printed.as_str(), done.refused), (3, "1\n", None));
        assert!(done.said.starts_with("[...] \u{e9}") && done.said.len() <= (1 << 20) + 8);
        assert_eq!((&files["/a"][..], &files["/b"][..], &files["/c"][..]), (&[1, 2][..], &[][..], &[9; 9][..]));
    }

    #[test]
    fn nonsense_from_a_guest_is_an_error() {
        let (mut guest, host) = sides();
        for length in [0, 5, MOST_TEXT + 1, u64::MAX] {
            Memory::write(&mut guest, 8, &length.to_le_bytes());
            assert!(host.results().is_err(), "{length}");
        }
        let done = Done { files: vec![("/a".into(), u64::MAX)], ..Done::default() };
        let text = serde_json::to_vec(&done).unwrap();
        Memory::write(&mut guest, 8, &(text.len() as u64).to_le_bytes());
        Memory::write(&mut guest, BODY, &text);
        assert!(host.results().unwrap_err().to_string().contains("too long"));
    }
}

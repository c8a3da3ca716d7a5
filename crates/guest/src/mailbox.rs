//! What host and guest say to each other: the job, and its results in memory that both sides share.
//!
//! The memory is a file on the host and a PCI device in the guest (QEMU's `ivshmem-plain`), which maps it through
//! sysfs. That takes no driver, so no module, in any kernel with PCI; it raises no interrupts, so that it does not
//! disturb time; and it is as fast as memory.
//!
//! The first page holds little-endian numbers of eight bytes: what the guest has reached, the length of the results and
//! the number of the job that both are about; and, written by the host, the number and the length of the job that it
//! asks for. The bodies begin at the second page: a JSON text, then the contents of the files that it lists. The first
//! job is in the initramfs; the host writes a later one there when it has read the results of the one before. The host
//! trusts nothing that the guest writes.

use schedlab_base::{CpuPlace, Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The size of the shared memory. Only pages that the guest writes take memory.
pub(crate) const BYTES: u64 = 1 << 30;
/// What the guest has reached, the length of its results, and the number of the job that they are about.
const STAGE: u64 = 0;
const LENGTH: u64 = 8;
const ABOUT: u64 = 16;
/// The number of the job that the host asks for, and the length of its text.
const ASKED: u64 = 2048;
const ASKED_LENGTH: u64 = 2056;
/// Where the bodies begin.
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
    /// Whether the guest waits for another job after this one. [`crate::start`] sets it.
    pub stay: bool,
}

/// A later job, as the host writes it: the job, and its files with their lengths in the order of their contents.
#[derive(Serialize)]
struct Asking<'a> {
    job: &'a Job,
    files: Vec<(&'a str, u64)>,
}

/// The same, as the guest reads it.
#[derive(Deserialize)]
struct Asked {
    job: Job,
    files: Vec<(String, u64)>,
}

/// What the guest has to say at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// What went wrong before the command could be started.
    pub refused: Option<String>,
    /// It is that the kernel has no tunable of the name that was to be set.
    pub absent: bool,
    /// The exit status of the command; 128 and the signal's number if a signal ended it.
    pub status: i32,
    /// What the command printed.
    pub printed: String,
    /// What the command said on standard error.
    pub said: String,
    /// What the guest saw of itself.
    pub seen: Seen,
    /// The scheduler's tunables when the command had ended.
    pub tunables: BTreeMap<String, String>,
    /// Why the guest takes no other job, though it was to stay.
    pub unfit: Option<String>,
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

    /// How far the guest has come with the job of this number; the first is 0.
    pub(crate) fn stage(&self, job: u64) -> Stage {
        if self.number(ABOUT).ok() != Some(job) {
            return Stage::Up;
        }
        match self.number(STAGE) {
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
        let length = self.number(LENGTH).map_err(failed)?;
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

    /// Asks the guest for the job of this number.
    ///
    /// # Errors
    /// When the job is too large, or the memory cannot be written.
    pub(crate) fn ask(&self, number: u64, job: &Job) -> Result<()> {
        let files = job.files.iter().map(|(path, contents)| (path.as_str(), contents.len() as u64)).collect();
        let text = serde_json::to_vec(&Asking { job, files }).expect("plain data is always JSON");
        let all: u64 = job.files.iter().map(|(_, contents)| contents.len() as u64).sum::<u64>() + text.len() as u64;
        if text.len() as u64 > MOST_TEXT || BODY + all > BYTES {
            return Err(Error::input("the job is too large for the memory that the guest shares"));
        }
        let failed = |e: std::io::Error| Error::system("cannot write the guest's job", &e);
        let mut at = BODY;
        for part in std::iter::once(&text).chain(job.files.iter().map(|(_, contents)| contents)) {
            self.file.write_all_at(part, at).map_err(failed)?;
            at += part.len() as u64;
        }
        self.file.write_all_at(&(text.len() as u64).to_le_bytes(), ASKED_LENGTH).map_err(failed)?;
        self.file.write_all_at(&number.to_le_bytes(), ASKED).map_err(failed)
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

    /// Reads bytes from there. What is read later is not older.
    fn read(&self, at: u64, bytes: &mut [u8]);
}

/// Says how far the guest has come.
pub(crate) fn reach(memory: &mut dyn Memory, stage: Stage) {
    memory.write(STAGE, &(stage as u64).to_le_bytes());
}

/// The job after the one with the number `last`, and its number, once the host asks for one.
pub(crate) fn asked(memory: &mut dyn Memory, last: u64) -> Option<(u64, Result<Job, String>)> {
    let number = read_number(memory, ASKED);
    (number > last).then(|| {
        reach(memory, Stage::Up);
        memory.write(ABOUT, &number.to_le_bytes());
        (number, read_job(memory))
    })
}

fn read_number(memory: &dyn Memory, at: u64) -> u64 {
    let mut bytes = [0; 8];
    memory.read(at, &mut bytes);
    u64::from_le_bytes(bytes)
}

fn read_job(memory: &dyn Memory) -> Result<Job, String> {
    let part = |at: u64, length: u64| {
        at.checked_add(length).filter(|end| *end <= BYTES).ok_or("it is too long")?;
        let mut bytes = vec![0; length as usize];
        memory.read(at, &mut bytes);
        Ok::<_, String>(bytes)
    };
    let length = read_number(memory, ASKED_LENGTH);
    let Asked { mut job, files } = serde_json::from_slice(&part(BODY, length)?).map_err(|e| e.to_string())?;
    let mut at = BODY + length;
    for (path, length) in files {
        job.files.push((path, part(at, length)?));
        at += length;
    }
    Ok(job)
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
    memory.write(LENGTH, &(text.len() as u64).to_le_bytes());
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

        fn read(&self, at: u64, bytes: &mut [u8]) {
            self.read_exact_at(bytes, at).unwrap();
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
        assert_eq!(host.stage(0), Stage::Silent);
        reach(&mut guest, Stage::Up);
        assert_eq!(host.stage(0), Stage::Up);
        let done = Done { status: 3, printed: "1\n".into(), said: "\u{e9}".repeat(2 << 20), ..Done::default() };
        let files = vec![("/a".to_owned(), vec![1, 2]), ("/b".to_owned(), Vec::new()), ("/c".to_owned(), vec![9; 9])];
        post(&mut guest, done, files);
        assert_eq!(host.stage(0), Stage::Done);
        let (done, files) = host.results().unwrap();
        assert_eq!((done.status, done.printed.as_str(), done.refused), (3, "1\n", None));
        assert!(done.said.starts_with("[...] \u{e9}") && done.said.len() <= (1 << 20) + 8);
        assert_eq!((&files["/a"][..], &files["/b"][..], &files["/c"][..]), (&[1, 2][..], &[][..], &[9; 9][..]));
    }

    #[test]
    fn a_later_job_is_taken_once_and_its_results_are_not_those_of_the_one_before() {
        let (mut guest, host) = sides();
        assert!(asked(&mut guest, 0).is_none());
        post(&mut guest, Done { status: 7, ..Done::default() }, Vec::new());
        assert_eq!(host.stage(0), Stage::Done);
        let files = vec![("/w".to_owned(), vec![1, 2, 3]), ("/e".to_owned(), Vec::new())];
        let job = Job { command: vec!["exec".to_owned()], files: files.clone(), stay: true, ..Job::default() };
        host.ask(1, &job).unwrap();
        assert_eq!(host.stage(1), Stage::Up, "the guest has not seen it yet");
        let (number, taken) = asked(&mut guest, 0).unwrap();
        let taken = taken.unwrap();
        assert_eq!((number, &taken.command, &taken.files, taken.stay), (1, &job.command, &files, true));
        assert_eq!(host.stage(1), Stage::Up);
        assert!(asked(&mut guest, number).is_none());
        post(&mut guest, Done { status: 8, ..Done::default() }, Vec::new());
        assert_eq!((host.stage(1), host.results().unwrap().0.status), (Stage::Done, 8));
        let large = Job { command: vec!["x".repeat(MOST_TEXT as usize)], ..job };
        assert!(host.ask(2, &large).unwrap_err().to_string().contains("too large"));
    }

    #[test]
    fn nonsense_from_a_guest_is_an_error() {
        let (mut guest, host) = sides();
        for length in [0, 5, MOST_TEXT + 1, u64::MAX] {
            Memory::write(&mut guest, LENGTH, &length.to_le_bytes());
            assert!(host.results().is_err(), "{length}");
        }
        let done = Done { files: vec![("/a".into(), u64::MAX)], ..Done::default() };
        let text = serde_json::to_vec(&done).unwrap();
        Memory::write(&mut guest, LENGTH, &(text.len() as u64).to_le_bytes());
        Memory::write(&mut guest, BODY, &text);
        assert!(host.results().unwrap_err().to_string().contains("too long"));
    }
}

//! Where the journal is kept, and in which state it is found.

use crate::disk;
use crate::here::Here;
use crate::journal::{Found, Journal};
use crate::owner::Owner;
use crate::root::Root;
use rustix::fs::{FlockOperation, flock};
use schedlab_base::{Error, Result};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The directory of the journal, if `SCHEDLAB_STATE` names no other.
const DIRECTORY: &str = "/var/lib/schedlab";

/// The directory that holds the journal.
pub struct State {
    dir: PathBuf,
}

/// A journal that an earlier call left.
#[derive(Clone, Debug)]
pub enum Left {
    /// None: no knob is changed.
    Nothing,
    /// One of another boot, with the number of its values. They are gone with that boot.
    OtherBoot(usize),
    /// One whose process has ended.
    Gone(Journal),
    /// One of a process that runs and is not the caller.
    Foreign(Journal, Owner),
    /// One of the caller, or set by hand.
    Ours(Journal),
}

/// The state, locked against other calls until it is dropped or the process ends.
pub(crate) struct Locked {
    pub(crate) journal: PathBuf,
    _lock: File,
}

impl State {
    /// This directory, or the usual one below `root`.
    #[must_use]
    pub fn new(dir: Option<PathBuf>, root: &Root) -> Self {
        Self { dir: dir.unwrap_or_else(|| root.place(DIRECTORY)) }
    }

    /// The journal's file.
    #[must_use]
    pub fn journal(&self) -> PathBuf {
        self.dir.join("journal")
    }

    /// Looks at what an earlier call left, without changing it. `caller` is the process that asks, if the call was
    /// told.
    ///
    /// # Errors
    /// When the journal cannot be read or is damaged.
    pub fn look(&self, here: &Here, caller: Option<&Owner>) -> Result<Left> {
        left(&self.journal(), here, caller)?.map_err(|why| damaged(&self.journal(), &why))
    }

    /// Locks the state; another call that has it is waited for, since each takes milliseconds.
    pub(crate) fn lock(&self) -> Result<Locked> {
        let failed = |what: &str, e: &io::Error| {
            let refused = matches!(e.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem);
            let what = format!("{what}: {e}");
            let error = if refused { Error::not_permitted(what) } else { Error::input(what) };
            error
                .file(&self.dir)
                .mend("nothing is changed without a journal: be root, or name a directory in SCHEDLAB_STATE")
        };
        fs::create_dir_all(&self.dir).map_err(|e| failed("cannot be made", &e))?;
        let lock = File::create(self.dir.join("lock")).map_err(|e| failed("cannot be written", &e))?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|e| failed("cannot be locked", &e.into()))?;
        Ok(Locked { journal: self.journal(), _lock: lock })
    }
}

impl Locked {
    /// What an earlier call left. A damaged journal is kept aside.
    pub(crate) fn left(&self, here: &Here, caller: Option<&Owner>) -> Result<Left> {
        match left(&self.journal, here, caller)? {
            Ok(left) => Ok(left),
            Err(why) => Err(self.keep_aside(&why)),
        }
    }

    /// Gives a damaged journal another name, under which nothing is lost.
    fn keep_aside(&self, why: &str) -> Error {
        let names = (1..).map(|n| self.journal.with_file_name(format!("journal.damaged-{n}")));
        let aside = names.into_iter().find(|name| !name.exists()).expect("there are endless numbers");
        match fs::rename(&self.journal, &aside).and_then(|()| disk::sync_names(&aside)) {
            Ok(()) => Error::new(schedlab_base::ErrorKind::System, format!("the journal is damaged ({why})"))
                .file(&self.journal)
                .mend(format!(
                    "it is kept as {}, and what it still shows of old values has not been put back",
                    aside.display()
                )),
            Err(e) => damaged(&self.journal, &format!("{why}; it cannot be kept aside: {e}")),
        }
    }
}

fn damaged(journal: &Path, why: &str) -> Error {
    Error::new(schedlab_base::ErrorKind::System, format!("the journal is damaged ({why})"))
        .file(journal)
        .mend("schedlab tunables --restore keeps it aside")
}

/// What is left, or why the journal is damaged.
fn left(path: &Path, here: &Here, caller: Option<&Owner>) -> Result<Result<Left, String>> {
    let found = Journal::read(path).map_err(|e| {
        let refused = e.kind() == io::ErrorKind::PermissionDenied;
        let what = format!("cannot be read: {e}");
        (if refused { Error::not_permitted(what) } else { Error::input(what) }).file(path)
    })?;
    let journal = match found {
        Found::Nothing => return Ok(Ok(Left::Nothing)),
        Found::Damaged(why) => return Ok(Err(why)),
        Found::Whole(journal) => journal,
    };
    if journal.boot != here.boot {
        return Ok(Ok(Left::OtherBoot(journal.records.len())));
    }
    Ok(Ok(match journal.owner.clone() {
        Some(owner) if !owner.is_alive() => Left::Gone(journal),
        Some(owner) if caller != Some(&owner) && !owner.is_caller() => Left::Foreign(journal, owner),
        _ => Left::Ours(journal),
    }))
}

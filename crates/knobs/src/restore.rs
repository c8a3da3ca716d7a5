//! Putting back what the journal holds.

use crate::disk;
use crate::here::Here;
use crate::journal::{Journal, Record};
use crate::owner::Owner;
use crate::root::{Root, is_refusal};
use crate::state::{Left, Locked, State};
use schedlab_base::{Error, ErrorKind, Result};
use serde::Serialize;

/// A knob that has its old value again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PutBack {
    /// Its name.
    pub name: String,
    /// Its file.
    pub location: String,
    /// The value that it had until now.
    pub from: String,
    /// The value that it has again.
    pub to: String,
    /// The value that it was given. If `from` is neither this nor the old one, somebody else has changed it since.
    pub given: Option<String>,
    /// Whether somebody else has changed it since.
    pub foreign: bool,
}

/// What was put back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// The knobs that had another value until now.
    pub restored: Vec<PutBack>,
    /// The knobs that had their old value already.
    pub unchanged: Vec<String>,
    /// The knobs whose file is gone, as that of a device that was removed.
    pub gone: Vec<String>,
    /// The values of another boot, which nobody has to put back.
    pub other_boot: usize,
}

/// Puts back what the journal holds, if its process has ended, is the caller, or if a user set the values by hand. A
/// value that somebody else has changed since is put back too: the machine is left as it was found, and the result says
/// so. Doing it twice does no more than doing it once.
///
/// # Errors
/// When the values belong to another process that runs, the journal is damaged, or a value cannot be put back. Values
/// that could not be put back stay in the journal.
pub fn restore(root: &Root, state: &State, here: &Here, caller: Option<&Owner>) -> Result<Restored> {
    if matches!(state.look(here, caller), Ok(Left::Nothing)) {
        return Ok(Restored::default());
    }
    let locked = state.lock()?;
    match locked.left(here, caller)? {
        Left::Nothing => Ok(Restored::default()),
        Left::OtherBoot(count) => {
            forget(&locked)?;
            Ok(Restored { other_boot: count, ..Restored::default() })
        }
        Left::Foreign(_, owner) => Err(foreign(&owner)),
        Left::Gone(journal) | Left::Ours(journal) => put_back(root, &locked, &journal),
    }
}

/// The error for values that belong to another process.
pub(crate) fn foreign(owner: &Owner) -> Error {
    Error::not_permitted(format!("{owner} has changed tunables and still runs"))
        .mend(format!("wait for its end, or end it; --owner {} acts in its name", owner.pid))
}

/// Removes the journal.
fn forget(locked: &Locked) -> Result<()> {
    disk::remove(&locked.journal).map_err(|e| Error::system("cannot be removed", &e).file(&locked.journal))
}

/// Puts back all values of a journal, and removes it.
pub(crate) fn put_back(root: &Root, locked: &Locked, journal: &Journal) -> Result<Restored> {
    let mut done = Restored::default();
    let mut before = Vec::new();
    for record in &journal.records {
        match root.value(&record.path) {
            Ok(value) => before.push((record, value)),
            Err(_) if !root.has(&record.path) => done.gone.push(record.name.clone()),
            Err(e) => before.push((record, format!("unknown ({e})"))),
        }
    }
    let failed = settle(root, before.iter().map(|(record, _)| (*record, record.old.as_str())));
    for (record, from) in before.iter().filter(|(record, _)| !failed.iter().any(|(name, _)| *name == record.name)) {
        if *from == record.old {
            done.unchanged.push(record.name.clone());
            continue;
        }
        done.restored.push(PutBack {
            name: record.name.clone(),
            location: record.path.clone(),
            from: from.clone(),
            to: record.old.clone(),
            given: record.set.clone(),
            foreign: record.set.as_ref().is_some_and(|set| set != from),
        });
    }
    let Some((name, e)) = failed.first() else {
        forget(locked)?;
        return Ok(done);
    };
    let is_failed = |record: &&Record| failed.iter().any(|(name, _)| *name == record.name);
    let rest = Journal { records: journal.records.iter().filter(is_failed).cloned().collect(), ..journal.clone() };
    rest.write(&locked.journal).map_err(|e| Error::system("cannot be written", &e).file(&locked.journal))?;
    let kind = if e.as_ref().is_some_and(is_refusal) { ErrorKind::NotPermitted } else { ErrorKind::System };
    let why = e.as_ref().map_or_else(|| "the kernel keeps another value".to_owned(), ToString::to_string);
    let count = failed.len();
    Err(Error::new(kind, format!("cannot be put back: {why}")).key(*name).mend(format!(
        "{count} of {} values stay in {}; {} were put back",
        journal.records.len(),
        locked.journal.display(),
        done.restored.len()
    )))
}

/// Gives knobs their values, and looks whether they have them: some values depend on others (the kernel sets
/// `dirty_ratio` to 0 when `dirty_bytes` is written, refuses a period that is shorter than the runtime, and forgets
/// `nr_requests` with another disk scheduler), so that what failed or was undone is tried again. Returns what did not
/// get its value.
pub(crate) fn settle<'r>(
    root: &Root,
    wanted: impl Iterator<Item = (&'r Record, &'r str)>,
) -> Vec<(&'r str, Option<std::io::Error>)> {
    let wanted: Vec<(&Record, &str)> = wanted.collect();
    let differs = |(record, value): &&(&Record, &str)| root.value(&record.path).ok().as_deref() != Some(*value);
    let mut before: Vec<&str> = Vec::new();
    let mut errors = Vec::new();
    // Each round settles at least one that the others had undone, or nothing more can be done.
    for _ in 0..wanted.len() + 2 {
        errors.clear();
        for (record, value) in wanted.iter().filter(differs) {
            errors.extend(root.write(&record.path, value).err().map(|e| (record.name.as_str(), e)));
        }
        let open: Vec<&str> = wanted.iter().filter(differs).map(|(record, _)| record.name.as_str()).collect();
        if open.is_empty() || open == before {
            before = open;
            break;
        }
        before = open;
    }
    let mut error = |name: &str| {
        let at = errors.iter().position(|(of, _)| *of == name)?;
        Some(errors.swap_remove(at).1)
    };
    before.into_iter().map(|name| (name, error(name))).collect()
}

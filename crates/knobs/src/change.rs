//! Setting knobs: the journal first, then the values.

use crate::disk;
use crate::here::Here;
use crate::journal::{Journal, Record};
use crate::owner::Owner;
use crate::plan::{Change, Plan};
use crate::restore::{Restored, foreign, put_back, settle};
use crate::root::{Root, is_refusal};
use crate::state::{Left, Locked, State};
use schedlab_base::{Error, ErrorKind, Result};
use serde::Serialize;

/// A knob that was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Set {
    /// Its name.
    pub name: String,
    /// Its file.
    pub location: String,
    /// The value before.
    pub from: String,
    /// The value now, as the kernel shows it.
    pub to: String,
    /// The value that was asked for.
    pub asked: String,
}

/// What was set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Applied {
    /// The knobs, in the order of the file.
    pub set: Vec<Set>,
    /// What another process had left, and was put back before.
    pub before: Restored,
}

/// The moments of a change between which the process may be killed. Tests end it at each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The journal is about to be written.
    Journal,
    /// This knob is about to be written.
    Write(usize),
    /// All are written.
    Written,
}

/// Sets the knobs of a plan, for a process or (without `owner`) for a user, until they are restored. Nothing is changed
/// before every old value is on disk. If the kernel refuses a value, all of this call are put back.
///
/// # Errors
/// When the values of another process are in force, the journal cannot be written, or the kernel refuses a value.
pub fn apply(root: &Root, state: &State, here: &Here, plan: &Plan, owner: Option<&Owner>) -> Result<Applied> {
    apply_stepwise(root, state, here, plan, owner, &mut |_| {})
}

pub(crate) fn apply_stepwise(
    root: &Root,
    state: &State,
    here: &Here,
    plan: &Plan,
    owner: Option<&Owner>,
    step: &mut dyn FnMut(Step),
) -> Result<Applied> {
    let locked = state.lock()?;
    let (journal, before) = free(root, &locked, here, owner)?;
    let records = records(root, plan)?;
    let mut next = Journal { boot: here.boot.clone(), owner: owner.cloned(), records: Vec::new() };
    next.records = journal.as_ref().map_or_else(Vec::new, |journal| journal.records.clone());
    // The oldest value of a knob stays.
    next.records
        .extend(records.iter().filter(|r| journal.as_ref().is_none_or(|j| j.record(&r.path).is_none())).cloned());
    // Until all are written, a value that differs may be ours.
    for record in next.records.iter_mut().filter(|record| records.iter().any(|r| r.path == record.path)) {
        record.set = None;
    }
    step(Step::Journal);
    let unwritten =
        |e: std::io::Error| Error::system("cannot be written", &e).file(&locked.journal).mend("nothing was changed");
    next.write(&locked.journal).map_err(unwritten)?;
    if let Err(error) = write_all(root, plan, step) {
        return Err(roll_back(root, &locked, journal.as_ref(), &records, error));
    }
    step(Step::Written);
    let mut applied = Applied { set: Vec::new(), before };
    for change in &plan.changes {
        applied.set.push(Set {
            name: change.name.clone(),
            location: change.path.clone(),
            from: records.iter().find(|r| r.path == change.path).map_or_else(String::new, |r| r.old.clone()),
            to: root.value(&change.path).unwrap_or_else(|_| change.value.clone()),
            asked: change.value.clone(),
        });
    }
    for record in next.records.iter_mut().filter(|record| records.iter().any(|r| r.path == record.path)) {
        record.set = root.value(&record.path).ok();
    }
    // Without this the journal is as good; it only cannot tell who changed a value later.
    let _ = next.write(&locked.journal);
    Ok(applied)
}

/// Puts back what a process left that has ended, and refuses if another one's or a user's values are in force. Returns
/// the caller's journal.
fn free(root: &Root, locked: &Locked, here: &Here, owner: Option<&Owner>) -> Result<(Option<Journal>, Restored)> {
    match locked.left(here, owner)? {
        Left::Nothing => Ok((None, Restored::default())),
        Left::OtherBoot(count) => Ok((None, Restored { other_boot: count, ..Restored::default() })),
        Left::Gone(journal) => Ok((None, put_back(root, locked, &journal)?)),
        Left::Foreign(_, other) => Err(foreign(&other)),
        Left::Ours(journal) if journal.owner.as_ref() == owner => Ok((Some(journal), Restored::default())),
        Left::Ours(journal) => Err(match &journal.owner {
            Some(other) => foreign(other),
            None => Error::not_permitted("tunables are already changed by hand")
                .mend("schedlab tunables --restore puts them back first"),
        }),
    }
}

/// The present values of all knobs that the plan sets, and of those that the kernel changes with them.
fn records(root: &Root, plan: &Plan) -> Result<Vec<Record>> {
    let named = plan.changes.iter().map(|change| (&change.name, &change.path));
    let mut records: Vec<Record> = Vec::new();
    for (name, path) in named.chain(plan.also.iter().map(|(name, path)| (name, path))) {
        if records.iter().any(|record| record.path == *path) {
            continue;
        }
        let old =
            root.value(path).map_err(|e| Error::system("cannot be read", &e).key(name).mend("nothing was changed"))?;
        records.push(Record { name: name.clone(), path: path.clone(), old, set: None });
    }
    Ok(records)
}

/// Writes all values. What the kernel refuses is tried again after the others, since some depend on each other; so is
/// what the kernel changed with another (a disk's `nr_requests` with its scheduler).
fn write_all(root: &Root, plan: &Plan, step: &mut dyn FnMut(Step)) -> Result<()> {
    let mut open: Vec<usize> = (0..plan.changes.len()).collect();
    let mut shown = vec![String::new(); plan.changes.len()];
    for _ in 0..=plan.changes.len() {
        let mut refused = Vec::new();
        for &i in &open {
            step(Step::Write(i));
            match write(root, &plan.changes[i]) {
                Ok(now) => shown[i] = now,
                Err(e) => refused.push((i, e)),
            }
        }
        if let Some((i, e)) = refused.first().filter(|_| refused.len() == open.len()) {
            let (change, refusal) = (&plan.changes[*i], is_refusal(e));
            let kind = if refusal { ErrorKind::NotPermitted } else { ErrorKind::Input };
            return Err(Error::new(kind, format!("the kernel does not take {}: {e}", change.value)).key(&change.name));
        }
        let undone = |i: &usize| root.value(&plan.changes[*i].path).ok().as_deref() != Some(shown[*i].as_str());
        open = (0..plan.changes.len()).filter(undone).collect();
        if open.is_empty() {
            return Ok(());
        }
    }
    let name = &plan.changes[open[0]].name;
    Err(Error::input("another setting of the same file undoes it: set one of the two").key(name))
}

/// Writes a value, and returns the one that the kernel then shows. Some of its files ignore what is out of range.
fn write(root: &Root, change: &Change) -> std::io::Result<String> {
    let before = root.value(&change.path)?;
    root.write(&change.path, &change.value)?;
    let now = root.value(&change.path)?;
    if now == before && !change.same(&now) {
        return Err(std::io::Error::other(format!("it keeps {now}, without an error")));
    }
    Ok(now)
}

/// Puts back the values of before this call, and the journal of before it.
fn roll_back(root: &Root, locked: &Locked, before: Option<&Journal>, records: &[Record], error: Error) -> Error {
    let failed = settle(root, records.iter().map(|record| (record, record.old.as_str())));
    if let Some((name, _)) = failed.first() {
        // The journal that holds all old values stays.
        return error.mend(format!(
            "{} of the values set so far cannot be put back, the first {name}: schedlab tunables --restore",
            failed.len()
        ));
    }
    let journal = match before {
        Some(before) => before.write(&locked.journal),
        None => disk::remove(&locked.journal),
    };
    match journal {
        Ok(()) => error.mend("nothing is changed: what was set before it is put back"),
        Err(e) => error.mend(format!("all is put back, but the journal stays: {e}")),
    }
}

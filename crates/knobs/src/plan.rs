//! A file of values, checked as a whole before anything is changed.

use crate::here::Here;
use crate::knob::{Knob, Status, find};
use crate::root::Root;
use crate::settings::{Setting, Settings};
use crate::spec::Group;
use crate::values::Cpus;
use schedlab_base::{Error, Result};

/// A knob that is to have a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its name.
    pub name: String,
    /// Its file.
    pub path: String,
    /// The value that it has.
    pub from: String,
    /// The value that it is to have.
    pub value: String,
    /// How the value names CPUs, if it does: the kernel may show the same ones in other words.
    cpus: Option<Cpus>,
}

impl Change {
    /// Whether the knob has the value already, in the kernel's words.
    #[must_use]
    pub fn same(&self, shown: &str) -> bool {
        shown == self.value || self.cpus.is_some_and(|cpus| cpus.same(shown, &self.value))
    }

    /// Whether it has to be changed.
    #[must_use]
    pub fn differs(&self) -> bool {
        !self.same(&self.from)
    }
}

/// What is to be set: all of it may be set here.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// The knobs in the order of the file.
    pub changes: Vec<Change>,
    /// The knobs, as name and file, whose values the kernel changes when one of these is set.
    pub also: Vec<(String, String)>,
}

impl Plan {
    /// Checks settings against the knobs of this machine: names, groups, values, and rights. `rights` is false for a
    /// plan that is only shown: what it sets must be readable. `absent` says more of a name that no knob has.
    ///
    /// # Errors
    /// At the first setting that is wrong, with its line; a missing right is reported only if nothing else is wrong.
    pub fn new(
        settings: &Settings,
        knobs: &[Knob],
        (root, here): (&Root, &Here),
        only: Option<&[Group]>,
        rights: bool,
        absent: &dyn Fn(&str) -> Option<Error>,
    ) -> Result<Self> {
        let mut plan = Self::default();
        let mut refused = None;
        for setting in &settings.settings {
            let at = |e: Error| settings.at(setting, e);
            let knob = find(knobs, &setting.name, absent).map_err(at)?;
            if let Some(only) = only.filter(|only| !only.contains(&knob.spec.group)) {
                let names: Vec<String> = only.iter().map(Group::to_string).collect();
                let what =
                    format!("it belongs to the group {}, and only {} may be set", knob.spec.group, names.join(", "));
                return Err(at(Error::input(what)));
            }
            if let Some(other) = plan.changes.iter().find(|change| change.path == knob.path) {
                return Err(at(Error::input(format!("{} is set above already", other.name))));
            }
            let status = knob.status(root, here);
            match checked(knob, setting, &status) {
                Ok(change) => plan.changes.push(change),
                Err(e) => return Err(at(e)),
            }
            // What cannot be read cannot be compared either.
            let is_wrong = status.value.is_none() || (rights && status.reason.is_some());
            if is_wrong && refused.is_none() {
                refused = Some(at(cannot(knob, &status, here)));
            }
            plan.also.extend(changed_with(knob, knobs));
        }
        refused.map_or(Ok(plan), Err)
    }
}

/// The change that a setting asks for.
fn checked(knob: &Knob, setting: &Setting, status: &Status) -> Result<Change> {
    // What nobody can read cannot be checked either; the reason for that follows.
    let known = status.limits.range.is_some() || status.limits.choices.is_some() || status.limits.cpus.is_some();
    let value = if known { status.limits.check(&setting.value)? } else { setting.value.clone() };
    let from = status.value.clone().unwrap_or_default();
    Ok(Change { name: knob.name.clone(), path: knob.path.clone(), from, value, cpus: status.limits.cpus })
}

/// The error for a knob that cannot be set.
fn cannot(knob: &Knob, status: &Status, here: &Here) -> Error {
    let why = status.reason.clone().unwrap_or_default();
    let what = if status.value.is_some() { "cannot be set" } else { "can be neither read nor set" };
    let what = format!("it {what}: {why}");
    let error = if status.refused { Error::not_permitted(what) } else { Error::input(what) };
    match here.instead(knob.spec.instead) {
        Some(instead) => error.mend(format!("in its place: {instead}")),
        None => error,
    }
}

/// The knobs that the kernel changes with this one: of the same device, where it is a device's.
fn changed_with(knob: &Knob, knobs: &[Knob]) -> Vec<(String, String)> {
    let label = |name: &str| name.split_once(':').map(|(label, _)| label.to_owned());
    let of = |other: &&Knob| {
        knob.spec.changes.contains(&other.spec.name)
            && label(&other.name).is_none_or(|theirs| label(&knob.name).is_none_or(|ours| ours == theirs))
    };
    knobs.iter().filter(of).map(|other| (other.name.clone(), other.path.clone())).collect()
}

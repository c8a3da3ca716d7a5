//! The tunables that a machine has: those of the catalogue, found at their places.

use crate::here::Here;
use crate::root::Root;
use crate::spec::Spec;
use crate::values::{Bound, Limits, Values};
use schedlab_base::{Error, Result, nearest};
use serde::Serialize;

/// A tunable that a machine has.
#[derive(Clone, Debug)]
pub struct Knob<'a> {
    /// What the catalogue knows of it.
    pub spec: &'a Spec,
    /// Its name here: that of the catalogue, or `vda:nr_requests` for one of several.
    pub name: String,
    /// Its file.
    pub path: String,
}

/// What can be done with a knob.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The value in force, or why it cannot be read.
    pub value: Option<String>,
    /// The values that it takes here.
    pub limits: Limits,
    /// Why it cannot be set; `None` if it can.
    pub reason: Option<String>,
    /// Whether only rights are missing: then the exit status is another.
    pub refused: bool,
}

/// A row of `schedlab tunables --live`.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct Shown {
    pub name: String,
    pub group: String,
    pub risk: String,
    pub unit: String,
    pub location: String,
    pub value: Option<String>,
    pub default: String,
    pub range: Option<(i128, i128)>,
    pub choices: Option<Vec<String>>,
    pub settable: bool,
    pub reason: Option<String>,
    pub instead: Option<String>,
    pub meaning: String,
    pub harm: String,
    /// Its name in the catalogue.
    pub entry: String,
}

/// All knobs of these specs that exist below `root`, in the order of the specs.
#[must_use]
pub fn knobs<'a>(specs: &'a [Spec], root: &Root) -> Vec<Knob<'a>> {
    let of = |spec: &'a Spec| {
        let found = expand(spec.path, root).into_iter().filter(|(_, path)| root.has(path));
        found.map(|(label, path)| Knob { spec, name: named(spec, &label), path }).collect::<Vec<_>>()
    };
    specs.iter().flat_map(of).collect()
}

/// The name of a knob: the label of its device, CPU or interrupt before the last part of the catalogue's name.
#[must_use]
pub fn named(spec: &Spec, label: &str) -> String {
    if label.is_empty() { spec.name.to_owned() } else { format!("{label}:{}", short(spec.name)) }
}

/// `nr_requests` of `queue.nr_requests`.
pub(crate) fn short(name: &str) -> &str {
    name.split_once('.').map_or(name, |(_, rest)| rest)
}

/// The label and the path of each file that fits a path with `<x>` in it.
fn expand(pattern: &str, root: &Root) -> Vec<(String, String)> {
    let Some((dir, component, rest)) = next_open(pattern) else { return vec![(String::new(), pattern.to_owned())] };
    let fits = root.names(dir).into_iter().filter_map(|name| Some((label(component, &name)?, name)));
    fits.flat_map(|(label, name)| {
        let inner = expand(&format!("{dir}{name}{rest}"), root);
        inner.into_iter().map(move |(more, path)| match more.as_str() {
            "" => (label.clone(), path),
            more => (format!("{label}/{more}"), path),
        })
    })
    .collect()
}

/// Splits a path at the first component with a `<x>`: what is before it, the component, what is after it.
pub(crate) fn next_open(pattern: &str) -> Option<(&str, &str, &str)> {
    let open = pattern.find('<')?;
    let start = pattern[..open].rfind('/')? + 1;
    let end = pattern[open..].find('/').map_or(pattern.len(), |at| open + at);
    Some((&pattern[..start], &pattern[start..end], &pattern[end..]))
}

/// The label that a name gives a knob, if it fits the component: `cpu0` for `cpu<N>`, `vda` for `<dev>`, `irq24` for
/// the number that stands for `<irq>`.
fn label(component: &str, name: &str) -> Option<String> {
    let (before, rest) = component.split_once('<')?;
    let (what, after) = rest.split_once('>')?;
    let inside = name.strip_prefix(before)?.strip_suffix(after)?;
    let number = !inside.is_empty() && inside.bytes().all(|b| b.is_ascii_digit());
    match what {
        // What belongs to a process or a group is none of the machine's.
        "pid" | "g" => None,
        "irq" => number.then(|| format!("irq{name}")),
        "N" | "M" => number.then(|| name.to_owned()),
        _ => (!inside.is_empty() && !name.starts_with('.') && !name.contains('/')).then(|| name.to_owned()),
    }
}

/// The name that a label stands for, the reverse of [`label`].
pub(crate) fn component_of(component: &str, given: &str) -> Option<String> {
    let name = if component == "<irq>" { given.strip_prefix("irq")? } else { given };
    label(component, name).map(|_| name.to_owned())
}

/// The knob of this name. The catalogue's last part is enough where only one knob has it, and a sysctl may have its
/// full name, `kernel.sched_autogroup_enabled`.
///
/// # Errors
/// When there is none, or several; the error is that of `absent`, or names the nearest.
pub fn find<'k, 'a>(knobs: &'k [Knob<'a>], name: &str, absent: &dyn Fn(&str) -> Option<Error>) -> Result<&'k Knob<'a>> {
    if let Some(knob) = knobs.iter().find(|k| k.name == name) {
        return Ok(knob);
    }
    let fits = |k: &&Knob| k.path == name || k.spec.is_called(name);
    match knobs.iter().filter(fits).collect::<Vec<_>>().as_slice() {
        [one] => Ok(one),
        [] => Err(absent(name)
            .unwrap_or_else(|| {
                let mend = nearest(name, knobs.iter().map(|k| k.name.as_str())).map_or_else(
                    || "schedlab tunables --live lists what this machine has".to_owned(),
                    |near| format!("did you mean \"{near}\"?"),
                );
                Error::input("this machine has no tunable of this name").mend(mend)
            })
            .key(name)),
        several => {
            let names: Vec<String> = several.iter().take(4).map(|k| format!("\"{}\"", k.name)).collect();
            let more = if several.len() > 4 { ", ..." } else { "" };
            let what = format!("{} of this machine's tunables have this name", several.len());
            Err(Error::input(what).key(name).mend(format!("say which: {}{more}", names.join(", "))))
        }
    }
}

impl Knob<'_> {
    /// The value, the limits, and whether it can be set. Nothing is changed: [`Root::may_write`] says how.
    #[must_use]
    pub fn status(&self, root: &Root, here: &Here) -> Status {
        let read = root.read(&self.path);
        let limits = self.limits(root, here, read.as_deref().unwrap_or_default());
        let (value, unread) = match read {
            // A file that means nothing on this machine reads empty, as sched_energy_aware does where CPUs are alike.
            Ok(text) if text.is_empty() => {
                (Some(text), Some(("it reads empty: it means nothing here".to_owned(), false)))
            }
            Ok(_) => (root.value(&self.path).ok(), None),
            Err(e) => (None, Some(here.why(&self.path, &e))),
        };
        let written = || root.may_write(&self.path).err().map(|e| here.why(&self.path, &e));
        let unknown = || limits.is_none().then(|| ("its values cannot be checked".to_owned(), false));
        let reason = unread.or_else(written).or_else(unknown);
        let refused = reason.as_ref().is_some_and(|(_, refused)| *refused);
        Status { value, limits: limits.unwrap_or_default(), reason: reason.map(|(why, _)| why), refused }
    }

    /// The values that it takes here; `None` if nobody knows.
    fn limits(&self, root: &Root, here: &Here, text: &str) -> Option<Limits> {
        let values = self.spec.values.as_ref()?;
        let mut limits = values.limits();
        let beside = |name: &str| {
            let (dir, _) = self.path.rsplit_once('/')?;
            root.read(&format!("{dir}/{name}")).ok()
        };
        match values {
            Values::Numbers { lo, hi: Bound::Memory(part), .. } => {
                limits.range = Some((*lo, here.memory_kib(root)? / part));
            }
            Values::Numbers { lo, hi: Bound::Beside(name), .. } => {
                limits.range = Some((*lo, beside(name)?.parse().ok()?));
            }
            Values::Listed(name) => {
                let text = name.map_or(Some(text.to_owned()), beside)?;
                let words = text.split_whitespace().map(|word| word.trim_matches(|c| "[]()".contains(c)).to_owned());
                limits = Limits { choices: Some(words.collect()), ..Limits::default() };
            }
            _ => {}
        }
        Some(limits)
    }
}

/// The rows of the knobs.
#[must_use]
pub fn shown(knobs: &[Knob], root: &Root, here: &Here) -> Vec<Shown> {
    let row = |knob: &Knob| {
        let status = knob.status(root, here);
        let (spec, settable) = (knob.spec, status.reason.is_none());
        Shown {
            name: knob.name.clone(),
            group: spec.group.to_string(),
            risk: spec.risk.to_string(),
            unit: spec.unit.to_owned(),
            location: knob.path.clone(),
            value: status.value,
            default: spec.default.to_owned(),
            range: status.limits.range,
            choices: status.limits.choices,
            settable,
            reason: status.reason,
            instead: if settable { None } else { here.instead(spec.instead) },
            meaning: spec.meaning.to_owned(),
            harm: spec.harm.to_owned(),
            entry: spec.name.to_owned(),
        }
    };
    knobs.iter().map(row).collect()
}

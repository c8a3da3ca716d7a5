//! The keys allowed in each place. rt-app skips keys that it does not know. Here a likely typing mistake is an error,
//! and only a key that resembles no known one is skipped, with a remark.

use super::Remarks;
use super::event::{EVENTS, event_of};
use crate::place::Fields;
use schedlab_base::{Result, nearest};

const TOP: &[&str] = &["tasks", "global", "resources", "x-groups", "x-hotplug"];
const GLOBAL: &[&str] = &[
    "duration",
    "calibration",
    "default_policy",
    "pi_enabled",
    "lock_pages",
    "logdir",
    "log_basename",
    "log_size",
    "ftrace",
    "gnuplot",
    "io_device",
    "mem_buffer_size",
    "cumulative_slack",
    "x-start",
];
/// Obsolete rt-app keys, which rt-app skips and its own examples still contain.
const GLOBAL_PAST: &[&str] = &["frag", "spacing", "die_on_dmiss"];
const TASK: &[&str] = &["instance", "delay", "loop", "phases", "x-user", "x-session", "x-stagger"];
/// Obsolete deadline keys that rt-app still reads in tasks but not in phases. (`runtime` is another, and also an
/// event.)
const TASK_PAST: &[&str] = &["period", "deadline"];
const PHASE: &[&str] = &["loop"];
const PROPS: &[&str] = &[
    "policy",
    "priority",
    "dl-runtime",
    "dl-period",
    "dl-deadline",
    "util_min",
    "util_max",
    "cpus",
    "nodes_membind",
    "taskgroup",
    "x-working-set",
    "x-memory",
    "x-clock-poll",
    "x-reclaim",
];

pub(super) fn check_top(fields: &Fields, remarks: &mut Remarks) -> Result<()> {
    check(fields, remarks, &[TOP], &[], false)
}

pub(super) fn check_global(fields: &Fields, remarks: &mut Remarks) -> Result<()> {
    check(fields, remarks, &[GLOBAL], GLOBAL_PAST, false)
}

pub(super) fn check_task(fields: &Fields, remarks: &mut Remarks) -> Result<()> {
    check(fields, remarks, &[TASK, PROPS], TASK_PAST, true)
}

pub(super) fn check_phase(fields: &Fields, remarks: &mut Remarks) -> Result<()> {
    for member in fields.members {
        if member.key != "loop" && TASK.contains(&member.key.as_str()) {
            let at = fields.at.of(member);
            return Err(at.error("belongs to the task, not to a phase").mend("move it beside \"phases\""));
        }
    }
    check(fields, remarks, &[PHASE, PROPS], TASK_PAST, true)
}

/// Checks all keys. `known` keys are allowed, `quiet` ones too but they are never suggested, and events only with
/// `events`.
fn check(fields: &Fields, remarks: &mut Remarks, known: &[&[&str]], quiet: &[&str], events: bool) -> Result<()> {
    let known = || known.iter().flat_map(|list| list.iter().copied());
    for member in fields.members {
        let key = member.key.as_str();
        if known().any(|k| k == key) || quiet.contains(&key) || (events && event_of(key).is_some()) {
            continue;
        }
        let at = fields.at.of(member);
        // Finding the nearest name costs far more than reading the key, so it stops in a file full of unknown keys.
        if remarks.many() && !key.starts_with("x-") {
            continue;
        }
        let names = EVENTS.iter().map(|(name, _)| *name).filter(|_| events);
        match nearest(key, known().chain(names)) {
            Some(near) => return Err(at.error("no such key here").mend(format!("did you mean \"{near}\"?"))),
            None if key.starts_with("x-") => {
                let ours: Vec<&str> = known().filter(|k| k.starts_with("x-")).collect();
                return Err(at.error("no such x- key here").mend(format!("known here are {}", ours.join(", "))));
            }
            None => remarks.add(&at, "not known, so ignored, as rt-app does"),
        }
    }
    Ok(())
}

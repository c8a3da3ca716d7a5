//! The keys allowed in each place. rt-app skips keys that it does not know. Here a likely typing mistake is an error,
//! and only a key that resembles no known one is skipped, with a remark.

use super::Remarks;
use super::event::{EVENTS, event_of};
use crate::place::Fields;
use schedlab_base::{Result, nearest};

const TOP: &[&str] =
    &["tasks", "global", "resources", "x-groups", "x-hotplug", "x-irq", "x-recorded", "x-sessions", "x-validation"];
/// What an editor finds the schema by. rt-app skips it.
const TOP_QUIET: &[&str] = &["$schema"];
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
    "x-placement",
    "x-until",
];
/// Obsolete rt-app keys, which rt-app skips and its own examples still contain.
const GLOBAL_PAST: &[&str] = &["frag", "spacing", "die_on_dmiss"];
const TASK: &[&str] = &[
    "instance",
    "delay",
    "loop",
    "phases",
    "x-user",
    "x-session",
    "x-cpu",
    "x-averages",
    "x-stagger",
    "x-lifetime",
    "x-work",
];
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

/// Keys that people write when they mean another key, which is in the second place.
const MEANT: &[(&str, &str)] = &[
    ("nice", "priority"),
    ("affinity", "cpus"),
    ("cgroup", "taskgroup"),
    ("count", "instance"),
    ("repeat", "loop"),
    ("compute", "run"),
];

pub(super) fn check_top(fields: &Fields, remarks: &mut Remarks) -> Result<()> {
    check(fields, remarks, &[TOP], TOP_QUIET, false)
}

pub(super) fn check_global(fields: &Fields, remarks: &mut Remarks) -> Result<()> {
    check(fields, remarks, &[GLOBAL], GLOBAL_PAST, false)
}

pub(super) fn check_task(fields: &Fields, remarks: &mut Remarks) -> Result<()> {
    check(fields, remarks, &[TASK, PROPS], TASK_PAST, true)
}

pub(super) fn check_phase(fields: &Fields, remarks: &mut Remarks) -> Result<()> {
    for member in fields.members {
        if member.key != "loop" && TASK.contains(&&*member.key) {
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
        let key = &*member.key;
        if known().any(|k| k == key) || quiet.contains(&key) || (events && event_of(key).is_some()) {
            continue;
        }
        let at = fields.at.of(member);
        // Finding the nearest name costs far more than reading the key, so it stops in a file full of unknown keys.
        if remarks.many() && !remarks.strict && !key.starts_with("x-") {
            continue;
        }
        let names = EVENTS.iter().map(|(name, _)| *name).filter(|_| events);
        let meant = MEANT.iter().find(|(word, _)| key == *word).map(|(_, meant)| *meant);
        let meant = meant.filter(|meant| known().chain(names.clone()).any(|name| name == *meant));
        match meant.or_else(|| nearest(key, known().chain(names.clone()))) {
            Some(near) => return Err(at.error("no such key here").mend(format!("did you mean \"{near}\"?"))),
            None if key.starts_with("x-") => {
                let ours: Vec<&str> = known().filter(|k| k.starts_with("x-")).collect();
                return Err(at.error("no such x- key here").mend(format!("known here are {}", ours.join(", "))));
            }
            None if remarks.strict => {
                let all: Vec<&str> = known().chain(names).collect();
                return Err(at.error("no such key here").mend(format!("known here are {}", all.join(", "))));
            }
            None => remarks.add(&at, "not known, so ignored, as rt-app does"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{self, Json, Member};
    use std::path::Path;

    fn members<'t>(value: &'t json::Value<'t>) -> &'t [Member<'t>] {
        let Json::Object(members) = &value.json else { panic!("no object") };
        members
    }

    /// The keys below a path of the schema.
    fn keys(path: &[&str]) -> Vec<String> {
        let (root, _) = json::read(crate::SCHEMA.as_bytes()).expect("the schema is JSON");
        let mut here = &root;
        for step in path {
            here = &members(here).iter().find(|m| m.key == *step).unwrap_or_else(|| panic!("no {step}")).value;
        }
        let mut keys: Vec<String> = members(here).iter().map(|m| m.key.to_string()).collect();
        keys.sort();
        keys
    }

    fn sorted(lists: &[&[&str]]) -> Vec<String> {
        let mut all: Vec<String> = lists.iter().flat_map(|list| list.iter().map(|k| (*k).to_owned())).collect();
        all.sort();
        all
    }

    #[test]
    fn the_schema_has_every_key_and_no_other() {
        assert_eq!(keys(&["properties"]), sorted(&[TOP, TOP_QUIET]));
        assert_eq!(keys(&["$defs", "global", "properties"]), sorted(&[GLOBAL, GLOBAL_PAST]));
        assert_eq!(keys(&["$defs", "task", "properties"]), sorted(&[TASK, TASK_PAST]));
        assert_eq!(keys(&["$defs", "phase", "properties"]), sorted(&[PHASE, TASK_PAST]));
        assert_eq!(keys(&["$defs", "properties", "properties"]), sorted(&[PROPS]));
        let events: Vec<&str> = EVENTS.iter().map(|(name, _)| *name).collect();
        let patterns = keys(&["$defs", "events", "patternProperties"]);
        let named: Vec<&str> = patterns.iter().map(|p| p[1..].split(['(', '[']).next().expect("a name")).collect();
        assert_eq!(sorted(&[&named]), sorted(&[&events]));
    }

    #[test]
    fn what_was_meant_by_a_wrong_key_is_suggested() {
        let parse = |text: &str| crate::parse(text.as_bytes(), Path::new("w.json"));
        let message = |key: &str| {
            let text = format!("{{\"tasks\": {{\"a\": {{\"run\": 1,\n \"{key}\": 5}}}}}}");
            (parse(&text).map(|w| w.warnings), crate::parse_strictly(text.as_bytes(), Path::new("w.json")))
        };
        let (nice, _) = message("nice");
        let nice = nice.unwrap_err().to_string();
        assert_eq!(nice, "w.json:2: tasks.a.nice: no such key here; did you mean \"priority\"?");
        let (remarked, refused) = message("colour");
        assert!(remarked.unwrap()[0].contains("tasks.a.colour: not known"), "a remark, as rt-app skips it");
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.starts_with("w.json:2: tasks.a.colour: no such key here; known here are instance"),
            "{refused}"
        );
        let editor = parse("{\"$schema\": \"workload.schema.json\", \"tasks\": {\"a\": {\"run\": 1}}}").unwrap();
        assert!(editor.warnings.is_empty(), "{:?}", editor.warnings);
    }
}

//! The properties that tasks and phases share.

use super::{Remarks, groups};
use crate::json::Json;
use crate::model::{MEMORY_BOUND, Memory};
use crate::place::{Field, Fields};
use crate::{Policy, Props};
use schedlab_base::{Nanos, Result};

/// Reads the properties of a task or phase. Checks that depend on the policy in force follow with the whole task.
pub(super) fn read(fields: &Fields) -> Result<Props> {
    Ok(Props {
        policy: fields.read("policy", |f| f.word(Policy::WORDS))?,
        priority: fields.read("priority", |f| f.int_in(-20..=99))?.map(|p| p as i32),
        dl_runtime: dl_time(fields, "dl-runtime")?,
        dl_deadline: dl_time(fields, "dl-deadline")?,
        dl_period: dl_time(fields, "dl-period")?,
        util_min: fields.read("util_min", clamp)?.flatten(),
        util_max: fields.read("util_max", clamp)?.flatten(),
        cpus: fields.read("cpus", Field::indices)?,
        nodes_membind: fields.read("nodes_membind", Field::indices)?,
        taskgroup: fields.read("taskgroup", taskgroup)?.flatten(),
        working_set: fields.read("x-working-set", Field::count)?,
        memory: fields.read("x-memory", memory)?,
        clock_poll: fields.read("x-clock-poll", Field::micros)?,
        reclaim: fields.read("x-reclaim", Field::flag)?,
    })
}

/// A deadline parameter. rt-app treats 0 as "not given".
fn dl_time(fields: &Fields, key: &str) -> Result<Option<Nanos>> {
    Ok(fields.read(key, Field::micros)?.filter(|ns| *ns > 0))
}

/// Reads obsolete deadline keys, which apply in a task if the newer keys are missing. In a task that is not
/// SCHED_DEADLINE, `runtime` is only the event of that name. rt-app 55cb0c0 would also use it as a custom slice, but
/// only by accident, because it reads both from one key.
pub(super) fn read_past(fields: &Fields, default: Policy, props: &mut Props, remarks: &mut Remarks) -> Result<()> {
    let deadline = props.policy.unwrap_or(default) == Policy::Deadline;
    let pairs =
        [("runtime", &mut props.dl_runtime), ("period", &mut props.dl_period), ("deadline", &mut props.dl_deadline)];
    for (key, slot) in pairs {
        let Some(field) = fields.get(key) else { continue };
        if !deadline {
            if key != "runtime" {
                remarks.add(&field.at, "a deadline key on a task that is not SCHED_DEADLINE is ignored");
            }
            continue;
        }
        let time = field.micros()?;
        if slot.is_none() && time > 0 {
            *slot = Some(time);
        }
    }
    Ok(())
}

/// A utilisation clamp; -1 leaves the current value.
fn clamp(field: &Field) -> Result<Option<u16>> {
    Ok(u16::try_from(field.int_in(-1..=1024)?).ok())
}

/// A group's path; an empty path counts as missing.
fn taskgroup(field: &Field) -> Result<Option<String>> {
    let path = field.text()?;
    if path.is_empty() {
        return Ok(None);
    }
    groups::check_path(&field.at, path)?;
    Ok(Some(groups::tidy(path)))
}

fn memory(field: &Field) -> Result<Memory> {
    let fields = Fields::of(field.value, &field.at)?;
    fields.only(&["bytes", "node", "pinned", "shared", "bound"])?;
    let bytes = fields.need("bytes")?.count()?;
    let nodes = fields.read("node", nodes)?.unwrap_or_default();
    let pinned = fields.read("pinned", Field::flag)?.unwrap_or(false);
    let shared = fields.read("shared", Field::flag)?.unwrap_or(false);
    let bound = fields.read("bound", |f| f.int_in(0..=100))?.map_or(MEMORY_BOUND, |percent| percent as u32);
    Ok(Memory { bytes, nodes, pinned, shared, bound })
}

/// The initial place of a memory: a node, `first-touch`, or several nodes with the share of each.
fn nodes(field: &Field) -> Result<Vec<(u32, u32)>> {
    match &field.value.json {
        Json::Text(_) => field.word(&[("first-touch", ())]).map(|()| Vec::new()),
        Json::Object(members) => {
            let mut nodes = Vec::with_capacity(members.len());
            for member in members {
                let at = field.at.of(member);
                let Ok(node) = member.key.parse::<u16>() else {
                    return Err(at
                        .error("is no node's number")
                        .mend("{\"0\": 30, \"1\": 70}: 30 parts on node 0, 70 on node 1"));
                };
                nodes.push((u32::from(node), Field { value: &member.value, at }.int_in(1..=1_000_000)? as u32));
            }
            nodes.sort_unstable();
            match nodes.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                Some(twice) => Err(field.at.error(format!("names node {} twice", twice[0].0))),
                None if nodes.is_empty() => Err(field.at.error("names no node").mend("leave it out for first-touch")),
                None => Ok(nodes),
            }
        }
        _ => Ok(vec![(field.index()?, 1)]),
    }
}

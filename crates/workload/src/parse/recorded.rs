//! `x-sessions` and `x-recorded`.

use crate::Recorded;
use crate::json::{Json, Value};
use crate::place::{Field, Fields};
use schedlab_base::Result;
use serde_json::{Map, Number};
use std::collections::BTreeMap;

/// The most CPUs and nodes that a machine may have.
const MOST_CPUS: usize = 1 << 16;
const MOST_NODES: usize = 1 << 10;

/// The highest cost of a wake-up, in ns.
const MOST_COST: u64 = 1_000_000_000;

/// The nice levels of sessions by number.
pub(super) fn read_sessions(field: &Field) -> Result<BTreeMap<u32, i8>> {
    let mut sessions = BTreeMap::new();
    for member in Fields::of(field.value, &field.at)?.members {
        let at = field.at.of(member);
        let Some(number) = member.key.parse::<u32>().ok().filter(|number| *number != crate::NO_SESSION) else {
            return Err(at.error("is no session's number").mend("{\"7\": {\"nice\": 5}}: session 7 has nice 5"));
        };
        let fields = Fields::of(&member.value, &at)?;
        fields.only(&["nice"])?;
        sessions.insert(number, fields.need("nice")?.int_in(-20..=19)? as i8);
    }
    Ok(sessions)
}

/// What was recorded beside the load.
pub(super) fn read(field: &Field) -> Result<Recorded> {
    let fields = Fields::of(field.value, &field.at)?;
    fields.only(&["kernel", "machine", "cpus", "distances", "system", "costs"])?;
    let wrong = |what: String| field.at.error(what).mend("leave it as `schedlab model` wrote it, or remove it");
    let recorded: Recorded = serde_json::from_value(plain(field.value)).map_err(|e| wrong(e.to_string()))?;
    recorded.system.check().map_err(&wrong)?;
    if recorded.costs.all().into_iter().flatten().any(|cost| cost.most() > MOST_COST) {
        return Err(wrong(format!("has costs of more than {MOST_COST} ns")));
    }
    if recorded.cpus.len() > MOST_CPUS || recorded.distances.len() > MOST_NODES {
        return Err(wrong(format!("names more than {MOST_CPUS} CPUs or {MOST_NODES} nodes")));
    }
    Ok(recorded)
}

/// The value without its lines.
fn plain(value: &Value) -> serde_json::Value {
    match &value.json {
        Json::Null | Json::Huge => serde_json::Value::Null,
        Json::Bool(flag) => (*flag).into(),
        Json::Int(number) => (*number).into(),
        Json::Float(number) => Number::from_f64(*number).map_or(serde_json::Value::Null, serde_json::Value::Number),
        Json::Text(text) => (**text).into(),
        Json::List(items) => items.iter().map(plain).collect(),
        Json::Object(members) => {
            members.iter().map(|m| (m.key.to_string(), plain(&m.value))).collect::<Map<_, _>>().into()
        }
    }
}

//! What the statistics of a partial recording leave out, because such a trace cannot tell.

use schedlab_base::Coverage;
use serde_json::Value;

/// The keys of figures that need the whole machine, or every move between CPUs.
const OF_THE_MACHINE: [&str; 12] = [
    "share",
    "idle_us",
    "unknown_us",
    "queue",
    "queue_mean",
    "fairness",
    "fairness_cpus",
    "fairness_nodes",
    "fairness_groups",
    "migrations",
    "node_migrations",
    "settled_us",
];

/// The keys of figures that need every instant at which a task became runnable or got a CPU.
const OF_WAITS: [&str; 7] = [
    "wait_us",
    "wait_unfinished_us",
    "latency_us",
    "waking_latency_us",
    "delay_us",
    "delay_max_start_us",
    "delay_max_end_us",
];

/// The keys of figures that need the instants at which a task got a CPU.
const OF_STARTS: [&str; 3] = ["run_us", "run_share", "slices"];

/// The keys of the figures that a recording of this kind cannot tell.
pub fn unknown(covers: Coverage) -> impl Iterator<Item = &'static str> {
    let waits = if covers == Coverage::Tasks { &[][..] } else { &OF_WAITS[..] };
    let starts = if covers == Coverage::Inside { &OF_STARTS[..] } else { &[][..] };
    OF_THE_MACHINE.iter().chain(waits).chain(starts).copied()
}

/// Takes the figures that a partial recording cannot tell out of the JSON of its statistics: they become `null`, and
/// there are no CPUs and nodes.
pub fn withhold(document: &mut Value, covers: Coverage) {
    for places in ["cpus", "nodes"] {
        if let Some(list) = document.get_mut(places).and_then(Value::as_array_mut) {
            list.clear();
        }
    }
    let keys: Vec<&str> = unknown(covers).collect();
    blank(document, &keys);
}

fn blank(value: &mut Value, keys: &[&str]) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(|entry| blank(entry, keys)),
        Value::Object(map) => {
            for (key, inner) in map {
                if keys.contains(&key.as_str()) { *inner = Value::Null } else { blank(inner, keys) }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Report;
    use serde_json::json;

    #[test]
    fn only_what_the_coverage_tells_is_left() {
        let whole = json!({ "tasks": [{ "run_us": 1.0, "wait_us": 2.0, "share": 1.0, "voluntary": 3 }], "cpus": [{}] });
        let left = |covers| {
            let mut document = whole.clone();
            withhold(&mut document, covers);
            assert_eq!(document["cpus"], json!([]));
            let task = document["tasks"][0].clone();
            let keys = ["run_us", "wait_us", "share", "voluntary"];
            keys.into_iter().filter(|key| !task[key].is_null()).collect::<Vec<_>>()
        };
        assert_eq!(left(Coverage::Tasks), ["run_us", "wait_us", "voluntary"]);
        assert_eq!(left(Coverage::Cpus), ["run_us", "voluntary"]);
        assert_eq!(left(Coverage::Inside), ["voluntary"]);
    }

    #[test]
    fn every_key_is_one_of_the_statistics() {
        let text = serde_json::to_string(&Report {
            tasks: vec![Default::default()],
            groups: vec![Default::default()],
            cpus: vec![Default::default()],
            task_cpus: Some(vec![Default::default()]),
            ..Report::default()
        });
        let text = text.expect("plain data is always JSON");
        for key in unknown(Coverage::Inside) {
            assert!(text.contains(&format!("\"{key}\":")), "{key}");
        }
    }
}

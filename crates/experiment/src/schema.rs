//! The JSON Schemas of the files that schedlab reads, for editors and for those who write such files by program. They
//! list what there is to name: kernels and their tunables, machines, workloads, measures and functions.

use crate::expr::FUNCTIONS;
use crate::file::ExperimentFile;
use crate::measures::MEASURES;
use schedlab_machine::presets::PRESETS as MACHINES;
use schedlab_sched::kernels::{KERNELS, Kernel};
use schedlab_workload::presets::PRESETS as WORKLOADS;
use serde_json::{Map, Value, json};

/// The schema of an experiment's TOML.
#[must_use]
pub fn experiment() -> Value {
    let mut schema = value(&schemars::schema_for!(ExperimentFile));
    let machines: Vec<&str> = MACHINES.iter().map(|m| m.name).collect();
    known(&mut schema["properties"]["machine"], &machines);
    let kernel = &mut schema["$defs"]["KernelFile"];
    kernel["properties"]["kernel"]["enum"] = KERNELS.iter().map(|k| k.name).collect();
    kernel["properties"]["set"]["properties"] = tunables();
    kernel["allOf"] = KERNELS.iter().map(|k| of_kernel(k)).collect();
    let workloads: Vec<String> = WORKLOADS.iter().map(|w| w.name.to_owned()).collect();
    let preset = &mut schema["$defs"]["WorkloadFile"]["properties"]["preset"];
    preset["pattern"] = format!("^({}|.*\\{{.*)($|:)", workloads.join("|")).into();
    preset["examples"] = WORKLOADS.iter().map(|w| Value::from(w.name)).collect();
    schema["x-schedlab"] = json!({
        "kernels": KERNELS.iter().map(|k| json!({ "name": k.name, "meaning": k.summary })).collect::<Vec<_>>(),
        "machines": presets_of_machines(),
        "workloads": presets_of_workloads(),
        "measures": MEASURES.iter().map(|m| json!({
            "name": m.name, "meaning": m.about.trim(), "selectors": m.selectors(), "of_tasks": m.takes_pattern(),
        })).collect::<Vec<_>>(),
        "functions": FUNCTIONS.iter().map(|f| json!({
            "name": f.name, "meaning": f.about.trim(), "arguments": f.arguments,
        })).collect::<Vec<_>>(),
    });
    schema
}

/// The schema of a machine's TOML.
#[must_use]
pub fn machine() -> Value {
    let mut schema = value(&schemars::schema_for!(schedlab_machine::MachineFile));
    schema["x-schedlab"] = json!({ "machines": presets_of_machines() });
    schema
}

/// The schema of a workload's JSON.
#[must_use]
pub fn workload() -> Value {
    let mut schema: Value = serde_json::from_str(schedlab_workload::SCHEMA).expect("the schema is JSON");
    schema["x-schedlab"] = json!({ "workloads": presets_of_workloads() });
    schema
}

fn value(schema: &schemars::Schema) -> Value {
    serde_json::to_value(schema).expect("a schema is JSON")
}

/// Any text, of which these are known.
fn known(property: &mut Value, names: &[&str]) {
    if let Some(property) = property.as_object_mut() {
        property.remove("type");
    }
    property["anyOf"] = json!([{ "enum": names }, { "type": "string" }]);
}

/// Every tunable of any kernel.
fn tunables() -> Value {
    let mut all = Map::new();
    for tunable in KERNELS.iter().flat_map(|k| k.tunables) {
        let unit = tunable.unit.name();
        let unit = if unit.is_empty() { String::new() } else { format!(" ({unit})") };
        let described = || json!({ "description": format!("{}{unit}", tunable.meaning), "$ref": "#/$defs/Scalar" });
        all.entry(tunable.name).or_insert_with(described);
    }
    all.into()
}

/// Which tunables one kernel has.
fn of_kernel(kernel: &Kernel) -> Value {
    let names: Vec<&str> = kernel.tunables.iter().map(|t| t.name).collect();
    json!({
        "if": { "properties": { "kernel": { "const": kernel.name } }, "required": ["kernel"] },
        "then": { "properties": { "set": { "propertyNames": { "enum": names } } } },
    })
}

fn presets_of_machines() -> Vec<Value> {
    MACHINES.iter().map(|m| json!({ "name": m.name, "meaning": m.about })).collect()
}

fn presets_of_workloads() -> Vec<Value> {
    let parameter =
        |p: &schedlab_workload::presets::Param| json!({ "name": p.name, "default": p.default, "meaning": p.meaning });
    let preset = |w: &schedlab_workload::presets::Preset| {
        let parameters: Vec<Value> = w.params.iter().map(parameter).collect();
        json!({ "name": w.name, "meaning": w.meaning, "parameters": parameters })
    };
    WORKLOADS.iter().map(preset).collect()
}

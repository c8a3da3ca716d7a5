//! The published JSON Schemas are those that `schedlab schema` prints.
//!
//! After a change to the types, `BLESS=1 cargo test --test schema` writes them anew.

use schedlab_experiment::schema;
use serde_json::Value;

fn published(name: &str, schema: &Value) {
    let path = format!("{}/../../docs/schema/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let text = serde_json::to_string_pretty(schema).expect("a schema is JSON") + "\n";
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).expect("the schema can be written");
    }
    let published = std::fs::read_to_string(path).expect("the schema is there");
    assert_eq!(published, text, "run with BLESS=1 to publish the new schema");
}

#[test]
fn the_published_schemas_are_up_to_date() {
    published("experiment", &schema::experiment());
    published("machine", &schema::machine());
    published("workload", &schema::workload());
}

#[test]
fn the_schema_of_experiments_lists_what_there_is_to_name() {
    let schema = schema::experiment();
    let lists = &schema["x-schedlab"];
    for (list, name) in [
        ("kernels", "linux-6.12"),
        ("machines", "dl580"),
        ("workloads", "li"),
        ("measures", "run_s"),
        ("functions", "p99"),
    ] {
        let found = lists[list].as_array().expect("a list").iter().find(|entry| entry["name"] == name);
        assert!(!found.expect(name)["meaning"].as_str().expect("a text").is_empty(), "{name}");
    }
    let kernel = &schema["$defs"]["KernelFile"];
    assert!(kernel["properties"]["set"]["properties"]["base_slice_ns"]["description"].is_string());
    let of = |name: &str| {
        let rules = kernel["allOf"].as_array().expect("rules").iter();
        let rule = rules.clone().find(|r| r["if"]["properties"]["kernel"]["const"] == name).expect(name);
        rule["then"]["properties"]["set"]["propertyNames"]["enum"].as_array().expect("names").clone()
    };
    assert!(of("linux-6.12").contains(&"base_slice_ns".into()) && !of("linux-6.1").contains(&"base_slice_ns".into()));
}

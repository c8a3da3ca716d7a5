//! The published JSON Schema of the experiment file is the one that its types have.
//!
//! After a change to the types, `BLESS=1 cargo test -p schedlab-experiment --test schema` writes it anew.

use schedlab_experiment::ExperimentFile;

#[test]
fn the_published_schema_is_the_types() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/experiment.schema.json");
    let schema = schemars::schema_for!(ExperimentFile);
    let text = serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n";
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &text).expect("the schema can be written");
    }
    let published = std::fs::read_to_string(path).expect("the schema is there");
    assert_eq!(published, text, "run with BLESS=1 to publish the new schema");
}

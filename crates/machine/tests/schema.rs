//! The published JSON Schema of the machine file matches the types.
//!
//! After a change to the types, `BLESS=1 cargo test -p schedlab-machine --test schema` writes it again.

use schedlab_machine::MachineFile;

#[test]
fn the_published_schema_matches_the_types() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/machine.schema.json");
    let schema = schemars::schema_for!(MachineFile);
    let text = serde_json::to_string_pretty(&schema).expect("a schema is JSON") + "\n";
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, &text).expect("the schema can be written");
    }
    let published = std::fs::read_to_string(path).expect("the schema is there");
    assert_eq!(published, text, "run with BLESS=1 to publish the new schema");
}

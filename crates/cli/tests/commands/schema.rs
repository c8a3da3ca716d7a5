//! `schedlab schema` through the command line.

use super::support::{ok, schedlab};
use std::path::Path;

#[test]
fn each_schema_is_one_json_document() {
    for (file, title) in [("experiment", "schedlab experiment"), ("machine", "schedlab machine")] {
        let schema: serde_json::Value = serde_json::from_str(&ok(Path::new("."), &["schema", file])).unwrap();
        assert_eq!(schema["title"], title);
    }
    let schema: serde_json::Value = serde_json::from_str(&ok(Path::new("."), &["schema", "workload"])).unwrap();
    assert!(schema["$defs"]["events"]["patternProperties"]["^run"].is_object());
    assert_eq!(schedlab(Path::new("."), &["schema", "trace"]).status.code(), Some(2));
}

#[test]
fn files_may_name_their_schema() {
    let folder = tempfile::tempdir().unwrap();
    let experiment = format!("#:schema ./experiment.schema.json\n{}", super::run::FILE);
    std::fs::write(folder.path().join("hogs.toml"), experiment).unwrap();
    ok(folder.path(), &["run", "hogs.toml"]);
    let workload = r#"{"$schema": "./workload.schema.json", "tasks": {"a": {"loop": 1, "run": 1000}}}"#;
    std::fs::write(folder.path().join("w.json"), workload).unwrap();
    let out = schedlab(folder.path(), &["workloads", "w.json"]);
    assert!(out.status.success() && out.stderr.is_empty(), "{}", String::from_utf8_lossy(&out.stderr));
}

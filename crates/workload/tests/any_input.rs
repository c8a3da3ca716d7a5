//! The readers accept or refuse any input, and never panic or hang. Mutated workloads are among the campaigns of
//! `crates/cli/tests/fuzz`.

use proptest::prelude::*;
use schedlab_workload::{json, parse, presets, write};
use std::path::{Path, PathBuf};

fn examples() -> Vec<Vec<u8>> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut texts: Vec<Vec<u8>> = paths.iter().map(|path| std::fs::read(path).unwrap()).collect();
    texts.push(write(&presets::build("messaging:groups=1,fds=2").unwrap()).into_bytes());
    texts
}

/// Reads a text. A workload that is accepted must survive writing and reading.
fn check(text: &[u8]) -> bool {
    let path = Path::new("w.json");
    match parse(text, path) {
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with("w.json:"), "{message}");
            false
        }
        Ok(workload) => {
            let again = parse(write(&workload).as_bytes(), path);
            let again =
                again.unwrap_or_else(|e| panic!("{e}\n{}\n{}", String::from_utf8_lossy(text), write(&workload)));
            assert_eq!(again.tasks, workload.tasks, "{}", String::from_utf8_lossy(text));
            true
        }
    }
}

#[test]
fn every_prefix_of_an_example_is_accepted_or_refused() {
    for text in examples() {
        for end in 0..text.len() {
            check(&text[..end]);
        }
        assert!(check(&text));
    }
}

#[test]
fn large_inputs_take_no_more_than_linear_time() {
    let long = "y".repeat(4 << 20);
    assert!(check(format!("{{\"tasks\": {{\"t\": {{\"run\": 1, \"{long}\": 2}}}}}}").as_bytes()));
    assert!(!check(format!("{{\"tasks\": {{\"t\": {{\"run\": 1, \"policy\": \"{long}\"}}}}}}").as_bytes()));
    assert!(!check(format!("{{\"tasks\": {{\"t\": {{\"fork\": \"{long}\"}}}}}}").as_bytes()));
    let events: String = (0..50_000).map(|n| format!("\"run{n}\": 1, \"k{n}\": 2,")).collect();
    assert!(check(format!("{{\"tasks\": {{\"t\": {{{events}}}}}}}").as_bytes()));
    let phases: String = (0..25_000).map(|n| format!("\"p{n}\": {{\"priority\": {}, \"run\": 1}},", n % 19)).collect();
    assert!(check(format!("{{\"tasks\": {{\"t\": {{\"phases\": {{{phases}}}}}}}}}").as_bytes()));
    let tasks: String = (0..25_000).map(|n| format!("\"t{n}\": {{\"fork\": \"t{}\", \"run\": 1}},", n / 2)).collect();
    assert!(check(format!("{{\"tasks\": {{{tasks}}}}}").as_bytes()));
}

proptest! {
    #[test]
    fn any_bytes_are_accepted_or_refused(text in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = json::read(&text);
        check(&text);
    }

    #[test]
    fn anything_json_like_is_accepted_or_refused(text in r#"[\[\]{}:,"'/*a-c0-9.eE+ \n\\-]{0,60}"#) {
        let _ = json::read(text.as_bytes());
    }

    #[test]
    fn any_preset_spec_is_built_or_refused(spec in concat!(
        "(li|cf|messaging|periodic)",
        "(:[a-z]{0,8}=?[0-9a-z.-]{0,12}(,[a-z]{0,8}=[0-9a-z]{0,6}){0,3})?"
    )) {
        let _ = presets::build(&spec);
    }
}

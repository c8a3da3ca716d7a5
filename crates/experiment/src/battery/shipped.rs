//! The tests that schedlab comes with: the files of `battery/`.

use super::Test;
use schedlab_base::{Error, Result, nearest};
use schedlab_machine::tomltext::TomlText;

macro_rules! files {
    ($($name:literal)*) => {
        /// Name and text of each file, in the order in which they are listed and run.
        const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../../battery/", $name, ".toml")))),*];
    };
}

files! {
    "fair-equal"
    "fair-odd"
    "fair-nice"
    "fair-groups"
    "fair-nested"
    "fair-users"
    "fair-sessions"
    "fair-sleeper"
    "response-light"
    "response-interactive"
    "response-crowd"
    "response-timer"
    "response-slack"
    "response-pipe"
    "throughput-affinity"
    "throughput-barrier"
    "throughput-work"
    "balance-spread"
    "balance-time"
    "balance-pingpong"
    "balance-groups"
    "balance-sessions"
    "balance-nodes"
    "balance-wakeup"
    "locality-smt"
    "locality-node"
    "locality-numa"
    "conserve-bursts"
    "conserve-short"
    "conserve-bound"
    "isolation-quota"
    "isolation-fifo"
    "isolation-rt-limit"
    "isolation-deadline"
    "isolation-idle"
    "scaling-tasks"
    "scaling-switches"
    "stability-hotplug"
    "stability-return"
    "stability-affinity"
    "stability-forks"
}

/// All of them.
///
/// # Errors
/// None: a test of the build reads them all.
pub fn shipped() -> Result<Vec<Test>> {
    let read = |(name, text): &(&str, &str)| {
        let test = Test::parse(TomlText::new(format!("{name}.toml"), *text))?;
        Ok(Test { is_shipped: true, ..test })
    };
    FILES.iter().map(read).collect()
}

/// The text of the file of one, to copy and to edit.
///
/// # Errors
/// When there is none of that name.
pub fn written(id: &str) -> Result<&'static str> {
    FILES.iter().find(|(name, _)| *name == id).map(|(_, text)| *text).ok_or_else(|| {
        let error = Error::input(format!("\"{id}\" is no test of the battery"));
        match nearest(id, FILES.iter().map(|(name, _)| *name)) {
            Some(near) => error.mend(format!("did you mean \"{near}\"?")),
            None => error.mend("schedlab test --list lists them"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_file_of_the_folder_is_a_test_of_the_battery() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../battery");
        let entries =
            std::fs::read_dir(folder).expect("the folder is there").map(|entry| entry.expect("an entry").path());
        let files: BTreeSet<String> = entries
            .filter(|path| path.extension().is_some_and(|e| e == "toml"))
            .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
            .collect();
        let named: BTreeSet<String> = FILES.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(files, named);
    }

    #[test]
    fn every_test_says_what_it_asks_and_why_of_each_bound() {
        for (test, (name, _)) in shipped().unwrap_or_else(|e| panic!("{e}")).iter().zip(FILES) {
            assert_eq!(test.file.id, *name);
            assert!(test.file.title.len() <= 90, "{name}: a title of one line");
            for expectation in &test.file.expectations {
                assert!(expectation.figure.is_some(), "{name}: an expectation without a name");
                assert!(expectation.why.is_some(), "{name}: a bound without a reason");
            }
        }
    }
}

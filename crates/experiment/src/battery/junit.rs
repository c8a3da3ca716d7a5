//! JUnit XML of the battery, as CI systems read it: a suite for each group, a test case for each test.

use super::{Tested, Verdicts};
use crate::junit::status;
use quick_junit::{Report, TestCase, TestSuite};
use schedlab_base::{Error, Result};

/// The document. An undecided test is an error; a test that was skipped has its reason.
///
/// # Errors
/// When a text cannot be in XML.
pub fn junit(verdicts: &Verdicts) -> Result<String> {
    let mut report = Report::new(format!("schedlab test --on {}", verdicts.on));
    let mut groups: Vec<&str> = Vec::new();
    for tested in &verdicts.tests {
        let group = tested.test.keys.group.as_str();
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for group in groups {
        let mut suite = TestSuite::new(group);
        suite.add_property(("kernel", verdicts.kernel.as_str()));
        suite.add_test_cases(verdicts.tests.iter().filter(|tested| tested.test.keys.group == group).map(case));
        report.add_test_suite(suite);
    }
    report.to_string().map_err(|e| Error::input(format!("cannot be written as JUnit XML: {e}")))
}

fn case(tested: &Tested) -> TestCase {
    let file = &tested.test.file;
    let mut case = TestCase::new(file.id.as_str(), status(tested.verdict, tested.reason.clone().unwrap_or_default()));
    case.set_classname(format!("schedlab.{}", tested.test.keys.group));
    let mut said = format!("{}\nagain: {}\n", file.title, tested.command);
    if let Some(kept) = &tested.kept {
        said += &format!("kept: {}\n", kept.display());
    }
    if let Some(judged) = &tested.judged {
        for row in &judged.rows {
            let cases =
                row.cases.iter().map(|case| format!("{}: {}: {}\n", row.name(), case.verdict, case.finding("")));
            cases.for_each(|line| said += &line);
        }
    }
    case.set_system_out(said);
    case
}

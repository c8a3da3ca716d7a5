//! JUnit XML of an outcome, as CI systems read it: a suite for each experiment, a test for each case of an expectation.

use crate::compare::Case;
use crate::outcome::{Judged, Outcome, Row};
use crate::verdict::Verdict;
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use schedlab_base::{Error, Result};

/// The document. An undecided case is an error; a known difference, a calibration, and what was not judged are skipped
/// with the reason.
///
/// # Errors
/// When a text cannot be in XML.
pub fn write(outcome: &Outcome) -> Result<String> {
    let mut report = Report::new("schedlab run");
    report.add_test_suites(outcome.experiments.iter().map(suite));
    report.to_string().map_err(|e| Error::input(format!("cannot be written as JUnit XML: {e}")))
}

fn suite(judged: &Judged) -> TestSuite {
    let file = &judged.experiment.file;
    let mut suite = TestSuite::new(file.id.as_str());
    suite.add_property(("title", file.title.as_str()));
    for row in &judged.rows {
        if row.cases.is_empty() {
            let reason = row.reason.clone().unwrap_or_default();
            suite.add_test_case(test(&file.id, row, "", status(Verdict::Skipped, reason)));
        }
        for case in &row.cases {
            suite.add_test_case(test(&file.id, row, &case.place(), status(case.verdict, message(row, case))));
        }
    }
    let remarks = judged.remarks();
    if !remarks.is_empty() {
        suite.set_system_out(remarks.join("\n"));
    }
    suite
}

fn test(id: &str, row: &Row, place: &str, status: TestCaseStatus) -> TestCase {
    let name = if place.is_empty() { row.name().to_owned() } else { format!("{} ({place})", row.name()) };
    let mut test = TestCase::new(name, status);
    test.set_classname(id);
    test
}

/// What was found, and why the verdict is what it is.
fn message(row: &Row, case: &Case) -> String {
    let reason = case.reason.as_ref().or_else(|| row.reason.as_ref().filter(|_| case.verdict == row.verdict));
    let finding = case.finding(&row.expected);
    reason.map_or_else(|| finding.clone(), |reason| format!("{finding}: {reason}"))
}

/// The status of a test with this verdict.
pub(crate) fn status(verdict: Verdict, message: String) -> TestCaseStatus {
    let mut status = match verdict {
        Verdict::Pass => return TestCaseStatus::success(),
        Verdict::Fail => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Verdict::Undecided => TestCaseStatus::non_success(NonSuccessKind::Error),
        Verdict::Skipped | Verdict::KnownDifference | Verdict::Calibration => TestCaseStatus::skipped(),
    };
    if matches!(verdict, Verdict::KnownDifference | Verdict::Calibration) {
        status.set_message(format!("{verdict}: {message}"));
    } else {
        status.set_message(message);
    }
    if matches!(verdict, Verdict::Fail | Verdict::Undecided) {
        status.set_type(verdict.to_string());
    }
    status
}

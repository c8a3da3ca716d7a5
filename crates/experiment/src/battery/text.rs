//! The table that `schedlab test` prints.

use super::{Test, Verdicts};
use crate::text::columns;
use crate::verdict::Verdict;
use schedlab_base::visible;
use schedlab_chart::number;
use std::fmt::Write;

/// The tests with their groups and what they ask.
#[must_use]
pub fn list(tests: &[Test]) -> String {
    let mut rows = vec![["group", "test", "machine", "what it asks"].map(str::to_owned)];
    rows.extend(tests.iter().map(|test| {
        [&test.keys.group, &test.file.id, &test.file.machine, &test.file.title].map(|cell| visible(cell).into_owned())
    }));
    columns(&rows)
}

/// The table of verdicts, then what was found in each test that did not plainly pass, then the counts.
#[must_use]
pub fn table(verdicts: &Verdicts) -> String {
    let mut rows = vec![["group", "test", "verdict", "measured", "required"].map(str::to_owned)];
    for tested in &verdicts.tests {
        // The expectation that is nearest to its bound, or farthest beyond it, of those that decided.
        let row = tested.judged.as_ref().and_then(|judged| judged.rows.iter().find(|r| r.verdict == judged.verdict));
        let measured = row
            .and_then(|row| row.measured)
            .map_or_else(String::new, |x| format!("{} {}", row.map_or("", |row| row.name()), number(x)));
        let required = row.and_then(|row| row.required).map_or_else(String::new, |required| required.to_string());
        let cells = [&tested.test.keys.group, &tested.test.file.id, &tested.verdict.to_string(), &measured, &required];
        rows.push(cells.map(|cell| visible(cell).into_owned()));
    }
    let mut out = columns(&rows);
    for tested in &verdicts.tests {
        let Some(reason) = &tested.reason else { continue };
        let _ = writeln!(out, "\n{}: {}: {}", tested.test.file.id, tested.verdict, visible(reason));
        if tested.verdict == Verdict::Fail {
            let _ = writeln!(out, "  again: {}", visible(&tested.command));
        }
        if let Some(kept) = &tested.kept {
            let _ = writeln!(out, "  kept:  {}", visible(&kept.display().to_string()));
        }
    }
    let _ = writeln!(out, "\n{}", counts(verdicts));
    out
}

/// `linux-6.12, sim:linux-6.12: 28 passed, 1 failed, 1 skipped`.
pub(crate) fn counts(verdicts: &Verdicts) -> String {
    let mut text = format!("{} on {}: {} passed", verdicts.kernel, verdicts.on, verdicts.count(Verdict::Pass));
    for (verdict, word) in [(Verdict::Fail, "failed"), (Verdict::Undecided, "undecided"), (Verdict::Skipped, "skipped")]
    {
        let _ = write!(text, ", {} {word}", verdicts.count(verdict));
    }
    text
}

//! The page of the battery: one table of all tests, then each in full.

use super::experiment;
use super::page::{Page, Reproduce};
use super::verdicts::chip;
use crate::battery;
use crate::battery::{Tested, Verdicts};
use schedlab_chart::escape;
use std::fmt::Write;

/// The report of the battery.
#[must_use]
pub fn battery(verdicts: &Verdicts, reproduce: &Reproduce) -> String {
    let mut page = Page::new(&format!("Battery: {}", verdicts.kernel), &battery::counts(verdicts));
    page.push(&overview(verdicts));
    for tested in &verdicts.tests {
        details(&mut page, tested);
    }
    page.finish(reproduce)
}

fn overview(verdicts: &Verdicts) -> String {
    let mut html = String::from(
        "<div class=\"scroll\"><table><tr><th>group</th><th>test</th><th>what it asks</th><th>verdict</th></tr>",
    );
    for tested in &verdicts.tests {
        let (id, keys) = (escape(&tested.test.file.id), &tested.test.keys);
        let name = match tested.judged {
            Some(_) => format!("<a href=\"#{id}\">{id}</a>"),
            None => id.to_string(),
        };
        let reason =
            tested.reason.iter().map(|reason| format!("<small>{}</small>", escape(reason))).collect::<String>();
        let _ = write!(
            html,
            "<tr><td>{}</td><td>{name}</td><td>{}</td><td>{}{reason}</td></tr>",
            escape(&keys.group),
            escape(&tested.test.file.title),
            chip(tested.verdict, "")
        );
    }
    html + "</table></div>\n"
}

fn details(page: &mut Page, tested: &Tested) {
    let Some(judged) = &tested.judged else { return };
    experiment::write(page, judged, true);
    page.paragraph(&tested.test.keys.why);
    let whys = tested
        .test
        .file
        .expectations
        .iter()
        .filter_map(|e| Some(format!("{}: {}", e.figure.as_ref()?, e.why.as_ref()?)));
    page.list(&whys.collect::<Vec<_>>());
    let kept = tested.kept.iter().map(|kept| format!("# its traces are in {}\n", kept.display())).collect::<String>();
    page.push(&format!("<pre>{}{}</pre>\n", escape(&kept), escape(&tested.command)));
}

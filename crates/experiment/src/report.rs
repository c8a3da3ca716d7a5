//! Reports: one HTML page with everything in it, for a browser and for passing around.

mod battery;
mod charts;
mod experiment;
pub mod heat;
mod looks;
mod page;
mod pictures;
mod runs;
mod tables;
mod verdicts;
mod whatif;

pub use battery::battery;
pub use page::Reproduce;
pub use whatif::whatif;

use crate::outcome::Outcome;
use page::Page;

/// The report of experiments: verdicts, our figures over the published ones, what went on over time.
#[must_use]
pub fn experiments(outcome: &Outcome, reproduce: &Reproduce) -> String {
    let title = match &outcome.experiments[..] {
        [one] => format!("{}: {}", one.experiment.file.id, one.experiment.file.title),
        several => format!("{} experiments", several.len()),
    };
    let lead = verdicts::summary(outcome);
    let mut page = Page::new(&title, &lead);
    if outcome.experiments.len() > 1 {
        verdicts::contents(&mut page, outcome);
    }
    for judged in &outcome.experiments {
        experiment::write(&mut page, judged, outcome.experiments.len() > 1);
    }
    page.finish(reproduce)
}

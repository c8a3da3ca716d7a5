//! Where to look for what an answer says: in the simulation in which these tasks wait longer.

use super::{Kind, Predicted, Roster, Variant};
use crate::look::{Look, Subject, look};
use crate::prediction::Simulated;
use schedlab_base::Result;

impl Variant {
    /// Finds a place for each sentence about waits, if the traces of both simulations were kept.
    pub(super) fn find_looks(&mut self, roster: &Roster, before: &Simulated, after: &Simulated) -> Result<()> {
        for at in self.sentences.iter().filter_map(|sentence| sentence.row) {
            self.rows[at].look = find(roster, (before, after), &self.rows[at])?;
        }
        Ok(())
    }
}

fn find(roster: &Roster, (before, after): (&Simulated, &Simulated), row: &Predicted) -> Result<Option<Look>> {
    let (Some(old), Some(new)) = (&before.trace, &after.trace) else { return Ok(None) };
    let (run, trace, which) =
        if row.rises() { (after, new, "simulated as asked") } else { (before, old, "simulated as recorded") };
    let number = roster.rows.iter().position(|own| *own == row.row);
    let own = number.map(|number| roster.of_simulated(&run.report.tasks).swap_remove(number)).unwrap_or_default();
    let tasks: Vec<String> = match row.row.kind {
        Kind::All => Vec::new(),
        _ if own.is_empty() => return Ok(None),
        _ => own.into_iter().map(|task| run.report.tasks[task].name.to_string()).collect(),
    };
    let found = look(trace, &Subject { tasks, waste: false })?.map(|look| look.among(&[old.clone(), new.clone()]));
    Ok(found.map(|look| Look { sentence: format!("{which}, {}", look.sentence), ..look }))
}

impl Predicted {
    /// Whether these tasks wait longer as asked.
    fn rises(&self) -> bool {
        let wait = || self.figures.get("wait_us").is_some_and(|wait| wait.change > 0.0);
        self.most().map_or_else(wait, |(_, outcome, _)| outcome.change > 0.0)
    }
}

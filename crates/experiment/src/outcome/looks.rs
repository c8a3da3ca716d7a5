//! Where to look when an expectation does not hold.

use super::{Judged, Outcome, Row};
use crate::look::{Look, Subject, look};
use crate::run::RunResult;
use crate::verdict::Verdict;
use schedlab_base::Result;
use std::path::Path;

impl Outcome {
    /// Finds the place to look at for each expectation that does not hold, if the trace of its run was kept.
    ///
    /// # Errors
    /// When a kept trace cannot be read.
    pub fn find_looks(&mut self) -> Result<()> {
        for judged in &mut self.experiments {
            for at in 0..judged.rows.len() {
                judged.rows[at].look = judged.look_of(at)?;
            }
        }
        Ok(())
    }

    /// The places found.
    pub fn looks_mut(&mut self) -> impl Iterator<Item = &mut Look> {
        self.experiments.iter_mut().flat_map(|judged| &mut judged.rows).filter_map(|row| row.look.as_mut())
    }
}

impl Judged {
    fn look_of(&self, at: usize) -> Result<Option<Look>> {
        let row = &self.rows[at];
        if !matches!(row.verdict, Verdict::Fail | Verdict::Undecided | Verdict::KnownDifference) {
            return Ok(None);
        }
        let subject = Subject::of(&self.experiment.expectations[at].metric, &self.experiment.metrics);
        self.trace_of(row).map_or(Ok(None), |trace| look(trace, &subject))
    }

    /// The trace of the first run of the case that stands for the expectation.
    fn trace_of(&self, row: &Row) -> Option<&Path> {
        let experiment = &self.experiment;
        let kernel = row.kernel.as_ref();
        let fits = |run: &&RunResult| {
            kernel.is_none_or(|kernel| experiment.kernel_label(run.kernel) == kernel)
                && (row.at.is_empty() || experiment.points[run.point].label() == row.at)
        };
        let of_kernel = |run: &&RunResult| kernel.is_none_or(|k| experiment.kernel_label(run.kernel) == k);
        let shown = |run: &&RunResult| of_kernel(run) && run.point == experiment.shown_point();
        let of_case = self.runs.iter().find(fits).or_else(|| self.runs.iter().find(shown));
        of_case.and_then(|run| run.trace.as_deref())
    }
}

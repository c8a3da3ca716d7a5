//! What tasks did before the load begins.

use super::Core;
use crate::task::TaskId;
use schedlab_base::Averages;

impl Core {
    /// Returns what a task did before the load begins; `None` if it is new, or nobody knows.
    #[must_use]
    pub fn averages(&self, p: TaskId) -> Option<Averages> {
        let at = self.averages.binary_search_by_key(&p, |(task, _)| *task).ok()?;
        Some(self.averages[at].1)
    }
}

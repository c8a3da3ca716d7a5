//! The tasks that a recording was made for, and what a partial recording says about the others: nothing.

use super::Tracker;
use crate::tasks::Slot;
use crate::{Occupant, row};
use schedlab_base::{Coverage, Meta, Tid};
use std::collections::HashSet;

/// The tasks of the target.
#[derive(Debug)]
pub(super) struct Members {
    /// The threads that the metadata names.
    named: HashSet<Tid>,
    /// By slot.
    of: Vec<bool>,
    covers: Option<Coverage>,
    /// The metadata names a task that begins within the recording.
    begins: bool,
}

impl Members {
    pub(super) fn new(meta: &Meta) -> Self {
        let named = meta.target.iter().flat_map(|target| target.threads.iter().copied()).collect();
        let begins = meta.target.as_ref().is_some_and(|target| target.command.is_some());
        Self { named, of: Vec::new(), covers: meta.covers(), begins }
    }

    /// A thread id is seen for the first time: it is the one that the metadata names, if it does.
    pub(super) fn appears(&mut self, slot: Slot, tid: Tid) {
        if self.named.contains(&tid) {
            self.join(slot);
        }
    }

    /// A child belongs to the target if its parent does. The thread id of another child may have been that of a task
    /// that the metadata names.
    pub(super) fn forked(&mut self, parent: Option<Slot>, child: Slot) {
        let Some(parent) = parent else { return };
        if self.has(parent) || (self.has(child) && !self.begins) {
            *row(&mut self.of, child) = self.has(parent);
        }
    }

    /// Only tasks of the target leave a CPU in a recording of what happened while they ran.
    #[inline]
    pub(super) fn leaves(&mut self, slot: Slot) {
        if self.covers == Some(Coverage::Inside) {
            self.join(slot);
        }
    }

    #[cold]
    fn join(&mut self, slot: Slot) {
        *row(&mut self.of, slot) = true;
    }

    /// Whether the recording has the events of all tasks.
    #[inline]
    pub(super) fn all_followed(&self) -> bool {
        self.covers.is_none()
    }

    #[inline]
    fn has(&self, slot: Slot) -> bool {
        self.of.get(slot as usize).copied().unwrap_or(false)
    }

    /// Whether the recording has nothing of tasks that do not belong to the target.
    #[inline]
    fn alone(&self) -> bool {
        matches!(self.covers, Some(Coverage::Tasks | Coverage::Inside))
    }
}

impl Tracker {
    /// Whether the task belongs to the target of the recording; `false` if there is no target.
    #[must_use]
    pub fn is_target(&self, task: Slot) -> bool {
        self.members.has(task)
    }

    /// Whether the recording has the events of this task.
    #[inline]
    pub(super) fn follows(&self, task: Slot) -> bool {
        !self.members.alone() || self.members.has(task)
    }

    /// The occupant, if the recording shows when it gets a CPU and when it leaves it.
    #[inline]
    pub(super) fn followed(&self, who: Occupant) -> Occupant {
        match who {
            Occupant::Task(task) if !self.follows(task) => Occupant::Unknown,
            Occupant::Idle if self.members.alone() => Occupant::Unknown,
            who => who,
        }
    }

    /// Whether a CPU goes to an occupant from which a task of the target cannot take it unseen.
    #[inline]
    pub(super) fn sets_aside(&self, entered: Occupant) -> bool {
        self.members.covers == Some(Coverage::Tasks) && self.followed(entered) == Occupant::Unknown
    }

    /// Whether it is known which tasks wait on queues.
    #[inline]
    pub(super) fn knows_queues(&self) -> bool {
        self.members.covers.is_none()
    }
}

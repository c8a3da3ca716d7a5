//! Migrations: how often a task was moved, and from and to which CPUs.

use crate::tracker::Observer;
use crate::{Slot, row};
use schedlab_base::CpuId;

/// The measure.
#[derive(Clone, Debug, Default)]
pub struct Migrations {
    /// By task.
    pub tasks: Vec<u64>,
    /// By CPU: arrivals and departures.
    pub cpus: Vec<(u64, u64)>,
}

impl Observer for Migrations {
    #[inline]
    fn migrated(&mut self, task: Slot, from: CpuId, to: CpuId) {
        *row(&mut self.tasks, task) += 1;
        row(&mut self.cpus, to).0 += 1;
        row(&mut self.cpus, from).1 += 1;
    }
}

//! Migrations: how often a task was moved, and to and from which CPUs.

use crate::measure::Measure;
use serde::Serialize;

/// Moves between CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MigrationFigures {
    /// Moves from one CPU to another (of a CPU or node: arrivals).
    pub migrations: u64,
}

impl Measure for MigrationFigures {
    type Figures = Self;

    #[inline]
    fn moved(&mut self) {
        self.migrations += 1;
    }

    fn add(&mut self, other: &Self) {
        self.migrations += other.migrations;
    }

    fn figures(&self) -> Self {
        *self
    }
}

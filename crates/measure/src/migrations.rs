//! Migrations: how often a task was moved, and to and from which CPUs.

use crate::measure::{Measure, Part, Parts};
use schedlab_base::CpuId;
use schedlab_track::{Move, Observer, Slot, row};
use serde::Serialize;

/// Moves between CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct MigrationFigures {
    /// Moves from one CPU to another (of a CPU or node: arrivals).
    pub migrations: u64,
}

impl Part for MigrationFigures {
    type Figures = Self;

    fn add(&mut self, other: &Self) {
        self.migrations += other.migrations;
    }

    fn figures(&self) -> Self {
        *self
    }
}

/// The measure.
#[derive(Debug, Default)]
pub(crate) struct Migrations {
    moves: Parts<MigrationFigures>,
    departures: Vec<u64>,
}

impl Migrations {
    /// Tasks that were moved away from a CPU.
    pub(crate) fn departures(&self, cpu: CpuId) -> u64 {
        self.departures.get(cpu as usize).copied().unwrap_or_default()
    }
}

impl Observer for Migrations {
    #[inline]
    fn migrated(&mut self, task: Slot, moved: Move) {
        self.moves.task(task).migrations += 1;
        self.moves.cpu(moved.to).migrations += 1;
        *row(&mut self.departures, moved.from) += 1;
    }
}

impl Measure for Migrations {
    type Part = MigrationFigures;

    fn parts(&self) -> &Parts<MigrationFigures> {
        &self.moves
    }
}

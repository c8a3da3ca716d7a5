//! Reduces spans to the cells of a drawing: equal parts of a window.

use super::{Doing, Lanes, Span, Window};
use schedlab_base::{CpuId, Nanos, Tid};
use schedlab_track::Slot;
use std::collections::BTreeMap;

/// Where cells lie in a window.
#[derive(Clone, Copy, Debug)]
struct Grid {
    window: Window,
    cells: usize,
}

impl Grid {
    fn cell(&self, time: Nanos) -> usize {
        let length = u128::from(self.window.to - self.window.from).max(1);
        let at = u128::from(time - self.window.from) * self.cells as u128 / length;
        (at as usize).min(self.cells - 1)
    }

    /// The first instant of a cell.
    fn edge(&self, cell: usize) -> Nanos {
        let length = u128::from(self.window.to - self.window.from);
        // Rounded up, so that `cell(edge(n)) == n`.
        self.window.from + ((length * cell as u128).div_ceil(self.cells as u128)) as Nanos
    }

    /// The cells that a span touches, each with the time in it.
    fn parts(&self, span: &Span, mut take: impl FnMut(usize, Nanos)) {
        let Some(span) = self.window.clip(span) else { return };
        for cell in self.cell(span.from)..=self.cell(span.to - 1) {
            let (from, to) = (self.edge(cell).max(span.from), self.edge(cell + 1).min(span.to));
            if from < to {
                take(cell, to - from);
            }
        }
    }
}

/// What a CPU did in one cell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuCell {
    /// The task that ran longest in it; 0 when none ran.
    pub tid: Tid,
    /// The part of the cell, 0 to 1, in which that task ran.
    pub most: f64,
    /// The part of the cell in which any task ran.
    pub busy: f64,
    /// Tasks that were woken to run here.
    pub wakeups: u32,
    /// Events were lost here.
    pub lost: bool,
}

/// Which task each CPU ran longest in each cell of a window.
#[derive(Clone, Debug)]
pub struct CpuCells {
    grid: Grid,
    /// A lane for each CPU asked for.
    pub lanes: BTreeMap<CpuId, Vec<CpuCell>>,
    /// The cell that each CPU is in, and the tasks in it so far.
    open: BTreeMap<CpuId, (usize, BTreeMap<Tid, Nanos>)>,
}

impl CpuCells {
    /// Reduces the window to `cells` cells (at least one) for these CPUs.
    pub fn new(window: Window, cells: usize, cpus: impl IntoIterator<Item = CpuId>) -> Self {
        let grid = Grid { window, cells: cells.max(1) };
        let lanes = cpus.into_iter().map(|cpu| (cpu, vec![CpuCell::default(); grid.cells])).collect();
        Self { grid, lanes, open: BTreeMap::new() }
    }
}

impl Lanes for CpuCells {
    fn span(&mut self, span: &Span) {
        let Some(lane) = self.lanes.get_mut(&span.cpu).filter(|_| span.doing == Doing::Running) else { return };
        let (open, ran) = self.open.entry(span.cpu).or_default();
        let grid = self.grid;
        grid.parts(span, |cell, time| {
            if cell != *open {
                ran.clear();
                *open = cell;
            }
            let sum = ran.entry(span.tid).or_default();
            *sum += time;
            let length = (grid.edge(cell + 1) - grid.edge(cell)) as f64;
            let slot = &mut lane[cell];
            slot.busy = (slot.busy + time as f64 / length).min(1.0);
            let most = *sum as f64 / length;
            if most > slot.most {
                (slot.tid, slot.most) = (span.tid, most);
            }
        });
    }

    fn wakeup(&mut self, time: Nanos, _task: Slot, cpu: CpuId) {
        if let Some(lane) = self.lanes.get_mut(&cpu).filter(|_| self.grid.window.contains(time)) {
            lane[self.grid.cell(time)].wakeups += 1;
        }
    }

    fn lost(&mut self, time: Nanos, cpu: CpuId) {
        if let Some(lane) = self.lanes.get_mut(&cpu).filter(|_| self.grid.window.contains(time)) {
            lane[self.grid.cell(time)].lost = true;
        }
    }
}

/// What a task did in one cell: parts of it, 0 to 1. What is missing to 1, the task did not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TaskCell {
    /// On a CPU.
    pub running: f64,
    /// Runnable.
    pub waiting: f64,
    /// Asleep.
    pub sleeping: f64,
    /// Asleep, uninterruptibly.
    pub blocked: f64,
    /// How often it was woken.
    pub wakeups: u32,
}

/// What each of some tasks did in each cell of a window.
#[derive(Clone, Debug)]
pub struct TaskCells {
    grid: Grid,
    /// A lane for each task asked for.
    pub lanes: BTreeMap<Slot, Vec<TaskCell>>,
}

impl TaskCells {
    /// Reduces the window to `cells` cells (at least one) for these tasks.
    pub fn new(window: Window, cells: usize, tasks: impl IntoIterator<Item = Slot>) -> Self {
        let grid = Grid { window, cells: cells.max(1) };
        let lanes = tasks.into_iter().map(|task| (task, vec![TaskCell::default(); grid.cells])).collect();
        Self { grid, lanes }
    }
}

impl Lanes for TaskCells {
    fn span(&mut self, span: &Span) {
        let Some(lane) = self.lanes.get_mut(&span.task) else { return };
        let grid = self.grid;
        grid.parts(span, |cell, time| {
            let part = time as f64 / (grid.edge(cell + 1) - grid.edge(cell)) as f64;
            let slot = &mut lane[cell];
            match span.doing {
                Doing::Running => slot.running += part,
                Doing::Waiting => slot.waiting += part,
                Doing::Sleeping => slot.sleeping += part,
                Doing::Blocked => slot.blocked += part,
            }
        });
    }

    fn wakeup(&mut self, time: Nanos, task: Slot, _cpu: CpuId) {
        if let Some(lane) = self.lanes.get_mut(&task).filter(|_| self.grid.window.contains(time)) {
            lane[self.grid.cell(time)].wakeups += 1;
        }
    }
}

//! What makes an observer a measure of the statistics.
//!
//! A measure keeps a [`Part`] for each task and for each CPU. Parts add up: to those of a node, of a group, of the
//! whole. What they add up to is given as figures, a struct whose fields are the keys in the JSON. Such a measure is
//! a file of its own and a line in the registry, `measures.rs`; its figures then stand in every row of the report.

use schedlab_base::{CpuId, Nanos};
use schedlab_track::{Observer, Slot, row};

/// What is kept of a task or of a CPU.
pub(crate) trait Part: Default {
    /// How the report has it.
    type Figures;
    /// Adds another's.
    fn add(&mut self, other: &Self);
    /// For the report.
    fn figures(&self) -> Self::Figures;
}

/// The parts of all tasks and CPUs.
#[derive(Debug, Default)]
pub(crate) struct Parts<P> {
    tasks: Vec<P>,
    cpus: Vec<P>,
}

impl<P: Part> Parts<P> {
    /// That of a task.
    #[inline]
    pub(crate) fn task(&mut self, task: Slot) -> &mut P {
        row(&mut self.tasks, task)
    }

    /// That of a CPU.
    #[inline]
    pub(crate) fn cpu(&mut self, cpu: CpuId) -> &mut P {
        row(&mut self.cpus, cpu)
    }

    /// For how many tasks there is room: as many as were seen, at least.
    #[inline]
    pub(crate) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// The figures of these tasks together.
    pub(crate) fn of_tasks(&self, tasks: &[Slot]) -> P::Figures {
        Self::sum(&self.tasks, tasks)
    }

    /// The figures of these CPUs together.
    pub(crate) fn of_cpus(&self, cpus: &[CpuId]) -> P::Figures {
        Self::sum(&self.cpus, cpus)
    }

    fn sum(table: &[P], members: &[u32]) -> P::Figures {
        let mut parts = members.iter().filter_map(|member| table.get(*member as usize));
        match (parts.next(), parts.next()) {
            (Some(one), None) => one.figures(),
            (first, second) => {
                let mut sum = P::default();
                first.into_iter().chain(second).chain(parts).for_each(|part| sum.add(part));
                sum.figures()
            }
        }
    }
}

/// An observer whose figures stand in every row of the report.
pub(crate) trait Measure: Observer + Default {
    /// What it keeps of a task or of a CPU.
    type Part: Part;
    /// What it has kept.
    fn parts(&self) -> &Parts<Self::Part>;
}

/// A time in microseconds, the nanoseconds as decimals.
pub(crate) fn us(nanos: Nanos) -> f64 {
    nanos as f64 / 1e3
}

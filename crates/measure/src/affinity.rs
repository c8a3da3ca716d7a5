//! Where tasks may run, as far as the trace shows it.

use schedlab_base::{AffinityRecord, CpuId, CpuList, NameRecord, Nanos};
use schedlab_track::{Observer, Slot, row};
use std::sync::Arc;

/// The last affinity of each task; none where it is not known. Tasks that are told of one after the other mostly have
/// the same, and share it.
#[derive(Debug, Default)]
pub(crate) struct Affinities {
    tasks: Vec<Option<Arc<CpuList>>>,
    told: Arc<CpuList>,
}

impl Affinities {
    pub(crate) fn of(&self, task: Slot) -> Option<&Arc<CpuList>> {
        self.tasks.get(task as usize)?.as_ref()
    }
}

impl Observer for Affinities {
    fn allowed(&mut self, task: Slot, record: &AffinityRecord) {
        if *self.told != record.cpus {
            self.told = Arc::new(record.cpus.clone());
        }
        *row(&mut self.tasks, task) = Some(Arc::clone(&self.told));
    }

    fn named(&mut self, task: Slot, record: &NameRecord) {
        let bound = bound_by_name(&record.comm).filter(|_| self.of(task).is_none());
        if let Some(cpu) = bound {
            *row(&mut self.tasks, task) = Some(Arc::new([cpu].into_iter().collect()));
        }
    }

    /// A task is born with its parent's affinity, unless the trace has its own.
    fn forked(&mut self, parent: Option<Slot>, child: Slot, _: bool, _: Nanos) {
        let inherited = parent.and_then(|parent| row(&mut self.tasks, parent).clone());
        let known = row(&mut self.tasks, child);
        if known.is_none() {
            *known = inherited;
        }
    }
}

/// The CPU that a kernel thread of this name is bound to.
pub(crate) fn bound_by_name(comm: &str) -> Option<CpuId> {
    const BOUND: [&str; 8] =
        ["kworker", "migration", "ksoftirqd", "cpuhp", "idle_inject", "irq_work", "rcuc", "watchdog"];
    let (kind, rest) = comm.split_once('/')?;
    let digits = rest.split(':').next()?;
    BOUND.contains(&kind).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::bound_by_name;

    #[test]
    fn names_tell_where_the_kernels_threads_are_bound() {
        assert_eq!(bound_by_name("kworker/3:1H-kblockd"), Some(3));
        assert_eq!(bound_by_name("migration/12"), Some(12));
        for free in ["kworker/u8:2", "kworker/R-netns", "bash", "make/3", "scsi_eh_0"] {
            assert_eq!(bound_by_name(free), None, "{free}");
        }
    }
}

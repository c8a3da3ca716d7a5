//! Where tasks run that the workload leaves free: wherever the scheduler puts them, or on the best CPU or node that the
//! machine's topology has for each.

use schedlab_machine::{Cpu, Machine};
use schedlab_sim::program::Load;
use std::collections::BTreeSet;

/// Who chooses where tasks run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// The kernel's scheduler.
    #[default]
    Scheduler,
    /// Each task has a CPU of its own as long as there are any: nodes and caches in turn, a thread of each core first.
    Cpu,
    /// Each task has a node, in turn, and its memory comes from there.
    Numa,
}

impl Placement {
    /// Binds the tasks that exist from the start and are bound nowhere. Returns how many these are.
    pub fn apply(self, load: &mut Load, machine: &Machine) -> usize {
        let free = load.tasks.iter_mut().filter(|task| task.initial.cpus.is_none());
        match self {
            Self::Scheduler => 0,
            Self::Cpu => {
                let order = best_cpus(machine);
                free.zip(order.iter().cycle()).map(|(task, cpu)| task.initial.cpus = Some(vec![*cpu])).count()
            }
            Self::Numa => {
                let nodes = nodes(machine);
                let several = nodes.len() > 1;
                free.zip(nodes.iter().cycle())
                    .map(|(task, (node, cpus))| {
                        task.initial.cpus = Some(cpus.clone());
                        task.initial.membind = several.then(|| vec![*node]);
                    })
                    .count()
            }
        }
    }
}

/// The nodes that have CPUs, and their CPUs.
fn nodes(machine: &Machine) -> Vec<(u32, Vec<u32>)> {
    let mut nodes: Vec<(u32, Vec<u32>)> = Vec::new();
    for Cpu { place, .. } in &machine.cpus {
        match nodes.iter_mut().find(|(node, _)| *node == place.node) {
            Some((_, cpus)) => cpus.push(place.cpu),
            None => nodes.push((place.node, vec![place.cpu])),
        }
    }
    nodes.sort_by_key(|(node, _)| *node);
    nodes
}

/// All CPUs, the best for the next task first: a thread of a core that has no task yet, under the last-level cache that
/// has the fewest, on the node that has the fewest.
fn best_cpus(machine: &Machine) -> Vec<u32> {
    let places = || machine.cpus.iter().map(|cpu| &cpu.place);
    let distinct = |numbers: Vec<u32>| numbers.into_iter().collect::<BTreeSet<u32>>().len();
    let mut ranked: Vec<(usize, usize, usize, u32, u32)> = Vec::new();
    for own in places() {
        let before = || places().take_while(|other| other.cpu != own.cpu);
        let thread = before().filter(|other| other.core == own.core).count();
        let cores = before().filter(|other| other.llc == own.llc && other.core != own.core).map(|other| other.core);
        let caches = places().filter(|other| other.node == own.node && other.llc < own.llc).map(|other| other.llc);
        ranked.push((thread, distinct(cores.collect()), distinct(caches.collect()), own.node, own.cpu));
    }
    ranked.sort_unstable();
    ranked.into_iter().map(|(.., cpu)| cpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_sim::program::{Setting, TaskSpec};

    /// The CPUs and the nodes that a task is bound to.
    type Bound = (Option<Vec<u32>>, Option<Vec<u32>>);

    fn placed(machine: &str, placement: Placement, tasks: usize) -> Vec<Bound> {
        let mut load = Load { tasks: vec![TaskSpec::default(); tasks], ..Load::default() };
        load.tasks[1].initial = Setting { cpus: Some(vec![0]), ..Setting::default() };
        let count = placement.apply(&mut load, &schedlab_machine::load(machine).unwrap());
        assert_eq!(count, if placement == Placement::Scheduler { 0 } else { tasks - 1 });
        load.tasks.into_iter().map(|task| (task.initial.cpus, task.initial.membind)).collect()
    }

    #[test]
    fn cpus_are_taken_cache_by_cache_and_cores_before_their_second_threads() {
        // Two sockets of two cores of two threads, each with a cache: CPUs 0 to 3 and 4 to 7.
        let cpus: Vec<_> = placed("2x2x2", Placement::Cpu, 10).into_iter().map(|(cpus, _)| cpus.unwrap()[0]).collect();
        assert_eq!(cpus, [0, 0, 4, 2, 6, 1, 5, 3, 7, 0], "the workload binds the second task");
        let cpus: Vec<_> = placed("z800", Placement::Cpu, 5).into_iter().map(|(cpus, _)| cpus.unwrap()[0]).collect();
        assert_eq!(cpus, [0, 0, 6, 1, 7], "the nodes in turn");
    }

    #[test]
    fn nodes_are_taken_in_turn_with_their_memory() {
        let placed = placed("z800", Placement::Numa, 4);
        assert_eq!(placed[0], (Some((0..6).collect()), Some(vec![0])));
        assert_eq!(placed[1], (Some(vec![0]), None), "the workload binds it");
        assert_eq!(placed[2], (Some((6..12).collect()), Some(vec![1])));
        assert_eq!(placed[3], placed[0]);
    }

    #[test]
    fn the_scheduler_is_left_alone() {
        assert_eq!(placed("z800", Placement::Scheduler, 3)[0], (None, None));
    }
}

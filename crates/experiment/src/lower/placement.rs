//! Where tasks run that the workload leaves free: wherever the scheduler puts them, or on the best CPU or node that the
//! machine's topology has for each.

use schedlab_machine::{Cpu, Machine};
use schedlab_sim::program::Load;
use schedlab_workload::Placement;
use std::collections::BTreeSet;

/// The load with its tasks placed: those that exist from the start and are bound nowhere. Each is described by itself
/// then.
pub(super) fn placed(load: Load, placement: Placement, machine: &Machine) -> Load {
    if placement == Placement::Scheduler {
        return load;
    }
    let mut load = load.spread();
    let common = machine.common_cpus();
    let free = load.tasks.iter_mut().map(|task| &mut task.initial).filter(|initial| initial.cpus.is_none());
    if placement == Placement::Cpu {
        let order = best_cpus(machine).into_iter().filter(|cpu| common.contains(cpu));
        free.zip(order.cycle()).for_each(|(initial, cpu)| initial.cpus = Some(vec![cpu]));
        return load;
    }
    let nodes = nodes(machine, &common);
    for (initial, (node, cpus)) in free.zip(nodes.iter().cycle()) {
        initial.cpus = Some(cpus.clone());
        initial.membind = (nodes.len() > 1).then(|| vec![*node]);
    }
    load
}

/// The nodes that have some of these CPUs, and which.
fn nodes(machine: &Machine, cpus: &[u32]) -> Vec<(u32, Vec<u32>)> {
    let mut nodes: Vec<(u32, Vec<u32>)> = Vec::new();
    for Cpu { place, .. } in machine.cpus.iter().filter(|cpu| cpus.contains(&cpu.place.cpu)) {
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

    fn bound(machine: &Machine, placement: Placement, copies: u32) -> Vec<Bound> {
        let mut tasks = vec![TaskSpec::default(); 3];
        tasks[1].initial = Setting { cpus: Some(vec![0]), ..Setting::default() };
        tasks[2].copies = copies;
        let load = placed(Load { tasks, ..Load::default() }, placement, machine);
        load.tasks.into_iter().map(|task| (task.initial.cpus, task.initial.membind)).collect()
    }

    fn named(machine: &str, placement: Placement, copies: u32) -> Vec<Bound> {
        bound(&schedlab_machine::load(machine).unwrap(), placement, copies)
    }

    #[test]
    fn cpus_are_taken_cache_by_cache_and_cores_before_their_second_threads() {
        // Two sockets of two cores of two threads, each with a cache: CPUs 0 to 3 and 4 to 7.
        let cpus: Vec<_> = named("2x2x2", Placement::Cpu, 8).into_iter().map(|(cpus, _)| cpus.unwrap()[0]).collect();
        assert_eq!(cpus, [0, 0, 4, 2, 6, 1, 5, 3, 7, 0], "the workload binds the second task");
        let cpus: Vec<_> = named("z800", Placement::Cpu, 3).into_iter().map(|(cpus, _)| cpus.unwrap()[0]).collect();
        assert_eq!(cpus, [0, 0, 6, 1, 7], "the nodes in turn");
    }

    #[test]
    fn nodes_are_taken_in_turn_with_their_memory() {
        let placed = named("z800", Placement::Numa, 2);
        assert_eq!(placed[0], (Some((0..6).collect()), Some(vec![0])));
        assert_eq!(placed[1], (Some(vec![0]), None), "the workload binds it");
        assert_eq!(placed[2], (Some((6..12).collect()), Some(vec![1])));
        assert_eq!(placed[3], placed[0]);
    }

    #[test]
    fn the_scheduler_is_left_alone() {
        assert_eq!(named("z800", Placement::Scheduler, 1)[0], (None, None));
    }

    #[test]
    fn cpus_apart_from_the_others_are_not_taken() {
        let whole = schedlab_machine::load("4").unwrap();
        let split = Machine { isolated: vec![1], partitions: vec![vec![3]], ..whole };
        let cpus: Vec<_> = bound(&split, Placement::Cpu, 2).into_iter().map(|(cpus, _)| cpus.unwrap()).collect();
        assert_eq!(cpus, [vec![0], vec![0], vec![2], vec![0]]);
        assert_eq!(bound(&split, Placement::Numa, 1)[0], (Some(vec![0, 2]), None));
    }
}

//! Chooses the CPUs where tasks that will wake have slept: spread over the machine as fork balancing spreads tasks.

use crate::cpuset::CpuSet;
use schedlab_base::CpuId;
use schedlab_machine::Machine;
use std::collections::BTreeMap;

/// The CPUs in the order in which they are filled: packages and nodes in turn, their cores one by one, SMT siblings
/// last.
#[derive(Debug)]
pub(super) struct Homes {
    order: Vec<CpuId>,
    /// The position of each CPU in that order.
    turn: Vec<usize>,
    at: usize,
}

impl Homes {
    pub fn new(machine: &Machine) -> Self {
        let (mut threads, mut cores) = (BTreeMap::<u32, u32>::new(), BTreeMap::<(u32, u32), Vec<u32>>::new());
        let mut ranked: Vec<_> = machine
            .cpus
            .iter()
            .map(|cpu| {
                let thread = threads.entry(cpu.place.core).or_default();
                let siblings = cores.entry((cpu.place.package, cpu.place.node)).or_default();
                if *thread == 0 {
                    siblings.push(cpu.place.core);
                }
                let core = siblings.iter().rposition(|c| *c == cpu.place.core).unwrap_or(0);
                let rank = (*thread, core, cpu.place.package, cpu.place.cpu);
                *thread += 1;
                rank
            })
            .collect();
        ranked.sort_unstable();
        let order: Vec<CpuId> = ranked.into_iter().map(|(.., cpu)| cpu).collect();
        let mut turn = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, cpu)| turn[*cpu as usize] = at);
        Self { order, turn, at: 0 }
    }

    /// Returns the next allowed CPU in turn, or the first of all if none is allowed.
    pub fn next(&mut self, allowed: &CpuSet) -> CpuId {
        let count = self.order.len();
        let ahead = |at: usize| (at + count - self.at) % count;
        let at = if allowed.is_all() {
            Some(self.at)
        } else {
            let turns = allowed.iter().map_while(|cpu| self.turn.get(cpu as usize).copied());
            turns.min_by_key(|at| ahead(*at))
        };
        let Some(at) = at else { return 0 };
        self.at = (at + 1) % count;
        self.order[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_take_turns_and_siblings_come_last() {
        let mut homes = Homes::new(&schedlab_machine::load("2x2x2").unwrap());
        let order: Vec<CpuId> = (0..8).map(|_| homes.next(&CpuSet::ALL)).collect();
        assert_eq!(order, [0, 4, 2, 6, 1, 5, 3, 7]);
        assert_eq!(homes.next(&CpuSet::of(&[3])), 3);
        // After CPU 3 it is the turn of CPU 7.
        assert_eq!([homes.next(&CpuSet::of(&[1, 3, 5])), homes.next(&CpuSet::ALL)], [1, 5]);
        assert_eq!(homes.next(&CpuSet::of(&[99])), 0);
        let distances = vec![vec![10, 12], vec![12, 10]];
        let one = schedlab_machine::MachineFile { distances, ..schedlab_machine::MachineFile::flat("m", 1, 4, 1) };
        let mut homes = Homes::new(&one.build().unwrap());
        let order: Vec<CpuId> = (0..4).map(|_| homes.next(&CpuSet::ALL)).collect();
        assert_eq!(order, [0, 2, 1, 3], "two nodes in a package");
    }
}

//! A task's fault counts by node: faults on the memory of a node, and faults from the CPUs of a node.

use super::Node;

/// The shared and the private faults of a node.
pub type Pair = [i64; 2];

/// A task's fault counts, in pages (`numa_faults`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    /// Faults on the memory of each node, halved at each pass.
    pub memory: Vec<Pair>,
    /// Faults from the CPUs of each node, scaled by the fraction of time that the task ran, and halved at each pass.
    pub cpu: Vec<Pair>,
    /// Faults on the memory of each node since the last pass.
    pub new_memory: Vec<Pair>,
    /// Faults from the CPUs of each node since the last pass.
    pub new_cpu: Vec<Pair>,
    /// The sum of `memory`.
    pub total: i64,
}

/// By how much one pass changed a task's fault counts, so that its group's counts can follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The changes of the faults on memory, by node.
    pub memory: Vec<Pair>,
    /// The changes of the faults from CPUs, by node.
    pub cpu: Vec<Pair>,
    /// The new faults, shared and private.
    pub fresh: Pair,
}

impl Faults {
    /// Creates the counts for a number of nodes, all zero.
    #[must_use]
    pub fn new(nodes: usize) -> Self {
        let none = vec![[0; 2]; nodes];
        Self { memory: none.clone(), cpu: none.clone(), new_memory: none.clone(), new_cpu: none, total: 0 }
    }

    /// The faults on a node's memory.
    #[must_use]
    pub fn on(&self, node: Node) -> i64 {
        self.memory[node as usize].iter().sum()
    }

    /// Counts `pages` faults from a CPU of node `cpu` on memory of node `memory`.
    pub fn record(&mut self, memory: Node, cpu: Node, private: bool, pages: u64) {
        self.new_memory[memory as usize][usize::from(private)] += pages as i64;
        self.new_cpu[cpu as usize][usize::from(private)] += pages as i64;
    }

    /// Ends a pass: halves the old counts and adds the new ones. Faults from CPUs are scaled by how much the task ran,
    /// `runtime` out of `period`. `faulted` is the number of all faults since the scan period was last adapted.
    pub fn decay(&mut self, runtime: u64, period: u64, faulted: u64) -> Change {
        let nodes = self.memory.len();
        let mut change = Change { memory: vec![[0; 2]; nodes], cpu: vec![[0; 2]; nodes], fresh: [0; 2] };
        let ran = ((u128::from(runtime) << 16) / (u128::from(period) + 1)) as i64;
        for node in 0..nodes {
            for private in 0..2 {
                let fresh = std::mem::take(&mut self.new_memory[node][private]);
                change.fresh[private] += fresh;
                let by = fresh - self.memory[node][private] / 2;
                let from = ran * std::mem::take(&mut self.new_cpu[node][private]) / (faulted as i64 + 1);
                let by_cpu = from - self.cpu[node][private] / 2;
                self.memory[node][private] += by;
                self.cpu[node][private] += by_cpu;
                self.total += by;
                (change.memory[node][private], change.cpu[node][private]) = (by, by_cpu);
            }
        }
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_counts_half_as_much_as_the_next() {
        let mut faults = Faults::new(2);
        faults.record(0, 1, true, 100);
        faults.record(1, 1, false, 40);
        let change = faults.decay(1, 1, 140);
        assert_eq!((change.fresh, faults.total), ([40, 100], 140));
        assert_eq!((faults.on(0), faults.on(1)), (100, 40));
        // (1 << 16) / 2, times 40 and 100 of 141.
        assert_eq!(faults.cpu[1], [32_768 * 40 / 141, 32_768 * 100 / 141]);
        faults.record(0, 0, true, 7);
        let change = faults.decay(0, 1, 7);
        assert_eq!((change.memory[0], change.memory[1]), ([0, 7 - 50], [-20, 0]));
        assert_eq!((faults.on(0), faults.on(1), faults.total), (57, 20, 77));
    }
}

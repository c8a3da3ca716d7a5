//! Which CPUs are idle, how close they are to each other, and which idle CPU suits a task best.

use schedlab_base::{CpuId, CpuPlace};
use schedlab_machine::Machine;

/// Penalties of an idle CPU, in increasing order (`CPUIDLE_*`).
const DIFF_THREAD: u32 = 1;
const DIFF_CORE: u32 = 2;
const CACHE_BUSY: u32 = 4;
const DIFF_CPU: u32 = 8;
const THREAD_BUSY: u32 = 16;
const DIFF_NODE: u32 = 32;

/// The state of all CPUs.
#[derive(Debug)]
pub struct Cpus {
    places: Vec<CpuPlace>,
    /// One bit for each idle CPU (`cpu_idle_map`).
    idle: Vec<u64>,
    online: Vec<bool>,
    /// The number of busy CPUs in each core, and in each last-level cache.
    busy_in_core: Vec<u32>,
    busy_in_cache: Vec<u32>,
}

impl Cpus {
    /// Creates the state for a machine whose CPUs are all idle.
    pub fn new(machine: &Machine) -> Self {
        let places: Vec<CpuPlace> = machine.cpus.iter().map(|c| c.place.clone()).collect();
        let count = |of: fn(&CpuPlace) -> u32| vec![0; places.iter().map(of).max().map_or(0, |m| m as usize + 1)];
        let (busy_in_core, busy_in_cache) = (count(|p| p.core), count(|p| p.llc));
        let mut idle = vec![0u64; places.len().div_ceil(64)];
        for cpu in 0..places.len() {
            idle[cpu / 64] |= 1 << (cpu % 64);
        }
        Self { online: vec![true; places.len()], places, idle, busy_in_core, busy_in_cache }
    }

    /// Returns the distance between two CPUs: 0 for the same CPU, 1 for threads of one core, 2 for one cache, 3 for one
    /// node, 4 beyond that (`cpu_locality`).
    pub fn distance(&self, a: CpuId, b: CpuId) -> u32 {
        let (x, y) = (&self.places[a as usize], &self.places[b as usize]);
        match () {
            () if a == b => 0,
            () if x.core == y.core => 1,
            () if x.llc == y.llc => 2,
            () if x.node == y.node => 3,
            () => 4,
        }
    }

    /// Returns whether a CPU is idle.
    pub fn is_idle(&self, cpu: CpuId) -> bool {
        self.idle[cpu as usize / 64] >> (cpu % 64) & 1 == 1
    }

    /// Marks a CPU as idle or busy. An offline CPU never counts as idle.
    pub fn set_idle(&mut self, cpu: CpuId, idle: bool) {
        if self.is_idle(cpu) == idle || !self.online[cpu as usize] {
            return;
        }
        self.flip(cpu);
        let CpuPlace { core, llc, .. } = self.places[cpu as usize];
        for busy in [&mut self.busy_in_core[core as usize], &mut self.busy_in_cache[llc as usize]] {
            *busy = if idle { *busy - 1 } else { *busy + 1 };
        }
    }

    fn flip(&mut self, cpu: CpuId) {
        self.idle[cpu as usize / 64] ^= 1 << (cpu % 64);
    }

    /// Marks a CPU as online (and idle) or offline.
    pub fn set_online(&mut self, cpu: CpuId, online: bool) {
        if self.online[cpu as usize] != online {
            self.set_idle(cpu, true);
            self.flip(cpu);
            self.online[cpu as usize] = online;
        }
    }

    /// Returns the penalty of the idle CPU `cpu` for a task that last ran on `from`.
    fn ranking(&self, from: CpuId, cpu: CpuId) -> u32 {
        let CpuPlace { core, llc, .. } = self.places[cpu as usize];
        let far = match self.distance(from, cpu) {
            0 => 0,
            1 => DIFF_THREAD,
            2 => DIFF_CORE,
            3 => DIFF_CPU,
            _ => DIFF_NODE,
        };
        let thread = if self.busy_in_core[core as usize] > 0 { THREAD_BUSY } else { 0 };
        let cache = if self.busy_in_cache[llc as usize] > 0 { CACHE_BUSY } else { 0 };
        far | thread | cache
    }

    /// Returns the best idle CPU, among those for which `suit` holds, for a task that last ran on `from`: `from` itself
    /// if possible, else the CPU with the smallest penalty and, among equals, the lowest number (`resched_best_mask`).
    pub fn best_idle(&self, from: CpuId, suit: impl Fn(CpuId) -> bool) -> Option<CpuId> {
        if self.is_idle(from) && suit(from) {
            return Some(from);
        }
        let mut best = None;
        for (i, word) in self.idle.iter().enumerate() {
            let mut left = *word;
            while left != 0 {
                let cpu = i as CpuId * 64 + left.trailing_zeros();
                left &= left - 1;
                if suit(cpu) {
                    let ranking = self.ranking(from, cpu);
                    if best.is_none_or(|(least, _)| ranking < least) {
                        best = Some((ranking, cpu));
                    }
                }
            }
        }
        best.map(|(_, cpu)| cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_with_a_busy_thread_is_worse_than_another_package() {
        // Two packages of two cores of two threads: 0 and 1 are one core, 0 to 3 one package.
        let mut cpus = Cpus::new(&schedlab_machine::load("2x2x2").unwrap());
        assert_eq!([0, 1, 2].map(|c| cpus.distance(0, c)), [0, 1, 2]);
        assert_eq!(cpus.best_idle(0, |_| true), Some(0));
        cpus.set_idle(0, false);
        assert_eq!(cpus.best_idle(0, |_| true), Some(2), "a whole core in the same cache");
        cpus.set_idle(2, false);
        assert_eq!(cpus.best_idle(0, |_| true), Some(4), "a whole core elsewhere before half a core here");
        for cpu in 4..8 {
            cpus.set_idle(cpu, false);
        }
        assert_eq!(cpus.best_idle(0, |_| true), Some(1));
        assert_eq!(cpus.best_idle(0, |c| c != 1), Some(3));
        cpus.set_online(0, false);
        assert_eq!(cpus.best_idle(0, |_| true), Some(1));
        cpus.set_online(0, true);
        assert_eq!(cpus.best_idle(0, |_| true), Some(0));
    }
}

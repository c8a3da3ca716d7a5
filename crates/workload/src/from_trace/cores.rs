//! How much work the time on a CPU was. A small CPU does less in the same time than the biggest one, and so does an SMT
//! thread while its siblings are busy. The CPU time of a recorded burst is as long as it took there, and the simulated
//! one is slowed down again: so it is written down as the work that it was.

use schedlab_base::{CpuId, CpuPlace, Nanos, SmtSpeeds};
use schedlab_track::MAX_CPUS;
use std::collections::BTreeMap;

/// A CPU of a core with siblings.
#[derive(Clone, Debug, Default)]
struct Thread {
    siblings: Box<[CpuId]>,
    /// Whether a task is on it.
    busy: bool,
    /// What a task on it would have lost since the start, up to `until`, in 1024ths of a ns.
    lost: u128,
    until: Nanos,
    /// What it had lost when the present task was last counted.
    counted: u128,
}

/// The CPUs of a machine.
#[derive(Debug)]
pub(super) struct Cores {
    /// The capacity of each CPU, 1024 (or 0, unknown) for the biggest.
    capacity: Vec<u32>,
    /// Those of cores with siblings; none if the machine has no SMT, or if it costs nothing.
    threads: Vec<Thread>,
    speeds: SmtSpeeds,
}

impl Default for Cores {
    fn default() -> Self {
        Self { capacity: Vec::new(), threads: Vec::new(), speeds: SmtSpeeds::new(0) }
    }
}

impl Cores {
    /// The cores of a machine with these CPUs.
    pub(super) fn new(cpus: &[CpuPlace], loss_percent: u64) -> Self {
        let mut cores: BTreeMap<u32, Vec<CpuId>> = BTreeMap::new();
        let (mut capacity, mut threads) = (Vec::new(), Vec::new());
        for place in cpus.iter().filter(|place| place.cpu < MAX_CPUS) {
            cores.entry(place.core).or_default().push(place.cpu);
            let at = place.cpu as usize;
            capacity.resize(capacity.len().max(at + 1), 0);
            capacity[at] = place.capacity;
        }
        if loss_percent > 0 && cores.values().any(|core| core.len() > 1) {
            threads.resize(capacity.len(), Thread::default());
            for core in cores.values() {
                for cpu in core {
                    threads[*cpu as usize].siblings = core.iter().copied().filter(|other| *other != *cpu).collect();
                }
            }
        }
        Self { capacity, threads, speeds: SmtSpeeds::new(loss_percent) }
    }

    /// From now on a task is on the CPU, or none is.
    pub(super) fn occupied(&mut self, cpu: CpuId, busy: bool, now: Nanos) {
        let Some(thread) = self.threads.get(cpu as usize).filter(|thread| thread.busy != busy) else { return };
        for at in 0..thread.siblings.len() {
            self.catch_up(self.threads[cpu as usize].siblings[at], now);
        }
        self.threads[cpu as usize].busy = busy;
    }

    /// A task begins on the CPU now, or goes on after an interruption.
    pub(super) fn begins(&mut self, cpu: CpuId, now: Nanos) {
        if let Some(thread) = self.catch_up(cpu, now) {
            thread.counted = thread.lost;
        }
    }

    /// The work of the task on the CPU since it was last counted, `ns` ago, in ns of the biggest CPU. It is counted
    /// now.
    pub(super) fn count(&mut self, cpu: CpuId, ns: Nanos, now: Nanos) -> Nanos {
        let work = self.work(cpu, ns, now);
        self.begins(cpu, now);
        work
    }

    /// The work of the task on the CPU since it was last counted, `ns` ago.
    pub(super) fn work(&self, cpu: CpuId, ns: Nanos, now: Nanos) -> Nanos {
        let capacity = self.capacity.get(cpu as usize).copied().filter(|c| *c > 0).unwrap_or(1024);
        (u128::from(ns - self.lost(cpu, now).min(self.most(cpu, ns))) * u128::from(capacity) / 1024) as Nanos
    }

    /// What the task on the CPU has lost since it was last counted.
    fn lost(&self, cpu: CpuId, now: Nanos) -> Nanos {
        let Some(thread) = self.threads.get(cpu as usize) else { return 0 };
        ((thread.lost + self.more(thread, now) - thread.counted) / 1024) as Nanos
    }

    /// The most that a task can lose in `ns`: where a switch was not seen, it was counted longer ago.
    fn most(&self, cpu: CpuId, ns: Nanos) -> Nanos {
        let siblings = self.threads.get(cpu as usize).map_or(0, |thread| thread.siblings.len());
        (u128::from(ns) * u128::from(1024 - self.speeds.with_busy(siblings)) / 1024) as Nanos
    }

    /// What a task on the CPU has lost since `until`.
    fn more(&self, thread: &Thread, now: Nanos) -> u128 {
        let busy = thread.siblings.iter().filter(|other| self.threads[**other as usize].busy).count();
        u128::from(now.saturating_sub(thread.until)) * u128::from(1024 - self.speeds.with_busy(busy))
    }

    fn catch_up(&mut self, cpu: CpuId, now: Nanos) -> Option<&mut Thread> {
        let more = self.more(self.threads.get(cpu as usize)?, now);
        let thread = &mut self.threads[cpu as usize];
        thread.lost += more;
        thread.until = thread.until.max(now);
        Some(thread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores(threads: u32, loss: u64) -> Cores {
        let places: Vec<_> = (0..4).map(|cpu| CpuPlace { cpu, core: cpu / threads, ..CpuPlace::default() }).collect();
        Cores::new(&places, loss)
    }

    #[test]
    fn a_small_cpu_does_less() {
        let place = |cpu, capacity| CpuPlace { cpu, core: cpu, capacity, ..CpuPlace::default() };
        let cores = Cores::new(&[place(0, 1024), place(2, 512)], 39);
        assert_eq!([0, 1, 2, 3].map(|cpu| cores.work(cpu, 1_000, 5_000)), [1_000, 1_000, 500, 1_000]);
    }

    #[test]
    fn a_task_loses_while_its_sibling_is_busy() {
        let mut cores = cores(2, 50);
        cores.occupied(0, true, 0);
        cores.begins(0, 0);
        cores.occupied(2, true, 0);
        assert_eq!(cores.work(0, 1_000, 1_000), 1_000, "CPU 2 is of another core");
        cores.occupied(1, true, 1_000);
        assert_eq!(cores.work(0, 3_000, 3_000), 2_000);
        cores.occupied(1, false, 5_000);
        assert_eq!(cores.count(0, 9_000, 9_000), 7_000);
        assert_eq!(cores.count(0, 1_000, 10_000), 1_000);
        // It was not seen that the CPU changed hands: no more than half of a burst is lost.
        cores.occupied(1, true, 10_000);
        assert_eq!(cores.count(0, 2_000, 20_000), 1_000);
    }

    #[test]
    fn without_smt_nothing_is_lost() {
        for mut cores in [cores(1, 39), cores(2, 0), Cores::default()] {
            cores.occupied(1, true, 0);
            cores.begins(0, 0);
            assert_eq!(cores.count(0, 1_000, 1_000), 1_000);
        }
    }
}

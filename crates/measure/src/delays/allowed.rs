//! How long any CPU of a set was idle, for each set of CPUs that tasks are allowed on.

use schedlab_base::{CpuId, CpuList, Nanos};
use schedlab_track::row;
use std::collections::HashMap;

/// The set of all CPUs.
pub(super) const ANYWHERE: u32 = 0;

/// More different sets than this are not told apart: memory stays bounded.
const MOST: usize = 1 << 12;

#[derive(Debug, Default)]
struct Set {
    idle: u32,
    since: Nanos,
    time: Nanos,
}

impl Set {
    #[inline]
    fn change(&mut self, idle: bool, now: Nanos) {
        if self.idle > 0 {
            self.time += now.saturating_sub(self.since);
        }
        self.since = now;
        self.idle = if idle { self.idle + 1 } else { self.idle - 1 };
    }
}

/// The sets of CPUs.
#[derive(Debug)]
pub(super) struct Allowed {
    sets: Vec<Set>,
    index: HashMap<CpuList, u32>,
    /// The sets that each CPU is in, but for that of all.
    of: Vec<Vec<u32>>,
    idle: Vec<bool>,
}

impl Allowed {
    pub(super) fn new() -> Self {
        Self { sets: vec![Set::default()], index: HashMap::new(), of: Vec::new(), idle: Vec::new() }
    }

    /// The set with these CPUs; `None` when there are too many sets.
    pub(super) fn set(&mut self, cpus: &CpuList, now: Nanos) -> Option<u32> {
        if let Some(set) = self.index.get(cpus) {
            return Some(*set);
        }
        if self.sets.len() >= MOST {
            return None;
        }
        let set = self.sets.len() as u32;
        let idle = (0..).zip(&self.idle).filter(|(cpu, idle)| **idle && cpus.contains(*cpu)).count() as u32;
        self.sets.push(Set { idle, since: now, time: 0 });
        cpus.iter().for_each(|cpu| row(&mut self.of, cpu).push(set));
        self.index.insert(cpus.clone(), set);
        Some(set)
    }

    /// From now on the CPU is idle, or not.
    #[inline]
    pub(super) fn turn(&mut self, cpu: CpuId, idle: bool, now: Nanos) {
        if std::mem::replace(row(&mut self.idle, cpu), idle) == idle {
            return;
        }
        self.sets[ANYWHERE as usize].change(idle, now);
        for set in self.of.get(cpu as usize).into_iter().flatten() {
            self.sets[*set as usize].change(idle, now);
        }
    }

    /// How long until now any CPU of the set has been idle.
    #[inline]
    pub(super) fn time(&self, set: u32, now: Nanos) -> Nanos {
        let set = &self.sets[set as usize];
        if set.idle > 0 { set.time + now.saturating_sub(set.since) } else { set.time }
    }
}

//! The domains of 3.10 and later: one domain for each CPU at each level, up to the level that spans all CPUs.

use super::Ask;
use super::asymmetry::Asymmetry;
use super::flags::Flags;
use super::levels::{Level, Levels};
use super::model::{Domain, SpanId};
use super::pool::Pool;
use super::release;
use super::rings::Rings;
use schedlab_base::{CpuId, v};

/// The domains before any is removed.
pub(super) struct Tree<'a> {
    pub ask: &'a Ask<'a>,
    pub levels: &'a [Level],
    /// The span of each CPU's domain, by level and CPU.
    pub spans: Vec<Vec<SpanId>>,
    flags: Vec<Vec<Flags>>,
    /// The number of levels of each CPU. The last one spans all online CPUs.
    depth: Vec<u8>,
}

impl<'a> Tree<'a> {
    fn new(pool: &mut Pool, ask: &'a Ask<'a>, levels: &'a Levels) -> Self {
        let cpus = ask.cpus() as usize;
        let levels = &levels.levels[..];
        let none = pool.of(&[]);
        let mut tree = Self {
            ask,
            levels,
            spans: vec![vec![none; cpus]; levels.len()],
            flags: vec![vec![Flags::NONE; cpus]; levels.len()],
            depth: vec![0; cpus],
        };
        let all = pool.span(ask.online.clone());
        let mut asymmetry = Asymmetry::of(pool, ask, levels);
        for cpu in ask.online.iter() {
            tree.grow(pool, &mut asymmetry, all, cpu);
        }
        tree
    }

    /// Builds the spans and flags of one CPU's domains, from the lowest level up (`sd_init`, `build_sched_domain`).
    fn grow(&mut self, pool: &mut Pool, asymmetry: &mut Asymmetry, all: SpanId, cpu: CpuId) {
        let at = cpu as usize;
        for (l, level) in self.levels.iter().enumerate() {
            let mut span = pool.and(level.masks[at], all);
            // "sched: Robustify topology setup" (3.17).
            if l > 0 && self.ask.release >= v(3, 17) && !pool.subset(self.spans[l - 1][at], span) {
                span = pool.or(self.spans[l - 1][at], span);
            }
            let (mut flags, _) = release::level(self.ask.release, self.ask.machine, level.shares, 1);
            let unequal = asymmetry.flags(pool, l, span);
            if l > 0 && unequal.has(Flags::ASYM_CPUCAPACITY) {
                // Tasks are not spread over CPUs that differ in capacity.
                self.flags[l - 1][at] = self.flags[l - 1][at].without(Flags::PREFER_SIBLING);
            }
            if level.overlaps() {
                flags = flags.with(Flags::OVERLAP);
            }
            self.flags[l][at] = flags.with(unequal);
            self.spans[l][at] = span;
            self.depth[at] = l as u8 + 1;
            if span == all {
                break;
            }
        }
    }

    /// Whether a CPU has a domain at a level.
    pub fn has(&self, level: usize, cpu: CpuId) -> bool {
        level < usize::from(self.depth[cpu as usize])
    }

    /// The capacity of one CPU. Until 4.3 the machine's capacities are ignored (`ARCH_POWER` and `ARCH_CAPACITY` are
    /// off). SMT siblings share `smt_gain` until "sched/topology: Remove the ::smt_gain field from 'struct
    /// sched_domain'" (5.0).
    pub fn capacity(&self, pool: &Pool, cpu: CpuId) -> u32 {
        match pool.weight(self.spans[0][cpu as usize]) {
            siblings @ 2.. if self.ask.release < v(5, 0) => 1178 / siblings,
            _ if self.ask.release < v(4, 4) => 1024,
            _ => self.ask.machine.cpus[cpu as usize].place.capacity,
        }
    }

    /// The flags of the group that consists of what is below `level` at `cpu`. Until "sched/topology: Align group flags
    /// when removing degenerate domain" (6.6) these were the flags of the level below, even if that level is removed
    /// because it adds nothing to its own child.
    pub fn child_flags(&self, level: usize, cpu: CpuId) -> Flags {
        let at = cpu as usize;
        let Some(mut child) = level.checked_sub(1) else { return Flags::NONE };
        if self.ask.release >= v(6, 6) {
            while child > 0 && self.spans[child][at] == self.spans[child - 1][at] {
                child -= 1;
            }
        }
        self.flags[child][at]
    }

    /// The allowed NUMA imbalance for each of a CPU's levels (`imb_numa_nr`).
    fn allowed_imbalance(&self, pool: &Pool, cpu: CpuId) -> Vec<u32> {
        let at = cpu as usize;
        let depth = usize::from(self.depth[at]);
        let weight = |l: usize| pool.weight(self.spans[l][at]);
        let shared = |l: usize| self.flags[l][at].has(Flags::SHARE_LLC);
        let (mut allowed, mut span) = (0, 1);
        (0..depth)
            .map(|l| {
                if shared(l) || l == 0 || !shared(l - 1) {
                    return allowed * (weight(l) / span).max(1);
                }
                // An eighth of the node's CPUs, or one task for each of its caches.
                let caches = weight(l) / weight(l - 1);
                allowed = if caches == 1 { weight(l) >> 3 } else { caches }.max(1);
                let across = (l + 1..depth).find(|up| self.flags[*up][at].has(Flags::NUMA));
                span = weight(across.unwrap_or(l));
                allowed
            })
            .collect()
    }

    fn domains_of(&self, pool: &mut Pool, rings: &mut Rings, cpu: CpuId) -> Vec<Domain> {
        let at = cpu as usize;
        // "sched/fair: Adjust the allowed NUMA imbalance when SD_NUMA spans multiple LLCs" (5.18).
        let allowed =
            if self.ask.release >= v(5, 18) { self.allowed_imbalance(pool, cpu) } else { vec![0; self.levels.len()] };
        (0..usize::from(self.depth[at]))
            .map(|l| {
                let level = &self.levels[l];
                let (_, params) =
                    release::level(self.ask.release, self.ask.machine, level.shares, pool.weight(level.masks[at]));
                let (ring, start) = rings.of(pool, self, l, cpu);
                let kind = pool.kind(level.name, params);
                Domain { span: self.spans[l][at], flags: self.flags[l][at], imb_numa_nr: allowed[l], ring, start, kind }
            })
            .collect()
    }
}

/// Builds the domains of all CPUs, before any is removed.
pub(super) fn build(pool: &mut Pool, ask: &Ask<'_>, levels: &Levels) -> Vec<Vec<Domain>> {
    let tree = Tree::new(pool, ask, levels);
    let mut rings = Rings::default();
    let cpus = 0..ask.cpus();
    cpus.map(|cpu| if ask.online.contains(cpu) { tree.domains_of(pool, &mut rings, cpu) } else { Vec::new() }).collect()
}

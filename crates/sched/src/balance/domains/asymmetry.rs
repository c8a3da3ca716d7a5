//! Detection of domains whose CPUs differ in capacity.

use super::Ask;
use super::flags::Flags;
use super::levels::Level;
use super::model::SpanId;
use super::pool::Pool;
use schedlab_base::{CpuId, v};
use schedlab_sim::CpuSet;
use std::collections::BTreeMap;

/// What a release knows about asymmetric CPU capacities.
pub(super) enum Asymmetry {
    /// All capacities are equal, or the release does not look at them (until 4.19).
    None,
    /// The lowest level at which every CPU sees one of the greatest capacity. All domains from this level up have the
    /// flag (`asym_cpu_capacity_level`; "sched/topology: Add SD_ASYM_CPUCAPACITY flag detection", 4.20).
    FromLevel(usize),
    /// The sets of CPUs with equal capacity (`asym_cap_list`; "sched/topology: Rework CPU capacity asymmetry
    /// detection", 5.14).
    Classes { classes: Vec<CpuSet>, online: CpuSet, known: BTreeMap<SpanId, Flags> },
}

impl Asymmetry {
    /// Determines the asymmetry of a machine as the release does.
    pub fn of(pool: &mut Pool, ask: &Ask<'_>, levels: &[Level]) -> Self {
        let mut cpus: BTreeMap<u32, Vec<CpuId>> = BTreeMap::new();
        for cpu in &ask.machine.cpus {
            cpus.entry(cpu.place.capacity).or_default().push(cpu.place.cpu);
        }
        match ask.release {
            r if cpus.len() == 1 || r < v(4, 20) => Self::None,
            r if r < v(5, 14) => Self::FromLevel(from_level(pool, ask, levels)),
            _ => Self::Classes {
                classes: cpus.values().map(|cpus| CpuSet::of(cpus)).collect(),
                online: ask.online.clone(),
                known: BTreeMap::new(),
            },
        }
    }

    /// The asymmetry flags of a domain (`asym_cpu_capacity_classify`).
    pub fn flags(&mut self, pool: &Pool, level: usize, span: SpanId) -> Flags {
        match self {
            Self::None => Flags::NONE,
            Self::FromLevel(from) if level < *from => Flags::NONE,
            Self::FromLevel(_) => Flags::ASYM_CPUCAPACITY,
            Self::Classes { classes, online, known } => {
                *known.entry(span).or_insert_with(|| classify(classes, online, &pool.get(span).set))
            }
        }
    }
}

fn classify(classes: &[CpuSet], online: &CpuSet, set: &CpuSet) -> Flags {
    let (here, away): (Vec<_>, Vec<_>) = classes.iter().partition(|class| class.intersects(set));
    match (here.len(), away.iter().any(|class| class.intersects(online))) {
        (0 | 1, _) => Flags::NONE,
        (_, true) => Flags::ASYM_CPUCAPACITY,
        (_, false) => Flags::ASYM_CPUCAPACITY.with(Flags::ASYM_CPUCAPACITY_FULL),
    }
}

/// Finds the lowest level with the flag (`asym_cpu_capacity_level`). If the online CPUs are all alike, it is above the
/// last level.
fn from_level(pool: &mut Pool, ask: &Ask<'_>, levels: &[Level]) -> usize {
    let capacity = |cpu: CpuId| ask.machine.cpus[cpu as usize].place.capacity;
    let all = pool.span(ask.online.clone());
    let mut found = None;
    for cpu in ask.online.iter() {
        let mut most = capacity(cpu);
        for (l, level) in levels.iter().enumerate().skip(found.unwrap_or(0)) {
            let seen = pool.and(level.masks[cpu as usize], all);
            let greatest = pool.get(seen).cpus.iter().map(|other| capacity(*other)).max();
            if let Some(greater) = greatest.filter(|greatest| *greatest > most) {
                (most, found) = (greater, Some(l));
            }
        }
    }
    found.unwrap_or(levels.len())
}

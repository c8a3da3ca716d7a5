//! Energy-aware placement (5.0 on): a waking task goes to the CPU where it costs the least energy.
//!
//! # Idea
//! The CPUs of a performance domain share a frequency, which follows the busiest of them. A task there costs its own
//! work at the power of that frequency. If it raises the frequency, it costs more, because the work of the other CPUs
//! becomes more expensive as well.
//!
//! # Rule
//! Each domain has two candidates: the CPU where the task last ran, and the CPU with the most spare capacity, provided
//! that the task fits there with a fifth to spare. For each, the domain's energy with the task is compared with its
//! energy without it. The smallest difference wins, and the previous CPU is kept if no other is cheaper. This stops
//! when a CPU is overutilised, which means utilised above four fifths. Energy is then ignored until load balancing no
//! longer finds such a CPU. As long as energy decides, load balancing moves nothing but misfit tasks.
//!
//! It requires an energy model in the machine file, CPUs of different capacities, no SMT, and `sched_energy_aware`.
//!
//! # Differences from the kernel
//! The governor is assumed to be schedutil. Its frequencies are used to estimate energy, as in the kernel, but the
//! simulation runs every CPU at its highest frequency. Of deadline tasks their utilisation counts, and not their
//! reserved bandwidth.
//!
//! # Reference
//! `find_energy_efficient_cpu`, `compute_energy`, `cpu_overutilized` in kernel/sched/fair.c, `em_cpu_energy` in
//! include/linux/energy_model.h, `effective_cpu_util` and `sugov_effective_cpu_perf` of 6.1, 6.6 and 6.12.

mod margin;

use super::overutilized::uclamp;
use super::{Ask, Places};
use crate::balance::domains::{Domain, Domains};
use crate::balance::fair::fits;
use crate::fair::place::Select;
use schedlab_base::{CpuId, Release, v};
use schedlab_machine::{Machine, PerfDomain};
use schedlab_sim::Core;

/// A frequency of a performance domain (`struct em_perf_state`).
#[derive(Clone, Copy, Debug)]
struct State {
    mhz: u64,
    performance: u64,
    cost: u64,
}

/// A performance domain (`struct perf_domain`).
#[derive(Clone, Debug)]
pub struct Perf {
    cpus: Vec<CpuId>,
    capacity: u64,
    /// The frequencies in ascending order. From 5.16 on, those that cost no less than a higher one are omitted.
    states: Vec<State>,
}

impl Perf {
    fn new(release: Release, domain: &PerfDomain, capacity: u64) -> Self {
        let most = domain.states.last().map_or(1, |state| u64::from(state.mhz));
        let mut states: Vec<State> = Vec::new();
        for state in domain.states.iter().rev() {
            let (mhz, power) = (u64::from(state.mhz), u64::from(state.power_uw));
            let performance = capacity * mhz / most;
            // "PM: EM: Optimize em_cpu_energy() and remove division" (6.9).
            let cost = if release >= v(6, 9) { power * 10 / performance.max(1) } else { most * power / mhz };
            // "PM / EM: Mark inefficient states" (5.16).
            if release < v(5, 16) || states.last().is_none_or(|higher| cost < higher.cost) {
                states.push(State { mhz, performance, cost });
            }
        }
        states.reverse();
        Self { cpus: domain.cpus.clone(), capacity, states }
    }

    /// The energy of the domain's CPUs if the busiest has utilisation `most` and all together have `sum`
    /// (`em_cpu_energy`).
    fn energy(&self, release: Release, most: u64, sum: u64) -> u64 {
        let last = self.states[self.states.len() - 1];
        if release >= v(6, 9) {
            let most = most.min(self.capacity);
            return self.states.iter().find(|state| state.performance >= most).unwrap_or(&last).cost * sum;
        }
        let most = if release >= HEADROOM_IS_ASKED_FOR { most } else { headroom(most).min(self.capacity) };
        let mhz = last.mhz * most / self.capacity;
        self.states.iter().find(|state| state.mhz >= mhz).unwrap_or(&last).cost * sum / self.capacity
    }
}

/// "sched/cpufreq: Rework schedutil governor performance estimation" (6.8): the headroom is part of what a CPU
/// requests, and the energy model no longer adds it.
const HEADROOM_IS_ASKED_FOR: Release = v(6, 8);

/// Adds the quarter by which a governor's request exceeds the utilisation (`map_util_perf`).
fn headroom(util: u64) -> u64 {
    util + util / 4
}

/// The performance domains of a machine in the kernel's order, which starts with the last one.
pub fn perf_domains(release: Release, machine: &Machine) -> Vec<Perf> {
    let capacity = |domain: &PerfDomain| u64::from(machine.cpus[domain.cpus[0] as usize].place.capacity);
    machine.energy.iter().rev().map(|domain| Perf::new(release, domain, capacity(domain))).collect()
}

/// The result of an energy comparison, for explanations: the utilisation of the task, and the additional average power
/// with it on each of two candidates, in uW.
#[derive(Clone, Copy, Debug)]
pub struct Weighed {
    pub need: u64,
    pub prev: Option<u64>,
    pub other: Option<(CpuId, u64)>,
}

/// A candidate for the best CPU.
#[derive(Clone, Copy, Debug)]
struct Best {
    fits: i32,
    delta: u64,
    capacity: u64,
    cpu: CpuId,
}

impl Places {
    /// Discards the last comparison.
    pub fn weigh_anew(&mut self) {
        self.weighed = None;
    }

    /// Keeps a comparison for an explanation.
    fn remember(&mut self, need: u64, prev: Option<u64>, other: Option<(CpuId, u64)>) {
        // From 6.9 on energy is in tenths.
        let uw = |delta| if self.release >= v(6, 9) { delta / 10 } else { delta };
        self.weighed = Some(Weighed { need, prev: prev.map(uw), other: other.map(|(cpu, delta)| (cpu, uw(delta))) });
    }
}

impl Select<'_> {
    /// The CPU where a waking task costs the least energy (`find_energy_efficient_cpu`); `None` if energy does not
    /// decide.
    pub(super) fn efficient_cpu(&mut self, cx: &mut Core, domains: &Domains, ask: Ask) -> Option<CpuId> {
        let lowest = domains.lowest(ask.here, domains.all_capacities())?;
        let spans = |d: &&Domain| domains.span(d.span).set.contains(ask.prev);
        let domain = domains.of(ask.here)[lowest..].iter().find(spans)?;
        let need = self.pelt.task_util_est(self.rqs, ask.p, cx.now());
        if need == 0 && cx.task(ask.p).clamp.0 == 0 {
            return Some(ask.prev);
        }
        Self::looked(cx, ask, &domains.span(domain.span).cpus);
        let perfs = std::mem::take(&mut self.places.perfs);
        // "sched/fair: Remove the energy margin in feec()" (6.0).
        let found = if self.places.release >= v(6, 0) {
            self.weigh(cx, domains, domain, ask, &perfs, need)
        } else {
            self.weigh_with_margin(cx, domains.span(domain.span), ask, &perfs, need)
        };
        self.places.perfs = perfs;
        Some(found)
    }

    fn weigh(&mut self, cx: &Core, domains: &Domains, domain: &Domain, ask: Ask, perfs: &[Perf], need: u64) -> CpuId {
        let none = Best { fits: -1, delta: u64::MAX, capacity: 0, cpu: ask.prev };
        let (mut prev, mut best) = (none, none);
        // The energy of the best CPU other than the previous one. `best.delta` is an upper bound that the previous CPU
        // also lowers.
        let mut other_best = None;
        for perf in perfs {
            let within = |cpu: &CpuId| domains.span(domain.span).set.contains(*cpu);
            let Some((own, other)) = self.fitting(cx, perf, within, ask) else { continue };
            let base = self.energy(cx, perf, ask, None, need);
            let more = |me: &Self, cpu| me.energy(cx, perf, ask, Some(cpu), need).checked_sub(base);
            if let Some((fits, _)) = own {
                let Some(delta) = more(self, ask.prev) else { return ask.prev };
                prev = Best { fits, delta, capacity: perf.capacity, cpu: ask.prev };
                best.delta = best.delta.min(delta);
            }
            let Some((fits, spare, cpu)) = other else { continue };
            let roomier = own.is_none_or(|(_, own)| spare > own);
            if !roomier || fits < best.fits || fits < 0 && perf.capacity <= best.capacity {
                continue;
            }
            let Some(delta) = more(self, cpu) else { return ask.prev };
            if fits > 0 && best.fits > 0 && delta >= best.delta {
                continue;
            }
            best = Best { fits, delta, capacity: perf.capacity, cpu };
            other_best = Some((cpu, delta));
        }
        if cx.explaining() {
            self.places.remember(need, (prev.delta < u64::MAX).then_some(prev.delta), other_best);
        }
        let better = best.fits > prev.fits
            || best.fits > 0 && best.delta < prev.delta
            || best.fits < 0 && best.capacity > prev.capacity;
        if better { best.cpu } else { ask.prev }
    }

    /// The candidates of a performance domain: the previous CPU if the task fits there, with its spare capacity, and
    /// the other CPU where the task fits best, with the most spare capacity.
    #[allow(clippy::type_complexity, reason = "two candidates of one search")]
    fn fitting(
        &self,
        cx: &Core,
        perf: &Perf,
        within: impl Fn(&CpuId) -> bool,
        ask: Ask,
    ) -> Option<(Option<(i32, u64)>, Option<(i32, u64, CpuId)>)> {
        let task = cx.task(ask.p);
        let own = (u64::from(task.clamp.0), u64::from(task.clamp.1));
        let (mut prev, mut other) = (None, None);
        let mut clamps = own;
        for &cpu in perf.cpus.iter().filter(|cpu| cx.online(**cpu) && within(cpu) && task.allowed.contains(**cpu)) {
            let util = self.util_with(cx, cpu, ask.p, Some(cpu), false);
            let (left, whole) = self.capacity_of(cpu);
            if let Some((least, most)) = uclamp(self.rqs, cx, cpu) {
                // As in the kernel, the clamps of one CPU carry over to the following ones.
                clamps = (least.max(own.0), most.max(own.1));
            }
            let fits = fits(util, clamps, left, whole);
            if fits == 0 {
                continue;
            }
            let spare = left.saturating_sub(util);
            if cpu == ask.prev {
                prev = Some((fits, spare));
            } else if other.is_none_or(|(than, most, _)| (fits, spare) > (than, most)) {
                other = Some((fits, spare, cpu));
            }
        }
        (prev.is_some() || other.is_some()).then_some((prev, other))
    }

    /// The energy of a performance domain with the task on CPU `to` of it, or without the task (`compute_energy`).
    fn energy(&self, cx: &Core, perf: &Perf, ask: Ask, to: Option<CpuId>, need: u64) -> u64 {
        let release = self.places.release;
        let online = || perf.cpus.iter().copied().filter(|cpu| cx.online(*cpu));
        // "sched/fair: Remove task_util from effective utilization in feec()" (6.0). Before, the task was added to its
        // CPU's utilisation; until 5.13 as the estimate of the CPU with the task.
        let on_its_cpu = release < v(6, 0);
        let busy = |cpu| {
            let (rt, dl) = self.pelt.util_above(cpu, cx.now());
            let with = to.filter(|_| release < v(5, 14));
            let fair = self.util_with(cx, cpu, ask.p, with, false);
            let added = if on_its_cpu && with.is_none() && to == Some(cpu) { need } else { 0 };
            (fair + added + rt + dl).min(perf.capacity)
        };
        let all = perf.capacity * online().count() as u64;
        let sum = online().map(busy).sum::<u64>().min(all) + if to.is_some() && !on_its_cpu { need } else { 0 };
        let most = online().map(|cpu| self.asked(cx, perf, ask, cpu, to)).max().unwrap_or(0);
        perf.energy(release, most.min(perf.capacity), sum.min(all))
    }

    /// The utilisation that a CPU requests from the governor (`eenv_pd_max_util`).
    fn asked(&self, cx: &Core, perf: &Perf, ask: Ask, cpu: CpuId, to: Option<CpuId>) -> u64 {
        let modern = self.places.release >= HEADROOM_IS_ASKED_FOR;
        let (rt, dl) = self.pelt.util_above(cpu, cx.now());
        let util = self.util_with(cx, cpu, ask.p, to, true) + rt;
        let queued = uclamp(self.rqs, cx, cpu);
        let (mut least, mut most) = queued.unwrap_or((0, 1024));
        if to == Some(cpu) {
            let (own_least, own_most) = cx.task(ask.p).clamp;
            least = least.max(own_least.into());
            most = if queued.is_some() { most.max(own_most.into()) } else { own_most.into() };
        }
        if modern {
            let actual = headroom((util + dl).min(perf.capacity));
            return actual.min(most.min(perf.capacity)).max(least.max(dl));
        }
        let clamped = if least >= most { least } else { util.clamp(least, most) };
        (clamped + dl).min(perf.capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phone(release: Release) -> Vec<Perf> {
        let mut perfs = perf_domains(release, &schedlab_machine::presets::find("big-little-4+4").unwrap().machine());
        perfs.reverse();
        perfs
    }

    /// In 6.12 performances are 462 * MHz / 1844 and 1024 * MHz / 2362, and costs are 10 * uW / performance.
    #[test]
    fn states_are_the_kernels() {
        let states = |perf: &Perf| perf.states.iter().map(|s| (s.performance, s.cost)).collect::<Vec<_>>();
        let new = phone(v(6, 12));
        assert_eq!(states(&new[0]), [(133, 2160), (250, 2813), (351, 3558), (428, 4392), (462, 5312)]);
        assert_eq!(states(&new[1]), [(391, 6223), (616, 8120), (782, 10282), (915, 12695), (1024, 15350)]);
        // Until 6.8 costs are 1844 * uW / MHz.
        let costs: Vec<_> = phone(v(6, 1))[0].states.iter().map(|s| s.cost).collect();
        assert_eq!(costs, [99_389, 129_816, 164_300, 202_840, 245_436]);
    }

    /// The busiest CPU decides the frequency of all. 6.1 adds the headroom of a quarter itself; in 6.12 the caller
    /// includes it.
    #[test]
    fn work_costs_what_the_busiest_cpus_frequency_costs() {
        let (old, new) = (phone(v(6, 1)), phone(v(6, 12)));
        assert_eq!(new[0].energy(v(6, 12), headroom(100), 400), 2160 * 400);
        assert_eq!(new[0].energy(v(6, 12), headroom(110), 400), 2813 * 400);
        assert_eq!(new[0].energy(v(6, 12), 2000, 400), 5312 * 400);
        assert_eq!(old[0].energy(v(6, 1), 100, 400), 99_389 * 400 / 462);
        assert_eq!(old[0].energy(v(6, 1), 110, 400), 129_816 * 400 / 462);
        assert_eq!(old[0].energy(v(6, 1), 462, 0), 0);
    }

    /// The example in the kernel's documentation (Documentation/scheduler/sched-energy.rst, section 4), in mW: a task
    /// with utilisation 200 on CPU 0 is placed on CPUs with utilisations 400, 100, 600 and 500. The example uses
    /// frequencies without headroom and rounds for each CPU.
    #[test]
    fn the_kernels_own_example_comes_out() {
        let domain = |first: u32, states: [(u32, u32); 3]| PerfDomain {
            cpus: vec![first, first + 1],
            states: states.map(|(mhz, mw)| schedlab_machine::PerfState { mhz, power_uw: mw * 1000 }).to_vec(),
        };
        let little = Perf::new(v(6, 12), &domain(0, [(170, 50), (341, 150), (512, 300)]), 512);
        let big = Perf::new(v(6, 12), &domain(2, [(512, 400), (768, 800), (1024, 1700)]), 1024);
        let total = |small: [u64; 2], large: [u64; 2]| {
            let of = |perf: &Perf, util: [u64; 2]| perf.energy(v(6, 12), util[0].max(util[1]), util[0] + util[1]);
            (of(&little, small) + of(&big, large)) / 10_000
        };
        let stays = total([400, 100], [600, 500]);
        let (beside, over) = (total([200, 300], [600, 500]), total([200, 100], [600, 700]));
        for (ours, theirs) in [(beside, 1364), (over, 1485), (stays, 1437)] {
            assert!((theirs..theirs + 4).contains(&ours), "{ours} for {theirs}");
        }
    }

    /// A state that costs no less than a faster one is never chosen.
    #[test]
    fn wasteful_states_are_left_out() {
        let state = |mhz, power_uw| schedlab_machine::PerfState { mhz, power_uw };
        let domain = PerfDomain { cpus: vec![0], states: vec![state(500, 600), state(1000, 1000), state(2000, 3000)] };
        let all: Vec<_> = Perf::new(v(5, 15), &domain, 1024).states.iter().map(|s| s.mhz).collect();
        assert_eq!(all, [500, 1000, 2000], "5.15 knows no inefficient states");
        for release in [v(6, 1), v(6, 12)] {
            let states: Vec<_> = Perf::new(release, &domain, 1024).states.iter().map(|s| s.mhz).collect();
            assert_eq!(states, [1000, 2000], "{release:?}");
        }
    }
}

//! The energy that a run takes, by the machine's energy model.
//!
//! Every 4 ms each performance domain is given the lowest frequency that is enough for its busiest CPU with a quarter
//! more, as the governor schedutil does it; how busy a CPU is, is an average of half a life of 32 ms, as the kernel's
//! are. Until the next time all work of the domain costs what that frequency costs. Idle CPUs take nothing.
//!
//! The simulation runs CPUs at their highest frequency. At a lower one the same work takes longer at less power, and
//! that is what is counted; that it would end later, and that schedutil is told of a task when it wakes, is not.

use schedlab_base::{CpuId, Nanos};
use schedlab_machine::{Machine, PerfDomain};
use schedlab_track::{Observer, Occupant};

/// How long a frequency stays.
const STEP: Nanos = 4_000_000;

/// What of an average is left after that: 2^(-4 ms / 32.768 ms), a period being 1024 x 1024 ns.
const LEFT: f64 = 0.920_693;

/// uW for a ns, in J.
const JOULE: f64 = 1e-15;

/// Takes who runs where, and sums up.
#[derive(Clone, Debug)]
pub struct Energy {
    domains: Vec<PerfDomain>,
    /// The power of work in each domain at its frequency of now, as it would be at the highest, in uW.
    power: Vec<f64>,
    since: Vec<Option<Nanos>>,
    /// Busy in this step, and in the past on average, of 1.
    busy: Vec<Nanos>,
    average: Vec<f64>,
    step: Nanos,
    joules: f64,
}

impl Energy {
    /// Of a machine whose CPUs are all idle at 0; none without an energy model.
    #[must_use]
    pub fn new(machine: &Machine) -> Option<Self> {
        let cpus = machine.cpus.len();
        let domains = machine.energy.clone();
        (!domains.is_empty()).then(|| Self {
            power: domains.iter().map(|domain| power(domain, 0.0)).collect(),
            domains,
            since: vec![None; cpus],
            busy: vec![0; cpus],
            average: vec![0.0; cpus],
            step: 0,
            joules: 0.0,
        })
    }

    /// What it took so far, in J.
    #[must_use]
    pub fn joules(&self) -> f64 {
        self.joules
    }

    /// A CPU runs something from `now` on, or is idle.
    fn run(&mut self, cpu: usize, now: Nanos, runs: bool) {
        self.advance(now);
        if let Some(since) = self.since[cpu].take() {
            self.busy[cpu] += now - since;
        }
        self.since[cpu] = runs.then_some(now);
    }

    fn advance(&mut self, now: Nanos) {
        while self.step + STEP <= now {
            self.step += STEP;
            self.close(self.step);
        }
    }

    /// Charges what was busy up to `at`, and gives each domain its next frequency.
    fn close(&mut self, at: Nanos) {
        for (domain, power_now) in self.domains.iter().zip(&mut self.power) {
            let mut most: f64 = 0.0;
            for cpu in domain.cpus.iter().map(|cpu| *cpu as usize) {
                if let Some(since) = &mut self.since[cpu] {
                    self.busy[cpu] += at - std::mem::replace(since, at);
                }
                let busy = std::mem::take(&mut self.busy[cpu]) as f64;
                self.joules += busy * *power_now * JOULE;
                self.average[cpu] = self.average[cpu] * LEFT + busy / STEP as f64 * (1.0 - LEFT);
                most = most.max(self.average[cpu]);
            }
            *power_now = power(domain, most);
        }
    }
}

impl Observer for Energy {
    fn occupied(&mut self, cpu: CpuId, who: Occupant, now: Nanos) {
        // The model holds the machine's CPUs only.
        if (cpu as usize) < self.since.len() {
            self.run(cpu as usize, now, matches!(who, Occupant::Task(_)));
        }
    }

    fn ends(&mut self, end: Nanos) {
        self.advance(end);
        self.close(end);
    }
}

/// The power of a CPU's work at the frequency for a CPU that is so busy, of 1, spread over the time that it takes at
/// the highest frequency.
fn power(domain: &PerfDomain, busy: f64) -> f64 {
    let most = domain.states.last().map_or(1.0, |state| f64::from(state.mhz));
    let enough = domain.states.iter().find(|state| f64::from(state.mhz) >= 1.25 * busy * most);
    let state = enough.or(domain.states.last());
    state.map_or(0.0, |state| f64::from(state.power_uw) * most / f64::from(state.mhz))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joules(cpu: usize, ms: Nanos, of: Nanos) -> f64 {
        let mut energy = Energy::new(&schedlab_machine::load("big-little-4+4").unwrap()).unwrap();
        for round in 0..200 {
            energy.run(cpu, round * of * 1_000_000, true);
            energy.run(cpu, (round * of + ms) * 1_000_000, false);
        }
        energy.ends(200 * of * 1_000_000);
        energy.joules()
    }

    /// A tenth of the time: a small CPU at 533 MHz takes 28.728 mW * 1844 / 533, a big one at 903 MHz 243.358 mW * 2362
    /// / 903.
    #[test]
    fn light_work_costs_what_the_lowest_frequency_costs() {
        assert!((joules(0, 1, 10) - 0.2 * 0.028_728 * 1844.0 / 533.0).abs() < 1e-9);
        assert!((joules(4, 1, 10) - 0.2 * 0.243_358 * 2362.0 / 903.0).abs() < 1e-9);
    }

    /// All of the time: the highest frequency, soon; 2 s of 245.436 mW.
    #[test]
    fn heavy_work_costs_what_the_highest_costs() {
        let full = joules(0, 10, 10);
        assert!((0.47..0.490_872).contains(&full), "{full}");
    }

    #[test]
    fn nothing_is_known_without_a_model() {
        assert!(Energy::new(&schedlab_machine::load("4").unwrap()).is_none());
    }
}

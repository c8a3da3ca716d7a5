//! Constants and formulas: each task's priority, the length of a slice, the distance of a deadline.

use schedlab_base::Nanos;
use schedlab_sim::Attributes;
use schedlab_sim::program::Policy;

/// Priorities below this one (0 to 99) are real-time; a smaller number is better.
pub const MAX_RT_PRIO: u8 = 100;
/// The priority of `SCHED_ISO` tasks within their quota.
pub const ISO_PRIO: u8 = 100;
/// The priority of ordinary tasks, whatever their nice level.
pub const NORMAL_PRIO: u8 = 101;
/// The priority of `SCHED_IDLEPRIO` tasks.
pub const IDLE_PRIO: u8 = 102;
/// The priority of an idle CPU, worse than that of any task.
pub const PRIO_LIMIT: u8 = 103;

/// A remaining slice shorter than this counts as used up, in microseconds of 1024 ns (`RESCHED_US`).
pub const RESCHED_US: i64 = 100;

/// The tunables.
#[derive(Clone, Copy, Debug)]
pub struct Tunables {
    /// The length of a slice, and the distance of a nice -20 task's deadline, in ms of 2^20 ns.
    pub rr_interval: u64,
    /// The share of all CPUs' time that ISO tasks may use at ISO priority, in percent.
    pub iso_cpu: u64,
    /// Whether FIFO and RR are granted; otherwise such tasks become ISO.
    pub privileged: bool,
    /// How long the machine has been up when the simulation begins.
    pub uptime: Nanos,
}

/// A task's policy, in BFS's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Class {
    Normal,
    Batch,
    Iso,
    IdlePrio,
    Fifo,
    Rr,
}

impl Class {
    /// Returns whether tasks of this class come before all deadlines.
    pub fn is_real_time(self) -> bool {
        matches!(self, Self::Fifo | Self::Rr)
    }
}

/// The formulas for one set of tunables.
#[derive(Debug)]
pub struct Rules {
    tunables: Tunables,
    /// The deadline's distance at each nice level, relative to 128 at nice -20 (`prio_ratios`).
    ratios: [u64; 40],
    /// Half a tick, in microseconds of 1000 ns. As in the kernel, it is compared with slices in units of 1024 ns.
    pub half_jiffy_us: i64,
    /// Half a tick.
    pub half_jiffy: Nanos,
}

impl Rules {
    /// Creates the formulas for a tick every `tick` ns.
    pub fn new(tunables: Tunables, tick: Nanos) -> Self {
        let mut ratios = [128; 40];
        for i in 1..ratios.len() {
            ratios[i] = ratios[i - 1] * 11 / 10;
        }
        Self { tunables, ratios, half_jiffy_us: (tick / 2000) as i64, half_jiffy: tick / 2 }
    }

    /// Returns the time since boot (`niffies`).
    pub fn niffies(&self, now: Nanos) -> Nanos {
        self.tunables.uptime + now
    }

    /// Returns whether FIFO and RR are granted.
    pub fn privileged(&self) -> bool {
        self.tunables.privileged
    }

    /// Returns a full slice, in microseconds of 1024 ns (`timeslice()`).
    pub fn slice_us(&self) -> i64 {
        (self.tunables.rr_interval << 10) as i64
    }

    /// Returns how far ahead a deadline is set at this nice level (`prio_deadline_diff`).
    pub fn deadline_diff(&self, nice: i8) -> Nanos {
        let ratio = self.ratios[(i16::from(nice) + 20).clamp(0, 39) as usize];
        ratio * self.tunables.rr_interval * ((1 << 20) / 128)
    }

    /// Returns the class that a task with these attributes gets.
    pub fn class(&self, a: &Attributes) -> Class {
        match a.policy {
            Policy::Fifo | Policy::Rr if !self.tunables.privileged => Class::Iso,
            Policy::Fifo => Class::Fifo,
            Policy::Rr => Class::Rr,
            Policy::Batch => Class::Batch,
            Policy::Idle => Class::IdlePrio,
            Policy::Other | Policy::Deadline => Class::Normal,
        }
    }

    /// Returns the priority of a task of this class (`normal_prio()`).
    pub fn normal_prio(class: Class, a: &Attributes) -> u8 {
        match class {
            Class::Fifo | Class::Rr => a.real_time_level().unwrap_or(MAX_RT_PRIO - 1),
            Class::IdlePrio => IDLE_PRIO,
            Class::Iso => ISO_PRIO,
            Class::Normal | Class::Batch => NORMAL_PRIO,
        }
    }
}

/// How much ISO tasks have recently run, over all CPUs.
#[derive(Debug)]
pub struct IsoQuota {
    ticks: i64,
    period: i64,
    percent: i64,
    /// Whether the quota is used up. ISO tasks then count as ordinary until the usage has fallen to 90% of the quota.
    pub refractory: bool,
}

impl IsoQuota {
    /// Creates the quota for `cpus` CPUs: `iso_cpu` percent of five seconds for each CPU.
    pub fn new(tunables: &Tunables, tick: Nanos, cpus: u32) -> Self {
        let percent = tunables.iso_cpu as i64;
        let mut quota = Self { ticks: 0, period: 1, percent, refractory: false };
        quota.set_cpus(cpus, tick);
        quota
    }

    /// Updates the quota to `cpus` online CPUs.
    pub fn set_cpus(&mut self, cpus: u32, tick: Nanos) {
        self.period = 5 * (1_000_000_000 / tick) as i64 * i64::from(cpus) + 1;
    }

    fn recovered(&self) -> bool {
        self.ticks < self.period * (self.percent * 115 / 128)
    }

    /// Accounts a tick of a CPU; `iso` says whether it runs an ISO task. Returns whether ISO tasks have lost their
    /// priority.
    pub fn tick(&mut self, iso: bool) -> bool {
        if iso && !self.refractory {
            if self.ticks <= self.period * 128 - 128 {
                self.ticks += 100;
            }
        } else if self.ticks != 0 {
            self.ticks -= self.ticks / self.period + 1;
            self.refractory &= !self.recovered();
        }
        if iso {
            self.refractory = if self.refractory { !self.recovered() } else { self.ticks > self.period * self.percent };
        }
        self.refractory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASED: Tunables = Tunables { rr_interval: 6, iso_cpu: 70, privileged: true, uptime: 0 };

    #[test]
    fn deadlines_grow_by_a_tenth_a_nice_level() {
        let r = Rules::new(RELEASED, 1_000_000);
        // 128, 836 and 5089 are the ratios of the integer recurrence; each is multiplied by 6 * 2^13 ns.
        assert_eq!([-20, 0, 19].map(|nice| r.deadline_diff(nice)), [6_291_456, 41_091_072, 250_134_528]);
        assert_eq!((r.slice_us(), r.half_jiffy_us), (6_144, 500));
    }

    #[test]
    fn iso_tasks_lose_their_rank_after_70_percent_of_5_seconds() {
        let mut quota = IsoQuota::new(&RELEASED, 1_000_000, 1);
        // Each tick adds 100; the limit is 70 * 5001.
        assert_eq!((1..).find(|_| quota.tick(true)), Some(3_501));
        // The count then falls to 62 * 5001, by at most 71 a tick.
        let rest = (1..).find(|_| !quota.tick(true)).unwrap();
        assert_eq!(rest, (1..10_000).find(|n| decayed(350_100, *n) < 62 * 5_001).unwrap());
    }

    fn decayed(ticks: i64, times: u32) -> i64 {
        (0..times).fold(ticks, |left, _| left - (left / 5_001 + 1))
    }
}

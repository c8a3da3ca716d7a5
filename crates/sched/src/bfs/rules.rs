//! The constants and formulas: who is of which priority, how long a slice is, how far off a deadline.

use schedlab_base::Nanos;
use schedlab_sim::Attributes;
use schedlab_sim::program::Policy;

/// Priorities 0 to 99 are real time; smaller is better.
pub const MAX_RT_PRIO: u8 = 100;
/// `SCHED_ISO` within its quota.
pub const ISO_PRIO: u8 = 100;
/// Ordinary tasks, whatever their nice level.
pub const NORMAL_PRIO: u8 = 101;
/// `SCHED_IDLEPRIO`.
pub const IDLE_PRIO: u8 = 102;
/// A CPU that runs nothing.
pub const PRIO_LIMIT: u8 = 103;

/// A slice shorter than this is as good as used up, in microseconds of 1024 ns (`RESCHED_US`).
pub const RESCHED_US: i64 = 100;

/// What can be set.
#[derive(Clone, Copy, Debug)]
pub struct Tunables {
    /// A slice, and the deadline of nice -20, in ms of 2^20 ns.
    pub rr_interval: u64,
    /// The part of all CPUs' time that ISO tasks may take as if they were real time, in percent.
    pub iso_cpu: u64,
    /// Whether FIFO and RR are granted; else they become ISO.
    pub privileged: bool,
    /// How long the machine has been up when the simulation begins.
    pub uptime: Nanos,
}

/// A task's policy, in this scheduler's terms.
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
    /// Whether it is above all deadlines.
    pub fn is_real_time(self) -> bool {
        matches!(self, Self::Fifo | Self::Rr)
    }
}

/// The formulas for one set of tunables.
#[derive(Debug)]
pub struct Rules {
    tunables: Tunables,
    /// The length of the deadline at each nice level, against 128 at nice -20 (`prio_ratios`).
    ratios: [u64; 40],
    /// Half a tick, in microseconds of 1000 ns, though it is compared with slices.
    pub half_jiffy_us: i64,
    /// Half a tick.
    pub half_jiffy: Nanos,
}

impl Rules {
    /// The formulas for ticks that are `tick` apart.
    pub fn new(tunables: Tunables, tick: Nanos) -> Self {
        let mut ratios = [128; 40];
        for i in 1..ratios.len() {
            ratios[i] = ratios[i - 1] * 11 / 10;
        }
        Self { tunables, ratios, half_jiffy_us: (tick / 2000) as i64, half_jiffy: tick / 2 }
    }

    /// Time since the boot (`niffies`).
    pub fn niffies(&self, now: Nanos) -> Nanos {
        self.tunables.uptime + now
    }

    /// Whether FIFO and RR are granted.
    pub fn privileged(&self) -> bool {
        self.tunables.privileged
    }

    /// A full slice, in microseconds of 1024 ns (`timeslice()`).
    pub fn slice_us(&self) -> i64 {
        (self.tunables.rr_interval << 10) as i64
    }

    /// How far ahead the deadline of this nice level is set (`prio_deadline_diff`).
    pub fn deadline_diff(&self, nice: i8) -> Nanos {
        let ratio = self.ratios[(i16::from(nice) + 20).clamp(0, 39) as usize];
        ratio * self.tunables.rr_interval * ((1 << 20) / 128)
    }

    /// The policy that a task gets.
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

    /// The priority of a policy (`normal_prio()`).
    pub fn normal_prio(class: Class, a: &Attributes) -> u8 {
        match class {
            Class::Fifo | Class::Rr => a.real_time_level().unwrap_or(MAX_RT_PRIO - 1),
            Class::IdlePrio => IDLE_PRIO,
            Class::Iso => ISO_PRIO,
            Class::Normal | Class::Batch => NORMAL_PRIO,
        }
    }
}

/// How much ISO tasks ran of late, over all CPUs.
#[derive(Debug)]
pub struct IsoQuota {
    ticks: i64,
    period: i64,
    percent: i64,
    /// Their quota is used up: they count as ordinary until it has recovered to 90%.
    pub refractory: bool,
}

impl IsoQuota {
    /// The quota of this many CPUs: some percent of five seconds each.
    pub fn new(tunables: &Tunables, tick: Nanos, cpus: u32) -> Self {
        let percent = tunables.iso_cpu as i64;
        let mut quota = Self { ticks: 0, period: 1, percent, refractory: false };
        quota.set_cpus(cpus, tick);
        quota
    }

    /// So many CPUs are online now.
    pub fn set_cpus(&mut self, cpus: u32, tick: Nanos) {
        self.period = 5 * (1_000_000_000 / tick) as i64 * i64::from(cpus) + 1;
    }

    fn recovered(&self) -> bool {
        self.ticks < self.period * (self.percent * 115 / 128)
    }

    /// The tick of a CPU that runs an ISO task, or another; tells whether an ISO task may no longer count as real time.
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
        // The ratios 128, 836 and 5089 of the integer recurrence, times 6 * 2^13 ns.
        assert_eq!([-20, 0, 19].map(|nice| r.deadline_diff(nice)), [6_291_456, 41_091_072, 250_134_528]);
        assert_eq!((r.slice_us(), r.half_jiffy_us), (6_144, 500));
    }

    #[test]
    fn iso_tasks_lose_their_rank_after_70_percent_of_5_seconds() {
        let mut quota = IsoQuota::new(&RELEASED, 1_000_000, 1);
        // 100 a tick against 70 * 5001.
        assert_eq!((1..).find(|_| quota.tick(true)), Some(3_501));
        // Down to 62 * 5001 again, 71 or fewer a tick.
        let rest = (1..).find(|_| !quota.tick(true)).unwrap();
        assert_eq!(rest, (1..10_000).find(|n| decayed(350_100, *n) < 62 * 5_001).unwrap());
    }

    fn decayed(ticks: i64, times: u32) -> i64 {
        (0..times).fold(ticks, |left, _| left - (left / 5_001 + 1))
    }
}

//! The state of a task and of a CPU.

use schedlab_base::{CpuId, Nanos};
use schedlab_sim::Attributes;
use schedlab_sim::program::Policy;

/// The number of levels for ordinary tasks, one for each nice level.
pub const LEVELS: u8 = 40;
/// The number of real-time priorities, which come before all levels.
pub const REAL_TIME: u8 = 100;
/// The number of lists of an array.
pub const PRIOS: u8 = REAL_TIME + LEVELS;

/// The index of one of a CPU's two arrays.
pub type Side = usize;

/// The state of a task.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// OTHER, FIFO or RR.
    pub policy: Policy,
    /// The nice level, counted from 0 to 39.
    pub user: u8,
    /// The list that it is on: a real-time priority, or 100 plus its level. If the level of a waiting task was pushed
    /// down, this is still the level before.
    pub prio: u8,
    /// The rest of its quota, in ns; negative if it has overrun.
    pub left: i64,
    /// The levels at which it was given a quota in its rotation, one bit each.
    pub used: u64,
    /// The rotation that `used` refers to.
    pub rotation: u64,
    /// The CPU of that rotation.
    pub cpu: CpuId,
    /// The array that it is on, if any.
    pub side: Option<Side>,
}

impl Task {
    /// Creates a task that has not been given any quota.
    pub fn new(attributes: &Attributes) -> Self {
        let user = user(attributes);
        let prio = attributes.real_time_level().unwrap_or(REAL_TIME + user);
        Self { policy: policy(attributes), user, prio, left: 0, used: 0, rotation: 0, cpu: 0, side: None }
    }

    /// Returns whether it comes before all levels.
    pub fn is_real_time(&self) -> bool {
        self.prio < REAL_TIME
    }

    /// Returns its level.
    pub fn level(&self) -> u8 {
        self.prio.saturating_sub(REAL_TIME)
    }
}

/// Returns the nice level, counted from 0 to 39.
pub fn user(attributes: &Attributes) -> u8 {
    (i16::from(attributes.nice) + 20).clamp(0, i16::from(LEVELS) - 1) as u8
}

/// Returns the policy, as one of those that the staircases have.
pub fn policy(attributes: &Attributes) -> Policy {
    attributes.policy.among(&[Policy::Fifo, Policy::Rr])
}

/// One of a CPU's two arrays: which of its lists may hold tasks, and how many tasks it has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Array {
    /// One bit for each list. The bit of a list that became empty stays set until the list is looked at.
    pub bitmap: [u64; PRIOS.div_ceil(64) as usize],
    /// The number of tasks on all lists.
    pub nr: u32,
    /// The rest of each level's quota, in ns.
    pub quota: Quotas,
}

/// A quota for each level, in ns.
#[derive(Clone, Copy, Debug)]
pub struct Quotas(pub [i64; LEVELS as usize]);

impl Default for Quotas {
    fn default() -> Self {
        Self([0; LEVELS as usize])
    }
}

/// The queue of a CPU.
#[derive(Clone, Debug)]
pub struct Rq {
    /// The active and the expired array; they swap roles.
    pub arrays: [Array; 2],
    /// The index of the active array.
    pub active: Side,
    /// The number of major rotations, from 1.
    pub rotation: u64,
    /// The lowest level that has run in this rotation.
    pub level: u8,
    /// The time up to which the running task has been charged.
    pub since: Nanos,
    /// The sum of the tasks' weights.
    pub load: u64,
}

impl Default for Rq {
    fn default() -> Self {
        Self { arrays: Default::default(), active: 0, rotation: 1, level: 0, since: 0, load: 0 }
    }
}

impl Rq {
    /// Returns the index of the expired array.
    pub fn expired(&self) -> Side {
        1 - self.active
    }

    /// Returns how many tasks are runnable, including the running one.
    pub fn nr_running(&self) -> u32 {
        self.arrays.iter().map(|a| a.nr).sum()
    }

    /// Does a major rotation: swaps the arrays, and drops the quotas of the one that is used up.
    pub fn rotate(&mut self) {
        self.active = self.expired();
        self.rotation += 1;
        self.level = 0;
        let expired = self.expired();
        self.arrays[expired].quota = Quotas::default();
    }
}

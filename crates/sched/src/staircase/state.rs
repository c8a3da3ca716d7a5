//! What a staircase knows of a task and of a CPU.

use schedlab_base::{CpuId, Nanos};
use schedlab_sim::Attributes;
use schedlab_sim::program::Policy;

/// Levels of ordinary tasks, one for each nice level.
pub const LEVELS: u8 = 40;
/// Priorities of real-time tasks, which go before all levels.
pub const REAL_TIME: u8 = 100;
/// All lists of an array.
pub const PRIOS: u8 = REAL_TIME + LEVELS;

/// One of a CPU's two arrays.
pub type Side = usize;

/// A task.
#[derive(Clone, Copy, Debug)]
pub struct Task {
    /// OTHER, FIFO or RR.
    pub policy: Policy,
    /// Its nice level, from 0 to 39.
    pub user: u8,
    /// Its list: a real-time priority, or 100 and its level. Of a waiting task whose level was pushed down, the level
    /// where it was before.
    pub prio: u8,
    /// What is left of its quota, in ns; it may have run a little over it.
    pub left: i64,
    /// The levels at which it was given a quota in its rotation, a bit each.
    pub used: u64,
    /// The rotation of its CPU that `used` is about.
    pub rotation: u64,
    /// The CPU of that rotation.
    pub cpu: CpuId,
    /// The array that it is on.
    pub side: Option<Side>,
}

impl Task {
    /// A task that was given nothing yet.
    pub fn new(attributes: &Attributes) -> Self {
        let user = user(attributes);
        let prio = attributes.real_time_level().unwrap_or(REAL_TIME + user);
        Self { policy: policy(attributes), user, prio, left: 0, used: 0, rotation: 0, cpu: 0, side: None }
    }

    /// Whether it goes before all levels.
    pub fn is_real_time(&self) -> bool {
        self.prio < REAL_TIME
    }

    /// Its level.
    pub fn level(&self) -> u8 {
        self.prio.saturating_sub(REAL_TIME)
    }
}

/// The nice level, from 0 to 39.
pub fn user(attributes: &Attributes) -> u8 {
    (i16::from(attributes.nice) + 20).clamp(0, i16::from(LEVELS) - 1) as u8
}

/// The policy, of those that there are.
pub fn policy(attributes: &Attributes) -> Policy {
    attributes.policy.among(&[Policy::Fifo, Policy::Rr])
}

/// One of a CPU's two arrays: which of its lists may hold tasks, and how many tasks it has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Array {
    /// A bit for each list; one that was emptied keeps it until it is looked at.
    pub bitmap: [u64; PRIOS.div_ceil(64) as usize],
    /// Tasks on all of them.
    pub nr: u32,
    /// What is left of each level's quota, in ns.
    pub quota: Quotas,
}

/// One quota for each level.
#[derive(Clone, Copy, Debug)]
pub struct Quotas(pub [i64; LEVELS as usize]);

impl Default for Quotas {
    fn default() -> Self {
        Self([0; LEVELS as usize])
    }
}

/// A CPU's queue.
#[derive(Clone, Debug)]
pub struct Rq {
    /// The active and the expired one, in turns.
    pub arrays: [Array; 2],
    /// Which of them is the active one.
    pub active: Side,
    /// Counts major rotations, from 1.
    pub rotation: u64,
    /// The lowest level that ran in this rotation.
    pub level: u8,
    /// Until when the running task was charged for its time.
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
    /// Which array is the expired one.
    pub fn expired(&self) -> Side {
        1 - self.active
    }

    /// How many tasks can run, the running one included.
    pub fn nr_running(&self) -> u32 {
        self.arrays.iter().map(|a| a.nr).sum()
    }

    /// A major rotation: the arrays change places, and the quotas of the one that was used up are gone.
    pub fn rotate(&mut self) {
        self.active = self.expired();
        self.rotation += 1;
        self.level = 0;
        let expired = self.expired();
        self.arrays[expired].quota = Quotas::default();
    }
}

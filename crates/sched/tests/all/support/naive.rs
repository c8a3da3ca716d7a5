//! CFS and EEVDF implemented again from their description, as plainly as possible: lists that are scanned at each
//! question, integers of 128 bits, one CPU.

mod cfs;
mod eevdf;

pub use cfs::Cfs;
pub use eevdf::Eevdf;

/// The weight of each nice level.
const WEIGHTS: [i128; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, 9548, 7620, 6100, 4904, 3906, 3121, 2501,
    1991, 1586, 1277, 1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// 2^32 divided by the weight, from the kernel's table.
const INVERSES: [i128; 40] = [
    48388, 59856, 76040, 92818, 118348, 147320, 184698, 229616, 287308, 360437, 449829, 563644, 704093, 875809,
    1099582, 1376151, 1717300, 2157191, 2708050, 3363326, 4194304, 5237765, 6557202, 8165337, 10153587, 12820798,
    15790321, 19976592, 24970740, 31350126, 39045157, 49367440, 61356676, 76695844, 95443717, 119304647, 148102320,
    186737708, 238609294, 286331153,
];

fn weight(nice: i8) -> (i128, i128) {
    let level = (nice + 20) as usize;
    (WEIGHTS[level], INVERSES[level])
}

/// Returns `delta * weight / of`, where `inverse` replaces the division by `of`, with as much of the product of weight
/// and inverse as fits in 32 bits (3.13 on).
fn truncated(delta: i128, weight: i128, inverse: i128) -> i128 {
    let (mut factor, mut shift) = (weight * inverse, 32);
    while factor >> 32 != 0 {
        factor >>= 1;
        shift -= 1;
    }
    (delta * factor) >> shift
}

/// The same rounded to nearest, in two steps if the product is large (until 2.6.39).
fn rounded(delta: i128, weight: i128, inverse: i128) -> i128 {
    let nearest = |x: i128, bits: u32| (x + (1 << (bits - 1))) >> bits;
    let product = delta * weight;
    if product > 1 << 32 { nearest(nearest(product, 16) * inverse, 16) } else { nearest(product * inverse, 32) }
}

/// The scheduler of one CPU, which is informed of what happens.
pub trait Reference {
    /// A task is created that has no parent on this CPU, or whose parent is running here.
    fn new_task(&mut self, now: i128, p: usize, nice: i8, slice: Option<i128>, parent: Option<usize>);
    fn wakes(&mut self, now: i128, p: usize);
    /// The running task goes to sleep, or ends.
    fn sleeps(&mut self, now: i128, ends: bool);
    fn ticks(&mut self, now: i128);
    /// The running task gets another nice level.
    fn changes(&mut self, now: i128, nice: i8);
    /// Returns whether the CPU must choose again.
    fn wants(&self) -> bool;
    fn picks(&mut self, now: i128) -> Option<usize>;
}

#[derive(Clone, Debug, Default)]
struct Entity {
    nice: i8,
    queued: bool,
    vruntime: i128,
    /// Total CPU time, and that at its last switch-in.
    ran: i128,
    ran_before: i128,
    /// EEVDF: the slice that it requests.
    slice: i128,
    /// EEVDF: its deadline, its lag when it was dequeued, and the deadline up to which it keeps the CPU.
    deadline: i128,
    lag: i128,
    keeps_until: Option<i128>,
    /// EEVDF: whether it sleeps but stays queued until it is eligible.
    delayed: bool,
    /// When it joined the queue: equal tasks run in this order.
    order: u64,
}

/// What both schedulers have in common.
#[derive(Clone, Debug, Default)]
struct Queue {
    all: Vec<Entity>,
    curr: Option<usize>,
    since: i128,
    resched: bool,
    orders: u64,
}

impl Queue {
    fn grow(&mut self, p: usize) {
        self.all.resize(self.all.len().max(p + 1), Entity::default());
    }

    fn weight(&self, p: usize) -> i128 {
        weight(self.all[p].nice).0
    }

    /// Returns all queued tasks, including the running one.
    fn queued(&self) -> Vec<usize> {
        (0..self.all.len()).filter(|p| self.all[*p].queued).collect()
    }

    /// Returns the queued tasks that wait.
    fn waiting(&self) -> Vec<usize> {
        self.queued().into_iter().filter(|p| Some(*p) != self.curr).collect()
    }

    fn load(&self) -> i128 {
        self.queued().into_iter().map(|p| self.weight(p)).sum()
    }

    /// Puts the task behind its equals.
    fn line_up(&mut self, p: usize) {
        self.orders += 1;
        self.all[p].order = self.orders;
    }

    /// Returns the running task and what it has run since the last call.
    fn run_since(&mut self, now: i128) -> Option<(usize, i128)> {
        let p = self.curr.filter(|p| self.all[*p].queued)?;
        let ran = now - std::mem::replace(&mut self.since, now);
        self.all[p].ran += ran;
        (ran > 0).then_some((p, ran))
    }
}

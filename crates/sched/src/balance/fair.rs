//! Load balancing of the fair class: how CFS and EEVDF kernels spread tasks over the CPUs.
//!
//! # Idea
//! Each CPU balances periodically, small domains often and large ones rarely, and pulls tasks from busier CPUs. Pulling
//! leaves the work to the CPU that has time for it. A CPU that is about to go idle balances at once. Idle CPUs have no
//! tick, so another CPU balances on their behalf. If no waiting task may be moved, the running task is pushed (active
//! balancing).
//!
//! # Rule
//! At its tick a CPU balances each of its [`domains`](crate::balance::domains) whose interval has passed, from the
//! smallest to the largest. Only one CPU per group does this: the first idle one, or the first one if none is idle. It
//! finds the busiest group, then the busiest CPU in that group, and pulls tasks from there. A task can be moved if its
//! affinity allows the destination, it is not running, it is not cache-hot (ignored after too many failures) and it
//! does not exceed the imbalance. The releases differ in which group is busiest and in how much is moved:
//!
//! | release | basis |
//! |---|---|
//! | 2.6.24, 2.6.32 | average load per capacity, from decayed weights (`cpu_load[]`); task groups move one by one |
//! | 3.10 | the same, with task weights scaled to the root; a group with very uneven CPUs counts as imbalanced |
//! | 3.18, 4.1 | averages of the runnable load; a group that affinity kept uneven counts as imbalanced |
//! | 5.10 to 6.12 | the type of the group, which also decides what is evened out |
//!
//! # State
//! For each domain: the last balancing, the interval, the number of failures and the cost. For each group: its capacity
//! and whether it is imbalanced. For each CPU: when it is next due and how long it is idle on average. All of it is
//! reset when the domains are rebuilt.
//!
//! # Tunables
//! `sched_migration_cost` and `sched_nr_migrate`, under the names that the release uses; `fix.group_imbalance` (wc-01)
//! and the fixes of the domains; the `sched_features` in [`Features`]. With `fix.group_construction`, every CPU of a
//! group balances, as in the published patch.
//!
//! # Differences from the kernel
//! - Balancing takes no simulated time and nothing else happens meanwhile, so a serialised domain is never busy. The
//!   cost of newly idle balancing is estimated for the rules that depend on it.
//! - An idle CPU stops its tick immediately and restarts it as soon as it runs something. Its tick-sampled loads stay
//!   unchanged meanwhile, until another CPU balances for it. The loads of the CPU that is kicked to balance are also
//!   brought up to date at that moment; in the kernel this waits until some thread has run there.
//! - In 2.6.24 real-time tasks count towards the load of their CPU, but the balancer does not move them.
//! - Packing by priority (`SD_ASYM_PACKING`) and the power-saving policies of old kernels are not modelled.
//!
//! # Reference
//! `kernel/sched.c` and `kernel/sched_fair.c` of 2.6.24 and 2.6.32; `kernel/sched/fair.c` of 3.10, 3.18, 4.1, 6.1, 6.6
//! and 6.12. Lozi et al., "The Linux Scheduler: a Decade of Wasted Cores", EuroSys 2016, and its patches.

mod active;
mod averages;
pub(crate) mod backports;
mod busiest_by_load;
mod busiest_by_type;
mod capacity;
mod detach;
mod features;
mod load_balance;
mod misfit;
mod newidle;
mod nohz;
mod occupancy;
mod periodic;
mod queue_kind;
mod queues;
mod rebuild;
mod rules;
mod settle;
mod state;

pub use averages::{Averages, fits};
pub use features::{
    FAST_UP, Features, LOADS, LOADS_3_10, LOADS_3_18, NEWIDLE, SEARCH, SEARCH_5_10, SEARCH_COST, SYNC, WAKE_AFFINE,
};
pub use occupancy::Occupancy;
pub use queues::{End, Queues};
pub use rules::{
    BUGS, ENERGY_AWARE, GROUP_IMBALANCE, MIGRATION_COST, NEWIDLE_RATIO, NR_MIGRATE, OVERLOAD_ON_WAKEUP, Rules,
    VCPU_PACK, by_capacity,
};
pub use state::Balancer;

use load_balance::Work;
use schedlab_base::CpuId;
use schedlab_sim::{Core, TaskId};

/// Calls `act` with the balancer, if there is one, and the queues that it belongs to.
fn work<Q: Queues>(q: &mut Q, cx: &mut Core, act: impl FnOnce(&mut Work<'_, Q>)) {
    if let Some(mut b) = q.balancer().take() {
        act(&mut Work { b: &mut b, q, cx });
        *q.balancer() = Some(b);
    }
}

/// Periodic balancing at the tick of `cpu`.
pub fn tick(q: &mut impl Queues, cx: &mut Core, cpu: CpuId) {
    work(q, cx, |work| work.tick(cpu));
}

/// Newly idle balancing: `cpu` has nothing to run and looks for a task to pull.
pub fn newly_idle(q: &mut impl Queues, cx: &mut Core, cpu: CpuId) {
    work(q, cx, |work| work.newly_idle(cpu));
}

/// Called when `cpu` has picked a task, and at its ticks: notes whether the CPU is too small for it.
pub fn note_misfit(q: &mut impl Queues, cx: &mut Core, cpu: CpuId, p: TaskId) {
    work(q, cx, |work| work.note_misfit(cpu, Some(p)));
}

/// Called when the stopper of `cpu` runs for active balancing. The task that it interrupted is waiting.
pub fn stopper(q: &mut impl Queues, cx: &mut Core, cpu: CpuId) {
    work(q, cx, |work| work.push(cpu));
}

/// Called when the timer set up by [`Balancer::start`] expires, to balance for idle CPUs.
pub fn timer(q: &mut impl Queues, cx: &mut Core) {
    work(q, cx, |work| work.nohz_tick());
}

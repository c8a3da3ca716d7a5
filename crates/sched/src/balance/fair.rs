//! Balancing of the fair class: how CFS and EEVDF kernels spread tasks over the CPUs.
//!
//! # Idea
//! Each CPU looks around now and then, near often and far seldom, and takes from where there is more: it pulls, so that
//! the CPU that has time does the work. A CPU that becomes idle looks at once. Idle CPUs have no tick to do it by, so
//! another does it for them. Where nothing that waits may be moved, what runs is pushed.
//!
//! # Rule
//! At its tick a CPU balances each of its [`domains`](crate::balance::domains) whose interval is over, from the
//! smallest up. Of each group only one CPU does: the first idle one, else the first. It finds the busiest group, in it
//! the busiest CPU, and takes tasks from there: those that may run here, do not run now, have no warm cache (unless
//! that failed too often) and are no more than the imbalance. What "busiest" is and how much is taken:
//!
//! | release | by |
//! |---|---|
//! | 2.6.24, 2.6.32 | average load by capacity; decayed weights of queues (`cpu_load[]`), group by group of tasks |
//! | 3.10 | the same, by what a task weighs at the root; groups whose CPUs differ much count as imbalanced |
//! | 3.18, 4.1 | averages of what is runnable; groups count as imbalanced where affinity kept them uneven |
//! | 5.10 to 6.12 | the type of the group, which decides what is evened out |
//!
//! # State
//! Of each domain: its last balancing, interval, failures, cost. Of each group: its capacity, whether it is imbalanced.
//! Of each CPU: when it is next due, how long it is idle on average. All begin anew when domains are rebuilt.
//!
//! # Tunables
//! `sched_migration_cost` and `sched_nr_migrate` by the names of the release; `fix.group_imbalance` (wc-01) and those
//! of the domains; with `fix.group_construction`, as in its patch, every CPU of a group balances.
//!
//! # Differences from the kernel
//! - Balancing takes no time, and nothing else happens meanwhile: a serialised domain is never busy. What newly idle
//!   balancing would have cost is estimated, for the rules that go by it.
//! - An idle CPU has stopped its tick at once, and has it again as soon as it runs something. The loads that its ticks
//!   saw stand still meanwhile, until a CPU balances for it; that of the CPU that is sent is made up for then, too,
//!   which in the kernel waits until some thread has run there.
//! - In 2.6.24 real-time tasks weigh in the load of their CPU, but the balancer does not move them.
//! - There is no packing by priority, and there are no power savings of old kernels.
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
pub use occupancy::Occupancy;
pub use queues::{End, Queues};
pub use rules::{
    BUGS, ENERGY_AWARE, GROUP_IMBALANCE, MIGRATION_COST, NR_MIGRATE, OVERLOAD_ON_WAKEUP, Rules, by_capacity,
};
pub use state::Balancer;

use load_balance::Work;
use schedlab_base::CpuId;
use schedlab_sim::Core;

/// Lets the balancer, if there is one, act on the queues that it belongs to.
fn work<Q: Queues>(q: &mut Q, cx: &mut Core, act: impl FnOnce(&mut Work<'_, Q>)) {
    if let Some(mut b) = q.balancer().take() {
        act(&mut Work { b: &mut b, q, cx });
        *q.balancer() = Some(b);
    }
}

/// The tick on `cpu`.
pub fn tick(q: &mut impl Queues, cx: &mut Core, cpu: CpuId) {
    work(q, cx, |work| work.tick(cpu));
}

/// `cpu` has nothing to run, and looks for work.
pub fn newly_idle(q: &mut impl Queues, cx: &mut Core, cpu: CpuId) {
    work(q, cx, |work| work.newly_idle(cpu));
}

/// The stopper of `cpu` runs, and what ran there waits.
pub fn stopper(q: &mut impl Queues, cx: &mut Core, cpu: CpuId) {
    work(q, cx, |work| work.push(cpu));
}

/// The timer of [`Balancer::start`].
pub fn timer(q: &mut impl Queues, cx: &mut Core) {
    work(q, cx, |work| work.nohz_tick());
}

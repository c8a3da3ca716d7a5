//! The fair schedulers: CFS (2.6.24 to 6.5) and EEVDF (6.6 on), and the hierarchy of groups that both schedule.
//!
//! # Idea
//! A group is scheduled as if it were one task of the weight of its shares, and its tasks among themselves as if they
//! had a CPU of their own, that much slower. So a group gets its part however many tasks it has, to any depth.
//!
//! # Rule
//! A group has an entity and a queue on each CPU. An entity is queued in the queue of the group above it while there is
//! anything in its own. To choose a task the scheduler goes down from the root queue, and takes the best of each
//! queue; to charge one it goes up. What the best is, is the discipline's rule: [`cfs`] or [`eevdf`].
//!
//! # State
//! `Runqueues` has the [entities and queues](entity), [which tasks are in which group](groups), [what groups
//! weigh](shares), their [quotas](bandwidth), and [each CPU's tasks](tasks) in the order in which balancing looks at
//! them. `Pelt` has the load averages (`pelt.rs`), `Places` what is remembered for [placing tasks](place).
//!
//! # Tunables
//! `sched_cfs_bandwidth_slice_us`, `sched_autogroup_enabled`, `group_by_user` by release; the disciplines have theirs.
//!
//! # Differences from the kernel
//! Load averages are exact where the kernel's are sums of rounded periods (`pelt.rs`); a group's entity counts with its
//! own weight and runnable time, not with what is propagated from below. A group's weight has no fraction (the kernel
//! has 10 more bits from 4.7 on, and drops them when it computes). Groups stand as they are from the start. Balancing:
//! [`crate::balance::fair`].
//!
//! # Reference
//! kernel/sched/fair.c of 6.1, 6.6 and 6.12; kernel/sched_fair.c and kernel/sched.c of 2.6.24 and 2.6.32.

mod account;
mod averages;
mod balancing;
pub mod bandwidth;
pub mod cfs;
mod class;
mod discipline;
pub mod eevdf;
pub mod entity;
mod explain;
pub mod groups;
pub mod load;
mod numa;
mod pelt;
mod pick;
pub mod place;
mod rqs;
mod scheduler;
pub mod shares;
pub mod tasks;
pub mod timeline;
mod view;
mod walk;

pub use discipline::Discipline;

use crate::balance::domains::Domains;
use crate::balance::fair;
use crate::balance::numa::{Numa, period};
use crate::classes::sync;
use crate::tunables::Follows;
use entity::Queue;
use pelt::Pelt;
use place::{Places, Select};
use rqs::Runqueues;
use schedlab_base::{CpuId, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::{Core, TaskId};
use std::rc::Rc;
use tasks::TaskLists;

/// What a fair scheduler is made for.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The load, for its groups, users and sessions.
    pub load: &'a schedlab_sim::program::Load,
    /// For random draws.
    pub seed: u64,
    /// The first tick, and the time between two.
    pub tick: (Nanos, Nanos),
    /// `fix.overload_on_wakeup`.
    pub overload_on_wakeup_fixed: bool,
    /// The tunables, where some follow the CPUs online.
    pub follows: Option<&'a Follows>,
    /// How the release balances.
    pub balancing: fair::Rules,
    /// NUMA balancing, where it is on and there is anything for it to do.
    pub numa: Option<period::Settings>,
}

/// A fair scheduler: its parts, each with what it remembers. A function that touches one part only is that part's; what
/// needs several is here, and in the modules beside.
#[derive(Debug)]
pub struct Fair<D> {
    /// How a queue chooses.
    d: D,
    /// Entities, queues and groups.
    rqs: Runqueues,
    /// Load averages.
    pelt: Pelt,
    /// Where tasks are put.
    places: Places,
    /// None on one CPU.
    domains: Option<Rc<Domains>>,
    /// None on one CPU.
    balancer: Option<Box<fair::Balancer>>,
    /// None where it has nothing to do.
    numa: Option<Box<Numa>>,
    /// The tunables, where some follow the CPUs online.
    follows: Option<Follows>,
    seed: u64,
    /// The reasons of the pick under way, where they are asked for.
    why: explain::Why,
    /// Between leaving a group and joining another: the task was queued.
    moving: bool,
    /// The groups' timers have been started.
    started: bool,
}

impl<D: Discipline> Fair<D> {
    /// A scheduler for a machine and a load, by a discipline and the rules of its groups.
    #[must_use]
    pub fn new(setup: &Setup<'_>, d: D, rules: groups::Rules) -> Self {
        let (machine, release) = (setup.machine, setup.balancing.release);
        let cpus = machine.cpus.len() as u32;
        let mut rqs = Runqueues::new(cpus, setup.load, rules, &d.queue());
        rqs.build_groups(d.arithmetic());
        let capacities = machine.cpus.iter().map(|cpu| cpu.place.capacity);
        let mut pelt = Pelt::new(release, capacities, rqs.queues.len(), setup.tick);
        (0..rqs.first_task).for_each(|e| pelt.init_entity(e, 0));
        let balancer = (cpus > 1).then(|| Box::new(fair::Balancer::new(setup.balancing, machine, setup.seed)));
        let domains = balancer.as_ref().map(|b| b.domains());
        let numa = setup.numa.zip(domains.as_ref());
        let numa = numa.map(|(settings, domains)| Box::new(Numa::new(release, machine, domains, settings)));
        Self {
            d,
            rqs,
            pelt,
            places: Places::new(setup),
            domains,
            balancer,
            numa,
            follows: setup.follows.cloned(),
            seed: setup.seed,
            why: explain::Why::default(),
            moving: false,
            started: false,
        }
    }

    /// What placement may look at and change.
    #[inline]
    fn select(&mut self) -> Select<'_> {
        self.select_within().0
    }

    /// The same, and the domains.
    #[inline]
    fn select_within(&mut self) -> (Select<'_>, Option<&Domains>) {
        let select = Select {
            places: &mut self.places,
            rqs: &self.rqs,
            pelt: &mut self.pelt,
            balancer: self.balancer.as_deref(),
            numa: self.numa.as_deref(),
        };
        (select, self.domains.as_deref())
    }

    /// Whether placement goes by energy now.
    fn saves_energy(&self) -> bool {
        self.balancer.as_ref().is_some_and(|balancer| balancer.saves_energy())
    }

    /// What is left of a CPU's capacity as balancing last found it, and the whole (`capacity_of`, `capacity_orig_of`).
    fn capacity_of(&self, cpu: CpuId) -> (u64, u64) {
        self.balancer.as_ref().map_or((1024, 1024), |balancer| balancer.capacity(cpu))
    }

    /// `counted` CPUs count from now on (`update_sysctl`): every queue's time is accounted by the old values, and
    /// decided anew by the new ones.
    fn count_cpus(&mut self, cx: &mut Core, counted: u32) {
        if self.follows.is_none() {
            return;
        }
        for cpu in 0..self.rqs.cpus {
            sync(self, cx, cpu);
            cx.touch(cpu);
        }
        if let Some(follows) = &mut self.follows {
            self.d.retune(follows.count(counted));
        }
    }

    /// Each CPU's queued tasks.
    #[must_use]
    pub fn tasks(&self) -> &TaskLists {
        &self.rqs.tasks
    }

    /// A CPU's root queue: its load, how many tasks there are below it, how many of them idle.
    #[must_use]
    pub fn root(&self, cpu: CpuId) -> &Queue {
        &self.rqs.queues[cpu as usize]
    }

    /// Whether a task may not run because a group that it is in is throttled on its CPU.
    #[must_use]
    pub fn is_throttled(&self, p: TaskId) -> bool {
        self.rqs.queues[self.rqs.entities[self.rqs.entity(p) as usize].queue as usize].throttle_count > 0
    }
}

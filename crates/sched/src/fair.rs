//! The fair schedulers, CFS (2.6.24 to 6.5) and EEVDF (6.6 on), and the group hierarchy that both schedule.
//!
//! # Idea
//! A group is scheduled like a single task with the weight of its shares. Within the group, its tasks share the group's
//! CPU time as if it were a slower CPU. A group therefore gets its share regardless of its number of tasks, to any
//! depth of nesting.
//!
//! # Rule
//! A group has an entity and a queue on each CPU. Its entity is queued on the queue of the parent group as long as its
//! own queue is not empty. To pick a task, the scheduler descends from the root queue and takes the best entity of each
//! queue; to charge a task, it walks up. Which entity is best is decided by the discipline: [`cfs`] or [`eevdf`].
//!
//! # State
//! `Runqueues` has the [entities and queues](entity), [the group of each task](groups), [the groups' weights](shares),
//! their [quotas](bandwidth), and [the tasks of each CPU](tasks) in the order in which load balancing looks at them.
//! `Pelt` has the load averages (`pelt.rs`), and `Places` the state for [placing tasks](place).
//!
//! # Tunables
//! `sched_cfs_bandwidth_slice_us`, `sched_autogroup_enabled` and `group_by_user`, depending on the release. The
//! disciplines have their own tunables.
//!
//! # Differences from the kernel
//! Load averages are exact, whereas the kernel's are sums of rounded periods (`pelt.rs`). The load of a task that wakes
//! on another CPU leaves its group's entity at once; in the kernel it does when the old CPU next updates the queue. A
//! group's weight has no fraction; the kernel has 10 more bits from 4.7 on, and drops them in its computations. All
//! groups exist from the start. For load balancing see [`crate::balance::fair`].
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
mod hrtick;
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
use crate::classes::hrtick::Hrtick;
use crate::classes::{ClassId, sync};
use crate::tunables::Follows;
use entity::{Flags, Queue};
use pelt::Pelt;
use place::{Places, Select};
use rqs::Runqueues;
use schedlab_base::{CpuId, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::{Core, TaskId};
use std::rc::Rc;
use tasks::TaskLists;
use timeline::Arena;

/// The input for creating a fair scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// The workload, for its groups, users and sessions.
    pub load: &'a schedlab_sim::program::Load,
    /// The seed for random choices.
    pub seed: u64,
    /// The time of the first tick and the length of a tick, in ns.
    pub tick: (Nanos, Nanos),
    /// Whether `fix.overload_on_wakeup` is enabled.
    pub overload_on_wakeup_fixed: bool,
    /// The tunables, if some depend on the number of online CPUs.
    pub follows: Option<&'a Follows>,
    /// The load balancing rules of the release.
    pub balancing: fair::Rules,
    /// How the high-resolution tick is used.
    pub hrtick: Hrtick,
    /// The settings of NUMA balancing; `None` if it is off or the machine has a single node.
    pub numa: Option<period::Settings>,
}

/// A fair scheduler, made of parts that keep their own state. A function that uses only one part belongs to that part.
/// Functions that need several parts are here and in the submodules.
#[derive(Debug)]
pub struct Fair<D> {
    /// The discipline, which chooses within a queue.
    d: D,
    /// Entities, queues and groups.
    rqs: Runqueues,
    /// Load averages.
    pelt: Pelt,
    /// The state for placing tasks.
    places: Places,
    /// The sched domains; `None` on a single CPU.
    domains: Option<Rc<Domains>>,
    /// The load balancer; `None` on a single CPU.
    balancer: Option<Box<fair::Balancer>>,
    /// NUMA balancing; `None` if there is nothing for it to do.
    numa: Option<Box<Numa>>,
    /// How the high-resolution tick is used.
    hrtick: Hrtick,
    /// The tunables, if some depend on the number of online CPUs.
    follows: Option<Follows>,
    seed: u64,
    /// The reasons of the current pick, if decisions are being explained.
    why: explain::Why,
    /// Whether the task that has left its group and not yet joined another was queued.
    moving: bool,
    /// Whether the groups' bandwidth timers have been started.
    started: bool,
}

impl<D: Discipline> Fair<D> {
    /// Called before anything else happens: before the first task starts, or a CPU goes offline.
    fn begin(&mut self, cx: &mut Core) {
        if std::mem::replace(&mut self.started, true) {
            return;
        }
        self.rqs.start_pools(cx, self.seed);
        if let Some(balancer) = &mut self.balancer {
            balancer.start(cx, ClassId::Fair.timer(2 * self.rqs.groups.all.len() as u32));
        }
    }

    /// Creates the scheduler for `setup`, with discipline `d` and these rules for groups.
    #[must_use]
    pub fn new(setup: &Setup<'_>, d: D, rules: groups::Rules) -> Self {
        let (machine, release) = (setup.machine, setup.balancing.release);
        let cpus = machine.cpus.len() as u32;
        let mut rqs = Runqueues::new(cpus, setup.load, rules, &d.queue(), Arena::new(d.search()));
        rqs.build_groups(d.arithmetic());
        let capacities = machine.cpus.iter().map(|cpu| cpu.place.capacity);
        let mut pelt = Pelt::new(release, capacities, rqs.queues.len(), setup.tick);
        pelt.util_est.keep(&setup.balancing.features);
        (0..rqs.first_task).for_each(|e| pelt.init_entity(e, false, 0));
        let balancer = (cpus > 1).then(|| Box::new(fair::Balancer::new(setup.balancing, machine, setup.seed)));
        let domains = balancer.as_ref().map(|b| b.domains());
        let numa = setup.numa.zip(domains.as_ref());
        let numa = numa.map(|(settings, domains)| Box::new(Numa::new(release, machine, domains, settings)));
        let places = Places::new(setup, d.usual_time_to_wakeup());
        Self {
            d,
            rqs,
            pelt,
            places,
            domains,
            balancer,
            numa,
            hrtick: setup.hrtick,
            follows: setup.follows.cloned(),
            seed: setup.seed,
            why: explain::Why::default(),
            moving: false,
            started: false,
        }
    }

    /// The parts that task placement reads and changes.
    #[inline]
    fn select(&mut self) -> Select<'_> {
        self.select_within().0
    }

    /// The parts that task placement uses, and the domains.
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

    /// Whether wake-ups currently go by energy.
    fn saves_energy(&self) -> bool {
        self.balancer.as_ref().is_some_and(|balancer| balancer.saves_energy())
    }

    /// What was left of a CPU's capacity at its last update, and its original capacity (`capacity_of`,
    /// `capacity_orig_of`).
    fn capacity_of(&self, cpu: CpuId) -> (u64, u64) {
        self.balancer.as_ref().map_or((1024, 1024), |balancer| balancer.capacity(cpu))
    }

    /// Rescales the tunables for `counted` CPUs (`update_sysctl`). Every runqueue is first brought up to date with the
    /// old values, and its next decision is computed again with the new ones.
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

    /// The queued tasks of each CPU.
    #[must_use]
    pub fn tasks(&self) -> &TaskLists {
        &self.rqs.tasks
    }

    /// A CPU's root queue: its load, the number of tasks below it, and how many of those are idle tasks.
    #[must_use]
    pub fn root(&self, cpu: CpuId) -> &Queue {
        &self.rqs.queues[cpu as usize]
    }

    /// Whether a task cannot run because one of its groups is throttled on its CPU.
    #[must_use]
    pub fn is_throttled(&self, p: TaskId) -> bool {
        let entity = &self.rqs.entities[self.rqs.entity(p) as usize];
        entity.flags.has(Flags::ASIDE) || self.rqs.is_cut_off(entity.queue)
    }
}

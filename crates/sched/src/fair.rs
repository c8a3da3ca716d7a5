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
//! [`entity`]: entities and queues. [`groups`]: who is in which group. [`shares`]: what a group's entities weigh.
//! [`bandwidth`]: quotas. [`tasks`]: each CPU's tasks in the order in which balancing looks at them.
//!
//! # Tunables
//! `sched_cfs_bandwidth_slice_us`, `sched_autogroup_enabled`, `group_by_user` by release; the disciplines have theirs.
//!
//! # Differences from the kernel
//! Load averages are exact where the kernel's are sums of rounded periods ([`decay`]); a group's entity counts with its
//! own weight and runnable time, not with what is propagated from below. A group's weight has no fraction (the kernel
//! has 10 more bits from 4.7 on, and drops them when it computes). Groups stand as they are from the start. Balancing:
//! [`crate::balance::fair`].
//!
//! # Reference
//! kernel/sched/fair.c of 6.1, 6.6 and 6.12; kernel/sched_fair.c and kernel/sched.c of 2.6.24 and 2.6.32.

mod averages;
mod balancing;
pub mod bandwidth;
mod capacity;
pub mod cfs;
mod class;
pub mod decay;
pub mod eevdf;
pub mod entity;
mod estimate;
mod explain;
pub mod groups;
pub mod load;
mod look;
mod numa;
pub mod place;
pub mod shares;
pub mod tasks;
pub mod timeline;
pub mod tracking;
mod walk;

use crate::balance::domains::Domains;
use crate::balance::fair;
use crate::balance::numa::{Numa, period};
use crate::classes::sync;
use crate::tunables::{Follows, Values};
use entity::{Entity, EntityId, Leave, Queue, QueueId};
use groups::Groups;
use load::{Arithmetic, Load};
use place::Places;
use schedlab_base::{CpuId, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::{Attributes, Core, Enqueue, TaskId, Ticks, View};
use std::rc::Rc;
use tasks::TaskLists;
use timeline::Arena;
use tracking::Tracking;

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
    /// How the release at hand balances.
    pub balancing: fair::Rules,
    /// NUMA balancing, where it is on and there is anything for it to do.
    pub numa: Option<period::Settings>,
}

/// How one queue chooses among its entities, tasks and groups alike: CFS or EEVDF.
///
/// All are functions of the scheduler, which has the queues; `q` is a queue, `e` an entity in it.
pub trait Discipline: std::fmt::Debug + Sized {
    /// Its name.
    fn name(&self) -> &'static str;

    /// Tunables have new values, for CPUs came or went.
    fn retune(&mut self, values: &Values);

    /// What a viewer sees of a queue, beside what all have.
    fn show_queue(f: &Fair<Self>, q: QueueId) -> Vec<(&'static str, View)>;

    /// What a viewer sees of an entity, beside what all have.
    fn show_entity(f: &Fair<Self>, q: QueueId, e: EntityId) -> Vec<(&'static str, View)>;

    /// What an entity is compared by, for explanations.
    fn numbers(f: &Fair<Self>, q: QueueId, e: EntityId) -> [(&'static str, i64); 2];

    /// By which rule `picked` is the best of a queue in which others are queued.
    fn pick_rule(f: &Fair<Self>, q: QueueId, curr: Option<EntityId>, picked: EntityId) -> &'static str;

    /// By which rule `e` preempts `curr` of the same queue, or does not; and further numbers that it compares.
    fn wakeup_rule(
        f: &Fair<Self>,
        curr: EntityId,
        e: EntityId,
        preempts: bool,
        numbers: &mut Vec<(Option<TaskId>, &'static str, i64)>,
    ) -> &'static str;

    /// The arithmetic of virtual time.
    fn arithmetic(&self) -> Arithmetic;

    /// A queue as it is at boot.
    fn queue(&self) -> Queue;

    /// The tasks of a queue are moved in the order in which it runs them (2.6.24).
    fn moves_in_tree_order(&self) -> bool {
        false
    }

    /// The account is brought up to date even when no time has passed.
    fn charges_nothing(&self) -> bool {
        false
    }

    /// The running task stays where it is while the next is picked.
    fn picks_with_current(&self) -> bool;

    /// When a group is throttled, or a delayed entity leaves, in the midst of picking, the pick starts again;
    /// otherwise the running task is put back and all is picked anew.
    fn picks_again(&self) -> bool;

    /// A task that is picked goes to the head of its CPU's list.
    fn heads_list_when_picked(&self) -> bool;

    /// A group's entity keeps its weight when nothing is queued in the group.
    fn keeps_weight_when_empty(&self) -> bool;

    /// The running task is put back while its attributes change, and gets a new slice by that.
    fn change_puts(&self) -> bool;

    /// What a task's attributes mean to it: weight, slice.
    fn set_attributes(f: &mut Fair<Self>, e: EntityId, a: &Attributes);

    /// A task is created, by the entity `parent` on a CPU, if it is of this class.
    fn fork(f: &mut Fair<Self>, e: EntityId, parent: Option<(EntityId, CpuId)>);

    /// The running entity had `delta` ns more; whether its turn ends by that.
    fn charge(f: &mut Fair<Self>, q: QueueId, e: EntityId, delta: Nanos) -> bool;

    /// Puts an entity on a queue (`enqueue_entity`).
    fn join(f: &mut Fair<Self>, cx: &mut Core, q: QueueId, e: EntityId, how: Enqueue);

    /// Takes an entity off its queue (`dequeue_entity`), whose account is up to date; `false`: it stays, delayed.
    fn leave(f: &mut Fair<Self>, q: QueueId, e: EntityId, how: Leave) -> bool;

    /// An entity left its queue, and its group's weight is up to date.
    fn left(f: &mut Fair<Self>, q: QueueId, e: EntityId, how: Leave);

    /// Puts an entity into the tree.
    fn insert(f: &mut Fair<Self>, q: QueueId, e: EntityId);

    /// Takes an entity out of the tree.
    fn remove(f: &mut Fair<Self>, q: QueueId, e: EntityId);

    /// Who is to run next, the running entity `curr` included.
    fn pick(f: &mut Fair<Self>, q: QueueId, curr: Option<EntityId>) -> Option<EntityId>;

    /// An entity is about to run (`set_next_entity`).
    fn taken(f: &mut Fair<Self>, q: QueueId, e: EntityId);

    /// A queued entity that sleeps wakes in its queue.
    fn requeue_delayed(f: &mut Fair<Self>, e: EntityId) {
        let _ = (f, e);
    }

    /// A task of the group `e` went to sleep, and there are others in it.
    fn goes_on(f: &mut Fair<Self>, e: EntityId);

    /// The least slice in a queue, for the group above.
    fn min_slice(f: &Fair<Self>, q: QueueId) -> Nanos {
        let _ = (f, q);
        0
    }

    /// A group's entity has the least slice of those in it; `joins`: as it is queued.
    fn set_slice(f: &mut Fair<Self>, e: EntityId, slice: Nanos, joins: bool) {
        let _ = (f, e, slice, joins);
    }

    /// Gives a group's entity another weight (`reweight_entity`).
    fn reweight(f: &mut Fair<Self>, cx: &mut Core, e: EntityId, load: Load);

    /// The tick on one level, after the account; more than one entity is queued.
    fn tick(f: &mut Fair<Self>, cx: &mut Core, q: QueueId, e: EntityId);

    /// Accounts for ticks without effect on one level.
    fn skip_ticks(f: &mut Fair<Self>, q: QueueId, e: EntityId, ticks: Ticks);

    /// The earliest time at which the tick could do more on one level, where more than one entity is queued.
    fn next_decision(f: &mut Fair<Self>, q: QueueId, e: EntityId) -> Nanos;

    /// The earliest time at which the account of the running task alone could end its turn, where more than one entity
    /// is queued with it.
    fn clock_decision(f: &mut Fair<Self>, q: QueueId, e: EntityId) -> Nanos;

    /// A task became runnable where `curr` runs (`check_preempt_wakeup`).
    fn wakeup_preempt(f: &mut Fair<Self>, cx: &mut Core, curr: EntityId, e: EntityId, how: Enqueue);

    /// The running task yields, and there are others.
    fn yields(f: &mut Fair<Self>, cx: &mut Core, q: QueueId, e: EntityId);

    /// How many count for whether there are others than who yields.
    fn others(f: &Fair<Self>, q: QueueId) -> u32;

    /// A task that does not run moves from one CPU's queue to another's.
    fn migrate(f: &mut Fair<Self>, e: EntityId, from: QueueId, to: QueueId);

    /// A task that is not queued moves to another group: before, in its old queue, and after, in its new one.
    fn change_group(f: &mut Fair<Self>, cx: &mut Core, e: EntityId, joins: bool, queued: bool);

    /// A queued task's attributes changed: whether somebody else is to run.
    fn changed(f: &mut Fair<Self>, cx: &mut Core, p: TaskId, old: &Attributes, running: bool);
}

/// A fair scheduler.
#[derive(Debug)]
pub struct Fair<D> {
    d: D,
    rules: groups::Rules,
    arena: Arena,
    entities: Vec<Entity>,
    queues: Vec<Queue>,
    /// The fair task that runs on each CPU.
    running: Vec<Option<EntityId>>,
    groups: Groups,
    tasks: TaskLists,
    tracking: Tracking,
    estimates: estimate::Estimates,
    places: Places,
    /// None on one CPU.
    domains: Option<Rc<Domains>>,
    /// The time of what is being done (`rq->clock`).
    clock: Nanos,
    cpus: u32,
    /// The entity of task 0: before it are the groups'.
    first_task: u32,
    /// The tunables, where some follow the CPUs online.
    follows: Option<Follows>,
    balancer: Option<Box<fair::Balancer>>,
    /// None where it has nothing to do.
    numa: Option<Box<Numa>>,
    /// How many tasks of other classes are runnable on each CPU.
    others: Vec<u32>,
    /// Of them, those of the real-time class.
    real_time: Vec<u32>,
    /// What is remembered of the groups' shares, where they are spread now and then.
    spread: shares::Spread,
    /// Which CPUs have tasks of any class.
    occupancy: fair::Occupancy,
    seed: u64,
    /// The reasons of the pick under way, where somebody wants to know.
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
        let cpus = setup.machine.cpus.len() as u32;
        let groups = Groups::new(setup.load, &rules);
        let first_task = groups.all.len() as u32 * cpus;
        let queues = vec![d.queue(); (first_task + cpus) as usize];
        let capacities = setup.machine.cpus.iter().map(|cpu| cpu.place.capacity);
        let tracking = Tracking::new(setup.balancing.style, capacities, queues.len(), setup.tick);
        let balancer = (cpus > 1).then(|| Box::new(fair::Balancer::new(setup.balancing, setup.machine, setup.seed)));
        let domains = balancer.as_ref().map(|b| b.domains());
        let era = setup.balancing.style.era;
        let numa = setup.numa.zip(domains.as_ref());
        let numa = numa.map(|(settings, domains)| Box::new(Numa::new(era, setup.machine, domains, settings)));
        let capacity = |cpu: &schedlab_machine::Cpu| cpu.place.capacity;
        let differ = setup.machine.cpus.iter().map(capacity).min() != setup.machine.cpus.iter().map(capacity).max();
        let mut me = Self {
            d,
            rules,
            arena: Arena::default(),
            entities: vec![Entity::default(); first_task as usize],
            queues,
            running: vec![None; cpus as usize],
            groups,
            tasks: TaskLists::new(cpus),
            tracking,
            estimates: estimate::Estimates::new(era, cpus as usize, differ),
            places: Places::new(setup),
            domains,
            numa,
            clock: 0,
            cpus,
            first_task,
            balancer,
            follows: setup.follows.cloned(),
            others: vec![0; cpus as usize],
            real_time: vec![0; cpus as usize],
            spread: shares::Spread::new(first_task),
            occupancy: fair::Occupancy::new(cpus),
            seed: setup.seed,
            why: explain::Why::default(),
            moving: false,
            started: false,
        };
        me.build_groups();
        me
    }

    fn build_groups(&mut self) {
        let arithmetic = self.d.arithmetic();
        for e in 0..self.first_task {
            self.arena.grow(e);
            self.track(e, 0);
            let (g, cpu) = (e / self.cpus, e % self.cpus);
            let (mut depth, mut above) = (0, self.groups.all[g as usize].parent);
            while let Some(parent) = above {
                depth += 1;
                above = self.groups.all[parent as usize].parent;
            }
            let group = &self.groups.all[g as usize];
            let queue = group.parent.map_or(cpu, |parent| self.cpus + parent * self.cpus + cpu);
            let load = Load::with_weight(group.shares, arithmetic);
            self.entities[e as usize] = Entity { queue, depth, load, idle: group.idle, ..Entity::default() };
            let own = &mut self.queues[(e + self.cpus) as usize];
            (own.idle, own.limited) = (group.idle, group.pool.is_some());
        }
    }

    /// So many CPUs are counted from now on (`update_sysctl`): every queue's time is accounted by the old values, and
    /// decided anew by the new ones.
    fn count_cpus(&mut self, cx: &mut Core, counted: u32) {
        if self.follows.is_none() {
            return;
        }
        for cpu in 0..self.cpus {
            sync(self, cx, cpu);
            cx.touch(cpu);
        }
        if let Some(follows) = &mut self.follows {
            self.d.retune(follows.count(counted));
        }
    }

    /// The entity of a task.
    #[inline]
    fn entity(&self, p: TaskId) -> EntityId {
        p + self.first_task
    }

    /// The entity of the group that `e` is in.
    #[inline]
    fn parent(&self, e: EntityId) -> Option<EntityId> {
        self.entities[e as usize].queue.checked_sub(self.cpus)
    }

    #[inline]
    fn cpu_of(&self, q: QueueId) -> CpuId {
        if q < self.cpus { q } else { q % self.cpus }
    }

    /// The group of a queue that is no root queue.
    #[inline]
    fn group_of(&self, q: QueueId) -> usize {
        (q / self.cpus - 1) as usize
    }

    /// The queue of a task on a CPU.
    #[inline]
    fn queue_of(&self, cx: &Core, p: TaskId, cpu: CpuId) -> QueueId {
        self.groups.of(cx.task(p)).map_or(cpu, |g| (g + 1) * self.cpus + cpu)
    }

    /// Sets the queue of a task that is not queued.
    fn set_queue(&mut self, e: EntityId, q: QueueId) {
        let depth = q.checked_sub(self.cpus).map_or(0, |group| self.entities[group as usize].depth + 1);
        let entity = &mut self.entities[e as usize];
        (entity.queue, entity.depth) = (q, depth);
    }

    /// Whether `e` is the running entity of its queue.
    #[inline]
    fn is_curr(&self, q: QueueId, e: EntityId) -> bool {
        self.queues[q as usize].curr == Some(e)
    }

    #[inline]
    fn virtual_time(&self, e: EntityId, delta: Nanos) -> Nanos {
        self.entities[e as usize].load.virtual_time(delta, self.d.arithmetic())
    }

    /// The running entity of a queue, if it is still queued.
    #[inline]
    fn queued_curr(&self, q: QueueId) -> Option<EntityId> {
        self.queues[q as usize].curr.filter(|e| self.entities[*e as usize].on_rq)
    }

    /// Brings the account of a queue's running entity up to `now`; whether its turn ends by that, if any time passed.
    #[inline]
    fn advance(&mut self, q: QueueId, now: Nanos) -> Option<(Nanos, bool)> {
        let e = self.queues[q as usize].curr?;
        let entity = &mut self.entities[e as usize];
        let delta = now - entity.exec_start;
        if delta == 0 && !self.d.charges_nothing() {
            return None;
        }
        entity.exec_start = now;
        entity.sum_exec += delta;
        Some((delta, D::charge(self, q, e, delta)))
    }

    /// Brings the account of a queue's running entity up to date (`update_curr`).
    #[inline]
    fn update_curr(&mut self, cx: &mut Core, q: QueueId) {
        let Some((delta, ended)) = self.advance(q, cx.now()) else { return };
        if self.queues[q as usize].limited {
            self.account_runtime(cx, q, delta);
        }
        if ended {
            if let Some(e) = self.queues[q as usize].curr {
                self.explain_turn(cx, q, e, "its request is consumed, or it lost its protection and owes time", None);
            }
            cx.resched(self.cpu_of(q));
        }
    }

    /// The two levels at which two tasks compete: the entities of each in the queue that both are under.
    #[inline]
    fn matching(&self, mut a: EntityId, mut b: EntityId) -> (EntityId, EntityId) {
        if self.first_task == 0 {
            return (a, b);
        }
        let up = |e: EntityId| self.parent(e).expect("tasks of one CPU meet in its root queue");
        let depth = |e: EntityId| self.entities[e as usize].depth;
        while depth(a) > depth(b) {
            a = up(a);
        }
        while depth(b) > depth(a) {
            b = up(b);
        }
        while self.entities[a as usize].queue != self.entities[b as usize].queue {
            (a, b) = (up(a), up(b));
        }
        (a, b)
    }

    /// Counts an entity in (`account_entity_enqueue`).
    #[inline]
    fn count_in(&mut self, q: QueueId, e: EntityId) {
        let entity = &mut self.entities[e as usize];
        entity.on_rq = true;
        let queue = &mut self.queues[q as usize];
        let old = queue.load.weight;
        queue.load.add(&entity.load);
        queue.nr_queued += 1;
        queue.nr_idle += u32::from(entity.idle);
        if e >= self.first_task {
            self.tasks.add(self.cpu_of(q), e - self.first_task);
        }
        self.load_changed(q, old);
        self.track_in(q, e, self.clock);
        self.note_tick_load(q);
    }

    /// Counts an entity out (`account_entity_dequeue`).
    #[inline]
    fn count_out(&mut self, q: QueueId, e: EntityId) {
        let entity = &mut self.entities[e as usize];
        entity.on_rq = false;
        let queue = &mut self.queues[q as usize];
        let old = queue.load.weight;
        queue.load.sub(&entity.load);
        queue.nr_queued -= 1;
        queue.nr_idle -= u32::from(entity.idle);
        if e >= self.first_task {
            self.tasks.remove(self.cpu_of(q), e - self.first_task);
        }
        self.load_changed(q, old);
        self.track_out(q, e, self.clock);
        self.note_tick_load(q);
    }

    /// Gives an entity another weight, and its queue the difference if it is queued.
    fn set_load(&mut self, e: EntityId, load: Load) {
        let Entity { queue: q, on_rq, load: old, .. } = self.entities[e as usize];
        self.entities[e as usize].load = load;
        self.track_weight(q, e, load.weight as f64 - old.weight as f64, self.clock);
        if on_rq {
            let queue = &mut self.queues[q as usize];
            let sum = queue.load.weight;
            queue.load.sub(&old);
            queue.load.add(&load);
            self.load_changed(q, sum);
            self.note_tick_load(q);
        }
    }

    /// What a task weighs at its CPU's root (`task_h_load`).
    #[must_use]
    pub fn root_load(&self, p: TaskId) -> u64 {
        let Entity { queue: q, load, .. } = self.entities[self.entity(p) as usize];
        load.weight * self.root_load_of(q) / (self.queues[q as usize].load.weight + 1)
    }

    /// Each CPU's queued tasks.
    #[must_use]
    pub fn tasks(&self) -> &TaskLists {
        &self.tasks
    }

    /// A CPU's root queue: its load, how many tasks there are below it, how many of them idle.
    #[must_use]
    pub fn root(&self, cpu: CpuId) -> &Queue {
        &self.queues[cpu as usize]
    }

    /// Whether a task may not run because a group that it is in is throttled on its CPU.
    #[must_use]
    pub fn is_throttled(&self, p: TaskId) -> bool {
        self.queues[self.entities[self.entity(p) as usize].queue as usize].throttle_count > 0
    }
}

//! What CFS and EEVDF differ in: how one queue chooses among its entities.

use super::Fair;
use super::entity::{EntityId, Leave, Queue, QueueId};
use super::load::{Arithmetic, Load};
use crate::tunables::Values;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Attributes, Core, Enqueue, TaskId, Ticks, View};

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
    fn leave(f: &mut Fair<Self>, q: QueueId, e: EntityId, how: Leave, now: Nanos) -> bool;

    /// An entity left its queue, and its group's weight is up to date.
    fn left(f: &mut Fair<Self>, q: QueueId, e: EntityId, how: Leave);

    /// Puts an entity into the tree.
    fn insert(f: &mut Fair<Self>, q: QueueId, e: EntityId);

    /// Takes an entity out of the tree.
    fn remove(f: &mut Fair<Self>, q: QueueId, e: EntityId);

    /// The entity to run next, the running entity `curr` included.
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

    /// How many others count when a task yields.
    fn others(f: &Fair<Self>, q: QueueId) -> u32;

    /// A task that does not run moves from one CPU's queue to another's.
    fn migrate(f: &mut Fair<Self>, e: EntityId, from: QueueId, to: QueueId);

    /// A task that is not queued moves to another group: before, in its old queue, and after, in its new one.
    fn change_group(f: &mut Fair<Self>, cx: &mut Core, e: EntityId, joins: bool, queued: bool);

    /// A queued task's attributes changed: whether another task is to run.
    fn changed(f: &mut Fair<Self>, cx: &mut Core, p: TaskId, old: &Attributes, running: bool);
}

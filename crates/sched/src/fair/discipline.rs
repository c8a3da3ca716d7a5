//! The interface of the two disciplines, CFS and EEVDF: how one queue chooses among its entities.

use super::Fair;
use super::entity::{EntityId, Leave, Queue, QueueId};
use super::load::{Arithmetic, Load};
use super::timeline::Search;
use crate::tunables::Values;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Attributes, Core, Enqueue, TaskId, Ticks, View};

/// How one queue chooses among its entities, which are tasks and groups alike: CFS or EEVDF.
///
///
/// The methods take the scheduler, which owns the queues. `q` is a queue and `e` an entity on it.
pub trait Discipline: std::fmt::Debug + Sized {
    /// Whether only ticks end turns, so that they do not while a timer does (`HRTICK`). Otherwise accounting does.
    const TICKS_END_TURNS: bool;

    /// The name of the discipline.
    fn name(&self) -> &'static str;

    /// Called when tunables have new values because CPUs went offline or came online.
    fn retune(&mut self, values: &Values);

    /// The values of a queue to display, in addition to those that both disciplines have.
    fn show_queue(f: &Fair<Self>, q: QueueId) -> Vec<(&'static str, View)>;

    /// The values of an entity to display, in addition to those that both disciplines have.
    fn show_entity(f: &Fair<Self>, q: QueueId, e: EntityId) -> Vec<(&'static str, View)>;

    /// The numbers by which entities are compared, for explanations.
    fn numbers(f: &Fair<Self>, q: QueueId, e: EntityId) -> [(&'static str, i64); 2];

    /// The rule by which `picked` is the best entity of a queue that has others, for explanations.
    fn pick_rule(f: &Fair<Self>, q: QueueId, curr: Option<EntityId>, picked: EntityId) -> &'static str;

    /// How long a task that wakes no other counts as running before it would (2.6.32: the wake-up granularity).
    fn usual_time_to_wakeup(&self) -> Nanos {
        0
    }

    /// The rule by which accounting ends the turn of a running entity, for explanations.
    fn charge_rule(&self) -> &'static str {
        ""
    }

    /// The rule by which `e` does or does not preempt `curr` on the same queue. Appends further numbers that were
    /// compared.
    fn wakeup_rule(
        f: &Fair<Self>,
        curr: EntityId,
        e: EntityId,
        preempts: bool,
        numbers: &mut Vec<(Option<TaskId>, &'static str, i64)>,
    ) -> &'static str;

    /// The fixed-point arithmetic of virtual time.
    fn arithmetic(&self) -> Arithmetic;

    /// The initial state of a queue at boot.
    fn queue(&self) -> Queue;

    /// How it searches the waiting entities of a queue, if it does not only take the first.
    fn search(&self) -> Search;

    /// Whether load balancing moves the tasks of a queue in the order in which they would run (2.6.24).
    fn moves_in_tree_order(&self) -> bool {
        false
    }

    /// Whether accounting takes place even if no time has passed.
    fn charges_nothing(&self) -> bool {
        false
    }

    /// Whether the running task stays where it is while the next one is picked.
    fn picks_with_current(&self) -> bool;

    /// Whether the pick starts again if a group is throttled, or a delayed entity leaves, in the middle of it.
    /// Otherwise the running task is put back and everything is picked again.
    fn picks_again(&self) -> bool;

    /// Whether a picked task moves to the head of its CPU's list of tasks.
    fn heads_list_when_picked(&self) -> bool;

    /// Whether a group's entity keeps its weight while the group's queue is empty.
    fn keeps_weight_when_empty(&self) -> bool;

    /// Whether the running task is put back while its attributes change, which gives it a new slice.
    fn change_puts(&self) -> bool;

    /// Sets what a task's attributes determine: its weight and slice.
    fn set_attributes(f: &mut Fair<Self>, e: EntityId, a: &Attributes);

    /// Initialises the entity of a forked task. `parent` is the parent's entity and CPU, if there is a parent, and
    /// `fair` whether the task begins in this class.
    fn fork(f: &mut Fair<Self>, cx: &mut Core, e: EntityId, parent: Option<(EntityId, CpuId)>, fair: bool);

    /// Charges the running entity for `delta` ns. Returns whether its turn ends.
    fn charge(f: &mut Fair<Self>, q: QueueId, e: EntityId, delta: Nanos) -> bool;

    /// Enqueues an entity (`enqueue_entity`).
    fn join(f: &mut Fair<Self>, cx: &mut Core, q: QueueId, e: EntityId, how: Enqueue);

    /// Dequeues an entity whose accounting is up to date (`dequeue_entity`). Returns `false` if it stays queued,
    /// delayed.
    fn leave(f: &mut Fair<Self>, q: QueueId, e: EntityId, how: Leave, now: Nanos) -> bool;

    /// Called after an entity was dequeued and its group's weight was updated.
    fn left(f: &mut Fair<Self>, q: QueueId, e: EntityId, how: Leave);

    /// Inserts an entity into the tree.
    fn insert(f: &mut Fair<Self>, q: QueueId, e: EntityId);

    /// Removes an entity from the tree.
    fn remove(f: &mut Fair<Self>, q: QueueId, e: EntityId);

    /// The entity to run next, including the running entity `curr` if it takes part.
    fn pick(f: &mut Fair<Self>, q: QueueId, curr: Option<EntityId>) -> Option<EntityId>;

    /// Whether a queued entity has had more than its share, and that counts when it is placed on another queue.
    fn owes(f: &Fair<Self>, q: QueueId, e: EntityId) -> bool {
        let _ = (f, q, e);
        false
    }

    /// Called when an entity is about to run (`set_next_entity`): because it was `picked`, or because it was put back
    /// only to be changed.
    fn taken(f: &mut Fair<Self>, q: QueueId, e: EntityId, picked: bool);

    /// Called when a delayed entity wakes while it is still queued.
    fn requeue_delayed(f: &mut Fair<Self>, e: EntityId) {
        let _ = (f, e);
    }

    /// Called when a task of the group `e` goes to sleep and the group has other tasks.
    fn goes_on(f: &mut Fair<Self>, e: EntityId);

    /// The minimum slice on a queue, for the entity of its group.
    fn min_slice(f: &Fair<Self>, q: QueueId) -> Nanos {
        let _ = (f, q);
        0
    }

    /// Sets the slice of a group's entity to the minimum slice in the group. `joins` says that the entity is being
    /// enqueued.
    fn set_slice(f: &mut Fair<Self>, e: EntityId, slice: Nanos, joins: bool) {
        let _ = (f, e, slice, joins);
    }

    /// Changes the weight of a group's entity (`reweight_entity`). `exact` is its weight before and after, in the
    /// resolution in which shares are distributed.
    fn reweight(f: &mut Fair<Self>, cx: &mut Core, e: EntityId, load: Load, exact: (u64, u64));

    /// The tick at one level, after accounting, if more than one entity is queued.
    fn tick(f: &mut Fair<Self>, cx: &mut Core, q: QueueId, e: EntityId);

    /// Accounts for skipped ticks at one level.
    fn skip_ticks(f: &mut Fair<Self>, q: QueueId, e: EntityId, ticks: Ticks);

    /// The earliest time at which a tick could do more than accounting at one level with more than one queued entity,
    /// and the time from which on it is certain to end the running entity's turn.
    fn turn_due(f: &mut Fair<Self>, q: QueueId, e: EntityId) -> (Nanos, Nanos);

    /// The slice of an entity, for the timer that ends it (`hrtick_start_fair`).
    fn hrtick_slice(f: &mut Fair<Self>, e: EntityId) -> Nanos;

    /// Whether that timer is started anew when a task joins or leaves the CPU (`hrtick_update`). `q` is the running
    /// task's queue.
    fn hrtick_follows(f: &Fair<Self>, q: QueueId) -> bool {
        let _ = (f, q);
        true
    }

    /// Called when a tick that was skipped has ended the turn of the running task.
    fn turn_ended(f: &mut Fair<Self>, e: EntityId) {
        let _ = (f, e);
    }

    /// The earliest time at which accounting alone could end the running task's turn, at a level with more than one
    /// queued entity.
    fn clock_decision(f: &mut Fair<Self>, q: QueueId, e: EntityId) -> Nanos;

    /// Preempts `curr` if `e`, which became runnable on its CPU, should run instead (`check_preempt_wakeup`).
    fn wakeup_preempt(f: &mut Fair<Self>, cx: &mut Core, curr: EntityId, e: EntityId, how: Enqueue);

    /// Called when the running task yields and other tasks are queued.
    fn yields(f: &mut Fair<Self>, cx: &mut Core, q: QueueId, e: EntityId);

    /// How many other tasks count when a task yields.
    fn others(f: &Fair<Self>, q: QueueId) -> u32;

    /// Called when a task that is not running migrates from one CPU's queue to another's.
    fn migrate(f: &mut Fair<Self>, e: EntityId, from: QueueId, to: QueueId);

    /// Called when a task changes its group: before, on its old queue, and after (`joins`), on its new one.
    fn change_group(f: &mut Fair<Self>, cx: &mut Core, e: EntityId, joins: bool, queued: bool);

    /// Called when a task that is asleep leaves the class, or (`joins`) joins it.
    fn change_class(f: &mut Fair<Self>, e: EntityId, joins: bool);

    /// Called when the attributes of a queued task have changed. Reschedules the CPU if another task should run.
    fn changed(f: &mut Fair<Self>, cx: &mut Core, p: TaskId, old: &Attributes, running: bool);
}

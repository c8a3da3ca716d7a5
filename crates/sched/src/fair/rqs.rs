//! The runqueues of all CPUs: entities, tasks and groups, where each is queued and which are running. Decisions about
//! what runs when and where are made elsewhere.

use super::entity::{Entity, EntityId, Queue, QueueId};
use super::groups::{self, Groups};
use super::load::{Arithmetic, Load};
use super::shares::Spread;
use super::tasks::TaskLists;
use super::timeline::Arena;
use crate::balance::fair::Occupancy;
use schedlab_base::{CpuId, Release, v};
use schedlab_sim::{Core, TaskId, program};

/// All entities and queues, indexed by number (see [`super::entity`]).
#[derive(Debug)]
pub(super) struct Runqueues {
    pub arena: Arena,
    pub entities: Vec<Entity>,
    pub queues: Vec<Queue>,
    /// The fair task that is running on each CPU.
    pub running: Vec<Option<EntityId>>,
    pub groups: Groups,
    /// The rules of the release for groups.
    pub rules: groups::Rules,
    /// The state of distributing the groups' shares, in releases that do so periodically.
    pub spread: Spread,
    pub tasks: TaskLists,
    /// Whether a throttled group puts its tasks aside one by one, when they would return to user mode: "sched/fair:
    /// Task based throttle model" (6.18). Before, the group's entity is dequeued with all of them.
    pub throttles_tasks: bool,
    /// The tasks that each throttled queue has put aside, in the order in which they came; empty if none ever does.
    pub aside: Vec<Vec<EntityId>>,
    pub cpus: u32,
    /// 2^64 / `cpus`, rounded up.
    inverse: u64,
    /// The entity of task 0. Lower numbers are the groups' entities.
    pub first_task: u32,
    /// For each CPU, the number of runnable tasks of other classes, and of the real-time class among them.
    others: Vec<u32>,
    real_time: Vec<u32>,
    /// The sets of CPUs that have tasks of any class.
    pub occupancy: Occupancy,
}

impl Runqueues {
    /// Creates empty runqueues for a number of CPUs. `queue` is the initial state of a queue, and `arena` that of the
    /// trees.
    pub fn new(cpus: u32, load: &program::Load, rules: groups::Rules, queue: &Queue, arena: Arena) -> Self {
        let groups = Groups::new(load, &rules);
        let first_task = groups.all.len() as u32 * cpus;
        let throttles_tasks = rules.bandwidth.is_some_and(|rules| rules.by_task);
        let putting_aside = throttles_tasks && groups.all.iter().any(|group| group.pool.is_some());
        Self {
            throttles_tasks,
            aside: if putting_aside { vec![Vec::new(); (first_task + cpus) as usize] } else { Vec::new() },
            arena,
            entities: vec![Entity::default(); first_task as usize],
            queues: vec![queue.clone(); (first_task + cpus) as usize],
            running: vec![None; cpus as usize],
            groups,
            rules,
            spread: Spread::new(first_task),
            tasks: TaskLists::new(cpus),
            cpus,
            inverse: (u64::MAX / u64::from(cpus)).wrapping_add(1),
            first_task,
            others: vec![0; cpus as usize],
            real_time: vec![0; cpus as usize],
            occupancy: Occupancy::new(cpus),
        }
    }

    /// Initialises the groups' entities, each on the queue of the parent group.
    pub fn build_groups(&mut self, arithmetic: Arithmetic) {
        for e in 0..self.first_task {
            self.arena.grow(e);
            let (g, cpu) = (e / self.cpus, e % self.cpus);
            let (mut depth, mut above) = (0_u16, self.groups.all[g as usize].parent);
            while let Some(parent) = above {
                depth = depth.saturating_add(1);
                above = self.groups.all[parent as usize].parent;
            }
            let group = &self.groups.all[g as usize];
            let queue = group.parent.map_or(cpu, |parent| self.cpus + parent * self.cpus + cpu);
            let load = Load::with_weight(group.shares, arithmetic);
            let idle = group.idle;
            self.entities[e as usize] = Entity { queue, depth, load: load.into(), idle, ..Entity::default() };
            let own = &mut self.queues[(e + self.cpus) as usize];
            (own.idle, own.limited) = (idle, group.pool.is_some());
            self.begin_shares(e);
        }
    }

    /// Makes room for a new task and resets its entity.
    pub fn grow(&mut self, p: TaskId) {
        let e = self.entity(p);
        self.arena.grow(e);
        self.tasks.grow(p);
        if self.entities.len() <= e as usize {
            self.entities.resize(e as usize + 1, Entity::default());
        }
        self.entities[e as usize] = Entity::default();
    }

    /// The entity of a task.
    #[inline]
    pub fn entity(&self, p: TaskId) -> EntityId {
        p + self.first_task
    }

    /// The task of an entity; `None` if it is a group's.
    #[inline]
    pub fn task(&self, e: EntityId) -> Option<TaskId> {
        e.checked_sub(self.first_task)
    }

    /// The entity of the group that `e` is in; `None` if `e` is on a root queue.
    #[inline]
    pub fn parent(&self, e: EntityId) -> Option<EntityId> {
        self.entities[e as usize].queue.checked_sub(self.cpus)
    }

    /// The CPU of a queue.
    #[inline]
    pub fn cpu_of(&self, q: QueueId) -> CpuId {
        if q < self.cpus {
            return q;
        }
        // q % cpus without a division: D. Lemire, O. Kaser and N. Kurz, "Faster remainder by direct computation", 2019.
        let fraction = self.inverse.wrapping_mul(u64::from(q));
        ((u128::from(fraction) * u128::from(self.cpus)) >> 64) as CpuId
    }

    /// The group of a queue that is not a root queue.
    #[inline]
    pub fn group_of(&self, q: QueueId) -> usize {
        (q / self.cpus - 1) as usize
    }

    /// The queue of a task's group on a CPU.
    #[inline]
    pub fn queue_of(&self, cx: &Core, p: TaskId, cpu: CpuId) -> QueueId {
        self.groups.of(cx.task(p)).map_or(cpu, |g| (g + 1) * self.cpus + cpu)
    }

    /// The queue that a task is on, or was on last.
    #[inline]
    pub fn queue_now(&self, p: TaskId) -> QueueId {
        self.entities[self.entity(p) as usize].queue
    }

    /// The queue of the same group on another CPU.
    pub fn same_on(&self, q: QueueId, cpu: CpuId) -> QueueId {
        q - self.cpu_of(q) + cpu
    }

    /// Sets the queue of a task that is not queued.
    pub fn set_queue(&mut self, e: EntityId, q: QueueId) {
        let depth = q.checked_sub(self.cpus).map_or(0, |group| self.entities[group as usize].depth.saturating_add(1));
        let entity = &mut self.entities[e as usize];
        (entity.queue, entity.depth) = (q, depth);
    }

    /// Whether the tasks of a queue, or those of a group above it, were dequeued as their group was throttled.
    #[inline]
    pub fn is_cut_off(&self, q: QueueId) -> bool {
        !self.throttles_tasks && self.queues[q as usize].throttle_count > 0
    }

    /// Whether `e` is the running entity of its queue.
    #[inline]
    pub fn is_curr(&self, q: QueueId, e: EntityId) -> bool {
        self.queues[q as usize].curr == Some(e)
    }

    /// The running entity of a queue, if it is still queued.
    #[inline]
    pub fn queued_curr(&self, q: QueueId) -> Option<EntityId> {
        self.queues[q as usize].curr.filter(|e| self.entities[*e as usize].on_rq)
    }

    /// The entities by which two tasks compete: their ancestors on the lowest queue that both are below.
    #[inline]
    pub fn matching(&self, mut a: EntityId, mut b: EntityId) -> (EntityId, EntityId) {
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

    /// How PELT counts an entity on a queue: whether it is a task, its CPU, and its weight.
    #[inline]
    pub fn counted(&self, q: QueueId, e: EntityId) -> (bool, CpuId, f64) {
        (e >= self.first_task, self.cpu_of(q), self.entities[e as usize].load.weight() as f64)
    }

    /// The number of runnable tasks of all classes on a CPU, including the running one (`rq->nr_running`).
    #[inline]
    pub fn nr_running(&self, cpu: CpuId) -> u32 {
        self.queues[cpu as usize].h_nr + self.others[cpu as usize]
    }

    /// Whether a CPU has tasks, and of all classes only SCHED_IDLE tasks (`sched_idle_rq`, `sched_idle_cpu`).
    #[inline]
    pub fn is_sched_idle(&self, cpu: CpuId) -> bool {
        let root = &self.queues[cpu as usize];
        root.h_nr > 0 && self.nr_running(cpu) == root.h_nr_idle
    }

    /// The number of fair tasks on a CPU as balancing counts them. From 6.14 on delayed tasks do not count:
    /// "sched/fair: Use the new cfs_rq.h_nr_runnable".
    #[inline]
    pub fn nr_counted(&self, cpu: CpuId, release: Release) -> u32 {
        let root = &self.queues[cpu as usize];
        if release >= v(6, 14) { root.h_nr - root.h_nr_delayed } else { root.h_nr }
    }

    /// Whether a CPU has runnable real-time tasks.
    pub fn has_real_time(&self, cpu: CpuId) -> bool {
        self.real_time[cpu as usize] > 0
    }

    /// Sets the number of runnable tasks of other classes on a CPU, and of real-time tasks among them. Returns the
    /// previous number.
    pub fn count_others(&mut self, cpu: CpuId, runnable: u32, real_time: u32) -> u32 {
        self.real_time[cpu as usize] = real_time;
        std::mem::replace(&mut self.others[cpu as usize], runnable)
    }

    /// Adds to the counts of tasks below a queue: all, idle and delayed ones. Returns how many count as idle in the
    /// parent's queue.
    #[inline]
    pub fn tally(&mut self, q: QueueId, nr: u32, idle: u32, delayed: u32) -> u32 {
        let queue = &mut self.queues[q as usize];
        queue.h_nr += nr;
        queue.h_nr_idle += idle;
        queue.h_nr_delayed += delayed;
        let above = if queue.idle { nr } else { idle };
        self.note_occupancy(q, nr);
        above
    }

    /// Subtracts from the counts of tasks below a queue. Returns how many count as idle in the parent's queue.
    #[inline]
    pub fn untally(&mut self, q: QueueId, nr: u32, idle: u32, delayed: u32) -> u32 {
        let queue = &mut self.queues[q as usize];
        queue.h_nr -= nr;
        queue.h_nr_idle -= idle;
        queue.h_nr_delayed -= delayed;
        let above = if queue.idle { nr } else { idle };
        self.note_occupancy(q, 0);
        above
    }

    /// Called after the number of tasks below a queue changed, by at most `joined` upwards. Updates the CPU's occupancy
    /// if it is a root queue.
    #[inline]
    pub fn note_occupancy(&mut self, q: QueueId, joined: u32) {
        if q < self.cpus {
            let nr_running = self.nr_running(q);
            if nr_running <= 1 + joined {
                self.occupancy.set(q, nr_running);
            }
        }
    }

    /// The load that a task contributes to its CPU's root by its weight (`task_h_load`, until 3.10).
    pub fn root_load(&self, p: TaskId) -> u64 {
        let Entity { queue: q, load, .. } = self.entities[self.entity(p) as usize];
        load.weight() * self.root_load_of(q) / (self.queues[q as usize].load.weight + 1)
    }
}

//! The interface of the fair class to its load balancer.

use super::entity::QueueId;
use super::{Discipline, Fair};
use crate::balance::fair::{Balancer, End, Occupancy, Queues};
use crate::balance::numa::locality::Locality;
use crate::classes::Class;
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::{Core, Dequeue, Enqueue, Scheduler, TaskId};

impl<D: Discipline> Fair<D> {
    /// Appends the queued tasks of one queue to `out`, in the order in which they would run.
    fn list_tree(&self, q: QueueId, out: &mut Vec<TaskId>) {
        let queue = &self.rqs.queues[q as usize];
        let mut at = queue.tree.first();
        while let Some(e) = at {
            out.extend(e.checked_sub(self.rqs.first_task));
            at = queue.tree.next(&self.rqs.arena, e);
        }
    }
}

impl<D: Discipline> Queues for Fair<D> {
    fn balancer(&mut self) -> &mut Option<Box<Balancer>> {
        &mut self.balancer
    }

    #[inline]
    fn nr_running(&self, cpu: CpuId) -> u32 {
        self.rqs.nr_running(cpu)
    }

    #[inline]
    fn occupancy(&self) -> &Occupancy {
        &self.rqs.occupancy
    }

    #[inline]
    fn nr_fair(&self, cpu: CpuId) -> u32 {
        self.rqs.nr_counted(cpu, self.places.release)
    }

    fn nr_fair_idle(&self, cpu: CpuId) -> u32 {
        self.rqs.queues[cpu as usize].h_nr_idle
    }

    fn list(&self, cpu: CpuId, end: End, out: &mut Vec<TaskId>) {
        out.clear();
        match end {
            End::Tail => out.extend(self.rqs.tasks.from_tail(cpu)),
            End::Head => out.extend(self.rqs.tasks.from_head(cpu)),
        }
        // The tasks of throttled groups are on the list, but are not counted anywhere.
    }

    fn list_by_queue(&self, cpu: CpuId, out: &mut Vec<TaskId>, lengths: &mut Vec<u32>) {
        out.clear();
        lengths.clear();
        // The newest group comes first, and the root queue last.
        for q in self.rqs.groups.newest_first().map(|g| (g + 1) * self.rqs.cpus + cpu).chain([cpu]) {
            let before = out.len();
            if self.rqs.queues[q as usize].nr_queued == 0 {
                continue;
            }
            if self.d.moves_in_tree_order() {
                self.list_tree(q, out);
            } else {
                out.extend(self.rqs.tasks.from_head(cpu).filter(|p| self.rqs.queue_now(*p) == q));
            }
            lengths.push((out.len() - before) as u32);
        }
    }

    fn pass_over(&mut self, cpu: CpuId, p: TaskId, end: End) {
        match end {
            End::Head => self.rqs.tasks.move_to_tail(cpu, p),
            End::Tail => self.rqs.tasks.move_to_head(cpu, p),
        }
    }

    fn last_account(&self, p: TaskId) -> Nanos {
        self.rqs.entities[self.rqs.entity(p) as usize].exec_start
    }

    fn is_buddy(&self, p: TaskId) -> bool {
        let queue = &self.rqs.queues[self.rqs.queue_now(p) as usize];
        let e = Some(self.rqs.entity(p));
        queue.next == e || queue.last == e
    }

    fn weight(&self, p: TaskId) -> u64 {
        self.rqs.entities[self.rqs.entity(p) as usize].load.weight()
    }

    fn queue_load(&self, p: TaskId) -> u64 {
        self.rqs.root_load_of(self.rqs.queue_now(p))
    }

    fn has_groups(&self) -> bool {
        !self.rqs.groups.all.is_empty()
    }

    fn queue_weights(&self, p: TaskId, other: CpuId) -> (u64, u64) {
        let q = self.rqs.queue_now(p);
        let weight = |q: QueueId| self.rqs.queues[q as usize].load.weight;
        (weight(q), weight(self.rqs.same_on(q, other)))
    }

    fn best_prio(&self, cx: &Core, p: TaskId, cpu: CpuId) -> i16 {
        let queue = &self.rqs.queues[self.rqs.same_on(self.rqs.queue_now(p), cpu) as usize];
        let best = queue.curr.or_else(|| queue.tree.first()).filter(|_| queue.nr_queued > 0);
        let task = best.and_then(|e| e.checked_sub(self.rqs.first_task));
        task.map_or(140, |p| cx.task(p).attributes.prio())
    }

    fn throttled_on(&self, p: TaskId, from: CpuId, to: CpuId) -> bool {
        let q = self.rqs.queue_now(p);
        // From 6.18 on a task that is queued may leave a throttled group's CPU (lb_throttled_hierarchy).
        let from = if self.rqs.throttles_tasks { to } else { from };
        q >= self.rqs.cpus
            && [from, to].into_iter().any(|cpu| self.rqs.queues[self.rqs.same_on(q, cpu) as usize].throttle_count > 0)
    }

    fn is_delayed(&self, p: TaskId) -> bool {
        self.rqs.entities[self.rqs.entity(p) as usize].delayed
    }

    fn owes_on(&self, p: TaskId, to: CpuId) -> bool {
        let q = self.rqs.queue_now(p);
        self.rqs.queues[self.rqs.same_on(q, to) as usize].nr_queued > 0 && D::owes(self, q, self.rqs.entity(p))
    }

    fn detach(&mut self, cx: &mut Core, p: TaskId, from: CpuId, to: CpuId) {
        self.dequeue_task(cx, from, p, Dequeue::Migrated);
        self.migrate_task_rq(cx, p, from, to);
        cx.set_task_cpu(p, to);
        cx.touch(from);
    }

    fn attach(&mut self, cx: &mut Core, p: TaskId, to: CpuId) {
        self.enqueue_task(cx, to, p, Enqueue::Migrated);
        if self.is_running(to) {
            self.wakeup_preempt(cx, to, p, Enqueue::Migrated);
        } else if cx.curr(to).is_none() {
            cx.resched(to);
        }
        cx.touch(to);
    }

    fn cache_balanced(&mut self, cx: &Core, cpu: CpuId) {
        if let (mut select, Some(domains)) = self.select_within() {
            select.bound_scan(cx, domains, cpu);
        }
    }

    fn locality(&self, p: TaskId, from: CpuId, to: CpuId, idle: bool) -> Locality {
        self.numa_locality(p, from, to, idle)
    }

    fn prefers_nodes(&self) -> bool {
        self.numa.is_some()
    }

    fn nr_preferring(&self, cpu: CpuId) -> (u32, u32) {
        self.numa_preferring(cpu)
    }

    fn spread_shares(&mut self, cx: &mut Core, domain: usize, cpus: &[CpuId], top: bool) {
        self.sample_shares(cx, domain, cpus, top);
    }
}

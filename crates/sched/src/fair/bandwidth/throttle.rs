//! Throttling queues whose group has used up its quota, and unthrottling them when it has quota again.

use super::{NEAR, period_timer};
use crate::classes::sync;
use crate::fair::entity::{EntityId, Leave, QueueId};
use crate::fair::shares::Shares;
use crate::fair::{Discipline, Fair};
use schedlab_base::CpuId;
use schedlab_sim::{Core, Enqueue, TimerId};

impl<D: Discipline> Fair<D> {
    /// Throttles a queue that has no runtime left (`check_cfs_rq_runtime`). Returns whether it is throttled.
    #[inline]
    pub(in crate::fair) fn check_runtime(&mut self, cx: &mut Core, q: QueueId) -> bool {
        let queue = &self.rqs.queues[q as usize];
        if !queue.limited || queue.runtime > 0 {
            return false;
        }
        queue.throttled || self.throttle(cx, q)
    }

    /// Throttles an empty queue without runtime when an entity is enqueued on it (`check_enqueue_throttle`).
    pub(in crate::fair) fn check_join(&mut self, cx: &mut Core, q: QueueId) {
        let queue = &self.rqs.queues[q as usize];
        if !queue.limited || queue.curr.is_some() || queue.throttled {
            return;
        }
        self.rqs.account_runtime(cx, q, 0);
        if self.rqs.queues[q as usize].runtime <= 0 {
            self.throttle(cx, q);
        }
    }

    /// Throttles a queue (`throttle_cfs_rq`). Returns `false` if the pool had a little runtime left after all.
    fn throttle(&mut self, cx: &mut Core, q: QueueId) -> bool {
        let rules = self.rqs.quota_rules();
        let g = self.rqs.group_of(q);
        if rules.fills_at_start {
            self.rqs.start_period(cx, g);
        } else if self.rqs.assign(cx, q, 1) {
            return false;
        }
        let pool = self.rqs.pool(g);
        if rules.newest_first {
            pool.throttled.insert(0, q);
        } else {
            pool.throttled.push(q);
        }
        let mut below = Vec::new();
        self.rqs.below(q, &mut below);
        for q in below {
            self.rqs.queues[q as usize].throttle_count += 1;
        }
        if !self.rqs.throttles_tasks {
            self.take_off(cx, q);
            self.rqs.queues[q as usize].cut_off = true;
        }
        self.rqs.queues[q as usize].throttled = true;
        self.explain_throttle(cx, q, "its group's quota is used up");
        self.rqs.touch_group(cx, q - self.rqs.cpus);
        true
    }

    /// Dequeues the entity of a throttled queue, and the entities of parent groups that become empty.
    fn take_off(&mut self, cx: &mut Core, q: QueueId) {
        let queue = &self.rqs.queues[q as usize];
        let (nr, mut idle, delayed) = (queue.h_nr, queue.h_nr_idle, queue.h_nr_delayed);
        if queue.idle {
            idle = nr;
        }
        let mut leaves = true;
        let mut left = false;
        let mut at = Some(q - self.rqs.cpus);
        while let Some(e) = at {
            if !self.rqs.entities[e as usize].on_rq {
                return;
            }
            let above = self.rqs.entities[e as usize].queue;
            if leaves {
                let delayed = self.rqs.entities[e as usize].delayed;
                let how = if delayed { Leave { special: true, ..Leave::DELAYED } } else { Leave::GONE };
                self.dequeue_entity(cx, above, e, how);
            } else if left {
                self.update_above(cx, e);
            }
            left = leaves;
            idle = self.rqs.untally(above, nr, idle, delayed);
            leaves &= self.rqs.queues[above as usize].load.weight == 0;
            at = self.rqs.parent(e);
        }
    }

    /// Updates the weight of the entity above one that was enqueued or dequeued, in releases where that does so
    /// (`update_cfs_shares` in `enqueue_entity` and `dequeue_entity`, until 4.9). Later only the next tick does.
    fn update_above(&mut self, cx: &mut Core, e: EntityId) {
        if self.rqs.rules.shares == Shares::ByWeight {
            self.update_group(cx, e);
        }
    }

    /// Unthrottles a queue (`unthrottle_cfs_rq`).
    fn unthrottle(&mut self, cx: &mut Core, q: QueueId) {
        let g = self.rqs.group_of(q);
        let queue = &mut self.rqs.queues[q as usize];
        (queue.throttled, queue.cut_off) = (false, false);
        self.explain_throttle(cx, q, "its group has quota again");
        self.rqs.pool(g).throttled.retain(|other| *other != q);
        let mut below = Vec::new();
        self.rqs.below(q, &mut below);
        for q in &below {
            self.rqs.queues[*q as usize].throttle_count -= 1;
        }
        let cpu = self.rqs.cpu_of(q);
        let before = self.rqs.nr_running(cpu);
        if self.rqs.throttles_tasks {
            self.put_back_from_aside(cx, &below);
            self.rqs.touch_group(cx, q - self.rqs.cpus);
        } else if self.rqs.queues[q as usize].load.weight > 0 {
            self.put_on(cx, q);
            self.rqs.touch_group(cx, q - self.rqs.cpus);
        }
        if let Some(balancer) = &mut self.balancer {
            balancer.note_runnable(before, self.rqs.nr_running(cpu));
        }
        if cx.curr(cpu).is_none() && self.rqs.queues[cpu as usize].nr_queued > 0 {
            cx.resched(cpu);
        }
        cx.touch(cpu);
    }

    /// Enqueues the entity of an unthrottled queue, and the entities of its parent groups, up to one that is throttled.
    fn put_on(&mut self, cx: &mut Core, q: QueueId) {
        let queue = &self.rqs.queues[q as usize];
        let (nr, mut idle, delayed) = (queue.h_nr, queue.h_nr_idle, queue.h_nr_delayed);
        if queue.idle {
            idle = nr;
        }
        let mut joins = true;
        let mut joined = false;
        let mut at = Some(q - self.rqs.cpus);
        while let Some(e) = at {
            let above = self.rqs.entities[e as usize].queue;
            if joins && self.rqs.entities[e as usize].delayed {
                self.dequeue_entity(cx, above, e, Leave::DELAYED);
            }
            joins &= !self.rqs.entities[e as usize].on_rq;
            if joins {
                D::join(self, cx, above, e, Enqueue::Wakeup);
            } else if joined {
                self.update_above(cx, e);
            }
            joined = joins;
            idle = self.rqs.tally(above, nr, idle, delayed);
            if self.rqs.queues[above as usize].throttled {
                return;
            }
            at = self.rqs.parent(e);
        }
    }

    /// Handles a timer of a group's pool: the end of a period, or slack that is due.
    pub(in crate::fair) fn pool_timer(&mut self, cx: &mut Core, id: TimerId) {
        let g = (id / 2) as usize;
        if id.is_multiple_of(2) { self.period_ends(cx, g) } else { self.slack_is_due(cx, g) }
    }

    fn period_ends(&mut self, cx: &mut Core, g: usize) {
        let rules = self.rqs.quota_rules();
        let now = cx.now();
        let pool = self.rqs.pool(g);
        let waiting = !pool.throttled.is_empty();
        if !rules.fills_at_start {
            pool.refill(now, &rules);
        }
        if pool.idle && !waiting {
            pool.active = false;
            return;
        }
        if rules.fills_at_start {
            pool.refill(now, &rules);
        }
        cx.start_timer(period_timer(g), now + pool.period);
        pool.idle = !waiting;
        while !self.rqs.pool(g).throttled.is_empty() && self.rqs.pool(g).runtime > 0 {
            self.distribute(cx, g);
        }
    }

    fn slack_is_due(&mut self, cx: &mut Core, g: usize) {
        let slice = self.rqs.quota_rules().slice as i64;
        let soon = cx.timer_due(period_timer(g)) < cx.now() + NEAR;
        let pool = self.rqs.pool(g);
        pool.slack_started = false;
        if !soon && pool.runtime > slice {
            self.distribute(cx, g);
        }
    }

    /// Gives each throttled queue the runtime that it owes plus 1 ns, in order, until the pool is empty
    /// (`distribute_cfs_runtime`).
    fn distribute(&mut self, cx: &mut Core, g: usize) {
        let throttled = self.rqs.pool(g).throttled.clone();
        for q in throttled {
            sync(self, cx, self.rqs.cpu_of(q));
            let owed = 1 - self.rqs.queues[q as usize].runtime;
            let pool = self.rqs.pool(g);
            let amount = owed.min(pool.runtime);
            pool.runtime -= amount;
            let (left, expires) = (pool.runtime, pool.expires);
            let queue = &mut self.rqs.queues[q as usize];
            queue.runtime += amount;
            queue.runtime_expires = expires;
            if queue.runtime > 0 {
                self.unthrottle(cx, q);
            }
            if left == 0 {
                return;
            }
        }
    }

    /// Unthrottles all queues of a CPU that goes offline (`unthrottle_offline_cfs_rqs`).
    pub(in crate::fair) fn unthrottle_all(&mut self, cx: &mut Core, cpu: CpuId) {
        self.rqs.limit(cpu, false);
        for g in 0..self.rqs.groups.all.len() as u32 {
            let q = (g + 1) * self.rqs.cpus + cpu;
            if self.rqs.groups.all[g as usize].pool.is_some() {
                self.rqs.queues[q as usize].runtime = 1;
                if self.rqs.queues[q as usize].throttled {
                    self.unthrottle(cx, q);
                }
            }
        }
    }
}

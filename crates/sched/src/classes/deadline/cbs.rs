//! The constant-bandwidth server: how budgets are used up and replenished.

use super::{Deadline, EntityId};
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::program::Policy;
use schedlab_sim::{Choice, Core, Decision, Enqueue, Scheduler, State, TaskId};

/// Products of two times are computed in units of 2^10 ns, which is about 1 us (`DL_SCALE`).
const SCALE: u32 = 10;

impl Deadline {
    /// Says that an entity is throttled.
    fn explain(&self, cx: &mut Core, cpu: CpuId, id: EntityId, rule: &'static str) {
        let (e, who) = (*self.e(id), self.task_of(id));
        cx.explain(|_| {
            Decision::new(cpu, Choice::Throttle, who, rule)
                .numbers([(who, "budget_ns", e.runtime), (who, "deadline_ns", e.deadline as i64)])
        });
    }

    /// How much budget `delta` ns of running uses up: scaled by the CPU's capacity, or reduced by GRUB.
    pub(super) fn used(&self, cx: &Core, cpu: CpuId, id: EntityId, delta: Nanos) -> Nanos {
        match self.rules.grub {
            Some(grub) if self.e(id).reclaims => self.reclaimed(grub, cpu, id, delta),
            Some(_) => (delta * u64::from(cx.machine().cpus[cpu as usize].place.capacity)) >> 10,
            None => delta,
        }
    }

    /// Subtracts `used` ns from a budget, and throttles the entity if nothing is left (`update_curr_dl_se`).
    pub(super) fn charge(&mut self, cx: &mut Core, cpu: CpuId, id: EntityId, used: Nanos) {
        let e = self.e_mut(id);
        e.runtime -= used as i64;
        if e.runtime > 0 && !e.yielded {
            return;
        }
        e.throttled = true;
        let (yielded, over) = (e.yielded, e.runtime);
        self.remove(cpu, id);
        if !self.e(id).boosted && self.start_timer(cx, id) {
            let rule = match (yielded, over) {
                (true, 1..) => "it gives the rest of its budget away: throttled until its next period",
                _ => "its budget is used up: throttled until its next period",
            };
            self.explain(cx, cpu, id, rule);
        } else {
            // The next period has already begun, or a waiter of a mutex lends it a new budget.
            self.replenish(cx, id);
            self.queue_again(cx, cpu, id);
        }
        if self.rq(cpu).queue.first() != Some(&id) {
            cx.resched(cpu);
        }
    }

    /// Enqueues an entity after its replenishment, unless it still has to wait.
    pub(super) fn queue_again(&mut self, cx: &mut Core, cpu: CpuId, id: EntityId) {
        if self.e(id).throttled && self.start_timer(cx, id) {
            return;
        }
        if self.e(id).throttled {
            cx.cancel_timer(self.budget_timer(id));
            let e = self.e_mut(id);
            (e.armed, e.throttled) = (false, false);
        }
        self.insert(cpu, id);
    }

    /// Starts the timer for when a throttled entity may run again. Returns `false` if that time has passed.
    pub(super) fn start_timer(&self, cx: &mut Core, id: EntityId) -> bool {
        let e = self.e(id);
        let at = if e.armed { self.zero_laxity(id) } else { self.next_period(id) };
        if at < cx.now() {
            return false;
        }
        let timer = self.budget_timer(id);
        if cx.timer_due(timer) == Nanos::MAX {
            cx.start_timer(timer, at);
        }
        true
    }

    /// When the next period of an entity begins.
    fn next_period(&self, id: EntityId) -> Nanos {
        let e = self.e(id);
        if self.rules.constrained { e.deadline + e.dl_period - e.dl_deadline } else { e.deadline }
    }

    /// Sets a full budget and a deadline counted from now (`replenish_dl_new_period`).
    pub(super) fn new_period(&mut self, now: Nanos, id: EntityId) {
        let server = self.task_of(id).is_none();
        let e = self.e_mut(id);
        e.deadline = now + e.dl_deadline;
        e.runtime = e.dl_runtime as i64;
        if server && !e.starving {
            (e.throttled, e.armed) = (true, true);
        }
    }

    /// Adds runtimes to the budget until it is positive, and moves the deadline by as many periods
    /// (`replenish_dl_entity`).
    pub(super) fn replenish(&mut self, cx: &mut Core, id: EntityId) {
        let now = cx.now();
        if self.e(id).foreign {
            self.new_period(now, id);
        }
        let e = self.e_mut(id);
        // A deferred server whose remaining budget is too much for the time left starts a new period.
        if e.armed && overflows(e, now) {
            e.deadline = now + e.dl_deadline;
            e.runtime = e.dl_runtime as i64;
        }
        if e.yielded && e.runtime > 0 {
            e.runtime = 0;
        }
        while e.runtime <= 0 {
            e.deadline += e.dl_period;
            e.runtime += e.dl_runtime as i64;
        }
        if e.deadline < now {
            self.new_period(now, id);
        }
        let e = self.e_mut(id);
        (e.yielded, e.throttled) = (false, false);
        self.defer(cx, id);
        let cpu = self.cpu_of(cx, id);
        self.explain(cx, cpu, id, "a new period: it has a budget again");
    }

    /// Throttles a task whose deadline is shorter than its period, if it wakes between the deadline and the next period
    /// (`dl_check_constrained_dl`).
    pub(super) fn check_constrained(&mut self, cx: &mut Core, id: EntityId) {
        let (now, e) = (cx.now(), *self.e(id));
        let between = e.deadline < now && now < self.next_period(id);
        let constrained = self.rules.constrained && !e.boosted;
        if constrained && !e.throttled && e.dl_deadline != e.dl_period && between && e.deadline > 0 {
            self.start_timer(cx, id);
            let e = self.e_mut(id);
            e.throttled = true;
            e.runtime = e.runtime.min(0);
        }
    }

    /// Updates budget and deadline of an entity that wakes. It keeps both if it may (`update_dl_entity`).
    pub(super) fn wake_up(&mut self, cx: &mut Core, id: EntityId) {
        let (now, e) = (cx.now(), *self.e(id));
        let fresh = e.deadline == 0;
        if !fresh && e.deadline >= now && !overflows(&e, now) {
            if self.task_of(id).is_none() && !e.starving {
                let e = self.e_mut(id);
                (e.armed, e.throttled) = (true, true);
            }
            return;
        }
        let implicit = e.dl_deadline == e.dl_period;
        if self.rules.constrained && !e.boosted && (!implicit || e.starving) && e.deadline >= now && !fresh {
            self.e_mut(id).runtime = ((e.density * (e.deadline - now)) >> super::bandwidth::SHIFT) as i64;
            return;
        }
        self.e_mut(id).starving = false;
        self.new_period(now, id);
    }

    /// Ends the throttling of a task that is lent a budget: a task that holds a mutex for another one is not throttled.
    pub(super) fn lift_throttle(&mut self, cx: &mut Core, id: EntityId) {
        if self.e(id).boosted && self.e(id).throttled {
            cx.cancel_timer(self.budget_timer(id));
            self.e_mut(id).throttled = false;
        }
    }

    /// Starts a new period, if the deadline has passed, for a task that is enqueued again after a change of its
    /// parameters.
    pub(super) fn restore(&mut self, cx: &Core, id: EntityId) {
        if self.e(id).deadline < cx.now() || self.e(id).deadline == 0 {
            self.new_period(cx.now(), id);
        }
    }

    /// Called when the next period of a throttled task begins (`dl_task_timer`).
    pub(super) fn replenish_task(&mut self, cx: &mut Core, p: TaskId) {
        let id = self.entity(p);
        let cpu = cx.task(p).cpu;
        let is_deadline = cx.task(p).attributes.policy == Policy::Deadline;
        if !self.e(id).throttled || self.e(id).boosted || !is_deadline || cx.task(p).state == State::Dead {
            return;
        }
        if !self.e(id).runnable {
            if self.rules.replenishes_sleepers {
                self.replenish(cx, id);
            } else {
                let e = self.e_mut(id);
                (e.throttled, e.yielded) = (false, false);
            }
            return;
        }
        self.account(cx, cpu);
        self.replenish(cx, id);
        self.insert(cpu, id);
        if self.rq(cpu).curr.is_some() {
            self.wakeup_preempt(cx, cpu, p, Enqueue::Wakeup);
        } else {
            cx.resched(cpu);
            let over = cx.curr(cpu);
            cx.explain(|_| {
                Decision::new(cpu, Choice::Preempt, Some(p), "deadline tasks go before those of the other classes")
                    .over(over)
            });
        }
        if self.cpus > 1 {
            self.push(cx, cpu);
        }
        cx.touch(cpu);
    }
}

/// Whether the budget exceeds its share of the time until the deadline (`dl_entity_overflow`).
fn overflows(e: &super::Entity, now: Nanos) -> bool {
    let left = (e.dl_deadline >> SCALE).wrapping_mul((e.runtime >> SCALE) as u64);
    let right = (e.deadline.wrapping_sub(now) >> SCALE).wrapping_mul(e.dl_runtime >> SCALE);
    (right.wrapping_sub(left) as i64) < 0
}

#[cfg(test)]
mod tests {
    use super::super::Entity;
    use super::overflows;

    #[test]
    fn a_budget_may_be_kept_while_it_is_no_more_than_its_share() {
        // With 10 ms every 100 ms, the share is 4 ms at 40 ms before the deadline.
        let at = |runtime| Entity {
            dl_runtime: 10_000_000,
            dl_deadline: 100_000_000,
            deadline: 100_000_000,
            runtime,
            ..Entity::default()
        };
        assert!(!overflows(&at(3_990_000), 60_000_000));
        assert!(overflows(&at(4_020_000), 60_000_000));
        assert!(!overflows(&at(-1_000_000), 60_000_000));
    }
}

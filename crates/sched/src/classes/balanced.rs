//! A wrapper that gives a simple scheduler load balancing across CPUs and lets other classes run above it.

use super::{Class, ClassId};
use crate::balance::{Balancer, Queues};
use schedlab_base::{CpuId, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::program::Start;
use schedlab_sim::{Attributes, Core, Dequeue, Enqueue, Placement, QueueList, Scheduler, TaskId, Ticks, TimerId, View};

/// A scheduler with one runqueue per CPU, together with the simple [`Balancer`]. It can be a kernel's only scheduler,
/// or, as a [`Class`], the lowest class of a [`Stack`](super::Stack); see
/// [`classes::simple`](super::simple).
#[derive(Debug)]
pub struct Balanced<S> {
    inner: S,
    /// `None` on a machine with a single CPU.
    balancer: Option<Balancer>,
    /// For each CPU, whether a task of this scheduler is running there.
    running: Vec<bool>,
    /// For each CPU, the number of runnable tasks of the higher classes.
    above: Vec<u32>,
}

impl<S: Queues> Balanced<S> {
    /// Wraps `inner` for `machine`.
    #[must_use]
    pub fn new(machine: &Machine, inner: S) -> Self {
        let cpus = machine.cpus.len();
        let balancer = (cpus > 1).then(|| Balancer::new(machine));
        Self { inner, balancer, running: vec![false; cpus], above: vec![0; cpus] }
    }

    /// Calls `act` with the balancer, if there is one. The balancer is taken out meanwhile so that it can borrow the
    /// queues.
    fn with_balancer(&mut self, act: impl FnOnce(&mut Balancer, &mut Self)) {
        if let Some(mut balancer) = self.balancer.take() {
            act(&mut balancer, self);
            self.balancer = Some(balancer);
        }
    }
}

/// The runqueues as the balancer sees them: the inner scheduler's tasks plus the runnable tasks of the higher classes.
impl<S: Queues> Queues for Balanced<S> {
    fn nr_running(&self, cpu: CpuId) -> u32 {
        self.inner.nr_running(cpu) + self.above[cpu as usize]
    }

    fn load(&self, cpu: CpuId) -> u64 {
        self.inner.load(cpu)
    }

    fn movable(&self, cx: &Core, from: CpuId, to: CpuId, max_load: u64) -> Option<TaskId> {
        self.inner.movable(cx, from, to, max_load)
    }

    fn migrate(&mut self, cx: &mut Core, p: TaskId, from: CpuId, to: CpuId) {
        self.inner.migrate(cx, p, from, to);
    }

    fn preempt_moved(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        if self.running[cpu as usize] || cx.curr(cpu).is_none() {
            self.inner.preempt_moved(cx, cpu, p);
        }
    }
}

/// Forwards these methods to the inner scheduler unchanged.
macro_rules! inner {
    ($($name:ident($($arg:ident: $of:ty),*) $(-> $answer:ty)?;)*) => {
        $(fn $name(&mut self, $($arg: $of),*) $(-> $answer)? { self.inner.$name($($arg),*) })*
    };
}

impl<S: Queues> Scheduler for Balanced<S> {
    inner! {
        task_fork(cx: &mut Core, p: TaskId, parent: Option<TaskId>, how: Start);
        migrate_task_rq(cx: &mut Core, p: TaskId, from: CpuId, to: CpuId);
        enqueue_task(cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue);
        dequeue_task(cx: &mut Core, cpu: CpuId, p: TaskId, how: Dequeue);
        wake_delayed(cx: &mut Core, p: TaskId) -> bool;
        yield_task(cx: &mut Core, cpu: CpuId);
        wakeup_preempt(cx: &mut Core, cpu: CpuId, p: TaskId, how: Enqueue);
        run_stopper(cx: &mut Core, cpu: CpuId, prev: Option<TaskId>);
        catch_up(cx: &Core, cpu: CpuId, ticks: Ticks);
        update_curr(cx: &mut Core, cpu: CpuId);
        clock_decision(cx: &Core, cpu: CpuId) -> Nanos;
        attributes_changed(cx: &mut Core, p: TaskId, old: &Attributes);
        leave_group(cx: &mut Core, p: TaskId);
        join_group(cx: &mut Core, p: TaskId);
        timer(cx: &mut Core, id: TimerId);
        rq_online(cx: &mut Core, cpu: CpuId);
        rq_offline(cx: &mut Core, cpu: CpuId);
        task_dead(cx: &mut Core, p: TaskId);
    }

    fn select_task_rq(&mut self, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) -> CpuId {
        self.balancer.as_ref().map_or(prev, |balancer| balancer.select(self, cx, p, prev, why))
    }

    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, prev: Option<TaskId>) -> Option<TaskId> {
        if self.inner.nr_running(cpu) == 0 {
            self.with_balancer(|balancer, me| {
                balancer.newidle(me, cx, cpu);
            });
        }
        let next = self.inner.pick_next_task(cx, cpu, prev);
        self.running[cpu as usize] = next.is_some();
        next
    }

    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        self.inner.task_tick(cx, cpu);
        self.balance(cx, cpu);
    }

    fn next_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        self.inner.next_decision(cx, cpu).min(self.next_balance(cpu))
    }

    fn ticks_when_idle(&self) -> bool {
        self.inner.ticks_when_idle()
    }

    fn queued(&self, cx: &Core, cpu: CpuId, list: &mut QueueList) {
        self.inner.queued(cx, cpu, list);
    }

    fn queue_load(&self, cpu: CpuId) -> Option<(u32, u64)> {
        Some((self.inner.nr_running(cpu), self.inner.load(cpu)))
    }

    fn tunables(&self) -> Vec<(&'static str, i64)> {
        self.inner.tunables()
    }

    fn view(&self, cx: &Core, cpu: CpuId) -> View {
        self.inner.view(cx, cpu)
    }
}

impl<S: Queues> Class for Balanced<S> {
    fn has_runnable(&self, cpu: CpuId) -> bool {
        self.inner.nr_running(cpu) > 0
    }

    fn is_running(&self, cpu: CpuId) -> bool {
        self.running[cpu as usize]
    }

    fn put_prev_task(&mut self, _cx: &mut Core, cpu: CpuId, _p: TaskId) {
        self.running[cpu as usize] = false;
    }

    fn switched_from(&mut self, cx: &mut Core, p: TaskId) {
        let cpu = cx.task(p).cpu;
        if cx.task(p).on_rq {
            self.inner.dequeue_task(cx, cpu, p, Dequeue::Migrated);
        }
        if cx.curr(cpu) == Some(p) {
            self.running[cpu as usize] = false;
        }
    }

    fn switched_to(&mut self, cx: &mut Core, p: TaskId, _from: ClassId) {
        let cpu = cx.task(p).cpu;
        if cx.task(p).on_rq {
            self.inner.enqueue_task(cx, cpu, p, Enqueue::Migrated);
        }
        if cx.curr(cpu) == Some(p) {
            self.running[cpu as usize] = true;
        }
    }

    fn balance(&mut self, cx: &mut Core, cpu: CpuId) {
        self.with_balancer(|balancer, me| balancer.tick(me, cx, cpu));
    }

    fn next_balance(&self, cpu: CpuId) -> Nanos {
        self.balancer.as_ref().map_or(Nanos::MAX, |balancer| balancer.next_decision(cpu))
    }

    fn others(&mut self, _cx: &Core, cpu: CpuId, real_time: u32, deadline: u32) {
        self.above[cpu as usize] = real_time + deadline;
    }
}

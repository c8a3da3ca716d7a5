//! The canary: a plain weighted-fair scheduler with one queue, into which a fault can be planted.

use schedlab_base::{CpuId, Nanos};
use schedlab_sched::fair::load::WEIGHTS;
use schedlab_sim::program::Start;
use schedlab_sim::{Attributes, Core, Dequeue, Enqueue, Placement, Scheduler, TaskId, Ticks};

/// The fault of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Nothing,
    /// It loses every 20th wake-up.
    Forgets,
    /// It treats all weights as equal.
    IgnoresWeights,
    /// It runs tasks on any CPU.
    IgnoresAffinity,
    /// It leaves a CPU idle once in 20 times.
    Idles,
}

/// The length of a turn.
const TURN: Nanos = 3_000_000;

pub struct Toy {
    pub fault: Fault,
    waiting: Vec<TaskId>,
    vruntime: Vec<Nanos>,
    /// For each CPU: the running task, until when it has been charged, and since when it has been running.
    running: Vec<Option<(TaskId, Nanos, Nanos)>>,
    count: u64,
}

impl Toy {
    pub fn new(cpus: usize, fault: Fault) -> Self {
        Self { fault, waiting: Vec::new(), vruntime: Vec::new(), running: vec![None; cpus], count: 0 }
    }

    fn weight(&self, cx: &Core, p: TaskId) -> Nanos {
        let nice = if self.fault == Fault::IgnoresWeights { 0 } else { cx.task(p).attributes.nice };
        WEIGHTS[(nice + 20) as usize]
    }

    fn charge(&mut self, cx: &Core, cpu: CpuId) {
        if let Some((p, charged, since)) = self.running[cpu as usize] {
            self.vruntime[p as usize] += (cx.now() - charged) * 1024 / self.weight(cx, p);
            self.running[cpu as usize] = Some((p, cx.now(), since));
        }
    }

    /// Returns whether the fault strikes now.
    fn strikes(&mut self, fault: Fault) -> bool {
        self.count += u64::from(self.fault == fault);
        self.fault == fault && self.count.is_multiple_of(20)
    }

    fn allowed(&self, cx: &Core, p: TaskId, cpu: CpuId) -> bool {
        self.fault == Fault::IgnoresAffinity || cx.task(p).allowed.contains(cpu)
    }

    fn first(&self, cx: &Core, cpu: CpuId) -> Option<usize> {
        let all = (0..self.waiting.len()).filter(|i| self.allowed(cx, self.waiting[*i], cpu));
        all.min_by_key(|i| self.vruntime[self.waiting[*i] as usize])
    }
}

impl Scheduler for Toy {
    fn task_fork(&mut self, _cx: &mut Core, p: TaskId, _parent: Option<TaskId>, _how: Start) {
        self.vruntime.resize(self.vruntime.len().max(p as usize + 1), 0);
    }

    fn select_task_rq(&mut self, cx: &mut Core, p: TaskId, prev: CpuId, _why: Placement) -> CpuId {
        let allowed = &cx.task(p).allowed;
        if allowed.contains(prev) { prev } else { (0..cx.nr_cpus()).find(|c| allowed.contains(*c)).unwrap_or(prev) }
    }

    fn enqueue_task(&mut self, cx: &mut Core, _cpu: CpuId, p: TaskId, how: Enqueue) {
        for cpu in 0..cx.nr_cpus() {
            self.charge(cx, cpu);
        }
        if how == Enqueue::Wakeup && self.strikes(Fault::Forgets) {
            return;
        }
        let others = self.waiting.iter().copied().chain(self.running.iter().flatten().map(|r| r.0));
        let least = others.map(|q| self.vruntime[q as usize]).min().unwrap_or(0);
        self.vruntime[p as usize] = self.vruntime[p as usize].max(least);
        self.waiting.push(p);
    }

    fn dequeue_task(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId, _how: Dequeue) {
        self.charge(cx, cpu);
        self.waiting.retain(|q| *q != p);
        self.running[cpu as usize] = self.running[cpu as usize].filter(|r| r.0 != p);
    }

    fn yield_task(&mut self, _cx: &mut Core, _cpu: CpuId) {}

    fn wakeup_preempt(&mut self, cx: &mut Core, _cpu: CpuId, p: TaskId, _how: Enqueue) {
        let idle = (0..cx.nr_cpus()).find(|c| cx.curr(*c).is_none() && self.allowed(cx, p, *c));
        if let Some(cpu) = idle {
            cx.resched(cpu);
        }
    }

    fn pick_next_task(&mut self, cx: &mut Core, cpu: CpuId, _prev: Option<TaskId>) -> Option<TaskId> {
        self.charge(cx, cpu);
        if let Some((p, ..)) = self.running[cpu as usize].take() {
            self.waiting.push(p);
        }
        if self.strikes(Fault::Idles) {
            return None;
        }
        let p = self.first(cx, cpu).map(|i| self.waiting.remove(i))?;
        self.running[cpu as usize] = Some((p, cx.now(), cx.now()));
        cx.set_task_cpu(p, cpu);
        Some(p)
    }

    fn task_tick(&mut self, cx: &mut Core, cpu: CpuId) {
        self.charge(cx, cpu);
        let over = self.running[cpu as usize].is_none_or(|(.., since)| cx.now() - since >= TURN);
        if over && !self.waiting.is_empty() {
            cx.resched(cpu);
        }
    }

    fn catch_up(&mut self, _cx: &Core, _cpu: CpuId, _ticks: Ticks) {}

    fn next_decision(&mut self, cx: &Core, cpu: CpuId) -> Nanos {
        cx.next_tick(cpu)
    }

    fn ticks_when_idle(&self) -> bool {
        true
    }

    fn update_curr(&mut self, _cx: &mut Core, _cpu: CpuId) {}

    fn attributes_changed(&mut self, _cx: &mut Core, _p: TaskId, _old: &Attributes) {}
}

//! Load balancing: idle CPUs pull tasks, busy CPUs compare loads periodically, and wake-ups look for an idle CPU.
//!
//! This is one simple load balancer for schedulers that have none of their own. Its levels are the last-level cache,
//! the package and the whole machine; a CPU's load is the sum of its tasks' weights, and an imbalance of up to 25% is
//! tolerated. A scheduler gets it by being wrapped in `classes::Balanced`. The balancers of the Linux
//! releases are in [`fair`] and `o1/smp/`; their sched domains are in [`domains`].

pub mod domains;
pub mod fair;
pub mod numa;
pub mod rounds;

use schedlab_base::{CpuId, Looking, Nanos};
use schedlab_sim::{Core, Dequeue, Enqueue, Placement, Scheduler, TaskId};

/// A scheduler with one runqueue per CPU, as the balancer sees it. The running task stays on its runqueue.
pub trait Queues: Scheduler {
    /// The number of runnable tasks on a CPU, including the running one.
    fn nr_running(&self, cpu: CpuId) -> u32;

    /// The sum of the loads of the runnable tasks on a CPU, in a unit of the scheduler's choice.
    fn load(&self, cpu: CpuId) -> u64;

    /// The waiting task that the scheduler prefers to migrate from `from` to `to`. Its load is at most `max_load` and
    /// its affinity allows `to`. `None` if there is no such task.
    fn movable(&self, cx: &Core, from: CpuId, to: CpuId, max_load: u64) -> Option<TaskId>;

    /// Migrates a waiting task from one CPU's runqueue to another's.
    ///
    /// The default dequeues the task and enqueues it on the other CPU.
    fn migrate(&mut self, cx: &mut Core, p: TaskId, from: CpuId, to: CpuId) {
        self.dequeue_task(cx, from, p, Dequeue::Migrated);
        cx.set_task_cpu(p, to);
        self.enqueue_task(cx, to, p, Enqueue::Migrated);
    }

    /// Called after a task has been migrated to `cpu`. Requests a reschedule if the task should preempt the current
    /// one.
    ///
    /// The default calls `wakeup_preempt`, as the engine does for a task that it migrates itself.
    fn preempt_moved(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        self.wakeup_preempt(cx, cpu, p, Enqueue::Migrated);
    }
}

/// Pulls one waiting task with a load of at most `max_load` from `from` to `to`, if there is one that may run there.
fn pull(queues: &mut impl Queues, cx: &mut Core, from: CpuId, to: CpuId, max_load: u64) -> Option<TaskId> {
    let p = queues.movable(cx, from, to, max_load)?;
    queues.migrate(cx, p, from, to);
    queues.preempt_moved(cx, to, p);
    cx.touch(from);
    cx.touch(to);
    Some(p)
}

/// Brings a CPU's runqueue up to date with the ticks that were skipped, before another CPU looks at it.
pub fn sync(scheduler: &mut impl Scheduler, cx: &mut Core, cpu: CpuId) {
    if let Some(ticks) = cx.take_ticks(cpu) {
        scheduler.catch_up(cx, cpu, ticks);
    }
}

/// The time between two periodic balancing passes of a CPU.
const INTERVAL: Nanos = 16_000_000;
/// The busier CPU's load must exceed this percentage of the other's before tasks move.
const IMBALANCE_PCT: u64 = 125;

/// The state of the simple load balancer.
#[derive(Debug)]
pub struct Balancer {
    /// The CPUs of each level around each CPU, nearest level first. A level excludes the CPUs of the levels before it.
    spans: Vec<Vec<Vec<CpuId>>>,
    next: Vec<Nanos>,
}

impl Balancer {
    /// Creates the balancer for a machine.
    #[must_use]
    pub fn new(machine: &schedlab_machine::Machine) -> Self {
        let cpus = &machine.cpus;
        let shared: [fn(&schedlab_base::CpuPlace) -> u32; 3] = [|p| p.llc, |p| p.package, |_| 0];
        let spans = cpus
            .iter()
            .map(|me| {
                let mut seen = vec![false; cpus.len()];
                seen[me.place.cpu as usize] = true;
                shared
                    .iter()
                    .map(|level| {
                        let near = |other: &&schedlab_machine::Cpu| {
                            level(&other.place) == level(&me.place)
                                && !std::mem::replace(&mut seen[other.place.cpu as usize], true)
                        };
                        cpus.iter().filter(near).map(|c| c.place.cpu).collect::<Vec<_>>()
                    })
                    .filter(|span| !span.is_empty())
                    .collect()
            })
            .collect();
        let next = (0..cpus.len() as u64).map(|cpu| INTERVAL + cpu % 16 * 1_000_000).collect();
        Self { spans, next }
    }

    /// The earliest time at which [`Balancer::tick`] on this CPU can move a task.
    #[inline]
    #[must_use]
    pub fn next_decision(&self, cpu: CpuId) -> Nanos {
        if self.spans[cpu as usize].is_empty() { Nanos::MAX } else { self.next[cpu as usize] }
    }

    /// Called when a CPU is about to go idle. Pulls a waiting task from the most loaded CPU, nearest level first.
    pub fn newidle(&self, queues: &mut impl Queues, cx: &mut Core, cpu: CpuId) -> Option<TaskId> {
        for span in &self.spans[cpu as usize] {
            cx.trace_considered(cpu, Looking::NewIdle, None, span.iter().copied());
            let mut from: Vec<CpuId> = span.iter().copied().filter(|c| queues.nr_running(*c) > 1).collect();
            from.sort_by_key(|c| (std::cmp::Reverse(queues.load(*c)), *c));
            if let Some(p) = from.into_iter().find_map(|c| pull(queues, cx, c, cpu, u64::MAX)) {
                return Some(p);
            }
        }
        None
    }

    /// The tick of a CPU. Once the interval has passed, it evens out the load with the busiest CPU of each level. It
    /// also lets one idle CPU per level pull from this CPU, because idle CPUs have no tick of their own.
    pub fn tick(&mut self, queues: &mut impl Queues, cx: &mut Core, cpu: CpuId) {
        if cx.now() < self.next_decision(cpu) {
            return;
        }
        self.next[cpu as usize] = cx.now() + INTERVAL;
        for level in 0..self.spans[cpu as usize].len() {
            if queues.nr_running(cpu) > 1 {
                let idle = self.spans[cpu as usize][level].iter().copied().find(|c| queues.nr_running(*c) == 0);
                if let Some(idle) = idle {
                    if pull(queues, cx, cpu, idle, u64::MAX).is_some() {
                        cx.resched(idle);
                    }
                    continue;
                }
            }
            self.even_out(queues, cx, cpu, level);
        }
    }

    fn even_out(&self, queues: &mut impl Queues, cx: &mut Core, cpu: CpuId, level: usize) {
        let span = &self.spans[cpu as usize][level];
        cx.trace_considered(cpu, Looking::Periodic, None, span.iter().copied());
        let waiting = span.iter().copied().filter(|c| queues.nr_running(*c) > 1);
        let Some(busiest) = waiting.max_by_key(|c| (queues.load(*c), std::cmp::Reverse(*c))) else { return };
        loop {
            let (theirs, ours) = (queues.load(busiest), queues.load(cpu));
            if theirs * 100 <= ours * IMBALANCE_PCT {
                return;
            }
            // Moving a task of more than half the difference would only reverse the imbalance.
            if pull(queues, cx, busiest, cpu, (theirs - ours) / 2).is_none() {
                return;
            }
        }
    }

    /// Chooses the CPU for a task that wakes or is new.
    #[must_use]
    pub fn select(&self, queues: &impl Queues, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) -> CpuId {
        if matches!(why, Placement::Exec { .. }) {
            return prev;
        }
        if cx.traces_queues() {
            self.trace_choice(queues, cx, p, prev, why);
        }
        let allowed = &cx.task(p).allowed;
        let idle = |c: CpuId| queues.nr_running(c) == 0 && cx.curr(c).is_none();
        match why {
            Placement::Fork { from } => self.idlest(queues, allowed, from),
            _ if !allowed.contains(prev) => self.idlest(queues, allowed, prev),
            _ if idle(prev) => prev,
            _ => {
                let near = self.spans[prev as usize].first().into_iter().flatten().copied();
                near.into_iter().find(|c| allowed.contains(*c) && idle(*c)).unwrap_or(prev)
            }
        }
    }

    /// Records in the trace which CPUs [`Balancer::select`] may look at.
    fn trace_choice(&self, queues: &impl Queues, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) {
        let (from, reason) = match why {
            Placement::Fork { from } => (from, Looking::Fork),
            _ => (prev, Looking::Wake),
        };
        let allowed = cx.task(p).allowed.clone();
        let everywhere = reason == Looking::Fork || !allowed.contains(prev);
        let at_once = !everywhere && queues.nr_running(prev) == 0 && cx.curr(prev).is_none();
        let depth = if at_once {
            0
        } else if everywhere {
            usize::MAX
        } else {
            1
        };
        let near = self.spans[from as usize].iter().take(depth).flatten();
        let looked = std::iter::once(&from).chain(near).copied().filter(|cpu| allowed.contains(*cpu));
        cx.trace_considered(from, reason, Some(p), looked);
    }

    /// The least loaded allowed CPU. Among CPUs with equal load it is the one nearest to `from`.
    fn idlest(&self, queues: &impl Queues, allowed: &schedlab_sim::CpuSet, from: CpuId) -> CpuId {
        let mut best = None;
        let near = std::iter::once(&from).chain(self.spans[from as usize].iter().flatten());
        for &cpu in near.filter(|c| allowed.contains(**c)) {
            let load = queues.load(cpu);
            if best.is_none_or(|(least, _)| load < least) {
                best = Some((load, cpu));
            }
            if load == 0 {
                break;
            }
        }
        best.map_or(from, |(_, cpu)| cpu)
    }
}

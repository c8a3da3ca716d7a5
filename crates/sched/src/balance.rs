//! Balancing over CPUs: idle CPUs pull, busy ones compare loads now and then, and wake-ups look for an idle CPU.
//!
//! This is one plain balancer for the schedulers that have none of their own: levels are the last-level cache, the
//! package and the whole machine, loads are sums of weights, and an imbalance of 25% is tolerated. A scheduler gets it
//! by being wrapped in `classes::Balanced`. How the releases of Linux balance is in [`fair`] and
//! `o1/smp/`; their domains are in [`domains`].

pub mod domains;
pub mod fair;
pub mod numa;
pub mod rounds;

use schedlab_base::{CpuId, Looking, Nanos};
use schedlab_sim::{Core, Dequeue, Enqueue, Placement, Scheduler, TaskId};

/// A scheduler with a queue for each CPU, as the balancer sees it. The running task stays on its queue while it runs.
pub trait Queues: Scheduler {
    /// Runnable tasks of a CPU, the running one included.
    fn nr_running(&self, cpu: CpuId) -> u32;

    /// The sum of their loads, in a unit of the scheduler's own.
    fn load(&self, cpu: CpuId) -> u64;

    /// The waiting task of `from` that the scheduler would rather move to `to`: one of at most `max_load` that may run
    /// there.
    fn movable(&self, cx: &Core, from: CpuId, to: CpuId, max_load: u64) -> Option<TaskId>;

    /// Moves a waiting task from the queue of one CPU to that of another.
    ///
    /// Default: dequeues and enqueues it.
    fn migrate(&mut self, cx: &mut Core, p: TaskId, from: CpuId, to: CpuId) {
        self.dequeue_task(cx, from, p, Dequeue::Migrated);
        cx.set_task_cpu(p, to);
        self.enqueue_task(cx, to, p, Enqueue::Migrated);
    }

    /// A task was moved to `cpu`: asks for rescheduling if it should run at once.
    ///
    /// Default: as a task that the engine put there.
    fn preempt_moved(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        self.wakeup_preempt(cx, cpu, p, Enqueue::Migrated);
    }
}

/// Moves a waiting task of at most `max_load`, if there is one that may run on `to`.
fn pull(queues: &mut impl Queues, cx: &mut Core, from: CpuId, to: CpuId, max_load: u64) -> Option<TaskId> {
    let p = queues.movable(cx, from, to, max_load)?;
    queues.migrate(cx, p, from, to);
    queues.preempt_moved(cx, to, p);
    cx.touch(from);
    cx.touch(to);
    Some(p)
}

/// Brings a CPU's queue up to date before another CPU looks at it.
pub fn sync(scheduler: &mut impl Scheduler, cx: &mut Core, cpu: CpuId) {
    if let Some(ticks) = cx.take_ticks(cpu) {
        scheduler.catch_up(cx, cpu, ticks);
    }
}

/// Time between two looks of a CPU.
const INTERVAL: Nanos = 16_000_000;
/// The busier side must carry this much more than the other, in percent.
const IMBALANCE_PCT: u64 = 125;

/// The balancer's memory.
#[derive(Debug)]
pub struct Balancer {
    /// Every CPU's spans from near to far, each without those before it.
    spans: Vec<Vec<Vec<CpuId>>>,
    next: Vec<Nanos>,
}

impl Balancer {
    /// A balancer for this machine.
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

    /// The earliest time at which [`Balancer::tick`] on this CPU can do something.
    #[inline]
    #[must_use]
    pub fn next_decision(&self, cpu: CpuId) -> Nanos {
        if self.spans[cpu as usize].is_empty() { Nanos::MAX } else { self.next[cpu as usize] }
    }

    /// A CPU has nothing to run: takes a waiting task from the busiest CPU, the nearest level first.
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

    /// The tick on a CPU: when its time has come, it evens out loads with the busiest CPU of each level,
    /// and lets an idle CPU pull from it (idle CPUs have no tick to do it by).
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
            // A task of more than half the difference would only turn the imbalance round.
            if pull(queues, cx, busiest, cpu, (theirs - ours) / 2).is_none() {
                return;
            }
        }
    }

    /// The CPU for a task that wakes or is new.
    #[must_use]
    pub fn select(&self, queues: &impl Queues, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) -> CpuId {
        if cx.traces_queues() {
            self.trace_choice(queues, cx, p, prev, why);
        }
        let allowed = &cx.task(p).allowed;
        let idle = |c: CpuId| queues.nr_running(c) == 0 && cx.curr(c).is_none();
        match why {
            Placement::Fork { from } => self.idlest(queues, allowed, from),
            Placement::Wake { .. } if !allowed.contains(prev) => self.idlest(queues, allowed, prev),
            Placement::Wake { .. } if idle(prev) => prev,
            Placement::Wake { .. } => {
                let near = self.spans[prev as usize].first().into_iter().flatten().copied();
                near.into_iter().find(|c| allowed.contains(*c) && idle(*c)).unwrap_or(prev)
            }
        }
    }

    /// Traces the CPUs that [`Balancer::select`] may look at.
    fn trace_choice(&self, queues: &impl Queues, cx: &mut Core, p: TaskId, prev: CpuId, why: Placement) {
        let (from, reason) = match why {
            Placement::Fork { from } => (from, Looking::Fork),
            Placement::Wake { .. } => (prev, Looking::Wake),
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

    /// The CPU with the least load, the nearest to `from` where equal.
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

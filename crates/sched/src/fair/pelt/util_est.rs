//! Estimated utilisation: what a task will use when it runs again, and a CPU with it (`util_est`, 4.17 on).
//!
//! # Idea
//! The utilisation of a sleeping task decays, but what it will need when it wakes does not. The utilisation at the time
//! it goes to sleep is therefore kept. An increase takes effect at once, and a decrease is smoothed. A CPU has the sum
//! over its queued tasks.
//!
//! # Differences from the kernel
//! Averages are exact at any time. The kernel updates them in whole periods, whose phase is arbitrary; here a period
//! begins at each multiple of its length.
//!
//! # Reference
//! `util_est_update` and `cpu_util` (`cpu_util_next`) in kernel/sched/fair.c of 6.1, 6.6 and 6.12.

use super::average::Decay;
use super::{Pelt, SCALE};
use crate::balance::fair::Features;
use crate::balance::fair::backports::OWN_RUNNABLE;
use crate::fair::rqs::Runqueues;
use crate::paged::Paged;
use schedlab_base::{CpuId, Nanos, Release, v};
use schedlab_sim::{Core, TaskId};

/// Differences below a hundredth count as no change (`UTIL_EST_MARGIN`).
const MARGIN: u32 = 1024 / 100;

/// The estimate of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Estimate {
    average: u32,
    /// The utilisation when it last went to sleep (until 6.7).
    last: u32,
    /// One more than the period of the sample that the estimate was last updated with; 0 if there is none. As long as
    /// the task's average has not been updated since, the estimate is not either (`UTIL_AVG_UNCHANGED`).
    period: u64,
}

impl Estimate {
    /// Updates the estimate when the task goes to sleep with utilisation `util` on a CPU of this capacity. `runnable`
    /// is its runnable average.
    #[inline]
    fn update(
        &mut self,
        (release, slow_up): (Release, bool),
        util: u32,
        capacity: u32,
        runnable: impl FnOnce() -> u32,
    ) {
        // "sched/fair: Simplify util_est", "sched/pelt: Avoid underestimation of task utilization" (6.8).
        let modern = release >= v(6, 8);
        let period = std::mem::take(&mut self.period);
        let before = std::mem::replace(&mut self.last, if modern { 0 } else { util });
        if self.average <= util && !slow_up {
            (self.average, self.period) = (util, period);
            return;
        }
        if self.average.abs_diff(util) < MARGIN {
            if modern || before.abs_diff(util) >= MARGIN {
                self.period = period;
            } else {
                self.last = before;
            }
            return;
        }
        // 6.18 no longer asks whether the CPU had time to spare.
        if util > capacity && release < v(6, 18) {
            self.last = if modern { 0 } else { before };
            return;
        }
        self.period = period;
        if !(modern && util + MARGIN < runnable()) {
            self.average = (3 * self.average + util) / 4;
        }
    }

    fn get(self) -> u64 {
        self.average.max(self.last).into()
    }
}

/// The estimates of all tasks, and for each CPU the sum over its queued tasks.
#[derive(Debug)]
pub(in crate::fair) struct Estimates {
    tasks: Paged<Estimate>,
    /// How much too high the runnable average of each new task is. In the kernel such a task counts as runnable only
    /// for as long as it ran, but its load starts full in [`super`]. Empty before there were estimates.
    fresh: Vec<Decay>,
    known: bool,
    /// Empty if no estimates are kept.
    cpus: Vec<u64>,
    /// Whether an increase is smoothed like a decrease (no `UTIL_EST_FASTUP`).
    slow_up: bool,
}

impl Estimates {
    /// Creates the estimates for a number of CPUs.
    pub fn new(release: Release, cpus: usize) -> Self {
        // "sched/fair: Add util_est on top of PELT" (4.17). That increases take effect at once came with 5.5.
        let kept = cpus > 1 && release >= v(4, 17);
        let tasks = Paged::new(Estimate::default());
        Self { tasks, fresh: Vec::new(), known: kept, cpus: vec![0; if kept { cpus } else { 0 }], slow_up: false }
    }

    /// Keeps no estimates if they are off (`UTIL_EST`), and smooths increases if they do not take effect at once
    /// (`UTIL_EST_FASTUP`).
    pub fn keep(&mut self, features: &Features) {
        if !features.util_est {
            self.cpus.clear();
        }
        self.slow_up = !features.util_est_fastup;
    }

    /// Makes room for a new task and resets its estimate.
    pub fn grow(&mut self, p: TaskId) {
        if self.known {
            self.tasks.set(p, Estimate::default());
            self.fresh.resize(self.fresh.len().max(p as usize + 1), Decay::default());
            self.fresh[p as usize] = Decay::default();
        }
    }

    /// Adds the estimate of a task that is enqueued on a CPU.
    #[inline]
    pub fn add(&mut self, cpu: CpuId, p: TaskId) {
        if let Some(sum) = self.cpus.get_mut(cpu as usize) {
            *sum += self.tasks[p].get();
        }
    }

    /// Subtracts the estimate of a task that is dequeued.
    #[inline]
    pub fn remove(&mut self, cpu: CpuId, p: TaskId) {
        if let Some(sum) = self.cpus.get_mut(cpu as usize) {
            *sum = sum.saturating_sub(self.tasks[p].get());
        }
    }

    /// Records by how much the runnable average of a new task is too high.
    pub fn begin(&mut self, p: TaskId, excess: f64, now: Nanos) {
        if let Some(fresh) = self.fresh.get_mut(p as usize) {
            *fresh = Decay::of(excess, now);
        }
    }

    /// By how much it still is.
    pub fn excess(&self, p: TaskId, now: Nanos) -> f64 {
        self.fresh.get(p as usize).map_or(0.0, |fresh| fresh.at(now))
    }

    fn of(&self, p: TaskId) -> u64 {
        self.tasks[p].get()
    }

    fn on(&self, cpu: CpuId) -> u64 {
        self.cpus.get(cpu as usize).copied().unwrap_or(0)
    }
}

/// How long ago a CPU's last tick was, in ns.
fn since_last_tick(cx: &Core, cpu: CpuId) -> Nanos {
    let (period, next) = (cx.tick_period(), cx.next_tick(cpu));
    match next.checked_sub(cx.now()) {
        // Nearly always it is the next one.
        Some(ahead) if (1..=period).contains(&ahead) => period - ahead,
        _ => (cx.now() + period - next % period) % period,
    }
}

impl Pelt {
    /// Updates the estimate of a task that goes to sleep.
    pub(in crate::fair) fn update_util_est(&mut self, rqs: &Runqueues, cx: &Core, cpu: CpuId, p: TaskId) {
        if self.util_est.cpus.is_empty() {
            return;
        }
        let e = rqs.entity(p) as usize;
        let running = &self.entities[e].running;
        // Until 6.11 the task has been dequeued, and its average updated, before ("sched/fair: Assert
        // {set_next,put_prev} _entity() are properly balanced" and the rest of delayed dequeue, 6.12). Later its
        // average is as of the last tick, or of when it was picked.
        let now = self.clock(cpu, cx.now());
        let at = if self.release >= v(6, 12) {
            let since_tick = since_last_tick(cx, cpu);
            let slow = if self.clocks.is_empty() { since_tick } else { since_tick * self.capacity(cpu) / 1024 };
            running.since().max(now.saturating_sub(slow))
        } else {
            now
        };
        let period = (at >> 20) + 1;
        let whole = self.capacity(cpu) as u32;
        let slow_up = self.util_est.slow_up;
        let (estimate, fresh) = (&mut self.util_est.tasks[p], &self.util_est.fresh[p as usize]);
        if estimate.period == period {
            return;
        }
        estimate.period = period;
        let time = cx.now() - (now - at);
        let runnable = || (self.entities[e].runnable.at(at) * SCALE - fresh.at(time)) as u32;
        estimate.update((self.release, slow_up), (running.at(at) * SCALE) as u32, whole, runnable);
    }

    /// The utilisation of a task, or its estimate if that is higher (`task_util_est`).
    pub(in crate::fair) fn task_util_est(&self, rqs: &Runqueues, p: TaskId, now: Nanos) -> u64 {
        (self.task_util(rqs, p, now) as u64).max(self.util_est.of(p))
    }

    /// The utilisation of a CPU by fair tasks, or its estimate if that is higher, but at most `whole` (`cpu_util_cfs`).
    pub(in crate::fair) fn cpu_util_cfs(&self, cpu: CpuId, whole: u64, now: Nanos) -> u64 {
        (self.util_avg(cpu, now) as u64).max(self.util_est.on(cpu)).min(whole)
    }

    /// The utilisation of a CPU if a waking task is placed on `to`, or on no CPU (`cpu_util`). With `boost`, the time
    /// that tasks wait there counts as well (6.5 on).
    pub(in crate::fair) fn cpu_util_with(
        &self,
        rqs: &Runqueues,
        cx: &Core,
        (cpu, whole): (CpuId, u64),
        p: TaskId,
        to: Option<CpuId>,
        boost: bool,
    ) -> u64 {
        let (now, at) = (cx.now(), cx.task(p).cpu);
        let (adds, takes) = (at != cpu && to == Some(cpu), at == cpu && to != Some(cpu));
        let shift = |sum: u64, own: u64| if adds { sum + own } else { sum.saturating_sub(if takes { own } else { 0 }) };
        let release = self.release;
        let own = self.task_util(rqs, p, now) as u64;
        let mut util = self.util_avg(cpu, now) as u64;
        // "sched/fair, cpufreq: Introduce 'runnable boosting'" (6.5).
        let own_counts = OWN_RUNNABLE.is_in(release);
        if boost && release >= v(6, 5) && !own_counts {
            util = util.max(self.runnable_avg(cpu, now) as u64);
        }
        util = shift(util, own);
        if boost && own_counts {
            util = util.max(shift(self.runnable_avg(cpu, now) as u64, self.task_runnable(rqs, p, now) as u64));
        }
        // One that is queued, as it becomes another program, is in its CPU's sum.
        let queued = at == cpu && rqs.entities[rqs.entity(p) as usize].on_rq;
        let estimate = match (self.util_est.on(cpu), self.util_est.of(p)) {
            (sum, own) if to == Some(cpu) => sum + own,
            (sum, own) if queued => sum.saturating_sub(own),
            (sum, _) => sum,
        };
        util.max(estimate).min(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The estimate of a task after each of several sleeps with these utilisations.
    fn estimates(release: Release, utils: &[u32]) -> Vec<u64> {
        estimates_of((release, false), utils)
    }

    fn estimates_of(rules: (Release, bool), utils: &[u32]) -> Vec<u64> {
        let mut estimate = Estimate::default();
        utils
            .iter()
            .map(|util| {
                estimate.update(rules, *util, 1024, || *util);
                estimate.get()
            })
            .collect()
    }

    #[test]
    fn more_counts_at_once_and_less_by_quarters() {
        for release in [v(6, 1), v(6, 12)] {
            assert_eq!(estimates(release, &[100, 400, 200, 200]), [100, 400, 350, 312], "{release:?}");
        }
        // A difference within a hundredth is ignored.
        assert_eq!(estimates(v(6, 12), &[400, 392]), [400, 400]);
    }

    /// util_est_update() of 6.1: the estimate is the greater of the last utilisation and the average, which rises and
    /// falls by a quarter of the difference.
    #[test]
    fn without_fastup_the_average_rises_by_quarters() {
        assert_eq!(estimates_of((v(6, 1), true), &[400, 400, 40]), [400, 400, 141]);
        assert_eq!(estimates_of((v(6, 1), false), &[400, 400, 40]), [400, 400, 310]);
    }

    #[test]
    fn who_had_to_wait_is_not_expected_to_need_less() {
        let mut estimate = Estimate { average: 400, ..Estimate::default() };
        estimate.update((v(6, 12), false), 200, 1024, || 400);
        assert_eq!(estimate.get(), 400);
        estimate.update((v(6, 12), false), 600, 462, || 800);
        assert_eq!(estimate.get(), 600);
        estimate.update((v(6, 12), false), 500, 462, || 800);
        assert_eq!(estimate.get(), 600, "more than the CPU has");
    }
}

//! Affine wake-ups: whether a task moves to the CPU of the task that wakes it.

use super::{Ask, Placing, cache, half_pct, share_cache};
use crate::balance::domains::{Domain, Domains};
use crate::fair::entity::QueueId;
use crate::fair::load::NICE_0;
use crate::fair::place::Select;
use schedlab_base::{CpuId, v};
use schedlab_sim::{Core, TaskId};

const SECOND: u64 = 1_000_000_000;

impl Select<'_> {
    /// The average load of a CPU's tasks (`cpu_avg_load_per_task`). Without tasks it is 0, or in 2.6.24 that of a nice
    /// 0 task.
    pub(super) fn load_per_task(&self, cx: &Core, cpu: CpuId) -> u64 {
        let empty = if self.places.how == Placing::V2_6_24 { NICE_0 } else { 0 };
        (self.pelt.load_avg(self.rqs, cpu, cx.now()) as u64)
            .checked_div(self.rqs.nr_running(cpu).into())
            .unwrap_or(empty)
    }

    /// Records that the waker wakes this task (`record_wakee`). From 3.12 to 4.2 `task_waking_fair` does so, whatever
    /// the placement.
    pub(super) fn record_wakee(&mut self, cx: &Core, ask: Ask) {
        let (now, waker) = (cx.now(), cx.curr(ask.here));
        let habits = self.places.waker(waker, ask.here);
        if now > habits.halved + SECOND {
            (habits.flips, habits.halved) = (habits.flips / 2, now);
        }
        if habits.last_wakee != ask.p + 1 {
            habits.last_wakee = ask.p + 1;
            habits.flips += 1;
        }
    }

    /// Whether the waker and the woken task look like a server and one of its many clients (`wake_wide`).
    pub(super) fn wakes_widely(&mut self, cx: &Core, domains: &Domains, ask: Ask) -> bool {
        let factor = cache(domains, ask.here).map_or(1, |d| domains.span(d.span).weight());
        let waker = self.places.waker(cx.curr(ask.here), ask.here).flips;
        let woken = self.places.tasks[ask.p].flips;
        if self.places.how < Placing::V6 {
            return woken > factor && waker > factor * woken;
        }
        let (master, slave) = (waker.max(woken), waker.min(woken));
        slave >= factor && master >= slave * factor
    }

    /// The recent load of a CPU, biased low (`source_load`) or high (`target_load`).
    pub(super) fn biased_load(&mut self, cx: &Core, cpu: CpuId, index: u8, high: bool) -> f64 {
        let now = self.pelt.load_avg(self.rqs, cpu, cx.now());
        if index == 0 || !self.places.features.lb_bias {
            return now;
        }
        let before = self.pelt.cpu_load(cpu, index - 1, cx.now()) as f64;
        if high { now.max(before) } else { now.min(before) }
    }

    /// Like [`Select::effective_load`], but with the shares as they were last distributed, and with `ASYM_EFF_LOAD` 0
    /// if nothing joins (`effective_load`, 2.6.26 to 2.6.37).
    fn effective_load_sampled(&self, q: QueueId, here: i64, all: i64) -> i64 {
        let (mut here, mut all, mut q) =
            (here, all, if here == 0 && self.places.features.asym_eff_load { 0 } else { q });
        while let Some(group) = q.checked_sub(self.rqs.cpus) {
            let (shares, sample) = (self.rqs.groups.all[self.rqs.group_of(q)].shares as i64, self.rqs.sample(q));
            let (part, before) = (sample.shares as i64, sample.weight as i64);
            // What was enqueued since then counts as well.
            let more = self.rqs.queues[q as usize].load.weight as i64 - before;
            (here, all) = (here + more, all + more);
            let (new, old) = (shares * (before + here), shares * before + part * all);
            here = part * (new - old);
            here = here.checked_div(old).unwrap_or(here);
            all = 0;
            q = self.rqs.entities[group as usize].queue;
        }
        here
    }

    /// By how much the weight of a CPU's root increases if weight `here` joins the queue of the task's group there,
    /// while the weight of the whole group increases by `all` (`effective_load`, 2.6.38 to 4.2).
    pub(super) fn effective_load(&self, cx: &Core, p: TaskId, cpu: CpuId, here: i64, all: i64) -> i64 {
        let (mut here, mut all) = (here, all);
        let mut q = self.rqs.queue_of(cx, p, cpu);
        if self.places.how == Placing::V2_6_32 {
            return self.effective_load_sampled(q, here, all);
        }
        while let Some(group) = q.checked_sub(self.rqs.cpus) {
            let of = &self.rqs.groups.all[self.rqs.group_of(q)];
            let sum = all + of.load as i64;
            let own = self.rqs.queues[q as usize].load.weight as i64 + here;
            let shares = of.shares as i64;
            let due = if sum > 0 && own < sum { own * shares / sum } else { shares };
            here = due.max(2) - self.rqs.entities[group as usize].load.weight() as i64;
            all = 0;
            q = self.rqs.entities[group as usize].queue;
        }
        here
    }

    /// Whether a wake-up moves the task to the waker's CPU, comparing both CPUs' loads with the task (`wake_affine`,
    /// 2.6.32 to 4.1).
    pub(super) fn comes_over(&mut self, cx: &Core, domains: &Domains, domain: &Domain, ask: Ask) -> bool {
        if self.places.how == Placing::V3_18 && self.wakes_widely(cx, domains, ask) {
            return false;
        }
        let params = domains.params(domain);
        let (index, pct) = (params.wake_idx, half_pct(params) as i64);
        let mut load = self.biased_load(cx, ask.prev, index, false) as i64;
        let mut this_load = self.biased_load(cx, ask.here, index, true) as i64;
        if let Some(waker) = cx.curr(ask.here).filter(|waker| self.counts_as_sync(*waker, ask)) {
            let weight = self.rqs.entities[self.rqs.entity(waker) as usize].load.weight() as i64;
            this_load += self.effective_load(cx, waker, ask.here, -weight, -weight);
            load += self.effective_load(cx, waker, ask.prev, 0, -weight);
        }
        let weight = self.rqs.entities[self.rqs.entity(ask.p) as usize].load.weight() as i64;
        let capacity = |me: &Self, cpu: CpuId| me.capacity_of(cpu).0 as i64;
        let with = this_load + self.effective_load(cx, ask.p, ask.here, weight, weight);
        let without = load + self.effective_load(cx, ask.p, ask.prev, 0, weight);
        let high = self.biased_load(cx, ask.prev, index, true) as i64;
        // The loads are unsigned in 2.6.32.
        let wraps = self.places.how == Placing::V2_6_32;
        let at_most = |a: i64, b: i64| if wraps { a as u64 <= b as u64 } else { a <= b };
        let fits =
            |with, without| at_most(100 * capacity(self, ask.prev) * with, pct * capacity(self, ask.here) * without);
        if self.places.how == Placing::V3_18 {
            // Without load on this CPU only the capacities are compared.
            return if this_load > 0 { fits(with, without) } else { fits(1, 1) };
        }
        let each = self.load_per_task(cx, ask.here) as i64;
        this_load == 0
            || !wraps && this_load < 0
            || fits(with, without)
            || at_most(this_load, load) && at_most(this_load + high, each)
    }

    /// Whether a CPU has no task but the one that runs there. From 6.12 on, tasks that are asleep but still queued do
    /// not count.
    fn is_lone_waker(&self, cpu: CpuId) -> bool {
        self.rqs.nr_running(cpu) - self.rqs.queues[cpu as usize].h_nr_delayed == 1
    }

    /// Chooses between the waker's and the previous CPU: an idle one, or the one that would have less load
    /// (`wake_affine`, 5.5 on).
    pub(super) fn affine_target(&mut self, cx: &Core, domains: &Domains, domain: &Domain, ask: Ask) -> CpuId {
        let (here, prev, on) = (ask.here, ask.prev, self.places.features);
        if on.wa_idle && self.is_idle(cx, here) && share_cache(domains, here, prev) {
            return if self.is_idle(cx, prev) { prev } else { here };
        }
        if on.wa_idle && ask.sync && self.is_lone_waker(here) {
            return here;
        }
        // d8fcb81f1acf, "sched/fair: Check for idle core in wake_affine".
        if on.wa_idle && self.places.release >= v(5, 11) && self.is_idle(cx, prev) || !on.wa_weight {
            return prev;
        }
        let now = cx.now();
        let load = self.pelt.task_load_before(self.rqs, ask.p, now);
        let bias = half_pct(domains.params(domain));
        let (own, pct) = if on.wa_bias { (100.0, bias as f64) } else { (1.0, 1.0) };
        let capacity = |cpu: CpuId| self.capacity_of(cpu).0 as f64;
        let mut here_load = self.pelt.load_avg(self.rqs, here, now);
        if ask.sync {
            // The waker's load is about to leave. It may be a real-time task, with the load of its time as a fair one.
            let waker = cx.curr(here).map_or(0.0, |waker| self.pelt.task_load(self.rqs, waker, now).round());
            if waker > here_load.round() {
                return here;
            }
            here_load = here_load.round() - waker;
        }
        let with = (here_load + load) * own * capacity(prev);
        let without = (self.pelt.load_avg(self.rqs, prev, now) - load) * pct * capacity(here);
        // With equal loads, a sync wake-up goes to the waker.
        if with < without + f64::from(u8::from(ask.sync)) { here } else { prev }
    }
}

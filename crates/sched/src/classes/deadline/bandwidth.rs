//! Bandwidth: admission, and how much of a CPU is reserved and active (GRUB).

use super::{Deadline, EntityId, Grub};
use schedlab_base::{CpuId, Nanos};
use schedlab_sim::program::Policy;
use schedlab_sim::{Attributes, Core, Refusal, State, TaskId};

/// Bandwidths are in units of 2^-20 of a CPU (`BW_SHIFT`).
pub(super) const SHIFT: u32 = 20;
/// The bandwidth of one CPU.
const UNIT: u64 = 1 << SHIFT;
/// Ratios of bandwidths are in units of 2^-8 (`RATIO_SHIFT`).
const RATIO_SHIFT: u32 = 8;
/// The minimum runtime, in ns. The kernel's arithmetic rounds a smaller one to nothing (`1 << DL_SCALE`).
const LEAST_RUNTIME: Nanos = 1 << 10;

/// The admission limits for deadline tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The part of each CPU that may be reserved, as a runtime and a period in ns; `None` for no limit.
    pub global: Option<(Nanos, Nanos)>,
    /// The shortest and the longest allowed period, in ns (5.4 on).
    pub periods: Option<(Nanos, Nanos)>,
}

/// `runtime / period` in units of 2^-20 (`to_ratio`).
pub(super) fn ratio(runtime: Nanos, period: Nanos) -> u64 {
    if period == 0 { 0 } else { ((u128::from(runtime) << SHIFT) / u128::from(period)) as u64 }
}

/// What a task was promised when it was admitted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Promise {
    /// In units of 2^-20 of a CPU.
    bw: u64,
    /// The root domain by whose CPUs it was admitted.
    root: u32,
}

impl Deadline {
    /// Sets a task's parameters from its attributes (`__setparam_dl`, `__dl_new_attr`).
    pub(super) fn set_parameters(&mut self, cx: &Core, p: TaskId) {
        let (a, own) = (&cx.task(p).attributes, cx.own(p));
        let foreign = own.policy != a.policy;
        let period = if a.period == 0 { a.deadline } else { a.period };
        let id = self.entity(p);
        let e = self.e_mut(id);
        (e.dl_runtime, e.dl_deadline, e.dl_period) = (a.runtime, a.deadline, period);
        (e.boosted, e.foreign) = (cx.is_lent(p), foreign);
        let own_period = if own.period == 0 { own.deadline } else { own.period };
        e.bw = if foreign { 0 } else { ratio(own.runtime, own_period) };
        e.density = if foreign { 0 } else { ratio(own.runtime, own.deadline) };
        e.reclaims = own.reclaim;
    }

    /// The bandwidth of each CPU that may be reserved.
    fn most(&self) -> u64 {
        self.limits.global.map_or(UNIT, |(runtime, period)| ratio(runtime, period))
    }

    /// The bandwidth of a fair server; 0 if there are none.
    pub(super) fn server_bw(&self) -> u64 {
        self.server.map_or(0, |(runtime, period)| ratio(runtime, period))
    }

    /// Admission control: accepts the new attributes of a task or says why they are refused (`__checkparam_dl`,
    /// `__sched_setscheduler`, `sched_dl_overflow`). On success it reserves the bandwidth.
    pub(crate) fn admits(&mut self, cx: &Core, p: TaskId, new: &Attributes) -> Result<(), Refusal> {
        if new.policy != Policy::Deadline {
            return Ok(());
        }
        let period = if new.period == 0 { new.deadline } else { new.period };
        let sane = new.runtime >= LEAST_RUNTIME && new.runtime <= new.deadline && new.deadline <= period;
        if !sane || self.limits.periods.is_some_and(|(least, most)| period < least || period > most) {
            return Err(Refusal::Parameters);
        }
        let allowed = &cx.task(p).allowed;
        let home = Some(cx.task(p).cpu).filter(|cpu| allowed.contains(*cpu)).or(allowed.first()).unwrap_or(0);
        let root = self.roots.of(home);
        if self.limits.global.is_some() && self.span(cx, root).any(|cpu| !allowed.contains(cpu)) {
            return Err(Refusal::Affinity);
        }
        if self.admitted.len() <= p as usize {
            self.admitted.resize(p as usize + 1, Promise::default());
        }
        // A task that has left this class keeps its old bandwidth reserved until its 0-lag time, so until then it
        // counts twice.
        let is_deadline = cx.task(p).attributes.policy == Policy::Deadline;
        let before = self.admitted[p as usize];
        let old = if is_deadline && before.root == root { before.bw } else { 0 };
        let bw = ratio(new.runtime, period);
        let given = self.promised(cx, root) - old + bw;
        if self.limits.global.is_some() && self.allowance(cx, root) < given {
            return Err(Refusal::Bandwidth);
        }
        self.admitted[p as usize] = Promise { bw, root };
        Ok(())
    }

    /// The online CPUs of a root domain (`rd->span`).
    fn span<'a>(&'a self, cx: &'a Core, root: u32) -> impl Iterator<Item = CpuId> + 'a {
        (0..self.cpus).filter(move |cpu| cx.online(*cpu) && self.roots.of(*cpu) == root)
    }

    /// The bandwidth that may be reserved in a root domain: that of its online CPUs, scaled by capacity from 5.9 on.
    fn allowance(&self, cx: &Core, root: u32) -> u64 {
        let cpus = self.span(cx, root);
        if self.rules.constrained {
            let capacity: u64 = cpus.map(|cpu| u64::from(cx.machine().cpus[cpu as usize].place.capacity)).sum();
            (self.most() * capacity) >> 10
        } else {
            self.most() * cpus.count() as u64
        }
    }

    /// What is promised to the tasks of a root domain.
    fn promises(&self, root: u32) -> impl Iterator<Item = u64> + '_ {
        self.admitted.iter().filter(move |promise| promise.root == root).map(|promise| promise.bw)
    }

    /// The reserved bandwidth of all tasks and servers of a root domain (`total_bw`).
    fn promised(&self, cx: &Core, root: u32) -> u64 {
        self.promises(root).sum::<u64>() + self.server_bw() * self.span(cx, root).count() as u64
    }

    /// How much of `delta` ns a reclaiming task is charged (`grub_reclaim`).
    pub(super) fn reclaimed(&self, grub: Grub, cpu: CpuId, id: EntityId, delta: Nanos) -> Nanos {
        let rq = self.rq(cpu);
        let servers = self.server_bw();
        let inactive = (rq.this_bw + servers).saturating_sub(rq.running_bw + self.server_running(cpu));
        // The unreserved part of the bandwidth that each CPU has for deadline tasks.
        let cpus = u64::from(self.roots.size(cpu, self.cpus));
        let promised = self.promises(self.roots.of(cpu)).map(|bw| bw / cpus).sum::<u64>() + servers;
        let extra = self.most().saturating_sub(promised);
        let (own, most) = (self.e(id).bw, self.most());
        // The inverse of `most`, in units of 2^-8.
        let inverse = ratio(UNIT, most) >> (SHIFT - RATIO_SHIFT);
        let active = match grub {
            Grub::Ratio => {
                let least = (own * inverse) >> RATIO_SHIFT;
                if inactive + extra > UNIT.saturating_sub(least) { least } else { UNIT - inactive - extra }
            }
            Grub::Most => {
                let rate = if inactive + extra > most.saturating_sub(own) { own } else { most - inactive - extra };
                (rate * inverse) >> RATIO_SHIFT
            }
        };
        (delta * active) >> SHIFT
    }

    /// Adds the task's bandwidth to the CPU's `this_bw`, unless it is part of it already.
    pub(super) fn attach(&mut self, cpu: CpuId, p: TaskId) {
        let id = self.entity(p);
        if self.e(id).at.is_none() {
            self.e_mut(id).at = Some(cpu);
            self.rq_mut(cpu).this_bw += self.e(id).bw;
        }
    }

    /// Called when a task becomes runnable on `cpu`. Its bandwidth becomes active (`task_contending`).
    pub(super) fn contend(&mut self, cx: &mut Core, cpu: CpuId, p: TaskId) {
        let id = self.entity(p);
        self.attach(cpu, p);
        self.stop_waiting(cx, p);
        if !self.e(id).in_use {
            self.e_mut(id).in_use = true;
            self.rq_mut(cpu).running_bw += self.e(id).bw;
        }
    }

    /// Called when a task blocks or leaves the class. Its bandwidth stays active, or reserved, until its 0-lag time
    /// (`task_non_contending`).
    pub(super) fn stop_contending(&mut self, cx: &mut Core, p: TaskId) {
        let id = self.entity(p);
        let e = *self.e(id);
        if e.foreign {
            self.unuse(p);
            return;
        }
        let lag = i128::from(e.runtime) * i128::from(e.dl_period) / i128::from(e.dl_runtime.max(1));
        let at = i128::from(e.deadline) - lag;
        if self.rules.grub.is_some() && at >= i128::from(cx.now()) {
            self.e_mut(id).non_contending = true;
            cx.start_timer(self.lag_timer(p), at as Nanos);
        } else {
            self.past_lag(cx, p);
        }
    }

    /// Called at the 0-lag time of a task (`inactive_task_timer`).
    pub(super) fn zero_lag(&mut self, cx: &mut Core, p: TaskId) {
        let id = self.entity(p);
        if std::mem::take(&mut self.e_mut(id).non_contending) {
            self.past_lag(cx, p);
        }
    }

    /// Makes the bandwidth of a task inactive. If the task is dead or has left the class, its bandwidth is freed too.
    fn past_lag(&mut self, cx: &mut Core, p: TaskId) {
        self.unuse(p);
        if cx.task(p).state == State::Dead || cx.task(p).attributes.policy != Policy::Deadline {
            self.detach(cx, p);
            if let Some(admitted) = self.admitted.get_mut(p as usize) {
                *admitted = Promise::default();
            }
        }
    }

    fn unuse(&mut self, p: TaskId) {
        let id = self.entity(p);
        if std::mem::take(&mut self.e_mut(id).in_use) {
            let (at, bw) = (self.e(id).at.expect("what is in use is some CPU's"), self.e(id).bw);
            self.rq_mut(at).running_bw -= bw;
        }
    }

    fn stop_waiting(&mut self, cx: &mut Core, p: TaskId) {
        let id = self.entity(p);
        if std::mem::take(&mut self.e_mut(id).non_contending) {
            cx.cancel_timer(self.lag_timer(p));
        }
    }

    /// Removes the task's bandwidth from its CPU's `this_bw`.
    pub(super) fn detach(&mut self, cx: &mut Core, p: TaskId) {
        self.unuse(p);
        self.stop_waiting(cx, p);
        let id = self.entity(p);
        if let Some(cpu) = self.e_mut(id).at.take() {
            self.rq_mut(cpu).this_bw -= self.e(id).bw;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::deadline::{Rules, Yields};
    use schedlab_machine::load;

    /// What a reclaiming task of 10% is charged for 1 ms on a CPU that also has an inactive task of `idle` percent.
    fn reclaiming(grub: Grub, idle: u64) -> Nanos {
        let rules = Rules {
            grub: Some(grub),
            constrained: true,
            yields: Yields::WhenReplenished,
            replenishes_sleepers: true,
            by_capacity: true,
        };
        let limits = Limits { global: Some((950_000_000, 1_000_000_000)), periods: None };
        let mut class = Deadline::new(&load("1").unwrap(), rules, limits);
        class.entities.resize(2, super::super::Entity::default());
        class.entities[1].bw = UNIT / 10;
        class.queues[0].this_bw = UNIT / 10 + UNIT * idle / 100;
        class.queues[0].running_bw = UNIT / 10;
        class.admitted = [UNIT / 10, UNIT * idle / 100].map(|bw| Promise { bw, root: 0 }).into();
        class.reclaimed(grub, 0, 1, 1_000_000)
    }

    #[test]
    fn who_reclaims_uses_its_budget_up_at_the_rate_of_what_is_in_use() {
        // With 10% active and nothing inactive, 85% of the CPU is unreserved, so 1 - 0.85 = 15% of the time is charged.
        // From 6.5 on it is (0.95 - 0.85) / 0.95 = 10.5%.
        assert!(reclaiming(Grub::Ratio, 0).abs_diff(150_000) < 1_000, "{}", reclaiming(Grub::Ratio, 0));
        assert!(reclaiming(Grub::Most, 0).abs_diff(105_000) < 1_000, "{}", reclaiming(Grub::Most, 0));
        // With 50% inactive, 35% is unreserved. Inactive bandwidth is reclaimed as well, so the sum is 0.85 again.
        assert!(reclaiming(Grub::Ratio, 50).abs_diff(150_000) < 1_000);
        assert!(reclaiming(Grub::Most, 50).abs_diff(105_000) < 1_000);
    }
}

//! Idle load balancing: balancing on behalf of idle CPUs that have stopped their tick.
//!
//!
//! Until 2.6.35 one idle CPU keeps its tick and balances for all the others. Since then a busy CPU that sees a reason
//! at its tick kicks an idle CPU to do it. In both cases it happens at some CPU's tick. It is modelled as one timer of
//! the scheduler, which expires at a tick after all CPUs have handled theirs.
//!
//!
//! Here a CPU counts as busy as soon as it runs something; in the kernel, at its first busy tick.

mod ilb;

use super::load_balance::Work;
use super::occupancy::cpus_of;
use super::queues::Queues;
use super::state::Balancer;
use crate::balance::domains::Flags;
use schedlab_base::{CpuId, v};
use schedlab_sim::{Core, TimerId};

/// The state of idle CPUs (`nohz`).
#[derive(Debug)]
pub(super) struct NoHz {
    /// The set of idle CPUs, 64 per word, and their number.
    idle: Vec<u64>,
    count: u32,
    /// The tick at which an idle CPU is next due.
    next_balance: u64,
    /// Whether some idle CPU still has load of blocked tasks, and the tick at which that is next updated (from 4.17
    /// on).
    blocked: bool,
    next_blocked: u64,
    /// The idle CPU that keeps its tick (until 2.6.35).
    owner: Option<CpuId>,
    /// The timer for [`Work::nohz_tick`].
    pub timer: TimerId,
}

impl NoHz {
    /// Creates the state for a number of CPUs, none of which is idle.
    pub fn new(cpus: usize) -> Self {
        Self {
            idle: vec![0; cpus.div_ceil(64)],
            count: 0,
            next_balance: 0,
            blocked: false,
            next_blocked: 0,
            owner: None,
            timer: 0,
        }
    }

    /// Whether a CPU is in the set of idle CPUs.
    #[inline]
    pub fn has(&self, cpu: CpuId) -> bool {
        self.idle[cpu as usize / 64] >> (cpu % 64) & 1 == 1
    }

    fn enter(&mut self, cpu: CpuId) {
        self.idle[cpu as usize / 64] |= 1 << (cpu % 64);
        self.count += 1;
    }

    /// Removes a CPU from the set. Returns whether it was in it.
    #[inline]
    pub fn leave(&mut self, cpu: CpuId) -> bool {
        let was = self.has(cpu);
        self.idle[cpu as usize / 64] &= !(1 << (cpu % 64));
        self.count -= u32::from(was);
        was
    }

    /// The first idle CPU numbered `cpu` or higher.
    fn next(&self, cpu: CpuId) -> Option<CpuId> {
        let mut word = cpu as usize / 64;
        let mut bits = *self.idle.get(word)? & (u64::MAX << (cpu % 64));
        loop {
            if bits != 0 {
                return Some(word as CpuId * 64 + bits.trailing_zeros());
            }
            word += 1;
            bits = *self.idle.get(word)?;
        }
    }
}

impl Balancer {
    /// Called when `cpu` has become idle.
    pub fn enter_idle(&mut self, cx: &mut Core, cpu: CpuId) {
        if self.domains.of(cpu).is_empty() || !cx.online(cpu) {
            return;
        }
        let now = cx.jiffies();
        self.nohz.blocked = true;
        let known = self.nohz.has(cpu);
        if !known {
            self.nohz.enter(cpu);
        }
        if self.rules.idle_cpu_keeps_tick() {
            if self.nohz.count == self.domains.online().count() {
                self.nohz.owner = None;
                cx.cancel_timer(self.nohz.timer);
            } else if self.nohz.owner.is_none() {
                self.nohz.owner = Some(cpu);
                self.arm(cx, self.of_cpu[cpu as usize].next_balance);
            }
            return;
        }
        if self.rules.release() >= v(5, 16) && !known {
            // The next tick of a busy CPU takes this CPU into account (NOHZ_NEXT_KICK), and the tick after that acts on
            // it.
            let due = self.of_cpu[cpu as usize].next_balance.max(now + 2);
            self.nohz.next_balance = self.nohz.next_balance.min(due);
        }
        self.arm_next(cx, now);
    }

    /// Called when `cpu` runs a task.
    #[inline]
    pub fn leave_idle(&mut self, cx: &mut Core, cpu: CpuId) {
        if self.nohz.leave(cpu) {
            self.left_idle(cx, cpu);
        }
    }

    /// The idle CPU that keeps its tick (until 2.6.35).
    #[inline]
    pub fn keeps_tick(&self) -> Option<CpuId> {
        self.nohz.owner
    }

    /// Whether a CPU is idle and has stopped its tick.
    #[inline]
    pub fn sleeps(&self, cpu: CpuId) -> bool {
        self.nohz.has(cpu) && self.nohz.owner != Some(cpu)
    }

    fn left_idle(&mut self, cx: &mut Core, cpu: CpuId) {
        let now = cx.jiffies();
        if !self.rules.idle_cpu_keeps_tick() {
            return self.arm_next(cx, now);
        }
        if self.nohz.owner == Some(cpu) {
            self.nohz.owner = None;
        }
        if self.nohz.owner.is_none() && self.nohz.count > 0 {
            // The next tick of an idle CPU appoints another owner.
            self.arm(cx, now + 1);
        }
    }

    fn arm(&self, cx: &mut Core, tick: u64) {
        let at = self.tick_time(tick.max(cx.jiffies() + 1));
        if at != cx.timer_due(self.nohz.timer) {
            cx.start_timer(self.nohz.timer, at);
        }
    }

    /// Sets the timer to the next tick at which an idle CPU could need balancing.
    fn arm_next(&self, cx: &mut Core, now: u64) {
        if self.nohz.count == 0 || self.nohz.count >= self.domains.online().count() {
            // No CPU is idle, or no busy CPU is left to notice at its tick.
            cx.cancel_timer(self.nohz.timer);
            return;
        }
        let blocked =
            if self.rules.kicks_for_blocked() && self.nohz.blocked { self.nohz.next_blocked + 1 } else { u64::MAX };
        self.arm(cx, self.nohz.next_balance.min(blocked).max(now + 1));
    }
}

impl<Q: Queues> Work<'_, Q> {
    /// Called when the timer expires, at a tick at which idle CPUs may be due.
    pub fn nohz_tick(&mut self) {
        if self.b.rules.idle_cpu_keeps_tick() {
            return self.owner_tick();
        }
        let now = self.cx.jiffies();
        let stats = self.b.rules.kicks_for_blocked() && self.b.nohz.blocked && now > self.b.nohz.next_blocked;
        let balances = now >= self.b.nohz.next_balance && self.is_kick_needed();
        if balances {
            // The change came somewhere between 5.8 and 5.9.
            let anew = self.b.rules.release() >= v(5, 9);
            self.b.nohz.next_balance = if anew { now + 1 } else { self.b.nohz.next_balance + 1 };
        }
        if (stats || balances)
            && let Some(cpu) = self.who_balances()
        {
            if self.b.rules.kicks_for_blocked() {
                self.balance_idle(cpu, balances, stats || balances);
            } else {
                self.balance_idle_old(cpu);
            }
        }
        self.b.arm_next(self.cx, now);
    }

    /// The idle CPU that is kicked to balance for the others (`find_new_ilb`).
    fn who_balances(&self) -> Option<CpuId> {
        let mut at = 0;
        while let Some(cpu) = self.b.nohz.next(at) {
            if self.is_idle(cpu) {
                return Some(cpu);
            }
            // Before a change between 5.1 and 5.2 only the first CPU of the set is tried; since then, each in turn.
            if self.b.rules.release() < v(5, 2) {
                return None;
            }
            at = cpu + 1;
        }
        None
    }

    /// Whether the tick of some busy CPU sees a reason to kick (`nohz_kick_needed`, `nohz_balancer_kick`).
    fn is_kick_needed(&self) -> bool {
        let words = self.b.nohz.idle.iter().enumerate();
        let cpus = self.b.domains.cpus();
        words.into_iter().any(|(at, idle)| {
            let busy = cpus_of(at, !idle).take_while(|cpu| *cpu < cpus);
            busy.into_iter().any(|cpu| self.cx.curr(cpu).is_some() && self.kicks(cpu))
        })
    }

    /// Whether the tick of the busy CPU `cpu` sees a reason to kick.
    fn kicks(&self, cpu: CpuId) -> bool {
        let list = self.b.domains.of(cpu);
        let Some(first) = list.first() else { return false };
        if self.q.nr_running(cpu) >= 2 {
            return true;
        }
        let release = self.b.rules.release();
        let state = &self.b.of_cpu[cpu as usize];
        let pct = u64::from(self.b.domains.params(first).imbalance_pct);
        if release >= v(4, 1) && self.q.nr_fair(cpu) >= 1 && state.capacity * pct < state.capacity_orig * 100 {
            return true;
        }
        if release >= v(5, 1) && list.iter().any(|domain| domain.flags.has(self.b.domains.all_capacities())) {
            return self.misfit_wants_help(cpu, pct);
        }
        let others = |cpus: &[CpuId]| cpus.iter().any(|other| *other != cpu && !self.b.nohz.has(*other));
        if release < v(3, 13) {
            let near = list.iter().take_while(|domain| domain.flags.has(Flags::SHARE_LLC));
            return near.map(|d| self.b.domains.local(d)).any(|g| others(self.span(self.b.domains.group(g).span)));
        }
        let Some(cache) = self.b.domains.cache(cpu) else { return false };
        // Until 4.8 the kernel looked at the groups of the domain above the cache, which therefore must exist.
        (release >= v(4, 9) || cache + 1 < list.len()) && others(self.span(list[cache].span))
    }
}

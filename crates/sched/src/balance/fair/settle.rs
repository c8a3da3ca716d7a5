//! The end of a balancing pass: counts failures, requests a push after too many, and adapts the balancing interval.

use super::backports::MISFIT_APART;
use super::load_balance::{Env, Found, Moved, Unit, Work};
use super::queues::Queues;
use crate::balance::rounds::Idleness;
use schedlab_base::{v, v2_6};

/// Pinned tasks make the interval grow only up to this value, in ms.
const MAX_PINNED_INTERVAL: u32 = 512;

impl<Q: Queues> Work<'_, Q> {
    /// Counts a failure if no task was moved, and requests a push of the running task if one is needed.
    pub fn fall_back(&mut self, env: &mut Env, moved: u32) -> Found {
        if moved > 0 {
            return Found::Moved { tasks: moved, pushed: false };
        }
        let release = self.b.rules.release();
        if self.b.rules.newly_idle_apart() && env.idle == Idleness::Newly {
            return Found::Moved { tasks: 0, pushed: false };
        }
        let misfit_counts = !MISFIT_APART.is_in(release);
        let sd = self.b.sd(env.cpu, env.level);
        if env.idle != Idleness::Newly && (misfit_counts || env.unit != Unit::Misfit) {
            sd.round.failed += 1;
        }
        if !self.needs_push(env) {
            return Found::Moved { tasks: 0, pushed: false };
        }
        // Without a running task there is nothing to push, because the idle task may not leave its CPU.
        if !self.cx.curr(env.src).is_some_and(|p| self.cx.task(p).allowed.contains(env.cpu)) {
            env.all_pinned |= release < v(5, 12);
            return Found::OnePinned;
        }
        // 23fb06d9602b, "sched/fair: Clean up active balance nr_balance_failed trickery".
        if release < v(5, 13) {
            let tries = self.b.domains.params(self.b.domain(env.cpu, env.level)).cache_nice_tries;
            self.b.sd(env.cpu, env.level).round.failed = tries + 1;
        }
        let pushed = self.ask_for_push(env);
        Found::Moved { tasks: 0, pushed }
    }

    /// Whether the interval is reset although the running task is being pushed: from 5.1 on if it is pushed because of
    /// capacity, and from 5.12 on whatever the reason (e9b9734b7465, "sched/fair: Reduce cases for active balance").
    fn resets_though_pushed(&self, env: &Env) -> bool {
        let release = self.b.rules.release();
        if release >= v(5, 12) { self.needs_push(env) } else { release >= v(5, 1) && self.pushes_by_capacity(env) }
    }

    /// Updates the interval and the failure count after a balancing pass.
    pub fn settle(&mut self, env: &Env, found: &Found) -> Moved {
        let params = *self.b.domains.params(self.b.domain(env.cpu, env.level));
        let release = self.b.rules.release();
        match *found {
            Found::Moved { tasks, pushed } => {
                let reset = !pushed || self.resets_though_pushed(env);
                let sd = self.b.sd(env.cpu, env.level);
                if tasks > 0 {
                    sd.round.failed = 0;
                }
                let interval = sd.round.interval_ms;
                if reset {
                    self.b.set_interval(env.cpu, env.level, params.min_interval_ms);
                } else if release < v(5, 12) && interval < params.max_interval_ms {
                    self.b.set_interval(env.cpu, env.level, interval * 2);
                }
                return Moved::of(tasks);
            }
            Found::Balanced | Found::Elsewhere => {
                // The change came between 5.3 and 5.4, and in stable trees of 4.14 and 4.15.
                let keeps = release >= v(5, 4) && env.all_pinned;
                if release >= v(3, 13)
                    && !keeps
                    && let Some(group) = self.b.parent_group(env.cpu, env.level)
                {
                    self.b.of_group[group.index()].imbalance = false;
                }
                self.b.sd(env.cpu, env.level).round.failed = 0;
            }
            Found::AllPinned => self.b.sd(env.cpu, env.level).round.failed = 0,
            Found::OnePinned => {}
        }
        // The change came somewhere between 4.20 and 5.0.
        let newly = release >= v(5, 0) && env.idle == Idleness::Newly;
        let still = newly || MISFIT_APART.is_in(release) && env.unit == Unit::Misfit;
        let interval = self.b.sd(env.cpu, env.level).round.interval_ms;
        if !still && (env.all_pinned && interval < MAX_PINNED_INTERVAL || interval < params.max_interval_ms) {
            self.b.set_interval(env.cpu, env.level, interval * 2);
        }
        Moved::Nothing
    }

    /// The same for releases in which newly idle balancing is separate and leaves the interval unchanged (until
    /// 2.6.33).
    pub fn settle_newly(&mut self, env: &Env, found: &Found, sibling_runs: bool) -> Moved {
        match *found {
            // From 2.6.29 on a failed attempt keeps the CPU from looking at further domains, which serves power saving
            // in 2.6.32.
            Found::Moved { tasks: 0, .. } if self.b.rules.release() >= v2_6(29) => return Moved::NotNeeded,
            Found::Moved { tasks: 0, .. } => return Moved::Nothing,
            Found::Moved { tasks, .. } => {
                self.b.sd(env.cpu, env.level).round.failed = 0;
                return Moved::of(tasks);
            }
            _ if sibling_runs => {}
            _ => self.b.sd(env.cpu, env.level).round.failed = 0,
        }
        Moved::Nothing
    }
}

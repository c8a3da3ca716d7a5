//! Load balancing of 2.6.11 and 2.6.18: finds the busiest group of a domain and its busiest CPU, and pulls tasks from
//! it.

use super::super::O1;
use super::super::release::Balancing;
use super::Look;
use super::imbalance::{SCALE, Sum, tasks, weight};
use super::moving::{Haul, Heat};
use crate::balance::domains::{Domains, GroupId};
use crate::balance::rounds::Idleness;
use schedlab_base::{CpuId, Looking};
use schedlab_sim::{Choice, Core, Decision};

/// The longest interval that pinned tasks can cause, in ms (`MAX_PINNED_INTERVAL`).
const MAX_PINNED_INTERVAL: u32 = 512;

/// The result of a search.
struct Found {
    from: CpuId,
    /// The loads of the busiest group and of this one, and the average.
    loads: [u64; 3],
    /// The number of tasks, or the weight, to move.
    amount: u64,
}

/// The outcome of balancing a domain.
enum Outcome {
    /// The domain was balanced, or (`pinned`) all tasks there were pinned to other CPUs.
    Balanced { pinned: bool },
    /// There was an imbalance, but no task could be moved from that CPU.
    Failed(CpuId),
    /// Tasks were moved.
    Moved,
}

impl O1<'_> {
    fn by_weight(&self) -> bool {
        self.rules.release().balancing == Balancing::ByWeight
    }

    /// Returns the load of a CPU now and as of `index`: 0 is now, the others are averages over ticks. 2.6.11 has only
    /// one average, at index 2.
    fn load(&self, cpu: CpuId, index: u8) -> (u64, u64) {
        let rq = &self.queues[cpu as usize];
        (rq.load, if index == 0 { rq.load } else { rq.cpu_load[index as usize - 1] })
    }

    /// Returns a low estimate of the load, for the CPU that tasks leave.
    pub(super) fn source_load(&self, cpu: CpuId, index: u8) -> u64 {
        let (now, average) = self.load(cpu, index);
        now.min(average)
    }

    /// Returns a high estimate of the load, for the CPU that tasks join.
    pub(super) fn target_load(&self, cpu: CpuId, index: u8) -> u64 {
        let (now, average) = self.load(cpu, index);
        now.max(average)
    }

    /// Returns the index of the load average to use.
    fn index(&self, look: &Look<'_>) -> u8 {
        let params = look.domains.params(look.domain);
        match look.idle {
            _ if !self.by_weight() => 2,
            Idleness::Busy => params.busy_idx,
            Idleness::Newly => params.newidle_idx,
            Idleness::Idle => params.idle_idx,
        }
    }

    /// Finds the busiest CPU of the busiest group (`find_busiest_group` and `find_busiest_queue`).
    fn find_busiest(&mut self, cx: &mut Core, look: &Look<'_>) -> Option<Found> {
        let Look { cpu, domains, domain, .. } = *look;
        let why = if look.idle == Idleness::Newly { Looking::NewIdle } else { Looking::Periodic };
        self.look_at(cx, cpu, why, &domains.span(domain.span).cpus);
        let index = self.index(look);
        let local = domains.local(domain);
        let (mut total, mut power) = (0, 0);
        let (mut here, mut busiest) = (Sum::default(), None::<(GroupId, Sum)>);
        for group in domains.groups(domain) {
            let (load, sum) = self.sum(domains, group, index, group == local);
            total += load;
            power += sum.power;
            let full = !self.by_weight() || sum.running > sum.power / SCALE;
            if group == local {
                here = sum;
            } else if full && sum.load > busiest.map_or(0, |(_, most)| most.load) {
                busiest = Some((group, sum));
            }
        }
        let (group, most) = busiest?;
        let average = SCALE * total / power;
        let pct = u64::from(domains.params(domain).imbalance_pct);
        let amount = if self.by_weight() {
            weight(&most, &here, average, pct)?
        } else {
            // An idle CPU pulls a task from a group that has more than one.
            let takes = look.idle == Idleness::Newly || look.idle == Idleness::Idle && most.load > SCALE;
            tasks(&most, &here, average, pct).or(takes.then_some(1))?
        };
        let from = self.busiest_cpu(domains, group, amount)?;
        Some(Found { from, loads: [most.load, here.load, average], amount })
    }

    /// Returns the plain load of a group, and its sums divided by the power of its CPUs.
    fn sum(&self, domains: &Domains, group: GroupId, index: u8, local: bool) -> (u64, Sum) {
        let group = domains.group(group);
        let power = u64::from(group.capacity);
        let (mut load, mut running, mut weight) = (0, 0, 0);
        for &cpu in &domains.span(group.span).cpus {
            // The estimates favour leaving tasks where they are.
            load += if local { self.target_load(cpu, index) } else { self.source_load(cpu, index) };
            if self.by_weight() {
                running += u64::from(self.nr_running(cpu));
                weight += self.queues[cpu as usize].load;
            }
        }
        (load, Sum { load: load * SCALE / power, power, running, weight })
    }

    fn busiest_cpu(&self, domains: &Domains, group: GroupId, amount: u64) -> Option<CpuId> {
        let (mut busiest, mut most) = (None, 0);
        for &cpu in &domains.span(domains.group(group).span).cpus {
            let load = if self.by_weight() { self.queues[cpu as usize].load } else { self.source_load(cpu, 2) };
            // A task that runs alone on its CPU cannot be pulled.
            let alone = self.by_weight() && self.nr_running(cpu) == 1 && load > amount;
            if load > most && !alone {
                (busiest, most) = (Some(cpu), load);
            }
        }
        busiest
    }

    /// Moves what was found, if there is more than one task there. Returns how many tasks moved, and whether all were
    /// pinned to other CPUs.
    fn take_found(&mut self, cx: &mut Core, look: &Look<'_>, found: &Found) -> (u64, bool) {
        let from = found.from;
        let running = u64::from(self.nr_running(from));
        if running <= 1 {
            return (0, false);
        }
        let (most, weight) =
            if self.by_weight() { (running - 1, found.amount as i64) } else { (found.amount, i64::MAX) };
        cx.explain(|_| {
            let rule = "from the busiest CPU of the domain's busiest group, until the loads are even";
            Decision::new(look.cpu, Choice::Move, None, rule).numbers([
                (None, "from_cpu", i64::from(from)),
                (None, "load_there", found.loads[0] as i64),
                (None, "load_here", found.loads[1] as i64),
                (None, "load_average", found.loads[2] as i64),
                (None, if self.by_weight() { "weight_to_move" } else { "tasks_to_move" }, found.amount as i64),
            ])
        });
        let haul = Haul { from, to: look.cpu, most, weight, heat: self.heat(cx, look), running: cx.curr(from) };
        self.move_tasks(cx, &haul)
    }

    /// Returns which tasks stay because of a warm cache. In 2.6.11 an idle core pulls them, too.
    pub(super) fn heat(&self, cx: &Core, look: &Look<'_>) -> Heat {
        let Look { cpu, level, domains, domain, .. } = *look;
        let failed = self.smp().rounds.of(cpu, level).failed;
        let takes_all = failed > domains.params(domain).cache_nice_tries;
        if takes_all || !self.by_weight() && self.core_is_idle(cx, cpu) {
            Heat::Cold
        } else {
            Heat::SinceRan(self.cache_hot_time(domains, domain))
        }
    }

    /// Balances a domain (`load_balance`). Returns whether the CPU is busy now or, from 2.6.18 on, has a busy sibling.
    pub(super) fn load_balance(&mut self, cx: &mut Core, look: &Look<'_>) -> bool {
        let sibling_busy = self.sibling_is_busy(cx, look);
        let outcome = match self.find_busiest(cx, look) {
            None => Outcome::Balanced { pinned: false },
            Some(found) => match self.take_found(cx, look, &found) {
                (0, true) if self.by_weight() => Outcome::Balanced { pinned: true },
                (0, _) => Outcome::Failed(found.from),
                _ => Outcome::Moved,
            },
        };
        if self.by_weight() {
            self.learn_by_weight(cx, look, &outcome);
        } else {
            self.learn_by_load(cx, look, &outcome);
        }
        matches!(outcome, Outcome::Moved) || sibling_busy
    }

    /// Returns whether an idle CPU has a busy sibling. In 2.6.18 it then balances wider domains as rarely as a busy
    /// CPU.
    fn sibling_is_busy(&self, cx: &Core, look: &Look<'_>) -> bool {
        self.by_weight()
            && look.among_siblings()
            && (look.idle == Idleness::Busy
                || look.domains.span(look.domain.span).cpus.iter().any(|cpu| cx.curr(*cpu).is_some()))
    }

    /// Balances a domain for a CPU that is about to become idle (`load_balance_newidle`). Failures are not recorded;
    /// 2.6.18 records success. In 2.6.18 a domain of siblings is the last one tried, as the CPU's own task still counts
    /// as running.
    pub(super) fn load_balance_newly_idle(&mut self, cx: &mut Core, look: &Look<'_>) -> bool {
        let sibling_busy = self.sibling_is_busy(cx, look);
        let found = self.find_busiest(cx, look);
        let nothing = found.is_none();
        let moved = found.is_some_and(|found| self.take_found(cx, look, &found).0 > 0);
        if self.by_weight()
            && (moved || nothing && !sibling_busy)
            && let Some(smp) = &mut self.smp
        {
            smp.rounds.of_mut(look.cpu, look.level).failed = 0;
        }
        moved || sibling_busy
    }

    /// Updates a domain's interval and failures: after a success the CPU looks again soon, in balance later; after too
    /// many failures it wakes the stopper (2.6.11).
    fn learn_by_load(&mut self, cx: &mut Core, look: &Look<'_>, outcome: &Outcome) {
        let params = look.domains.params(look.domain);
        let Some(smp) = &mut self.smp else { return };
        let round = smp.rounds.of_mut(look.cpu, look.level);
        let may_grow = round.interval_ms < params.max_interval_ms;
        match *outcome {
            Outcome::Balanced { .. } => round.interval_ms *= if may_grow { 2 } else { 1 },
            Outcome::Moved => (round.failed, round.interval_ms) = (0, params.min_interval_ms),
            Outcome::Failed(from) => {
                round.interval_ms += u32::from(may_grow);
                round.failed += 1;
                if round.failed > params.cache_nice_tries + 2 {
                    round.failed = params.cache_nice_tries;
                    self.ask_for_push(cx, from, look.cpu);
                }
            }
        }
    }

    /// Does the same in 2.6.18: failures are reset in balance, and pinned tasks lengthen the interval.
    fn learn_by_weight(&mut self, cx: &mut Core, look: &Look<'_>, outcome: &Outcome) {
        let Look { cpu, level, .. } = *look;
        let params = look.domains.params(look.domain);
        let Some(smp) = &mut self.smp else { return };
        let round = smp.rounds.of_mut(cpu, level);
        let (mut pinned, mut backs_off) = (false, false);
        match *outcome {
            Outcome::Balanced { pinned: all } => (round.failed, pinned, backs_off) = (0, all, true),
            Outcome::Moved => round.failed = 0,
            Outcome::Failed(from) => {
                round.failed += 1;
                if round.failed > params.cache_nice_tries + 2 {
                    if cx.curr(from).is_some_and(|p| cx.task(p).allowed.contains(cpu)) {
                        round.failed = params.cache_nice_tries + 1;
                        backs_off = self.ask_for_push(cx, from, cpu);
                    } else {
                        (pinned, backs_off) = (true, true);
                    }
                }
            }
        }
        let Some(smp) = &mut self.smp else { return };
        let round = smp.rounds.of_mut(cpu, level);
        if !backs_off {
            round.interval_ms = params.min_interval_ms;
        } else if round.interval_ms < params.max_interval_ms || pinned && round.interval_ms < MAX_PINNED_INTERVAL {
            round.interval_ms *= 2;
        }
    }

    /// Wakes the stopper of `from` to push a task to `to`. Returns `false` if it was woken for this already.
    fn ask_for_push(&mut self, cx: &mut Core, from: CpuId, to: CpuId) -> bool {
        let Some(smp) = &mut self.smp else { return false };
        let slot = &mut smp.push_to[from as usize];
        let fresh = slot.is_none();
        if fresh {
            *slot = Some(to);
            cx.wake_stopper(from);
        }
        fresh
    }
}

//! Balancing of 2.6.11 and 2.6.18 by loads: the busiest group of a domain, the busiest CPU in it, and what comes of it.

use super::super::O1;
use super::super::release::Balancing;
use super::Look;
use super::imbalance::{SCALE, Sum, tasks, weight};
use super::moving::{Haul, Heat};
use crate::balance::domains::{Domains, GroupId};
use crate::balance::rounds::Idleness;
use schedlab_base::{CpuId, Looking};
use schedlab_sim::{Choice, Core, Decision};

/// The longest interval that tasks which may not be moved can lead to, in ms (`MAX_PINNED_INTERVAL`).
const MAX_PINNED_INTERVAL: u32 = 512;

/// What a search found.
struct Found {
    from: CpuId,
    /// The loads of the groups there and here, and the average.
    loads: [u64; 3],
    /// How many tasks or how much weight to move.
    amount: u64,
}

/// What came of balancing a domain.
enum Outcome {
    /// There was nothing to do; or all tasks were pinned elsewhere.
    Balanced { pinned: bool },
    /// There was, but no task could be moved from that CPU.
    Failed(CpuId),
    /// Tasks were moved.
    Moved,
}

impl O1<'_> {
    fn by_weight(&self) -> bool {
        self.rules.release().balancing == Balancing::ByWeight
    }

    /// The load of a CPU as of `index`: 0 is now, the others are averages of ticks. 2.6.11 has one, of the second
    /// length.
    fn load(&self, cpu: CpuId, index: u8) -> (u64, u64) {
        let rq = &self.queues[cpu as usize];
        (rq.load, if index == 0 { rq.load } else { rq.cpu_load[index as usize - 1] })
    }

    /// A low guess, for where tasks come from.
    pub(super) fn source_load(&self, cpu: CpuId, index: u8) -> u64 {
        let (now, average) = self.load(cpu, index);
        now.min(average)
    }

    /// A high guess, for where tasks go.
    pub(super) fn target_load(&self, cpu: CpuId, index: u8) -> u64 {
        let (now, average) = self.load(cpu, index);
        now.max(average)
    }

    /// Which average counts.
    fn index(&self, look: &Look<'_>) -> u8 {
        let params = look.domains.params(look.domain);
        match look.idle {
            _ if !self.by_weight() => 2,
            Idleness::Busy => params.busy_idx,
            Idleness::Newly => params.newidle_idx,
            Idleness::Idle => params.idle_idx,
        }
    }

    /// `find_busiest_group` and `find_busiest_queue`.
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
            // An idle CPU takes a task where there is more than one.
            let takes = look.idle == Idleness::Newly || look.idle == Idleness::Idle && most.load > SCALE;
            tasks(&most, &here, average, pct).or(takes.then_some(1))?
        };
        let from = self.busiest_cpu(domains, group, amount)?;
        Some(Found { from, loads: [most.load, here.load, average], amount })
    }

    /// The load of a group, as it is and by what its CPUs are worth.
    fn sum(&self, domains: &Domains, group: GroupId, index: u8, local: bool) -> (u64, Sum) {
        let group = domains.group(group);
        let power = u64::from(group.capacity);
        let (mut load, mut running, mut weight) = (0, 0, 0);
        for &cpu in &domains.span(group.span).cpus {
            // Tasks rather stay.
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
            // What a CPU runs alone cannot be moved.
            let alone = self.by_weight() && self.nr_running(cpu) == 1 && load > amount;
            if load > most && !alone {
                (busiest, most) = (Some(cpu), load);
            }
        }
        busiest
    }

    /// Moves what was found to be moved, if there is more than one task: how many were, and whether all were pinned.
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

    /// Whether tasks with a warm cache stay. In 2.6.11 an idle core takes them, too.
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

    /// Balances a domain (`load_balance`); whether the CPU is busy by now, or, from 2.6.18 on, a sibling is.
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

    /// In 2.6.18 an idle CPU with a busy sibling balances its wider domains as seldom as a busy one.
    fn sibling_is_busy(&self, cx: &Core, look: &Look<'_>) -> bool {
        self.by_weight()
            && look.among_siblings()
            && (look.idle == Idleness::Busy
                || look.domains.span(look.domain.span).cpus.iter().any(|cpu| cx.curr(*cpu).is_some()))
    }

    /// The same for a CPU that is about to become idle (`load_balance_newidle`): nothing is learnt but in 2.6.18 that
    /// it went well. There a domain of siblings is the last one, as the CPU's own task still counts as running.
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

    /// Whoever succeeds looks again soon, whoever finds balance later; who fails too often wakes the stopper (2.6.11).
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

    /// The same in 2.6.18: failures are forgotten when there is balance, and pinned tasks make the interval long.
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

    /// Wakes the stopper of `from` to push a task to `to`; `false`: it was already asked.
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

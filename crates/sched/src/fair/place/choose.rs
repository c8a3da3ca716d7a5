//! Task placement by release: the walk up the domains, and the choice that follows.

use super::early::Candidates;
use super::{Ask, Placing, Select, spans};
use crate::balance::domains::{Domains, Flags};
use crate::fair::{Discipline, Fair};
use schedlab_base::{CpuId, v};
use schedlab_sim::{Choice, Core, Decision, Placement, TaskId};

impl<D: Discipline> Fair<D> {
    /// Chooses the CPU for a task that wakes, is new or becomes another program (`select_task_rq_fair`).
    pub(in crate::fair) fn choose_cpu(
        &mut self,
        cx: &mut Core,
        domains: &Domains,
        p: TaskId,
        prev: CpuId,
        why: Placement,
    ) -> CpuId {
        let sync = cx.sync_waker().is_some();
        let ask = match why {
            Placement::Wake { from } | Placement::Affinity { from } => {
                Ask { p, prev, here: from, wakes: true, execs: false, sync }
            }
            Placement::Fork { from } => Ask { p, prev, here: from, wakes: false, execs: false, sync },
            Placement::Exec { from } => Ask { p, prev, here: from, wakes: false, execs: true, sync },
        };
        self.places.weigh_anew();
        // Until 3.18 select_task_rq_fair() returns at once, since between 3.1 and 3.6. From 3.19 on select_task_rq()
        // calls no class.
        if cx.task(p).pinned && self.places.release >= v(3, 6) {
            return self.select().place_pinned(cx, ask);
        }
        let found = self.select().candidates(cx, domains, ask);
        // In the largest of the domains that take part.
        if self.places.features.lb_shares_update
            && let Some(level) = found.as_ref().and_then(|found| found.both.max(found.top))
        {
            let list = domains.of(ask.here);
            let span = domains.span(list[level].span);
            self.sample_shares(cx, domains.index(ask.here, level), &span.cpus, level + 1 == list.len());
        }
        let (cpu, rule) = self.select().by_release(cx, domains, ask, found);
        if self.places.counts_overlaps() {
            // It reads the waker's account, which must have the ticks that were skipped.
            crate::classes::sync(self, cx, ask.here);
            self.select().overlap_begins(cx, ask, cpu);
        }
        // select_task_rq() replaces a CPU that the task's affinity does not allow.
        let allowed = &cx.task(p).allowed;
        let (cpu, rule) = if allowed.contains(cpu) {
            (cpu, rule)
        } else {
            let near = domains.of(prev).iter().flat_map(|d| domains.span(d.span).cpus.iter().copied());
            let all = near.chain(0..self.rqs.cpus);
            (all.into_iter().find(|c| allowed.contains(*c)).unwrap_or(prev), "the first CPU that it may use")
        };
        let weighed = self.places.weighed;
        cx.explain(|_| {
            let mut numbers = vec![(None, "previous_cpu", prev.into()), (None, "waking_cpu", ask.here.into())];
            if let Some(weighed) = weighed {
                numbers.push((Some(p), "utilisation", weighed.need as i64));
                numbers.extend(weighed.prev.map(|uw| (None, "on_previous_cpu_uw", uw as i64)));
                if let Some((other, uw)) = weighed.other {
                    numbers.extend([(None, "other_cpu", other.into()), (None, "on_other_cpu_uw", uw as i64)]);
                }
            } else if self.balancer.as_ref().is_some_and(|balancer| balancer.is_overused()) {
                numbers.push((None, "over_utilised", 1));
            }
            Decision { time: 0, cpu, choice: Choice::Place, who: Some(p), over: Vec::new(), rule, numbers }
        });
        cpu
    }
}

impl Select<'_> {
    /// The only CPU that the task may use. Nothing is searched, and the waker's habits are recorded only in releases
    /// where `task_waking_fair` does that.
    fn place_pinned(&mut self, cx: &mut Core, ask: Ask) -> CpuId {
        if ask.wakes && self.places.how == Placing::V3_18 {
            self.record_wakee(cx, ask);
        }
        let cpu = cx.task(ask.p).allowed.first().unwrap_or(ask.prev);
        cx.explain(|_| {
            let numbers = [(None, "previous_cpu", ask.prev.into()), (None, "waking_cpu", ask.here.into())];
            Decision::new(cpu, Choice::Place, Some(ask.p), "the only CPU that it may use").numbers(numbers)
        });
        cpu
    }

    fn by_release(
        &mut self,
        cx: &mut Core,
        domains: &Domains,
        ask: Ask,
        found: Option<Candidates>,
    ) -> (CpuId, &'static str) {
        if self.places.fix_overload
            && let Some(cpu) = self.longest_idle(cx, ask)
        {
            return (
                cpu,
                "fix.overload_on_wakeup: where it last ran if that is idle, else the CPU that is idle longest",
            );
        }
        if let Some(cpu) = self.packed(cx, ask) {
            return (cpu, "sched_vcpu_pack: a CPU that has room for the task, beside others that may be idle");
        }
        match self.places.how {
            Placing::V2_6_24 => self.place_2_6_24(cx, domains, ask),
            Placing::V2_6_32 => self.place_2_6_32(cx, domains, ask, found.unwrap_or_else(|| Candidates::none(ask))),
            Placing::V3_10 | Placing::V3_18 => self.place_affine(cx, domains, ask),
            Placing::V6 => self.place_6(cx, domains, ask),
        }
    }

    /// Placement in 3.10 to 4.1.
    fn place_affine(&mut self, cx: &mut Core, domains: &Domains, ask: Ask) -> (CpuId, &'static str) {
        if ask.wakes && self.places.how == Placing::V3_18 {
            self.record_wakee(cx, ask);
        }
        let allowed = cx.task(ask.p).allowed.contains(ask.here);
        let mut top = None;
        let mut affine = None;
        for (level, domain) in domains.of(ask.here).iter().enumerate() {
            if ask.wakes && allowed && spans(domains, domain, Flags::WAKE_AFFINE, ask.prev) {
                affine = Some(*domain);
                break;
            }
            if domain.flags.has(ask.flag()) {
                top = Some(level);
            }
        }
        let mut target = ask.prev;
        if let Some(domain) = affine
            && ask.here != ask.prev
            && self.comes_over(cx, domains, &domain, ask)
        {
            target = ask.here;
        }
        let beside = if self.places.how == Placing::V3_10 { affine.is_some() } else { ask.wakes };
        if beside {
            return (
                self.idle_sibling_4(cx, domains, ask, target),
                "an idle core or CPU of the cache, else the target",
            );
        }
        match top {
            Some(level) => self.descend(cx, domains, ask, level),
            None if ask.wakes => (ask.prev, "where it last ran"),
            None => (ask.here, "where its parent runs"),
        }
    }

    /// Placement from 5.5 on.
    fn place_6(&mut self, cx: &mut Core, domains: &Domains, ask: Ask) -> (CpuId, &'static str) {
        let mut wants = false;
        if ask.wakes {
            self.record_wakee(cx, ask);
            if self.saves_energy()
                && let Some(cpu) = self.efficient_cpu(cx, domains, ask)
            {
                let rule = if cpu == ask.prev {
                    "energy: where it last ran, for no other CPU saves any"
                } else {
                    "energy: another CPU, where it costs less"
                };
                return (cpu, rule);
            }
            wants = !self.wakes_widely(cx, domains, ask) && cx.task(ask.p).allowed.contains(ask.here);
        }
        let (mut target, mut top) = (ask.prev, None);
        for (level, domain) in domains.of(ask.here).iter().enumerate() {
            if wants && spans(domains, domain, Flags::WAKE_AFFINE, ask.prev) {
                if ask.here != ask.prev {
                    target = self.affine_target(cx, domains, domain, ask);
                }
                top = None;
                break;
            }
            if domain.flags.has(ask.flag()) {
                top = Some(level);
            } else if !wants {
                break;
            }
        }
        match top {
            Some(level) => self.descend(cx, domains, ask, level),
            None if ask.wakes => {
                let cpu = self.idle_sibling_6(cx, domains, ask, target);
                if wants
                    && self.places.release < v(5, 15)
                    && let Some(waker) = cx.curr(ask.here)
                {
                    self.places.recent[waker as usize] = ask.here;
                }
                (cpu, "an idle CPU of the target's cache, else the target")
            }
            None => (ask.prev, "no domain balances tasks that are new or become another program"),
        }
    }
}

//! The loads of groups: what a task that joins or leaves a queue changes above it, and what the sum over a group's
//! queues knows of each.
//!
//! # Rule
//! A group's entity has an average of its own of how long it was runnable. When a task is attached to its queue, the
//! task's runnable average is added to it; when one is detached, what is left is estimated as if all tasks of the queue
//! were equally runnable. It is never less than the group's utilisation there. The sum of a group's loads over the CPUs
//! (`tg->load_avg`), by which its shares are distributed, is not exact: each queue reports its load only when it is
//! updated, when the load differs by more than a 64th from what was reported, and from 6.7 on at most once a
//! millisecond.
//!
//! # Reference
//! `propagate_entity_load_avg`, `update_tg_cfs_load` and `update_tg_load_avg` in kernel/sched/fair.c of 6.1 and 6.12.

use super::{Average, Loads, Pelt};
use crate::fair::entity::QueueId;
use crate::fair::rqs::Runqueues;
use schedlab_base::{CpuId, Nanos, v};

/// How often a queue reports its load at most, in ns: "sched/fair: Ratelimit update to tg->load_avg" (6.7).
const EVERY: Nanos = 1_000_000;

/// What the sum over a group's queues knows of one of them (`tg_load_avg_contrib`).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reported {
    load: u64,
    /// When it last changed; 0 if never.
    at: Nanos,
}

impl Pelt {
    /// Passes on to the groups of a queue that a task was attached to it, with this runnable average, or detached from
    /// it (`None`). `util` is by how much the utilisation of the queue changes, as a part of 1.
    ///
    /// "sched/fair: Rewrite PELT migration propagation" (4.15).
    pub(super) fn propagate(&mut self, rqs: &Runqueues, q: QueueId, joins: Option<f64>, util: f64, time: Nanos) {
        if q < rqs.cpus || self.loads != Loads::All || self.release < v(4, 15) {
            return;
        }
        let (now, whole) = (self.clock(rqs.cpu_of(q), time), self.whole());
        let mut q = q;
        while let Some(group) = q.checked_sub(rqs.cpus) {
            let weight = rqs.queues[q as usize].load.weight;
            let mean = if weight > 0 { self.queues[q as usize].load.at(now) / weight as f64 } else { 0.0 };
            let of = &mut self.entities[group as usize];
            of.running.shift(now, util, 0.0, &mut self.left);
            let before = of.runnable.at(now);
            let after = match joins {
                Some(more) => (before + more).min(whole),
                None => before.min(mean),
            };
            let after = after.max(of.running.at(now));
            of.runnable = Average::of(after, of.runnable.level(), now);
            let entity = &rqs.entities[group as usize];
            if self.ties[group as usize].attached {
                self.shift(entity.queue, time, entity.load.weight() as f64 * (after - before), 0.0);
            }
            q = entity.queue;
        }
    }

    /// Reports the load of a queue to the sum over its group's queues (`update_tg_load_avg`). Returns whether that
    /// changed the sum.
    #[inline]
    pub(in crate::fair) fn report(&mut self, rqs: &Runqueues, q: QueueId, time: Nanos) -> bool {
        q >= rqs.cpus && self.on && self.loads == Loads::All && self.report_load(rqs, q, time)
    }

    fn report_load(&mut self, rqs: &Runqueues, q: QueueId, time: Nanos) -> bool {
        let load = self.queue_load(rqs, q, time);
        let known = &mut self.reported[(q - rqs.cpus) as usize];
        let early = self.release >= v(6, 7) && known.at > 0 && time - known.at < EVERY;
        if early || load.abs_diff(known.load) <= known.load / 64 {
            return false;
        }
        let sum = &mut self.sums[rqs.group_of(q)];
        *sum = *sum + load - known.load;
        *known = Reported { load, at: time };
        true
    }

    /// Reports the loads of all groups on a CPU (`update_blocked_averages`). Returns the groups whose sums changed.
    pub(in crate::fair) fn report_all(&mut self, rqs: &Runqueues, cpu: CpuId, time: Nanos) -> Vec<QueueId> {
        let known = |me: &Self, q: QueueId| me.reported.get((q - rqs.cpus) as usize).is_some_and(|of| of.load > 0);
        let queues = (0..self.sums.len() as u32).rev().map(|group| (group + 1) * rqs.cpus + cpu);
        queues.filter(|q| known(self, *q) && self.report(rqs, *q, time)).collect()
    }

    /// Whether a queue would report another load now.
    pub(in crate::fair) fn has_news(&self, rqs: &Runqueues, q: QueueId, time: Nanos) -> bool {
        let known = self.reported[(q - rqs.cpus) as usize].load;
        self.queue_load(rqs, q, time).abs_diff(known) > known / 64
    }

    /// The load of a group's queue, as a whole number.
    fn queue_load(&self, rqs: &Runqueues, q: QueueId, time: Nanos) -> u64 {
        self.queues[q as usize].load.at(self.clock(rqs.cpu_of(q), time)).round() as u64
    }

    /// The load of a group's queue, and the sum over all of its queues with the others as they last reported.
    pub(in crate::fair) fn group_averages(&self, rqs: &Runqueues, q: QueueId, time: Nanos) -> (u64, u64) {
        let own = self.queue_load(rqs, q, time);
        (own, self.sums[rqs.group_of(q)] - self.reported[(q - rqs.cpus) as usize].load + own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fair::entity::{EntityId, Queue};
    use crate::fair::groups::Rules;
    use crate::fair::load::{Arithmetic, Load};
    use crate::fair::shares::Shares;
    use crate::fair::timeline::{Arena, Search};
    use schedlab_sim::program::{self, GroupSpec};

    const MS: Nanos = 1_000_000;
    /// The root queue of CPU 0, and the group's queues on CPUs 0 and 1; the group's entity there, and two tasks.
    const ROOT: QueueId = 0;
    const HERE: QueueId = 2;
    const THERE: QueueId = 3;
    const GROUP: EntityId = 0;
    const TASKS: [EntityId; 2] = [2, 3];

    /// A group of weight 1024 and two new tasks on two CPUs.
    fn setup(release: schedlab_base::Release) -> (Runqueues, Pelt) {
        let groups = vec![GroupSpec { path: "/a".into(), shares: 1024, ..GroupSpec::default() }];
        let load = program::Load { groups, ..program::Load::default() };
        let mut rqs = Runqueues::new(2, &load, RULES, &Queue::default(), Arena::new(Search::None));
        rqs.build_groups(Arithmetic::Calc);
        let mut pelt = Pelt::new(release, [1024, 1024].into_iter(), 4, (0, 4 * MS));
        for (p, e) in TASKS.into_iter().enumerate() {
            rqs.grow(p as u32);
            rqs.entities[e as usize].load = Load::with_weight(1024, Arithmetic::Calc).into();
            pelt.init_entity(e, true, MS);
        }
        (rqs, pelt)
    }

    const RULES: Rules = Rules {
        nested: true,
        root_is_group: false,
        idle: true,
        by_user: false,
        by_session: false,
        shares: Shares::ByLoad,
        bandwidth: None,
    };

    fn join(rqs: &mut Runqueues, pelt: &mut Pelt, q: QueueId, e: EntityId, now: Nanos) {
        rqs.set_queue(e, q);
        rqs.entities[e as usize].on_rq = true;
        let load = rqs.entities[e as usize].load;
        rqs.queues[q as usize].load.add(load);
        pelt.enqueue(rqs, q, e, now);
    }

    fn leave(rqs: &mut Runqueues, pelt: &mut Pelt, q: QueueId, e: EntityId, now: Nanos) {
        rqs.entities[e as usize].on_rq = false;
        let load = rqs.entities[e as usize].load;
        rqs.queues[q as usize].load.sub(load);
        pelt.dequeue(rqs, q, e, now);
    }

    #[test]
    fn a_groups_load_comes_and_goes_with_its_tasks() {
        // update_tg_cfs_load(): the entity's load_sum grows by that of the task, here all of it; when the last task has
        // left, load.weight is 0 and so is what is left. Until 4.14 the entity would take a third of a second for each.
        let (mut rqs, mut pelt) = setup(v(6, 12));
        join(&mut rqs, &mut pelt, HERE, TASKS[0], MS);
        join(&mut rqs, &mut pelt, ROOT, GROUP, MS);
        assert!(pelt.load_avg(&rqs, ROOT, MS) > 1023.0, "{}", pelt.load_avg(&rqs, ROOT, MS));
        leave(&mut rqs, &mut pelt, HERE, TASKS[0], 2 * MS);
        leave(&mut rqs, &mut pelt, ROOT, GROUP, 2 * MS);
        pelt.detach(&rqs, HERE, TASKS[0], 2 * MS);
        assert_eq!(pelt.load_avg(&rqs, ROOT, 2 * MS) as u64, 0);
    }

    #[test]
    fn what_is_left_of_a_group_is_estimated_as_if_its_tasks_were_equal() {
        // Both are hogs, so the entity stays fully runnable when one of them leaves.
        let (mut rqs, mut pelt) = setup(v(6, 1));
        join(&mut rqs, &mut pelt, HERE, TASKS[0], MS);
        join(&mut rqs, &mut pelt, ROOT, GROUP, MS);
        join(&mut rqs, &mut pelt, HERE, TASKS[1], MS);
        leave(&mut rqs, &mut pelt, HERE, TASKS[0], 2 * MS);
        pelt.detach(&rqs, HERE, TASKS[0], 2 * MS);
        assert!(pelt.load_avg(&rqs, ROOT, 2 * MS) > 1022.0, "{}", pelt.load_avg(&rqs, ROOT, 2 * MS));
    }

    #[test]
    fn a_queue_reports_what_is_new_by_a_64th_and_from_6_7_on_each_millisecond() {
        for (release, at_once) in [(v(6, 1), true), (v(6, 12), false)] {
            let (mut rqs, mut pelt) = setup(release);
            join(&mut rqs, &mut pelt, HERE, TASKS[0], MS);
            join(&mut rqs, &mut pelt, THERE, TASKS[1], MS);
            assert_eq!(pelt.group_averages(&rqs, HERE, MS), (1024, 2048));
            // It is asleep and leaves. Nothing is reported before the queue is updated.
            leave(&mut rqs, &mut pelt, THERE, TASKS[1], MS + 1000);
            pelt.detach(&rqs, THERE, TASKS[1], MS + 1000);
            assert_eq!(pelt.group_averages(&rqs, HERE, MS + 1000), (1024, 2048));
            assert_eq!(pelt.report(&rqs, THERE, MS + 2000), at_once, "{release:?}");
            assert_eq!(pelt.report_all(&rqs, 1, 3 * MS), if at_once { vec![] } else { vec![THERE] });
            assert_eq!(pelt.group_averages(&rqs, HERE, 3 * MS), (1024, 1024));
            // A hog that slept for 0.4 ms has lost less than a 64th.
            leave(&mut rqs, &mut pelt, HERE, TASKS[0], 3 * MS);
            assert!(!pelt.report(&rqs, HERE, 3 * MS + 400_000) && pelt.report(&rqs, HERE, 6 * MS));
        }
    }
}

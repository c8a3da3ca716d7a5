//! Which tasks are moved: `can_migrate_task`, and `detach_tasks` (`move_tasks`, `balance_tasks`).

use super::backports::{MASKED_DESTINATION, RELAXED_UTIL};
use super::load_balance::{Env, Unit, Work};
use super::queues::{End, Queues};
use crate::balance::domains::Flags;
use crate::balance::numa::locality::Locality;
use crate::balance::rounds::Idleness;
use schedlab_base::{v, v2_6};
use schedlab_sim::program::Policy;
use schedlab_sim::{Choice, Decision, TaskId};

/// Tasks with less load are not worth a migration (`LB_MIN`).
const LEAST_LOAD: i64 = 16;

impl<Q: Queues> Work<'_, Q> {
    /// The end of a CPU's task list from which balancing looks: 93824900a2e2, "sched/fair: Search a task from the tail
    /// of the queue".
    pub fn end(&self) -> End {
        if self.b.rules.release() >= v(4, 15) { End::Tail } else { End::Head }
    }

    /// Moves tasks from `src` to `dst` until the imbalance is gone or all tasks have been looked at. Returns how many
    /// moved.
    pub fn detach_tasks(&mut self, env: &mut Env) -> u32 {
        self.q.account(self.cx, env.src);
        self.q.account(self.cx, env.dst);
        if self.b.rules.moves_by_queue() {
            return self.move_by_queue(env);
        }
        let release = self.b.rules.release();
        // acb4decc1e90, "sched/fair: Reduce long-tail newly idle balance cost".
        if release >= v(5, 13) && self.q.nr_running(env.src) <= 1 {
            env.all_pinned = false;
            return 0;
        }
        let end = self.end();
        let mut moving = std::mem::take(&mut self.b.scratch.moving);
        let mut list = std::mem::take(&mut self.b.scratch.list);
        self.q.list(env.src, end, &mut list);
        for &p in &list {
            // From 4.3 on an idle CPU does not take the last task.
            let greedy = release >= v(4, 3) && env.idle != Idleness::Busy && self.q.nr_running(env.src) <= 1;
            if env.imbalance <= 0 || greedy {
                break;
            }
            env.looked += 1;
            if env.looked > env.most {
                break;
            }
            let before = env.imbalance;
            if !self.can_move(p, env) || !self.fits_imbalance(p, env) {
                self.q.pass_over(env.src, p, end);
                continue;
            }
            self.explain_move(p, env, before);
            self.q.detach(self.cx, p, env.src, env.dst);
            moving.push(p);
            if env.idle == Idleness::Newly && self.b.rules.one_when_newly_idle() {
                break;
            }
        }
        let moved = moving.len() as u32;
        // Until 3.17 each task was attached at once. Since then they are attached in reverse order of detaching.
        if release >= v(3, 18) {
            moving.reverse();
        }
        moving.iter().for_each(|p| self.q.attach(self.cx, *p, env.dst));
        moving.clear();
        (self.b.scratch.moving, self.b.scratch.list) = (moving, list);
        moved
    }

    /// Whether a task fits in the remaining imbalance. If it does, its share is subtracted from the imbalance.
    fn fits_imbalance(&mut self, p: TaskId, env: &mut Env) -> bool {
        let release = self.b.rules.release();
        let (much, shift) = match env.unit {
            // The load is at least 1 from 5.8 on, and in the stable trees of 5.4 and 5.7.
            Unit::Load => {
                (self.q.task_load(p, self.cx.now()).max(u64::from(release >= v(5, 8))) as i64, self.load_shift(env))
            }
            Unit::Util => {
                let relaxed = RELAXED_UTIL.is_in(release);
                (self.q.task_util(p, self.cx.now()) as i64, if relaxed { self.failed(env).min(63) } else { 0 })
            }
            Unit::Tasks => {
                env.imbalance -= 1;
                return true;
            }
            Unit::Misfit => {
                let small = self.fits(p, env.src);
                env.imbalance = if small { env.imbalance } else { 0 };
                return !small;
            }
        };
        if self.b.rules.features.lb_min && env.unit == Unit::Load && much < LEAST_LOAD && self.failed(env) == 0 {
            return false;
        }
        let fits = much >> shift <= env.imbalance;
        env.imbalance -= if fits { much } else { 0 };
        fits
    }

    /// How many times a task's load is halved before it is compared with the imbalance. Until 5.9 it is halved once;
    /// from 5.5 to 5.9 every load fits after too many failures. From 5.10 on it is halved once per failure
    /// (5a7f55590467, "sched/fair: Relax constraint on task's load during load balance").
    fn load_shift(&self, env: &Env) -> u32 {
        let (release, failed) = (self.b.rules.release(), self.failed(env));
        let tries = || self.b.domains.params(self.b.domain(env.cpu, env.level)).cache_nice_tries;
        if release >= v(5, 10) {
            failed.min(63)
        } else if release >= v(5, 5) && failed > tries() {
            63
        } else {
            1
        }
    }

    /// How many times in a row balancing this domain has failed (`nr_balance_failed`).
    pub fn failed(&self, env: &Env) -> u32 {
        self.b.of_domain[self.b.domains.index(env.cpu, env.level)].round.failed
    }

    /// Whether a task may be migrated (`can_migrate_task`).
    pub fn can_move(&self, p: TaskId, env: &mut Env) -> bool {
        let release = self.b.rules.release();
        // "sched/fair: Do not try to migrate delayed dequeue task" (6.14). Active balancing asks for load.
        let delayed_stay = release >= v(6, 14) && env.unit != Unit::Load && !env.active;
        if delayed_stay && self.q.is_delayed(p) || self.q.throttled_on(p, env.src, env.dst) {
            return false;
        }
        // "sched/core: Prioritize migrating eligible tasks in sched_balance_rq()" (6.14).
        if release >= v(6, 14) && self.failed(env) == 0 && self.q.owes_on(p, env.dst) {
            return false;
        }
        let task = self.cx.task(p);
        if !task.allowed.contains(env.dst) {
            env.some_pinned = true;
            // The change came somewhere between 3.1 and 3.6.
            let asks = env.idle != Idleness::Newly && !env.active && release >= v(3, 6);
            if asks && env.other_dst.is_none() {
                let group = self.b.domains.group(self.b.domains.local(self.b.domain(env.cpu, env.level)));
                let ours = self.span(if MASKED_DESTINATION.is_in(release) { group.mask } else { group.span });
                env.other_dst = ours.iter().copied().find(|cpu| self.counts(*cpu) && task.allowed.contains(*cpu));
            }
            return false;
        }
        env.all_pinned = false;
        if !env.active && self.cx.curr(env.src) == Some(p) {
            return false;
        }
        // 23fb06d9602b, "sched/fair: Clean up active balance nr_balance_failed trickery".
        if env.active && release >= v(5, 13) {
            return true;
        }
        let tries = self.b.domains.params(self.b.domain(env.cpu, env.level)).cache_nice_tries;
        self.failed(env) > tries || !self.resists(p, env)
    }

    /// Whether a task should stay because of its NUMA locality, or otherwise because it is cache-hot.
    fn resists(&self, p: TaskId, env: &Env) -> bool {
        let across = self.b.domain(env.cpu, env.level).flags.has(Flags::NUMA);
        let idle = env.idle == Idleness::Idle;
        match if across { self.q.locality(p, env.src, env.dst, idle) } else { Locality::Equal } {
            Locality::Better => false,
            Locality::Worse => true,
            Locality::Equal => self.is_hot(p, env),
        }
    }

    /// Whether a task is cache-hot (`task_hot`).
    fn is_hot(&self, p: TaskId, env: &Env) -> bool {
        let release = self.b.rules.release();
        // ef8002f68482, "sched: Do not consider SCHED_IDLE tasks to be cache hot".
        if release >= v2_6(37) && self.cx.task(p).attributes.policy == Policy::Idle {
            return false;
        }
        // ec73240b1627, "sched/fair: Ignore cache hotness for SMT migration".
        if release >= v(5, 10) && self.b.domain(env.cpu, env.level).flags.has(Flags::SHARE_CPUCAPACITY) {
            return false;
        }
        // From "sched: Strengthen buddies and mitigate buddy induced latencies". Until 3.16 the kernel checked the
        // balancing CPU's runqueue and not the destination's.
        let buddies_stay = release >= v2_6(32) && self.b.rules.features.cache_hot_buddy;
        if buddies_stay && self.q.nr_running(env.dst) > 0 && self.q.is_buddy(p) {
            return true;
        }
        match self.b.rules.migration_cost {
            -1 => true,
            0 => false,
            cost => (self.cx.now().wrapping_sub(self.q.last_account(p)) as i64) < cost,
        }
    }

    /// Moves tasks queue by queue, each queue by its part of the load (until 3.1).
    fn move_by_queue(&mut self, env: &mut Env) -> u32 {
        if env.imbalance <= 0 {
            return 0;
        }
        let old = self.b.rules.equal_parts();
        let mut list = std::mem::take(&mut self.b.scratch.list);
        let mut lengths = std::mem::take(&mut self.b.scratch.lengths);
        self.q.list_by_queue(env.src, &mut list, &mut lengths);
        // The loads are computed once, before anything moves (update_h_load).
        let mut loads = std::mem::take(&mut self.b.scratch.loads);
        loads.clear();
        if !old {
            let firsts = lengths.iter().scan(0, |at, length| Some(std::mem::replace(at, *at + *length as usize)));
            // Without groups `update_h_load` of 2.6.32 returns at once, so that even the root has the 0 it began with.
            let weighs = self.b.rules.features.weighs_ungrouped || self.q.has_groups();
            let load = |first: usize| list.get(first).map_or(0, |p| if weighs { self.q.queue_load(*p) } else { 0 });
            loads.extend(firsts.map(load));
        }
        let (mut from, mut moved) = (0, 0);
        let before = env.imbalance;
        for (i, &length) in lengths.iter().enumerate() {
            let queue = &list[from..from + length as usize];
            from += length as usize;
            moved += self.move_of_queue(queue, loads.get(i).copied(), env);
            if env.imbalance < i64::from(old) {
                break;
            }
        }
        (self.b.scratch.list, self.b.scratch.lengths, self.b.scratch.loads) = (list, lengths, loads);
        // Only load counts. The tasks of a group whose shares have not been distributed yet have none; where no task
        // has any, a pass moves as many as it may and counts as failed.
        if env.imbalance < before { moved } else { 0 }
    }

    /// Moves tasks of one queue (`balance_tasks`), for the part of the imbalance that `load_balance_fair` assigns to
    /// it. `load` is the load of the queue in its CPU's root (`h_load`); in 2.6.24 there is none.
    fn move_of_queue(&mut self, queue: &[TaskId], load: Option<u64>, env: &mut Env) -> u32 {
        let Some(first) = queue.first() else { return 0 };
        let (theirs, ours) = self.q.queue_weights(*first, env.dst);
        let old = self.b.rules.equal_parts();
        let load = load.unwrap_or(theirs);
        let limit = if old {
            if theirs <= ours {
                return 0;
            }
            env.imbalance.min(((theirs - ours) / 2) as i64)
        } else {
            (env.imbalance as u64 * theirs / (load + 1)) as i64
        };
        // As in the kernel, the last queue that is looked at decides, regardless of the others.
        env.all_pinned = limit != 0;
        if limit == 0 {
            return 0;
        }
        let mut best_prio = self.q.best_prio(self.cx, *first, env.dst);
        let (mut left, mut moved) = (limit, 0);
        for &p in queue.iter().take(self.b.rules.nr_migrate as usize + 1) {
            let weight = self.q.weight(p) as i64;
            let prio = self.cx.task(p).attributes.prio();
            // 2.6.24 moves a task of any weight if it would have the best priority of its destination queue.
            let heavy = if old { weight / 2 > left + 1024 && prio >= best_prio } else { weight / 2 > left };
            if heavy || !self.can_move(p, env) {
                continue;
            }
            self.explain_move(p, env, left);
            self.q.detach(self.cx, p, env.src, env.dst);
            self.q.attach(self.cx, p, env.dst);
            moved += 1;
            left -= weight;
            if left <= 0 {
                break;
            }
            best_prio = best_prio.min(prio);
        }
        let gone = limit - left;
        env.imbalance -= if old { gone } else { gone * load as i64 / (theirs as i64 + 1) };
        moved
    }

    /// Records why a task is migrated, if decisions are being explained. `imbalance` is what was left before the task
    /// moved.
    pub fn explain_move(&mut self, p: TaskId, env: &Env, imbalance: i64) {
        let (rule, what) = match (env.active, env.unit) {
            (true, _) => ("active balancing: what runs is pushed after moving others failed", "imbalance"),
            (_, Unit::Load) => ("balancing: the busiest CPU of the busiest group gives load", "imbalance of load"),
            (_, Unit::Util) => ("balancing: the busiest group gives what the own has room for", "room"),
            (_, Unit::Tasks) => ("balancing: tasks are spread over the groups", "tasks too many"),
            (_, Unit::Misfit) => ("balancing: a task too big for its CPU goes to a bigger one", "tasks too big"),
        };
        let (q, level, now) = (&*self.q, env.level, self.cx.now());
        let failed = self.b.of_domain[self.b.domains.index(env.cpu, level)].round.failed;
        self.cx.explain(|_| Decision {
            time: 0,
            cpu: env.dst,
            choice: Choice::Move,
            who: Some(p),
            over: Vec::new(),
            rule,
            numbers: vec![
                (Some(p), "load", q.task_load(p, now) as i64),
                (None, what, imbalance),
                (None, "from CPU", env.src.into()),
                (None, "domain level", level as i64),
                (None, "failures", failed.into()),
            ],
        });
    }
}

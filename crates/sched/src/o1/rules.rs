//! The arithmetic: slices from nice levels, bonuses from sleep averages, weights from slices.

use super::array::MAX_PRIO;
use super::release::{Balancing, Release, Sleep};
use super::state::{Habit, Task};
use schedlab_base::Nanos;

/// The priority of nice -20, the best that an ordinary task can have.
pub const MAX_RT_PRIO: u8 = 100;
/// The number of nice levels.
const USER_PRIOS: usize = (MAX_PRIO - MAX_RT_PRIO) as usize;
/// That of nice 0, counted from the best.
const NICE_0: usize = 20;
/// The load of one task of nice 0 in the balancer's eyes (`SCHED_LOAD_SCALE`).
const LOAD_SCALE: u64 = 128;
const MS: Nanos = 1_000_000;

/// The constants at the head of kernel/sched.c. Times are in milliseconds, which are ticks where HZ is 1000;
/// they are rounded down to whole ticks, to one at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// `MIN_TIMESLICE`.
    pub min_timeslice: u64,
    /// `DEF_TIMESLICE`: the slice at nice 0. Kept between the least and the greatest slice. With linear slices it
    /// follows from those two, and this counts for nothing.
    pub def_timeslice: u64,
    /// `MAX_TIMESLICE`: no slice is longer; 0: no such bound (as released from 2.6.11 on).
    pub max_timeslice: u64,
    /// `PRIO_BONUS_RATIO`: the part of the nice levels' range that sleepers can win, in percent.
    pub prio_bonus_ratio: u64,
    /// `MAX_SLEEP_AVG`: the most sleep that counts.
    pub max_sleep_avg: u64,
    /// `STARVATION_LIMIT`: how long expired tasks bear interactive ones, for each task; 0: for ever.
    pub starvation_limit: u64,
    /// `GRANULARITY`: how often interactive tasks of one priority take turns, at the best bonus.
    /// 2.6.0 took `MIN_TIMESLICE` for it.
    pub granularity: u64,
    /// `INTERACTIVE_DELTA`: the bonus from which a task of nice 0 is interactive.
    pub interactive_delta: u64,
    /// `CHILD_PENALTY`: what a child inherits of its parent's bonus, in percent.
    pub child_penalty: u64,
    /// `PARENT_PENALTY`: what the parent keeps of its own, in percent.
    pub parent_penalty: u64,
    /// `EXIT_WEIGHT`: the weight of the parent's sleep average against that 1 of a child that ends.
    pub exit_weight: u64,
    /// `ON_RUNQUEUE_WEIGHT`: how much of its wait counts as sleep for a task that another task woke, in percent.
    pub on_runqueue_weight: u64,
    /// `CREDIT_LIMIT`: the interactive credit beyond which a bonus is lasting, or as far below 0, is kept small.
    pub credit_limit: u64,
    /// `cache_decay_ticks`: who ran or was queued no longer ago than that is moved to idle CPUs only; 2.6.0 reckons it
    /// from the size of the cache when it boots. In ticks.
    pub cache_decay_ticks: u64,
    /// `migration_cost`: who left its CPU no longer ago than that is not moved between caches of a node, in us; 2.6.18
    /// measures it when it boots.
    pub migration_cost_us: u64,
}

/// The tunables worked out for a tick and a number of CPUs.
#[derive(Clone, Debug)]
pub struct Rules {
    release: Release,
    tunables: Tunables,
    tick: Nanos,
    cpus: u64,
    granularity: u64,
    credit_limit: i32,
    /// The slice of nice 0, in ticks.
    def_timeslice: u64,
    max_bonus: u64,
    /// In ticks.
    max_sleep_avg: u64,
    /// In ticks.
    starvation_limit: u64,
    /// What a task that slept long is set to.
    long_sleeper: Nanos,
    levels: [Level; USER_PRIOS],
}

/// What follows from a nice level alone.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// In ticks.
    timeslice: u32,
    /// The bonus from which a task is interactive (`DELTA`).
    delta: i64,
    /// The sleep from which a task is held to be idle (`INTERACTIVE_SLEEP`).
    interactive_sleep: Nanos,
    /// What an ordinary task of it adds to its CPU's load.
    weight: u64,
}

/// The slices of all nice levels, in ticks (`task_timeslice`).
fn slices(release: Release, tunables: &Tunables, ticks: impl Fn(u64) -> u64) -> [u64; USER_PRIOS] {
    let min = ticks(tunables.min_timeslice);
    let max = if tunables.max_timeslice == 0 { u64::MAX } else { ticks(tunables.max_timeslice) };
    if release.linear_slices {
        let last = USER_PRIOS as i64 - 1;
        return std::array::from_fn(|user| {
            let above = (max.min(i64::MAX as u64 / 40) as i64 - min as i64) * (last - user as i64) / last;
            (min as i64 + above).max(1) as u64
        });
    }
    let def = ticks(tunables.def_timeslice).max(min).min(max);
    std::array::from_fn(|user| {
        let full = if user < NICE_0 { def * 4 } else { def };
        (full * (USER_PRIOS - user) as u64 / 20).max(min).min(max)
    })
}

impl Rules {
    /// The rules of a release for this tick on so many CPUs.
    #[must_use]
    pub fn new(release: Release, tunables: Tunables, tick: Nanos, cpus: usize) -> Self {
        let ticks = |ms: u64| (ms * MS / tick).max(1);
        let slices = slices(release, &tunables, ticks);
        let def_timeslice = slices[NICE_0];
        let max_bonus = USER_PRIOS as u64 * tunables.prio_bonus_ratio / 100;
        let max_sleep_avg = ticks(tunables.max_sleep_avg);
        let levels = std::array::from_fn(|user| {
            let (from, zero) = if release.delta_rounds_down { (0, 20) } else { (-20, 0) };
            let scaled = |levels: i64| levels * max_bonus as i64 / 40;
            let delta = scaled(user as i64 + from) - scaled(zero) + tunables.interactive_delta as i64;
            let sleep = max_sleep_avg as i64 * (max_bonus as i64 / 2 + delta + 1) / (max_bonus as i64).max(1) - 1;
            // Negative where nothing is left of it; the kernel's unsigned comparison makes that "never".
            let interactive_sleep = if sleep < 0 { Nanos::MAX } else { sleep as u64 * tick };
            let weight = if release.balancing == Balancing::ByWeight {
                slices[user] * LOAD_SCALE / def_timeslice
            } else {
                LOAD_SCALE
            };
            Level { timeslice: slices[user] as u32, delta, interactive_sleep, weight }
        });
        Self {
            release,
            tunables,
            tick,
            cpus: cpus as u64,
            granularity: ticks(tunables.granularity),
            credit_limit: tunables.credit_limit as i32,
            def_timeslice,
            max_bonus,
            max_sleep_avg,
            starvation_limit: if tunables.starvation_limit == 0 { 0 } else { ticks(tunables.starvation_limit) },
            long_sleeper: max_sleep_avg.saturating_sub(def_timeslice) * tick,
            levels,
        }
    }

    fn level(&self, static_prio: u8) -> &Level {
        &self.levels[(static_prio - MAX_RT_PRIO) as usize]
    }

    /// What differs from release to release.
    #[must_use]
    pub fn release(&self) -> &Release {
        &self.release
    }

    /// A whole slice, in ticks (`task_timeslice`).
    #[must_use]
    pub fn timeslice(&self, static_prio: u8) -> u32 {
        self.level(static_prio).timeslice
    }

    /// The most that a parent can have after a child's slice came back, in ticks.
    #[must_use]
    pub fn most_returned(&self, child_static_prio: u8) -> u32 {
        self.timeslice(if self.release.linear_slices { MAX_RT_PRIO } else { child_static_prio })
    }

    /// What a task adds to the load of its CPU (`load_weight`).
    #[must_use]
    pub fn weight(&self, t: &Task) -> u64 {
        if self.release.balancing == Balancing::ByWeight && t.is_real_time() {
            self.level(MAX_RT_PRIO).weight + u64::from(MAX_RT_PRIO - 1 - t.prio) * LOAD_SCALE / self.def_timeslice
        } else {
            self.level(t.static_prio).weight
        }
    }

    /// How long after it ran a task's cache is warm in 2.6.0 (`cache_decay_ticks`).
    #[must_use]
    pub fn cache_decay(&self) -> Nanos {
        self.tunables.cache_decay_ticks * self.tick
    }

    /// How long after it ran a task's cache is warm in 2.6.18, between the caches of one node.
    #[must_use]
    pub fn migration_cost(&self) -> Nanos {
        self.tunables.migration_cost_us * 1_000
    }

    /// So many CPUs are online now.
    pub fn set_cpus(&mut self, online: u32) {
        self.cpus = online.into();
    }

    /// The greatest sleep average (`NS_MAX_SLEEP_AVG`).
    #[must_use]
    pub fn most_sleep(&self) -> Nanos {
        self.max_sleep_avg * self.tick
    }

    /// 0 for a task that never sleeps to the greatest bonus (`CURRENT_BONUS`).
    #[must_use]
    pub fn bonus(&self, sleep_avg: Nanos) -> u64 {
        sleep_avg / self.tick * self.max_bonus / self.max_sleep_avg
    }

    /// How many levels better than its nice level a task is by its sleep average; below 0, worse.
    #[must_use]
    pub fn levels_won(&self, sleep_avg: Nanos) -> i64 {
        self.bonus(sleep_avg) as i64 - self.max_bonus as i64 / 2
    }

    /// The priority that an ordinary task has by its nice level and its bonus (`effective_prio`).
    #[must_use]
    pub fn effective_prio(&self, static_prio: u8, sleep_avg: Nanos) -> u8 {
        (i64::from(static_prio) - self.levels_won(sleep_avg)).clamp(i64::from(MAX_RT_PRIO), i64::from(MAX_PRIO) - 1)
            as u8
    }

    /// Whether a task goes on in the active array when its slice is used up (`TASK_INTERACTIVE`).
    #[must_use]
    pub fn interactive(&self, static_prio: u8, prio: u8) -> bool {
        i64::from(prio) <= i64::from(static_prio) - self.level(static_prio).delta
    }

    /// How many levels a task must have won to be interactive (`DELTA`).
    #[must_use]
    pub fn interactive_from(&self, static_prio: u8) -> i64 {
        self.level(static_prio).delta
    }

    /// After how many ticks an interactive task goes behind its equals (`TIMESLICE_GRANULARITY`).
    #[must_use]
    pub fn granularity(&self, sleep_avg: Nanos) -> u32 {
        let steps = self.max_bonus.saturating_sub(self.bonus(sleep_avg)).max(1) - 1;
        let ticks = self.granularity.saturating_mul(1 << steps).saturating_mul(self.cpus);
        u32::try_from(ticks).unwrap_or(u32::MAX)
    }

    /// The habit of a task that slept for `slept` (`recalc_task_prio`).
    #[must_use]
    pub fn after_sleep(&self, static_prio: u8, habit: Habit, slept: Nanos) -> Habit {
        match self.release.sleep {
            _ if slept == 0 => habit,
            Sleep::Plain => self.after_plain_sleep(static_prio, habit, slept),
            Sleep::Credited | Sleep::Multiplied => self.after_weighed_sleep(static_prio, habit, slept),
        }
    }

    /// The less a task slept before, the more its sleep counts.
    fn after_weighed_sleep(&self, static_prio: u8, habit: Habit, slept: Nanos) -> Habit {
        let Habit { sleep_avg, credit, aloof } = habit;
        let slept = slept.min(self.most_sleep());
        let idle = self.level(static_prio).interactive_sleep;
        let earned =
            if self.release.sleep == Sleep::Credited && !self.high_credit(credit) { credit + 1 } else { credit };
        if !aloof && slept > idle {
            return Habit { sleep_avg: self.long_sleeper, credit: earned, aloof };
        }
        let mut gain = slept * self.max_bonus.saturating_sub(self.bonus(sleep_avg)).max(1);
        if credit < -self.credit_limit {
            gain = gain.min(u64::from(self.timeslice(static_prio)) * self.tick);
        }
        let risen = self.risen(sleep_avg, gain, idle, aloof && !self.high_credit(credit));
        let credit = if risen > self.most_sleep() { earned } else { credit };
        Habit { sleep_avg: risen.min(self.most_sleep()), credit, aloof }
    }

    /// Sleep counts as long as it was, and one long sleep leads no further than to just interactive.
    fn after_plain_sleep(&self, static_prio: u8, habit: Habit, slept: Nanos) -> Habit {
        let Habit { sleep_avg, credit, aloof } = habit;
        let ceiling = self.level(static_prio).interactive_sleep;
        let at_once = slept > ceiling && sleep_avg < ceiling;
        let risen = if at_once { ceiling } else { self.risen(sleep_avg, slept, ceiling, aloof) };
        Habit { sleep_avg: risen.min(self.most_sleep()), credit, aloof: aloof || at_once }
    }

    /// Who is held back (it waited for a device) rises no further than to just interactive.
    fn risen(&self, sleep_avg: Nanos, gain: Nanos, just_interactive: Nanos, held_back: bool) -> Nanos {
        match held_back {
            true if sleep_avg >= just_interactive => sleep_avg,
            true => (sleep_avg + gain).min(just_interactive),
            false => sleep_avg + gain,
        }
    }

    fn high_credit(&self, credit: i32) -> bool {
        credit > self.credit_limit
    }

    /// What is taken off the sleep average for running so long: the less, the higher it is; in 2.6.0 only for who has
    /// the credit for it.
    #[must_use]
    pub fn run_charge(&self, habit: Habit, ran: Nanos) -> Nanos {
        let lasting = self.release.sleep != Sleep::Credited || self.high_credit(habit.credit);
        ran.min(self.most_sleep()) / if lasting { self.bonus(habit.sleep_avg).max(1) } else { 1 }
    }

    /// The habit of a task that is charged so much; who has no bonus left loses credit.
    #[must_use]
    pub fn after_run(&self, habit: Habit, charge: Nanos) -> Habit {
        let sleep_avg = habit.sleep_avg.saturating_sub(charge);
        let middling = habit.credit.abs() <= self.credit_limit;
        let owes = self.release.sleep == Sleep::Credited && sleep_avg == 0 && middling;
        Habit { sleep_avg, credit: habit.credit - i32::from(owes), ..habit }
    }

    /// The part of its wait that counts as sleep for a task that another task woke.
    #[must_use]
    pub fn weighted_wait(&self, waited: Nanos) -> Nanos {
        waited.saturating_mul(self.tunables.on_runqueue_weight * 128 / 100) / 128
    }

    /// The sleep averages of a child and of its parent after the fork (`wake_up_new_task`).
    #[must_use]
    pub fn after_fork(&self, parent: Nanos) -> (Nanos, Nanos) {
        let keep =
            |percent: u64| self.bonus(parent) * percent / 100 * self.max_sleep_avg / self.max_bonus.max(1) * self.tick;
        (keep(self.tunables.child_penalty), keep(self.tunables.parent_penalty))
    }

    /// The sleep average of a parent after its child ended (`sched_exit`).
    #[must_use]
    pub fn after_exit(&self, parent: Nanos, child: Nanos) -> Nanos {
        let weight = self.tunables.exit_weight;
        if child < parent { parent / (weight + 1) * weight + child / (weight + 1) } else { parent }
    }

    /// How long so many tasks bear that interactive ones go on, in ticks.
    #[must_use]
    pub fn starvation_after(&self, nr_running: u32) -> u64 {
        self.starvation_limit * u64::from(nr_running)
    }

    /// Whether expired tasks have waited too long since the first of them expired, `since` in ticks; 0: none has.
    #[must_use]
    pub fn starving(&self, since: u64, jiffies: u64, nr_running: u32) -> bool {
        self.starvation_limit != 0 && since != 0 && jiffies - since > self.starvation_after(nr_running)
    }
}

#[cfg(test)]
mod tests;

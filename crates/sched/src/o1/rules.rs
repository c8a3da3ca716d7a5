//! The arithmetic: slices from nice levels, bonuses from sleep averages, weights from slices.

use super::array::MAX_PRIO;
use super::release::{Balancing, Release, Sleep};
use super::state::{Habit, Task};
use schedlab_base::Nanos;

/// The priority of nice -20, the best that an ordinary task can have.
pub const MAX_RT_PRIO: u8 = 100;
/// The number of nice levels.
const USER_PRIOS: usize = (MAX_PRIO - MAX_RT_PRIO) as usize;
/// The index of nice 0, counted from nice -20.
const NICE_0: usize = 20;
/// The load of one task at nice 0 in load balancing (`SCHED_LOAD_SCALE`).
const LOAD_SCALE: u64 = 128;
const MS: Nanos = 1_000_000;

/// The constants at the head of kernel/sched.c. Times are in milliseconds, which are ticks at HZ 1000. They are rounded
/// down to whole ticks, but to at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// `MIN_TIMESLICE`.
    pub min_timeslice: u64,
    /// `DEF_TIMESLICE`: the slice at nice 0, clamped to the shortest and longest slice. With linear slices it follows
    /// from those two, and this value is ignored.
    pub def_timeslice: u64,
    /// `MAX_TIMESLICE`: the longest slice; 0 means no limit (as released from 2.6.11 on).
    pub max_timeslice: u64,
    /// `PRIO_BONUS_RATIO`: how much of the range of nice levels sleepers can gain, in percent.
    pub prio_bonus_ratio: u64,
    /// `MAX_SLEEP_AVG`: the greatest sleep average.
    pub max_sleep_avg: u64,
    /// `STARVATION_LIMIT`: how long, for each runnable task, expired tasks wait for interactive ones; 0 means no limit.
    pub starvation_limit: u64,
    /// `GRANULARITY`: how often interactive tasks of one priority take turns at the best bonus. 2.6.0 used
    /// `MIN_TIMESLICE` here.
    pub granularity: u64,
    /// `INTERACTIVE_DELTA`: the bonus from which a task of nice 0 is interactive.
    pub interactive_delta: u64,
    /// `CHILD_PENALTY`: how much of its parent's bonus a child inherits, in percent.
    pub child_penalty: u64,
    /// `PARENT_PENALTY`: how much of its own bonus the parent keeps, in percent.
    pub parent_penalty: u64,
    /// `EXIT_WEIGHT`: the weight of the parent's sleep average, where that of an exiting child has weight 1.
    pub exit_weight: u64,
    /// `ON_RUNQUEUE_WEIGHT`: how much of its wait counts as sleep for a task woken by another task, in percent.
    pub on_runqueue_weight: u64,
    /// `CREDIT_LIMIT`: the interactive credit above which a bonus is lasting; below minus this, the bonus stays small.
    pub credit_limit: u64,
    /// `cache_decay_ticks`: a task that ran or was queued within this time is moved to idle CPUs only, in ticks. 2.6.0
    /// computes it at boot from the cache size.
    pub cache_decay_ticks: u64,
    /// `migration_cost`: a task that left its CPU within this time is not moved between caches of a node, in us. 2.6.18
    /// measures it at boot.
    pub migration_cost_us: u64,
}

/// The tunables converted for a tick and a number of CPUs.
#[derive(Clone, Debug)]
pub struct Rules {
    release: Release,
    tunables: Tunables,
    tick: Nanos,
    cpus: u64,
    granularity: u64,
    credit_limit: i32,
    /// The slice at nice 0, in ticks.
    def_timeslice: u64,
    max_bonus: u64,
    /// In ticks.
    max_sleep_avg: u64,
    /// In ticks.
    starvation_limit: u64,
    /// The sleep average that a task gets after a long sleep.
    long_sleeper: Nanos,
    levels: [Level; USER_PRIOS],
}

/// What follows from a nice level alone.
#[derive(Clone, Copy, Debug, Default)]
struct Level {
    /// The slice, in ticks.
    timeslice: u32,
    /// The bonus from which a task is interactive (`DELTA`).
    delta: i64,
    /// The sleep above which a task counts as idle (`INTERACTIVE_SLEEP`).
    interactive_sleep: Nanos,
    /// The load that an ordinary task adds to its CPU.
    weight: u64,
}

/// Returns the slices of all nice levels, in ticks (`task_timeslice`).
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
    /// Creates the rules of a release for this tick and number of CPUs.
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
            // A negative value means that nothing is left of it; the kernel's unsigned comparison turns it into
            // "never".
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

    /// Returns the rules that differ between the releases.
    #[must_use]
    pub fn release(&self) -> &Release {
        &self.release
    }

    /// Returns a whole slice, in ticks (`task_timeslice`).
    #[must_use]
    pub fn timeslice(&self, static_prio: u8) -> u32 {
        self.level(static_prio).timeslice
    }

    /// Returns the limit of a parent's slice when the rest of a child's slice returns to it, in ticks.
    #[must_use]
    pub fn most_returned(&self, child_static_prio: u8) -> u32 {
        self.timeslice(if self.release.linear_slices { MAX_RT_PRIO } else { child_static_prio })
    }

    /// Returns the load that a task adds to its CPU (`load_weight`).
    #[must_use]
    pub fn weight(&self, t: &Task) -> u64 {
        if self.release.balancing == Balancing::ByWeight && t.is_real_time() {
            self.level(MAX_RT_PRIO).weight + u64::from(MAX_RT_PRIO - 1 - t.prio) * LOAD_SCALE / self.def_timeslice
        } else {
            self.level(t.static_prio).weight
        }
    }

    /// Returns how long a task's cache stays warm in 2.6.0 (`cache_decay_ticks`).
    #[must_use]
    pub fn cache_decay(&self) -> Nanos {
        self.tunables.cache_decay_ticks * self.tick
    }

    /// Returns how long a task's cache stays warm in 2.6.18, between the caches of one node.
    #[must_use]
    pub fn migration_cost(&self) -> Nanos {
        self.tunables.migration_cost_us * 1_000
    }

    /// Sets the number of online CPUs.
    pub fn set_cpus(&mut self, online: u32) {
        self.cpus = online.into();
    }

    /// Returns the greatest sleep average (`NS_MAX_SLEEP_AVG`).
    #[must_use]
    pub fn most_sleep(&self) -> Nanos {
        self.max_sleep_avg * self.tick
    }

    /// Returns the bonus: from 0 for a task that never sleeps to the greatest bonus (`CURRENT_BONUS`).
    #[must_use]
    pub fn bonus(&self, sleep_avg: Nanos) -> u64 {
        sleep_avg / self.tick * self.max_bonus / self.max_sleep_avg
    }

    /// Returns by how many levels the sleep average makes a task better than its nice level; negative if worse.
    #[must_use]
    pub fn levels_won(&self, sleep_avg: Nanos) -> i64 {
        self.bonus(sleep_avg) as i64 - self.max_bonus as i64 / 2
    }

    /// Returns the priority of an ordinary task, from its nice level and its bonus (`effective_prio`).
    #[must_use]
    pub fn effective_prio(&self, static_prio: u8, sleep_avg: Nanos) -> u8 {
        (i64::from(static_prio) - self.levels_won(sleep_avg)).clamp(i64::from(MAX_RT_PRIO), i64::from(MAX_PRIO) - 1)
            as u8
    }

    /// Returns whether a task stays in the active array when its slice is used up (`TASK_INTERACTIVE`).
    #[must_use]
    pub fn interactive(&self, static_prio: u8, prio: u8) -> bool {
        i64::from(prio) <= i64::from(static_prio) - self.level(static_prio).delta
    }

    /// Returns how many levels a task must have gained to be interactive (`DELTA`).
    #[must_use]
    pub fn interactive_from(&self, static_prio: u8) -> i64 {
        self.level(static_prio).delta
    }

    /// Returns after how many ticks an interactive task goes behind its equals (`TIMESLICE_GRANULARITY`).
    #[must_use]
    pub fn granularity(&self, sleep_avg: Nanos) -> u32 {
        let steps = self.max_bonus.saturating_sub(self.bonus(sleep_avg)).max(1) - 1;
        let ticks = self.granularity.saturating_mul(1 << steps).saturating_mul(self.cpus);
        u32::try_from(ticks).unwrap_or(u32::MAX)
    }

    /// Returns the habit of a task after it has slept for `slept` (`recalc_task_prio`).
    #[must_use]
    pub fn after_sleep(&self, static_prio: u8, habit: Habit, slept: Nanos) -> Habit {
        match self.release.sleep {
            _ if slept == 0 => habit,
            Sleep::Plain => self.after_plain_sleep(static_prio, habit, slept),
            Sleep::Credited | Sleep::Multiplied => self.after_weighed_sleep(static_prio, habit, slept),
        }
    }

    /// Counts sleep so that it is worth more if the sleep average is lower.
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

    /// Counts sleep for its real length. A single long sleep makes the task just interactive and no more.
    fn after_plain_sleep(&self, static_prio: u8, habit: Habit, slept: Nanos) -> Habit {
        let Habit { sleep_avg, credit, aloof } = habit;
        let ceiling = self.level(static_prio).interactive_sleep;
        let at_once = slept > ceiling && sleep_avg < ceiling;
        let risen = if at_once { ceiling } else { self.risen(sleep_avg, slept, ceiling, aloof) };
        Habit { sleep_avg: risen.min(self.most_sleep()), credit, aloof: aloof || at_once }
    }

    /// Raises the sleep average. A task that is held back because it waited for a device becomes just interactive at
    /// most.
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

    /// Returns what is subtracted from the sleep average after running for `ran`: less if the average is higher. In
    /// 2.6.0 this discount requires a high credit.
    #[must_use]
    pub fn run_charge(&self, habit: Habit, ran: Nanos) -> Nanos {
        let lasting = self.release.sleep != Sleep::Credited || self.high_credit(habit.credit);
        ran.min(self.most_sleep()) / if lasting { self.bonus(habit.sleep_avg).max(1) } else { 1 }
    }

    /// Returns the habit after `charge` is subtracted. In 2.6.0 a task whose sleep average reaches 0 loses credit.
    #[must_use]
    pub fn after_run(&self, habit: Habit, charge: Nanos) -> Habit {
        let sleep_avg = habit.sleep_avg.saturating_sub(charge);
        let middling = habit.credit.abs() <= self.credit_limit;
        let owes = self.release.sleep == Sleep::Credited && sleep_avg == 0 && middling;
        Habit { sleep_avg, credit: habit.credit - i32::from(owes), ..habit }
    }

    /// Returns the part of its wait that counts as sleep for a task that another task woke.
    #[must_use]
    pub fn weighted_wait(&self, waited: Nanos) -> Nanos {
        waited.saturating_mul(self.tunables.on_runqueue_weight * 128 / 100) / 128
    }

    /// Returns the sleep averages of a child and of its parent after a fork (`wake_up_new_task`).
    #[must_use]
    pub fn after_fork(&self, parent: Nanos) -> (Nanos, Nanos) {
        let keep =
            |percent: u64| self.bonus(parent) * percent / 100 * self.max_sleep_avg / self.max_bonus.max(1) * self.tick;
        (keep(self.tunables.child_penalty), keep(self.tunables.parent_penalty))
    }

    /// Returns the sleep average of a parent after its child has exited (`sched_exit`).
    #[must_use]
    pub fn after_exit(&self, parent: Nanos, child: Nanos) -> Nanos {
        let weight = self.tunables.exit_weight;
        if child < parent { parent / (weight + 1) * weight + child / (weight + 1) } else { parent }
    }

    /// Returns how long expired tasks wait for interactive ones with this many runnable tasks, in ticks.
    #[must_use]
    pub fn starvation_after(&self, nr_running: u32) -> u64 {
        self.starvation_limit * u64::from(nr_running)
    }

    /// Returns whether expired tasks have waited too long. The first of them expired at `since`, in ticks; 0 means that
    /// none has expired.
    #[must_use]
    pub fn starving(&self, since: u64, jiffies: u64, nr_running: u32) -> bool {
        self.starvation_limit != 0 && since != 0 && jiffies - since > self.starvation_after(nr_running)
    }
}

#[cfg(test)]
mod tests;

//! The arithmetic of 2.6.11: slices from nice levels, bonuses from sleep averages.

use super::array::MAX_PRIO;
use schedlab_base::Nanos;

/// The priority of nice -20, the best that an ordinary task can have.
pub const MAX_RT_PRIO: u8 = 100;
/// The number of nice levels.
const USER_PRIOS: usize = (MAX_PRIO - MAX_RT_PRIO) as usize;
const MS: Nanos = 1_000_000;

/// The constants at the head of kernel/sched.c. Times are in milliseconds, which are ticks where HZ is 1000;
/// they are rounded down to whole ticks, to one at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {
    /// `MIN_TIMESLICE`.
    pub min_timeslice: u64,
    /// `DEF_TIMESLICE`: the slice at nice 0. Kept between the least and the greatest slice.
    pub def_timeslice: u64,
    /// `MAX_TIMESLICE`: no slice is longer; 0: no such bound (as released).
    pub max_timeslice: u64,
    /// `PRIO_BONUS_RATIO`: the part of the nice levels' range that sleepers can win, in percent.
    pub prio_bonus_ratio: u64,
    /// `MAX_SLEEP_AVG`: the most sleep that counts.
    pub max_sleep_avg: u64,
    /// `STARVATION_LIMIT`: how long expired tasks bear interactive ones, for each task; 0: for ever.
    pub starvation_limit: u64,
    /// `GRANULARITY`: how often interactive tasks of one priority take turns, at the best bonus.
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
}

/// The tunables worked out for a tick and a number of CPUs.
#[derive(Clone, Debug)]
pub struct Rules {
    tunables: Tunables,
    tick: Nanos,
    cpus: u64,
    granularity: u64,
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
}

impl Rules {
    /// The rules for this tick on so many CPUs.
    #[must_use]
    pub fn new(tunables: Tunables, tick: Nanos, cpus: usize) -> Self {
        let ticks = |ms: u64| (ms * MS / tick).max(1);
        let max_timeslice = if tunables.max_timeslice == 0 { u64::MAX } else { ticks(tunables.max_timeslice) };
        let min_timeslice = ticks(tunables.min_timeslice);
        let def_timeslice = ticks(tunables.def_timeslice).max(min_timeslice).min(max_timeslice);
        let max_bonus = USER_PRIOS as u64 * tunables.prio_bonus_ratio / 100;
        let max_sleep_avg = ticks(tunables.max_sleep_avg);
        let levels = std::array::from_fn(|user| {
            let (user, nice) = (user as u64, user as i64 - 20);
            let full = if nice < 0 { def_timeslice * 4 } else { def_timeslice };
            let timeslice = (full * (USER_PRIOS as u64 - user) / 20).max(min_timeslice).min(max_timeslice);
            let delta = nice * max_bonus as i64 / 40 + tunables.interactive_delta as i64;
            let sleep = max_sleep_avg as i64 * (max_bonus as i64 / 2 + delta + 1) / (max_bonus as i64).max(1) - 1;
            // Negative where nothing is left of it; the kernel's unsigned comparison makes that "never".
            let interactive_sleep = if sleep < 0 { Nanos::MAX } else { sleep as u64 * tick };
            Level { timeslice: timeslice as u32, delta, interactive_sleep }
        });
        Self {
            tunables,
            tick,
            cpus: cpus as u64,
            granularity: ticks(tunables.granularity),
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

    /// A whole slice, in ticks (`task_timeslice`).
    #[must_use]
    pub fn timeslice(&self, static_prio: u8) -> u32 {
        self.level(static_prio).timeslice
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

    /// The priority that an ordinary task has by its nice level and its bonus (`effective_prio`).
    #[must_use]
    pub fn effective_prio(&self, static_prio: u8, sleep_avg: Nanos) -> u8 {
        let bonus = self.bonus(sleep_avg) as i64 - self.max_bonus as i64 / 2;
        (i64::from(static_prio) - bonus).clamp(i64::from(MAX_RT_PRIO), i64::from(MAX_PRIO) - 1) as u8
    }

    /// Whether a task goes on in the active array when its slice is used up (`TASK_INTERACTIVE`).
    #[must_use]
    pub fn interactive(&self, static_prio: u8, prio: u8) -> bool {
        i64::from(prio) <= i64::from(static_prio) - self.level(static_prio).delta
    }

    /// After how many ticks an interactive task goes behind its equals (`TIMESLICE_GRANULARITY`).
    #[must_use]
    pub fn granularity(&self, sleep_avg: Nanos) -> u32 {
        let steps = self.max_bonus.saturating_sub(self.bonus(sleep_avg)).max(1) - 1;
        let ticks = self.granularity.saturating_mul(1 << steps).saturating_mul(self.cpus);
        u32::try_from(ticks).unwrap_or(u32::MAX)
    }

    /// The sleep average of a task that slept for `slept` (`recalc_task_prio`).
    #[must_use]
    pub fn after_sleep(&self, static_prio: u8, sleep_avg: Nanos, slept: Nanos, uninterruptible: bool) -> Nanos {
        let slept = slept.min(self.most_sleep());
        let idle = self.level(static_prio).interactive_sleep;
        if !uninterruptible && slept > idle {
            return self.long_sleeper;
        }
        let credit = slept * self.max_bonus.saturating_sub(self.bonus(sleep_avg)).max(1);
        let risen = (sleep_avg + credit).min(self.most_sleep());
        if !uninterruptible {
            return risen;
        }
        // Who waits for a device rises no further than to just interactive.
        if sleep_avg >= idle { sleep_avg } else { risen.min(idle) }
    }

    /// What is taken off the sleep average for running so long: the less, the higher it is.
    #[must_use]
    pub fn run_charge(&self, sleep_avg: Nanos, ran: Nanos) -> Nanos {
        ran.min(self.most_sleep()) / self.bonus(sleep_avg).max(1)
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

    /// Whether expired tasks have waited too long since the first of them expired, `since` in ticks; 0: none has.
    #[must_use]
    pub fn starving(&self, since: u64, jiffies: u64, nr_running: u32) -> bool {
        let limit = self.starvation_limit;
        limit != 0 && since != 0 && jiffies - since > limit * u64::from(nr_running)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASED: Tunables = Tunables {
        min_timeslice: 5,
        def_timeslice: 100,
        max_timeslice: 0,
        prio_bonus_ratio: 25,
        max_sleep_avg: 1000,
        starvation_limit: 1000,
        granularity: 10,
        interactive_delta: 2,
        child_penalty: 95,
        parent_penalty: 100,
        exit_weight: 3,
        on_runqueue_weight: 30,
    };

    fn rules() -> Rules {
        Rules::new(RELEASED, MS, 1)
    }

    fn prio(nice: i8) -> u8 {
        (120 + i16::from(nice)) as u8
    }

    #[test]
    fn slices_run_from_800_ms_to_5_ms() {
        let slices = [-20, -10, -1, 0, 1, 10, 19].map(|nice| rules().timeslice(prio(nice)));
        assert_eq!(slices, [800, 600, 420, 100, 95, 50, 5]);
        let clamped = Rules::new(Tunables { min_timeslice: 50, max_timeslice: 100, ..RELEASED }, MS, 1);
        assert_eq!([-20, 0, 19].map(|nice| clamped.timeslice(prio(nice))), [100, 100, 50]);
        let slow_tick = Rules::new(RELEASED, 10 * MS, 1);
        assert_eq!([-20, 0, 19].map(|nice| slow_tick.timeslice(prio(nice))), [80, 10, 1]);
    }

    /// The table in the comment above `TASK_INTERACTIVE`, but for nice -10: there the comment says -1, and the
    /// division rounds towards 0.
    #[test]
    fn the_nicer_the_more_sleep_it_takes_to_be_interactive() {
        let least =
            |nice: i8| (-5i16..=5).find(|bonus| rules().interactive(prio(nice), (120 + i16::from(nice) - bonus) as u8));
        assert_eq!([-20, -10, 0, 10, 19].map(least), [Some(-3), Some(0), Some(2), Some(4), None]);
    }

    #[test]
    fn sleep_lifts_and_running_lowers_the_priority() {
        let r = rules();
        assert_eq!([0, 500 * MS, 1000 * MS].map(|sleep| r.effective_prio(120, sleep)), [125, 120, 115]);
        assert_eq!((r.effective_prio(100, 1000 * MS), r.effective_prio(139, 0)), (100, 139));
        // 9 ms of sleep count tenfold without a bonus, and at the best bonus 1 ms of CPU costs 0.1 ms.
        assert_eq!(r.after_sleep(120, 0, 9 * MS, false), 90 * MS);
        assert_eq!(r.run_charge(1000 * MS, MS), MS / 10);
        // 800 ms are a long sleep at nice 0: interactive, but not at the best.
        assert_eq!(r.after_sleep(120, 0, 800 * MS, false), 900 * MS);
        assert_eq!(r.after_sleep(120, 0, 799 * MS, false), 1000 * MS);
        let short = Rules::new(Tunables { max_timeslice: 50, ..RELEASED }, MS, 1);
        assert_eq!(short.after_sleep(120, 0, 800 * MS, false), 950 * MS);
        // For a device it is no merit to be slow.
        assert_eq!(r.after_sleep(120, 0, 800 * MS, true), 799 * MS);
        assert_eq!(r.after_sleep(120, 850 * MS, 800 * MS, true), 850 * MS);
    }

    #[test]
    fn turns_get_longer_with_the_sleep_that_is_missing() {
        let r = rules();
        assert_eq!([1000, 900, 700, 0].map(|sleep| r.granularity(sleep * MS)), [10, 10, 40, 5120]);
        assert_eq!(Rules::new(RELEASED, MS, 4).granularity(900 * MS), 40);
        let wide = Rules::new(Tunables { prio_bonus_ratio: 100, ..RELEASED }, MS, 8192);
        assert_eq!(wide.granularity(0), u32::MAX);
    }

    #[test]
    fn no_bonus_at_all_is_plain_round_robin() {
        let r = Rules::new(Tunables { prio_bonus_ratio: 0, ..RELEASED }, MS, 1);
        assert_eq!(r.effective_prio(120, r.most_sleep()), 120);
        assert!(!r.interactive(120, 120));
        assert_eq!(r.after_fork(r.most_sleep()), (0, 0));
    }

    #[test]
    fn families_share_their_sleep() {
        let r = rules();
        assert_eq!(r.after_fork(950 * MS), (800 * MS, 900 * MS));
        assert_eq!(r.after_exit(800 * MS, 400 * MS), 700 * MS);
        assert_eq!(r.after_exit(400 * MS, 800 * MS), 400 * MS);
    }

    #[test]
    fn the_expired_bear_it_for_a_second_each() {
        let r = rules();
        assert!(!r.starving(0, 1_000_000, 2) && !r.starving(100, 2_100, 2) && r.starving(100, 2_101, 2));
        assert!(!Rules::new(Tunables { starvation_limit: 0, ..RELEASED }, MS, 1).starving(1, u64::MAX, 1));
    }
}

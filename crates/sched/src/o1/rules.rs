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
        credit_limit: 100,
        cache_decay_ticks: 2,
        migration_cost_us: 2500,
    };

    fn rules() -> Rules {
        Rules::new(Release::V2_6_11, RELEASED, MS, 1)
    }

    fn after_sleep(rules: &Rules, static_prio: u8, sleep_avg: Nanos, slept: Nanos, aloof: bool) -> Nanos {
        rules.after_sleep(static_prio, Habit { sleep_avg, credit: 0, aloof }, slept).sleep_avg
    }

    fn prio(nice: i8) -> u8 {
        (120 + i16::from(nice)) as u8
    }

    #[test]
    fn slices_run_from_800_ms_to_5_ms() {
        let slices = [-20, -10, -1, 0, 1, 10, 19].map(|nice| rules().timeslice(prio(nice)));
        assert_eq!(slices, [800, 600, 420, 100, 95, 50, 5]);
        let clamped =
            Rules::new(Release::V2_6_11, Tunables { min_timeslice: 50, max_timeslice: 100, ..RELEASED }, MS, 1);
        assert_eq!([-20, 0, 19].map(|nice| clamped.timeslice(prio(nice))), [100, 100, 50]);
        let slow_tick = Rules::new(Release::V2_6_11, RELEASED, 10 * MS, 1);
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
        assert_eq!(after_sleep(&r, 120, 0, 9 * MS, false), 90 * MS);
        assert_eq!(r.run_charge(Habit { sleep_avg: 1000 * MS, ..Habit::default() }, MS), MS / 10);
        // 800 ms are a long sleep at nice 0: interactive, but not at the best.
        assert_eq!(after_sleep(&r, 120, 0, 800 * MS, false), 900 * MS);
        assert_eq!(after_sleep(&r, 120, 0, 799 * MS, false), 1000 * MS);
        let short = Rules::new(Release::V2_6_11, Tunables { max_timeslice: 50, ..RELEASED }, MS, 1);
        assert_eq!(after_sleep(&short, 120, 0, 800 * MS, false), 950 * MS);
        // For a device it is no merit to be slow.
        assert_eq!(after_sleep(&r, 120, 0, 800 * MS, true), 799 * MS);
        assert_eq!(after_sleep(&r, 120, 850 * MS, 800 * MS, true), 850 * MS);
    }

    #[test]
    fn turns_get_longer_with_the_sleep_that_is_missing() {
        let r = rules();
        assert_eq!([1000, 900, 700, 0].map(|sleep| r.granularity(sleep * MS)), [10, 10, 40, 5120]);
        assert_eq!(Rules::new(Release::V2_6_11, RELEASED, MS, 4).granularity(900 * MS), 40);
        let wide = Rules::new(Release::V2_6_11, Tunables { prio_bonus_ratio: 100, ..RELEASED }, MS, 8192);
        assert_eq!(wide.granularity(0), u32::MAX);
    }

    #[test]
    fn no_bonus_at_all_is_plain_round_robin() {
        let r = Rules::new(Release::V2_6_11, Tunables { prio_bonus_ratio: 0, ..RELEASED }, MS, 1);
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
        assert!(!Rules::new(Release::V2_6_11, Tunables { starvation_limit: 0, ..RELEASED }, MS, 1).starving(
            1,
            u64::MAX,
            1
        ));
    }

    const RELEASED_2_6_0: Tunables =
        Tunables { min_timeslice: 10, max_timeslice: 200, max_sleep_avg: 1020, starvation_limit: 1020, ..RELEASED };

    #[test]
    fn slices_of_2_6_0_fall_in_a_line_from_200_ms_to_10_ms() {
        let rules = |tunables| Rules::new(Release::V2_6_0, tunables, MS, 1);
        // 10 + 190 * (19 - nice) / 39
        let slices = [-20, -10, -1, 0, 1, 10, 19].map(|nice| rules(RELEASED_2_6_0).timeslice(prio(nice)));
        assert_eq!(slices, [200, 151, 107, 102, 97, 53, 10]);
        let upside_down = Tunables { min_timeslice: 200, max_timeslice: 10, ..RELEASED_2_6_0 };
        assert_eq!([-20, 0, 19].map(|nice| rules(upside_down).timeslice(prio(nice))), [10, 108, 200]);
    }

    #[test]
    fn credit_is_earned_by_long_sleeps_and_lost_without_a_bonus() {
        let r = Rules::new(Release::V2_6_0, RELEASED_2_6_0, MS, 1);
        let habit = |sleep_avg, credit, aloof| Habit { sleep_avg: sleep_avg * MS, credit, aloof };
        // 1020 * (5 + 2 + 1) / 10 - 1 = 815 ms asleep: idle, and set to 1020 - 102 ms.
        assert_eq!(r.after_sleep(120, habit(0, 0, false), 816 * MS), habit(918, 1, false));
        assert_eq!(r.after_sleep(120, habit(0, 101, false), 816 * MS), habit(918, 101, false));
        // Past the most there is: at 1000 ms the bonus is 9, and one level is missing.
        assert_eq!(r.after_sleep(120, habit(1000, 0, false), 30 * MS), habit(1020, 1, false));
        assert_eq!(r.after_sleep(120, habit(1000, 0, false), 20 * MS), habit(1020, 0, false));
        // Who owes gains no more than a slice by any sleep, which else counts tenfold.
        assert_eq!(r.after_sleep(120, habit(0, -101, false), 50 * MS), habit(102, -101, false));
        assert_eq!(r.after_sleep(120, habit(0, -100, false), 50 * MS), habit(500, -100, false));
        // For a device: no further than to just interactive, but for who has the credit.
        assert_eq!(r.after_sleep(120, habit(700, 0, true), 500 * MS), habit(815, 0, true));
        assert_eq!(r.after_sleep(120, habit(700, 101, true), 50 * MS), habit(900, 101, true));
        // Only with that credit a bonus is lasting.
        assert_eq!([100, 101].map(|credit| r.run_charge(habit(1020, credit, false), 10 * MS)), [10 * MS, MS]);
        assert_eq!(r.after_run(habit(5, 0, false), 5 * MS), habit(0, -1, false));
        assert_eq!(r.after_run(habit(5, 101, false), 5 * MS), habit(0, 101, false));
        assert_eq!(r.after_run(habit(5, -101, false), 5 * MS), habit(0, -101, false));
    }

    #[test]
    fn sleep_counts_once_in_2_6_18() {
        let r = Rules::new(Release::V2_6_18, RELEASED, MS, 1);
        let habit = |sleep_avg, aloof| Habit { sleep_avg: sleep_avg * MS, credit: 0, aloof };
        assert_eq!(r.after_sleep(120, habit(0, false), 9 * MS), habit(9, false));
        // A long sleep lifts to just interactive, and its wait is no sleep; who is there already rises by it.
        assert_eq!(r.after_sleep(120, habit(500, false), 800 * MS), habit(799, true));
        assert_eq!(r.after_sleep(120, habit(799, false), 800 * MS), habit(1000, false));
        assert_eq!(r.after_sleep(120, habit(500, true), 400 * MS), habit(799, true));
        assert_eq!(r.after_sleep(120, habit(850, true), 100 * MS), habit(850, true));
    }

    #[test]
    fn deltas_are_rounded_down_in_2_6_18() {
        // (nice + 20) * 10 / 40 - 5 + 2 against nice * 10 / 40 + 2: they differ where a negative level leaves a rest.
        let delta = |release, nice| Rules::new(release, RELEASED, MS, 1).level(prio(nice)).delta;
        let levels = [-20, -10, -1, 0, 10, 19];
        assert_eq!(levels.map(|nice| delta(Release::V2_6_11, nice)), [-3, 0, 2, 2, 4, 6]);
        assert_eq!(levels.map(|nice| delta(Release::V2_6_18, nice)), [-3, -1, 1, 2, 4, 6]);
    }

    #[test]
    fn weights_follow_slices_in_2_6_18() {
        let attributes = |nice| schedlab_sim::Attributes { nice, ..schedlab_sim::Attributes::default() };
        let task = |nice| Task::new(&attributes(nice), &Release::V2_6_18);
        let mut real_time = task(0);
        real_time.prio = 49;
        let weights = |release| {
            let r = Rules::new(release, RELEASED, MS, 1);
            [r.weight(&task(-20)), r.weight(&task(0)), r.weight(&task(19)), r.weight(&real_time)]
        };
        assert_eq!(weights(Release::V2_6_11), [128; 4]);
        // 800, 100 and 5 ms against 100 ms; priority 50 counts for 64 beyond nice -20.
        assert_eq!(weights(Release::V2_6_18), [1024, 128, 6, 1088]);
    }
}

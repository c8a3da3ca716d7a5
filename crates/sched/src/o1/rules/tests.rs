//! The arithmetic, worked out by hand.

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
    let clamped = Rules::new(Release::V2_6_11, Tunables { min_timeslice: 50, max_timeslice: 100, ..RELEASED }, MS, 1);
    assert_eq!([-20, 0, 19].map(|nice| clamped.timeslice(prio(nice))), [100, 100, 50]);
    let slow_tick = Rules::new(Release::V2_6_11, RELEASED, 10 * MS, 1);
    assert_eq!([-20, 0, 19].map(|nice| slow_tick.timeslice(prio(nice))), [80, 10, 1]);
}

/// The table in the comment above `TASK_INTERACTIVE`, except nice -10: the comment says -1, but the division rounds
/// towards 0.
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
    // 9 ms of sleep count tenfold without a bonus; at the best bonus 1 ms of CPU time costs 0.1 ms.
    assert_eq!(after_sleep(&r, 120, 0, 9 * MS, false), 90 * MS);
    assert_eq!(r.run_charge(Habit { sleep_avg: 1000 * MS, ..Habit::default() }, MS), MS / 10);
    // 800 ms is a long sleep at nice 0: the task becomes interactive, but not with the best bonus.
    assert_eq!(after_sleep(&r, 120, 0, 800 * MS, false), 900 * MS);
    assert_eq!(after_sleep(&r, 120, 0, 799 * MS, false), 1000 * MS);
    let short = Rules::new(Release::V2_6_11, Tunables { max_timeslice: 50, ..RELEASED }, MS, 1);
    assert_eq!(after_sleep(&short, 120, 0, 800 * MS, false), 950 * MS);
    // Sleep while waiting for a device does not make a task more than just interactive.
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
    // 1020 * (5 + 2 + 1) / 10 - 1 = 815 ms: a longer sleep counts as idle, and sets the average to 1020 - 102 ms.
    assert_eq!(r.after_sleep(120, habit(0, 0, false), 816 * MS), habit(918, 1, false));
    assert_eq!(r.after_sleep(120, habit(0, 101, false), 816 * MS), habit(918, 101, false));
    // Past the maximum: at 1000 ms the bonus is 9, one level short of the best.
    assert_eq!(r.after_sleep(120, habit(1000, 0, false), 30 * MS), habit(1020, 1, false));
    assert_eq!(r.after_sleep(120, habit(1000, 0, false), 20 * MS), habit(1020, 0, false));
    // A task with a debt gains at most a slice by any sleep; for others the sleep counts tenfold.
    assert_eq!(r.after_sleep(120, habit(0, -101, false), 50 * MS), habit(102, -101, false));
    assert_eq!(r.after_sleep(120, habit(0, -100, false), 50 * MS), habit(500, -100, false));
    // Waiting for a device makes a task just interactive at most, unless it has the credit.
    assert_eq!(r.after_sleep(120, habit(700, 0, true), 500 * MS), habit(815, 0, true));
    assert_eq!(r.after_sleep(120, habit(700, 101, true), 50 * MS), habit(900, 101, true));
    // Only that credit makes a bonus lasting.
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
    // A long sleep makes a task just interactive, and its wait does not count as sleep. A task that is interactive
    // already gains the whole sleep.
    assert_eq!(r.after_sleep(120, habit(500, false), 800 * MS), habit(799, true));
    assert_eq!(r.after_sleep(120, habit(799, false), 800 * MS), habit(1000, false));
    assert_eq!(r.after_sleep(120, habit(500, true), 400 * MS), habit(799, true));
    assert_eq!(r.after_sleep(120, habit(850, true), 100 * MS), habit(850, true));
}

#[test]
fn deltas_are_rounded_down_in_2_6_18() {
    // (nice + 20) * 10 / 40 - 5 + 2 against nice * 10 / 40 + 2: they differ if dividing a negative level leaves a
    // remainder.
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
    // 800, 100 and 5 ms against 100 ms; priority 50 adds 64 to the weight of nice -20.
    assert_eq!(weights(Release::V2_6_18), [1024, 128, 6, 1088]);
}

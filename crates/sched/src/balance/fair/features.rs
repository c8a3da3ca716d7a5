//! The `sched_features` of placement and load balancing that can be switched.

use super::rules::NEWIDLE_RATIO;
use crate::tunables::{Handle, Tunable, Values};

/// `WA_IDLE`, `WA_WEIGHT` and `WA_BIAS`: the steps of `wake_affine` (4.14 on).
const WA_IDLE: Handle<bool> =
    Handle::switch("WA_IDLE", true, "a wake-up compares whether the waker's and the previous CPU are idle");
const WA_WEIGHT: Handle<bool> =
    Handle::switch("WA_WEIGHT", true, "a wake-up compares the loads of the waker's and the previous CPU");
const WA_BIAS: Handle<bool> = Handle::switch("WA_BIAS", true, "that comparison of loads favours the waker's CPU");
/// The hint that a waker is about to sleep, and what weakens or adds it (2.6.32).
const SYNC_WAKEUPS: Handle<bool> =
    Handle::switch("SYNC_WAKEUPS", true, "a waker that says that it is about to sleep attracts the task that it wakes");
const SYNC_LESS: Handle<bool> =
    Handle::switch("SYNC_LESS", true, "not if one of the two used to go on for long after its wake-ups");
const SYNC_MORE: Handle<bool> =
    Handle::switch("SYNC_MORE", false, "a waker that does not say so counts as if it did if both used to sleep soon");
/// Whether wake-ups consider the waker's CPU at all (2.6.32).
const AFFINE_WAKEUPS: Handle<bool> =
    Handle::switch("AFFINE_WAKEUPS", true, "a task that wakes may move to the CPU of its waker");
/// When and how wake-ups weigh groups (2.6.32).
const LB_SHARES_UPDATE: Handle<bool> =
    Handle::switch("LB_SHARES_UPDATE", true, "the shares of groups are spread anew before a task is placed");
const ASYM_EFF_LOAD: Handle<bool> = Handle::switch(
    "ASYM_EFF_LOAD",
    true,
    "a wake-up does not count that the task's group weighs less on the CPU that it leaves",
);
/// The search for an idle CPU near the waker, which the stable tree of 2.6.32 took over from 2.6.33.
const WAKES_TO_IDLE: Handle<bool> = Handle::switch(
    "wakes_to_idle_cpu",
    true,
    "a wake-up takes an idle CPU that shares a cache, as in 2.6.33; 2.6.32 itself does not look for one",
);
/// The weighing of tasks as long as there is no group, which the stable tree of 2.6.32 fixed (`update_h_load`).
const WEIGHS_UNGROUPED: Handle<bool> = Handle::switch(
    "weighs_without_groups",
    true,
    "without groups balancing moves tasks by their load, as in 2.6.32.28; 2.6.32 itself moves up to 33 at once",
);
/// The estimates of utilisation (4.17 on).
const UTIL_EST: Handle<bool> =
    Handle::switch("UTIL_EST", true, "the utilisation of a task and a CPU is at least its estimate");
/// The bound on searches for an idle CPU (6.0 on, and 5.15's stable tree).
const SIS_UTIL: Handle<bool> =
    Handle::switch("SIS_UTIL", true, "a wake-up searches fewer CPUs of a cache the more these are used");
/// Proportional newidle balancing (the stable trees of 6.1 and 6.12).
const NI_RANDOM: Handle<bool> =
    Handle::switch("NI_RANDOM", true, "newly idle CPUs balance at random, in proportion to their recent success");

/// Buddies that stay (2.6.28 on).
const CACHE_HOT_BUDDY: Handle<bool> =
    Handle::switch("CACHE_HOT_BUDDY", true, "balancing leaves the buddies of a busy queue where they are");
/// Loads that are sampled by ticks (until 5.2).
const LB_BIAS: Handle<bool> = Handle::switch(
    "LB_BIAS",
    true,
    "of a CPU's load and its average over the last ticks the greater counts on the own CPU, the lesser on others",
);
/// Tasks that are not worth a migration (3.4 on).
const LB_MIN: Handle<bool> = Handle::switch(
    "LB_MIN",
    false,
    "balancing leaves tasks with a load below 16 where they are, unless it has failed before",
);
/// Averages of tasks of other classes (4.4 on).
const ATTACH_AGE_LOAD: Handle<bool> = Handle::switch(
    "ATTACH_AGE_LOAD",
    true,
    "the averages of a task age while it is in another class, and not only from when it returns",
);
/// Where tasks have their memory (3.13 to 4.2).
const NUMA_FAVOUR_HIGHER: Handle<bool> = Handle::switch(
    "NUMA_FAVOUR_HIGHER",
    true,
    "balancing moves tasks that access more memory of the node to which they come, even if they are cache-hot",
);
const NUMA_RESIST_LOWER: Handle<bool> = Handle::switch(
    "NUMA_RESIST_LOWER",
    false,
    "balancing leaves tasks that access more memory of the node from which they come, as if they were cache-hot",
);
/// Searches for an idle CPU until SIS_UTIL (5.10), and without it (5.15 to 6.6).
const SIS_PROP: Handle<bool> = Handle::switch("SIS_PROP", true, "a search for an idle CPU is bounded by its cost");
const SIS_PROP_OFF: Handle<bool> =
    Handle::switch("SIS_PROP", false, "a search for an idle CPU is bounded by its cost, if SIS_UTIL is off");
const SIS_AVG_CPU: Handle<bool> = Handle::switch(
    "SIS_AVG_CPU",
    false,
    "a search for an idle CPU is given up if it costs more than the waker's CPU is idle",
);
/// Estimates that rise at once (5.5 to 6.7).
const UTIL_EST_FASTUP: Handle<bool> =
    Handle::switch("UTIL_EST_FASTUP", true, "an increase of the estimated utilisation takes effect at once");
/// The time of interrupts, under its names: until 3.15 and from 3.16 on.
const NONTASK: [Handle<bool>; 2] = [nontask("NONTASK_POWER"), nontask("NONTASK_CAPACITY")];

const fn nontask(name: &'static str) -> Handle<bool> {
    Handle::switch(name, true, "what interrupts take of a CPU, if it is measured, counts as capacity that it lacks")
}

/// The switches of 2.6.32.
pub const SYNC: [Tunable; 10] = [
    AFFINE_WAKEUPS.tunable,
    SYNC_WAKEUPS.tunable,
    SYNC_LESS.tunable,
    SYNC_MORE.tunable,
    CACHE_HOT_BUDDY.tunable,
    LB_BIAS.tunable,
    LB_SHARES_UPDATE.tunable,
    ASYM_EFF_LOAD.tunable,
    WAKES_TO_IDLE.tunable,
    WEIGHS_UNGROUPED.tunable,
];
/// The switches of 3.10, of which 3.18 and 4.1 have the last under its other name.
pub const LOADS_3_10: [Tunable; 4] = [CACHE_HOT_BUDDY.tunable, LB_BIAS.tunable, LB_MIN.tunable, NONTASK[0].tunable];
/// The switches of 3.18 and 4.1.
pub const LOADS_3_18: [Tunable; 6] = [
    CACHE_HOT_BUDDY.tunable,
    LB_BIAS.tunable,
    LB_MIN.tunable,
    NONTASK[1].tunable,
    NUMA_FAVOUR_HIGHER.tunable,
    NUMA_RESIST_LOWER.tunable,
];
/// The switches of 5.10 alone.
pub const SEARCH_5_10: [Tunable; 2] = [SIS_PROP.tunable, SIS_AVG_CPU.tunable];
/// The switch of 5.15 to 6.6.
pub const SEARCH_COST: [Tunable; 1] = [SIS_PROP_OFF.tunable];
/// The switch of 5.10 to 6.6.
pub const FAST_UP: [Tunable; 1] = [UTIL_EST_FASTUP.tunable];
/// The switches that all releases from 5.10 on have.
pub const LOADS: [Tunable; 4] = [CACHE_HOT_BUDDY.tunable, LB_MIN.tunable, NONTASK[1].tunable, ATTACH_AGE_LOAD.tunable];
/// The switches of 5.10.
pub const WAKE_AFFINE: [Tunable; 4] = [WA_IDLE.tunable, WA_WEIGHT.tunable, WA_BIAS.tunable, UTIL_EST.tunable];
/// Those that 5.15, 6.1, 6.6 and 6.12 have in addition.
pub const SEARCH: [Tunable; 1] = [SIS_UTIL.tunable];
/// Those that 6.1 and 6.12 have in addition.
pub const NEWIDLE: [Tunable; 2] = [NI_RANDOM.tunable, NEWIDLE_RATIO.tunable];

/// The values of the switches. One that a release does not have has its default.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Features {
    pub wa_idle: bool,
    pub wa_weight: bool,
    pub wa_bias: bool,
    pub util_est: bool,
    pub sis_util: bool,
    pub ni_random: bool,
    pub sync_wakeups: bool,
    pub sync_less: bool,
    pub sync_more: bool,
    pub affine_wakeups: bool,
    pub cache_hot_buddy: bool,
    pub lb_bias: bool,
    pub attach_age_load: bool,
    pub numa_favour_higher: bool,
    pub numa_resist_lower: bool,
    pub sis_prop: bool,
    pub sis_avg_cpu: bool,
    pub util_est_fastup: bool,
    pub lb_min: bool,
    pub lb_shares_update: bool,
    pub asym_eff_load: bool,
    pub nontask_capacity: bool,
    pub wakes_to_idle: bool,
    pub weighs_ungrouped: bool,
}

impl Features {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        wa_idle: true,
        wa_weight: true,
        wa_bias: true,
        util_est: true,
        sis_util: true,
        ni_random: true,
        sync_wakeups: true,
        sync_less: true,
        sync_more: false,
        affine_wakeups: true,
        cache_hot_buddy: true,
        lb_bias: true,
        attach_age_load: true,
        numa_favour_higher: true,
        numa_resist_lower: false,
        sis_prop: true,
        sis_avg_cpu: false,
        util_est_fastup: true,
        lb_min: false,
        lb_shares_update: true,
        asym_eff_load: true,
        nontask_capacity: true,
        wakes_to_idle: true,
        weighs_ungrouped: true,
    };

    /// The values that are set.
    #[must_use]
    pub fn of(values: &Values) -> Self {
        let on = |handle| values.find(handle) != Some(false);
        let is_on = |handle| values.find(handle) == Some(true);
        Self {
            wa_idle: on(&WA_IDLE),
            wa_weight: on(&WA_WEIGHT),
            wa_bias: on(&WA_BIAS),
            util_est: on(&UTIL_EST),
            sis_util: on(&SIS_UTIL),
            ni_random: on(&NI_RANDOM),
            sync_wakeups: on(&SYNC_WAKEUPS),
            sync_less: on(&SYNC_LESS),
            sync_more: is_on(&SYNC_MORE),
            affine_wakeups: on(&AFFINE_WAKEUPS),
            cache_hot_buddy: on(&CACHE_HOT_BUDDY),
            lb_bias: on(&LB_BIAS),
            attach_age_load: on(&ATTACH_AGE_LOAD),
            numa_favour_higher: on(&NUMA_FAVOUR_HIGHER),
            numa_resist_lower: is_on(&NUMA_RESIST_LOWER),
            sis_prop: on(&SIS_PROP),
            sis_avg_cpu: is_on(&SIS_AVG_CPU),
            util_est_fastup: on(&UTIL_EST_FASTUP),
            lb_min: is_on(&LB_MIN),
            lb_shares_update: on(&LB_SHARES_UPDATE),
            asym_eff_load: on(&ASYM_EFF_LOAD),
            nontask_capacity: NONTASK.iter().all(on),
            wakes_to_idle: on(&WAKES_TO_IDLE),
            weighs_ungrouped: on(&WEIGHS_UNGROUPED),
        }
    }
}

//! The `sched_features` of placement and load balancing that can be switched.

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

/// The switches of 2.6.32.
pub const SYNC: [Tunable; 5] =
    [SYNC_WAKEUPS.tunable, SYNC_LESS.tunable, SYNC_MORE.tunable, WAKES_TO_IDLE.tunable, WEIGHS_UNGROUPED.tunable];
/// The switches of 5.10.
pub const WAKE_AFFINE: [Tunable; 4] = [WA_IDLE.tunable, WA_WEIGHT.tunable, WA_BIAS.tunable, UTIL_EST.tunable];
/// Those that 5.15, 6.1, 6.6 and 6.12 have in addition.
pub const SEARCH: [Tunable; 1] = [SIS_UTIL.tunable];
/// Those that 6.1 and 6.12 have in addition.
pub const NEWIDLE: [Tunable; 1] = [NI_RANDOM.tunable];

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
        wakes_to_idle: true,
        weighs_ungrouped: true,
    };

    /// The values that are set.
    #[must_use]
    pub fn of(values: &Values) -> Self {
        let on = |handle| values.find(handle) != Some(false);
        Self {
            wa_idle: on(&WA_IDLE),
            wa_weight: on(&WA_WEIGHT),
            wa_bias: on(&WA_BIAS),
            util_est: on(&UTIL_EST),
            sis_util: on(&SIS_UTIL),
            ni_random: on(&NI_RANDOM),
            sync_wakeups: on(&SYNC_WAKEUPS),
            sync_less: on(&SYNC_LESS),
            sync_more: values.find(&SYNC_MORE) == Some(true),
            wakes_to_idle: on(&WAKES_TO_IDLE),
            weighs_ungrouped: on(&WEIGHS_UNGROUPED),
        }
    }
}

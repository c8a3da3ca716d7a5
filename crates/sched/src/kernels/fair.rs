//! What the profiles with a fair class share: tunables and features that have the same name in several releases, and
//! what 3.10, 3.18 and 4.1 have in common.

use crate::fair::cfs::{Features, Rules, Tunables};
use crate::fair::shares::Shares;
use crate::fair::{bandwidth, groups};
use crate::tunables::{DEBUGFS_SCALING, GRANULARITY, Handle, SYSCTL_SCALING, Tunable, Unit, Values};

const SCHED_LATENCY_NS: Handle<u64> =
    Handle::online_ns("sched_latency_ns", 6_000_000, "the period in which each task runs once").within(GRANULARITY);
const SCHED_MIN_GRANULARITY_NS: Handle<u64> =
    Handle::online_ns("sched_min_granularity_ns", 750_000, "the least slice when there are many tasks")
        .within(GRANULARITY);
const SCHED_WAKEUP_GRANULARITY_NS: Handle<u64> =
    Handle::online_ns("sched_wakeup_granularity_ns", 1_000_000, "how far behind a woken task must be to preempt");
const SCHED_CHILD_RUNS_FIRST: Handle<bool> =
    Handle::switch("sched_child_runs_first", false, "a new child runs before its parent");

/// The tunables of 2.6.33 to 5.12, which are sysctls.
pub(super) const SYSCTL: [Tunable; 5] = [
    SCHED_LATENCY_NS.tunable,
    SCHED_MIN_GRANULARITY_NS.tunable,
    SCHED_WAKEUP_GRANULARITY_NS.tunable,
    SYSCTL_SCALING.tunable,
    SCHED_CHILD_RUNS_FIRST.tunable,
];

const LATENCY_NS: Handle<u64> = Handle::online_ns("latency_ns", 6_000_000, "the period in which each task runs once");
pub(super) const MIN_GRANULARITY_NS: Handle<u64> = Handle::online_ns("min_granularity_ns", 750_000, "the least slice");
const WAKEUP_GRANULARITY_NS: Handle<u64> =
    Handle::online_ns("wakeup_granularity_ns", 1_000_000, "how far behind a woken task must be to preempt");

/// The tunables of 5.13 to 6.5, in debugfs ("sched: Move SCHED_DEBUG sysctl to debugfs") except for the last.
pub(super) const DEBUGFS: [Tunable; 5] = [
    LATENCY_NS.tunable,
    MIN_GRANULARITY_NS.tunable,
    WAKEUP_GRANULARITY_NS.tunable,
    DEBUGFS_SCALING.tunable,
    SCHED_CHILD_RUNS_FIRST.tunable,
];

/// Added by "sched,fair: Alternative sched_slice()" (5.13, and in 5.10's stable updates).
pub(super) const BASE_SLICE: Handle<bool> =
    Handle::switch("BASE_SLICE", true, "no slice is less than the minimum granularity");

/// Added by the same change.
pub(super) const ALT_PERIOD: Handle<bool> =
    Handle::switch("ALT_PERIOD", true, "the period counts the tasks of all groups");

const GENTLE_FAIR_SLEEPERS: Handle<bool> =
    Handle::switch("GENTLE_FAIR_SLEEPERS", true, "a task that slept is placed half the latency before the others");
const START_DEBIT: Handle<bool> = Handle::switch("START_DEBIT", true, "a new task waits one slice");
const WAKEUP_PREEMPTION: Handle<bool> = Handle::switch("WAKEUP_PREEMPTION", true, "woken tasks may preempt");
pub(super) const NEXT_BUDDY: Handle<bool> = Handle::switch("NEXT_BUDDY", false, "prefer the task that was woken last");
const LAST_BUDDY: Handle<bool> =
    Handle::switch("LAST_BUDDY", true, "prefer to return to the task that a wake-up preempted");

/// The features of CFS from 3.10 on.
pub(super) const FEATURES: [Tunable; 5] = [
    GENTLE_FAIR_SLEEPERS.tunable,
    START_DEBIT.tunable,
    WAKEUP_PREEMPTION.tunable,
    NEXT_BUDDY.tunable,
    LAST_BUDDY.tunable,
];

/// Group quotas are available from 3.2 on.
pub(super) const BANDWIDTH_SLICE: Handle<u64> = Handle::number(
    "sched_cfs_bandwidth_slice_us",
    Unit::Us,
    5_000,
    (1, 1_000_000),
    "how much of its quota a group takes to a CPU at once",
);

/// Autogroups are available from 2.6.38 on; the build decides whether they are on.
pub(super) const AUTOGROUP: Handle<bool> =
    Handle::switch("sched_autogroup_enabled", true, "the tasks of one session share as a group");

/// Returns the values of [`FEATURES`].
pub(super) fn features(v: &Values) -> Features {
    Features {
        fair_sleepers: true,
        gentle_fair_sleepers: v.get(&GENTLE_FAIR_SLEEPERS),
        start_debit: v.get(&START_DEBIT),
        wakeup_preemption: v.get(&WAKEUP_PREEMPTION),
        next_buddy: v.get(&NEXT_BUDDY),
        last_buddy: v.get(&LAST_BUDDY),
        ..Features::NONE
    }
}

/// The rules of 3.18 and 4.1; 3.10 differs in its arithmetic and in how it picks.
pub(super) fn rules_3_18(v: &Values) -> Rules {
    Rules {
        pick_clears_buddies: true,
        base_slice: false,
        fixed_nr_latency: None,
        change_moves_min: true,
        nice_rescheds: true,
        change_renews_slice: false,
        lands_before_account: true,
        alt_period: false,
        idle_granularity: false,
        heads_list: false,
        features: features(v),
        ..Rules::LAST
    }
}

/// The group rules of 3.10 to 4.1. With `newest_first`, the group that was throttled last gets new quota first (from
/// 3.18 on).
pub(super) fn groups_3(v: &Values, newest_first: bool) -> groups::Rules {
    let quotas = bandwidth::Rules {
        slice: v.get(&BANDWIDTH_SLICE) * 1000,
        expires: true,
        burst: false,
        random_phase: false,
        fills_at_start: true,
        newest_first,
        by_task: false,
    };
    groups::Rules {
        idle: false,
        by_session: v.get(&AUTOGROUP),
        shares: Shares::ByWeight,
        ..groups::Rules::last(quotas)
    }
}

/// The rules of 5.10 and 5.15. Idle tasks have no granularity of their own yet ("sched: reduce sched slice for
/// SCHED_IDLE entities", 5.16).
pub(super) fn rules_5(v: &Values) -> Rules {
    Rules {
        base_slice: v.get(&BASE_SLICE),
        alt_period: v.get(&ALT_PERIOD),
        idle_granularity: false,
        features: features(v),
        ..Rules::LAST
    }
}

/// The quota rules from 5.4 on. `burst` is available from 5.14 on ("sched/fair: Introduce the burstable CFS
/// controller").
pub(super) fn quotas(v: &Values, burst: bool) -> bandwidth::Rules {
    bandwidth::Rules {
        slice: v.get(&BANDWIDTH_SLICE) * 1000,
        expires: false,
        burst,
        random_phase: false,
        fills_at_start: false,
        newest_first: false,
        by_task: false,
    }
}

/// Returns the values of [`SYSCTL`].
pub(super) fn tunables(v: &Values) -> Tunables {
    Tunables {
        latency: v.get(&SCHED_LATENCY_NS),
        min_granularity: v.get(&SCHED_MIN_GRANULARITY_NS),
        idle_min_granularity: v.get(&SCHED_MIN_GRANULARITY_NS),
        wakeup_granularity: v.get(&SCHED_WAKEUP_GRANULARITY_NS),
        child_runs_first: v.get(&SCHED_CHILD_RUNS_FIRST),
        compat_yield: false,
    }
}

/// Returns the values of [`DEBUGFS`]; `idle` is the granularity of idle tasks (from 5.16 on).
pub(super) fn tunables_debugfs(v: &Values, idle: &Handle<u64>) -> Tunables {
    Tunables {
        latency: v.get(&LATENCY_NS),
        min_granularity: v.get(&MIN_GRANULARITY_NS),
        idle_min_granularity: v.get(idle),
        wakeup_granularity: v.get(&WAKEUP_GRANULARITY_NS),
        child_runs_first: v.get(&SCHED_CHILD_RUNS_FIRST),
        compat_yield: false,
    }
}

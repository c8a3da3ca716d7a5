//! Linux 2.6.32: CFS as shipped in the enterprise distributions of its time.

use super::{Build, Kernel, Preemption, Run, classes};
use crate::balance::fair::{MIGRATION_COST, NR_MIGRATE, OVERLOAD_ON_WAKEUP, SYNC};
use crate::classes::hrtick::{DOUBLE_TICK, HRTICK};
use crate::fair::cfs::{Cfs, Features, Rules, Tunables};
use crate::fair::groups;
use crate::fair::load::Arithmetic;
use crate::fair::shares::Shares;
use crate::tunables::{GRANULARITY, Handle, Tunable, Unit, Values, count, joined, tick};
use schedlab_base::{Result, Sink, v2_6};
use schedlab_sim::Outcome;

const TICK: [Tunable; 3] = tick(1000);
const BALANCE: [Tunable; 2] = [MIGRATION_COST[0].tunable, NR_MIGRATE[0].tunable];

const SCHED_LATENCY_NS: Handle<u64> =
    Handle::at_boot_ns("sched_latency_ns", 5_000_000, 200_000_000, "the period in which each task runs once")
        .within(GRANULARITY);
const SCHED_MIN_GRANULARITY_NS: Handle<u64> =
    Handle::at_boot_ns("sched_min_granularity_ns", 1_000_000, 200_000_000, "the least slice when there are many tasks")
        .within(GRANULARITY);
const SCHED_WAKEUP_GRANULARITY_NS: Handle<u64> =
    Handle::at_boot_ns("sched_wakeup_granularity_ns", 1_000_000, 0, "how far behind a woken task must be to preempt");
const SCHED_CHILD_RUNS_FIRST: Handle<bool> =
    Handle::switch("sched_child_runs_first", false, "a new child runs before its parent");
const SCHED_COMPAT_YIELD: Handle<bool> =
    Handle::switch("sched_compat_yield", false, "a task that yields goes behind the last one, as before CFS");
const FAIR_SLEEPERS: Handle<bool> =
    Handle::switch("FAIR_SLEEPERS", true, "a task that slept is placed a little before the others");
const GENTLE_FAIR_SLEEPERS: Handle<bool> =
    Handle::switch("GENTLE_FAIR_SLEEPERS", true, "a task that slept is placed only half a latency before the others");
const NORMALIZED_SLEEPER: Handle<bool> =
    Handle::switch("NORMALIZED_SLEEPER", false, "the credit of a sleeper is scaled by its weight");
const START_DEBIT: Handle<bool> = Handle::switch("START_DEBIT", true, "a new task waits one slice");
const WAKEUP_PREEMPT: Handle<bool> = Handle::switch("WAKEUP_PREEMPT", true, "woken tasks may preempt");
const ADAPTIVE_GRAN: Handle<bool> =
    Handle::switch("ADAPTIVE_GRAN", true, "a task that soon wakes another has to be less far behind to preempt");
const ASYM_GRAN: Handle<bool> = Handle::switch(
    "ASYM_GRAN",
    true,
    "the wake-up granularity is scaled by the weight of the woken task, and not by that of the running one",
);
const WAKEUP_SYNC: Handle<bool> = Handle::switch("WAKEUP_SYNC", false, "a synchronous wake-up always preempts");
const WAKEUP_OVERLAP: Handle<bool> =
    Handle::switch("WAKEUP_OVERLAP", false, "a wake-up preempts if both tasks used to sleep soon after their wake-ups");
const WAKEUP_RUNNING: Handle<bool> =
    Handle::switch("WAKEUP_RUNNING", false, "a wake-up preempts if the woken task runs for shorter times");
const NEXT_BUDDY: Handle<bool> = Handle::switch("NEXT_BUDDY", false, "prefer the task that was woken last");
const LAST_BUDDY: Handle<bool> =
    Handle::switch("LAST_BUDDY", true, "prefer to return to the task that a wake-up preempted");
const GROUP_BY_USER: Handle<bool> =
    Handle::switch("group_by_user", false, "each user's tasks form a group (CONFIG_USER_SCHED)");
const SCHED_SHARES_RATELIMIT: Handle<u64> =
    Handle::at_boot_ns("sched_shares_ratelimit", 250_000, 0, "how often groups' shares are spread over the CPUs");
const SCHED_SHARES_THRESH: Handle<u64> = Handle::number(
    "sched_shares_thresh",
    Unit::Number,
    4,
    (0, 1 << 18),
    "groups' shares are written if the weight on a CPU changed by more than this",
);

const FIX_EMPTY_SHARES: Handle<bool> = Handle::switch(
    "fix.empty_shares",
    false,
    "a CPU without a task of a group takes no part of its shares from the others, as from 2.6.33 on",
);

const FIX_STRONG_BUDDIES: Handle<bool> = Handle::switch(
    "fix.strong_buddies",
    false,
    "a tick preempts a task that is a slice ahead of the next, and ends buddies, as from 2.6.32-rc6 on",
);

const TUNABLES: &[&[Tunable]] = &[
    &TICK,
    &classes::RT,
    &[
        SCHED_LATENCY_NS.tunable,
        SCHED_MIN_GRANULARITY_NS.tunable,
        SCHED_WAKEUP_GRANULARITY_NS.tunable,
        SCHED_CHILD_RUNS_FIRST.tunable,
        SCHED_COMPAT_YIELD.tunable,
        FAIR_SLEEPERS.tunable,
        GENTLE_FAIR_SLEEPERS.tunable,
        NORMALIZED_SLEEPER.tunable,
        START_DEBIT.tunable,
        WAKEUP_PREEMPT.tunable,
        ADAPTIVE_GRAN.tunable,
        ASYM_GRAN.tunable,
        WAKEUP_SYNC.tunable,
        WAKEUP_OVERLAP.tunable,
        WAKEUP_RUNNING.tunable,
        NEXT_BUDDY.tunable,
        LAST_BUDDY.tunable,
        GROUP_BY_USER.tunable,
        SCHED_SHARES_RATELIMIT.tunable,
        SCHED_SHARES_THRESH.tunable,
        FIX_EMPTY_SHARES.tunable,
        OVERLOAD_ON_WAKEUP.tunable,
        FIX_STRONG_BUDDIES.tunable,
    ],
    &BALANCE,
    &SYNC,
    &[HRTICK.tunable, DOUBLE_TICK.tunable],
];

pub(super) static KERNEL: Kernel = Kernel {
    name: "linux-2.6.32",
    release: Some(v2_6(32)),
    scheduler: "CFS",
    summary: "the completely fair scheduler of 2009, in RHEL 6 and its kin",
    build: Build { preemption: Preemption::Voluntary, no_hz: true },
    lacks: &[],
    policies: classes::WITH_RT,
    tunables: &joined::<{ count(TUNABLES) }>(TUNABLES),
    simulate,
};

fn simulate(run: &Run<'_>, sink: &mut dyn Sink) -> Result<Outcome> {
    let v = run.values;
    let rules = Rules {
        arithmetic: Arithmetic::Mine,
        slices: Arithmetic::Mine,
        preempt_if_ahead: v.get(&FIX_STRONG_BUDDIES) && v.get(&WAKEUP_PREEMPT),
        behind_is_far_ahead: true,
        pick_with_current: false,
        granularity_by_current: !v.get(&ASYM_GRAN),
        base_slice: false,
        fixed_nr_latency: None,
        idle_gives_way_to_batch: false,
        buddy_on_preempt: false,
        early_last_buddy: !v.get(&FIX_STRONG_BUDDIES),
        skip_on_yield: false,
        change_moves_min: true,
        nice_rescheds: true,
        change_renews_slice: false,
        moves_relative: false,
        alt_period: false,
        idle_granularity: false,
        group_goes_on: false,
        heads_list: false,
        features: Features {
            fair_sleepers: v.get(&FAIR_SLEEPERS),
            gentle_fair_sleepers: v.get(&GENTLE_FAIR_SLEEPERS),
            normalized_sleeper: v.get(&NORMALIZED_SLEEPER),
            start_debit: v.get(&START_DEBIT),
            wakeup_preemption: v.get(&WAKEUP_PREEMPT),
            adaptive_gran: v.get(&ADAPTIVE_GRAN),
            wakeup_sync: v.get(&WAKEUP_SYNC),
            wakeup_overlap: v.get(&WAKEUP_OVERLAP),
            wakeup_running: v.get(&WAKEUP_RUNNING),
            next_buddy: v.get(&NEXT_BUDDY),
            last_buddy: v.get(&LAST_BUDDY),
            ..Features::NONE
        },
        ..Rules::LAST
    };
    let groups = groups::Rules {
        nested: true,
        root_is_group: false,
        idle: false,
        by_user: v.get(&GROUP_BY_USER),
        by_session: false,
        shares: Shares::Sampled {
            every: v.get(&SCHED_SHARES_RATELIMIT),
            threshold: v.get(&SCHED_SHARES_THRESH),
            empty_count: !v.get(&FIX_EMPTY_SHARES),
        },
        bandwidth: None,
    };
    run.fair(&classes::LINUX_2_6_32, Cfs::new(rules, v, tunables), groups, sink)
}

fn tunables(v: &Values) -> Tunables {
    Tunables {
        latency: v.get(&SCHED_LATENCY_NS),
        min_granularity: v.get(&SCHED_MIN_GRANULARITY_NS),
        idle_min_granularity: v.get(&SCHED_MIN_GRANULARITY_NS),
        wakeup_granularity: v.get(&SCHED_WAKEUP_GRANULARITY_NS),
        child_runs_first: v.get(&SCHED_CHILD_RUNS_FIRST),
        compat_yield: v.get(&SCHED_COMPAT_YIELD),
    }
}

//! The scheduling classes above the fair class, by release.

use super::Run;
use crate::classes::deadline::{self, Grub, Limits, Yields};
use crate::classes::rt::{self, Rejoin};
use crate::classes::{Class, Deadline, RealTime, Stack, Turns};
use crate::tunables::{Handle, Tunable, Unit};
use schedlab_sim::program::{InterruptKind, Policy};

/// The policies of kernels with a real-time class above the fair one.
pub(super) const WITH_RT: &[Policy] = &[Policy::Other, Policy::Batch, Policy::Idle, Policy::Fifo, Policy::Rr];
/// The policies of kernels with a deadline class, too.
pub(super) const WITH_DL: &[Policy] =
    &[Policy::Other, Policy::Batch, Policy::Idle, Policy::Fifo, Policy::Rr, Policy::Deadline];

const RT_PERIOD: Handle<u64> = Handle::number(
    "sched_rt_period_us",
    Unit::Us,
    1_000_000,
    (1, i32::MAX as i64),
    "the period of the limit on real-time tasks",
);
const RT_RUNTIME: Handle<i64> = Handle::number(
    "sched_rt_runtime_us",
    Unit::Us,
    950_000,
    (-1, i32::MAX as i64),
    "how much of each such period real-time tasks may use, and deadline tasks may reserve; -1: no limit",
);

/// The tunables of real-time throttling (from 2.6.25 on).
pub(super) const RT: [Tunable; 2] = [RT_PERIOD.tunable, RT_RUNTIME.tunable];

/// The slice of SCHED_RR tasks (from 3.9 on).
pub(super) const RR: Handle<u64> =
    Handle::number("sched_rr_timeslice_ms", Unit::Ms, 100, (1, 100_000), "the slice of a SCHED_RR task");

const RUNTIME_SHARE: Handle<bool> =
    Handle::switch("RT_RUNTIME_SHARE", true, "CPUs borrow real-time run time from each other");

/// Whether run time is borrowed, from 3.6 on, when it became a feature, until 6.11; and by default until 5.9.
pub(super) const fn share(on: bool) -> Tunable {
    RUNTIME_SHARE.switched(on)
}

const PUSH_IPI: Handle<bool> =
    Handle::switch("RT_PUSH_IPI", true, "a CPU that would pull real-time tasks has the others push");

/// Whether CPUs have others push ("sched/rt: Use IPI to trigger RT task push migration instead of pulling", 4.1); and
/// by default until dd29c017aed6 ("sched/rt: Have RT_PUSH_IPI be default off for non PREEMPT_RT"), which the stable
/// trees took over: 6.1.192 and 6.12.117 have it.
pub(super) const fn push_ipi(on: bool) -> Tunable {
    PUSH_IPI.switched(on)
}

const DL_LONGEST: Handle<u64> = Handle::number(
    "sched_deadline_period_max_us",
    Unit::Us,
    1 << 22,
    (100, i32::MAX as i64),
    "the longest period of a deadline task",
);
const DL_SHORTEST: Handle<u64> = Handle::number(
    "sched_deadline_period_min_us",
    Unit::Us,
    100,
    (1, 1 << 22),
    "the shortest period of a deadline task",
);

/// The limits of a deadline task's period (from 5.4 on).
pub(super) const DL: [Tunable; 2] = [DL_LONGEST.tunable, DL_SHORTEST.tunable];

const SERVER_RUNTIME: Handle<u64> = Handle::number(
    "fair_server_runtime",
    Unit::Ns,
    50_000_000,
    (0, 1_000_000_000),
    "how much of each of its periods fair tasks get if real-time tasks starve them; 0: nothing",
);
const SERVER_PERIOD: Handle<u64> =
    Handle::number("fair_server_period", Unit::Ns, 1_000_000_000, (100_000, 4_194_304_000), "the fair server's period");

/// The tunables of the fair server (from 6.12 on).
pub(super) const SERVER: [Tunable; 2] = [SERVER_RUNTIME.tunable, SERVER_PERIOD.tunable];

const IRQ_TIME: Handle<bool> = Handle::switch(
    "irq_time_accounting",
    false,
    "no task is charged for the time of interrupts and softirqs, which then reduce their CPU's capacity \
     (CONFIG_IRQ_TIME_ACCOUNTING)",
);
const STEAL_TIME: Handle<bool> = Handle::switch(
    "paravirt_time_accounting",
    false,
    "the same of the time that the hypervisor takes (CONFIG_PARAVIRT_TIME_ACCOUNTING)",
);

/// How interrupts are accounted for, which is chosen as the kernel is built (from 2.6.37 and 3.1 on).
pub(super) const INTERRUPTS: [Tunable; 2] = [IRQ_TIME.tunable, STEAL_TIME.tunable];

const RT_RULES: rt::Rules = rt::Rules {
    throttles: true,
    shares: false,
    aligned: false,
    rejoin: Rejoin::HeadIfLowered,
    push_pull: true,
    has_pushed: false,
    one_overloads: false,
    beside_deadline: true,
    // "sched/rt: Make RT capacity-aware" (5.6).
    by_capacity: true,
};

const DL_RULES: deadline::Rules = deadline::Rules {
    grub: Some(Grub::Most),
    constrained: true,
    yields: Yields::WhenReplenished,
    replenishes_sleepers: true,
    // "sched/deadline: Make DL capacity-aware" (5.9).
    by_capacity: true,
};

/// The classes above fair of one release.
#[derive(Clone, Copy)]
pub(crate) struct Above {
    rt: rt::Rules,
    dl: Option<deadline::Rules>,
}

/// 2.6.24 has neither throttling nor push and pull.
pub(super) const LINUX_2_6_24: Above = Above {
    rt: rt::Rules {
        throttles: false,
        rejoin: Rejoin::End,
        push_pull: false,
        beside_deadline: false,
        by_capacity: false,
        ..RT_RULES
    },
    dl: None,
};

/// 2.6.32 and 3.10.
pub(super) const LINUX_2_6_32: Above = Above {
    rt: rt::Rules {
        shares: true,
        aligned: true,
        rejoin: Rejoin::End,
        beside_deadline: false,
        by_capacity: false,
        ..RT_RULES
    },
    dl: None,
};

/// 3.18.
pub(super) const LINUX_3_18: Above = Above {
    rt: rt::Rules { shares: true, aligned: true, rejoin: Rejoin::HeadUnlessRaised, by_capacity: false, ..RT_RULES },
    dl: Some(deadline::Rules {
        grub: None,
        constrained: false,
        yields: Yields::Overrun,
        replenishes_sleepers: false,
        by_capacity: false,
    }),
};

/// 4.1.
pub(super) const LINUX_4_1: Above = Above {
    rt: LINUX_3_18.rt,
    dl: Some(deadline::Rules {
        grub: None,
        constrained: false,
        yields: Yields::AtOnce,
        replenishes_sleepers: true,
        by_capacity: false,
    }),
};

/// 5.10, 5.15 and 6.1.
pub(super) const LINUX_5_10: Above =
    Above { rt: RT_RULES, dl: Some(deadline::Rules { grub: Some(Grub::Ratio), ..DL_RULES }) };

/// 6.6.
pub(super) const LINUX_6_6: Above = Above { rt: RT_RULES, dl: Some(DL_RULES) };

/// 6.12 replaces throttling by the fair server. "sched/rt: Make rt_rq->pushable_tasks updates drive rto_mask" (6.7).
pub(super) const LINUX_6_12: Above =
    Above { rt: rt::Rules { throttles: false, one_overloads: true, ..RT_RULES }, dl: Some(DL_RULES) };

/// Stacks the classes of a release on top of its fair class.
pub(super) fn stack<F: Class>(run: &Run<'_>, above: &Above, fair: F) -> Stack<F> {
    let v = run.values;
    let us = |handle| v.find(handle).map(|us| us * 1_000);
    let period = us(&RT_PERIOD).unwrap_or(1_000_000_000);
    let runtime = v.find(&RT_RUNTIME).and_then(|us| u64::try_from(us).ok()).map(|us| us * 1_000);
    let timeslice = v.find(&RR).unwrap_or(100) * 1_000_000;
    let release = run.kernel.release.expect("a fair class is a release's");
    let turns = Turns::new(release, run.machine);
    let tunables = rt::Tunables { runtime, period, timeslice };
    let rules = rt::Rules {
        shares: v.find(&RUNTIME_SHARE).unwrap_or(above.rt.shares),
        has_pushed: v.find(&PUSH_IPI) == Some(true),
        ..above.rt
    };
    let rt = RealTime::new(run.machine, rules, tunables, run.options.tick_period).taking(&turns);
    let limits =
        Limits { global: runtime.map(|runtime| (runtime, period)), periods: us(&DL_SHORTEST).zip(us(&DL_LONGEST)) };
    // "sched: Rework pick_next_task()" and the rest of its series (6.12) do not set what goes on running anew.
    let restarts = release < schedlab_base::v(6, 12);
    let dl = above.dl.map(|rules| {
        let dl = Deadline::new(run.machine, rules, limits).taking(&turns).ticking(run.hrtick().deadline, restarts);
        match v.find(&SERVER_RUNTIME).zip(v.find(&SERVER_PERIOD)) {
            Some((runtime, period)) => dl.with_servers(runtime, period),
            None => dl,
        }
    });
    let on = |handle| v.find(handle) == Some(true);
    let irq = [InterruptKind::Irq, InterruptKind::Softirq].into_iter().filter(|_| on(&IRQ_TIME));
    let steal = Some(InterruptKind::Steal).filter(|_| on(&STEAL_TIME));
    // "sched: Cleanup/optimize clock updates" (2.6.35).
    let stand = release >= schedlab_base::v2_6(35);
    Stack::new(fair, rt, dl, turns)
        .ticking(run.hrtick().any())
        .accounting(irq.chain(steal).collect())
        .with_clocks_that_stand(stand)
}

//! How tasks are scheduled and what groups are, as traces contain it.

use crate::program::{GroupSpec, Load, NO_SESSION, Policy};
use crate::task::{Attributes, Task};
use schedlab_base::{self as base, GroupProperties, TaskProperties};

/// The clamps of a task that has none.
const UNCLAMPED: (u16, u16) = (0, 1024);

/// How a task with these attributes of its own is scheduled.
pub(super) fn of(task: &Task, attributes: &Attributes, load: &Load) -> TaskProperties {
    let fair = matches!(attributes.policy, Policy::Other | Policy::Batch | Policy::Idle);
    let deadline = attributes.policy == Policy::Deadline;
    let time = |wanted: bool, ns: u64| Some(ns).filter(|ns| wanted && *ns > 0);
    let clamp = |ours: u16| Some(ours).filter(|_| task.clamp != UNCLAMPED);
    let session = Some(task.session).filter(|session| *session != NO_SESSION);
    let nice = load.session_nice.iter().find(|(of, _)| Some(*of) == session).map(|(_, nice)| *nice);
    let properties = TaskProperties {
        policy: Some(policy(attributes.policy)),
        nice: Some(attributes.nice),
        rt_priority: Some(attributes.rt_priority).filter(|priority| *priority > 0),
        slice_ns: time(fair, attributes.runtime),
        runtime_ns: time(deadline, attributes.runtime),
        deadline_ns: time(deadline, attributes.deadline),
        period_ns: time(deadline, attributes.period),
        util_min: clamp(task.clamp.0),
        util_max: clamp(task.clamp.1),
        reset_on_fork: false,
        reclaim: deadline && attributes.reclaim,
        autogroup: session.map(u64::from),
        autogroup_nice: nice.filter(|nice| *nice != 0),
    };
    // Times of years, which a load may ask for, are not written down.
    if properties.check().is_err() { TaskProperties::default() } else { properties }
}

fn policy(policy: Policy) -> base::Policy {
    match policy {
        Policy::Other => base::Policy::Other,
        Policy::Batch => base::Policy::Batch,
        Policy::Idle => base::Policy::Idle,
        Policy::Fifo => base::Policy::Fifo,
        Policy::Rr => base::Policy::Rr,
        Policy::Deadline => base::Policy::Deadline,
    }
}

/// What a group is.
pub(super) fn of_group(group: &GroupSpec) -> GroupProperties {
    let us = |ns: u64| ns / 1000;
    let properties = GroupProperties {
        shares: Some(group.shares),
        quota_us: Some(group.bandwidth.map_or(-1, |(quota, _)| us(quota) as i64)),
        period_us: group.bandwidth.map(|(_, period)| us(period)),
        burst_us: Some(us(group.burst)).filter(|burst| *burst > 0),
        idle: group.idle,
        ..GroupProperties::default()
    };
    if properties.check().is_err() { GroupProperties::default() } else { properties }
}

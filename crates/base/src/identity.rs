//! What the scheduler knows of a task besides what the task does: its policy and parameters, its session, its group.

use crate::{Nanos, Tid};
use serde::{Deserialize, Serialize};

/// A scheduling policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Policy {
    Other,
    Batch,
    Idle,
    Fifo,
    Rr,
    Deadline,
    Ext,
}

impl Policy {
    /// The policy that the kernel gives this number (`SCHED_OTHER` and others in include/uapi/linux/sched.h).
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Other,
            1 => Self::Fifo,
            2 => Self::Rr,
            3 => Self::Batch,
            5 => Self::Idle,
            6 => Self::Deadline,
            7 => Self::Ext,
            _ => return None,
        })
    }

    /// Whether it is a policy of the fair class.
    #[must_use]
    pub fn is_fair(self) -> bool {
        matches!(self, Self::Other | Self::Batch | Self::Idle)
    }

    /// Whether it is a policy of the real-time class.
    #[must_use]
    pub fn is_real_time(self) -> bool {
        matches!(self, Self::Fifo | Self::Rr)
    }
}

/// How a task is scheduled. A value that is not known is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskProperties {
    /// Its policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Its nice level, -20 to 19. Real-time tasks have one too, which counts when they become ordinary tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nice: Option<i8>,
    /// Its real-time priority, 1 to 99.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rt_priority: Option<u8>,
    /// The slice of an ordinary task, which is the kernel's base slice unless the task has asked for another (6.12 on).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slice_ns: Option<Nanos>,
    /// The runtime of a deadline task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_ns: Option<Nanos>,
    /// Its relative deadline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<Nanos>,
    /// Its period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<Nanos>,
    /// The least utilisation that is assumed of it, 0 to 1024.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub util_min: Option<u16>,
    /// The greatest one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub util_max: Option<u16>,
    /// Whether its children start with default properties (`SCHED_FLAG_RESET_ON_FORK`).
    #[serde(skip_serializing_if = "is_false")]
    pub reset_on_fork: bool,
    /// Whether a deadline task reclaims bandwidth that others leave unused (`SCHED_FLAG_RECLAIM`).
    #[serde(skip_serializing_if = "is_false")]
    pub reclaim: bool,
    /// The number of its autogroup, that of its session; missing for tasks without one, such as kernel threads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autogroup: Option<u64>,
    /// The nice level of its autogroup; missing if that is 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autogroup_nice: Option<i8>,
}

impl TaskProperties {
    /// What the child of a task with these properties starts with: the same, unless the task resets them on fork.
    #[must_use]
    pub fn of_child(&self) -> Self {
        if !self.reset_on_fork {
            return self.clone();
        }
        // sched_fork(): real-time and deadline tasks become ordinary ones of nice 0, negative nice levels end, and so
        // do clamps.
        let fair = self.policy.is_none_or(Policy::is_fair);
        Self {
            policy: if fair { self.policy } else { Some(Policy::Other) },
            nice: if fair { self.nice.map(|nice| nice.max(0)) } else { Some(0) },
            autogroup: self.autogroup,
            autogroup_nice: self.autogroup_nice,
            ..Self::default()
        }
    }

    /// The kernel's priority, as events contain it, if the properties determine it.
    #[must_use]
    pub fn prio(&self) -> Option<i16> {
        match self.policy? {
            Policy::Deadline => Some(-1),
            policy if policy.is_real_time() => Some(99 - i16::from(self.rt_priority?)),
            _ => Some(120 + i16::from(self.nice?)),
        }
    }

    /// Checks the values, of a file for example: each must be one that a kernel accepts.
    ///
    /// # Errors
    /// With the name of the first value that is out of range, and the range.
    pub fn check(&self) -> Result<(), String> {
        within("nice", self.nice, -20, 19)?;
        within("autogroup_nice", self.autogroup_nice, -20, 19)?;
        within("rt_priority", self.rt_priority, 0, 99)?;
        within("util_min", self.util_min, 0, 1024)?;
        within("util_max", self.util_max, 0, 1024)?;
        within("slice_ns", self.slice_ns, 0, LONGEST)?;
        within("runtime_ns", self.runtime_ns, 0, LONGEST)?;
        within("deadline_ns", self.deadline_ns, 0, LONGEST)?;
        within("period_ns", self.period_ns, 0, LONGEST)
    }
}

/// The properties of a cgroup that the scheduler uses. A value that is not known is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GroupProperties {
    /// Its weight (cgroup v2, `cpu.weight`), 1 to 10000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Its shares (cgroup v1, `cpu.shares`), 2 to 262144.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares: Option<u64>,
    /// How much CPU time it may use in each period; -1 is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_us: Option<i64>,
    /// The period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_us: Option<u64>,
    /// How much unused quota it may save.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_us: Option<u64>,
    /// Whether it is an idle group (`cpu.idle`).
    #[serde(skip_serializing_if = "is_false")]
    pub idle: bool,
    /// The least utilisation that is assumed of its tasks, in hundredths of a percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub util_min: Option<u16>,
    /// The greatest one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub util_max: Option<u16>,
}

impl GroupProperties {
    /// Checks the values: each must be one that a kernel accepts.
    ///
    /// # Errors
    /// With the name of the first value that is out of range, and the range.
    pub fn check(&self) -> Result<(), String> {
        within("weight", self.weight, 0, 10_000)?;
        within("shares", self.shares, 0, 1 << 18)?;
        within("quota_us", self.quota_us, -1, LONGEST as i64 / 1000)?;
        within("period_us", self.period_us, 0, LONGEST / 1000)?;
        within("burst_us", self.burst_us, 0, LONGEST / 1000)?;
        within("util_min", self.util_min, 0, 10_000)?;
        within("util_max", self.util_max, 0, 10_000)
    }
}

/// The longest time that a value may be: a year.
const LONGEST: Nanos = 365 * 24 * 3600 * 1_000_000_000;

fn within<T: PartialOrd + std::fmt::Display>(name: &str, value: Option<T>, least: T, most: T) -> Result<(), String> {
    match value {
        Some(value) if value < least || value > most => Err(format!("{name} is {value}, not in {least}..{most}")),
        _ => Ok(()),
    }
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// From `time` on, the task `tid` is scheduled like this. The record replaces the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// The time on the trace's clock; 0 for what held from the start.
    pub time: Nanos,
    /// The thread.
    pub tid: Tid,
    /// How it is scheduled.
    pub properties: TaskProperties,
}

/// From `time` on, a cgroup has these properties. The record replaces the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRecord {
    /// The time on the trace's clock; 0 for what held from the start.
    pub time: Nanos,
    /// The path of the cgroup, as in [`NameRecord`](crate::NameRecord).
    pub path: String,
    /// Its properties.
    pub properties: GroupProperties,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_inherits_unless_the_parent_resets() {
        let parent = TaskProperties {
            policy: Some(Policy::Fifo),
            nice: Some(-5),
            rt_priority: Some(10),
            autogroup: Some(7),
            ..TaskProperties::default()
        };
        assert_eq!(parent.of_child(), parent);
        let child = TaskProperties { reset_on_fork: true, ..parent }.of_child();
        assert_eq!((child.policy, child.nice, child.rt_priority), (Some(Policy::Other), Some(0), None));
        assert_eq!((child.autogroup, child.reset_on_fork, child.prio()), (Some(7), false, Some(120)));
        let nice = TaskProperties { reset_on_fork: true, nice: Some(3), ..TaskProperties::default() };
        assert_eq!(nice.of_child().nice, Some(3));
    }

    #[test]
    fn values_that_no_kernel_accepts_are_named() {
        let nice = TaskProperties { nice: Some(20), ..TaskProperties::default() };
        assert_eq!(nice.check().unwrap_err(), "nice is 20, not in -20..19");
        let quota = GroupProperties { quota_us: Some(-2), ..GroupProperties::default() };
        assert!(quota.check().unwrap_err().starts_with("quota_us is -2"));
        assert_eq!(TaskProperties::default().check(), Ok(()));
    }
}

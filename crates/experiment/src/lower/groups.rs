//! Groups: those of `x-groups`, those that `taskgroup` names, and all above them.

use super::names::Index;
use schedlab_base::Nanos;
use schedlab_sim::program::GroupSpec;
use schedlab_workload::{Group, Workload};
use std::collections::BTreeSet;

/// The kernel's bounds on shares (`MIN_SHARES`, `MAX_SHARES` in kernel/sched/sched.h).
const SHARES: std::ops::RangeInclusive<u64> = 2..=1 << 18;
/// Shares of a group of which nothing is said (`NICE_0_LOAD`).
const DEFAULT_SHARES: u64 = 1024;
/// The period of a quota where none is given (`default_cfs_period`).
const DEFAULT_PERIOD: Nanos = 100_000_000;

/// The groups, each after the one above it, and their indices by path.
pub(super) fn lower(workload: &Workload) -> (Vec<GroupSpec>, Index) {
    let props = workload.tasks.iter().flat_map(|task| task.phases.iter().map(|p| &p.props).chain([&task.props]));
    let named = workload.groups.keys().chain(props.filter_map(|props| props.taskgroup.as_ref()));
    let mut paths = BTreeSet::new();
    for path in named {
        let ends = path.match_indices('/').map(|(at, _)| at).skip(1).chain([path.len()]);
        paths.extend(ends.map(|end| &path[..end]).filter(|path| path.len() > 1));
    }
    // In this order a path comes after each of its beginnings.
    let mut index = Index::default();
    let mut specs = Vec::with_capacity(paths.len());
    for path in paths {
        let parent = path.rfind('/').and_then(|at| index.get(&path[..at]));
        index.add(path);
        specs.push(spec(path, parent, workload.groups.get(path).unwrap_or(&Group::default())));
    }
    (specs, index)
}

fn spec(path: &str, parent: Option<u32>, group: &Group) -> GroupSpec {
    // As the kernel makes shares of a v2 weight: DIV_ROUND_CLOSEST(weight * 1024, 100), `sched_weight_from_cgroup`.
    let shares = group.weight.map(|weight| (u64::from(weight) * 1024 + 50) / 100);
    let shares = shares.or(group.shares).unwrap_or(DEFAULT_SHARES);
    GroupSpec {
        path: path.to_owned(),
        parent,
        shares: shares.clamp(*SHARES.start(), *SHARES.end()),
        bandwidth: group.quota.map(|quota| (quota, group.period.unwrap_or(DEFAULT_PERIOD))),
        burst: group.burst.unwrap_or(0),
        idle: group.idle,
    }
}

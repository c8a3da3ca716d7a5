//! The cgroups of a trace as groups of a workload.

use crate::Group;
use schedlab_base::{GroupProperties, GroupRecord, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// The most cgroups, and changes of each, that are remembered.
const MOST: usize = 1 << 14;
const MOST_CHANGES: usize = 256;
/// The kernel's bounds on a period.
const PERIOD: std::ops::RangeInclusive<Nanos> = 1_000_000..=1_000_000_000;
/// The deepest group that a workload has.
const MAX_DEPTH: usize = 64;

/// All cgroups that a trace describes.
#[derive(Debug, Default)]
pub(super) struct Groups {
    known: BTreeMap<String, Vec<(Nanos, GroupProperties)>>,
}

impl Groups {
    pub fn add(&mut self, record: &GroupRecord) {
        if self.known.len() >= MOST && !self.known.contains_key(&record.path) {
            return;
        }
        let changes = self.known.entry(record.path.clone()).or_default();
        if changes.len() < MOST_CHANGES {
            changes.push((record.time, record.properties.clone()));
        }
    }

    /// Whether the trace describes any.
    pub fn are_known(&self) -> bool {
        !self.known.is_empty()
    }

    /// Whether this cgroup or one above it had a quota at any time.
    pub fn has_quota(&self, path: &str) -> bool {
        let mut above = path.match_indices('/').map(|(at, _)| &path[..at]).chain([path]);
        above.any(|path| {
            self.known.get(path).into_iter().flatten().any(|(_, group)| group.quota_us.is_some_and(|quota| quota >= 0))
        })
    }

    /// The path of the group whose weight counts for a task in this cgroup: itself, or the nearest above it for which
    /// the cpu controller is enabled; none for the root group.
    pub fn effective(&self, path: &str) -> Option<String> {
        let counts = |path: &&str| {
            let last = self.known.get(*path).and_then(|changes| changes.last());
            last.is_some_and(|(_, group)| group.weight.is_some() || group.shares.is_some())
        };
        let plain = path.split('/').skip(1).all(|part| !part.is_empty() && part != "." && part != "..");
        if !path.starts_with('/') || !plain || path.matches('/').count() > MAX_DEPTH {
            return None;
        }
        let above = path.match_indices('/').map(|(at, _)| &path[..at]).skip(1);
        above.chain([path]).filter(counts).last().map(str::to_owned)
    }

    /// The groups with these paths and those above them, as they were for most of the time until `end`; and the paths
    /// of those that changed.
    pub fn of<'a>(
        &self,
        paths: impl Iterator<Item = &'a str>,
        (start, end): (Nanos, Nanos),
    ) -> (BTreeMap<String, Group>, Vec<String>) {
        let mut wanted = BTreeSet::new();
        for path in paths {
            wanted.extend(path.match_indices('/').map(|(at, _)| &path[..at]).skip(1).chain([path]));
        }
        let (mut groups, mut changed) = (BTreeMap::new(), Vec::new());
        for path in wanted {
            let Some(changes) = self.known.get(path) else { continue };
            let mut longest: Option<(Nanos, &GroupProperties)> = None;
            for (at, (time, properties)) in changes.iter().enumerate() {
                let until = changes.get(at + 1).map_or(end, |(next, _)| *next).clamp(start, end);
                let lasted = until.saturating_sub((*time).clamp(start, end));
                if longest.is_none_or(|(most, _)| lasted >= most) {
                    longest = Some((lasted, properties));
                }
            }
            let inside = changes.iter().filter(|(time, _)| (start..end).contains(time)).count();
            if changes.len() > 1 && inside > 0 {
                changed.push(path.to_owned());
            }
            if let Some((_, properties)) = longest {
                groups.insert(path.to_owned(), group(properties));
            }
        }
        (groups, changed)
    }
}

fn group(known: &GroupProperties) -> Group {
    let quota = known.quota_us.and_then(|us| u64::try_from(us).ok()).map(|us| us * 1000);
    let quota = quota.filter(|quota| *quota >= *PERIOD.start());
    let weight = known.weight.filter(|weight| (1..=10_000).contains(weight));
    let limited = |us: Option<u64>| us.map(|us| us * 1000).filter(|_| quota.is_some());
    Group {
        weight,
        shares: known.shares.filter(|shares| weight.is_none() && *shares > 0),
        quota,
        period: limited(known.period_us).filter(|period| PERIOD.contains(period)),
        burst: limited(known.burst_us).filter(|burst| *burst > 0).map(|burst| burst.min(quota.unwrap_or(0))),
        idle: known.idle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(records: &[(Nanos, &str, GroupProperties)]) -> Groups {
        let mut groups = Groups::default();
        for (time, path, properties) in records {
            groups.add(&GroupRecord { time: *time, path: (*path).into(), properties: properties.clone() });
        }
        groups
    }

    fn weight(weight: u32) -> GroupProperties {
        GroupProperties { weight: Some(weight), quota_us: Some(-1), ..GroupProperties::default() }
    }

    #[test]
    fn a_task_counts_for_the_nearest_group_with_a_weight() {
        let none = GroupProperties::default();
        let groups = groups(&[(0, "/a", weight(100)), (0, "/a/b", none.clone()), (0, "/c", none)]);
        assert_eq!(groups.effective("/a").as_deref(), Some("/a"));
        assert_eq!(groups.effective("/a/b").as_deref(), Some("/a"));
        assert_eq!(groups.effective("/a/b/unseen").as_deref(), Some("/a"));
        assert_eq!((groups.effective("/c"), groups.effective("/"), groups.effective("/a/../c")), (None, None, None));
    }

    #[test]
    fn groups_come_with_those_above_them_as_they_were_longest() {
        let limits =
            GroupProperties { quota_us: Some(20_000), period_us: Some(50_000), burst_us: Some(30_000), ..weight(7) };
        let groups =
            groups(&[(0, "/a", weight(100)), (90, "/a", weight(300)), (0, "/a/b", limits), (0, "/c", weight(1))]);
        let (found, changed) = groups.of(["/a/b"].into_iter(), (0, 100));
        assert_eq!(found.keys().collect::<Vec<_>>(), ["/a", "/a/b"]);
        assert_eq!((found["/a"].weight, found["/a"].quota, changed), (Some(100), None, vec!["/a".to_owned()]));
        let b = &found["/a/b"];
        assert_eq!((b.quota, b.period, b.burst), (Some(20_000_000), Some(50_000_000), Some(20_000_000)));
        let (late, unchanged) = groups.of(["/a"].into_iter(), (95, 100));
        assert_eq!((late["/a"].weight, unchanged.len()), (Some(300), 0));
    }
}

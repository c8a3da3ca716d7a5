//! Task groups: which groups exist, depending on what a kernel groups by, and their shares.

use super::bandwidth::{self, Pool};
use super::load::WEIGHTS;
use super::shares::Shares;
use schedlab_base::{Error, Result};
use schedlab_sim::Task;
use schedlab_sim::program::{Load, NO_SESSION, ROOT_GROUP, TaskSpec};

/// The weight of an idle group (`WEIGHT_IDLEPRIO`).
const IDLE_SHARES: u64 = 3;
/// The allowed range of shares.
const RANGE: std::ops::RangeInclusive<u64> = 2..=1 << 18;
/// The shares of a group without a cgroup: that of a user, of a session, or of the root.
const SHARES: u64 = 1024;
/// The shares of user 0 (`INIT_TASK_GROUP_LOAD`).
const ROOT_USER_SHARES: u64 = 2048;

/// The most queues of groups that a run may have. Each takes some 600 bytes.
const MOST_QUEUES: u64 = 1 << 21;

/// The rules for groups that differ between releases.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// Whether groups can be nested (2.6.25 on). Before, all groups are siblings.
    pub nested: bool,
    /// Whether the tasks of the root group form a group of their own, on a level with the others (2.6.24).
    pub root_is_group: bool,
    /// Whether groups can be idle (5.15 on).
    pub idle: bool,
    /// Whether tasks are grouped by user, and there are no other groups (CONFIG_USER_SCHED, until 2.6.33).
    pub by_user: bool,
    /// Whether tasks of the root group are grouped by session (autogroup, 2.6.38 on).
    pub by_session: bool,
    /// How a group's shares are distributed over the CPUs.
    pub shares: Shares,
    /// The rules of bandwidth control, if the kernel has it.
    pub bandwidth: Option<bandwidth::Rules>,
}

impl Rules {
    /// The rules of 5.15 and later, without autogroups.
    #[must_use]
    pub const fn last(bandwidth: bandwidth::Rules) -> Self {
        Self {
            nested: true,
            root_is_group: false,
            idle: true,
            by_user: false,
            by_session: false,
            shares: Shares::ByLoad,
            bandwidth: Some(bandwidth),
        }
    }
}

/// A task group.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// Its path, or a name for its user or session.
    pub name: String,
    /// The parent group; `None` is the root.
    pub parent: Option<u32>,
    /// The child groups.
    pub children: Vec<u32>,
    /// Its shares.
    pub shares: u64,
    /// Whether it is an idle group.
    pub idle: bool,
    /// The sum of the loads of its queues on all CPUs.
    pub load: u64,
    /// The pool of its quota, if it has one.
    pub pool: Option<Pool>,
}

/// All groups, and how tasks are assigned to them.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub all: Vec<Group>,
    by_user: bool,
    /// The users or sessions in ascending order. Their groups start at index `first`.
    keys: Vec<u32>,
    first: u32,
    /// The group of the root's tasks, if they form one.
    root: Option<u32>,
}

/// Refuses a load with more groups than there is memory for: each has a queue on each CPU, from the start.
///
/// # Errors
/// When there are too many.
pub fn check(load: &Load, rules: &Rules, cpus: u32) -> Result<()> {
    let groups = Groups::new(load, rules).all.len() as u64;
    if groups * u64::from(cpus) <= MOST_QUEUES {
        return Ok(());
    }
    let what = format!("{groups} groups on {cpus} CPUs are more than {MOST_QUEUES} queues");
    let mend = format!("take {} groups, users or sessions at most, or fewer CPUs", MOST_QUEUES / u64::from(cpus));
    Err(Error::input(what).mend(mend))
}

impl Groups {
    /// Creates the groups of a workload under these rules.
    pub fn new(load: &Load, rules: &Rules) -> Self {
        let mut groups = Self { by_user: rules.by_user, ..Self::default() };
        if rules.by_user {
            groups.add_keys(keys(load, |t| t.user).collect(), "user");
            if let Some(root) = groups.keys.first().filter(|uid| **uid == 0) {
                groups.all[*root as usize].shares = ROOT_USER_SHARES;
            }
            return groups;
        }
        for spec in &load.groups {
            let idle = spec.idle && rules.idle;
            let shares = if idle { IDLE_SHARES } else { spec.shares.clamp(*RANGE.start(), *RANGE.end()) };
            let parent = spec.parent.filter(|_| rules.nested);
            groups.all.push(Group { name: spec.path.clone(), parent, shares, idle, ..Group::default() });
        }
        if let Some(rules) = &rules.bandwidth {
            for (group, spec) in groups.all.iter_mut().zip(&load.groups) {
                group.pool = spec.bandwidth.map(|(quota, period)| Pool::new(quota, period, spec.burst, rules));
            }
        }
        if rules.by_session {
            let of_root = || keys(load, |t| t.session);
            // Without other groups, one session is all there is and needs no group of its own.
            if !load.groups.is_empty() || of_root().min() != of_root().max() {
                groups.add_keys(of_root().filter(|session| *session != NO_SESSION).collect(), "session");
                for (session, nice) in &load.session_nice {
                    // As `proc_sched_autogroup_set_nice()` does.
                    if let Ok(at) = groups.keys.binary_search(session) {
                        groups.all[groups.first as usize + at].shares = WEIGHTS[(*nice + 20) as usize];
                    }
                }
            }
        }
        if rules.root_is_group && !groups.all.is_empty() {
            groups.root = Some(groups.all.len() as u32);
            groups.all.push(Group { name: "/".into(), shares: SHARES, ..Group::default() });
        }
        for g in 0..groups.all.len() {
            if let Some(parent) = groups.all[g].parent {
                groups.all[parent as usize].children.push(g as u32);
            }
        }
        groups
    }

    /// All groups, newest first. The root's group, if there is one, is the oldest.
    pub fn newest_first(&self) -> impl Iterator<Item = u32> + use<> {
        let root = self.root;
        (0..self.all.len() as u32).rev().filter(move |g| Some(*g) != root).chain(root)
    }

    /// Adds a group for each distinct key.
    fn add_keys(&mut self, mut keys: Vec<u32>, what: &str) {
        keys.sort_unstable();
        keys.dedup();
        self.first = self.all.len() as u32;
        for key in &keys {
            self.all.push(Group { name: format!("{what} {key}"), shares: SHARES, ..Group::default() });
        }
        self.keys = keys;
    }

    /// The group of a task; `None` is the root.
    #[inline]
    pub fn of(&self, task: &Task) -> Option<u32> {
        if self.all.is_empty() { None } else { self.look_up(task) }
    }

    fn look_up(&self, task: &Task) -> Option<u32> {
        let keyed = |key: u32| self.keys.binary_search(&key).ok().map(|i| self.first + i as u32);
        if self.by_user {
            return keyed(task.user);
        }
        let group = Some(task.group).filter(|group| *group != ROOT_GROUP);
        group.or_else(|| keyed(task.session)).or(self.root)
    }
}

/// The users or sessions of a load. Tasks that say nothing have 0, and what they fork has theirs.
fn keys(load: &Load, of: fn(&TaskSpec) -> Option<u32>) -> impl Iterator<Item = u32> {
    let started = load.tasks.iter().map(move |task| of(task).unwrap_or(0));
    started.chain(load.templates.iter().filter_map(of))
}

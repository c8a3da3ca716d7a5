//! Which queues balancing across nodes pulls from, depending on NUMA task placement.

use super::load_balance::{Env, Work};
use super::queues::Queues;
use crate::balance::domains::{Flags, GroupId};
use schedlab_base::CpuId;

/// A classification of a runqueue, or of a group of CPUs, by how NUMA balancing has placed its tasks (`fbq_type`, from
/// 3.13 on). Balancing across nodes skips runqueues of a later kind than the busiest group's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QueueKind {
    /// Some tasks have no preferred node.
    Regular,
    /// All tasks have a preferred node, and some run on another node.
    Remote,
    /// All tasks run on their preferred node, or the classification is not used.
    All,
}

impl QueueKind {
    /// Classifies by the number of runnable tasks, how many of them have a preferred node, and how many are on it.
    fn of(running: u32, (preferring, there): (u32, u32)) -> Self {
        match running {
            _ if running > preferring => Self::Regular,
            _ if running > there => Self::Remote,
            _ => Self::All,
        }
    }
}

impl<Q: Queues> Work<'_, Q> {
    /// The kind of queues that balancing may pull from: that of the busiest group (`fbq_classify_group`).
    pub fn kind_of_group(&self, env: &Env, group: GroupId) -> QueueKind {
        if !self.b.domain(env.cpu, env.level).flags.has(Flags::NUMA) || !self.q.prefers_nodes() {
            return QueueKind::All;
        }
        let cpus = self.span(self.b.domains.group(group).span).iter().filter(|cpu| self.counts(**cpu));
        let (mut running, mut placed) = (0, (0, 0));
        for &cpu in cpus {
            let (preferring, there) = self.q.nr_preferring(cpu);
            running += self.q.nr_running(cpu);
            placed = (placed.0 + preferring, placed.1 + there);
        }
        QueueKind::of(running, placed)
    }

    /// Whether balancing skips a runqueue because its tasks are placed better than `env.kind` (`fbq_classify_rq`).
    pub fn is_placed(&self, env: &Env, cpu: CpuId) -> bool {
        env.kind < QueueKind::All && QueueKind::of(self.q.nr_running(cpu), self.q.nr_preferring(cpu)) > env.kind
    }
}

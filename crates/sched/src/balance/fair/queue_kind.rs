//! Which queues a balancing across nodes takes from, by what NUMA balancing has placed.

use super::load_balance::{Env, Work};
use super::queues::Queues;
use crate::balance::domains::{Flags, GroupId};
use schedlab_base::CpuId;

/// How many tasks of a queue or of a group of CPUs NUMA balancing has placed (`fbq_type`, 3.13 on). A balancing across
/// nodes takes from queues of no later kind than the busiest group's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QueueKind {
    /// Not all have a preferred node.
    Regular,
    /// All have one, and some are elsewhere.
    Remote,
    /// All are where they are to be.
    All,
}

impl QueueKind {
    /// By how many tasks are runnable, how many of them have a preferred node, and how many are on it.
    fn of(running: u32, (preferring, there): (u32, u32)) -> Self {
        match running {
            _ if running > preferring => Self::Regular,
            _ if running > there => Self::Remote,
            _ => Self::All,
        }
    }
}

impl<Q: Queues> Work<'_, Q> {
    /// What kind of queues a balancing across nodes takes from: that of the group (`fbq_classify_group`).
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

    /// Whether this balancing leaves a queue alone for what NUMA balancing says of its tasks
    /// (`fbq_classify_rq`).
    pub fn is_placed(&self, env: &Env, cpu: CpuId) -> bool {
        env.kind < QueueKind::All && QueueKind::of(self.q.nr_running(cpu), self.q.nr_preferring(cpu)) > env.kind
    }
}

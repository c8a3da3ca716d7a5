//! Load balancing of 2.6.0, by queue lengths: the longest queue of the node, and now and then of the busiest node.

use super::super::O1;
use super::super::release::Balancing;
use super::moving::{Haul, Heat};
use crate::balance::rounds::Idleness;
use schedlab_base::{CpuId, Looking, Nanos};
use schedlab_machine::Machine;
use schedlab_sim::{Choice, Core, Decision};

/// The load of another node, in percent of its own node's, above which a CPU pulls from there (`NODE_THRESHOLD`).
const NODE_THRESHOLD: u64 = 125;

/// What each CPU saw when it last looked.
#[derive(Debug)]
pub struct Lengths {
    cpus: usize,
    /// The number of runnable tasks on each CPU (`prev_cpu_load`), for each CPU that looked.
    seen: Vec<u32>,
    /// The load of each node (`prev_node_load`), for each CPU that looked.
    nodes_seen: Vec<Vec<u64>>,
    /// The number of ticks between two looks, of an idle CPU and (`busy_every`) of a busy one.
    idle_every: u64,
    busy_every: u64,
}

impl Lengths {
    /// Creates the state for a machine with a tick every `tick` ns; it is empty for releases with sched domains.
    pub fn new(balancing: Balancing, machine: &Machine, tick: Nanos) -> Self {
        let hz = 1_000_000_000 / tick;
        let cpus = if balancing == Balancing::ByLength { machine.cpus.len() } else { 0 };
        Self {
            cpus,
            seen: vec![0; cpus * cpus],
            nodes_seen: vec![vec![0; machine.nodes()]; cpus],
            idle_every: (hz / 1000).max(1),
            busy_every: (hz / 5).max(1),
        }
    }

    /// Returns the number of ticks between two looks.
    pub fn interval(&self, idle: Idleness) -> u64 {
        if idle == Idleness::Busy { self.busy_every } else { self.idle_every }
    }

    fn seen(&mut self, by: CpuId, of: CpuId) -> &mut u32 {
        &mut self.seen[by as usize * self.cpus + of as usize]
    }
}

impl O1<'_> {
    /// Balances at a tick (`rebalance_tick`): other nodes first, at every fifth look of an idle CPU and every second
    /// look of a busy one.
    pub(super) fn rebalance_by_length(&mut self, cx: &mut Core, cpu: CpuId, idle: Idleness) {
        let every = self.smp().lengths.interval(idle);
        let nodes_every = every * if idle == Idleness::Busy { 2 } else { 5 };
        let domains = self.smp().rounds.domains();
        let mut levels = domains.of(cpu).iter();
        let (node, nodes) = (levels.next(), levels.next());
        if let Some(nodes) = nodes
            && cx.jiffies().is_multiple_of(nodes_every)
        {
            let groups = domains.groups(nodes).map(|group| &domains.span(domains.group(group).span).cpus[..]);
            if let Some(busiest) = self.busiest_node(cx, cpu, groups) {
                self.balance_by_length(cx, cpu, idle, busiest);
            }
        }
        if let Some(node) = node
            && cx.jiffies().is_multiple_of(every)
        {
            self.balance_by_length(cx, cpu, idle, &domains.span(node.span).cpus);
        }
    }

    /// Returns the node with the most tasks for each CPU, if it has a quarter more than this one (`find_busiest_node`).
    /// Earlier loads count half as much each time. The CPU's own node is the first of `nodes`.
    fn busiest_node<'d>(
        &mut self,
        cx: &Core,
        cpu: CpuId,
        nodes: impl Iterator<Item = &'d [CpuId]>,
    ) -> Option<&'d [CpuId]> {
        let mut own = None;
        let mut busiest: Option<(u64, &[CpuId])> = None;
        for cpus in nodes {
            let running: u64 = cpus.iter().map(|other| u64::from(self.nr_running(*other))).sum();
            let node = cx.machine().cpus[cpus[0] as usize].place.node as usize;
            let seen = &mut self.smp.as_mut()?.lengths.nodes_seen[cpu as usize][node];
            let load = *seen / 2 + 10 * running / cpus.len() as u64;
            *seen = load;
            let Some(own) = own else {
                own = Some(load);
                continue;
            };
            // Among equal nodes the first by number wins.
            let best = busiest.is_none_or(|(most, other)| (load, other[0]) > (most, cpus[0]));
            if load > own && 100 * load > NODE_THRESHOLD * own && best {
                busiest = Some((load, cpus));
            }
        }
        busiest.map(|(_, cpus)| cpus)
    }

    /// Pulls from the longest of these queues (`load_balance`): one task if this CPU is idle, otherwise half of the
    /// difference. Half of a difference of one is zero, and the kernel counts down past zero, so it pulls everything
    /// that can be moved.
    pub(super) fn balance_by_length(&mut self, cx: &mut Core, cpu: CpuId, idle: Idleness, cpus: &[CpuId]) {
        let why = if idle == Idleness::Newly { Looking::NewIdle } else { Looking::Periodic };
        self.look_at(cx, cpu, why, cpus);
        let Some((from, length, here)) = self.longest(cpu, idle, cpus) else { return };
        let difference = i64::from(length) - i64::from(here);
        let half = difference / 2;
        let most = if idle != Idleness::Busy {
            1
        } else if half == 0 {
            u64::MAX
        } else {
            half as u64
        };
        let heat = if idle == Idleness::Busy { Heat::SinceQueued(self.rules.cache_decay()) } else { Heat::Cold };
        let running = cx.curr(from);
        let haul = Haul { from, to: cpu, most, weight: i64::MAX, heat, running };
        cx.explain(|_| {
            Decision::new(cpu, Choice::Move, None, "half of the difference to the longest queue, from the longest")
                .numbers([
                    (None, "from_cpu", i64::from(from)),
                    (None, "length_there", i64::from(length)),
                    (None, "length_here", i64::from(here)),
                ])
        });
        self.move_tasks(cx, &haul);
    }

    /// Returns the longest queue and the lengths assumed there and here (`find_busiest_queue`). A busy CPU assumes the
    /// smaller of the lengths now and at its last look for others, and the greater for itself, so that only a lasting
    /// imbalance is corrected.
    fn longest(&mut self, cpu: CpuId, idle: Idleness, cpus: &[CpuId]) -> Option<(CpuId, u32, u32)> {
        let busy = idle == Idleness::Busy;
        let now = self.nr_running(cpu);
        let smp = self.smp.as_mut()?;
        let here = if busy { now.max(*smp.lengths.seen(cpu, cpu)) } else { now };
        let (mut longest, mut most) = (None, 1);
        for &other in cpus {
            let now = self.queues[other as usize].nr_running();
            let seen = smp.lengths.seen(cpu, other);
            let length = if busy { now.min(*seen) } else { now };
            *seen = now;
            if length > most && other != cpu {
                (longest, most) = (Some(other), length);
            }
        }
        // A look at another node includes this CPU's own queue.
        *smp.lengths.seen(cpu, cpu) = now;
        let from = longest?;
        // A busy CPU requires a difference of a quarter.
        let bears = busy && (i64::from(most) - i64::from(here)) * 4 < i64::from(most);
        (!bears && self.nr_running(from) > here).then_some((from, most, here))
    }
}

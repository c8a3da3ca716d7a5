//! Summing the measures up by task, CPU, node, group and in all.

use crate::Fairness;
use crate::kept::{Kept, Nodes};
use crate::measure::us;
use crate::measures::Sums;
use crate::report::{
    CpuStats, GroupStats, NameStats, NodeStats, ProcessStats, Report, TaskStats, TeamStats, TotalStats,
};
use crate::task_cpu::TaskCpuStats;
use schedlab_base::{CpuId, Meta, Nanos, Tid};
use schedlab_track::{Slot, Tracker};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A task with its figures.
struct Life {
    slot: Slot,
    stats: TaskStats,
}

/// Whether a task ran, waited or was moved: the figures say the same as [`schedlab_track::Seen`], at no cost. In a
/// partial recording also whether it was only seen to leave a CPU.
fn was_there(sums: &Sums, partial: bool) -> bool {
    let Sums { run, wait, switches, moves, .. } = sums;
    let left = if partial { switches.voluntary + switches.involuntary } else { 0 };
    run.run_us > 0.0 || wait.wait_us > 0.0 || switches.slices + moves.migrations + left > 0
}

/// What the metadata says of a recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    /// The recording was made for some tasks.
    targeted: bool,
    /// It does not cover the whole machine, so that it may show how a task left a CPU, but not how it got there.
    partial: bool,
}

impl About {
    pub(crate) fn new(meta: &Meta) -> Self {
        Self { targeted: meta.target.is_some(), partial: meta.partial.is_some() }
    }
}

/// What was kept of a trace, when it has ended.
struct Summing<'a> {
    tracker: &'a Tracker,
    kept: &'a Kept,
    places: &'a Nodes,
    looked_at: LookedAt,
    /// The CPU time of all tasks.
    all_run: f64,
}

/// What of the trace is summed up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookedAt {
    /// From when to when.
    pub(crate) bounds: (Nanos, Nanos),
    /// The events in it.
    pub(crate) events: u64,
    /// By process and by name too.
    pub(crate) teams: bool,
    /// What the recording covers.
    pub(crate) about: About,
}

/// Says which tasks of a report are to be summed up together: their places in the list, a list for each team.
pub(crate) type Choose<'a> = &'a dyn Fn(&[TaskStats]) -> Vec<Vec<usize>>;

/// The report, and the teams that are chosen.
pub(crate) fn report(
    tracker: &Tracker,
    kept: &Kept,
    places: &Nodes,
    looked_at: LookedAt,
    choose: Choose,
) -> (Report, Vec<TeamStats>) {
    let cpus: Vec<CpuId> = tracker.present().collect();
    let whole = kept.measures.of_cpus(&cpus);
    let summing = Summing { tracker, kept, places, looked_at, all_run: whole.run.run_us };
    let lives = summing.lives();
    let cpu_stats = summing.cpus(&cpus);
    let (nodes, groups) = (summing.nodes(&cpu_stats), summing.groups(&lives));
    let total = TotalStats {
        tasks: lives.len() as u64,
        fairness: Fairness::of(lives.iter().map(|life| life.stats.sums.run.run_us)),
        fairness_cpus: Fairness::of(cpu_stats.iter().map(|cpu| cpu.sums.run.run_us)),
        fairness_nodes: Fairness::of(nodes.iter().map(|node| node.sums.run.run_us)),
        fairness_groups: Fairness::of(groups.iter().map(|group| group.sums.run.run_us)),
        ..summing.total(whole, &cpus)
    };
    let (target, others) = (summing.part(&lives, true), summing.part(&lives, false));
    let task_cpus = summing.task_cpus(&lives);
    let (processes, names) =
        if looked_at.teams { (summing.processes(&lives), summing.names(&lives)) } else { Default::default() };
    let slots: Vec<Slot> = lives.iter().map(|life| life.slot).collect();
    let tasks: Vec<TaskStats> = lives.into_iter().map(|life| life.stats).collect();
    let team = |members: Vec<usize>| summing.team(&members.into_iter().map(|at| slots[at]).collect::<Vec<_>>());
    let teams = choose(&tasks).into_iter().map(team).collect();
    let (interrupts, sleeps) = (kept.interrupts.stats(), kept.sleeps.stats());
    let report = Report {
        tasks,
        cpus: cpu_stats,
        nodes,
        groups,
        target,
        others,
        task_cpus,
        interrupts,
        sleeps,
        processes,
        names,
        total,
    };
    (report, teams)
}

impl Summing<'_> {
    /// The tasks that ran, waited or were moved, by run time.
    fn lives(&self) -> Vec<Life> {
        let partial = self.looked_at.about.partial;
        let sums = |(slot, tid)| (slot, tid, self.kept.measures.of_tasks(&[slot]));
        let there = self.tracker.tasks().map(sums).filter(|(_, _, sums)| was_there(sums, partial));
        // There can be very many of them, which are not to be copied when there turn out to be more.
        let mut lives = Vec::with_capacity(self.tracker.tasks().count());
        lives.extend(there.map(|(slot, tid, sums)| Life { slot, stats: self.task(slot, tid, sums) }));
        // A task's figures are long, and are moved but once. Times are not negative: their bits are in their order.
        lives.sort_by_cached_key(|Life { slot, stats }| (Reverse(stats.sums.run.run_us.to_bits()), stats.tid, *slot));
        lives
    }

    fn share(&self, sums: &Sums) -> f64 {
        part(sums.run.run_us, self.all_run)
    }

    /// Whether the task belongs to the target of the recording, if it has one.
    fn in_target(&self, slot: Slot) -> Option<bool> {
        self.looked_at.about.targeted.then(|| self.tracker.is_target(slot))
    }

    /// The tasks of the target together, or the others.
    fn part(&self, lives: &[Life], of_target: bool) -> Option<TeamStats> {
        let part = lives.iter().map(|life| life.slot).filter(|slot| self.in_target(*slot) == Some(of_target));
        self.looked_at.about.targeted.then(|| self.team(&part.collect::<Vec<_>>()))
    }

    fn task_cpus(&self, lives: &[Life]) -> Option<Vec<TaskCpuStats>> {
        let parts = self.kept.task_cpus.as_ref()?;
        let rows = |Life { slot, stats }: &Life| {
            let (name, tid, target) = (stats.name.clone(), stats.tid, stats.target);
            parts.of(*slot).map(move |row| TaskCpuStats { name: name.to_string(), tid, target, ..row })
        };
        Some(lives.iter().flat_map(rows).collect())
    }

    fn task(&self, slot: Slot, tid: Tid, sums: Sums) -> TaskStats {
        let Kept { memory, names, affinities, .. } = self.kept;
        let name = names.of(slot);
        TaskStats {
            name: name.comm,
            tid,
            tgid: name.tgid,
            group: name.group.map(|group| names.groups()[group as usize].to_string()),
            allowed: affinities.of(slot).cloned(),
            target: self.in_target(slot),
            share: self.share(&sums),
            node_migrations: memory.task(slot).node_migrations,
            settled_us: memory.settled(slot, name.tgid).map(us),
            memory: memory.stats(name.tgid, &self.places.numbers).map(Box::new),
            sums,
        }
    }

    /// A CPU that the metadata lacks is taken to be on the first node.
    fn node_index(&self, cpu: CpuId) -> usize {
        self.places.of.get(cpu as usize).copied().unwrap_or_default() as usize
    }

    fn node(&self, index: usize) -> u32 {
        self.places.numbers.get(index).copied().unwrap_or_default()
    }

    fn cpus(&self, cpus: &[CpuId]) -> Vec<CpuStats> {
        let Kept { measures, queues, .. } = self.kept;
        let stats = |&cpu: &CpuId| {
            let off = measures.off(&[cpu]);
            CpuStats {
                cpu,
                node: self.node(self.node_index(cpu)),
                idle_us: us(off.idle),
                unknown_us: us(off.unknown),
                migrations_out: measures.departures(cpu),
                sums: measures.of_cpus(&[cpu]),
                queue: queues.cpu(cpu),
            }
        };
        cpus.iter().map(stats).collect()
    }

    fn nodes(&self, cpus: &[CpuStats]) -> Vec<NodeStats> {
        let Kept { measures, queues, .. } = self.kept;
        let mut members: Vec<Vec<&CpuStats>> = vec![Vec::new(); self.places.numbers.len().max(1)];
        cpus.iter().for_each(|cpu| members[self.node_index(cpu.cpu)].push(cpu));
        let node = |(index, members): (usize, Vec<&CpuStats>)| {
            let cpus: Vec<CpuId> = members.iter().map(|cpu| cpu.cpu).collect();
            let off = measures.off(&cpus);
            NodeStats {
                node: self.node(index),
                idle_us: us(off.idle),
                unknown_us: us(off.unknown),
                sums: measures.of_cpus(&cpus),
                fairness: Fairness::of(members.iter().map(|cpu| cpu.sums.run.run_us)),
                queue: queues.node(index as u32),
                cpus,
            }
        };
        members.into_iter().enumerate().map(node).collect()
    }

    fn groups(&self, lives: &[Life]) -> Vec<GroupStats> {
        let paths = self.kept.names.groups();
        // The last one is for tasks of which no group is known.
        let mut members: Vec<Vec<&Life>> = vec![Vec::new(); paths.len() + 1];
        for life in lives {
            let group = self.kept.names.of(life.slot).group;
            members[group.map_or(paths.len(), |group| group as usize)].push(life);
        }
        let (start, end) = self.looked_at.bounds;
        let group = |(index, members): (usize, Vec<&Life>)| {
            let slots: Vec<Slot> = members.iter().map(|life| life.slot).collect();
            let sums = self.kept.measures.of_tasks(&slots);
            GroupStats {
                group: paths.get(index).map(|path| path.to_string()),
                tasks: members.len() as u64,
                share: self.share(&sums),
                fairness: Fairness::of(members.iter().map(|life| life.stats.sums.run.run_us)),
                queue_mean: part(sums.run.run_us + sums.wait.wait_us, us(end - start)),
                sums,
            }
        };
        let inhabited = members.into_iter().enumerate().filter(|(_, members)| !members.is_empty());
        let mut groups: Vec<GroupStats> = inhabited.map(group).collect();
        groups.sort_by(|a, b| b.sums.run.run_us.total_cmp(&a.sums.run.run_us).then_with(|| a.group.cmp(&b.group)));
        groups
    }

    /// The tasks of each process. One whose process is not known stands for itself.
    fn processes(&self, lives: &[Life]) -> Vec<ProcessStats> {
        let mut members: BTreeMap<(Option<Tid>, Tid), Vec<&Life>> = BTreeMap::new();
        for life in lives {
            // A process that ended and another with its number are told apart by their threads' lives alone.
            let key = life.stats.tgid.map_or((None, life.stats.tid), |tgid| (Some(tgid), tgid));
            members.entry(key).or_default().push(life);
        }
        let process = |((tgid, _), members): ((Option<Tid>, Tid), Vec<&Life>)| {
            let leader = members.iter().find(|life| Some(life.stats.tid) == tgid).unwrap_or(&members[0]);
            ProcessStats { tgid, name: leader.stats.name.to_string(), team: self.team_of(&members) }
        };
        let mut processes: Vec<ProcessStats> = members.into_iter().map(process).collect();
        processes.sort_by(|a, b| b.team.sums.run.run_us.total_cmp(&a.team.sums.run.run_us));
        processes
    }

    /// The tasks of each name.
    fn names(&self, lives: &[Life]) -> Vec<NameStats> {
        let mut members: BTreeMap<&str, Vec<&Life>> = BTreeMap::new();
        lives.iter().for_each(|life| members.entry(&*life.stats.name).or_default().push(life));
        let name =
            |(name, members): (&str, Vec<&Life>)| NameStats { name: name.to_owned(), team: self.team_of(&members) };
        let mut names: Vec<NameStats> = members.into_iter().map(name).collect();
        names.sort_by(|a, b| b.team.sums.run.run_us.total_cmp(&a.team.sums.run.run_us));
        names
    }

    fn team(&self, members: &[Slot]) -> TeamStats {
        let sums = self.kept.measures.of_tasks(members);
        TeamStats { tasks: members.len() as u64, share: self.share(&sums), sums }
    }

    /// As [`Summing::team`]. The figures of a task that is alone are known.
    fn team_of(&self, members: &[&Life]) -> TeamStats {
        match members {
            [life] => TeamStats { tasks: 1, share: life.stats.share, sums: life.stats.sums.clone() },
            several => self.team(&slots(several)),
        }
    }

    /// The whole, but for who shared how evenly.
    fn total(&self, sums: Sums, cpus: &[CpuId]) -> TotalStats {
        let (start, end) = self.looked_at.bounds;
        let off = self.kept.measures.off(cpus);
        TotalStats {
            start_us: us(start),
            trace_start_us: us(self.tracker.bounds().0),
            span_us: us(end - start),
            cpus: cpus.len() as u64,
            events: self.looked_at.events,
            lost_events: self.tracker.lost,
            losses: self.tracker.losses,
            contradictions: self.tracker.contradictions,
            contradicted_us: us(self.tracker.contradicted),
            idle_us: us(off.idle),
            unknown_us: us(off.unknown),
            sums,
            queue: self.kept.queues.total(),
            ..TotalStats::default()
        }
    }
}

fn slots(members: &[&Life]) -> Vec<Slot> {
    members.iter().map(|life| life.slot).collect()
}

/// This part of all; 0 of nothing.
fn part(some: f64, all: f64) -> f64 {
    if all > 0.0 { some / all } else { 0.0 }
}

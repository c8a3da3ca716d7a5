//! Summing the measures up by task, CPU, node, group and in all.

use crate::latency::Latencies;
use crate::names::Name;
use crate::report::{CpuStats, GroupStats, NodeStats, Report, Sums, TaskStats, TotalStats};
use crate::run_time::{OffTime, RunTime};
use crate::tasks::Slot;
use crate::wait_time::WaitTime;
use crate::{Fairness, Stats};
use schedlab_base::{CpuId, Nanos, Tid};
use std::cmp::Reverse;

fn us(nanos: Nanos) -> f64 {
    nanos as f64 / 1e3
}

fn get<T: Default + Clone>(table: &[T], index: u32) -> T {
    table.get(index as usize).cloned().unwrap_or_default()
}

/// What is summed, in nanoseconds.
#[derive(Clone, Default)]
struct Raw {
    run: RunTime,
    off: OffTime,
    wait: WaitTime,
    migrations: u64,
    migrations_out: u64,
}

impl Raw {
    fn add(&mut self, other: &Self) {
        self.run.add(&other.run);
        self.off.idle = self.off.idle.saturating_add(other.off.idle);
        self.off.unknown = self.off.unknown.saturating_add(other.off.unknown);
        self.wait.add(&other.wait);
        self.migrations += other.migrations;
        self.migrations_out += other.migrations_out;
    }

    fn sums(&self, latency: &Latencies) -> Sums {
        Sums {
            run_us: us(self.run.run),
            wait_us: us(self.wait.wait),
            wait_unfinished_us: us(self.wait.unfinished),
            slices: self.run.slices,
            voluntary: self.run.voluntary,
            involuntary: self.run.involuntary,
            migrations: self.migrations,
            latency_us: latency.wakeup(),
            waking_latency_us: latency.waking(),
            delay_us: latency.delay(),
        }
    }
}

/// A task with its figures.
struct Life {
    slot: Slot,
    tid: Tid,
    name: Name,
    raw: Raw,
}

pub(crate) fn report(stats: &Stats) -> Report {
    let cpus: Vec<(CpuId, Raw)> = stats.tracker.present().map(|cpu| (cpu, raw_cpu(stats, cpu))).collect();
    let whole = cpus.iter().fold(Raw::default(), |mut sum, (_, raw)| {
        sum.add(raw);
        sum
    });
    let mut lives: Vec<Life> = stats
        .tracker
        .tasks
        .iter()
        .map(|(slot, task)| Life { slot, tid: task.tid, name: stats.names.of(slot), raw: raw_task(stats, slot) })
        .filter(|Life { raw, .. }| raw.run.slices + raw.run.run + raw.wait.wait + raw.migrations > 0)
        .collect();
    lives.sort_by_key(|life| (Reverse(life.raw.run.run), life.tid, life.slot));

    let all_run = us(whole.run.run);
    let nodes = nodes(stats, &cpus);
    let groups = groups(stats, &lives, all_run);
    let mut total = total(stats, &whole, &cpus);
    total.tasks = lives.len() as u64;
    total.fairness = Fairness::of(lives.iter().map(|life| us(life.raw.run.run)));
    total.fairness_nodes = Fairness::of(nodes.iter().map(|node| node.sums.run_us));
    total.fairness_groups = Fairness::of(groups.iter().map(|group| group.sums.run_us));
    Report {
        tasks: lives.into_iter().map(|life| task_stats(stats, life, all_run)).collect(),
        cpus: cpus.iter().map(|(cpu, raw)| cpu_stats(stats, *cpu, raw)).collect(),
        nodes,
        groups,
        total,
    }
}

fn raw_cpu(stats: &Stats, cpu: CpuId) -> Raw {
    let (run, off) = get(&stats.measures.run.cpus, cpu);
    let (migrations, migrations_out) = get(&stats.measures.migrations.cpus, cpu);
    Raw { run, off, wait: get(&stats.measures.wait.cpus, cpu), migrations, migrations_out }
}

fn raw_task(stats: &Stats, slot: Slot) -> Raw {
    Raw {
        run: get(&stats.measures.run.tasks, slot),
        wait: get(&stats.measures.wait.tasks, slot),
        migrations: get(&stats.measures.migrations.tasks, slot),
        ..Raw::default()
    }
}

/// The latencies of several tasks or CPUs, put together.
fn merged(table: &[Latencies], members: impl Iterator<Item = u32>) -> Latencies {
    let mut sum = Latencies::default();
    members.filter_map(|index| table.get(index as usize)).for_each(|part| sum.merge(part));
    sum
}

fn share(run: f64, all_run: f64) -> f64 {
    if all_run > 0.0 { run / all_run } else { 0.0 }
}

fn task_stats(stats: &Stats, life: Life, all_run: f64) -> TaskStats {
    let none = Latencies::default();
    let latency = stats.measures.latency.tasks.get(life.slot as usize).unwrap_or(&none);
    let memory = &stats.measures.memory;
    TaskStats {
        name: life.name.comm.to_string(),
        tid: life.tid,
        tgid: life.name.tgid,
        group: life.name.group.map(|group| stats.names.groups()[group as usize].to_string()),
        share: share(us(life.raw.run.run), all_run),
        node_migrations: memory.task(life.slot).node_migrations,
        settled_us: memory.settled(life.slot).map(us),
        memory: memory.stats(life.slot, &stats.nodes),
        sums: life.raw.sums(latency),
    }
}

/// A CPU that the metadata lacks is taken to be on the first node.
fn node_index(stats: &Stats, cpu: CpuId) -> u32 {
    get(&stats.node_of, cpu)
}

fn cpu_stats(stats: &Stats, cpu: CpuId, raw: &Raw) -> CpuStats {
    let latency = merged(&stats.measures.latency.cpus, std::iter::once(cpu));
    CpuStats {
        cpu,
        node: get(&stats.nodes, node_index(stats, cpu)),
        idle_us: us(raw.off.idle),
        unknown_us: us(raw.off.unknown),
        migrations_out: raw.migrations_out,
        sums: raw.sums(&latency),
        queue: stats.measures.queues.cpu(cpu),
    }
}

fn nodes(stats: &Stats, cpus: &[(CpuId, Raw)]) -> Vec<NodeStats> {
    let mut members: Vec<Vec<&(CpuId, Raw)>> = vec![Vec::new(); stats.nodes.len().max(1)];
    cpus.iter().for_each(|cpu| members[node_index(stats, cpu.0) as usize].push(cpu));
    let node = |(index, members): (usize, Vec<&(CpuId, Raw)>)| {
        let mut raw = Raw::default();
        members.iter().for_each(|cpu| raw.add(&cpu.1));
        let latency = merged(&stats.measures.latency.cpus, members.iter().map(|cpu| cpu.0));
        NodeStats {
            node: get(&stats.nodes, index as u32),
            cpus: members.iter().map(|cpu| cpu.0).collect(),
            idle_us: us(raw.off.idle),
            unknown_us: us(raw.off.unknown),
            sums: raw.sums(&latency),
            fairness: Fairness::of(members.iter().map(|cpu| us(cpu.1.run.run))),
            queue: stats.measures.queues.node(index as u32),
        }
    };
    members.into_iter().enumerate().map(node).collect()
}

fn groups(stats: &Stats, lives: &[Life], all_run: f64) -> Vec<GroupStats> {
    let paths = stats.names.groups();
    // The last one is for tasks of which no group is known.
    let mut members: Vec<Vec<&Life>> = vec![Vec::new(); paths.len() + 1];
    for life in lives {
        members[life.name.group.map_or(paths.len(), |group| group as usize)].push(life);
    }
    let (start, end) = stats.tracker.bounds();
    let group = |(index, members): (usize, Vec<&Life>)| {
        let mut raw = Raw::default();
        members.iter().for_each(|life| raw.add(&life.raw));
        let latency = merged(&stats.measures.latency.tasks, members.iter().map(|life| life.slot));
        GroupStats {
            group: paths.get(index).map(|path| path.to_string()),
            tasks: members.len() as u64,
            share: share(us(raw.run.run), all_run),
            sums: raw.sums(&latency),
            fairness: Fairness::of(members.iter().map(|life| us(life.raw.run.run))),
            queue_mean: share(us(raw.run.run) + us(raw.wait.wait), us(end - start)),
        }
    };
    let inhabited = members.into_iter().enumerate().filter(|(_, members)| !members.is_empty());
    let mut groups: Vec<GroupStats> = inhabited.map(group).collect();
    groups.sort_by(|a, b| b.sums.run_us.total_cmp(&a.sums.run_us).then_with(|| a.group.cmp(&b.group)));
    groups
}

fn total(stats: &Stats, whole: &Raw, cpus: &[(CpuId, Raw)]) -> TotalStats {
    let (start, end) = stats.tracker.bounds();
    let latency = merged(&stats.measures.latency.cpus, cpus.iter().map(|cpu| cpu.0));
    TotalStats {
        start_us: us(start),
        span_us: us(end - start),
        cpus: cpus.len() as u64,
        events: stats.tracker.events,
        lost_events: stats.tracker.lost,
        losses: stats.tracker.losses,
        contradictions: stats.tracker.contradictions,
        contradicted_us: us(stats.tracker.contradicted),
        idle_us: us(whole.off.idle),
        unknown_us: us(whole.off.unknown),
        sums: whole.sums(&latency),
        fairness_cpus: Fairness::of(cpus.iter().map(|cpu| us(cpu.1.run.run))),
        queue: stats.measures.queues.total(),
        ..TotalStats::default()
    }
}

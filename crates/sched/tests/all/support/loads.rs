//! Random loads.

use super::{exactly, forever, hog, once};
use proptest::prelude::*;
use schedlab_base::Nanos;
use schedlab_sim::program::{
    Amount, GroupSpec, JobList, Load, MemorySpec, Op, Policy, ROOT_GROUP, Setting, Start, TaskSpec,
};

const MS: Nanos = 1_000_000;

/// A load of hogs, sleepers, tasks that yield, pairs that wake each other, servers with clients, and workers that share
/// out jobs, some of them pinned to one CPU.
pub fn loads() -> impl Strategy<Value = Load> {
    let sleeper =
        (-20i8..20, 20_000u64..5_000_000, 20_000u64..20_000_000, 0u64..500_000).prop_map(|(nice, run, sleep, sd)| {
            forever("sleeper", nice, vec![Op::Run(Amount { mean: run, sd }), Op::Sleep(exactly(sleep))])
        });
    let yielder = (1_000u64..500_000).prop_map(|run| forever("yielder", 0, vec![Op::Run(exactly(run)), Op::Yield]));
    let task = prop_oneof![(-20i8..20).prop_map(|nice| hog("hog", nice)), sleeper, yielder];
    let start = prop_oneof![Just(Start::Wake), Just(Start::Fork), Just(Start::Threads)];
    (proptest::collection::vec(task, 1..12), start, any::<bool>()).prop_map(|(mut tasks, start, pair)| {
        for (i, task) in tasks.iter_mut().enumerate() {
            task.name = format!("{}-{i}", task.name);
            if i % 5 == 4 {
                task.initial.cpus = Some(vec![0]);
            }
        }
        let mut load =
            Load { tasks, start, sems: vec!["ping".into(), "pong".into(), "queue".into()], ..Load::default() };
        if pair {
            load.tasks.push(forever("ping", 0, vec![Op::Run(exactly(30_000)), Op::SemPost(0), Op::SemWait(1)]));
            load.tasks.push(forever("pong", 0, vec![Op::SemWait(0), Op::Run(exactly(50_000)), Op::SemPost(1)]));
            for (i, work) in (0..).zip([700_000, 1_900_000, 2_300_000]) {
                let asks = vec![Op::Run(exactly(work)), Op::Ask(2), Op::Await];
                load.tasks.push(forever(&format!("client-{i}"), 0, asks));
                let serves = vec![Op::SemWait(2), Op::Run(exactly(work / 2)), Op::Answer(2)];
                load.tasks.extend((i < 2).then(|| forever(&format!("server-{i}"), 0, serves)));
            }
            let jobs =
                vec![vec![Op::Run(exactly(400_000)), Op::Sleep(exactly(900_000))], vec![Op::Run(exactly(3 * MS))]];
            load.jobs.push(JobList { jobs, ends: vec![3, 5], total: 40 });
            let worker = |n| once(&format!("worker-{n}"), vec![Op::Jobs(0), Op::Run(exactly(MS))]);
            load.tasks.extend((0..2).map(worker));
            load.tasks.push(TaskSpec {
                name: "forker".into(),
                program: vec![Op::Run(exactly(MS)), Op::Fork(0), Op::Fork(0), Op::Run(exactly(MS))],
                start: 7 * MS,
                ..TaskSpec::default()
            });
            load.templates.push(TaskSpec {
                name: "child".into(),
                program: vec![Op::Run(exactly(3 * MS)), Op::Set(0), Op::Run(exactly(MS))],
                ..TaskSpec::default()
            });
            load.settings.push(Setting { nice: Some(7), ..Setting::default() });
        }
        load
    })
}

/// Like [`loads`], in groups: nested, idle, with quotas and bursts, and with tasks that move between them.
pub fn loads_in_groups() -> impl Strategy<Value = Load> {
    let group = (2u64..4000, proptest::option::of((1u64..40, 10u64..60, 0u64..20)), 0u32..8, 0u32..6);
    let groups = proptest::collection::vec(group, 1..5);
    (loads(), groups, proptest::collection::vec(0u32..8, 16), any::<bool>()).prop_map(
        |(mut load, groups, places, moves)| {
            let number = groups.len() as u32;
            for (i, (shares, quota, parent, idle)) in groups.into_iter().enumerate() {
                let quota = quota.map(|(quota, period, burst)| ((quota * MS, period * MS), burst.min(quota) * MS));
                load.groups.push(GroupSpec {
                    path: format!("/{i}"),
                    parent: (parent < i as u32).then_some(parent),
                    shares,
                    bandwidth: quota.map(|(bandwidth, _)| bandwidth),
                    burst: quota.map_or(0, |(_, burst)| burst),
                    idle: idle == 0,
                });
            }
            for (task, place) in load.tasks.iter_mut().zip(&places) {
                task.initial.group = (*place < number).then_some(*place);
                (task.user, task.session) = (Some(place % 3), Some(place % 2));
            }
            if moves {
                let there = load.settings.len() as u32;
                for group in [0, ROOT_GROUP] {
                    load.settings.push(Setting { group: Some(group), ..Setting::default() });
                }
                let body = vec![Op::Set(there), Op::Run(exactly(7 * MS)), Op::Set(there + 1), Op::Run(exactly(3 * MS))];
                load.tasks.push(forever("mover", 0, body));
            }
            load
        },
    )
}

/// Like [`loads`], with real-time tasks that leave time for others, tasks that change their policy or are killed, and
/// children that move to CPU 0.
pub fn loads_with_changes() -> impl Strategy<Value = Load> {
    let task = (any::<bool>(), 1u8..100, 20_000u64..30 * MS, any::<bool>()).prop_map(|(rr, prio, run, changes)| {
        let mut body = vec![Op::Io(2 * run), Op::Run(exactly(run)), Op::Sleep(exactly(run))];
        if changes {
            body.insert(0, Op::Set(1));
            body.push(Op::Set(2));
        }
        let mut spec = forever("real-time", 0, body);
        spec.initial.policy = Some(if rr { Policy::Rr } else { Policy::Fifo });
        spec.initial.rt_priority = Some(prio);
        spec
    });
    let policy = |policy, rt_priority| Setting { policy: Some(policy), rt_priority, ..Setting::default() };
    (loads(), proptest::collection::vec(task, 0..3)).prop_map(move |(mut load, tasks)| {
        load.tasks.extend(tasks);
        for (i, task) in (0..).zip(&mut load.tasks) {
            task.lifetime = (i % 4 == 1).then_some((i + 1) * 17 * MS);
        }
        for child in &mut load.templates {
            child.lifetime = Some(6 * MS);
            child.program.extend([Op::Exec, Op::Run(exactly(MS)), Op::Set(3), Op::Run(exactly(MS))]);
        }
        load.settings = vec![
            Setting { nice: Some(7), ..Setting::default() },
            policy(Policy::Other, Some(0)),
            policy(Policy::Rr, Some(5)),
            Setting { cpus: Some(vec![0]), ..Setting::default() },
        ];
        load
    })
}

/// Like [`loads`], with tasks of all policies that take mutexes, one within the other, and lend each other priorities
/// or not. Some are killed.
pub fn loads_with_mutexes() -> impl Strategy<Value = Load> {
    let policy = prop_oneof![Just(Policy::Other), Just(Policy::Rr), Just(Policy::Fifo), Just(Policy::Deadline)];
    let task = (policy, 1u8..100, (0u32..3, 0u32..3), 20_000u64..4 * MS, 20_000u64..20 * MS, any::<bool>());
    (loads(), proptest::collection::vec(task, 2..7), any::<bool>()).prop_map(|(mut load, tasks, inherits)| {
        let there = load.settings.len() as u32;
        for (i, (policy, priority, (outer, inner), run, sleep, changes)) in tasks.into_iter().enumerate() {
            let run = Op::Run(exactly(run));
            let mut body = vec![run.clone(), Op::Lock(outer), run.clone()];
            if changes {
                body.extend([Op::Set(there), run.clone(), Op::Set(there + 1)]);
            }
            if inner > outer {
                body.extend([Op::Lock(inner), run.clone(), Op::Unlock(inner)]);
            }
            body.extend([Op::Sleep(exactly(sleep / 4)), run, Op::Unlock(outer), Op::Sleep(exactly(sleep))]);
            let mut spec = forever(&format!("locker-{i}"), 0, body);
            spec.initial.policy = Some(policy);
            spec.initial.rt_priority = matches!(policy, Policy::Fifo | Policy::Rr).then_some(priority);
            let period = (u64::from(priority) + 10) * MS;
            spec.initial.dl = (policy == Policy::Deadline).then_some((period / 20, period, period));
            spec.lifetime = (i % 3 == 1).then_some((i as u64 + 1) * 19 * MS);
            load.tasks.push(spec);
        }
        load.settings.push(Setting { policy: Some(Policy::Fifo), rt_priority: Some(40), ..Setting::default() });
        load.settings.push(Setting { policy: Some(Policy::Other), rt_priority: Some(0), ..Setting::default() });
        Load { inherits, mutexes: (0..3).map(|m| format!("m{m}")).collect(), ..load }
    })
}

/// A load whose tasks have large working sets, some with memory of their own, some with shared memory, some streaming.
pub fn with_costs(mut load: Load, kib: u64) -> Load {
    let memory = |nodes: &[(u32, u32)], shared, bound_percent| MemorySpec {
        bytes: kib << 10,
        nodes: nodes.to_vec(),
        shared,
        parts: 3,
        bound_percent,
        ..MemorySpec::default()
    };
    load.memories = vec![memory(&[], false, 40), memory(&[(0, 3), (1, 7)], false, 70), memory(&[], true, 90)];
    for (i, task) in (0..).zip(&mut load.tasks) {
        task.initial.working_set = (i % 4 > 0).then_some(kib * 300 * i);
        task.initial.memory = (i % 5 < 3).then_some((i % 5) as u32);
        task.initial.membind = (i % 7 == 6).then(|| vec![1]);
        if i % 3 == 1 && !matches!(task.program.last(), Some(Op::LoopEnd { start }) if *start > 0) {
            task.program.insert(1, Op::Mem { bytes: kib << 8, random: i % 2 == 0 });
        }
    }
    for setting in &mut load.settings {
        (setting.working_set, setting.memory) = (Some(kib << 10), Some(1));
    }
    load
}

/// Hogs and sleepers of the nice levels in `nices`. Sleepers' bursts vary, so that a tick that samples the running task
/// charges all of them alike in the long run.
pub fn hogs_and_sleepers(nices: std::ops::RangeInclusive<i8>) -> impl Strategy<Value = Load> {
    let sleeper = (nices.clone(), 200_000u64..5 * MS, MS..20 * MS).prop_map(|(nice, run, sleep)| {
        let jittered = |mean| Amount { mean, sd: mean / 4 };
        forever("sleeper", nice, vec![Op::Run(jittered(run)), Op::Sleep(jittered(sleep))])
    });
    let task = prop_oneof![nices.prop_map(|nice| hog("hog", nice)), sleeper];
    proptest::collection::vec(task, 2..8).prop_map(|mut tasks| {
        for (i, task) in tasks.iter_mut().enumerate() {
            task.name = format!("{}-{i}", task.name);
        }
        Load { tasks, ..Load::default() }
    })
}

//! The figures of delays. Times are in microseconds, the nanoseconds as decimals, and count from the trace's start.

use super::found::Found;
use super::sums::{Entry, IDLE, OTHERS, UNKNOWN, time_of};
use super::watch::{After, Watch};
use crate::measure::us;
use crate::names::Names;
use schedlab_base::{CpuId, Nanos, Tid};
use schedlab_track::{Slot, Tracker};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

/// So many chains are told.
const MOST_CHAINS: usize = 100;

/// A task.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct TaskRef {
    /// Its last name; empty when the trace has none.
    pub task: String,
    /// Its thread id.
    pub tid: Tid,
}

/// A task that ran while another waited.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Culprit {
    /// The task.
    #[serde(flatten)]
    pub task: TaskRef,
    /// How long it ran on the CPU on whose queue the other waited.
    pub run_us: f64,
}

/// The part of a wait that was spent on one CPU's queue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Queue {
    /// The CPU.
    pub cpu: CpuId,
    /// How long.
    pub wait_us: f64,
}

/// A wait.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Wait {
    /// The task that waited.
    #[serde(flatten)]
    pub task: TaskRef,
    /// When it became runnable, or when the window began.
    pub start_us: f64,
    /// When it got a CPU, or when the trace or the window ended.
    pub end_us: f64,
    /// How long that is.
    pub duration_us: f64,
    /// The CPU on whose queue it waited last.
    pub cpu: CpuId,
    /// The queues that it was on, in order. More than one: it was moved while it waited.
    pub queues: Vec<Queue>,
    /// What made it wait.
    pub after: After,
    /// It had already waited when the window began.
    pub began_before: bool,
    /// It got a CPU; otherwise the trace or the window ended first.
    pub finished: bool,
    /// The trace contradicts itself about it: it may have run meanwhile.
    pub doubtful: bool,
    /// What ran meanwhile on the CPU on whose queue it was, the longest first.
    pub culprits: Vec<Culprit>,
    /// Tasks beyond the 256 that are told apart ran for so long.
    pub other_us: f64,
    /// That CPU was idle for so long: it was on its way to run the task.
    pub idle_us: f64,
    /// Of so long nobody knows what it ran.
    pub unknown_us: f64,
    /// Of the rest, how long some other CPU was idle on which the task was allowed.
    pub idle_allowed_us: f64,
    /// Whether it is known where the task was allowed. If not, it is taken as allowed everywhere.
    pub affinity_known: bool,
    /// The first took the CPU from the waiting task, the second from the first, and so on: the longest such chain.
    pub preempted_by: Vec<TaskRef>,
}

/// The sum of the time for which a task, or the tasks of a name, process or group, kept others waiting.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CulpritSum<K> {
    /// What is summed up.
    #[serde(flatten)]
    pub of: K,
    /// Its run time, counted once for each task that waited for its CPU meanwhile.
    pub caused_us: f64,
    /// The part of all waiting that this is.
    pub share: f64,
}

/// The sum of the waits of a task, or of the tasks of a name, process or group.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VictimSum<K> {
    /// What is summed up.
    #[serde(flatten)]
    pub of: K,
    /// Time waited.
    pub wait_us: f64,
    /// The part of all waiting that this is.
    pub share: f64,
    /// How many waits.
    pub waits: u64,
    /// The longest.
    pub longest_us: f64,
}

/// Several tasks that are summed up.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Share {
    /// The name, the path of the cgroup, or the name of the process; empty where it is not known.
    pub name: String,
    /// The number of the process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tgid: Option<Tid>,
}

/// A task was preempted by a second, which was preempted by a third while the first still waited.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChainCount {
    /// Their names, the one that waited first.
    pub names: [String; 3],
    /// How often.
    pub count: u64,
}

/// All waits.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Total {
    /// The length of the trace or of the window.
    pub span_us: f64,
    /// When that begins, from the trace's start.
    pub start_us: f64,
    /// How many CPUs.
    pub cpus: u64,
    /// How many events.
    pub events: u64,
    /// Tasks that waited.
    pub tasks: u64,
    /// How many waits.
    pub waits: u64,
    /// Time waited. It is the sum of what the culprits caused, of `idle_us` and of `unknown_us`.
    pub wait_us: f64,
    /// The part in which the CPU was idle that the task waited for.
    pub idle_us: f64,
    /// The part in which nobody knows what that CPU ran.
    pub unknown_us: f64,
    /// How often the recorder lost events.
    pub losses: u64,
    /// Events that contradict others.
    pub contradictions: u64,
}

/// Who delayed whom.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs, reason = "the field's name says by what the sums are")]
pub struct DelayReport {
    /// The longest waits, the longest first.
    #[serde(skip)]
    pub waits: Vec<Wait>,
    /// The tasks that kept others waiting, the longest first.
    pub culprits: Vec<CulpritSum<TaskRef>>,
    pub culprits_by_name: Vec<CulpritSum<Share>>,
    pub culprits_by_process: Vec<CulpritSum<Share>>,
    pub culprits_by_group: Vec<CulpritSum<Share>>,
    /// The tasks that waited, the longest first.
    pub victims: Vec<VictimSum<TaskRef>>,
    pub victims_by_name: Vec<VictimSum<Share>>,
    pub victims_by_process: Vec<VictimSum<Share>>,
    pub victims_by_group: Vec<VictimSum<Share>>,
    /// Preemptions of a task that had just preempted another, by name, the most frequent first; 100 at most.
    pub chains: Vec<ChainCount>,
    /// All waits.
    pub total: Total,
}

struct Telling<'a> {
    tracker: &'a Tracker,
    watch: &'a Watch,
    names: &'a Names,
    start: Nanos,
    all: Nanos,
    leaders: HashMap<Tid, String>,
}

pub(super) fn report(
    tracker: &Tracker,
    (from, to): (Nanos, Nanos),
    events: u64,
    watch: &Watch,
    names: &Names,
) -> DelayReport {
    let tasks: Vec<(Slot, Tid)> = tracker.tasks().filter(|(_, tid)| *tid != 0).collect();
    let sum = |all: Nanos, (slot, _): &(Slot, Tid)| all.saturating_add(watch.victim(*slot).wait);
    let all = tasks.iter().fold(0, sum);
    let start = tracker.bounds().0;
    let leader = |(slot, tid): &(Slot, Tid)| {
        let name = names.of(*slot);
        (name.tgid == Some(*tid)).then(|| (*tid, name.comm.to_string()))
    };
    let leaders = tasks.iter().filter_map(leader).collect();
    let telling = Telling { tracker, watch, names, start, all, leaders };
    let caused = watch.caused();
    let culprits: Vec<(Slot, Nanos)> =
        tasks.iter().map(|(slot, _)| (*slot, caused.task(*slot))).filter(|(_, time)| *time > 0).collect();
    let victims: Vec<Slot> = tasks.iter().map(|(slot, _)| *slot).filter(|slot| watch.victim(*slot).waits > 0).collect();
    let total = Total {
        span_us: us(to.saturating_sub(from)),
        start_us: us(from.saturating_sub(start)),
        cpus: tracker.present().count() as u64,
        events,
        tasks: victims.len() as u64,
        waits: victims.iter().map(|slot| watch.victim(*slot).waits).sum(),
        wait_us: us(all),
        idle_us: us(caused.idle),
        unknown_us: us(caused.unknown),
        losses: tracker.losses,
        contradictions: tracker.contradictions,
    };
    DelayReport {
        waits: watch.found().into_iter().map(|found| telling.wait(found, &watch.ran(found))).collect(),
        culprits: telling.culprits(&culprits),
        culprits_by_name: telling.culprits_by(&culprits, |slot| telling.by_name(slot)),
        culprits_by_process: telling.culprits_by(&culprits, |slot| telling.by_process(slot)),
        culprits_by_group: telling.culprits_by(&culprits, |slot| telling.by_group(slot)),
        victims: telling.victims(&victims),
        victims_by_name: telling.victims_by(&victims, |slot| telling.by_name(slot)),
        victims_by_process: telling.victims_by(&victims, |slot| telling.by_process(slot)),
        victims_by_group: telling.victims_by(&victims, |slot| telling.by_group(slot)),
        chains: telling.chains(),
        total,
    }
}

impl Telling<'_> {
    fn task(&self, slot: Slot) -> TaskRef {
        TaskRef { task: self.names.of(slot).comm.to_string(), tid: self.tracker.tid(slot) }
    }

    fn by_name(&self, slot: Slot) -> Share {
        Share { name: self.names.of(slot).comm.to_string(), tgid: None }
    }

    /// A task whose process is not known stands for itself.
    fn by_process(&self, slot: Slot) -> Share {
        let name = self.names.of(slot);
        let tgid = name.tgid.unwrap_or_else(|| self.tracker.tid(slot));
        let comm = self.leaders.get(&tgid).cloned().unwrap_or_else(|| name.comm.to_string());
        Share { name: comm, tgid: Some(tgid) }
    }

    fn by_group(&self, slot: Slot) -> Share {
        let path = self.names.of(slot).group.map(|group| self.names.groups()[group as usize].to_string());
        Share { name: path.unwrap_or_default(), tgid: None }
    }

    fn share(&self, time: f64) -> f64 {
        if self.all == 0 { 0.0 } else { time / us(self.all) }
    }

    fn wait(&self, found: &Found, ran: &[Entry]) -> Wait {
        let task = |(who, time): (Slot, Nanos)| Culprit { task: self.task(who), run_us: us(time) };
        let mut culprits: Vec<Culprit> = ran.iter().copied().filter(|(who, _)| *who < OTHERS).map(task).collect();
        culprits.sort_by(|a, b| b.run_us.total_cmp(&a.run_us).then(a.task.tid.cmp(&b.task.tid)));
        let mut queues: Vec<Queue> = Vec::new();
        for (cpu, time) in &found.queues {
            queues.push(Queue { cpu: *cpu, wait_us: us(*time) });
        }
        Wait {
            task: self.task(found.task),
            start_us: us(found.from.saturating_sub(self.start)),
            end_us: us(found.to.saturating_sub(self.start)),
            duration_us: us(found.to - found.from),
            cpu: found.queues.last().map_or(0, |(cpu, _)| *cpu),
            queues,
            after: found.after,
            began_before: found.before,
            finished: found.finished,
            doubtful: found.doubtful,
            culprits,
            other_us: us(time_of(ran, OTHERS)),
            idle_us: us(time_of(ran, IDLE)),
            unknown_us: us(time_of(ran, UNKNOWN)),
            idle_allowed_us: us(found.idle.saturating_sub(time_of(ran, IDLE))),
            affinity_known: found.known,
            preempted_by: found.chain.tasks().iter().map(|slot| self.task(*slot)).collect(),
        }
    }

    fn culprits(&self, culprits: &[(Slot, Nanos)]) -> Vec<CulpritSum<TaskRef>> {
        let sum = |(slot, time): &(Slot, Nanos)| (self.task(*slot), *time);
        self.ranked_culprits(culprits.iter().map(sum).collect())
    }

    fn culprits_by(&self, culprits: &[(Slot, Nanos)], key: impl Fn(Slot) -> Share) -> Vec<CulpritSum<Share>> {
        let mut sums: BTreeMap<Share, Nanos> = BTreeMap::new();
        culprits.iter().for_each(|(slot, time)| *sums.entry(key(*slot)).or_default() += time);
        self.ranked_culprits(sums.into_iter().collect())
    }

    fn ranked_culprits<K>(&self, mut sums: Vec<(K, Nanos)>) -> Vec<CulpritSum<K>> {
        sums.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
        let sum = |(of, time)| CulpritSum { of, caused_us: us(time), share: self.share(us(time)) };
        sums.into_iter().map(sum).collect()
    }

    fn victims(&self, victims: &[Slot]) -> Vec<VictimSum<TaskRef>> {
        let sums = victims.iter().map(|slot| (self.task(*slot), vec![*slot])).collect();
        self.ranked_victims(sums)
    }

    fn victims_by(&self, victims: &[Slot], key: impl Fn(Slot) -> Share) -> Vec<VictimSum<Share>> {
        let mut sums: BTreeMap<Share, Vec<Slot>> = BTreeMap::new();
        victims.iter().for_each(|slot| sums.entry(key(*slot)).or_default().push(*slot));
        self.ranked_victims(sums.into_iter().collect())
    }

    fn ranked_victims<K>(&self, sums: Vec<(K, Vec<Slot>)>) -> Vec<VictimSum<K>> {
        let sum = |(of, slots): (K, Vec<Slot>)| {
            let victims = || slots.iter().map(|slot| self.watch.victim(*slot));
            let wait_us = us(victims().fold(0, |sum: Nanos, victim| sum.saturating_add(victim.wait)));
            let longest_us = us(victims().map(|victim| victim.longest).max().unwrap_or(0));
            let waits = victims().map(|victim| victim.waits).sum();
            VictimSum { of, wait_us, share: self.share(wait_us), waits, longest_us }
        };
        let mut rows: Vec<VictimSum<K>> = sums.into_iter().map(sum).collect();
        rows.sort_by(|a, b| b.wait_us.total_cmp(&a.wait_us));
        rows
    }

    fn chains(&self) -> Vec<ChainCount> {
        let mut sums: BTreeMap<[String; 3], u64> = BTreeMap::new();
        for (slots, count) in &self.watch.preemptions().counts {
            *sums.entry(slots.map(|slot| self.names.of(slot).comm.to_string())).or_default() += count;
        }
        let mut chains: Vec<ChainCount> = sums.into_iter().map(|(names, count)| ChainCount { names, count }).collect();
        chains.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.names.cmp(&b.names)));
        chains.truncate(MOST_CHAINS);
        chains
    }
}

//! What there is to say of a model: what it holds, and what could not be modelled.

use super::life::Task;
use super::locks::{Lock, Locks};
use super::rooms::Rooms;
use super::sequence::TaskIx;
use super::services::Services;
use super::teams::Jobs;
use super::write::End;
use crate::{Action, Phase};
use schedlab_base::{Nanos, counted};
use serde::Serialize;

/// How a model came about.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// Events read.
    pub events: u64,
    /// Events that the recorder had lost, where their number was known.
    pub lost_events: u64,
    /// The trace's length.
    pub span_ns: Nanos,
    /// Tasks in the model.
    pub tasks: usize,
    /// CPU time of these tasks, as recorded.
    pub modelled_ns: Nanos,
    /// Tasks that ran, waited or were moved but are not in the model.
    pub left_out: usize,
    /// CPU time of those.
    pub left_out_ns: Nanos,
    /// CPU time that the workload demands.
    pub demand_ns: Nanos,
    /// Events in the workload's file.
    pub workload_events: u64,
    /// Blocks that end by another task's wake-up (executions of `sem_wait`).
    pub waits: u64,
    /// Blocks that end by themselves (executions of `sleep` and `timer`).
    pub sleeps: u64,
    /// Of these, the ones that another task's wake-up ended which is not in the model.
    pub unseen: u64,
    /// Tasks bound to some of the CPUs.
    pub pinned: usize,
    /// Tasks of which the trace says how they are scheduled.
    pub described: usize,
    /// Sessions, whose tasks share as a group where autogroup is on.
    pub sessions: usize,
    /// Cgroups with a weight or a limit of their own.
    pub groups: usize,
    /// Whether the trace contains the weights and limits of cgroups.
    pub groups_known: bool,
    /// Time that interrupts took, which the model gives to the CPUs instead of the tasks that they interrupted.
    pub interrupts_ns: Nanos,
    /// Tasks that take the questions of others from a queue and answer them.
    pub servers: usize,
    /// Tasks that share out jobs: who is free takes the next one.
    pub workers: usize,
    /// Tasks that lock a mutex which several share.
    pub lockers: usize,
    /// Tasks that are sent messages through queues with room for so many.
    pub receivers: usize,
    /// Tasks that were in the middle of long work when the trace ended, and go on with it until the run ends.
    pub going_on: usize,
    /// Tasks that were in rounds of work and sleep when it ended, and go on with them then.
    pub going_round: usize,
    /// Tasks that a signal ended, and that are killed when they are as old as then.
    pub killed: usize,
    /// Tasks that ended when another one's time was over, and that are killed when they are as old as then.
    pub stopped: usize,
    /// What is missing at the end of a file that was cut off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
    /// What could not be modelled as recorded.
    pub remarks: Vec<String>,
}

/// The name of the first task, and how many more there are.
fn named(tasks: &[TaskIx], keys: &[String]) -> String {
    let first = &keys[tasks[0] as usize];
    if tasks.len() == 1 { first.clone() } else { format!("{first} and {} more", tasks.len() - 1) }
}

impl Report {
    /// Notes what is missing at the end of the file.
    pub fn was_cut(&mut self, what: String) {
        self.remarks.push(what.clone());
        self.cut = Some(what);
    }

    /// Remarks on the changes of a task that were too many.
    pub(super) fn unsaid(&mut self, task: &Task, key: &str) {
        if task.unsaid > 0 {
            self.remarks
                .push(format!("{key} changed how it is scheduled {} more than modelled", counted(task.unsaid, "time")));
        }
    }

    /// Says which tasks answer others.
    pub(super) fn answers(&mut self, services: &Services, keys: &[String]) {
        for service in services.all() {
            let (servers, clients) = (named(&service.servers, keys), named(&service.clients, keys));
            let take = if service.servers.len() == 1 { "takes" } else { "take" };
            self.remarks.push(format!(
                "{servers} {take} the questions of {clients} from one queue: in the model, \
                 whoever takes a question answers it"
            ));
            self.servers += service.servers.len();
        }
    }

    /// Says which tasks share out jobs.
    pub(super) fn shares(&mut self, Jobs { workers, jobs }: &Jobs, keys: &[String]) {
        let (who, number) = (named(workers, keys), jobs.len());
        self.remarks.push(format!("{who} share out {number} jobs: in the model, whoever is free takes the next one"));
        self.workers += workers.len();
    }

    /// Says which tasks share mutexes, and which are sent messages through queues that may be full.
    pub(super) fn waits(&mut self, locks: &Locks, rooms: &Rooms, keys: &[String]) {
        self.locks(locks, keys);
        self.rooms(rooms, keys);
    }

    fn locks(&mut self, locks: &Locks, keys: &[String]) {
        for Lock { members, .. } in locks.all() {
            self.remarks.push(format!(
                "{} share a mutex: in the model they lock it, and wait for whoever holds it",
                named(members, keys)
            ));
            self.lockers += members.len();
        }
    }

    fn rooms(&mut self, rooms: &Rooms, keys: &[String]) {
        let receivers: Vec<TaskIx> = rooms.found().iter().map(|found| found.receiver).collect();
        let sizes = || rooms.found().iter().map(|found| found.size);
        if let (Some(least), Some(most)) = (sizes().min(), sizes().max()) {
            let (who, senders) = (named(&receivers, keys), rooms.senders());
            let get = if receivers.len() == 1 { "gets" } else { "get" };
            let room = if least == most { most.to_string() } else { format!("{least} to {most}") };
            self.remarks.push(format!(
                "{who} {get} messages of {} through queues with room for {room}: in the model, a sender waits where \
                 there is none",
                counted(senders as u64, "task")
            ));
        }
        self.receivers = receivers.len();
    }

    /// Says how many tasks were ended so.
    fn are_ended(&mut self, number: usize, so: &str) {
        match number {
            0 => {}
            1 => self.remarks.push(format!("1 task was {so}: in the model it is killed as long after its beginning")),
            n => self
                .remarks
                .push(format!("{n} tasks were {so}: in the model they are killed, each as long after its beginning")),
        }
    }

    /// Says which tasks go on, and until when.
    pub(super) fn ends(&mut self, end: &End) {
        self.are_ended(self.killed, "ended by a signal");
        self.are_ended(self.stopped, "stopped when the time of another one was over");
        let until = match end {
            End::Work => return,
            End::Time(span) => format!("the run ends after {:.3} s, as the trace does", *span as f64 / 1e9),
            End::Command(key, _) => format!("the run ends with {key}"),
        };
        let who = if self.going_on == 1 { "1 task was" } else { &format!("{} tasks were", self.going_on) };
        let go = if self.going_on == 1 { "goes" } else { "go" };
        let mut remark = format!("{who} in the middle of long work when the trace ended, and {go} on with it: {until}");
        match self.going_round {
            0 => {}
            1 => remark += "; so does 1 that works and sleeps by turns",
            n => remark += &format!("; so do {n} that work and sleep by turns"),
        }
        self.remarks.push(remark);
    }

    /// The priority that the task ran with for most of its time.
    pub(super) fn priority(&mut self, task: &Task, key: &str) -> Option<i16> {
        let most = task.prios.iter().max_by_key(|(prio, ns)| (*ns, std::cmp::Reverse(*prio)));
        let (prio, ns) = most.copied()?;
        if ns < task.run - task.run / 100 {
            self.remarks.push(format!("{key} changed its priority; the one it ran with longest is kept"));
        }
        if prio < 0 {
            self.remarks.push(format!("{key} is a deadline task; it is modelled as FIFO 99"));
        }
        Some(prio)
    }

    /// Counts what a task's phases will do.
    pub(super) fn count_phases(&mut self, phases: &[Phase]) {
        for phase in phases {
            let Some(times) = phase.loops else { continue };
            self.workload_events += phase.events.len() as u64;
            for step in &phase.events {
                match step.what {
                    Action::Run(amount) => self.demand_ns = self.demand_ns.saturating_add(amount.mean * times),
                    Action::SemWait(_) | Action::Await => self.waits += times,
                    Action::Sleep(_) | Action::Timeout(_) | Action::Timer { .. } => self.sleeps += times,
                    _ => {}
                }
            }
        }
    }
}

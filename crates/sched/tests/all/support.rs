//! What the scheduler tests share: a sink that keeps an account of each task, and loads written by hand.

pub mod exact;
pub mod guest;
pub mod ledger;
pub mod loads;
pub mod naive;
pub mod registry;
pub mod smp;
pub mod toy;

use schedlab_base::{AffinityRecord, CpuId, Event, NameRecord, Nanos, Payload, Sink, TaskState};
use schedlab_machine::Machine;
use schedlab_sched::kernels::{self, How};
use schedlab_sim::program::{Amount, Load, Op, Policy, Start, TaskSpec};

pub const MS: Nanos = 1_000_000;

/// What happened to a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    pub run: Nanos,
    pub wait: Nanos,
    /// The part of `wait` that was still going on at the end.
    pub unfinished: Nanos,
    pub slices: u64,
    pub voluntary: u64,
    pub involuntary: u64,
    pub latencies: Vec<Nanos>,
    /// The CPU where it last was; `migrations` counts its moves.
    pub cpu: CpuId,
    pub migrations: u64,
    runs_since: Option<Nanos>,
    waits_since: Option<Nanos>,
    woken: Option<Nanos>,
}

/// Keeps the accounts of all tasks, in the order of their creation, and all events.
#[derive(Default)]
pub struct Accounts {
    pub tasks: Vec<Account>,
    pub names: Vec<String>,
    pub affinities: Vec<AffinityRecord>,
    pub events: Vec<Event>,
}

impl Accounts {
    fn task(&mut self, tid: i32) -> Option<&mut Account> {
        (tid > 0).then(|| &mut self.tasks[tid as usize - 1])
    }

    /// Closes the accounts at the end of the run.
    pub fn finish(&mut self, end: Nanos) {
        for t in &mut self.tasks {
            if let Some(since) = t.runs_since.take() {
                t.run += end - since;
            }
            if let Some(since) = t.waits_since.take() {
                t.wait += end - since;
                t.unfinished = end - since;
            }
        }
    }

    pub fn named(&self, name: &str) -> &Account {
        &self.tasks[self.names.iter().position(|n| n == name).expect("a task of that name")]
    }
}

impl Sink for Accounts {
    fn events(&mut self, batch: &[Event]) {
        self.events.extend_from_slice(batch);
        for e in batch {
            let now = e.time;
            match e.what {
                Payload::Switch { prev, prev_state, next, .. } => {
                    if let Some(t) = self.task(prev) {
                        t.run += now - t.runs_since.take().expect("who leaves a CPU was on it");
                        if prev_state == TaskState::Runnable {
                            t.involuntary += 1;
                            t.waits_since = Some(now);
                        } else {
                            t.voluntary += 1;
                        }
                    }
                    if let Some(t) = self.task(next) {
                        t.slices += 1;
                        t.wait += now - t.waits_since.take().expect("who comes onto a CPU waited for it");
                        t.runs_since = Some(now);
                        if let Some(woken) = t.woken.take() {
                            t.latencies.push(now - woken);
                        }
                    }
                }
                Payload::Wakeup { tid, .. } => {
                    if let Some(t) = self.task(tid) {
                        t.waits_since = Some(now);
                        t.woken = Some(now);
                    }
                }
                Payload::WakeupNew { tid, .. } => {
                    if let Some(t) = self.task(tid) {
                        t.waits_since = Some(now);
                    }
                }
                Payload::Migrate { tid, to, .. } => {
                    if let Some(t) = self.task(tid) {
                        t.cpu = to;
                        t.migrations += 1;
                    }
                }
                _ => {}
            }
        }
    }

    fn name(&mut self, record: &NameRecord) {
        self.names.push(record.comm.clone());
        self.tasks.push(Account::default());
    }

    fn affinity(&mut self, record: &AffinityRecord) {
        self.affinities.push(record.clone());
    }
}

pub fn exactly(mean: Nanos) -> Amount {
    Amount { mean, sd: 0 }
}

/// A task that repeats `body` for ever.
pub fn forever(name: &str, nice: i8, body: Vec<Op>) -> TaskSpec {
    let mut program = vec![Op::LoopStart { times: None }];
    program.extend(body);
    program.push(Op::LoopEnd { start: 0 });
    let mut spec = TaskSpec { name: name.into(), program, ..TaskSpec::default() };
    spec.initial.nice = Some(nice);
    spec
}

/// A task that never sleeps.
pub fn hog(name: &str, nice: i8) -> TaskSpec {
    forever(name, nice, vec![Op::Run(exactly(1_000_000_000))])
}

/// This many milliseconds of work.
pub fn run(ms: Nanos) -> Op {
    Op::Run(exactly(ms * MS))
}

/// This many milliseconds of sleep.
pub fn sleep(ms: Nanos) -> Op {
    Op::Sleep(exactly(ms * MS))
}

/// A task that runs `program` once and ends.
pub fn once(name: &str, program: Vec<Op>) -> TaskSpec {
    TaskSpec { name: name.into(), program, ..TaskSpec::default() }
}

/// Restricts a task to one CPU.
pub fn pinned(spec: TaskSpec, cpu: CpuId) -> TaskSpec {
    on(spec, [cpu])
}

/// Restricts a task to these CPUs.
pub fn on(mut spec: TaskSpec, cpus: impl IntoIterator<Item = CpuId>) -> TaskSpec {
    spec.initial.cpus = Some(cpus.into_iter().collect());
    spec
}

/// Gives a task a real-time policy.
pub fn rt(mut spec: TaskSpec, policy: Policy, priority: u8) -> TaskSpec {
    (spec.initial.policy, spec.initial.rt_priority) = (Some(policy), Some(priority));
    spec
}

/// Gives a task SCHED_DEADLINE.
pub fn dl(mut spec: TaskSpec, runtime: Nanos, deadline: Nanos, period: Nanos) -> TaskSpec {
    (spec.initial.policy, spec.initial.dl) = (Some(Policy::Deadline), Some((runtime, deadline, period)));
    spec
}

/// A load of tasks that inherit nothing when they start.
pub fn threads(tasks: Vec<TaskSpec>) -> Load {
    Load { tasks, start: Start::Threads, ..Load::default() }
}

/// Returns which task ran on a CPU and from when on, in ms: `0 A, 100 B`; `-` is the idle task.
pub fn lane(accounts: &Accounts, cpu: CpuId) -> String {
    let on_cpu = accounts.events.iter().filter(|e| e.cpu == cpu);
    let lines = on_cpu.filter_map(|e| match e.what {
        Payload::Switch { next: 0, .. } => Some(format!("{} -", e.time as f64 / 1e6)),
        Payload::Switch { next, .. } => Some(format!("{} {}", e.time as f64 / 1e6, accounts.names[next as usize - 1])),
        _ => None,
    });
    lines.collect::<Vec<_>>().join(", ")
}

/// A machine of this many equal CPUs, without costs.
pub fn bare(cpus: &str) -> Machine {
    let mut machine = schedlab_machine::load(cpus).expect("a machine");
    machine.costs = schedlab_machine::Costs::none();
    machine
}

/// Simulates a load; `set` contains pairs of tunables and values.
pub fn simulate(kernel: &str, machine: &Machine, load: &Load, set: &[(&str, String)], duration: Nanos) -> Accounts {
    simulate_how(kernel, machine, load, set, &How { duration: Some(duration), seed: 1, skip_ticks: true })
}

/// Simulates a load for so many ms, with a tick each ms.
pub fn simulate_at_1000_hz(kernel: &str, machine: &str, load: &Load, set: &[(&str, &str)], ms: Nanos) -> Accounts {
    let mut all = vec![("hz", "1000".to_owned())];
    all.extend(set.iter().map(|(name, value)| (*name, (*value).to_owned())));
    simulate(kernel, &bare(machine), load, &all, ms * MS)
}

pub fn simulate_how(kernel: &str, machine: &Machine, load: &Load, set: &[(&str, String)], how: &How) -> Accounts {
    let kernel = kernels::find(kernel).expect("a kernel");
    let set: Vec<_> = set.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
    let values = kernel.values(machine, &set).expect("tunables");
    let mut accounts = Accounts::default();
    let outcome = kernel.simulate(machine, load, &values, how, &mut accounts).expect("a run");
    accounts.finish(outcome.end);
    accounts
}

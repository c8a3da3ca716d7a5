//! What a task's properties come to: what holds when it starts, and what each phase then changes, resolved as
//! rt-app 55cb0c0 resolves them (`parse_sched_data`, `set_thread_param`, `set_thread_affinity`).

use crate::place::At;
use crate::{Memory, Policy, Props, TaskDef};
use schedlab_base::{Error, Nanos};

/// The kernel's least runtime of a deadline task (`DL_SCALE`).
const LEAST_DL_RUNTIME: Nanos = 1024;
/// rt-app's priority of FIFO and RR tasks where nothing is said.
const DEFAULT_RT_PRIORITY: i32 = 10;

/// How a task is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sched {
    /// SCHED_OTHER, SCHED_BATCH, SCHED_IDLE.
    Fair {
        /// Which of them.
        policy: Policy,
        /// Nice, -20..=19.
        nice: i8,
        /// A custom slice (Linux 6.12); `None` leaves what was.
        slice: Option<Nanos>,
    },
    /// SCHED_FIFO, SCHED_RR.
    RealTime {
        /// Which of them.
        policy: Policy,
        /// 1..=99.
        priority: u8,
    },
    /// SCHED_DEADLINE.
    #[allow(missing_docs)]
    Deadline { runtime: Nanos, deadline: Nanos, period: Nanos },
}

impl Sched {
    /// The policy.
    #[must_use]
    pub fn policy(&self) -> Policy {
        match self {
            Self::Fair { policy, .. } | Self::RealTime { policy, .. } => *policy,
            Self::Deadline { .. } => Policy::Deadline,
        }
    }
}

/// Where a task may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cpus {
    /// On every CPU.
    All,
    /// On these.
    These(Vec<u32>),
}

/// What is set at the start of a task or phase; `None` leaves what was.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Change {
    pub sched: Option<Sched>,
    pub util_min: Option<u32>,
    pub util_max: Option<u32>,
    pub cpus: Option<Cpus>,
    pub nodes_membind: Option<Vec<u32>>,
    pub taskgroup: Option<String>,
    pub working_set: Option<u64>,
    pub memory: Option<Memory>,
    pub clock_poll: Option<Nanos>,
    pub reclaim: Option<bool>,
}

/// A task's properties over its life.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What holds before the first phase; its policy is always said.
    pub initial: Change,
    /// For each phase what has to be set at its start; what is so already each time it starts is left out.
    pub phases: Vec<Change>,
}

/// Why properties make no sense together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The phase's index; `None` for the task.
    pub phase: Option<usize>,
    /// The property.
    pub key: &'static str,
    /// What is wrong.
    pub what: String,
    /// What would be right.
    pub mend: String,
}

impl Fault {
    pub(crate) fn error(&self, at: &At) -> Error {
        at.error(&self.what).mend(&self.mend)
    }

    /// The fault as an error about `task`, without a line.
    #[must_use]
    pub fn without_line(&self, task: &TaskDef) -> Error {
        let phase = self.phase.and_then(|n| task.phases.get(n)).filter(|phase| !phase.name.is_empty());
        let middle = phase.map(|phase| format!("phases.{}.", phase.name)).unwrap_or_default();
        Error::input(&self.what).mend(&self.mend).key(format!("tasks.{}.{middle}{}", task.name, self.key))
    }
}

impl Plan {
    /// Resolves a task's properties. `default` is the workload's `default_policy`.
    ///
    /// # Errors
    /// When a priority, a deadline or a group does not go with the policy in force.
    pub fn of(default: Policy, task: &TaskDef) -> Result<Self, Fault> {
        let policy = task.props.policy.unwrap_or(default);
        let sched = sched(&task.props, policy, 0)?;
        let initial = change(&task.props, Some(sched), task.props.cpus.as_ref().map(|cpus| Cpus::These(cpus.clone())));
        check_clamps(&task.props)?;
        check_group(sched, &initial)?;
        let mut state = initial.clone();
        let mut full = Vec::with_capacity(task.phases.len());
        for (n, phase) in task.phases.iter().enumerate() {
            let change = phase_change(task, &phase.props, &mut state).map_err(|f| Fault { phase: Some(n), ..f })?;
            full.push(change);
        }
        Ok(Self { phases: needed(&initial, &full), initial })
    }
}

/// What a phase sets, whether or not it holds already; applied to `state`.
fn phase_change(task: &TaskDef, props: &Props, state: &mut Change) -> Result<Change, Fault> {
    let now = state.sched.expect("the task's start says it");
    // Not sticky: a phase without `cpus` has the task's.
    let cpus = props.cpus.as_ref().or(task.props.cpus.as_ref());
    let cpus = cpus.map_or(Cpus::All, |cpus| Cpus::These(cpus.clone()));
    let change = change(props, phase_sched(props, now)?, Some(cpus));
    check_clamps(props)?;
    merge(state, &change);
    check_group(state.sched.unwrap_or(now), state)?;
    Ok(change)
}

fn change(props: &Props, sched: Option<Sched>, cpus: Option<Cpus>) -> Change {
    Change {
        sched,
        util_min: props.util_min,
        util_max: props.util_max,
        cpus,
        nodes_membind: props.nodes_membind.clone(),
        taskgroup: props.taskgroup.clone(),
        working_set: props.working_set,
        memory: props.memory.clone(),
        clock_poll: props.clock_poll,
        reclaim: props.reclaim,
    }
}

/// A phase without `policy` keeps the one in force; without `priority` too it leaves the scheduling alone, but for the
/// budget of a deadline task.
fn phase_sched(props: &Props, now: Sched) -> Result<Option<Sched>, Fault> {
    let budget = props.dl_runtime.is_some() || props.dl_deadline.is_some() || props.dl_period.is_some();
    let nice = if let Sched::Fair { nice, .. } = now { nice } else { 0 };
    match (props.policy, props.priority) {
        (Some(policy), _) => sched(props, policy, nice).map(Some),
        (None, Some(_)) => sched(props, now.policy(), nice).map(Some),
        (None, None) if budget && now.policy() == Policy::Deadline => sched(props, Policy::Deadline, nice).map(Some),
        (None, None) => Ok(None),
    }
}

/// What `props` ask for under `policy`. `nice` is the one in force, which SCHED_IDLE leaves as it is.
fn sched(props: &Props, policy: Policy, nice: i8) -> Result<Sched, Fault> {
    let fault = |key, what, mend: &str| Fault { phase: None, key, what, mend: mend.to_owned() };
    match policy {
        Policy::Other | Policy::Batch => {
            let nice = props.priority.unwrap_or(0);
            let nice = i8::try_from(nice).ok().filter(|nice| (-20..=19).contains(nice)).ok_or_else(|| {
                fault("priority", format!("{nice} is no nice value"), "SCHED_OTHER and SCHED_BATCH take -20..19")
            })?;
            Ok(Sched::Fair { policy, nice, slice: props.dl_runtime })
        }
        Policy::Idle => Ok(Sched::Fair { policy, nice, slice: None }),
        Policy::Fifo | Policy::Rr => {
            let priority = props.priority.unwrap_or(DEFAULT_RT_PRIORITY);
            let priority = u8::try_from(priority).ok().filter(|p| (1..=99).contains(p)).ok_or_else(|| {
                fault("priority", format!("{priority} is no real-time priority"), "SCHED_FIFO and SCHED_RR take 1..99")
            })?;
            Ok(Sched::RealTime { policy, priority })
        }
        Policy::Deadline => deadline(props),
    }
}

fn deadline(props: &Props) -> Result<Sched, Fault> {
    let fault = |key, what: &str, mend: &str| Fault { phase: None, key, what: what.to_owned(), mend: mend.to_owned() };
    let Some(runtime) = props.dl_runtime else {
        return Err(fault("policy", "SCHED_DEADLINE without a runtime", "give \"dl-runtime\" in us"));
    };
    let period = props.dl_period.unwrap_or(runtime);
    let deadline = props.dl_deadline.unwrap_or(period);
    if runtime < LEAST_DL_RUNTIME {
        return Err(fault("dl-runtime", "is under the kernel's least, 1024 ns", "give 2 us or more"));
    }
    if runtime > deadline {
        return Err(fault("dl-runtime", "is more than the deadline", "runtime <= deadline <= period must hold"));
    }
    if deadline > period {
        return Err(fault("dl-deadline", "is more than the period", "runtime <= deadline <= period must hold"));
    }
    Ok(Sched::Deadline { runtime, deadline, period })
}

fn check_clamps(props: &Props) -> Result<(), Fault> {
    match (props.util_min, props.util_max) {
        (Some(min), Some(max)) if min > max => Err(Fault {
            phase: None,
            key: "util_min",
            what: format!("{min} is more than \"util_max\", {max}"),
            mend: "the least must not pass the most".to_owned(),
        }),
        _ => Ok(()),
    }
}

/// A task in a group is a fair one, as in rt-app.
fn check_group(sched: Sched, state: &Change) -> Result<(), Fault> {
    match (&state.taskgroup, sched) {
        (None, _) | (_, Sched::Fair { .. }) => Ok(()),
        (Some(group), _) => Err(Fault {
            phase: None,
            key: "taskgroup",
            what: format!("a task in the group \"{group}\" cannot be {:?}", sched.policy()),
            mend: "groups are for SCHED_OTHER, SCHED_BATCH and SCHED_IDLE".to_owned(),
        }),
    }
}

/// Of what each phase sets, that which does not hold already each time the phase starts: the first time round and
/// the next. (All later rounds are like the second: by then every phase has set what it sets.)
fn needed(initial: &Change, full: &[Change]) -> Vec<Change> {
    let mut state = initial.clone();
    let mut phases = vec![Change::default(); full.len()];
    for _ in 0..2 {
        for (change, needed) in full.iter().zip(&mut phases) {
            merge(needed, &difference(&state, change));
            merge(&mut state, change);
        }
    }
    phases
}

/// The part of `change` that does not hold in `state`.
fn difference(state: &Change, change: &Change) -> Change {
    fn new<T: PartialEq + Clone>(state: &Option<T>, change: &Option<T>) -> Option<T> {
        change.clone().filter(|_| state != change)
    }
    let mut after = state.clone();
    merge(&mut after, change);
    let everywhere = Some(Cpus::All);
    Change {
        sched: change.sched.filter(|_| after.sched != state.sched),
        util_min: new(&state.util_min, &change.util_min),
        util_max: new(&state.util_max, &change.util_max),
        cpus: new(if state.cpus.is_some() { &state.cpus } else { &everywhere }, &change.cpus),
        nodes_membind: new(&state.nodes_membind, &change.nodes_membind),
        taskgroup: new(&state.taskgroup, &change.taskgroup),
        working_set: new(&state.working_set, &change.working_set),
        memory: new(&state.memory, &change.memory),
        clock_poll: new(&state.clock_poll, &change.clock_poll),
        reclaim: new(&state.reclaim, &change.reclaim),
    }
}

/// Lays `change` over `state`. A fair task keeps its custom slice where no other is asked for.
fn merge(state: &mut Change, change: &Change) {
    fn over<T: Clone>(state: &mut Option<T>, change: &Option<T>) {
        if change.is_some() {
            state.clone_from(change);
        }
    }
    let mut sched = change.sched;
    if let (Some(Sched::Fair { slice: old, .. }), Some(Sched::Fair { slice: new @ None, .. })) =
        (state.sched, &mut sched)
    {
        *new = old;
    }
    over(&mut state.sched, &sched);
    over(&mut state.util_min, &change.util_min);
    over(&mut state.util_max, &change.util_max);
    over(&mut state.cpus, &change.cpus);
    over(&mut state.nodes_membind, &change.nodes_membind);
    over(&mut state.taskgroup, &change.taskgroup);
    over(&mut state.working_set, &change.working_set);
    over(&mut state.memory, &change.memory);
    over(&mut state.clock_poll, &change.clock_poll);
    over(&mut state.reclaim, &change.reclaim);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Phase;

    fn task(props: Props, phases: Vec<Props>) -> TaskDef {
        let phases = phases.into_iter().map(|props| Phase { props, ..Phase::default() }).collect();
        TaskDef { props, phases, ..TaskDef::default() }
    }

    fn nice(n: i32) -> Props {
        Props { priority: Some(n), ..Props::default() }
    }

    #[test]
    fn a_phase_that_inherits_sets_nothing() {
        let plan = Plan::of(Policy::Other, &task(nice(5), vec![Props::default(), nice(5)])).unwrap();
        assert_eq!(plan.initial.sched, Some(Sched::Fair { policy: Policy::Other, nice: 5, slice: None }));
        assert_eq!(plan.phases, [Change::default(), Change::default()]);
    }

    #[test]
    fn the_first_phase_sets_again_what_the_last_one_changed() {
        let plan = Plan::of(Policy::Other, &task(nice(0), vec![nice(0), nice(9)])).unwrap();
        assert_eq!(plan.phases[0].sched, Some(Sched::Fair { policy: Policy::Other, nice: 0, slice: None }));
        assert_eq!(plan.phases[1].sched, Some(Sched::Fair { policy: Policy::Other, nice: 9, slice: None }));
    }

    #[test]
    fn cpus_fall_back_to_the_tasks_and_then_to_all() {
        let cpus = |list: &[u32]| Props { cpus: Some(list.to_vec()), ..Props::default() };
        let plan = Plan::of(Policy::Other, &task(cpus(&[2]), vec![cpus(&[0]), Props::default()])).unwrap();
        assert_eq!(plan.phases[0].cpus, Some(Cpus::These(vec![0])));
        assert_eq!(plan.phases[1].cpus, Some(Cpus::These(vec![2])));
        let plan = Plan::of(Policy::Other, &task(Props::default(), vec![cpus(&[0]), Props::default()])).unwrap();
        assert_eq!(plan.phases[1].cpus, Some(Cpus::All));
    }

    #[test]
    fn a_priority_alone_belongs_to_the_policy_that_was_in_force_first() {
        let fifo = Props { policy: Some(Policy::Fifo), ..Props::default() };
        let other = Props { policy: Some(Policy::Other), ..Props::default() };
        let plan = Plan::of(Policy::Other, &task(fifo, vec![nice(5), other])).unwrap();
        assert_eq!(plan.initial.sched, Some(Sched::RealTime { policy: Policy::Fifo, priority: 10 }));
        assert_eq!(plan.phases[0].sched, Some(Sched::RealTime { policy: Policy::Fifo, priority: 5 }));
        assert_eq!(plan.phases[1].sched, Some(Sched::Fair { policy: Policy::Other, nice: 0, slice: None }));
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let rt = |p| Props { policy: Some(Policy::Rr), priority: Some(p), ..Props::default() };
        let dl = |r, d, p| Props {
            policy: Some(Policy::Deadline),
            dl_runtime: r,
            dl_deadline: d,
            dl_period: p,
            ..Props::default()
        };
        let grouped = Props { taskgroup: Some("/a".into()), policy: Some(Policy::Fifo), ..Props::default() };
        let clamps = Props { util_min: Some(9), util_max: Some(8), ..Props::default() };
        for props in [
            nice(20),
            rt(0),
            rt(-1),
            dl(None, None, None),
            dl(Some(9000), Some(8000), None),
            dl(Some(2000), Some(9000), Some(8000)),
            dl(Some(1000), None, None),
            grouped,
            clamps,
        ] {
            assert!(Plan::of(Policy::Other, &task(props.clone(), vec![])).is_err(), "{props:?}");
            assert!(Plan::of(Policy::Other, &task(Props::default(), vec![props.clone()])).is_err(), "{props:?}");
        }
        assert!(Plan::of(Policy::Other, &task(dl(Some(2000), None, None), vec![])).is_ok());
    }
}

//! Resolves a task's properties: what applies when it starts, and what each phase then changes. The rules are those of
//! rt-app 55cb0c0 (`parse_sched_data`, `set_thread_param`, `set_thread_affinity`).

use crate::place::At;
use crate::{Memory, Policy, Props, TaskDef};
use schedlab_base::{Error, Nanos};

/// The kernel's smallest runtime of a deadline task (`DL_SCALE`).
const LEAST_DL_RUNTIME: Nanos = 1024;
/// rt-app's default priority of FIFO and RR tasks.
const DEFAULT_RT_PRIORITY: i32 = 10;

/// How a task is scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sched {
    /// SCHED_OTHER, SCHED_BATCH, SCHED_IDLE.
    Fair {
        /// The policy, one of these three.
        policy: Policy,
        /// The nice value, -20 to 19.
        nice: i8,
        /// A custom slice (Linux 6.12); `None` leaves the current one.
        slice: Option<Nanos>,
    },
    /// SCHED_FIFO, SCHED_RR.
    RealTime {
        /// The policy, one of these two.
        policy: Policy,
        /// The priority, 1 to 99.
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

/// The CPUs that a task may run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cpus {
    /// All CPUs.
    All,
    /// Only these CPUs.
    These(Vec<u32>),
}

/// The properties set at the start of a task or phase; `None` leaves the current value.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct Change {
    pub sched: Option<Sched>,
    pub util_min: Option<u16>,
    pub util_max: Option<u16>,
    pub cpus: Option<Cpus>,
    pub nodes_membind: Option<Vec<u32>>,
    pub taskgroup: Option<String>,
    pub working_set: Option<u64>,
    pub memory: Option<Memory>,
    pub clock_poll: Option<Nanos>,
    pub reclaim: Option<bool>,
}

/// A task's properties during its life.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The properties before the first phase. They always include a policy.
    pub initial: Change,
    /// For each phase, the properties to set at its start. Properties that already have their value at every start of
    /// the phase are left out.
    pub phases: Vec<Change>,
}

/// Why properties do not fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The phase's index; `None` for the task.
    pub(crate) phase: Option<usize>,
    /// The property.
    pub key: &'static str,
    /// What is wrong.
    pub what: String,
    /// How to fix it.
    pub mend: String,
}

impl Fault {
    pub(crate) fn error(&self, at: &At) -> Error {
        at.error(&self.what).mend(&self.mend)
    }

    /// An error about `task`, without a line.
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
    /// When a priority, a deadline or a group does not fit the policy in force.
    pub fn of(default: Policy, task: &TaskDef) -> Result<Self, Fault> {
        let policy = task.props.policy.unwrap_or(default);
        let sched = sched(&task.props, policy, 0)?;
        let initial = change(&task.props, Some(sched), task.props.cpus.as_ref().map(|cpus| Cpus::These(cpus.clone())));
        check_clamps(&task.props)?;
        check_group(sched, &initial)?;
        // The model of a recording has very many phases, none of which sets anything.
        if task.phases.iter().all(|phase| phase.props == Props::default()) {
            return Ok(Self { phases: vec![Change::default(); task.phases.len()], initial });
        }
        let mut state = initial.clone();
        let mut full = Vec::with_capacity(task.phases.len());
        for (n, phase) in task.phases.iter().enumerate() {
            let change = phase_change(task, &phase.props, &mut state).map_err(|f| Fault { phase: Some(n), ..f })?;
            full.push(change);
        }
        Ok(Self { phases: needed(&initial, &full), initial })
    }
}

/// All properties that a phase sets, even to their current values. They are also applied to `state`.
fn phase_change(task: &TaskDef, props: &Props, state: &mut Change) -> Result<Change, Fault> {
    let now = state.sched.expect("the task's start says it");
    // `cpus` does not stay in force: a phase without it uses the task's.
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

/// A phase without `policy` keeps the policy in force. If it has no `priority` either, it changes no scheduling
/// parameter except the budget of a deadline task.
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

/// The scheduling parameters that `props` request under `policy`. `nice` is the value in force, which SCHED_IDLE keeps.
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

/// As in rt-app, only fair tasks can be in a group.
fn check_group(sched: Sched, state: &Change) -> Result<(), Fault> {
    match (&state.taskgroup, sched) {
        (None, _) | (_, Sched::Fair { .. }) => Ok(()),
        // The root group is none.
        (Some(group), _) if group == "/" => Ok(()),
        (Some(group), _) => Err(Fault {
            phase: None,
            key: "taskgroup",
            what: format!("a task in the group \"{group}\" cannot be {}", sched.policy().name()),
            mend: "groups are for SCHED_OTHER, SCHED_BATCH and SCHED_IDLE".to_owned(),
        }),
    }
}

/// The properties that each phase really has to set. A property is needed if it differs when the phase starts in the
/// first or in the second round. All later rounds are like the second, because by then every phase has been applied.
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

/// The part of `change` that differs from `state`.
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

/// Applies `change` to `state`. A fair task keeps its custom slice unless the change has another.
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
    fn a_priority_without_policy_applies_to_the_policy_in_force() {
        let fifo = Props { policy: Some(Policy::Fifo), ..Props::default() };
        let other = Props { policy: Some(Policy::Other), ..Props::default() };
        let plan = Plan::of(Policy::Other, &task(fifo, vec![nice(5), other])).unwrap();
        assert_eq!(plan.initial.sched, Some(Sched::RealTime { policy: Policy::Fifo, priority: 10 }));
        assert_eq!(plan.phases[0].sched, Some(Sched::RealTime { policy: Policy::Fifo, priority: 5 }));
        assert_eq!(plan.phases[1].sched, Some(Sched::Fair { policy: Policy::Other, nice: 0, slice: None }));
    }

    #[test]
    fn properties_that_do_not_fit_together_are_refused() {
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

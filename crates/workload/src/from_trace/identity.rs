//! How tasks are scheduled besides what they do: their policies, groups, sessions and CPUs, as properties of a
//! workload.

use super::groups::Groups;
use super::life::Place;
use super::policy;
use super::sequence::Token;
use super::track::Track;
use crate::{NO_SESSION, Policy, Props};
use schedlab_base::{CpuId, CpuList, Meta, Nanos, Policy as RealPolicy, TaskProperties};
use schedlab_track::{Slot, row};
use std::sync::Arc;

/// So many changes of one task's identity are modelled.
const MOST_CHANGES: usize = 64;

/// What is known of a task at some time. What is not known is missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Identity {
    pub properties: TaskProperties,
    /// The path of its cgroup.
    pub cgroup: Option<Arc<str>>,
    /// Where it may run.
    pub allowed: Option<CpuList>,
}

impl Identity {
    /// What a new task has of its parent; `own` is what was said of it before.
    pub fn of_child(parent: &Self, own: &Self) -> Self {
        let said = own.properties != TaskProperties::default();
        Self {
            properties: if said { own.properties.clone() } else { parent.properties.of_child() },
            cgroup: own.cgroup.clone().or_else(|| parent.cgroup.clone()),
            allowed: own.allowed.clone().or_else(|| parent.allowed.clone()),
        }
    }
}

/// How a task is scheduled that runs with this priority (`prio`), though something else was recorded last: nobody saw
/// the change. `None` if that fits.
fn contradicted(known: &TaskProperties, prio: i16) -> Option<TaskProperties> {
    let policy = known.policy?;
    let changed = match (prio, policy) {
        (..0, RealPolicy::Deadline) => return None,
        (..0, _) => TaskProperties { policy: Some(RealPolicy::Deadline), ..TaskProperties::default() },
        (0..100, _) => {
            let policy = if policy == RealPolicy::Rr { policy } else { RealPolicy::Fifo };
            let rt_priority = Some((99 - prio).max(1) as u8);
            TaskProperties { policy: Some(policy), nice: None, rt_priority, slice_ns: None, ..known.clone() }
        }
        (_, RealPolicy::Fifo | RealPolicy::Rr | RealPolicy::Deadline) => {
            let nice = Some((prio - 120).clamp(-20, 19) as i8);
            TaskProperties { policy: Some(RealPolicy::Other), nice, rt_priority: None, ..TaskProperties::default() }
        }
        (_, _) => return None,
    };
    let same = (known.policy, known.rt_priority) == (changed.policy, changed.rt_priority);
    (!same).then_some(changed)
}

/// Turns identities into properties of a workload.
pub(super) struct Speaker<'a> {
    pub groups: &'a Groups,
    /// The slices that tasks have without asking for one.
    slices: [Option<Nanos>; 2],
    /// The machine's CPUs, whose numbers in a workload have no gaps.
    cpus: Vec<CpuId>,
    /// Whether tasks are bound to CPUs at all.
    pin: bool,
}

impl<'a> Speaker<'a> {
    pub fn new(meta: &Facts, groups: &'a Groups, pin: bool) -> Self {
        Self { groups, slices: meta.slices, cpus: meta.cpus.clone(), pin }
    }

    /// The properties of a task; `prio` is the kernel's priority that it ran with, for tasks whose policy is not known.
    pub fn props(&self, identity: &Identity, prio: Option<i16>) -> Props {
        let known = &identity.properties;
        let mut props = match known.policy {
            None => prio.map(policy).unwrap_or_default(),
            Some(policy) => self.sched(known, policy),
        };
        let clamp = (known.util_min.unwrap_or(0), known.util_max.unwrap_or(1024));
        if clamp != (0, 1024) {
            (props.util_min, props.util_max) = (Some(clamp.0), Some(clamp.1));
        }
        // The language has groups for ordinary tasks only.
        let fair = props.policy.is_none_or(|p| matches!(p, Policy::Batch | Policy::Idle));
        let group = identity.cgroup.as_deref().filter(|_| fair);
        props.taskgroup = group.and_then(|path| self.groups.effective(path));
        props.cpus = identity.allowed.as_ref().and_then(|allowed| self.bound(allowed));
        props
    }

    fn sched(&self, known: &TaskProperties, policy: schedlab_base::Policy) -> Props {
        use schedlab_base::Policy as Known;
        let fair = |policy| Props {
            policy,
            priority: known.nice.filter(|nice| *nice != 0).map(i32::from),
            dl_runtime: known.slice_ns.filter(|slice| self.is_own(*slice)).map(whole),
            ..Props::default()
        };
        let real_time = |policy| Props {
            policy: Some(policy),
            priority: Some(i32::from(known.rt_priority.unwrap_or(1).clamp(1, 99))),
            ..Props::default()
        };
        match policy {
            Known::Other | Known::Ext => fair(None),
            Known::Batch => fair(Some(Policy::Batch)),
            Known::Idle => fair(Some(Policy::Idle)),
            Known::Fifo => real_time(Policy::Fifo),
            Known::Rr => real_time(Policy::Rr),
            Known::Deadline if known.runtime_ns.is_none() => super::policy(-1),
            Known::Deadline => Props {
                policy: Some(Policy::Deadline),
                dl_runtime: known.runtime_ns.map(|ns| whole(ns).max(2_000)),
                dl_deadline: known.deadline_ns.or(known.period_ns).map(|ns| whole(ns).max(2_000)),
                dl_period: known.period_ns.or(known.deadline_ns).map(|ns| whole(ns).max(2_000)),
                reclaim: Some(true).filter(|_| known.reclaim),
                ..Props::default()
            },
        }
    }

    /// Whether a task has asked for this slice.
    fn is_own(&self, slice: Nanos) -> bool {
        self.slices[0].is_some() && !self.slices.contains(&Some(slice))
    }

    /// The CPUs that a task is bound to; none if it may use all of them.
    fn bound(&self, allowed: &CpuList) -> Option<Vec<u32>> {
        let bound: Vec<u32> =
            (0..).zip(&self.cpus).filter(|(_, cpu)| allowed.contains(**cpu)).map(|(n, _)| n).collect();
        (self.pin && !bound.is_empty() && bound.len() < self.cpus.len()).then_some(bound)
    }

    /// Whether tasks are bound to CPUs at all.
    pub fn pins(&self) -> bool {
        self.pin
    }

    /// What a task says that one of these forks, which would otherwise have its parent's group and CPUs.
    pub fn differs(&self, identity: &Identity, props: &mut Props, parents: &[(Arc<Identity>, Nanos)]) {
        let mut parents = parents.iter().map(|(parent, _)| self.props(parent, None));
        let in_root = identity.cgroup.is_some() && props.taskgroup.is_none();
        if in_root && props.policy.is_none_or(Policy::is_fair) && parents.clone().any(|of| of.taskgroup.is_some()) {
            props.taskgroup = Some("/".to_owned());
        }
        let free = identity.allowed.is_some() && props.cpus.is_none();
        if free && parents.any(|of| of.cpus.is_some()) {
            props.cpus = Some(self.everywhere());
        }
    }

    /// All CPUs.
    fn everywhere(&self) -> Vec<u32> {
        (0..self.cpus.len() as u32).collect()
    }

    /// What changes when a task with the properties `from` gets the properties `to`.
    pub fn change(&self, from: &Props, to: &Props) -> Props {
        let sched = |props: &Props| {
            (props.policy, props.priority, props.dl_runtime, props.dl_deadline, props.dl_period, props.reclaim)
        };
        let mut props = if sched(from) == sched(to) {
            Props::default()
        } else {
            let fair = to.policy.is_none_or(Policy::is_fair);
            let policy = Some(to.policy.unwrap_or_default());
            Props { policy, priority: to.priority.or(fair.then_some(0)), cpus: None, ..to.clone() }
        };
        let moved = from.taskgroup != to.taskgroup;
        props.taskgroup = moved.then(|| to.taskgroup.clone().unwrap_or_else(|| "/".to_owned()));
        let clamped = (from.util_min, from.util_max) != (to.util_min, to.util_max);
        props.util_min = clamped.then(|| to.util_min.unwrap_or(0));
        props.util_max = clamped.then(|| to.util_max.unwrap_or(1024));
        props
    }

    /// What changes at each of a task's identities, beginning with the first, whose properties these are. A phase has
    /// the CPUs of the first unless it says otherwise.
    pub fn changes(&self, all: &[Props]) -> Vec<Props> {
        let first = all.first().and_then(|props| props.cpus.clone());
        let mut changes = vec![Props::default()];
        for pair in all.windows(2) {
            let mut change = self.change(&pair[0], &pair[1]);
            let cpus = pair[1].cpus.clone().or_else(|| first.as_ref().map(|_| self.everywhere()));
            change.cpus = cpus.filter(|_| pair[1].cpus != first);
            changes.push(change);
        }
        changes
    }
}

/// A time in the language's unit, the microsecond.
fn whole(ns: Nanos) -> Nanos {
    ((ns + 500) / 1000).max(1) * 1000
}

/// What is known of the trace's machine and kernel.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    slices: [Option<Nanos>; 2],
    cpus: Vec<CpuId>,
}

impl Facts {
    pub fn of(meta: &Meta) -> Self {
        let mut cpus: Vec<CpuId> = meta.cpus.iter().map(|place| place.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let tunables = meta.system.as_ref().map(|system| &system.tunables);
        let base = tunables.and_then(|all| all.get("base_slice_ns")?.parse::<Nanos>().ok());
        // A task that has slept since the CPUs came online still shows the slice of one CPU.
        let unscaled = base.map(|base| base / (1 + Nanos::from(cpus.len().clamp(1, 8).ilog2())));
        Self { slices: [base, unscaled], cpus }
    }
}

/// The number of a session in a workload; none for a task that is in no session.
pub(super) fn session(properties: &TaskProperties) -> u32 {
    // The kernel's numbers have 32 bits; greater ones stand for sessions whose number was not read.
    match properties.autogroup {
        None => NO_SESSION,
        Some(number) if number < 1 << 31 => number as u32,
        Some(number) => (1 << 31) | (number as u32 & 0x3fff_ffff),
    }
}

impl Track {
    /// The task on a CPU has this priority. If that is not how it was recorded to be scheduled, it has been changed
    /// since it was put there, before it last became another program if it did.
    pub(super) fn has_prio(&mut self, slot: Slot, prio: i16) {
        let Some(identity) = &row(&mut self.seats, slot).identity else { return };
        let Some(changed) = contradicted(&identity.properties, prio) else { return };
        let ix = self.index(Some(slot));
        let Some(Place::Running { since, .. }) = self.tasks.get(ix as usize).map(|task| task.place) else { return };
        self.identify(slot, since, |identity| identity.properties = changed);
        let sequence = &mut self.tasks[ix as usize].sequence;
        let burst = sequence.iter().rposition(|token| matches!(token, Token::Block { .. })).map_or(0, |at| at + 1);
        if let Some(at) = sequence[burst..].iter().rposition(|token| *token == Token::Exec)
            && matches!(sequence.last(), Some(Token::Set(_)))
        {
            sequence[burst + at + 1..].rotate_right(1);
        }
    }

    /// What a task is to the scheduler changes at a time; what it was before counts up to then.
    pub(super) fn identify(&mut self, slot: Slot, time: Nanos, change: impl FnOnce(&mut Identity)) {
        let seat = row(&mut self.seats, slot);
        let old = seat.identity.clone().unwrap_or_default();
        let mut new = Identity::clone(&old);
        change(&mut new);
        if new == *old {
            return;
        }
        let new = Arc::new(new);
        seat.identity = Some(Arc::clone(&new));
        let Some(ix) = seat.ix.filter(|ix| !self.closed && self.tasks[*ix as usize].place != Place::Dead) else {
            return;
        };
        if let Place::Running { cpu, .. } = self.tasks[ix as usize].place {
            self.charge(ix, cpu, time);
        }
        let task = &mut self.tasks[ix as usize];
        if task.sequence.is_empty() {
            task.identities = vec![(new, 0)];
        } else if task.identities.len() < MOST_CHANGES {
            task.identities.push((new, 0));
            let number = task.identities.len() as u32 - 1;
            self.push(ix, Token::Set(number));
        } else {
            task.unsaid += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::{CpuPlace, System};

    fn meta() -> Meta {
        let mut system = System::default();
        system.tunables.insert("base_slice_ns".into(), "2800000".into());
        let cpus = [0, 2, 3].map(|cpu| CpuPlace { cpu, ..CpuPlace::default() }).to_vec();
        Meta { system: Some(system), cpus, ..Meta::default() }
    }

    #[test]
    fn identities_become_properties() {
        let (groups, facts) = (Groups::default(), Facts::of(&meta()));
        let speaker = Speaker::new(&facts, &groups, true);
        let of = |properties: TaskProperties, allowed: &str| {
            let allowed = Some(allowed.parse().unwrap());
            speaker.props(&Identity { properties, cgroup: None, allowed }, None)
        };
        let fair = TaskProperties { policy: Some(schedlab_base::Policy::Other), nice: Some(-3), ..Default::default() };
        let plain = of(TaskProperties { slice_ns: Some(2_800_000), ..fair.clone() }, "0-3");
        assert_eq!((plain.policy, plain.priority, plain.dl_runtime, plain.cpus), (None, Some(-3), None, None));
        let own = of(TaskProperties { slice_ns: Some(100_000), ..fair.clone() }, "2-3");
        assert_eq!((own.dl_runtime, own.cpus), (Some(100_000), Some(vec![1, 2])));
        // Two of three CPUs: 2.8 ms is 1.4 ms scaled.
        assert_eq!(of(TaskProperties { slice_ns: Some(1_400_000), ..fair.clone() }, "9").dl_runtime, None);
        let rr = TaskProperties { policy: Some(schedlab_base::Policy::Rr), rt_priority: Some(7), ..fair.clone() };
        assert_eq!(of(rr, "0-3"), Props { policy: Some(Policy::Rr), priority: Some(7), ..Props::default() });
        let clamped = TaskProperties { util_min: Some(100), ..fair };
        assert_eq!((of(clamped.clone(), "0").util_min, of(clamped, "0").util_max), (Some(100), Some(1024)));
        let unknown = speaker.props(&Identity::default(), Some(49));
        assert_eq!((unknown.policy, unknown.priority), (Some(Policy::Fifo), Some(50)));
    }

    #[test]
    fn a_child_says_what_it_does_not_have_of_its_parent() {
        let (groups, facts) = (Groups::default(), Facts::of(&meta()));
        let speaker = Speaker::new(&facts, &groups, true);
        let of = |cpus: &str| Identity { allowed: Some(cpus.parse().unwrap()), ..Identity::default() };
        let said = |child: &Identity, parent: Identity| {
            let mut props = speaker.props(child, None);
            speaker.differs(child, &mut props, &[(Arc::new(parent), 0)]);
            props.cpus
        };
        assert_eq!(said(&of("0-3"), of("2")), Some(vec![0, 1, 2]));
        assert_eq!(said(&of("3"), of("2")), Some(vec![2]));
        assert_eq!(said(&of("0-3"), of("0-3")), None);
        assert_eq!(said(&Identity::default(), of("2")), None);
    }

    #[test]
    fn a_change_says_what_ends() {
        let (groups, facts) = (Groups::default(), Facts::of(&meta()));
        let speaker = Speaker::new(&facts, &groups, true);
        let fifo = Props { policy: Some(Policy::Fifo), priority: Some(9), ..Props::default() };
        let group = Props { taskgroup: Some("/a".into()), util_min: Some(7), ..Props::default() };
        let back = speaker.change(&fifo, &group);
        assert_eq!((back.policy, back.priority), (Some(Policy::Other), Some(0)));
        assert_eq!((back.taskgroup.as_deref(), back.util_min, back.util_max), (Some("/a"), Some(7), Some(1024)));
        let root = speaker.change(&group, &Props::default());
        assert_eq!((root.policy, root.taskgroup.as_deref(), root.util_min), (None, Some("/"), Some(0)));
        assert_eq!(speaker.change(&group, &group), Props::default());
    }

    #[test]
    fn a_task_that_is_freed_may_use_every_cpu() {
        let (groups, facts) = (Groups::default(), Facts::of(&meta()));
        let speaker = Speaker::new(&facts, &groups, true);
        let bound = |cpus: Option<&[u32]>| Props { cpus: cpus.map(<[u32]>::to_vec), ..Props::default() };
        let cpus = |all: &[Props]| speaker.changes(all).into_iter().map(|change| change.cpus).collect::<Vec<_>>();
        let freed = [bound(Some(&[1])), bound(None), bound(Some(&[1])), bound(Some(&[2]))];
        assert_eq!(cpus(&freed), [None, Some(vec![0, 1, 2]), None, Some(vec![2])]);
        assert_eq!(cpus(&[bound(None), bound(Some(&[1])), bound(None)]), [None, Some(vec![1]), None]);
    }

    #[test]
    fn unread_sessions_differ_from_all_others() {
        let of = |number| session(&TaskProperties { autogroup: number, ..TaskProperties::default() });
        assert_eq!((of(None), of(Some(7))), (NO_SESSION, 7));
        assert_eq!(of(Some((1 << 32) + 1)), (1 << 31) + 1);
    }
}

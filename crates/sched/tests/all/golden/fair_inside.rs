//! The fair schedulers seen from inside: the view of the hierarchy, and the reasons for decisions.

use crate::support::registry::releases;
use crate::support::{Accounts, bare, exactly, forever, hog, once, pinned};
use schedlab_base::{Nanos, v, v2_6};
use schedlab_sched::kernels::{self, How};
use schedlab_sim::program::{GroupSpec, Load, Op, Policy, Setting, TaskSpec};
use schedlab_sim::{Choice, Decision, Inspect, Inspector, View};

const MS: Nanos = 1_000_000;

#[derive(Default)]
struct Seen {
    views: Vec<View>,
    decisions: Vec<Decision>,
}

impl Inspector for Seen {
    fn view(&mut self, _time: Nanos, _cpu: u32, view: View) {
        self.views.push(view);
    }

    fn decision(&mut self, decision: &Decision) {
        self.decisions.push(decision.clone());
    }
}

/// A hog in a group with 8 of every 20 ms, a hog in the root group, and a sleeper.
fn load() -> Load {
    let mut inside = hog("inside", 0);
    inside.initial.group = Some(0);
    let sleeper = forever("sleeper", 0, vec![Op::Run(exactly(MS)), Op::Sleep(exactly(13 * MS))]);
    let group =
        GroupSpec { path: "/a".into(), shares: 2048, bandwidth: Some((8 * MS, 20 * MS)), ..GroupSpec::default() };
    Load { tasks: vec![inside, hog("outside", 0), sleeper], groups: vec![group], ..Load::default() }
}

fn look(kernel: &str, at: &[Nanos]) -> Seen {
    look_at(kernel, "up", &load(), &[], at)
}

fn look_at(kernel: &str, machine: &str, load: &Load, set: &[(&str, &str)], at: &[Nanos]) -> Seen {
    let (kernel, machine) = (kernels::find(kernel).unwrap(), bare(machine));
    let set: Vec<_> = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let values = kernel.values(&machine, &set).unwrap();
    let how = How { duration: Some(200 * MS), seed: 1, skip_ticks: true };
    let mut seen = Seen::default();
    let inspect = Inspect { at, explain: 0..200 * MS, to: Box::new(&mut seen) };
    kernel.simulate_and_look(&machine, load, &values, &how, &mut Accounts::default(), Some(inspect)).unwrap();
    seen
}

fn part<'a>(view: &'a View, key: &str) -> &'a View {
    let View::Map(parts) = view else { panic!("{view:?} has no parts") };
    &parts.iter().find(|(name, _)| *name == key).unwrap_or_else(|| panic!("{view:?} has no {key}")).1
}

/// Collects every entity below a queue, and checks the queue's load against the sum of its entities.
fn entities(queue: &View, all: &mut Vec<View>) {
    let View::List(waiting) = part(queue, "tree") else { panic!("a tree is a list") };
    let mut sum = 0;
    for entity in waiting.iter().chain([part(queue, "curr")]).filter(|e| **e != View::Nothing) {
        let View::Int(weight) = part(entity, "weight") else { panic!("a weight is a number") };
        sum += weight;
        all.push(entity.clone());
        if let View::Map(parts) = entity
            && parts.iter().any(|(name, _)| *name == "queue")
        {
            entities(part(entity, "queue"), all);
        }
    }
    assert_eq!(part(queue, "load"), &View::Int(sum));
}

#[test]
fn the_view_is_the_tree_of_queues() {
    for kernel in ["linux-2.6.32", "linux-6.1", "linux-6.6", "linux-6.12"] {
        let seen = look(kernel, &[3 * MS, 90 * MS]);
        let mut all = Vec::new();
        entities(part(&seen.views[0], "queue"), &mut all);
        let named =
            |view: &View| all.iter().any(|e| matches!(e, View::Map(parts) if parts.iter().any(|p| p.1 == *view)));
        assert!(named(&View::Task(0)) && named(&View::Task(1)) && named(&View::Text("/a".into())), "{kernel}: {all:?}");
        if kernel.starts_with("linux-6.") && kernel != "linux-6.1" {
            assert!(all.iter().any(|e| part(e, "eligible") == &View::Flag(true)), "{kernel}: somebody is eligible");
        }
    }
}

#[test]
fn a_throttled_group_is_shown_beside_the_tree() {
    for kernel in ["linux-6.1", "linux-6.12"] {
        let times: Vec<Nanos> = (0..200).map(|ms| ms * MS).collect();
        let seen = look(kernel, &times);
        let throttled = seen.views.iter().filter(|v| part(v, "throttled") != &View::List(vec![])).count();
        // 8 of 20 ms, and the others take half of the time while the group may run.
        assert!((40..120).contains(&throttled), "{kernel}: {throttled} of 200 ms");
    }
}

#[test]
fn decisions_tell_rule_and_numbers() {
    for kernel in ["linux-2.6.32", "linux-3.10", "linux-6.1", "linux-6.6", "linux-6.12"] {
        let seen = look(kernel, &[]);
        let of = |choice| seen.decisions.iter().filter(move |d| d.choice == choice);
        assert!(of(Choice::Pick).count() > 20 && of(Choice::TurnEnds).count() > 10, "{kernel}");
        assert!(seen.decisions.iter().all(|d| !d.rule.is_empty()), "{kernel}");
        // The sleeper wakes up every 14 ms, or slightly more if it has to wait.
        let woken = of(Choice::Preempt).chain(of(Choice::Wait)).filter(|d| d.who == Some(2)).count();
        assert!((9..=15).contains(&woken), "{kernel}: {woken} wake-ups told");
        if kernel.starts_with("linux-2.6.32") {
            assert_eq!(of(Choice::Throttle).count(), 0);
        } else {
            assert!(of(Choice::Throttle).count() >= 16, "{kernel}: throttled and back, ten periods");
        }
        for pick in of(Choice::Pick).filter(|d| d.rule == "the least virtual runtime") {
            // The figures of the picked task come first, then those of the others in the root queue.
            let vruntimes: Vec<i64> = pick.numbers.iter().filter(|n| n.1 == "vruntime_ns").map(|n| n.2).collect();
            assert!(vruntimes.len() > 1 && vruntimes.iter().all(|v| *v >= vruntimes[0]), "{kernel}: {vruntimes:?}");
        }
        for pick in of(Choice::Pick).filter(|d| d.rule.starts_with("the earliest deadline")) {
            let lag = pick.numbers.iter().find(|n| n.1 == "lag_ns").expect("the picked one's lag").2;
            assert!(lag >= -1, "{kernel}: picked with a lag of {lag}");
        }
    }
}

fn int(view: &View, key: &str) -> i64 {
    let View::Int(value) = part(view, key) else { panic!("{key} is a number") };
    *value as i64
}

/// The entity of a group below the root.
fn top_group<'a>(view: &'a View, path: &str) -> &'a View {
    let queue = part(view, "queue");
    let View::List(waiting) = part(queue, "tree") else { panic!("a tree is a list") };
    let group = ("group", View::Text(path.into()));
    let is_it = |e: &&View| matches!(e, View::Map(parts) if parts.contains(&group));
    waiting.iter().chain([part(queue, "curr")]).find(is_it).expect("the group")
}

/// P and two hogs start on CPU 0 at 50 ms, with one virtual runtime, and P forks C `us` later. CPU 1, where C goes,
/// runs Q alone. Returns by how much C is behind Q there.
fn forked_behind(kernel: &str, us: Nanos) -> i64 {
    let late = |spec: TaskSpec| TaskSpec { start: 50 * MS, ..pinned(spec, 0) };
    let parent = once("P", vec![Op::Run(exactly(us * 1_000)), Op::Fork(0), Op::Run(exactly(50 * MS))]);
    let tasks = vec![pinned(hog("Q", 0), 1), late(parent), late(hog("H1", 0)), late(hog("H2", 0))];
    let mut child = hog("C", 0);
    child.initial.cpus = Some(vec![0, 1]);
    let load = Load { tasks, templates: vec![child], ..Load::default() };
    let seen = look_at(kernel, "2", &load, &[("hz", "1000")], &[50 * MS + us * 1_000 + 1_000]);
    let queue = part(&seen.views[1], "queue");
    let View::List(waiting) = part(queue, "tree") else { panic!("a tree is a list") };
    assert_eq!(waiting.len(), 1, "{kernel}: C is on CPU 1");
    assert_eq!(part(&waiting[0], "task"), &View::Task(4), "{kernel}");
    int(&waiting[0], "vruntime_ns") - int(part(queue, "curr"), "vruntime_ns")
}

/// `task_fork_fair` places the child on its parent's queue, and it takes its distance from the least virtual runtime
/// there along. With the child CPU 0 has four tasks, so its debit is a quarter of 12 ms; but its virtual runtime is
/// never less than its parent's. Until 4.6 the least of CPU 1 is that of its last tick (`enqueue_entity` adds it before
/// it accounts what Q has run since). 2.6.32 places the child on its own queue, where it is one of two in 10 ms.
#[test]
fn a_child_is_placed_on_its_parents_queue_from_2_6_33_on() {
    for kernel in releases(v2_6(32)..v(6, 6)) {
        let release = kernels::find(kernel).unwrap().release.unwrap();
        for (us, debit) in [(2_500, 3_000), (3_500, 3_500)] {
            let due = match release {
                release if release < v2_6(33) => 5_000,
                release if release < v(4, 7) => debit - 500,
                _ => debit,
            };
            let behind = forked_behind(kernel, us);
            assert!(behind.abs_diff(due * 1_000) < 5_000, "{kernel}: {behind} after {us} us");
        }
    }
}

/// C, in the group with A, asks for 0.3 ms from 500 us on where all others ask for 0.7. `enqueue_task_fair` gives the
/// group the least of its tasks' slices, and marks that as its own (`custom_slice`), as it did when the group was first
/// enqueued: it is not replaced by the base slice when the group's next requests begin (`update_deadline`).
#[test]
fn a_group_keeps_the_slice_of_its_tasks_over_its_requests() {
    let within = |mut spec: TaskSpec| {
        spec.initial.group = Some(0);
        spec
    };
    let asks = once("C", vec![Op::Run(exactly(MS / 2)), Op::Set(0), Op::Run(exactly(500 * MS))]);
    let load = Load {
        tasks: vec![within(asks), within(hog("A", 0)), hog("H", 0)],
        groups: vec![GroupSpec { path: "/a".into(), shares: 1024, ..GroupSpec::default() }],
        settings: vec![Setting { dl: Some((300_000, 0, 0)), ..Setting::default() }],
        ..Load::default()
    };
    for kernel in releases(v(6, 12)..v(7, 0)) {
        let at: Vec<Nanos> = (13..50).map(|n| n * 4 * MS + MS).collect();
        for view in look_at(kernel, "up", &load, &[], &at).views {
            assert_eq!(int(top_group(&view, "/a"), "slice_ns"), 300_000, "{kernel}");
        }
    }
}

/// `__setscheduler_params` hands on what a task of a fair policy asks for, and SCHED_IDLE is not counted among these
/// (`fair_policy`): a task that becomes idle keeps the slice that it had, and one that is idle cannot ask for one.
#[test]
fn an_idle_task_keeps_its_slice() {
    let idle = |slice: Nanos| Setting { policy: Some(Policy::Idle), dl: Some((slice, 0, 0)), ..Setting::default() };
    let mut asks = once("asks", vec![Op::Run(exactly(MS / 2)), Op::Set(0), Op::Run(exactly(500 * MS))]);
    asks.initial.dl = Some((10 * MS, 0, 0));
    let mut other = hog("other", 0);
    other.initial = idle(5 * MS);
    let load = Load { tasks: vec![asks, other], settings: vec![idle(10 * MS)], ..Load::default() };
    for kernel in releases(v(6, 12)..v(7, 0)) {
        let seen = look_at(kernel, "up", &load, &[("base_slice_ns", "1000000")], &[101 * MS]);
        let mut all = Vec::new();
        entities(part(&seen.views[0], "queue"), &mut all);
        for (task, slice) in [(0, 10 * MS), (1, MS)] {
            let entity = all.iter().find(|e| part(e, "task") == &View::Task(task)).expect("it is queued");
            assert_eq!((part(entity, "idle"), int(entity, "slice_ns")), (&View::Flag(true), slice as i64), "{kernel}");
        }
    }
}

/// For each time, whether a group is throttled on CPU 0, and the weight of /p there.
fn weights(kernel: &str, load: &Load, at: &[Nanos]) -> Vec<(bool, i64)> {
    let seen = look_at(kernel, "2", load, &[("hz", "100")], at);
    let of_cpu_0 = seen
        .views
        .iter()
        .step_by(2)
        .map(|view| (part(view, "throttled") != &View::List(vec![]), int(top_group(view, "/p"), "weight")));
    of_cpu_0.collect()
}

/// On CPU 0 /p has a task in /p/x, which is throttled for most of each 97 ms, and one in /p/y; on CPU 1 one more. Its
/// 1024 are split 2:1, and 1:1 while /p/x is throttled. Until 4.9 `dequeue_entity` and `enqueue_entity` update the
/// entity above (`update_cfs_shares`), so /p has its new weight at once. Later they update only what they enqueue
/// (`update_cfs_group`), and neither `throttle_cfs_rq` nor `unthrottle_cfs_rq` the groups above that: /p keeps its
/// weight up to its next tick. From 6.18 on tasks are throttled one by one.
#[test]
fn the_groups_above_a_throttled_one_keep_their_weight_from_4_10_on() {
    let group = |path: &str, parent| GroupSpec { path: path.into(), parent, shares: 1024, ..GroupSpec::default() };
    let mut groups = vec![group("/p", None), group("/p/x", Some(0)), group("/p/y", Some(0))];
    groups[1].bandwidth = Some((20 * MS, 97 * MS));
    let within = |name: &str, cpu, group| {
        let mut spec = pinned(hog(name, 0), cpu);
        spec.initial.group = Some(group);
        spec
    };
    let load = Load { tasks: vec![within("x", 0, 1), within("y", 0, 2), within("z", 1, 0)], groups, ..Load::default() };
    let at: Vec<Nanos> = (20..3_900).map(|n| n * 50_000 + 1).collect();
    for kernel in releases(v(3, 10)..v(6, 18)) {
        let seen = weights(kernel, &load, &at);
        let changes: Vec<_> = seen.windows(2).filter(|pair| pair[0].0 != pair[1].0).collect();
        assert!(changes.len() >= 3, "{kernel}: throttled and back");
        let old = kernels::find(kernel).unwrap().release < Some(v(4, 10));
        for pair in changes {
            let ((_, before), (throttled, after)) = (pair[0], pair[1]);
            if old {
                assert_eq!((before, after), if throttled { (682, 512) } else { (512, 682) }, "{kernel}");
            } else if !throttled {
                assert_eq!(before, after, "{kernel}");
            }
        }
    }
}

//! The fair schedulers seen from inside: the view of the hierarchy, and the reasons for decisions.

use crate::support::{Accounts, bare, exactly, forever, hog};
use schedlab_base::Nanos;
use schedlab_sched::kernels::{self, How};
use schedlab_sim::program::{GroupSpec, Load, Op};
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
    let (kernel, machine, load) = (kernels::find(kernel).unwrap(), bare("up"), load());
    let values = kernel.values(&machine, &[]).unwrap();
    let how = How { duration: Some(200 * MS), seed: 1, skip_ticks: true };
    let mut seen = Seen::default();
    let inspect = Inspect { at, explain: 0..200 * MS, to: Box::new(&mut seen) };
    kernel.simulate_and_look(&machine, &load, &values, &how, &mut Accounts::default(), Some(inspect)).unwrap();
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

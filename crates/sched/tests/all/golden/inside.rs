//! Inspection: compares what every scheduler shows of its queues and decisions with the events of the same run; and
//! checks views and reasons of O(1) and of the staircases that were worked out by hand.

use crate::support::{Accounts, MS, bare, exactly, forever, hog, run, simulate, sleep, threads};
use schedlab_base::{CpuId, Nanos, Payload};
use schedlab_sched::kernels::{self, How, KERNELS};
use schedlab_sim::program::{Load, Op, Policy, TaskSpec};
use schedlab_sim::{Choice, Decision, Inspect, Inspector, View};

#[derive(Default)]
struct Seen {
    views: Vec<(Nanos, CpuId, View)>,
    decisions: Vec<Decision>,
}

impl Inspector for Seen {
    fn view(&mut self, time: Nanos, cpu: CpuId, view: View) {
        self.views.push((time, cpu, view));
    }

    fn decision(&mut self, decision: &Decision) {
        self.decisions.push(decision.clone());
    }
}

fn look(kernel: &str, machine: &str, load: &Load, at: &[Nanos], until: Nanos) -> (Seen, Accounts) {
    let (kernel, machine) = (kernels::find(kernel).expect("a kernel"), bare(machine));
    let values = kernel.values(&machine, &[]).expect("tunables");
    let how = How { duration: Some(until), seed: 1, skip_ticks: true };
    let (mut seen, mut accounts) = (Seen::default(), Accounts::default());
    let inspect = Inspect { at, explain: 0..until, to: Box::new(&mut seen) };
    kernel.simulate_and_look(&machine, load, &values, &how, &mut accounts, Some(inspect)).expect("a run");
    (seen, accounts)
}

/// Sleepers, hogs, nice levels, yields and wake-ups by tasks, of which no two fall on the same instant.
fn mixed() -> Load {
    let nap = |name, nice, work, rest| forever(name, nice, vec![Op::Run(exactly(work)), Op::Sleep(exactly(rest))]);
    let mut urgent = nap("urgent", 0, 400_003, 29_000_019);
    (urgent.initial.policy, urgent.initial.rt_priority) = (Some(Policy::Rr), Some(7));
    let mut load = threads(vec![
        urgent,
        hog("hog", 0),
        hog("nicer", 7),
        nap("shell", 0, 1_300_007, 17_000_011),
        nap("better", -6, 2_100_013, 9_000_017),
        forever("yields", 0, vec![Op::Run(exactly(3_700_003)), Op::Yield]),
        forever("posts", 2, vec![Op::Run(exactly(5_300_021)), Op::SemPost(0)]),
        forever("waits", 0, vec![Op::SemWait(0), Op::Run(exactly(900_001))]),
    ]);
    load.sems = vec!["work".into()];
    load
}

fn part<'a>(view: &'a View, name: &str) -> &'a View {
    let View::Map(parts) = view else { panic!("{view:?} is no map") };
    &parts.iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("no {name} in {view:?}")).1
}

fn list(view: &View) -> &[View] {
    let View::List(list) = view else { panic!("{view:?} is no list") };
    list
}

/// Checks that every name of a view is in lower case with underscores, and that no map has a name twice.
fn check_names(kernel: &str, view: &View) {
    match view {
        View::Map(parts) => {
            for (at, (name, value)) in parts.iter().enumerate() {
                assert!(
                    name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
                    "{kernel}: {name}"
                );
                assert!(parts[..at].iter().all(|(other, _)| other != name), "{kernel}: {name} twice");
                for unit in ["ns_", "us_", "ticks_"] {
                    assert!(!name.starts_with(unit), "{kernel}: units stand last: {name}");
                }
                check_names(kernel, value);
            }
        }
        View::List(list) => list.iter().for_each(|item| check_names(kernel, item)),
        _ => {}
    }
}

/// Returns the task that runs, by the events before each time.
fn running(accounts: &Accounts, cpu: CpuId, at: Nanos) -> View {
    let mut before = accounts.events.iter().rev().filter(|e| e.cpu == cpu && e.time < at);
    let last = before.find_map(|e| if let Payload::Switch { next, .. } = e.what { Some(next) } else { None });
    last.filter(|next| *next != 0).map_or(View::Nothing, |next| View::Task(next as u32 - 1))
}

#[test]
fn views_name_who_runs() {
    let at: Vec<Nanos> = (1..40).map(|n| n * 7_777_777).collect();
    for kernel in KERNELS {
        let (seen, accounts) = look(kernel.name, "2", &mixed(), &at, 400 * MS);
        assert_eq!(seen.views.len(), 2 * at.len(), "{}", kernel.name);
        for (time, cpu, view) in &seen.views {
            check_names(kernel.name, view);
            if view != &View::Nothing {
                let curr = part(view, "curr");
                assert_eq!(curr, &running(&accounts, *cpu, *time), "{}: CPU {cpu} at {time}", kernel.name);
            }
        }
    }
}

/// Each switch has a pick that explains it, with numbers of the picked task, which is not among the rejected ones.
/// Inspection changes nothing.
#[test]
fn every_switch_has_its_reason() {
    for kernel in KERNELS {
        let (seen, accounts) = look(kernel.name, "up", &mixed(), &[], 4000 * MS);
        let plain = simulate(kernel.name, &bare("up"), &mixed(), &[], 4000 * MS);
        assert_eq!(plain.events, accounts.events, "{}: looking changes what happens", kernel.name);
        let picks: Vec<&Decision> = seen.decisions.iter().filter(|d| d.choice == Choice::Pick).collect();
        let mut checked = 0;
        for event in &accounts.events {
            let Payload::Switch { next, .. } = event.what else { continue };
            let who = (next != 0).then(|| next as u32 - 1);
            let reason = picks.iter().find(|d| d.time == event.time && d.who == who);
            let reason = reason.unwrap_or_else(|| panic!("{}: no reason for {event:?}", kernel.name));
            assert!(!reason.over.iter().any(|p| Some(*p) == who), "{}: {reason:?}", kernel.name);
            assert!(who.is_none() || reason.numbers.iter().any(|(of, ..)| *of == who), "{}: {reason:?}", kernel.name);
            checked += 1;
        }
        assert!(checked > 40, "{}: {checked}", kernel.name);
    }
}

#[test]
fn o1_shows_both_arrays() {
    // A has had 65 ticks of its 100, none of them asleep; B (nice 10) has its first 50 ms after A's 100.
    let load = threads(vec![hog("A", 0), hog("B", 10)]);
    let (seen, _) = look("linux-2.6.11", "up", &load, &[65 * MS, 120 * MS], 200 * MS);
    let task = |p, static_prio: u32, left: u32| {
        View::Map(vec![
            ("task", View::Task(p)),
            ("static_prio", static_prio.into()),
            ("bonus", View::Int(-5)),
            ("interactive", false.into()),
            ("sleep_avg_ns", View::Int(0)),
            ("time_slice_ticks", left.into()),
        ])
    };
    let listed = |prio: u32, task: View| View::Map(vec![("prio", prio.into()), ("tasks", View::List(vec![task]))]);
    let first = &seen.views[0].2;
    // Before the tick at 65 ms: 64 of its 100 ticks are gone.
    let lists = list(part(part(first, "active"), "lists"));
    assert_eq!(lists, [listed(125, task(0, 120, 36)), listed(135, task(1, 130, 50))]);
    assert_eq!(part(part(first, "active"), "best_prio"), &View::Int(125));
    assert_eq!(
        (part(first, "best_expired_prio"), part(first, "expired_timestamp_ticks")),
        (&View::Nothing, &View::Nothing)
    );
    // At 100 ms A expired, with a new slice; B has been running since then.
    let second = &seen.views[1].2;
    assert_eq!(list(part(part(second, "expired"), "lists")), [listed(125, task(0, 120, 100))]);
    assert_eq!(list(part(part(second, "active"), "lists")), [listed(135, task(1, 130, 31))]);
    assert_eq!((part(second, "curr"), part(second, "nr_running")), (&View::Task(1), &View::Int(2)));
    assert_eq!(part(second, "best_expired_prio"), &View::Int(120));
    assert_eq!(part(second, "expired_timestamp_ticks"), &View::Int(100));
}

fn rules(seen: &Seen) -> Vec<String> {
    let tell = |d: &Decision| {
        let who = d.who.map_or("-".to_owned(), |p| p.to_string());
        format!("{} {:?} {who}: {}", d.time as f64 / 1e6, d.choice, d.rule.split([',', ':']).next().unwrap_or_default())
    };
    seen.decisions.iter().map(tell).collect()
}

#[test]
fn o1_says_why() {
    // As in o1.rs: S waits for A's slice at first, then has the whole bonus and preempts.
    let load = threads(vec![hog("A", 0), forever("S", 0, vec![run(2), sleep(8)])]);
    let (seen, _) = look("linux-2.6.11", "up", &load, &[], 213 * MS);
    assert_eq!(
        rules(&seen)[3..],
        [
            "100 TurnEnds 0: its slice is used up and it is not interactive",
            "100 Pick 1: the first task of the best list of the active array",
            "102 Pick 0: no task was active",
            "110 Wait 1: its priority is no better than the running task's",
            "202 TurnEnds 0: its slice is used up and it is not interactive",
            "202 Pick 1: the first task of the best list of the active array",
            "204 Pick 0: no task was active",
            "212 Preempt 1: a better priority than the running task's preempts it",
            "212 Pick 1: the first task of the best list of the active array",
        ]
    );
    let woken = &seen.decisions[seen.decisions.len() - 2];
    assert_eq!(
        woken.numbers,
        [(Some(1), "prio", 115), (Some(1), "bonus", 5), (Some(0), "prio", 125), (Some(0), "bonus", -5)]
    );
}

/// The three outcomes at the end of an interactive task's slice, and the turns within it.
#[test]
fn o1_says_how_a_slice_ended() {
    let shell = |name: &str, nice| forever(name, nice, vec![sleep(700), run(350)]);
    let rules_of = |load: &Load, until| rules(&look("linux-2.6.11", "up", load, &[], until).0);
    // Alone with another: turns of 10 ms, and after 100 ms of its own each task stays active.
    let turns = rules_of(&threads(vec![shell("A", 0), shell("B", 0)]), 1000 * MS);
    assert!(turns.iter().any(|r| r == "710 TurnEnds 0: being interactive"), "{turns:#?}");
    assert!(turns.iter().any(|r| r.ends_with("TurnEnds 0: its slice is used up")), "{turns:#?}");
    let ended = |load: &Load, until: Nanos, rule: &str| {
        let (seen, _) = look("linux-2.6.11", "up", load, &[], until);
        let found = seen.decisions.into_iter().find(|d| d.choice == Choice::TurnEnds && d.rule.ends_with(rule));
        found.map(|d| (d.time, d.numbers))
    };
    // A task of nice 5 uses up its slice of 75 ms and is interactive, but nicer than the hog that expired.
    let (time, numbers) = ended(&beside_hogs(5, 1), 1000 * MS, "a better nice level has expired").expect("such an end");
    assert_eq!(time, 825 * MS);
    assert_eq!(
        numbers[2..],
        [
            (Some(2), "interactive_from_bonus", 3),
            (Some(2), "time_slice_ticks", 75),
            (Some(2), "static_prio", 125),
            (None, "best_expired_prio", 120),
        ]
    );
    // Six interactive tasks of nice 0 keep the CPU to themselves until the limit, 1000 ticks for each of 8 tasks.
    let (time, numbers) = ended(&beside_hogs(0, 6), 10_000 * MS, "the expired starve").expect("such an end");
    assert!((8701 * MS..9301 * MS).contains(&time), "{time}");
    let waited = (time / MS) as i64 - 701;
    assert_eq!(numbers[4..], [(None, "expired_wait_ticks", waited), (None, "starvation_limit_ticks", 8000)]);
    assert!(waited > 8000);
}

/// Two hogs, of which one is expired from 701 to 801, and other tasks that wake at 750 and then run without end.
fn beside_hogs(nice: i8, others: usize) -> Load {
    let late = |mut hog: TaskSpec| {
        hog.start = MS;
        hog
    };
    let sleeper = || forever("I", nice, vec![sleep(750), run(20_000)]);
    threads([hog("H", 0), hog("H", 0)].map(late).into_iter().chain((0..others).map(|_| sleeper())).collect())
}

#[test]
fn staircases_say_why() {
    // RSDL: quotas of 6 ms, levels 20 (nice 0) to 39; two tasks give a level a quota of 12 ms.
    let load = threads(vec![hog("A", 0), hog("B", 0)]);
    let (seen, _) = look("rsdl", "up", &load, &[7 * MS], 13 * MS);
    let told = rules(&seen);
    assert_eq!(
        told[2..],
        [
            "0 Pick 0: the first task of the best level of this rotation",
            "6 TurnEnds 0: its quota is used up",
            "6 Pick 1: the first task of the best level of this rotation",
            "12 TurnEnds 1: its quota is used up",
            "12 Pick 0: the first task of the best level of this rotation",
        ]
    );
    let ended = &seen.decisions[3];
    assert_eq!(ended.numbers, [(Some(0), "level_before", 20), (Some(0), "level", 21), (Some(0), "left_ns", 6_000_000)]);
    let view = &seen.views[0].2;
    assert_eq!(
        (part(view, "curr"), part(view, "rotation"), part(view, "level")),
        (&View::Task(1), &1u32.into(), &20u32.into())
    );
    let levels: Vec<_> = list(part(part(view, "active"), "lists")).iter().map(|l| part(l, "level").clone()).collect();
    assert_eq!(levels, [View::Int(20), View::Int(21)]);

    // SD: nice 0 has every second slot, 10 ms each; after the twentieth a new rotation begins.
    let (seen, _) = look("sd", "up", &load, &[], 401 * MS);
    let told = rules(&seen);
    assert!(told.iter().any(|r| r == "400 Pick 0: no task was active"), "{told:#?}");
    let expired = seen.decisions.iter().filter(|d| d.numbers.iter().any(|n| n.1 == "expired_level")).count();
    assert!(expired >= 2, "{told:#?}");
}

//! SCHED_DEADLINE: each job's completion time, refusals, reclaiming, hotplug; and throttling of real-time tasks, period
//! by period.

use crate::support::registry::releases;
use crate::support::{Accounts, MS, bare, dl, exactly, forever, hog, pinned, rt, simulate};
use proptest::prelude::*;
use schedlab_base::{Event, Nanos, Payload, v, v2_6};
use schedlab_sched::kernels::{How, find};
use schedlab_sim::program::{Hotplug, Load, Op, Policy, TaskSpec};
use schedlab_sim::{Choice, Decision, Inspect, Inspector, View};

const SECOND: Nanos = 1_000 * MS;
const TICK: Nanos = 4 * MS;

fn load(tasks: Vec<TaskSpec>) -> Load {
    Load { tasks, timers: vec![("own".into(), true)], ..Load::default() }
}

/// A task with a job of `work` at the beginning of each period.
fn jobs(name: &str, work: Nanos, period: Nanos) -> TaskSpec {
    forever(name, 0, vec![Op::Run(exactly(work)), Op::Timer { timer: 0, period: exactly(period), absolute: true }])
}

/// Returns what task `i` has run by each of the times `at`, which must be in ascending order.
fn ran_by(events: &[Event], i: usize, at: &[Nanos]) -> Vec<Nanos> {
    let tid = i as i32 + 1;
    let (mut ran, mut since) = (0, None);
    let mut events = events.iter().peekable();
    let by = |t: &Nanos| {
        while let Some(e) = events.next_if(|e| e.time <= *t) {
            if let Payload::Switch { prev, next, .. } = e.what {
                if prev == tid {
                    ran += e.time - since.take().expect("who leaves was there");
                }
                if next == tid {
                    since = Some(e.time);
                }
            }
        }
        ran + since.map_or(0, |since| t - since)
    };
    at.iter().map(by).collect()
}

/// Returns the first job of task `i` that is not complete `late` after its deadline.
fn first_late(accounts: &Accounts, i: usize, work: Nanos, period: Nanos, late: Nanos, until: Nanos) -> Option<u64> {
    let count = (until - late) / period;
    let ends: Vec<_> = (1..=count).map(|k| k * period + late).collect();
    let ran = ran_by(&accounts.events, i, &ends);
    (1..=count).find(|k| ran[*k as usize - 1] < k * work)
}

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

fn look(kernel: &str, load: &Load, at: &[Nanos], until: Nanos) -> Seen {
    let (kernel, machine) = (find(kernel).unwrap(), schedlab_machine::load("up").unwrap());
    let values = kernel.values(&machine, &[]).unwrap();
    let how = How { duration: Some(until), seed: 1, skip_ticks: true };
    let mut seen = Seen::default();
    let inspect = Inspect { at, explain: 0..until, to: Box::new(&mut seen) };
    kernel.simulate_and_look(&machine, load, &values, &how, &mut Accounts::default(), Some(inspect)).unwrap();
    seen
}

fn part<'a>(view: &'a View, name: &str) -> &'a View {
    let View::Map(parts) = view else { panic!("{view:?} is no map") };
    &parts.iter().find(|(n, _)| *n == name).unwrap_or_else(|| panic!("no {name} in {view:?}")).1
}

fn refusal(kernel: &str, cpus: &str, tasks: Vec<TaskSpec>) -> Option<String> {
    let (kernel, machine) = (find(kernel).unwrap(), bare(cpus));
    let values = kernel.values(&machine, &[]).unwrap();
    let how = How { duration: Some(SECOND), seed: 1, skip_ticks: true };
    kernel.simulate(&machine, &load(tasks), &values, &how, &mut Accounts::default()).err().map(|e| e.to_string())
}

#[test]
fn a_refusal_says_why() {
    let why = |kernel, cpus, task| refusal(kernel, cpus, vec![task]).unwrap_or_default();
    for kernel in releases(v(3, 14)..) {
        let text = why(kernel, "up", dl(hog("a", 0), 20 * MS, 10 * MS, 30 * MS));
        assert!(text.contains("(EINVAL)"), "{kernel}: a runtime beyond the deadline: {text}");
        let text = why(kernel, "up", dl(hog("a", 0), 98 * MS, 100 * MS, 100 * MS));
        assert!(text.contains("(EBUSY)"), "{kernel}: 98%: {text}");
        let text = why(kernel, "2", pinned(dl(hog("a", 0), 10 * MS, 100 * MS, 100 * MS), 0));
        assert!(text.contains("(EPERM)"), "{kernel}: one CPU of two: {text}");
        let text = why(kernel, "up", dl(hog("a", 0), 10 * MS, 5 * SECOND, 5 * SECOND));
        let limited = !["linux-3.18", "linux-4.1"].contains(&kernel);
        assert_eq!(text.contains("(EINVAL)"), limited, "{kernel}: periods are limited to 4.2 s from 5.4 on: {text}");
    }
}

#[test]
fn who_reclaims_leaves_the_others_in_time() {
    for kernel in releases(v(4, 13)..) {
        let mut greedy = dl(hog("greedy", 0), 10 * MS, 100 * MS, 100 * MS);
        greedy.initial.reclaim = Some(true);
        let tasks = vec![greedy, dl(jobs("jobs", 20 * MS, 100 * MS), 21 * MS, 100 * MS, 100 * MS), hog("fair", 0)];
        let accounts = simulate(kernel, &bare("up"), &load(tasks), &[], 10 * SECOND);
        assert_eq!(first_late(&accounts, 1, 20 * MS, 100 * MS, TICK, 10 * SECOND), None, "{kernel}");
        let run = accounts.named("greedy").run;
        assert!(run > 2 * SECOND, "{kernel}: {run} is no more than it was promised");
    }
}

#[test]
fn who_is_back_before_its_0_lag_time_goes_on_with_its_budget() {
    // 10 of 100 ms. After 8 ms the task is SCHED_OTHER for 5 ms, long before its 0-lag time (80 ms), and then returns.
    let back = |kernel| {
        let set = |policy, dl| schedlab_sim::program::Setting { policy: Some(policy), dl, ..Default::default() };
        let program =
            vec![Op::Run(exactly(8 * MS)), Op::Set(0), Op::Run(exactly(5 * MS)), Op::Set(1), Op::Run(exactly(60 * MS))];
        let task = TaskSpec { name: "task".into(), program, ..TaskSpec::default() };
        let dl_again = (10 * MS, 100 * MS, 100 * MS);
        let load = Load {
            settings: vec![set(Policy::Other, None), set(Policy::Deadline, Some(dl_again))],
            ..load(vec![dl(task, 10 * MS, 100 * MS, 100 * MS)])
        };
        let accounts = simulate(kernel, &bare("up"), &load, &[], 90 * MS);
        accounts.named("task").run
    };
    // With the rest of the budget it is throttled at the first tick after 2 more ms, with a new budget after 10 ms.
    assert_eq!(back("linux-4.1"), 24 * MS);
    assert_eq!(back("linux-6.1"), 16 * MS);
}

#[test]
fn deadline_and_real_time_tasks_move_when_their_cpu_goes() {
    for kernel in releases(v(3, 14)..) {
        let change = |at, online| Hotplug { at, cpu: 1, online };
        let tasks = vec![
            dl(hog("dl-0", 0), 40 * MS, 100 * MS, 100 * MS),
            dl(hog("dl-1", 0), 40 * MS, 100 * MS, 100 * MS),
            rt(hog("fifo-0", 0), Policy::Fifo, 10),
            rt(hog("rr", 0), Policy::Rr, 10),
        ];
        let hotplug = vec![change(SECOND, false), change(2 * SECOND, true)];
        let accounts = simulate(kernel, &bare("2"), &Load { hotplug, ..load(tasks) }, &[], 3 * SECOND);
        let away = SECOND..2 * SECOND;
        let there = |e: &&Event| e.cpu == 1 && away.contains(&e.time);
        let runs = |e: &Event| matches!(e.what, Payload::Switch { next, .. } if next != 0);
        assert!(!accounts.events.iter().filter(there).any(runs), "{kernel}: nobody runs on a CPU that is away");
        for task in 0..2 {
            let ran = ran_by(&accounts.events, task, &[SECOND, 2 * SECOND, 3 * SECOND]);
            for second in [ran[0], ran[1] - ran[0], ran[2] - ran[1]] {
                // A budget that was overrun by a tick is smaller in the next period; one period is cut off at each end.
                assert!(second.abs_diff(400 * MS) <= 40 * MS + TICK, "{kernel}: dl-{task} had {ran:?}");
            }
        }
    }
}

#[test]
fn views_and_reasons_tell_of_every_class() {
    let tasks = vec![
        dl(hog("dl", 0), 20 * MS, 100 * MS, 100 * MS),
        rt(hog("fifo", 0), Policy::Fifo, 10),
        rt(hog("rr", 0), Policy::Rr, 5),
        hog("fair", 0),
    ];
    for kernel in ["linux-4.1", "linux-6.1", "linux-6.12"] {
        let seen = look(kernel, &load(tasks.clone()), &[10 * MS, 50 * MS], 2 * SECOND);
        let deadline = part(&seen.views[0], "deadline");
        assert_eq!(part(deadline, "curr"), &View::Task(0), "{kernel}");
        let View::List(queue) = part(deadline, "queue") else { panic!("a list") };
        assert_eq!(part(&queue[0], "runtime_ns"), &View::from(20 * MS), "{kernel}");
        // At 50 ms it is throttled, and the task with the highest priority runs.
        let View::List(throttled) = part(part(&seen.views[1], "deadline"), "throttled") else { panic!("a list") };
        let who: Vec<_> = throttled.iter().map(|e| part(e, "task").clone()).collect();
        let waits_too = (kernel == "linux-6.12").then(|| View::from("fair server"));
        assert_eq!(who, waits_too.into_iter().chain([View::Task(0)]).collect::<Vec<_>>(), "{kernel}");
        let real_time = part(&seen.views[1], "real_time");
        assert_eq!(part(real_time, "curr"), &View::Task(1), "{kernel}");
        let View::List(lists) = part(real_time, "lists") else { panic!("a list") };
        let priorities: Vec<_> = lists.iter().map(|l| part(l, "real_time_priority").clone()).collect();
        assert_eq!(priorities, [View::from(10u32), View::from(5u32)], "{kernel}");
        let said = |choice, rule: &str| seen.decisions.iter().any(|d| d.choice == choice && d.rule.contains(rule));
        assert!(said(Choice::Throttle, "its budget is used up"), "{kernel}");
        assert!(said(Choice::Throttle, "a new period: it has a budget again"), "{kernel}");
        assert!(said(Choice::Preempt, "deadline tasks go before"), "{kernel}");
        assert!(said(Choice::Pick, "deadline goes first"), "{kernel}");
        assert!(said(Choice::Pick, "real time goes before fair"), "{kernel}");
        let served = if kernel == "linux-6.12" { "the fair server runs a fair task" } else { "real time is throttled" };
        assert!(said(Choice::Pick, served), "{kernel}: {served}");
    }
}

/// The server runs once from its zero laxity on, and has a new period from then on. Its overrun is forgiven, because
/// the next zero laxity is 950 ms after it stopped.
#[test]
fn the_fair_server_takes_a_new_period_whenever_it_has_served() {
    let tasks = vec![rt(hog("fifo", 0), Policy::Fifo, 10), hog("fair", 0)];
    let seen = look("linux-6.12", &load(tasks.clone()), &[960 * MS, 1_500 * MS], 2 * SECOND);
    let server = |view, list| {
        let View::List(entities) = part(part(view, "deadline"), list) else { panic!("a list") };
        entities[0].clone()
    };
    let deadline = |entity: &View| {
        let View::Int(ns) = part(entity, "deadline_ns") else { panic!("a time") };
        *ns as Nanos / MS
    };
    assert_eq!(deadline(&server(&seen.views[0], "queue")), 1_950, "1 s from zero laxity on, not from the start");
    let waiting = server(&seen.views[1], "throttled");
    assert_eq!(deadline(&waiting), 2_004, "1 s from when it had served");
    assert_eq!(part(&waiting, "budget_ns"), &View::from(50 * MS));
    assert_eq!(part(&waiting, "waits_for_zero_laxity"), &View::from(true));
    // This holds without costs too, although a switch in the kernel always takes some time.
    let accounts = simulate("linux-6.12", &bare("up"), &load(tasks), &[], 10 * SECOND);
    let fair = accounts.named("fair").run;
    assert!((500 * MS..=540 * MS).contains(&fair), "{fair}");
}

#[test]
fn a_period_of_throttling_goes_on_while_no_real_time_task_is_there() {
    // The first task comes at 0 and ends. The hog comes at 300 ms, in the same period, and gets 700 ms of it; the next
    // period ends at 1 s + 950 ms. If the hog comes after that period is over, a new period begins with it (but in
    // multiples of 1 s until 4.6).
    let first = TaskSpec { name: "first".into(), program: vec![Op::Run(exactly(MS))], ..TaskSpec::default() };
    let throttled = |kernel: &str, start| {
        let mut late = rt(hog("hog", 0), Policy::Fifo, 10);
        late.start = start;
        let tasks = vec![rt(first.clone(), Policy::Fifo, 10), late, hog("fair", 0)];
        let accounts = simulate(kernel, &bare("up"), &load(tasks), &[], 5 * SECOND);
        let to_fair = |e: &&Event| matches!(e.what, Payload::Switch { prev: 2, next: 3, .. });
        accounts.events.iter().find(to_fair).expect("it is throttled").time / MS
    };
    for kernel in releases(v2_6(25)..v(6, 12)) {
        let at = throttled(kernel, 300 * MS);
        assert!((1_951..=1_952).contains(&at), "{kernel}: {at}, the first tick after 1950 ms");
    }
    assert_eq!(throttled("linux-6.1", 2_500 * MS), 3_452);
    assert_eq!(throttled("linux-4.1", 2_500 * MS), 3_952);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    /// Each job of an admitted task is done by its deadline. If tasks beside it overrun their budgets, which is noticed
    /// at a tick, it is done that many ticks later.
    #[test]
    fn every_admitted_job_is_in_time_on_one_cpu(
        shapes in proptest::collection::vec((20u64..200, 1u64..100), 1..5), greedy in 0u64..3, fifo in any::<bool>()
    ) {
        let parts: u64 = shapes.iter().map(|(_, part)| part).sum();
        // 65% for all of these, and 10% for each task that overruns.
        let work = |(period, part): &(u64, u64)| (period * MS * 65 / 100 * part / parts).max(20_000);
        let works: Vec<_> = shapes.iter().map(work).collect();
        let mut tasks: Vec<_> = shapes.iter().zip(&works).enumerate().map(|(i, ((period, _), work))| {
            dl(jobs(&format!("jobs-{i}"), work - 10_000, period * MS), *work, period * MS, period * MS)
        }).collect();
        tasks.extend((0..greedy).map(|i| dl(hog(&format!("greedy-{i}"), 0), 5 * MS, 50 * MS, 50 * MS)));
        tasks.push(if fifo { rt(hog("other", 0), Policy::Fifo, 99) } else { hog("other", 0) });
        for kernel in releases(v(3, 14)..) {
            let accounts = simulate(kernel, &bare("up"), &load(tasks.clone()), &[], 3 * SECOND);
            for (i, (period, _)) in shapes.iter().enumerate() {
                let late = first_late(&accounts, i, works[i] - 10_000, period * MS, greedy * TICK, 3 * SECOND);
                prop_assert_eq!(late, None, "{}: a job of jobs-{}", kernel, i);
            }
        }
    }

    /// In each period real-time tasks get at most their runtime and a tick; what a tick noticed late is subtracted from
    /// the next period.
    #[test]
    fn real_time_tasks_have_their_part_of_each_period(
        tasks in proptest::collection::vec((1u8..99, 1u64..40, 0u64..20), 1..6)
    ) {
        let mut tasks: Vec<_> = tasks.into_iter().enumerate().map(|(i, (priority, run, sleep))| {
            let body = vec![Op::Run(exactly(run * MS)), Op::Sleep(exactly(sleep * MS))];
            let name = format!("rt-{i}");
            rt(if sleep == 0 { hog(&name, 0) } else { forever(&name, 0, body) }, Policy::Fifo, priority)
        }).collect();
        let rts = tasks.len();
        tasks.push(hog("fair", 0));
        let ends: Vec<_> = (1..=5).map(|k| k * SECOND).collect();
        for kernel in releases(v2_6(25)..v(6, 12)) {
            let accounts = simulate(kernel, &bare("up"), &load(tasks.clone()), &[], 5 * SECOND);
            let fair = ran_by(&accounts.events, rts, &ends);
            let left: Vec<_> = ends.iter().zip(&fair).map(|(end, fair)| end - fair).collect();
            let each: Vec<_> = left.iter().scan(0, |last, x| Some(x - std::mem::replace(last, *x))).collect();
            prop_assert!(each.iter().all(|ran| *ran <= 950 * MS + TICK), "{}: {:?}", kernel, each);
            prop_assert!(left.iter().zip(1..).all(|(ran, k)| *ran <= k * 950 * MS + TICK), "{}: {:?}", kernel, left);
        }
    }
}

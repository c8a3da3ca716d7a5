//! BFS's schedules, small enough to be followed by hand. The tick is 1 ms, and nothing has a cost.
//!
//! A slice is 6144 us of 1024 ns, a tick takes 976 of them, and a turn that began at a tick ends with 500 or less left:
//! after 6 ticks. Deadlines lie 41.09 ms ahead at nice 0, 66.06 at nice 5, 6.29 at nice -20.

use crate::support::{Accounts, MS, bare, exactly, forever, hog, lane, once, run, simulate, sleep, threads};
use schedlab_base::Nanos;
use schedlab_sched::kernels::{self, How};
use schedlab_sim::program::{Load, Op, Policy, Setting, Start, TaskSpec};
use schedlab_sim::{Choice, Decision, Inspect, Inspector, View};

/// Collects the views of CPU 0 and the decisions.
#[derive(Default)]
struct Seen {
    views: Vec<View>,
    decisions: Vec<Decision>,
}

impl Inspector for Seen {
    fn view(&mut self, _time: Nanos, cpu: u32, view: View) {
        if cpu == 0 {
            self.views.push(view);
        }
    }

    fn decision(&mut self, decision: &Decision) {
        self.decisions.push(decision.clone());
    }
}

fn simulated(load: &Load, machine: &str, ms: Nanos) -> Accounts {
    simulate("bfs", &bare(machine), load, &[], ms * MS)
}

fn schedule(load: &Load, ms: Nanos) -> String {
    lane(&simulated(load, "up", ms), 0)
}

fn with(mut spec: TaskSpec, setting: Setting) -> TaskSpec {
    spec.initial = setting;
    spec
}

fn of(policy: Policy, rt_priority: u8) -> Setting {
    Setting { policy: Some(policy), rt_priority: Some(rt_priority), ..Setting::default() }
}

#[test]
fn equals_take_turns_of_six_ticks() {
    assert_eq!(schedule(&threads(vec![hog("A", 0), hog("B", 0)]), 25), "0 A, 6 B, 12 A, 18 B, 24 A");
}

#[test]
fn a_nicer_task_waits_until_the_others_deadline_passes_its_own() {
    // B's deadline is 66.06. A's is renewed at 6, 12, 18, 24 and 30, and is 71.09 after that. Then B's is 36 + 66.06,
    // and A's 77.09 at 36 (it was 71.09, and is renewed when the slice is next used up), and so on to 107.09 at 66.
    let load = threads(vec![hog("A", 0), hog("B", 5)]);
    assert_eq!(schedule(&load, 110), "0 A, 30 B, 36 A, 66 B, 72 A, 102 B, 108 A");
}

#[test]
fn who_sleeps_keeps_slice_and_deadline() {
    // 0.9 ms are 878 of S's 6144. For seven turns S's deadline is still that of time 0, and it preempts H whenever it
    // wakes. At 18.9 its slice is used up, and the next deadline is 59.99. H's, renewed at 18, is 59.09, so S waits for
    // the end of H's turn. That turn began in the second half of a tick, so there is no dither, and the tick at 25
    // leaves H its last 191.
    let load =
        threads(vec![hog("H", 0), forever("S", 0, vec![Op::Run(exactly(900_000)), Op::Sleep(exactly(1_100_000))])]);
    let text = schedule(&load, 29);
    let (early, late) = text.split_once(", 18 S").unwrap();
    assert_eq!(early, "0 H, 6 S, 6.9 H, 8 S, 8.9 H, 10 S, 10.9 H, 12 S, 12.9 H, 14 S, 14.9 H, 16 S, 16.9 H");
    assert_eq!(late, ", 18.9 H, 26 S, 26.9 H, 28 S, 28.9 H");
}

#[test]
fn batch_tasks_lose_their_early_deadline_whenever_they_leave() {
    // At 7 B's deadline is renewed to 48.09, later than H's of 47.09: when B wakes it waits for the end of H's turn. As
    // an ordinary task it would still have the deadline of time 0.
    let sleeper = || forever("B", 0, vec![run(1), sleep(3)]);
    let batch = with(sleeper(), of(Policy::Batch, 0));
    assert_eq!(schedule(&threads(vec![hog("H", 0), batch]), 22), "0 H, 6 B, 7 H, 13 B, 14 H, 20 B, 21 H");
    assert_eq!(schedule(&threads(vec![hog("H", 0), sleeper()]), 12), "0 H, 6 B, 7 H, 10 B, 11 H");
}

#[test]
fn idleprio_tasks_run_when_nobody_else_can() {
    let idle = |spec| with(spec, of(Policy::Idle, 0));
    let load = threads(vec![idle(hog("I", -20)), forever("N", 19, vec![run(10), sleep(5)])]);
    assert_eq!(schedule(&load, 31), "0 N, 10 I, 15 N, 25 I, 30 N");
}

#[test]
fn idleprio_tasks_come_from_a_device_as_normal_ones() {
    // I preempts no task when it wakes at 10.1, but its deadline of 0 is the earliest when N's turn ends at 15 (that
    // was renewed at 9 without dither, as there was no tick while the CPU was idle). After its own turn I is IDLEPRIO
    // again.
    let idle = with(once("I", vec![run(1), Op::Io(7 * MS), run(50)]), of(Policy::Idle, 0));
    let load = threads(vec![idle, once("N", vec![run(2), sleep(2), run(50)])]);
    assert_eq!(schedule(&load, 29), "0 N, 2 I, 3 -, 4 N, 15 I, 20 N");
}

#[test]
fn real_time_tasks_go_before_all_deadlines() {
    let real_time = |name: &str, policy, prio| with(once(name, vec![run(10), sleep(1000)]), of(policy, prio));
    let load = threads(vec![hog("H", -20), real_time("A", Policy::Fifo, 10), real_time("B", Policy::Fifo, 10)]);
    assert_eq!(schedule(&load, 21), "0 A, 10 B, 20 H");
    // RR tasks have the same slice as all others.
    let load = threads(vec![hog("H", -20), real_time("A", Policy::Rr, 10), real_time("B", Policy::Rr, 10)]);
    assert_eq!(schedule(&load, 21), "0 A, 6 B, 12 A, 16 B, 20 H");
}

#[test]
fn who_may_not_be_real_time_is_isochronous_for_70_percent_of_five_seconds() {
    let load = threads(vec![hog("H", 0), with(hog("R", 0), of(Policy::Fifo, 10))]);
    let accounts = |cap: &str| {
        let set = [("cap_sys_nice", cap.to_owned())];
        simulate("bfs", &bare("up"), &load, &set, 4_200 * MS)
    };
    assert_eq!(accounts("on").named("H").run, 0);
    // 3501 ticks of 100 are more than 70% of 5001: R leaves at that tick, and shares the CPU as an ordinary task.
    let text = lane(&accounts("off"), 0);
    assert!(text.starts_with("0 R, 3501 H, 3507 R, 3513 H"), "{text}");
    // The usage falls to 62% within about 600 ticks, and R comes before H again.
    let (_, last) = text.rsplit_once(", ").unwrap();
    let (ms, name) = last.split_once(' ').unwrap();
    assert!(name == "R" && (4_050..4_150).contains(&ms.parse::<u64>().unwrap()), "{last}");
}

#[test]
fn a_child_runs_first_on_half_of_its_parents_slice() {
    // P has 4192 left at 2: it and C get 2096 each, with P's deadline. Two ticks leave 144, which ends a turn. Then C's
    // deadline is 45.09, P's 47.09, C's 53.09.
    let parent = once("P", vec![run(2), Op::Fork(0), run(100)]);
    let templates = vec![once("C", vec![run(100)])];
    let mut load = Load { tasks: vec![parent, hog("H", 5)], templates, ..Load::default() };
    assert_eq!(schedule(&load, 19), "0 P, 2 C-0, 4 P, 6 C-0, 12 P, 18 C-0");
    // A thread does not run before its parent: P continues until its half is used up.
    load.start = Start::Threads;
    assert_eq!(schedule(&load, 13), "0 P, 4 C-0, 6 P, 12 C-0");
}

#[test]
fn a_parent_without_a_slice_to_share_ends_its_turn() {
    // P begins in the second half of a tick, and the tick at 7 leaves it 191: less than 200 is not shared. C gets its
    // own slice and its own deadline, 48.19. P's turn ends, and its next deadline is equal, behind C's.
    let parent = once("P", vec![Op::Sleep(exactly(900_000)), Op::Run(exactly(6_200_000)), Op::Fork(0), run(100)]);
    let templates = vec![once("C", vec![run(100)])];
    let mut load = Load { tasks: vec![parent, hog("H", 19)], templates, ..Load::default() };
    assert_eq!(schedule(&load, 20), "0 P, 0 H, 0.9 P, 7.1 C-0, 13 P, 19 C-0");
    // A thread's parent continues until the tick ends its turn.
    load.start = Start::Threads;
    assert_eq!(schedule(&load, 15), "0 P, 0 H, 0.9 P, 8 C-0, 14 P");
}

#[test]
fn three_hogs_on_two_cpus_stick() {
    // A and C alternate on CPU 0: each sticks there until the other one does, and then runs at once. B stays sticky to
    // CPU 1, where no other task is put back.
    let load = threads(vec![hog("A", 0), hog("B", 0), hog("C", 0)]);
    let accounts = simulated(&load, "1x2x1", 25);
    assert_eq!((lane(&accounts, 0), lane(&accounts, 1)), ("0 A, 6 C, 12 A, 18 C, 24 A".into(), "0 B".into()));
}

#[test]
fn the_task_with_the_latest_deadline_is_preempted() {
    // W was on CPU 0, but A's deadline, on CPU 1, is later.
    let w = once("W", vec![sleep(3), run(4), sleep(50)]);
    let mut b = hog("B", 0);
    b.start = MS;
    let accounts = simulated(&threads(vec![w, hog("A", 5), b]), "1x2x1", 9);
    assert_eq!((lane(&accounts, 0), lane(&accounts, 1)), ("0 W, 0 -, 1 B".into(), "0 A, 3 W, 7 A".into()));
}

#[test]
fn an_idle_cpu_takes_who_was_preempted() {
    // R preempts A on CPU 0, the only CPU that it may use; the idle CPU 1 is signalled, and takes A.
    let mut r = with(once("R", vec![sleep(2), run(3), sleep(50)]), of(Policy::Fifo, 1));
    r.initial.cpus = Some(vec![0]);
    let mut a = hog("A", 0);
    a.start = MS;
    let accounts = simulated(&threads(vec![r, a]), "1x2x1", 9);
    assert_eq!((lane(&accounts, 0), lane(&accounts, 1)), ("0 R, 0 -, 1 A, 2 R, 5 -".into(), "2 A".into()));
}

#[test]
fn the_queue_and_the_reasons_can_be_seen() {
    let (load, machine) = (threads(vec![hog("A", 0), hog("B", 5)]), bare("up"));
    let kernel = kernels::find("bfs").unwrap();
    let values = kernel.values(&machine, &[]).unwrap();
    let how = How { duration: Some(40 * MS), seed: 1, skip_ticks: true };
    let mut seen = Seen::default();
    let inspect = Inspect { at: &[8 * MS], explain: 28 * MS..32 * MS, to: Box::new(&mut seen) };
    kernel.simulate_and_look(&machine, &load, &values, &how, &mut Accounts::default(), Some(inspect)).unwrap();
    // At 8, before the tick: A has used one tick of its second slice, whose deadline is 47.09.
    let task = |p, slice: i64, deadline: i64| {
        View::Map(vec![
            ("task", View::Task(p)),
            ("prio", 101u32.into()),
            ("time_slice_us", slice.into()),
            ("deadline_us", deadline.into()),
            ("sticky", false.into()),
        ])
    };
    let queue = View::Map(vec![
        ("curr", View::Task(0)),
        ("running", task(0, 5_168, 39_091)),
        ("dither", true.into()),
        ("sticky_task", View::Task(0)),
        ("queue", View::List(vec![task(1, 6_144, 58_060)])),
    ]);
    assert_eq!(seen.views, [queue]);
    // At 30 A's next deadline is 71.09, B's 66.06.
    let [turn, pick] = &seen.decisions[..] else { panic!("{:?}", seen.decisions) };
    assert_eq!((turn.time, turn.choice, turn.who), (30 * MS, Choice::TurnEnds, Some(0)));
    assert_eq!((pick.time, pick.choice, pick.who, &pick.over[..]), (30 * MS, Choice::Pick, Some(1), &[0][..]));
    assert_eq!(pick.numbers, [(Some(1), "deadline_us", 36_060), (Some(0), "deadline_us", 41_091)]);
}

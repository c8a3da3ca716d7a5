//! Schedules of the kernels before O(1) on one CPU, small enough to follow by hand. A tick is 10 ms, and nothing has a
//! cost. Slices at nice 0: 16 ticks in 1.2 and 21 in 2.0 and 2.2 (the tick that finds the counter at 0 ends the slice),
//! 6 in 2.4.

use crate::support::{Accounts, MS, bare, exactly, forever, hog, lane, once, run, simulate, sleep, threads};
use schedlab_base::{CpuId, Nanos};
use schedlab_sched::kernels::{How, find};
use schedlab_sim::program::{Load, Op, Policy, Setting, TaskSpec};
use schedlab_sim::{Choice, Decision, Inspect, Inspector, View};

fn schedule(kernel: &str, load: &Load, ms: u64) -> String {
    lane(&simulate(kernel, &bare("up"), load, &[], ms * MS), 0)
}

/// Waits `ms` milliseconds for a device.
fn device(ms: u64) -> Op {
    Op::Io(ms * MS - 100_000)
}

fn hogs(nices: &[(&str, i8)]) -> Load {
    threads(nices.iter().map(|(name, nice)| hog(name, *nice)).collect())
}

#[test]
fn equals_take_turns() {
    let load = hogs(&[("A", 0), ("B", 0), ("C", 0)]);
    // 1.2: the oldest task first. 2.0: the first in the queue, and new tasks join at its tail. The task that is found
    // when all counters are 0 runs.
    assert_eq!(schedule("linux-1.2", &load, 650), "0 A, 160 B, 320 C, 480 A, 640 B");
    assert_eq!(schedule("linux-2.0", &load, 850), "0 A, 210 B, 420 C, 630 A, 840 B");
    // 2.2: new tasks join at the head. In the new epoch, the previous task comes before its equals, and runs two
    // slices.
    assert_eq!(schedule("linux-2.2", &load, 1900), "0 C, 210 B, 420 A, 840 C, 1050 B, 1470 C, 1680 A");
    // 2.4: at the tail again. The previous task is better by 1 for its address space, and has two slices as well.
    assert_eq!(schedule("linux-2.4", &load, 601), "0 A, 60 B, 120 C, 240 A, 300 B, 420 A, 480 C, 600 A");
}

#[test]
fn slices_follow_nice() {
    let load = hogs(&[("A", 0), ("B", 5)]);
    // 15 and 10 ticks, and the one that ends the slice.
    assert_eq!(schedule("linux-1.2", &load, 541), "0 A, 160 B, 270 A, 430 B, 540 A");
    // 20 and 15 ticks.
    assert_eq!(schedule("linux-2.0", &load, 741), "0 A, 210 B, 370 A, 580 B, 740 A");
    // 6 and 4 ticks in 2.4, where nice counts in goodness too: A is always first in an epoch.
    assert_eq!(schedule("linux-2.4", &load, 261), "0 A, 60 B, 100 A, 160 B, 200 A, 260 B");
    assert_eq!(schedule("linux-2.2", &load, 741), "0 A, 210 B, 370 A, 580 B, 740 A");
}

#[test]
fn who_sleeps_has_up_to_two_slices() {
    let load = |sleeps, runs| threads(vec![hog("H", 0), once("S", vec![sleep(sleeps), run(runs)])]);
    // While S sleeps its counter grows in each of H's epochs, from 20 to 39: 40 ticks. H has 9 left of its slice; then
    // H, the first in the queue, gets another.
    let text = schedule("linux-2.0", &load(2000, 500), 3030);
    assert_eq!(text, "0 H, 210 S, 210 H, 2210 S, 2610 H, 2920 S, 3020 H");
    // It grows from 6 to 11 in 2.4. H has 2 of its 6 ticks left, and then keeps the CPU into the next epoch; so does S.
    let text = schedule("linux-2.4", &load(1000, 200), 1350);
    assert_eq!(text, "0 H, 60 S, 60 H, 1060 S, 1170 H, 1250 S, 1340 H");
}

/// S sleeps at 1 ms and wakes after `wait`; H began with as many ticks as S.
fn wakes(kernel: &str, wait: Op) -> String {
    // 2.2 begins with the last task.
    let order = if kernel == "linux-2.2" { ["H", "S"] } else { ["S", "H"] };
    let task =
        |name| if name == "H" { hog("H", 0) } else { once("S", vec![run(1), wait.clone(), run(1), sleep(5000)]) };
    schedule(kernel, &threads(order.map(task).into()), 250)
}

#[test]
fn who_wakes_preempts_with_four_ticks_more() {
    assert_eq!(wakes("linux-1.2", device(34)), "0 S, 1 H, 160 S, 161 H");
    assert_eq!(wakes("linux-1.2", device(44)), "0 S, 1 H, 45 S, 46 H");
    assert_eq!(wakes("linux-2.0", sleep(34)), "0 S, 1 H, 210 S, 211 H");
    assert_eq!(wakes("linux-2.0", sleep(44)), "0 S, 1 H, 45 S, 46 H");
}

#[test]
fn in_1_2_who_slept_for_a_time_is_seen_when_the_cpu_next_chooses() {
    assert_eq!(wakes("linux-1.2", sleep(44)), "0 S, 1 H, 160 S, 161 H");
    // No task runs, so S runs at once.
    let alone = threads(vec![forever("S", 0, vec![run(1), sleep(44)])]);
    assert_eq!(schedule("linux-1.2", &alone, 50), "0 S, 1 -, 45 S, 46 -");
}

#[test]
fn who_wakes_preempts_with_more_goodness() {
    // H has 1 for its address space: after one tick it is as good as S, after two it is worse.
    assert_eq!(wakes("linux-2.2", sleep(14)), "0 S, 1 H, 210 S, 211 H");
    assert_eq!(wakes("linux-2.2", sleep(24)), "0 S, 1 H, 25 S, 26 H");
    assert_eq!(wakes("linux-2.4", sleep(14)), "0 S, 1 H, 60 S, 61 H");
    assert_eq!(wakes("linux-2.4", sleep(24)), "0 S, 1 H, 25 S, 26 H");
}

#[test]
fn yielding_was_different_each_time() {
    let load = threads(vec![forever("Y", 0, vec![run(1), Op::Yield]), hog("H", 0)]);
    // 1.2 did not have this call.
    assert_eq!(schedule("linux-1.2", &load, 321), "0 Y, 160 H, 320 Y");
    // 2.0: Y loses its counter and goes behind H, so H is also first in the next epoch.
    assert_eq!(schedule("linux-2.0", &load, 632), "0 Y, 1 H, 420 Y, 421 H, 630 Y, 631 H");
    // 2.2: Y is compared again like the others, and is mostly better than H. At 410 it has no ticks left, and its yield
    // starts the next epoch; at 420, after one tick of that, it is no better than H, which is before it in the queue.
    assert_eq!(schedule("linux-2.2", &load, 631), "0 H, 210 Y, 420 H, 630 Y");
    // 2.4: Y stands back once.
    assert_eq!(schedule("linux-2.4", &load, 122), "0 Y, 1 H, 60 Y, 61 H, 120 Y, 121 H");
}

#[test]
fn who_yields_to_nobody_starts_no_epoch_in_2_4() {
    // S's counter would grow with each epoch. Y has 1 of 6 ticks left at 55. S, of nice 4, has 5 ticks and 16: no
    // better than Y with 1, 1 and 20, but one tick more would make it better.
    let y = forever("Y", 0, vec![run(1), Op::Yield]);
    let s = once("S", vec![sleep(55), run(1), sleep(1000)]);
    let mut load = threads(vec![s, y]);
    load.tasks[0].initial.nice = Some(4);
    let text = schedule("linux-2.4", &load, 100);
    assert_eq!(text, "0 Y, 1 S, 1 Y, 56 S, 57 Y");
}

fn real_time(name: &str, policy: Policy, ms: u64) -> TaskSpec {
    let mut spec = once(name, vec![run(ms), sleep(10_000)]);
    spec.initial = Setting { policy: Some(policy), rt_priority: Some(10), ..Setting::default() };
    spec
}

#[test]
fn round_robin_tasks_take_turns_but_not_in_2_2() {
    let load = |ms| threads(vec![hog("H", -20), real_time("A", Policy::Rr, ms), real_time("B", Policy::Rr, ms)]);
    assert_eq!(schedule("linux-2.0", &load(300), 601), "0 A, 210 B, 420 A, 510 B, 600 H");
    assert_eq!(schedule("linux-2.4", &load(150), 301), "0 A, 60 B, 120 A, 180 B, 240 A, 270 B, 300 H");
    // The running task comes before its equals, wherever it is in the queue.
    assert_eq!(schedule("linux-2.2", &load(300), 601), "0 B, 300 A, 600 H");
}

#[test]
fn fifo_tasks_run_until_they_sleep() {
    let load = threads(vec![hog("H", -20), real_time("A", Policy::Fifo, 300), real_time("B", Policy::Fifo, 300)]);
    for (kernel, text) in [("linux-2.0", "0 A, 300 B, 600 H"), ("linux-2.2", "0 B, 300 A, 600 H")] {
        assert_eq!(schedule(kernel, &load, 601), text);
    }
    assert_eq!(schedule("linux-2.4", &load, 601), "0 A, 300 B, 600 H");
}

#[test]
fn who_becomes_real_time_preempts_and_in_2_2_goes_to_the_head() {
    // S becomes FIFO at 1 ms and stays. H, which becomes FIFO after it wakes, must wait for its equal.
    let fifo = Setting { policy: Some(Policy::Fifo), rt_priority: Some(10), ..Setting::default() };
    let late = |name| once(name, vec![Op::Set(0), run(5), sleep(1000)]);
    let mut load = threads(vec![late("A"), late("B"), hog("H", 0)]);
    load.settings = vec![fifo];
    for (kernel, text) in
        [("linux-2.0", "0 A, 5 B, 10 H"), ("linux-2.2", "0 H, 210 B, 215 A, 220 H"), ("linux-2.4", "0 A, 5 B, 10 H")]
    {
        assert_eq!(schedule(kernel, &load, 230), text, "{kernel}");
    }
}

#[test]
fn an_idle_cpu_keeps_an_address_space_in_2_4() {
    // Both wake at 20, equally good, and A is before B in the queue. B ran last.
    let load = threads(vec![forever("A", 0, vec![run(1), sleep(19)]), once("B", vec![run(1), sleep(18), run(1)])]);
    assert_eq!(schedule("linux-2.0", &load, 22), "0 A, 1 B, 2 -, 20 A, 21 B");
    assert_eq!(schedule("linux-2.4", &load, 22), "0 A, 1 B, 2 -, 20 B, 21 A");
}

/// P forks C after one tick.
fn family(child: u64) -> Load {
    let parent = once("P", vec![run(10), Op::Fork(0), run(1000)]);
    Load { templates: vec![once("C", vec![run(child)])], ..threads(vec![parent, hog("H", 0)]) }
}

#[test]
fn a_child_has_half_of_its_parents_counter() {
    // 1.2: P has 14 left and keeps them; C has 7.
    assert_eq!(schedule("linux-1.2", &family(500), 401), "0 P, 160 H, 320 C-0, 400 P");
    // 2.0: 19 are left, so each gets 9.
    assert_eq!(schedule("linux-2.0", &family(500), 421), "0 P, 110 H, 320 C-0, 420 P");
    // 2.2: H is first in the queue. C has 9 ticks and then a whole slice, as it runs when the epoch ends.
    assert_eq!(schedule("linux-2.2", &family(500), 631), "0 H, 210 P, 320 C-0, 630 H");
    // 2.4: 5 are left: C gets 3, P 2.
    assert_eq!(schedule("linux-2.4", &family(500), 121), "0 P, 30 H, 90 C-0");
}

#[test]
fn what_a_child_leaves_goes_back_in_2_4() {
    // When C ends at 95 no task has ticks left: an epoch ends, and C, not yet gone, has 3 / 2 + 6 = 7 like the others.
    // P has 6 and those 7.
    assert_eq!(schedule("linux-2.4", &family(5), 221), "0 P, 30 H, 90 C-0, 95 P, 220 H");
}

#[test]
fn a_parent_that_gave_its_last_tick_away_gives_way_in_2_4() {
    let parent = once("P", vec![run(51), Op::Fork(0), run(1000)]);
    let load = Load { templates: vec![once("C", vec![run(500)])], ..threads(vec![parent, hog("H", 0)]) };
    // One tick is left at 51, and C gets it. H has 6. C keeps the CPU into the next epoch.
    assert_eq!(schedule("linux-2.4", &load, 181), "0 P, 51 H, 110 C-0, 180 P");
}

#[test]
fn the_scale_of_slices_follows_hz_in_2_4() {
    // HZ 1000: 20 * 2 + 1 ticks.
    let load = hogs(&[("A", 0), ("B", 0)]);
    let set = [("hz", "1000".to_owned())];
    let accounts = simulate("linux-2.4", &bare("up"), &load, &set, 124 * MS);
    assert_eq!(lane(&accounts, 0), "0 A, 41 B, 123 A");
    // 2.0: 200 ticks and the one that ends the slice.
    let accounts = simulate("linux-2.0", &bare("up"), &load, &set, 403 * MS);
    assert_eq!(lane(&accounts, 0), "0 A, 201 B, 402 A");
}

/// Collects the decisions, and the views of CPU 0.
#[derive(Default)]
struct Seen {
    decisions: Vec<Decision>,
    views: Vec<View>,
}

impl Inspector for Seen {
    fn view(&mut self, _time: Nanos, _cpu: CpuId, view: View) {
        self.views.push(view);
    }

    fn decision(&mut self, decision: &Decision) {
        self.decisions.push(decision.clone());
    }
}

fn look(kernel: &str, load: &Load) -> Seen {
    let (kernel, machine) = (find(kernel).unwrap(), bare("up"));
    let values = kernel.values(&machine, &[]).unwrap();
    let how = How { duration: Some(300 * MS), seed: 1, skip_ticks: true };
    let mut seen = Seen::default();
    let inspect = Inspect { at: &[65 * MS], explain: 0..300 * MS, to: Box::new(&mut seen) };
    kernel.simulate_and_look(&machine, load, &values, &how, &mut Accounts::default(), Some(inspect)).unwrap();
    seen
}

fn part<'a>(view: &'a View, name: &str) -> &'a View {
    let View::Map(parts) = view else { panic!("{view:?} is no map") };
    &parts.iter().find(|(n, _)| *n == name).expect("a part of that name").1
}

#[test]
fn decisions_and_queues_can_be_looked_at() {
    let load = hogs(&[("A", 0), ("B", 5)]);
    let seen = look("linux-2.4", &load);
    let picks: Vec<_> = seen.decisions.iter().filter(|d| d.choice == Choice::Pick).collect();
    assert_eq!((picks[0].who, &picks[0].over[..]), (Some(0), &[1][..]));
    let goodness: Vec<_> = picks[0].numbers.iter().filter(|n| n.1 == "goodness").collect();
    assert_eq!(goodness, [&(Some(0), "goodness", 26), &(Some(1), "goodness", 19)]);
    assert_eq!((picks[1].time, picks[1].who), (60 * MS, Some(1)));
    assert!(picks[2].rule.starts_with("a new epoch"), "{:?}", picks[2]);
    assert!(seen.decisions.iter().any(|d| d.choice == Choice::TurnEnds && d.time == 60 * MS && d.who == Some(0)));
    let View::List(queue) = part(&seen.views[0], "queue") else { panic!("the queue is a list") };
    assert_eq!(part(&queue[0], "counter"), &View::Int(0));
    assert_eq!((part(&queue[1], "counter"), part(&queue[1], "goodness")), (&View::Int(4), &View::Int(20)));

    let seen = look("linux-1.2", &load);
    let View::List(tasks) = part(&seen.views[0], "tasks") else { panic!("the tasks are a list") };
    assert_eq!(part(&tasks[0], "counter"), &View::Int(15 - 6));
    assert_eq!(seen.decisions.iter().filter(|d| d.choice == Choice::Pick).nth(1).unwrap().who, Some(1));
}

#[test]
fn a_task_that_runs_alone_starts_epoch_after_epoch() {
    let load = threads(vec![forever("T", 0, vec![Op::Run(exactly(25 * MS)), sleep(1)])]);
    for kernel in ["linux-1.2", "linux-2.0", "linux-2.2", "linux-2.4"] {
        assert!(schedule(kernel, &load, 60).starts_with("0 T, 25 -, 26 T, 51 -, 52 T"), "{kernel}");
    }
}

//! How 6.18 differs from 6.12, in schedules small enough to follow by hand. The tick is 1 ms, nothing has a
//! cost, virtual runtimes (v) and deadlines (d) are in ms. Functions are those of kernel/sched/fair.c in 6.18.26.

use crate::support::{Accounts, MS, bare, exactly, forever, hog, simulate, simulate_at_1000_hz};
use schedlab_base::{Averages, Nanos, Payload, TaskState};
use schedlab_sim::program::{Amount, GroupSpec, Load, Op, Setting, TaskSpec};

const US: Nanos = 1_000;

fn run(us: Nanos) -> Op {
    Op::Run(exactly(us * US))
}

fn load(tasks: Vec<TaskSpec>) -> Load {
    Load { tasks, ..Load::default() }
}

/// A task whose requests are for `ms`.
fn asking(ms: Nanos, mut task: TaskSpec) -> TaskSpec {
    task.initial.dl = Some((ms * MS, 0, 0));
    task
}

fn late(us: Nanos, mut task: TaskSpec) -> TaskSpec {
    task.start = us * US;
    task
}

fn on(cpu: u32, mut task: TaskSpec) -> TaskSpec {
    task.initial.cpus = Some(vec![cpu]);
    task
}

fn once(name: &str, us: Nanos) -> TaskSpec {
    TaskSpec { name: name.into(), program: vec![run(us)], ..TaskSpec::default() }
}

fn accounts(kernel: &str, set: &[(&str, &str)], load: &Load, ms: Nanos) -> Accounts {
    simulate_at_1000_hz(kernel, "up", load, set, ms)
}

/// Returns the tasks that ran and from when on, in ms: `0 A, 7 B`.
fn schedule(kernel: &str, set: &[(&str, &str)], load: &Load, ms: Nanos) -> String {
    let accounts = accounts(kernel, set, load, ms);
    let lines = accounts.events.iter().filter_map(|e| match e.what {
        Payload::Switch { next: 0, .. } => Some(format!("{} -", e.time as f64 / 1e6)),
        Payload::Switch { next, .. } => Some(format!("{} {}", e.time as f64 / 1e6, accounts.names[next as usize - 1])),
        _ => None,
    });
    lines.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_long_request_is_protected_for_the_least_slice_only() {
    // A asks for 10 ms beside B's 0.7. In 6.12 it keeps the CPU until v 10. In 6.18 set_protect_slice() protects it up
    // to v 0.7: at each tick update_curr() finds whoever runs unprotected, and the other one's turn comes.
    let load = load(vec![asking(10, hog("A", 0)), hog("B", 0)]);
    assert_eq!(schedule("linux-6.12", &[], &load, 12), "0 B, 1 A, 11 B");
    assert_eq!(schedule("linux-6.18", &[], &load, 6), "0 B, 1 A, 2 B, 3 A, 4 B, 5 A");
}

#[test]
fn without_run_to_parity_a_task_still_has_a_base_slice() {
    // Requests are for 3 ms. At 1, when C wakes, the average is 0.7, and the first deadline of those that are eligible
    // is B's, 3.4. So C does not preempt in 6.12, and A goes on to the end of its request. In 6.18 set_protect_slice()
    // protects each for 0.7 ms, the base slice before scaling, and at each tick another one may come.
    let off: &[_] = &[("RUN_TO_PARITY", "off"), ("base_slice_ns", "3000000")];
    let load = load(vec![hog("A", 0), late(400, hog("B", 0)), late(1_000, once("C", 100))]);
    assert_eq!(schedule("linux-6.12", off, &load, 5), "0 A, 3 B");
    assert_eq!(schedule("linux-6.18", off, &load, 5), "0 A, 1 B, 2 A, 3 C, 3.1 B, 4 A");
}

#[test]
fn a_shorter_slice_that_does_not_preempt_shortens_the_protection() {
    // C wakes at 0.5 at nice 5: its 3 ms are 9.2 of its v, so that its d of 9.4 comes after B's 8. It has the shorter
    // slice, and A is not eligible. 6.12 cancels A's protection for that, and B runs at the tick. In 6.18
    // check_preempt_wakeup_fair() leaves A 3 ms more, up to v 3.5.
    let load = load(vec![asking(8, hog("A", 0)), asking(8, hog("B", 0)), late(500, asking(3, hog("C", 5)))]);
    assert_eq!(schedule("linux-6.12", &[], &load, 5), "0 A, 1 B");
    assert_eq!(schedule("linux-6.18", &[], &load, 5), "0 A, 4 B");
}

#[test]
fn a_weight_scales_what_is_left_of_a_request() {
    // At 1 A has 4 of its 5 ms left, and its weight grows from 1024 to 3121. In 6.12 its deadline stays 4 ahead in v,
    // which are then 12.2 ms. In 6.18 reweight_entity() scales that too, and 4 ms are left, but for a rounded ns. There
    // A is not protected after that: set_next_task() does not pick it, and its lag is where the end of its protection
    // was. So B's turn comes at the next tick.
    let set = &[("base_slice_ns", "5000000")];
    let load = changing(Setting { nice: Some(-5), ..Setting::default() });
    assert_eq!(schedule("linux-6.12", set, &load, 15), "0 A, 14 B");
    assert_eq!(schedule("linux-6.18", set, &load, 15), "0 A, 2 B, 7 A");
}

#[test]
fn a_task_that_is_set_anew_is_not_protected() {
    // A may use this CPU before and after. As it is set anew, 6.12 protects the 4 ms that it has left; 6.18 does not.
    let set = &[("base_slice_ns", "5000000")];
    let load = changing(Setting { cpus: Some(vec![0, 1]), ..Setting::default() });
    assert_eq!(schedule("linux-6.12", set, &load, 11), "0 A, 5 B, 10 A");
    assert_eq!(schedule("linux-6.18", set, &load, 11), "0 A, 2 B, 7 A, 10 B");
}

/// A changes 1 ms after it began, beside B.
fn changing(setting: Setting) -> Load {
    let program = vec![run(1_000), Op::Set(0), run(100_000)];
    let a = TaskSpec { name: "A".into(), program, ..TaskSpec::default() };
    Load { settings: vec![setting], ..load(vec![a, hog("B", 0)]) }
}

fn limited(tasks: Vec<TaskSpec>) -> Load {
    let bandwidth = Some((4 * MS, 20 * MS));
    let groups = vec![GroupSpec { path: "/a".into(), shares: 1024, bandwidth, ..GroupSpec::default() }];
    Load { groups, ..load(tasks) }
}

fn within(mut task: TaskSpec) -> TaskSpec {
    task.initial.group = Some(0);
    task
}

#[test]
fn a_group_is_throttled_task_by_task() {
    // The group's 4 ms are used up at 7. 6.12 takes it off with both tasks, and it comes back half a ms in debt. In
    // 6.18 it stays: at 8 it is its turn, and pick_task_fair() gives A, then B, the work that throttles it on its way
    // to user mode (throttle_cfs_rq_work). The group leaves at its share, so at 13, when it has quota again, it runs at
    // once: with B first, which tg_unthrottle_up() finds at the head of the list.
    let load = limited(vec![within(hog("A", 0)), within(hog("B", 0)), hog("H", 0)]);
    let start = "0 A, 1 H, 2 B, 3 H, 4 A, 5 H, 6 B, 7 H";
    assert_eq!(schedule("linux-6.12", &[], &load, 17), format!("{start}, 14 A, 15 H, 16 B"));
    assert_eq!(schedule("linux-6.18", &[], &load, 17), format!("{start}, 8 A, 8 B, 8 H, 13 B, 14 H, 15 A, 16 H"));
}

#[test]
fn a_task_that_wakes_in_a_throttled_group_runs_until_user_mode() {
    // N wakes at 9.3 in a group that is throttled since 9. In 6.12 its wake-up changes nothing. In 6.18 it is queued,
    // preempts, and is throttled as it returns to user mode.
    let nap = forever("N", 0, vec![run(300), Op::Sleep(exactly(7 * MS))]);
    let load = limited(vec![within(hog("A", 0)), within(nap), hog("H", 0)]);
    let start = "0 A, 1 H, 2 N, 2.3 H, 3 A, 4 H, 5 A, 6 H, 7 A, 8 H";
    assert_eq!(schedule("linux-6.12", &[], &load, 13), start);
    assert_eq!(schedule("linux-6.18", &[], &load, 13), format!("{start}, 9 A, 9 H, 9.3 N, 9.3 H"));
}

#[test]
fn a_switch_to_a_task_that_is_throttled_costs_as_much_as_any() {
    let load = limited(vec![within(hog("A", 0)), hog("H", 0)]);
    let hz = [("hz", "1000".to_owned())];
    let mut machine = bare("up");
    machine.costs.context_switch_ns = 5_000;
    let accounts = simulate("linux-6.18", &machine, &load, &hz, 10 * MS);
    let switches: Vec<_> = accounts.events.iter().filter(|e| matches!(e.what, Payload::Switch { .. })).collect();
    let short = switches.windows(2).find(|pair| pair[1].time - pair[0].time < 10 * US).expect("A comes and goes");
    assert_eq!(short[1].time - short[0].time, 5_000);
    assert!(matches!(short[1].what, Payload::Switch { prev: 1, prev_state: TaskState::Runnable, .. }), "{short:?}");
}

/// Returns the tasks that ran on CPU 1 and from when on, under a preemption model. W, on CPU 0, wakes S at 0.5, which
/// asks for less and preempts H on CPU 1. H makes a system call of its own after every `call` us.
fn remote_with(model: &str, machine: &str, call: Nanos, ttwu_queue: &str) -> String {
    let on = |cpu, mut task: TaskSpec| {
        task.initial.cpus = Some(vec![cpu]);
        task
    };
    let waker =
        TaskSpec { name: "W".into(), program: vec![run(500), Op::SemPost(0), run(9_000)], ..TaskSpec::default() };
    let sleeper = TaskSpec { name: "S".into(), program: vec![Op::SemWait(0), run(100)], ..TaskSpec::default() };
    let hog = forever("H", 0, vec![run(call), Op::SemPost(1)]);
    let mut load = load(vec![on(0, waker), on(1, asking(1, sleeper)), on(1, hog)]);
    load.sems = vec!["woken".into(), "nobody".into()];
    let set = [("hz", "1000"), ("base_slice_ns", "3000000"), ("preempt", model), ("TTWU_QUEUE", ttwu_queue)];
    let set = set.map(|(name, value)| (name, value.to_owned()));
    let accounts = simulate("linux-6.18", &bare(machine), &load, &set, 3 * MS);
    let lines = accounts.events.iter().filter(|e| e.cpu == 1).filter_map(|e| match e.what {
        Payload::Switch { next, .. } if next > 0 => {
            Some(format!("{} {}", e.time as f64 / 1e6, accounts.names[next as usize - 1]))
        }
        _ => None,
    });
    lines.collect::<Vec<_>>().join(", ")
}

fn remote(model: &str, machine: &str, call: Nanos) -> String {
    remote_with(model, machine, call, "1")
}

#[test]
fn a_lazy_wake_up_of_another_cpu_waits_for_its_return_to_user_mode() {
    let at_once = "0 S, 0 H, 0.5 S, 0.6 H";
    for model in ["none", "voluntary", "full", "rt"] {
        assert_eq!(remote(model, "2", 50_000), at_once, "{model}");
    }
    // __resched_curr() sends no interrupt for TIF_NEED_RESCHED_LAZY. H returns to user mode at the end of its tick, or
    // of a system call.
    assert_eq!(remote("lazy", "2", 50_000), "0 S, 0 H, 1 S, 1.1 H");
    assert_eq!(remote("lazy", "2", 700), "0 S, 0 H, 0.7 S, 0.8 H");
    // Across caches ttwu_queue_cond() has the wake-up done by CPU 1, in an interrupt.
    assert_eq!(remote("lazy", "2x1", 50_000), at_once);
    assert_eq!(remote_with("lazy", "2x1", 50_000, "0"), "0 S, 0 H, 1 S, 1.1 H");
}

#[test]
fn a_lazy_wake_up_by_a_timer_preempts_at_once() {
    // The timer interrupts the CPU on which the task went to sleep, which then returns to user mode. A real-time task
    // never waits (resched_curr() of wakeup_preempt()).
    let lazy = [("hz", "1000".to_owned()), ("base_slice_ns", "3000000".to_owned()), ("preempt", "lazy".to_owned())];
    let nap = forever("N", 0, vec![run(100), Op::Sleep(exactly(1_400 * US))]);
    let load = load(vec![nap, hog("H", 0)]);
    let accounts = simulate("linux-6.18", &bare("up"), &load, &lazy, 2 * MS);
    let runs: Vec<_> = accounts.events.iter().filter(|e| matches!(e.what, Payload::Switch { next: 1, .. })).collect();
    assert_eq!(runs.iter().map(|e| e.time / US).collect::<Vec<_>>(), [0, 1_500]);
}

/// In a session on two CPUs, a wakes b each 60 us, and b sleeps after 20 us, so that the weight of the session on CPU 1
/// changes 25,000 times a second. `reweight_entity()` places the running entity by an average of which it is a part: if
/// it is behind, it falls further behind, by more than it makes up for until the next time. Once another session has
/// had the CPU for 2.5 ms, nobody else gets it any more. On a real 6.18.44 (no preemption, 250 Hz), k got it 197 times
/// in 2 s, waited for 1.402 s, and ran 7.4 ms. Here it is 196 times and 1.4 s.
#[test]
fn a_session_whose_weight_changes_often_starves_the_others() {
    let on = |cpu, session, mut task: TaskSpec| {
        (task.initial.cpus, task.session) = (Some(vec![cpu]), Some(session));
        task
    };
    let varying = |us: Nanos| Op::Run(Amount { mean: us * US, sd: us * US / 10 });
    let asks = |name, sem| forever(name, 0, vec![varying(60), Op::SemPost(sem)]);
    let asked = |name, sem| forever(name, 0, vec![Op::SemWait(sem), varying(20)]);
    let seldom = forever("k", 0, vec![varying(30), Op::Sleep(Amount { mean: 3 * MS, sd: MS * 3 / 10 })]);
    let long = late(600_000, forever("m", 0, vec![run(2_500), Op::Sleep(exactly(500 * MS))]));
    let mut load = load(vec![
        on(1, 1, asks("a", 0)),
        on(1, 1, asked("b", 0)),
        on(1, 2, seldom),
        on(0, 1, asks("c", 1)),
        on(0, 1, asked("d", 1)),
        on(1, 3, long),
    ]);
    load.sems = vec!["b".into(), "d".into()];
    let set = [("sched_autogroup_enabled", "on".to_owned())];
    let mut machine = bare("2");
    machine.costs.timer_to_switch_ns = 3_000.into();
    let waited = |kernel| {
        let accounts = simulate(kernel, &machine, &load, &set, 2_000 * MS);
        let k = accounts.named("k");
        (k.slices, k.wait / MS)
    };
    let (slices, ms) = waited("linux-6.18");
    assert!((150..250).contains(&slices) && (1_300..1_450).contains(&ms), "{slices} slices, {ms} ms");
    let (slices, ms) = waited("linux-6.12");
    assert!(slices > 600 && ms < 50, "{slices} slices, {ms} ms");
}

/// A wakes B after each of its bursts. Where a kernel packs tasks (`sched_vcpu_pack=15`), B comes to A's CPU, although
/// the other one is idle, if both leave 30% of it free; and it stays there. Recordings of a 6.18.44 that was started so
/// have 321 of 325 wake-ups there for bursts of 0.5 ms, and 2 of 214 for bursts of 8 ms; of 26,000 wake-ups by tasks
/// that used 30 to 94% of their CPU, all but 36 were on the side of the 70% that this says.
#[test]
fn a_kernel_that_packs_tasks_wakes_them_on_a_busy_cpu_with_room() {
    let woken_on = |pack: &str, burst: Nanos, sleep: Nanos| {
        let mut waker = forever("A", 0, vec![run(burst), Op::SemPost(0), run(200), Op::Sleep(exactly(sleep * US))]);
        waker.initial.cpus = Some(vec![0]);
        let mut load = load(vec![waker, forever("B", 0, vec![Op::SemWait(0), run(500)])]);
        load.sems = vec!["b".into()];
        let set = [("sched_vcpu_pack", pack.to_owned())];
        let events = simulate("linux-6.18", &bare("2"), &load, &set, 1_000 * MS).events;
        let later = events.iter().filter(|event| event.time > 100 * MS);
        let targets = later.filter_map(|event| match event.what {
            Payload::Wakeup { tid: 2, target, .. } => Some(target),
            _ => None,
        });
        let (here, all): (Vec<_>, Vec<_>) = targets.map(|target| (u32::from(target == 0), 1)).unzip();
        f64::from(here.iter().sum::<u32>()) / f64::from(all.iter().sum::<u32>())
    };
    assert!(woken_on("15", 500, 5_000) > 0.9);
    assert!(woken_on("15", 5_300, 2_000) < 0.1);
    assert!(woken_on("15", 8_000, 1_000) < 0.1);
    assert!(woken_on("0", 500, 5_000) < 0.1);
}

/// A wakes B when it has run for 0.1 ms: there is room beside it if it used a tenth of its CPU before the load begins,
/// and none if it used all of it.
#[test]
fn what_a_task_used_before_the_load_begins_counts_from_the_start() {
    let woken_on = |runnable, running| {
        let averages = Some(Averages { runnable, running });
        let a = forever("A", 0, vec![Op::Run(exactly(100 * US)), Op::SemPost(0), run(100_000)]);
        let b = forever("B", 0, vec![Op::SemWait(0), run(500)]);
        let tasks = [a, b].map(|spec| TaskSpec { cpu: Some(0), ..spec });
        let [a, b] = tasks;
        let idle = Some(Averages::default());
        let mut load = load(vec![TaskSpec { averages, ..a }, TaskSpec { averages: idle, ..b }]);
        load.sems = vec!["b".into()];
        let set = [("sched_vcpu_pack", "15".to_owned())];
        let events = simulate("linux-6.18", &bare("2"), &load, &set, 10 * MS).events;
        let woken = events.iter().find_map(|event| match event.what {
            Payload::Wakeup { tid: 2, target, .. } if event.time > 0 => Some(target),
            _ => None,
        });
        woken.expect("B is woken")
    };
    assert_eq!((woken_on(102, 102), woken_on(1024, 1000)), (0, 1));
}

/// A and D are on CPU 0, and A wakes B, which sleeps there. E uses a third of CPU 1, or all of it. If E leaves room for
/// B, B goes there, although it slept on CPU 0 and no CPU may be idle. (Not the last CPU, not this one, but one that
/// is busy and has room: `select_task_rq_fair` of that 6.18.44.)
#[test]
fn a_kernel_that_packs_tasks_looks_at_all_busy_cpus() {
    let on_1 = |pack: &str, e: TaskSpec| {
        let tasks = [forever("A", 0, vec![run(3_000), Op::SemPost(0)]), hog("D", 0), e];
        let mut tasks: Vec<TaskSpec> = tasks.into_iter().map(|task| on(u32::from(task.name == "E"), task)).collect();
        tasks.push(TaskSpec { cpu: Some(0), ..forever("B", 0, vec![Op::SemWait(0), run(50)]) });
        let load = Load { sems: vec!["b".into()], ..load(tasks) };
        let set = [("sched_vcpu_pack", pack.to_owned())];
        let events = simulate("linux-6.18", &bare("2"), &load, &set, 100 * MS).events;
        let woken = events.iter().filter_map(|event| match event.what {
            Payload::Wakeup { tid: 4, target, .. } => Some(u32::from(target == 1)),
            _ => None,
        });
        woken.sum::<u32>()
    };
    let light = || forever("E", 0, vec![run(10_000), Op::Sleep(exactly(20 * MS))]);
    assert!(on_1("4", light()) > 5);
    let full = Some(Averages { runnable: 1024, running: 1024 });
    assert_eq!(on_1("4", TaskSpec { averages: full, cpu: Some(1), ..hog("E", 0) }), 0);
}

/// A forks children on CPU 0, of which it uses a tenth: the idle CPU gets them, unless those that are new are packed.
#[test]
fn each_bit_packs_tasks_of_its_own() {
    let stay = |pack: &str| {
        let child = TaskSpec { name: "C".into(), program: vec![run(1_000)], ..TaskSpec::default() };
        let parent = on(0, forever("A", 0, vec![run(200), Op::Fork(0), Op::Sleep(exactly(8 * MS))]));
        let child = TaskSpec { initial: Setting { cpus: Some(vec![0, 1]), ..child.initial }, ..child };
        let load = Load { templates: vec![child], ..load(vec![parent]) };
        let set = [("sched_vcpu_pack", pack.to_owned())];
        let events = simulate("linux-6.18", &bare("2"), &load, &set, 200 * MS).events;
        let here = events.iter().filter_map(|event| match event.what {
            Payload::WakeupNew { target, .. } if event.time > 0 => Some(target == 0),
            _ => None,
        });
        let here: Vec<bool> = here.collect();
        assert!(here.len() > 20);
        here.iter().filter(|here| **here).count() * 100 / here.len()
    };
    assert_eq!([stay("8"), stay("7"), stay("0")], [100, 0, 0]);
}

//! Placement and load balancing of 2.6.24 to 4.1: decisions worked out by hand, each with the source line that it
//! follows from. Files are in kernel/, and from 3.10 on in kernel/sched/. The tick is 1 ms and nothing has a cost.

use crate::support::{MS, bare, exactly, forever, hog, lane, once, pinned, run, simulate, threads};
use schedlab_base::Nanos;
use schedlab_machine::Machine;
use schedlab_sim::program::{GroupSpec, Load, Op, Policy, Setting, TaskSpec};

/// The lanes of all CPUs.
fn lanes(release: &str, machine: &Machine, load: &Load, ms: Nanos) -> Vec<String> {
    let set = [("hz", "1000".to_owned())];
    let accounts = simulate(&format!("linux-{release}"), machine, load, &set, ms * MS);
    (0..machine.cpus.len() as u32).map(|cpu| lane(&accounts, cpu)).collect()
}

/// W runs on CPU 0 and at 200 ms wakes T, which sleeps on CPU 1 among others that stay there.
fn wake_up(others: Vec<TaskSpec>) -> Load {
    let t = pinned(once("T", vec![Op::Set(0), Op::SemWait(0), run(1)]), 1);
    let w = pinned(once("W", vec![run(200), Op::SemPost(0), run(1000)]), 0);
    let others = others.into_iter().map(|spec| pinned(spec, 1));
    Load {
        settings: vec![Setting { cpus: Some(vec![0, 1]), ..Setting::default() }],
        sems: vec!["sem".into()],
        ..threads([t, w].into_iter().chain(others).collect())
    }
}

/// Returns whether T comes to its waker's CPU.
fn comes(release: &str, load: &Load) -> bool {
    lanes(release, &bare("2x1x1"), load, 210)[0].contains('T')
}

#[test]
fn half_of_25_percent_is_12() {
    // sched.c of 2.6.24, try_to_wake_up(): imbalance = 100 + (125 - 100) / 2 is 112, and 100*(tl + p->se.load.weight)
    // is 100 * (1024 + 1024) = 204,800. T's previous CPU has 1024 + 526 + 272 = 1822: 112 * 1822 = 204,064 is less
    // (112.5 times would be 204,975). With nice 2 instead of 3 it has 1951: 218,512.
    let others = |nice| vec![hog("X", 0), hog("Y", nice), hog("Z", 6)];
    assert!(!comes("2.6.24", &wake_up(others(3))));
    assert!(comes("2.6.24", &wake_up(others(2))));
}

#[test]
fn in_2_6_24_a_real_time_task_weighs_as_two_of_nice_minus_20() {
    // sched.c of 2.6.24, set_load_weight() and inc_load(): 2 * 88761 = 177,522 are added to rq->load. T's CPU has
    // another 1024: 112 * 178,546 is more than 204,800. From 2.6.25 on (inc_cpu_load() in sched_fair.c) only fair tasks
    // count: 112 * 1024 is less.
    let mut r = TaskSpec { start: 150 * MS, ..hog("R", 0) };
    (r.initial.policy, r.initial.rt_priority) = (Some(Policy::Fifo), Some(1));
    let load = wake_up(vec![hog("X", 0), r]);
    assert_eq!(["2.6.24", "3.10"].map(|release| comes(release, &load)), [true, false]);
}

#[test]
fn in_2_6_24_a_cpu_weighs_what_its_tasks_do_whatever_their_groups() {
    // sched.c of 2.6.24, inc_nr_running(): the load of a CPU is the sum of p->se.load.weight. X and Y have 2048, though
    // their group has 1024: 112 * 2048 is more than 204,800. In 2.6.32 account_entity_enqueue() adds what is queued at
    // the root: the group.
    let member = |name| {
        let mut spec = hog(name, 0);
        spec.initial.group = Some(0);
        spec
    };
    let groups = vec![GroupSpec { path: "/g".into(), shares: 1024, ..GroupSpec::default() }];
    let load = Load { groups, ..wake_up(vec![member("X"), member("Y")]) };
    assert!(comes("2.6.24", &load));
}

#[test]
fn who_is_sent_to_balance_for_idle_cpus_serves_itself_first_until_3_18() {
    // fair.c of 3.10 and 3.18, run_rebalance_domains(): rebalance_domains() comes first and then nohz_idle_balance(),
    // which need_resched() ends; in 4.1 the order is reversed. Three hogs may leave CPU 3 from 5 ms on.
    let go = |name: &str| pinned(once(name, vec![run(5), Op::Set(0), run(1000)]), 3);
    let all = vec![Setting { cpus: Some(vec![0, 1, 2, 3]), ..Setting::default() }];
    let load = Load { settings: all, ..threads(vec![go("A"), go("B"), go("C")]) };
    let first = |release| lanes(release, &bare("1x4x1"), &load, 15).iter().position(|lane| lane.ends_with('C'));
    assert_eq!(["3.10", "3.18", "4.1"].map(first), [Some(0), Some(0), Some(1)]);
}

#[test]
fn in_2_6_32_a_cpu_that_becomes_idle_gives_up_where_nothing_could_be_moved() {
    // sched.c of 2.6.32, load_balance_newidle(): without success it returns -1 (sched_mc_power_savings is less than
    // POWERSAVINGS_BALANCE_WAKEUP), and idle_balance() stops at anything but 0. At 8.1 ms CPU 0 becomes idle. Within
    // its MC domain, A has been running since 8; B may come, but it ran until then and is warm. In the other package E
    // has been waiting since 5 (3.10: 6) and may come, but 2.6.32 does not look there. From 2.6.38 on it is an ordinary
    // load_balance() that moved nothing: 3.10 continues, and E comes.
    let p = once("P", vec![Op::Run(exactly(8_100_000))]);
    let go = |name: &str, cpu, setting| pinned(once(name, vec![run(1), Op::Set(setting), run(1000)]), cpu);
    let setting = |cpus| Setting { cpus: Some(cpus), ..Setting::default() };
    let tasks = [go("A", 1, 0), go("B", 1, 0), go("C", 2, 1), go("D", 2, 1), go("E", 2, 1)];
    let settings = vec![setting(vec![0, 1]), setting(vec![0, 2])];
    let load = Load { settings, ..threads([pinned(p, 0)].into_iter().chain(tasks).collect()) };
    let next = |release| lanes(release, &bare("2x2x1"), &load, 9).remove(0);
    assert_eq!((next("2.6.32"), next("3.10")), ("0 P, 8.1 -".into(), "0 P, 8.1 E".into()));
}

#[test]
fn in_2_6_24_who_is_woken_does_not_yet_keep_others_from_an_idle_cpu() {
    // sched.c of 2.6.24, idle_cpu(): cpu_curr(cpu) == cpu_rq(cpu)->idle, whatever is queued. W, alone on CPU 0, wakes T
    // and then U at one instant; both slept there. wake_idle() finds CPU 1 for both. From 3.2 on idle_cpu() sees that T
    // is queued: 3.10 finds CPU 2 for U.
    let sleeper = |name: &str, sem| once(name, vec![Op::SemWait(sem), Op::Run(exactly(400_000))]);
    let all = vec![Setting { cpus: Some(vec![0, 1, 2, 3]), ..Setting::default() }];
    let go = |spec: TaskSpec| {
        let mut spec = pinned(spec, 0);
        spec.program.insert(0, Op::Set(0));
        spec
    };
    let w = pinned(once("W", vec![run(200), Op::SemPost(0), Op::SemPost(1), run(1000)]), 0);
    let tasks = vec![go(sleeper("T", 0)), go(sleeper("U", 1)), w];
    let load = Load { settings: all, sems: vec!["t".into(), "u".into()], ..threads(tasks) };
    let lanes = |release| lanes(release, &bare("1x4x1"), &load, 202)[1..3].to_vec();
    assert_eq!(lanes("2.6.24"), ["200 T, 200.4 U, 200.8 -", ""]);
    assert_eq!(lanes("3.10"), ["200 T, 200.4 -", "200 U, 200.4 -"]);
}

#[test]
fn who_wakes_many_is_not_followed_even_if_it_woke_them_where_they_were() {
    // fair.c of 4.1: task_waking_fair() calls record_wakee() for every wake-up, including that of a task on the waker's
    // own CPU. X, on CPU 1, wakes T and V in turn four times: its wakee_flips is 4, more than the 2 CPUs of the cache.
    // W, on CPU 0, wakes them nine times, and then X: 10 is more than 2 * 4, so wake_wide() keeps X where it was. After
    // one time W's count is 2: then loads decide, and 100 * (1024 + 1024) is less than 108 * 2048. 3.10 has no
    // wake_wide(). A child of W that wakes X in its place begins with W's count, as dup_task_struct() copies it.
    let turns = |n: usize| (0..n).flat_map(|i| [Op::SemPost(i as u32 % 2), run(1)]);
    let woken = |name: &str, sem| pinned(forever(name, 0, vec![Op::SemWait(sem), Op::Run(exactly(MS / 20))]), 0);
    let x = turns(4).chain([Op::Set(0), Op::SemWait(2), run(1)]);
    let load = |n, by_child| {
        let wakes_x = [Op::SemPost(2), run(1000)];
        let (w, child) = if by_child { (vec![Op::Fork(0)], wakes_x.to_vec()) } else { (wakes_x.to_vec(), Vec::new()) };
        let w = [run(100)].into_iter().chain(turns(n)).chain(w);
        Load {
            templates: vec![pinned(once("C", child), 0)],
            settings: vec![Setting { cpus: Some(vec![0, 1]), ..Setting::default() }],
            sems: vec!["t".into(), "v".into(), "x".into()],
            ..threads(vec![
                woken("T", 0),
                woken("V", 1),
                pinned(once("X", x.clone().collect()), 1),
                pinned(once("W", w.collect()), 0),
                pinned(hog("Y", 0), 1),
                pinned(hog("Z", 0), 1),
            ])
        }
    };
    let comes = |release, n, by_child| lanes(release, &bare("1x2x1"), &load(n, by_child), 300)[0].contains('X');
    assert_eq!([comes("4.1", 9, false), comes("4.1", 1, false), comes("3.10", 9, false)], [false, true, true]);
    assert_eq!([comes("4.1", 9, true), comes("4.1", 1, true)], [false, true]);
}

//! Load balancing of CFS and EEVDF kernels: decisions worked out by hand.

use crate::support::registry::{releases, with};
use crate::support::{Accounts, MS, bare, hog, on, once, simulate_how};
use schedlab_base::{CpuId, Nanos, Payload, v};
use schedlab_machine::{Machine, MachineFile};
use schedlab_sched::kernels::{self, Feature, How};
use schedlab_sim::program::{GroupSpec, Hotplug, Load, Op, Policy, Setting, Start, TaskSpec};
use schedlab_sim::{Choice, Decision, Inspect, Inspector, View};
use std::collections::BTreeMap;

fn run(kernel: &str, machine: &Machine, load: &Load, set: &[&str], ms: Nanos) -> Accounts {
    let set: Vec<_> = set.iter().map(|name| (*name, "on".to_owned())).collect();
    simulate_how(kernel, machine, load, &set, &How { duration: Some(ms * MS), seed: 1, skip_ticks: true })
}

fn hogs(n: usize) -> Vec<TaskSpec> {
    (0..n).map(|i| hog(&format!("hog-{i}"), 0)).collect()
}

/// Returns for how long, in ms, each CPU was busy in a span of time.
fn busy(accounts: &Accounts, cpus: u32, from: Nanos, to: Nanos) -> Vec<Nanos> {
    let mut since = vec![None; cpus as usize];
    let mut sum = vec![0; cpus as usize];
    let mut add = |cpu: usize, a: Nanos, b: Nanos| sum[cpu] += b.min(to * MS).saturating_sub(a.max(from * MS));
    for event in &accounts.events {
        if let Payload::Switch { next, .. } = event.what {
            let slot = &mut since[event.cpu as usize];
            if let Some(at) = slot.take() {
                add(event.cpu as usize, at, event.time);
            }
            *slot = (next != 0).then_some(event.time);
        }
    }
    for (cpu, at) in since.iter().enumerate().filter_map(|(cpu, at)| at.map(|at| (cpu, at))) {
        add(cpu, at, to * MS);
    }
    sum.into_iter().map(|ns| ns / MS).collect()
}

/// With three hogs, neither of two CPUs is ever idle; and two hogs that start on one CPU soon run on both.
#[test]
fn no_cpu_is_idle_beside_a_waiting_task() {
    for kernel in with(Feature::Groups) {
        for hogs in [hogs(3), hogs(2)] {
            let load = Load { tasks: hogs, start: Start::Threads, ..Load::default() };
            let accounts = run(kernel, &bare("2"), &load, &[], 1000);
            assert_eq!(busy(&accounts, 2, 100, 1000), [900, 900], "{kernel}");
        }
    }
}

/// Nine hogs are on CPU 0 when the load begins, and CPU 1 is idle. `load_balance_fair` of 2.6.32 divides what is to be
/// moved by the load of the queue in its CPU's root (`h_load`). Half of the load is to be moved, 4.5 tasks: 4608 * 9216
/// / (9216 + 1) = 4607. After four tasks 511 are left, and half of a fifth is 512. Without any group `update_h_load` of
/// the release returns at once and leaves the load 0, so all that wait are moved in one pass, up to 33; with a group,
/// even one without tasks, it does not, and in the stable tree it never does.
#[test]
fn a_pass_of_2_6_32_moves_whatever_waits_if_there_is_no_group() {
    let moved_at_first = |groups: Vec<GroupSpec>, weighs: &str| {
        let tasks = hogs(9).into_iter().map(|hog| TaskSpec { cpu: Some(0), ..hog }).collect();
        let load = Load { tasks, groups, ..Load::default() };
        let set = [("weighs_without_groups", weighs.to_owned())];
        let how = How { duration: Some(100 * MS), seed: 1, skip_ticks: true };
        let accounts = simulate_how("linux-2.6.32", &bare("2"), &load, &set, &how);
        let moves = || accounts.events.iter().filter(|event| matches!(event.what, Payload::Migrate { .. }));
        let first = moves().next().expect("a move").time;
        moves().filter(|event| event.time == first).count()
    };
    let group = || vec![GroupSpec { path: "/a".into(), shares: 1024, ..GroupSpec::default() }];
    assert_eq!(moved_at_first(Vec::new(), "off"), 8);
    assert_eq!(moved_at_first(group(), "off"), 4);
    assert_eq!(moved_at_first(Vec::new(), "on"), 4);
}

/// A hog that starts on some CPUs and after 5 ms may run on all, by setting 0 of the load.
fn let_go(name: &str, first: impl Iterator<Item = CpuId>) -> TaskSpec {
    let mut spec = on(hog(name, 0), first);
    spec.program.splice(0..0, [Op::Run(crate::support::exactly(5 * MS)), Op::Set(0)]);
    if let Some(Op::LoopEnd { start }) = spec.program.last_mut() {
        *start += 2;
    }
    spec
}

fn letting_go(tasks: Vec<TaskSpec>, cpus: u32) -> Load {
    let all = Setting { cpus: Some((0..cpus).collect()), ..Setting::default() };
    Load { tasks, settings: vec![all], start: Start::Threads, ..Load::default() }
}

/// Tasks that were pinned to one CPU spread over the machine once they may run anywhere.
#[test]
fn what_is_let_go_spreads_over_the_machine() {
    for kernel in with(Feature::Groups) {
        let load = letting_go((0..16).map(|i| let_go(&format!("hog-{i}"), 0..1)).collect(), 8);
        let accounts = run(kernel, &bare("2x4"), &load, &[], 3000);
        let late = busy(&accounts, 8, 1000, 3000);
        assert!(late.iter().all(|ms| *ms >= 1980), "{kernel}: {late:?}");
    }
}

/// wc-02: 16 hogs start on node 1 and may run on nodes 1 and 2, which are two hops apart. As every CPU sees it, each
/// group of the widest level contains both nodes, so no imbalance is found.
#[test]
fn hogs_stay_on_their_node_where_groups_are_built_as_one_cpu_sees_them() {
    let machine = bare("bulldozer-64");
    let nodes = |n: u32| machine.cpus.iter().filter(move |cpu| cpu.place.node == n).map(|cpu| cpu.place.cpu);
    let both: Vec<CpuId> = nodes(1).chain(nodes(2)).collect();
    let tasks = hogs(16).into_iter().map(|spec| on(spec, both.iter().copied())).collect();
    let load = Load { tasks, start: Start::Threads, ..Load::default() };
    let far = |kernel: &str, set: &[&str]| {
        let busy = busy(&run(kernel, &machine, &load, set, 4000), 64, 2000, 4000);
        nodes(2).map(|cpu| busy[cpu as usize]).sum::<Nanos>() / 8
    };
    assert_eq!(far("linux-4.1", &[]), 0);
    assert_eq!(far("linux-4.1", &["fix.group_construction"]), 2000);
    assert_eq!(far("linux-6.1", &[]), 2000, "repaired in 4.x");
}

/// wc-04: after a CPU went offline and came back, the levels across nodes are missing. Tasks that start later are
/// placed on their parent's node, and no CPU pulls them from there.
#[test]
fn tasks_stay_on_their_node_after_a_cpu_came_back() {
    let machine = bare("z800");
    let change = |at: Nanos, online| Hotplug { at: at * MS, cpu: 11, online };
    let mut tasks = hogs(12);
    tasks.iter_mut().for_each(|spec| spec.start = 100 * MS);
    let hotplug = vec![change(10, false), change(20, true)];
    let load = Load { tasks, hotplug, start: Start::Threads, ..Load::default() };
    let home = machine.cpus[0].place.node;
    for kernel in with(Feature::Groups) {
        let busy = |set: &[&str]| busy(&run(kernel, &machine, &load, set, 2000), 12, 1000, 2000);
        let all = vec![1000; 12];
        if ["linux-3.18", "linux-4.1"].contains(&kernel) {
            let one: Vec<_> = machine.cpus.iter().map(|c| if c.place.node == home { 1000 } else { 0 }).collect();
            assert_eq!(busy(&[]), one, "{kernel}");
            assert_eq!(busy(&["fix.missing_domains"]), all, "{kernel}");
        } else {
            assert_eq!(busy(&[]), all, "{kernel}");
        }
    }
}

/// Tasks that are too big for small CPUs are moved to idle big ones (6.x), while they are running.
#[test]
fn misfits_go_to_big_cpus() {
    let machine = bare("big-little-4+4");
    let small: Vec<_> = machine.cpus.iter().filter(|c| c.place.capacity < 1024).map(|c| c.place.cpu).collect();
    assert_eq!(small, [0, 1, 2, 3]);
    for kernel in releases(v(5, 5)..) {
        let tasks = small.iter().map(|cpu| let_go(&format!("big-{cpu}"), *cpu..*cpu + 1)).collect();
        let accounts = run(kernel, &machine, &letting_go(tasks, 8), &[], 3000);
        assert_eq!(busy(&accounts, 8, 2000, 3000), [0, 0, 0, 0, 1000, 1000, 1000, 1000], "{kernel}");
    }
}

/// wc-01: a hog alone in its session has a weight of 1024; each of twelve in another session has a twelfth of that.
/// With the one on node 0 and the twelve on node 1 both nodes have the same average, and three CPUs of node 0 stay
/// idle.
#[test]
fn a_heavy_task_hides_idle_cpus_from_the_average() {
    let machine = bare("2x4");
    let mut tasks = vec![on(hog("alone", 0), 0..1)];
    tasks[0].session = Some(1);
    for i in 0..12 {
        let mut spec = let_go(&format!("many-{i}"), 4..8);
        spec.session = Some(2);
        tasks.push(spec);
    }
    let load = letting_go(tasks, 8);
    for kernel in ["linux-3.18", "linux-4.1"] {
        let near = |set: &[&str]| busy(&run(kernel, &machine, &load, set, 4000), 8, 2000, 4000);
        assert_eq!(near(&[]), [2000, 0, 0, 0, 2000, 2000, 2000, 2000], "{kernel}");
        assert_eq!(near(&["fix.group_imbalance"]), [2000; 8], "{kernel}");
    }
}

/// Collects the explained moves.
#[derive(Default)]
struct Moves(Vec<Decision>);

impl Inspector for Moves {
    fn view(&mut self, _time: Nanos, _cpu: CpuId, _view: View) {}

    fn decision(&mut self, decision: &Decision) {
        if decision.choice == Choice::Move {
            self.0.push(decision.clone());
        }
    }
}

/// Five hogs on two nodes of two CPUs, under 6.12. The kernel's averages stay just below the full value: a hog's load
/// reads 1023.
///
/// Across nodes, one node has a load of 1024 + 1024 and the other of 1024 + 2047 (2047.87 rounded down, as the second
/// hog there is new). The averages per CPU are 1024 and 1535, that of all CPUs is 5119 / 4 = 1279, and the imbalance is
/// 2 x (1279 - 1024) = 510. After n failures a task is moved if 1023 >> n does not exceed it: 511 after one failure is
/// too much, 255 after two is not. Within a node, with 1024 and 2047, the average is 1535 and the imbalance 1535 - 1024
/// = 511: one failure is enough.
#[test]
fn a_hog_weighs_1023() {
    let machine = MachineFile { distances: vec![vec![10, 21], vec![21, 10]], ..MachineFile::flat("2x2", 2, 2, 1) };
    let (kernel, machine) = (kernels::find("linux-6.12").unwrap(), machine.build().unwrap());
    let values = kernel.values(&machine, &[]).unwrap();
    let load = Load { tasks: hogs(5), ..Load::default() };
    let how = How { duration: Some(20_000 * MS), seed: 1, skip_ticks: true };
    let mut moves = Moves::default();
    let inspect = Inspect { at: &[], explain: 1000 * MS..20_000 * MS, to: Box::new(&mut moves) };
    kernel.simulate_and_look(&machine, &load, &values, &how, &mut Accounts::default(), Some(inspect)).unwrap();
    let mut seen: BTreeMap<(i64, i64, i64), usize> = BTreeMap::new();
    for decision in &moves.0 {
        let number = |what: &str| decision.numbers.iter().find(|n| n.1 == what).expect("a number").2;
        assert_eq!(number("load"), 1023, "{decision:?}");
        *seen.entry((number("domain level"), number("imbalance of load"), number("failures"))).or_default() += 1;
    }
    let most = |level: i64| seen.iter().filter(|(what, _)| what.0 == level).max_by_key(|(_, n)| **n).unwrap().0;
    assert_eq!((most(0), most(1)), (&(0, 511, 1), &(1, 510, 2)), "{seen:?}");
}

/// The machine has been up for a while, so its CPUs balance at different times, which the seed draws. With 14 hogs on
/// two nodes of six CPUs, the two surplus tasks are not passed on from CPU to CPU at a single tick.
#[test]
fn cpus_do_not_balance_in_step() {
    let load = Load { tasks: hogs(14), ..Load::default() };
    let moves = |seed: u64| {
        let how = How { duration: Some(20_000 * MS), seed, skip_ticks: true };
        let accounts = simulate_how("linux-6.12", &bare("2x6x1"), &load, &[], &how);
        let mut at: BTreeMap<Nanos, u32> = BTreeMap::new();
        for event in accounts.events.iter().filter(|e| matches!(e.what, Payload::Migrate { .. })) {
            *at.entry(event.time).or_default() += 1;
        }
        at
    };
    let first = moves(1);
    let many = first.values().filter(|n| **n > 3).count();
    assert!(first.len() > 200 && many * 20 < first.len(), "{many} of {}", first.len());
    assert_ne!(first, moves(2));
}

/// With the fix, too, an overloaded group comes before any other. On one node, where every CPU is a group, the hog that
/// is alone in its session has the highest load, 1024, but no task to give; the three CPUs that share the eight tasks
/// of the other session have 1024 together. CPU 0 has nothing to give; each of CPUs 1 to 3 ends up with two or three
/// tasks, and none is idle.
#[test]
fn a_heavy_task_alone_does_not_hide_a_cpu_with_several_light_ones() {
    let mut tasks = vec![on(hog("alone", 0), 0..1)];
    tasks[0].session = Some(1);
    for i in 0..8 {
        let mut spec = let_go(&format!("many-{i}"), 1..2);
        spec.session = Some(2);
        tasks.push(spec);
    }
    for set in [&[][..], &["fix.group_imbalance"]] {
        let accounts = run("linux-4.1", &bare("4"), &letting_go(tasks.clone(), 4), set, 2000);
        assert_eq!(busy(&accounts, 4, 1000, 2000), [1000; 4], "{set:?}");
    }
}

/// With the wake-up fix, a new task also goes to the CPU that has been idle longest: the patch comes before
/// `select_task_rq_fair` distinguishes wake-ups, forks and exec. CPU 0 is busy, CPUs 1 and 2 were busy until 2 ms, CPU
/// 3 never was. Without the fix the task goes to one of those that became idle last.
#[test]
fn a_new_task_goes_to_the_cpu_that_is_idle_longest() {
    let mut tasks = vec![on(hog("hog", 0), 0..1)];
    tasks.extend((1..3).map(|cpu| on(once(&format!("short-{cpu}"), vec![crate::support::run(2)]), cpu..cpu + 1)));
    tasks.push(TaskSpec { start: 10 * MS, ..hog("late", 0) });
    let load = Load { tasks, start: Start::Threads, ..Load::default() };
    for kernel in ["linux-2.6.32", "linux-3.10", "linux-3.18", "linux-4.1"] {
        let third = |set: &[&str]| busy(&run(kernel, &bare("4"), &load, set, 100), 4, 20, 100)[3];
        assert_eq!((third(&[]), third(&["fix.overload_on_wakeup"])), (0, 80), "{kernel}");
    }
}

/// A package whose tasks are pinned to one CPU each counts as imbalanced once its idle CPU has looked for them in vain
/// (`sd_parent->groups->sgc->imbalance`), and a new task then avoids it (`group_imbalanced` in `find_idlest_group`, 5.5
/// on). With nothing pinned beside the parent both packages have one idle CPU, and the task stays with the parent.
#[test]
fn a_new_task_avoids_a_package_that_affinity_kept_uneven() {
    use crate::support::run as work;
    let first_of_child = |kernel: &str, beside: CpuId| {
        let parent = on(once("parent", vec![work(20), Op::Fork(0), work(100)]), 0..1);
        let tasks = vec![parent, on(hog("beside", 0), beside..beside + 1), on(hog("other", 0), 2..3)];
        let load = Load { tasks, templates: vec![on(hog("child", 0), 0..4)], start: Start::Threads, ..Load::default() };
        let accounts = run(kernel, &bare("2x2"), &load, &[], 100);
        let new = accounts.events.iter().find_map(|e| match e.what {
            Payload::WakeupNew { tid: 4, target, .. } => Some(target),
            _ => None,
        });
        new.expect("a child")
    };
    for kernel in releases(v(5, 5)..) {
        assert_eq!((first_of_child(kernel, 0), first_of_child(kernel, 2)), (3, 1), "{kernel}");
    }
}

/// When a CPU has nothing left but tasks of SCHED_IDLE, it balances at its next tick (`rq->next_balance = jiffies` in
/// `dequeue_task_fair`, 5.6 on), and not when a busy CPU's turn would come. Here it then takes a task of SCHED_IDLE
/// that waits behind a hog. (From 6.6 on this one begins beside the other.)
#[test]
fn a_cpu_left_with_idle_tasks_balances_at_its_next_tick() {
    use crate::support::run as work;
    let idle = |name: &str, cpus| {
        let mut task = on(hog(name, 0), cpus);
        task.initial.policy = Some(Policy::Idle);
        task
    };
    for kernel in releases(v(5, 6)..v(6, 6)) {
        for ms in 41..60 {
            let busy = on(once("busy", vec![work(ms), crate::support::sleep(1_000)]), 1..2);
            let tasks = vec![on(hog("hog", 0), 0..1), idle("waits", 0..2), busy, idle("left", 1..2)];
            let load = Load { tasks, start: Start::Threads, ..Load::default() };
            let accounts = run(kernel, &bare("2"), &load, &[], 200);
            let slept = accounts.events.iter().find_map(|e| match e.what {
                Payload::Switch { prev: 3, prev_state, .. } => {
                    (prev_state != schedlab_base::TaskState::Runnable).then_some(e.time)
                }
                _ => None,
            });
            let slept = slept.expect("it sleeps");
            let moves: Vec<(Nanos, CpuId)> = (accounts.events.iter())
                .filter_map(|e| match e.what {
                    Payload::Migrate { tid: 2, to, .. } => Some((e.time, to)),
                    _ => None,
                })
                .collect();
            let tick = slept.div_ceil(4 * MS) * 4 * MS;
            let due = tick + if tick == slept { 4 * MS } else { 0 };
            assert_eq!(moves, [(28 * MS, 0), (due, 1)], "{kernel}, {ms} ms");
        }
    }
}

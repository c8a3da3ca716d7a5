//! Costs that do not come from the scheduler: caches, SMT siblings, remote memory. Times are worked out by hand.

use crate::support::registry::releases;
use crate::support::{MS, bare, exactly, forever, hog, lane, once, pinned, run, simulate, sleep};
use schedlab_base::{Cost, CpuId, Event, Nanos, Payload, TaskState, v, v2_6};
use schedlab_machine::{Caches, Costs, Machine, MachineFile};
use schedlab_sched::kernels::{self, Feature, KERNELS};
use schedlab_sim::program::{Load, MemorySpec, Op, Policy, Setting, Start, TaskSpec};

const KIB: u64 = 1024;

/// 256 KiB for each core and 1 MiB for all; reloading a KiB takes 10 ns from there, and 100 ns from memory.
fn cached(mut machine: Machine) -> Machine {
    machine.caches = Caches { l2_kib: 256, llc_kib: 1024 };
    (machine.costs.llc_refill_ns_per_kib, machine.costs.memory_refill_ns_per_kib) = (10, 100);
    machine
}

/// Two nodes of two cores each, at distance 20.
fn two_nodes() -> Machine {
    let file = MachineFile { distances: vec![vec![10, 20], vec![20, 10]], ..MachineFile::flat("m", 2, 2, 1) };
    let mut machine = file.build().expect("a machine");
    machine.costs = Costs { remote_percent: 100, ..Costs::none() };
    machine
}

fn touching(mut spec: TaskSpec, kib: u64) -> TaskSpec {
    spec.initial.working_set = Some(kib * KIB);
    spec
}

/// Two tasks run 10 ms in turn, three times each. Returns what the first one needed beyond its 30 ms.
fn refill_of_three_turns(machine: &Machine, kib: u64, other_kib: u64) -> Nanos {
    let turns = || vec![run(10), sleep(20), run(10), sleep(20), run(10)];
    let mut other = touching(once("other", turns()), other_kib);
    other.start = 15 * MS;
    let load = Load { tasks: vec![touching(once("one", turns()), kib), other], ..Load::default() };
    simulate("linux-6.1", machine, &load, &[], 1_000 * MS).named("one").run - 30 * MS
}

#[test]
fn what_others_threw_out_is_brought_back() {
    let machine = cached(bare("1"));
    assert_eq!(refill_of_three_turns(&machine, 256, 0), 0, "nobody else touches anything");
    assert_eq!(refill_of_three_turns(&machine, 100, 156), 0, "both fit");
    // Twice 256 KiB from the last-level cache.
    assert_eq!(refill_of_three_turns(&machine, 256, 256), 2 * 256 * 10);
    // 700 and 700 of 1024: 376 KiB are evicted, and come from memory together with what the core's cache holds.
    assert_eq!(refill_of_three_turns(&machine, 700, 700), 2 * 376 * 100);
    assert_eq!(refill_of_three_turns(&bare("1"), 700, 700), 0, "--costs none");
}

#[test]
fn a_move_costs_the_more_the_farther_it_goes() {
    let machine = Machine { costs: Costs { remote_percent: 100, ..Costs::none() }, ..cached(two_nodes()) };
    let machine = cached(machine);
    let to = |cpu| Setting { cpus: Some(vec![cpu]), ..Setting::default() };
    let program = vec![run(1), Op::Set(0), run(1), Op::Set(1), run(1), Op::Set(2), run(1)];
    let task = pinned(touching(once("mover", program), 512), 0);
    let load = Load { tasks: vec![task], settings: vec![to(1), to(2), to(0)], ..Load::default() };
    let accounts = simulate("linux-6.12", &machine, &load, &[], 100 * MS);
    // To the next core: 256 KiB from the last-level cache. To the other node: all 512 KiB, from memory at twice the
    // distance, because the task began on the first node. And back: from local memory.
    let cost = 256 * 10 + 512 * 100 * 2 + 512 * 100;
    assert_eq!(accounts.named("mover").run, 4 * MS + cost);
}

#[test]
fn a_refill_that_was_cut_short_is_not_paid_twice() {
    let mut machine = cached(bare("1"));
    machine.costs.memory_refill_ns_per_kib = 10_000;
    // After its sleep the first task has to reload 1024 KiB, which takes 10.24 ms, and is interrupted by a real-time
    // task after 5.12.
    let mut first = touching(once("first", vec![run(1), sleep(9), run(1)]), 1024);
    first.initial.nice = Some(0);
    let mut second = touching(once("second", vec![run(1)]), 1024);
    second.start = 5 * MS;
    let mut urgent = once("urgent", vec![run(1)]);
    urgent.start = 15_120_000;
    (urgent.initial.policy, urgent.initial.rt_priority) = (Some(schedlab_sim::program::Policy::Fifo), Some(1));
    let load = Load { tasks: vec![first, second, urgent], ..Load::default() };
    let accounts = simulate("linux-2.6.11", &machine, &load, &[], 100 * MS);
    assert_eq!(lane(&accounts, 0), "0 first, 1 -, 5 second, 6 -, 10 first, 15.12 urgent, 16.12 first, 22.24 -");
}

#[test]
fn siblings_slow_each_other_while_both_run() {
    let mut machine = bare("1x1x2");
    machine.costs.smt_loss_percent = 39;
    let mut late = pinned(once("late", vec![run(10)]), 1);
    late.start = 4 * MS;
    let load = Load { tasks: vec![pinned(once("early", vec![run(10)]), 0), late], ..Load::default() };
    // 4 ms alone; 6 ms at 624/1024 of full speed take 9.846154 ms. The late task has then done 6 ms and is alone.
    for kernel in KERNELS.iter().filter(|kernel| kernel.name != "linux-1.2") {
        let accounts = simulate(kernel.name, &machine, &load, &[], 100 * MS);
        assert_eq!(lane(&accounts, 0), "0 early, 13.846154 -", "{}", kernel.name);
        assert_eq!(lane(&accounts, 1), "4 late, 17.846154 -", "{}", kernel.name);
    }
    let free = simulate("linux-6.12", &bare("1x1x2"), &load, &[], 100 * MS);
    assert_eq!(lane(&free, 1), "4 late, 14 -");
}

#[test]
fn busy_for_so_long_is_so_long_beside_a_sibling_too() {
    let mut machine = bare("1x1x2");
    machine.costs.smt_loss_percent = 39;
    let timed = once("timed", vec![Op::Runtime(exactly(10 * MS))]);
    let load = Load { tasks: vec![pinned(timed, 0), pinned(once("other", vec![run(20)]), 1)], ..Load::default() };
    assert_eq!(lane(&simulate("linux-6.12", &machine, &load, &[], 100 * MS), 0), "0 timed, 10 -");
}

#[test]
fn far_memory_costs_what_the_task_is_bound_by_it() {
    let memory = |node| MemorySpec {
        bytes: 1 << 20,
        nodes: vec![(node, 1)],
        parts: 1,
        bound_percent: 50,
        ..MemorySpec::default()
    };
    let of = |spec| {
        let mut task = pinned(once("task", vec![run(10), sleep(1), Op::Mem { bytes: 10_000_000, random: false }]), 0);
        task.initial.memory = Some(spec);
        Load { tasks: vec![task], memories: vec![memory(0), memory(1)], ..Load::default() }
    };
    let lane = |spec| lane(&simulate("linux-6.12", &two_nodes(), &of(spec), &[], 100 * MS), 0);
    assert_eq!(lane(0), "0 task, 10 -, 11 task, 12 -");
    // Half of the 10 ms takes twice as long: 15 ms, at a speed of 682 in 1024. The stream of 1 ms takes 2 ms (and
    // slightly more, as both factors are rounded).
    assert_eq!(lane(1), "0 task, 15.014663 -, 16.014663 task, 18.016118 -");
}

#[test]
fn a_hybrid_barrier_spins_and_then_sleeps() {
    let quick = once("quick", vec![run(1), Op::HybridBarrier { barrier: 0, spin: 2 * MS }, run(1)]);
    let slow = |ms| once("slow", vec![run(ms), Op::HybridBarrier { barrier: 0, spin: 2 * MS }, run(1)]);
    let load = |ms| Load {
        tasks: vec![pinned(quick.clone(), 0), pinned(slow(ms), 1)],
        barriers: vec![("b".into(), 2)],
        ..Load::default()
    };
    let lane_of = |ms| lane(&simulate("linux-6.12", &bare("2"), &load(ms), &[], 100 * MS), 0);
    assert_eq!(lane_of(2), "0 quick, 3 -", "1 ms of spinning");
    assert_eq!(lane_of(9), "0 quick, 3 -, 9 quick, 10 -", "2 ms of spinning, and asleep until 9");
}

/// 16 threads compute for 1 ms and meet, 100 times. Returns how much longer this takes on 8 CPUs, two threads on each,
/// than on 16. The threads are pinned, because placement at a wake-up is not the subject: linux-6.12 sometimes puts
/// three onto one CPU.
fn slowdown(kernel: &str, meet: Op) -> f64 {
    let time = |cpus: CpuId| {
        let program = vec![Op::LoopStart { times: Some(100) }, run(1), meet.clone(), Op::LoopEnd { start: 0 }];
        let tasks = (0..16).map(|i| pinned(once(&format!("t{i}"), program.clone()), i % cpus)).collect();
        let load = Load { tasks, barriers: vec![("b".into(), 16)], ..Load::default() };
        let accounts = simulate(kernel, &bare(&cpus.to_string()), &load, &[], 100_000 * MS);
        accounts.events.iter().rfind(|e| matches!(e.what, Payload::Exit { .. })).expect("it ends").time as f64
    };
    time(8) / time(16)
}

/// Two threads share a CPU. The one that has finished its part spins until its slice is over, because the other, which
/// it waits for, is behind it in the queue: a round takes a slice, but with a CPU each it takes 1 ms. O(1)'s slice is
/// 100 ms (and some rounds take two, if the first ones were not in step). CFS's is half of 24 ms of latency, plus what
/// the tick and running first add. EEVDF's is 2.8 ms, whose end is noticed at the 4 ms tick.
#[test]
fn a_program_that_spins_loses_a_slice_for_each_round_on_too_few_cpus() {
    for (kernel, factors) in [
        ("linux-2.6.11", 100.0..130.0),
        ("linux-2.6.32", 10.0..13.0),
        ("linux-4.1", 12.0..17.0),
        ("linux-5.10", 12.0..17.0),
        ("linux-5.15", 12.0..17.0),
        ("linux-6.1", 12.0..17.0),
        ("linux-6.12", 3.0..5.0),
    ] {
        let factor = slowdown(kernel, Op::SpinBarrier(0));
        assert!(factors.contains(&factor), "{kernel}: {factor}");
        let factor = slowdown(kernel, Op::Barrier(0));
        assert!((1.999..2.001).contains(&factor), "{kernel}, asleep: {factor}");
        // 1 ms each, and 3 ms in which the first task spins in vain; a shorter slice ends that sooner.
        let factor = slowdown(kernel, Op::HybridBarrier { barrier: 0, spin: 3 * MS });
        assert!((4.0..5.1).contains(&factor), "{kernel}, at first awake: {factor}");
    }
}

/// CPU 1 works for 0.1 ms and sleeps for 0.2 ms, so it expects to be idle for 0.2 ms. Hogs wait on CPU 0, all of them
/// pinned until one lets itself go at its first turn after 100 ms; it waits when that ends. CPU 1 has looked for
/// tasks in vain before, and so knows what that costs: 2 x 0.09 ms are less than 0.2 ms, and it takes the hog as soon
/// as that is no longer cache-hot, after 0.5 ms, when it next becomes idle. 2 x 0.101 ms are more, and it does not look
/// (`max_newidle_lb_cost`): the hog waits for a periodic pass.
#[test]
fn a_cpu_does_not_look_for_tasks_if_that_takes_longer_than_it_will_be_idle() {
    let waited = |kernel: &str, newidle_cpu_ns| {
        let mut machine = bare("2");
        machine.costs.newidle_cpu_ns = newidle_cpu_ns;
        let free = pinned(once("free", vec![run(35), Op::Set(0), run(1000)]), 0);
        let short = pinned(forever("short", 0, vec![Op::Run(exactly(100_000)), Op::Sleep(exactly(200_000))]), 1);
        let pair = ["a", "b"].map(|name| pinned(hog(name, 0), 0));
        let settings = vec![Setting { cpus: Some(vec![0, 1]), ..Setting::default() }];
        let load = Load { tasks: [vec![free, short], pair.to_vec()].concat(), settings, ..Load::default() };
        let random = kernels::find(kernel).unwrap().tunable("NI_RANDOM").map(|t| (t.name, "off".to_owned()));
        let accounts = simulate(kernel, &machine, &load, &random.into_iter().collect::<Vec<_>>(), 2000 * MS);
        let moved = accounts.events.iter().position(|e| matches!(e.what, Payload::Migrate { tid: 1, .. })).unwrap();
        let left = |e: &&Event| matches!(e.what, Payload::Switch { prev: 1, .. });
        accounts.events[moved].time - accounts.events[..moved].iter().rev().find(left).unwrap().time
    };
    for kernel in releases(v(5, 16)..) {
        let (cheap, dear) = (waited(kernel, 90_000), waited(kernel, 101_000));
        assert!(cheap < MS, "{kernel}: {cheap}");
        assert!(dear > 2 * MS, "{kernel}: {dear}");
    }
}

/// Four tasks that sleep now and then on two CPUs. Whether a CPU looks for work when one leaves it idle is a matter of
/// the dice, which are thrown for the rate that the kernel has learnt (`newidle_ratio`).
#[test]
fn newly_idle_cpus_pull_as_often_as_it_has_helped_so_far() {
    let pulled = |kernel: &str, ratio: &str| {
        let machine = bare("2");
        let short = pinned(forever("short", 0, vec![Op::Run(exactly(100_000)), Op::Sleep(exactly(9_900_000))]), 1);
        let middling = |name| forever(name, 0, vec![Op::Run(exactly(2_000_000)), Op::Sleep(exactly(1_000_000))]);
        let load = Load { tasks: vec![short, middling("a"), middling("b"), middling("c")], ..Load::default() };
        let set = [("newidle_ratio", ratio.to_owned())];
        let accounts = simulate(kernel, &machine, &load, &set, 1000 * MS);
        // A newly idle CPU goes from the task that sleeps to the pulled one at once.
        let moves = accounts.events.windows(2).filter(|pair| {
            let [Event { what: Payload::Migrate { tid, to, .. }, .. }, after] = pair else { return false };
            let asleep = |state| state == TaskState::Sleeping;
            matches!(after.what, Payload::Switch { prev, prev_state, next, .. }
                if after.cpu == *to && prev != 0 && asleep(prev_state) && next == *tid)
        });
        moves.count()
    };
    for kernel in releases(v(6, 1)..).filter(|name| kernels::find(name).unwrap().tunable("newidle_ratio").is_some()) {
        let [never, seldom, always] = ["0", "200", "1024"].map(|ratio| pulled(kernel, ratio));
        assert!(never <= 2 && seldom > never && always > 2 * seldom, "{kernel}: {never}, {seldom}, {always}");
    }
}

/// A task that wakes up on an idle CPU gets it as late as the machine's times vary, and the same seed draws the same.
#[test]
fn leaving_idle_varies_as_the_machine_says() {
    const QUANTILES: [Nanos; 9] = [5_000, 10_000, 12_000, 20_000, 30_000, 40_000, 60_000, 200_000, 500_000];
    let mut machine = bare("1");
    machine.costs.idle_exit_ns = Cost::Varying(QUANTILES);
    let load = Load { tasks: vec![forever("task", 0, vec![run(1), sleep(2)])], ..Load::default() };
    for kernel in ["linux-2.6.11", "linux-2.6.32", "linux-6.12"] {
        let waits = || {
            let events = simulate(kernel, &machine, &load, &[], 12_000 * MS).events;
            let woken = |event: &Event| matches!(event.what, Payload::Wakeup { .. }).then_some(event.time);
            let starts = |event: &Event| matches!(event.what, Payload::Switch { next: 1.., .. }).then_some(event.time);
            let (woken, starts) = (events.iter().filter_map(woken), events.iter().filter_map(starts));
            let mut waits: Vec<Nanos> = woken.zip(starts).map(|(woken, started)| started - woken).collect();
            waits.sort_unstable();
            waits
        };
        let sorted = waits();
        assert!(sorted.len() > 3_900, "{kernel}: {} wake-ups", sorted.len());
        assert_eq!(sorted, waits(), "{kernel}");
        for (percent, expected) in [(10, QUANTILES[1]), (50, QUANTILES[3]), (90, QUANTILES[5]), (99, QUANTILES[7])] {
            let drawn = sorted[sorted.len() * percent / 100];
            assert!(drawn.abs_diff(expected) * 8 < expected, "{kernel}: {percent}% is {drawn}, not {expected}");
        }
        assert!(sorted[0] >= QUANTILES[0] && *sorted.last().unwrap() <= QUANTILES[8], "{kernel}");
    }
}

/// A task on another CPU wakes one onto an idle CPU sooner than a timer there does, if the machine says so; without a
/// time of its own, it takes as long. The task that wakes begins when its own CPU has left idle, after 0.03 ms.
#[test]
fn leaving_idle_may_cost_otherwise_if_another_cpu_wakes() {
    let asks = pinned(once("asks", vec![run(2), Op::SemPost(0), run(5)]), 0);
    let asked = pinned(once("asked", vec![Op::SemWait(0), run(1), sleep(2), run(1)]), 1);
    let load = Load { tasks: vec![asks, asked], sems: vec!["sem".to_owned()], ..Load::default() };
    for kernel in KERNELS.iter().filter(|kernel| !kernel.lacks(Feature::Smp)) {
        let lane_of = |own: Nanos, remote: Option<Nanos>| {
            let mut file = MachineFile::flat("m", 1, 2, 1);
            (file.costs.idle_exit_ns, file.costs.remote_idle_exit_ns) = (Some(own.into()), remote.map(Cost::Fixed));
            let built = file.build().expect("a machine").costs;
            let mut machine = bare("2");
            (machine.costs.idle_exit_ns, machine.costs.remote_idle_exit_ns) =
                (built.idle_exit_ns, built.remote_idle_exit_ns);
            lane(&simulate(kernel.name, &machine, &load, &[], 100 * MS), 1)
        };
        let (own, same) = (lane_of(30_000, Some(10_000)), lane_of(30_000, None));
        assert!(own.ends_with("2.04 asked, 3.04 -, 5.07 asked, 6.07 -"), "{}: {own}", kernel.name);
        assert!(same.ends_with("2.06 asked, 3.06 -, 5.09 asked, 6.09 -"), "{}: {same}", kernel.name);
    }
}

/// A SCHED_IDLE hog is preempted by a task that wakes 3 ms of virtual time behind it. 16 us pass until the switch, in
/// which the hog would be charged for 5.5 ms of virtual time. From 2.6.35 on it is not: the clock stands from the
/// wake-up until the switch (`rq_clock_skip_update`). So the tick at which the task has had its slice of 6 ms gives the
/// CPU back.
#[test]
fn who_is_preempted_is_not_charged_until_the_switch() {
    let mut machine = bare("up");
    machine.costs.timer_to_switch_ns = 16_000.into();
    let mut idle = hog("idle", 0);
    idle.initial.policy = Some(Policy::Idle);
    let mut task = hog("task", 0);
    task.start = 100_500_000;
    let load = Load { tasks: vec![idle, task], start: Start::Wake, ..Load::default() };
    let goes_back = |kernel: &str| {
        let set = [("hz", "1000".to_owned())];
        let events = simulate(kernel, &machine, &load, &set, 200 * MS).events;
        let switches = events.iter().filter_map(|e| match e.what {
            Payload::Switch { next, .. } => Some((e.time, next)),
            _ => None,
        });
        let mut later = switches.skip_while(|(_, next)| *next != 2);
        let from = later.next().expect("the task runs").0;
        assert_eq!(from, 100_516_000, "{kernel}");
        later.next().map_or(Nanos::MAX, |(at, _)| at - from)
    };
    for kernel in
        releases(v(2, 6)..v(6, 6)).filter(|name| kernels::find(name).unwrap().tunable("GENTLE_FAIR_SLEEPERS").is_some())
    {
        let (stands, after) = (kernels::find(kernel).unwrap().release >= Some(v2_6(35)), goes_back(kernel));
        assert_eq!(after < 7 * MS, stands, "{kernel}: {after}");
    }
}

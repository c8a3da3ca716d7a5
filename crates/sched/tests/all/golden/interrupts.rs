//! Interrupts, softirqs and stolen time: CPUs are busy without a task. The tick is 1 ms and nothing has a cost.

use crate::support::{MS, bare, exactly, forever, hog, simulate_at_1000_hz, simulate_how};
use schedlab_base::{Nanos, Payload};
use schedlab_sched::kernels::How;
use schedlab_sim::program::{Amount, GroupSpec, InterruptKind, InterruptSpec, Load, Op, Policy, Start, TaskSpec};

const US: Nanos = 1_000;

fn run(us: Nanos) -> Op {
    Op::Run(exactly(us * US))
}

fn every(kind: InterruptKind, cpu: u32, first: Nanos, period: Nanos, length: Nanos) -> InterruptSpec {
    let length = Amount { mean: length * US, sd: 0 };
    InterruptSpec { kind, cpu, first: first * US, period: period * US, random: false, length }
}

/// One interrupt only.
fn once(kind: InterruptKind, first: Nanos, length: Nanos) -> InterruptSpec {
    every(kind, 0, first, 1_000_000_000, length)
}

fn load(tasks: Vec<TaskSpec>, interrupts: Vec<InterruptSpec>) -> Load {
    Load { tasks, interrupts, start: Start::Wake, ..Load::default() }
}

fn task(name: &str, program: Vec<Op>) -> TaskSpec {
    TaskSpec { name: name.into(), program, ..TaskSpec::default() }
}

/// Returns the tasks that ran and from when on, in us.
fn schedule(kernel: &str, load: &Load, set: &[(&str, &str)], ms: Nanos) -> String {
    let accounts = simulate_at_1000_hz(kernel, "up", load, set, ms);
    let lines = accounts.events.iter().filter_map(|e| match e.what {
        Payload::Switch { next: 0, .. } => Some(format!("{} -", e.time / US)),
        Payload::Switch { next, .. } => Some(format!("{} {}", e.time / US, accounts.names[next as usize - 1])),
        _ => None,
    });
    lines.collect::<Vec<_>>().join(", ")
}

#[test]
fn an_interrupt_takes_time_from_whatever_runs() {
    // 1000 us of work take 1300. A second interrupt follows the first, and one on an idle CPU delays who wakes there.
    for kernel in ["linux-2.4", "linux-2.6.11", "linux-3.10", "linux-6.1", "linux-6.18"] {
        let one = load(vec![task("A", vec![run(1_000)])], vec![once(InterruptKind::Irq, 400, 300)]);
        assert_eq!(schedule(kernel, &one, &[], 5), "0 A, 1300 -", "{kernel}");
        let two = [once(InterruptKind::Irq, 400, 300), once(InterruptKind::Softirq, 500, 200)];
        assert_eq!(schedule(kernel, &load(one.tasks.clone(), two.to_vec()), &[], 5), "0 A, 1500 -", "{kernel}");
        let mut late = task("A", vec![run(100)]);
        late.start = 500 * US;
        let idle = load(vec![late], vec![once(InterruptKind::Softirq, 400, 300)]);
        assert_eq!(schedule(kernel, &idle, &[], 5), "700 A, 800 -", "{kernel}");
    }
}

#[test]
fn timers_wait_for_the_end_of_an_interrupt_but_not_of_a_softirq() {
    // A's timer expires at 600.
    let program = vec![run(100), Op::Sleep(exactly(500 * US)), run(100)];
    let woken = |kind| {
        let load = load(vec![task("A", program.clone())], vec![once(kind, 500, 400)]);
        let accounts = simulate_at_1000_hz("linux-6.12", "up", &load, &[], 5);
        let woken = accounts.events.iter().rfind(|e| matches!(e.what, Payload::Wakeup { .. }));
        let ran = accounts.events.iter().rfind(|e| matches!(e.what, Payload::Switch { next: 1, .. }));
        (woken.expect("a wake-up").time / US, ran.expect("a switch").time / US)
    };
    assert_eq!(woken(InterruptKind::Irq), (900, 900));
    assert_eq!(woken(InterruptKind::Steal), (900, 900));
    assert_eq!(woken(InterruptKind::Softirq), (600, 900));
}

#[test]
fn who_is_interrupted_pays_unless_the_kernel_accounts_for_it() {
    // A is interrupted for 900 us of each 1000 while it runs alone, to 5 ms; then B comes. Charged for all of that, A
    // does not run again before B has had as much; with its time accounted for, it has had 500 us.
    let interrupts: Vec<_> = (0..5).map(|n| once(InterruptKind::Steal, n * 1_000, 900)).collect();
    let cpu = |kernel: &str, policy, set: &[(&str, &str)]| {
        let mut tasks = vec![hog("A", 0), hog("B", 0)];
        tasks[0].initial.policy = Some(policy);
        let load = load(tasks, interrupts.clone());
        let accounts = simulate_at_1000_hz(kernel, "up", &load, set, 40);
        accounts.named("A").run / US
    };
    let on = [("paravirt_time_accounting", "on")];
    for kernel in ["linux-3.10", "linux-6.1", "linux-6.12", "linux-6.18"] {
        let (charged, spared) = (cpu(kernel, Policy::Other, &[]), cpu(kernel, Policy::Other, &on));
        // The trace shows A on the CPU while it is interrupted.
        assert!((19_000..21_500).contains(&charged), "{kernel}: {charged}");
        assert!(spared > charged + 1_400, "{kernel}: {spared} and {charged}");
    }
    let other = [("irq_time_accounting", "on")];
    assert_eq!(cpu("linux-6.12", Policy::Other, &other), cpu("linux-6.12", Policy::Other, &[]), "it is no interrupt");
}

/// Each interrupt comes in the middle of a tick's time, which is charged to the task and to both groups above it.
#[test]
fn groups_pay_for_what_their_task_did_before_an_interrupt() {
    let groups = [("/a", None), ("/b", None), ("/a/c", Some(0))];
    let groups = groups.map(|(path, parent)| GroupSpec { path: path.into(), parent, ..GroupSpec::default() });
    let within = |name: &str, group| {
        let mut task = hog(name, 0);
        task.initial.group = Some(group);
        task
    };
    let load = Load {
        groups: groups.to_vec(),
        ..load(vec![within("C", 2), within("B", 1)], vec![every(InterruptKind::Irq, 0, 500, 1_000, 100)])
    };
    for kernel in ["linux-3.10", "linux-6.1", "linux-6.12", "linux-6.18"] {
        let accounts = simulate_at_1000_hz(kernel, "up", &load, &[("irq_time_accounting", "on")], 2_000);
        let part = accounts.named("C").run as f64 / 2e9;
        assert!((part - 0.5).abs() < 0.01, "{kernel}: {part}");
    }
}

#[test]
fn real_time_throttling_does_not_count_what_is_accounted_for() {
    // Half of the time is stolen. Charged for it, the FIFO task is throttled at 951 ms, in the middle of 5 stolen ones,
    // and A has the rest of the second.
    let steal = every(InterruptKind::Steal, 0, 0, 10_000, 5_000);
    let mut fifo = hog("F", 0);
    fifo.initial.policy = Some(Policy::Fifo);
    fifo.initial.rt_priority = Some(10);
    let load = load(vec![fifo, hog("A", 0)], vec![steal]);
    let ran = |set: &[(&str, &str)]| simulate_at_1000_hz("linux-6.1", "up", &load, set, 1_000).named("A").run / MS;
    assert!((43..46).contains(&ran(&[])), "{}", ran(&[]));
    assert_eq!(ran(&[("paravirt_time_accounting", "on")]), 0);
}

#[test]
fn a_cpu_with_interrupts_has_less_capacity() {
    // Three hogs on two CPUs, of which CPU 0 is interrupted for 60% of the time: its capacity is two thirds less than
    // that of CPU 1. Balancing that knows of it leaves one hog there.
    let irq = every(InterruptKind::Irq, 0, 0, 1_000, 600);
    let tasks = (0..3).map(|n| forever(&format!("h{n}"), 0, vec![run(1_000_000)])).collect();
    let load = load(tasks, vec![irq]);
    let on_cpu_0 = |set: &[(&str, &str)]| {
        let accounts = simulate_at_1000_hz("linux-6.12", "2", &load, set, 4_000);
        let switches = accounts.events.iter().filter(|e| e.cpu == 0 && e.time > 500 * MS);
        switches.filter(|e| matches!(e.what, Payload::Switch { .. })).count()
    };
    let (blind, knowing) = (on_cpu_0(&[]), on_cpu_0(&[("irq_time_accounting", "on")]));
    assert!(knowing * 4 < blind, "{knowing} and {blind}");
    // Without NONTASK_CAPACITY the time is measured, and not subtracted from the capacity.
    let even = on_cpu_0(&[("irq_time_accounting", "on"), ("NONTASK_CAPACITY", "off")]);
    assert!(knowing * 4 < even, "{knowing} and {even}");
}

#[test]
fn random_interrupts_take_their_part() {
    let irq = InterruptSpec { random: true, ..every(InterruptKind::Irq, 0, 0, 1_000, 100) };
    let load = load(vec![task("A", vec![run(900_000)])], vec![irq]);
    let end = simulate_at_1000_hz("linux-6.12", "up", &load, &[], 2_000).named("A").run / MS;
    assert!((985..1_015).contains(&end), "{end}");
}

#[test]
fn skipped_ticks_change_nothing_beside_interrupts() {
    let irq = [every(InterruptKind::Irq, 0, 130, 1_370, 410), every(InterruptKind::Steal, 0, 900, 7_300, 2_900)];
    let nap = forever("N", 0, vec![run(700), Op::Sleep(exactly(2_300 * US))]);
    let mut fifo = forever("F", 0, vec![run(900), Op::Sleep(exactly(21_300 * US))]);
    (fifo.initial.policy, fifo.initial.rt_priority) = (Some(Policy::Rr), Some(10));
    let load = load(vec![hog("A", 0), hog("B", 5), nap, fifo], irq.to_vec());
    for kernel in ["linux-2.6.11", "linux-3.10", "linux-6.1", "linux-6.12", "linux-6.18"] {
        let on = [("irq_time_accounting", "on".to_owned()), ("paravirt_time_accounting", "on".to_owned())];
        for set in [&[][..], if kernel == "linux-2.6.11" { &[] } else { &on }] {
            let of = |skip_ticks| {
                let how = How { duration: Some(500 * MS), seed: 1, skip_ticks };
                simulate_how(kernel, &bare("up"), &load, set, &how).events
            };
            let (skipping, ticking) = (of(true), of(false));
            let differs = skipping.iter().zip(&ticking).find(|(one, other)| one != other);
            assert!(differs.is_none() && skipping.len() == ticking.len(), "{kernel}: {differs:?}");
        }
    }
}

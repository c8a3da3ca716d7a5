//! What is not the tasks' own: what wake-ups cost, and interrupts.

use super::*;
use schedlab_base::Cost;

fn fixed(us: Nanos) -> Cost {
    Cost::Fixed(us * US)
}

#[test]
fn what_wake_ups_cost_is_taken_from_the_recording() {
    let mut s = Script::default();
    s.switch(0, 0, 0, Runnable, 1).switch(0, 1, 9, Sleeping, 0);
    for round in 0..20 {
        let t = 10 + round * 100;
        // Onto an idle CPU; then onto one that runs another task, once at once and once at its tick.
        s.wake(t, 1, 1, 2).switch(t + 7, 1, 0, Runnable, 2);
        let cost = if round % 2 == 0 { 3 } else { 30 };
        s.at(t + 20, 0, Payload::Waking { tid: 3, prio: 120, target: 1, waker: 1, context: Context::Task });
        s.at(t + 20, 0, Payload::Wakeup { tid: 3, prio: 120, target: 1 });
        s.switch(t + 20 + cost, 1, 2, Runnable, 3).switch(t + 60, 1, 3, Sleeping, 2).switch(t + 70, 1, 2, Sleeping, 0);
    }
    let mut builder = ModelBuilder::new(&Meta { kernel: "6.12".into(), ..Meta::default() });
    builder.events(&s.events);
    let costs = builder.finish(&Options::default()).unwrap().workload.recorded.expect("a kernel is named").costs;
    let median = costs.wakeup_to_switch_ns.map(|cost| cost.median());
    assert_eq!((costs.idle_exit_ns, median), (Some(fixed(7)), Some(3 * US)));
    assert_eq!((costs.timer_to_switch_ns, costs.own_wakeup_to_switch_ns), (None, None));
}

#[test]
fn what_wake_ups_cost_varies_as_it_did() {
    let mut s = Script::default();
    s.switch(0, 0, 0, Runnable, 1).switch(0, 1, 9, Sleeping, 0);
    for round in 0..101 {
        let t = 10 + round * 300;
        s.wake(t, 1, 1, 2).switch(t + 5 + round, 1, 0, Runnable, 2).switch(t + 150, 1, 2, Sleeping, 0);
    }
    let mut builder = ModelBuilder::new(&Meta { kernel: "6.12".into(), ..Meta::default() });
    builder.events(&s.events);
    let model = builder.finish(&Options::default()).unwrap();
    let costs = model.workload.recorded.clone().expect("a kernel is named").costs;
    let quantiles = [0, 10, 25, 50, 75, 90, 95, 99, 100].map(|percent| (5 + percent) * US);
    assert_eq!(costs.idle_exit_ns, Some(Cost::Varying(quantiles)));
    let text = crate::write(&model.workload);
    assert_eq!(crate::parse(text.as_bytes(), std::path::Path::new("m.json")).unwrap().recorded.unwrap().costs, costs);
}

#[test]
fn a_cpu_whose_idle_task_is_not_seen_to_leave_shows_no_cost() {
    let mut s = Script::default();
    s.switch(0, 0, 0, Runnable, 1).switch(0, 1, 9, Sleeping, 0).switch(0, 2, 8, Sleeping, 0);
    for round in 0..20 {
        let t = 10 + round * 100;
        s.wake(t, 1, 1, 2).switch(t + 30, 1, 2, Sleeping, 0);
        s.wake(t + 40, 2, 1, 3).switch(t + 47, 2, 0, Runnable, 3).switch(t + 60, 2, 3, Sleeping, 0);
    }
    let mut builder = ModelBuilder::new(&Meta { kernel: "6.12".into(), ..Meta::default() });
    builder.events(&s.events);
    let costs = builder.finish(&Options::default()).unwrap().workload.recorded.expect("a kernel is named").costs;
    assert_eq!(costs.idle_exit_ns, Some(fixed(7)));
}

#[test]
fn leaving_idle_costs_otherwise_if_another_cpu_wakes() {
    let mut s = Script::default();
    s.switch(0, 0, 0, Runnable, 1).switch(0, 1, 9, Sleeping, 0);
    for round in 0..20 {
        let t = 10 + round * 100;
        s.wake_in(Context::HardIrq, t, 1, 1, 2).switch(t + 7, 1, 0, Runnable, 2).switch(t + 20, 1, 2, Sleeping, 0);
        // The idle CPU is told, and does the rest of the wake-up itself.
        s.at(t + 40, 0, Payload::Waking { tid: 3, prio: 120, target: 1, waker: 1, context: Context::Task });
        s.at(t + 41, 1, Payload::Wakeup { tid: 3, prio: 120, target: 1 });
        s.switch(t + 44, 1, 0, Runnable, 3).switch(t + 60, 1, 3, Sleeping, 0);
    }
    let mut builder = ModelBuilder::new(&Meta { kernel: "6.12".into(), ..Meta::default() });
    builder.events(&s.events);
    let costs = builder.finish(&Options::default()).unwrap().workload.recorded.expect("a kernel is named").costs;
    assert_eq!((costs.idle_exit_ns, costs.remote_idle_exit_ns), (Some(fixed(7)), Some(fixed(3))));
}

#[test]
fn an_idle_cpu_that_others_are_woken_onto_meanwhile_leaves_idle_as_it_would() {
    let mut s = Script::default();
    s.switch(0, 0, 0, Runnable, 1).switch(0, 1, 9, Sleeping, 0);
    for round in 0..20 {
        let t = 10 + round * 100;
        for (tid, at) in [(2, t), (3, t + 2)] {
            s.at(at, 0, Payload::Waking { tid, prio: 120, target: 1, waker: 1, context: Context::Task });
            s.at(at, 1, Payload::Wakeup { tid, prio: 120, target: 1 });
        }
        // Which of the two comes first does not matter.
        let (first, second) = if round % 2 == 0 { (2, 3) } else { (3, 2) };
        s.switch(t + 8, 1, 0, Runnable, first).switch(t + 20, 1, first, Sleeping, second);
        s.switch(t + 40, 1, second, Sleeping, 0);
    }
    let mut builder = ModelBuilder::new(&Meta { kernel: "6.12".into(), ..Meta::default() });
    builder.events(&s.events);
    let costs = builder.finish(&Options::default()).unwrap().workload.recorded.expect("a kernel is named").costs;
    assert_eq!((costs.idle_exit_ns, costs.remote_idle_exit_ns), (None, Some(fixed(8))));
}

#[test]
fn what_packets_wake_costs_as_much_as_the_call_that_sends_them() {
    // Two tasks that send packets to each other, of which a timer wakes one each time.
    let mut s = Script::default();
    s.wake(0, 0, 0, 1).switch(0, 0, 0, Runnable, 1);
    for round in 0..20 {
        let t = 10 + round * 200;
        for (first, second, t) in [(1, 2, t), (2, 1, t + 100)] {
            s.wake_in(Context::SoftIrq, t, 0, first, second).switch(t + 9, 0, first, Runnable, second);
            s.switch(t + 20, 0, second, Sleeping, first).switch(t + 30, 0, first, Sleeping, 0);
            s.wake_in(Context::HardIrq, t + 80, 0, 0, second).switch(t + 80, 0, 0, Runnable, second);
        }
    }
    let costs = |script: &Script| {
        let mut builder = ModelBuilder::new(&Meta { kernel: "6.12".into(), ..Meta::default() });
        builder.events(&script.events);
        let costs = builder.finish(&Options::default()).unwrap().workload.recorded.expect("a kernel is named").costs;
        (costs.timer_to_switch_ns, costs.own_wakeup_to_switch_ns)
    };
    assert_eq!(costs(&s), (None, Some(fixed(9))));
    // A task that is always there when a timer wakes another one by a soft interrupt did not do that.
    let mut s = Script::default();
    s.switch(0, 0, 0, Runnable, 1);
    for round in 0..20 {
        let t = 10 + round * 100;
        s.wake_in(Context::SoftIrq, t, 0, 1, 2).switch(t + 9, 0, 1, Runnable, 2).switch(t + 20, 0, 2, Sleeping, 1);
    }
    assert_eq!(costs(&s), (Some(fixed(9)), None));
}

#[test]
fn what_wake_ups_on_the_own_cpu_cost_depends_on_what_woke() {
    let mut s = Script::default();
    s.switch(0, 0, 0, Runnable, 1);
    for round in 0..20 {
        let t = 10 + round * 100;
        s.wake_in(Context::Task, t, 0, 1, 2).switch(t + 9, 0, 1, Runnable, 2).switch(t + 20, 0, 2, Sleeping, 1);
        s.wake_in(Context::HardIrq, t + 40, 0, 1, 3).switch(t + 42, 0, 1, Runnable, 3);
        s.switch(t + 60, 0, 3, Sleeping, 1);
    }
    let mut builder = ModelBuilder::new(&Meta { kernel: "6.12".into(), ..Meta::default() });
    builder.events(&s.events);
    let costs = builder.finish(&Options::default()).unwrap().workload.recorded.expect("a kernel is named").costs;
    assert_eq!((costs.timer_to_switch_ns, costs.own_wakeup_to_switch_ns), (Some(fixed(2)), Some(fixed(9))));
    assert_eq!((costs.idle_exit_ns, costs.wakeup_to_switch_ns), (None, None));
}

#[test]
fn interrupts_are_taken_out_of_bursts_and_given_to_the_cpu() {
    use schedlab_base::Interrupt;
    let mut s = Script::default();
    s.switch(0, 0, 0, Runnable, 1);
    let interrupt = |kind, number, took| Payload::Interrupt { kind, number, took: took * US };
    s.at(300, 0, interrupt(Interrupt::Timer, 0, 40)).at(306, 0, interrupt(Interrupt::SoftIrq, 9, 5));
    // What the task sent itself is its work, and nobody's is what came while the CPU was idle.
    s.at(500, 0, interrupt(Interrupt::SoftIrq, 3, 100)).switch(1_000, 0, 1, Sleeping, 0);
    s.at(1_500, 0, interrupt(Interrupt::Timer, 0, 60))
        .switch(2_000, 0, 0, Runnable, 1)
        .switch(2_100, 0, 1, Sleeping, 0);
    let model = s.model(&Options::default()).unwrap();
    assert_eq!(told(&model.workload, "task-1"), ["1 x run 955, sleep 1000, run 100"]);
    let sources: Vec<_> =
        model.workload.interrupts.iter().map(|i| (i.kind, i.period / US, i.duration.mean / US)).collect();
    use crate::InterruptKind::{Irq, Softirq};
    assert_eq!(sources, [(Softirq, 2_100, 5), (Irq, 1_050, 50)]);
    assert_eq!(model.report.interrupts_ns, 105 * US);
}

#[test]
fn what_a_task_sleeps_for_says_who_wakes_it() {
    use schedlab_base::Sleep;
    let model = |context: Context, why: Option<Sleep>| {
        let (mut s, mut t) = (Script::default(), 1_000);
        s.name(1, "hog").name(2, "nap");
        for round in 0..50 {
            s.wake_in(context, t, 0, 1, 2).switch(t, 0, 1, Runnable, 2);
            if let Some(why) = why {
                s.at(t + 100, 0, Payload::Sleeps { tid: 2, why });
            }
            s.switch(t + 100, 0, 2, Sleeping, 1);
            t += 300 + round * 977 % 3_000;
        }
        s.switch(t, 0, 1, Dead, 0);
        let workload = s.model(&Options::default()).unwrap().workload;
        let mut steps = workload.tasks.iter().flat_map(|task| &task.phases).flat_map(|phase| &phase.events);
        let sync = steps.any(|step| step.sync);
        assert!(!sync || why == Some(Sleep::Pipe), "{why:?} is not woken as by a pipe");
        (told(&workload, "hog-1").join(";").contains("post wake-nap-2"), sync)
    };
    let (posts, none) = ((true, false), (false, false));
    // Without the reason, sleeps without a pattern are ended by the task on the CPU.
    assert_eq!([model(Context::Unknown, None), model(Context::Unknown, Some(Sleep::Timer))], [posts, none]);
    assert_eq!(model(Context::Task, Some(Sleep::Timer)), posts, "a signal ended them");
    assert_eq!(model(Context::Task, Some(Sleep::Futex)), posts);
    // A task of the same CPU wakes it more often than by chance, but pipes are written by tasks.
    assert_eq!(model(Context::SoftIrq, Some(Sleep::Pipe)), none);
    assert_eq!(model(Context::Unknown, Some(Sleep::Pipe)), (true, true));
}

/// From the 17th time on the cost is known to be the machine's, and is no work of the waker.
#[test]
fn what_it_takes_to_wake_an_idle_cpu_is_a_cost_of_the_machine() {
    let mut s = Script::default();
    s.name(1, "waker").name(2, "sleeper").switch(0, 0, 0, Runnable, 1).switch(0, 1, 0, Runnable, 2);
    s.switch(5, 1, 2, Sleeping, 0);
    for round in 0..40 {
        let at = 1_000 * round + 100;
        s.at(at, 0, Payload::Waking { tid: 2, prio: 120, target: 1, waker: 1, context: Context::Task });
        // The last time its CPU turns out to be the waker's own.
        let target = CpuId::from(round < 39);
        s.at(at + 30, target, Payload::Wakeup { tid: 2, prio: 120, target });
        if target == 0 {
            break;
        }
        s.switch(at + 31, 1, 0, Runnable, 2).switch(at + 70, 0, 1, Sleeping, 0).switch(at + 100, 1, 2, Sleeping, 0);
        s.wake_in(Context::HardIrq, at + 900, 0, 0, 1).switch(at + 900, 0, 0, Runnable, 1);
    }
    s.switch(39_200, 0, 1, Sleeping, 2);
    let mut builder = ModelBuilder::new(&Meta { kernel: "6.12".into(), ..Meta::default() });
    s.names.iter().for_each(|name| builder.name(name));
    builder.events(&s.events);
    let workload = builder.finish(&Options::default()).unwrap().workload;
    let costs = workload.recorded.as_ref().expect("a kernel is named").costs;
    assert_eq!(costs.idle_wakeup_ns, Some(fixed(30)));
    let round = |n, run| format!("{n} x run {run}, post wake-sleeper-2, run 40, sleep 830; ");
    let expected = round(16, 130) + &round(23, 100) + "1 x run 130, post wake-sleeper-2, run 70";
    assert_eq!(told(&workload, "waker-1").join("; "), expected);
}

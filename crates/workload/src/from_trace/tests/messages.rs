//! Messages that no wake-up shows.

use super::*;

/// A sender works for as long as `work` says of each of 20 rounds, and then wakes the receiver, which preempts it and
/// takes 10 us. Then the receiver waits while the sender works for 30 us, and works for 40 us. Both their programs.
fn sender_and_receiver(work: fn(u64) -> Nanos) -> [String; 2] {
    let mut s = Script::default();
    s.name(1, "send").name(2, "receive").wake(0, 0, 0, 2).switch(0, 0, 0, Runnable, 2).switch(10, 0, 2, Sleeping, 1);
    let mut t = 10;
    for round in 0..20 {
        t += work(round);
        s.wake(t, 0, 1, 2).switch(t, 0, 1, Runnable, 2).switch(t + 10, 0, 2, Sleeping, 1);
        t += 10;
    }
    let last = t + work(20);
    s.wake(last, 0, 1, 2).switch(last + 30, 0, 1, Sleeping, 2).switch(last + 70, 0, 2, Sleeping, 0);
    let w = s.model(&Options::default()).unwrap().workload;
    assert_eq!(stuck(&w), [""; 0]);
    ["send-1", "receive-2"].map(|task| told(&w, task).join("; "))
}

#[test]
fn messages_that_came_while_the_receiver_waited_for_a_cpu_are_in_the_model() {
    // It sends one after each 10 us, also while the receiver waits; that takes all four.
    let [sends, receives] = sender_and_receiver(|_| 10);
    assert_eq!(sends, "24 x run 10, post wake-receive-2");
    assert_eq!(receives, "21 x run 10, wait; 3 x run 10, wait; 1 x run 10");
    // It sends them now and then: the three are spread over what it did while the receiver waited.
    let [sends, receives] = sender_and_receiver(|round| [10, 40, 160][round as usize % 3]);
    assert!(sends.ends_with("3 x run 7, post wake-receive-2; 1 x run 7"), "{sends}");
    assert!(receives.ends_with("3 x run 10, wait; 1 x run 10"), "{receives}");
}

/// Two tasks send each other messages of 10 us of work on CPU 0, until at 400 `3` sleeps and `2` runs.
fn ping_pong() -> Script {
    let mut s = Script::default();
    s.name(2, "ping").name(3, "pong").switch(0, 0, 0, Runnable, 2);
    for round in 0..20 {
        let t = 10 + round * 20;
        s.wake(t, 0, 2, 3).switch(t, 0, 2, Sleeping, 3).wake(t + 10, 0, 3, 2).switch(t + 10, 0, 3, Sleeping, 2);
    }
    s
}

#[test]
fn a_message_that_follows_a_task_s_own_is_not_waited_for_before_it() {
    let mut s = ping_pong();
    // 2 sends a message and is preempted at once. 3 answers it while 2 waits for the CPU.
    s.wake(410, 0, 2, 3).switch(410, 0, 2, Runnable, 3).switch(420, 0, 3, Sleeping, 2).switch(430, 0, 2, Sleeping, 0);
    let w = s.model(&Options::default()).unwrap().workload;
    let ping = "20 x run 10, post wake-pong-3, wait; 1 x run 10, post wake-pong-3, wait, run 10";
    assert_eq!(told(&w, "ping-2").join("; "), ping);
    // It answers as always, when it has done its work.
    assert_eq!(told(&w, "pong-3").join("; "), "21 x wait, run 10, post wake-ping-2");
    assert_eq!(stuck(&w), [""; 0]);
}

#[test]
fn of_two_tasks_side_by_side_only_the_later_one_waits_for_the_other() {
    let mut s = ping_pong();
    let waking = |tid, target, waker| Payload::Waking { tid, prio: 120, target, waker, context: Context::Task };
    let wakeup = |tid, target| Payload::Wakeup { tid, prio: 120, target };
    s.switch(400, 1, 0, Runnable, 9).switch(400, 2, 0, Runnable, 4);
    s.at(410, 0, waking(3, 1, 2)).at(410, 0, wakeup(3, 1)).switch(410, 0, 2, Sleeping, 8);
    s.at(411, 2, waking(2, 0, 4)).at(411, 2, wakeup(2, 0)).switch(412, 1, 9, Runnable, 3);
    s.wake(810, 1, 3, 5).wake(810, 2, 4, 6);
    // 2 is woken again: so it got its CPU, which was not seen. The earliest time for that is 411, before 3 got its own.
    s.at(811, 2, waking(2, 0, 4)).wake(812, 0, 2, 7);
    s.switch(813, 1, 3, Sleeping, 0).switch(814, 0, 2, Sleeping, 0).switch(815, 2, 4, Dead, 0);
    let w = s.model(&Options::default()).unwrap().workload;
    let ping = "20 x run 10, post wake-pong-3, wait; 1 x run 10, post wake-pong-3, wait; 39 x run 10, wait; 1 x run 10";
    assert_eq!(told(&w, "ping-2").join("; "), ping);
    let pong = "20 x wait, run 10, post wake-ping-2; 1 x wait; 19 x run 19, post wake-ping-2; 1 x run 22";
    assert_eq!(told(&w, "pong-3").join("; "), pong);
    assert_eq!(stuck(&w), [""; 0]);
}

#[test]
fn a_burst_whose_end_was_not_seen_has_no_messages() {
    let mut s = ping_pong();
    // 2 left the CPU to 1, which was not seen. Meanwhile 3 runs elsewhere.
    s.wake(410, 0, 0, 1).wake(410, 1, 0, 3).switch(410, 1, 0, Runnable, 3).switch(420, 1, 3, Sleeping, 0);
    s.switch(430, 0, 1, Sleeping, 2).switch(460, 0, 2, Sleeping, 0);
    let w = s.model(&Options::default()).unwrap().workload;
    let ping = "20 x run 10, post wake-pong-3, wait; 1 x run 10, sleep 20, run 30";
    assert_eq!(told(&w, "ping-2").join("; "), ping);
    assert_eq!(stuck(&w), [""; 0]);
}

/// Another task runs for as many us as `length` says and wakes the receiver, 80 times. `round_is` says of each round
/// whether the receiver then waits while the other does three times as much, and whether its burst is four times as
/// long as usual. The number of its waits, those in loops counted as often as they happen.
fn waits_of_a_receiver(most_events: usize, length: fn(u64) -> Nanos, round_is: fn(u64) -> (bool, bool)) -> u64 {
    let mut s = Script::default();
    s.name(1, "send").name(2, "receive").wake(0, 0, 0, 2).switch(0, 0, 0, Runnable, 2).switch(10, 0, 2, Sleeping, 1);
    let mut t = 10;
    for round in 0..80 {
        let ((waits, long), once) = (round_is(round), length(round));
        let start = t + if waits { 4 * once } else { once };
        let end = start + if long { 4 * once } else { once };
        s.wake_in(Context::Task, t + once, 0, 1, 2).switch(start, 0, 1, Runnable, 2).switch(end, 0, 2, Sleeping, 1);
        t = end;
    }
    let w = s.model(&Options { most_events, ..Options::default() }).unwrap().workload;
    let of = |step: &Step| u64::from(matches!(step.what, Action::SemWait(_)));
    let phases = &w.tasks.iter().find(|task| task.name == "receive-2").unwrap().phases;
    phases.iter().map(|p| p.loops.unwrap() * p.events.iter().map(of).sum::<u64>()).sum()
}

#[test]
fn only_bursts_that_follow_what_the_wakers_did_are_of_several_messages() {
    let waits = |round_is| waits_of_a_receiver(1_000_000, |_| 10, round_is);
    let own = waits(|_| (false, false));
    // Long bursts after waits are of four messages each.
    assert_eq!(waits(|round| (round % 4 == 3, round % 4 == 3)), own + 20 * 3);
    // Bursts that are as often long without a wait are not.
    assert_eq!(waits(|round| (round % 8 > 3, round % 4 == 3)), own);
}

#[test]
fn a_large_model_keeps_its_messages_rather_than_the_lengths_of_its_bursts() {
    let waits = |most_events| {
        let length = |round| 40 + round * 13 % 7 / 2;
        waits_of_a_receiver(most_events, length, |round| (round % 4 == 3, round % 4 == 3))
    };
    let all = waits(1_000_000);
    assert!((80 + 20 * 5 / 2..=80 + 20 * 3).contains(&all), "{all}");
    assert_eq!(waits(200), all);
}

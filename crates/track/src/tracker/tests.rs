//! What is reported for traces that are incomplete or contradict themselves.

use crate::{Move, Observer, Occupant, Replay, Slot, Start, Stop, Wake};
use schedlab_base::{Context, Coverage, CpuId, Event, Meta, Nanos, Partial, Payload, Sink, Target, TaskState, Tid};
use std::fmt::Write;

/// Writes the facts down, with tasks by their thread ids.
#[derive(Default)]
struct Told {
    tids: Vec<Tid>,
    text: String,
}

impl Told {
    fn who(&self, who: Occupant) -> String {
        match who {
            Occupant::Unknown => "?".to_owned(),
            Occupant::Idle => "idle".to_owned(),
            Occupant::Task(task) => self.tids[task as usize].to_string(),
        }
    }

    fn tell(&mut self, fact: &str, task: Slot, rest: &str) {
        let tid = self.tids[task as usize];
        let _ = write!(self.text, "{fact} {tid} {rest}; ");
    }
}

impl Observer for Told {
    fn appears(&mut self, task: Slot, tid: Tid, _: bool) {
        *crate::row(&mut self.tids, task) = tid;
    }

    fn forked(&mut self, parent: Option<Slot>, child: Slot, sure: bool, _: Nanos) {
        let parent = parent.map(|task| self.tids[task as usize]);
        self.tell("forked", child, &format!("by {parent:?} {sure}"));
    }

    fn woken(&mut self, task: Slot, wake: Wake) {
        let by = wake.by.map(|task| self.tids[task as usize]);
        self.tell("woken", task, &format!("by {by:?}"));
    }

    fn queued(&mut self, task: Slot, cpu: CpuId, now: Nanos) {
        self.tell("queued", task, &format!("on {cpu} at {now}"));
    }

    fn waited(&mut self, task: Slot, cpu: CpuId, from: Nanos, to: Nanos, finished: bool) {
        self.tell("waited", task, &format!("on {cpu} {from}-{to}{}", if finished { "" } else { " and on" }));
    }

    fn started(&mut self, task: Slot, cpu: CpuId, start: Start) {
        let unseen = if start.unseen { " unseen" } else { "" };
        self.tell("started", task, &format!("on {cpu} at {}{unseen}", start.now));
    }

    fn stopped(&mut self, task: Slot, cpu: CpuId, stop: Stop) {
        let late = if stop.late { " late" } else { "" };
        self.tell("stopped", task, &format!("on {cpu} at {} since {:?}{late}", stop.now, stop.since));
    }

    fn migrated(&mut self, task: Slot, moved: Move) {
        self.tell("moved", task, &format!("{} to {} first {}", moved.from, moved.to, moved.first));
    }

    fn span(&mut self, cpu: CpuId, who: Occupant, from: Nanos, to: Nanos) {
        let who = self.who(who);
        let _ = write!(self.text, "cpu{cpu} {who} {from}-{to}; ");
    }

    fn forgotten(&mut self, cpu: CpuId, _: Nanos) {
        let _ = write!(self.text, "cpu{cpu} forgotten; ");
    }

    fn vanished(&mut self, task: Slot, cpu: CpuId, since: Nanos) {
        self.tell("vanished", task, &format!("from {cpu} at {since}"));
    }

    fn doubted(&mut self, task: Slot, _: Nanos) {
        self.tell("doubted", task, "");
    }

    fn misjudged(&mut self, cpu: CpuId, since: Option<Nanos>, _: Nanos) {
        let since = since.map_or_else(String::new, |since| format!(" since {since}"));
        let _ = write!(self.text, "cpu{cpu} misjudged{since}; ");
    }
}

fn switch(time: Nanos, cpu: CpuId, prev: Tid, prev_state: TaskState, next: Tid) -> Event {
    Event { time, cpu, what: Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 } }
}

fn woken(time: Nanos, cpu: CpuId, tid: Tid, target: CpuId) -> Event {
    Event { time, cpu, what: Payload::Wakeup { tid, prio: 120, target } }
}

fn waking(time: Nanos, cpu: CpuId, tid: Tid, target: CpuId) -> Event {
    Event { time, cpu, what: Payload::Waking { tid, prio: 120, target, waker: 0, context: Context::HardIrq } }
}

/// `waker` asks for a wake-up while it runs.
fn asks(time: Nanos, cpu: CpuId, waker: Tid, tid: Tid, target: CpuId) -> Event {
    Event { time, cpu, what: Payload::Waking { tid, prio: 120, target, waker, context: Context::Task } }
}

fn told(meta: &Meta, events: &[Event], end: Nanos) -> String {
    let mut replay = Replay::new(meta, Told::default());
    replay.events(events);
    replay.finish(Some(end));
    replay.observer.text.trim_end_matches("; ").to_owned()
}

/// Of all that was told, when a task waited and got a CPU.
fn waits_and_starts(all: &str, tid: Tid) -> Vec<&str> {
    let facts = [format!("started {tid} "), format!("waited {tid} ")];
    all.split("; ").filter(|fact| facts.iter().any(|start| fact.starts_with(start))).collect()
}

/// The metadata of a complete trace from 0 on, of a CPU that runs task 1.
fn whole() -> Meta {
    Meta { span: Some((0, 0)), running: vec![(0, 1)], ..Meta::default() }
}

use TaskState::{Runnable, Sleeping};

#[test]
fn a_switch_ends_a_span_and_begins_another() {
    let events = [woken(2, 0, 2, 0), switch(5, 0, 1, Sleeping, 2)];
    let expected = "woken 2 by Some(1); queued 2 on 0 at 2; cpu0 1 0-5; stopped 1 on 0 at 5 since Some(0); \
                    waited 2 on 0 2-5; started 2 on 0 at 5; cpu0 2 5-9";
    assert_eq!(told(&whole(), &events, 9), expected);
}

#[test]
fn across_a_loss_nobody_knows() {
    let lost = Event { time: 6, cpu: 0, what: Payload::Lost { count: 3 } };
    let events = [woken(2, 0, 2, 0), lost, switch(8, 0, 3, Sleeping, 2)];
    let expected = "woken 2 by Some(1); queued 2 on 0 at 2; cpu0 1 0-2; cpu0 forgotten; vanished 1 from 0 at 2; \
                    cpu0 ? 2-8; stopped 3 on 0 at 8 since None; started 2 on 0 at 8; cpu0 2 8-9";
    assert_eq!(told(&whole(), &events, 9), expected);
}

#[test]
fn an_unseen_switch_is_no_earlier_than_what_the_task_did_before() {
    // 2 runs on CPU 1 until 4, where it goes to sleep; at 7 it is seen leaving CPU 0, which 1 has had since 0.
    let meta = Meta { running: vec![(0, 1), (1, 2)], ..whole() };
    let events = [switch(4, 1, 2, Sleeping, 0), switch(7, 0, 2, Sleeping, 0)];
    let expected = "cpu1 2 0-4; stopped 2 on 1 at 4 since Some(0); vanished 1 from 0 at 4; started 2 on 0 at 4 unseen; \
                    cpu0 1 0-4; cpu0 2 4-7; stopped 2 on 0 at 7 since Some(4); cpu0 idle 7-9; cpu1 idle 4-9";
    assert_eq!(told(&meta, &events, 9), expected);
}

#[test]
fn the_first_switch_says_who_ran_until_then_but_not_while_it_waited() {
    let meta = Meta { running: Vec::new(), ..whole() };
    let events = [woken(3, 0, 2, 0), switch(7, 0, 2, Sleeping, 0)];
    let expected = "woken 2 by None; queued 2 on 0 at 3; cpu0 ? 0-3; cpu0 2 3-7; stopped 2 on 0 at 7 since Some(3); \
                    cpu0 idle 7-9";
    assert_eq!(told(&meta, &events, 9), expected);
}

#[test]
fn a_late_switch_says_nothing_of_the_task() {
    let meta = Meta { running: vec![(0, 1), (1, 0)], ..whole() };
    let events = [switch(4, 1, 0, Runnable, 1), switch(5, 0, 1, Runnable, 0), switch(8, 1, 1, Sleeping, 0)];
    let expected = "cpu1 idle 0-4; started 1 on 1 at 4; cpu0 1 0-5; stopped 1 on 0 at 5 since Some(0) late; \
                    cpu1 1 4-8; stopped 1 on 1 at 8 since Some(4); cpu0 idle 5-9; cpu1 idle 8-9";
    assert_eq!(told(&meta, &events, 9), expected);
}

#[test]
fn a_parent_is_sure_where_it_was_seen_to_run() {
    let fork = |time, cpu| Event { time, cpu, what: Payload::Fork { parent: 1, child: 5 } };
    assert_eq!(told(&whole(), &[fork(1, 0)], 1), "forked 5 by Some(1) true; cpu0 1 0-1");
    assert_eq!(told(&whole(), &[fork(1, 1)], 1), "forked 5 by Some(1) false; cpu0 1 0-1; cpu1 ? 0-1");
}

#[test]
fn a_wake_up_of_a_preempted_task_leaves_it_in_doubt() {
    let events = [switch(2, 0, 1, Runnable, 2), woken(3, 0, 1, 0)];
    let expected = "cpu0 1 0-2; stopped 1 on 0 at 2 since Some(0); queued 1 on 0 at 2; started 2 on 0 at 2; \
                    woken 1 by Some(2); doubted 1 ; cpu0 2 2-9; waited 1 on 0 2-9 and on";
    assert_eq!(told(&whole(), &events, 9), expected);
}

#[test]
fn a_task_that_is_woken_twice_has_run_in_between() {
    let events = [woken(2, 0, 2, 0), woken(6, 0, 2, 0), switch(8, 0, 1, Sleeping, 2)];
    let expected = "woken 2 by Some(1); queued 2 on 0 at 2; doubted 2 ; woken 2 by Some(1); queued 2 on 0 at 6; \
                    cpu0 1 0-8; stopped 1 on 0 at 8 since Some(0); waited 2 on 0 6-8; started 2 on 0 at 8; cpu0 2 8-9";
    assert_eq!(told(&whole(), &events, 9), expected);
}

#[test]
fn a_task_that_is_seen_to_leave_and_is_woken_twice_runs() {
    // 2, which left the CPU before, gets it from the idle task unseen. It is woken when it is about to sleep again.
    let before = [switch(1, 0, 1, Sleeping, 2), switch(2, 0, 2, Sleeping, 0)];
    let events = [&before[..], &[woken(3, 1, 2, 0), woken(6, 1, 2, 0), switch(8, 0, 2, Sleeping, 0)]].concat();
    let expected = "cpu0 1 0-1; stopped 1 on 0 at 1 since Some(0); started 2 on 0 at 1; cpu0 2 1-2; \
                    stopped 2 on 0 at 2 since Some(1); woken 2 by None; queued 2 on 0 at 3; cpu0 misjudged; \
                    doubted 2 ; waited 2 on 0 3-3; started 2 on 0 at 3 unseen; cpu0 idle 2-3; cpu0 2 3-6; \
                    woken 2 by None; cpu0 2 6-8; stopped 2 on 0 at 8 since Some(6); cpu0 idle 8-9; cpu1 ? 0-9";
    assert_eq!(told(&whole(), &events, 9), expected);
}

#[test]
fn an_idle_cpu_that_took_a_task_unseen_had_the_others_before() {
    // 3 and 2 are woken onto the idle CPU 1, and only 2 is seen again. So 4, woken when it is idle again, runs at once.
    let meta = Meta { running: vec![(0, 1), (1, 0)], ..whole() };
    let events = [woken(2, 0, 3, 1), woken(4, 0, 2, 1), switch(6, 1, 2, Sleeping, 0), woken(7, 0, 4, 1)];
    let expected = "woken 3 by Some(1); queued 3 on 1 at 2; woken 2 by Some(1); queued 2 on 1 at 4; cpu1 misjudged; \
                    doubted 2 ; waited 2 on 1 4-4; started 2 on 1 at 4 unseen; doubted 3 ; cpu1 idle 0-4; cpu1 2 4-6; \
                    stopped 2 on 1 at 6 since Some(4); woken 4 by Some(1); queued 4 on 1 at 7; \
                    cpu1 misjudged since 7; waited 4 on 1 7-7; started 4 on 1 at 7 unseen; cpu1 idle 6-7; \
                    cpu1 4 7-9; cpu0 1 0-9; cpu1 4 9-9";
    assert_eq!(told(&meta, &events, 9), expected);
}

#[test]
fn who_waited_when_the_cpu_became_idle_waits_on_when_that_takes_another_task_unseen() {
    // The quota of 3's group is used up, and then that of 2's. 4, woken onto the idle CPU, is not seen to get it.
    let meta = Meta { running: vec![(0, 1), (1, 3)], ..whole() };
    let events = [
        woken(1, 0, 2, 1),
        switch(2, 1, 3, Runnable, 2),
        switch(3, 1, 2, Runnable, 0),
        woken(5, 0, 4, 1),
        switch(7, 1, 4, Sleeping, 0),
        switch(9, 1, 0, Runnable, 3),
    ];
    let all = told(&meta, &events, 12);
    assert!(all.contains("waited 3 on 1 2-9; ") && all.ends_with("waited 2 on 1 3-12 and on"), "{all}");
    assert!(!all.contains("doubted 2") && !all.contains("doubted 3"), "{all}");
}

#[test]
fn an_unseen_switch_from_idle_comes_as_late_as_a_seen_one() {
    // CPU 1 is never seen to leave idle: not at 10 (too early to know), 40, and 60 (2 is gone before it would come).
    let meta = Meta { running: vec![(0, 0), (1, 0)], ..whole() };
    let events = [
        woken(10, 0, 2, 1),
        switch(15, 1, 2, Sleeping, 0),
        woken(20, 0, 3, 0),
        switch(26, 0, 0, Runnable, 3),
        woken(40, 0, 2, 1),
        woken(43, 0, 4, 1),
        switch(50, 1, 2, Sleeping, 4),
        switch(55, 1, 4, Sleeping, 0),
        woken(60, 0, 2, 1),
        switch(64, 1, 2, Sleeping, 0),
        woken(70, 0, 2, 1),
    ];
    let all = told(&meta, &events, 90);
    let expected = [
        "waited 2 on 1 10-10",
        "started 2 on 1 at 10 unseen",
        "waited 2 on 1 40-45",
        "started 2 on 1 at 45 unseen",
        "waited 2 on 1 60-62",
        "started 2 on 1 at 62 unseen",
        "waited 2 on 1 70-76",
        "started 2 on 1 at 76 unseen",
    ];
    assert_eq!(waits_and_starts(&all, 2), expected);
    assert_eq!(waits_and_starts(&all, 4), ["waited 4 on 1 43-50", "started 4 on 1 at 50"]);
    assert!(all.contains("cpu1 idle 15-45; ") && all.contains("cpu1 2 76-90"), "{all}");
}

#[test]
fn a_hidden_switch_shares_the_time_to_the_first_event_as_seen_ones_do() {
    // CPU 0 takes 6 to get task 3, which wakes 4 after 2 more. CPU 1 is never seen to leave idle.
    let meta = Meta { running: vec![(0, 0), (1, 0)], ..whole() };
    let events = [
        woken(10, 0, 2, 1),
        switch(15, 1, 2, Sleeping, 0),
        woken(20, 0, 3, 0),
        switch(26, 0, 0, Runnable, 3),
        asks(28, 0, 3, 4, 1),
        woken(40, 0, 2, 1),
        asks(44, 1, 2, 5, 1),
        switch(55, 1, 2, Sleeping, 0),
        woken(60, 0, 2, 1),
        switch(90, 1, 2, Sleeping, 0),
    ];
    let all = told(&meta, &events, 100);
    let expected =
        ["waited 2 on 1 40-43", "started 2 on 1 at 43 unseen", "waited 2 on 1 60-66", "started 2 on 1 at 66 unseen"];
    assert_eq!(waits_and_starts(&all, 2)[2..], expected);
}

#[test]
fn a_wake_up_that_a_hidden_idle_task_did_for_another_cpu_ends_the_sleep() {
    // CPU 1's idle task is seen at 40: it takes 16 from the waking, and 4 of these from the wake-up. Then it does a
    // wake-up unseen: of a task that sleeps, of one that was about to, and of one that shows by waking another one.
    let meta = Meta { running: vec![(0, 1), (1, 0)], ..whole() };
    let events = [
        woken(5, 0, 2, 1),
        switch(9, 1, 2, Sleeping, 0),
        asks(24, 0, 1, 2, 1),
        woken(36, 1, 2, 1),
        switch(40, 1, 0, Runnable, 2),
        switch(50, 1, 2, Sleeping, 0),
        asks(60, 0, 1, 2, 1),
        switch(100, 1, 2, Sleeping, 0),
        asks(110, 0, 1, 2, 1),
        asks(130, 1, 2, 3, 1),
        asks(135, 0, 1, 2, 1),
        switch(140, 1, 2, Sleeping, 0),
        switch(150, 1, 2, Sleeping, 0),
    ];
    let all = told(&meta, &events, 160);
    let expected = [
        "waited 2 on 1 5-5",
        "started 2 on 1 at 5 unseen",
        "waited 2 on 1 36-40",
        "started 2 on 1 at 40",
        "waited 2 on 1 72-76",
        "started 2 on 1 at 76 unseen",
        "waited 2 on 1 116-120",
        "started 2 on 1 at 120 unseen",
        "waited 2 on 1 141-145",
        "started 2 on 1 at 145 unseen",
    ];
    assert_eq!(waits_and_starts(&all, 2), expected, "{all}");
    assert!(all.contains("cpu1 idle 50-76; ") && all.contains("cpu1 2 76-100; "), "{all}");
    let mut replay = Replay::new(&meta, ());
    replay.events(&events);
    // The first one, when nothing was known of its idle task.
    assert_eq!(replay.tracker.contradictions, 1);
}

#[test]
fn a_task_that_gets_an_idle_cpu_back_without_a_wake_up_had_it_since_nobody_knows_when() {
    // 1 is throttled at 2, and the switch back to it is hidden. When it was woken, the wake-up says when it came.
    let events = [switch(2, 0, 1, Runnable, 0), switch(7, 0, 1, Sleeping, 0), woken(8, 1, 1, 0)];
    let expected = "cpu0 1 0-2; stopped 1 on 0 at 2 since Some(0); queued 1 on 0 at 2; cpu0 misjudged; doubted 1 ; \
                    cpu0 ? 2-7; stopped 1 on 0 at 7 since None; woken 1 by None; queued 1 on 0 at 8; \
                    cpu0 misjudged since 8; waited 1 on 0 8-8; started 1 on 0 at 8 unseen; cpu0 idle 7-8; cpu0 1 8-9; \
                    cpu0 1 9-9; cpu1 ? 0-9";
    assert_eq!(told(&whole(), &events, 9), expected);
    let mut replay = Replay::new(&whole(), ());
    replay.events(&events[..2]);
    assert_eq!((replay.tracker.contradictions, replay.tracker.contradicted), (1, 5));
}

#[test]
fn a_task_that_an_idle_cpu_pulled_has_it_from_then_on() {
    let pulled = Event { time: 4, cpu: 0, what: Payload::Migrate { tid: 2, prio: 120, from: 0, to: 1 } };
    let meta = Meta { running: vec![(0, 2), (1, 0)], ..whole() };
    let all = told(&meta, &[switch(2, 0, 2, Runnable, 1), pulled, switch(7, 1, 2, Sleeping, 0)], 9);
    assert!(all.contains("started 2 on 1 at 4 unseen; cpu1 idle 0-4; cpu1 2 4-7; "), "{all}");
}

#[test]
fn a_switch_to_a_task_that_was_not_woken_does_not_show_that_idle_tasks_are_seen() {
    // The recorder restored the switch at 6. 2 is woken after that, and nobody sees it come.
    let meta = Meta { running: vec![(0, 1), (1, 0)], ..whole() };
    let events = [
        woken(1, 0, 2, 1),
        switch(3, 1, 2, Runnable, 0),
        switch(6, 1, 0, Runnable, 2),
        switch(7, 1, 2, Sleeping, 0),
        woken(8, 0, 2, 1),
    ];
    let all = told(&meta, &events, 9);
    assert!(all.contains("cpu1 idle 3-6; waited 2 on 1 3-6; started 2 on 1 at 6; cpu1 2 6-7; "), "{all}");
    assert!(all.contains("started 2 on 1 at 8 unseen; "), "{all}");
}

#[test]
fn a_task_that_is_not_seen_to_leave_waits_only_if_that_is_seen_to_end() {
    // 2 gets the CPU, and 1 is seen to leave it. So 2 may have run, unseen, after each of its wake-ups.
    let gone = [switch(2, 0, 1, Sleeping, 2), switch(4, 0, 1, Sleeping, 0), waking(5, 0, 2, 0), woken(5, 0, 2, 0)];
    let expected = "cpu0 1 0-2; stopped 1 on 0 at 2 since Some(0); started 2 on 0 at 2; vanished 2 from 0 at 2; \
                    started 1 on 0 at 2 unseen; cpu0 2 2-2; cpu0 1 2-4; stopped 1 on 0 at 4 since Some(2); \
                    woken 2 by None; doubted 2 ; ";
    assert_eq!(told(&whole(), &gone, 9), format!("{expected}cpu0 idle 4-9"));
    let seen = [&gone[..], &[switch(7, 0, 0, Runnable, 2), switch(8, 0, 2, Sleeping, 0), woken(8, 0, 2, 0)]].concat();
    let expected = format!(
        "{expected}cpu0 idle 4-7; waited 2 on 0 5-7; started 2 on 0 at 7; cpu0 2 7-8; \
         stopped 2 on 0 at 8 since Some(7); woken 2 by None; queued 2 on 0 at 8; cpu0 idle 8-9; \
         waited 2 on 0 8-9 and on"
    );
    assert_eq!(told(&whole(), &seen, 9), expected);
}

/// A trace whose target is the task 1; nothing else is recorded if it is partial.
fn of_target(covers: Option<Coverage>) -> Meta {
    Meta {
        target: Some(Target { processes: vec![1], threads: vec![1], ..Target::default() }),
        partial: covers.map(|covers| Partial { covers, only: "process 1".into() }),
        ..Meta::default()
    }
}

#[test]
fn children_of_the_target_belong_to_it_and_reused_ids_do_not() {
    let mut replay = Replay::new(&of_target(None), ());
    let fork = |time, parent, child| Event { time, cpu: 0, what: Payload::Fork { parent, child } };
    let end = |time, tid| switch(time, 0, tid, TaskState::Dead, 0);
    // 1 forks 2, which forks 3; 9 is a stranger and forks 4. Then 3 and 1 end, and new children of 9 get their ids.
    replay.events(&[fork(0, 1, 2), fork(1, 2, 3), fork(2, 9, 4), end(3, 3), end(4, 1), fork(5, 9, 3), fork(6, 9, 1)]);
    let tracker = &replay.tracker;
    let members = |tid: Tid| {
        let lives = tracker.tasks().filter(move |(_, of)| *of == tid);
        lives.map(|(slot, _)| tracker.is_target(slot)).collect::<Vec<_>>()
    };
    assert_eq!(
        [1, 2, 3, 4, 9].map(members),
        [vec![true, false], vec![true], vec![true, false], vec![false], vec![false]]
    );
}

#[test]
fn a_partial_recording_follows_its_target_alone() {
    // 1 gives way to 7, which the recording does not follow: who runs until 1 is back is not recorded.
    let events = [
        woken(0, 0, 1, 0),
        switch(2, 0, 8, Runnable, 1),
        woken(3, 0, 7, 0),
        switch(5, 0, 1, Runnable, 7),
        switch(9, 0, 6, Sleeping, 1),
        switch(12, 0, 1, Sleeping, 0),
    ];
    let meta = of_target(Some(Coverage::Tasks));
    assert_eq!(
        told(&meta, &events, 20),
        "woken 1 by None; queued 1 on 0 at 0; cpu0 ? 0-2; waited 1 on 0 0-2; started 1 on 0 at 2; cpu0 1 2-5; \
         stopped 1 on 0 at 5 since Some(2); queued 1 on 0 at 5; cpu0 ? 5-9; waited 1 on 0 5-9; started 1 on 0 at 9; \
         cpu0 1 9-12; stopped 1 on 0 at 12 since Some(9); cpu0 ? 12-20"
    );
    let mut replay = Replay::new(&meta, ());
    replay.events(&events);
    assert_eq!(replay.tracker.contradictions, 0);
    // 1 leaves the CPU again, and nobody saw it coming: that is said, and its time is not made up.
    replay.events(&[switch(15, 0, 1, Sleeping, 0)]);
    assert_eq!((replay.tracker.contradictions, replay.tracker.contradicted), (1, 3));
    // Events were lost: it is no wonder.
    replay.events(&[Event { time: 16, cpu: 0, what: Payload::Lost { count: 1 } }, switch(18, 0, 1, Sleeping, 0)]);
    assert_eq!(replay.tracker.contradictions, 1);
}

#[test]
fn a_recording_from_inside_shows_tasks_leaving_only() {
    let meta = Meta { target: None, ..of_target(Some(Coverage::Inside)) };
    let events = [switch(5, 0, 1, Runnable, 7), switch(9, 0, 1, Sleeping, 2), switch(11, 0, 2, Sleeping, 1)];
    assert_eq!(
        told(&meta, &events, 20),
        "cpu0 ? 5-5; stopped 1 on 0 at 5 since None; queued 1 on 0 at 5; cpu0 ? 5-9; stopped 1 on 0 at 9 since None; \
         cpu0 ? 9-11; stopped 2 on 0 at 11 since None; started 1 on 0 at 11; cpu0 1 11-20"
    );
}

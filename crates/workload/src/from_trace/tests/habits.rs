//! Messages of tasks that send one in each of their bursts, and pools that take them.

use super::*;

/// Client 1 on CPU 0, woken by a timer every 200 us, asks after 10 us and runs on for 10; server 2 on CPU 1 sleeps and
/// needs 40 us.
fn client_and_server() -> Script {
    let mut s = Script::default();
    s.name(1, "client").name(2, "server").wake(0, 0, 0, 1).wake(0, 1, 0, 2);
    for round in 0..20 {
        let t = round * 200;
        s.wake(t, 0, 0, 1).switch(t, 0, 0, Runnable, 1);
        s.wake(t + 10, 0, 1, 2).switch(t + 10, 1, 0, Runnable, 2);
        s.switch(t + 20, 0, 1, Sleeping, 0).switch(t + 50, 1, 2, Sleeping, 0);
    }
    s
}

/// The client asks, and once more 20 us later, while the server is at work until `end`.
fn asks_twice(s: &mut Script, t: Nanos, end: Nanos) {
    s.wake(t, 0, 0, 1).switch(t, 0, 0, Runnable, 1);
    s.wake(t + 10, 0, 1, 2).switch(t + 10, 1, 0, Runnable, 2).switch(t + 20, 0, 1, Sleeping, 0);
    s.wake(t + 30, 0, 0, 1).switch(t + 30, 0, 0, Runnable, 1).switch(t + 50, 0, 1, Sleeping, 0);
    s.switch(end, 1, 2, Sleeping, 0);
}

#[test]
fn a_client_that_asks_in_each_burst_asks_a_server_that_is_awake_too() {
    let mut s = client_and_server();
    asks_twice(&mut s, 4000, 4090);
    let w = s.model(&Options::default()).unwrap().workload;
    let asks = "20 x sleep 180, run 10, post wake-server-2, run 10; 1 x sleep 10, run 10, post wake-server-2, run 10";
    assert_eq!(told(&w, "client-1").join("; "), format!("1 x run 20; {asks}"));
    assert_eq!(told(&w, "server-2").join("; "), "20 x run 40, wait; 1 x run 40, wait, run 40");
    assert_eq!(stuck(&w), [""; 0]);
}

#[test]
fn a_message_is_not_waited_for_before_it_was_sent() {
    let mut s = client_and_server();
    // The server is at work for 110 us when it is asked once more, 10 us before its end.
    let t = 4000;
    s.wake(t, 0, 0, 1).switch(t, 0, 0, Runnable, 1);
    s.wake(t + 10, 0, 1, 2).switch(t + 10, 1, 0, Runnable, 2).switch(t + 20, 0, 1, Sleeping, 0);
    s.wake(t + 90, 0, 0, 1).switch(t + 90, 0, 0, Runnable, 1).switch(t + 110, 0, 1, Sleeping, 0);
    s.switch(t + 120, 1, 2, Sleeping, 0);
    let w = s.model(&Options::default()).unwrap().workload;
    assert_eq!(told(&w, "server-2").join("; "), "20 x run 40, wait; 1 x run 100, wait, run 10");
    assert_eq!(stuck(&w), [""; 0]);
}

#[test]
fn a_server_that_does_in_one_go_what_it_was_asked_for_twice_waits_for_both() {
    let mut s = client_and_server();
    for round in 0..10 {
        asks_twice(&mut s, 4000 + 200 * round, 4053 + 200 * round);
    }
    let w = s.model(&Options::default()).unwrap().workload;
    // What the client does with the second message ends when the server has done 40 us.
    assert_eq!(
        told(&w, "server-2").join("; "),
        "20 x run 40, wait; 9 x run 40, wait, run 3, wait; 1 x run 40, wait, run 3"
    );
    assert_eq!(stuck(&w), [""; 0]);
}

/// How often a task does this in the workload.
fn count(workload: &Workload, task: &str, is: fn(&Action) -> bool) -> u64 {
    let phases = &workload.tasks.iter().find(|t| t.name == task).expect("the task is in the model").phases;
    phases.iter().map(|p| p.loops.unwrap() * p.events.iter().filter(|step| is(&step.what)).count() as u64).sum()
}

#[test]
fn who_wakes_several_in_one_go_sends_a_message_to_those_that_are_awake_too() {
    // A boss starts a phase every 400 us: it wakes three workers, of which the last one is still awake in each eighth.
    // At 200 a timer wakes the boss for something else, while all of them sleep.
    let mut s = Script::default();
    (1..=4).zip(["boss", "a", "b", "c"]).for_each(|(tid, name)| _ = s.name(tid, name));
    s.switch(0, 0, 0, Runnable, 1);
    (1..4).for_each(|cpu| _ = s.switch(0, cpu, cpu as Tid + 1, Sleeping, 0));
    s.switch(5, 0, 1, Sleeping, 0);
    for round in 0..40 {
        let (t, late) = (round * 400, |round| round % 8 == 7);
        s.wake_in(Context::HardIrq, t + 8, 0, 0, 1).switch(t + 8, 0, 0, Runnable, 1);
        for cpu in (1..4).filter(|cpu| *cpu < 3 || !late(round)) {
            let worker = cpu as Tid + 1;
            s.wake_in(Context::Task, t + 10, 0, 1, worker).switch(t + 10, cpu, 0, Runnable, worker);
        }
        s.switch(t + 20, 0, 1, Sleeping, 0);
        let asleep = (1..4).filter(|cpu| *cpu < 3 || !late(round + 1));
        asleep.for_each(|cpu| _ = s.switch(t + 110, cpu, cpu as Tid + 1, Sleeping, 0));
        s.wake_in(Context::HardIrq, t + 200, 0, 0, 1).switch(t + 200, 0, 0, Runnable, 1);
        s.switch(t + 210, 0, 1, Sleeping, 0);
    }
    let w = s.model(&Options::default()).unwrap().workload;
    assert_eq!(count(&w, "a-2", |what| matches!(what, Action::SemWait(_))), 40);
    assert_eq!(count(&w, "c-4", |what| matches!(what, Action::SemWait(_))), 40);
    assert_eq!(stuck(&w), [""; 0]);
}

#[test]
fn who_answers_a_task_answers_it_while_it_is_awake_too() {
    // A worker sleeps for a lock in the middle of its work, and tells its boss when that is done. In every fourth round
    // the boss is still awake then, and another task wakes it later.
    let mut s = Script::default();
    (1..=3).zip(["boss", "worker", "other"]).for_each(|(tid, name)| _ = s.name(tid, name));
    s.switch(0, 0, 0, Runnable, 1).switch(0, 1, 2, Sleeping, 0).switch(0, 2, 0, Runnable, 3);
    for round in 0..40 {
        let (t, late) = (round * 200, round % 4 == 3);
        s.wake_in(Context::Task, t + 10, 0, 1, 2).switch(t + 10, 1, 0, Runnable, 2);
        if !late {
            s.switch(t + 15, 0, 1, Sleeping, 0);
        }
        s.switch(t + 20, 1, 2, Sleeping, 0);
        s.wake_in(Context::HardIrq, t + 40, 1, 0, 2).switch(t + 40, 1, 0, Runnable, 2);
        if !late {
            s.wake_in(Context::Task, t + 60, 1, 2, 1).switch(t + 60, 0, 0, Runnable, 1);
        }
        s.switch(t + 64, 1, 2, Sleeping, 0);
        if late {
            s.switch(t + 66, 0, 1, Sleeping, 0);
            s.wake_in(Context::Task, t + 70, 2, 3, 1).switch(t + 70, 0, 0, Runnable, 1);
        }
    }
    s.switch(8_000, 0, 1, Sleeping, 0).switch(8_000, 2, 3, Sleeping, 0);
    let w = s.model(&Options::default()).unwrap().workload;
    let answers = |what: &Action| matches!(what, Action::SemPost(name) if name == "wake-boss-1");
    assert_eq!(count(&w, "worker-2", answers), 40);
    assert_eq!(count(&w, "other-3", answers), 10);
    assert_eq!(stuck(&w), [""; 0]);
}

/// What clients do when they have asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Sleep,
    AwaitTheAnswer,
    Either,
}

/// Clients that ask servers, which take from one queue, on CPUs where whoever is ready longest runs next.
struct Shop {
    rng: Rng,
    script: Script,
    clients: Tid,
    then: Then,
    now: Nanos,
    /// Who runs where, and until when; who is ready; who sleeps until when; servers that wait; what was asked by whom.
    running: Vec<Option<(Tid, Nanos)>>,
    ready: Vec<Tid>,
    timers: Vec<(Nanos, Tid)>,
    idle: Vec<Tid>,
    queue: Vec<Tid>,
    /// Whom the server answers, by server.
    serves: BTreeMap<Tid, Tid>,
}

impl Shop {
    fn new(seed: u64, clients: Tid, servers: Tid, cpus: usize, then: Then) -> Self {
        let mut rng = Rng::new(seed);
        let mut script = Script::default();
        (1..=clients).for_each(|tid| _ = script.name(tid, "client"));
        (clients + 1..=clients + servers).for_each(|tid| _ = script.name(tid, "server"));
        let timers = (1..=clients).map(|tid| (rng.below(500), tid)).collect();
        let idle = (clients + 1..=clients + servers).collect();
        let running = vec![None; cpus];
        let (ready, queue, serves) = (Vec::new(), Vec::new(), BTreeMap::new());
        Self { rng, script, clients, then, now: 0, running, ready, timers, idle, queue, serves }
    }

    fn wake(&mut self, cpu: CpuId, waker: Tid, tid: Tid) {
        self.script.wake(self.now, cpu, waker, tid);
        self.ready.push(tid);
    }

    /// The task on a CPU has done its work: it goes on, or the state in which it leaves.
    fn done(&mut self, cpu: CpuId, tid: Tid) -> Option<TaskState> {
        if tid <= self.clients {
            match self.idle.is_empty() {
                true => self.queue.push(tid),
                false => {
                    let server = self.idle.remove(0);
                    self.serves.insert(server, tid);
                    self.wake(cpu, tid, server);
                }
            }
            let awaits = self.then == Then::AwaitTheAnswer || self.then == Then::Either && tid % 2 == 0;
            if !awaits {
                self.timers.push((self.now + 1 + self.rng.below(300), tid));
            }
            return Some(Sleeping);
        }
        let client = self.serves[&tid];
        if self.then == Then::AwaitTheAnswer || self.then == Then::Either && client % 2 == 0 {
            self.wake(cpu, tid, client);
        }
        if self.queue.is_empty() {
            self.idle.push(tid);
            return Some(Sleeping);
        }
        self.serves.insert(tid, self.queue.remove(0));
        None
    }

    /// Whatever is due.
    fn step(&mut self) {
        self.now += 1 + self.rng.below(3);
        let (due, later) = self.timers.iter().partition(|(at, _)| *at <= self.now);
        self.timers = later;
        due.into_iter().for_each(|(_, tid): (Nanos, Tid)| self.wake(0, 0, tid));
        for cpu in 0..self.running.len() {
            let work = |tid, rng: &mut Rng, clients| if tid <= clients { 5 } else { 20 + rng.below(20) };
            let left = match self.running[cpu] {
                Some((_, until)) if until > self.now => continue,
                Some((tid, _)) => match self.done(cpu as CpuId, tid) {
                    Some(state) => Some((tid, state)),
                    None => {
                        self.running[cpu] = Some((tid, self.now + work(tid, &mut self.rng, self.clients)));
                        continue;
                    }
                },
                None => None,
            };
            let next = if self.ready.is_empty() { 0 } else { self.ready.remove(0) };
            if left.is_some() || next != 0 {
                let (tid, state) = left.unwrap_or((0, Runnable));
                self.script.switch(self.now, cpu as CpuId, tid, state, next);
            }
            let until = self.now + work(next, &mut self.rng, self.clients);
            self.running[cpu] = (next != 0).then_some((next, until));
        }
    }
}

/// The queues of a workload.
pub(super) fn queues(workload: &Workload) -> Vec<String> {
    let steps = workload.tasks.iter().flat_map(|task| task.phases.iter().flat_map(|phase| &phase.events));
    let queue = |step: &Step| match &step.what {
        Action::SemWait(name) if name.starts_with("queue-") => Some(name.clone()),
        _ => None,
    };
    steps.filter_map(queue).collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

#[test]
fn servers_that_take_from_one_queue_do_so_in_the_model() {
    let mut shop = Shop::new(1, 4, 2, 2, Then::Sleep);
    (0..20_000).for_each(|_| shop.step());
    let w = shop.script.model(&Options::default()).unwrap().workload;
    assert_eq!(queues(&w), ["queue-server-5"]);
    assert_eq!(stuck(&w), [""; 0]);
}

#[test]
fn servers_whose_clients_wait_for_answers_answer_whom_they_have_taken_a_question_from() {
    for (clients, servers, cpus) in [(4, 2, 2), (6, 3, 2), (3, 2, 4)] {
        let mut shop = Shop::new(1, clients, servers, cpus, Then::AwaitTheAnswer);
        (0..20_000).for_each(|_| shop.step());
        let w = shop.script.model(&Options::default()).unwrap().workload;
        assert_eq!(queues(&w), [format!("queue-server-{}", clients + 1)]);
        let all = |is: fn(&Action) -> bool| w.tasks.iter().map(|task| count(&w, &task.name, is)).sum::<u64>();
        let asked = all(|what| matches!(what, Action::Ask(_)));
        assert!(asked > 500, "{asked}");
        assert_eq!(all(|what| matches!(what, Action::Answer(_))), asked);
        assert_eq!(all(|what| matches!(what, Action::SemWait(name) if name.starts_with("queue-"))), asked);
        let awaited = all(|what| matches!(what, Action::Await));
        assert!((asked - 6..=asked).contains(&awaited), "{awaited} of {asked}");
        assert_eq!(stuck(&w), [""; 0]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn nothing_deadlocks_behind_a_queue(
        seed in any::<u64>(), clients in 1i32..8, servers in 1i32..5, cpus in 1usize..5, steps in 100u64..8_000,
        then in prop_oneof![Just(Then::Sleep), Just(Then::AwaitTheAnswer), Just(Then::Either)],
        most_events in prop_oneof![Just(200usize), Just(5_000), Just(1_000_000)], hidden in 0u64..30,
    ) {
        let mut shop = Shop::new(seed, clients, servers, cpus, then);
        (0..steps).for_each(|_| shop.step());
        let mut rng = Rng::new(seed);
        let seen = |event: &Event| !matches!(event.what, Payload::Switch { .. }) || hidden < 3 || rng.below(hidden) > 0;
        shop.script.events.retain(seen);
        if let Ok(model) = shop.script.model(&Options { most_events, ..Options::default() }) {
            prop_assert_eq!(stuck(&model.workload), Vec::<String>::new());
        }
    }
}

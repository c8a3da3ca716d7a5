//! Parents that wait for their children, and those that do not.

use super::*;

/// A parent, 1, on CPU 0, and its children on the other CPUs.
struct Family {
    script: Script,
    children: Tid,
}

impl Family {
    fn new() -> Self {
        let mut script = Script::default();
        script.name(1, "parent").name(9, "other").switch(0, 0, 0, Runnable, 1);
        Self { script, children: 10 }
    }

    /// The parent forks a child, which gets this CPU.
    fn fork(&mut self, us: Nanos, cpu: CpuId) -> Tid {
        self.children += 1;
        let child = self.children;
        self.script.name(child, "child").at(us, 0, Payload::Fork { parent: 1, child });
        self.script.at(us, 0, Payload::WakeupNew { tid: child, prio: 120, target: cpu });
        self.script.switch(us + 1, cpu, 0, Runnable, child);
        child
    }

    fn sleep(&mut self, us: Nanos) {
        self.script.switch(us, 0, 1, Sleeping, 0);
    }

    /// Something wakes the parent: 0 is an interrupt.
    fn wake(&mut self, us: Nanos, cpu: CpuId, by: Tid) {
        let waking = Payload::Waking { tid: 1, prio: 120, target: 0, waker: by, context: Context::Task };
        self.script.at(us, cpu, waking).at(us, cpu, Payload::Wakeup { tid: 1, prio: 120, target: 0 });
        self.script.switch(us + 1, 0, 0, Runnable, 1);
    }

    /// A child ends, and wakes the parent if that sleeps.
    fn end(&mut self, us: Nanos, cpu: CpuId, child: Tid, wakes: bool) {
        self.script.at(us, cpu, Payload::Exit { tid: child, prio: 120 });
        if wakes {
            self.wake(us, cpu, child);
        }
        self.script.switch(us + 2, cpu, child, Dead, 0);
    }

    fn model(&self) -> Workload {
        let workload = self.script.model(&Options::default()).unwrap().workload;
        assert_eq!(stuck(&workload), [""; 0]);
        workload
    }
}

/// At most how many children of a parent are alive if it goes as far ahead of them as it can.
fn most_alive(workload: &Workload, parent: &str) -> usize {
    let task = |name: &str| workload.tasks.iter().find(|task| task.name == name).expect("a task");
    let steps = |name: &str| task(name).phases.iter().flat_map(|p| (0..p.loops.unwrap()).flat_map(|_| &p.events));
    let semaphore = format!("join-{parent}");
    let mut children: Vec<&str> = Vec::new();
    let (mut ended, mut most) = (0, 0);
    for step in steps(parent) {
        match &step.what {
            Action::Fork(child) => children.push(child),
            Action::SemWait(name) if *name == semaphore => ended += 1,
            _ => {}
        }
        most = most.max(children.len() - ended);
    }
    let posts = |child: &&&str| steps(child).any(|step| step.what == Action::SemPost(semaphore.clone()));
    assert!(ended == 0 || children.iter().filter(posts).count() >= ended);
    most
}

/// How often the parent waits after the fork of a child.
fn waits_after(workload: &Workload, child: &str) -> usize {
    let parent = workload.tasks.iter().find(|task| task.name == "parent-1").expect("a parent");
    let steps = parent.phases.iter().flat_map(|p| (0..p.loops.unwrap()).flat_map(|_| &p.events));
    let after = steps.skip_while(|step| step.what != Action::Fork(child.to_owned()));
    after.filter(|step| matches!(step.what, Action::SemWait(_))).count()
}

/// Whether the model's parent waits for children.
fn joins(workload: &Workload) -> bool {
    crate::write(workload).contains("join-parent-1")
}

#[test]
fn a_parent_that_keeps_three_children_alive_does_so_in_the_model() {
    let mut f = Family::new();
    let mut alive: Vec<Tid> = (0..3).map(|n| f.fork(100 + 10 * n, 1 + n as CpuId)).collect();
    for round in 0..12 {
        let (t, cpu) = (1000 * (round + 1), 1 + round as CpuId % 3);
        let child = alive.remove(0);
        if round % 3 == 0 {
            // It is still awake when the child ends.
            f.end(t + 5, cpu, child, false);
        } else {
            f.sleep(t);
            f.end(t + 500, cpu, child, true);
        }
        alive.push(f.fork(t + 600, cpu));
    }
    f.script.switch(20_000, 0, 1, Dead, 0);
    let w = f.model();
    assert_eq!(most_alive(&w, "parent-1"), 3);
    // The first ended while the parent was awake. The second woke it 2 us before its end, and does so at its end.
    assert_eq!(told(&w, "child-11"), ["1 x run 906, post join-parent-1"]);
    assert_eq!(told(&w, "child-12"), ["1 x run 2391, post join-parent-1, post wake-parent-1"]);
}

#[test]
fn a_parent_that_waits_for_all_children_does_so_in_the_model() {
    let mut f = Family::new();
    for round in 0..5 {
        let t = 1000 * round;
        let children = [1, 2, 3].map(|cpu| f.fork(t + 100 + 10 * cpu, cpu as CpuId));
        // The first ends while the parent is awake, the second while it sleeps, and wakes it; so does the third.
        f.end(t + 140, 1, children[0], false);
        f.sleep(t + 150);
        f.end(t + 400, 2, children[1], true);
        f.sleep(t + 450);
        f.end(t + 600, 3, children[2], true);
    }
    f.script.switch(6_000, 0, 1, Dead, 0);
    let w = f.model();
    assert_eq!(most_alive(&w, "parent-1"), 3);
    // It was woken twice, and knows of three ends: before the last three forks, and at last.
    assert_eq!(waits_after(&w, "child-22"), (2 + 3) + (2 + 3));
}

#[test]
fn a_parent_that_forks_at_times_does_not_wait_for_children() {
    let mut f = Family::new();
    for round in 0..20 {
        let t = 1000 * round;
        let child = f.fork(t + 100, 1);
        f.sleep(t + 150);
        f.end(t + 400 + 10 * round, 1, child, false);
        f.wake(t + 1000, 0, 0);
    }
    assert!(!joins(&f.model()));
}

#[test]
fn a_parent_that_is_asked_to_fork_does_not_wait_for_children_that_wake_it() {
    let mut f = Family::new();
    f.script.switch(1, 2, 0, Runnable, 9);
    for round in 0..20 {
        let t = 1000 * round;
        let child = f.fork(t + 100, 1);
        f.sleep(t + 150);
        f.end(t + 400, 1, child, true);
        f.sleep(t + 420);
        f.wake(t + 1000, 2, 9);
    }
    assert!(!joins(&f.model()));
}

/// A parent forks a child every ms, when another on CPU 3 has ended, for which it waits. The child lives for 1.4 ms.
/// `wakes`: the parent wakes at its end too, and sleeps again.
fn forks_by_the_clock(wakes: bool) -> Workload {
    let mut f = Family::new();
    let mut before = f.fork(50, 2);
    for round in 0..20 {
        let (t, cpu) = (1000 * round, 1 + round as CpuId % 2);
        let child = f.fork(t + 100, cpu);
        let clock = f.fork(t + 120, 3);
        f.sleep(t + 150);
        f.end(t + 500, 3 - cpu, std::mem::replace(&mut before, child), wakes);
        if wakes {
            f.sleep(t + 520);
        }
        f.end(t + 1000, 3, clock, true);
    }
    f.model()
}

#[test]
fn a_parent_that_waits_for_one_certain_child_does_not_wait_for_the_others() {
    assert!(!joins(&forks_by_the_clock(true)));
    assert!(!joins(&forks_by_the_clock(false)));
}

#[test]
fn a_parent_that_forks_one_after_the_other_waits_where_it_waited() {
    let mut f = Family::new();
    // The first ends before the last is forked, and then it waits for all.
    let children: Vec<Tid> = (0..6).map(|n| f.fork(100 * (n + 1), 1 + n as CpuId)).collect();
    f.end(350, 1, children[0], false);
    f.sleep(700);
    for (n, child) in children.iter().enumerate().skip(1) {
        let t = 700 + 100 * n as Nanos;
        f.end(t, 1 + n as CpuId, *child, true);
        if n < 5 {
            f.sleep(t + 10);
        }
    }
    f.script.switch(1_400, 0, 1, Dead, 0);
    let w = f.model();
    assert_eq!((waits_after(&w, "child-11"), waits_after(&w, "child-16")), (5 + 6, 5 + 6));
}

#[test]
fn a_child_that_wakes_its_parent_and_goes_on_has_not_ended() {
    let mut f = Family::new();
    for round in 0..20 {
        let t = 2000 * round;
        // The parent waits until the child has begun, and then for a time.
        let child = f.fork(t + 100, 1);
        f.sleep(t + 150);
        f.wake(t + 200, 1, child);
        f.sleep(t + 250);
        f.end(t + 900, 1, child, false);
        f.wake(t + 2000, 0, 0);
    }
    assert!(!joins(&f.model()));
}

#[test]
fn a_parent_whose_children_were_left_out_does_not_wait_for_them() {
    let mut f = Family::new();
    for round in 0..10 {
        let t = 1000 * round;
        let child = f.fork(t + 100, 1);
        f.sleep(t + 150);
        f.end(t + 400, 1, child, true);
    }
    f.script.switch(60_000, 0, 1, Dead, 0);
    assert!(joins(&f.model()));
    let w = f.script.model(&Options { tasks: Some(1), ..Options::default() }).unwrap().workload;
    assert!(!joins(&w));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_deadlocks_behind_children(
        seed in any::<u64>(), steps in 100u64..3_000, cpus in 2u32..5, hidden in 0u64..40,
        most_events in prop_oneof![Just(100usize), Just(2_000), Just(1_000_000)],
        memory in prop_oneof![Just(500usize), Just(1_000_000)],
    ) {
        let mut events = forest(seed, steps, cpus);
        let mut rng = Rng::new(seed);
        events.retain(|event| !matches!(event.what, Payload::Switch { .. }) || hidden < 3 || rng.below(hidden) > 0);
        let meta = Meta { span: Some((0, 0)), ..Meta::default() };
        let mut builder = ModelBuilder::with_bound(&meta, Part::default(), memory);
        builder.events(&events);
        if let Ok(model) = builder.finish(&Options { most_events, ..Options::default() }) {
            prop_assert_eq!(stuck(&model.workload), Vec::<String>::new());
        }
    }
}

/// Tasks that fork others, sleep, wake each other, and end, at random. Ends wake the parent if it sleeps.
fn forest(seed: u64, steps: u64, cpus: u32) -> Vec<Event> {
    let mut rng = Rng::new(seed);
    let mut s = Script::default();
    let mut running: Vec<Tid> = vec![0; cpus as usize];
    let (mut ready, mut asleep, mut parents): (Vec<Tid>, Vec<Tid>, BTreeMap<Tid, Tid>) =
        (vec![1, 2], vec![], [].into());
    let (mut now, mut tasks) = (0, 2);
    for _ in 0..steps {
        now += 1 + rng.below(60);
        let cpu = rng.below(cpus.into()) as CpuId;
        let on = running[cpu as usize];
        let next = |rng: &mut Rng, ready: &mut Vec<Tid>| match ready.len() {
            0 => 0,
            many => ready.swap_remove(rng.below(many as u64) as usize),
        };
        let wake = |s: &mut Script, ready: &mut Vec<Tid>, asleep: &mut Vec<Tid>, tid: Tid| {
            asleep.retain(|asleep| *asleep != tid);
            ready.push(tid);
            s.wake_in(Context::Task, now, cpu, on, tid);
        };
        let state = match rng.below(8) {
            0 if on != 0 && tasks < 60 => {
                tasks += 1;
                parents.insert(tasks, on);
                ready.push(tasks);
                s.at(now, cpu, Payload::Fork { parent: on, child: tasks });
                s.at(now, cpu, Payload::WakeupNew { tid: tasks, prio: 120, target: cpu });
                continue;
            }
            1 if !asleep.is_empty() => {
                let tid = asleep[rng.below(asleep.len() as u64) as usize];
                wake(&mut s, &mut ready, &mut asleep, tid);
                continue;
            }
            2 if on > 2 => {
                let parent = parents[&on];
                if asleep.contains(&parent) {
                    wake(&mut s, &mut ready, &mut asleep, parent);
                }
                Dead
            }
            3 => Runnable,
            _ => Sleeping,
        };
        match state {
            Sleeping if on != 0 => asleep.push(on),
            Runnable if on != 0 => ready.push(on),
            _ => {}
        }
        let after = next(&mut rng, &mut ready);
        s.switch(now + 1, cpu, on, state, after);
        running[cpu as usize] = after;
    }
    s.events
}

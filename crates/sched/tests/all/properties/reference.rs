//! CFS and EEVDF against a naive reference: the algorithms implemented again from their description, with plain lists
//! that are sorted at each pick, integers of 128 bits, every tick taken, and a single CPU's queue. The reference is fed
//! the wake-ups, forks and sleeps of a simulated run, and at each decision it must choose the task that the scheduler
//! chose: a switch where the scheduler switched, and no other task where it did not. Nice levels, sleepers, forks,
//! changes of nice levels and custom slices are covered; groups, policies, yields and several CPUs are not.

use crate::support::naive::{Cfs, Eevdf, Reference};
use crate::support::{MS, bare, exactly, forever, simulate, threads};
use proptest::prelude::*;
use schedlab_base::{Nanos, Payload, TaskState};
use schedlab_sim::program::{Load, Op, Setting, TaskSpec};

/// After how much CPU time a task changes its nice level, and to which level.
type Change = Option<(i128, i8)>;

/// Feeds the reference and compares its choices; returns how many there were.
fn compare(reference: &mut dyn Reference, load: &Load, kernel: &str, tick: i128, until: Nanos) -> Result<u32, String> {
    let accounts = simulate(kernel, &bare("up"), load, &[], until);
    let mut feed = Feed {
        reference,
        load,
        tick,
        next_tick: tick,
        now: 0,
        decisions: 0,
        curr: None,
        since: 0,
        ran: Vec::new(),
        changes: Vec::new(),
        parents: Vec::new(),
        nices: Vec::new(),
    };
    for event in &accounts.events {
        feed.go_to(i128::from(event.time))?;
        feed.event(event.what)?;
    }
    Ok(feed.decisions)
}

/// Feeds the reference.
struct Feed<'a> {
    reference: &'a mut dyn Reference,
    load: &'a Load,
    tick: i128,
    next_tick: i128,
    now: i128,
    decisions: u32,
    /// The running task; `since` is when it began to run.
    curr: Option<usize>,
    since: i128,
    /// For each task: how long it has run, its next change, its parent and its nice level.
    ran: Vec<i128>,
    changes: Vec<Change>,
    parents: Vec<Option<usize>>,
    nices: Vec<i8>,
}

impl Feed<'_> {
    /// Applies ticks and changes of nice levels up to the next event. None of them caused a switch.
    fn go_to(&mut self, time: i128) -> Result<(), String> {
        loop {
            let at = |p: usize| self.changes[p].map(|(at, _)| self.since + at - self.ran[p]);
            let change = self.curr.and_then(at).filter(|at| *at <= time);
            let due = change.unwrap_or(i128::MAX).min(self.next_tick);
            if due > time.max(self.now) || (due > time) {
                break;
            }
            if due > self.now {
                self.settle()?;
            }
            self.now = due;
            if due == self.next_tick {
                self.reference.ticks(self.now);
                self.next_tick += self.tick;
            } else if let Some(p) = self.curr {
                let (_, nice) = self.changes[p].take().expect("a change");
                // Setting the present value has no effect.
                if self.nices[p] != nice {
                    self.nices[p] = nice;
                    self.reference.changes(self.now, nice);
                }
            }
        }
        if time > self.now {
            self.settle()?;
        }
        self.now = time;
        Ok(())
    }

    fn event(&mut self, what: Payload) -> Result<(), String> {
        match what {
            Payload::Fork { parent, child } => {
                let p = child as usize - 1;
                self.parents.resize(self.parents.len().max(p + 1), None);
                self.parents[p] = (parent as usize).checked_sub(1);
            }
            Payload::WakeupNew { tid, .. } => self.new_task(tid as usize - 1),
            Payload::Wakeup { tid, .. } => self.reference.wakes(self.now, tid as usize - 1),
            Payload::Switch { prev, prev_state, next, .. } => {
                self.switch((prev as usize).checked_sub(1), prev_state, (next as usize).checked_sub(1))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn new_task(&mut self, p: usize) {
        let spec = self.load.tasks.get(p).unwrap_or_else(|| &self.load.templates[0]);
        self.ran.resize(self.ran.len().max(p + 1), 0);
        self.changes.resize(self.changes.len().max(p + 1), None);
        self.changes[p] = change_of(spec, self.load);
        let parent = self.parents.get(p).copied().flatten();
        self.nices.resize(self.nices.len().max(p + 1), 0);
        self.nices[p] = spec.initial.nice.unwrap_or_else(|| parent.map_or(0, |q| self.nices[q]));
        let slice = spec.initial.dl.map(|(slice, ..)| i128::from(slice));
        self.reference.new_task(self.now, p, self.nices[p], slice, parent);
    }

    fn switch(&mut self, prev: Option<usize>, prev_state: TaskState, next: Option<usize>) -> Result<(), String> {
        let now = self.now;
        if let Some(p) = prev {
            self.ran[p] += now - self.since;
            if prev_state != TaskState::Runnable {
                self.reference.sleeps(now, prev_state == TaskState::Dead);
            }
        }
        if !self.reference.wants() {
            return Err(format!("at {now}: a switch to {next:?} that the reference does not ask for"));
        }
        let ours = self.reference.picks(now);
        self.decisions += 1;
        if ours != next {
            return Err(format!("at {now}: {next:?} was chosen, the reference has {ours:?}"));
        }
        (self.curr, self.since) = (next, now);
        Ok(())
    }

    /// Ends an instant without a switch: if the reference wants to choose, it must choose the running task.
    fn settle(&mut self) -> Result<(), String> {
        if !self.reference.wants() {
            return Ok(());
        }
        self.decisions += 1;
        let (now, curr) = (self.now, self.curr);
        let ours = self.reference.picks(now);
        if ours == curr { Ok(()) } else { Err(format!("at {now}: {curr:?} went on, the reference has {ours:?}")) }
    }
}

/// Returns what a program sets after how much work. Only its first `Set` counts, and it must not loop before that.
fn change_of(spec: &TaskSpec, load: &Load) -> Change {
    let mut ran = 0;
    for op in &spec.program {
        match op {
            Op::Run(amount) => ran += i128::from(amount.mean),
            Op::Set(i) => return load.settings[*i as usize].nice.map(|nice| (ran, nice)),
            _ => {}
        }
    }
    None
}

/// Hogs, sleepers, tasks that change their nice level, and one that forks. All times are odd, so at most two things
/// coincide by accident.
fn loads() -> impl Strategy<Value = Load> {
    let odd = |range: std::ops::Range<u64>| range.prop_map(|ns| ns * 2 + 1);
    let sleeper = (-20i8..20, odd(10_000..4_000_000), odd(10_000..10_000_000)).prop_map(|(nice, run, sleep)| {
        forever("sleeper", nice, vec![Op::Run(exactly(run)), Op::Sleep(exactly(sleep))])
    });
    let hog = (-20i8..20, odd(100_000_000..500_000_000))
        .prop_map(|(nice, run)| forever("hog", nice, vec![Op::Run(exactly(run))]));
    let changer = (-20i8..20, odd(1_000_000..60_000_000), 0u32..3).prop_map(|(nice, run, i)| {
        let mut spec = forever("changer", nice, vec![]);
        spec.program = vec![Op::Run(exactly(run)), Op::Set(i), Op::Run(exactly(1_000_000_000_000))];
        spec
    });
    let task = prop_oneof![2 => hog, 4 => sleeper, 2 => changer];
    let forks = proptest::option::of((odd(1_000_000..40_000_000), odd(100_000..20_000_000)));
    (proptest::collection::vec(task, 1..10), forks, proptest::array::uniform3(-20i8..20)).prop_map(
        |(mut tasks, forks, nices)| {
            let mut templates = vec![TaskSpec { name: "child".into(), ..TaskSpec::default() }];
            if let Some((before, own)) = forks {
                templates[0].program = vec![Op::Run(exactly(own))];
                let mut spec = forever("forker", 0, vec![]);
                spec.program = vec![Op::Run(exactly(before)), Op::Fork(0), Op::Run(exactly(before + 2)), Op::Fork(0)];
                tasks.push(spec);
            }
            let settings = nices.map(|nice| Setting { nice: Some(nice), ..Setting::default() }).to_vec();
            Load { templates, settings, ..threads(tasks) }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn cfs_of_2_6_32_chooses_as_the_reference(load in loads()) {
        let done = compare(&mut Cfs::new(true), &load, "linux-2.6.32", 1_000_000, 500 * MS);
        prop_assert!(done.is_ok(), "{done:?}");
    }

    #[test]
    fn cfs_of_6_1_chooses_as_the_reference(load in loads()) {
        let done = compare(&mut Cfs::new(false), &load, "linux-6.1", 4_000_000, 500 * MS);
        prop_assert!(done.is_ok(), "{done:?}");
    }

    #[test]
    fn eevdf_of_6_12_chooses_as_the_reference(load in loads()) {
        let done = compare(&mut Eevdf::default(), &load, "linux-6.12", 4_000_000, 500 * MS);
        prop_assert!(done.is_ok(), "{done:?}");
    }

    #[test]
    fn eevdf_of_6_18_chooses_as_the_reference(load in loads()) {
        let done = compare(&mut Eevdf::of_6_18(), &load, "linux-6.18", 4_000_000, 500 * MS);
        prop_assert!(done.is_ok(), "{done:?}");
    }

    #[test]
    fn slices_of_their_own_change_nothing_of_that(
        load in loads(),
        slices in proptest::array::uniform8(proptest::option::of(100_000u64..10_000_000)),
    ) {
        let mut load = load;
        for (task, slice) in load.tasks.iter_mut().filter(|task| task.name != "forker").zip(slices) {
            task.initial.dl = slice.map(|slice| (slice, 0, 0));
        }
        let done = compare(&mut Eevdf::default(), &load, "linux-6.12", 4_000_000, 500 * MS);
        prop_assert!(done.is_ok(), "{done:?}");
        let done = compare(&mut Eevdf::of_6_18(), &load, "linux-6.18", 4_000_000, 500 * MS);
        prop_assert!(done.is_ok(), "{done:?}");
    }
}

/// Checks that the comparison covers many decisions.
#[test]
fn many_decisions_are_compared() {
    let nap = |nice, run, sleep| forever("nap", nice, vec![Op::Run(exactly(run)), Op::Sleep(exactly(sleep))]);
    let load = threads(vec![
        nap(0, 1_300_001, 3_100_003),
        nap(5, 2_000_001, 900_007),
        nap(-3, 700_003, 5_000_011),
        nap(0, 9_000_001, 1_000_003),
    ]);
    for (kernel, tick) in [("linux-2.6.32", MS), ("linux-6.1", 4 * MS), ("linux-6.12", 4 * MS), ("linux-6.18", 4 * MS)]
    {
        let mut reference: Box<dyn Reference> = match kernel {
            "linux-6.12" => Box::new(Eevdf::default()),
            "linux-6.18" => Box::new(Eevdf::of_6_18()),
            _ => Box::new(Cfs::new(kernel == "linux-2.6.32")),
        };
        let decisions = compare(&mut *reference, &load, kernel, i128::from(tick), 5_000 * MS).expect(kernel);
        assert!(decisions > 2_000, "{kernel}: {decisions}");
    }
}

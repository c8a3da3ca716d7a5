//! Runs a model without any time, to see whether its tasks come to their ends.

use crate::{Action, Step, Workload};
use schedlab_base::Rng;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Runs the workload without any time, in several orders: the tasks that did not come to their end in one of them.
pub(super) fn stuck(workload: &Workload) -> Vec<String> {
    (0..4).map(|seed| stuck_in_an_order(workload, seed)).find(|stuck| !stuck.is_empty()).unwrap_or_default()
}

/// What tasks have told each other.
#[derive(Default)]
struct Told<'a> {
    /// By semaphore, and by the task that is to be answered.
    posts: BTreeMap<&'a str, u64>,
    answers: BTreeMap<&'a str, u64>,
    /// Who asked, by semaphore; and whose questions a task has taken and not answered.
    askers: BTreeMap<&'a str, VecDeque<&'a str>>,
    taken: BTreeMap<&'a str, VecDeque<&'a str>>,
    /// The mutexes that are held.
    held: BTreeSet<&'a str>,
}

impl<'a> Told<'a> {
    /// The task does this; `false` if it has to wait for others.
    fn goes_on(&mut self, name: &'a str, what: &'a Action) -> bool {
        let take = |count: Option<&mut u64>| count.filter(|n| **n > 0).map(|n| *n -= 1).is_some();
        match what {
            Action::SemPost(s) => *self.posts.entry(s).or_default() += 1,
            Action::Ask(s) => {
                *self.posts.entry(s).or_default() += 1;
                self.askers.entry(s).or_default().push_back(name);
            }
            Action::SemWait(s) => {
                let asker = self.askers.entry(s).or_default();
                if !take(self.posts.get_mut(s.as_str())) {
                    return false;
                }
                self.taken.entry(name).or_default().extend(asker.pop_front());
            }
            Action::Answer(_) => {
                let asker = self.taken.entry(name).or_default().pop_front();
                asker.into_iter().for_each(|asker| *self.answers.entry(asker).or_default() += 1);
            }
            Action::Lock(mutex) => return self.held.insert(mutex),
            Action::Unlock(mutex) => _ = self.held.remove(mutex.as_str()),
            Action::Await => return take(self.answers.get_mut(name)),
            _ => {}
        }
        true
    }
}

/// The tasks take turns of random lengths; where `seed` is 0, each goes as far as it can.
fn stuck_in_an_order(workload: &Workload, seed: u64) -> Vec<String> {
    struct Walk<'a> {
        steps: Vec<&'a Step>,
        at: usize,
        alive: bool,
    }
    let mut rng = Rng::new(seed);
    let mut walks: BTreeMap<&str, Walk> = BTreeMap::new();
    for task in &workload.tasks {
        let rounds = task.phases.iter().flat_map(|p| (0..p.loops.unwrap_or(0)).flat_map(|_| &p.events));
        walks.insert(&task.name, Walk { steps: rounds.collect(), at: 0, alive: task.instances > 0 });
    }
    let mut jobs: BTreeMap<&str, VecDeque<Vec<&Step>>> = BTreeMap::new();
    for name in
        workload.steps().filter_map(|(_, _, step)| if let Action::Jobs(name) = &step.what { Some(name) } else { None })
    {
        let list = workload.tasks.iter().find(|task| task.name == *name).expect("jobs are a task");
        jobs.insert(name, list.phases.iter().map(|job| job.events.iter().collect()).collect());
        walks.remove(name.as_str());
    }
    let mut told = Told::default();
    let names: Vec<&str> = walks.keys().copied().collect();
    let mut moved = true;
    while std::mem::take(&mut moved) {
        for name in &names {
            let mut turn = if seed == 0 { u64::MAX } else { 1 + rng.below(20) };
            while let Some(step) = Some(&walks[name]).filter(|w| w.alive).and_then(|w| w.steps.get(w.at)).copied() {
                if let Action::Fork(child) = &step.what {
                    walks.get_mut(child.as_str()).expect("a child is a task").alive = true;
                } else if let Action::Jobs(list) = &step.what
                    && let Some(job) = jobs.get_mut(list.as_str()).and_then(VecDeque::pop_front)
                {
                    let walk = walks.get_mut(name).expect("known");
                    walk.steps.splice(walk.at..walk.at, job);
                    moved = true;
                    continue;
                } else if !told.goes_on(name, &step.what) {
                    break;
                }
                moved = true;
                walks.get_mut(name).expect("known").at += 1;
                turn -= 1;
                if turn == 0 {
                    break;
                }
            }
        }
    }
    let stuck = walks.iter().filter(|(_, w)| w.at < w.steps.len()).map(|(name, _)| *name);
    stuck.chain(jobs.iter().filter(|(_, left)| !left.is_empty()).map(|(name, _)| *name)).map(str::to_owned).collect()
}

//! Workers that share out jobs.

use super::*;

/// A driver forks workers, each on a CPU of its own, which take jobs from one place and tell a collector of each.
struct Pool {
    script: Script,
    rng: Rng,
    /// When each worker is done with what it is at, and how many jobs it has done.
    workers: Vec<(Nanos, u32)>,
    /// The worker that sleeps until another one is done.
    sleeper: Option<usize>,
    /// Until when the collector is awake.
    collecting: Nanos,
}

const DRIVER: Tid = 1;
const COLLECTOR: Tid = 2;
const FIRST: Tid = 11;

impl Pool {
    fn new(seed: u64, workers: usize) -> Self {
        let mut script = Script::default();
        script.name(DRIVER, "driver").name(COLLECTOR, "collector");
        script.wake(0, 0, 0, DRIVER).switch(0, 0, 0, Runnable, DRIVER);
        for (n, tid) in (0..workers as u32).zip(FIRST..) {
            let (at, cpu) = (100 + Nanos::from(n), 2 + n);
            script.name(tid, &format!("worker-{n}")).at(at, 0, Payload::Fork { parent: DRIVER, child: tid });
            script.at(at, 0, Payload::WakeupNew { tid, prio: 120, target: cpu }).switch(at, cpu, 0, Runnable, tid);
        }
        script.switch(200, 0, DRIVER, Sleeping, 0);
        Self { script, rng: Rng::new(seed), workers: vec![(200, 0); workers], sleeper: None, collecting: 0 }
    }

    fn place(worker: usize) -> (CpuId, Tid) {
        (2 + worker as CpuId, FIRST + worker as Tid)
    }

    /// The worker that is free first does a job of this length, off its CPU for so long in the middle of it, and tells
    /// the collector.
    fn job(&mut self, worker: usize, length: Nanos, off: Nanos) {
        let (cpu, tid) = Self::place(worker);
        let from = self.workers[worker].0;
        if off > 0 {
            let away = from + length / 2;
            self.script.switch(away, cpu, tid, Runnable, 0).switch(away + off, cpu, 0, Runnable, tid);
        }
        let done = from + length + off;
        if let Some(sleeper) = self.sleeper.take_if(|sleeper| *sleeper != worker) {
            let (there, other) = Self::place(sleeper);
            self.script.wake_in(Context::Task, done - 2, cpu, tid, other).switch(done - 1, there, 0, Runnable, other);
            self.workers[sleeper].0 = done;
        }
        if self.collecting <= done {
            self.script.wake_in(Context::Task, done, cpu, tid, COLLECTOR).switch(done + 1, 1, 0, Runnable, COLLECTOR);
            self.script.switch(done + 15, 1, COLLECTOR, Sleeping, 0);
            self.collecting = done + 20;
        }
        self.workers[worker] = (done + 1, self.workers[worker].1 + 1);
    }

    /// The worker waits until another one has done a job.
    fn sleeps(&mut self, worker: usize) {
        let (cpu, tid) = Self::place(worker);
        self.script.switch(self.workers[worker].0, cpu, tid, Sleeping, 0);
        (self.workers[worker].0, self.sleeper) = (Nanos::MAX, Some(worker));
    }

    fn is_free_first(&self) -> usize {
        (0..self.workers.len()).min_by_key(|worker| self.workers[*worker].0).expect("there are some")
    }

    /// Jobs are done, each by whoever is free. The worker `slow` is off its CPU half of the time.
    fn shared_out(mut self, jobs: usize, slow: Option<usize>) -> Self {
        for _ in 0..jobs {
            let (worker, length) = (self.is_free_first(), 900 + self.rng.below(200));
            self.job(worker, length, if slow == Some(worker) { length } else { 0 });
        }
        self
    }

    /// Who is done ends.
    fn model(mut self) -> Result<Model> {
        for (worker, (done, _)) in self.workers.iter().enumerate().filter(|(_, (done, _))| *done < Nanos::MAX) {
            let (cpu, tid) = Self::place(worker);
            self.script.at(done + 50, cpu, Payload::Exit { tid, prio: 120 }).switch(done + 52, cpu, tid, Dead, 0);
        }
        self.script.events.sort_by_key(|event| event.time);
        self.script.model(&Options::default())
    }
}

/// What a job computes, in us.
fn run(job: &crate::Phase) -> Nanos {
    job.events.iter().map(|step| if let Action::Run(length) = step.what { length.mean / US } else { 0 }).sum()
}

#[test]
fn workers_that_are_done_together_share_out_their_jobs() {
    let pool = Pool::new(1, 3).shared_out(100, Some(1));
    let done: Vec<u32> = pool.workers.iter().map(|(_, jobs)| *jobs).collect();
    assert!(done[1] * 3 < done[0] * 2 && done.iter().sum::<u32>() == 100, "{done:?}");
    let model = pool.model().unwrap();
    let w = &model.workload;
    assert_eq!((model.report.workers, w.tasks.len()), (3, 6));
    let jobs = w.tasks.last().unwrap();
    // Each worker keeps its first one. Not all show: the collector may be awake.
    assert_eq!((jobs.name.as_str(), jobs.instances, jobs.loops), ("jobs-worker-0-11", 0, Some(1)));
    let tells = |step: &&Step| matches!(step.what, Action::SemPost(_));
    let results = jobs.phases.iter().flat_map(|job| &job.events).filter(tells).count();
    assert_eq!(results as u64, model.report.waits - 3);
    assert_eq!(told(w, "worker-1-12"), ["1 x run 1103, post wake-collector-2, jobs jobs-worker-0-11"]);
    // What takes several times as long as a usual one has several results that do not show.
    assert!(jobs.phases.iter().all(|job| job.events.len() < 4 && run(job) < 5_000), "{jobs:?}");
    assert_eq!(model.report.demand_ns / US / 1000, model.report.modelled_ns / US / 1000);
    assert_eq!(stuck(w), [""; 0]);
}

#[test]
fn others_do_what_they_did() {
    let workers = |pool: Pool| pool.model().unwrap().report.workers;
    // All did the same.
    assert_eq!(workers(Pool::new(1, 3).shared_out(300, None)), 0);
    // Each had its own part of the work, and the slow one is done later.
    let mut own = Pool::new(1, 3);
    (0..90).for_each(|n| own.job(n % 3, 1_000, if n % 3 == 1 { 1_000 } else { 0 }));
    assert_eq!(workers(own), 0);
    // Each had its own work and a CPU of its own: who had less is done earlier.
    let mut apart = Pool::new(1, 3);
    (0..3).for_each(|worker| (0..200 + 4 * worker).for_each(|_| apart.job(worker, 1_000, 0)));
    assert_eq!(workers(apart), 0);
    // Workers that wait for each other more often than they are done with a job.
    let mut queue = Pool::new(1, 2).shared_out(2, Some(1));
    for _ in 0..40 {
        let worker = queue.is_free_first();
        queue.sleeps(worker);
        queue = queue.shared_out(1, Some(1));
    }
    assert_eq!(workers(queue), 0);
    // Few jobs.
    assert_eq!(workers(Pool::new(1, 3).shared_out(20, Some(1))), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn no_team_gets_stuck(
        seed in any::<u64>(), workers in 2usize..6, jobs in 10usize..400, sleepy in 1u64..40, busy in 1u64..9,
    ) {
        let mut pool = Pool::new(seed, workers);
        for _ in 0..jobs {
            let worker = pool.is_free_first();
            if pool.sleeper.is_none() && pool.rng.below(sleepy) == 0 {
                pool.sleeps(worker);
                continue;
            }
            let (length, off) = (1 + pool.rng.below(2_000), pool.rng.below(busy) * pool.rng.below(1_000));
            pool.job(worker, 10 + length, off);
        }
        let model = pool.model().unwrap();
        prop_assert_eq!(stuck(&model.workload), Vec::<String>::new());
        let (demand, run) = (model.report.demand_ns, model.report.modelled_ns);
        prop_assert!(demand.abs_diff(run) <= run / 100 + 50 * US, "{} {}", demand, run);
    }
}

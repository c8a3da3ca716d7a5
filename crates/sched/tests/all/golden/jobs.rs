//! Jobs that tasks share out.

use crate::support::{Accounts, MS, bare, once, run, simulate, sleep};
use schedlab_base::Nanos;
use schedlab_sim::program::{JobList, Load, Op, TaskSpec};

/// What two tasks come to, each on a CPU of its own, that share out these jobs: what a job does, and how many in a row.
fn shared_out(jobs: Vec<(Vec<Op>, u64)>, total: u64, tasks: Vec<TaskSpec>) -> Accounts {
    let ends = jobs.iter().scan(0, |end, (_, times)| {
        *end += times;
        Some(*end)
    });
    let list = JobList { ends: ends.collect(), jobs: jobs.into_iter().map(|(job, _)| job).collect(), total };
    let load = Load { tasks, sems: vec!["go".into()], jobs: vec![list], ..Load::default() };
    simulate("linux-6.12", &bare("2"), &load, &[], 1000 * MS)
}

fn worker(name: &str, first: u64) -> TaskSpec {
    once(name, vec![run(first), Op::Jobs(0), run(2)])
}

fn ran(seen: &Accounts) -> [Nanos; 2] {
    ["a", "b"].map(|name| seen.named(name).run / MS)
}

/// One begins 1 ms earlier and takes the long job: the other one does all others meanwhile. What each does before and
/// after is its own.
#[test]
fn who_is_free_takes_the_next_job() {
    let seen = shared_out(vec![(vec![run(30)], 1), (vec![run(4)], 7)], 8, vec![worker("a", 1), worker("b", 2)]);
    assert_eq!(ran(&seen), [1 + 30 + 2, 2 + 7 * 4 + 2]);
}

#[test]
fn jobs_sleep_and_wait_and_come_again() {
    // Six jobs are two rounds of three; in each, the last one waits for a post.
    let jobs = vec![(vec![run(3), sleep(5), run(1)], 2), (vec![Op::SemWait(0), run(10)], 1)];
    let posts = once("posts", vec![sleep(40), Op::SemPost(0), sleep(40), Op::SemPost(0)]);
    let seen = shared_out(jobs.clone(), 6, vec![worker("a", 1), worker("b", 2), posts]);
    // By 40 ms one of them does the first job of the second round, and the other one waits.
    assert_eq!(ran(&seen).iter().sum::<Nanos>(), 3 + 4 + 2 * (4 + 4 + 10));
    // Those that never run out are done as long as the run lasts.
    let endless = shared_out(vec![(vec![run(3)], 2)], u64::MAX, vec![worker("a", 1), worker("b", 2)]);
    assert_eq!(ran(&endless), [1000, 1000]);
    // None at all.
    assert_eq!(ran(&shared_out(jobs, 0, vec![worker("a", 1), worker("b", 2)])), [3, 4]);
}

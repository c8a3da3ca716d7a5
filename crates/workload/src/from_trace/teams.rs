//! Workers that share out jobs: who is free takes the next one.
//!
//! The processes of a `multiprocessing.Pool`, the threads of a pool: each takes a job when it is done with the last
//! one, and tells a collector the result. How many jobs a worker does, and which, is the recorded scheduler's doing:
//! one that gets more CPU time does more of them. If each did what it did in the recording, some would be done earlier
//! on another scheduler, and in another run of the same, and fewer would wait for a CPU at the end. So in the model
//! the jobs of a *team* are in one list (`x-jobs`), in about the order in which they began, and whoever is free takes
//! the next one.
//!
//! Tasks are a team if one task forked them, under one name (but for a number at its end), each as a process of its
//! own or all as threads of one; if they tell the same task of each job; if they were done at the same time, though
//! some had done more than others; and if what they waited for was seldom an answer of that task. (Then it gives each
//! of them what to do.) A job ends when its result is told. A result does not show if the collector was awake: a job
//! that takes much longer than others may have been several, and is cut. What a worker did before its first result and
//! after its last one remains its own.
//!
//! Workers that take jobs from one place wait for each other there, and now and then for a job. Which of them has to
//! wait is chance, and would be another one on another scheduler: these waits become sleeps of their lengths.
//!
//! The replay cannot deadlock by that: a job waits for nobody, or for a queue whose messages come whatever its tasks
//! do.

use super::emit::{Synced, Voice, jobs as jobs_of, phases};
use super::endings::{Ending, Endings};
use super::life::{Begin, Task};
use super::sequence::{ANSWER, NOBODY, QUEUE, TaskIx, Token, is_folded, slept, total_run, unfolded};
use super::services::Services;
use super::track::Track;
use crate::{Phase, TaskDef};
use schedlab_base::{Nanos, Tid};
use std::collections::BTreeMap;

/// Two workers at least tell of so many jobs at least.
const FEWEST_JOBS: usize = 8;

/// For each hundred results that show, a worker waits for an answer of the collector at most so often, for other tasks,
/// and for other workers.
const PERCENT_REPLIES: usize = 60;
const PERCENT_AWAITED: usize = 100;
const PERCENT_FELLOWS: usize = 300;

/// Workers were done at the same time if that differs by such a part of what it would if each had had its own work, or
/// by so many jobs.
const UNLIKE_FAIR: Nanos = 2;
const JOBS_APART: u64 = 3;

/// What takes less than such a part of the mean belongs to the job before. A usual job is the longest of the shortest
/// such part of them, and not shorter than this. One that takes so many times as long is cut.
const SHORT: Nanos = 8;
const USUAL: usize = 4;
const SHORTEST: Nanos = 100_000;
const SEVERAL: Nanos = 4;
/// There are about so many pieces at most.
const MOST_PIECES: Nanos = 100_000;

/// One did so many percent more than another at least, and none less than such a part of what another did. Who does
/// less than such a part is no worker.
const PERCENT_UNEQUAL: u64 = 2;
const PART_OF_MOST: u64 = 4;
const PART_OF_WORKER: u64 = 10;

/// Workers, and the task that they tell of each job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Team {
    /// In ascending order.
    pub workers: Vec<TaskIx>,
    collector: TaskIx,
    /// They are a part of a pool, and wait for jobs.
    awaits: bool,
}

/// The jobs of a team.
#[derive(Debug)]
pub(super) struct Jobs {
    pub workers: Vec<TaskIx>,
    pub jobs: Vec<Vec<Token>>,
}

/// The teams among the tasks, none of which serves several others or asks them. `comm` is a task's name.
pub(super) fn find<'a>(
    track: &Track,
    window: (Nanos, Nanos),
    (pools, services): (&[Vec<TaskIx>], &mut Services),
    comm: impl Fn(TaskIx) -> &'a str,
) -> Vec<Team> {
    let finder = Finder { tasks: &track.tasks, endings: Endings::of(track), pools, window };
    let mut families: BTreeMap<(TaskIx, Option<Tid>, &str), Vec<TaskIx>> = BTreeMap::new();
    for (ix, task) in (0..).zip(&track.tasks) {
        if let Begin::Forked { by, .. } = task.begin {
            let process = finder.endings.process(task).filter(|process| *process != task.tid);
            families.entry((by, process, kind(comm(ix)))).or_default().push(ix);
        }
    }
    families.retain(|_, family| family.len() > 1);
    let mut teams: Vec<Team> = families.into_values().filter_map(|family| finder.team(&family)).collect();
    teams.iter().for_each(|team| services.leave(&team.workers));
    teams.retain(|team| !team.workers.iter().any(|task| services.has(*task)));
    teams
}

/// A name without the number in which it ends.
pub(super) fn kind(comm: &str) -> &str {
    comm.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// What tells of teams.
struct Finder<'a> {
    tasks: &'a [Task],
    endings: Endings<'a>,
    pools: &'a [Vec<TaskIx>],
    window: (Nanos, Nanos),
}

impl Finder<'_> {
    /// The team that is in a family, if there is one.
    fn team(&self, family: &[TaskIx]) -> Option<Team> {
        let told: Vec<_> = family.iter().map(|worker| told(&self.tasks[*worker as usize].sequence)).collect();
        let mut by_collector: BTreeMap<TaskIx, (usize, usize)> = BTreeMap::new();
        for (collector, times) in told.iter().flatten().filter(|(_, times)| **times >= FEWEST_JOBS) {
            let (workers, all) = by_collector.entry(*collector).or_default();
            (*workers, *all) = (*workers + 1, *all + times);
        }
        by_collector.retain(|_, (workers, _)| *workers > 1);
        let (collector, _) = by_collector.into_iter().max_by_key(|(_, most)| *most)?;
        // Few results of a worker may show.
        [2, FEWEST_JOBS].into_iter().find_map(|fewest| {
            let works = |told: &BTreeMap<TaskIx, usize>| told.get(&collector).is_some_and(|times| *times >= fewest);
            let workers = std::iter::zip(family, &told).filter(|(worker, told)| **worker != collector && works(told));
            let workers: Vec<TaskIx> = workers.map(|(worker, _)| *worker).collect();
            let awaits = self.pools.iter().any(|pool| workers.iter().all(|worker| pool.contains(worker)));
            let team = Team { workers, collector, awaits };
            self.is_team(&team, family).then_some(team)
        })
    }

    /// Whether all that these tasks had to do is jobs that they took from one place, and nobody else of the family
    /// works as they do.
    fn is_team(&self, team: &Team, family: &[TaskIx]) -> bool {
        let work = |task: &TaskIx| self.tasks[*task as usize].work;
        let most = team.workers.iter().map(work).max().unwrap_or(0);
        let works_too = |task: &&TaskIx| **task != team.collector && work(task) >= most / PART_OF_WORKER;
        let cut_off = team.workers.iter().filter(|worker| self.is_cut_off(&self.tasks[**worker as usize])).count();
        // One of them may look as if it had been.
        team.workers.len() > 1
            && 2 * cut_off < team.workers.len()
            && team.workers.iter().all(|worker| !is_folded(&self.tasks[*worker as usize].sequence))
            && family.iter().filter(works_too).all(|task| team.workers.contains(task))
            && team.shares(self.tasks, self.window)
    }

    /// Whether a task had more to do. One that slept when it was killed had not.
    fn is_cut_off(&self, task: &Task) -> bool {
        let (awake, start) = (|ending: Ending| !ending.killed_asleep(), self.window.0);
        task.goes_on || task.ending.is_some_and(awake) && self.endings.is_stopped(task, &task.sequence, start)
    }
}

/// How often a task wakes each other one.
fn told(list: &[Token]) -> BTreeMap<TaskIx, usize> {
    let mut times = BTreeMap::new();
    for token in list {
        if let Token::Post(task) = token {
            *times.entry(*task).or_default() += 1;
        }
    }
    times
}

impl Team {
    /// What a worker does before its first result, its jobs, and what it does after the last one. The work that follows
    /// the last result is of jobs of which no result shows. None if it did something in between that only it can do.
    fn parts<'a>(&self, list: &'a [Token]) -> Option<[&'a [Token]; 3]> {
        let tells = |token: &Token| *token == Token::Post(self.collector);
        // What it tells its parent as it ends is no result.
        let end = list.iter().position(|token| matches!(token, Token::End(_))).unwrap_or(list.len());
        let (first, last) = (list[..end].iter().position(tells)?, list[..end].iter().rposition(tells)?);
        let last = last + usize::from(matches!(list.get(last + 1), Some(Token::Run(_))));
        let (before, [jobs, after]) = (&list[..=first], [&list[first + 1..=last], &list[last + 1..]]);
        jobs.iter().all(is_of_a_job).then_some([before, jobs, after])
    }

    fn jobs<'a>(&self, list: &'a [Token]) -> impl Iterator<Item = &'a [Token]> {
        let collector = self.collector;
        list.split_inclusive(move |token| *token == Token::Post(collector))
    }

    /// Whether the workers take their jobs from one place.
    fn shares(&self, tasks: &[Task], window: (Nanos, Nanos)) -> bool {
        let [mut jobs, mut replies, mut fellows, mut awaited] = [0; 4];
        let (mut works, mut ends, mut spans) = (Vec::new(), Vec::new(), Vec::new());
        for worker in &self.workers {
            let task = &tasks[*worker as usize];
            let Some([_, middle, rest]) = self.parts(&task.sequence) else { return false };
            for token in middle {
                match token {
                    Token::Post(task) if *task == self.collector => jobs += 1,
                    Token::Block { waker, .. } if *waker == self.collector => replies += 1,
                    Token::Block { waker, .. } if self.workers.binary_search(waker).is_ok() => fellows += 1,
                    Token::Block { waker, .. } if *waker != NOBODY => awaited += 1,
                    _ => {}
                }
            }
            let time = |token: &Token| match token {
                Token::Run(length) | Token::Block { length, .. } => *length,
                _ => 0,
            };
            let end = task.ended(window.1).saturating_sub(rest.iter().map(time).fold(0, Nanos::saturating_add));
            works.push(total_run(middle));
            ends.push(end);
            spans.push(end.saturating_sub(task.began(window.0)));
        }
        let differ = |all: &[Nanos]| all.iter().max().zip(all.iter().min()).map_or(0, |(most, least)| most - least);
        let span = spans.iter().copied().max().unwrap_or(0);
        let job = span.saturating_mul(self.workers.len() as u64) / (jobs as u64).max(1);
        let most = works.iter().copied().max().unwrap_or(0);
        // So far apart they would be done if each had had its own work, and as much CPU time as the others.
        let fair = (u128::from(span) * u128::from(differ(&works)) / u128::from(most.max(1))) as Nanos;
        let unequal = differ(&works) >= most / 100 * PERCENT_UNEQUAL && most - differ(&works) >= most / PART_OF_MOST;
        let at_most = |times: usize, percent| times * 100 <= jobs * percent;
        at_most(fellows, PERCENT_FELLOWS)
            && (self.awaits || at_most(replies, PERCENT_REPLIES) && at_most(awaited, PERCENT_AWAITED))
            && unequal
            && differ(&ends) <= (fair / UNLIKE_FAIR).max(job.saturating_mul(JOBS_APART))
    }

    /// Takes the jobs out of the sequences of its workers; `shared` says on whose semaphore each task waits. None if
    /// something came in between that only one of them can do, or if there would be more than `most` events.
    pub fn share(&self, tasks: &mut [Task], shared: &[TaskIx], most: usize) -> Option<Jobs> {
        let queue = shared[self.workers[0] as usize];
        let awaits = self.workers.iter().all(|worker| shared[*worker as usize] == queue);
        if self.awaits && !awaits {
            return None;
        }
        let lists: Vec<Vec<Token>> =
            self.workers.iter().map(|worker| unfolded(&tasks[*worker as usize].sequence)).collect();
        if lists.iter().map(Vec::len).sum::<usize>() > most {
            return None;
        }
        let parts: Vec<[&[Token]; 3]> = lists.iter().map(|list| self.parts(list)).collect::<Option<_>>()?;
        // A wait of no time was none: a message was there.
        let alone = |token: &Token| if awaits { Some(*token) } else { slept(*token, 1) };
        let jobs = in_order(parts.iter().map(|[_, middle, _]| self.jobs(middle)), alone);
        let first = self.workers[0];
        let written: Vec<Vec<Token>> =
            parts.iter().map(|[before, _, after]| [before, &[Token::Jobs(first)][..], after].concat()).collect();
        std::iter::zip(&self.workers, written).for_each(|(worker, list)| tasks[*worker as usize].sequence = list);
        Some(Jobs { workers: self.workers.clone(), jobs })
    }
}

/// The jobs of all workers, in about the order in which they began, with what `plain` makes of their tokens. A worker
/// may wake the collector twice in a job: what is very short is none of its own. A job that takes several times as
/// long as others may have been several, of which one result shows: it is cut.
fn in_order<'a>(
    workers: impl Iterator<Item = impl Iterator<Item = &'a [Token]>>,
    plain: impl Fn(&Token) -> Option<Token>,
) -> Vec<Vec<Token>> {
    let workers: Vec<Vec<&[Token]>> = workers.map(Iterator::collect).collect();
    let sum = |results: &mut dyn Iterator<Item = &&[Token]>| {
        results.map(|result| total_run(result)).fold(0, Nanos::saturating_add)
    };
    let all = sum(&mut workers.iter().flatten());
    let mean = all / (workers.iter().map(Vec::len).sum::<usize>() as Nanos).max(1);
    let mut jobs: Vec<(f64, Vec<&[Token]>)> = Vec::new();
    for own in &workers {
        let (first, own_work, mut done) = (jobs.len(), sum(&mut own.iter()).max(1) as f64, 0);
        for result in own {
            let work = total_run(result);
            match jobs[first..].last_mut() {
                Some((_, job)) if work < mean / SHORT => job.push(result),
                _ => jobs.push((done as f64 / own_work, vec![result])),
            }
            done = work.saturating_add(done);
        }
    }
    jobs.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let usual = usual(jobs.iter().map(|(_, job)| sum(&mut job.iter())).collect()).max(all / MOST_PIECES);
    let tokens = |job: Vec<&'a [Token]>| job.into_iter().flatten().filter_map(&plain);
    jobs.into_iter().flat_map(|(_, job)| cut(tokens(job), usual)).collect()
}

/// How long a usual job takes, given how long all take.
fn usual(mut works: Vec<Nanos>) -> Nanos {
    let at = works.len() / USUAL;
    if works.is_empty() { SHORTEST } else { (*works.select_nth_unstable(at).1).max(SHORTEST) }
}

/// A job in pieces that take at least as long as a usual one, if it takes several times as long.
fn cut(job: impl Iterator<Item = Token>, usual: Nanos) -> Vec<Vec<Token>> {
    let mut pieces = vec![Vec::new()];
    let mut put = |token: Token, begins: bool| {
        if begins {
            pieces.push(Vec::new());
        }
        pieces.last_mut().expect("there is one").push(token);
    };
    for token in job {
        match token {
            Token::Run(length) if length / SEVERAL >= usual => {
                let times = length / SEVERAL / usual * (SEVERAL / 2);
                let until = |piece: Nanos| (u128::from(length) * u128::from(piece) / u128::from(times)) as Nanos;
                (1..=times).for_each(|piece| put(Token::Run(until(piece) - until(piece - 1)), piece > 1));
            }
            other => put(other, false),
        }
    }
    pieces
}

impl Jobs {
    /// The task whose phases are the jobs, given the keys of all tasks, the semaphores that they wait on, and what
    /// wakes others as a pipe does.
    pub fn written(&self, keys: &[String], semaphores: &[String], sync: &Synced) -> TaskDef {
        let (own, beat, tick, queue, parent, changes) = (self.workers[0], None, None, None, None, &[][..]);
        let voice = Voice { keys, semaphores, own, beat, tick, queue, sync, changes, parent };
        let all = self.jobs.iter().flat_map(|job| phases(job, &voice));
        let phases = (0..).zip(all).map(|(n, phase): (u32, _)| Phase { name: format!("j{n}"), ..phase }).collect();
        let name = jobs_of(keys, own);
        TaskDef { name, instances: 0, loops: Some(1), phases, ..TaskDef::default() }
    }
}

/// Whether any worker could do that.
fn is_of_a_job(token: &Token) -> bool {
    match token {
        Token::Run(_) | Token::Post(_) | Token::Yield => true,
        Token::Block { waker, .. } => !matches!(*waker, QUEUE | ANSWER),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: Token = Token::Post(9);

    fn jobs(workers: &[&[Token]]) -> Vec<Vec<Token>> {
        let results = workers.iter().map(|list| list.split_inclusive(|token| *token == TOLD));
        in_order(results, |token| slept(*token, 1))
    }

    #[test]
    fn jobs_of_all_workers_come_in_the_order_in_which_they_began() {
        let job = |length| [Token::Run(length), TOLD];
        let (first, second) = ([job(400_000), job(100_000)].concat(), [job(200_000), job(300_000)].concat());
        let lengths: Vec<Nanos> = jobs(&[&first, &second]).iter().map(|job| total_run(job)).collect();
        assert_eq!(lengths, [400_000, 200_000, 300_000, 100_000]);
        // What is told twice is one job, and its waits are sleeps but for those that were none.
        let wait = |length| Token::Block { length, waker: 3 };
        let twice = [Token::Run(300_000), wait(7), wait(0), TOLD, Token::Run(5_000), TOLD];
        let slept = Token::Block { length: 7, waker: NOBODY };
        let whole = vec![Token::Run(300_000), slept, TOLD, Token::Run(5_000), TOLD];
        assert_eq!(jobs(&[&twice, &job(250_000)]), [whole, job(250_000).to_vec()]);
    }

    #[test]
    fn long_jobs_are_cut_but_not_into_too_many() {
        let short = [Token::Run(200_000), TOLD].repeat(8);
        let cut = jobs(&[&short, &[Token::Run(1_000_000), TOLD]]);
        let lengths: Vec<Nanos> = cut.iter().map(|job| total_run(job)).filter(|length| *length > 200_000).collect();
        assert_eq!((lengths, cut.len()), (vec![500_000; 2], 10));
        let huge = Nanos::MAX / 2;
        let cut = jobs(&[&short, &[Token::Run(huge), Token::Run(huge), TOLD]]);
        let sum = cut.iter().map(|job| total_run(job)).fold(0, Nanos::saturating_add);
        assert!(cut.len() < 2 * MOST_PIECES as usize && sum > Nanos::MAX - 2, "{} {sum}", cut.len());
    }
}

//! What tells servers from their clients, of tasks of two kinds that wake each other.

use super::life::Task;
use super::sequence::{NOBODY, TaskIx, Token};
use schedlab_base::Nanos;
use std::collections::{BTreeSet, HashMap};

/// So many answers to the waker at least, of so many in all, and so many percent of those that chance leaves to others,
/// by so many standard deviations. Who is woken by a question may find that it was taken, and take the next one.
const FEWEST: f64 = 16.0;
const FEWEST_ANSWERS: u64 = 50;
const PERCENT_BEYOND: f64 = 20.0;
const DEVIATIONS: f64 = 3.0;

/// The first of several clients, or of several servers of a client, has at most so many percent of the answers.
const PERCENT_ONE: u64 = 90;

/// A client has a server of its own that gives it more than so many percent of its answers, though it gives fewer than
/// so many percent of all. Of clients and servers with at most so many percent of the answers nothing is known.
const PERCENT_OWN: u64 = 90;
const PERCENT_COMMON: u64 = 60;
const PERCENT_RARE: u64 = 5;

/// A server that would by chance have answered a client so many times has done so at least once in so many of these.
const FEWEST_BY_CHANCE: u64 = 16;
const LEAST_PART: u64 = 10;

/// Servers may be awake for such a part of the time longer than they have questions.
const BESIDES: Nanos = 10;

/// Clients wait for servers that all sleep, without having woken one, at most so many percent of such times.
const PERCENT_UNASKED: usize = 5;

/// Servers that never sleep give so many answers at least, and do or wait for something else at most so many percent as
/// often.
const FEWEST_UNASKED: u64 = 200;
const PERCENT_FEW: u64 = 5;

/// Whether several tasks hardly ever sleep, and do nothing but wake these others, each of which waits for all of them
/// and for nobody else: they have so much to do that no question wakes them.
pub(super) fn never_sleep(sequences: &[&[Token]], servers: &[TaskIx], clients: &[TaskIx]) -> bool {
    let is = |tasks: &[TaskIx], task: TaskIx| tasks.binary_search(&task).is_ok();
    let few = |few: u64, all: u64| few * 100 <= all * PERCENT_FEW;
    let (mut sleeps, mut elsewhere, mut answers) = (0, 0, 0);
    for token in servers.iter().flat_map(|task| sequences[*task as usize]) {
        match token {
            Token::Block { waker, .. } if !is(servers, *waker) => sleeps += 1,
            Token::Post(task) if is(clients, *task) => answers += 1,
            Token::Post(task) if !is(servers, *task) => elsewhere += 1,
            _ => {}
        }
    }
    let waits_for_all = |client: &TaskIx| {
        let mut by: HashMap<TaskIx, u64> = HashMap::new();
        let mut others = 0;
        for token in sequences[*client as usize] {
            match token {
                Token::Block { waker, .. } if is(servers, *waker) => *by.entry(*waker).or_default() += 1,
                Token::Block { waker, .. } if *waker != NOBODY => others += 1,
                Token::Post(task) if !is(servers, *task) => others += 1,
                _ => {}
            }
        }
        let (all, most) = (by.values().sum::<u64>(), by.values().max().copied().unwrap_or(0));
        most * 100 <= all * PERCENT_ONE && few(others, all)
    };
    answers >= FEWEST_UNASKED && few(sleeps, answers) && few(elsewhere, answers) && clients.iter().all(waits_for_all)
}

/// Whether the servers, in a window, were awake for no longer than questions were open, of which each client has one at
/// a time.
pub(super) fn had_questions(tasks: &[Task], window: (Nanos, Nanos), servers: &[TaskIx], clients: &[TaskIx]) -> bool {
    let alive = |task: &Task| task.ended(window.1).saturating_sub(task.began(window.0));
    let asleep = |token: &Token| if let Token::Block { length, .. } = token { *length } else { 0 };
    let awake = |server: &TaskIx| {
        let task = &tasks[*server as usize];
        alive(task).saturating_sub(task.sequence.iter().map(asleep).fold(0, Nanos::saturating_add))
    };
    let open = (window.1 - window.0).saturating_mul(clients.len() as Nanos);
    servers.iter().map(awake).fold(0, Nanos::saturating_add) <= open.saturating_add(open / BESIDES)
}

/// Whether those who wait for these servers have asked them. A client whose servers sleep wakes one before it waits for
/// the answer. In a pipeline, who reads waits for whoever writes, and who writes for whoever reads, whatever they do.
pub(super) fn are_asked(tasks: &[Task], servers: &[TaskIx], clients: &[TaskIx]) -> bool {
    let waits = |client: &TaskIx| tasks[*client as usize].habit.waits_for(|task| servers.binary_search(&task).is_ok());
    let (asked, not) = clients.iter().map(waits).fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1));
    not * 100 <= (asked + not) * PERCENT_UNASKED
}

/// Whether all clients are answered by all servers: none has one of its own among several, or one that never answers
/// it. The stages of a pipeline have two neighbours each.
pub(super) fn have_one_queue(sequences: &[&[Token]], servers: &[TaskIx], clients: &[TaskIx]) -> bool {
    let mut all = vec![0; servers.len()];
    let mut by_client = Vec::new();
    for client in clients {
        let mut own = vec![0; servers.len()];
        for token in sequences[*client as usize] {
            if let Token::Block { waker, .. } = token
                && let Ok(server) = servers.binary_search(waker)
            {
                (own[server], all[server]) = (own[server] + 1, all[server] + 1);
            }
        }
        by_client.push(own);
    }
    let total = all.iter().sum::<u64>().max(1);
    let few = |answers: u64| answers * 100 <= total * PERCENT_RARE;
    let has_another = |own: &Vec<u64>| {
        let answers: u64 = own.iter().sum();
        let pairs = || std::iter::zip(own.iter().copied(), all.iter().copied());
        let is_its_own = |(own, all)| own * 100 > answers * PERCENT_OWN && all * 100 < total * PERCENT_COMMON;
        let lacks = |(own, all)| {
            let by_chance = answers * all / total;
            !few(all) && by_chance >= FEWEST_BY_CHANCE && own * LEAST_PART < by_chance
        };
        !few(answers) && (pairs().max_by_key(|(own, _)| *own).is_some_and(is_its_own) || pairs().any(lacks))
    };
    !by_client.iter().any(has_another)
}

/// How often something happened, and how often it would by chance.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    all: f64,
    hits: f64,
    expected: f64,
    variance: f64,
}

impl Score {
    /// It happened, or not; by chance it does so often.
    fn add(&mut self, hit: bool, chance: f64) {
        self.all += 1.0;
        self.hits += f64::from(u8::from(hit));
        self.expected += chance;
        self.variance += chance * (1.0 - chance);
    }

    fn is_beyond_chance(&self) -> bool {
        let beyond = self.hits - self.expected;
        // Where nearly all are answered, chance explains all.
        self.hits >= FEWEST
            && self.all - self.expected >= FEWEST
            && beyond * 100.0 >= (self.all - self.expected) * PERCENT_BEYOND
            && beyond >= DEVIATIONS * self.variance.sqrt()
    }
}

/// Whether servers that a client has woken wake that client before any other, or before they sleep again.
pub(super) fn answer_their_wakers(sequences: &[&[Token]], servers: &[TaskIx], clients: &[TaskIx]) -> bool {
    let is_client = |task: &TaskIx| clients.binary_search(task).is_ok();
    let number = clients.len() as f64;
    let mut asked = 0.0;
    let [mut first, mut among] = [Score::default(); 2];
    let mut by_client: HashMap<TaskIx, u64> = HashMap::new();
    for server in servers {
        let bursts = sequences[*server as usize].split_inclusive(|token| matches!(token, Token::Block { .. }));
        let mut waker = None;
        for burst in bursts {
            let answers =
                burst.iter().filter_map(|token| if let Token::Post(task) = token { Some(*task) } else { None });
            let answers: Vec<TaskIx> = answers.filter(is_client).collect();
            answers.iter().for_each(|task| *by_client.entry(*task).or_default() += 1);
            let answered: BTreeSet<TaskIx> = answers.iter().copied().collect();
            if let (Some(by), Some(one)) = (waker, answers.first()) {
                first.add(*one == by, 1.0 / number);
                among.add(answered.contains(&by), answered.len() as f64 / number);
            }
            waker = match burst.last() {
                Some(Token::Block { waker, .. }) => Some(*waker).filter(is_client),
                _ => None,
            };
            asked += f64::from(u8::from(waker.is_some()));
        }
    }
    // One that has nearly all answers is the only one.
    let (most, total) = (by_client.values().max().copied().unwrap_or(0), by_client.values().sum::<u64>());
    let several = clients.len() == 1 || most * 100 <= total * PERCENT_ONE;
    let known = total >= FEWEST_ANSWERS && 2.0 * first.all >= asked;
    known && several && (clients.len() == 1 || first.is_beyond_chance() || among.is_beyond_chance())
}

#[cfg(test)]
mod tests {
    use super::super::life::{Begin, Place};
    use super::*;

    #[test]
    fn a_client_with_a_server_of_its_own_has_another_queue() {
        let woken = |waker: &TaskIx| Token::Block { length: 5, waker: *waker };
        let answered = |by: &[TaskIx]| by.iter().map(woken).collect::<Vec<Token>>().repeat(40);
        let has_one = |first: &[TaskIx], second: &[TaskIx]| {
            have_one_queue(&[&answered(first), &answered(second), &[], &[], &[]], &[2, 3, 4], &[0, 1])
        };
        assert!(has_one(&[2, 3, 4], &[4, 3, 2]) && has_one(&[2, 2, 3, 4], &[3, 4, 3, 4, 2]));
        assert!(!has_one(&[2], &[3, 4, 3, 4]) && !has_one(&[3, 4], &[2]));
        // The middle of five stages, and the last one.
        assert!(!has_one(&[2, 2, 3, 4], &[3, 4]) && !has_one(&[2, 3], &[3, 4]));
        // One server that answers nearly everything; a client that is hardly ever answered.
        assert!(has_one(&[2], &[2, 2, 3, 4]) && has_one(&[3, 4].repeat(20), &[2]));
    }

    #[test]
    fn servers_at_work_at_once_have_as_many_clients() {
        let task = |asleep| Task {
            sequence: vec![Token::Run(10), Token::Block { length: asleep, waker: 7 }],
            ..Task::new(0, 1, Default::default(), Begin::After(50), Place::Dead)
        };
        // They are awake for 850 and 650 ns of 1 us.
        let tasks = [task(100), task(300)];
        let had = |clients: &[TaskIx]| had_questions(&tasks, (2_000, 3_000), &[0, 1], clients);
        assert!(!had(&[5]) && had(&[5, 6]) && had_questions(&tasks, (2_000, 3_000), &[0], &[5]));
    }
}

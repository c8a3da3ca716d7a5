//! What tells servers from their clients, of tasks of two kinds that wake each other.

use super::sequence::{NOBODY, TaskIx, Token};
use std::collections::{BTreeSet, HashMap};

/// So many answers to the waker at least, of so many in all, and so many percent of those that chance leaves to others,
/// by so many standard deviations. Who is woken by a question may find that it was taken, and take the next one.
const FEWEST: f64 = 16.0;
const FEWEST_ANSWERS: u64 = 50;
const PERCENT_BEYOND: f64 = 20.0;
const DEVIATIONS: f64 = 3.0;

/// The first of several clients, or of several servers of a client, has at most so many percent of the answers.
const PERCENT_ONE: u64 = 90;

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

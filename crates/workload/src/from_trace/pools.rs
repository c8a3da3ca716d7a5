//! Tasks that take messages from one queue: in the model they wait on one semaphore, so that a message waits only if
//! none of them is free.
//!
//! A task with a semaphore of its own gets as many posts as it waits for, in an order in which nobody gets stuck. With
//! a common semaphore one task may take what was another's, and so their order is any. Nobody gets stuck if all their
//! messages are sent whatever they do. That is seen by playing the tasks' sequences without time and with semaphores of
//! their own, where the tasks of a pool stop before the first message that they wait for. So clients that wait for an
//! answer before they ask again keep the server that they had.

use super::life::{Begin, Task};
use super::sequence::{ANSWER, NOBODY, QUEUE, Stretch, TaskIx, Token, stretches};

/// Whose semaphore each task waits on: its own, or that of the first task of its pool. Of the pools that were found,
/// only those count that cannot get stuck.
pub(super) fn semaphores(tasks: &[Task], kept: &[bool], mut pools: Vec<Vec<TaskIx>>) -> Vec<TaskIx> {
    let mut semaphores: Vec<TaskIx> = (0..tasks.len() as TaskIx).collect();
    // What one pool sends to another comes when the first is known to get all that it waits for.
    while !pools.is_empty() {
        let mut stopped = vec![false; tasks.len()];
        pools.iter().flatten().for_each(|task| stopped[*task as usize] = true);
        let sequences: Vec<&[Token]> = tasks.iter().map(|task| &task.sequence[..]).collect();
        let mut play = Play::new(tasks, &sequences, kept, stopped);
        play.on();
        let gets_all = |pool: &Vec<TaskIx>| pool.iter().all(|task| play.missing[*task as usize] == 0);
        let (safe, others): (Vec<_>, Vec<_>) = pools.into_iter().partition(gets_all);
        if safe.is_empty() {
            break;
        }
        for pool in safe {
            let first = pool.iter().copied().min().unwrap_or(NOBODY);
            pool.iter().for_each(|task| semaphores[*task as usize] = first);
        }
        pools = others;
    }
    semaphores
}

/// Where a task is in its sequence.
struct Walk<'a> {
    stretches: Vec<Stretch<'a>>,
    stretch: usize,
    round: u32,
    token: usize,
    /// It has begun.
    alive: bool,
}

impl Walk<'_> {
    fn next(&self) -> Option<Token> {
        self.stretches.get(self.stretch).map(|stretch| stretch.body[self.token])
    }

    fn step(&mut self) {
        let Stretch { times, body } = self.stretches[self.stretch];
        self.token += 1;
        if self.token == body.len() {
            (self.token, self.round) = (0, self.round + 1);
        }
        if self.round == times {
            (self.round, self.stretch) = (0, self.stretch + 1);
        }
    }
}

/// What the tasks do, without time. As each semaphore has one task that waits on it, it does not matter who goes first.
pub(super) struct Play<'a> {
    walks: Vec<Walk<'a>>,
    stopped: Vec<bool>,
    /// Posts that came and were not waited for yet, by task.
    posts: Vec<u64>,
    /// The same of children that ended.
    ends: Vec<u64>,
    /// Answers that came and were not waited for yet, by task.
    answers: Vec<u64>,
    /// How many posts are still to come.
    missing: Vec<u64>,
    /// How many have come, by task.
    pub came: Vec<u64>,
    /// How many questions are still to be asked, by the first server.
    unasked: Vec<u64>,
}

impl<'a> Play<'a> {
    pub fn new(tasks: &[Task], sequences: &[&'a [Token]], kept: &[bool], stopped: Vec<bool>) -> Self {
        let walk = |(task, list): (&Task, &&'a [Token])| {
            let alive = !matches!(task.begin, Begin::Forked { by, .. } if kept[by as usize]);
            let stretches = stretches(list).filter(|s| s.times > 0 && !s.body.is_empty()).collect();
            Walk { stretches, stretch: 0, round: 0, token: 0, alive }
        };
        let (mut missing, mut unasked) = (vec![0; tasks.len()], vec![0; tasks.len()]);
        for Stretch { times, body } in sequences.iter().flat_map(|list| stretches(list)) {
            for token in body {
                match token {
                    Token::Post(sleeper) => missing[*sleeper as usize] += u64::from(times),
                    Token::Ask(queue) => unasked[*queue as usize] += u64::from(times),
                    _ => {}
                }
            }
        }
        let [posts, ends, answers, came] = [(); 4].map(|()| vec![0; tasks.len()]);
        let walks = std::iter::zip(tasks, sequences).map(walk).collect();
        Self { walks, stopped, posts, ends, answers, missing, came, unasked }
    }

    /// Whether all questions of a queue are asked.
    pub fn asks_all(&self, queue: TaskIx) -> bool {
        self.unasked[queue as usize] == 0
    }

    /// Until nobody can do any more. A server stops before the first question, and each is answered at once.
    pub fn on(&mut self) {
        let mut ready: Vec<TaskIx> = (0..self.walks.len() as TaskIx).collect();
        while let Some(ix) = ready.pop() {
            while let Some(token) = Some(&self.walks[ix as usize]).filter(|walk| walk.alive).and_then(Walk::next) {
                match token {
                    Token::Block { waker: NOBODY, .. } | Token::Run(_) | Token::Set(_) => {}
                    Token::Yield | Token::Exec | Token::Answer | Token::Jobs(_) | Token::Loop { .. } => {}
                    // In a section, nobody waits for anything else.
                    Token::Lock(_) | Token::Unlock(_) => {}
                    // Who waits for a place has given a message to one that is there to take it.
                    Token::Take(_) | Token::Give => {}
                    Token::Block { waker: QUEUE, .. } => break,
                    Token::Block { waker: ANSWER, .. } => {
                        if self.answers[ix as usize] == 0 {
                            break;
                        }
                        self.answers[ix as usize] -= 1;
                    }
                    Token::Ask(queue) => {
                        self.answers[ix as usize] += 1;
                        self.unasked[queue as usize] -= 1;
                    }
                    Token::Block { .. } => {
                        if self.posts[ix as usize] == 0 || self.stopped[ix as usize] {
                            break;
                        }
                        self.posts[ix as usize] -= 1;
                    }
                    Token::Join => {
                        if self.ends[ix as usize] == 0 {
                            break;
                        }
                        self.ends[ix as usize] -= 1;
                    }
                    Token::End(parent) => {
                        self.ends[parent as usize] += 1;
                        ready.push(parent);
                    }
                    Token::Post(sleeper) => {
                        self.posts[sleeper as usize] += 1;
                        self.missing[sleeper as usize] -= 1;
                        self.came[sleeper as usize] += 1;
                        ready.push(sleeper);
                    }
                    Token::Fork(child) => {
                        self.walks[child as usize].alive = true;
                        ready.push(child);
                    }
                }
                self.walks[ix as usize].step();
            }
        }
    }
}

//! What is put into sequences that no event of the trace shows: messages, and the ends of children that their parents
//! wait for.

use super::joins::told_at_last;
use super::life::Task;
use super::sequence::{TaskIx, Token, is_folded};
use schedlab_base::Nanos;
use std::collections::{BTreeSet, HashMap};

/// Where something is put into a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// Once the task has done this much of its work.
    Work(Nanos),
    /// Before the fork of this task.
    Fork(TaskIx),
}

/// What to put into the sequences.
#[derive(Debug, Default)]
pub(super) struct Added {
    /// By task: where, and what.
    pub tokens: Vec<Vec<(At, Token)>>,
    /// The bursts that were cut: whose, and its work when it began.
    pub cut: BTreeSet<(TaskIx, Nanos)>,
}

impl Added {
    /// Nothing yet.
    pub(super) fn to(tasks: &[Task]) -> Self {
        Self { tokens: vec![Vec::new(); tasks.len()], ..Self::default() }
    }

    /// A waker sends a message when it is `from` in its work, and a task waits for it when it is `at` in its own.
    pub(super) fn message(&mut self, (waker, from): (TaskIx, Nanos), (task, at): (TaskIx, Nanos)) {
        self.tokens[waker as usize].push((At::Work(from), Token::Post(task)));
        self.tokens[task as usize].push((At::Work(at), Token::Block { length: 0, waker }));
    }

    /// Where a task waits for messages that were added, in its work.
    pub(super) fn waits(&self, task: TaskIx) -> Vec<Nanos> {
        let wait = |(at, token): &(At, Token)| match (at, token) {
            (At::Work(at), Token::Block { .. }) => Some(*at),
            _ => None,
        };
        let mut waits: Vec<Nanos> = self.tokens[task as usize].iter().filter_map(wait).collect();
        waits.sort_unstable();
        waits
    }

    /// A child tells its parent that it ends, when it is `from` in its work.
    pub(super) fn end(&mut self, child: TaskIx, from: Nanos, parent: TaskIx) {
        self.tokens[child as usize].push((At::Work(from), Token::End(parent)));
    }

    /// A parent waits for the ends of so many children.
    pub(super) fn joins(&mut self, parent: TaskIx, at: At, times: usize) {
        self.tokens[parent as usize].extend(std::iter::repeat_n((at, Token::Join), times));
    }
}

/// Puts each token where it belongs: before what the task did then if it is a post, and after that if it is a wait. In
/// a sequence with loops, all but what stands before forks, which are in none, is put at the end.
pub(super) fn insert(list: &[Token], added: Vec<(At, Token)>) -> Vec<Token> {
    let is_wait = |token: &Token| matches!(token, Token::Block { .. } | Token::Join);
    let mut before: HashMap<TaskIx, Vec<Token>> = HashMap::new();
    let mut by_work = Vec::new();
    for (at, token) in added {
        match at {
            At::Work(at) => by_work.push((at, token)),
            At::Fork(child) => before.entry(child).or_default().push(token),
        }
    }
    let folded = is_folded(list);
    // At the end nobody must wait for a task that waits.
    by_work.sort_by_key(|(at, token)| if folded { (0, !is_wait(token)) } else { (*at, is_wait(token)) });
    let mut by_work = by_work.into_iter().peekable();
    let mut out = Vec::with_capacity(list.len() + 2 * by_work.len());
    let mut done: Nanos = 0;
    for token in list {
        let work = match *token {
            Token::Run(work) if !folded => work,
            other => {
                if let Token::Fork(child) = other {
                    out.extend(before.remove(&child).into_iter().flatten());
                }
                out.push(other);
                continue;
            }
        };
        let end = done.saturating_add(work);
        while let Some((at, token)) = by_work.next_if(|(at, token)| *at < end || (*at == end && !is_wait(token))) {
            if at > done {
                out.push(Token::Run(at - done));
                done = at;
            }
            out.push(token);
        }
        if end > done {
            out.push(Token::Run(end - done));
        }
        done = end;
    }
    out.extend(by_work.map(|(_, token)| token));
    if folded { out } else { told_at_last(out) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_stand_where_the_work_is_done() {
        let list = [Token::Run(10), Token::Post(7), Token::Run(5)];
        let wait = Token::Block { length: 0, waker: 9 };
        let added = [(12, Token::Post(2)), (4, Token::Post(1)), (10, wait), (10, Token::Post(3))];
        let added = added.map(|(at, token)| (At::Work(at), token)).to_vec();
        let want = [
            Token::Run(4),
            Token::Post(1),
            Token::Run(6),
            Token::Post(3),
            Token::Post(7),
            wait,
            Token::Run(2),
            Token::Post(2),
            Token::Run(3),
        ];
        assert_eq!(insert(&list, added), want);
    }
}

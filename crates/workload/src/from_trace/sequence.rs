//! What a task did, as a compact sequence: bursts, blocks, wake-ups of others, forks, and loops of these.

use schedlab_base::Nanos;
use std::ops::RangeInclusive;

/// A task's number in the model.
pub(super) type TaskIx = u32;

/// No task: a timer or an interrupt.
pub(super) const NOBODY: TaskIx = TaskIx::MAX;

/// Some task, which one does not matter any more: the sleeper waits on its own semaphore.
pub(super) const SOMEBODY: TaskIx = TaskIx::MAX - 1;

/// A client: the task takes a question from the queue of its service.
pub(super) const QUEUE: TaskIx = TaskIx::MAX - 2;

/// A server: the task takes an answer to its question.
pub(super) const ANSWER: TaskIx = TaskIx::MAX - 3;

/// The longest cycle, in tokens, that is looked for.
const LONGEST_CYCLE: usize = 64;

/// One thing that a task did. Inside a loop, times are totals over all its rounds, so that
/// folding changes no sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// Used this much CPU time (in units of the biggest CPU).
    Run(Nanos),
    /// Was blocked this long, until `waker` woke it.
    Block { length: Nanos, waker: TaskIx },
    /// Woke this task.
    Post(TaskIx),
    /// Asked a question that one of the servers takes whose queue has the name of this task.
    Ask(TaskIx),
    /// Answered the oldest question that it has taken.
    Answer,
    /// Does jobs that the team shares out whose first worker is this one, until all are taken.
    Jobs(TaskIx),
    /// Locked the mutex that has the name of this task.
    Lock(TaskIx),
    /// Unlocked it.
    Unlock(TaskIx),
    /// Took a place in the queue of this task, which has room for so many messages.
    Take(TaskIx),
    /// Gave one back, in its own.
    Give,
    /// Created this task.
    Fork(TaskIx),
    /// Ends, for which its parent, this one, may wait.
    End(TaskIx),
    /// Waits until one of its children has ended.
    Join,
    /// Yielded its CPU.
    Yield,
    /// Became another program.
    Exec,
    /// From then on the task is scheduled as this one of its identities says.
    Set(u32),
    /// The next `len` tokens happened `times` times.
    Loop { times: u32, len: u32 },
}

/// How different two times may be and yet count as equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tolerance {
    /// As a part of the longer one.
    pub part: f64,
    /// Below this difference they are equal anyway.
    pub floor: Nanos,
}

impl Tolerance {
    fn admits(self, a: f64, b: f64) -> bool {
        (a - b).abs() <= (self.part * a.max(b)).max(self.floor as f64)
    }

    /// Whether two tokens do the same, of which the first stands for `na` rounds and the second for `nb`.
    fn same(self, a: &Token, na: u32, b: &Token, nb: u32) -> bool {
        let mean = |sum: Nanos, n: u32| if n == 1 { sum as f64 } else { sum as f64 / f64::from(n) };
        let near = |x: Nanos, y: Nanos| self.admits(mean(x, na), mean(y, nb));
        match (a, b) {
            (Token::Run(x), Token::Run(y)) => near(*x, *y),
            (Token::Block { length: x, waker: v }, Token::Block { length: y, waker: w }) => v == w && near(*x, *y),
            (Token::Post(x), Token::Post(y)) | (Token::Ask(x), Token::Ask(y)) => x == y,
            (Token::Take(x), Token::Take(y)) => x == y,
            (Token::Join, Token::Join) | (Token::Yield, Token::Yield) => true,
            (Token::Exec, Token::Exec) | (Token::Answer, Token::Answer) | (Token::Give, Token::Give) => true,
            // Each fork makes another task, each change another state: never repeated.
            _ => false,
        }
    }

    /// A range of keys that has those of all tokens that do the same as this one; `None` if no token does.
    fn keys_near(self, token: &Token) -> Option<RangeInclusive<u64>> {
        let near = |x: Nanos| {
            let (x, floor, rest) = (x as f64, self.floor as f64, 1.0 - self.part);
            // From a part of 1 on, any length is near. One more, for what is lost by rounding.
            let most = if rest > 0.0 { (x / rest).max(x + floor) + 1.0 } else { f64::INFINITY };
            ((x * rest).min(x - floor) - 1.0) as Nanos..=most as Nanos
        };
        match *token {
            Token::Run(x) | Token::Block { length: x, .. } => {
                let (kind, lengths) = (key(token) & !MOST_KEY, near(x));
                Some(kind | *lengths.start().min(&MOST_KEY)..=kind | *lengths.end().min(&MOST_KEY))
            }
            Token::Post(_) | Token::Ask(_) | Token::Answer | Token::Lock(_) | Token::Unlock(_) => {
                Some(key(token)..=key(token))
            }
            Token::Join | Token::Yield | Token::Exec => Some(key(token)..=key(token)),
            Token::Take(_) | Token::Give => Some(key(token)..=key(token)),
            _ => None,
        }
    }

    fn same_all(self, a: &[Token], na: u32, b: &[Token], nb: u32) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(x, y)| self.same(x, na, y, nb))
    }
}

/// The largest length in a key.
const MOST_KEY: u64 = (1 << 62) - 1;

/// The kind of a token, and its length or the task that it wakes, as one number that is quick to compare.
fn key(token: &Token) -> u64 {
    let (kind, of) = match *token {
        Token::Run(length) => (0, length.min(MOST_KEY)),
        Token::Block { length, .. } => (1, length.min(MOST_KEY)),
        Token::Post(sleeper) => (2, sleeper.into()),
        Token::Ask(queue) => (2, 1 << 32 | u64::from(queue)),
        Token::Lock(name) => (2, 2 << 32 | u64::from(name)),
        Token::Unlock(name) => (2, 3 << 32 | u64::from(name)),
        Token::Take(queue) => (2, 4 << 32 | u64::from(queue)),
        Token::Give => (3, 4),
        Token::Answer => (3, 3),
        Token::Join => (3, 0),
        Token::Yield => (3, 1),
        Token::Exec => (3, 2),
        Token::Fork(_) | Token::End(_) | Token::Set(_) | Token::Jobs(_) | Token::Loop { .. } => (3, MOST_KEY),
    };
    kind << 62 | of
}

/// Appends a token; two bursts without anything between them are one.
pub(super) fn push(list: &mut Vec<Token>, token: Token) {
    match (list.last_mut(), token) {
        (_, Token::Run(0)) => {}
        (Some(Token::Run(sum)), Token::Run(more)) => *sum = sum.saturating_add(more),
        _ => list.push(token),
    }
}

/// A wait for others becomes a sleep of that length; none if it is shorter than this.
pub(super) fn slept(token: Token, least: Nanos) -> Option<Token> {
    match token {
        Token::Block { length, .. } if length < least => None,
        Token::Block { length, .. } => Some(Token::Block { length, waker: NOBODY }),
        other => Some(other),
    }
}

/// One stretch of a sequence: `times` rounds of `body`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stretch<'a> {
    /// How often the body happened; 1 for what is no loop.
    pub times: u32,
    /// What happened; times are totals over all rounds.
    pub body: &'a [Token],
}

/// The stretches of a sequence, in order.
pub(super) fn stretches(list: &[Token]) -> impl Iterator<Item = Stretch<'_>> {
    let mut rest = list;
    std::iter::from_fn(move || {
        let (times, skip, len) = match rest.first()? {
            Token::Loop { times, len } => (*times, 1, *len as usize),
            _ => (1, 0, rest.iter().position(|t| matches!(t, Token::Loop { .. })).unwrap_or(rest.len())),
        };
        let (head, tail) = rest.split_at((skip + len).min(rest.len()));
        rest = tail;
        Some(Stretch { times, body: &head[skip..] })
    })
}

/// One round of a loop of so many, with its mean times.
pub(super) fn mean(body: &[Token], times: u32) -> Vec<Token> {
    let times = Nanos::from(times);
    let mean = |token: &Token| match *token {
        Token::Run(ns) => Token::Run(ns / times),
        Token::Block { length, waker } => Token::Block { length: length / times, waker },
        other => other,
    };
    body.iter().map(mean).collect()
}

/// The sequence without loops, each round with the mean times.
pub(super) fn unfolded(list: &[Token]) -> Vec<Token> {
    stretches(list).flat_map(|Stretch { times, body }| mean(body, times).repeat(times as usize)).collect()
}

/// Folds repetitions into loops: neighbouring rounds that do the same within the tolerance.
pub(super) fn fold(list: &[Token], tolerance: Tolerance) -> Vec<Token> {
    let mut out = Folded { list: Vec::new(), tail: None, tolerance };
    for stretch in stretches(list) {
        if stretch.times > 1 {
            out.add_rounds(stretch.times, stretch.body);
        } else {
            out.add_plain(stretch.body);
        }
    }
    out.list.shrink_to_fit();
    out.list
}

struct Folded {
    list: Vec<Token>,
    /// Where the loop's header is, when the list ends with a loop.
    tail: Option<usize>,
    tolerance: Tolerance,
}

impl Folded {
    fn add_plain(&mut self, mut rest: &[Token]) {
        let keys: Vec<u64> = rest.iter().map(key).collect();
        while let Some(first) = rest.first() {
            if let Some(len) = self.tail_len().filter(|len| *len <= rest.len())
                && self.join_tail(1, &rest[..len])
            {
                rest = &rest[len..];
                continue;
            }
            let used = match self.best_cycle(rest, &keys[keys.len() - rest.len()..]) {
                Some((len, times)) => {
                    let mut body = rest[..len].to_vec();
                    (1..times).for_each(|round| add_times(&mut body, &rest[round * len..(round + 1) * len]));
                    self.add_rounds(times as u32, &body);
                    len * times
                }
                None => {
                    match self.tail.take() {
                        // A burst after a loop is no part of the loop's last burst.
                        Some(_) => self.list.push(*first),
                        None => push(&mut self.list, *first),
                    }
                    1
                }
            };
            rest = &rest[used..];
        }
    }

    fn add_rounds(&mut self, times: u32, body: &[Token]) {
        let (times, body) = &self.reduced(times, body);
        let (times, body) = (*times, body.as_slice());
        if !self.join_tail(times, body) {
            self.tail = Some(self.list.len());
            self.list.push(Token::Loop { times, len: body.len() as u32 });
            self.list.extend_from_slice(body);
        }
    }

    /// A body that is itself made of equal rounds becomes one of them, so many times more.
    fn reduced(&self, times: u32, body: &[Token]) -> (u32, Vec<Token>) {
        for len in (1..=body.len() / 2).filter(|len| body.len().is_multiple_of(*len)) {
            let mut rounds = body.chunks_exact(len);
            let Some(first) = rounds.next() else { break };
            let Some(more) = times.checked_mul((body.len() / len) as u32) else { break };
            if rounds.clone().all(|round| self.tolerance.same_all(first, times, round, times)) {
                let mut sum = first.to_vec();
                rounds.for_each(|round| add_times(&mut sum, round));
                return (more, sum);
            }
        }
        (times, body.to_vec())
    }

    fn tail_len(&self) -> Option<usize> {
        self.tail.map(|at| self.list.len() - at - 1)
    }

    /// Adds rounds to the loop that the list ends with, if they do the same as its own.
    fn join_tail(&mut self, more: u32, body: &[Token]) -> bool {
        let Some(at) = self.tail else { return false };
        let Token::Loop { times, len } = self.list[at] else { return false };
        let Some(sum) = times.checked_add(more) else { return false };
        if !self.tolerance.same_all(&self.list[at + 1..], times, body, more) {
            return false;
        }
        add_times(&mut self.list[at + 1..], body);
        self.list[at] = Token::Loop { times: sum, len };
        true
    }

    /// The cycle at the head of `rest`, which has these keys, that saves most: its length and how often it comes.
    fn best_cycle(&self, rest: &[Token], keys: &[u64]) -> Option<(usize, usize)> {
        let mut best = None;
        let mut best_saving = 3;
        let near = self.tolerance.keys_near(&rest[0])?;
        for len in (1..=LONGEST_CYCLE.min(rest.len() / 2)).filter(|len| near.contains(&keys[*len])) {
            let anchor = &rest[..len];
            let times = 1 + rest[len..]
                .chunks_exact(len)
                .take(u32::MAX as usize - 1)
                .take_while(|round| self.tolerance.same_all(anchor, 1, round, 1))
                .count();
            let saving = len * (times - 1);
            if saving > best_saving {
                (best, best_saving) = (Some((len, times)), saving);
            }
        }
        best
    }
}

fn add_times(sum: &mut [Token], more: &[Token]) {
    for (a, b) in sum.iter_mut().zip(more) {
        match (a, b) {
            (Token::Run(x), Token::Run(y)) => *x = x.saturating_add(*y),
            (Token::Block { length: x, .. }, Token::Block { length: y, .. }) => *x = x.saturating_add(*y),
            _ => {}
        }
    }
}

/// Replaces or drops tokens (never loops); bursts that become neighbours become one, and a loop
/// that is left with nothing but a burst becomes that burst.
pub(super) fn rewrite(list: &[Token], mut change: impl FnMut(Token) -> Option<Token>) -> Vec<Token> {
    let mut out = Vec::new();
    let mut body = Vec::new();
    let mut after_loop = false;
    for Stretch { times, body: old } in stretches(list) {
        body.clear();
        old.iter().filter_map(|t| change(*t)).for_each(|t| push(&mut body, t));
        let only_bursts = body.iter().all(|t| matches!(t, Token::Run(_)));
        if times > 1 && !only_bursts {
            out.push(Token::Loop { times, len: body.len() as u32 });
            out.append(&mut body);
            after_loop = true;
        } else {
            for token in body.drain(..) {
                if after_loop && token != Token::Run(0) {
                    out.push(token);
                    after_loop = false;
                } else {
                    push(&mut out, token);
                }
            }
        }
    }
    out
}

/// Whether rounds were folded into loops.
pub(super) fn is_folded(list: &[Token]) -> bool {
    list.iter().any(|token| matches!(token, Token::Loop { .. }))
}

/// The CPU time in a sequence.
pub(super) fn total_run(list: &[Token]) -> Nanos {
    list.iter().map(|t| if let Token::Run(ns) = t { *ns } else { 0 }).fold(0, Nanos::saturating_add)
}

/// How far a task is in its work at each of these tokens.
pub(super) fn places(list: &[Token], is: impl Fn(&Token) -> bool) -> Vec<Nanos> {
    let mut work: Nanos = 0;
    let mut places = Vec::new();
    for token in list {
        match token {
            Token::Run(length) => work = work.saturating_add(*length),
            token if is(token) => places.push(work),
            _ => {}
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EXACT: Tolerance = Tolerance { part: 0.0, floor: 0 };
    const LOOSE: Tolerance = Tolerance { part: 0.1, floor: 0 };

    fn block(length: Nanos) -> Token {
        Token::Block { length, waker: NOBODY }
    }

    #[test]
    fn equal_rounds_become_a_loop() {
        let list: Vec<Token> =
            (0..100).flat_map(|_| [Token::Run(5), Token::Post(3), Token::Run(2), block(9)]).collect();
        let folded = fold(&list, EXACT);
        assert_eq!(folded[0], Token::Loop { times: 100, len: 4 });
        assert_eq!((folded.len(), total_run(&folded)), (5, 700));
        assert_eq!(unfolded(&folded), list);
    }

    #[test]
    fn a_later_piece_joins_the_loop_before_it() {
        let round = [Token::Run(100), block(50)];
        let mut list = fold(&round.repeat(10), EXACT);
        list.extend([Token::Run(104), block(51)]);
        assert_eq!(fold(&list, LOOSE), [Token::Loop { times: 11, len: 2 }, Token::Run(1104), block(551)]);
        assert_eq!(stretches(&fold(&list, EXACT)).count(), 2);
    }

    #[test]
    fn dropping_what_stood_between_bursts_joins_them() {
        let list: Vec<Token> = (0..10).flat_map(|_| [Token::Run(5), Token::Post(3)]).collect();
        let folded = fold(&list, EXACT);
        assert_eq!(rewrite(&folded, |t| (t != Token::Post(3)).then_some(t)), [Token::Run(50)]);
    }

    fn token() -> impl Strategy<Value = Token> {
        prop_oneof![
            (1u64..4).prop_map(Token::Run),
            (1u64..4).prop_map(block),
            (0u32..2).prop_map(Token::Post),
            Just(Token::Fork(7)),
        ]
    }

    proptest! {
        #[test]
        fn what_is_the_same_has_a_near_key(a in token(), b in token(), scale in 1u64..1 << 40, part in 0.0..1.2) {
            let times = |token| match token {
                Token::Run(x) => Token::Run(x * scale),
                Token::Block { length: x, waker } => Token::Block { length: x * scale / 2, waker },
                other => other,
            };
            let (a, b) = (times(a), times(b));
            for tolerance in [Tolerance { part, floor: scale }, Tolerance { part, floor: 0 }, EXACT] {
                let same = tolerance.same(&a, 1, &b, 1);
                let near = tolerance.keys_near(&a).is_some_and(|keys| keys.contains(&key(&b)));
                prop_assert!(near || !same, "{:?} {:?} {:?}", tolerance, a, b);
            }
        }

        #[test]
        fn folding_exactly_loses_nothing(raw in prop::collection::vec(token(), 0..400)) {
            let mut list = Vec::new();
            raw.into_iter().for_each(|t| push(&mut list, t));
            let folded = fold(&list, EXACT);
            prop_assert_eq!(unfolded(&folded), list.clone());
            prop_assert_eq!(fold(&folded, EXACT).len() <= folded.len(), true);
        }

        #[test]
        fn folding_loosely_keeps_the_sums_and_the_order(raw in prop::collection::vec(token(), 0..400)) {
            let mut list = Vec::new();
            raw.into_iter().for_each(|t| push(&mut list, t));
            let folded = fold(&list, Tolerance { part: 1.0, floor: 0 });
            prop_assert_eq!(total_run(&folded), total_run(&list));
            let kinds = |l: &[Token]| l.iter().map(|t| match t {
                Token::Run(_) => Token::Run(1),
                Token::Block { waker, .. } => Token::Block { length: 1, waker: *waker },
                other => *other,
            }).collect::<Vec<_>>();
            prop_assert_eq!(kinds(&unfolded(&folded)), kinds(&list));
        }
    }
}

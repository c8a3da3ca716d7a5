//! How fast tasks send each other messages, by those that show.
//!
//! A task that tells another one of each job that it has done cannot have sent ten messages during one job. So no
//! burst is cut into more messages ([`super::unseen`]) than its wakers could send meanwhile.

use super::life::Task;
use super::sequence::{TaskIx, Token, is_folded};
use schedlab_base::Nanos;
use std::collections::HashMap;

/// So many messages at least tell how fast they can follow each other.
const FEWEST: usize = 16;

/// One of so many messages follows the one before it sooner than what counts as the shortest time: a wake-up that had
/// another cause may come at any time.
const ONE_OF: usize = 32;

/// What shows of the messages of one task to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// So many, too few to tell more.
    Few(u64),
    /// The shortest time between two of them, in the sender's work.
    Between(Nanos),
}

/// How fast tasks send messages to others.
#[derive(Debug, Default)]
pub(super) struct Pace {
    shown: HashMap<(TaskIx, TaskIx), Shown>,
    /// The tasks of which it is not known any more when they sent what.
    folded: Vec<bool>,
}

impl Pace {
    pub fn of(tasks: &[Task]) -> Self {
        let folded = tasks.iter().map(|task| is_folded(&task.sequence)).collect();
        let mut pace = Self { shown: HashMap::new(), folded };
        for (sender, task) in (0..).zip(tasks).filter(|(sender, _)| !pace.folded[*sender as usize]) {
            let shown = times(&task.sequence).into_iter().map(|(to, times)| ((sender, to), shown(&times)));
            pace.shown.extend(shown);
        }
        pace
    }

    /// The most messages that a task can send to another one while it does so much work.
    pub fn most(&self, sender: TaskIx, to: TaskIx, work: Nanos) -> u64 {
        match self.shown.get(&(sender, to)) {
            _ if self.folded[sender as usize] => u64::MAX,
            None => 0,
            Some(Shown::Few(count)) => *count,
            Some(Shown::Between(0)) => u64::MAX,
            Some(Shown::Between(between)) => work / between + 1,
        }
    }
}

/// For each task that this one woke: how much work it had done by then, each time.
fn times(list: &[Token]) -> HashMap<TaskIx, Vec<Nanos>> {
    let mut times: HashMap<TaskIx, Vec<Nanos>> = HashMap::new();
    let mut work: Nanos = 0;
    for token in list {
        match *token {
            Token::Run(length) => work = work.saturating_add(length),
            Token::Post(to) => times.entry(to).or_default().push(work),
            _ => {}
        }
    }
    times
}

fn shown(times: &[Nanos]) -> Shown {
    let mut between: Vec<Nanos> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if between.len() < FEWEST {
        return Shown::Few(times.len() as u64);
    }
    let at = between.len() / ONE_OF;
    Shown::Between(*between.select_nth_unstable(at).1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_follow_each_other_no_faster_than_they_were_seen_to() {
        let job = |length| [Token::Run(length), Token::Post(1)];
        let list: Vec<Token> = (0..40).flat_map(|n| job(1_000 + n)).collect();
        assert_eq!(shown(&times(&list)[&1]), Shown::Between(1_002));
        assert_eq!(shown(&times(&list[..20])[&1]), Shown::Few(10));
        assert_eq!(shown(&times(&job(0).repeat(40))[&1]), Shown::Between(0));
        let pace = Pace { shown: HashMap::from([((0, 1), Shown::Between(1_002))]), folded: vec![false, true] };
        assert_eq!([500, 1_002, 10_000].map(|work| pace.most(0, 1, work)), [1, 2, 10]);
        // A task that it never woke; and one of which nothing is known any more.
        assert_eq!((pace.most(0, 2, 10_000), pace.most(1, 0, 10_000)), (0, u64::MAX));
    }
}

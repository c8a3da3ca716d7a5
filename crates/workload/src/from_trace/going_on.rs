//! What a task goes on with: its last rounds.

use super::sequence::{Stretch, Token, mean, stretches};
use schedlab_base::Nanos;

/// Fewer rounds say nothing of what comes next, and more are not needed for it.
const LEAST_ROUNDS: usize = 8;
const MOST_ROUNDS: usize = 32;

/// The last rounds of work and sleep of a sequence, from a sleep, a lock or a place on, without loops; none if there
/// are few. A sleep has at least this length: one of no time is a message that was there before its receiver slept.
pub(super) fn last_rounds(list: &[Token], least: Nanos) -> Option<Vec<Token>> {
    let is_block = |token: &&Token| match token {
        Token::Block { length, .. } => *length >= least,
        token => matches!(token, Token::Lock(_) | Token::Take(_)),
    };
    let (mut pieces, mut rounds) = (Vec::new(), 0);
    for Stretch { times, body } in stretches(list).collect::<Vec<_>>().into_iter().rev() {
        // A fork makes one task, and a change one state: what was before is not done again.
        let once = body.iter().rposition(|token| matches!(token, Token::Fork(_) | Token::Set(_)));
        let body = &body[once.map_or(0, |at| at + 1)..];
        let own = body.iter().filter(is_block).count();
        let again = (MOST_ROUNDS - rounds).div_ceil(own.max(1)).clamp(1, times as usize);
        pieces.push(mean(body, times).repeat(again));
        rounds += own * again;
        if once.is_some() || rounds >= MOST_ROUNDS {
            break;
        }
    }
    let all = pieces.into_iter().rev().flatten().collect::<Vec<Token>>();
    let blocks: Vec<usize> = (0..all.len()).filter(|at| is_block(&&all[*at])).collect();
    (blocks.len() >= LEAST_ROUNDS).then(|| all[blocks[blocks.len().saturating_sub(MOST_ROUNDS)]..].to_vec())
}

/// The last rounds of a task that goes on with them after it has slept for so long; none if it sleeps for much longer
/// than it used to: it has other things to wait for. How long it waits for a mutex or for a place is no length
/// of its own.
pub(super) fn rounds_in_turn(list: &[Token], least: Nanos, asleep: Nanos) -> Option<Vec<Token>> {
    let in_turn = |rounds: &Vec<Token>| locks(rounds) || asleep <= mean_block(rounds, least).saturating_mul(4);
    last_rounds(list, least).filter(in_turn)
}

/// Whether a task takes a mutex, or a place in a queue.
pub(super) fn locks(list: &[Token]) -> bool {
    list.iter().any(|token| matches!(token, Token::Lock(_) | Token::Take(_)))
}

/// The mean length of the sleeps in such rounds.
fn mean_block(rounds: &[Token], least: Nanos) -> Nanos {
    let lengths = || {
        let length = |token: &Token| if let Token::Block { length, .. } = token { Some(*length) } else { None };
        rounds.iter().filter_map(length).filter(|length| *length >= least)
    };
    lengths().fold(0, Nanos::saturating_add) / (lengths().count() as Nanos).max(1)
}

#[cfg(test)]
mod tests {
    use super::super::sequence::{NOBODY, Tolerance, fold, push};
    use super::*;
    use proptest::prelude::*;

    fn token() -> impl Strategy<Value = Token> {
        prop_oneof![
            (1u64..4).prop_map(Token::Run),
            (1u64..4).prop_map(|length| Token::Block { length, waker: NOBODY }),
            (0u32..2).prop_map(Token::Post),
            Just(Token::Lock(3)),
            Just(Token::Fork(7)),
        ]
    }

    proptest! {
        #[test]
        fn the_last_rounds_are_those_of_the_sequence(raw in prop::collection::vec(token(), 0..400)) {
            let mut list = Vec::new();
            raw.into_iter().for_each(|t| push(&mut list, t));
            let rounds = last_rounds(&list, 0);
            prop_assert_eq!(&last_rounds(&fold(&list, Tolerance { part: 0.0, floor: 0 }), 0), &rounds);
            let is_block = |t: &Token| matches!(t, Token::Block { .. } | Token::Lock(_));
            let once = list.iter().rposition(|t| matches!(t, Token::Fork(_) | Token::Set(_))).map_or(0, |at| at + 1);
            let blocks = list[once..].iter().filter(|t| is_block(t)).count();
            prop_assert_eq!(rounds.is_some(), blocks >= LEAST_ROUNDS);
            if let Some(rounds) = rounds {
                prop_assert!(list.ends_with(&rounds) && is_block(&rounds[0]));
                prop_assert_eq!(rounds.iter().filter(|t| is_block(t)).count(), blocks.min(MOST_ROUNDS));
            }
        }
    }
}

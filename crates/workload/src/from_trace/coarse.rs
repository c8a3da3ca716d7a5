//! Keeps a model small: folds repetition, ever more loosely, and in the end gives up who wakes whom.

use super::life::Task;
use super::sequence::{NOBODY, Token, Tolerance, average, fold, rewrite};
use super::track::Track;

/// How loosely rounds are compared, step by step. The first step keeps the lengths of short bursts, which decide which
/// of two tasks comes first.
const TOLERANCES: [Tolerance; 5] = [
    Tolerance { part: 0.02, floor: 20 },
    Tolerance { part: 0.02, floor: 2_000 },
    Tolerance { part: 0.10, floor: 10_000 },
    Tolerance { part: 0.50, floor: 50_000 },
    Tolerance { part: f64::INFINITY, floor: 0 },
];

/// What had to be given up so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Coarseness {
    /// Index into [`TOLERANCES`].
    level: usize,
    /// Tasks whose wakers were given up.
    pub cut: usize,
}

impl Coarseness {
    /// Folds all sequences until they have at most `goal` tokens together, no more loosely than needed.
    pub(super) fn shrink(&mut self, track: &mut Track, goal: usize) {
        loop {
            let tolerance = TOLERANCES[self.level];
            each(&mut track.tasks, |task| task.sequence = fold(&task.sequence, tolerance));
            track.tokens = track.tasks.iter().map(|t| t.sequence.len()).sum();
            if track.tokens <= goal {
                return;
            }
            if self.level + 1 < TOLERANCES.len() {
                self.level += 1;
            } else {
                let more = self.cut_longest(track);
                let pieces = (goal / (4 * track.tasks.len().max(1))).clamp(1, 64);
                each(&mut track.tasks, |task| task.sequence = average(&task.sequence, pieces));
                track.tokens = track.tasks.iter().map(|t| t.sequence.len()).sum();
                if !more || track.tokens <= goal {
                    return;
                }
            }
        }
    }

    /// A sequence, folded as loosely as the others.
    pub(super) fn fold(&self, sequence: &[Token]) -> Vec<Token> {
        fold(sequence, TOLERANCES[self.level])
    }

    /// What a reader of the model must know, if anything.
    pub(super) fn remark(&self) -> Option<String> {
        let loosely = match TOLERANCES[self.level] {
            _ if self.level <= 1 => return None,
            t if t.part.is_finite() => format!("that differed by up to {:.0}%", t.part * 100.0),
            _ => "of any length".to_owned(),
        };
        let mut text = format!("to keep the model small, neighbouring cycles {loosely} were replaced by their mean");
        if self.cut > 0 {
            text += &format!("; {} tasks sleep on their own instead of waiting for their wakers", self.cut);
        }
        Some(text)
    }

    /// Gives up who wakes the tasks that hold the longer half of all tokens; `false` when none are left.
    fn cut_longest(&mut self, track: &mut Track) -> bool {
        let causal = |t: &Task| t.sequence.iter().any(|k| matches!(k, Token::Block { waker, .. } if *waker != NOBODY));
        let mut longest: Vec<usize> = (0..track.tasks.len()).filter(|i| causal(&track.tasks[*i])).collect();
        longest.sort_by_key(|i| std::cmp::Reverse(track.tasks[*i].sequence.len()));
        let mut left = track.tokens / 2;
        for i in &longest {
            let task = &mut track.tasks[*i];
            task.cut = true;
            self.cut += 1;
            left = left.saturating_sub(task.sequence.len());
            if left == 0 {
                break;
            }
        }
        let cut: Vec<bool> = track.tasks.iter().map(|t| t.cut).collect();
        each(&mut track.tasks, |task| {
            let own = task.cut;
            task.sequence = rewrite(&task.sequence, |token| match token {
                Token::Block { length, .. } if own => Some(Token::Block { length, waker: NOBODY }),
                Token::Post(sleeper) | Token::End(sleeper) if cut[sleeper as usize] => None,
                Token::Join if own => None,
                other => Some(other),
            });
        });
        !longest.is_empty()
    }
}

fn each(tasks: &mut [Task], change: impl Fn(&mut Task)) {
    tasks.iter_mut().filter(|t| !t.sequence.is_empty()).for_each(change);
}

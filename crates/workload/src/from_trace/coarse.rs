//! Keeps a model small: folds repetition, ever more loosely, and in the end gives up who wakes whom.

use super::life::Task;
use super::sequence::{NOBODY, Stretch, Token, Tolerance, fold, rewrite, stretches};
use super::track::Track;
use schedlab_base::Nanos;

/// How loosely rounds are compared, step by step. The first step keeps the lengths of short bursts, which decide which
/// of two tasks comes first.
const TOLERANCES: [Tolerance; 5] = [
    Tolerance { part: 0.02, floor: 20 },
    Tolerance { part: 0.02, floor: 2_000 },
    Tolerance { part: 0.10, floor: 10_000 },
    Tolerance { part: 0.50, floor: 50_000 },
    Tolerance { part: f64::INFINITY, floor: 0 },
];

/// Bursts whose lengths differ by no more than this part are still alike for what happens between them.
const KEPT: f64 = 0.10;

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

    /// This, and what folds more loosely, as long as it keeps the lengths of bursts to a tenth.
    pub(super) fn looser(self) -> impl Iterator<Item = Self> {
        let last = TOLERANCES.partition_point(|tolerance| tolerance.part <= KEPT).max(self.level + 1);
        (self.level..last).map(move |level| Self { level, ..self })
    }

    /// These sequences, folded so loosely; none if they have more than `most` tokens all the same.
    pub(super) fn fold_all(&self, sequences: &[Vec<Token>], most: usize) -> Option<Vec<Vec<Token>>> {
        let mut left = most;
        let fits = |sequence: &Vec<Token>| {
            let folded = fold(sequence, TOLERANCES[self.level]);
            left = left.checked_sub(folded.len())?;
            Some(folded)
        };
        sequences.iter().map(fits).collect()
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
            text += &match self.cut {
                1 => "; 1 task sleeps on its own instead of waiting for its waker".to_owned(),
                n => format!("; {n} tasks sleep on their own instead of waiting for their wakers"),
            };
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

/// Replaces stretches of nothing but bursts and sleeps by loops of their mean, at most about `pieces` of them.
fn average(list: &[Token], pieces: usize) -> Vec<Token> {
    let plain = |t: &Token| matches!(t, Token::Run(_) | Token::Block { waker: NOBODY, .. });
    let blocks =
        |s: &Stretch| u64::from(s.times) * s.body.iter().filter(|t| matches!(t, Token::Block { .. })).count() as u64;
    let most = stretches(list).map(|s| blocks(&s)).sum::<u64>().div_ceil(pieces.max(1) as u64).min(u32::MAX.into());
    let mut out = Vec::new();
    let mut mean = Mean::default();
    for stretch in stretches(list) {
        if stretch.times > 1 && !stretch.body.iter().all(plain) {
            mean.flush(&mut out);
            out.push(Token::Loop { times: stretch.times, len: stretch.body.len() as u32 });
            out.extend_from_slice(stretch.body);
            continue;
        }
        for token in stretch.body {
            match *token {
                Token::Run(ns) => mean.run = mean.run.saturating_add(ns),
                Token::Block { length, waker: NOBODY } => {
                    mean.sleep = mean.sleep.saturating_add(length);
                    mean.times = mean.times.saturating_add(stretch.times);
                }
                other => {
                    mean.flush(&mut out);
                    out.push(other);
                }
            }
        }
        if u64::from(mean.times) >= most {
            mean.flush(&mut out);
        }
    }
    mean.flush(&mut out);
    out
}

/// Rounds of a burst and a sleep, summed up.
#[derive(Default)]
struct Mean {
    times: u32,
    run: Nanos,
    sleep: Nanos,
}

impl Mean {
    fn flush(&mut self, out: &mut Vec<Token>) {
        let Self { times, run, sleep } = std::mem::take(self);
        if times > 1 {
            out.push(Token::Loop { times, len: 2 });
        }
        if run > 0 || times > 1 {
            out.push(Token::Run(run));
        }
        if times > 0 {
            out.push(Token::Block { length: sleep, waker: NOBODY });
        }
    }
}

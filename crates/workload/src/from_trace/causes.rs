//! Who is the cause of whose wake-ups, decided for all pairs of tasks, and what follows for their sequences.

use super::ModelBuilder;
use super::cause::Facts;
use super::sequence::{ANSWER, NOBODY, SOMEBODY, TaskIx, Token, rewrite};
use super::track::Track;
use schedlab_base::Nanos;
use std::collections::HashMap;

impl Track {
    /// Whether the waker is taken as the cause of the sleeper's wake-ups, over a trace of this length.
    pub(super) fn causal(&self, waker: TaskIx, sleeper: TaskIx, span: Nanos) -> bool {
        let [w, s] = [waker, sleeper].map(|ix| {
            let task = &self.tasks[ix as usize];
            Facts { wakes: &task.wakes, run: task.run }
        });
        self.pairs.causal(waker, &w, sleeper, &s, span)
    }

    /// How often tasks that are not kept woke tasks that are.
    pub(super) fn unseen(&self, kept: &[bool], span: Nanos) -> u64 {
        let left_out = |(waker, sleeper, _): &(TaskIx, TaskIx, u64)| {
            kept[*sleeper as usize] && !kept[*waker as usize] && self.causal(*waker, *sleeper, span)
        };
        self.pairs.all().filter(left_out).map(|(_, _, times)| times).sum()
    }
}

/// The decisions, each made once.
pub(super) struct Causes<'a> {
    pub(super) kept: &'a [bool],
    span: Nanos,
    decided: HashMap<(TaskIx, TaskIx), bool>,
}

impl Causes<'_> {
    /// Whether the waker, as the model has it, wakes the sleeper.
    pub(super) fn hold(&mut self, track: &Track, waker: TaskIx, sleeper: TaskIx) -> bool {
        let both = self.kept[waker as usize] && self.kept[sleeper as usize] && !track.tasks[sleeper as usize].cut;
        both && *self.decided.entry((waker, sleeper)).or_insert_with(|| track.causal(waker, sleeper, self.span))
    }
}

impl ModelBuilder {
    /// Decides who woke whom, and drops what belongs to tasks that are left out.
    pub(super) fn settle<'a>(&mut self, kept: &'a [bool]) -> Causes<'a> {
        let selected = &mut self.replay.observer.0;
        let ((start, end), track) = (selected.bounds(), &mut selected.inner);
        let whole = self.partial.is_none();
        let mut causes = Causes { kept, span: end - start, decided: HashMap::new() };
        for own in 0..track.tasks.len() as TaskIx {
            let old = std::mem::take(&mut track.tasks[own as usize].sequence);
            if !kept[own as usize] {
                continue;
            }
            let yields = whole && track.yielded(own, &self.groups);
            track.tasks[own as usize].sequence = rewrite(&old, |token| match token {
                Token::Block { length, waker } => {
                    let waker = if waker != NOBODY && causes.hold(track, waker, own) { waker } else { NOBODY };
                    Some(Token::Block { length, waker })
                }
                Token::Post(sleeper) if !causes.hold(track, own, sleeper) => None,
                Token::Fork(child) if !kept[child as usize] => None,
                Token::Yield if !yields => None,
                other => Some(other),
            });
        }
        causes
    }
}

/// Forgets who woke the task, once that is decided: rounds may then be alike that had different wakers.
pub(super) fn forget_wakers(list: &mut [Token]) {
    for token in list {
        if let Token::Block { waker, .. } = token
            && *waker < ANSWER
        {
            *waker = SOMEBODY;
        }
    }
}

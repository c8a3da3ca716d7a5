//! What a task did before the trace began: nobody saw it, and it is taken for the mirror image of what it did after
//! that. A task whose rounds are all alike has the same averages either way; the load averages of the kernel (PELT)
//! forget half in 33 ms, so that the first tenth of a second decides.

use super::life::Begin;
use schedlab_base::{Averages, Nanos};

/// In what time a load average forgets half: 32 periods of 1,048,576 ns.
const HALF_LIFE: f64 = 32.0 * 1_048_576.0;

/// The averages of a task, as they grow along the trace.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Past {
    /// When the trace begins.
    start: Nanos,
    running: f64,
    runnable: f64,
    /// Since when it is runnable.
    since: Option<Nanos>,
    /// It was not there when the trace began.
    born: bool,
}

/// The weight of the time up to `until` after the beginning; that of all time is 1.
fn weight(until: Nanos) -> f64 {
    1.0 - (-(until as f64) / HALF_LIFE).exp2()
}

impl Past {
    /// That of a task that sleeps when a trace begins.
    pub fn asleep(start: Nanos) -> Self {
        Self { start, ..Self::default() }
    }

    /// That of a task that is runnable once it begins, in a trace that begins at `start`.
    pub fn of(start: Nanos, begin: Begin) -> Self {
        match begin {
            Begin::After(after) => Self { since: Some(start.saturating_add(after)), ..Self::asleep(start) },
            Begin::Forked { .. } => Self { born: true, ..Self::asleep(start) },
        }
    }

    /// It was not there when the trace began.
    pub fn is_born(&mut self) {
        self.born = true;
    }

    /// It ran.
    pub fn runs(&mut self, from: Nanos, until: Nanos) {
        self.running += self.weight(from, until);
    }

    /// It is runnable from now on.
    pub fn wakes(&mut self, now: Nanos) {
        self.since = Some(now);
    }

    /// It sleeps from now on, or is no more.
    pub fn rests(&mut self, now: Nanos) {
        if let Some(since) = self.since.take() {
            self.runnable += self.weight(since, now);
        }
    }

    fn weight(&self, from: Nanos, until: Nanos) -> f64 {
        weight(until.saturating_sub(self.start)) - weight(from.saturating_sub(self.start))
    }

    /// The averages of a task that was there when a trace of this length began.
    pub fn averages(&self, span: Nanos) -> Option<Averages> {
        let all = weight(span.max(1));
        let of = |part: f64| ((part / all).clamp(0.0, 1.0) * f64::from(Averages::ALWAYS)).round() as u32;
        let runnable = of(self.runnable);
        (!self.born).then(|| Averages { runnable, running: of(self.running).min(runnable) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn what_a_task_does_at_the_beginning_counts_most() {
        // It runs for the first of two half-lives, waits for the second, and then sleeps.
        let half = HALF_LIFE as Nanos;
        let mut past = Past::of(0, Begin::After(0));
        past.runs(0, half);
        past.rests(2 * half);
        assert_eq!(past.averages(100 * half), Some(Averages { runnable: 768, running: 512 }));
    }

    #[test]
    fn a_short_trace_says_as_much_of_a_task_that_does_the_same_throughout() {
        for span in [10, 1000] {
            let mut past = Past::of(5 * MS, Begin::After(0));
            for ms in 0..span {
                past.runs((5 + ms) * MS, (5 + ms) * MS + MS / 4);
            }
            past.rests((5 + span) * MS);
            let Averages { runnable, running } = past.averages(span * MS).unwrap();
            assert!(runnable == 1024 && (254..262).contains(&running), "{runnable} {running}");
        }
    }

    #[test]
    fn who_slept_has_nothing_and_who_was_not_there_has_no_past() {
        assert_eq!(Past::asleep(0).averages(MS), Some(Averages::default()));
        assert_eq!(Past::of(0, Begin::Forked { by: 0, after: 3 }).averages(MS), None);
    }
}

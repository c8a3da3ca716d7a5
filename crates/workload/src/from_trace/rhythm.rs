//! Tasks that a timer wakes at regular times.
//!
//! Such a task sleeps until the next expiry. If one came while it was still at work, the timer of some programs is late
//! from then on, and that of others keeps its grid: then the task goes on at once, which nothing shows but that its
//! next wake-up is two or more periods after the last one.

use super::cause::{SHORTEST_TIMED, Sample};
use super::life::Task;
use super::sequence::{NOBODY, Token};
use schedlab_base::Nanos;

/// So many intervals show what is usual.
const FEWEST: u64 = 8;

/// From the tenth to the ninetieth percentile intervals differ by such a part of the period, and by less than the
/// lengths of the sleeps do; or by more, and by far less than those.
const PRECISE: f64 = 0.02;
const LATE: f64 = 0.05;
const FAR_LESS: f64 = 3.0;

/// A wake-up is on the grid if it is no farther from it than such a part of the period.
const OFF_GRID: f64 = 0.1;

/// An interval in which expiries may have gone by.
#[derive(Clone, Copy, Debug)]
struct Long {
    /// Where the sleep at its end is in the task's sequence, and how long it was.
    place: usize,
    slept: Nanos,
    interval: Nanos,
}

/// How far this is from a whole number of periods, as a part of one, and that number, which is 1 at least.
fn folded(interval: Nanos, period: Nanos) -> (f64, u64) {
    let beats = ((interval + period / 2) / period).max(1);
    ((interval as f64 - (beats * period) as f64) / period as f64, beats)
}

/// Whether an expiry may have gone by in this interval; in any where it is not known what is usual (0).
fn is_long(interval: Nanos, usual: Nanos) -> bool {
    interval * 2 >= usual * 3
}

/// When a task was woken, one time after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Rhythm {
    /// Times from one wake-up to the next.
    pub intervals: Sample,
    /// The first wake-up, and the last one.
    span: Option<(Nanos, Nanos)>,
    /// The usual interval, as it was estimated last; 0 before the first estimate.
    usual: Nanos,
    /// How many usual intervals have gone by.
    beats: u64,
    /// The intervals that were longer; before the first estimate, all.
    long: Vec<Long>,
    /// There were too many of those.
    irregular: bool,
}

/// A timer's rhythm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beat {
    pub period: Nanos,
    /// Whether an expiry that was missed does not make the next ones late.
    pub keeps_grid: bool,
}

impl Beat {
    /// How long after the last expiry that woke it the one comes that ends a sleep of this length; none if it does not
    /// wait for one. A timer that keeps its grid goes on during a pause: it would make up for one that it does not
    /// count.
    pub fn until_woken(self, slept: Nanos) -> Option<Nanos> {
        if self.keeps_grid {
            // One that it waited for whole is late by a little.
            let beats = slept.saturating_sub(self.period / 10).div_ceil(self.period).max(1);
            return Some(beats * self.period);
        }
        (slept < self.period + self.period / 2).then_some(self.period)
    }
}

impl Rhythm {
    /// The task is woken after a sleep of this length, whose place in its sequence this is.
    pub fn add(&mut self, now: Nanos, slept: Nanos, place: usize) {
        let Some((_, last)) = &mut self.span else {
            self.span = Some((now, now));
            return;
        };
        let interval = now.saturating_sub(std::mem::replace(last, now));
        self.intervals.add(interval);
        let seen = self.intervals.seen();
        if self.usual > 0 {
            self.beats += folded(interval, self.usual).1;
        }
        if !self.irregular && is_long(interval, self.usual) {
            self.long.push(Long { place, slept, interval });
        }
        if seen >= FEWEST && seen.is_power_of_two() {
            let usual = self.intervals.percentile(50).max(1);
            if self.usual == 0 {
                self.beats = self.long.iter().map(|long| folded(long.interval, usual).1).sum();
            }
            self.usual = usual;
            self.long.retain(|long| is_long(long.interval, usual));
        }
        if self.long.len() as u64 > FEWEST + seen / 4 {
            (self.irregular, self.long) = (true, Vec::new());
        }
    }

    /// The rhythm, when the task wakes on a beat that its sleeps alone do not explain: after a longer burst or wait it
    /// sleeps less. `varies` is how much these differ, as a part of the median one.
    pub fn beat(&self, varies: f64) -> Option<Beat> {
        let (usual, _) = self.intervals.spread()?;
        let (first, last) = self.span?;
        if usual < SHORTEST_TIMED || self.irregular {
            return None;
        }
        let mut off: Vec<f64> = self.intervals.kept().0.iter().map(|interval| folded(*interval, usual).0).collect();
        off.sort_by(f64::total_cmp);
        let at = |percent: usize| off[(off.len() - 1) * percent / 100];
        let jitter = at(90) - at(10);
        if !(jitter <= PRECISE && jitter < varies || jitter <= LATE && jitter * FAR_LESS < varies) {
            return None;
        }
        // Late wake-ups add up in the median, and not from the first to the last.
        let exact = (last - first) / self.beats.max(1);
        let (difference, beats) = folded(exact, usual);
        let period = if beats == 1 && difference.abs() < PRECISE { exact } else { usual };
        let long = || self.long.iter().map(|long| long.interval).filter(|interval| is_long(*interval, usual));
        let on_grid = long().filter(|interval| folded(*interval, period).0.abs() <= OFF_GRID).count();
        Some(Beat { period, keeps_grid: on_grid > 0 && on_grid * 2 >= long().count() })
    }
}

/// Makes the sleeps longer before which expiries went by: each is then as long as if the task had slept through these,
/// so that its length tells how many periods it ends after the wake-up before.
pub(super) fn count_missed(tasks: &mut [Task]) {
    for task in tasks {
        let Some(beat) = task.wakes.beat().filter(|beat| beat.keeps_grid) else { continue };
        for long in &task.wakes.rhythm.long {
            let (off, beats) = folded(long.interval, beat.period);
            let Some(Token::Block { length, waker: NOBODY }) = task.sequence.get_mut(long.place) else { continue };
            if off.abs() <= OFF_GRID && *length == long.slept {
                *length += (beats - 1).saturating_sub(*length / beat.period) * beat.period;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_expiries_that_were_missed_show_a_grid() {
        let beat = |expiries: &[u64]| {
            let mut rhythm = Rhythm::default();
            expiries.iter().for_each(|expiry| rhythm.add(expiry * 10_000_000, 4_000_000, 0));
            rhythm.beat(1.0)
        };
        let period = 10_000_000;
        // Before there are enough to say what is usual, and then.
        assert_eq!(beat(&[1, 2, 3, 4, 5, 6, 7]), Some(Beat { period, keeps_grid: false }));
        assert_eq!(beat(&[1, 2, 3, 5, 6, 7, 8]), Some(Beat { period, keeps_grid: true }));
        assert_eq!(beat(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), Some(Beat { period, keeps_grid: false }));
        assert_eq!(beat(&[1, 2, 3, 5, 6, 7, 8, 9, 10, 11]), Some(Beat { period, keeps_grid: true }));
    }

    #[test]
    fn a_timer_that_keeps_its_grid_does_so_during_a_pause() {
        let until = |keeps_grid, slept| Beat { period: 10, keeps_grid }.until_woken(slept);
        assert_eq!(
            [0, 4, 10, 11, 12, 21, 22, 570].map(|slept| until(true, slept).unwrap()),
            [10, 10, 10, 10, 20, 20, 30, 570]
        );
        assert_eq!([0, 14, 15, 570].map(|slept| until(false, slept)), [Some(10), Some(10), None, None]);
    }
}

//! Who ran for how long while a task waited.

use schedlab_base::Nanos;
use schedlab_track::row;

/// What had a CPU: a task's slot, or one of these.
pub(super) type Who = u32;
/// The idle task.
pub(super) const IDLE: Who = u32::MAX - 1;
/// Nobody can tell.
pub(super) const UNKNOWN: Who = u32::MAX;
/// Tasks beyond [`MOST`].
pub(super) const OTHERS: Who = u32::MAX - 2;

/// Who ran, and for how long.
pub(super) type Entry = (Who, Nanos);

/// At most this many tasks are kept apart in a wait that is told: those that ran longest.
pub(super) const MOST: usize = 256;

/// At most this many are kept apart as long as it is not known whether the wait will be told.
pub(super) const MEANWHILE: usize = 1024;

/// Adds up who ran for how long: a table of all tasks, of which few are in use and which is empty between two sums.
#[derive(Debug, Default)]
pub(super) struct Tally {
    tasks: Vec<Nanos>,
    /// Of what is no task.
    others: [Nanos; 3],
    /// Those with a time, in the order in which they came first.
    seen: Vec<Who>,
}

impl Tally {
    #[inline]
    fn of(&mut self, who: Who) -> &mut Nanos {
        if who < OTHERS { row(&mut self.tasks, who) } else { &mut self.others[(who - OTHERS) as usize] }
    }

    /// Adds these times.
    pub(super) fn add(&mut self, entries: &[Entry]) {
        for (who, time) in entries.iter().filter(|(_, time)| *time > 0) {
            let sum = self.of(*who);
            let first = *sum == 0;
            *sum = sum.saturating_add(*time);
            if first {
                self.seen.push(*who);
            }
        }
    }

    /// The sums, an entry each. Of more than `most` tasks those that ran longest are kept apart, and the others are
    /// added up.
    pub(super) fn take(&mut self, most: usize) -> Vec<Entry> {
        let mut seen = std::mem::take(&mut self.seen);
        let mut sums: Vec<Entry> = seen.drain(..).map(|who| (who, std::mem::take(self.of(who)))).collect();
        self.seen = seen;
        fold(&mut sums, most);
        sums
    }
}

fn fold(sums: &mut Vec<Entry>, most: usize) {
    let is_task = |(who, _): &Entry| *who < OTHERS;
    let tasks = sums.iter().filter(|entry| is_task(entry)).count();
    if tasks <= most {
        return;
    }
    let apart = most + sums.len() - tasks;
    sums.select_nth_unstable_by_key(apart, |entry| (is_task(entry), std::cmp::Reverse(entry.1), entry.0));
    let beyond = sums.drain(apart..).fold(0, |sum: Nanos, (_, time)| sum.saturating_add(time));
    match sums.iter_mut().find(|(who, _)| *who == OTHERS) {
        Some((_, others)) => *others = others.saturating_add(beyond),
        None => sums.push((OTHERS, beyond)),
    }
}

/// How long this one ran, of sums.
pub(super) fn time_of(sums: &[Entry], who: Who) -> Nanos {
    sums.iter().find(|(known, _)| *known == who).map_or(0, |(_, time)| *time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::Rng;
    use std::collections::BTreeMap;

    #[test]
    fn each_stands_once_with_its_sum() {
        let mut rng = Rng::new(7);
        let mut tally = Tally::default();
        for _ in 0..20 {
            let mut sums = BTreeMap::<Who, Nanos>::new();
            let mut meanwhile = Vec::new();
            for _ in 0..1_000 {
                let who = if rng.below(10) == 0 { IDLE } else { rng.below(MOST as u64) as Who };
                let time = 1 + rng.below(1_000);
                tally.add(&[(who, time)]);
                *sums.entry(who).or_default() += time;
                if rng.below(50) == 0 {
                    meanwhile = tally.take(MEANWHILE);
                    tally.add(&meanwhile);
                }
            }
            assert!(!meanwhile.is_empty());
            let all = tally.take(MOST);
            assert_eq!((all.len(), time_of(&all, IDLE), time_of(&all, UNKNOWN)), (sums.len(), sums[&IDLE], 0));
            assert_eq!(all.into_iter().collect::<BTreeMap<_, _>>(), sums);
        }
        assert_eq!(tally.take(MOST), []);
    }

    #[test]
    fn of_too_many_tasks_the_longest_are_kept_apart() {
        let mut tally = Tally::default();
        (0..1_000).for_each(|who| tally.add(&[(who, if who % 4 == 0 { 1_000_000 + u64::from(who) } else { 1 })]));
        tally.add(&[(IDLE, 3)]);
        let sums = tally.take(MOST);
        let longest = sums.iter().filter(|(who, _)| *who < OTHERS && who % 4 == 0).count();
        assert_eq!((longest, sums.len(), time_of(&sums, OTHERS), time_of(&sums, IDLE)), (250, MOST + 2, 744, 3));
    }
}

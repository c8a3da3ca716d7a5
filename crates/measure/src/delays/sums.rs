//! Who ran for how long, in lists that many tasks keep and hand to each other.

use schedlab_base::Nanos;

/// What had a CPU: a task's slot, or one of these.
pub(super) type Who = u32;
/// The idle task.
pub(super) const IDLE: Who = u32::MAX - 1;
/// Nobody can tell.
pub(super) const UNKNOWN: Who = u32::MAX;
/// Tasks beyond [`MOST`].
pub(super) const OTHERS: Who = u32::MAX - 2;

/// At most this many tasks are kept apart in one wait: those that ran longest.
const MOST: usize = 256;

/// A list is summed up when it has grown to twice its length after the last time, and to no less than this.
const SHORT: usize = 32;

/// A power of two, and twice as long as two lists together ever are.
const TABLE: usize = 4096;
const _: () = assert!(TABLE >= 2 * 2 * 2 * (MOST + 3));

/// A new entry is added to one of the last few where it can be: two tasks that take turns need two entries.
const NEAR: usize = 4;

/// Who ran for how long: a list of times, in which one task may stand more than once.
///
/// Times are appended, and lists are joined by copying the shorter one; only when a list has doubled are the entries of
/// each task added up. So an entry costs a bounded number of steps, however many tasks wait and leave their queue.
#[derive(Clone, Debug, Default)]
pub(super) struct Ran {
    times: Vec<(Who, Nanos)>,
    /// Its length after it was last summed up.
    summed: usize,
}

impl Ran {
    #[inline]
    pub(super) fn add(&mut self, who: Who, time: Nanos) {
        if let Some((_, sum)) = self.times.iter_mut().rev().take(NEAR).find(|(known, _)| *known == who) {
            *sum = sum.saturating_add(time);
            return;
        }
        self.times.push((who, time));
        self.bound();
    }

    /// Adds the other's times.
    pub(super) fn add_all(&mut self, other: &Self) {
        self.times.extend_from_slice(&other.times);
        self.bound();
    }

    /// Takes the other's times, whose room it may take as well: what is left of the other means nothing.
    pub(super) fn absorb(&mut self, other: &mut Self) {
        if other.times.len() > self.times.len() {
            std::mem::swap(self, other);
        }
        self.add_all(other);
    }

    #[inline]
    fn bound(&mut self) {
        if self.times.len() >= SHORT.max(2 * self.summed) {
            self.sum_up();
        }
    }

    #[cold]
    fn sum_up(&mut self) {
        if self.times.len() <= SHORT {
            self.sum_by_table::<{ 2 * SHORT }>()
        } else {
            self.sum_by_table::<TABLE>()
        }
        self.fold_others();
        self.summed = self.times.len();
    }

    /// Adds up the entries of each task, in the order in which the tasks came first. `N` is a power of two and at least
    /// twice the length.
    fn sum_by_table<const N: usize>(&mut self) {
        // By a hash of the task, the place of its sum, from 1 on.
        let mut places = [0u16; N];
        let mut kept = 0;
        for at in 0..self.times.len() {
            let (who, time) = self.times[at];
            if time == 0 {
                continue;
            }
            let mut place = (who.wrapping_mul(0x9E37_79B1) >> (32 - N.trailing_zeros())) as usize;
            while places[place] != 0 && self.times[usize::from(places[place]) - 1].0 != who {
                place = (place + 1) % N;
            }
            if places[place] == 0 {
                self.times[kept] = (who, time);
                kept += 1;
                places[place] = kept as u16;
            } else {
                let sum = &mut self.times[usize::from(places[place]) - 1].1;
                *sum = sum.saturating_add(time);
            }
        }
        self.times.truncate(kept);
    }

    /// Keeps the tasks that ran longest apart, and adds the others up.
    fn fold_others(&mut self) {
        let is_task = |(who, _): &(Who, Nanos)| *who < OTHERS;
        let all = self.times.len();
        if all <= MOST || self.times.iter().filter(|entry| is_task(entry)).count() <= MOST {
            return;
        }
        let apart = MOST + self.times.iter().filter(|entry| !is_task(entry)).count();
        self.times.select_nth_unstable_by_key(apart, |entry| (is_task(entry), std::cmp::Reverse(entry.1), entry.0));
        let beyond = self.times.drain(apart..).fold(0, |sum: Nanos, (_, time)| sum.saturating_add(time));
        match self.times.iter_mut().find(|(who, _)| *who == OTHERS) {
            Some((_, others)) => *others = others.saturating_add(beyond),
            None => self.times.push((OTHERS, beyond)),
        }
    }

    /// How long this one ran.
    pub(super) fn of(&self, who: Who) -> Nanos {
        let times = self.times.iter().filter(|(known, _)| *known == who);
        times.fold(0, |sum, (_, time)| sum.saturating_add(*time))
    }

    /// Takes at most this much of this one's time away, and returns how much that was.
    pub(super) fn take(&mut self, who: Who, most: Nanos) -> Nanos {
        let mut left = most;
        for (_, time) in self.times.iter_mut().filter(|(known, _)| *known == who) {
            let taken = left.min(*time);
            *time -= taken;
            left -= taken;
        }
        most - left
    }

    /// Each that ran, once, with its time.
    pub(super) fn sums(&self) -> Vec<(Who, Nanos)> {
        let mut sums = self.clone();
        sums.sum_up();
        sums.times
    }

    /// Empties it; the room of a short list is kept.
    pub(super) fn clear(&mut self) {
        if self.times.capacity() > 2 * SHORT {
            self.times = Vec::new()
        } else {
            self.times.clear()
        }
        self.summed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::Rng;
    use std::collections::BTreeMap;

    #[test]
    fn lists_joined_in_any_order_keep_every_sum() {
        let mut rng = Rng::new(7);
        let mut lists = vec![Ran::default(); 5];
        let mut sums = BTreeMap::<Who, Nanos>::new();
        for _ in 0..20_000 {
            let at = rng.below(5) as usize;
            if rng.below(50) == 0 {
                let mut given = std::mem::take(&mut lists[at]);
                lists[(at + 1) % 5].absorb(&mut given);
            } else {
                let who = if rng.below(10) == 0 { IDLE } else { rng.below(MOST as u64) as Who };
                let time = rng.below(1_000);
                lists[at].add(who, time);
                *sums.entry(who).or_default() += time;
            }
            assert!(lists[at].times.len() <= 2 * (MOST + 3));
        }
        let mut all = Ran::default();
        lists.iter().for_each(|list| all.add_all(list));
        assert_eq!(all.sums().into_iter().collect::<BTreeMap<_, _>>(), sums);
        let idle = all.of(IDLE);
        assert_eq!(
            (all.take(IDLE, idle / 2), all.take(IDLE, Nanos::MAX), all.of(IDLE)),
            (idle / 2, idle - idle / 2, 0)
        );
    }

    #[test]
    fn of_too_many_tasks_the_longest_are_kept_apart() {
        let mut ran = Ran::default();
        (0..1_000).for_each(|who| ran.add(who, if who % 10 == 0 { 1_000_000 } else { 1 }));
        let sums = ran.sums();
        let tenths = sums.iter().filter(|(who, _)| *who < OTHERS && who % 10 == 0).count();
        let total: Nanos = sums.iter().map(|(_, time)| time).sum();
        assert_eq!((tenths, total, sums.len()), (100, 100_000_900, MOST + 1));
    }
}

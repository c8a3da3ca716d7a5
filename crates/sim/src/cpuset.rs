//! Sets of CPUs.

use schedlab_base::CpuId;
use std::sync::Arc;

/// A set of CPUs of any size: those that a task may use, or those that a sched domain spans. Most tasks may use all
/// CPUs, and that set needs no memory; any other set takes one bit for each CPU up to its last. Clones share it.
///
/// Two sets are equal if they hold the same CPUs, because no set ends in zero words. Counting and iterating need a set
/// of some CPUs: [`CpuSet::ALL`] has no end. It is the neutral element of the intersection.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuSet(Option<Arc<Vec<u64>>>);

impl CpuSet {
    /// Every CPU.
    pub const ALL: Self = Self(None);

    /// Creates the set of these CPUs.
    #[must_use]
    pub fn of(cpus: &[CpuId]) -> Self {
        let words = cpus.iter().max().map_or(0, |m| *m as usize / 64 + 1);
        let mut bits = vec![0u64; words];
        for &cpu in cpus {
            bits[cpu as usize / 64] |= 1 << (cpu % 64);
        }
        Self(Some(Arc::new(bits)))
    }

    /// Returns whether `cpu` is in the set.
    #[inline]
    #[must_use]
    pub fn contains(&self, cpu: CpuId) -> bool {
        match &self.0 {
            None => true,
            Some(bits) => bits.get(cpu as usize / 64).is_some_and(|w| w >> (cpu % 64) & 1 == 1),
        }
    }

    /// Returns the CPUs of `0..cpus` that are in the set and for which `keep` holds.
    #[must_use]
    pub fn filter(&self, cpus: u32, keep: impl Fn(CpuId) -> bool) -> Self {
        Self::of(&(0..cpus).filter(|cpu| self.contains(*cpu) && keep(*cpu)).collect::<Vec<_>>())
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_some_and(|bits| bits.iter().all(|word| *word == 0))
    }

    /// Returns whether the set is [`CpuSet::ALL`].
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.0.is_none()
    }
}

/// Set operations.
impl CpuSet {
    /// Creates the empty set.
    #[must_use]
    pub fn none() -> Self {
        Self(Some(Arc::default()))
    }

    /// Creates a set from these 64-bit words, lowest CPUs first.
    fn of_words(mut words: Vec<u64>) -> Self {
        words.truncate(words.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1));
        Self(Some(Arc::new(words)))
    }

    /// Returns the bits of the set, 64 CPUs in each word, lowest CPUs first.
    ///
    /// # Panics
    /// If the set is [`CpuSet::ALL`], which has no end.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        self.0.as_ref().expect("every CPU is no list of CPUs")
    }

    /// Returns how many CPUs are in the set.
    ///
    /// # Panics
    /// If the set is [`CpuSet::ALL`].
    #[must_use]
    pub fn count(&self) -> u32 {
        self.words().iter().map(|word| word.count_ones()).sum()
    }

    /// Returns whether the set has exactly one CPU.
    #[must_use]
    pub fn is_single(&self) -> bool {
        !self.is_all() && self.count() == 1
    }

    /// Returns the lowest CPU in the set.
    #[must_use]
    pub fn first(&self) -> Option<CpuId> {
        if self.is_all() { Some(0) } else { self.iter().next() }
    }

    /// Iterates over the CPUs, lowest first.
    ///
    /// # Panics
    /// If the set is [`CpuSet::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.words().iter().enumerate().flat_map(|(at, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(at as CpuId * 64 + bit)
            })
        })
    }

    /// Returns the intersection of two sets.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        match (&self.0, &other.0) {
            (None, _) => other.clone(),
            (_, None) => self.clone(),
            (Some(a), Some(b)) => Self::of_words(a.iter().zip(&**b).map(|(a, b)| a & b).collect()),
        }
    }

    /// Returns the union of two sets.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let (Some(a), Some(b)) = (&self.0, &other.0) else { return Self::ALL };
        let (long, short) = if a.len() < b.len() { (b, a) } else { (a, b) };
        let mut words = long.to_vec();
        words.iter_mut().zip(&**short).for_each(|(word, more)| *word |= more);
        Self::of_words(words)
    }

    /// Returns whether all CPUs of this set are in the other.
    #[must_use]
    pub fn is_subset(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (_, None) => true,
            (None, _) => false,
            (Some(a), Some(b)) => a.len() <= b.len() && a.iter().zip(&**b).all(|(a, b)| a & !b == 0),
        }
    }

    /// Returns whether the two sets have a CPU in common.
    #[must_use]
    pub fn intersects(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, _) => !other.is_empty(),
            (_, None) => !self.is_empty(),
            (Some(a), Some(b)) => a.iter().zip(&**b).any(|(a, b)| a & b != 0),
        }
    }

    /// Returns the set with `cpu` added.
    #[must_use]
    pub fn with(&self, cpu: CpuId) -> Self {
        self.or(&Self::of(&[cpu]))
    }

    /// Returns the set with `cpu` removed.
    ///
    /// # Panics
    /// If the set is [`CpuSet::ALL`].
    #[must_use]
    pub fn without(&self, cpu: CpuId) -> Self {
        let mut words = self.words().to_vec();
        if let Some(word) = words.get_mut(cpu as usize / 64) {
            *word &= !(1 << (cpu % 64));
        }
        Self::of_words(words)
    }
}

#[cfg(test)]
mod tests {
    use super::CpuSet;

    #[test]
    fn a_set_holds_its_cpus() {
        let set = CpuSet::of(&[0, 65]);
        assert!(set.contains(0) && set.contains(65));
        assert!(!set.contains(1) && !set.contains(64) && !set.contains(1000));
        assert!(CpuSet::ALL.contains(4095));
    }

    #[test]
    fn sets_are_joined_cut_and_compared() {
        let (a, b) = (CpuSet::of(&[0, 1, 4095]), CpuSet::of(&[1, 64]));
        assert_eq!(a.and(&b), CpuSet::of(&[1]));
        assert_eq!(a.or(&b), CpuSet::of(&[0, 1, 64, 4095]));
        assert_eq!(a.or(&b), b.or(&a));
        assert!(a.and(&b).is_subset(&a) && !a.is_subset(&b) && a.intersects(&b));
        assert!(!CpuSet::of(&[0]).intersects(&b) && CpuSet::none().is_subset(&b));
        assert_eq!((CpuSet::ALL.and(&a), CpuSet::ALL.or(&a)), (a.clone(), CpuSet::ALL));
        assert_eq!(a.with(2).iter().collect::<Vec<_>>(), [0, 1, 2, 4095]);
        assert_eq!(a.without(4095), CpuSet::of(&[0, 1]));
        assert_eq!((a.count(), a.first(), CpuSet::none().first()), (3, Some(0), None));
    }

    #[test]
    fn a_set_of_4096_takes_512_bytes() {
        let all = CpuSet::of(&(0..4096).collect::<Vec<_>>());
        assert_eq!((all.count(), size_of_val(all.words()), size_of::<CpuSet>()), (4096, 512, 8));
        assert!(all.iter().eq(0..4096));
    }
}

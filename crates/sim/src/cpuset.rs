//! Sets of CPUs.

use schedlab_base::CpuId;

/// The CPUs that a task may use. Most tasks may use all, and that costs no memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSet(Option<Box<[u64]>>);

impl CpuSet {
    /// Every CPU.
    pub const ALL: Self = Self(None);

    /// Just these.
    #[must_use]
    pub fn of(cpus: &[CpuId]) -> Self {
        let words = cpus.iter().max().map_or(0, |m| *m as usize / 64 + 1);
        let mut bits = vec![0u64; words].into_boxed_slice();
        for &cpu in cpus {
            bits[cpu as usize / 64] |= 1 << (cpu % 64);
        }
        Self(Some(bits))
    }

    /// Whether `cpu` is in it.
    #[inline]
    #[must_use]
    pub fn contains(&self, cpu: CpuId) -> bool {
        match &self.0 {
            None => true,
            Some(bits) => bits.get(cpu as usize / 64).is_some_and(|w| w >> (cpu % 64) & 1 == 1),
        }
    }

    /// Those of `0..cpus` that are in it and of which `keep` holds.
    #[must_use]
    pub fn filter(&self, cpus: u32, keep: impl Fn(CpuId) -> bool) -> Self {
        Self::of(&(0..cpus).filter(|cpu| self.contains(*cpu) && keep(*cpu)).collect::<Vec<_>>())
    }

    /// Whether it is no CPU at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_some_and(|bits| bits.iter().all(|word| *word == 0))
    }

    /// Whether it is every CPU.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.0.is_none()
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
}

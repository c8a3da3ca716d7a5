//! How fast the SMT threads of a core are.

/// The share of its speed that each of two SMT siblings loses while both are busy, in percent, on a machine that does
/// not say (docs/machines.md has the source).
pub const SMT_LOSS_PERCENT: u64 = 39;

/// The greatest number of SMT threads of a core whose speeds differ; with more threads, the speed stays the same.
const MOST_THREADS: usize = 8;

/// The speed of an SMT thread by the number of its busy siblings; 1024 is that of a thread alone on its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmtSpeeds([u32; MOST_THREADS]);

impl SmtSpeeds {
    /// The speeds if each of two busy siblings loses so many percent. The second thread of a core adds what two threads
    /// do beyond one; each further thread adds half of what the one before it added.
    #[must_use]
    pub fn new(loss_percent: u64) -> Self {
        let mut gain = 1024.0 * (1.0 - loss_percent as f64 / 50.0);
        let mut total = 1024.0;
        let mut speeds = [1024; MOST_THREADS];
        for (others, speed) in speeds.iter_mut().enumerate().skip(1) {
            total += gain;
            gain /= 2.0;
            *speed = (total / (others + 1) as f64) as u32;
        }
        Self(speeds)
    }

    /// The speed with so many busy siblings.
    #[inline]
    #[must_use]
    pub fn with_busy(&self, siblings: usize) -> u32 {
        self.0[siblings.min(MOST_THREADS - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_a_core_share_it() {
        // Two threads do 122% of one; a third adds 11%, a fourth 5.5%: 1.385 / 4 of 1024 is 354.
        let speeds = |loss| SmtSpeeds::new(loss).0;
        assert_eq!(speeds(39)[..4], [1024, 624, 453, 354]);
        assert_eq!(speeds(0)[1], 1024);
        assert_eq!(speeds(50)[1], 512);
        assert_eq!(SmtSpeeds::new(39).with_busy(100), speeds(39)[7]);
    }
}

//! The CPUs that a thread may run on.
#![allow(unsafe_code)]

use crate::sys::checked;
use schedlab_base::CpuId;
use std::io;

/// The CPUs that a thread may run on, 64 to a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask(Vec<u64>);

impl Mask {
    /// That of the calling thread.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn present() -> io::Result<Self> {
        let mut words = vec![0u64; 1 << 10];
        // SAFETY: the pointer and the size are those of a live vector.
        let bytes = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, words.len() * 8, words.as_mut_ptr()) };
        words.truncate(checked(bytes)? as usize / 8);
        Ok(Self(words))
    }

    /// One CPU.
    #[must_use]
    pub fn only(cpu: CpuId) -> Self {
        let mut words = vec![0u64; cpu as usize / 64 + 1];
        words[cpu as usize / 64] |= 1 << (cpu % 64);
        Self(words)
    }

    /// Its CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        (0..)
            .zip(&self.0)
            .flat_map(|(at, word)| (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit))
    }

    /// The same without some CPUs; `None` if none would be left.
    #[must_use]
    pub fn without(&self, cpus: &[CpuId]) -> Option<Self> {
        let mut words = self.0.clone();
        for cpu in cpus {
            if let Some(word) = words.get_mut(*cpu as usize / 64) {
                *word &= !(1 << (cpu % 64));
            }
        }
        words.iter().any(|word| *word != 0).then_some(Self(words))
    }

    /// Makes it that of the calling thread. If the kernel refuses, nothing changes.
    pub fn set(&self) {
        // SAFETY: the pointer and the size are those of a live vector.
        unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, self.0.len() * 8, self.0.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_loses_cpus_but_never_all() {
        let mask = Mask(vec![0b111, 1]);
        assert_eq!(mask.without(&[1, 64, 999]), Some(Mask(vec![0b101, 0])));
        assert_eq!(mask.without(&[0, 1, 2, 64]), None);
        assert_eq!(mask.iter().collect::<Vec<_>>(), [0, 1, 2, 64]);
    }

    #[test]
    fn this_thread_may_run_somewhere() {
        let present = Mask::present().unwrap();
        assert!(present.0.iter().any(|word| *word != 0));
        present.set();
        assert_eq!(Mask::present().unwrap(), present);
    }
}

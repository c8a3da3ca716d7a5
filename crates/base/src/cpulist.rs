//! Lists of CPUs as the kernel writes them: `0-3,8`.

use crate::{CpuId, Error};
use std::fmt;
use std::str::FromStr;

/// CPU numbers in a list must be below this.
const MAX_CPUS: u64 = 1 << 16;

/// A set of CPUs, kept as sorted ranges that neither touch nor overlap, so that equal sets compare equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CpuList(Vec<(CpuId, CpuId)>);

impl CpuList {
    /// The CPUs from `0` to `count - 1`.
    #[must_use]
    pub fn first(count: u32) -> Self {
        Self(count.checked_sub(1).map(|last| (0, last)).into_iter().collect())
    }

    /// The ranges, each as its first and last CPU.
    #[must_use]
    pub fn ranges(&self) -> &[(CpuId, CpuId)] {
        &self.0
    }

    /// The CPUs in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = CpuId> + '_ {
        self.0.iter().flat_map(|&(first, last)| first..=last)
    }

    /// Whether the set contains `cpu`.
    #[must_use]
    pub fn contains(&self, cpu: CpuId) -> bool {
        self.0.iter().any(|&(first, last)| (first..=last).contains(&cpu))
    }

    /// Whether the set has no CPUs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn of_ranges(mut ranges: Vec<(CpuId, CpuId)>) -> Self {
        ranges.sort_unstable();
        let mut joined: Vec<(CpuId, CpuId)> = Vec::with_capacity(ranges.len());
        for (first, last) in ranges {
            match joined.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => joined.push((first, last)),
            }
        }
        Self(joined)
    }
}

impl FromIterator<CpuId> for CpuList {
    fn from_iter<T: IntoIterator<Item = CpuId>>(cpus: T) -> Self {
        Self::of_ranges(cpus.into_iter().map(|cpu| (cpu, cpu)).collect())
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            if first == last {
                write!(f, "{comma}{first}")?;
            } else {
                write!(f, "{comma}{first}-{last}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for CpuList {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = || {
            let shown: String = text.chars().take(60).collect();
            Error::input(format!("\"{shown}\" is no list of CPUs")).mend("write 0-3,8; CPUs end at 65535")
        };
        let number = |part: &str| part.trim().parse::<u64>().ok().filter(|cpu| *cpu < MAX_CPUS);
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some((first as CpuId, last as CpuId))
        };
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        text.split(',').map(range).collect::<Option<Vec<_>>>().map(Self::of_ranges).ok_or_else(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::CpuList;

    #[test]
    fn lists_are_read_and_written_as_the_kernel_does() {
        for (text, same) in [("0-3,8", "0-3,8"), ("", ""), ("5", "5"), ("3,1,2", "1-3"), ("0-4,2-9", "0-9")] {
            let list: CpuList = text.parse().unwrap();
            assert_eq!(list.to_string(), same);
        }
        let list: CpuList = [8, 0, 1, 2, 3].into_iter().collect();
        assert_eq!(list.to_string(), "0-3,8");
        assert!(list.contains(2) && list.contains(8) && !list.contains(4));
        assert_eq!(list.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 8]);
        assert_eq!(CpuList::first(64).to_string(), "0-63");
        assert!(CpuList::first(0).is_empty());
    }

    #[test]
    fn malformed_lists_are_refused() {
        for text in ["a", "3-1", "1,,2", "-", "65536", "99999999999999999999", "1-2-3"] {
            assert!(text.parse::<CpuList>().is_err(), "{text} was accepted");
        }
    }
}

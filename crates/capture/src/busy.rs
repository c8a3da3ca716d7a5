//! How busy this machine is with other things, before a load is measured on it.

use crate::online;
use crate::procfs::{numbered, split_stat};
use schedlab_base::{Tid, total};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// So many processes are named.
const MOST_NAMES: usize = 3;

/// What processes took of a machine's CPU time for a while.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Busy {
    /// The part of the CPUs' time, 0 to 1.
    pub share: f64,
    /// The processes that took most, each with its part, the largest first.
    pub largest: Vec<(String, f64)>,
}

impl Busy {
    /// Looks for so long at what all processes but this one do. Shares are coarse: the kernel counts in ticks of 10 ms.
    #[must_use]
    pub fn look(length: Duration) -> Self {
        let (start, before) = (Instant::now(), times(Path::new("/proc")));
        std::thread::sleep(length);
        let (passed, after) = (start.elapsed(), times(Path::new("/proc")));
        let cpus = online().iter().count().max(1) as f64;
        // SAFETY: sysconf reads a constant.
        let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as f64;
        Self::between(&before, &after, passed.as_secs_f64() * ticks * cpus)
    }

    /// What was taken between two looks, of so many ticks of CPU time.
    fn between(before: &Times, after: &Times, whole: f64) -> Self {
        let mut by_name: BTreeMap<String, f64> = BTreeMap::new();
        let own = std::process::id() as Tid;
        for (pid, (name, ticks)) in after.iter().filter(|(pid, _)| **pid != own) {
            // One that has begun since then is left out: its time may be older than it is as a process.
            let Some((_, earlier)) = before.get(pid) else { continue };
            *by_name.entry(name.clone()).or_default() += ticks.saturating_sub(*earlier) as f64 / whole;
        }
        let share = total(by_name.values().copied()).min(1.0);
        Self { share, largest: largest(by_name, MOST_NAMES) }
    }
}

/// The largest parts of the CPU time and whose they are, so many at most.
#[must_use]
pub fn largest(by_name: BTreeMap<String, f64>, most: usize) -> Vec<(String, f64)> {
    let mut parts: Vec<_> = by_name.into_iter().collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    parts.truncate(most);
    parts
}

/// Parts of the CPU time as messages have them: `rustc 39.9%, bash 0.3%`. What would be 0.0% is left out.
#[must_use]
pub fn named(parts: &[(String, f64)]) -> String {
    let one = |(name, part): &(String, f64)| format!("{name} {:.1}%", part * 100.0);
    parts.iter().filter(|(_, part)| *part >= 0.000_5).map(one).collect::<Vec<_>>().join(", ")
}

/// The name of each process and the ticks of CPU time that it has had.
type Times = BTreeMap<Tid, (String, u64)>;

fn times(proc: &Path) -> Times {
    let read = |pid: Tid| {
        let stat = fs::read(proc.join(pid.to_string()).join("stat")).ok()?;
        Some((pid, name_and_ticks(&String::from_utf8_lossy(&stat))?))
    };
    numbered(proc).into_iter().filter_map(read).collect()
}

/// Of a `stat` line, `pid (comm) state ...`: the name, and user and system time, which are fields 14 and 15.
fn name_and_ticks(stat: &str) -> Option<(String, u64)> {
    let (name, fields) = split_stat(stat)?;
    let mut times = fields.skip(11).map(str::parse::<u64>);
    let (user, system) = (times.next()?.ok()?, times.next()?.ok()?);
    Some((name.to_owned(), user + system))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_took_how_much_between_two_looks() {
        let times = |all: &[(Tid, &str, u64)]| -> Times {
            all.iter().map(|(pid, name, ticks)| (*pid, ((*name).to_owned(), *ticks))).collect()
        };
        let own = std::process::id() as Tid;
        let before = times(&[(7, "cc1", 100), (8, "cc1", 0), (9, "idle", 5), (own, "schedlab", 0)]);
        let after = times(&[(7, "cc1", 130), (8, "cc1", 20), (9, "idle", 5), (10, "new", 99), (own, "schedlab", 50)]);
        let busy = Busy::between(&before, &after, 100.0);
        assert_eq!((busy.share, named(&busy.largest).as_str()), (0.5, "cc1 50.0%"));
    }

    #[test]
    fn a_name_may_have_any_characters() {
        let line = "12 (a ) (b) S 1 2 3 4 5 6 7 8 9 10 700 80 0 0";
        assert_eq!(name_and_ticks(line), Some(("a ) (b".to_owned(), 780)));
        assert_eq!(name_and_ticks("12 (a) S 1"), None);
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let busy = Busy::look(Duration::from_millis(20));
        assert!((0.0..=1.0).contains(&busy.share), "{busy:?}");
    }
}

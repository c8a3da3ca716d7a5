//! The time that was stolen from each CPU, and that of interrupts where no tracepoints report it, as `/proc/stat` has
//! it.

use schedlab_base::{CpuId, Event, Interrupt, Nanos, Payload};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// `/proc/stat` counts hundredths of a second (USER_HZ).
const UNIT: Nanos = 10_000_000;

/// The columns of a CPU's line in which the times are, and what they are.
const COLUMNS: [(usize, Interrupt); 3] = [(5, Interrupt::Irq), (6, Interrupt::SoftIrq), (7, Interrupt::Steal)];

/// The times at the last look.
pub(crate) struct CpuTimes {
    /// Whether tracepoints report interrupts, so that only what was stolen counts.
    traced: bool,
    last: BTreeMap<CpuId, [u64; COLUMNS.len()]>,
}

impl CpuTimes {
    /// Begins to count now.
    pub(crate) fn new(proc: &Path, traced: bool) -> Self {
        Self { traced, last: read(proc) }
    }

    /// What was added since the last look.
    pub(crate) fn look(&mut self, proc: &Path, time: Nanos) -> Vec<Event> {
        let now = read(proc);
        let mut found = Vec::new();
        for (&cpu, times) in &now {
            let Some(before) = self.last.get(&cpu) else { continue };
            for (at, (_, kind)) in COLUMNS.into_iter().enumerate() {
                let took = times[at].saturating_sub(before[at]) * UNIT;
                if took > 0 && (!self.traced || kind == Interrupt::Steal) {
                    found.push(Event { time, cpu, what: Payload::Interrupt { kind, number: 0, took } });
                }
            }
        }
        self.last = now;
        found
    }
}

/// The time that was stolen from all CPUs since the machine started: a hypervisor gave them to others.
#[must_use]
pub fn stolen() -> Nanos {
    stolen_of(Path::new("/proc"))
}

fn stolen_of(proc: &Path) -> Nanos {
    let at = COLUMNS.iter().position(|(_, kind)| *kind == Interrupt::Steal).expect("it is one of them");
    read(proc).values().map(|times| times[at] * UNIT).sum()
}

fn read(proc: &Path) -> BTreeMap<CpuId, [u64; COLUMNS.len()]> {
    let text = fs::read_to_string(proc.join("stat")).unwrap_or_default();
    let line = |line: &str| {
        let (cpu, times) = line.strip_prefix("cpu")?.split_once(' ')?;
        let times: Vec<u64> = times.split_whitespace().map(|n| n.parse().unwrap_or(0)).collect();
        let time = |at: usize| times.get(at).copied().unwrap_or(0);
        Some((cpu.parse().ok()?, COLUMNS.map(|(column, _)| time(column))))
    };
    text.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_since_the_last_look_counts() {
        let dir = tempfile::tempdir().unwrap();
        let write = |text: &str| fs::write(dir.path().join("stat"), text).unwrap();
        write("cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu11 0 0 0 0 0 0 0 0 0 0\nintr 5 6\n");
        let mut times = CpuTimes::new(dir.path(), false);
        let mut traced = CpuTimes::new(dir.path(), true);
        write(
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 4 5 7 7 11 0 0\ncpu11 0 0 0 0 0 0 2 0 0 0\ncpu12 9 9 9 9 9 9 9 9\n",
        );
        let event = |cpu, kind, took| Event { time: 77, cpu, what: Payload::Interrupt { kind, number: 0, took } };
        let stolen = event(0, Interrupt::Steal, 30_000_000);
        let all = [event(0, Interrupt::Irq, 10_000_000), stolen, event(11, Interrupt::SoftIrq, 20_000_000)];
        assert_eq!(times.look(dir.path(), 77), all);
        assert_eq!(times.look(dir.path(), 78), []);
        assert_eq!(traced.look(dir.path(), 77), [stolen]);
        assert_eq!(stolen_of(dir.path()), (11 + 9) * UNIT);
    }
}

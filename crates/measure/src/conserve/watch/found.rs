//! What is kept of a CPU that was idle for too long beside waiting tasks.

use super::{Wait, Watch};
use schedlab_base::{CpuId, Nanos};
use schedlab_track::{Slot, row};
use std::cmp::Reverse;

/// More violations than this are counted, not kept.
const MOST_KEPT: usize = 10_000;
/// So many of the tasks that waited are told of each.
const MOST_WAITING: usize = 16;
const STILL: Nanos = Nanos::MAX;

/// A task that waited while a CPU was idle on which it was allowed.
#[derive(Clone, Debug)]
pub(in crate::conserve) struct Waited {
    pub slot: Slot,
    pub cpu: CpuId,
    /// How much of the violation its last two waits take.
    pub time: Nanos,
    pub known: bool,
}

/// A CPU that was idle for too long beside waiting tasks.
#[derive(Clone, Debug)]
pub(in crate::conserve) struct Found {
    pub cpu: CpuId,
    pub busy: CpuId,
    pub from: Nanos,
    pub to: Nanos,
    /// Those who waited, the longest first.
    pub waited: Vec<Waited>,
    /// How many waited.
    pub tasks: usize,
    pub moves: u32,
    pub moves_elsewhere: u64,
    pub looks: u32,
    pub saw_busy: bool,
    pub until_end: bool,
}

impl Watch {
    #[cold]
    pub(super) fn report(&mut self, number: CpuId, from: Nanos, to: Nanos, until_end: bool) {
        self.longest = self.longest.max(to - from);
        if self.found.len() >= MOST_KEPT {
            self.left_out += 1;
            return;
        }
        let mut waited = Vec::new();
        // Thousands of tasks may have waited on thousands of CPUs.
        let mut by_cpu: Vec<Nanos> = vec![0; self.cpus.len()];
        for (slot, task) in (0..).zip(&self.tasks) {
            let part = |wait: Wait| {
                let fits = wait.cpu != number && self.classes.allows(wait.class, number);
                if fits { wait.until.min(to).saturating_sub(wait.since.max(from)) } else { 0 }
            };
            let until = if task.waits { STILL } else { 0 };
            let present = Wait { class: task.class, cpu: task.cpu, since: task.since, until };
            let (now, before) = (part(present), part(task.last));
            for (wait, time) in [(present, now), (task.last, before)].into_iter().filter(|(_, time)| *time > 0) {
                *row(&mut by_cpu, wait.cpu) += time;
            }
            if now + before > 0 {
                let cpu = if now >= before { present.cpu } else { task.last.cpu };
                waited.push(Waited { slot, cpu, time: now + before, known: task.known });
            }
        }
        let waits = (0..).zip(by_cpu).filter(|(_, time)| *time > 0);
        let Some((busy, _)) = waits.max_by_key(|(cpu, time)| (*time, Reverse(*cpu))) else { return };
        let tasks = waited.len();
        let longest = |w: &Waited| (Reverse(w.time), w.slot);
        if tasks > MOST_WAITING {
            waited.select_nth_unstable_by_key(MOST_WAITING, longest);
            waited.truncate(MOST_WAITING);
            waited.shrink_to_fit();
        }
        waited.sort_by_key(longest);
        let cpu = &self.cpus[number as usize];
        let saw = cpu.looked_at.get(busy as usize / 64).is_some_and(|word| word >> (busy % 64) & 1 == 1);
        self.found.push(Found {
            cpu: number,
            busy,
            from,
            to,
            waited,
            tasks,
            moves: cpu.moves,
            moves_elsewhere: self.moves - cpu.moves_before - u64::from(cpu.moves),
            looks: cpu.looks,
            saw_busy: saw,
            until_end,
        });
    }
}

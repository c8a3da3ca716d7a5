//! What a system call takes in which a task is blocked, or wakes another one: by how much the bursts of the tasks that
//! show it are longer than they were written.

use super::figures::key_of;
use super::loads::{PULSE, PULSES, WAKER};
use schedlab_base::Nanos;
use schedlab_measure::intervals::{Interval, Table};
use schedlab_measure::lanes::Doing;

/// So many bursts at least show it.
pub(super) const FEWEST: usize = 16;

/// Both, in this order, as the calibration's recording shows them in the median; 0 where too few bursts do.
pub(super) fn medians(table: &Table) -> (Nanos, Nanos) {
    let blocking = longer(table, &PULSES).unwrap_or(0);
    (blocking, longer(table, &[WAKER]).map_or(0, |both| both.saturating_sub(blocking)))
}

/// By how much the bursts of these tasks are longer than [`PULSE`], in the median.
fn longer(table: &Table, names: &[&str]) -> Option<Nanos> {
    let pulses = (0..).zip(&table.tasks).filter(|(_, task)| key_of(&task.name, names).is_some());
    let mut longer: Vec<Nanos> = pulses
        .flat_map(|(slot, _)| bursts(table.rows.iter().filter(move |row| row.task == slot)))
        .map(|burst| burst.saturating_sub(PULSE))
        .collect();
    longer.sort_unstable();
    (longer.len() >= FEWEST).then(|| longer[longer.len() / 2])
}

/// How long a task computed between two sleeps, each time.
fn bursts<'a>(rows: impl Iterator<Item = &'a Interval>) -> Vec<Nanos> {
    let (mut ran, mut whole) = (None, Vec::new());
    for row in rows {
        match row.doing {
            Doing::Running => ran = ran.map(|ran| ran + (row.end - row.start)),
            Doing::Sleeping | Doing::Blocked => whole.extend(ran.replace(0).filter(|ran| *ran > 0)),
            _ => {}
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::{Event, Meta, NameRecord, Payload, Sink, TaskState};
    use schedlab_measure::intervals::Intervals;

    #[test]
    fn a_call_takes_what_a_burst_is_longer_than_it_was_written() {
        let of = |rounds: u64, name: &str| {
            let mut intervals = Intervals::new(&Meta::default());
            intervals.name(&NameRecord { time: 0, tid: 7, comm: name.to_owned(), tgid: None, cgroup: None });
            for round in 0..rounds {
                let at = |time, what| Event { time: round * 4_000_000 + time, cpu: 0, what };
                let switch = |time, (prev, prev_state), next| {
                    at(time, Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 })
                };
                let (runnable, sleeping) = (TaskState::Runnable, TaskState::Sleeping);
                // Another task has the CPU for a while.
                intervals.events(&[
                    at(500, Payload::Wakeup { tid: 7, prio: 120, target: 0 }),
                    switch(1_000, (0, runnable), 7),
                    switch(101_000, (7, runnable), 8),
                    switch(301_000, (8, sleeping), 7),
                    switch(431_000 + round % 3 * 1_000, (7, sleeping), 0),
                ]);
            }
            longer(&intervals.finish(), &PULSES)
        };
        assert_eq!(of(22, "pulse-3"), Some(31_000));
        assert_eq!(of(22, "bound"), Some(31_000));
        assert_eq!(of(22, "idle"), None, "it computes for longer");
        assert_eq!(of(12, "bound"), None, "too few");
    }

    #[test]
    fn a_call_that_wakes_takes_what_its_bursts_are_longer_than_others() {
        let mut intervals = Intervals::new(&Meta::default());
        let tasks = [(7, "bound", 240_000), (8, WAKER, 265_000)];
        for (tid, name, _) in tasks {
            intervals.name(&NameRecord { time: 0, tid, comm: name.to_owned(), tgid: None, cgroup: None });
        }
        for round in 0..20 {
            for (at, (tid, _, took)) in (0u64..).zip(tasks) {
                let begin = round * 4_000_000 + at * 1_000_000;
                let at = |time, what| Event { time: begin + time, cpu: 0, what };
                let switch = |time, prev, prev_state, next| {
                    at(time, Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 })
                };
                intervals.events(&[
                    at(0, Payload::Wakeup { tid, prio: 120, target: 0 }),
                    switch(1_000, 0, TaskState::Runnable, tid),
                    switch(1_000 + took, tid, TaskState::Sleeping, 0),
                ]);
            }
        }
        assert_eq!(medians(&intervals.finish()), (40_000, 25_000));
    }
}

//! What a system call takes in which a task is blocked: by how much the bursts of the tasks that show it are longer
//! than they were written.

use super::figures::key_of;
use super::loads::{PULSE, PULSES};
use schedlab_base::Nanos;
use schedlab_measure::intervals::{Interval, Table};
use schedlab_measure::lanes::Doing;

/// So many bursts at least show it.
const FEWEST: usize = 16;

/// The median, as the calibration's recording shows it; nothing where too few bursts do.
pub(super) fn median(table: &Table) -> Option<Nanos> {
    let pulses = (0..).zip(&table.tasks).filter(|(_, task)| key_of(&task.name, &PULSES).is_some());
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
            median(&intervals.finish())
        };
        assert_eq!(of(22, "pulse-3"), Some(31_000));
        assert_eq!(of(22, "bound"), Some(31_000));
        assert_eq!(of(22, "idle"), None, "it computes for longer");
        assert_eq!(of(12, "bound"), None, "too few");
    }
}

//! What a system call takes in which a task is blocked, wakes another one or forks one: by how much the bursts of the
//! tasks that show it are longer than they were written.

use super::figures::key_of;
use super::loads::{FORKED, FORKER, PULSE, PULSES, WAKER};
use schedlab_base::Nanos;
use schedlab_measure::intervals::{Interval, Table};
use schedlab_measure::lanes::Doing;

/// So many bursts at least show it.
pub(super) const FEWEST: usize = 16;

/// What a call takes in which a task is blocked, beside others that are at work, and what it takes to wake another one,
/// as the calibration's recordings of wake-ups and of calls show them; 0 where too few bursts do.
pub(super) fn blocking_and_waking(wake_ups: &Table, calls: &Table) -> (Nanos, Nanos) {
    let both = longer(calls, &[WAKER]).unwrap_or(0);
    (longer(wake_ups, &PULSES).unwrap_or(0), both.saturating_sub(longer(calls, &PULSES).unwrap_or(0)))
}

/// What it takes to fork a task, what one does before its program, and what its exit takes, where a call that blocks
/// takes `blocking`; 0 where the recording shows too little.
pub(super) fn of_forks(table: &Table, blocking: Nanos) -> [Nanos; 3] {
    let forking = longer(table, &[FORKER]).unwrap_or(0).saturating_sub(blocking);
    // The call in which it sleeps is in both of its bursts.
    let beside = |bursts: Vec<Nanos>| beyond_a_pulse(bursts).unwrap_or(0).saturating_sub(blocking / 2);
    let (first, last) = lives(table).into_iter().unzip();
    [forking, beside(first), beside(last)]
}

/// How long each forked task ran before its sleep, of a ms at least, and after it.
fn lives(table: &Table) -> Vec<(Nanos, Nanos)> {
    let mut ran: Vec<[Nanos; 2]> = vec![[0; 2]; table.tasks.len()];
    let mut slept = vec![false; table.tasks.len()];
    for row in &table.rows {
        let (at, length) = (row.task as usize, row.end - row.start);
        match row.doing {
            Doing::Running => ran[at][usize::from(slept[at])] += length,
            Doing::Sleeping | Doing::Blocked => slept[at] |= length >= 1_000_000,
            Doing::Waiting => {}
        }
    }
    let forked = table.tasks.iter().zip(ran).filter(|(task, _)| key_of(&task.name, &[FORKED]).is_some());
    forked.filter(|(_, ran)| !ran.contains(&0)).map(|(_, [first, last])| (first, last)).collect()
}

/// By how much the bursts of these tasks are longer than [`PULSE`].
fn longer(table: &Table, names: &[&str]) -> Option<Nanos> {
    let pulses = (0..).zip(&table.tasks).filter(|(_, task)| key_of(&task.name, names).is_some());
    beyond_a_pulse(pulses.flat_map(|(slot, _)| bursts(table.rows.iter().filter(move |row| row.task == slot))).collect())
}

/// By how much these bursts are longer than [`PULSE`], on average: CPU time is a sum. The longest and the shortest 5%,
/// at which something else happened, do not count.
fn beyond_a_pulse(mut bursts: Vec<Nanos>) -> Option<Nanos> {
    bursts.sort_unstable();
    let of = &bursts[bursts.len() / 20..bursts.len() - bursts.len() / 20];
    (bursts.len() >= FEWEST).then(|| (of.iter().sum::<Nanos>() / of.len() as Nanos).saturating_sub(PULSE))
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
        assert_eq!(of(26, "pulse-3"), Some(31_000));
        assert_eq!(of(26, "bound"), Some(31_000));
        assert_eq!(of(26, "idle"), None, "it computes for longer");
        assert_eq!(of(12, "bound"), None, "too few");
    }

    #[test]
    fn a_fork_takes_its_parent_and_its_child_what_their_bursts_are_longer() {
        let mut intervals = Intervals::new(&Meta::default());
        let mut name = |tid, comm: String| {
            intervals.name(&NameRecord { time: 0, tid, comm, tgid: None, cgroup: None });
        };
        name(7, FORKER.to_owned());
        (0..20).for_each(|child| name(100 + child, format!("{FORKED}-{child}")));
        let (runnable, sleeping, dead) = (TaskState::Runnable, TaskState::Sleeping, TaskState::Dead);
        for child in 0..20 {
            let at = |time, what| Event { time: child as u64 * 9_000_000 + time, cpu: 0, what };
            let switch = |time, prev, prev_state, next| {
                at(time, Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 })
            };
            let tid = 100 + child;
            intervals.events(&[
                at(0, Payload::Wakeup { tid: 7, prio: 120, target: 0 }),
                switch(1_000, 0, runnable, 7),
                at(100_000, Payload::WakeupNew { tid, prio: 120, target: 0 }),
                switch(301_000, 7, sleeping, tid),
                switch(701_000, tid, sleeping, 0),
                at(2_701_000, Payload::Wakeup { tid, prio: 120, target: 0 }),
                switch(2_702_000, 0, runnable, tid),
                // It waits for memory to be given back.
                switch(2_802_000, tid, TaskState::Uninterruptible, 0),
                at(2_803_000, Payload::Wakeup { tid, prio: 120, target: 0 }),
                switch(2_804_000, 0, runnable, tid),
                switch(2_954_000, tid, dead, 0),
            ]);
        }
        let table = intervals.finish();
        assert_eq!(of_forks(&table, 20_000), [80_000, 190_000, 40_000]);
        let none = Table { rows: Vec::new(), ..table };
        assert_eq!(of_forks(&none, 20_000), [0; 3]);
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
        let calls = intervals.finish();
        assert_eq!(blocking_and_waking(&calls, &calls), (40_000, 25_000));
        let none = Table { rows: Vec::new(), ..calls };
        assert_eq!(blocking_and_waking(&none, &none), (0, 0));
    }
}

//! How much longer the bursts of a real run were than they were to be, so that those of its simulation are as long.
//!
//! A burst goes by its thread's CPU time, and so it should be as long as it says. In a guest whose CPUs share one clock
//! it is not: other CPUs have their turns before its end is seen, and the kernel's own work takes longer the more of
//! them are busy. That is the guest's time and no decision of its scheduler.

use super::calls::FEWEST;
use crate::backend::Recording;
use schedlab_base::{Nanos, Result};
use schedlab_live::Bursts;
use schedlab_measure::intervals::{Intervals, Table};
use schedlab_measure::lanes::Doing;
use schedlab_workload::{Action, Workload};
use std::collections::BTreeMap;

/// By how much a burst was longer on average, in ns, by the name of the task. Tasks with too few of them are left out.
pub(super) type Longer = BTreeMap<String, i64>;

/// What a recording shows of it.
///
/// # Errors
/// When the recording cannot be read.
pub(super) fn of(recording: &Recording) -> Result<Longer> {
    let mut source = recording.open()?;
    let mut intervals = Intervals::new(source.meta());
    source.run(&mut intervals)?;
    let table = intervals.finish();
    let slots = (0..).zip(&table.tasks);
    let known = slots.filter_map(|(slot, task)| Some((slot, task, recording.bursts.get(&task.tid)?)));
    Ok(known.filter_map(|(slot, task, bursts)| Some((task.name.to_string(), longer(&table, slot, bursts)?))).collect())
}

/// By how much the bursts of the task of this slot were longer.
fn longer(table: &Table, slot: u32, bursts: &Bursts) -> Option<i64> {
    if bursts.count < FEWEST as u64 {
        return None;
    }
    let rows = || table.rows.iter().filter(|row| row.task == slot);
    let running = rows().filter(|row| row.doing == Doing::Running);
    let ran: Nanos = running.map(|row| row.end - row.start).sum();
    let asleep = rows().next_back().is_some_and(|row| matches!(row.doing, Doing::Sleeping | Doing::Blocked));
    let count = bursts.count as f64;
    // The burst in which the run ended was not counted; on average half of it was done.
    let length = ran as f64 / if asleep { count } else { count + 0.5 };
    Some((length - bursts.wanted_us * 1e3 / count).round() as i64)
}

/// The workload with bursts that are so much longer.
pub(super) fn lengthened(mut workload: Workload, longer: &Longer) -> Workload {
    for task in &mut workload.tasks {
        let Some(by) = longer.get(&task.name) else { continue };
        for event in task.phases.iter_mut().flat_map(|phase| &mut phase.events) {
            if let Action::Run(amount) | Action::Runtime(amount) = &mut event.what {
                amount.mean = amount.mean.saturating_add_signed(*by);
            }
        }
    }
    workload
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::{Event, Meta, NameRecord, Payload, Sink, TaskState};
    use schedlab_workload::Amount;
    use std::path::Path;

    /// A task that computes for 300 us and sleeps, `rounds` times, and then computes for as long as this or sleeps on.
    fn table(rounds: u64, then: Nanos) -> Table {
        let mut intervals = Intervals::new(&Meta::default());
        intervals.name(&NameRecord { time: 0, tid: 7, comm: "t".to_owned(), tgid: None, cgroup: None });
        let switch = |time, prev, prev_state, next| Event {
            time,
            cpu: 0,
            what: Payload::Switch { prev, prev_prio: 120, prev_state, next, next_prio: 120 },
        };
        for at in (0..rounds).map(|round| round * 1_000_000) {
            intervals.events(&[
                switch(at, 0, TaskState::Runnable, 7),
                switch(at + 100_000, 7, TaskState::Runnable, 8),
                switch(at + 300_000, 8, TaskState::Sleeping, 7),
                switch(at + 500_000, 7, TaskState::Sleeping, 0),
            ]);
        }
        if then > 0 {
            let at = rounds * 1_000_000;
            intervals.events(&[switch(at, 0, TaskState::Runnable, 7), switch(at + then, 7, TaskState::Runnable, 0)]);
        }
        intervals.lasts((rounds + 1) * 1_000_000);
        intervals.finish()
    }

    #[test]
    fn bursts_are_longer_by_what_a_task_computed_beyond_what_it_was_to() {
        let of = |rounds: u64, then| {
            let mut bursts = Bursts::default();
            (bursts.count, bursts.wanted_us) = (rounds, 250.0 * rounds as f64);
            let table = table(rounds, then);
            let slot = (0..).zip(&table.tasks).find(|(_, task)| task.tid == 7).unwrap().0;
            longer(&table, slot, &bursts)
        };
        assert_eq!(of(20, 0), Some(50_000));
        assert_eq!(of(20, 150_000), Some(50_000), "half a burst was not counted");
        assert_eq!(of(15, 0), None, "too few");
    }

    #[test]
    fn a_workload_computes_for_as_much_longer() {
        let text = r#"{ "tasks": { "a": { "run": 100, "sleep": 50, "runtime": 10 }, "b": { "run": 100 } } }"#;
        let workload = schedlab_workload::parse(text.as_bytes(), Path::new("w")).unwrap();
        let by = [("a".to_owned(), -20_000)].into();
        let events = |workload: &Workload, task: usize| -> Vec<Action> {
            workload.tasks[task].phases[0].events.iter().map(|event| event.what.clone()).collect()
        };
        let longer = lengthened(workload.clone(), &by);
        let amount = |mean| Amount { mean, sd: 0 };
        let expected = [Action::Run(amount(80_000)), Action::Sleep(amount(50_000)), Action::Runtime(amount(0))];
        assert_eq!(events(&longer, 0), expected);
        assert_eq!(events(&longer, 1), events(&workload, 1));
    }
}

//! What several questions need: the stretch and the task that are meant, and times in other words.

use crate::index::Index;
use crate::query::{Answered, Failure, Query};
use crate::spans::State;
use schedlab_base::Nanos;

/// The stretch of time that is asked about; all of it if none is given.
pub(crate) fn stretch(index: &Index, query: &Query) -> Answered<(Nanos, Nanos)> {
    let from = query.number("from")?.unwrap_or(0).min(index.end);
    let to = query.number("to")?.unwrap_or(index.end).min(index.end);
    if to < from {
        return Err(Failure::bad("to is before from"));
    }
    Ok((from, to))
}

/// The task that had this thread id at that time: of several lives the last that had begun.
pub(crate) fn task_at(index: &Index, tid: i32, time: Nanos) -> Option<u32> {
    let lives = (0..).zip(&index.facts).filter(|(_, facts)| facts.tid == tid).map(|(task, _)| task);
    let born = |task: &u32| {
        let span = index.tasks.get(*task as usize).and_then(|row| row.get(row.find(time), index.end));
        span.is_some_and(|span| span.state != State::Absent)
    };
    let lives: Vec<u32> = lives.collect();
    lives.iter().copied().rev().find(born).or_else(|| lives.last().copied())
}

/// Microseconds of a report as ns.
pub(crate) fn ns(us: f64) -> Nanos {
    (us * 1e3).round() as Nanos
}

/// A time in words.
pub(crate) fn words(ns: Nanos) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} us", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.3} ms", ns as f64 / 1e6),
        _ => format!("{:.6} s", ns as f64 / 1e9),
    }
}

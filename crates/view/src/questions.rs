//! What lies behind a place in the picture: the span there and why, a wait and who ran meanwhile, the longest waits.

use crate::asked::{ns, stretch, task_at, words};
use crate::index::{Index, Indexer};
use crate::loaded::Loaded;
use crate::marks::{Mark, NOBODY};
use crate::query::{Answered, Body, Failure, Query};
use crate::rows::{Processes, TaskRef, task_ref};
use crate::spans::{NONE, Span, Spans, State};
use schedlab_base::{CpuId, Nanos, counted};
use schedlab_measure::{Level, Violation};
use schedlab_track::Slot;
use serde_json::{Value, json};
use std::collections::HashMap;

/// At most so many tasks are named that wait for a CPU.
const MOST_WAITING: usize = 50;

/// At most so many wake-ups are looked through for that of one task.
const MOST_WAKES: usize = 200_000;

/// At most so many items are in a list.
const MOST_ITEMS: usize = 10_000;

/// Nothing, or the task of a mark.
fn maybe(index: &Index, task: u32) -> Value {
    if task == NOBODY || task == NONE { Value::Null } else { json!(task_ref(index, task)) }
}

/// A task with all that is known of it.
fn in_full(index: &Index, task: Slot, time: Nanos) -> Value {
    let mut value = json!(task_ref(index, task));
    let belongs = json!(Processes::new(index).of(index, task));
    for (key, part) in belongs.as_object().into_iter().flatten() {
        value[key] = part.clone();
    }
    let properties = index.facts.get(task as usize).map(|facts| facts.properties.clone()).unwrap_or_default();
    value["policy"] = json!(properties.policy);
    value["nice"] = json!(properties.nice);
    value["rt_priority"] = json!(properties.rt_priority);
    value["allowed"] = json!(index.allowed(task, time).map(ToString::to_string));
    value
}

fn spoken(index: &Index, task: u32) -> String {
    let TaskRef { tid, name, .. } = task_ref(index, task);
    if name.is_empty() { format!("task {tid}") } else { format!("{name} ({tid})") }
}

/// The last wake-up of a task at or before this time, not before `since`.
fn wake_of(index: &Index, task: Slot, since: Nanos, time: Nanos) -> Option<Mark> {
    let all = index.wakes.within(since, time.saturating_add(1));
    all.rev().take(MOST_WAKES).map(|at| index.wakes.get(at)).find(|mark| mark.to_task == task)
}

/// Who woke the task whose wait begins with this span.
fn waker(index: &Index, task: Slot, row: &Spans, at: usize) -> Option<Mark> {
    let span = row.get(at, index.end)?;
    let before = at.checked_sub(1).and_then(|at| row.get(at, index.end));
    // A task that was preempted, or moved while it waited, was not woken then.
    let slept =
        before.filter(|b| matches!(b.state, State::Sleeping | State::Blocked | State::Absent | State::Unknown))?;
    wake_of(index, task, slept.from, span.from)
}

fn waker_json(index: &Index, mark: Option<Mark>) -> Value {
    mark.map_or(
        Value::Null,
        |mark| json!({ "task": maybe(index, mark.from_task), "cpu": mark.from_cpu, "time": mark.time }),
    )
}

/// `at`: what is at this place of the picture.
pub(crate) fn at(indexer: &Indexer, query: &Query) -> Answered<Body> {
    let index = &indexer.index;
    let time: Nanos = query.needed("time")?;
    if time > index.end {
        return Err(Failure::none(format!("the trace ends {} after its start", words(index.end))));
    }
    let time = time.min(index.end.saturating_sub(1));
    match (query.number::<CpuId>("cpu")?, query.number::<Slot>("task")?) {
        (Some(cpu), _) => {
            let row = index.cpus.get(cpu as usize).ok_or_else(|| Failure::none(format!("there is no CPU {cpu}")))?;
            at_cpu(index, cpu, row, time)
        }
        (None, Some(task)) => {
            let row = index.tasks.get(task as usize);
            at_task(index, task, row.ok_or_else(|| Failure::none(format!("there is no task {task}")))?, time)
        }
        (None, None) => Err(Failure::bad("cpu or task is missing")),
    }
}

fn neighbours(row: &Spans, at: usize, now: Nanos) -> (Value, Value) {
    let previous = at.checked_sub(1).and_then(|at| row.get(at, now)).map(|span| span.from);
    let next = row.get(at + 1, now).map(|span| span.from);
    (json!(previous), json!(next))
}

fn at_cpu(index: &Index, cpu: CpuId, row: &Spans, time: Nanos) -> Answered<Body> {
    let at = row.find(time);
    let none = || Failure::none("nothing is known of that CPU then");
    let Span { from, to, state, who } = row.get(at, index.end).ok_or_else(none)?;
    let (previous, next) = neighbours(row, at, index.end);
    let queue = index.queues.get(cpu as usize).and_then(|queue| queue.value(time));
    let waits = |(task, row): &(Slot, &Spans)| {
        let here = row.get(row.find(time), index.end);
        here.is_some_and(|span| span.state == State::Waiting && span.who == cpu && *task != who)
    };
    let waiting: Vec<TaskRef> =
        (0..).zip(&index.tasks).filter(waits).take(MOST_WAITING).map(|(task, _)| task_ref(index, task)).collect();
    let why = match state {
        State::Running => {
            let others = match waiting.len() {
                0 => "nobody waits for this CPU".to_owned(),
                1 => format!("{} waits for this CPU", spoken(index, waiting[0].task)),
                n => format!("{n} tasks wait for this CPU"),
            };
            format!("{} has CPU {cpu} for {}; {others} at {}.", spoken(index, who), words(to - from), words(time))
        }
        State::Idle if waiting.is_empty() => format!("CPU {cpu} is idle for {}.", words(to - from)),
        State::Idle => {
            format!("CPU {cpu} is idle for {}, and is about to run a task that waits for it.", words(to - from))
        }
        _ => format!("Nobody knows what CPU {cpu} did for {}: events are missing.", words(to - from)),
    };
    let task = if state == State::Running { in_full(index, who, time) } else { Value::Null };
    let woken = (state == State::Running).then(|| served_by(index, who, from)).flatten();
    Ok(Body::json(&json!({
        "state": state as u8, "from": from, "to": to, "cpu": cpu, "task": task, "previous": previous, "next": next,
        "why": why, "waker": waker_json(index, woken), "queue": queue, "waiting": waiting,
    })))
}

/// Who woke a task that gets a CPU at this time.
fn served_by(index: &Index, task: Slot, time: Nanos) -> Option<Mark> {
    let row = index.tasks.get(task as usize)?;
    let mut at = row.find(time);
    while at > 0 && row.get(at - 1, index.end)?.state == State::Waiting {
        at -= 1;
    }
    waker(index, task, row, at)
}

fn at_task(index: &Index, task: Slot, row: &Spans, time: Nanos) -> Answered<Body> {
    let at = row.find(time);
    let none = || Failure::none("nothing is known of that task then");
    let Span { from, to, state, who } = row.get(at, index.end).ok_or_else(none)?;
    let (previous, next) = neighbours(row, at, index.end);
    let before = at.checked_sub(1).and_then(|at| row.get(at, index.end)).map(|span| span.state);
    let (name, long) = (spoken(index, task), words(to - from));
    let woken = match state {
        State::Running => served_by(index, task, from),
        State::Waiting => waker(index, task, row, first_wait(row, at, index.end)),
        _ => None,
    };
    let by = match woken {
        Some(mark) if mark.from_task != NOBODY => format!(", woken by {}", spoken(index, mark.from_task)),
        Some(_) => ", woken by an interrupt or by an unknown task".to_owned(),
        None => String::new(),
    };
    let why = match (state, before) {
        (State::Running, _) => format!("{name} runs on CPU {who} for {long}{by}."),
        (State::Waiting, Some(State::Running)) => {
            format!("{name} waits for CPU {who} for {long}: another task was given its CPU while it was runnable.")
        }
        (State::Waiting, Some(State::Waiting)) => format!("{name} was moved to CPU {who} and waits there for {long}."),
        (State::Waiting, _) => format!("{name} waits for CPU {who} for {long}{by}."),
        (State::Sleeping, _) => format!("{name} sleeps for {long}."),
        (State::Blocked, _) => format!("{name} is blocked for {long}: it sleeps uninterruptibly (state D)."),
        (State::Absent, None) => format!("{name} does not exist yet, or its number belongs to another task."),
        (State::Absent, _) => format!("{name} has ended."),
        _ => format!("Nobody knows what {name} did for {long}: events are missing, or nothing was seen of it yet."),
    };
    let cpu = if who == NONE { Value::Null } else { json!(who) };
    Ok(Body::json(&json!({
        "state": state as u8, "from": from, "to": to, "cpu": cpu, "task": in_full(index, task, time),
        "previous": previous, "next": next, "why": why, "waker": waker_json(index, woken),
        "queue": Value::Null, "waiting": [],
    })))
}

/// The first of the spans of a wait, which may have gone over several queues.
fn first_wait(row: &Spans, mut at: usize, now: Nanos) -> usize {
    while at > 0 && row.get(at - 1, now).is_some_and(|span| span.state == State::Waiting) {
        at -= 1;
    }
    at
}

/// `wait`: who ran while a task waited.
pub(crate) fn wait(indexer: &Indexer, query: &Query) -> Answered<Body> {
    let index = &indexer.index;
    let (task, time): (Slot, Nanos) = (query.needed("task")?, query.needed("time")?);
    let row = index.tasks.get(task as usize).ok_or_else(|| Failure::none(format!("there is no task {task}")))?;
    let first = first_wait(row, row.find(time), index.end);
    let queues: Vec<Span> =
        (first..).map_while(|at| row.get(at, index.end).filter(|span| span.state == State::Waiting)).collect();
    let (Some(begin), Some(last)) = (queues.first(), queues.last()) else {
        return Err(Failure::none(format!("{} does not wait then", spoken(index, task))));
    };
    let (from, to) = (begin.from, last.to);
    let finished = row.get(first + queues.len(), index.end).is_some_and(|span| span.state == State::Running);
    let mut culprits: HashMap<u32, Nanos> = HashMap::new();
    let (mut idle, mut unknown) = (0, 0);
    for queue in &queues {
        let Some(cpu) = index.cpus.get(queue.who as usize) else { continue };
        for span in cpu.within(queue.from, queue.to, index.end) {
            let length = span.to - span.from;
            match span.state {
                State::Running => *culprits.entry(span.who).or_default() += length,
                State::Idle => idle += length,
                _ => unknown += length,
            }
        }
    }
    let mut culprits: Vec<(u32, Nanos)> = culprits.into_iter().collect();
    culprits.sort_by_key(|(task, run)| (std::cmp::Reverse(*run), *task));
    let (idle_cpus, idle_allowed) = idle_meanwhile(indexer, task, &queues);
    let why = why_waited(index, task, (from, to), &culprits, idle_allowed);
    let woken = waker(index, task, row, first);
    Ok(Body::json(&json!({
        "task": in_full(index, task, from), "from": from, "to": to, "finished": finished,
        "queues": queues.iter().map(|q| json!({ "cpu": q.who, "from": q.from, "to": q.to })).collect::<Vec<_>>(),
        "culprits": culprits.iter().map(|(task, run)| json!({ "task": task_ref(index, *task), "run": run }))
            .collect::<Vec<_>>(),
        "idle": idle, "unknown": unknown, "idle_allowed": idle_allowed,
        "idle_cpus": idle_cpus.iter().map(|(cpu, idle)| json!({ "cpu": cpu, "idle": idle })).collect::<Vec<_>>(),
        "allowed": index.allowed(task, from).map(ToString::to_string),
        "waker": waker_json(index, woken), "why": why,
    })))
}

/// The CPUs that were idle while the task waited for another and that it may run on, and how long any of them was while
/// the one that it waited for was not.
fn idle_meanwhile(indexer: &Indexer, task: Slot, queues: &[Span]) -> (Vec<(CpuId, Nanos)>, Nanos) {
    let index = &indexer.index;
    let (mut of_cpu, mut all) = (Vec::new(), Vec::new());
    for cpu in indexer.cpus() {
        let Some(row) = index.cpus.get(cpu as usize) else { continue };
        let mut time = 0;
        for queue in queues.iter().filter(|queue| queue.who != cpu) {
            // Where nobody knows where it may run, it may run anywhere.
            if index.allowed(task, queue.from).is_some_and(|allowed| !allowed.contains(cpu)) {
                continue;
            }
            let idle = row.within(queue.from, queue.to, index.end).filter(|span| span.state == State::Idle);
            for span in idle {
                time += span.to - span.from;
                all.push((span.from, span.to));
            }
        }
        if time > 0 {
            of_cpu.push((cpu, time));
        }
    }
    all.sort_unstable();
    let mut own: Vec<(Nanos, Nanos)> = Vec::new();
    for queue in queues {
        if let Some(row) = index.cpus.get(queue.who as usize) {
            let spans = row.within(queue.from, queue.to, index.end);
            own.extend(spans.filter(|span| span.state == State::Running).map(|span| (span.from, span.to)));
        }
    }
    of_cpu.sort_by_key(|(cpu, time)| (std::cmp::Reverse(*time), *cpu));
    (of_cpu, overlap(&union(&all), &own))
}

/// Stretches that overlap, joined; they are in the order of their starts.
fn union(all: &[(Nanos, Nanos)]) -> Vec<(Nanos, Nanos)> {
    let mut joined: Vec<(Nanos, Nanos)> = Vec::new();
    for &(from, to) in all {
        match joined.last_mut() {
            Some((_, end)) if from <= *end => *end = to.max(*end),
            _ => joined.push((from, to)),
        }
    }
    joined
}

/// How long both last at once; each list is in order and without overlaps.
fn overlap(a: &[(Nanos, Nanos)], b: &[(Nanos, Nanos)]) -> Nanos {
    let (mut i, mut j, mut sum) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        sum += x.1.min(y.1).saturating_sub(x.0.max(y.0));
        if x.1 < y.1 { i += 1 } else { j += 1 }
    }
    sum
}

fn why_waited(index: &Index, task: Slot, (from, to): (Nanos, Nanos), culprits: &[(u32, Nanos)], idle: Nanos) -> String {
    let mut why = format!("{} waited for {}", spoken(index, task), words(to - from));
    if let Some((first, run)) = culprits.first() {
        let more = match culprits.len() {
            1 => String::new(),
            2 => ", and another task for the rest".to_owned(),
            n => format!(", and {} others for the rest", n - 1),
        };
        why += &format!(" while {} had the CPU for {}{more}", spoken(index, *first), words(*run));
    }
    let known = if index.allowed(task, from).is_some() { "" } else { " (it is not known where it may run)" };
    if idle > 0 {
        why += &format!("; for {} of that time a CPU was idle on which it was allowed{known}", words(idle));
    }
    why + "."
}

/// `lists`: the longest waits, or the violations.
pub(crate) fn lists(loaded: &Loaded, indexer: &Indexer, query: &Query) -> Answered<Body> {
    let index = &indexer.index;
    let (from, to) = stretch(index, query)?;
    let limit = query.within("limit", 100, 1, MOST_ITEMS)?;
    let of = query.text("of").unwrap_or("waits");
    let mut threshold = None;
    let (items, count) = match of {
        "waits" => {
            let (waits, count) = longest_waits(index, (from, to), limit);
            let item = |(task, from, to, cpu): &(Slot, Nanos, Nanos, CpuId)| {
                let task = task_ref(index, *task);
                json!({ "start": from, "duration": to - from, "cpu": cpu, "task": task })
            };
            (waits.iter().map(item).collect::<Vec<_>>(), count)
        }
        "violations" => {
            threshold = loaded.checked().flatten().map(|(report, _)| ns(report.threshold_us));
            found(loaded, index, (from, to), limit)?
        }
        other => return Err(Failure::bad(format!("of={other} is neither waits nor violations"))),
    };
    let left_out = count - items.len();
    Ok(Body::json(&json!({ "of": of, "items": items, "left_out": left_out, "threshold": threshold })))
}

/// Waits that touch this time, the longest first, and how many there are. A wait over several queues is one.
fn longest_waits(index: &Index, (from, to): (Nanos, Nanos), limit: usize) -> (Vec<(Slot, Nanos, Nanos, CpuId)>, usize) {
    let (mut waits, mut count) = (Vec::new(), 0);
    let keep = limit * 2 + 1024;
    let longest = |wait: &(Slot, Nanos, Nanos, CpuId)| (std::cmp::Reverse(wait.2 - wait.1), wait.1, wait.0);
    for (task, row) in (0..).zip(&index.tasks) {
        let mut at = first_wait(row, row.find(from), index.end);
        let mut open: Option<(Slot, Nanos, Nanos, CpuId)> = None;
        while let Some(span) = row.get(at, index.end).filter(|span| span.from < to || open.is_some()) {
            if span.state == State::Waiting {
                let begun = open.map_or(span.from, |open| open.1);
                open = Some((task, begun, span.to, span.who));
            } else if let Some(wait) = open.take() {
                count += 1;
                waits.push(wait);
            }
            at += 1;
        }
        if let Some(wait) = open {
            count += 1;
            waits.push(wait);
        }
        if waits.len() > keep {
            waits.sort_unstable_by_key(longest);
            waits.truncate(limit);
        }
    }
    waits.sort_unstable_by_key(longest);
    waits.truncate(limit);
    (waits, count)
}

fn found(loaded: &Loaded, index: &Index, (from, to): (Nanos, Nanos), limit: usize) -> Answered<(Vec<Value>, usize)> {
    let report = match loaded.checked() {
        None if loaded.is_damaged() => {
            return Err(Failure::none("the trace cannot be read to its end, so its violations are not known"));
        }
        None => return Err(Failure(409, "the violations are still being computed".to_owned())),
        Some(None) => return Err(Failure::none("a partial recording does not show which CPUs were idle")),
        Some(Some((report, _))) => report,
    };
    let touches = |v: &&Violation| ns(v.start_us) <= to && ns(v.start_us) + ns(v.duration_us) >= from;
    let mut all: Vec<&Violation> = report.violations.iter().filter(touches).collect();
    all.sort_by(|a, b| b.duration_us.total_cmp(&a.duration_us).then(a.start_us.total_cmp(&b.start_us)));
    let item = |v: &&Violation| {
        let start = ns(v.start_us);
        let task = v.waiting.first().and_then(|task| task_at(index, task.tid, start));
        let who = match (task, v.waiting_tasks) {
            (Some(task), 1) => format!("{} waited", spoken(index, task)),
            (Some(task), n) => format!("{} and {} waited", spoken(index, task), counted(n - 1, "other task")),
            (None, n) => format!("{} waited", counted(n, "task")),
        };
        let level = match v.level {
            Level::Numa => " on another node",
            _ => "",
        };
        let sentence = format!(
            "CPU {} was idle for {} while {who} for CPU {}{level}.",
            v.idle_cpu,
            words(ns(v.duration_us)),
            v.busy_cpu
        );
        json!({
            "start": start, "duration": ns(v.duration_us), "cpu": v.busy_cpu, "idle_cpu": v.idle_cpu,
            "busy_cpu": v.busy_cpu, "level": v.level, "tasks": v.waiting_tasks, "sentence": sentence,
            "task": task.map(|task| task_ref(index, task)),
        })
    };
    let items = all.iter().take(limit).map(item).collect();
    let left_out = usize::try_from(report.violations_left_out).unwrap_or(usize::MAX);
    Ok((items, all.len().saturating_add(left_out)))
}

/// `wakers`: who wakes whom how often.
pub(crate) fn wakers(index: &Index, query: &Query) -> Answered<Body> {
    let (from, to) = stretch(index, query)?;
    let limit = query.within("limit", 200, 1, MOST_ITEMS)?;
    let mut edges: HashMap<(u32, u32), (u64, u64)> = HashMap::new();
    for mark in index.wakes.within(from, to + 1).map(|at| index.wakes.get(at)) {
        let (count, other) = edges.entry((mark.from_task, mark.to_task)).or_default();
        *count += 1;
        *other += u64::from(mark.from_cpu != mark.to_cpu);
    }
    let mut edges: Vec<_> = edges.into_iter().collect();
    edges.sort_by_key(|(edge, (count, _))| (std::cmp::Reverse(*count), *edge));
    let left_out = edges.len().saturating_sub(limit);
    let edge = |((from, to), (count, other)): &((u32, u32), (u64, u64))| {
        let (from, to) = (maybe(index, *from), maybe(index, *to));
        json!({ "from": from, "to": to, "count": count, "other_cpu": other })
    };
    let edges: Vec<Value> = edges.iter().take(limit).map(edge).collect();
    Ok(Body::json(&json!({ "edges": edges, "left_out": left_out })))
}

/// `step`: where the next span begins, or the previous.
pub(crate) fn step(index: &Index, query: &Query) -> Answered<Body> {
    let time: Nanos = query.needed("time")?;
    let state = query.number::<u8>("state")?;
    let row = match (query.number::<usize>("cpu")?, query.number::<usize>("task")?) {
        (Some(cpu), _) => index.cpus.get(cpu),
        (None, Some(task)) => index.tasks.get(task),
        (None, None) => return Err(Failure::bad("cpu or task is missing")),
    };
    let row = row.ok_or_else(|| Failure::none("there is no such row"))?;
    let here = row.find(time.min(index.end));
    let fits = |span: &Span| state.is_none_or(|state| span.state as u8 == state);
    let found = match query.text("to") {
        Some("previous") => (0..=here).rev().filter_map(|at| row.get(at, index.end)).find(|s| s.from < time && fits(s)),
        Some("next") | None => (here + 1..).map_while(|at| row.get(at, index.end)).find(fits),
        Some(other) => return Err(Failure::bad(format!("to={other} is neither next nor previous"))),
    };
    Ok(Body::json(&json!({ "time": found.map(|span| span.from) })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_are_joined_and_compared() {
        let joined = union(&[(0, 5), (3, 8), (8, 9), (20, 30), (22, 25)]);
        assert_eq!(joined, [(0, 9), (20, 30)]);
        assert_eq!(overlap(&joined, &[(4, 6), (8, 22), (29, 40)]), 2 + 1 + 2 + 1);
        assert_eq!(overlap(&joined, &[]), 0);
    }
}

//! The decisions of a simulated scheduler, and its queues: the run that made the trace is made again up to the instant.
//!
//! What a run showed is kept: the decisions around the instant, and the queues at the decisions nearby, so that
//! stepping from one to the next needs a run now and then only.

use crate::asked::words;
use crate::query::{Answered, Body, Failure, Query};
use schedlab_base::{CpuId, Event, Meta, NameRecord, Nanos, Sink};
use schedlab_experiment::backend::{Request, again, simulate};
use schedlab_experiment::inspected::{InWords, Named, in_words, named};
use schedlab_sim::{Decision, Inspect, Inspector, View};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

/// Decisions are first looked for in so much time on each side.
const AROUND: Nanos = 20_000_000;

/// So many decisions are kept.
const MOST_DECISIONS: usize = 200_000;

/// The queues are looked at for so many decisions at once.
const AHEAD: usize = 24;

/// The queues of so many instants are kept.
const MOST_QUEUES: usize = 512;

/// What runs showed so far.
#[derive(Debug, Default)]
pub(crate) struct Again {
    request: Option<Request>,
    /// The time of which all decisions are known, and they.
    window: Range<Nanos>,
    decisions: Vec<(Nanos, InWords)>,
    /// The queues of each CPU at some instants.
    queues: BTreeMap<Nanos, BTreeMap<CpuId, Named>>,
}

/// Takes what a run shows.
#[derive(Clone, Default)]
struct Watching(Rc<RefCell<Shown>>);

#[derive(Default)]
struct Shown {
    names: Vec<String>,
    decisions: Vec<(Nanos, InWords)>,
    queues: BTreeMap<Nanos, BTreeMap<CpuId, Named>>,
    /// More decisions than can be kept.
    full: bool,
}

impl Sink for Watching {
    fn events(&mut self, _: &[Event]) {}

    fn name(&mut self, record: &NameRecord) {
        self.0.borrow_mut().names.push(record.comm.clone());
    }
}

impl Inspector for Watching {
    fn view(&mut self, time: Nanos, cpu: CpuId, view: View) {
        let Shown { names, queues, .. } = &mut *self.0.borrow_mut();
        let name = |p| name_of(names, p);
        queues.entry(time).or_default().insert(cpu, named(view, &name));
    }

    fn decision(&mut self, decision: &Decision) {
        let Shown { names, decisions, full, .. } = &mut *self.0.borrow_mut();
        if decisions.len() >= MOST_DECISIONS {
            *full = true;
        } else {
            decisions.push((decision.time, in_words(decision, &|p| name_of(names, p))));
        }
    }
}

fn name_of(names: &[String], p: schedlab_sim::TaskId) -> String {
    names.get(p as usize).cloned().unwrap_or_else(|| format!("task {p}"))
}

impl Again {
    /// Runs again until everything asked for was shown.
    fn run(&mut self, at: &[Nanos], explain: Range<Nanos>, end: Nanos) -> Answered<bool> {
        let request = self.request.as_ref().ok_or_else(|| Failure::none("the trace was not simulated"))?;
        let until = at.iter().copied().chain([explain.end]).max().unwrap_or(0).saturating_add(1).min(end);
        let request = Request { duration: Some(until), ..request.clone() };
        let watching = Watching::default();
        let inspect = Inspect { at, explain: explain.clone(), to: Box::new(watching.clone()) };
        simulate(&request, &mut watching.clone(), Some(inspect))?;
        let mut shown = watching.0.borrow_mut();
        if !explain.is_empty() && !shown.full {
            (self.window, self.decisions) = (explain, std::mem::take(&mut shown.decisions));
        }
        if self.queues.len() > MOST_QUEUES {
            self.queues.clear();
        }
        self.queues.append(&mut shown.queues);
        Ok(!shown.full)
    }

    fn of_cpu(&self, cpu: CpuId) -> Vec<usize> {
        (0..self.decisions.len()).filter(|at| self.decisions[*at].1.cpu == cpu).collect()
    }

    /// Whether the decision before this time and those around it are known, as far as there are any.
    fn knows(&self, cpu: CpuId, time: Nanos, end: Nanos) -> bool {
        if !self.window.contains(&time) {
            return false;
        }
        let own = self.of_cpu(cpu);
        let before = own.iter().filter(|at| self.decisions[**at].0 <= time).count();
        (before >= 2 || self.window.start == 0) && (before < own.len() || self.window.end >= end)
    }
}

/// `explain`: the last decision of a CPU at or before an instant, and its queue then.
pub(crate) fn explain(again: &Mutex<Again>, (meta, path): (&Meta, &Path), end: Nanos, query: &Query) -> Answered<Body> {
    let (time, cpu): (Nanos, CpuId) = (query.needed("time")?, query.needed("cpu")?);
    if meta.source != "sim" {
        return Err(Failure::none("only simulated traces explain their decisions: of a recording nobody knows them"));
    }
    if time > end {
        return Err(Failure::none(format!("the trace ends {} after its start", words(end))));
    }
    let mut again = again.lock().unwrap_or_else(PoisonError::into_inner);
    if again.request.is_none() {
        again.request = Some(again::request(meta).map_err(|e| e.file(path))?);
    }
    let mut around = AROUND;
    while !again.knows(cpu, time, end) {
        let window = time.saturating_sub(around)..time.saturating_add(around).min(end + 1);
        let whole = window.start == 0 && window.end > end;
        if !again.run(&[], window, end)? || whole {
            break;
        }
        around = around.saturating_mul(16);
    }
    let own = again.of_cpu(cpu);
    let here = own.iter().rposition(|at| again.decisions[*at].0 <= time);
    if !again.queues.contains_key(&time) {
        let near = here.unwrap_or(0);
        let around = &own[near.saturating_sub(AHEAD / 3)..own.len().min(near + AHEAD)];
        let mut times: Vec<Nanos> = around.iter().map(|at| again.decisions[*at].0).chain([time]).collect();
        times.sort_unstable();
        times.dedup();
        again.run(&times, Nanos::MAX..Nanos::MAX, end)?;
    }
    let time_of = |place: Option<usize>| place.and_then(|place| own.get(place)).map(|at| again.decisions[*at].0);
    let decision = here.map(|here| &again.decisions[own[here]]);
    let queue = again.queues.get(&time).and_then(|queues| queues.get(&cpu));
    let before = here.and_then(|here| here.checked_sub(1));
    let after = Some(here.map_or(0, |here| here + 1));
    Ok(Body::json(&json!({
        "decision": decision.map(|(time, decision)| in_ns(*time, decision)),
        "before": time_of(before), "after": time_of(after), "queue": queue, "time": time,
        "sentence": decision.map(|(time, decision)| sentence(*time, decision)),
    })))
}

fn in_ns(time: Nanos, decision: &InWords) -> Value {
    let mut value = json!(decision);
    if let Some(parts) = value.as_object_mut() {
        parts.shift_remove("time_us");
        parts.shift_insert(0, "time".to_owned(), time.into());
    }
    value
}

fn sentence(time: Nanos, decision: &InWords) -> String {
    let InWords { cpu, choice, who, over, rule, .. } = decision;
    let who = who.as_deref().unwrap_or("the idle task");
    let over = match over.as_slice() {
        [] => String::new(),
        [one] => format!(", not {one}"),
        [one, another] => format!(", not {one} or {another}"),
        [one, another, more @ ..] => format!(", not {one}, {another} or {} others", more.len()),
    };
    let other = decision.over.first().map_or("the idle task", String::as_str);
    let what = match *choice {
        "pick" => format!("CPU {cpu} runs {who} next{over}"),
        "preempt" => format!("{who} takes CPU {cpu} from {other}"),
        "wait" => format!("{who} waits for CPU {cpu}, which {other} keeps"),
        "turn-ends" => format!("the turn of {who} on CPU {cpu} ends"),
        "place" => format!("{who} is queued on CPU {cpu}"),
        "move" => format!("{who} is moved to CPU {cpu}"),
        _ => format!("CPU {cpu}'s budget decides"),
    };
    format!("At {}, {what}: {rule}.", words(time))
}

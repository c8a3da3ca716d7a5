//! Statistics, delays, checks and comparisons: the documents of the verbs, of a stretch of time and some tasks.

use crate::loaded::Loaded;
use crate::query::{Answered, Body, Failure, Query};
use schedlab_base::{Coverage, Nanos};
use schedlab_experiment::diff::{By, Earlier, Per, Question, Run, compare, read};
use schedlab_experiment::documents;
use schedlab_measure::delays::{Delays, WORST};
use schedlab_measure::{Bounds, Check, Chooser, Chosen, Part, Selection, Stats};
use schedlab_track::Slot;

/// Into how many blocks of time two traces are cut, as `schedlab diff` does.
const BLOCKS: usize = 10;

/// The part of the trace that is asked about; none if it is all of it.
fn part(loaded: &Loaded, query: &Query) -> Answered<Option<Part>> {
    let texts = |name| query.all(name).map(str::to_owned).collect();
    let pids: Result<Vec<i32>, _> = query.all("pids").map(str::parse).collect();
    let pids = pids.map_err(|_| Failure::bad("pids must be numbers"))?;
    let (from, to) = (query.number::<Nanos>("from")?, query.number::<Nanos>("to")?);
    let selection = Selection { from, to, names: texts("names"), pids, groups: texts("groups") };
    let tasks: Vec<Slot> = query
        .all("task")
        .map(|text| text.parse().map_err(|_| Failure::bad(format!("task={text} is no number"))))
        .collect::<Answered<_>>()?;
    if selection.is_all() && tasks.is_empty() {
        return Ok(None);
    }
    selection.part(None)?;
    let chosen = if !tasks.is_empty() {
        Some(tasks.into_iter().collect::<Chosen>())
    } else if selection.chooses_tasks() {
        let mut source = schedlab_trace::open(&loaded.path)?;
        let mut chooser = Chooser::new(source.meta());
        source.run(&mut chooser)?;
        Some(chooser.finish(&selection)?)
    } else {
        None
    };
    Ok(Some(selection.part(chosen)?))
}

/// `stats`: the document of `schedlab stats --json`.
pub(crate) fn stats(loaded: &Loaded, query: &Query) -> Answered<Body> {
    let part = part(loaded, query)?;
    let mut source = schedlab_trace::open(&loaded.path)?;
    let mut stats = Stats::of_part(source.meta(), part).with_teams();
    let read = source.run(&mut stats)?;
    Ok(Body::json(&documents::stats(&loaded.path, source.meta(), &read, &stats.finish(None))))
}

/// `delays`: the document of `schedlab delays --json`.
pub(crate) fn delays(loaded: &Loaded, query: &Query) -> Answered<Body> {
    shows_waits(loaded)?;
    let part = part(loaded, query)?;
    let worst = query.within("worst", WORST, 0, 10_000)?;
    let mut source = schedlab_trace::open(&loaded.path)?;
    let mut delays = Delays::new(source.meta(), part, worst);
    let read = source.run(&mut delays)?;
    Ok(Body::json(&documents::delays(&loaded.path, source.meta(), &read, &delays.finish(None))))
}

/// `check`: the document of `schedlab check --json`.
pub(crate) fn check(loaded: &Loaded, query: &Query) -> Answered<Body> {
    let part = part(loaded, query)?;
    let mut source = schedlab_trace::open(&loaded.path)?;
    let bounds = Bounds { threshold: loaded.threshold(), ..Bounds::default() };
    let mut check = Check::of_part(source.meta(), bounds, part);
    let read = source.run(&mut check)?;
    Ok(Body::json(&documents::check(&loaded.path, source.meta(), &read, &check.finish(None), None)))
}

fn shows_waits(loaded: &Loaded) -> Answered<()> {
    match loaded.meta.partial.as_ref().filter(|partial| partial.covers != Coverage::Tasks) {
        Some(partial) => Err(Failure::none(format!("{}; {}", partial.reason(), partial.remedy()))),
        None => Ok(()),
    }
}

/// `diff`: the document of `schedlab diff --json`. What was recorded is read first, because a model's tasks are called
/// after it.
pub(crate) fn diff(a: &Loaded, b: &Loaded) -> Answered<Body> {
    shows_waits(a)?;
    shows_waits(b)?;
    let one = |loaded: &Loaded, earlier: &Earlier| read(&loaded.path, None, By::Task, BLOCKS, earlier);
    let names = |run: &Run| -> Earlier { run.names().iter().cloned().collect() };
    let simulated = |loaded: &Loaded| loaded.meta.source == "sim";
    let (a, b) = if simulated(a) && !simulated(b) {
        let b = one(b, &Earlier::new())?;
        (one(a, &names(&b))?, b)
    } else {
        let a = one(a, &Earlier::new())?;
        let b = one(b, &names(&a))?;
        (a, b)
    };
    let question = Question { a: vec![a], b: vec![b], by: By::Task, per: Per::Run };
    Ok(Body::json(&compare(&question, &[])))
}

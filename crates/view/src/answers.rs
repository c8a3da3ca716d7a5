//! The answers to questions about one trace, by their address.

use crate::arrow::{parse_ranges, stream};
use crate::asked::{ns, stretch, task_at};
use crate::explain::explain;
use crate::find::find;
use crate::heat::{self, Value};
use crate::index::{Index, Indexer};
use crate::loaded::Loaded;
use crate::marks::{Kind, Mark, Marks, NOBODY};
use crate::overview::{self, Axis, Curve, MOST_BINS};
use crate::query::{Answered, Body, Failure, Query};
use crate::rows::By;
use crate::tile::{self, MAX_LEVEL, Place};
use crate::{measured, questions};
use arrow_array::{ArrayRef, Float64Array, UInt8Array, UInt32Array};
use schedlab_base::Nanos;
use schedlab_measure::heatmap::{What, Window};
use schedlab_measure::{CheckReport, Heatmap, Violation};
use std::sync::Arc;

/// At most so many rows are in one tile.
const MOST_ROWS: usize = 4096;

/// At most so many tiles are in one answer.
const MOST_TILES: usize = 16;

/// At most so many marks are in one answer.
const MOST_MARKS: usize = 100_000;

/// Answers a question about a trace.
///
/// # Errors
/// When there is no such question, or it is wrong.
pub fn answer(loaded: &Loaded, what: &str, query: &Query) -> Answered<Body> {
    loaded.wait().map_err(|text| Failure(500, text))?;
    match what {
        "rows" => {
            let indexer = loaded.indexer();
            Ok(Body::json(&*loaded.rows(by(query)?, &indexer, true)))
        }
        "tiles" => tiles(loaded, query),
        "overview" => {
            let indexer = loaded.indexer();
            let axis = axis(&indexer.index, query)?;
            let wasted = loaded.checked().flatten().map(|(_, wasted)| wasted);
            Ok(Body::Arrow(overview::overview(&indexer.index, wasted, axis, indexer.cpus().len())))
        }
        "heat" => heat(loaded, query),
        "counters" => counters(loaded, query),
        "marks" => marks(loaded, query),
        "at" => questions::at(&loaded.indexer(), query),
        "wait" => questions::wait(&loaded.indexer(), query),
        "lists" => questions::lists(loaded, &loaded.indexer(), query),
        "wakers" => questions::wakers(&loaded.indexer().index, query),
        "step" => questions::step(&loaded.indexer().index, query),
        "find" => find(loaded, &loaded.indexer(), query),
        "stats" => measured::stats(loaded, query),
        "delays" => measured::delays(loaded, query),
        "check" => measured::check(loaded, query),
        "explain" => {
            let end = loaded.indexer().index.end;
            explain(&loaded.again, (&loaded.meta, &loaded.path), end, query)
        }
        _ => Err(Failure::none(format!("there is no api/{}/{what}", loaded.id))),
    }
}

fn by(query: &Query) -> Answered<By> {
    match query.text("by") {
        Some("cpu") | None => Ok(By::Cpu),
        Some("task") => Ok(By::Task),
        Some(other) => Err(Failure::bad(format!("by={other} is neither cpu nor task"))),
    }
}

fn axis(index: &Index, query: &Query) -> Answered<Axis> {
    let (from, to) = stretch(index, query)?;
    let bins = query.within("bins", 1000, 1, MOST_BINS)?;
    Ok(Axis { from, to, bins })
}

fn places(query: &Query) -> Answered<Vec<Place>> {
    let level = query.needed("level")?;
    if level > MAX_LEVEL {
        return Err(Failure::bad(format!("level={level} is not within 0 to {MAX_LEVEL}")));
    }
    let text = query.text("tile").ok_or_else(|| Failure::bad("tile is missing"))?;
    let tiles = parse_ranges(text, MOST_TILES)
        .ok_or_else(|| Failure::bad(format!("tile={text} is no list of at most {MOST_TILES} tiles")))?;
    if let Some(tile) = tiles.iter().find(|tile| **tile > u64::MAX >> (level + 11)) {
        return Err(Failure::bad(format!("tile={tile} is beyond the end of time")));
    }
    Ok(tiles.into_iter().map(|tile| Place { level, tile }).collect())
}

fn tiles(loaded: &Loaded, query: &Query) -> Answered<Body> {
    let places = places(query)?;
    let by = by(query)?;
    let text = query.text("rows").ok_or_else(|| Failure::bad("rows is missing"))?;
    let wanted: Vec<u32> = parse_ranges(text, MOST_ROWS)
        .and_then(|rows| rows.into_iter().map(|row| row.try_into().ok()).collect())
        .ok_or_else(|| Failure::bad(format!("rows={text} is no list of at most {MOST_ROWS} rows")))?;
    let indexer = loaded.indexer();
    let rows = loaded.rows(by, &indexer, false);
    Ok(Body::Arrow(tile::tiles(&indexer.index, &rows, &wanted, &places)))
}

fn heat(loaded: &Loaded, query: &Query) -> Answered<Body> {
    let places = places(query)?;
    let what = query.text("of").unwrap_or("queue");
    let group = query.within("group", 1, 1, 65_536)?;
    let indexer = loaded.indexer();
    let value = match what {
        "queue" => Value::Queue,
        "load" if !indexer.index.loads.is_empty() => Value::Load,
        "considered" if indexer.index.considered => return again(loaded, &indexer, &places, false),
        "memory" if indexer.index.memory => return again(loaded, &indexer, &places, true),
        "load" | "considered" | "memory" => return Err(Failure::none(format!("the trace does not have the {what}"))),
        other => return Err(Failure::bad(format!("of={other} is not queue, load, considered or memory"))),
    };
    Ok(Body::Arrow(heat::tiles(&indexer.index, &indexer.cpus(), value, &places, group)))
}

/// Heat that only `schedlab heatmap` knows, from another reading.
fn again(loaded: &Loaded, indexer: &Indexer, places: &[Place], memory: bool) -> Answered<Body> {
    let end = indexer.index.end;
    let drawn = tile::apart(places, |place| {
        let (from, width) = place.bounds();
        if from >= end {
            return Err(Failure::bad("the tile begins after the trace's end"));
        }
        let bins = (end - from).div_ceil(width).min(tile::BINS) as usize;
        let window = Window { from, to: Some(from + bins as u64 * width), columns: bins };
        let what = if memory { What::Memory } else { What::Considered { by: None, why: Vec::new() } };
        let mut source = schedlab_trace::open(&loaded.path)?;
        let mut heatmap = Heatmap::new(source.meta(), what, window);
        source.run(&mut heatmap)?;
        Ok(heatmap.finish(None))
    });
    let drawn = drawn.into_iter().collect::<Answered<Vec<_>>>()?;
    Ok(Body::Arrow(heat::drawn(&drawn)))
}

fn counters(loaded: &Loaded, query: &Query) -> Answered<Body> {
    let name = query.text("name").unwrap_or_default();
    let indexer = loaded.indexer();
    let axis = axis(&indexer.index, query)?;
    match Curve::named(name) {
        Some(Curve::Frequency) if indexer.index.frequencies.is_empty() => {
            Err(Failure::none("the trace does not have the CPUs' frequencies"))
        }
        Some(curve) => Ok(Body::Arrow(overview::curve(&indexer.index, curve, axis))),
        None => Err(Failure::bad(format!("name={name} is not runnable, latency_p50, latency_p99 or frequency"))),
    }
}

fn marks(loaded: &Loaded, query: &Query) -> Answered<Body> {
    let name = query.text("kind").unwrap_or_default();
    let kind = Kind::ALL.iter().find(|(_, own)| *own == name).map(|(kind, _)| *kind);
    let kind =
        kind.ok_or_else(|| Failure::bad(format!("kind={name} is not wake, migrate, violation, loss or interrupt")))?;
    let limit = query.within("limit", 2000, 1, MOST_MARKS)?;
    let (cpu, task) = (query.number("cpu")?, query.number("task")?);
    let indexer = loaded.indexer();
    let index = &indexer.index;
    let (from, to) = stretch(index, query)?;
    // The end belongs to it, so that a mark at the trace's end is seen.
    let (found, all): (Vec<Mark>, usize) = match kind {
        Kind::Wake => few(&index.wakes, (from, to + 1), (cpu, task), limit),
        Kind::Migrate => few(&index.moves, (from, to + 1), (cpu, task), limit),
        Kind::Loss => few(&index.losses, (from, to + 1), (cpu, task), limit),
        Kind::Interrupt => few(&index.interrupts, (from, to + 1), (cpu, task), limit),
        Kind::Violation => {
            let marks = violations(loaded, index);
            few(&marks, (from, to + 1), (cpu, task), limit)
        }
    };
    Ok(Body::Arrow(mark_stream(kind, &found, all)))
}

/// The marks as a stream; there are `all`.
pub(crate) fn mark_stream(kind: Kind, marks: &[Mark], all: usize) -> Vec<u8> {
    let floats = |of: fn(&Mark) -> Nanos| {
        Arc::new(Float64Array::from_iter_values(marks.iter().map(|mark| of(mark) as f64))) as ArrayRef
    };
    let whole = |of: fn(&Mark) -> u32| Arc::new(UInt32Array::from_iter_values(marks.iter().map(of))) as ArrayRef;
    let columns = vec![
        ("time", floats(|mark| mark.time)),
        ("duration", floats(|mark| mark.duration)),
        ("kind", Arc::new(UInt8Array::from(vec![kind as u8; marks.len()])) as ArrayRef),
        ("from_cpu", whole(|mark| mark.from_cpu)),
        ("to_cpu", whole(|mark| mark.to_cpu)),
        ("from_task", whole(|mark| mark.from_task)),
        ("to_task", whole(|mark| mark.to_task)),
    ];
    stream(columns, &[("count", all.to_string()), ("more", (all > marks.len()).to_string())])
}

/// The marks of a stretch of time, evenly thinned out if there are more than `limit`, and how many there are.
fn few(
    marks: &Marks,
    (from, to): (Nanos, Nanos),
    (cpu, task): (Option<u32>, Option<u32>),
    limit: usize,
) -> (Vec<Mark>, usize) {
    let touches = |mark: &Mark| mark.time < to && mark.time + mark.duration >= from && mark.concerns(cpu, task);
    let within = marks.within(from, to);
    if cpu.is_none() && task.is_none() && !marks.last() {
        let (count, step) = (within.len(), within.len().div_ceil(limit).max(1));
        return (within.step_by(step).map(|at| marks.get(at)).collect(), count);
    }
    let all = || within.clone().filter(|at| touches(&marks.get(*at)));
    let count = all().count();
    let step = count.div_ceil(limit).max(1);
    (all().step_by(step).map(|at| marks.get(at)).collect(), count)
}

/// The violations as marks. Once they are known, they and the tasks do not change.
pub(crate) fn violations(loaded: &Loaded, index: &Index) -> Arc<Marks> {
    match loaded.checked() {
        Some(Some((report, _))) if index.complete => {
            loaded.violations.get_or_init(|| Arc::new(marked(report, index))).clone()
        }
        Some(Some((report, _))) => Arc::new(marked(report, index)),
        _ => Arc::new(Marks::lasting()),
    }
}

fn marked(CheckReport { violations, .. }: &CheckReport, index: &Index) -> Marks {
    let mut marks = Marks::lasting();
    for violation in violations {
        let Violation { start_us, duration_us, idle_cpu, busy_cpu, waiting, .. } = violation;
        let tid = waiting.first().map(|task| task.tid);
        let time = ns(*start_us);
        marks.push(Mark {
            time,
            duration: ns(*duration_us),
            from_cpu: *busy_cpu,
            to_cpu: *idle_cpu,
            from_task: NOBODY,
            to_task: tid.and_then(|tid| task_at(index, tid, time)).unwrap_or(NOBODY),
        });
    }
    marks
}

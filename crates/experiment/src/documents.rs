//! The JSON documents of `schedlab stats`, `delays` and `check`, which the page of `schedlab view` shows too.

use schedlab_base::{CpuId, Meta, Partial, System, Target, path_text};
use schedlab_measure::delays::{DelayReport, Wait};
use schedlab_measure::partial::withhold;
use schedlab_measure::{CheckReport, Report};
use schedlab_trace::ReadReport;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// Statistics with the trace that they come from.
#[derive(Serialize)]
struct Statistics<'a> {
    trace: Recorded<'a>,
    #[serde(flatten)]
    report: &'a Report,
}

/// Where statistics come from.
#[derive(Serialize)]
struct Recorded<'a> {
    #[serde(serialize_with = "path_text")]
    file: &'a Path,
    source: &'a str,
    kernel: &'a str,
    machine: &'a str,
    clock: &'a str,
    /// What the recording was made for.
    target: &'a Option<Target>,
    /// Set if it does not cover the whole machine.
    partial: &'a Option<Partial>,
    /// What is known of the kernel besides its release.
    #[serde(skip_serializing_if = "Option::is_none")]
    system: &'a Option<System>,
    #[serde(flatten)]
    read: &'a ReadReport,
}

/// Delays with the trace that they come from.
#[derive(Serialize)]
struct Delayed<'a> {
    trace: Facts<'a>,
    waits: Vec<Shown<'a>>,
    #[serde(flatten)]
    report: &'a DelayReport,
}

/// A wait with the command that draws it.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    wait: &'a Wait,
    gantt: String,
}

/// A check with the trace that it is of.
#[derive(Serialize)]
struct Checked<'a> {
    trace: Facts<'a>,
    #[serde(flatten)]
    report: &'a CheckReport,
    /// What looking now and then finds.
    #[serde(skip_serializing_if = "Option::is_none")]
    sampled: Option<Value>,
}

/// Where delays and checks come from.
#[derive(Serialize)]
struct Facts<'a> {
    #[serde(serialize_with = "path_text")]
    file: &'a Path,
    source: &'a str,
    kernel: &'a str,
    machine: &'a str,
    /// Set if it does not cover the whole machine.
    partial: &'a Option<Partial>,
    #[serde(flatten)]
    read: &'a ReadReport,
}

/// The figures of a check that a partial recording leaves open.
const UNKNOWN: [&str; 5] = ["longest_us", "wasted_cpu_us", "wasted_share", "idle_us", "bound_wait_us"];

fn value(document: impl Serialize) -> Value {
    serde_json::to_value(document).expect("plain data is always JSON")
}

/// The document of `schedlab stats`.
#[must_use]
pub fn stats(file: &Path, meta: &Meta, read: &ReadReport, report: &Report) -> Value {
    let Meta { source, kernel, machine, clock, target, partial, system, .. } = meta;
    let trace = Recorded { file, source, kernel, machine, clock, target, partial, system, read };
    let mut document = value(Statistics { trace, report });
    if let Some(partial) = partial {
        withhold(&mut document, partial.covers);
    }
    document
}

fn facts<'a>(file: &'a Path, meta: &'a Meta, read: &'a ReadReport) -> Facts<'a> {
    let Meta { source, kernel, machine, partial, .. } = meta;
    Facts { file, source, kernel, machine, partial, read }
}

/// The document of `schedlab delays`.
#[must_use]
pub fn delays(file: &Path, meta: &Meta, read: &ReadReport, report: &DelayReport) -> Value {
    let shown = |wait| Shown { wait, gantt: gantt(file, wait) };
    let waits = report.waits.iter().map(shown).collect();
    let mut document = value(Delayed { trace: facts(file, meta, read), waits, report });
    if meta.partial.is_some() {
        withhold_idle(&mut document);
    }
    document
}

/// A partial recording does not show which CPUs were idle.
fn withhold_idle(document: &mut Value) {
    let (waits, total) = (document["waits"].take(), &mut document["total"]);
    total["idle_us"] = Value::Null;
    let blank = |mut wait: Value| {
        ["idle_us", "idle_allowed_us"].into_iter().for_each(|key| wait[key] = Value::Null);
        wait
    };
    let waits = waits.as_array().cloned().unwrap_or_default();
    document["waits"] = waits.into_iter().map(blank).collect();
}

/// The document of `schedlab check`, with what looking now and then finds, if that was asked for.
#[must_use]
pub fn check(file: &Path, meta: &Meta, read: &ReadReport, report: &CheckReport, sampled: Option<Value>) -> Value {
    let mut document = value(Checked { trace: facts(file, meta, read), report, sampled });
    if meta.partial.is_some() {
        UNKNOWN.iter().for_each(|key| document[key] = Value::Null);
    }
    document
}

/// The command that draws the CPUs on whose queues the task was, for the time of its wait.
#[must_use]
pub fn gantt(trace: &Path, wait: &Wait) -> String {
    let mut cpus: Vec<CpuId> = wait.queues.iter().map(|queue| queue.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let cpus: Vec<String> = cpus.iter().map(CpuId::to_string).collect();
    let ns = |us: f64| (us * 1e3).round() as u64;
    let (from, to, cpus) = (ns(wait.start_us), ns(wait.end_us), cpus.join(","));
    format!("schedlab gantt {} --from {from}ns --to {to}ns --cpu {cpus}", quoted(&trace.display().to_string()))
}

/// A word for the shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

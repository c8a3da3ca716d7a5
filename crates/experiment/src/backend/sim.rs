//! The simulator as a backend: a request in, the events of a trace and how it ended out.

use super::again;
use crate::catalogue;
use crate::experiment::HeatmapPlan;
use crate::lower::{lower, unmodelled};
use crate::run::Run;
use schedlab_base::{Error, Meta, Nanos, Result, Sink};
use schedlab_machine::Machine;
use schedlab_measure::{Energy, Heatmap, Series, Stats};
use schedlab_sched::kernels::{self, How};
use schedlab_sim::Inspect;
use schedlab_workload::Workload;
use std::collections::BTreeMap;

/// What is to be simulated.
#[derive(Clone, Debug)]
pub struct SimRequest {
    /// The kernel's profile.
    pub kernel: String,
    /// The machine, costs included.
    pub machine: Machine,
    /// The workload.
    pub workload: Workload,
    /// Tunables: name and value.
    pub set: Vec<(String, String)>,
    /// How long; the workload's own duration where `None`, and until every task has ended where that has none.
    pub duration: Option<Nanos>,
    /// For every random draw.
    pub seed: u64,
    /// Skip ticks that can change nothing; the events are the same.
    pub skip_ticks: bool,
}

/// How a simulation ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimOutcome {
    /// The simulated time.
    pub end: Nanos,
    /// Tasks that were there.
    pub tasks: u32,
    /// Every tunable of the kernel, as it was at the end.
    pub tunables: BTreeMap<&'static str, i64>,
    /// Remarks: what was not modelled, why it ended early.
    pub notes: Vec<String>,
}

/// Simulates; the events go to `sink`.
///
/// # Errors
/// When the kernel or a tunable is unknown, the workload does not fit the machine, deadlocks, lets no time pass, or
/// would never end.
pub fn simulate(request: &SimRequest, sink: &mut dyn Sink) -> Result<SimOutcome> {
    simulate_and_look(request, sink, None)
}

/// As [`simulate`]; what `inspect` asks for is shown to it on the way.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_and_look(
    request: &SimRequest,
    sink: &mut dyn Sink,
    inspect: Option<Inspect<'_>>,
) -> Result<SimOutcome> {
    let kernel = kernels::find(&request.kernel)?;
    let values = kernel.values_or(&request.machine, &request.set, |name| catalogue::history(kernel, name))?;
    let duration = request.duration.or(request.workload.global.duration);
    if duration.is_none() && endless(&request.workload) {
        return Err(Error::input("the workload never ends").mend("give a duration"));
    }
    if duration == Some(0) {
        return Err(Error::input("a duration of 0").mend("give a longer one"));
    }
    let load = lower(&request.workload, &request.machine)?;
    let how = How { duration, seed: request.seed, skip_ticks: request.skip_ticks };
    let outcome = kernel.simulate_and_look(&request.machine, &load, &values, &how, sink, inspect)?;
    let mut notes = unmodelled(&request.workload);
    notes.extend(kernel.unmodelled(&request.machine, &load));
    notes.extend(outcome.idle_note);
    let tunables = values.iter().chain(outcome.tunables).collect();
    Ok(SimOutcome { end: outcome.end, tasks: outcome.tasks, tunables, notes })
}

/// Whether a task that starts, or may be forked, loops for ever.
fn endless(workload: &Workload) -> bool {
    workload.tasks.iter().any(|task| task.loops.is_none() || task.phases.iter().any(|phase| phase.loops.is_none()))
}

/// The metadata of the trace that a request makes.
#[must_use]
pub fn meta(request: &SimRequest) -> Meta {
    let mut notes = BTreeMap::from([
        ("seed".to_owned(), request.seed.to_string()),
        ("workload".to_owned(), request.workload.name.clone()),
    ]);
    again::note(request, &mut notes);
    Meta {
        source: "sim".to_owned(),
        kernel: request.kernel.clone(),
        machine: request.machine.name.clone(),
        clock: "sim".to_owned(),
        span: request.duration.or(request.workload.global.duration).map(|end| (0, end)),
        cpus: request.machine.cpus.iter().map(|cpu| cpu.place.clone()).collect(),
        distances: request.machine.distances.clone(),
        running: request.machine.cpus.iter().map(|cpu| (cpu.place.cpu, 0)).collect(),
        notes,
    }
}

/// Simulates and measures; the run's heat maps hear of it too.
///
/// # Errors
/// As [`simulate`].
pub fn measure(request: &SimRequest, window: Option<Nanos>, plans: &[(usize, &HeatmapPlan)]) -> Result<Run> {
    let kernel = kernels::find(&request.kernel)?;
    let values = kernel.values_or(&request.machine, &request.set, |name| catalogue::history(kernel, name))?;
    let idle_ticks = if kernel.build().no_hz { None } else { Some(kernel.tick(&values)?) };
    let mut series = Series::new(request.machine.cpus.len(), window).with_idle_ticks(idle_ticks);
    series.energy = Energy::new(&request.machine);
    series = series.with_nodes(request.machine.cpus.iter().map(|cpu| cpu.place.node));
    let meta = meta(request);
    // A simulation begins at 0, whatever happens first.
    let whole = Meta { span: meta.span.or(Some((0, 0))), ..meta.clone() };
    let mut stats = Stats::with(&whole, series);
    // When every task has ended a run is over, whatever its duration: its pictures end there.
    let unknown = Meta { span: None, ..meta };
    let heatmap = |(_, plan): &(usize, &HeatmapPlan)| Heatmap::new(&unknown, plan.what.clone(), plan.window);
    let mut heatmaps: Vec<Heatmap> = plans.iter().map(heatmap).collect();
    let outcome = simulate(request, &mut (&mut stats, &mut heatmaps[..]))?;
    let (report, series) = stats.finish_both(Some(outcome.end));
    let mut run = Run::new(request.kernel.clone(), report, series);
    run.tunables = outcome.tunables;
    let heats = heatmaps.into_iter().map(|heatmap| heatmap.finish(Some(outcome.end)));
    run.heats = plans.iter().map(|(number, _)| *number).zip(heats).collect();
    run.note = (!outcome.notes.is_empty()).then(|| outcome.notes.join("; "));
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(workload: &str) -> SimRequest {
        SimRequest {
            kernel: "linux-2.6.32".into(),
            machine: schedlab_machine::load("2").unwrap(),
            workload: schedlab_workload::parse(workload.as_bytes(), std::path::Path::new("w.json")).unwrap(),
            set: Vec::new(),
            duration: None,
            seed: 1,
            skip_ticks: true,
        }
    }

    #[test]
    fn a_run_is_measured_task_by_task() {
        let run =
            measure(&request(r#"{"tasks": {"a": {"instance": 2, "loop": 1, "run": 50000}}}"#), None, &[]).unwrap();
        let names: Vec<_> = run.tasks.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["a-0", "a-1"]);
        for task in &run.tasks {
            assert!((50_000_000..50_100_000).contains(&task.run), "{task:?}");
            assert!(task.end.is_some() && task.slices >= 1, "{task:?}");
        }
    }

    #[test]
    fn a_load_that_never_ends_wants_a_duration() {
        let endless = request(r#"{"tasks": {"a": {"loop": -1, "run": 1000}}}"#);
        let told = measure(&endless, None, &[]).unwrap_err().to_string();
        assert_eq!(told, "the workload never ends; give a duration");
    }
}

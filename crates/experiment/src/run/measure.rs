//! One run: a request on a backend, its events measured as they come.

use crate::backend::{Backend, Request};
use crate::experiment::HeatmapPlan;
use crate::figures::Run;
use schedlab_base::{Meta, Nanos, Result};
use schedlab_chart::heatmap::COLUMNS;
use schedlab_measure::heatmap::Window;
use schedlab_measure::{Bounds, Check, Energy, Fingerprint, Heatmap, Series, StatsOverTime};
use schedlab_trace::Writer;
use std::path::Path;

/// A run that was measured.
pub struct Measured {
    /// Its figures.
    pub run: Run,
    /// What stands for its events.
    pub fingerprint: u64,
}

/// What is wanted of a run beside its figures.
#[derive(Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// The width of the windows, where it is fixed.
    pub window: Option<Nanos>,
    /// The heat maps to make of it.
    pub heats: &'a [(usize, &'a HeatmapPlan)],
    /// Whether CPU time that was wasted is looked for.
    pub waste: bool,
    /// Where its trace is written.
    pub keep: Option<&'a Path>,
}

/// Time wasted in a stretch shorter than this is none that anybody could see: a CPU is on its way to the task.
const LEAST: Nanos = 1_000_000;

/// Runs a request and measures it.
///
/// # Errors
/// As the backend's.
pub fn measure(backend: &dyn Backend, request: &Request, wanted: &Wanted<'_>) -> Result<Measured> {
    let plans = wanted.heats;
    let series = series(request, wanted.window, backend.idle_ticks(request)?);
    let meta = backend.meta(request);
    // A run begins at 0, whatever happens first.
    let whole = Meta { span: meta.span.or(Some((0, 0))), ..meta.clone() };
    let mut stats = StatsOverTime::new(&whole, series);
    // A run is over when every task has ended, whatever its duration: its pictures end there.
    let mut checks: Vec<Check> =
        wanted.waste.then(|| Check::new(&whole, Bounds { threshold: LEAST, max_wasted: None })).into_iter().collect();
    let unknown = Meta { span: None, ..meta };
    let heatmap = |(_, plan): &(usize, &HeatmapPlan)| {
        let window = Window { from: plan.from, to: plan.to, columns: COLUMNS };
        Heatmap::new(&unknown, plan.what.clone(), window)
    };
    let mut heatmaps: Vec<Heatmap> = plans.iter().map(heatmap).collect();
    let mut fingerprint = Fingerprint::default();
    let writer = wanted.keep.map(|path| Writer::create(path, &backend.head(request))).transpose()?;
    let mut writers: Vec<_> = writer.into_iter().collect();
    let mut pictures = (&mut checks[..], &mut heatmaps[..]);
    let mut extra = (&mut writers[..], &mut pictures);
    let outcome = backend.run(request, &mut (&mut fingerprint, &mut (&mut stats, &mut extra)))?;
    writers.into_iter().try_for_each(|writer| writer.finish().map(drop))?;
    let (report, series) = stats.finish(Some(outcome.end));
    let mut run = Run::of_tasks(outcome.own.as_ref(), request.kernel.clone(), report, series);
    run.tunables = outcome.tunables;
    let heats = heatmaps.into_iter().map(|heatmap| heatmap.finish(Some(outcome.end)));
    run.heats = plans.iter().map(|(number, _)| *number).zip(heats).collect();
    run.check = checks.pop().map(|check| check.finish(Some(outcome.end)));
    run.notes = outcome.notes;
    run.recorded = outcome.own.is_some();
    Ok(Measured { run, fingerprint: fingerprint.number() })
}

fn series(request: &Request, window: Option<Nanos>, idle_ticks: Option<(Nanos, Nanos)>) -> Series {
    let cpus = &request.machine.cpus;
    let mut series = Series::new(cpus.len(), window).with_idle_ticks(idle_ticks);
    series.energy = Energy::new(&request.machine);
    series.with_nodes(cpus.iter().map(|cpu| cpu.place.node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Sim;

    fn request(workload: &str) -> Request {
        Request {
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
        let request = request(r#"{"tasks": {"a": {"instance": 2, "loop": 1, "run": 50000}}}"#);
        let run = measure(&Sim, &request, &Wanted::default()).unwrap().run;
        let names: Vec<_> = run.tasks.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["a-0", "a-1"]);
        for task in &run.tasks {
            assert!((50_000_000..50_100_000).contains(&task.run), "{task:?}");
            assert!(task.end.is_some() && task.slices >= 1, "{task:?}");
        }
    }
}

//! The simulator as a backend.

use super::{Backend, Outcome, Request, again};
use crate::catalogue;
use schedlab_base::{Meta, Nanos, Result, Sink, System};
use schedlab_sched::kernels::{self, How, Kernel};
use schedlab_sched::tunables::Values;
use schedlab_sim::Inspect;
use std::collections::BTreeMap;

/// The simulator.
#[derive(Clone, Copy, Debug)]
pub struct Sim;

impl Backend for Sim {
    fn name(&self) -> &str {
        "sim"
    }

    fn deterministic(&self) -> bool {
        true
    }

    fn meta(&self, request: &Request) -> Meta {
        meta(request)
    }

    fn head(&self, request: &Request) -> Meta {
        head(request)
    }

    fn idle_ticks(&self, request: &Request) -> Result<Option<(Nanos, Nanos)>> {
        let (kernel, values) = configured(request)?;
        if kernel.build.no_hz { Ok(None) } else { kernel.tick(&values).map(Some) }
    }

    fn run(&self, request: &Request, sink: &mut dyn Sink) -> Result<Outcome> {
        simulate(request, sink, None)
    }
}

/// Simulates; the events go to `sink`, and what `inspect` asks for is shown to it on the way.
///
/// # Errors
/// When the kernel or a tunable is unknown, the workload does not fit the machine, deadlocks, lets no time pass, or
/// would never end.
pub fn simulate(request: &Request, sink: &mut dyn Sink, inspect: Option<Inspect<'_>>) -> Result<Outcome> {
    let (kernel, values) = configured(request)?;
    let duration = request.length()?;
    let (load, mut notes) = request.load()?;
    let how = How { duration, seed: request.seed, skip_ticks: request.skip_ticks };
    let outcome = kernel.simulate_and_look(&request.machine, &load, &values, &how, sink, inspect)?;
    notes.extend(kernel.unmodelled(&request.machine, &load));
    notes.extend(outcome.idle_note);
    notes.extend(outcome.affinity_notes);
    let tunables = values.iter().chain(outcome.tunables).collect();
    Ok(Outcome { end: outcome.end, tasks: outcome.tasks, tunables, notes, own: None, taken: None })
}

/// Checks that the kernel has the tunables that the request sets, and can have their values.
///
/// # Errors
/// When it does not.
pub fn check_settings(request: &Request) -> Result<()> {
    configured(request).map(drop)
}

/// The kernel, and its tunables as the request sets them.
fn configured(request: &Request) -> Result<(&'static Kernel, Values)> {
    let kernel = kernels::find(&request.kernel)?;
    let values = kernel.values_or(&request.machine, &request.set, |name| catalogue::history(kernel, name))?;
    Ok((kernel, values))
}

/// What decides how the kernel schedules; none if the request cannot be run.
fn system(request: &Request) -> Option<System> {
    let (kernel, values) = configured(request).ok()?;
    let written = |(name, value): (&'static str, i64)| Some((name.to_owned(), kernel.tunable(name)?.written(value)));
    let tunables: BTreeMap<String, String> = values.iter().filter_map(written).collect();
    let on = |name: &str| values.iter().find(|(own, _)| *own == name).map(|(_, value)| value != 0);
    Some(System {
        hz: tunables.get("hz").and_then(|hz| hz.parse().ok()),
        preemption: Some(tunables.get("preempt").map_or(kernel.build.preemption.name(), String::as_str).to_owned()),
        autogroup: on("sched_autogroup_enabled"),
        numa_balancing: on("numa_balancing"),
        tunables,
        ..System::default()
    })
}

/// The metadata of a trace that is kept: what made it is part of it.
#[must_use]
pub fn head(request: &Request) -> Meta {
    let mut meta = meta(request);
    again::note(request, &mut meta.notes);
    meta
}

/// The metadata of the trace that a request makes.
#[must_use]
pub fn meta(request: &Request) -> Meta {
    let notes = BTreeMap::from([
        ("seed".to_owned(), request.seed.to_string()),
        ("workload".to_owned(), request.workload.name.clone()),
    ]);
    let global = &request.workload.global;
    Meta {
        source: "sim".to_owned(),
        kernel: request.kernel.clone(),
        machine: request.machine.name.clone(),
        clock: "sim".to_owned(),
        // Nobody knows yet when the tasks that end it will have ended.
        span: request.duration.or(global.duration).filter(|_| global.until.is_none()).map(|end| (0, end)),
        cpus: request.machine.cpus.iter().map(|cpu| cpu.place.clone()).collect(),
        distances: request.machine.distances.clone(),
        running: request.machine.cpus.iter().map(|cpu| (cpu.place.cpu, 0)).collect(),
        system: system(request),
        notes,
        ..Meta::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_base::{Event, NameRecord};

    struct Nowhere;

    impl Sink for Nowhere {
        fn events(&mut self, _: &[Event]) {}
        fn name(&mut self, _: &NameRecord) {}
    }

    fn request(workload: &str, duration: Option<Nanos>) -> Request {
        Request {
            kernel: "linux-2.6.32".into(),
            machine: schedlab_machine::load("2").unwrap(),
            workload: schedlab_workload::parse(workload.as_bytes(), std::path::Path::new("w.json")).unwrap(),
            set: Vec::new(),
            duration,
            seed: 1,
            skip_ticks: true,
        }
    }

    #[test]
    fn a_load_that_never_ends_wants_a_duration() {
        let endless = request(r#"{"tasks": {"a": {"loop": -1, "run": 1000}}}"#, None);
        let message = Sim.run(&endless, &mut Nowhere).unwrap_err().to_string();
        assert_eq!(message, "the workload never ends; give a duration");
    }

    #[test]
    fn a_run_is_over_when_all_instances_of_the_awaited_task_have_ended() {
        const SECOND: Nanos = 1_000_000_000;
        let workload = |until: &str| {
            format!(
                r#"{{"global": {{ {until} }}, "tasks": {{
                    "first": {{"loop": 1, "sleep": 500000}},
                    "awaited": {{"instance": 2, "x-stagger": 1000000, "loop": 1, "sleep": 2000000, "run": 1}},
                    "endless": {{"loop": -1, "run": 1000}}}}}}"#
            )
        };
        let end = |until: &str, seconds| {
            let request = request(&workload(until), Some(seconds * SECOND));
            (Sim.run(&request, &mut Nowhere).unwrap().end, meta(&request).span)
        };
        assert_eq!(end("", 9), (9 * SECOND, Some((0, 9 * SECOND))));
        // The second instance starts after 1 s, and sleeps for 2 s.
        let (over, span) = end(r#""x-until": "awaited""#, 9);
        assert!((3 * SECOND..3 * SECOND + SECOND / 10).contains(&over), "{over}");
        assert_eq!(span, None);
        assert_eq!(end(r#""x-until": "awaited""#, 2).0, 2 * SECOND);
    }

    #[test]
    fn what_is_killed_is_not_endless() {
        let killed = request(r#"{"tasks": {"a": {"loop": -1, "run": 1000, "x-lifetime": 2500000}}}"#, None);
        assert_eq!(Sim.run(&killed, &mut Nowhere).unwrap().end, 2_500_000_000);
    }

    #[test]
    fn a_run_is_over_when_the_awaited_task_was_forked_and_has_ended() {
        const SECOND: Nanos = 1_000_000_000;
        let workload = r#"{"global": {"x-until": "awaited"}, "tasks": {
            "first": {"loop": 2, "sleep": 1000000, "fork": "awaited"},
            "awaited": {"instance": 0, "loop": 1, "sleep": 1500000},
            "endless": {"loop": -1, "run": 1000}}}"#;
        // The first lives from 1 s to 2.5 s, the second from 2 s to 3.5 s.
        let over = Sim.run(&request(workload, Some(9 * SECOND)), &mut Nowhere).unwrap().end;
        assert!((7 * SECOND / 2..4 * SECOND).contains(&over), "{over}");
    }
}

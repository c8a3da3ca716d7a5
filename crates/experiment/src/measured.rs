//! Single runs measured by expressions, without an experiment's file: what the tuner asks of a trial.

use crate::backend::{Backend, Outcome, Request, Sim, replay};
use crate::experiment::Names;
use crate::expr::{Expr, Problem, eval_number, parse};
use crate::figures::Run;
use crate::look::Subject;
use crate::measures::RunScope;
use crate::points::Point;
use crate::run::{Wanted, measure};
use crate::tables::Tables;
use schedlab_base::{Error, Meta, Nanos, Result, Sink, Tid};
use schedlab_workload::Action;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Expressions over the measures of a run, as the metrics of an experiment are, each with its text.
pub struct Expressions(Vec<(String, Expr)>);

/// What the expressions found in a run.
pub struct Found {
    /// The value of each, or why this run has none.
    pub values: Vec<std::result::Result<f64, String>>,
    /// What the backend remarked.
    pub notes: Vec<String>,
}

/// A run of a real kernel that was recorded, in the place of a backend.
pub struct Recorded {
    /// The trace.
    pub trace: PathBuf,
    /// The tasks of the workload.
    pub own: BTreeSet<Tid>,
    /// How long it took.
    pub end: Nanos,
}

impl Expressions {
    /// Reads expressions and checks every name in them.
    ///
    /// # Errors
    /// At the first that is none, or names what no run has.
    pub fn parse(texts: &[String]) -> Result<Self> {
        texts.iter().map(|text| Ok((text.clone(), expression(text)?))).collect::<Result<_>>().map(Self)
    }

    /// Runs a request and measures it.
    ///
    /// # Errors
    /// As the backend's, and when an expression makes no sense for this run.
    pub fn measure(&self, backend: &dyn Backend, request: &Request) -> Result<Found> {
        let wanted = Wanted { waste: self.subject().waste, ..Wanted::default() };
        let run = measure(backend, request, &wanted)?.run;
        Ok(Found { values: self.values(&run)?, notes: run.notes })
    }

    /// Checks what shows before a request is simulated: that its load has the tasks that the expressions name, and that
    /// they come to a number. What tasks are forked is not known before, nor of a request that cannot be simulated.
    ///
    /// # Errors
    /// When an expression makes no sense for this run.
    pub fn check(&self, request: &Request) -> Result<()> {
        let beginning = Request { duration: Some(1), ..request.clone() };
        let Ok(begun) = measure(&Sim, &beginning, &Wanted::default()) else { return Ok(()) };
        let mut run = begun.run;
        run.recorded = request.workload.steps().any(|(_, _, step)| matches!(step.what, Action::Fork(_)));
        self.values(&run).map(drop)
    }

    /// The value of each expression, or why this run has none.
    fn values(&self, run: &Run) -> Result<Vec<std::result::Result<f64, String>>> {
        let (point, tables) = (&Point::default(), &Tables::default());
        let scope = RunScope { run, point, tables, stands_in: false };
        let value = |(text, expr): &(String, Expr)| match eval_number(expr, &scope) {
            Ok(value) => Ok(Ok(value)),
            Err(Problem::Wrong(what)) => Err(Error::input(format!("{text:?}: {what}"))),
            Err(problem) => Ok(Err(problem.to_string())),
        };
        self.0.iter().map(value).collect()
    }

    /// What the expressions are about: the tasks that they name, and whether it is wasted CPU time.
    #[must_use]
    pub fn subject(&self) -> Subject {
        let none = BTreeMap::new();
        self.0.iter().map(|(_, expr)| Subject::of(expr, &none)).fold(Subject::default(), Subject::and)
    }
}

fn expression(text: &str) -> Result<Expr> {
    let expr = parse(text).map_err(|e| Error::input(format!("{text:?}: {e}")))?;
    let names = Names { parameters: Vec::new(), metrics: None, kernels: Vec::new(), tables: &Tables::default() };
    names.check(&expr).map_err(|(what, mend)| {
        let error = Error::input(format!("{text:?}: {what}"));
        mend.into_iter().fold(error, Error::mend)
    })?;
    Ok(expr)
}

impl Backend for Recorded {
    fn name(&self) -> &'static str {
        "recording"
    }

    fn deterministic(&self) -> bool {
        false
    }

    fn meta(&self, request: &Request) -> Meta {
        Meta {
            source: "record".to_owned(),
            kernel: request.kernel.clone(),
            machine: request.machine.name.clone(),
            cpus: request.machine.cpus.iter().map(|cpu| cpu.place.clone()).collect(),
            distances: request.machine.distances.clone(),
            ..Meta::default()
        }
    }

    fn idle_ticks(&self, _: &Request) -> Result<Option<(Nanos, Nanos)>> {
        Ok(None)
    }

    fn run(&self, _: &Request, sink: &mut dyn Sink) -> Result<Outcome> {
        replay(&mut *schedlab_trace::open(&self.trace)?, sink)?;
        let (tasks, own) = (self.own.len() as u32, Some(self.own.clone()));
        Ok(Outcome { end: self.end, tasks, tunables: BTreeMap::new(), notes: Vec::new(), own, taken: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        let workload = br#"{"tasks": {"a": {"loop": 1, "run": 5000}, "b": {"loop": -1, "run": 1000, "sleep": 1000}}}"#;
        Request {
            kernel: "linux-6.1".into(),
            machine: schedlab_machine::load("2").unwrap(),
            workload: schedlab_workload::parse(workload, std::path::Path::new("w.json")).unwrap(),
            set: Vec::new(),
            duration: Some(20_000_000),
            seed: 1,
            skip_ticks: true,
        }
    }

    #[test]
    fn a_run_is_measured_by_expressions() {
        let texts = ["sum(run_s['a']) * 1000", "turnaround_s['b']"].map(str::to_owned);
        let found = Expressions::parse(&texts).unwrap().measure(&Sim, &request()).unwrap();
        assert!((found.values[0].clone().unwrap() - 5.0).abs() < 0.1, "{:?}", found.values);
        assert_eq!(found.values[1].clone().unwrap_err(), "the task 'b' had not ended");
    }

    #[test]
    fn a_typing_error_names_the_nearest_measure() {
        let error = Expressions::parse(&["sum(wait_ms)".to_owned()]).err().unwrap().to_string();
        assert_eq!(error, "\"sum(wait_ms)\": \"wait_ms\" is no measure, parameter or table; did you mean \"wait_s\"?");
    }

    #[test]
    fn what_a_load_does_not_have_is_known_before_it_is_simulated() {
        let wrong = |text: &str, request: &Request| {
            Expressions::parse(&[text.to_owned()]).unwrap().check(request).err().map(|error| error.to_string())
        };
        let none = "\"sum(run_s['cat'])\": no task is named 'cat'; the tasks are 'a', 'b'";
        assert_eq!(wrong("sum(run_s['cat'])", &request()).as_deref(), Some(none));
        assert!(wrong("wait_s", &request()).unwrap().contains("a list of 2 numbers where one belongs"));
        assert_eq!(wrong("latency_p99_us['a']", &request()), None);
        assert_eq!(wrong("sum(run_s['cat'])", &Request { kernel: "linux-0.0".into(), ..request() }), None);
        let forks = br#"{"tasks": {"a": {"loop": 1, "fork": "b"}, "b": {"instance": 0, "loop": 1, "run": 1000}}}"#;
        let workload = schedlab_workload::parse(forks, std::path::Path::new("w.json")).unwrap();
        assert_eq!(wrong("sum(run_s['b-0'])", &Request { workload, ..request() }), None);
    }
}

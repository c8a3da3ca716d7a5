//! The native half of the Python package `schedlab`. Each function passes its arguments to a crate of the workspace and
//! returns the answer as JSON. The user's interface is in `python/schedlab`.

mod error;
mod frame;

use pyo3::prelude::*;

/// `schedlab._native`.
#[pymodule]
#[pyo3(name = "_native")]
mod native {
    use crate::error::{InputError, NotPermittedError, SchedlabError, raised};
    use crate::frame;
    #[pymodule_export]
    use crate::frame::Frame;
    use pyo3::prelude::*;
    use schedlab_base::{Error, Event, NameRecord, Sink, parse_duration};
    use schedlab_experiment::as_recorded::{Setup, setup};
    use schedlab_experiment::backend::{self, Backend, Request, Sim};
    use schedlab_experiment::measured::{Expressions, Recorded};
    use schedlab_machine::Costs;
    use schedlab_measure::intervals::Intervals;
    use schedlab_measure::partial::withhold;
    use schedlab_measure::{Chooser, Selection, Stats};
    use schedlab_sched::kernels;
    use schedlab_trace::{Reader, Writer};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("SchedlabError", py.get_type::<SchedlabError>())?;
        module.add("InputError", py.get_type::<InputError>())?;
        module.add("NotPermittedError", py.get_type::<NotPermittedError>())
    }

    /// A duration with a unit, in nanoseconds.
    #[pyfunction]
    fn duration_ns(text: &str) -> PyResult<u64> {
        parse_duration(text).map_err(raised)
    }

    /// Whether the file is a trace in schedlab's own format.
    #[pyfunction]
    fn is_trace(path: &str) -> bool {
        Reader::open(path).is_ok()
    }

    /// Reads a trace in any known format and writes it in schedlab's own.
    #[pyfunction]
    fn convert(py: Python<'_>, source: &str, target: &str) -> PyResult<()> {
        py.detach(|| {
            let mut source = schedlab_trace::open(source)?;
            let mut writer = Writer::create(target, source.meta())?;
            source.run(&mut writer)?;
            writer.finish().map(drop)
        })
        .map_err(raised)
    }

    /// What is missing at the end of a trace, as a sentence; `None` if it is complete.
    #[pyfunction]
    fn cut(py: Python<'_>, path: &str) -> PyResult<Option<String>> {
        py.detach(|| schedlab_trace::read_into(path, &mut Nowhere))
            .map(|(_, report)| report.cut.map(|cut| cut.what))
            .map_err(raised)
    }

    /// The statistics of a part of a trace in any known format, as JSON; with `task_cpus`, also what each task did on
    /// each CPU.
    #[pyfunction]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name: one for each option of the command")]
    fn stats(
        py: Python<'_>,
        path: &str,
        from: Option<&str>,
        to: Option<&str>,
        tasks: Vec<String>,
        pids: Vec<i32>,
        groups: Vec<String>,
        task_cpus: bool,
    ) -> PyResult<String> {
        py.detach(|| {
            let (from, to) = (from.map(parse_duration).transpose()?, to.map(parse_duration).transpose()?);
            let selection = Selection { from, to, names: tasks, pids, groups };
            let mut part = selection.part(None)?;
            if selection.chooses_tasks() {
                let mut source = schedlab_trace::open(path)?;
                let mut chooser = Chooser::new(source.meta());
                source.run(&mut chooser)?;
                part.tasks = Some(chooser.finish(&selection).map_err(|e| e.file(path))?);
            }
            let part = (!selection.is_all()).then_some(part);
            let mut source = schedlab_trace::open(path)?;
            let mut stats = Stats::of_part(source.meta(), part).with_teams();
            if task_cpus {
                stats = stats.by_task_cpu();
            }
            source.run(&mut stats)?.refuse_if_nothing_is_left(path)?;
            let mut document = serde_json::to_value(stats.finish(None)).expect("plain data is always JSON");
            if let Some(partial) = &source.meta().partial {
                withhold(&mut document, partial.covers);
            }
            Ok(document.to_string())
        })
        .map_err(raised)
    }

    /// What each task did, from when until when, as an Arrow table.
    #[pyfunction]
    fn intervals(py: Python<'_>, path: &str) -> PyResult<Frame> {
        py.detach(|| {
            let mut source = schedlab_trace::open(path)?;
            let mut intervals = Intervals::new(source.meta());
            source.run(&mut intervals)?.refuse_if_nothing_is_left(path)?;
            Ok(intervals.finish())
        })
        .map_err(raised)
        .and_then(|table| py.detach(|| frame::intervals(&table)))
    }

    /// Simulates and writes the trace to `target`. Returns the remarks about the run.
    #[pyfunction]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name: one for each option of the command")]
    fn simulate(
        py: Python<'_>,
        kernel: Option<&str>,
        machine: Option<&str>,
        workload: &str,
        target: &str,
        duration: Option<&str>,
        seed: u64,
        settings: Vec<(String, String)>,
        costs: bool,
        every_tick: bool,
        queues: bool,
    ) -> PyResult<Vec<String>> {
        py.detach(|| {
            if let Some(spec) = machine.filter(|name| *name != "recorded") {
                schedlab_machine::load(spec).map_err(of("machine"))?;
            }
            let workload = schedlab_workload::load(workload).map_err(of("workload"))?;
            let duration = duration.map(parse_duration).transpose().map_err(of("duration"))?;
            if let Some(name) = kernel.filter(|name| *name != "recorded") {
                kernels::find(name).map_err(of("kernel"))?;
            }
            let (Setup { kernel, mut machine, mut set }, remarks) = setup(kernel, machine, &workload, || None)?;
            if !costs {
                machine.costs = Costs::none();
            }
            set.extend(settings);
            let request = Request { kernel, machine, workload, set, duration, seed, skip_ticks: !every_tick };
            let meta = backend::head(&request);
            let mut writer = Writer::create(target, &meta)?.with_queues(queues);
            let outcome = backend::simulate(&request, &mut writer, None)?;
            writer.finish()?;
            let again = backend::again::remark(&meta);
            Ok([request.workload.warnings, remarks, outcome.notes, again.into_iter().collect()].concat())
        })
        .map_err(raised)
    }

    /// Simulates, or reads a recorded run, and measures it by expressions as an experiment's metrics are. Returns the
    /// value of each, or why there is none, and the remarks about the run.
    #[pyfunction]
    #[expect(clippy::too_many_arguments, reason = "Python gives them by name: one for each option of the command")]
    fn measure(
        py: Python<'_>,
        expressions: Vec<String>,
        kernel: Option<&str>,
        machine: Option<&str>,
        workload: &str,
        duration: Option<&str>,
        seed: u64,
        settings: Vec<(String, String)>,
        costs: bool,
        recorded: Option<(String, Vec<i32>, u64)>,
    ) -> PyResult<(Vec<Value>, Vec<String>)> {
        py.detach(|| {
            let expressions = Expressions::parse(&expressions)?;
            let workload = schedlab_workload::load(workload).map_err(of("workload"))?;
            let duration = duration.map(parse_duration).transpose().map_err(of("duration"))?;
            let Setup { kernel, mut machine, mut set } = if recorded.is_some() {
                let machine = schedlab_machine::load(machine.unwrap_or("host")).map_err(of("machine"))?;
                Setup { kernel: kernel.unwrap_or_default().to_owned(), machine, set: Vec::new() }
            } else {
                setup(kernel, machine, &workload, || None)?.0
            };
            if !costs {
                machine.costs = Costs::none();
            }
            set.extend(settings);
            let request = Request { kernel, machine, workload, set, duration, seed, skip_ticks: true };
            let recorded =
                recorded.map(|(trace, own, end)| Recorded { trace: trace.into(), own: own.into_iter().collect(), end });
            let backend = recorded.as_ref().map_or(&Sim as &dyn Backend, |recorded| recorded);
            let found = expressions.measure(backend, &request)?;
            let values = found.values.into_iter().map(|value| value.map_or_else(Value::Why, Value::Number));
            Ok((values.collect(), [request.workload.warnings, found.notes].concat()))
        })
        .map_err(raised)
    }

    /// Checks expressions over the measures of a run.
    #[pyfunction]
    fn check_expressions(expressions: Vec<String>) -> PyResult<()> {
        Expressions::parse(&expressions).map(drop).map_err(raised)
    }

    /// Checks what can be known of a simulation without doing it: the kernel, the machine, the workload, the tunables,
    /// and the expressions by which it is to be measured.
    #[pyfunction]
    fn check_run(
        py: Python<'_>,
        kernel: Option<&str>,
        machine: Option<&str>,
        workload: &str,
        duration: Option<&str>,
        settings: Vec<(String, String)>,
        expressions: Vec<String>,
    ) -> PyResult<()> {
        py.detach(|| {
            if let Some(spec) = machine.filter(|name| *name != "recorded") {
                schedlab_machine::load(spec).map_err(of("machine"))?;
            }
            if let Some(name) = kernel.filter(|name| *name != "recorded") {
                kernels::find(name).map_err(of("kernel"))?;
            }
            let workload = schedlab_workload::load(workload).map_err(of("workload"))?;
            let duration = duration.map(parse_duration).transpose().map_err(of("duration"))?;
            let (Setup { kernel, machine, mut set }, _) = setup(kernel, machine, &workload, || None)?;
            set.extend(settings);
            let request = Request { kernel, machine, workload, set, duration, seed: 0, skip_ticks: true };
            request.length().map_err(of("duration"))?;
            backend::check_settings(&request)?;
            if expressions.is_empty() { Ok(()) } else { Expressions::parse(&expressions)?.check(&request) }
        })
        .map_err(raised)
    }

    /// The value of an expression, or why the run has none.
    #[derive(IntoPyObject)]
    enum Value {
        Number(f64),
        Why(String),
    }

    /// Adds which argument an error is about.
    fn of(argument: &str) -> impl Fn(Error) -> Error {
        move |error| error.key(argument)
    }

    /// A sink that ignores all events.
    struct Nowhere;

    impl Sink for Nowhere {
        fn events(&mut self, _: &[Event]) {}
        fn name(&mut self, _: &NameRecord) {}
    }
}

//! The values of a run's measures, parameters and tables, as a metric's expression asks for them.

use super::{Get, MIB, NS, find, memory};
use crate::expr::{Problem, Reference, Scope, Selected, Selector, Value};
use crate::figures::{Run, TaskFigures};
use crate::points::{Point, value_of};
use crate::tables::Tables;
use schedlab_base::{Nanos, fits, listed};
use schedlab_measure::IdlePeriods;
use schedlab_measure::series::Track;
use std::collections::BTreeSet;

/// The names that a metric's expression may use: measures of a run, the point's parameters, and tables.
pub struct RunScope<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its point.
    pub point: &'a Point,
    /// The tables.
    pub tables: &'a Tables,
    /// The run is of a kernel that stands in for another, which may have had tunables that it lacks.
    pub stands_in: bool,
}

impl Scope for RunScope<'_> {
    fn value(&self, reference: &Reference, selected: &[Selected]) -> Result<Value, Problem> {
        if let Some(parameter) = self.point.0.get(&reference.path) {
            return Ok(value_of(parameter));
        }
        if let Some(value) = self.tables.value(&reference.path, selected) {
            return value;
        }
        let measure = find(&reference.path).ok_or_else(|| Problem::Wrong(format!("no \"{}\"", reference.path)))?;
        if self.run.recorded && measure.is_of_simulations() {
            return Err(Problem::NotRun(format!("a recording of a real kernel does not show {}", measure.name)));
        }
        match measure.get {
            Get::Run(get) => Ok(Value::Number(get(self.run))),
            Get::CpuTime => self.cpu_time(selected),
            Get::Idle(get) => self.idle(selected, get),
            Get::TaskTime(get) => {
                let window = whole(selected, "window")?;
                self.times(reference, window, get)
            }
            Get::MemoryOn => {
                let node = whole(selected, "node")?;
                self.tasks(reference, |t| {
                    let on = &memory(t)?.bytes_by_node;
                    let bytes = node.map_or_else(|| on.iter().sum(), |k| on.get(k as usize).copied().unwrap_or(0));
                    Ok(bytes as f64 / MIB)
                })
            }
            Get::Heat => self.heat(selected),
            Get::Tunable => self.tunable(reference),
            Get::Waste(get) => match &self.run.check {
                Some(check) => Ok(Value::Number(get(check))),
                None => Err(Problem::Undefined("wasted CPU time was not looked for".to_owned())),
            },
            Get::Energy => match &self.run.series.energy {
                Some(energy) => Ok(Value::Number(energy.joules())),
                None => Err(Problem::Wrong("the machine has no energy model".to_owned())),
            },
            Get::Task(get) => self.tasks(reference, get),
        }
    }
}

impl RunScope<'_> {
    fn matching(&self, reference: &Reference) -> Result<Vec<usize>, Problem> {
        let patterns: Vec<&str> = reference
            .selectors
            .iter()
            .filter_map(|s| if let Selector::Pattern(p) = s { Some(p.as_str()) } else { None })
            .collect();
        let tasks = &self.run.tasks;
        let wanted = |name: &str| patterns.is_empty() || patterns.iter().any(|p| fits(p, name));
        let found: Vec<usize> = (0..tasks.len()).filter(|i| wanted(&tasks[*i].name)).collect();
        if found.is_empty() && !patterns.is_empty() {
            let near = match schedlab_base::nearest(patterns[0], tasks.iter().map(|t| t.name.as_str())) {
                Some(near) => format!("; did you mean '{near}'?"),
                None => self.named(),
            };
            let wanted = patterns.join("', '");
            // On a slow kernel a run can end before its last tasks have begun.
            return Err(match self.run.recorded {
                true => Problem::Undefined(format!("no task '{wanted}' had begun when the run ended{near}")),
                false => Problem::Wrong(format!("no task is named '{wanted}'{near}")),
            });
        }
        Ok(found)
    }

    /// The tasks that there are, in a message.
    fn named(&self) -> String {
        let names: BTreeSet<&str> = self.run.tasks.iter().map(|task| task.name.as_str()).collect();
        let names: Vec<String> = names.into_iter().map(|name| format!("'{name}'")).collect();
        if names.is_empty() { String::new() } else { format!("; the tasks are {}", listed(&names)) }
    }

    fn tasks(
        &self,
        reference: &Reference,
        get: impl Fn(&TaskFigures) -> Result<f64, String>,
    ) -> Result<Value, Problem> {
        let tasks = &self.run.tasks;
        let one =
            |i: usize| get(&tasks[i]).map_err(|why| Problem::Undefined(format!("the task '{}' {why}", tasks[i].name)));
        self.matching(reference)?.into_iter().map(one).collect::<Result<_, _>>().map(Value::List)
    }

    /// A time of each task, or of those that were there during the whole of a window.
    fn times(
        &self,
        reference: &Reference,
        window: Option<u64>,
        get: fn(&Track) -> (Nanos, &[Nanos]),
    ) -> Result<Value, Problem> {
        let series = &self.run.series;
        let matching = self.matching(reference)?.into_iter();
        let Some(window) = window else {
            return Ok(Value::List(matching.map(|i| get(&series.tasks[i]).0 as f64 * NS).collect()));
        };
        self.uncut()?;
        let (from, to) = (window.saturating_mul(series.width), (window + 1).saturating_mul(series.width));
        let tasks = &self.run.tasks;
        // A task that is created at a window's start becomes runnable a little later.
        let slip = series.width / 100;
        let there = |i: &usize| {
            tasks[*i].start.is_some_and(|t| t <= from + slip)
                && tasks[*i].end.is_none_or(|t| t + slip >= to.min(series.end))
        };
        let time = |i: usize| get(&series.tasks[i]).1.get(window as usize).copied().unwrap_or(0) as f64 * NS;
        Ok(Value::List(matching.filter(there).map(time).collect()))
    }

    fn cpu_time(&self, selected: &[Selected]) -> Result<Value, Problem> {
        let (cpu, window) = (whole(selected, "cpu")?, whole(selected, "window")?);
        if window.is_some() {
            self.uncut()?;
        }
        let cpus = &self.run.series.cpus;
        let time = |i: usize| match window {
            None => cpus[i].run as f64 * NS,
            Some(k) => cpus[i].windows.get(k as usize).copied().unwrap_or(0) as f64 * NS,
        };
        match cpu {
            None => Ok(Value::List((0..cpus.len()).map(time).collect())),
            Some(k) if (k as usize) < cpus.len() => Ok(Value::Number(time(k as usize))),
            Some(k) => Err(Problem::Wrong(format!("CPU {k} of {}", cpus.len()))),
        }
    }

    fn idle(&self, selected: &[Selected], get: fn(&IdlePeriods, Nanos) -> f64) -> Result<Value, Problem> {
        let from = whole(selected, "from_us")?.unwrap_or(0).saturating_mul(1000);
        let idle = &self.run.series.idle;
        let Some(window) = whole(selected, "window")? else { return Ok(Value::Number(get(&idle.all, from))) };
        self.uncut()?;
        let periods = idle.window(window);
        let fixed =
            || Problem::Wrong("idleness has windows only where the file gives their width: window = \"1s\"".into());
        periods.map(|periods| Value::Number(get(&periods, from))).ok_or_else(fixed)
    }

    fn heat(&self, selected: &[Selected]) -> Result<Value, Problem> {
        let map = whole(selected, "map")?.unwrap_or(0);
        let Some((_, heat)) = self.run.heats.get(map as usize) else {
            let drawn = self.run.heats.len();
            return Err(Problem::Undefined(format!("no heat map {map} is drawn of this run, but {drawn} in all")));
        };
        let of = |row: u32| {
            heat.over_time(row).ok_or_else(|| Problem::Undefined(format!("heat map {map} shows nothing of {row}")))
        };
        if let Some(row) = whole(selected, "cpu")? {
            return of(row as u32).map(Value::Number);
        }
        let rows = heat.rows.iter().map(|row| row.cpus.first().copied().or(row.node).unwrap_or(0));
        rows.map(of).collect::<Result<_, _>>().map(Value::List)
    }

    fn tunable(&self, reference: &Reference) -> Result<Value, Problem> {
        let [Selector::Pattern(name)] = reference.selectors.as_slice() else {
            return Err(Problem::Wrong("a tunable is asked for by its name: tunable['sched_latency_ns']".into()));
        };
        let all = &self.run.tunables;
        // From 5.13 on some have lost the first part of their names.
        let found = all.get(name.as_str()).or_else(|| all.get(name.strip_prefix("sched_")?));
        if found.is_none() && self.stands_in && crate::catalogue::find(name).is_some() {
            return Err(Problem::NotRun(format!("this kernel has no tunable '{name}'")));
        }
        found.map(|value| Value::Number(*value as f64)).ok_or_else(|| {
            let near = schedlab_base::nearest(name, all.keys().copied());
            let near = near.map_or_else(String::new, |n| format!("; did you mean '{n}'?"));
            Problem::Wrong(format!("this kernel has no tunable '{name}'{near}"))
        })
    }

    fn uncut(&self) -> Result<(), Problem> {
        if self.run.series.cut {
            return Err(Problem::Undefined("the run has more windows than are recorded; take wider ones".into()));
        }
        Ok(())
    }
}

/// The whole number that a selector gives, if it is there.
fn whole(selected: &[Selected], key: &str) -> Result<Option<u64>, Problem> {
    match selected.iter().find(|(k, _)| k == key) {
        None => Ok(None),
        Some((_, Some(Value::Number(x)))) if *x >= 0.0 && x.fract() == 0.0 && *x < 1e9 => Ok(Some(*x as u64)),
        Some(_) => Err(Problem::Wrong(format!("{key} is no whole number"))),
    }
}

//! The measures of one run as lists that metrics' expressions are made of.

use crate::expr::{Problem, Reference, Scope, Selected, Selector, Value};
use crate::points::{Point, value_of};
use crate::run::Run;
use crate::tables::Tables;
use schedlab_base::Nanos;
use schedlab_measure::series::Track;
use schedlab_measure::{Idle, MemoryStats, TaskStats};

/// The figures of one task in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskFigures {
    /// Its name.
    pub name: String,
    /// When it became runnable first.
    pub start: Option<Nanos>,
    /// When it ended, if it did.
    pub end: Option<Nanos>,
    /// Time on a CPU.
    pub run: Nanos,
    /// Time in wait for a CPU.
    pub wait: Nanos,
    /// Times that it got a CPU.
    pub slices: u64,
    /// Times that it gave the CPU up of itself.
    pub voluntary: u64,
    /// Times that the CPU was taken from it.
    pub involuntary: u64,
    /// Moves between CPUs.
    pub migrations: u64,
    /// Moves between nodes.
    pub node_migrations: u64,
    /// When it was last moved between nodes, or most of its memory was.
    pub settled: Option<Nanos>,
    /// Its memory at the end.
    pub memory: Option<MemoryStats>,
    /// From wake-up to running, in us: mean, p50, p90, p99, p999, max; none where it was never woken.
    pub latency_us: Option<[f64; 6]>,
}

impl TaskFigures {
    /// The figures of a task out of its track and its statistics.
    #[must_use]
    pub fn new(track: &Track, stats: &TaskStats) -> Self {
        let sums = &stats.sums;
        let l = &sums.latency.latency_us;
        Self {
            name: track.name.clone(),
            start: track.start,
            end: track.end,
            run: (sums.run.run_us * 1e3).round() as Nanos,
            wait: (sums.wait.wait_us * 1e3).round() as Nanos,
            slices: sums.switches.slices,
            voluntary: sums.switches.voluntary,
            involuntary: sums.switches.involuntary,
            migrations: sums.moves.migrations,
            node_migrations: stats.node_migrations,
            settled: stats.settled_us.map(|us| (us * 1e3).round() as Nanos),
            memory: stats.memory.clone(),
            latency_us: (l.count > 0).then_some([l.mean, l.p50, l.p90, l.p99, l.p999, l.max]),
        }
    }
}

/// A measure: a list with one number a task or CPU, or one number of the whole run.
pub struct Measure {
    /// Its name.
    pub name: &'static str,
    /// What it is, with its unit.
    pub about: &'static str,
    get: Get,
}

enum Get {
    Task(fn(&TaskFigures) -> Result<f64, String>),
    TaskTime(fn(&Track) -> (Nanos, &[Nanos])),
    MemoryOn,
    Heat,
    CpuTime,
    Idle(fn(&Idle, Nanos) -> f64),
    Tunable,
    Energy,
    Run(fn(&Run) -> f64),
}

const NS: f64 = 1e-9;
const MIB: f64 = 1_048_576.0;

fn memory(task: &TaskFigures) -> Result<&MemoryStats, String> {
    task.memory.as_ref().ok_or_else(|| "has no x-memory, or there is one node alone".to_owned())
}

/// A percentile of a task's latency, where it was ever woken.
fn latency(task: &TaskFigures, which: usize) -> Result<f64, String> {
    task.latency_us.map(|l| l[which]).ok_or_else(|| "was never woken".to_owned())
}

fn ended(task: &TaskFigures) -> Result<f64, String> {
    task.end.map(|t| t as f64 * NS).ok_or_else(|| "had not ended".to_owned())
}

fn started(task: &TaskFigures) -> Result<f64, String> {
    task.start.map(|t| t as f64 * NS).ok_or_else(|| "never started".to_owned())
}

macro_rules! measures {
    ($($name:literal $about:literal $get:expr;)*) => {
        /// All measures.
        pub const MEASURES: &[Measure] = &[$(Measure { name: $name, about: $about, get: $get }),*];
    };
}

measures! {
    "run_s" "CPU time of each task; with window=k, of each task that was there during the whole of window k" Get::TaskTime(|t| (t.run, &t.windows));
    "local_s" "the same by the part of each task's memory that was on its CPU's node; also takes window=k" Get::TaskTime(|t| (t.local, &t.local_windows));
    "wait_s" "time that each task was runnable without a CPU" Get::Task(|t| Ok(t.wait as f64 * NS));
    "start_s" "when each task became runnable first" Get::Task(started);
    "finish_s" "when each task ended" Get::Task(ended);
    "turnaround_s" "from each task's start to its end" Get::Task(|t| Ok(ended(t)? - started(t)?));
    "slices" "times that each task got a CPU" Get::Task(|t| Ok(t.slices as f64));
    "voluntary" "times that each task gave its CPU up" Get::Task(|t| Ok(t.voluntary as f64));
    "involuntary" "times that each task's CPU was taken" Get::Task(|t| Ok(t.involuntary as f64));
    "switches" "voluntary and involuntary together" Get::Task(|t| Ok((t.voluntary + t.involuntary) as f64));
    "migrations" "each task's moves between CPUs" Get::Task(|t| Ok(t.migrations as f64));
    "node_migrations" "each task's moves between nodes" Get::Task(|t| Ok(t.node_migrations as f64));
    "converged_s" "when each task was last moved between nodes, or most of its memory was; 0 where neither was" Get::Task(|t| Ok(t.settled.unwrap_or(0) as f64 * NS));
    "memory_node" "the node that has most of each task's memory at the end" Get::Task(|t| memory(t).and_then(|m| m.node.map(f64::from).ok_or_else(|| "has given its memory back".to_owned())));
    "memory_moved_mib" "how much of each task's memory was moved, once for each time" Get::Task(|t| memory(t).map(|m| m.moved_bytes as f64 / MIB));
    "memory_mib" "each task's memory at the end; takes node=k" Get::MemoryOn;
    "latency_mean_us" "wake-up to running, mean of each task" Get::Task(|t| latency(t, 0));
    "latency_p50_us" "the same, median" Get::Task(|t| latency(t, 1));
    "latency_p90_us" "the same, 90th percentile" Get::Task(|t| latency(t, 2));
    "latency_p99_us" "the same, 99th percentile" Get::Task(|t| latency(t, 3));
    "latency_p999_us" "the same, 99.9th percentile" Get::Task(|t| latency(t, 4));
    "latency_max_us" "the same, greatest" Get::Task(|t| latency(t, 5));
    "busy_s" "time that each CPU ran tasks; takes cpu=k and window=k" Get::CpuTime;
    "idle_s" "time that CPUs were idle, all together; with from_us=T only in periods of T us and more, which a tick ends too" Get::Idle(|idle, from| idle.at_least(from) as f64 * NS);
    "idle_periods" "how many such periods there were" Get::Idle(|idle, from| idle.count(from) as f64);
    "woken_by_task" "times that an idle CPU was given a task, all CPUs together" Get::Run(|r| r.series.idle.by_task as f64);
    "woken_by_tick" "times that the tick came to an idle CPU, all CPUs together; 0 with NO_HZ" Get::Run(|r| r.series.idle.by_tick as f64);
    "tunable" "tunable['sched_latency_ns']: its value at the end, in its own unit; kernels from 2.6.33 on scale some by the CPUs online" Get::Tunable;
    "energy_j" "the energy of all CPUs in J, where the machine has an energy model: each domain at the frequency that its busiest CPU asks for" Get::Energy;
    "heat" "what the heat map map=m of those that are drawn of this run, from 0 on, shows of a CPU (of a node, in a map of memory), cpu=k: the mean over time, or the number of looks; of all CPUs, a list, without cpu" Get::Heat;
    "duration_s" "the time simulated" Get::Run(|r| r.series.end as f64 * NS);
    "cpus" "the number of CPUs" Get::Run(|r| r.series.cpus.len() as f64);
}

/// The measure of that name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Measure> {
    MEASURES.iter().find(|m| m.name == name)
}

impl Measure {
    /// The selectors that it takes, besides a task's name.
    #[must_use]
    pub fn selectors(&self) -> &'static [&'static str] {
        match self.get {
            Get::TaskTime(_) => &["window"],
            Get::MemoryOn => &["node"],
            Get::Heat => &["map", "cpu"],
            Get::CpuTime => &["cpu", "window"],
            Get::Idle(_) => &["from_us"],
            Get::Task(_) | Get::Tunable | Get::Energy | Get::Run(_) => &[],
        }
    }

    /// Whether it takes a task's name (`run_s['hog-*']`).
    #[must_use]
    pub fn takes_pattern(&self) -> bool {
        matches!(self.get, Get::TaskTime(_) | Get::Task(_) | Get::MemoryOn | Get::Tunable)
    }
}

/// The names that a metric's expression may use: measures of a run, the point's parameters, and tables.
pub struct RunScope<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its point.
    pub point: &'a Point,
    /// The tables.
    pub tables: &'a Tables,
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
        match measure.get {
            Get::Run(get) => Ok(Value::Number(get(self.run))),
            Get::CpuTime => self.cpu_time(selected),
            Get::Idle(get) => {
                let from = whole(selected, "from_us")?.unwrap_or(0).saturating_mul(1000);
                Ok(Value::Number(get(&self.run.series.idle, from)))
            }
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
        let fits = |name: &str| patterns.is_empty() || patterns.iter().any(|p| glob(p, name));
        let found: Vec<usize> = (0..tasks.len()).filter(|i| fits(&tasks[*i].name)).collect();
        if found.is_empty() && !patterns.is_empty() {
            let near = schedlab_base::nearest(patterns[0], tasks.iter().map(|t| t.name.as_str()));
            let near = near.map_or_else(String::new, |n| format!("; did you mean '{n}'?"));
            return Err(Problem::Wrong(format!("no task is named '{}'{near}", patterns.join("', '"))));
        }
        Ok(found)
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
        all.get(name.as_str()).map(|value| Value::Number(*value as f64)).ok_or_else(|| {
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

/// Whether `name` fits the pattern, in which `*` stands for any text and `?` for one character.
fn glob(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => (p, n) = (p + 1, n + 1),
            _ => {
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                (p, n) = (at + 1, from + 1);
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        for (pattern, name, fits) in [
            ("hog-*", "hog-12", true),
            ("hog-?", "hog-12", false),
            ("*", "", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b", "abc", false),
            ("", "a", false),
        ] {
            assert_eq!(glob(pattern, name), fits, "{pattern} {name}");
        }
    }
}

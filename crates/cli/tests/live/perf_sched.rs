//! Parses the output of `perf sched`.

pub mod rules;

use schedlab_base::Tid;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// A task according to `perf sched timehist`.
#[derive(Debug, Default)]
pub struct TimeHist {
    pub run_us: f64,
    /// The number of printed figures in the sum `run_us`. Each is truncated to 1 us.
    pub figures: u32,
    pub switched_out: u64,
    /// `None` if perf has no row for the task.
    pub migrations: Option<u64>,
    /// The sum and the maximum of its scheduling delays.
    pub delay_us: f64,
    pub delay_max_us: f64,
}

/// A task according to `perf sched latency`.
#[derive(Debug, Default)]
pub struct Latency {
    pub count: u64,
    pub average_us: f64,
    pub max_us: f64,
}

fn perf_sched(arguments: &[&str], file: &Path) -> String {
    let output = Command::new("perf").arg("sched").args(arguments).arg("-i").arg(file).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The tasks by thread id, without the idle tasks. If an id was reused, the figures of both tasks are summed.
pub fn time_hist(file: &Path) -> BTreeMap<Tid, TimeHist> {
    let mut tasks: BTreeMap<Tid, TimeHist> = BTreeMap::new();
    for line in perf_sched(&["timehist", "-M", "-s"], file).lines() {
        if let Some((tid, [_parent, count, run, _min, _mean, _max, _deviation, migrations])) = row(line) {
            let task = tasks.entry(tid).or_default();
            task.run_us += run * 1e3;
            task.figures += 1;
            task.switched_out += count as u64;
            task.migrations = Some(task.migrations.unwrap_or(0) + migrations as u64);
        }
    }
    for line in perf_sched(&["timehist"], file).lines() {
        // Each line starts with the time and the CPU.
        let Some((_, rest)) = line.split_once("] ").filter(|(head, _)| head.contains('[')) else { continue };
        if let Some((tid, [_wait, delay, _run])) = row(rest) {
            let task = tasks.entry(tid).or_default();
            task.delay_us += delay * 1e3;
            task.delay_max_us = task.delay_max_us.max(delay * 1e3);
        }
    }
    tasks
}

/// Every run that ended: its thread, when it began and the delay before it, in us.
pub fn delays_before_runs(file: &Path) -> Vec<(Tid, f64, f64)> {
    let output = perf_sched(&["timehist"], file);
    let run = |line: &str| {
        let (head, rest) = line.split_once("] ").filter(|(head, _)| head.contains('['))?;
        let end: f64 = head.split_whitespace().next()?.parse().ok()?;
        let (tid, [_wait, delay, run]) = row(rest)?;
        Some((tid, end * 1e6 - run * 1e3, delay * 1e3))
    };
    output.lines().filter_map(run).collect()
}

/// The switches that perf attributes to task -1: the task that the event itself names, and the length of the run in us.
pub fn last_switches(file: &Path) -> Vec<(Tid, f64)> {
    let script = Command::new("perf").args(["script", "-F", "tid,trace", "-i"]).arg(file).output().unwrap();
    let script = String::from_utf8_lossy(&script.stdout).into_owned();
    let leaving = script.lines().filter(|line| line.trim_start().starts_with("-1 ")).filter_map(|line| {
        line.split_once("prev_pid=").and_then(|(_, rest)| rest.split(' ').next()?.parse::<Tid>().ok())
    });
    let output = perf_sched(&["timehist"], file);
    let rows = output.lines().filter_map(|line| row::<3>(line.split_once("] ")?.1)).filter(|(tid, _)| *tid == -1);
    leaving.zip(rows).map(|(tid, (_, [_wait, _delay, run]))| (tid, run * 1e3)).collect()
}

/// A task's id and the numbers after its name. The name is `comm[tid]`, `comm[tid/tgid]`, or `:tid` for a task without
/// a name. Idle tasks have a name alone and are left out.
fn row<const N: usize>(line: &str) -> Option<(Tid, [f64; N])> {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    let numbers = words.split_off(words.len().checked_sub(N).filter(|rest| *rest > 0)?);
    let numbers: Vec<f64> = numbers.iter().map(|n| n.parse().ok()).collect::<Option<_>>()?;
    let name = words.join(" ");
    let tid = match name.rsplit_once('[') {
        Some((_, ids)) => ids.trim_end_matches(']').split('/').next()?.parse().ok()?,
        None => name.strip_prefix(':')?.parse().ok()?,
    };
    Some((tid, numbers.try_into().ok()?))
}

/// The tasks by thread id, from rows like `comm:tid | run ms | count | avg: ms | max: ms | ...`.
pub fn latency(file: &Path) -> BTreeMap<Tid, Latency> {
    let mut tasks = BTreeMap::new();
    for line in perf_sched(&["latency", "-p"], file).lines() {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [name, _run, count, average, max, ..] = columns[..] else { continue };
        let ms = |text: &str| text.split_once(':')?.1.trim().strip_suffix(" ms")?.trim().parse::<f64>().ok();
        let read = || {
            let tid: Tid = name.rsplit_once(':')?.1.trim().parse().ok()?;
            let latency =
                Latency { count: count.parse().ok()?, average_us: ms(average)? * 1e3, max_us: ms(max)? * 1e3 };
            Some((tid, latency))
        };
        if let Some((tid, latency)) = read() {
            tasks.insert(tid, latency);
        }
    }
    tasks
}

/// How often each thread was switched out in state `R+`.
pub fn preemptions(file: &Path) -> BTreeMap<Tid, u64> {
    let output = Command::new("perf").args(["script", "-F", "trace", "-i"]).arg(file).output();
    let mut tasks = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.unwrap().stdout).lines().filter(|l| l.contains(" prev_state=R+ ")) {
        let tid = line.split_once("prev_pid=").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        *tasks.entry(tid.expect("every switch names who left")).or_default() += 1;
    }
    tasks
}

/// Whether this perf's `latency` starts a delay at `sched_waking` if that was recorded, as it does since 6.11. Earlier
/// versions do not know that event.
pub fn latency_starts_at_waking() -> bool {
    let output = Command::new("perf").arg("--version").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = text.trim_start_matches("perf version ").split('.').map(|n| n.trim().parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 11)
}

//! The order of the rows: `--sort COLUMN`.

use super::By;
use schedlab_base::{Error, Result};
use schedlab_measure::{
    CpuStats, GroupStats, NameStats, NodeStats, ProcessStats, Report, Sums, TaskCpuStats, TaskStats,
};
use std::cmp::Ordering;

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Column {
    /// The name, the group, or the number of the CPU, node or process.
    Name,
    /// The thread id.
    Tid,
    /// How many tasks.
    Tasks,
    /// CPU time.
    #[value(alias = "share", alias = "busy")]
    Run,
    /// Time runnable, waiting for a CPU.
    Wait,
    /// How often a task got the CPU.
    Slices,
    /// Voluntary switches.
    #[value(alias = "voluntary")]
    Volunt,
    /// Involuntary switches.
    #[value(alias = "involuntary")]
    Involunt,
    /// Migrations.
    #[value(alias = "migrations")]
    Migr,
    /// The median latency.
    #[value(name = "lat-p50", alias = "p50")]
    P50,
    /// The 99th percentile of the latency.
    #[value(name = "lat-p99", alias = "p99")]
    P99,
    /// The longest latency.
    #[value(name = "lat-max", alias = "max")]
    Max,
    /// The longest delay.
    #[value(name = "delay-max", alias = "delay")]
    Delay,
    /// When the longest delay began.
    At,
    /// Idle time.
    Idle,
    /// The mean length of the run queue.
    Queue,
}

/// What a row has in a column: text goes from A to Z, numbers from the highest down.
enum Cell<'a> {
    Text(&'a str),
    Number(i64),
    Amount(f64),
}

impl Cell<'_> {
    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Number(a), Self::Number(b)) => a.cmp(b),
            (Self::Amount(a), Self::Amount(b)) => b.total_cmp(a),
            _ => Ordering::Equal,
        }
    }
}

/// Sorts the rows that the table shows. Rows that are equal keep their order, by run time or number.
pub fn sort(report: &mut Report, by: By, column: Column) -> Result<()> {
    match by {
        By::Task => rows(&mut report.tasks, column, task),
        By::TaskCpu => rows(report.task_cpus.as_deref_mut().unwrap_or_default(), column, task_cpu),
        By::Cpu => rows(&mut report.cpus, column, cpu),
        By::Node => rows(&mut report.nodes, column, node),
        By::Group => rows(&mut report.groups, column, group),
        By::Process => rows(&mut report.processes, column, process),
        By::Name => rows(&mut report.names, column, name),
    }
}

fn rows<R>(rows: &mut [R], column: Column, cell: for<'a> fn(&'a R, Column) -> Option<Cell<'a>>) -> Result<()> {
    if rows.iter().any(|row| cell(row, column).is_none()) {
        return Err(Error::input("the table has no such column").key("--sort").mend("choose one of its headings"));
    }
    let order = |a: &R, b: &R| match (cell(a, column), cell(b, column)) {
        (Some(a), Some(b)) => a.order(&b),
        _ => Ordering::Equal,
    };
    rows.sort_by(order);
    Ok(())
}

fn figure(sums: &Sums, column: Column) -> Option<Cell<'_>> {
    let latency = sums.latency.of_wakeups();
    Some(Cell::Amount(match column {
        Column::Run => sums.run.run_us,
        Column::Wait => sums.wait.wait_us,
        Column::Slices => sums.switches.slices as f64,
        Column::Volunt => sums.switches.voluntary as f64,
        Column::Involunt => sums.switches.involuntary as f64,
        Column::Migr => sums.moves.migrations as f64,
        Column::P50 => latency.p50,
        Column::P99 => latency.p99,
        Column::Max => latency.max,
        Column::Delay => sums.latency.delay_us.max,
        // The first at the top.
        Column::At => -sums.latency.delay_max_start_us.unwrap_or(f64::MAX),
        Column::Name | Column::Tid | Column::Tasks | Column::Idle | Column::Queue => return None,
    }))
}

fn task(row: &TaskStats, column: Column) -> Option<Cell<'_>> {
    match column {
        Column::Name => Some(Cell::Text(&row.name)),
        Column::Tid => Some(Cell::Number(row.tid.into())),
        _ => figure(&row.sums, column),
    }
}

fn task_cpu(row: &TaskCpuStats, column: Column) -> Option<Cell<'_>> {
    match column {
        Column::Name => Some(Cell::Text(&row.name)),
        Column::Tid => Some(Cell::Number(row.tid.into())),
        Column::Run => Some(Cell::Amount(row.run_us)),
        Column::Wait => Some(Cell::Amount(row.wait_us)),
        Column::Slices => Some(Cell::Amount(row.slices as f64)),
        _ => None,
    }
}

fn cpu(row: &CpuStats, column: Column) -> Option<Cell<'_>> {
    match column {
        Column::Name => Some(Cell::Number(row.cpu.into())),
        Column::Idle => Some(Cell::Amount(row.idle_us)),
        Column::Queue => Some(Cell::Amount(row.queue.mean)),
        _ => figure(&row.sums, column),
    }
}

fn node(row: &NodeStats, column: Column) -> Option<Cell<'_>> {
    match column {
        Column::Name => Some(Cell::Number(row.node.into())),
        Column::Idle => Some(Cell::Amount(row.idle_us)),
        Column::Queue => Some(Cell::Amount(row.queue.mean)),
        _ => figure(&row.sums, column),
    }
}

fn group(row: &GroupStats, column: Column) -> Option<Cell<'_>> {
    match column {
        Column::Name => Some(Cell::Text(row.group.as_deref().unwrap_or(""))),
        Column::Tasks => Some(Cell::Amount(row.tasks as f64)),
        Column::Queue => Some(Cell::Amount(row.queue_mean)),
        _ => figure(&row.sums, column),
    }
}

fn process(row: &ProcessStats, column: Column) -> Option<Cell<'_>> {
    match column {
        Column::Name => Some(Cell::Text(&row.name)),
        Column::Tid => Some(Cell::Number(row.tgid.unwrap_or(0).into())),
        Column::Tasks => Some(Cell::Amount(row.team.tasks as f64)),
        _ => figure(&row.team.sums, column),
    }
}

fn name(row: &NameStats, column: Column) -> Option<Cell<'_>> {
    match column {
        Column::Name => Some(Cell::Text(&row.name)),
        Column::Tasks => Some(Cell::Amount(row.team.tasks as f64)),
        _ => figure(&row.team.sums, column),
    }
}

//! `schedlab model --validate`: simulates the model as recorded, and says how well that repeats the recording.

use crate::setup;
use crate::ui::Ui;
use crate::verbs::stats::table::{Table, duration, grouped, percent, shorten};
use schedlab_base::{Meta, Result};
use schedlab_experiment::backend::{Request, meta, simulate};
use schedlab_measure::validation::{Compared, Errors, Validation};
use schedlab_measure::{Report, Stats};
use schedlab_workload::{Workload, from_trace};
use serde::Serialize;

/// How many tasks the table shows.
const ROWS: usize = 15;

/// How the model is validated.
#[derive(clap::Args)]
pub struct ValidateArgs {
    /// Simulate the model as recorded, and compare with the recording.
    #[arg(long)]
    pub validate: bool,
    /// The kernel to validate with; recorded (default) is the recorded one or the nearest that is not newer, host this
    /// machine's.
    #[arg(long, short, requires = "validate")]
    kernel: Option<String>,
    /// The machine to validate with: recorded (default), host, a preset, a shorthand, or a machine file.
    #[arg(long, short, requires = "validate")]
    machine: Option<String>,
    /// How many simulations, each with its own seed.
    #[arg(long, value_name = "N", default_value_t = 3, requires = "validate",
          value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: u64,
}

/// The outcome.
#[derive(Serialize)]
pub struct Validated {
    kernel: String,
    machine: String,
    #[serde(flatten)]
    validation: Validation,
    /// One sentence.
    trust: String,
    /// Why the simulation may differ from the recording.
    causes: Vec<String>,
}

/// What was recorded.
pub struct Recorded {
    pub meta: Meta,
    pub report: Report,
}

/// Simulates the workload as recorded.
pub fn validate(
    args: &ValidateArgs,
    recorded: &Recorded,
    (workload, model): (&Workload, &from_trace::Report),
    ui: &Ui,
) -> Result<Validated> {
    let setup = setup::of(args.kernel.as_deref(), args.machine.as_deref(), workload)?;
    let mut causes = setup.remarks;
    causes.extend(unknown(recorded, model));
    let mut request = Request {
        kernel: setup.kernel.name.to_owned(),
        machine: setup.machine,
        workload: workload.clone(),
        set: setup.set,
        duration: None,
        seed: 1,
        skip_ticks: true,
    };
    let progress = ui.progress(Some(args.seeds), "simulating the model");
    let mut reports = Vec::new();
    for seed in 1..=args.seeds {
        request.seed = seed;
        let mut stats = Stats::new(&meta(&request));
        let outcome = simulate(&request, &mut stats, None)?;
        if seed == 1 {
            causes.extend(outcome.notes);
        }
        reports.push(stats.finish(Some(outcome.end)));
        progress.inc(1);
    }
    progress.finish_and_clear();
    let keys = workload.tasks.iter().map(|task| task.name.as_str()).collect();
    let validation = Validation::of(&recorded.report, &reports, &keys);
    let trust = trust(&validation.errors);
    Ok(Validated { kernel: request.kernel, machine: request.machine.name, validation, trust, causes })
}

/// What the model cannot know of the recorded load.
fn unknown(recorded: &Recorded, model: &from_trace::Report) -> Vec<String> {
    let Recorded { meta, report } = recorded;
    let mut causes = Vec::new();
    let all = model.modelled_ns + model.left_out_ns;
    if model.left_out_ns * 100 > all {
        let part = percent(model.left_out_ns as f64 / all as f64);
        causes.push(format!("tasks with {part} of the CPU time are not in the model"));
    }
    if report.total.losses > 0 {
        causes.push(format!("events were lost at {} places", grouped(report.total.losses)));
    }
    if report.total.contradictions > 0 {
        causes.push(format!("{} events contradict others", grouped(report.total.contradictions)));
    }
    if meta.partial.is_some() {
        causes.push("the recording does not cover the whole machine: what else ran is not in the model".to_owned());
    }
    let groups = report.groups.iter().filter(|group| group.group.is_some() && group.share > 0.01).count();
    if groups > 1 && model.groups == 0 && !model.groups_known {
        causes.push(format!("the tasks ran in {groups} cgroups, whose weights and quotas are not recorded"));
    }
    if model.described == 0 {
        causes.push("the trace does not contain policies, slices and sessions (autogroup)".to_owned());
    } else if model.described < model.tasks {
        let rest = model.tasks - model.described;
        let tasks = if rest == 1 { "task is" } else { "tasks are" };
        let rest = grouped(rest as u64);
        causes.push(format!("{rest} {tasks} modelled without a policy, which the trace does not contain"));
    }
    causes
}

fn trust(errors: &Errors) -> String {
    let signed = |error: f64| format!("{:+.0}%", error * 100.0);
    let mut parts = Vec::new();
    if let Some(wait) = errors.wait {
        parts.push(format!("the wait of all tasks is off by {}", signed(wait)));
    }
    if let (Some(median), Some(p90)) = (errors.task_wait_median, errors.task_wait_p90) {
        parts.push(format!("that of a task by {:.0}% (median; 90%: {:.0}%)", median * 100.0, p90 * 100.0));
    }
    if let Some(slices) = errors.slices {
        parts.push(format!("switches by {}", signed(slices)));
    }
    if let (Some(p50), Some(p99)) = (errors.latency_p50, errors.latency_p99) {
        parts.push(format!("wake-up latency by {} (p50) and {} (p99)", signed(p50), signed(p99)));
    }
    if parts.is_empty() { "no task waited, so there is nothing to compare".to_owned() } else { parts.join(", ") }
}

impl Validated {
    /// Prints recorded beside simulated.
    pub fn text(&self) -> String {
        let Validation { seeds, recorded, simulated, tasks, .. } = &self.validation;
        let mut table = Table::new(1, ["", "recorded", "simulated", "error"]);
        let time: fn(f64) -> String = duration;
        let count: fn(f64) -> String = |n| grouped(n.round() as u64);
        type Figure = (&'static str, fn(&Compared) -> f64, fn(f64) -> String);
        let figures: [Figure; 6] = [
            ("CPU time", |c| c.run_us, time),
            ("wait", |c| c.wait_us, time),
            ("slices", |c| c.slices, count),
            ("migrations", |c| c.migrations, count),
            ("latency p50", |c| c.latency_p50_us, time),
            ("latency p99", |c| c.latency_p99_us, time),
        ];
        for (name, of, show) in figures {
            let (was, is) = (of(recorded), of(simulated));
            let error = if was > 0.0 { signed_percent((is - was) / was) } else { "-".to_owned() };
            table.row([name.to_owned(), show(was), show(is), error]);
        }
        let mut out = format!(
            "\nas recorded: {} on {}, {seeds} seed{}\n\n{}",
            self.kernel,
            self.machine,
            if *seeds == 1 { "" } else { "s" },
            table.render()
        );
        if !tasks.is_empty() {
            let mut table = Table::new(1, ["task", "tid", "CPU time", "wait recorded", "simulated", "error"]);
            for task in tasks.iter().take(ROWS) {
                let Compared { run_us, wait_us, .. } = task.recorded;
                let error = signed_percent(task.wait_error());
                let waits = [duration(wait_us), duration(task.simulated.wait_us), error];
                let cells = [shorten(&task.name), task.tid.to_string(), duration(run_us)];
                table.row(cells.into_iter().chain(waits));
            }
            out += &format!("\n{}", table.render());
            if tasks.len() > ROWS {
                out += &format!("and {} more tasks that used over 1% of a CPU\n", tasks.len() - ROWS);
            }
        }
        out += &format!("\nhow far to trust it: {}\n", self.trust);
        for cause in &self.causes {
            out += &format!("- {cause}\n");
        }
        out
    }
}

fn signed_percent(part: f64) -> String {
    format!("{:+.1}%", part * 100.0)
}

//! `schedlab model --validate`: simulates the model as recorded, and says how well that repeats the recording.

use super::Recorded;
use crate::jobs::cores;
use crate::setup;
use crate::ui::Ui;
use crate::verbs::stats::table::{Table, duration, grouped, shorten};
use schedlab_base::{Result, counted};
use schedlab_experiment::prediction::{Series, Validated, doubts, simulate_all};
use schedlab_measure::compared::Compared;
use schedlab_measure::validation::{Simulated, Validation};
use schedlab_workload::{Workload, from_trace};

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

/// Simulates the workload as recorded.
pub fn validate(
    args: &ValidateArgs,
    recorded: Recorded,
    (workload, model): (&Workload, &from_trace::Report),
    ui: &Ui,
) -> Result<Validated> {
    let Recorded { meta, stats } = recorded;
    let (setup, mut remarks) =
        setup::as_recorded(Some(&meta), args.kernel.as_deref(), args.machine.as_deref(), workload)?;
    let report = stats.finish(None);
    let mut doubts = doubts(&meta, &report, model);
    let progress = ui.progress(Some(args.seeds), "simulating the model");
    let setups = std::slice::from_ref(&setup);
    let series = Series { workload, setups, seeds: args.seeds, duration: None, choose: &|_| Vec::new(), traces: &[] };
    let simulated = simulate_all(&series, cores(), &|| progress.inc(1));
    progress.finish_and_clear();
    let runs = simulated?.remove(0);
    remarks.append(&mut doubts.causes);
    doubts.causes = remarks;
    doubts.causes.extend(runs.iter().take(1).flat_map(|run| run.notes.clone()));
    let keys = workload.tasks.iter().map(|task| task.name.as_str()).collect();
    let covers = meta.covers();
    let validation = Validation::of((&report, covers), runs.iter().map(|run| &run.report), &keys);
    Ok(Validated::new(&setup, validation, doubts))
}

/// Recorded beside simulated.
pub fn text(validated: &Validated) -> String {
    let Validated { kernel, machine, .. } = validated;
    let Validation { seeds, recorded, simulated, tasks, .. } = &validated.validation;
    let mut table = Table::new(1, ["", "recorded", "simulated", "error", "seeds"]);
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
        let (was, is) = (of(recorded), of(&simulated.mean));
        let recorded = if was.is_nan() { "-".to_owned() } else { show(was) };
        let error = if was > 0.0 { signed_percent((is - was) / was) } else { "-".to_owned() };
        let seeds = format!("{} to {}", show(of(&simulated.least)), show(of(&simulated.most)));
        table.row([name.to_owned(), recorded, show(is), error, seeds]);
    }
    let mut out =
        format!("\nas recorded: {kernel} on {machine}, {}\n\n{}", counted(*seeds as u64, "seed"), table.render());
    if !tasks.is_empty() {
        let mut table = Table::new(1, ["task", "tid", "CPU time", "wait recorded", "simulated", "error", "seeds"]);
        for task in tasks.iter().take(ROWS) {
            let Compared { run_us, wait_us, .. } = task.recorded;
            let error = signed_percent(task.wait_error());
            let Simulated { mean, least, most } = task.simulated;
            let seeds = format!("{} to {}", duration(least.wait_us), duration(most.wait_us));
            let waits = [duration(wait_us), duration(mean.wait_us), error, seeds];
            let cells = [shorten(&task.name), task.tid.to_string(), duration(run_us)];
            table.row(cells.into_iter().chain(waits));
        }
        out += &format!("\n{}", table.render());
        if tasks.len() > ROWS {
            let more = counted((tasks.len() - ROWS) as u64, "more task");
            out += &format!("and {more} that used over 1% of a CPU or waited for over 1% of all waiting\n");
        }
    }
    out += &format!("\n{}", trust_text(validated));
    out
}

/// How far to trust the model, and why.
pub fn trust_text(validated: &Validated) -> String {
    let mut out = String::new();
    for what in &validated.doubts.guesswork {
        out += &format!("this answer is guesswork: {what}\n");
    }
    out += &format!("how far to trust it: {}\n", validated.trust);
    for cause in &validated.doubts.causes {
        out += &format!("- {cause}\n");
    }
    out
}

fn signed_percent(part: f64) -> String {
    format!("{:+.1}%", part * 100.0)
}

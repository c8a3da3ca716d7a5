//! `schedlab kernels`: what kernels there are, and what one lets you set.

use super::stats::table::Table;
use crate::ui::Ui;
use schedlab_base::Result;
use schedlab_sched::kernels::{KERNELS, Kernel, find};
use serde_json::{Value, json};
use std::process::ExitCode;

/// What `kernels` is asked.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  schedlab kernels\n  schedlab kernels linux-6.12 --machine z800\n  schedlab kernels --json"
)]
pub struct Args {
    /// A kernel, to see its tunables; all kernels when left out.
    kernel: Option<String>,
    /// The machine for which defaults are shown: some scale with its CPUs.
    #[arg(long, short, default_value = "up")]
    machine: String,
}

/// Lists the kernels, or one kernel's tunables.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    let machine = schedlab_machine::load(&args.machine)?;
    let cpus = machine.cpus.len() as u32;
    match args.kernel {
        Some(name) => {
            let kernel = find(&name)?;
            if ui.json {
                ui.print_json(&to_json(kernel, cpus));
            } else {
                ui.print(&describe(kernel, cpus, &machine.name));
            }
        }
        None if ui.json => ui.print_json(&json!({
            "kernels": KERNELS.iter().map(|k| to_json(k, cpus)).collect::<Vec<_>>()
        })),
        None => {
            let mut table = Table::new(4, ["kernel", "scheduler", "HZ", "what it is"]);
            for k in KERNELS {
                table.row([k.name, k.scheduler, &k.tunables[0].base.to_string(), k.summary].map(str::to_owned));
            }
            ui.print(&table.render());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn to_json(kernel: &Kernel, cpus: u32) -> Value {
    let tunables: Vec<Value> = kernel
        .tunables
        .iter()
        .map(|t| {
            json!({
                "name": t.name, "unit": t.unit.name(), "default": t.default_for(cpus),
                "min": t.range.0, "max": t.range.1, "scales_with_cpus": t.scaled.is_some(), "meaning": t.meaning,
            })
        })
        .collect();
    json!({ "name": kernel.name, "scheduler": kernel.scheduler, "summary": kernel.summary, "tunables": tunables })
}

fn describe(kernel: &Kernel, cpus: u32, machine: &str) -> String {
    let mut table = Table::new(5, ["tunable", "default", "unit", "scales", "what it does"]);
    for t in kernel.tunables {
        let scales = if t.scaled.is_some() { "with CPUs" } else { "" };
        table.row([t.name, &t.default_for(cpus).to_string(), t.unit.name(), scales, t.meaning].map(str::to_owned));
    }
    let head = format!(
        "{} ({}): {}\nDefaults on {machine} ({cpus} CPUs); change one with --set NAME=VALUE.\n\n",
        kernel.name, kernel.scheduler, kernel.summary
    );
    head + &table.render()
}

//! `schedlab kernels`: what kernels there are, and what one lets you set.

use super::stats::table::Table;
use super::tunables::{listed, valued};
use crate::ui::Ui;
use schedlab_base::Result;
use schedlab_sched::kernels::{KERNELS, Kernel, find};
use serde_json::{Value, json};
use std::process::ExitCode;

/// What `kernels` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  schedlab kernels\n  schedlab kernels linux-6.12 --machine z800\n  \
                  schedlab kernels --json")]
pub struct Args {
    /// A kernel, to list its tunables (default: list all kernels).
    kernel: Option<String>,
    /// The machine to show defaults for, since some scale with the number of CPUs.
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
                ui.print(&listed(kernel, &kernel.tunables.iter().collect::<Vec<_>>(), cpus, &machine.name));
            }
        }
        None if ui.json => ui.print_json(&json!({
            "kernels": KERNELS.iter().map(|k| to_json(k, cpus)).collect::<Vec<_>>()
        })),
        None => ui.print(&table().render()),
    }
    Ok(ExitCode::SUCCESS)
}

fn table() -> Table {
    let heads = ["kernel", "scheduler", "HZ", "preemption", "idle tick", "autogroup", "what it is"];
    let mut table = Table::new(7, heads);
    for k in KERNELS {
        let build = k.build;
        let tick = if build.no_hz { "stops" } else { "goes on" };
        let autogroup = match k.autogroup() {
            None => "",
            Some(true) => "on",
            Some(false) => "off",
        };
        let hz = k.tunables[0].base.to_string();
        table.row([k.name, k.scheduler, &hz, build.preemption.name(), tick, autogroup, k.summary].map(str::to_owned));
    }
    table
}

fn to_json(kernel: &Kernel, cpus: u32) -> Value {
    let tunables: Vec<Value> = kernel.tunables.iter().map(|t| valued(t, cpus)).collect();
    let build = kernel.build;
    json!({
        "name": kernel.name, "scheduler": kernel.scheduler, "summary": kernel.summary, "hz": kernel.tunables[0].base,
        "preemption": build.preemption.name(), "no_hz": build.no_hz, "autogroup": kernel.autogroup(),
        "tunables": tunables,
    })
}

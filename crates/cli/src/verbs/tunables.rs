//! `schedlab tunables`: what each release lets one set: the catalogue, one entry in full, or one kernel's values on a
//! machine.

use super::stats::table::Table;
use crate::ui::Ui;
use schedlab_base::Result;
use schedlab_experiment::catalogue::{self, Entry};
use schedlab_machine::Machine;
use schedlab_sched::kernels::{KERNELS, Kernel, find};
use schedlab_sched::tunables::{Scaling, Tunable, Unit};
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;

/// What `tunables` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  schedlab tunables\n  schedlab tunables sched_latency_ns\n  \
                  schedlab tunables --kernel linux-6.12 --machine z800\n  \
                  schedlab tunables --kernel linux-2.6.32 sched_latency_ns --json")]
pub struct Args {
    /// A tunable to describe (default: list the whole catalogue).
    name: Option<String>,
    /// List only what this kernel has, with its values there.
    #[arg(long, short)]
    kernel: Option<String>,
    /// The machine to show a kernel's values for, since some scale with the number of CPUs.
    #[arg(long, short, default_value = "up", requires = "kernel")]
    machine: String,
}

/// Lists the catalogue or a kernel's tunables, or shows one.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    if let Some(kernel) = &args.kernel {
        of_kernel(find(kernel)?, &schedlab_machine::load(&args.machine)?, args.name.as_deref(), ui)?;
    } else if let Some(name) = &args.name {
        let entry = catalogue::get(name)?;
        if ui.json {
            ui.print_json(&with_kernels(entry));
        } else {
            ui.print(&in_full(entry));
        }
    } else if ui.json {
        let all: Vec<Value> = catalogue::entries().iter().map(with_kernels).collect();
        ui.print_json(&json!({ "tunables": all }));
    } else {
        let mut table = Table::new(6, ["tunable", "unit", "since", "until", "where", "what it does"]);
        for e in catalogue::entries() {
            table.row([&e.name, &e.unit, &e.since, &e.until, &e.location, &e.meaning].map(Clone::clone));
        }
        ui.print(&table.render());
    }
    Ok(ExitCode::SUCCESS)
}

fn of_kernel(kernel: &'static Kernel, machine: &Machine, name: Option<&str>, ui: &Ui) -> Result<()> {
    let cpus = machine.cpus.len() as u32;
    let wanted: Vec<&Tunable> = match name {
        None => kernel.tunables.iter().collect(),
        Some(name) => match kernel.tunable(name) {
            Some(tunable) => vec![tunable],
            None => {
                // The same words as for a setting of that name.
                let set = [(name.to_owned(), String::new())];
                kernel.values_or(machine, &set, |name| catalogue::history(kernel, name)).map_err(|e| e.key(name))?;
                Vec::new()
            }
        },
    };
    if ui.json {
        let tunables: Vec<Value> = wanted.iter().map(|t| valued(t, cpus)).collect();
        let head = json!({ "kernel": kernel.name, "machine": machine.name, "cpus": cpus, "tunables": tunables });
        ui.print_json(&head);
    } else if let (Some(_), [tunable]) = (name, wanted.as_slice()) {
        let unit = tunable.unit.name();
        let value = tunable.written(tunable.default_for(cpus));
        let scaling = scaling(tunable.scaling);
        let text = format!("{}: {value} {unit} on {} ({cpus} CPUs) {scaling}", kernel.name, machine.name);
        let entry = catalogue::find(tunable.name).map(in_full).unwrap_or_default();
        ui.print(&format!("{}\n\n{entry}", text.trim_end()));
    } else {
        ui.print(&listed(kernel, &wanted, cpus, &machine.name));
    }
    Ok(())
}

/// How its default follows the CPUs, in a few words; empty where it does not.
pub(super) fn scaling(scaling: Scaling) -> &'static str {
    match scaling {
        Scaling::None => "",
        Scaling::AtBoot { .. } => "x (1 + log2 CPUs) at boot",
        Scaling::Online => "x (1 + log2 CPUs online, to 8)",
    }
}

/// A kernel's tunables as a table with a head.
pub(super) fn listed(kernel: &Kernel, tunables: &[&Tunable], cpus: u32, machine: &str) -> String {
    let mut table = Table::new(6, ["tunable", "default", "unit", "range", "scales", "what it does"]);
    for t in tunables {
        let range = match t.unit {
            Unit::Word(words) => words.join("|"),
            _ => format!("{}..{}", t.range.0, t.range.1),
        };
        let value = t.written(t.default_for(cpus));
        table.row([t.name, &value, t.unit.name(), &range, scaling(t.scaling), t.meaning].map(str::to_owned));
    }
    let head = format!(
        "{} ({}): {}\nDefaults on {machine} ({cpus} CPUs); change one with --set NAME=VALUE, the value as the \
         running system \
         has it, in that unit.\n\n",
        kernel.name, kernel.scheduler, kernel.summary
    );
    head + &table.render()
}

/// A tunable of a kernel, with its value there.
pub(super) fn valued(t: &Tunable, cpus: u32) -> Value {
    let default = match t.unit {
        Unit::Word(_) => json!(t.written(t.default_for(cpus))),
        _ => json!(t.default_for(cpus)),
    };
    let mut value = json!({
        "name": t.name, "unit": t.unit.name(), "default": default, "base": t.base,
        "min": t.range.0, "max": t.range.1, "scales_with_cpus": t.scaling != Scaling::None,
        "scaling": scaling(t.scaling), "meaning": t.meaning,
    });
    if let Some(e) = catalogue::find(t.name) {
        for (key, text) in [
            ("since", &e.since),
            ("until", &e.until),
            ("successor", &e.successor),
            ("location", &e.location),
            ("path", &e.path),
            ("risk", &e.risk),
            ("source", &e.source),
        ] {
            value[key] = text.as_str().into();
        }
    }
    value
}

/// An entry, and the kernels that can be simulated and have it.
fn with_kernels(entry: &Entry) -> Value {
    let mut value = serde_json::to_value(entry).expect("plain data is always JSON");
    value["kernels"] = having(entry).collect::<Vec<_>>().into();
    value
}

fn having(entry: &Entry) -> impl Iterator<Item = &'static str> {
    KERNELS.iter().filter(|k| k.tunable(&entry.name).is_some()).map(|k| k.name)
}

fn in_full(e: &Entry) -> String {
    let mut out = format!("{}: {}\n\n", e.name, e.meaning);
    let kernels = having(e).collect::<Vec<_>>().join(", ");
    let exists = e.span();
    for (what, text) in [
        ("part", &e.subsystem),
        ("where", &format!("{}: {}", e.location, e.path)),
        ("unit", &e.unit),
        ("default", &e.default),
        ("range", &e.range),
        ("exists", &exists),
        ("then", &e.successor),
        ("risk", &e.risk),
        ("note", &e.note),
        ("simulated", &kernels),
        ("source", &e.source),
    ] {
        if !text.is_empty() {
            let _ = writeln!(out, "{what:<10} {text}");
        }
    }
    out
}

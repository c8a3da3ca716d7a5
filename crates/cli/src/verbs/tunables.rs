//! `schedlab tunables`: what each release lets one set: the catalogue, one entry in full, or one kernel's values on a
//! machine. And what the running machine has, set there and put back.

mod live;

pub use live::left_changed;

use super::stats::table::Table;
use crate::ui::Ui;
use schedlab_base::{Result, Tid};
use schedlab_experiment::catalogue::{self, Entry};
use schedlab_knobs::Group;
use schedlab_machine::Machine;
use schedlab_sched::kernels::{KERNELS, Kernel, find};
use schedlab_sched::tunables::{Scaling, Tunable, Unit};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// What `tunables` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  schedlab tunables\n  schedlab tunables sched_latency_ns\n  \
                  schedlab tunables --kernel linux-6.12 --machine z800\n  \
                  schedlab tunables --kernel linux-2.6.32 sched_latency_ns --json\n  \
                  schedlab tunables --live\n  \
                  schedlab tunables --live vm.swappiness\n  \
                  schedlab tunables --diff best.toml\n  \
                  schedlab tunables --apply best.toml --only-groups vm,disk\n  \
                  schedlab tunables --restore\n  \
                  schedlab tunables --profile sysctl best.toml -o 90-schedlab.conf")]
pub struct Args {
    /// A tunable to describe (default: list the whole catalogue).
    name: Option<String>,
    /// List only what this kernel has, with its values there.
    #[arg(long, short)]
    kernel: Option<String>,
    /// The machine to show a kernel's values for, since some scale with the number of CPUs.
    #[arg(long, short, default_value = "up", requires = "kernel")]
    machine: String,
    /// List what this machine has, with its values, and whether they can be set here; that changes nothing.
    #[arg(long, group = "here", conflicts_with = "kernel")]
    live: bool,
    /// Set what this TOML file says (NAME = VALUE lines; - for standard input), after every old value is on disk.
    #[arg(long, value_name = "FILE", groups = ["change", "here"], conflicts_with_all = ["kernel", "live", "name"])]
    apply: Option<PathBuf>,
    /// Print what --apply would change; exit 1 if anything.
    #[arg(long, value_name = "FILE", group = "here", conflicts_with_all = ["kernel", "live", "apply", "name"])]
    diff: Option<PathBuf>,
    /// Put back what --apply has changed, also after the process that did it was killed.
    #[arg(long, group = "change", conflicts_with_all = ["kernel", "live", "apply", "diff", "name", "only_groups"])]
    restore: bool,
    /// With --apply: the values belong to this process and are to be put back when it has ended. With --restore: act in
    /// its name.
    #[arg(long, value_name = "PID", requires = "change", value_parser = live::process)]
    owner: Option<Tid>,
    /// With --live, --apply or --diff: the groups that may be set, or that are listed: sched, vm, disk, irq, network,
    /// limits (default: all).
    #[arg(long, value_name = "GROUPS", value_delimiter = ',', requires = "here")]
    only_groups: Option<Vec<Group>>,
    /// Write a FILE as --apply takes it for other tools: a profile of tuned, a file of sysctl.d, a shell script (sh).
    #[arg(long, num_args = 2, value_names = ["FORM", "FILE"], conflicts_with_all = ["kernel", "live", "apply", "diff",
          "restore", "name", "only_groups", "owner"])]
    profile: Option<Vec<String>>,
    /// With --profile: the file to write (default: standard output).
    #[arg(long, short, requires = "profile")]
    output: Option<PathBuf>,
    /// Replace the output if it exists.
    #[arg(long, requires = "output")]
    force: bool,
    /// A directory in place of /, for tests.
    #[arg(long, hide = true)]
    root: Option<PathBuf>,
}

/// Lists the catalogue or a kernel's tunables, or shows one.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    if let Some(status) = live::run(&args, ui)? {
        return Ok(status);
    }
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
            None => return Err(kernel.missing(name, |name| catalogue::history(kernel, name)).key(name)),
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
    let machine = entry.on_a_machine();
    value["group"] = machine.map(|(group, _, _)| group).into();
    value["level"] = machine.map(|(_, level, _)| level).into();
    value["values"] = machine.map(|(_, _, values)| values).filter(|values| !values.is_empty()).into();
    value
}

fn having(entry: &Entry) -> impl Iterator<Item = &'static str> {
    KERNELS.iter().filter(|k| k.tunable(&entry.name).is_some()).map(|k| k.name)
}

fn in_full(e: &Entry) -> String {
    let mut out = format!("{}: {}\n\n", e.name, e.meaning);
    let kernels = having(e).collect::<Vec<_>>().join(", ");
    let exists = e.span();
    let before = if e.paper_default.is_empty() { String::new() } else { format!(", before: {}", e.paper_default) };
    let paper = match (e.paper.as_str(), e.paper_where.as_str()) {
        (_, "") => String::new(),
        ("", tables) => tables.to_owned(),
        (values, tables) => format!("{}{before} ({tables})", values.replace('|', ", ")),
    };
    let set = e.on_a_machine().map_or_else(String::new, |(group, level, values)| {
        let values = if values.is_empty() { "not by --apply" } else { values };
        format!("group {group}, risk {level}: {values}")
    });
    for (what, text) in [
        ("part", &e.subsystem),
        ("where", &format!("{}: {}", e.location, e.path)),
        ("unit", &e.unit),
        ("default", &e.default),
        ("range", &e.range),
        ("exists", &exists),
        ("then", &e.successor),
        ("risk", &e.risk),
        ("set", &set),
        ("note", &e.note),
        ("published", &paper),
        ("simulated", &kernels),
        ("source", &e.source),
    ] {
        if !text.is_empty() {
            let _ = writeln!(out, "{what:<10} {text}");
        }
    }
    out
}

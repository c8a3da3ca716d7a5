//! `schedlab machines`: what machines there are, and what one looks like.

mod domains;

use crate::ui::Ui;
use schedlab_base::{Error, Result};
use schedlab_experiment::calibrate::Calibrated;
use schedlab_machine::{Machine, MachineFile, picture, presets::PRESETS};
use schedlab_workload::from_trace::SeenCost;
use serde_json::{Value, json};
use std::fmt::Write;
use std::process::ExitCode;

/// What `machines` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  schedlab machines\n  schedlab machines z800\n  \
                  schedlab machines 2x8x2 --toml > mine.toml\n  \
                  schedlab machines --host\n  schedlab machines --host --calibrate > mine.toml\n  \
                  schedlab machines z800 --domains --kernel linux-6.12 --offline 3")]
pub struct Args {
    /// A preset, a shorthand (4, 2x6, 4x15x2), host, or a machine file (.toml) (default: list all presets).
    #[arg(conflicts_with = "host")]
    machine: Option<String>,
    /// This machine, as the kernel describes it.
    #[arg(long)]
    host: bool,
    /// Measure what wake-ups and ticks cost on this machine, and print its machine file with that. Takes two seconds of
    /// the first two CPUs, needs root, and wants the machine to be idle otherwise.
    #[arg(long, conflicts_with_all = ["machine", "domains", "toml"])]
    calibrate: bool,
    /// Print the machine as a machine file that you can edit and use.
    #[arg(long, conflicts_with_all = ["json", "domains"])]
    toml: bool,
    /// Show the scheduling domains that a kernel builds on it.
    #[arg(long, requires = "kernel")]
    domains: bool,
    #[command(flatten)]
    built: domains::Built,
}

/// Lists the presets, or shows one machine.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    if args.calibrate {
        calibrate(ui)?;
        return Ok(ExitCode::SUCCESS);
    }
    let spec = if args.host { Some("host".to_owned()) } else { args.machine };
    match spec {
        Some(spec) if args.domains => domains::show(&schedlab_machine::load(&spec)?, &args.built, ui)?,
        Some(spec) => show(&schedlab_machine::load(&spec)?, args.toml, ui)?,
        None if args.domains => {
            return Err(Error::input("--domains needs a machine")
                .mend("write: schedlab machines z800 --domains --kernel linux-6.12"));
        }
        None if args.toml => {
            return Err(Error::input("--toml needs a machine").mend("write: schedlab machines z800 --toml"));
        }
        None => list(ui),
    }
    Ok(ExitCode::SUCCESS)
}

fn show(machine: &Machine, toml: bool, ui: &Ui) -> Result<()> {
    if ui.json {
        ui.print_json(&to_json(machine));
    } else if toml {
        ui.print(&file(machine)?.to_toml());
    } else {
        ui.print(&picture(machine));
    }
    Ok(())
}

fn file(machine: &Machine) -> Result<MachineFile> {
    MachineFile::of(machine).ok_or_else(|| {
        Error::input(format!("\"{}\" is not regular enough for a machine file", machine.name))
            .mend("its sockets, caches or nodes differ in size; take --json")
    })
}

/// Measures this machine, and prints its file: how each cost was measured stands above it.
fn calibrate(ui: &Ui) -> Result<()> {
    let Calibrated { machine, kernel, found } = schedlab_experiment::calibrate::calibrate()?;
    if ui.json {
        let mut value = to_json(&machine);
        value["calibration"] = json!({ "kernel": kernel, "found": found });
        ui.print_json(&value);
        return Ok(());
    }
    let mut out = format!(
        "# Measured by schedlab machines --calibrate under {kernel}: medians, and what one and nine of ten do\n\
         # not exceed. A list of nine has more: 0, 10, 25, 50, 75, 90, 95, 99 and 100%. What is not listed\n\
         # has its default.\n"
    );
    for SeenCost { name, count, p10_ns, median_ns, p90_ns, .. } in &found {
        let _ = writeln!(out, "#   {name:<24}{median_ns:>8}   10%: {p10_ns:>7}   90%: {p90_ns:>7}   of {count}");
    }
    out.push_str(&file(&machine)?.to_toml());
    ui.print(&out);
    Ok(())
}

fn list(ui: &Ui) {
    if ui.json {
        let machines: Vec<Value> = PRESETS
            .iter()
            .map(|preset| {
                let mut value = sizes(&preset.machine());
                value["about"] = preset.about.into();
                value
            })
            .collect();
        ui.print_json(&json!({ "machines": machines }));
        return;
    }
    let mut out = format!("{:<15}{:>6}{:>6}  {}\n", "machine", "CPUs", "nodes", "what it is");
    for preset in PRESETS {
        let machine = preset.machine();
        let _ = writeln!(out, "{:<15}{:>6}{:>6}  {}", preset.name, machine.cpus.len(), machine.nodes(), preset.about);
    }
    out.push_str("\nand N, SxC or SxCxT (sockets x cores x threads), host, or a .toml file\n");
    ui.print(&out);
}

fn sizes(machine: &Machine) -> Value {
    json!({
        "name": machine.name, "cpus": machine.cpus.len(), "sockets": machine.sockets(), "cores": machine.cores(),
        "threads": machine.threads(), "llcs": machine.llcs(), "nodes": machine.nodes(),
        "nodes_per_package": machine.nodes_per_package,
    })
}

fn to_json(machine: &Machine) -> Value {
    let mut value = sizes(machine);
    let places: Vec<Value> = machine
        .cpus
        .iter()
        .map(|cpu| {
            let mut place = serde_json::to_value(&cpu.place).expect("plain data is always JSON");
            place["cluster"] = cpu.cluster.into();
            place
        })
        .collect();
    value["places"] = places.into();
    value["distances"] = json!(machine.distances);
    value["caches"] = json!({ "l2_kib": machine.caches.l2_kib, "llc_kib": machine.caches.llc_kib });
    value["costs"] = json!(machine.costs);
    value
}

//! `schedlab fidelity`: the same loads in the simulator and on a real kernel, figure by figure.

use crate::busy;
use crate::jobs::Jobs;
use crate::target::Target;
use crate::ui::Ui;
use schedlab_base::{Error, Nanos, Result, parse_duration};
use schedlab_experiment::backend::{self, Real};
use schedlab_experiment::fidelity::{Question, compare, loads, markdown, steps, table};
use std::path::PathBuf;
use std::process::ExitCode;

/// What `fidelity` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  schedlab fidelity --on live\n  \
    schedlab fidelity --on vm:debian-6.1 --on vm:debian-6.12 --deterministic --machine 1 --machine 4\n  \
    schedlab fidelity --on vm:debian-6.12 --deterministic --machine 2 --load hogs --load groups --json\n  \
    schedlab fidelity --on live mine.json\n\n\
    Exit status: 0 every figure is within its bar or the real kernel's own scatter, 1 some are not, 2 bad input, \
    4 not permitted.")]
pub struct Args {
    /// Workload files, or presets, to compare instead of the loads that this command has.
    #[arg(value_name = "WORKLOAD")]
    workload: Vec<String>,
    /// The real kernel: `live`, this one, or `vm:KERNEL`, a guest (vm:debian-6.12, vm:/path/to/bzImage); may be
    /// repeated, and the kernels are then compared as well.
    #[arg(long, value_name = "WHERE", required_unless_present = "list")]
    on: Vec<String>,
    /// In guests: count time in instructions, so that nothing else on this machine disturbs them.
    #[arg(long)]
    deterministic: bool,
    /// The machine: a preset, a shorthand (4, 2x6), host, or a machine file (.toml); may be repeated (default: host if
    /// live, otherwise 1).
    #[arg(long, short, value_name = "MACHINE")]
    machine: Vec<String>,
    /// Only this of the loads that this command has; may be repeated.
    #[arg(long, value_name = "NAME")]
    load: Vec<String>,
    /// List the loads.
    #[arg(long)]
    list: bool,
    /// How long each run is.
    #[arg(long, short, value_parser = parse_duration, default_value = "2s")]
    duration: Nanos,
    /// How often each load is run, and simulated; each time has its own seed.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(2..=1000))]
    repeats: u64,
    /// Write the tables as Markdown.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the file if it exists.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    jobs: Jobs,
}

/// Runs the loads, and prints the figures side by side.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    if args.list {
        return Ok(list(ui));
    }
    let target = args.output.as_deref().map(|path| Target::new(path, args.force)).transpose()?;
    let live = args.on.iter().any(|on| on == "live");
    let default = [if live { "host" } else { "1" }.to_owned()];
    let machines = if args.machine.is_empty() { &default[..] } else { &args.machine };
    let question = Question {
        kernels: args.on.iter().map(|on| kernel(on, args.deterministic)).collect::<Result<_>>()?,
        machines: machines.iter().map(|spec| schedlab_machine::load(spec)).collect::<Result<_>>()?,
        loads: args.load,
        workloads: args.workload.iter().map(|spec| schedlab_workload::load(spec)).collect::<Result<_>>()?,
        duration: args.duration,
        repeats: args.repeats,
        threads: args.jobs.count(),
    };
    busy::remark(live, ui);
    let bar = ui.progress(Some(steps(&question)), "starting");
    let fidelity = compare(&question, &|what| {
        bar.set_message(what.to_owned());
        bar.inc(1);
    });
    bar.finish_and_clear();
    let fidelity = fidelity?;
    if ui.json {
        ui.print_json(&fidelity);
    } else {
        ui.print(&table(&fidelity));
    }
    if let Some(target) = target {
        target.write_and_say(markdown(&fidelity).as_bytes(), ui)?;
    }
    Ok(ExitCode::from(u8::from(!fidelity.is_met())))
}

/// The real kernel that `--on` names; simulations are what it is compared with.
fn kernel(on: &str, deterministic: bool) -> Result<Box<dyn Real>> {
    if on.starts_with("sim:") {
        let error = Error::input(format!("--on {on}: a real kernel is compared with the simulator"));
        return Err(error.mend("write --on live or --on vm:debian-6.12; a profile follows from that kernel's release"));
    }
    backend::real(on, deterministic)
}

fn list(ui: &Ui) -> ExitCode {
    if ui.json {
        let loads: Vec<_> =
            loads().map(|(name, meaning)| serde_json::json!({ "name": name, "meaning": meaning })).collect();
        ui.print_json(&serde_json::json!({ "loads": loads }));
    } else {
        loads().for_each(|(name, meaning)| ui.print(&format!("{name:12}  {meaning}\n")));
    }
    ExitCode::SUCCESS
}

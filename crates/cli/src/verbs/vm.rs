//! `schedlab vm`: the kernels for guests, and a guest that does nothing but boot.

use super::stats::table::Table;
use crate::ui::Ui;
use schedlab_base::{Error, Nanos, Result, parse_duration};
use schedlab_experiment::backend::vm::Vm;
use schedlab_guest::{Guest, Job, Kept, Kernel, Limits, Ran, Store};
use schedlab_machine::Machine;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// What `vm` is asked.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  schedlab vm fetch debian-6.12\n  schedlab vm list\n  \
                  schedlab vm boot debian-6.12 --machine z800\n  schedlab vm boot ./bzImage --deterministic\n\n\
                  docs/guests.md describes guests.")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Get a kernel from the distribution's packages and keep it.
    Fetch {
        /// The kernel: debian-6.12, debian-6.1, or another release that the distribution has.
        #[arg(required = true, value_name = "KERNEL")]
        kernels: Vec<String>,
        /// Fetch it even if it is here, to get a newer one.
        #[arg(long)]
        again: bool,
    },
    /// List the kernels that have been fetched.
    List,
    /// Boot a kernel on a machine, and say what it found there.
    Boot {
        /// The kernel: debian-6.12, debian-6.1, or the path of a bzImage.
        kernel: String,
        #[command(flatten)]
        options: GuestArgs,
    },
}

/// How a guest is to be.
#[derive(clap::Args)]
pub struct GuestArgs {
    /// The guest's machine: a preset, a shorthand (4, 2x6, 4x15x2), host, or a machine file (.toml) (default: 1).
    #[arg(long, short)]
    machine: Option<String>,
    /// Set a tunable inside, under this kernel's own name for it; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = super::sim::setting)]
    pub set: Vec<(String, String)>,
    /// Count time in instructions: equal runs give equal bytes.
    #[arg(long)]
    deterministic: bool,
    /// The guest's memory in MiB (default: 2048 and 16 for each CPU).
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(128..=1 << 20))]
    memory: Option<u64>,
    /// How long the guest may take to boot (default: 120s).
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    boot_limit: Option<Nanos>,
    /// How long the guest may take from then on (default: 120s and 20 times the duration; 600s if there is none).
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    run_limit: Option<Nanos>,
}

impl GuestArgs {
    /// The guest's machine.
    pub fn machine(&self) -> Result<Machine> {
        schedlab_machine::load(self.machine.as_deref().unwrap_or("1"))
    }

    /// Guests of this kernel.
    pub fn vm(&self, kernel: &str) -> Result<Vm> {
        let mut vm = Vm::new(kernel)?;
        vm.deterministic = self.deterministic;
        vm.memory = self.memory;
        vm.boot = self.boot_limit.map_or(vm.boot, Duration::from_nanos);
        vm.run = self.run_limit.map(Duration::from_nanos);
        Ok(vm)
    }

    /// The first option that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--machine", self.machine.is_some()),
            ("--set", !self.set.is_empty()),
            ("--deterministic", self.deterministic),
            ("--memory", self.memory.is_some()),
            ("--boot-limit", self.boot_limit.is_some()),
            ("--run-limit", self.run_limit.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }
}

/// Does what is asked.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    match args.what {
        What::Fetch { kernels, again } => fetch(&kernels, again, ui),
        What::List => list(ui),
        What::Boot { kernel, options } => boot(&kernel, &options, ui),
    }
}

fn fetch(names: &[String], again: bool, ui: &Ui) -> Result<ExitCode> {
    let store = Store::open()?;
    let mut kept = Vec::new();
    for name in names {
        kept.push(store.fetch(name, again, &mut |text| ui.note(text))?);
    }
    show(&kept, ui);
    Ok(ExitCode::SUCCESS)
}

fn list(ui: &Ui) -> Result<ExitCode> {
    let kept = Store::open()?.kept()?;
    if kept.is_empty() && !ui.json {
        ui.note("no kernel has been fetched; schedlab vm fetch debian-6.12 gets one");
    } else {
        show(&kept, ui);
    }
    Ok(ExitCode::SUCCESS)
}

fn show(kept: &[Kept], ui: &Ui) {
    if ui.json {
        let kernels: Vec<Value> = kept.iter().map(described).collect();
        ui.print_json(&json!({ "kernels": kernels }));
        return;
    }
    let mut table = Table::new(5, ["kernel", "release", "package", "version", "image"]);
    for one in kept {
        let image = one.image().display().to_string();
        table.row([one.name.clone(), one.release.clone(), one.package.clone(), one.version.clone(), image]);
    }
    ui.print(&table.render());
}

fn described(kept: &Kept) -> Value {
    json!({
        "name": kept.name, "release": kept.release, "package": kept.package, "version": kept.version,
        "image": kept.image(), "sha256": kept.sha256,
    })
}

fn boot(name: &str, options: &GuestArgs, ui: &Ui) -> Result<ExitCode> {
    let machine = options.machine()?;
    let vm = options.vm(name.strip_prefix("vm:").unwrap_or(name))?;
    let run = vm.run.unwrap_or(Limits::default().run);
    let limits = Limits { boot: vm.boot, run };
    let Vm { kernel, deterministic, memory, .. } = vm;
    let guest = Guest { kernel: &kernel, machine: &machine, deterministic, memory, limits };
    let job = Job { set: options.set.clone(), ..Job::default() };
    let bar = ui.progress(None, "booting");
    let ran = schedlab_guest::run(&guest, &job, &mut |text| ui.note(text));
    bar.finish_and_clear();
    let ran = ran?;
    for remark in &ran.remarks {
        ui.note(remark);
    }
    if ui.json {
        ui.print_json(&document(&kernel, &ran));
    } else {
        let seen = &ran.done.seen;
        let shape = schedlab_machine::recorded(&schedlab_base::Meta {
            cpus: seen.cpus.clone(),
            distances: seen.distances.clone(),
            ..Default::default()
        })
        .map_err(|e| Error::input(format!("the guest saw no CPUs: {e}")))?;
        let (boot, accel) = (ran.boot.as_secs_f64(), ran.accel.name());
        ui.print(&format!("{}: {}, booted in {boot:.1} s under {accel}\n", seen.release, shape.summary()));
    }
    Ok(ExitCode::SUCCESS)
}

fn document(kernel: &Kernel, ran: &Ran) -> Value {
    let seen = &ran.done.seen;
    json!({
        "kernel": kernel.name, "release": seen.release, "version": seen.version, "accelerator": ran.accel.name(),
        "boot_s": ran.boot.as_secs_f64(), "guest_boot_s": seen.boot_s, "cpus": seen.cpus,
        "distances": seen.distances, "tunables": seen.tunables, "remarks": ran.remarks,
    })
}

//! `schedlab schema`: the JSON Schemas of the files that schedlab reads.

use crate::ui::Ui;
use schedlab_base::Result;
use schedlab_experiment::schema;
use std::process::ExitCode;

/// What `schema` is asked.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  schedlab schema experiment > experiment.schema.json\n  schedlab schema workload\n  \
    schedlab tune --schema                        # a study's\n\n\
    An editor with TOML support (taplo, Even Better TOML) checks and completes a file whose first line is\n  \
    #:schema ./experiment.schema.json\nand a JSON editor one that begins with\n  \
    { \"$schema\": \"./workload.schema.json\","
)]
pub struct Args {
    /// Which kind of file.
    #[arg(value_enum)]
    file: FileKind,
}

/// The kinds of files.
#[derive(Clone, Copy, clap::ValueEnum)]
enum FileKind {
    /// An experiment (TOML). Also lists kernels, tunables, machines, workloads, measures and functions.
    Experiment,
    /// A machine (TOML).
    Machine,
    /// A workload (rt-app's JSON with the x- keys).
    Workload,
}

/// Prints a schema.
pub fn run(args: Args, ui: &Ui) -> Result<ExitCode> {
    ui.print_json(&match args.file {
        FileKind::Experiment => schema::experiment(),
        FileKind::Machine => schema::machine(),
        FileKind::Workload => schema::workload(),
    });
    Ok(ExitCode::SUCCESS)
}

//! The `schedlab` command. Each verb has its own file under `verbs/`.

mod busy;
mod dispatch;
mod jobs;
mod kept;
mod partial;
mod placement;
mod selection;
mod setup;
mod target;
mod ui;
mod verbs;

use clap::{Arg, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;
use ui::Ui;

/// A laboratory for Linux task schedulers.
#[derive(Parser)]
#[command(
    name = "schedlab",
    version,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  schedlab record -o trace.arrows -- make -j4\n  schedlab stats trace.arrows\n  \
                  schedlab view trace.arrows\n  schedlab whatif trace.arrows --kernel linux-6.12\n  \
                  schedlab sim periodic:tasks=4 --kernel linux-2.6.32 --machine quad-smt --duration 5s\n\n\
                  schedlab COMMAND --help says more, with examples."
)]
struct Cli {
    /// Print one JSON document on standard output instead of text.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    verb: Verb,
}

/// Declares the verbs, one line each. The module of the same name has `Args` and `run`.
macro_rules! verbs {
    ($($(#[$doc:meta])* $name:ident => $module:ident),* $(,)?) => {
        #[derive(Subcommand)]
        #[allow(rustdoc::broken_intra_doc_links, reason = "the texts are the help, where [tune] is a package's extra")]
        enum Verb { $($(#[$doc])* $name(verbs::$module::Args)),* }
        impl Verb {
            fn run(self, ui: &Ui) -> schedlab_base::Result<ExitCode> {
                match self { $(Self::$name(args) => verbs::$module::run(args, ui)),* }
            }
        }
    };
}

verbs! {
    /// Check what this machine supports and how to fix what is missing.
    Doctor => doctor,
    /// Run experiments, print their figures beside the published ones, and judge them.
    Run => run,
    /// Test what any scheduler must do: fairness, response, balance, isolation, ...; verdicts for CI.
    Test => test,
    /// Simulate a workload on a machine under a kernel, and print its statistics.
    Sim => sim,
    /// Run a workload with real threads on this kernel, record it, and print its statistics.
    Exec => exec,
    /// Record the scheduling events of this kernel: while a command runs, for a time, or of some processes.
    Record => record,
    /// Read a recording that another tool made (perf.data).
    Import => import,
    /// Write a trace as CSV, for DuckDB, spreadsheets and other tools that do not read Arrow streams.
    Export => export,
    /// Turn a trace into a workload that can be simulated.
    Model => model,
    /// Predict what another kernel, other settings or another machine would do with a recorded load.
    Whatif => whatif,
    /// Find CPUs that were idle while tasks that could have run there waited; exit 1 if there are any.
    Check => check,
    /// Show traces in the browser: who ran, waited and slept where and when, and why.
    View => view,
    /// Draw a timeline of what ran on each CPU, in the terminal.
    Gantt => gantt,
    /// Draw a picture of all CPUs over time: run queues, loads, or the CPUs that the scheduler looked at.
    Heatmap => heatmap,
    /// Summarise a trace: run and wait time, latency, switches, migrations, run queues, fairness.
    Stats => stats,
    /// Show the longest waits, the tasks that ran meanwhile, and which tasks delay others most.
    Delays => delays,
    /// Compare two traces, or two sets of repeated ones: what got worse first; with bounds for CI.
    Diff => diff,
    /// Run the same loads in the simulator and on a real kernel, and print how far apart their figures are.
    Fidelity => fidelity,
    /// List the kernels, or the tunables of one.
    Kernels => kernels,
    /// List the machines, or draw one.
    Machines => machines,
    /// List the tunables of every release: what they do, where they are set, and what they risk.
    Tunables => tunables,
    /// Search which settings suit a load, on the simulator and on this kernel (pip install schedlab[tune]).
    Tune => tune,
    /// Simulate kernels x machines x workloads x settings x seeds, on all cores or a cluster (schedlab[tune] too).
    Sweep => sweep,
    /// Ask a trace in SQL, by DuckDB (pip install schedlab[query]).
    Query => query,
    /// List the workloads, or describe one.
    Workloads => workloads,
    /// Get kernels for guests, and boot them.
    Vm => vm,
    /// Print the JSON Schema of an experiment, a machine or a workload, for editors and scripts.
    Schema => schema,
}

/// Reads the command line. A negative number after an option is its value, so that the option says what it takes.
fn parse() -> Result<Cli, clap::Error> {
    let mut command = with_negative_numbers(Cli::command());
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches(&matches).map_err(|e| e.format(&mut command))
}

fn with_negative_numbers(command: Command) -> Command {
    let of_option = |arg: Arg| {
        let takes = !arg.is_positional() && arg.get_action().takes_values() && !arg.is_allow_hyphen_values_set();
        if takes { arg.allow_negative_numbers(true) } else { arg }
    };
    command.mut_args(of_option).mut_subcommands(with_negative_numbers)
}

fn main() -> ExitCode {
    if schedlab_guest::agent::is_due() {
        schedlab_guest::agent::main();
    }
    if let Err(error) = dispatch::become_program() {
        return Ui::new(false).fail(&error);
    }
    let cli = match parse() {
        Ok(cli) => cli,
        Err(message) => return ui::usage(&message),
    };
    let ui = Ui::new(cli.json);
    match cli.verb.run(&ui) {
        Ok(status) => ui.end(status),
        Err(error) => ui.fail(&error),
    }
}

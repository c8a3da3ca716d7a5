//! The `schedlab` command. Each verb has its own file under `verbs/`.

mod selection;
mod target;
mod ui;
mod verbs;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use ui::Ui;

/// A laboratory for Linux task schedulers.
#[derive(Parser)]
#[command(name = "schedlab", version, about, propagate_version = true, arg_required_else_help = true)]
struct Cli {
    /// One JSON document on standard output instead of text.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    verb: Verb,
}

/// Declares the verbs, one line each. The module of the same name has `Args` and `run`.
macro_rules! verbs {
    ($($(#[$doc:meta])* $name:ident => $module:ident),* $(,)?) => {
        #[derive(Subcommand)]
        enum Verb { $($(#[$doc])* $name(verbs::$module::Args)),* }
        impl Verb {
            fn run(self, ui: &Ui) -> schedlab_base::Result<ExitCode> {
                match self { $(Self::$name(args) => verbs::$module::run(args, ui)),* }
            }
        }
    };
}

verbs! {
    /// What this machine allows, and how to mend what it does not.
    Doctor => doctor,
    /// Run experiments, print our figures beside the published ones, and judge.
    Run => run,
    /// Simulate a workload on a machine under a kernel, and print its statistics.
    Sim => sim,
    /// Record the scheduling events of this kernel: around a command, for a time, or of some processes.
    Record => record,
    /// Read a recording that another tool made (perf.data).
    Import => import,
    /// A workload out of a trace, for what-if.
    Model => model,
    /// Find CPUs that were idle while tasks waited that were allowed to run there; exit 1 when there are any.
    Check => check,
    /// Draw who ran where and when, in the terminal.
    Gantt => gantt,
    /// Draw CPUs by time as a picture: run queues, loads, or the CPUs that the scheduler looked at.
    Heatmap => heatmap,
    /// What a trace comes to: run and wait time, latency, switches, migrations, run queues, fairness.
    Stats => stats,
    /// Show the longest waits, the tasks that ran meanwhile, and which tasks delay others most.
    Delays => delays,
    /// What kernels there are, and what one lets you set.
    Kernels => kernels,
    /// What machines there are, and what one looks like.
    Machines => machines,
    /// What each release lets one set, where it lives, and what it risks.
    Tunables => tunables,
    /// What workloads there are by name, and what one does.
    Workloads => workloads,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(message) => return ui::usage(&message),
    };
    let ui = Ui::new(cli.json);
    match cli.verb.run(&ui) {
        Ok(status) => ui.end(status),
        Err(error) => ui.fail(&error),
    }
}

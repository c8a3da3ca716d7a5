//! `schedlab sweep`: a program of the Python package.

pub use crate::dispatch::Args;
use crate::ui::Ui;
use schedlab_base::Result;
use std::process::ExitCode;

/// Becomes the program.
pub fn run(args: Args, _: &Ui) -> Result<ExitCode> {
    crate::dispatch::run("sweep", &args)
}

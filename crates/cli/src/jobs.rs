//! `--jobs`: how many runs go on at once.

use std::thread::available_parallelism;

/// How many runs go on at once.
#[derive(clap::Args)]
pub struct Jobs {
    /// The number of runs to do at once, where they do not disturb each other (default: the number of cores); the
    /// results do not depend on it.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
}

impl Jobs {
    /// As many as are asked for, or as there are cores.
    pub fn count(&self) -> usize {
        self.jobs.map_or_else(cores, usize::from)
    }
}

/// The cores that this process may use.
pub fn cores() -> usize {
    available_parallelism().map_or(1, usize::from)
}

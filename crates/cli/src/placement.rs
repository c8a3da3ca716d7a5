//! `--placement`: who chooses where tasks run.

use schedlab_workload::Placement;

/// Who chooses where tasks run.
#[derive(clap::Args)]
pub struct Placed {
    /// Who chooses where tasks run that the workload leaves free, in place of its own `x-placement`.
    #[arg(long, value_enum)]
    placement: Option<PlacementArg>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PlacementArg {
    /// The kernel's scheduler.
    Scheduler,
    /// Each task is bound to a CPU: nodes and caches in turn, one thread of each core first.
    Cpu,
    /// Each task is bound to a node, in turn, with its memory.
    Numa,
}

impl Placed {
    /// What is asked for; `None` is what the workload says.
    pub fn choice(&self) -> Option<Placement> {
        self.placement.map(|placement| match placement {
            PlacementArg::Scheduler => Placement::Scheduler,
            PlacementArg::Cpu => Placement::Cpu,
            PlacementArg::Numa => Placement::Numa,
        })
    }
}

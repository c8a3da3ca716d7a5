//! Where a model is simulated as recorded.

use super::Setup;
use crate::as_recorded::{self, RECORDED};
use crate::backend::again;
use schedlab_base::{Meta, Result};
use schedlab_workload::{Recorded, Workload};

/// The kernel, machine and settings that the model was recorded on, or those that are named instead, and remarks where
/// they are not quite what was recorded. `meta` is the trace's: a simulated one contains all of its settings.
///
/// # Errors
/// When the model does not say what they were, or there are none of the names.
pub fn as_recorded(
    meta: Option<&Meta>,
    (kernel, machine): (Option<&str>, Option<&str>),
    workload: &Workload,
    host: impl FnOnce() -> Option<Recorded>,
) -> Result<(Setup, Vec<String>)> {
    let made = meta.filter(|meta| meta.source == "sim").and_then(|meta| again::request(meta).ok());
    let recorded = |name: Option<&str>| name.is_none_or(|name| name == RECORDED);
    let setup = as_recorded::setup(kernel, machine, workload, host)?;
    let (mut own_machine, mut set) = (setup.machine, setup.set);
    if let Some(made) = made {
        if recorded(kernel) {
            set = made.set;
        }
        if recorded(machine) {
            own_machine = made.machine;
        }
    }
    Ok((Setup { kernel: setup.kernel.name.to_owned(), machine: own_machine, set }, setup.remarks))
}

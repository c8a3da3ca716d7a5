//! Where a model is simulated as recorded.

use super::Setup;
use crate::backend::again;
use schedlab_base::{Error, Meta, Release, Result};
use schedlab_sched::kernels::{self, Kernel};

/// The trace's kernel and machine, or those that are named instead, and remarks where they are not quite what was
/// recorded. Of a simulated trace its settings too.
///
/// # Errors
/// When the trace does not say what they were, or there are none of the names.
pub fn as_recorded(meta: &Meta, kernel: Option<&str>, machine: Option<&str>) -> Result<(Setup, Vec<String>)> {
    let made = (meta.source == "sim").then(|| again::request(meta).ok()).flatten();
    let set = match (&made, kernel) {
        (Some(made), None) => made.set.clone(),
        _ => Vec::new(),
    };
    let (kernel, remarks) = match kernel {
        Some(name) => (kernels::find(name)?, Vec::new()),
        None => recorded_kernel(&meta.kernel)?,
    };
    let machine = match (machine, made) {
        (Some(spec), _) => schedlab_machine::load(spec)?,
        (None, Some(made)) => made.machine,
        (None, None) => schedlab_machine::recorded(meta)?,
    };
    Ok((Setup { kernel: kernel.name.to_owned(), machine, set }, remarks))
}

/// The profile of the recorded kernel, and a remark if it is of another release.
fn recorded_kernel(name: &str) -> Result<(&'static Kernel, Vec<String>)> {
    if let Ok(kernel) = kernels::find(name) {
        return Ok((kernel, Vec::new()));
    }
    let release: Release = name.parse().map_err(|_| {
        Error::input(format!("the trace does not say which kernel it was recorded on (\"{name}\")"))
            .mend("name one with --kernel")
    })?;
    let kernel = kernels::not_newer_than(release);
    let same = kernel.release == Some(release);
    let remark = format!("the kernel was {release}, which is simulated as {}", kernel.name);
    Ok((kernel, if same { Vec::new() } else { vec![remark] }))
}

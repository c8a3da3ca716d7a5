//! A guest on what this machine has.

use crate::accel;
use crate::guest::{Accel, Guest};
use crate::mailbox::Job;
use crate::vm::{self, Ran};
use schedlab_base::{Error, Result, v};

/// Runs a guest under KVM if that works here, and under TCG otherwise. `say` is called with what goes on.
///
/// # Errors
/// When something keeps the guest from running its command to its end. Where the guest itself failed, the message
/// names the file with its console. A command that fails is no error: its status is in the results.
pub fn run(guest: &Guest<'_>, job: &Job, say: &mut dyn FnMut(&str)) -> Result<Ran> {
    if !cfg!(target_arch = "x86_64") {
        return Err(Error::not_permitted("guests need an x86-64 host: they run this same program"));
    }
    let accel = if guest.deterministic {
        refuse_hanging(guest)?;
        Accel::Counted
    } else if accel::kvm(guest.kernel, say)?.works {
        Accel::Kvm
    } else {
        Accel::Tcg
    };
    vm::run(guest, job, accel)
}

/// Kernels that are known to hang with counted instructions.
fn refuse_hanging(guest: &Guest<'_>) -> Result<()> {
    let cpus = guest.machine.cpus.len();
    if cpus > 1 && guest.kernel.version().is_some_and(|release| release == v(6, 1)) {
        let what = format!("{}: with counted instructions, 6.1 hangs while it starts a second CPU", guest.kernel.name);
        let mend = "give it one CPU, leave --deterministic out, or take 6.12";
        return Err(Error::input(what).mend(mend));
    }
    Ok(())
}

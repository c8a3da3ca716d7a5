//! A guest on what this machine has.

use crate::accel;
use crate::guest::{Accel, Guest};
use crate::mailbox::Job;
use crate::vm::{self, Ran};
use schedlab_base::{Error, Result};

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
        Accel::Counted
    } else if accel::kvm(guest.kernel, say)?.works {
        Accel::Kvm
    } else {
        Accel::Tcg
    };
    vm::run(guest, job, accel)
}

//! A guest on what this machine has.

use crate::accel;
use crate::guest::{Accel, Guest};
use crate::mailbox::Job;
use crate::vm::{self, Ran, Running};
use schedlab_base::{Error, Result};

/// Runs a guest for one job, under KVM if that works here, and under TCG otherwise. `say` is called with what goes on.
///
/// # Errors
/// When something keeps the guest from running its command to its end. Where the guest itself failed, the message
/// names the file with its console. A command that fails is no error: its status is in the results.
pub fn run(guest: &Guest<'_>, job: &Job, say: &mut dyn FnMut(&str)) -> Result<Ran> {
    vm::run(guest, job, accel(guest, say)?)
}

/// The same, but the guest stays for another job if it is as it was before this one. One that counts instructions never
/// stays: how many it executes while it waits is not the same twice.
///
/// # Errors
/// As [`run`].
pub fn start(guest: &Guest<'_>, job: &Job, say: &mut dyn FnMut(&str)) -> Result<(Ran, Option<Running>)> {
    let accel = accel(guest, say)?;
    vm::start(guest, &Job { stay: accel != Accel::Counted, ..job.clone() }, accel)
}

fn accel(guest: &Guest<'_>, say: &mut dyn FnMut(&str)) -> Result<Accel> {
    if !cfg!(target_arch = "x86_64") {
        return Err(Error::not_permitted("guests need an x86-64 host: they run this same program"));
    }
    Ok(if guest.deterministic {
        Accel::Counted
    } else if accel::kvm(guest.kernel, say)?.works {
        Accel::Kvm
    } else {
        Accel::Tcg
    })
}

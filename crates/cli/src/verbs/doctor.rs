//! `schedlab doctor`: checks what this machine supports and how to fix what is missing.

use crate::ui::Ui;
use schedlab_base::Result;
use schedlab_capture::doctor::{Check, Status, examine};
use schedlab_guest::{Store, accel};
use schedlab_watch::Ebpf;
use serde_json::json;
use std::fmt::Write;
use std::process::ExitCode;

/// What `doctor` is asked: nothing.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  schedlab doctor\n  schedlab doctor --json\n\n\
    It removes tracefs instances that killed recorders left behind. Where a kernel has been fetched, it boots one \
    guest to see whether KVM works, for at most 20 s, and remembers the answer until the machine restarts. \
    Its exit status is always 0.")]
pub struct Args {}

/// Runs all checks and prints their outcomes.
pub fn run(_: Args, ui: &Ui) -> Result<ExitCode> {
    let mut checks = examine();
    checks.push(ebpf());
    checks.extend(tunables());
    checks.extend(guests(ui));
    if ui.json {
        ui.print_json(&json!({ "checks": checks }));
    } else {
        ui.print(&table(&checks));
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether the live checker can read the run queues by eBPF. It is tried, and leaves nothing behind.
fn ebpf() -> Check {
    let (status, found, mend) = match Ebpf::open() {
        Ok(_) => (Status::Ok, "reads the run queues: schedlab check --live".to_owned(), None),
        Err(why) => {
            (Status::Hint, why.to_string(), Some("check --live reads /proc instead, which costs more".to_owned()))
        }
    };
    Check { id: "ebpf", status, found, mend }
}

/// Whether tunables are still changed that `schedlab tunables --apply` or `schedlab tune` has set.
fn tunables() -> Option<Check> {
    let found = super::tunables::left_changed()?;
    let mend = "the journal has the old values; docs/tunables.md describes what can have happened".to_owned();
    Some(Check { id: "tunables", status: Status::Hint, found, mend: Some(mend) })
}

/// What guests need. Whether KVM works is found by booting one, if there is a kernel for it.
fn guests(ui: &Ui) -> Vec<Check> {
    let check = |id, found: String, mend: &str| Check {
        id,
        status: if mend.is_empty() { Status::Ok } else { Status::Hint },
        found,
        mend: (!mend.is_empty()).then(|| mend.to_owned()),
    };
    let known = accel::known();
    let Some(qemu) = known.qemu else {
        let mend = "guests (--on vm:...) need it; as root: apt-get install qemu-system-x86";
        return vec![check("qemu", "not installed".to_owned(), mend)];
    };
    let kept = Store::open().and_then(|store| store.kept()).unwrap_or_default();
    let names: Vec<&str> = kept.iter().map(|kernel| kernel.name.as_str()).collect();
    let kernels = match names.as_slice() {
        [] => check("guest_kernels", "none fetched".to_owned(), "schedlab vm fetch debian-6.12"),
        names => check("guest_kernels", names.join(", "), ""),
    };
    let slow = "guests run under TCG, which is slower and for one CPU as good";
    let try_one = |name: &str| accel::kvm(&schedlab_guest::find(name)?, &mut |text| ui.note(text));
    let tried = known.answer.map_or_else(|| names.first().map(|name| try_one(name)), |answer| Some(Ok(answer)));
    let kvm = match (known.no_kvm, tried) {
        (Some(absent), _) => check("kvm", absent, slow),
        (None, None) => check("kvm", "not tried: that takes a kernel".to_owned(), "schedlab vm fetch debian-6.12"),
        (None, Some(Ok(answer))) => check("kvm", answer.found, if answer.works { "" } else { slow }),
        (None, Some(Err(e))) => check("kvm", format!("cannot be tried: {e}"), slow),
    };
    vec![check("qemu", qemu, ""), kernels, kvm]
}

/// One line for each check, followed by a line with the fix if there is one.
fn table(checks: &[Check]) -> String {
    let width = checks.iter().map(|check| check.id.len()).max().unwrap_or(0);
    let mut out = String::new();
    for check in checks {
        let status = match check.status {
            Status::Ok => "ok",
            Status::No => "no",
            Status::Hint => "hint",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{:width$}  {status:<4}  {}", check.id, check.found);
        if let Some(mend) = &check.mend {
            let _ = writeln!(out, "{:width$}        {mend}", "");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_item_is_followed_by_its_fix() {
        let check =
            |status, mend: Option<&str>| Check { id: "btf", status, found: "f".into(), mend: mend.map(Into::into) };
        let text = table(&[check(Status::Ok, None), check(Status::No, Some("do this"))]);
        assert_eq!(text, "btf  ok    f\nbtf  no    f\n           do this\n");
    }
}

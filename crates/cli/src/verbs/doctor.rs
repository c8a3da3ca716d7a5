//! `schedlab doctor`: checks what this machine supports and how to fix what is missing.

use crate::ui::Ui;
use schedlab_base::Result;
use schedlab_capture::doctor::{Check, Status, examine};
use serde_json::json;
use std::fmt::Write;
use std::process::ExitCode;

/// What `doctor` is asked: nothing.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  schedlab doctor\n  schedlab doctor --json\n\n\
    The only thing that it changes: it removes tracefs instances that killed recorders left behind. \
    Its exit status is always 0.")]
pub struct Args {}

/// Runs all checks and prints their outcomes.
pub fn run(_: Args, ui: &Ui) -> Result<ExitCode> {
    let checks = examine();
    if ui.json {
        ui.print_json(&json!({ "checks": checks }));
    } else {
        ui.print(&table(&checks));
    }
    Ok(ExitCode::SUCCESS)
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

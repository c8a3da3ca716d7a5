//! `schedlab stats --schedstat`: what `/proc/schedstat` would have said.

use super::Ticker;
use crate::partial;
use crate::ui::Ui;
use schedlab_base::{Error, Meta, Result};
use schedlab_measure::schedstat::{Format, SchedstatSink};
use schedlab_sched::kernels;
use std::path::Path;
use std::process::ExitCode;

/// `CONFIG_HZ`, where the trace does not tell: the kernel's own default.
const HZ: u64 = 250;

/// Reads the trace and prints the file.
pub fn run(trace: &Path, version: Option<u32>, ui: &Ui) -> Result<ExitCode> {
    let mut source = schedlab_trace::open(trace)?;
    partial::refuse(source.meta(), trace, "--schedstat")?;
    let format = format(source.meta(), version)?;
    let hz = hz(source.meta());
    let mut counts = SchedstatSink::new(source.meta(), format);
    let mut ticker = Ticker::new(ui);
    let read = source.run(&mut (&mut counts, &mut ticker));
    ticker.finish();
    read?.refuse_if_nothing_is_left(trace)?;
    if counts.losses() > 0 {
        ui.note("events were lost: what happened then is not counted");
    }
    let told = counts.finish(hz);
    if ui.json {
        ui.print_json(&told);
    } else {
        ui.note(
            "sched_count counts switches, yld_count is not known (0), and the lines of the domains are left out: \
             traces do not have these",
        );
        ui.print(&told.text());
    }
    Ok(ExitCode::SUCCESS)
}

fn format(meta: &Meta, version: Option<u32>) -> Result<Format> {
    let known = Format::VERSIONS.map(|v| v.to_string()).join(", ");
    match version {
        Some(version) => Format::of_version(version).ok_or_else(|| {
            Error::input(format!("{version} is no version")).key("--schedstat").mend(format!("one of {known}"))
        }),
        None => Format::of_kernel(&meta.kernel).ok_or_else(|| {
            Error::input(format!("\"{}\" is not a kernel whose /proc/schedstat is known", meta.kernel))
                .key("--schedstat")
                .mend(format!("choose a version: --schedstat=15 (of {known})"))
        }),
    }
}

/// Ticks a second: as the simulation was set, or else as the profile or any kernel has it.
fn hz(meta: &Meta) -> u64 {
    let set = meta.notes.get("set.hz").and_then(|hz| hz.parse().ok());
    let base = || kernels::find(&meta.kernel).ok().and_then(|k| u64::try_from(k.tunables[0].base).ok());
    let simulated = (meta.source == "sim").then(base).flatten();
    set.or(simulated).unwrap_or(HZ)
}
